//! What templates see of a lead.

use crate::lead::{Lead, Phone, PhoneKind, Problem};
use minijinja::Value;
use minijinja::value::Serde;
use serde::Serialize;
use std::collections::BTreeMap;

/// What templates see: the lead's parts under short names, and where it came from.
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

/// Every name in [`Context`]; a template that uses another is refused when it is saved.
pub(super) const NAMES: &[&str] = &[
    "lead.full_name",
    "lead.first_name",
    "lead.last_name",
    "lead.phone",
    "lead.phone_raw",
    "lead.phone_extension",
    "lead.other_phones",
    "lead.email",
    "lead.city",
    "lead.message",
    "lead.answers",
    "lead.attribution",
    "lead.consent",
    "lead.created_at",
    "lead.is_test",
    "lead.problems",
    "source",
    "external_id",
    "missing",
    "links",
];

/// A lead as templates see it: one level, text as a CRM takes it. What the lead lacks is absent, not empty.
#[derive(Serialize)]
struct FlatLead<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    full_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phone: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phone_raw: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phone_extension: Option<&'a str>,
    other_phones: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    city: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    answers: BTreeMap<&'a str, String>,
    attribution: &'a BTreeMap<String, String>,
    consent: BTreeMap<&'a str, bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<jiff::Timestamp>,
    is_test: bool,
    problems: &'a [Problem],
}

/// Serialises a lead the way templates see it; for contexts of a connector's own.
///
/// # Errors
/// What the serialiser answers.
pub fn flat_lead<S: serde::Serializer>(lead: &&Lead, s: S) -> Result<S::Ok, S::Error> {
    let phone = lead.phone.as_ref();
    let email = lead.email.as_ref();
    FlatLead {
        full_name: lead.full_name.as_deref(),
        first_name: lead.first_name.as_deref(),
        last_name: lead.last_name.as_deref(),
        phone: phone.map(best_phone),
        phone_raw: phone.map(|p| p.raw.as_str()),
        phone_extension: phone.and_then(|p| p.extension.as_deref()),
        other_phones: lead.other_phones.iter().map(best_phone).collect(),
        email: email.map(|e| e.address.as_ref().unwrap_or(&e.raw).as_str()),
        city: lead.city.as_deref(),
        message: lead.message.as_deref(),
        answers: joined_answers(lead),
        attribution: &lead.attribution,
        consent: strict_consent(lead),
        created_at: lead.created_at,
        is_test: lead.is_test,
        problems: &lead.problems,
    }
    .serialize(s)
}

fn best_phone(phone: &Phone) -> &str {
    phone.e164.as_ref().unwrap_or(&phone.raw)
}

/// A key that came twice (CF7 sends check boxes so) is one answer with all values.
fn joined_answers(lead: &Lead) -> BTreeMap<&str, String> {
    let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (key, given) in &lead.answers {
        values
            .entry(key)
            .or_default()
            .extend(given.iter().map(String::as_str));
    }
    values
        .into_iter()
        .map(|(key, values)| (key, values.join(", ")))
        .collect()
}

/// A box that came twice counts as ticked only if it was ticked both times: consent is never guessed.
fn strict_consent(lead: &Lead) -> BTreeMap<&str, bool> {
    let mut boxes = BTreeMap::new();
    for (key, ticked) in &lead.consent {
        let all = boxes.entry(key.as_str()).or_insert(true);
        *all = *all && *ticked;
    }
    boxes
}

/// Shows a full and an empty lead, so that a rehearsal walks both ways through `{% if lead.phone %}`.
pub(super) fn with_samples<E>(mut rehearse: impl FnMut(Value) -> Result<(), E>) -> Result<(), E> {
    let mut show = |lead: &Lead, missing: &[String]| {
        rehearse(Value::from(Serde(Context {
            lead,
            source: "sample",
            external_id: "sample",
            missing,
            links: &BTreeMap::new(),
        })))
    };
    show(&full_sample(), &[])?;
    show(&Lead::default(), &["phone".to_owned()])
}

fn full_sample() -> Lead {
    let text = || Some("Örnek".to_owned());
    Lead {
        full_name: text(),
        first_name: text(),
        last_name: text(),
        phone: Some(Phone {
            raw: "0532 123 45 67".into(),
            e164: Some("+905321234567".into()),
            kind: PhoneKind::Mobile,
            valid: true,
            extension: Some("12".into()),
        }),
        city: text(),
        message: text(),
        created_at: Some(jiff::Timestamp::UNIX_EPOCH),
        ..Lead::default()
    }
}
