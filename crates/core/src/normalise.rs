//! From what a source says to a lead: phone, name, e-mail, field names.

use crate::lead::{Lead, RawLead};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a source's leads are to be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Country a national phone number belongs to (ISO 3166-1 alpha-2).
    pub region: String,
    /// The source's own field name → ours (`full_name`, `first_name`, `last_name`, `phone`, `email`, `city`, `message`,
    /// `ignore`); goes before the table of synonyms.
    pub fields: BTreeMap<String, String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            region: "TR".into(),
            fields: BTreeMap::new(),
        }
    }
}

/// Normalises what a connector read. Never fails: what cannot be read becomes a problem, with the raw value kept.
pub fn lead(raw: &RawLead, options: &Options) -> Lead {
    let _ = (raw, options);
    todo!()
}
