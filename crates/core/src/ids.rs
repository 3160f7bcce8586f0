//! Ids: UUIDv7 with a prefix in text (`evt_…`), one type per thing, so that no id is taken for another.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// A text that is not an id of the kind asked for.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not an id of this kind: expected {prefix}_ and 32 hexadecimal digits")]
pub struct InvalidId {
    prefix: &'static str,
}

/// Ten random bytes and a time make a UUIDv7. Both are arguments: the core has neither a clock nor a random source.
fn uuid_v7(now: Timestamp, random: [u8; 10]) -> Uuid {
    let millis = u64::try_from(now.as_millisecond()).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Uuid);

        impl $name {
            /// What the id starts with in text.
            pub const PREFIX: &'static str = $prefix;

            /// A new id, ordered by `now`.
            pub fn new(now: Timestamp, random: [u8; 10]) -> Self {
                Self(uuid_v7(now, random))
            }

            /// The id as the store keeps it.
            pub fn as_uuid(&self) -> &Uuid {
                &self.0
            }

            /// The id of a stored UUID.
            pub fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "_{}"), self.0.simple())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                text.strip_prefix(concat!($prefix, "_"))
                    .filter(|hex| hex.len() == 32)
                    .and_then(|hex| Uuid::try_parse(hex).ok())
                    .map(Self)
                    .ok_or(InvalidId { prefix: $prefix })
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.to_string()
            }
        }
    };
}

id!(
    /// A workspace: owns everything else.
    WorkspaceId, "wsp"
);
id!(
    /// A source of leads. Immutable: it is part of every idempotency key.
    SourceId, "src"
);
id!(
    /// A configured account of a destination connector.
    DestinationId, "dst"
);
id!(
    /// One request as a source sent it; one receipt may carry many events.
    ReceiptId, "rcp"
);
id!(
    /// One inbound event: one lead, once.
    EventId, "evt"
);
id!(
    /// One side effect of one event.
    StepId, "stp"
);
id!(
    /// One try of a step.
    AttemptId, "att"
);
id!(
    /// A work item: what could not be delivered.
    DeadLetterId, "ded"
);
id!(
    /// A staged run that sends dead letters and held leads through the normal path again.
    ReplayId, "rpl"
);
id!(
    /// Something a person must be told.
    AlertId, "alr"
);

/// The outside party a step calls: the source's own platform (to fetch a lead's fields) or a destination.
///
/// Rate, concurrency, breaker and holds exist once per target, and the queue keeps work apart by target, so that one dead
/// target slows none of the others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Target {
    /// The platform a source's leads are fetched from; also the queue of events that no step has been planned for yet.
    Source(SourceId),
    /// A destination.
    Destination(DestinationId),
}

impl Target {
    /// The id as the store keeps it; source and destination ids never collide.
    pub fn as_uuid(&self) -> &Uuid {
        match self {
            Self::Source(id) => id.as_uuid(),
            Self::Destination(id) => id.as_uuid(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(id) => id.fmt(f),
            Self::Destination(id) => id.fmt(f),
        }
    }
}

impl FromStr for Target {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        match text.parse() {
            Ok(id) => Ok(Self::Source(id)),
            Err(_) => text.parse().map(Self::Destination),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_print_and_parse_with_their_prefix() {
        let id = EventId::new(
            Timestamp::from_millisecond(1_767_225_600_000).unwrap(),
            [7; 10],
        );
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!(id.to_string().starts_with("evt_"));
        assert!(id.to_string().parse::<StepId>().is_err());
    }

    #[test]
    fn later_ids_sort_after_earlier_ones() {
        let at = |ms| EventId::new(Timestamp::from_millisecond(ms).unwrap(), [255; 10]);
        assert!(at(1_000) < at(1_001));
    }
}
