//! From a lead to a destination's fields: templates and conditions.

use crate::lead::Lead;
use serde::Serialize;
use std::collections::BTreeMap;

/// A template or condition that does not compile, or does not render: what is wrong, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct MappingError {
    /// The field it belongs to.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

/// Compiled templates of one object: field → template, and a condition.
#[derive(Debug)]
pub struct Mapping {
    _private: (),
}

impl Mapping {
    /// Compiles templates (checked when saved, not when a lead comes): at most 16 kB each, expressions at most 1 kB.
    ///
    /// # Errors
    /// Every template that does not compile.
    pub fn compile(
        fields: &BTreeMap<String, String>,
        when: Option<&str>,
    ) -> Result<Self, Vec<MappingError>> {
        let _ = (fields, when);
        todo!()
    }

    /// Renders all fields. A field whose template renders to nothing is left out.
    ///
    /// # Errors
    /// The first template that cannot be rendered (fuel used up, a type error).
    pub fn render<C: Serialize>(
        &self,
        context: &C,
    ) -> Result<BTreeMap<String, String>, MappingError> {
        let _ = context;
        todo!()
    }

    /// Evaluates the condition; true if there is none.
    ///
    /// # Errors
    /// If it cannot be evaluated.
    pub fn applies<C: Serialize>(&self, context: &C) -> Result<bool, MappingError> {
        let _ = context;
        todo!()
    }
}

/// What templates see: the lead's parts under short names, `answers` by key, `source`, `event`, `missing`, `links`.
#[derive(Debug, Clone, Serialize)]
pub struct Context<'a> {
    /// The lead: `{{ lead.full_name }}`, `{{ lead.phone }}` (E.164, else raw), `{{ lead.email }}`, `{{ lead.first_name }}` …
    #[serde(serialize_with = "flat_lead")]
    pub lead: &'a Lead,
    /// Name of the source.
    pub source: &'a str,
    /// External id of the event.
    pub external_id: &'a str,
    /// Names of missing fields.
    pub missing: &'a [String],
    /// Ids made by earlier steps: step name → id.
    pub links: &'a BTreeMap<String, String>,
}

fn flat_lead<S: serde::Serializer>(lead: &&Lead, s: S) -> Result<S::Ok, S::Error> {
    let _ = (lead, s);
    todo!()
}
