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
    ///
    /// Without a floor the delay is 0 … ceiling; with one it is floor … floor + ceiling, so that a backlog that was told the
    /// same second does not come back in it (H40).
    pub fn delay(
        &self,
        attempt: u32,
        retry_after: Option<RetryAfter>,
        random: [f64; 2],
    ) -> Duration {
        let ceiling = self.ceiling_ms(attempt);
        let exponential = share(ceiling, random[0]);
        match retry_after {
            None => exponential,
            Some(floor) => floor
                .wait
                .saturating_add(share(ceiling, random[1]))
                .max(exponential),
        }
    }

    /// Whether `attempt`, the one just made, was the last.
    pub fn is_exhausted(&self, attempt: u32) -> bool {
        attempt >= self.attempts_max
    }

    /// `min(cap, base · 2^attempt)`.
    fn ceiling_ms(&self, attempt: u32) -> u64 {
        let factor = 1_u64.checked_shl(attempt).unwrap_or(u64::MAX);
        self.base_ms.saturating_mul(factor).min(self.cap_ms)
    }
}

/// That share (0 … 1) of so many milliseconds. Rounding of large figures never leads past the whole.
fn share(whole_ms: u64, share: f64) -> Duration {
    let part = (whole_ms as f64 * share.clamp(0.0, 1.0)) as u64;
    Duration::from_millis(part.min(whole_ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(attempt: u32, retry_after_seconds: Option<i64>, random: [f64; 2], expected_ms: u64) {
        let delay = Policy::default().delay(
            attempt,
            retry_after_seconds.map(RetryAfter::from_seconds),
            random,
        );
        assert_eq!(
            delay,
            Duration::from_millis(expected_ms),
            "attempt {attempt}, Retry-After {retry_after_seconds:?}, random {random:?}"
        );
    }

    /// RET-1: the defaults, and that the first delay is at most 4 s.
    #[test]
    fn the_ceiling_doubles_up_to_the_cap() {
        for (attempt, ceiling_ms) in [
            (1, 4_000),
            (2, 8_000),
            (3, 16_000),
            (9, 1_024_000),
            (10, 1_800_000),
            (11, 1_800_000),
            (12, 1_800_000),
            (u32::MAX, 1_800_000),
        ] {
            check(attempt, None, [1.0, 0.0], ceiling_ms);
            check(attempt, None, [0.5, 1.0], ceiling_ms / 2);
            check(attempt, None, [0.0, 1.0], 0);
        }
    }

    /// RET-1: Retry-After is a floor; the jitter goes on top of it.
    #[test]
    fn retry_after_is_a_floor_with_jitter_on_top() {
        check(1, Some(120), [0.0, 0.0], 120_000);
        check(1, Some(120), [1.0, 0.0], 120_000);
        check(1, Some(120), [0.0, 0.5], 122_000);
        check(1, Some(120), [0.0, 1.0], 124_000);
        // A short floor does not shorten what the exponential says.
        check(10, Some(1), [1.0, 0.0], 1_800_000);
        // H21: a past date (0) is no licence to come back at once.
        check(1, Some(0), [0.75, 0.0], 3_000);
    }

    /// RET-1: 12 attempts, the first one counts.
    #[test]
    fn the_twelfth_attempt_is_the_last() {
        let policy = Policy::default();
        assert!(!policy.is_exhausted(11));
        assert!(policy.is_exhausted(12));
        assert!(policy.is_exhausted(13));
    }

    fn any_policy() -> impl Strategy<Value = Policy> {
        (any::<u64>(), any::<u64>()).prop_map(|(base_ms, cap_ms)| Policy {
            base_ms,
            cap_ms,
            attempts_max: 12,
        })
    }

    fn any_random() -> impl Strategy<Value = [f64; 2]> {
        [0.0..=1.0, 0.0..=1.0]
    }

    proptest! {
        /// RET-1: full jitter stays within 0 … min(cap, base · 2^attempt), whatever the figures.
        #[test]
        fn full_jitter_keeps_its_bounds(policy in any_policy(), attempt: u32, random in any_random()) {
            let ceiling = u128::from(policy.base_ms) << attempt.min(64);
            let ceiling = ceiling.min(u128::from(policy.cap_ms));
            prop_assert!(policy.delay(attempt, None, random).as_millis() <= ceiling);
            let whole = policy.delay(attempt, None, [1.0, 0.0]).as_millis();
            prop_assert!(whole <= ceiling);
            // A double holds 53 bits; the whole is met up to that.
            prop_assert!(ceiling - whole <= ceiling >> 52);
        }

        /// ERR-4, F39: never earlier than Retry-After says, and at most the ceiling later.
        #[test]
        fn never_earlier_than_retry_after(
            policy in any_policy(), attempt: u32, random in any_random(), seconds: i64,
        ) {
            let floor = RetryAfter::from_seconds(seconds);
            let delay = policy.delay(attempt, Some(floor), random);
            prop_assert!(delay >= floor.wait);
            prop_assert!(delay <= floor.wait + Duration::from_millis(policy.cap_ms));
            prop_assert!(delay >= policy.delay(attempt, None, random));
        }

        /// A random source that misbehaves does not lead past the bounds either.
        #[test]
        fn any_number_is_taken_for_random(policy in any_policy(), attempt: u32, a: f64, b: f64) {
            let delay = policy.delay(attempt, None, [a, b]);
            prop_assert!(delay <= Duration::from_millis(policy.cap_ms));
        }

        /// H40: 200 leads told the same second come back spread over the ceiling.
        #[test]
        fn a_backlog_does_not_return_in_the_same_second(a in 0.0..=0.5_f64, b in 0.75..=1.0_f64) {
            let floor = Some(RetryAfter::from_seconds(120));
            let policy = Policy::default();
            let [early, late] = [a, b].map(|r| policy.delay(1, floor, [0.0, r]));
            prop_assert!(late - early >= Duration::from_millis(999));
        }
    }
}
