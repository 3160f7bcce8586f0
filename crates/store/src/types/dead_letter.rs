//! Dead letters, replays, and the filters and pages of every list.

use emanet_core::classify::{Class, Failure};
use emanet_core::ids::{DeadLetterId, EventId, ReplayId, SourceId, StepId, Target, WorkspaceId};
use emanet_core::step::EventState;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What to list or replay. Empty fields do not filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// Whose.
    pub workspace: Option<WorkspaceId>,
    /// Of this source.
    pub source: Option<SourceId>,
    /// Of this target (destination, or source for a fetch).
    pub target: Option<Target>,
    /// Of this class.
    pub class: Option<Class>,
    /// Of this cause.
    pub cause: Option<String>,
    /// Dead letters: this one. Ignored for events.
    pub dead_letter: Option<DeadLetterId>,
    /// Of a step with this name.
    pub step: Option<String>,
    /// Received (events) or dead since (dead letters) this time, inclusive.
    pub since: Option<Timestamp>,
    /// Before this time, exclusive.
    pub until: Option<Timestamp>,
    /// Events: in this state. Ignored for dead letters.
    pub state: Option<EventState>,
    /// Dead letters: only open (true) or resolved (false) ones.
    pub open: Option<bool>,
    /// Part of name, phone, e-mail, source_ref (events) or message, vendor code (dead letters).
    pub text: Option<String>,
}

/// Part of a list.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Where the last page ended; opaque.
    pub after: Option<String>,
    /// At most this many; the store caps it at 1,000.
    pub limit: u32,
}

/// One page of a list.
#[derive(Clone, Debug)]
pub struct Listed<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// Cursor of the next page; `None` on the last (H46).
    pub next: Option<String>,
}

/// How a dead letter was resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Resolution {
    Replayed,
    FixedManually,
    Discarded,
}

/// A work item.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadLetter {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Its id.
    pub id: DeadLetterId,
    /// Of which event.
    pub event: EventId,
    /// From which source.
    pub source: SourceId,
    /// The source's id.
    pub source_ref: String,
    /// Of which step (id, name); none if the event as a whole.
    pub step: Option<(StepId, String)>,
    /// Whom it could not be delivered to; none if it could not be read.
    pub target: Option<Target>,
    /// Why.
    pub failure: Failure,
    /// What it is grouped under.
    pub cause: String,
    /// Attempts made.
    pub attempts: u32,
    /// Since when.
    pub dead_at: Timestamp,
    /// Whose job it is.
    pub owner: Option<String>,
    /// How it was resolved.
    pub resolution: Option<Resolution>,
    /// By whom.
    pub resolved_by: Option<String>,
    /// When.
    pub resolved_at: Option<Timestamp>,
    /// Why, or with what.
    pub note: Option<String>,
    /// The dead letter whose replay failed again with this one.
    pub previous: Option<DeadLetterId>,
}

/// Resolve without sending.
#[derive(Clone, Debug)]
pub struct Resolve {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Which.
    pub id: DeadLetterId,
    /// How (not `replayed`).
    pub resolution: Resolution,
    /// Id of the object that is there, for "it is there".
    pub object_id: Option<String>,
    /// By whom.
    pub by: String,
    /// Why.
    pub note: String,
    /// Now.
    pub now: Timestamp,
}

/// A replay to start.
#[derive(Clone, Debug)]
pub struct NewReplay {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Its id.
    pub id: ReplayId,
    /// Which dead letters (open ones) and held steps.
    pub filter: Filter,
    /// Sizes of the stages; after the last, the rest.
    pub stages: Vec<u32>,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Now.
    pub now: Timestamp,
}

/// State of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ReplayState {
    Running,
    Done,
    Stopped,
    Failed,
}

/// A replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Its id.
    pub id: ReplayId,
    /// What was selected.
    pub filter: Filter,
    /// Sizes of the stages.
    pub stages: Vec<u32>,
    /// Stages sent so far.
    pub stage: u32,
    /// State.
    pub state: ReplayState,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When.
    pub started_at: Timestamp,
    /// When it ended, who ended it, and why.
    pub ended: Option<EndReplay>,
    /// All of it, by outcome.
    pub total: ReplayCounts,
    /// The stage that was sent last, by outcome.
    pub current: ReplayCounts,
    /// Targets its items call.
    pub targets: Vec<Target>,
}

/// Items of a replay by outcome. An item is a step (or an event that died whole).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReplayCounts {
    /// Not sent yet.
    pub waiting: u64,
    /// Sent, not finished.
    pub running: u64,
    /// Done or skipped.
    pub done: u64,
    /// Dead or held again.
    pub failed: u64,
}

/// How a replay ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndReplay {
    /// As what.
    pub state: ReplayState,
    /// By whom.
    pub by: String,
    /// Why.
    pub note: String,
    /// When.
    pub at: Timestamp,
}
