//! The story of one lead: what came, what was read in it, every step with every attempt, and what comes next.

use super::dead_letters::DeadLetterView;
use super::events::EventView;
use super::request::TargetView;
use super::shape::FailureView;
use crate::installation::Installation;
use emanet_core::event::Inbound;
use emanet_core::ids::Target;
use emanet_core::lead::{Lead, Phone, PhoneKind};
use emanet_core::step::{Delivered, Kind, State};
use emanet_store::{AttemptRecord, CallNote, EventRecord, LinkRecord, StepRecord};
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;

/// Everything known of one event.
#[derive(Debug, Serialize)]
pub(super) struct StoryView {
    #[serde(flatten)]
    event: EventView,
    /// None once the payload was erased.
    request: Option<RequestView>,
    /// Why it cannot be read, if intake found so.
    unreadable: Option<String>,
    lead: Option<LeadView>,
    steps: Vec<StepView>,
    dead_letters: Vec<DeadLetterView>,
    links: Vec<LinkView>,
}

impl StoryView {
    /// `reasons`: cause → what is wrong, for what the event is held under.
    pub(super) fn new(
        installation: &Installation,
        record: EventRecord,
        reasons: &BTreeMap<String, String>,
    ) -> Self {
        let receipt = record.summary.receipt.to_string();
        let pointer = record.pointer;
        let mut attempts = record.attempts;
        let steps = record.steps.into_iter().map(|step| {
            let of_step = attempts.extract_if(.., |a| a.step == step.id).collect();
            StepView::new(installation, step, of_step, reasons)
        });
        Self {
            steps: steps.collect(),
            event: EventView::new(installation, record.summary),
            request: record
                .request
                .map(|request| RequestView::new(receipt, pointer, request)),
            unreadable: record.unreadable,
            lead: record.lead.map(LeadView::from),
            dead_letters: record
                .dead_letters
                .into_iter()
                .map(|letter| DeadLetterView::new(installation, letter))
                .collect(),
            links: record
                .links
                .into_iter()
                .map(|link| LinkView::new(installation, link))
                .collect(),
        }
    }
}

/// The request an event came in.
#[derive(Debug, Serialize)]
struct RequestView {
    receipt: String,
    method: String,
    headers: Vec<(String, String)>,
    body_bytes: usize,
    pointer: String,
}

impl RequestView {
    fn new(receipt: String, pointer: String, request: Inbound) -> Self {
        let body_bytes = request.body.len();
        let headers = request.headers.into_iter().map(|(name, value)| {
            let value = if is_secret(&name) {
                "[secret]".into()
            } else {
                value
            };
            (name, value)
        });
        Self {
            receipt,
            method: request.method,
            headers: headers.collect(),
            body_bytes,
            pointer,
        }
    }
}

/// Whether a header may carry what a forger could use.
fn is_secret(name: &str) -> bool {
    let parts = [
        "token",
        "secret",
        "key",
        "signature",
        "auth",
        "cookie",
        "password",
    ];
    parts.iter().any(|part| name.contains(part))
}

/// The lead as read.
#[derive(Debug, Serialize)]
struct LeadView {
    full_name: Option<String>,
    first_name: Option<String>,
    last_name: Option<String>,
    phone: Option<PhoneView>,
    other_phones: Vec<PhoneView>,
    email: Option<EmailView>,
    city: Option<String>,
    message: Option<String>,
    answers: Vec<AnswerView>,
    consent: BTreeMap<String, bool>,
    attribution: BTreeMap<String, String>,
    created_at: Option<Timestamp>,
    is_test: bool,
    problems: Vec<ProblemView>,
}

#[derive(Debug, Serialize)]
struct PhoneView {
    raw: String,
    e164: Option<String>,
    kind: PhoneKind,
    valid: bool,
    extension: Option<String>,
}

#[derive(Debug, Serialize)]
struct EmailView {
    raw: String,
    address: Option<String>,
    suggestion: Option<String>,
}

#[derive(Debug, Serialize)]
struct AnswerView {
    name: String,
    values: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ProblemView {
    field: String,
    code: String,
    unusable: bool,
}

impl From<Phone> for PhoneView {
    fn from(phone: Phone) -> Self {
        Self {
            raw: phone.raw,
            e164: phone.e164,
            kind: phone.kind,
            valid: phone.valid,
            extension: phone.extension,
        }
    }
}

impl From<Lead> for LeadView {
    fn from(lead: Lead) -> Self {
        Self {
            full_name: lead.full_name,
            first_name: lead.first_name,
            last_name: lead.last_name,
            phone: lead.phone.map(PhoneView::from),
            other_phones: lead.other_phones.into_iter().map(PhoneView::from).collect(),
            email: lead.email.map(|email| EmailView {
                raw: email.raw,
                address: email.address,
                suggestion: email.suggestion,
            }),
            city: lead.city,
            message: lead.message,
            answers: lead
                .answers
                .into_iter()
                .map(|(name, values)| AnswerView { name, values })
                .collect(),
            consent: lead.consent.into_iter().collect(),
            attribution: lead.attribution,
            created_at: lead.created_at,
            is_test: lead.is_test,
            problems: lead
                .problems
                .into_iter()
                .map(|problem| ProblemView {
                    field: problem.field,
                    code: problem.code,
                    unusable: problem.unusable,
                })
                .collect(),
        }
    }
}

/// A step with its attempts.
#[derive(Debug, Serialize)]
struct StepView {
    id: String,
    name: String,
    kind: Kind,
    target: TargetView,
    object: String,
    needs: Vec<String>,
    revision: u32,
    state: State,
    /// Attempts that count, in this round.
    attempts: u32,
    maybe_applied: bool,
    /// When it is tried next, while it is pending.
    next_at: Option<Timestamp>,
    delivered: Option<DeliveredView>,
    failure: Option<FailureView>,
    held_under: Option<String>,
    /// What is wrong with the target it is held for, in words, as far as it is known.
    held_because: Option<String>,
    skipped_because: Option<String>,
    tries: Vec<AttemptView>,
}

impl StepView {
    fn new(
        installation: &Installation,
        step: StepRecord,
        attempts: Vec<AttemptRecord>,
        reasons: &BTreeMap<String, String>,
    ) -> Self {
        let failed = step.failure.as_ref().filter(|_| step.held_under.is_some());
        let failure_message = failed.map(|failure| failure.message.clone());
        Self {
            id: step.id.to_string(),
            name: step.name,
            kind: step.kind,
            target: TargetView::new(installation, step.target),
            object: step.object,
            needs: step.needs,
            revision: step.revision,
            state: step.state,
            attempts: step.attempts,
            maybe_applied: step.maybe_applied,
            next_at: (step.state == State::Pending).then_some(step.run_at),
            delivered: step.delivered.map(DeliveredView::from),
            failure: step.failure.map(FailureView::from),
            held_because: step
                .held_under
                .as_ref()
                .and_then(|cause| reasons.get(cause).cloned())
                .or(failure_message),
            held_under: step.held_under,
            skipped_because: step.skipped,
            tries: attempts.into_iter().map(AttemptView::from).collect(),
        }
    }
}

/// What a step left behind.
#[derive(Debug, Serialize)]
struct DeliveredView {
    how: String,
    object: Option<String>,
    id: Option<String>,
}

impl From<Delivered> for DeliveredView {
    fn from(delivered: Delivered) -> Self {
        Self {
            how: delivered.how,
            object: delivered.object,
            id: delivered.id,
        }
    }
}

/// One attempt. Without `ended_at` it is under way, or its process died in it.
#[derive(Debug, Serialize)]
struct AttemptView {
    id: String,
    number: u32,
    revision: u32,
    counts: bool,
    started_at: Timestamp,
    ended_at: Option<Timestamp>,
    /// Last call whose intent was recorded.
    intent: Option<String>,
    delivered: Option<DeliveredView>,
    failure: Option<FailureView>,
    calls: Vec<CallView>,
    answer: Option<String>,
    next_at: Option<Timestamp>,
}

impl From<AttemptRecord> for AttemptView {
    fn from(attempt: AttemptRecord) -> Self {
        let mut view = Self {
            id: attempt.id.to_string(),
            number: attempt.number,
            revision: attempt.revision,
            counts: attempt.counts,
            started_at: attempt.started_at,
            ended_at: attempt.ended_at,
            intent: attempt.call,
            delivered: None,
            failure: None,
            calls: Vec::new(),
            answer: None,
            next_at: None,
        };
        if let Some(outcome) = attempt.outcome {
            view.delivered = outcome.delivered.map(DeliveredView::from);
            view.failure = outcome.failure.map(FailureView::from);
            view.calls = outcome.calls.into_iter().map(CallView::from).collect();
            view.answer = outcome.answer;
            view.next_at = outcome.next_at;
        }
        view
    }
}

/// One call of an attempt.
#[derive(Debug, Serialize)]
struct CallView {
    name: String,
    request: String,
    outcome: String,
    millis: u64,
}

impl From<CallNote> for CallView {
    fn from(call: CallNote) -> Self {
        Self {
            name: call.name,
            request: call.request,
            outcome: call.outcome,
            millis: call.millis,
        }
    }
}

/// What exists outside.
#[derive(Debug, Serialize)]
struct LinkView {
    destination: TargetView,
    step: String,
    object: String,
    id: String,
}

impl LinkView {
    fn new(installation: &Installation, link: LinkRecord) -> Self {
        Self {
            destination: TargetView::new(installation, Target::Destination(link.destination)),
            step: link.step,
            object: link.object,
            id: link.id,
        }
    }
}
