//! Any CRM with a REST interface, described in configuration.
//!
//! The description is read once, with every mistake reported; then it is the same machine as for every other such CRM
//! ([`crate::rest`]).

mod config;

use crate::connector::DestinationKind;

/// The kind `http`.
pub(super) const KIND: DestinationKind = DestinationKind {
    kind: "http",
    title: "CRM with a REST interface",
    module: "CRM",
    fields: config::FIELDS,
    docs: include_str!("docs.md"),
    build: |settings| Ok(Box::new(config::read(settings)?)),
};

#[cfg(test)]
mod tests;
