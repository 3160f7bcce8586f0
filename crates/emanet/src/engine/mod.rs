//! Carries leads on: claims due events, runs their steps, records what came of it.
//!
//! It never looks at an HTTP status (connectors and `core::classify` do), never decides a class, and never sends anything
//! whose intent is not stored.

mod carry;
mod leases;
mod read;
mod record;
mod rule;
mod run;
mod targets;

pub use leases::{LEASE, RENEW_EVERY};
pub use targets::Targets;

use crate::env::Env;
use crate::installation::{Current, Installation};
use crate::telemetry::Metrics;
use crate::transport::Transport;
use carry::Carrier;
use emanet_core::breaker::Reason;
use emanet_core::ids::{ReplayId, Target, WorkspaceId};
use emanet_store::{Claim, ClaimDue, Filter, NewReplay, Release, Store};
use jiff::Timestamp;
use leases::Leases;
use run::Stopped;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use targets::Reopened;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

/// Nothing is claimed while this process works on so many events, over all targets.
const WORKERS_MAX: usize = 256;
/// Events claimed for one target in one go (WRK-1). Under backlog every target asks, and a round grows with their number.
const BATCH: u32 = 20;
/// The net under every wake-up signal.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(1);
/// How long a graceful stop waits for what is in flight: a call's deadline and a bit.
pub const GRACE: Duration = Duration::from_secs(28);
/// Stages of the replay that starts when a target set up wrong works again.
pub const STAGES: [u32; 3] = [5, 25, 100];

/// What the engine works with; shared with the scheduler.
#[derive(Debug)]
pub struct Parts {
    /// Storage.
    pub store: Arc<dyn Store>,
    /// The configuration in force.
    pub installation: Arc<Current>,
    /// Performs calls.
    pub transport: Arc<dyn Transport>,
    /// Clock and random source.
    pub env: Env,
    /// The outside parties.
    pub targets: Arc<Targets>,
    /// Claims held.
    pub leases: Arc<Leases>,
    /// Wakes the dispatcher: something is due, or a slot is free.
    pub wake: Arc<Notify>,
    /// Wakes the scheduler: a target opened, something was held, a replay began.
    pub wake_scheduler: Arc<Notify>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// True once the process is to stop.
    pub stopping: watch::Receiver<bool>,
}

impl Parts {
    /// Puts the engine's parts together; reads the targets' states from the store.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn assemble(
        store: Arc<dyn Store>,
        installation: Arc<Current>,
        transport: Arc<dyn Transport>,
        env: Env,
        metrics: Arc<Metrics>,
        wake: Arc<Notify>,
        stopping: watch::Receiver<bool>,
    ) -> emanet_store::Result<Arc<Self>> {
        let ended = store.take_over().await?;
        if ended > 0 {
            tracing::info!(
                n_claims = ended,
                "claims of a process that is gone were ended; their leads go on"
            );
        }
        let targets = Targets::load(
            Arc::clone(&store),
            emanet_core::breaker::Policy::default(),
            Arc::clone(&wake),
        )
        .await?;
        let leases = Arc::new(Leases::default());
        let wake_scheduler = Arc::new(Notify::new());
        Ok(Arc::new(Self {
            store,
            installation,
            transport,
            env,
            targets,
            leases,
            wake,
            wake_scheduler,
            metrics,
            stopping,
        }))
    }

    /// Whether the process is to stop.
    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// After a call succeeded: closes the target if it was open, and lets held leads follow, two for every success, so that
    /// the flow grows only as fast as the other side answers.
    async fn succeeded(
        &self,
        installation: &Installation,
        workspace: WorkspaceId,
        target: Target,
        has_pass: bool,
    ) -> Result<(), Stopped> {
        let now = self.env.now();
        let reopened = self
            .targets
            .succeeded(workspace, target, has_pass, now)
            .await?;
        if let Some(reopened) = reopened {
            self.works_again(installation, workspace, target, reopened)
                .await?;
        }
        if self.targets.is_draining(target) {
            let released = self
                .store
                .release_held(Release {
                    workspace,
                    target,
                    limit: 2,
                    with_pass: false,
                    now,
                })
                .await?;
            self.targets.set_draining(target, !released.is_empty());
            self.wake.notify_one();
        }
        Ok(())
    }

    /// A target was open and works again: the alert is over, and what waited for it may follow.
    async fn works_again(
        &self,
        installation: &Installation,
        workspace: WorkspaceId,
        target: Target,
        reopened: Reopened,
    ) -> Result<(), Stopped> {
        let now = self.env.now();
        let name = installation.target_name(target);
        tracing::info!(target.name = %name, cause = reopened.cause, "target works again");
        self.store
            .close_alerts(workspace, &reopened.cause, now)
            .await?;
        match reopened.reason {
            Reason::Config => {
                self.replay_cause(workspace, target, reopened.cause, now)
                    .await
            }
            Reason::Down | Reason::Throttled => Ok(()),
        }
    }

    /// A target that was set up wrong works again: what died and waited under that cause is replayed in stages, unless a
    /// person has started that already.
    async fn replay_cause(
        &self,
        workspace: WorkspaceId,
        target: Target,
        cause: String,
        now: Timestamp,
    ) -> Result<(), Stopped> {
        let replay = NewReplay {
            workspace,
            id: ReplayId::new(now, self.env.bytes()),
            filter: Filter {
                workspace: Some(workspace),
                target: Some(target),
                cause: Some(cause),
                open: Some(true),
                ..Filter::default()
            },
            stages: STAGES.to_vec(),
            by: "emanet".into(),
            reason: "the target works again".into(),
            now,
        };
        match self.store.start_replay(replay).await {
            Ok(_) | Err(emanet_store::Error::Conflict(_)) => self.wake_scheduler.notify_one(),
            Err(other) => return Err(other.into()),
        }
        Ok(())
    }
}

/// Runs the engine until the process is to stop, then waits for what is in flight (H53: a claim is only given back by the
/// worker that has it; what does not end within the grace time is left to lapse).
pub async fn run(parts: Arc<Parts>) {
    let renewal = tokio::spawn(renew(Arc::clone(&parts)));
    let mut workers = JoinSet::new();
    let mut stopping = parts.stopping.clone();
    while !parts.is_stopping() {
        let wait = match claim(&parts, &mut workers).await {
            Ok(wait) => wait,
            Err(error) => {
                tracing::error!(error = %error, "claiming failed; trying again in a second");
                LOOK_AT_LEAST_EVERY
            }
        };
        tokio::select! {
            () = parts.wake.notified() => {}
            () = tokio::time::sleep(wait) => {}
            _ = stopping.wait_for(|stop| *stop) => {}
            Some(_) = workers.join_next() => {}
        }
        while workers.try_join_next().is_some() {}
    }
    let all = async { while workers.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, all).await.is_err() {
        tracing::warn!(
            "some leads are still in flight after the grace time; their leases will lapse"
        );
    }
    renewal.abort();
}

/// Claims what is due for free slots and sends it off; says how long to wait before looking again.
async fn claim(parts: &Arc<Parts>, workers: &mut JoinSet<()>) -> emanet_store::Result<Duration> {
    let installation = parts.installation.get();
    if workers.len() >= WORKERS_MAX {
        return Ok(LOOK_AT_LEAST_EVERY);
    }
    // Every target is asked for, however many there are: idle ones must not use up the places of busy ones.
    let free = |target| {
        let limits = installation.limits(target);
        parts.targets.free(target, limits).min(BATCH)
    };
    let targets = installation
        .workable_targets()
        .map(|target| (target, free(target)));
    let slots: Vec<_> = targets.filter(|(_, free)| *free > 0).collect();
    if slots.is_empty() {
        return Ok(LOOK_AT_LEAST_EVERY);
    }
    let now = parts.env.now();
    let lease_until = now.saturating_add(LEASE).unwrap_or(Timestamp::MAX);
    let claimed = parts
        .store
        .claim_due(ClaimDue {
            now,
            lease_until,
            slots,
        })
        .await?;
    let found = !claimed.claims.is_empty();
    for claim in claimed.claims {
        send_off(parts, &installation, claim, lease_until, workers);
    }
    if found {
        return Ok(Duration::ZERO);
    }
    let due = claimed
        .next_due
        .map(|at| Duration::try_from(at.duration_since(now)).unwrap_or_default());
    Ok(due.map_or(LOOK_AT_LEAST_EVERY, |due| due.min(LOOK_AT_LEAST_EVERY)))
}

fn send_off(
    parts: &Arc<Parts>,
    installation: &Arc<Installation>,
    claim: Claim,
    until: Timestamp,
    workers: &mut JoinSet<()>,
) {
    let working = Arc::new(parts.leases.hold(claim.lease, until));
    let slot = parts
        .targets
        .slot(claim.target, installation.limits(claim.target));
    let Some(slot) = slot else {
        // A worker that came over from another target took the slot in the meantime.
        let parts = Arc::clone(parts);
        workers.spawn(async move {
            let now = parts.env.now();
            if let Err(error) = parts.store.hand_back(claim.lease, claim.target, now).await {
                tracing::warn!(event.id = %claim.lease.event, error = %error, "a claim could not be given back; it will lapse");
            }
        });
        return;
    };
    let carrier = Carrier {
        parts: Arc::clone(parts),
        installation: Arc::clone(installation),
        claim,
        working,
        pass: OnceLock::new(),
    };
    workers.spawn(async move {
        let carrier = Arc::new(carrier);
        let work = Arc::clone(&carrier);
        let result = match tokio::spawn(async move { work.carry(slot).await }).await {
            Ok(result) => result,
            Err(panic) if panic.is_panic() => {
                tracing::error!(event.id = %carrier.claim.lease.event, "a lead made its worker panic; the others go on");
                carrier.after_panic().await
            }
            Err(_) => Ok(()),
        };
        report(&carrier, result);
    });
}

fn report(carrier: &Carrier, result: Result<(), Stopped>) {
    let event = carrier.claim.lease.event;
    match result {
        Ok(()) => {}
        Err(Stopped::LeaseLost) => {
            tracing::warn!(event.id = %event, "the claim was lost to another worker; this one's write was refused");
        }
        Err(Stopped::Store(error)) => {
            tracing::error!(event.id = %event, error = %error, "the store failed while a lead was carried")
        }
    }
}

/// Renews the claims of this process.
async fn renew(parts: Arc<Parts>) {
    loop {
        tokio::time::sleep(RENEW_EVERY).await;
        match parts
            .leases
            .renew(parts.store.as_ref(), parts.env.now())
            .await
        {
            Ok(lost) if lost.is_empty() => {}
            Ok(lost) => tracing::warn!(n_lost = lost.len(), "claims were lost to other workers"),
            Err(error) => tracing::error!(error = %error, "claims could not be renewed"),
        }
    }
}
