//! The moods of the CRM, and the operator who mends what only a person can.

use super::{AppError, Running};
use crate::engine::{Parts, STAGES};
use crate::sandbox::{Faults, Sandbox};
use emanet_core::breaker::{Reason, State};
use emanet_core::ids::{DestinationId, ReplayId, Target, WorkspaceId};
use emanet_store::{Filter, NewReplay};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// Directs the CRM's moods by how much of the traffic is through.
#[derive(Debug)]
pub struct Director {
    sandbox: Arc<Sandbox>,
    parts: Arc<Parts>,
    workspace: WorkspaceId,
    crm: DestinationId,
    moods: Vec<Faults>,
    mood: AtomicUsize,
}
