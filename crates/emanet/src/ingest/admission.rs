//! How much is taken on at a time: requests in flight and bytes in memory. Who finds no room is told so at once (F13).

use super::Limits;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Memory is counted in pieces of this size.
const PIECE: usize = 1024;

/// Room for requests and their bodies.
#[derive(Debug)]
pub(super) struct Admission {
    requests: Arc<Semaphore>,
    pieces: Arc<Semaphore>,
}

/// Room for a growing body; given back when dropped.
#[derive(Debug)]
pub(super) struct Memory {
    pieces: Arc<Semaphore>,
    held: Option<OwnedSemaphorePermit>,
}

/// Room for a request and its body; given back when dropped.
#[derive(Debug)]
pub(super) struct Admitted {
    _request: OwnedSemaphorePermit,
    _memory: Memory,
}

impl Admission {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            requests: Arc::new(Semaphore::new(limits.requests_max)),
            pieces: Arc::new(Semaphore::new(limits.memory_bytes_max / PIECE)),
        }
    }

    /// Room for a body of nothing yet.
    pub(super) fn memory(&self) -> Memory {
        Memory {
            pieces: Arc::clone(&self.pieces),
            held: None,
        }
    }

    /// Room for a request whose body is here; `None` if there is none now.
    pub(super) fn request(&self, memory: Memory) -> Option<Admitted> {
        let request = Arc::clone(&self.requests).try_acquire_owned().ok()?;
        Some(Admitted {
            _request: request,
            _memory: memory,
        })
    }
}

impl Memory {
    /// Makes it room for `bytes` in all; false if there is none now.
    pub(super) fn grow_to(&mut self, bytes: usize) -> bool {
        let held = self.held.as_ref().map_or(0, |p| p.num_permits());
        let missing = bytes.div_ceil(PIECE).saturating_sub(held);
        if missing == 0 {
            return true;
        }
        let more = u32::try_from(missing)
            .ok()
            .and_then(|n| Arc::clone(&self.pieces).try_acquire_many_owned(n).ok());
        match (more, &mut self.held) {
            (None, _) => return false,
            (Some(more), Some(held)) => held.merge(more),
            (Some(more), none) => *none = Some(more),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(requests_max: usize, memory_bytes_max: usize) -> Admission {
        Admission::new(&Limits {
            requests_max,
            memory_bytes_max,
            ..Limits::default()
        })
    }

    #[test]
    fn requests_find_room_up_to_the_limit() {
        let admission = admission(2, 0);
        let ask = || admission.request(admission.memory());
        let first = ask();
        let second = ask();
        assert!(first.is_some() && second.is_some());
        assert!(ask().is_none());
        drop(first);
        assert!(ask().is_some());
    }

    #[test]
    fn bodies_find_room_up_to_the_limit() {
        let admission = admission(1, 4 * PIECE);
        let mut one = admission.memory();
        assert!(one.grow_to(1));
        assert!(one.grow_to(PIECE));
        assert!(one.grow_to(3 * PIECE));
        let mut other = admission.memory();
        assert!(other.grow_to(PIECE));
        assert!(!other.grow_to(PIECE + 1));
        drop(one);
        assert!(other.grow_to(4 * PIECE));
        assert!(!other.grow_to(usize::MAX));
    }
}
