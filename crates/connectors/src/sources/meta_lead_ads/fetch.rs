//! The fetch step: the notification holds an id, the lead is asked for.
//!
//! A call that only reads leaves nothing in doubt, so every failure here is `not_applied`.

use super::config::Config;
use super::errors;
use super::wire::{LEAD_FIELDS, LeadNotice};
use crate::connector::Next;
use emanet_core::call::{Answer, BodyState, Call, Exchange, HeaderValue, Method};
use emanet_core::classify::{self, Class, Effect, Failure, Row, Scope, VendorError, Verdict};
use emanet_core::retry_after::RetryAfter;
use emanet_core::secret::Secret;
use emanet_core::step::Delivered;
use jiff::Timestamp;
use serde_json::Value;

const FETCH: &str = "fetch";
const PROBE_FORM: &str = "probe_form";

/// The next call for a lead, or its end.
pub(super) fn next(config: &Config, notice: &LeadNotice, run: &[Exchange], now: Timestamp) -> Next {
    match run {
        [] => Next::Call(get(config, FETCH, &notice.leadgen_id, LEAD_FIELDS)),
        [fetch] => after_fetch(config, notice, &fetch.answer, now),
        [fetch, .., probe] => Next::Fail(after_probe(notice, &fetch.answer, &probe.answer, now)),
    }
}

fn get(config: &Config, name: &str, id: &str, fields: &str) -> Call {
    let token = format!("Bearer {}", config.page_token.expose());
    Call {
        name: name.into(),
        method: Method::Get,
        url: format!("{}/{id}?fields={fields}", config.graph),
        headers: vec![
            (
                "accept".into(),
                HeaderValue::Plain("application/json".into()),
            ),
            (
                "authorization".into(),
                HeaderValue::Secret(Secret::new(token)),
            ),
        ],
        body: Vec::new(),
        mutates: false,
    }
}

fn after_fetch(config: &Config, notice: &LeadNotice, answer: &Answer, now: Timestamp) -> Next {
    let error = GraphError::of(answer);
    match (&error, &notice.form_id) {
        (None, _) if answer.is_success() => {
            lead_of(notice, answer).map_or_else(Next::Fail, Next::Done)
        }
        (Some(error), Some(form)) if error.is_ambiguous() => {
            Next::Call(get(config, PROBE_FORM, form, "id"))
        }
        (Some(error), None) if error.is_ambiguous() => Next::Fail(classified(
            answer,
            Some(error),
            Some(errors::unclear()),
            now,
        )),
        _ => Next::Fail(failure(answer, error.as_ref(), now)),
    }
}

/// The lead, if the answer proves to be it.
fn lead_of(notice: &LeadNotice, answer: &Answer) -> Result<Delivered, Failure> {
    let Some(lead) = answer.json() else {
        return Err(unreadable(answer));
    };
    if id_of(&lead).as_deref() != Some(notice.leadgen_id.as_str()) {
        return Err(Failure {
            status: Some(answer.status),
            message: "Meta's answer is not the lead that was asked for.".into(),
            hint: "Check graph_url: something between here and Meta may answer in its place."
                .into(),
            ..Failure::internal("")
        });
    }
    if !lead.get("field_data").is_some_and(Value::is_array) {
        return Err(Failure {
            class: Class::PermanentConfig,
            status: Some(answer.status),
            message: "Meta gives the lead's id, but not what the person entered.".into(),
            hint: "Give the app the permission leads_retrieval, and access in the business's Leads Access Manager; then replay.".into(),
            ..Failure::internal("")
        });
    }
    Ok(Delivered {
        object: None,
        id: None,
        how: "fetched".into(),
        data: lead,
    })
}

/// The lead could not be read, for one of two reasons; whether its form can be read tells which.
fn after_probe(notice: &LeadNotice, fetch: &Answer, probe: &Answer, now: Timestamp) -> Failure {
    let error = GraphError::of(probe);
    let is_form = probe.json().and_then(|form| id_of(&form)) == notice.form_id;
    let of_fetch = |row: Row| classified(fetch, GraphError::of(fetch).as_ref(), Some(row), now);
    match error {
        None if probe.is_success() && is_form => of_fetch(errors::gone()),
        Some(error) if error.is_ambiguous() => of_fetch(errors::not_visible()),
        None if probe.is_success() => unreadable(probe),
        error => failure(probe, error.as_ref(), now),
    }
}

/// Meta's error envelope.
struct GraphError {
    code: i64,
    subcode: Option<i64>,
    is_transient: bool,
    message: String,
}

impl GraphError {
    /// The error in an answer, whatever its status.
    fn of(answer: &Answer) -> Option<Self> {
        let json = answer.json()?;
        let error = json.get("error")?;
        Some(Self {
            code: error.get("code").and_then(Value::as_i64)?,
            subcode: error.get("error_subcode").and_then(Value::as_i64),
            is_transient: error
                .get("is_transient")
                .and_then(Value::as_bool)
                .unwrap_or(false),
            message: error
                .get("message")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .into(),
        })
    }

    fn is_ambiguous(&self) -> bool {
        errors::is_ambiguous(self.code) && self.row().is_none()
    }

    /// The table goes before `is_transient`: an expired token does not come back by waiting.
    fn row(&self) -> Option<Row> {
        let row = errors::row(self.code, self.subcode, &self.message);
        row.or_else(|| self.is_transient.then(errors::passing))
    }

    /// `190/463`, as Meta's documents write it.
    fn vendor_code(&self) -> String {
        match self.subcode {
            Some(subcode) => format!("{}/{subcode}", self.code),
            None => self.code.to_string(),
        }
    }
}

fn failure(answer: &Answer, error: Option<&GraphError>, now: Timestamp) -> Failure {
    classified(answer, error, error.and_then(GraphError::row), now)
}

fn classified(
    answer: &Answer,
    error: Option<&GraphError>,
    row: Option<Row>,
    now: Timestamp,
) -> Failure {
    let vendor = VendorError {
        code: error.map(GraphError::vendor_code),
        field: None,
        row,
    };
    let (Verdict::Failed(failure) | Verdict::Link(failure)) =
        classify::answer(answer, &vendor, now);
    let asked = failure.retry_after.into_iter().chain(usage_wait(answer));
    Failure {
        retry_after: (failure.class == Class::Transient)
            .then(|| asked.max_by_key(|r| r.wait))
            .flatten(),
        effect: Effect::NotApplied,
        ..failure
    }
}

/// How long Meta throttles: minutes, in `X-Business-Use-Case-Usage` (reference, 1.7). Of several use cases the longest counts.
fn usage_wait(answer: &Answer) -> Option<RetryAfter> {
    let usage: Value = serde_json::from_str(answer.header("x-business-use-case-usage")?).ok()?;
    let cases = usage
        .as_object()?
        .values()
        .filter_map(Value::as_array)
        .flatten();
    let minutes = cases.filter_map(|case| case.get("estimated_time_to_regain_access")?.as_i64());
    let minutes = minutes.max().filter(|minutes| *minutes > 0)?;
    Some(RetryAfter::from_seconds(minutes.saturating_mul(60)))
}

/// A 2xx that cannot be read. Asking again costs nothing; a page in the place of data does not become data by it.
fn unreadable(answer: &Answer) -> Failure {
    let is_page =
        answer.body_state == BodyState::Whole && answer.body.trim_ascii_start().starts_with(b"<");
    Failure {
        class: if is_page {
            Class::PermanentConfig
        } else {
            Class::Transient
        },
        scope: Scope::Target,
        status: Some(answer.status),
        message: "The answer to the request for the lead cannot be read.".into(),
        hint: "If it does not pass, check graph_url and what stands between here and Meta.".into(),
        ..Failure::internal("")
    }
}

fn id_of(object: &Value) -> Option<String> {
    match object.get("id")? {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}
