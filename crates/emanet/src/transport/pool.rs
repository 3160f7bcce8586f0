//! Connections left idle for the next call that only reads. They wait a few seconds at most, and nobody watches them meanwhile:
//! whoever takes one peeks first.

use super::request::Origin;
use super::wire::Wire;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::time::Instant;

/// How many connections to one origin may wait.
const PER_ORIGIN_MAX: usize = 8;

/// The idle connections.
pub(super) struct Pool {
    idle: Duration,
    shelves: Arc<Mutex<Shelves>>,
}

#[derive(Default)]
struct Shelves {
    wires: HashMap<Origin, Vec<(Instant, Wire)>>,
    is_swept: bool,
}

impl Pool {
    /// Whose connections wait so long.
    pub(super) fn new(idle: Duration) -> Self {
        Self {
            idle,
            shelves: Arc::default(),
        }
    }

    /// The connection that waited least, if any is left.
    pub(super) fn take(&self, origin: &Origin) -> Option<Wire> {
        let mut shelves = lock(&self.shelves);
        let (until, wire) = shelves.wires.get_mut(origin)?.pop()?;
        // The younger one is too old, so all are; the sweeper closes them.
        (until > Instant::now()).then_some(wire)
    }

    /// Keeps a connection for a while.
    pub(super) fn put(&self, origin: Origin, wire: Wire) {
        if self.idle.is_zero() {
            return;
        }
        let mut shelves = lock(&self.shelves);
        let shelf = shelves.wires.entry(origin).or_default();
        if shelf.len() >= PER_ORIGIN_MAX {
            shelf.remove(0);
        }
        shelf.push((Instant::now() + self.idle, wire));
        if !shelves.is_swept {
            shelves.is_swept = true;
            tokio::spawn(sweep(Arc::downgrade(&self.shelves), self.idle));
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("idle", &self.idle)
            .finish_non_exhaustive()
    }
}

/// Closes what has waited too long, until nothing is left.
async fn sweep(shelves: Weak<Mutex<Shelves>>, idle: Duration) {
    loop {
        tokio::time::sleep(idle).await;
        let Some(shelves) = shelves.upgrade() else {
            return;
        };
        let mut shelves = lock(&shelves);
        let now = Instant::now();
        shelves.wires.retain(|_, shelf| {
            shelf.retain(|(until, _)| *until > now);
            !shelf.is_empty()
        });
        if shelves.wires.is_empty() {
            shelves.is_swept = false;
            return;
        }
    }
}

fn lock(shelves: &Mutex<Shelves>) -> MutexGuard<'_, Shelves> {
    shelves.lock().unwrap_or_else(PoisonError::into_inner)
}
