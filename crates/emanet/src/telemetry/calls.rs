//! A transport that counts and times what passes through it.

use super::Metrics;
use crate::transport::Transport;
use async_trait::async_trait;
use emanet_core::call::{Call, Outcome};
use std::sync::Arc;
use tokio::time::Instant;

/// The transport inside, counted.
#[derive(Debug)]
pub struct Counted {
    transport: Arc<dyn Transport>,
    metrics: Arc<Metrics>,
}

impl Counted {
    /// Counts what passes through `transport`.
    pub fn new(transport: Arc<dyn Transport>, metrics: Arc<Metrics>) -> Self {
        Self { transport, metrics }
    }
}

#[async_trait]
impl Transport for Counted {
    async fn send(&self, call: &Call) -> Outcome {
        let begun = Instant::now();
        let outcome = self.transport.send(call).await;
        self.metrics.call_ended(&outcome, begun.elapsed());
        outcome
    }
}
