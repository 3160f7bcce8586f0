//! Flows: which steps the events of a source go through.

use crate::ids::DestinationId;
use crate::step::Kind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One step as configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepPlan {
    /// Name, unique in the flow; part of the idempotency key.
    pub name: String,
    /// What it does.
    pub kind: Kind,
    /// Whom it calls.
    pub destination: DestinationId,
    /// Object of the destination (`lead`, `task`).
    pub object: String,
    /// Field of the object → template over the lead (see [`crate::mapping`]). Empty: the connector's own default.
    pub fields: BTreeMap<String, String>,
    /// Condition over the lead (an expression); the step is skipped when it is false.
    pub when: Option<String>,
    /// Names of the steps it needs.
    pub needs: Vec<String>,
    /// Retry policy.
    pub retry: crate::backoff::Policy,
}

/// A flow: the steps after the lead was read. (A fetch, where the source needs one, is put in front by the engine.)
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// In order.
    pub steps: Vec<StepPlan>,
}
