//! From a stored event to its lead and its steps. Pure: everything comes in as an argument.

use crate::env::Env;
use crate::installation::{Flow, SourceEntry};
use emanet_core::classify::{Class, Effect, Failure, Scope};
use emanet_core::ids::{StepId, Target};
use emanet_core::lead::{Completeness, Lead, LeadField};
use emanet_core::normalise;
use emanet_core::step::Kind;
use emanet_store::{EventRecord, NewStep};

/// Name of the step that fetches a lead's fields.
pub const FETCH: &str = "fetch";

/// What became of reading an event.
#[derive(Debug)]
pub enum Read {
    /// A lead to deliver.
    Lead(Lead),
    /// Not to be delivered, with a stable reason.
    Ignore(&'static str, Lead),
    /// Not deliverable: a person must look (permanent_data).
    Dead(Failure, Option<Lead>),
}

/// Reads an event: connector, normalisation, required-fields policy (DL-4).
pub fn read(event: &EventRecord, source: &SourceEntry) -> Read {
    let Some(request) = &event.request else {
        return Read::Dead(
            data(
                "payload_erased",
                "The payload of this event was erased; there is nothing left to deliver.",
            ),
            None,
        );
    };
    if let Some(reason) = &event.unreadable {
        let hint = "The request is authentic but could not be read. Look at it as received, and enter the lead by hand.";
        return Read::Dead(data(reason, hint), None);
    }
    let fetched = event
        .steps
        .iter()
        .find(|s| s.kind == Kind::Fetch)
        .and_then(|s| s.delivered.as_ref())
        .map(|d| &d.data);
    let raw = match source.connector.read(request, &event.pointer, fetched) {
        Ok(raw) => raw,
        Err(unreadable) => return Read::Dead(data(&unreadable.reason, &unreadable.hint), None),
    };
    let mut lead = normalise::lead(&raw, &source.normalise);
    lead.created_at = lead.created_at.or(event.summary.created_at);
    if lead.is_test {
        return Read::Ignore("test_lead", lead);
    }
    match source.required.check(&lead) {
        Completeness::Unusable(wanted) => {
            let names: Vec<_> = wanted.into_iter().map(field_name).collect();
            let hint = format!(
                "Nobody can be reached with this lead: it has none of {}. Correct it and replay, or discard it.",
                names.join(", ")
            );
            Read::Dead(data("required_field_missing", &hint), Some(lead))
        }
        Completeness::Complete | Completeness::Partial(_) => Read::Lead(lead),
    }
}

/// Names of the fields the lead lacks, for the "missing data" tag; empty for a complete lead.
pub fn missing(lead: &Lead, source: &SourceEntry) -> Vec<String> {
    match source.required.check(lead) {
        Completeness::Complete => Vec::new(),
        Completeness::Partial(fields) | Completeness::Unusable(fields) => fields
            .into_iter()
            .map(|f| field_name(f).to_owned())
            .collect(),
    }
}

/// The steps an event goes through: the fetch, where the source needs one, then the flow's, all planned at once.
pub fn plan(source: &SourceEntry, flow: Option<&Flow>, env: &Env) -> Vec<NewStep> {
    let id = || StepId::new(env.now(), env.bytes());
    let fetch = source.connector.needs_fetch().then(|| NewStep {
        id: id(),
        name: FETCH.into(),
        kind: Kind::Fetch,
        target: Target::Source(source.id),
        object: String::new(),
        needs: Vec::new(),
        skipped: None,
    });
    let before: Vec<String> = fetch.iter().map(|s| s.name.clone()).collect();
    let steps = flow
        .map_or(&[][..], |f| &f.steps)
        .iter()
        .map(|step| NewStep {
            id: id(),
            name: step.plan.name.clone(),
            kind: step.plan.kind,
            target: Target::Destination(step.plan.destination),
            object: step.plan.object.clone(),
            needs: before.iter().chain(&step.plan.needs).cloned().collect(),
            skipped: None,
        });
    let steps: Vec<_> = steps.collect();
    fetch.into_iter().chain(steps).collect()
}

fn data(code: &str, hint: &str) -> Failure {
    Failure {
        class: Class::PermanentData,
        effect: Effect::NotApplied,
        scope: Scope::Lead,
        vendor_code: Some(code.to_owned()),
        message: format!("the lead cannot be delivered as it is: {code}"),
        hint: hint.to_owned(),
        ..Failure::internal("")
    }
}

fn field_name(field: LeadField) -> &'static str {
    match field {
        LeadField::FullName => "full_name",
        LeadField::Phone => "phone",
        LeadField::Email => "email",
        LeadField::City => "city",
        LeadField::Message => "message",
    }
}
