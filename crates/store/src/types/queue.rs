//! Claims and their leases.

use emanet_core::ids::{EventId, Target, WorkspaceId};
use jiff::Timestamp;

/// What a worker asks for.
#[derive(Clone, Debug)]
pub struct ClaimDue {
    /// Now.
    pub now: Timestamp,
    /// How long the claim is good for.
    pub lease_until: Timestamp,
    /// Targets with free slots, and how many.
    pub slots: Vec<(Target, u32)>,
}

/// What a worker gets.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The claims, each with its lease.
    pub claims: Vec<Claim>,
    /// When the next event of the asked targets that is not due yet will be due.
    pub next_due: Option<Timestamp>,
}

/// A worker's claim on an event.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Proof of it.
    pub lease: Lease,
    /// Target it was queued for.
    pub target: Target,
    /// Claims without a recorded result, this one included.
    pub claims: u32,
    /// It may go through a closed gate once.
    pub has_pass: bool,
}

/// Proof of a claim. The token rises with every claim of the event, so a stale one is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Which event.
    pub event: EventId,
    /// Fencing token.
    pub token: u64,
}
