//! States of targets, and the release of what is held for them.

use emanet_core::breaker;
use emanet_core::ids::{Target, WorkspaceId};
use jiff::Timestamp;

/// A target's state.
#[derive(Clone, Debug)]
pub struct TargetRecord {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Which.
    pub target: Target,
    /// Its breaker.
    pub state: breaker::State,
    /// Version for compare-and-set; 0 before the first save.
    pub version: u64,
    /// Leads held for it.
    pub n_held: u64,
}

/// A change of a target's state.
#[derive(Clone, Debug)]
pub struct SaveTarget {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Which.
    pub target: Target,
    /// The new state.
    pub state: breaker::State,
    /// The version it was derived from.
    pub version: u64,
    /// Now.
    pub now: Timestamp,
}

/// Which held events to let go.
#[derive(Clone, Copy, Debug)]
pub struct Release {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Of which target.
    pub target: Target,
    /// At most how many.
    pub limit: u32,
    /// They may go through a closed gate once.
    pub with_pass: bool,
    /// Now.
    pub now: Timestamp,
}
