//! An event with everything known of it.

use super::DeadLetter;
use emanet_core::call::Method;
use emanet_core::classify::Failure;
use emanet_core::event::Inbound;
use emanet_core::ids::{
    AttemptId, DestinationId, EventId, ReceiptId, SourceId, StepId, Target, WorkspaceId,
};
use emanet_core::lead::Lead;
use emanet_core::step::{Delivered, EventState, Kind, State};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An event with everything that belongs to it.
#[derive(Clone, Debug)]
pub struct EventRecord {
    /// Summary, as in lists.
    pub summary: EventSummary,
    /// The request it came in; `None` once its payload was erased.
    pub request: Option<Inbound>,
    /// Where in the request it stands.
    pub pointer: String,
    /// Why it cannot be read, if intake found so.
    pub unreadable: Option<String>,
    /// Its lead, once read.
    pub lead: Option<Lead>,
    /// Its steps, in order.
    pub steps: Vec<StepRecord>,
    /// All attempts, oldest first.
    pub attempts: Vec<AttemptRecord>,
    /// All its dead letters, oldest first.
    pub dead_letters: Vec<DeadLetter>,
    /// Ids made outside: the links of the event.
    pub links: Vec<LinkRecord>,
}

/// An event as it stands in lists. Name and such are for people who may see them; never logged.
#[derive(Clone, Debug, PartialEq)]
pub struct EventSummary {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Its id.
    pub id: EventId,
    /// Request it came in.
    pub receipt: ReceiptId,
    /// From which source.
    pub source: SourceId,
    /// The source's id.
    pub source_ref: String,
    /// When it came.
    pub received_at: Timestamp,
    /// When the person submitted, if known.
    pub created_at: Option<Timestamp>,
    /// Its state.
    pub state: EventState,
    /// Being worked on right now (counts as pending in sums).
    pub processing: bool,
    /// When it is due, if it is queued.
    pub run_at: Option<Timestamp>,
    /// How often it was delivered to us.
    pub seen: u64,
    /// Why it is ignored.
    pub ignored: Option<String>,
    /// Revision it ran under.
    pub revision: u64,
    /// Name on the lead.
    pub name: Option<String>,
    /// Phone on the lead.
    pub phone: Option<String>,
    /// E-mail on the lead.
    pub email: Option<String>,
    /// It is a test lead.
    pub is_test: bool,
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRecord {
    /// Its id.
    pub id: StepId,
    /// Name in the flow.
    pub name: String,
    /// What it does.
    pub kind: Kind,
    /// Whom it calls.
    pub target: Target,
    /// Object of the destination.
    pub object: String,
    /// Names of steps it needs.
    pub needs: Vec<String>,
    /// Revision of the request; counts from 1.
    pub revision: u32,
    /// Its state.
    pub state: State,
    /// Attempts that count, in this round (a replay starts at 0 again).
    pub attempts: u32,
    /// An attempt of this revision may have been applied.
    pub maybe_applied: bool,
    /// When it may run next.
    pub run_at: Timestamp,
    /// What it left behind.
    pub delivered: Option<Delivered>,
    /// Last failure.
    pub failure: Option<Failure>,
    /// Cause it is held under.
    pub held_under: Option<String>,
    /// Why it was skipped.
    pub skipped: Option<String>,
    /// Requests fixed by intents of this revision: call name → request.
    pub requests: BTreeMap<String, StoredRequest>,
}

/// A request fixed at its first intent. Secret headers are not in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredRequest {
    /// Method.
    pub method: Method,
    /// URL.
    pub url: String,
    /// Headers that are no secrets.
    pub headers: Vec<(String, String)>,
    /// Body bytes.
    #[serde(skip)]
    pub body: Vec<u8>,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptRecord {
    /// Its id.
    pub id: AttemptId,
    /// Of which step.
    pub step: StepId,
    /// Number within the step, over all rounds; counts from 1.
    pub number: u32,
    /// Revision of the step's request.
    pub revision: u32,
    /// Name of the last call with an intent, if any was recorded.
    pub call: Option<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// When its result was recorded; `None` while open, and after a crash.
    pub ended_at: Option<Timestamp>,
    /// How it ended.
    pub outcome: Option<AttemptOutcome>,
    /// Whether it counts against the step's limit.
    pub counts: bool,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptOutcome {
    /// Done.
    pub delivered: Option<Delivered>,
    /// Failed.
    pub failure: Option<Failure>,
    /// Calls made in the run: name, status or what went wrong, milliseconds.
    pub calls: Vec<CallNote>,
    /// First bytes of the last answer, made printable.
    pub answer: Option<String>,
    /// When the next attempt is planned.
    pub next_at: Option<Timestamp>,
}

/// One call of a run, for the story.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallNote {
    /// Name.
    pub name: String,
    /// Method and URL without secrets.
    pub request: String,
    /// Status, or `not_sent: dns` and the like.
    pub outcome: String,
    /// How long it took.
    pub millis: u64,
}

/// What exists outside.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkRecord {
    /// Where.
    pub destination: DestinationId,
    /// By which step.
    pub step: String,
    /// What.
    pub object: String,
    /// Its id there.
    pub id: String,
}
