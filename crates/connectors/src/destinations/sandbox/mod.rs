//! The CRM inside the product: for trying out, for the demo, and for seeing what becomes of leads when a CRM fails.
//!
//! It is spoken to like any other CRM, through the same machine; only the address is one that no network has.

mod config;
mod errors;

use crate::connector::DestinationKind;

/// The kind `sandbox`.
pub(super) const KIND: DestinationKind = DestinationKind {
    kind: "sandbox",
    title: "Sandbox CRM",
    module: "CRM",
    fields: config::FIELDS,
    docs: include_str!("docs.md"),
    build: |settings| Ok(Box::new(config::read(settings)?)),
};

#[cfg(test)]
mod tests;
