//! What workers write down: plans, intents, results.

use super::{CallNote, StoredRequest};
use emanet_core::classify::Failure;
use emanet_core::ids::{AttemptId, DeadLetterId, StepId, Target};
use emanet_core::lead::Lead;
use emanet_core::step::{EventState, Kind, Ruling};
use jiff::Timestamp;

/// Lead and steps of an event.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Now.
    pub now: Timestamp,
    /// The lead, once it can be read.
    pub lead: Option<Lead>,
    /// Steps, in order; those whose names exist are left alone.
    pub steps: Vec<NewStep>,
}

/// A step to plan.
#[derive(Clone, Debug)]
pub struct NewStep {
    /// Its id.
    pub id: StepId,
    /// Name, unique in the event.
    pub name: String,
    /// What it does.
    pub kind: Kind,
    /// Whom it calls.
    pub target: Target,
    /// Object of the destination.
    pub object: String,
    /// Names of steps it needs.
    pub needs: Vec<String>,
    /// Skipped from the start, with this reason.
    pub skipped: Option<String>,
}

/// Intent of one mutating call.
#[derive(Clone, Debug)]
pub struct Intent {
    /// Of which step.
    pub step: StepId,
    /// The run's attempt: a new id at the first intent of a run, the same for further calls.
    pub attempt: AttemptId,
    /// Now.
    pub now: Timestamp,
    /// Name of the call.
    pub call: String,
    /// The request about to be sent.
    pub request: StoredRequest,
}

/// What stands after an intent.
#[derive(Clone, Debug)]
pub struct IntentRecorded {
    /// Attempts of the step that count, this one included.
    pub attempts: u32,
    /// The request to send: the given one, or the one fixed before.
    pub request: StoredRequest,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// Of which step.
    pub step: StepId,
    /// Id of the attempt: the one given at the intent, else a new one.
    pub attempt: AttemptId,
    /// When the run began and ended.
    pub started_at: Timestamp,
    /// Now.
    pub now: Timestamp,
    /// What follows.
    pub ruling: Ruling,
    /// Whether the attempt counts against the limit.
    pub counts: bool,
    /// Calls made, for the story.
    pub calls: Vec<CallNote>,
    /// First bytes of the last answer, made printable.
    pub answer: Option<String>,
    /// Id for the dead letter, should the ruling open one.
    pub dead_letter: DeadLetterId,
}

/// Where an event stands after something was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Its state.
    pub state: EventState,
    /// The next step, if one can run now or later; the lease is kept when it can run now, else given up.
    pub next: Option<NextStep>,
    /// The lease is still held.
    pub keeps_lease: bool,
}

/// The next step of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextStep {
    /// Which.
    pub step: StepId,
    /// Whom it calls.
    pub target: Target,
    /// When.
    pub run_at: Timestamp,
}

/// How an event ends without steps.
#[derive(Clone, Debug)]
pub enum Finish {
    /// Not delivered, with a stable reason.
    Ignored {
        /// Why.
        reason: String,
        /// The lead, if it was read.
        lead: Option<Lead>,
    },
    /// Dead as a whole.
    Dead {
        /// Why.
        failure: Failure,
        /// Fingerprint.
        cause: String,
        /// Id of the dead letter.
        dead_letter: DeadLetterId,
        /// The lead, if it was read.
        lead: Option<Lead>,
    },
}
