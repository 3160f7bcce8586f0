//! Signatures and secrets of inbound requests: the one place where they are compared (H17, H54, H62).
//!
//! What is checked is the raw body as it arrived, once; there is no second try over anything else. Digests are compared as
//! decoded bytes, in constant time, and a length that differs is a difference.

use emanet_core::secret::Secret;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// `sha256=<64 hex digits>`: the HMAC of the body under the secret.
pub(crate) fn sign(secret: &Secret, body: &[u8]) -> String {
    format!("sha256={}", hex(&mac(secret, body).finalize().into_bytes()))
}

/// Whether the headers hold exactly one signature `sha256=<64 hex digits>` that one of the secrets makes over the body.
pub(crate) fn is_signed<'a>(
    mut headers: impl Iterator<Item = &'a str>,
    secrets: &[&Secret],
    body: &[u8],
) -> bool {
    let (Some(header), None) = (headers.next(), headers.next()) else {
        return false;
    };
    let Some(given) = header.strip_prefix("sha256=").and_then(unhex) else {
        return false;
    };
    // Every secret is tried, so that the time does not tell which of them it was.
    secrets.iter().fold(false, |is_signed, secret| {
        mac(secret, body).verify_slice(&given).is_ok() | is_signed
    })
}

/// Whether a secret was given rightly, in a time that does not depend on where the two differ.
pub(crate) fn is_same(given: &str, secret: &Secret) -> bool {
    given.as_bytes().ct_eq(secret.expose().as_bytes()).into()
}

/// SHA-256 in hexadecimal, of parts that cannot run into each other: each is preceded by its length.
pub(crate) fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    hex(&digest.finalize())
}

fn mac(secret: &Secret, body: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes())
        .expect("HMAC takes a key of any length");
    mac.update(body);
    mac
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 0xf])
        .map(|half| char::from(DIGITS[usize::from(half)]))
        .collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u8> = text
        .chars()
        .map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok()))
        .collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits
        .chunks_exact(2)
        .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit))
        .collect();
    (digits.len() == 64).then_some(bytes)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BODY: &[u8] = b"full_name=Ali+Veli&lead_id=42";

    fn check(headers: &[&str], expected: bool) {
        let secrets = [&Secret::new("current"), &Secret::new("previous")];
        let got = is_signed(headers.iter().copied(), &secrets, BODY);
        assert_eq!(got, expected, "{headers:?}");
    }

    /// H17: no prefix of the right signature is a signature. H54: no header, however broken, is more than a refusal.
    #[test]
    fn only_the_whole_signature_is_taken() {
        let right = sign(&Secret::new("current"), BODY);
        check(&[&right], true);
        check(&[&right.to_uppercase().replace("SHA", "sha")], true);
        check(&[&sign(&Secret::new("previous"), BODY)], true);
        check(&[&sign(&Secret::new("other"), BODY)], false);
        for n in 0..right.len() {
            check(&[&right[..n]], false);
        }
        let commas = ",".repeat(65_536);
        let longer = format!("{right}00");
        for broken in [
            "",
            "sha256",
            "sha256=%%%",
            "v1,",
            ",abc",
            "sha256=ğüş",
            &commas,
            &longer,
        ] {
            check(&[broken], false);
        }
        check(&[&right, "sha256=00"], false);
        check(&[&right, &right], false);
        check(&[], false);
    }

    /// H62: a signature over another rendering of the same content is none.
    #[test]
    fn only_the_raw_bytes_are_checked() {
        let rendered = br#"{"full_name":"Ali Veli","lead_id":"42"}"#;
        check(&[&sign(&Secret::new("current"), rendered)], false);
    }

    proptest! {
        /// H17, H54: anything but the signature is refused, and nothing panics.
        #[test]
        fn nothing_else_passes(header in ".*", bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            check(&[&header], false);
            check(&[&format!("sha256={}", hex(&bytes))], false);
        }

        #[test]
        fn parts_do_not_run_into_each_other(a in ".*", b in ".+") {
            let joined = format!("{a}{b}");
            prop_assert_ne!(digest([a.as_bytes(), b.as_bytes()]), digest([joined.as_bytes()]));
            prop_assert_ne!(digest([a.as_bytes(), b.as_bytes()]), digest([joined.as_bytes(), b"".as_slice()]));
        }
    }
}
