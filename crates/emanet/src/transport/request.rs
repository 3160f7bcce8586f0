//! A call as an HTTP/1.1 request. Refuses what would let a call say more than it seems to: other schemes, user data in the URL,
//! headers that frame the message.

use emanet_core::call::{Call, HeaderValue};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderName};
use url::{Host, Position, Url};

/// What a connection is made to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    /// `https`.
    pub(super) tls: bool,
    /// Name or address.
    pub(super) host: Host<String>,
    /// Port, the scheme's if the URL names none.
    pub(super) port: u16,
}

/// The call cannot be made as it stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InvalidCall;

/// Headers that are the transport's, or that change how the message is framed.
const OURS: &[HeaderName] = &[
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::EXPECT,
    header::TE,
    header::TRAILER,
];

const USER_AGENT: &str = concat!("emanet/", env!("CARGO_PKG_VERSION"));

/// Splits a call into where it goes and what is said there.
pub(super) fn prepare(call: &Call) -> Result<(Origin, hyper::Request<Full<Bytes>>), InvalidCall> {
    let url = Url::parse(&call.url).map_err(|_| InvalidCall)?;
    let origin = origin(&url)?;
    let mut request = hyper::Request::builder()
        .method(call.method.as_str())
        .uri(&url[Position::BeforePath..Position::AfterQuery])
        .body(Full::new(Bytes::from(call.body.clone())))
        .map_err(|_| InvalidCall)?;
    *request.headers_mut() = headers(call, &url)?;
    Ok((origin, request))
}

fn origin(url: &Url) -> Result<Origin, InvalidCall> {
    let tls = match url.scheme() {
        "https" => true,
        "http" => false,
        _ => return Err(InvalidCall),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err(InvalidCall);
    }
    Ok(Origin {
        tls,
        host: url.host().ok_or(InvalidCall)?.to_owned(),
        port: url.port_or_known_default().ok_or(InvalidCall)?,
    })
}

fn headers(call: &Call, url: &Url) -> Result<HeaderMap, InvalidCall> {
    let mut headers = HeaderMap::new();
    let authority = &url[Position::BeforeHost..Position::AfterPort];
    headers.insert(header::HOST, authority.parse().map_err(|_| InvalidCall)?);
    for (name, value) in &call.headers {
        let name: HeaderName = name.parse().map_err(|_| InvalidCall)?;
        if OURS.contains(&name) {
            return Err(InvalidCall);
        }
        let text = match value {
            HeaderValue::Plain(text) => text.as_str(),
            HeaderValue::Secret(secret) => secret.expose(),
        };
        let mut sent = header::HeaderValue::from_bytes(text.as_bytes()).map_err(|_| InvalidCall)?;
        sent.set_sensitive(matches!(value, HeaderValue::Secret(_)));
        headers.append(name, sent);
    }
    headers
        .entry(header::USER_AGENT)
        .or_insert(header::HeaderValue::from_static(USER_AGENT));
    headers
        .entry(header::ACCEPT)
        .or_insert(header::HeaderValue::from_static(
            "application/json, */*;q=0.5",
        ));
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use emanet_core::call::Method;
    use emanet_core::secret::Secret;

    fn call(url: &str, headers: Vec<(&str, HeaderValue)>) -> Call {
        Call {
            name: "create".into(),
            method: Method::Post,
            url: url.into(),
            headers: headers
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            body: b"{}".to_vec(),
            mutates: true,
        }
    }

    /// F44: schemes http(s) only, no user data.
    #[test]
    fn urls_that_are_not_plain_http_are_refused() {
        for url in [
            "",
            "crm.example.com/leads",
            "ftp://crm.example.com/",
            "file:///etc/passwd",
            "gopher://crm.example.com/",
            "sandbox://dst_1/leads",
            "javascript:alert(1)",
            "http://user@crm.example.com/",
            "http://user:pass@crm.example.com/",
            "http://crm.example.com:pass@127.0.0.1/",
            "http://:pass@crm.example.com/",
            "http:///",
            "http://crm.example.com:99999/",
            "http://[::1/",
            "http://crm example.com/",
        ] {
            assert_eq!(
                prepare(&call(url, vec![])).map(|_| ()),
                Err(InvalidCall),
                "{url}"
            );
        }
    }

    #[test]
    fn the_request_line_is_path_and_query() {
        for (url, uri, host) in [
            ("https://crm.example.com", "/", "crm.example.com"),
            (
                "https://crm.example.com:443/a?b=c#d",
                "/a?b=c",
                "crm.example.com",
            ),
            (
                "http://crm.example.com:8069/a/./b",
                "/a/b",
                "crm.example.com:8069",
            ),
            (
                "http://[2606:4700::1111]:81/x",
                "/x",
                "[2606:4700::1111]:81",
            ),
            (
                "https://crm.example.com/l?f[a]=b|c&g={\"x\":\"ü\"}",
                "/l?f[a]=b|c&g={%22x%22:%22%C3%BC%22}",
                "crm.example.com",
            ),
        ] {
            let (_, request) = prepare(&call(url, vec![])).expect(url);
            assert_eq!(request.uri().to_string(), uri);
            assert_eq!(request.headers()[header::HOST], host);
        }
    }

    #[test]
    fn secret_headers_are_sent_and_marked() {
        let secret = HeaderValue::Secret(Secret::new("Bearer abc"));
        let (_, request) = prepare(&call(
            "https://crm.example.com",
            vec![("Authorization", secret)],
        ))
        .unwrap();
        assert_eq!(request.headers()[header::AUTHORIZATION], "Bearer abc");
        assert!(!format!("{request:?}").contains("abc"));
    }

    #[test]
    fn headers_that_frame_or_break_the_message_are_refused() {
        for (name, value) in [
            ("Host", "127.0.0.1"),
            ("content-length", "1"),
            ("Transfer-Encoding", "chunked"),
            ("Expect", "100-continue"),
            ("X-A", "1\r\nX-B: 2"),
            ("X A", "1"),
            ("", "1"),
        ] {
            let headers = vec![(name, HeaderValue::Plain(value.into()))];
            let prepared = prepare(&call("https://crm.example.com", headers));
            assert_eq!(prepared.map(|_| ()), Err(InvalidCall), "{name}");
        }
    }

    #[test]
    fn a_connector_may_say_what_it_accepts() {
        let headers = vec![("accept", HeaderValue::Plain("text/xml".into()))];
        let (_, request) = prepare(&call("https://crm.example.com", headers)).unwrap();
        assert_eq!(request.headers()[header::ACCEPT], "text/xml");
        assert_eq!(request.headers()[header::USER_AGENT], USER_AGENT);
    }
}
