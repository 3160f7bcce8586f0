//! A lead: the normalised form of an event, with the list of what is wrong with it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a source's connector reads out of an event, before normalisation: names and values as the source spells them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawLead {
    /// Field name and its values, in the source's order.
    pub fields: Vec<(String, Vec<String>)>,
    /// Check boxes of consent: key and whether ticked.
    pub consent: Vec<(String, bool)>,
    /// Campaign facts the platform states itself (`campaign_id`, `form_id`, …).
    pub attribution: BTreeMap<String, String>,
    /// When the person submitted the form, by the platform's clock.
    pub created_at: Option<Timestamp>,
    /// The platform says it is a test.
    pub is_test: bool,
    /// What was wrong with the event itself (`charset_fallback`, `duplicate_key`, …), field name and code.
    pub problems: Vec<Problem>,
}

/// One lead, normalised (phone-and-name.md). What could not be read is in `problems`, with the raw value kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lead {
    /// The name as given, cleaned; the truth.
    pub full_name: Option<String>,
    /// Derived from the full name, or as given.
    pub first_name: Option<String>,
    /// Derived from the full name, or as given.
    pub last_name: Option<String>,
    /// The first phone number.
    pub phone: Option<Phone>,
    /// Further numbers from the same field.
    pub other_phones: Vec<Phone>,
    /// The e-mail address.
    pub email: Option<Email>,
    /// City or district, as given.
    pub city: Option<String>,
    /// The free text, as given.
    pub message: Option<String>,
    /// Every other answer: key as the source spells it, values as given.
    pub answers: Vec<(String, Vec<String>)>,
    /// Consent boxes: key and whether ticked.
    pub consent: Vec<(String, bool)>,
    /// Campaign, ad, form, click ids, utm_*.
    pub attribution: BTreeMap<String, String>,
    /// When the person submitted the form, by the platform's clock.
    pub created_at: Option<Timestamp>,
    /// A synthetic lead: marked, kept out of the CRM, shown.
    pub is_test: bool,
    /// What is wrong with it, and what was repaired.
    pub problems: Vec<Problem>,
}

/// A phone number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phone {
    /// As given, for ever.
    pub raw: String,
    /// `+905321234567`, if it could be read.
    pub e164: Option<String>,
    /// What kind of line it is.
    pub kind: PhoneKind,
    /// The numbering plan knows the number. `false` is a flag, not a refusal.
    pub valid: bool,
    /// Digits behind "dahili", "ext".
    pub extension: Option<String>,
}

/// Kind of line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum PhoneKind {
    Mobile,
    Fixed,
    /// A company number (444 x xxx): cannot be dialled from abroad, gets no SMS.
    Company,
    Other,
    Unknown,
}

/// An e-mail address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Email {
    /// As given, for ever.
    pub raw: String,
    /// The address to write to, domain in lower case; absent if it is none.
    pub address: Option<String>,
    /// A probable correction of a slip, for a person to confirm.
    pub suggestion: Option<String>,
}

/// Something wrong with, or repaired in, one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The field, by the lead's own name (`phone`, `email`, …) or the source's.
    pub field: String,
    /// Stable code: `missing`, `unreadable`, `suspicious`, `repaired`, `not_valid`, `several`, …
    pub code: String,
    /// Whether the value is unusable (as opposed to usable, flagged).
    pub unusable: bool,
}

impl Problem {
    /// A problem that makes the field unusable.
    pub fn unusable(field: &str, code: &str) -> Self {
        Self {
            field: field.into(),
            code: code.into(),
            unusable: true,
        }
    }

    /// A problem worth showing; the field is usable.
    pub fn note(field: &str, code: &str) -> Self {
        Self {
            field: field.into(),
            code: code.into(),
            unusable: false,
        }
    }
}

/// What a source requires of a lead (DL-4). A lead without any of it is dead-lettered; one with some is delivered, tagged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Required {
    /// Each of these should be there; a lead that lacks one is tagged "missing data" and gets a check task.
    pub wanted: Vec<LeadField>,
    /// At least one of these must be there, else nobody can reach the person: dead-lettered as permanent_data.
    pub any_of: Vec<LeadField>,
}

impl Default for Required {
    fn default() -> Self {
        Self {
            wanted: vec![LeadField::Phone],
            any_of: vec![LeadField::Phone, LeadField::Email],
        }
    }
}

/// A field of a lead that can be required.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum LeadField {
    FullName,
    Phone,
    Email,
    City,
    Message,
}

/// What the required-fields policy says of a lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Completeness {
    /// Nothing is missing.
    Complete,
    /// These are missing; deliver it tagged, and open a check task.
    Partial(Vec<LeadField>),
    /// Nobody can be reached with it; these would have been needed.
    Unusable(Vec<LeadField>),
}

impl Lead {
    /// Whether the lead has a usable value for the field.
    pub fn has(&self, field: LeadField) -> bool {
        match field {
            LeadField::FullName => self.full_name.is_some(),
            LeadField::Phone => self.phone.as_ref().is_some_and(|p| p.e164.is_some()),
            LeadField::Email => self.email.as_ref().is_some_and(|e| e.address.is_some()),
            LeadField::City => self.city.is_some(),
            LeadField::Message => self.message.is_some(),
        }
    }
}

impl Required {
    /// Applies the policy to a lead.
    pub fn check(&self, lead: &Lead) -> Completeness {
        if !self.any_of.is_empty() && !self.any_of.iter().any(|f| lead.has(*f)) {
            return Completeness::Unusable(self.any_of.clone());
        }
        let missing: Vec<_> = self
            .wanted
            .iter()
            .copied()
            .filter(|f| !lead.has(*f))
            .collect();
        if missing.is_empty() {
            Completeness::Complete
        } else {
            Completeness::Partial(missing)
        }
    }
}
