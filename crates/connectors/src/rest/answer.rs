//! Reads answers: what was found, what was written, what is wrong.

use super::spec::Query;
use emanet_core::call::{Answer, BodyState};
use emanet_core::classify::{self, Class, Failure, Row as Reading, Scope, VendorError, Verdict};
use jiff::Timestamp;
use serde_json::Value;

/// The longest vendor code or field name taken from an answer: a pointer set wrongly must not carry a person's data into a log.
const WORD_CHARS_MAX: usize = 80;

/// A record of the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: String,
    /// Our external id, if it carries one.
    pub(super) external_id: Option<String>,
}

/// What a look-up found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    Found(Row),
    Absent,
}

/// What became of a create.
#[derive(Debug)]
pub(super) enum Written<'a> {
    /// Success, with the record's id.
    Proven(String),
    /// Success by its status, without an id.
    Unproven(Failure),
    /// "It exists already", and by which alternative it may be found.
    Exists(Failure, Option<&'a str>),
    /// Anything else.
    Refused(Failure),
}

/// How the other side says what is wrong.
#[derive(Debug, Default)]
pub(crate) struct Errors {
    /// Where its code may stand (JSON pointers).
    pub(crate) code: Vec<String>,
    /// Where the field may stand: a text, or an object whose first key it is.
    pub(crate) field: Vec<String>,
    /// What its answers mean; the first that fits counts.
    pub(crate) rows: Vec<ErrorRow>,
}

/// What an answer means.
#[derive(Debug)]
pub(crate) struct ErrorRow {
    pub(crate) status: Option<u16>,
    pub(crate) code: Option<String>,
    /// Part of any text in the body, in any case of letters.
    pub(crate) contains: Option<String>,
    /// What the content type begins with.
    pub(crate) content_type: Option<String>,
    /// What it means.
    pub(crate) reading: Reading,
    /// How to find a record that is said to exist.
    pub(crate) by: Option<String>,
}

impl Errors {
    /// What became of a create, whose id stands at `pointer`.
    pub(super) fn written(
        &self,
        answer: &Answer,
        pointer: Option<&str>,
        now: Timestamp,
    ) -> Written<'_> {
        let row = self.row(answer);
        if answer.is_success() && row.is_none() {
            return match proof(answer, pointer) {
                Some(id) => Written::Proven(id),
                None => Written::Unproven(self.failure(answer, now)),
            };
        }
        match self.verdict(answer, row, now) {
            Verdict::Link(failure) => Written::Exists(failure, row.and_then(|r| r.by.as_deref())),
            // A conflict that no row explains is looked up as well (ERR-6).
            Verdict::Failed(failure) if answer.status == 409 && row.is_none() => {
                Written::Exists(failure, None)
            }
            Verdict::Failed(failure) => Written::Refused(failure),
        }
    }

    /// Whether an update of `id` was done. The record was seen before, so that the answer need not name it; but if it names one,
    /// it must be this.
    pub(super) fn updated(
        &self,
        answer: &Answer,
        pointer: Option<&str>,
        id: &str,
        now: Timestamp,
    ) -> Result<(), Failure> {
        let is_done = answer.is_success()
            && self.row(answer).is_none()
            && !is_page(answer)
            && match pointer {
                Some(_) => proof(answer, pointer).as_deref() == Some(id),
                None => {
                    answer.body_state == BodyState::Whole
                        && (answer.body.is_empty() || answer.json().is_some())
                }
            };
        if is_done {
            Ok(())
        } else {
            Err(self.failure(answer, now))
        }
    }

    /// What an answer that is no success means.
    pub(super) fn failure(&self, answer: &Answer, now: Timestamp) -> Failure {
        match self.verdict(answer, self.row(answer), now) {
            Verdict::Failed(failure) | Verdict::Link(failure) => failure,
        }
    }

    /// Whether a row says what the answer means.
    pub(super) fn explains(&self, answer: &Answer) -> bool {
        self.row(answer).is_some()
    }

    fn verdict(&self, answer: &Answer, row: Option<&ErrorRow>, now: Timestamp) -> Verdict {
        let json = answer.json();
        let at = |pointers: &[String]| {
            let json = json.as_ref()?;
            let word = pointers.iter().find_map(|p| word_at(json, p))?;
            (word.chars().count() <= WORD_CHARS_MAX).then_some(word)
        };
        let vendor = VendorError {
            code: at(&self.code),
            field: at(&self.field),
            row: row.map(|row| row.reading.clone()),
        };
        classify::answer(answer, &vendor, now)
    }

    /// The first row that fits. To a 2xx only rows are applied that name its status or its code: a text in the record that came back
    /// must not turn a success into a failure.
    fn row(&self, answer: &Answer) -> Option<&ErrorRow> {
        let json = answer.json();
        let code = json
            .as_ref()
            .and_then(|json| self.code.iter().find_map(|p| text_at(json, p)));
        self.rows.iter().find(|row| {
            (!answer.is_success() || row.status.is_some() || row.code.is_some())
                && row.status.is_none_or(|status| status == answer.status)
                && row
                    .code
                    .as_ref()
                    .is_none_or(|wanted| code.as_ref() == Some(wanted))
                && row
                    .content_type
                    .as_ref()
                    .is_none_or(|wanted| content_type(answer).starts_with(wanted))
                && row
                    .contains
                    .as_ref()
                    .is_none_or(|part| contains(answer, json.as_ref(), &part.to_lowercase()))
        })
    }
}

/// The rows of a look-up's answer. An answer that cannot be read is never "nothing found".
pub(super) fn rows(answer: &Answer, query: &Query) -> Result<Vec<Value>, Failure> {
    if !answer.is_success() {
        return Err(unreadable(answer));
    }
    let json = answer.json().ok_or_else(|| unreadable(answer))?;
    let mut rows = Vec::new();
    for pointer in &query.rows {
        match json.pointer(pointer) {
            Some(Value::Array(list)) => rows.extend(list.iter().cloned()),
            Some(row @ Value::Object(_)) => rows.push(row.clone()),
            Some(Value::Null) => {}
            _ => return Err(no_rows(answer, pointer)),
        }
    }
    Ok(rows)
}

/// The text at a place; a number as text, too.
pub(super) fn text_at(json: &Value, pointer: &str) -> Option<String> {
    match json.pointer(pointer)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A web page where data was expected: a login page, a maintenance page, somebody else's server.
pub(super) fn is_page(answer: &Answer) -> bool {
    let is_markup = answer.body.trim_ascii_start().starts_with(b"<");
    content_type(answer).starts_with("text/html") || is_markup
}

pub(super) fn page_instead(answer: &Answer) -> Failure {
    config(
        answer,
        "The address answers with a web page instead of data.",
        "Check the address and the path in the destination's settings, and whether the credentials lead to a login page.",
    )
}

pub(super) fn filter_overlooked(answer: &Answer) -> Failure {
    config(
        answer,
        "The other side overlooks the look-up's filter: it answers with records that were not asked for.",
        "Define the field for the external id there, and check its name in the look-up's path. If the look-up is a search that may also \
         bring other records, set look_up.search = true.",
    )
}

pub(super) fn several(answer: &Answer) -> Failure {
    Failure {
        class: Class::PermanentData,
        status: Some(answer.status),
        message: "The other side has several records with this value; which one is meant is not for us to say.".into(),
        hint: "Merge the records there, or enter the lead by hand.".into(),
        ..Failure::internal("")
    }
}

pub(super) fn no_id(pointer: &str) -> Failure {
    Failure {
        class: Class::PermanentConfig,
        scope: Scope::Target,
        message: format!("The record found has no id at {pointer}."),
        hint: "Correct where a row has its id in the destination's settings.".into(),
        ..Failure::internal("")
    }
}

fn no_rows(answer: &Answer, pointer: &str) -> Failure {
    config(
        answer,
        &format!("The look-up's answer has no records at {pointer}."),
        "Correct where the records stand in the look-up's answer (look_up.rows) in the destination's settings.",
    )
}

/// A 2xx answer to a look-up that cannot be read. Nothing was changed by it, so it may be asked again.
fn unreadable(answer: &Answer) -> Failure {
    match answer.body_state {
        BodyState::Capped => config(
            answer,
            "The look-up's answer is too large to be read.",
            "Check that the look-up's path filters by the external id, and limit the number of records it answers with.",
        ),
        BodyState::Whole if is_page(answer) => page_instead(answer),
        BodyState::Whole | BodyState::Lost => Failure {
            class: Class::Transient,
            status: Some(answer.status),
            message: "The look-up's answer is broken.".into(),
            hint: "Nothing to do unless it does not pass; then check what stands between here and the other side.".into(),
            ..Failure::internal("")
        },
    }
}

fn config(answer: &Answer, message: &str, hint: &str) -> Failure {
    Failure {
        class: Class::PermanentConfig,
        scope: Scope::Target,
        status: Some(answer.status),
        message: message.into(),
        hint: hint.into(),
        ..Failure::internal("")
    }
}

/// The id at its place, not empty. Only a whole JSON body proves anything.
fn proof(answer: &Answer, pointer: Option<&str>) -> Option<String> {
    let id = text_at(&answer.json()?, pointer?)?;
    (!id.trim().is_empty()).then_some(id)
}

fn word_at(json: &Value, pointer: &str) -> Option<String> {
    match json.pointer(pointer)? {
        Value::Object(map) => map.keys().next().cloned(),
        _ => text_at(json, pointer).filter(|word| !word.is_empty()),
    }
}

fn content_type(answer: &Answer) -> String {
    answer
        .header("content-type")
        .unwrap_or_default()
        .to_ascii_lowercase()
}

/// Whether any text of a JSON body, or the body as it is, has the part (given in lower case).
fn contains(answer: &Answer, json: Option<&Value>, part: &str) -> bool {
    fn in_value(value: &Value, part: &str) -> bool {
        match value {
            Value::String(text) => text.to_lowercase().contains(part),
            Value::Array(list) => list.iter().any(|v| in_value(v, part)),
            Value::Object(map) => map.values().any(|v| in_value(v, part)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    match json {
        Some(json) => in_value(json, part),
        None => String::from_utf8_lossy(&answer.body)
            .to_lowercase()
            .contains(part),
    }
}
