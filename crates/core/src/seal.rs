//! Sealing of secrets at rest (XChaCha20-Poly1305) and the keyed hash that outlives erasure (design 9.9).
//!
//! A sealed value is `version (1 byte) · key id (8) · nonce (24) · ciphertext and tag`. Version, key id and the place the value
//! belongs to are bound to it, so a value that was changed, or copied to another row, does not open. The first sealing key
//! seals and all of them open, so keys can be changed one value at a time. Nothing here may show a key, not even in an error.

use crate::ids::SourceId;
use crate::secret::Secret;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::fmt::Write;
use zeroize::Zeroizing;

/// First line of a key file.
const HEADER: &str = "emanet-keys 1";
/// Form of a sealed value; another form would get another number.
const VERSION: u8 = 1;
const KEY_ID_BYTES: usize = 8;
const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;

type Key = Zeroizing<[u8; KEY_BYTES]>;

/// The keys of an installation: one to seal with (more may be there to open what older ones sealed), one for dedup hashes
/// that is never destroyed.
pub struct Keyring {
    /// Never empty; the first seals.
    sealing: Vec<SealingKey>,
    dedup: Key,
}

struct SealingKey {
    id: u64,
    key: Key,
}

/// Why something could not be opened, or a key file not be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SealError {
    /// A key file that cannot be read; nothing of the line's content is repeated.
    #[error("line {line} of the key file: {problem}")]
    KeyFile {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Sealed under a key that is not there.
    #[error("sealed with a key that is not in the key file (key id {0})")]
    UnknownKey(String),
    /// Not what was sealed, or not at the place it was sealed for.
    #[error("the sealed value was changed or belongs elsewhere")]
    Tampered,
}

impl Keyring {
    /// New keys from 72 random bytes.
    pub fn generate(random: [u8; 72]) -> Self {
        let random = Zeroizing::new(random);
        let (id, keys) = random.split_at(KEY_ID_BYTES);
        let (sealing, dedup) = keys.split_at(KEY_BYTES);
        Self {
            sealing: vec![SealingKey {
                id: u64::from_be_bytes(array(id)),
                key: Zeroizing::new(array(sealing)),
            }],
            dedup: Zeroizing::new(array(dedup)),
        }
    }

    /// Reads the text form: the header, then `seal <id> <base64>` (one or more) and `dedup <base64>`. Empty lines and ones
    /// that begin with `#` are skipped.
    ///
    /// # Errors
    /// [`SealError::KeyFile`] with the line and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, SealError> {
        let mut lines = text.lines().map(str::trim).zip(1..);
        if lines.next().is_none_or(|(first, _)| first != HEADER) {
            return problem(1, "expected `emanet-keys 1`");
        }
        let (mut sealing, mut dedup, mut n_lines) = (Vec::<SealingKey>::new(), None, 1);
        for (text, line) in lines {
            n_lines = line;
            let words: Vec<_> = text.split_whitespace().collect();
            match words[..] {
                [] => {}
                [first, ..] if first.starts_with('#') => {}
                ["seal", id, key] => {
                    let id = parse_id(id, line)?;
                    if sealing.iter().any(|k| k.id == id) {
                        return problem(line, "this key id stands there twice");
                    }
                    let key = parse_key(key, line)?;
                    sealing.push(SealingKey { id, key });
                }
                ["dedup", key] if dedup.is_none() => dedup = Some(parse_key(key, line)?),
                ["dedup", _] => return problem(line, "there can be only one dedup key"),
                _ => return problem(line, "expected `seal <id> <key>` or `dedup <key>`"),
            }
        }
        match dedup {
            _ if sealing.is_empty() => problem(n_lines, "the file ends without a `seal` line"),
            None => problem(n_lines, "the file ends without a `dedup` line"),
            Some(dedup) => Ok(Self { sealing, dedup }),
        }
    }

    /// The text form, for the key file.
    pub fn to_text(&self) -> Secret {
        // Room for all of it from the start: a text that grows leaves copies behind.
        let mut text = Zeroizing::new(String::with_capacity(512 + 128 * self.sealing.len()));
        text.push_str(HEADER);
        text.push_str(
            "\n# With this file every secret kept beside it can be read; without it, none.\
             \n# Keep a copy in a safe place. Never remove the dedup key: it is what tells a lead from its repeat.\n",
        );
        for SealingKey { id, key } in &self.sealing {
            text.push_str("seal ");
            text.push_str(&id_text(*id));
            text.push(' ');
            push_key(&mut text, key);
        }
        text.push_str("dedup ");
        push_key(&mut text, &self.dedup);
        Secret::new(text.as_str())
    }

    /// Seals a value. `place` (workspace, table, field) is bound to it: it opens nowhere else. `nonce` is random.
    pub fn seal(&self, place: &str, value: &[u8], nonce: [u8; NONCE_BYTES]) -> Vec<u8> {
        let sealing = &self.sealing[0];
        let mut sealed = head(sealing.id);
        let payload = Payload {
            msg: value,
            aad: &bound(&sealed, place),
        };
        let ciphertext = sealing
            .cipher()
            .encrypt(&XNonce::from(nonce), payload)
            .expect("a value in memory is far below the cipher's limit of 256 GiB");
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(&ciphertext);
        sealed
    }

    /// Opens a sealed value.
    ///
    /// # Errors
    /// [`SealError::UnknownKey`] if its key is not in the key file, [`SealError::Tampered`] if it is not what was sealed for
    /// this place.
    pub fn open(&self, place: &str, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let (head, rest) = split(sealed, 1 + KEY_ID_BYTES)?;
        let (nonce, ciphertext) = split(rest, NONCE_BYTES)?;
        if head[0] != VERSION {
            return Err(SealError::Tampered);
        }
        let id = u64::from_be_bytes(array(&head[1..]));
        let sealing = self.sealing.iter().find(|key| key.id == id);
        let sealing = sealing.ok_or_else(|| SealError::UnknownKey(id_text(id)))?;
        let payload = Payload {
            msg: ciphertext,
            aad: &bound(head, place),
        };
        sealing
            .cipher()
            .decrypt(&XNonce::from(array(nonce)), payload)
            .map_err(|_| SealError::Tampered)
    }

    /// Keyed hash of source and source_ref: what uniqueness of events is enforced on; survives erasure.
    pub fn ref_hash(&self, source: SourceId, source_ref: &str) -> [u8; 32] {
        let mut hash = Hmac::<Sha256>::new_from_slice(self.dedup.as_slice())
            .expect("HMAC takes keys of any length");
        // The id has a fixed length, so the two parts cannot run into each other.
        hash.update(source.as_uuid().as_bytes());
        hash.update(source_ref.as_bytes());
        hash.finalize().into_bytes().into()
    }
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keyring")
    }
}

impl SealingKey {
    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&*self.key).into())
    }
}

fn head(id: u64) -> Vec<u8> {
    let mut head = vec![VERSION];
    head.extend_from_slice(&id.to_be_bytes());
    head
}

/// What is authenticated along with the value.
fn bound(head: &[u8], place: &str) -> Vec<u8> {
    [head, place.as_bytes()].concat()
}

fn split(bytes: &[u8], at: usize) -> Result<(&[u8], &[u8]), SealError> {
    bytes.split_at_checked(at).ok_or(SealError::Tampered)
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes
        .try_into()
        .expect("the caller split off exactly so many bytes")
}

fn id_text(id: u64) -> String {
    format!("{id:016x}")
}

fn parse_id(text: &str, line: usize) -> Result<u64, SealError> {
    let is_id = text.len() == 2 * KEY_ID_BYTES && text.bytes().all(|b| b.is_ascii_hexdigit());
    match u64::from_str_radix(text, 16) {
        Ok(id) if is_id => Ok(id),
        _ => problem(line, "the key id is not 16 hexadecimal digits"),
    }
}

fn push_key(text: &mut String, key: &Key) {
    let base64 = base64::display::Base64Display::new(key.as_slice(), &BASE64);
    writeln!(text, "{base64}").expect("a String takes whatever is written to it");
}

fn parse_key(text: &str, line: usize) -> Result<Key, SealError> {
    let bytes = BASE64.decode(text).map(Zeroizing::new);
    match bytes.as_deref().map(|bytes| bytes.as_slice().try_into()) {
        Ok(Ok(key)) => Ok(Zeroizing::new(key)),
        _ => problem(line, "the key is not 32 bytes in base64"),
    }
}

fn problem<T>(line: usize, problem: &'static str) -> Result<T, SealError> {
    Err(SealError::KeyFile { line, problem })
}

#[cfg(test)]
mod tests;
