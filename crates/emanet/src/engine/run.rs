//! One run of one step: the connector says which call to make, the transport makes it, intents and results are recorded.

use super::Parts;
use super::leases::Working;
use crate::installation::{FlowStep, Limits, SourceEntry};
use emanet_connectors::connector::{Destination, FetchInput, Next, StepInput};
use emanet_core::call::{Answer, BodyState, Call, Exchange, HeaderValue, Outcome};
use emanet_core::classify::{self, Class, Effect, Failure};
use emanet_core::ids::AttemptId;
use emanet_core::step::Delivered;
use emanet_store::{CallNote, EventRecord, Intent, Lease, StepRecord, StoredRequest};
use jiff::Timestamp;

/// Calls a connector may make in one run; one that wants more is broken.
const CALLS_MAX: usize = 8;
/// How much of the last answer is kept for the story.
const ANSWER_KEPT: usize = 4_096;

/// Whom the step calls, and with what.
#[derive(Debug)]
pub enum Party<'a> {
    /// The source's platform, for the lead's fields.
    Source {
        source: &'a SourceEntry,
        input: FetchInput<'a>,
    },
    /// A destination.
    Destination {
        connector: &'a dyn Destination,
        input: StepInput<'a>,
    },
}

impl Party<'_> {
    fn next(&self, run: &[Exchange], now: Timestamp) -> Next {
        match self {
            Self::Source { source, input } => source.connector.fetch(input, run, now),
            Self::Destination { connector, input } => connector.next(input, run, now),
        }
    }

    /// Whether a repeat is safe after `maybe_applied` (ID-4). A fetch changes nothing.
    pub fn repeat_is_safe(&self) -> bool {
        match self {
            Self::Source { .. } => true,
            Self::Destination { connector, input } => connector.repeat(input.object).is_safe(),
        }
    }
}

/// A run that ended.
#[derive(Debug)]
pub struct Ended {
    /// Its attempt.
    pub attempt: AttemptId,
    /// When it began.
    pub started_at: Timestamp,
    /// How it ended.
    pub result: Result<Delivered, Failure>,
    /// Its calls, for the story.
    pub calls: Vec<CallNote>,
    /// First bytes of the last answer, made printable.
    pub answer: Option<String>,
}

/// Why a run stopped without a result.
#[derive(Debug)]
pub enum Stopped {
    /// The claim is no longer ours; nothing more may be sent or recorded.
    LeaseLost,
    /// The store failed.
    Store(emanet_store::Error),
}

impl From<emanet_store::Error> for Stopped {
    fn from(error: emanet_store::Error) -> Self {
        match error {
            emanet_store::Error::LeaseLost => Self::LeaseLost,
            other => Self::Store(other),
        }
    }
}

/// What a run works with.
#[derive(Debug)]
pub struct Runner<'a> {
    /// The engine's parts.
    pub parts: &'a Parts,
    /// Proof of the claim.
    pub lease: &'a Lease,
    /// The claim while it is worked on.
    pub working: &'a Working,
    /// The step.
    pub step: &'a StepRecord,
    /// Limits of its target.
    pub limits: Limits,
}

impl Runner<'_> {
    /// Runs the step once.
    ///
    /// # Errors
    /// If the claim was lost or the store failed; the open attempt then says that the call may have been applied.
    pub async fn run(&self, party: &Party<'_>) -> Result<Ended, Stopped> {
        let env = &self.parts.env;
        let started_at = env.now();
        let attempt = AttemptId::new(started_at, env.bytes());
        let mut story = Story::default();
        let mut mutated = false;
        let result = loop {
            if story.run.len() >= CALLS_MAX {
                break Err(Failure::internal(
                    "the connector wants to make more calls than a step may",
                ));
            }
            match party.next(&story.run, env.now()) {
                Next::Done(delivered) => break Ok(delivered),
                Next::Fail(failure) => break Err(failure),
                Next::Call(call) => {
                    let call = self.about_to_send(call, attempt).await?;
                    mutated |= call.mutates;
                    let before = env.now();
                    let outcome = self.parts.transport.send(&call).await;
                    story.note(&call, &outcome, before, env.now());
                    match outcome {
                        Outcome::Answered(answer) => story.run.push(Exchange { call, answer }),
                        Outcome::NotSent(why) => {
                            break Err(story.not_less_than_done(classify::not_sent(why)));
                        }
                        Outcome::Unknown(why) => {
                            break Err(story.not_less_than_done(classify::broken(why)));
                        }
                    }
                }
            }
        };
        let result = result.map_err(|failure| {
            if mutated {
                failure
            } else {
                nothing_was_changed(failure)
            }
        });
        let answer = story.run.last().map(|e| printable(&e.answer));
        Ok(Ended {
            attempt,
            started_at,
            result,
            calls: story.calls,
            answer,
        })
    }

    /// Keeps the target's rate, records the intent of a call that changes something, and checks the claim last of all.
    async fn about_to_send(&self, call: Call, attempt: AttemptId) -> Result<Call, Stopped> {
        let env = &self.parts.env;
        let wait = self
            .parts
            .targets
            .pace(self.step.target, self.limits, env.now());
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        let call = if call.mutates {
            self.working.at(Some((self.step.id, true)));
            let request = stored(&call);
            let intent = Intent {
                step: self.step.id,
                attempt,
                now: env.now(),
                call: call.name.clone(),
                request,
            };
            let recorded = self.parts.store.record_intent(self.lease, intent).await?;
            fixed(call, recorded.request)
        } else {
            call
        };
        if self.working.is_good(env.now()) {
            Ok(call)
        } else {
            Err(Stopped::LeaseLost)
        }
    }
}

/// What was asked and answered so far.
#[derive(Debug, Default)]
struct Story {
    run: Vec<Exchange>,
    calls: Vec<CallNote>,
}

impl Story {
    /// A later call that never left says nothing of an earlier one that may have done its work.
    fn not_less_than_done(&self, failure: Failure) -> Failure {
        let acted = self.run.iter().any(|exchange| exchange.call.mutates);
        match failure.effect {
            Effect::NotApplied if acted => Failure {
                effect: Effect::MaybeApplied,
                ..failure
            },
            Effect::NotApplied | Effect::MaybeApplied | Effect::Applied => failure,
        }
    }

    fn note(&mut self, call: &Call, outcome: &Outcome, before: Timestamp, after: Timestamp) {
        let millis = u64::try_from(after.as_millisecond() - before.as_millisecond()).unwrap_or(0);
        let outcome = match outcome {
            Outcome::Answered(answer) if answer.body_state == BodyState::Whole => {
                answer.status.to_string()
            }
            Outcome::Answered(answer) => {
                format!("{}, body {:?}", answer.status, answer.body_state).to_lowercase()
            }
            Outcome::NotSent(why) => format!("not sent: {}", snake(why)),
            Outcome::Unknown(why) => format!("unknown: {}", snake(why)),
        };
        self.calls.push(CallNote {
            name: call.name.clone(),
            request: format!("{} {}", call.method, call.url),
            outcome,
            millis,
        });
    }
}

/// A call that only reads leaves no doubt: whatever happened to it, nothing was changed, and it may be made again.
fn nothing_was_changed(failure: Failure) -> Failure {
    let class = match (failure.class, failure.effect) {
        (Class::Unknown, Effect::MaybeApplied) => Class::Transient,
        (class, _) => class,
    };
    let effect = if failure.effect == Effect::Applied {
        Effect::Applied
    } else {
        Effect::NotApplied
    };
    Failure {
        class,
        effect,
        ..failure
    }
}

fn stored(call: &Call) -> StoredRequest {
    let plain = call.headers.iter().filter_map(|(name, value)| match value {
        HeaderValue::Plain(text) => Some((name.clone(), text.clone())),
        HeaderValue::Secret(_) => None,
    });
    StoredRequest {
        method: call.method,
        url: call.url.clone(),
        headers: plain.collect(),
        body: call.body.clone(),
    }
}

/// The call as it was fixed at its first intent, with today's secrets (invariant 4).
fn fixed(call: Call, request: StoredRequest) -> Call {
    let secrets = call
        .headers
        .into_iter()
        .filter(|(_, value)| matches!(value, HeaderValue::Secret(_)));
    let plain = request
        .headers
        .into_iter()
        .map(|(name, text)| (name, HeaderValue::Plain(text)));
    let headers = plain.chain(secrets).collect();
    Call {
        method: request.method,
        url: request.url,
        headers,
        body: request.body,
        ..call
    }
}

/// The first bytes of an answer as text that any store and terminal takes (H64).
fn printable(answer: &Answer) -> String {
    let bytes = answer.body.get(..ANSWER_KEPT).unwrap_or(&answer.body);
    String::from_utf8_lossy(bytes)
        .chars()
        .map(|c| {
            if c.is_control() && c != '\n' && c != '\t' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

/// The stable name of a serde enum value.
fn snake(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|v| v.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// What a destination is told about a step, owned: the borrowed [`StepInput`] is made from it.
#[derive(Debug)]
pub struct Prepared {
    /// External id of the object.
    pub external_id: String,
    /// Idempotency key.
    pub key: String,
    /// Rendered fields.
    pub fields: std::collections::BTreeMap<String, String>,
    /// Missing fields of the lead.
    pub missing: Vec<String>,
    /// Ids of what earlier steps made in this destination.
    pub links: std::collections::BTreeMap<String, String>,
}

/// Renders what the step's flow says of the lead.
///
/// # Errors
/// A template that cannot be rendered: permanent_config, the flow must be mended.
pub fn prepare(
    event: &EventRecord,
    step: &StepRecord,
    source: &SourceEntry,
    flow: &FlowStep,
) -> Result<Option<Prepared>, Failure> {
    use emanet_core::{key, mapping};
    let lead = event
        .lead
        .as_ref()
        .ok_or_else(|| Failure::internal("the step runs before the lead was read"))?;
    let missing = super::read::missing(lead, source);
    let of_lead = (flow.plan.object != "lead").then_some(step.name.as_str());
    let external_id = key::external_id(source.id, &event.summary.source_ref, of_lead);
    let by_step = event
        .links
        .iter()
        .map(|l| (l.step.clone(), l.id.clone()))
        .collect();
    let context = mapping::Context {
        lead,
        source: &source.name,
        external_id: &external_id,
        missing: &missing,
        links: &by_step,
    };
    let broken = |e: mapping::MappingError| Failure {
        class: Class::PermanentConfig,
        scope: classify::Scope::Lead,
        vendor_code: Some("template".into()),
        field: Some(e.field.clone()),
        message: format!("the template of this step cannot be rendered: {e}"),
        hint: "Correct the template in the flow, apply the configuration, and replay.".into(),
        ..Failure::internal("")
    };
    if !flow.mapping.applies(&context).map_err(broken)? {
        return Ok(None);
    }
    let fields = flow.mapping.render(&context).map_err(broken)?;
    let destination = flow.plan.destination;
    let links = event
        .links
        .iter()
        .filter(|l| l.destination == destination)
        .map(|l| (l.object.clone(), l.id.clone()))
        .collect();
    let key = key::step_key(
        source.id,
        &event.summary.source_ref,
        &step.name,
        step.revision,
    );
    Ok(Some(Prepared {
        external_id,
        key,
        fields,
        missing,
        links,
    }))
}
