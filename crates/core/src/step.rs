//! Steps of an event, their states, and the one place where an event's state follows from them (design 9.1).

use crate::classify::Failure;
use crate::ids::Target;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// State of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// To be tried when its time comes and the steps it needs are done.
    Pending,
    /// Waiting for a target that is paused; burns no attempts.
    Held,
    /// Done, with a result.
    Done,
    /// Not needed (a condition said so, or the policy), with a reason.
    Skipped,
    /// Given up: there is an open or resolved dead letter for it.
    Dead,
}

impl State {
    /// The state as stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Held => "held",
            Self::Done => "done",
            Self::Skipped => "skipped",
            Self::Dead => "dead",
        }
    }

    /// Whether nothing more happens to the step by itself and its dependants may go on.
    pub fn is_satisfied(self) -> bool {
        matches!(self, Self::Done | Self::Skipped)
    }
}

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Fetch the lead's fields from the source's platform.
    Fetch,
    /// Create or update the lead in a CRM.
    Crm,
    /// Open a task for a salesperson.
    Task,
    /// Open a task to check data by hand (DL-4); skipped for complete leads.
    CheckTask,
}

impl Kind {
    /// The kind as stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fetch => "fetch",
            Self::Crm => "crm",
            Self::Task => "task",
            Self::CheckTask => "check_task",
        }
    }
}

/// What settling needs to know of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its state.
    pub state: State,
    /// For a dead step: its dead letter was resolved without replay (fixed by hand, discarded).
    pub resolved: bool,
    /// Whom it calls.
    pub target: Target,
    /// When it may run next.
    pub run_at: Timestamp,
    /// Indexes of the steps it needs.
    pub needs: Vec<usize>,
}

/// State of an event, derived from its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventState {
    /// In the queue, or being worked on.
    Pending,
    /// A step waits for a paused target.
    Held,
    /// Every step is done or skipped, or dead and resolved by a person.
    Done,
    /// A step is dead and unresolved.
    Dead,
    /// Kept, not delivered, with a reason (test lead, honeypot, unrelated change).
    Ignored,
    /// Its personal data was erased.
    Erased,
}

impl EventState {
    /// The state as stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Held => "held",
            Self::Done => "done",
            Self::Dead => "dead",
            Self::Ignored => "ignored",
            Self::Erased => "erased",
        }
    }
}

/// What follows from the steps of an event: its state, and what to do next, if anything can be done now or later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The event's state.
    pub state: EventState,
    /// The next step that can run: index, whom it calls, and when. Independent steps go on while others are dead or held.
    pub next: Option<Next>,
}

/// The next step of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// Index of the step.
    pub step: usize,
    /// Whom it calls; the queue keeps work apart by this.
    pub target: Target,
    /// When it may run.
    pub run_at: Timestamp,
}

/// Derives an event's state and next step from its steps (design 9.1). Dead stands before held, held before pending: the state
/// names what needs attention most, while `next` says what goes on regardless.
///
/// A pending step that waits for itself, or for a step that does not exist, is never next, and never lets the event be done.
/// The configuration refuses such flows; were one to come here, the event would stay pending for all to see.
pub fn settle(steps: &[Standing]) -> Settled {
    let any = |wanted: fn(&Standing) -> bool| steps.iter().any(wanted);
    let state = if any(|s| s.state == State::Dead && !s.resolved) {
        EventState::Dead
    } else if any(|s| s.state == State::Held) {
        EventState::Held
    } else if any(|s| s.state == State::Pending) {
        EventState::Pending
    } else {
        EventState::Done
    };
    Settled {
        state,
        next: next(steps),
    }
}

/// Of the pending steps whose needs are met, the one that is due first; of those due together, the first in the flow.
fn next(steps: &[Standing]) -> Option<Next> {
    let is_met = |need: &usize| steps.get(*need).is_some_and(is_passed);
    steps
        .iter()
        .enumerate()
        .filter(|(_, step)| step.state == State::Pending && step.needs.iter().all(is_met))
        .min_by_key(|(index, step)| (step.run_at, *index))
        .map(|(index, step)| Next {
            step: index,
            target: step.target,
            run_at: step.run_at,
        })
}

/// Whether the steps that need this one may run. A dead step that a person fixed by hand lets them run; a discarded one too,
/// since the person decided with the whole lead in view.
fn is_passed(step: &Standing) -> bool {
    step.state.is_satisfied() || (step.state == State::Dead && step.resolved)
}

/// What the engine rules after a run of a step; the store carries it out in one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// Done: ids of what exists outside now.
    Done(Delivered),
    /// Not needed.
    Skip {
        /// Why, as a stable code.
        reason: String,
    },
    /// Try again, not before `at`.
    Retry {
        /// When.
        at: Timestamp,
        /// What happened.
        failure: Failure,
    },
    /// Wait for the target; the attempt does not count.
    Hold {
        /// The cause (fingerprint) the target is paused under.
        cause: String,
        /// What happened, if a call was made at all.
        failure: Option<Failure>,
    },
    /// Give up: open a dead letter.
    Bury {
        /// Why.
        failure: Failure,
        /// Fingerprint it is grouped under.
        cause: String,
    },
}

/// What a successful step leaves behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivered {
    /// Kind of object outside (`lead`, `task`); with the id it becomes the link (ID-3). Absent for a fetch.
    pub object: Option<String>,
    /// Its id there.
    pub id: Option<String>,
    /// How it came about: `created`, `updated`, `linked`, `fetched`.
    pub how: String,
    /// What later steps need of it (for a fetch: the fields).
    pub data: serde_json::Value,
}

#[cfg(test)]
mod tests;
