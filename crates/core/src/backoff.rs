//! When to try again (RET-1): full jitter, with `Retry-After` as a floor that has jitter of its own.

use crate::retry_after::RetryAfter;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Retry policy of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// Base of the exponential, in milliseconds.
    pub base_ms: u64,
    /// The longest single delay, in milliseconds.
    pub cap_ms: u64,
    /// Attempts before the step is given up; the first one counts.
    pub attempts_max: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            base_ms: 2_000,
            cap_ms: 30 * 60_000,
            attempts_max: 12,
        }
    }
}

impl Policy {
    /// Delay before the next attempt, `attempt` being the one just made (counted from 1). `random` are two values in 0 … 1: one
    /// for the exponential, one for the jitter on top of a `Retry-After` floor.
    pub fn delay(
        &self,
        attempt: u32,
        retry_after: Option<RetryAfter>,
        random: [f64; 2],
    ) -> Duration {
        let _ = (attempt, retry_after, random);
        todo!()
    }
}
