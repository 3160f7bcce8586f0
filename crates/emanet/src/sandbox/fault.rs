//! What a sandbox can do wrong, as a person or a configuration says it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// A way to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The call does not arrive: no connection.
    NeverSent,
    /// 401 on every call: the token has expired.
    TokenExpired,
    /// 429 with Retry-After.
    RateLimited,
    /// 503 without Retry-After.
    Unavailable,
    /// 503 with Retry-After.
    UnavailableRetryAfter,
    /// 400: a field that is sent was deleted (the rule's field, else whichever comes first).
    DeletedField,
    /// 422: the data of this lead is refused, however often it comes.
    RefuseData,
    /// It is done, and no answer comes.
    TimeoutAfterCommit,
    /// It is done, and the connection closes without an answer.
    CutAfterCommit,
    /// It is done, and the answer is half a JSON document.
    BrokenBody,
    /// It is done after a while.
    Slow,
    /// A new record is not found by as many look-ups as the count says.
    SearchLag,
}

impl Fault {
    /// Those that keep anything from being done, in the order a CRM checks: who, how often, whether open, what.
    pub(super) const REFUSALS: [Self; 6] = [
        Self::TokenExpired,
        Self::RateLimited,
        Self::Unavailable,
        Self::UnavailableRetryAfter,
        Self::DeletedField,
        Self::RefuseData,
    ];

    /// Whether it can only befall a call that writes.
    pub(super) fn needs_a_write(self) -> bool {
        matches!(
            self,
            Self::DeletedField
                | Self::RefuseData
                | Self::TimeoutAfterCommit
                | Self::CutAfterCommit
                | Self::BrokenBody
        )
    }
}

/// When a fault strikes.
///
/// Written as `true` (always), a whole number (the next so many times), a fraction (with this probability) or a table of these
/// fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Rule {
    /// 0 … 1.
    pub probability: f64,
    /// How many times it will still strike; none: until it is taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// What Retry-After says, where the fault has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u32>,
    /// How long `slow` takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// Which field was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

impl Rule {
    /// Strikes every time.
    pub fn always() -> Self {
        Self {
            probability: 1.0,
            count: None,
            retry_after_seconds: None,
            delay_ms: None,
            field: None,
        }
    }

    /// Strikes the next so many times.
    pub fn times(count: u32) -> Self {
        Self {
            count: Some(count),
            ..Self::always()
        }
    }

    /// Strikes with this probability (0 … 1).
    pub fn chance(probability: f64) -> Self {
        Self {
            probability,
            ..Self::always()
        }
    }

    pub(super) fn delay(&self) -> Duration {
        Duration::from_millis(self.delay_ms.unwrap_or(1_000))
    }

    pub(super) fn retry_after_seconds(&self) -> u32 {
        self.retry_after_seconds.unwrap_or(1)
    }
}

/// What a sandbox does wrong: `{"unavailable": 0.1, "token_expired": true, "slow": {"probability": 0.2, "delay_ms": 300}}`.
pub type Faults = BTreeMap<Fault, Rule>;

/// A rule that makes no sense.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum InvalidFault {
    /// Not between 0 and 1.
    #[error("a probability lies between 0 and 1")]
    Probability,
    /// `false` where there is nothing to take back.
    #[error("false is no rule: leave the fault out")]
    Never,
}

/// A rule as people write it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Switch(bool),
    Count(u32),
    Probability(f64),
    Table(Table),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default = "certain")]
    probability: f64,
    count: Option<u32>,
    retry_after_seconds: Option<u32>,
    delay_ms: Option<u64>,
    field: Option<String>,
}

fn certain() -> f64 {
    1.0
}

impl TryFrom<Written> for Rule {
    type Error = InvalidFault;

    fn try_from(written: Written) -> Result<Self, InvalidFault> {
        let rule = match written {
            Written::Switch(true) => Self::always(),
            Written::Switch(false) => return Err(InvalidFault::Never),
            Written::Count(count) => Self::times(count),
            Written::Probability(probability) => Self::chance(probability),
            Written::Table(table) => Self {
                probability: table.probability,
                count: table.count,
                retry_after_seconds: table.retry_after_seconds,
                delay_ms: table.delay_ms,
                field: table.field,
            },
        };
        if (0.0..=1.0).contains(&rule.probability) {
            Ok(rule)
        } else {
            Err(InvalidFault::Probability)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rules_are_written_in_four_ways() {
        let faults: Faults = serde_json::from_value(json!({
            "token_expired": true,
            "never_sent": 3,
            "unavailable": 0.25,
            "slow": {"probability": 0.5, "count": 2, "delay_ms": 300},
            "deleted_field": {"field": "city"},
        }))
        .unwrap();
        assert_eq!(faults[&Fault::TokenExpired], Rule::always());
        assert_eq!(faults[&Fault::NeverSent], Rule::times(3));
        assert_eq!(faults[&Fault::Unavailable], Rule::chance(0.25));
        let slow = Rule {
            count: Some(2),
            delay_ms: Some(300),
            ..Rule::chance(0.5)
        };
        assert_eq!(faults[&Fault::Slow], slow);
        assert_eq!(faults[&Fault::DeletedField].field.as_deref(), Some("city"));
        let text = serde_json::to_string(&faults).unwrap();
        assert_eq!(serde_json::from_str::<Faults>(&text).unwrap(), faults);
    }

    #[test]
    fn senseless_rules_are_refused() {
        for value in [
            json!({"unavailable": 1.5}),
            json!({"unavailable": -1}),
            json!({"unavailable": -0.5}),
            json!({"unavailable": false}),
            json!({"unavailable": {"probability": 2.0}}),
            json!({"unavailable": {"propability": 0.5}}),
            json!({"unavailable": "often"}),
            json!({"earthquake": true}),
        ] {
            assert!(
                serde_json::from_value::<Faults>(value.clone()).is_err(),
                "{value}"
            );
        }
    }
}
