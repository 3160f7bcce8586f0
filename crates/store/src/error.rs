//! What can go wrong in the store.

/// Why a storage call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such row (in that workspace).
    #[error("no such {0}")]
    NotFound(&'static str),
    /// The state does not allow it: resolved already, revision moved on, covered by another replay.
    #[error("conflict: {0}")]
    Conflict(String),
    /// The claim is no longer ours: expired and taken over.
    #[error("the lease was lost to another worker")]
    LeaseLost,
    /// The store cannot be used now (closed, disk full, commit failed). Nothing of the call is certain to be stored; nothing was
    /// acknowledged.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// What is stored cannot be understood (damage, or written by something newer).
    #[error("the store is damaged or of another version: {0}")]
    Corrupt(String),
}
