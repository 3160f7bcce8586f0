//! The outside parties as the workers see them: may one be called now, how many at a time, how fast. The rules are
//! `emanet_core::breaker`; this keeps their state, in memory and in the store.

use crate::installation::Limits;
use emanet_core::breaker::{Caller, Gate, Policy, Reason, State};
use emanet_core::classify::Failure;
use emanet_core::ids::{Target, WorkspaceId};
use emanet_store::{SaveTarget, Store, TargetRecord};
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// All targets of the installation.
#[derive(Debug)]
pub struct Targets {
    store: Arc<dyn Store>,
    policy: Policy,
    cells: Mutex<HashMap<Target, Cell>>,
    /// Keeps saves of target states in the order of the changes.
    saving: tokio::sync::Mutex<()>,
    freed: Arc<Notify>,
}

#[derive(Debug)]
struct Cell {
    state: State,
    version: u64,
    busy: u32,
    next_call_at: Timestamp,
    draining: bool,
}

/// A slot at a target: given back when dropped.
#[derive(Debug)]
pub struct Slot {
    targets: Arc<Targets>,
    target: Target,
}

/// What a failure did to its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// It was open before, under the cause it is open under now: somebody else met that first.
    pub was_open: bool,
    /// It is open now.
    pub is_open: bool,
    /// It was open, and the failure showed that it works again: it minds this lead's data, nothing else.
    pub reopened: Option<Reopened>,
}

impl Transition {
    /// This failure opened it, or gave it another cause to be open for.
    pub fn opened(&self) -> bool {
        self.is_open && !self.was_open
    }
}

/// A target that was open and works again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reopened {
    /// Why it had been open.
    pub reason: Reason,
    /// The cause it had been open under.
    pub cause: String,
}

impl Reopened {
    fn between(before: State, after: &State) -> Option<Self> {
        match before {
            State::Open { reason, cause, .. } if !after.is_open() => Some(Self { reason, cause }),
            State::Open { .. } | State::Closed { .. } => None,
        }
    }
}

impl Targets {
    /// With the states the store has.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn load(
        store: Arc<dyn Store>,
        policy: Policy,
        freed: Arc<Notify>,
    ) -> emanet_store::Result<Arc<Self>> {
        let cells = store.targets().await?.into_iter().map(
            |TargetRecord {
                 target,
                 state,
                 version,
                 ..
             }| (target, Cell::new(state, version)),
        );
        let cells = Mutex::new(cells.collect());
        Ok(Arc::new(Self {
            store,
            policy,
            cells,
            saving: tokio::sync::Mutex::new(()),
            freed,
        }))
    }

    /// The breaker's figures.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The state of a target.
    pub fn state(&self, target: Target) -> State {
        self.with(target, |cell| cell.state.clone())
    }

    /// How many more events may be worked on for the target.
    pub fn free(&self, target: Target, limits: Limits) -> u32 {
        self.with(target, |cell| limits.concurrency.saturating_sub(cell.busy))
    }

    /// Events being worked on for the target.
    pub fn busy(&self, target: Target) -> u32 {
        self.with(target, |cell| cell.busy)
    }

    /// Takes a slot, if one is free.
    pub fn slot(self: &Arc<Self>, target: Target, limits: Limits) -> Option<Slot> {
        self.with(target, |cell| {
            (cell.busy < limits.concurrency).then(|| cell.busy += 1)?;
            Some(Slot {
                targets: Arc::clone(self),
                target,
            })
        })
    }

    /// May a lead call the target?
    pub fn gate(&self, target: Target, has_pass: bool, now: Timestamp) -> Gate {
        self.with(target, |cell| cell.state.gate(has_pass, now))
    }

    /// Whether held leads are being let go, success by success.
    pub fn is_draining(&self, target: Target) -> bool {
        self.with(target, |cell| cell.draining)
    }

    /// Starts or ends the drain.
    pub fn set_draining(&self, target: Target, draining: bool) {
        self.with(target, |cell| cell.draining = draining);
    }

    /// How long to wait before the next call, so that the target's rate is kept; the place in the row is taken.
    pub fn pace(&self, target: Target, limits: Limits, now: Timestamp) -> Duration {
        let Some(rate) = limits.rate_per_second.filter(|rate| *rate > 0.0) else {
            return Duration::ZERO;
        };
        let gap = Duration::try_from_secs_f64(1.0 / rate).unwrap_or(Duration::MAX);
        self.with(target, |cell| {
            let at = cell.next_call_at.max(now);
            cell.next_call_at = at.saturating_add(gap).unwrap_or(Timestamp::MAX);
            Duration::try_from(at.duration_since(now)).unwrap_or_default()
        })
    }

    /// Takes a failure into account.
    ///
    /// # Errors
    /// If the new state cannot be stored.
    pub async fn failed(
        &self,
        workspace: WorkspaceId,
        target: Target,
        failure: &Failure,
        cause: &str,
        caller: Caller<'_>,
        now: Timestamp,
    ) -> emanet_store::Result<Transition> {
        let (before, after) = self
            .change(workspace, target, now, |state| {
                state.failed(failure, cause, caller, now, &self.policy)
            })
            .await?;
        Ok(Transition {
            was_open: after.is_open() && before.cause() == after.cause(),
            is_open: after.is_open(),
            reopened: Reopened::between(before, &after),
        })
    }

    /// Takes a success into account; says what it had been open for, if this closed it.
    ///
    /// # Errors
    /// If the new state cannot be stored.
    pub async fn succeeded(
        &self,
        workspace: WorkspaceId,
        target: Target,
        has_pass: bool,
        now: Timestamp,
    ) -> emanet_store::Result<Option<Reopened>> {
        let (before, after) = self
            .change(workspace, target, now, |state| {
                state.succeeded(has_pass, now)
            })
            .await?;
        Ok(Reopened::between(before, &after))
    }

    /// Notes that a probe was let through.
    ///
    /// # Errors
    /// If the new state cannot be stored.
    pub async fn probing(
        &self,
        workspace: WorkspaceId,
        target: Target,
        now: Timestamp,
    ) -> emanet_store::Result<()> {
        self.change(workspace, target, now, |state| {
            state.clone().probing(now, &self.policy)
        })
        .await
        .map(|_| ())
    }

    /// Changes a state in memory, and in the store when anything but a count of failures changed. Two failures at the same
    /// instant see each other: exactly one of them opens the target (F46).
    async fn change(
        &self,
        workspace: WorkspaceId,
        target: Target,
        now: Timestamp,
        next: impl FnOnce(&State) -> State,
    ) -> emanet_store::Result<(State, State)> {
        let (before, after) = self.with(target, |cell| {
            let after = next(&cell.state);
            // With the state: nobody may see the target closed with held leads and nothing that lets them go.
            cell.draining |= !after.is_open() && is_drained_when_it_works(&cell.state);
            (std::mem::replace(&mut cell.state, after.clone()), after)
        });
        if before != after && (before.is_open() || after.is_open()) {
            self.save(workspace, target, now).await?;
        }
        Ok((before, after))
    }

    /// Stores the state that is in force when its turn comes.
    async fn save(
        &self,
        workspace: WorkspaceId,
        target: Target,
        now: Timestamp,
    ) -> emanet_store::Result<()> {
        let _turn = self.saving.lock().await;
        let (state, version) = self.with(target, |cell| (cell.state.clone(), cell.version));
        let version = self
            .store
            .save_target(SaveTarget {
                workspace,
                target,
                state,
                version,
                now,
            })
            .await?;
        self.with(target, |cell| cell.version = version);
        Ok(())
    }

    fn with<T>(&self, target: Target, f: impl FnOnce(&mut Cell) -> T) -> T {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        f(cells
            .entry(target)
            .or_insert_with(|| Cell::new(State::default(), 0)))
    }
}

/// Held leads follow success by success; those of a target that was set up wrong are replayed instead.
fn is_drained_when_it_works(state: &State) -> bool {
    match state {
        State::Open { reason, .. } => matches!(reason, Reason::Down | Reason::Throttled),
        State::Closed { .. } => false,
    }
}

impl Cell {
    fn new(state: State, version: u64) -> Self {
        Self {
            state,
            version,
            busy: 0,
            next_call_at: Timestamp::MIN,
            draining: false,
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.targets
            .with(self.target, |cell| cell.busy = cell.busy.saturating_sub(1));
        self.targets.freed.notify_one();
    }
}
