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
    use proptest::prelude::*;

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
    /// What is stored as JSON reads back; an id of another kind does not.
    #[test]
    fn ids_keep_their_kind_in_json() {
        let event = EventId::new(Timestamp::UNIX_EPOCH, [7; 10]);
        let stored = serde_json::to_string(&event).unwrap();
        assert_eq!(stored, format!("\"{event}\""));
        assert_eq!(serde_json::from_str::<EventId>(&stored).unwrap(), event);
        assert!(serde_json::from_str::<StepId>(&stored).is_err());
    }

    fn any_time() -> impl Strategy<Value = Timestamp> {
        (0_i64..253_402_000_000_000).prop_map(|ms| Timestamp::from_millisecond(ms).unwrap())
    }

    proptest! {
        /// An id reads back as the same id and as no other kind; its UUID is the standard's version 7.
        #[test]
        fn ids_read_back(now in any_time(), random: [u8; 10]) {
            let id = SourceId::new(now, random);
            prop_assert_eq!(id.to_string().parse(), Ok(id));
            prop_assert!(id.to_string().parse::<DestinationId>().is_err());
            prop_assert_eq!(SourceId::from_uuid(*id.as_uuid()), id);
            prop_assert_eq!(id.as_uuid().get_version_num(), 7);
        }

        /// UUIDv7: the time orders ids, whatever the random part; text and bytes are in the same order.
        #[test]
        fn ids_sort_by_time(a in any_time(), b in any_time(), r: [u8; 10], s: [u8; 10]) {
            let (x, y) = (EventId::new(a, r), EventId::new(b, s));
            if a < b {
                prop_assert!(x < y);
            }
            prop_assert_eq!(x.cmp(&y), x.to_string().cmp(&y.to_string()));
        }

        /// All that is random goes into the id but the six bits that say what it is.
        #[test]
        fn different_random_bytes_give_different_ids(now in any_time(), r: [u8; 10], s: [u8; 10]) {
            let mask = |mut bytes: [u8; 10]| {
                bytes[0] &= 0x0f;
                bytes[2] &= 0x3f;
                bytes
            };
            prop_assume!(mask(r) != mask(s));
            prop_assert_ne!(EventId::new(now, r), EventId::new(now, s));
        }

        /// A target reads back as what it was: a source or a destination.
        #[test]
        fn targets_read_back(now in any_time(), random: [u8; 10]) {
            let source = Target::Source(SourceId::new(now, random));
            let destination = Target::Destination(DestinationId::new(now, random));
            for target in [source, destination] {
                prop_assert_eq!(target.to_string().parse(), Ok(target));
                let stored = serde_json::to_string(&target).unwrap();
                prop_assert_eq!(serde_json::from_str::<Target>(&stored).unwrap(), target);
            }
        }

        /// No text is a panic, and only the one form an id prints is an id.
        #[test]
        fn only_what_an_id_prints_is_an_id(text in "(evt_|EVT_|stp_)?[0-9a-fA-F{}-]{30,38}|.{0,40}") {
            if let Ok(id) = text.parse::<EventId>() {
                prop_assert_eq!(id.to_string(), text.to_lowercase());
            }
        }
    }
}
