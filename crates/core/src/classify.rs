//! What a failure means: who must act (`Class`) and whether repeating is safe (`Effect`). Decided here and nowhere else.
//!
//! Only an explicit answer is final. A call that was never sent may be sent again; whatever may have reached the other side is
//! `maybe_applied` until it says otherwise. Messages and hints are stored and shown, so nothing of the lead, the request or the
//! answer's text goes into them.

use crate::call::{Answer, Broken, NotSent};
use crate::retry_after::{self, RetryAfter};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Who must act (ERR-1). Exactly four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Nobody: it passes by itself.
    Transient,
    /// Whoever can correct this lead's data.
    PermanentData,
    /// Whoever can correct the set-up; every lead that follows meets the same.
    PermanentConfig,
    /// A person, unless an idempotency mechanism makes a repeat safe.
    Unknown,
}

impl Class {
    /// The class as stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::PermanentData => "permanent_data",
            Self::PermanentConfig => "permanent_config",
            Self::Unknown => "unknown",
        }
    }
}

/// What the call did on the other side (ERR-5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing: repeating is safe.
    NotApplied,
    /// Perhaps: repeating needs an idempotency mechanism.
    MaybeApplied,
    /// It was done.
    Applied,
}

impl Effect {
    /// The effect as stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotApplied => "not_applied",
            Self::MaybeApplied => "maybe_applied",
            Self::Applied => "applied",
        }
    }
}

/// How far a `permanent_config` failure reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Identity, plan, permission, a missing field: the next lead meets it too. The target pauses at once.
    Target,
    /// Something one lead's value points at (a deleted owner, an unknown stage): the target pauses after three leads.
    Lead,
}

/// A step's failure, as everyone downstream of a connector sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Who must act.
    pub class: Class,
    /// Whether repeating is safe.
    pub effect: Effect,
    /// How far it reaches, where the class is `permanent_config`.
    pub scope: Scope,
    /// The HTTP status, if an answer came.
    pub status: Option<u16>,
    /// The vendor's own code, if the answer had one.
    pub vendor_code: Option<String>,
    /// The field the vendor complains about, if it names one.
    pub field: Option<String>,
    /// What happened, in one sentence, without personal data or secrets.
    pub message: String,
    /// What to do about it, and where.
    pub hint: String,
    /// When the other side wants to be asked again.
    pub retry_after: Option<RetryAfter>,
}

/// A row of a connector's error table: what one vendor answer means (ERR-6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it means.
    pub meaning: Meaning,
    /// What to fix, and where.
    pub hint: String,
    /// How far it reaches, where the meaning is `permanent_config`; otherwise ignored.
    pub scope: Scope,
}

/// What a row says a vendor answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A failure of this class; the effect is what the row says, else what class and status imply.
    Failure(Class, Option<Effect>),
    /// "It exists already": look it up and link to it; effect applied. No fifth class (ERR-6).
    Link,
}

/// What an answer that is no success means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The step failed.
    Failed(Failure),
    /// Look the object up and link it; if nothing is found, this is the failure.
    Link(Failure),
}

/// The facts a connector read from an answer's body for the classification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VendorError {
    /// The vendor's own code, if any.
    pub code: Option<String>,
    /// The field complained about, if any.
    pub field: Option<String>,
    /// The row of the connector's table that matched, if any. It overrules the status.
    pub row: Option<Row>,
}

impl Failure {
    /// A failure of Emanet itself: class unknown, effect not applied, nothing was sent.
    pub fn internal(message: impl Into<String>) -> Self {
        Self {
            class: Class::Unknown,
            effect: Effect::NotApplied,
            scope: Scope::Lead,
            status: None,
            vendor_code: None,
            field: None,
            message: message.into(),
            hint: "This should not happen; please report it with the id of the event.".into(),
            retry_after: None,
        }
    }
}

/// What an answer that is no success means: the vendor's row first (ERR-6), else the status (ERR-2, ERR-5).
pub fn answer(answer: &Answer, vendor: &VendorError, now: Timestamp) -> Verdict {
    let retry_after = retry_after(answer, now);
    let status = by_status(answer, retry_after.is_some());
    let reading = match &vendor.row {
        Some(row) => by_row(row, status.effect),
        None => status,
    };
    let failure = Failure {
        class: reading.class,
        effect: reading.effect,
        scope: reading.scope,
        status: Some(answer.status),
        vendor_code: vendor.code.clone(),
        field: vendor.field.clone(),
        message: message(answer),
        hint: reading.hint.to_owned(),
        retry_after,
    };
    if reading.is_link {
        Verdict::Link(failure)
    } else {
        Verdict::Failed(failure)
    }
}

/// What it means that a call was never sent (ERR-3).
pub fn not_sent(why: NotSent) -> Failure {
    use Class::{PermanentConfig, Transient};
    use Scope::{Lead, Target};
    let (class, scope, message, hint) = match why {
        NotSent::Dns => (
            Transient,
            Lead,
            "The other side's host name could not be resolved.",
            "If it does not pass, check the host name in the destination's address and this machine's name server.",
        ),
        NotSent::Connect => (
            Transient,
            Lead,
            "No connection to the other side could be made.",
            "If it does not pass, check that the other side is up, the port in the destination's address, and firewalls between.",
        ),
        NotSent::Tls => (
            Transient,
            Lead,
            "The secure connection broke off while it was being set up.",
            "If it does not pass, check that the destination's address speaks TLS on that port, and proxies between.",
        ),
        NotSent::Certificate => (
            PermanentConfig,
            Target,
            "The other side's certificate does not verify.",
            "Have the certificate renewed, or correct the host name in the destination's address. Emanet never sends past a certificate it cannot verify.",
        ),
        NotSent::AddressRefused => (
            PermanentConfig,
            Target,
            "The other side's address is in a range that is not allowed.",
            "If the destination is meant to be inside your own network, allow the range in emanet.toml, like `[network] allow_private = [\"10.0.0.0/8\"]`, and start the server again; otherwise correct its address.",
        ),
        NotSent::StaleConnection => (
            Transient,
            Lead,
            "The connection had been closed by the other side before the call.",
            "Nothing to do; the next attempt opens a new connection.",
        ),
        NotSent::InvalidCall => (
            PermanentConfig,
            Lead,
            "The call could not be formed: its address or one of its headers is not valid.",
            "Correct the address and the headers in the destination's settings, and templates that fill them from the lead.",
        ),
    };
    Failure {
        scope,
        ..unanswered(class, Effect::NotApplied, message, hint)
    }
}

/// What it means that a call was sent and its answer lost (ERR-3): unknown, maybe applied.
pub fn broken(why: Broken) -> Failure {
    const LOOK: &str = "It may have been carried out. Emanet looks it up or repeats it under the same key where the destination allows that; \
        otherwise look for the lead there and say whether to send it again.";
    let message = match why {
        Broken::Closed => "The connection closed before the other side's answer was complete.",
        Broken::TimedOut => "The other side did not answer in time.",
        Broken::Garbage => "What the other side sent back was not an HTTP answer.",
        Broken::Interrupted => "Emanet was stopped while the call was on its way.",
    };
    unanswered(Class::Unknown, Effect::MaybeApplied, message, LOOK)
}

fn unanswered(class: Class, effect: Effect, message: &str, hint: &str) -> Failure {
    Failure {
        class,
        effect,
        scope: Scope::Lead,
        status: None,
        vendor_code: None,
        field: None,
        message: message.into(),
        hint: hint.into(),
        retry_after: None,
    }
}

/// The first `Retry-After` of the answer that can be read.
fn retry_after(answer: &Answer, now: Timestamp) -> Option<RetryAfter> {
    answer
        .headers
        .iter()
        .filter(|(name, _)| name == "retry-after")
        .find_map(|(_, value)| retry_after::parse(value, now))
}

/// What an answer is taken for.
struct Reading<'a> {
    class: Class,
    effect: Effect,
    scope: Scope,
    is_link: bool,
    hint: &'a str,
}

/// The reading of a vendor's row. A refusal the vendor explains by a code of its own did nothing, whatever the status; for the
/// other classes the status tells, unless the row does.
fn by_row(row: &Row, status_effect: Effect) -> Reading<'_> {
    let (class, effect, is_link) = match row.meaning {
        Meaning::Failure(class, effect) => (class, effect, false),
        Meaning::Link => (Class::PermanentData, None, true),
    };
    let implied = match class {
        Class::PermanentData | Class::PermanentConfig => Effect::NotApplied,
        Class::Transient | Class::Unknown => status_effect,
    };
    Reading {
        class,
        effect: effect.unwrap_or(implied),
        scope: row.scope,
        is_link,
        hint: &row.hint,
    }
}

/// The reading of a status by itself: ERR-2 as refined by ERR-5 and ERR-6.
fn by_status(answer: &Answer, has_retry_after: bool) -> Reading<'static> {
    use Class::{PermanentConfig, PermanentData, Transient, Unknown};
    use Effect::{MaybeApplied, NotApplied};

    let refused_or_lost = |is_refused| if is_refused { NotApplied } else { MaybeApplied };
    let (class, effect, hint) = match answer.status {
        200..=299 => (
            Unknown,
            MaybeApplied,
            "The answer says success but does not show what was made. Check in the destination's settings where its answer carries the id, and look there for the lead.",
        ),
        // A form's usual answer to a POST that was carried out; or a way to the login page. It cannot be told which.
        302 | 303 => (
            PermanentConfig,
            MaybeApplied,
            "Redirects are never followed. Enter the final address in the destination's settings; if it leads to a login page, renew the credentials.",
        ),
        300..=399 => (
            PermanentConfig,
            NotApplied,
            "Redirects are never followed. Enter the address the other side redirects to in the destination's settings.",
        ),
        400 | 422 => (
            PermanentData,
            NotApplied,
            "The other side refuses this lead's values. See its answer, correct the value or the mapping, then replay.",
        ),
        401 => (
            PermanentConfig,
            NotApplied,
            "The credentials are wrong or have expired. Renew them in the destination's settings, then replay.",
        ),
        402 => (
            PermanentConfig,
            NotApplied,
            "The other side asks for payment. Renew or extend the plan of the account there, then replay.",
        ),
        403 => (
            PermanentConfig,
            NotApplied,
            "The credentials are valid but may not do this. Give the account the permission there, and check that no firewall blocks this machine; then replay.",
        ),
        404 => (
            PermanentConfig,
            NotApplied,
            "What the call points at does not exist there. Check the address, and that stages, owners and fields named in the mapping still exist; then replay.",
        ),
        405 => (
            PermanentConfig,
            NotApplied,
            "The address does not take this method. Correct method or path in the destination's settings, then replay.",
        ),
        408 => (
            Transient,
            refused_or_lost(answer.reused_connection),
            "The other side waited too long for the request. If it does not pass, check the network between.",
        ),
        409 => (
            PermanentData,
            NotApplied,
            "The other side reports a conflict, and the lead was not found there. Look for a record with the same phone, e-mail or key there.",
        ),
        410 => (
            PermanentConfig,
            NotApplied,
            "What the call points at was removed for good. Check whether the interface was retired or the record deleted, correct the settings, then replay.",
        ),
        413 => (
            PermanentData,
            NotApplied,
            "The lead is larger than the other side takes. Shorten or leave out long fields in the mapping, then replay.",
        ),
        415 => (
            PermanentConfig,
            NotApplied,
            "The other side does not take this content type. Correct it in the destination's settings, then replay.",
        ),
        421 | 425 => (
            Transient,
            NotApplied,
            "The other side could not take the request on this connection. Nothing to do unless it does not pass.",
        ),
        429 => (
            Transient,
            NotApplied,
            "The other side limits how often it may be called. If it goes on, lower the destination's rate or raise the limit there.",
        ),
        431 => (
            PermanentConfig,
            NotApplied,
            "The request's headers are too large. Shorten the headers in the destination's settings, tokens and keys among them; then replay.",
        ),
        400..=499 => (
            Unknown,
            NotApplied,
            "The other side refuses the call for a reason no rule names. See its answer; if you know what it means, add a row to the destination's error table, then replay.",
        ),
        501 | 505 => (
            PermanentConfig,
            NotApplied,
            "The other side does not offer what was asked for. Correct method, path or version in the destination's settings, then replay.",
        ),
        503 => (
            Transient,
            refused_or_lost(has_retry_after),
            "The other side is overloaded or being serviced. Nothing to do unless it does not pass.",
        ),
        500..=599 => (
            Transient,
            MaybeApplied,
            "The other side failed. Nothing to do unless it does not pass; then ask whoever runs it, with the time of the attempt.",
        ),
        _ => (
            Unknown,
            MaybeApplied,
            "The status is none that HTTP knows. Check that the destination's address leads to the right service, and look there for the lead.",
        ),
    };
    Reading {
        class,
        effect,
        // What may hang on a value of this one lead waits for the third different lead before the target pauses (design 5).
        scope: match (class, answer.status) {
            (PermanentConfig, 404 | 410 | 431) => Scope::Lead,
            (PermanentConfig, _) => Scope::Target,
            (Transient | PermanentData | Unknown, _) => Scope::Lead,
        },
        is_link: answer.status == 409,
        hint,
    }
}

/// What happened, in one sentence.
fn message(answer: &Answer) -> String {
    let status = answer.status;
    match status {
        200..=299 => format!("The other side answered {status}, without proof that it was done."),
        _ => match reason(status) {
            Some(reason) => format!("The other side answered {status} ({reason})."),
            None => format!("The other side answered {status}."),
        },
    }
}

/// What a status is called, for the ones a person may meet.
fn reason(status: u16) -> Option<&'static str> {
    Some(match status {
        300..=399 => "redirect",
        400 => "bad request",
        401 => "not signed in",
        402 => "payment required",
        403 => "forbidden",
        404 => "not found",
        405 => "method not allowed",
        408 => "request timed out",
        409 => "conflict",
        410 => "gone",
        413 => "too large",
        415 => "content type not supported",
        421 => "misdirected",
        422 => "values refused",
        425 => "too early",
        429 => "too many requests",
        431 => "headers too large",
        500 => "internal error",
        501 => "not implemented",
        502 => "bad gateway",
        503 => "unavailable",
        504 => "gateway timed out",
        505 => "HTTP version not supported",
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
