//! The only place that sends bytes to a vendor, and the only one that answers "was it sent?".

use async_trait::async_trait;
use emanet_core::call::{Call, Outcome};
use std::fmt::Debug;

/// Performs calls.
#[async_trait]
pub trait Transport: Debug + Send + Sync {
    /// Performs one call, once. Never retries, never follows a redirect; ends within the deadline.
    async fn send(&self, call: &Call) -> Outcome;
}
