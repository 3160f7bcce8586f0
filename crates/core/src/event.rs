//! Inbound requests and the events in them.

use crate::ids::EventId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One request as a source sent it, and as it is stored: byte for byte.
#[derive(Clone, PartialEq, Eq)]
pub struct Inbound {
    /// `GET`, `POST`, …
    pub method: String,
    /// Query string, without the question mark.
    pub query: String,
    /// Headers that matter (names in lower case): content type, signatures, user agent, origin; never cookies or authorisation.
    pub headers: Vec<(String, String)>,
    /// The body's bytes.
    pub body: Vec<u8>,
}

impl Inbound {
    /// The first header of that name (lower case), if any.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }

    /// Every header of that name, in order.
    pub fn headers_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers
            .iter()
            .filter(move |(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    }
}

/// Shows sizes, not content: a body is personal data.
impl std::fmt::Debug for Inbound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbound")
            .field("method", &self.method)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// One event found in a request by its source's connector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The source's id of the event; unique within the source for ever (IN-3).
    pub source_ref: String,
    /// Where in the body the event stands, in the connector's own notation; empty for the whole body.
    pub pointer: String,
    /// When the person submitted, by the platform's clock, where the request says so.
    pub created_at: Option<Timestamp>,
    /// What becomes of it.
    pub fate: Fate,
}

/// What becomes of an event at intake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Goes through the flow.
    Process,
    /// Kept and shown, not delivered; a stable reason (`honeypot`, `unrelated_change`).
    Ignore(String),
    /// Authentic but not readable (IN-5): kept, and dead-lettered as permanent_data by the worker. A stable reason.
    Unreadable(String),
}

/// What intake hands to the store for one request.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// Its id.
    pub id: EventId,
    /// What the connector found.
    pub item: Item,
    /// Keyed hash of source and source_ref: what uniqueness is enforced on; survives erasure.
    pub ref_hash: [u8; 32],
}

/// Answer to the question "is it new?", per event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// The event: the new one, or the one that was there.
    pub event: EventId,
    /// False for a repeated delivery.
    pub is_new: bool,
}
