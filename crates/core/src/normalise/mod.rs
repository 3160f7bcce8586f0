//! From what a source says to a lead: phone, name, e-mail, field names (phone-and-name.md).
//!
//! Nothing is lost on the way and nothing fails: what cannot be read becomes a problem, with the raw value kept, and what
//! nobody knows the meaning of stays an answer under the source's own name for it.

mod clean;
pub mod email;
mod fields;
mod name;
pub mod phone;
mod text;
pub mod turkish;

pub use fields::field_names;
pub use phone::warm;

use crate::lead::{Lead, Problem, RawLead};
use fields::{Field, Meaning};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use text::is_blank;

/// How a source's leads are to be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Country a national phone number belongs to (ISO 3166-1 alpha-2): the form's, not the server's. Empty: none.
    pub region: String,
    /// The source's own field name → ours (see [`field_names`]; another word there has no effect); goes before the table of
    /// synonyms.
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
    let raw = clean::without_nul(raw);
    let mut lead = Lead {
        consent: raw.consent,
        attribution: raw.attribution,
        created_at: raw.created_at,
        is_test: raw.is_test || raw.fields.iter().flat_map(|(_, v)| v).any(|v| is_dummy(v)),
        problems: raw.problems,
        ..Lead::default()
    };
    let mut form = Form {
        fields: fields::sort(raw.fields, options),
        problems: Vec::new(),
    };
    form.fields.retain(|f| f.meaning != Meaning::Ignored);
    read_names(&mut form, &mut lead);
    read_phone(&mut form, &mut lead, options);
    read_email(&mut form, &mut lead);
    lead.city = form.take(&[Meaning::City, Meaning::District], "city", ", ");
    if let Some(city) = &mut lead.city
        && let Some(repaired) = name::repair_mojibake(city)
    {
        *city = repaired;
        form.problems.push(Problem::note("city", "repaired"));
    }
    lead.message = form.take(&[Meaning::Message, Meaning::Topic], "message", "\n");
    lead.problems.append(&mut form.problems);
    for field in form.fields {
        keep(field, &mut lead);
    }
    lead
}

/// The texts the platforms put into test leads (sources.md 1.8). No person's field begins or reads so.
fn is_dummy(value: &str) -> bool {
    let value = value.trim();
    let starts = |with: &str| {
        value
            .get(..with.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(with))
    };
    starts("<test lead: dummy data for")
        || value.eq_ignore_ascii_case("test@meta.com")
        || value.eq_ignore_ascii_case("test@fb.com")
}

fn read_names(form: &mut Form, lead: &mut Lead) {
    let mut read = |meaning, name| {
        let (cleaned, is_repaired) = name::clean(&form.take(&[meaning], name, " ")?);
        if is_repaired {
            form.problems.push(Problem::note(name, "repaired"));
        }
        Some(cleaned).filter(|cleaned| !cleaned.is_empty())
    };
    let full = read(Meaning::FullName, "full_name");
    let first = read(Meaning::FirstName, "first_name");
    let last = read(Meaning::LastName, "last_name");
    let joined = [first.as_deref(), last.as_deref()];
    let joined = joined.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let full = full.or_else(|| Some(joined).filter(|joined| !joined.is_empty()));
    if full
        .as_deref()
        .is_some_and(|full| !name::is_plausible(full))
    {
        form.problems.push(Problem::note("full_name", "suspicious"));
    }
    (lead.first_name, lead.last_name) = match (first, last) {
        (None, None) => full.as_deref().map(name::split).unwrap_or_default(),
        given => given,
    };
    lead.full_name = full;
}

/// Reads every phone field: the first readable number is the phone, the others are further ones.
fn read_phone(form: &mut Form, lead: &mut Lead, options: &Options) {
    let mut phones = Vec::new();
    let values = form.take_all(Meaning::Phone);
    let n_said = values
        .iter()
        .filter(|value| !text::is_blank_strictly(value))
        .count();
    for value in values {
        let reading = phone::read(&value, &options.region);
        // Beside a number, an empty second box is nothing to tell.
        let notes = reading
            .notes
            .into_iter()
            .filter(|n| *n != "missing" || n_said == 0);
        form.note_all("phone", notes);
        phones.extend(reading.phones);
    }
    if n_said > 1 {
        form.note_all("phone", ["several"]);
    }
    let mut seen = Vec::new();
    phones.retain(|p| {
        let is_new = p.e164.is_none() || !seen.contains(&p.e164);
        seen.push(p.e164.clone());
        is_new
    });
    phones.sort_by_key(|p| p.e164.is_none());
    if phones.first().is_some_and(|p| p.e164.is_some()) {
        form.problems
            .retain(|p| (p.field.as_str(), p.code.as_str()) != ("phone", "unreadable"));
    }
    let mut phones = phones.into_iter();
    lead.phone = phones.next();
    lead.other_phones = phones.collect();
}

/// Reads the first e-mail field that holds an address; else the first that holds anything.
fn read_email(form: &mut Form, lead: &mut Lead) {
    let is_address = |f: &Field| f.values.iter().any(|v| email::is_address(v));
    let good = form.find(|f| f.meaning == Meaning::Email && is_address(f));
    let value = match good {
        Some(at) => Some(form.take_at(at, ", ")),
        None => form.take(&[Meaning::Email], "email", ", "),
    };
    if let Some(value) = value {
        let reading = email::read(&value);
        form.note_all("email", reading.notes);
        lead.email = reading.email;
    }
}

/// Puts a field that is no part of the lead's head where it belongs.
fn keep(field: Field, lead: &mut Lead) {
    match field.meaning {
        Meaning::Consent => {
            // Check boxes send a hidden "0" before their "1"; browsers' rule is that the last value counts.
            let ticked = field
                .values
                .last()
                .map_or(Some(false), |v| fields::is_ticked(v));
            match ticked {
                Some(ticked) => lead.consent.push((field.key, ticked)),
                None => {
                    lead.problems
                        .push(Problem::unusable(&field.key, "unreadable"));
                    lead.answers.push((field.key, field.values));
                }
            }
        }
        Meaning::Attribution => {
            let key = fields::attribution_key(&field.key);
            let value = field.values.join(", ");
            match lead.attribution.get(&key) {
                _ if is_blank(&value) => {}
                // What the platform states itself is not overwritten by what a form's field says.
                Some(stated) if *stated != value => lead.answers.push((field.key, field.values)),
                Some(_) => {}
                None => drop(lead.attribution.insert(key, value)),
            }
        }
        Meaning::Answer => lead.answers.push((field.key, field.values)),
        // A second city, a first name beside a full name: known, not used, not lost.
        _ if field.values.iter().all(|v| is_blank(v)) => {}
        _ => lead.answers.push((field.key, field.values)),
    }
}

/// The fields not used yet, and what was found wrong with those that were.
struct Form {
    fields: Vec<Field>,
    problems: Vec<Problem>,
}

impl Form {
    fn find(&self, wanted: impl Fn(&Field) -> bool) -> Option<usize> {
        self.fields.iter().position(wanted)
    }

    /// Takes what the field says; several values are one text.
    fn take_at(&mut self, at: usize, separator: &str) -> String {
        let mut values = self.fields.remove(at).values;
        values.retain(|v| !is_blank(v));
        values.join(separator)
    }

    /// Takes the first field of the first meaning that says something. Notes `missing` if there are such fields but all empty.
    fn take(&mut self, meanings: &[Meaning], name: &str, separator: &str) -> Option<String> {
        let says_something = |f: &Field| f.values.iter().any(|v| !is_blank(v));
        let of_meaning = |m: &Meaning| self.find(|f| f.meaning == *m && says_something(f));
        let found = meanings.iter().find_map(of_meaning);
        if found.is_none() && self.find(|f| meanings.contains(&f.meaning)).is_some() {
            self.problems.push(Problem::unusable(name, "missing"));
        }
        found.map(|at| self.take_at(at, separator))
    }

    /// Takes every value of every field of a meaning; a field without any says an empty one.
    fn take_all(&mut self, meaning: Meaning) -> Vec<String> {
        let values = |field: Field| match field.values {
            none if none.is_empty() => vec![String::new()],
            values => values,
        };
        self.fields
            .extract_if(.., |f| f.meaning == meaning)
            .flat_map(values)
            .collect()
    }

    /// Notes each code once; those that make the field unusable as such.
    fn note_all(&mut self, name: &str, codes: impl IntoIterator<Item = &'static str>) {
        for code in codes {
            let is_unusable = matches!(code, "missing" | "unreadable")
                || (name == "email" && code == "not_valid");
            let problem = if is_unusable {
                Problem::unusable(name, code)
            } else {
                Problem::note(name, code)
            };
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
    }
}

#[cfg(test)]
mod tests;
