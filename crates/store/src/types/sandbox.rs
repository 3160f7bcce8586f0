//! The CRM inside the product.

use emanet_core::ids::{DestinationId, WorkspaceId};
use jiff::Timestamp;
use serde::Serialize;

/// A sandbox object to create.
#[derive(Clone, Debug)]
pub struct NewSandboxObject {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Of which sandbox.
    pub destination: DestinationId,
    /// Its id.
    pub id: String,
    /// `lead`, `task`.
    pub object: String,
    /// Our external id.
    pub external_id: Option<String>,
    /// Idempotency key.
    pub key: Option<String>,
    /// Fields.
    pub fields: serde_json::Map<String, serde_json::Value>,
    /// Now.
    pub now: Timestamp,
}

/// A change of a sandbox object.
#[derive(Clone, Debug)]
pub struct SandboxChange {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Of which sandbox.
    pub destination: DestinationId,
    /// Which.
    pub id: String,
    /// Fields to replace.
    pub fields: serde_json::Map<String, serde_json::Value>,
    /// Now.
    pub now: Timestamp,
}

/// Which sandbox objects.
#[derive(Clone, Debug, Default)]
pub struct SandboxFilter {
    /// Whose.
    pub workspace: Option<WorkspaceId>,
    /// Of which sandbox.
    pub destination: Option<DestinationId>,
    /// `lead`, `task`.
    pub object: Option<String>,
    /// With this external id.
    pub external_id: Option<String>,
    /// With this id.
    pub id: Option<String>,
}

/// A sandbox object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SandboxObject {
    /// Of which sandbox.
    pub destination: DestinationId,
    /// Its id.
    pub id: String,
    /// `lead`, `task`.
    pub object: String,
    /// Our external id.
    pub external_id: Option<String>,
    /// Fields.
    pub fields: serde_json::Map<String, serde_json::Value>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
}
