//! `emanet.toml`: read, checked, put into force as a numbered revision, loaded back.
//!
//! The revision in the store is the text of the file, sealed; everything else is derived from it. A secret is never in a
//! message, a listing or a difference.

mod build;
pub mod data_dir;
mod document;
mod flows;
mod mask;
mod names;
mod parse;
mod problem;
mod reader;
mod revision;
mod secret;
#[cfg(test)]
mod tests;
mod toml_tree;

pub use build::{build, check};
pub use document::{
    DEFAULT_WORKSPACE, DestinationDoc, Document, FlowChoice, FlowDoc, Network, OwnSettings, Server,
    SourceDoc, StepDoc, WorkspaceDoc,
};
pub use names::{Names, NewNames};

pub use parse::parse;
pub use problem::{ConfigError, Problem};
pub use revision::{
    BY_DEFAULT, BY_FILE, Change, File, InForce, Keeper, ReviseError, Stamp, default_file, notes,
};
pub use secret::{Reference, Resolve};
