//! The two traits connectors implement, and what passes between them and the engine.

use emanet_core::call::{Call, Exchange};
use emanet_core::classify::Failure;
use emanet_core::event::{Inbound, Item};
use emanet_core::field::{Field, Invalid, Settings};
use emanet_core::lead::{Lead, RawLead};
use emanet_core::step::Delivered;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

/// What building a connector gives: it, or every setting that is wrong.
pub type Built<T> = Result<Box<T>, Vec<Invalid>>;

/// A kind of source: how it is configured and built. One entry in [`crate::sources::ALL`].
#[derive(Debug)]
pub struct SourceKind {
    /// `kind` in the configuration (`web_form`, `meta_lead_ads`).
    pub kind: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Module of the licence gate (API-5).
    pub module: &'static str,
    /// Its settings.
    pub fields: &'static [Field],
    /// Set-up guide, Markdown.
    pub docs: &'static str,
    /// Builds a source from its settings, or says every setting that is wrong.
    pub build: fn(&Settings) -> Built<dyn Source>,
}

/// A configured source.
pub trait Source: Debug + Send + Sync {
    /// Authenticates a request and splits it into events. Parses no more than that needs.
    fn receive(&self, request: &Inbound, now: Timestamp) -> Received;

    /// Reads the event at `pointer` of a stored request. `fetched` is what the fetch step brought, where there is one.
    ///
    /// # Errors
    /// A stable reason why it cannot be read (`not_json`, `no_fields`, …).
    fn read(
        &self,
        request: &Inbound,
        pointer: &str,
        fetched: Option<&serde_json::Value>,
    ) -> Result<RawLead, Unreadable>;

    /// Whether an event's fields must be fetched from the platform first.
    fn needs_fetch(&self) -> bool {
        false
    }

    /// The next call of the fetch step; only asked where `needs_fetch`. `run` holds the exchanges of this run, oldest first.
    fn fetch(&self, item: &FetchInput<'_>, run: &[Exchange], now: Timestamp) -> Next {
        let _ = (item, run, now);
        Next::Fail(Failure::internal("this source has nothing to fetch"))
    }

    /// Forms a request the way the platform does, signature included; what `emanet send` posts.
    fn compose(&self, sample: &Sample) -> Inbound;
}

/// The event a fetch step is for.
#[derive(Clone, Copy, Debug)]
pub struct FetchInput<'a> {
    /// The stored request.
    pub request: &'a Inbound,
    /// Where the event stands in it.
    pub pointer: &'a str,
    /// The source's id of the event.
    pub source_ref: &'a str,
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// Not authentic: answer 401 (or the status given), store nothing, log apart (IN-4).
    Refused {
        /// Status to answer with: 401, or 403 for a failed handshake.
        status: u16,
        /// A stable reason for the log and the metric (`bad_signature`, `no_signature`, `wrong_verify_token`).
        reason: &'static str,
    },
    /// A handshake or probe: answer this, store nothing.
    Handshake(Reply),
    /// Authentic: store all of it, then answer this.
    Events {
        /// In the order of the body; never empty for a request that carries anything.
        items: Vec<Item>,
        /// The answer after the commit.
        reply: Reply,
    },
}

/// An HTTP answer to a sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// 200 with this text as `text/plain`.
    Text(String),
    /// 200 with the ids of the stored events as JSON; the ingest fills them in.
    Json,
    /// 303 to this address (a browser's form).
    SeeOther(String),
    /// 200 with this as `text/html`.
    Html(String),
    /// 200 with this as `text/javascript`.
    Script(String),
}

/// A lead for `compose`.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The source's id for the event.
    pub source_ref: String,
    /// Field name and value.
    pub fields: Vec<(String, String)>,
    /// When it was submitted.
    pub created_at: Timestamp,
}

/// Why an authentic event cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the event cannot be read: {reason}")]
pub struct Unreadable {
    /// Stable reason.
    pub reason: String,
    /// What to do about it.
    pub hint: String,
}

/// A kind of destination. One entry in [`crate::destinations::ALL`].
#[derive(Debug)]
pub struct DestinationKind {
    /// `kind` in the configuration (`http`, `sandbox`).
    pub kind: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Module of the licence gate (API-5).
    pub module: &'static str,
    /// Its settings.
    pub fields: &'static [Field],
    /// Set-up guide, Markdown.
    pub docs: &'static str,
    /// Builds a destination from its settings, or says every setting that is wrong.
    pub build: fn(&Settings) -> Built<dyn Destination>,
}

/// A configured destination.
pub trait Destination: Debug + Send + Sync {
    /// What makes a repeat of a step on `object` safe (ID-4).
    fn repeat(&self, object: &str) -> Repeat;

    /// Objects this destination knows (`lead`, `task`).
    fn objects(&self) -> Vec<String>;

    /// The template fields used for `object` when the flow names none.
    fn default_fields(&self, object: &str) -> BTreeMap<String, String>;

    /// The next call for a step, or its end. `run` holds the exchanges of this run, oldest first; empty at its beginning.
    ///
    /// Pure: the same input gives the same answer. A mutating call must come out byte for byte the same in every run of one
    /// step revision; the engine stores the first and sends the stored bytes ever after.
    fn next(&self, input: &StepInput<'_>, run: &[Exchange], now: Timestamp) -> Next;

    /// A call that shows whether address and credentials are right, for `doctor`; changes nothing.
    fn probe(&self) -> Option<Call>;

    /// Reads the answer of the probe.
    ///
    /// # Errors
    /// What is wrong, with its hint.
    fn probed(&self, exchange: &Exchange, now: Timestamp) -> Result<(), Failure>;
}

/// What makes repeating a step safe, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// The other side honours an idempotency key.
    pub native_key: bool,
    /// The object can be found again by its external id.
    pub look_up: bool,
    /// How long a record that was just made may stay invisible to the look-up. Where there is no key, a step whose last attempt
    /// may have been applied is not run again before that: "not found" would prove nothing.
    pub lag: Duration,
}

impl Repeat {
    /// Whether a step may be tried again after a `maybe_applied` result.
    pub fn is_safe(self) -> bool {
        self.native_key || self.look_up
    }

    /// How long after an attempt that may have been applied the step must rest.
    pub fn rest(self) -> Duration {
        if self.native_key {
            Duration::ZERO
        } else {
            self.lag
        }
    }
}

/// What a destination is told about the step.
#[derive(Clone, Debug)]
pub struct StepInput<'a> {
    /// Object to create (`lead`, `task`).
    pub object: &'a str,
    /// External id of the object: `<source id>:<source_ref>` (ID-2), the step's name behind it for tasks.
    pub external_id: &'a str,
    /// Idempotency key of this step and revision (ID-1).
    pub key: &'a str,
    /// The lead.
    pub lead: &'a Lead,
    /// The rendered fields of the object.
    pub fields: &'a BTreeMap<String, String>,
    /// Fields of the lead that are missing; the record is tagged with them (DL-4).
    pub missing: &'a [String],
    /// Ids of what earlier steps made in this destination: object → id.
    pub links: &'a BTreeMap<String, String>,
    /// An earlier attempt of this step may have been applied: look before creating, and take "exists already" for ours.
    pub maybe_applied: bool,
}

/// A connector's answer: go on, or end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Make this call.
    Call(Call),
    /// Done, with the other side's proof (an id, our echo).
    Done(Delivered),
    /// Failed.
    Fail(Failure),
}
