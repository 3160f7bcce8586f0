//! Queue health, the sum, and alerts.

use emanet_core::classify::Class;
use emanet_core::ids::{AlertId, SourceId, Target, WorkspaceId};
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;

/// Queue health.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Status {
    /// All events ever received.
    pub received: u64,
    /// Queued, without those being worked on.
    pub pending: u64,
    /// Being worked on.
    pub processing: u64,
    /// Waiting for a paused target.
    pub held: u64,
    /// Finished.
    pub done: u64,
    /// Dead and unresolved.
    pub dead: u64,
    /// Kept, not delivered.
    pub ignored: u64,
    /// Erased.
    pub erased: u64,
    /// Age of the oldest pending event.
    pub oldest_pending_seconds: u64,
    /// Open dead letters.
    pub open_dead_letters: u64,
    /// Open dead letters by class.
    pub by_class: BTreeMap<Class, u64>,
    /// received = done + pending + processing + held + dead + ignored + erased.
    pub closes: bool,
}

/// A tally that rows do not bear out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Miscount {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Of which source.
    pub source: SourceId,
    /// On which day.
    pub day: String,
    /// `received` or a state.
    pub what: String,
    /// What the tally says.
    pub tally: u64,
    /// What the rows say.
    pub rows: u64,
}

/// Something a person must be told.
#[derive(Clone, Debug)]
pub struct NewAlert {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Its id.
    pub id: AlertId,
    /// What it is counted under.
    pub cause: String,
    /// Class of failure, or none for others.
    pub class: Option<Class>,
    /// About which target.
    pub target: Option<Target>,
    /// What happened; no personal data.
    pub message: String,
    /// What to do.
    pub hint: String,
    /// Now.
    pub now: Timestamp,
}

/// An alert.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alert {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Its id.
    pub id: AlertId,
    /// What it is counted under.
    pub cause: String,
    /// Class of failure.
    pub class: Option<Class>,
    /// About which target.
    pub target: Option<Target>,
    /// What happened.
    pub message: String,
    /// What to do.
    pub hint: String,
    /// First time.
    pub first_at: Timestamp,
    /// Last time.
    pub last_at: Timestamp,
    /// How often.
    pub count: u64,
    /// When it was closed.
    pub closed_at: Option<Timestamp>,
}
