//! Text that must never be shown: secrets of vendors, tokens, keys. `Debug` and `Display` show nothing, not a prefix.

use std::fmt;

pub use secrecy::ExposeSecret;

/// A secret text. Printing it prints `[secret]`; memory is wiped when it is dropped.
#[derive(Clone)]
pub struct Secret(secrecy::SecretString);

impl Secret {
    /// Wraps a text as a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(secrecy::SecretString::from(text.into()))
    }

    /// The text itself: only for signing, sealing and sending.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        use subtle::ConstantTimeEq;
        self.expose()
            .as_bytes()
            .ct_eq(other.expose().as_bytes())
            .into()
    }
}

impl Eq for Secret {}
