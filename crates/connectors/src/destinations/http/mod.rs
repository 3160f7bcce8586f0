//! Any CRM with a REST interface, described in configuration.
//!
//! The description is read once, with every mistake reported; then it is the same machine as for every other such CRM
//! ([`crate::rest`]).

mod config;

use crate::connector::{Destination, DestinationKind, Next, Repeat, StepInput};
use crate::rest::{self, Spec};
use emanet_core::call::{Call, Exchange};
use emanet_core::classify::Failure;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// The kind `http`.
pub(super) const KIND: DestinationKind = DestinationKind {
    kind: "http",
    title: "CRM with a REST interface",
    module: "CRM",
    fields: config::FIELDS,
    docs: include_str!("docs.md"),
    build: |settings| Ok(Box::new(Http(config::read(settings)?))),
};

#[derive(Debug)]
struct Http(Spec);

impl Destination for Http {
    fn repeat(&self, object: &str) -> Repeat {
        rest::repeat(&self.0, object)
    }

    fn objects(&self) -> Vec<String> {
        self.0.objects.keys().cloned().collect()
    }

    fn default_fields(&self, object: &str) -> BTreeMap<String, String> {
        self.0
            .objects
            .get(object)
            .map(|o| o.fields.clone())
            .unwrap_or_default()
    }

    fn next(&self, input: &StepInput<'_>, run: &[Exchange], now: Timestamp) -> Next {
        rest::next(&self.0, input, run, now)
    }

    fn probe(&self) -> Option<Call> {
        rest::probe(&self.0)
    }

    fn probed(&self, exchange: &Exchange, now: Timestamp) -> Result<(), Failure> {
        rest::probed(&self.0, exchange, now)
    }
}

#[cfg(test)]
mod tests;
