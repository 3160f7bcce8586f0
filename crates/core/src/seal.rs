//! Sealing of secrets at rest (XChaCha20-Poly1305) and the keyed hash that outlives erasure.

use crate::ids::SourceId;

/// The keys of an installation: one to seal with (more may be there to open what older ones sealed), one for dedup hashes
/// that is never destroyed.
pub struct Keyring {
    _private: (),
}

/// Why something could not be opened, or a key file not be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SealError {
    #[error("the key file is not in the expected form")]
    KeyFile,
    #[error("sealed with a key that is not in the key file (key id {0})")]
    UnknownKey(String),
    #[error("the sealed value was changed or belongs elsewhere")]
    Tampered,
}

impl Keyring {
    /// New keys from 72 random bytes.
    pub fn generate(random: [u8; 72]) -> Self {
        let _ = random;
        todo!()
    }

    /// Reads the text form (a few lines: purpose, id, base64 key).
    pub fn parse(text: &str) -> Result<Self, SealError> {
        let _ = text;
        todo!()
    }

    /// The text form, for the key file.
    pub fn to_text(&self) -> crate::secret::Secret {
        todo!()
    }

    /// Seals a value. `place` (workspace, table, field) is bound to it: it opens nowhere else. `nonce` is random.
    pub fn seal(&self, place: &str, value: &[u8], nonce: [u8; 24]) -> Vec<u8> {
        let _ = (place, value, nonce);
        todo!()
    }

    /// Opens a sealed value.
    pub fn open(&self, place: &str, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let _ = (place, sealed);
        todo!()
    }

    /// Keyed hash of source and source_ref: what uniqueness of events is enforced on; survives erasure.
    pub fn ref_hash(&self, source: SourceId, source_ref: &str) -> [u8; 32] {
        let _ = (source, source_ref);
        todo!()
    }
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keyring")
    }
}
