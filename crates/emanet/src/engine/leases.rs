//! The claims this process holds: renewed while their events are worked on, and checked before anything is sent.

use emanet_core::ids::{EventId, StepId};
use emanet_store::{Lease, Store};
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a claim is good for without renewal (design 5).
pub const LEASE: Duration = Duration::from_secs(30);
/// How often claims are renewed: a third of the lease (H65).
pub const RENEW_EVERY: Duration = Duration::from_secs(10);

/// Claims held by this process.
#[derive(Debug, Default)]
pub struct Leases(Mutex<HashMap<EventId, Held>>);

#[derive(Debug, Clone, Copy)]
struct Held {
    lease: Lease,
    until: Timestamp,
    /// The step whose run is under way, and whether a mutating call of it may have been sent.
    step: Option<(StepId, bool)>,
}

/// A claim while its event is worked on; forgotten when dropped.
#[derive(Debug)]
pub struct Working {
    leases: Arc<Leases>,
    lease: Lease,
}

impl Leases {
    /// Takes note of a claim.
    pub fn hold(self: &Arc<Self>, lease: Lease, until: Timestamp) -> Working {
        self.lock().insert(
            lease.event,
            Held {
                lease,
                until,
                step: None,
            },
        );
        Working {
            leases: Arc::clone(self),
            lease,
        }
    }

    /// Renews all claims held; forgets those that were lost, so that their workers send nothing more.
    ///
    /// # Errors
    /// If the store cannot be written; the claims then run out by themselves.
    pub async fn renew(
        &self,
        store: &dyn Store,
        now: Timestamp,
    ) -> emanet_store::Result<Vec<Lease>> {
        let held: Vec<Lease> = self.lock().values().map(|h| h.lease).collect();
        if held.is_empty() {
            return Ok(Vec::new());
        }
        let until = now.saturating_add(LEASE).unwrap_or(Timestamp::MAX);
        let lost = store.renew(held.clone(), until).await?;
        let mut map = self.lock();
        for lease in held {
            match map.get_mut(&lease.event) {
                Some(entry) if entry.lease == lease && lost.contains(&lease) => {
                    entry.until = Timestamp::MIN
                }
                Some(entry) if entry.lease == lease => entry.until = until,
                _ => {}
            }
        }
        Ok(lost)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<EventId, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Working {
    /// Whether the claim is still good at `now`. A process that was stopped beyond its lease finds out here, before it sends.
    pub fn is_good(&self, now: Timestamp) -> bool {
        self.leases
            .lock()
            .get(&self.lease.event)
            .is_some_and(|h| h.lease == self.lease && now < h.until)
    }

    /// Notes which step's run is under way, and whether a call that changes something may have been sent.
    pub fn at(&self, step: Option<(StepId, bool)>) {
        if let Some(held) = self
            .leases
            .lock()
            .get_mut(&self.lease.event)
            .filter(|h| h.lease == self.lease)
        {
            held.step = step;
        }
    }

    /// The step whose run is under way.
    pub fn step(&self) -> Option<(StepId, bool)> {
        self.leases
            .lock()
            .get(&self.lease.event)
            .filter(|h| h.lease == self.lease)
            .and_then(|h| h.step)
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let mut map = self.leases.lock();
        if map
            .get(&self.lease.event)
            .is_some_and(|h| h.lease == self.lease)
        {
            map.remove(&self.lease.event);
        }
    }
}
