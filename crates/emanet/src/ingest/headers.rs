//! Which headers a connector sees, and which of them are stored.

use crate::http_server::Peer;
use axum::http::HeaderMap;

/// Who was at the other end of the connection, as we saw it; a sender's own word for it is dropped.
const PEER: &str = "x-emanet-peer";

/// Stored by name: what says how to read the body, who signed it, and where the person came from.
const KEPT: &[&str] = &[
    "accept",
    "accept-language",
    "content-type",
    "idempotency-key",
    "origin",
    "referer",
    "user-agent",
    "x-forwarded-for",
    "x-hub-signature-256",
    PEER,
];

/// Stored by how the name begins.
const KEPT_FAMILIES: &[&str] = &["x-emanet-", "webhook-"];

/// A name with one of these in it may carry a credential, whatever it begins with.
const CREDENTIALS: &[&str] = &["secret", "token", "password", "auth"];

/// All headers but cookies, names in lower case, for the connector's check.
pub(super) fn received(headers: &HeaderMap, peer: Peer) -> Vec<(String, String)> {
    let ours = (PEER.to_owned(), peer.to_string());
    headers
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "cookie" | PEER))
        .map(|(name, value)| {
            let value = std::str::from_utf8(value.as_bytes()).map_or_else(
                |_| String::from_utf8_lossy(value.as_bytes()).into_owned(),
                str::to_owned,
            );
            (name.as_str().to_owned(), value)
        })
        .chain([ours])
        .collect()
}

/// Drops what is not stored.
pub(super) fn keep_storable(headers: &mut Vec<(String, String)>) {
    headers.retain(|(name, _)| is_storable(name));
}

fn is_storable(name: &str) -> bool {
    KEPT.contains(&name)
        || (KEPT_FAMILIES.iter().any(|family| name.starts_with(family))
            && !CREDENTIALS.iter().any(|word| name.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    fn check(name: &'static str, seen: bool, stored: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static("theirs"),
        );
        let mut got = received(&headers, Peer::Local);
        let theirs = (name.to_owned(), "theirs".to_owned());
        assert_eq!(got.contains(&theirs), seen, "{name}");
        keep_storable(&mut got);
        assert_eq!(got.contains(&theirs), stored, "{name}");
    }

    #[test]
    fn credentials_are_seen_by_the_check_and_never_stored() {
        check("content-type", true, true);
        check("x-hub-signature-256", true, true);
        check("webhook-id", true, true);
        check("webhook-signature", true, true);
        check("x-emanet-timestamp", true, true);
        check("idempotency-key", true, true);
        check("x-forwarded-for", true, true);
        check("x-emanet-secret", true, false);
        check("webhook-token", true, false);
        check("authorization", true, false);
        check("x-unrelated", true, false);
        check("cookie", false, false);
        check("x-emanet-peer", false, false);
    }

    #[test]
    fn the_peer_is_the_one_we_saw() {
        let mut headers = HeaderMap::new();
        headers.insert(PEER, HeaderValue::from_static("10.9.8.7"));
        let peer = Peer::Tcp("192.0.2.1:4000".parse().unwrap());
        let mut got = received(&headers, peer);
        keep_storable(&mut got);
        assert_eq!(got, [(PEER.to_owned(), "192.0.2.1".to_owned())]);
    }

    #[test]
    fn bytes_that_are_no_text_are_seen_as_such() {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_bytes(b"v1,\xff\xfe").unwrap();
        headers.insert("webhook-signature", value);
        let got = received(&headers, Peer::Local);
        assert_eq!(got[0].1, "v1,\u{fffd}\u{fffd}");
    }
}
