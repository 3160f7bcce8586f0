//! The moods of the CRM, and the operator who mends what only a person can.

use super::{AppError, Running};
use crate::engine::{Parts, STAGES};
use crate::sandbox::{Fault, Faults, Rule, Sandbox};
use emanet_core::breaker::{Reason, State};
use emanet_core::ids::{DestinationId, ReplayId, Target, WorkspaceId};
use emanet_store::{Filter, NewReplay};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Directs the CRM's moods by how much of the traffic is through.
#[derive(Debug)]
pub struct Director {
    sandbox: Arc<Sandbox>,
    parts: Arc<Parts>,
    workspace: WorkspaceId,
    crm: DestinationId,
    moods: Vec<Faults>,
    mood: AtomicUsize,
}

impl Director {
    /// For one run; the moods are the same for the same seed.
    pub fn new(running: &Running, crm: DestinationId, seed: u64) -> Self {
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
            moods: moods(&mut fastrand::Rng::with_seed(seed ^ 0x0ddc_0ffe)),
            mood: AtomicUsize::new(usize::MAX),
        }
    }

    /// Changes the mood when it is time, and mends a set-up that went wrong two moods ago.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn act(&self, sent: u64, total: u64) -> Result<(), AppError> {
        let due =
            usize::try_from(sent * self.moods.len() as u64 / total.max(1)).unwrap_or(usize::MAX);
        let due = due.min(self.moods.len() - 1);
        if self.mood.swap(due, Ordering::Relaxed) != due
            && let Some(mood) = self.moods.get(due)
        {
            self.sandbox.set_faults(self.crm, mood.clone());
        }
        let wrong = |mood: &Faults| {
            mood.contains_key(&Fault::TokenExpired) || mood.contains_key(&Fault::DeletedField)
        };
        if self.moods.get(due).is_some_and(|mood| !wrong(mood)) {
            self.replay_if_needed().await?;
        }
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

/// Every way to fail, in shuffled order, with good spells between.
fn moods(chance: &mut fastrand::Rng) -> Vec<Faults> {
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
        .into_iter()
        .flat_map(|mood| [mood, Faults::default()])
        .collect()
}
