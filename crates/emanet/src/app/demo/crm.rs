//! The moods of the CRM, and the operator who mends what only a person can.

use super::{AppError, Running};
use crate::engine::{Parts, STAGES};
use crate::sandbox::{Calls, Fault, Faults, Rule, Sandbox};
use emanet_core::breaker::{Reason, State};
use emanet_core::ids::{DestinationId, ReplayId, Target, WorkspaceId};
use emanet_store::{Filter, NewReplay};
use std::sync::Arc;
use std::time::Duration;

/// How long a mood may take to strike, and a spell of health to show.
const PATIENCE: Duration = Duration::from_secs(8);

/// Directs the CRM's moods, one after the other; each has its share of the traffic.
#[derive(Debug)]
pub struct Director {
    sandbox: Arc<Sandbox>,
    parts: Arc<Parts>,
    workspace: WorkspaceId,
    crm: DestinationId,
}

impl Director {
    /// For one run.
    pub fn new(running: &Running, crm: DestinationId) -> Self {
        let workspace = running
            .installation
            .get()
            .destinations
            .get(&crm)
            .map(|d| d.workspace);
        Self {
            sandbox: Arc::clone(&running.sandbox),
            parts: Arc::clone(&running.parts),
            workspace: workspace.expect("the sandbox was just found in this installation"),
            crm,
        }
    }

    /// Puts the CRM into a mood.
    pub fn set(&self, mood: &Faults) {
        self.sandbox.set_faults(self.crm, mood.clone());
    }

    /// Waits until something of the mood has struck since `before`, but not for ever: a short run may have no lead left for it.
    pub async fn struck(&self, mood: &Faults, before: &Calls) {
        let times = |calls: &Calls| {
            mood.keys()
                .filter_map(|fault| calls.faults.get(fault))
                .sum::<u64>()
        };
        until(|| times(&self.calls()) > times(before)).await;
    }

    /// What the CRM was asked and did so far.
    pub fn calls(&self) -> Calls {
        self.sandbox.calls(self.crm)
    }

    /// The CRM is well for a while; what only a person can mend is mended.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn recover(&self) -> Result<(), AppError> {
        self.heal().await?;
        let target = Target::Destination(self.crm);
        until(|| !self.parts.targets.state(target).is_open()).await;
        Ok(())
    }

    /// The CRM is well again, and an operator has mended the set-up.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn heal(&self) -> Result<(), AppError> {
        self.sandbox.set_faults(self.crm, Faults::default());
        self.replay_if_needed().await
    }

    /// What an operator does once a set-up is mended: replay what died and waits under that cause, in stages.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn replay_if_needed(&self) -> Result<(), AppError> {
        let target = Target::Destination(self.crm);
        let State::Open {
            reason: Reason::Config,
            cause,
            ..
        } = self.parts.targets.state(target)
        else {
            return Ok(());
        };
        let now = self.parts.env.now();
        let filter = Filter {
            workspace: Some(self.workspace),
            target: Some(target),
            cause: Some(cause),
            open: Some(true),
            ..Filter::default()
        };
        let replay = NewReplay {
            workspace: self.workspace,
            id: ReplayId::new(now, self.parts.env.bytes()),
            filter,
            stages: STAGES.to_vec(),
            by: "the demo's operator".into(),
            reason: "the CRM's set-up was mended".into(),
            now,
        };
        match self.parts.store.start_replay(replay).await {
            // A conflict: the last replay of these is still running.
            Ok(_) | Err(emanet_store::Error::Conflict(_)) => {
                self.parts.wake_scheduler.notify_one();
                Ok(())
            }
            Err(other) => Err(other.into()),
        }
    }
}

/// What a mood is called, for those who watch.
pub fn name(mood: &Faults) -> String {
    let faults = mood
        .keys()
        .filter_map(|fault| serde_json::to_value(fault).ok());
    let names: Vec<_> = faults
        .filter_map(|fault| fault.as_str().map(|name| name.replace('_', " ")))
        .collect();
    format!("the CRM: {}", names.join(", "))
}

/// Waits for a condition, for a while.
async fn until(is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // Running out of patience is no failure: the demo counts leads, not moods.
    let _ = tokio::time::timeout(PATIENCE, wait).await;
}

/// Every way to fail, in an order that follows from the seed.
pub fn moods(chance: &mut fastrand::Rng) -> Vec<Faults> {
    let soon = |rule: Rule| Rule {
        retry_after_seconds: Some(1),
        ..rule
    };
    let slow = Rule {
        delay_ms: Some(400),
        ..Rule::chance(0.3)
    };
    let mut moods: Vec<Faults> = vec![
        Faults::from([
            (Fault::TimeoutAfterCommit, Rule::chance(0.4)),
            (Fault::SearchLag, Rule::times(1)),
        ]),
        Faults::from([(Fault::CutAfterCommit, Rule::chance(0.4))]),
        Faults::from([(Fault::BrokenBody, Rule::chance(0.4))]),
        Faults::from([(Fault::NeverSent, Rule::chance(0.5))]),
        Faults::from([(Fault::Unavailable, Rule::always())]),
        Faults::from([(Fault::UnavailableRetryAfter, soon(Rule::always()))]),
        Faults::from([(Fault::RateLimited, soon(Rule::chance(0.3)))]),
        Faults::from([(Fault::TokenExpired, Rule::always())]),
        Faults::from([(Fault::DeletedField, Rule::always())]),
        Faults::from([(Fault::RefuseData, Rule::chance(0.1))]),
        Faults::from([
            (Fault::Slow, slow),
            (Fault::CutAfterCommit, Rule::chance(0.1)),
        ]),
    ];
    chance.shuffle(&mut moods);
    moods
}
