//! What a failure means: who must act (`Class`) and whether repeating is safe (`Effect`). Decided here and nowhere else.

use crate::call::{Answer, Broken, NotSent};
use crate::retry_after::RetryAfter;
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
    let _ = (answer, vendor, now);
    todo!()
}

/// What it means that a call was never sent (ERR-3).
pub fn not_sent(why: NotSent) -> Failure {
    let _ = why;
    todo!()
}

/// What it means that a call was sent and its answer lost (ERR-3): unknown, maybe applied.
pub fn broken(why: Broken) -> Failure {
    let _ = why;
    todo!()
}
