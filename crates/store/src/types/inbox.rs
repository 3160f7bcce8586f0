//! What intake hands over.

use emanet_core::event::{Inbound, NewEvent};
use emanet_core::ids::{ReceiptId, SourceId, WorkspaceId};
use jiff::Timestamp;

/// One authentic request.
#[derive(Clone, Debug)]
pub struct NewReceipt {
    /// Whose.
    pub workspace: WorkspaceId,
    /// From which source.
    pub source: SourceId,
    /// Id of the request.
    pub id: ReceiptId,
    /// The request, byte for byte.
    pub request: Inbound,
    /// When it came.
    pub received_at: Timestamp,
    /// The day it came, in the workspace's time zone (`2026-11-30`); the sum closes per day.
    pub day: String,
    /// Configuration revision in force.
    pub revision: u64,
    /// What is in it.
    pub events: Vec<NewEvent>,
}
