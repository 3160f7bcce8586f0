//! The configuration in force and its revisions.

use emanet_core::ids::{DestinationId, SourceId, WorkspaceId};
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;

/// The configuration in force.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// The latest revision.
    pub revision: Revision,
    /// Name → id, for ever.
    pub workspaces: BTreeMap<String, WorkspaceId>,
    /// (workspace, name) → id, for ever.
    pub sources: Vec<NamedSource>,
    /// (workspace, name) → id, for ever.
    pub destinations: Vec<NamedDestination>,
}

/// A source's name and ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSource {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Name in the configuration.
    pub name: String,
    /// Its id.
    pub id: SourceId,
    /// The intake token, sealed.
    pub token: Vec<u8>,
}

/// A destination's name and ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedDestination {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Name in the configuration.
    pub name: String,
    /// Its id.
    pub id: DestinationId,
}

/// A revision of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// Number; counts from 1.
    pub number: u64,
    /// SHA-256 of the file it came from, hexadecimal.
    pub digest: String,
    /// The document, sealed (it may hold secrets).
    pub document: Vec<u8>,
    /// Who applied it (`file`, `cli`, a user).
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// A revision to apply.
#[derive(Clone, Debug)]
pub struct NewRevision {
    /// Number it was derived from; 0 for none.
    pub based_on: u64,
    /// SHA-256 of the file, hexadecimal.
    pub digest: String,
    /// The document, sealed.
    pub document: Vec<u8>,
    /// Who.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// Ids for workspaces whose names are new.
    pub workspaces: BTreeMap<String, WorkspaceId>,
    /// Sources whose names are new, or whose token changed.
    pub sources: Vec<NamedSource>,
    /// Destinations whose names are new.
    pub destinations: Vec<NamedDestination>,
}

/// What the engine says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EngineReport {
    /// `sqlite 3.54.1`.
    pub engine: String,
    /// Setting → value, as read back.
    pub settings: BTreeMap<String, String>,
    /// Version of the schema.
    pub schema: u32,
    /// What is wrong; empty if all is well.
    pub problems: Vec<String>,
}
