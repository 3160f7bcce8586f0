//! Reading `Retry-After` (ERR-4).

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long the other side asks to be left alone, already clamped to 0 … 24 h.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryAfter {
    /// How long to wait, counted from the answer.
    #[serde(rename = "wait_seconds", with = "seconds")]
    pub wait: Duration,
    /// The value was absurd (negative, or over 24 h) and was clamped; a person should hear of it.
    pub clamped: bool,
}

mod seconds {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(wait: &Duration, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_u64(wait.as_secs())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Duration, D::Error> {
        u64::deserialize(d).map(Duration::from_secs)
    }
}

/// Reads the header's value: seconds, or any of the three HTTP date forms. `None` for what cannot be read (H21).
pub fn parse(value: &str, now: jiff::Timestamp) -> Option<RetryAfter> {
    let _ = (value, now);
    todo!()
}
