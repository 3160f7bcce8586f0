//! What the sandbox's error codes mean.

use crate::rest::ErrorRow;
use emanet_core::classify::{Class, Effect, Meaning, Row, Scope};

/// Code, class and what to do.
const CODES: [(&str, Class, &str); 4] = [
    (
        "deleted_field",
        Class::PermanentConfig,
        "The sandbox plays a CRM in which a field was deleted. Take the fault back (faults.deleted_field), then replay.",
    ),
    (
        "token_expired",
        Class::PermanentConfig,
        "The sandbox plays a CRM whose token has expired. Take the fault back (faults.token_expired), then replay.",
    ),
    (
        "rate_limited",
        Class::Transient,
        "The sandbox plays a CRM that limits calls. It passes by itself.",
    ),
    (
        "maintenance",
        Class::Transient,
        "The sandbox plays a CRM in maintenance. It passes by itself.",
    ),
];

/// The table.
pub(super) fn rows() -> Vec<ErrorRow> {
    let rows = CODES.iter().map(|(code, class, hint)| ErrorRow {
        status: None,
        code: Some((*code).into()),
        contains: None,
        content_type: None,
        reading: Row {
            meaning: Meaning::Failure(*class, Some(Effect::NotApplied)),
            hint: (*hint).into(),
            scope: Scope::Target,
        },
        by: None,
    });
    rows.collect()
}
