//! One claimed event, carried as far as it goes now: read, planned, and step after step.

use super::Parts;
use super::leases::Working;
use super::read::{self, Read};
use super::rule::Ruled;
use super::run::{self, Party, Runner, Stopped};
use super::targets::Slot;
use crate::installation::{FlowStep, Installation, SourceEntry};
use emanet_connectors::connector::{FetchInput, Repeat, StepInput};
use emanet_core::backoff;
use emanet_core::breaker::Gate;
use emanet_core::classify::{self, Class, Effect, Failure};
use emanet_core::ids::Target;
use emanet_core::step::{Delivered, Kind, Ruling, State};
use emanet_store::{
    AttemptRecord, Claim, EventRecord, Finish, NextStep, Plan, Progress, StepRecord,
};
use jiff::Timestamp;
use std::sync::{Arc, OnceLock};

/// Claims of one event that may end without a recorded result; then it is a poison event (design 5).
pub const CLAIMS_MAX: u32 = 3;

/// A claim and all that carrying it needs.
#[derive(Debug)]
pub struct Carrier {
    /// The engine's parts.
    pub parts: Arc<Parts>,
    /// The configuration in force when it was claimed.
    pub installation: Arc<Installation>,
    /// The claim.
    pub claim: Claim,
    /// The claim while it is worked on.
    pub working: Arc<Working>,
    /// Whose closed gate it may go through, and when it was let go.
    pub pass: OnceLock<(Target, Timestamp)>,
}

/// What to do after a step.
#[derive(Debug)]
pub enum After {
    /// The claim is kept: go on with this step.
    GoOn(NextStep),
    /// The claim is kept: the lead's fields are here now, and the lead has to be read before anything else.
    Read,
    /// The event is out of our hands.
    Left,
}

impl From<Progress> for After {
    fn from(progress: Progress) -> Self {
        match progress.next {
            Some(next) if progress.keeps_lease => Self::GoOn(next),
            None if progress.keeps_lease => Self::Read,
            _ => Self::Left,
        }
    }
}

impl Carrier {
    /// Carries the event. `slot` is the one taken at the target it was claimed for.
    ///
    /// # Errors
    /// If the claim was lost or the store failed. Nothing is left half done: what was not recorded is found again.
    pub async fn carry(&self, slot: Slot) -> Result<(), Stopped> {
        let Some(mut next) = self.begin().await? else {
            return Ok(());
        };
        let mut slot = (self.claim.target, slot);
        loop {
            if slot.0 != next.target {
                let limits = self.installation.limits(next.target);
                match self.parts.targets.slot(next.target, limits) {
                    Some(free) => slot = (next.target, free),
                    None => return self.put_back(next.target, self.parts.env.now()).await,
                }
            }
            if self.parts.is_stopping() {
                return self.put_back(next.target, self.parts.env.now()).await;
            }
            match self.step(next).await? {
                After::GoOn(following) => next = following,
                After::Read => match self.begin().await? {
                    Some(following) => next = following,
                    None => return Ok(()),
                },
                After::Left => return Ok(()),
            }
        }
    }

    /// Leaves the event to whoever comes next; nothing is counted.
    async fn put_back(&self, target: Target, run_at: Timestamp) -> Result<(), Stopped> {
        let store = &self.parts.store;
        Ok(store.hand_back(self.claim.lease, target, run_at).await?)
    }

    /// Everything before the first step: poison events, attempts a dead worker left open, reading and planning.
    async fn begin(&self) -> Result<Option<NextStep>, Stopped> {
        let event = self.event().await?;
        if self.claim.claims > CLAIMS_MAX {
            self.bury_event(self.claim.target, poison(), None).await?;
            return Ok(None);
        }
        for attempt in event.attempts.iter().filter(|a| a.ended_at.is_none()) {
            if let After::Left = self.close_interrupted(&event, attempt).await? {
                return Ok(None);
            }
        }
        let Some(source) = self.installation.sources.get(&event.summary.source) else {
            let gone = Target::Source(event.summary.source);
            self.bury_event(gone, not_configured("source"), event.lead)
                .await?;
            return Ok(None);
        };
        if event.request.is_none() && event.lead.is_none() {
            // Erased while it waited: there is nothing to carry.
            self.bury_event(self.claim.target, not_configured("payload"), None)
                .await?;
            return Ok(None);
        }
        let steps = read::plan(source, source.flow.as_deref(), &self.parts.env);
        let lead = if source.connector.needs_fetch()
            && !is_fetched(&event)
            && event.unreadable.is_none()
        {
            None
        } else {
            match self.read(&event, source).await? {
                Some(lead) => Some(lead),
                None => return Ok(None),
            }
        };
        let progress = self
            .parts
            .store
            .plan(
                &self.claim.lease,
                Plan {
                    now: self.parts.env.now(),
                    lead,
                    steps,
                },
            )
            .await?;
        let After::GoOn(next) = After::from(progress) else {
            return Ok(None);
        };
        if self.claim.has_pass {
            // A replay of an event that was dead as a whole comes in by its source, and passes on to the first step.
            let given_at = event.summary.run_at.unwrap_or(self.parts.env.now());
            self.pass.get_or_init(|| (next.target, given_at));
        }
        Ok(Some(next))
    }

    /// Reads the lead, or ends the event if there is nothing to deliver. A lead that steps already worked with stays as it is.
    async fn read(
        &self,
        event: &EventRecord,
        source: &SourceEntry,
    ) -> Result<Option<emanet_core::lead::Lead>, Stopped> {
        let in_use = event
            .steps
            .iter()
            .any(|s| s.kind != Kind::Fetch && (s.state == State::Done || !s.requests.is_empty()));
        if let Some(lead) = event.lead.as_ref().filter(|_| in_use) {
            return Ok(Some(lead.clone()));
        }
        match read::read(event, source) {
            Read::Lead(lead) => Ok(Some(lead)),
            Read::Ignore(reason, lead) => {
                let finish = Finish::Ignored {
                    reason: reason.into(),
                    lead: Some(lead),
                };
                self.parts
                    .store
                    .finish_event(&self.claim.lease, finish, self.parts.env.now())
                    .await?;
                self.parts.metrics.event_ignored();
                Ok(None)
            }
            Read::Dead(failure, lead) => {
                self.bury_event(self.claim.target, failure, lead).await?;
                Ok(None)
            }
        }
    }

    /// One step: gate, run, ruling. A step that is configured no longer has no gate to wait at: nobody would ever open it.
    async fn step(&self, next: NextStep) -> Result<After, Stopped> {
        let event = self.event().await?;
        let Some(step) = event.steps.iter().find(|s| s.id == next.step) else {
            return Err(Stopped::Store(emanet_store::Error::Corrupt(
                "a step that is next does not exist".into(),
            )));
        };
        let Some(source) = self.installation.sources.get(&event.summary.source) else {
            return self.give_up(step, not_configured("source")).await;
        };
        let delivery = match step.target {
            Target::Source(_) => None,
            Target::Destination(id) => {
                let destination = self.installation.destinations.get(&id);
                let Some(delivery) = destination.zip(flow_step(source, step)) else {
                    return self
                        .give_up(step, not_configured("destination or step"))
                        .await;
                };
                Some(delivery)
            }
        };
        let now = self.parts.env.now();
        let gate = self
            .parts
            .targets
            .gate(step.target, self.has_pass(step.target), now);
        if let Gate::Hold(cause) = gate {
            return self
                .record(
                    step,
                    self.empty_run(),
                    Ruled {
                        ruling: Ruling::Hold {
                            cause,
                            failure: None,
                        },
                        counts: false,
                    },
                )
                .await;
        }
        self.working.at(Some((step.id, false)));
        let after = match delivery {
            None => self.fetch(&event, step, source).await,
            Some((destination, flow)) => {
                self.deliver(&event, step, source, destination.connector.as_ref(), flow)
                    .await
            }
        };
        self.working.at(None);
        after
    }

    async fn fetch(
        &self,
        event: &EventRecord,
        step: &StepRecord,
        source: &SourceEntry,
    ) -> Result<After, Stopped> {
        let Some(request) = &event.request else {
            return self.give_up(step, not_configured("payload")).await;
        };
        let input = FetchInput {
            request,
            pointer: &event.pointer,
            source_ref: &event.summary.source_ref,
        };
        let policy = backoff::Policy::default();
        let after = self
            .run(step, &Party::Source { source, input }, &policy)
            .await?;
        Ok(match after {
            // The fields are here now: the lead is read before the steps that need it.
            After::GoOn(next) if next.step != step.id => After::Read,
            other => other,
        })
    }

    async fn deliver(
        &self,
        event: &EventRecord,
        step: &StepRecord,
        source: &SourceEntry,
        connector: &dyn emanet_connectors::connector::Destination,
        flow: &FlowStep,
    ) -> Result<After, Stopped> {
        let skip = |reason: &str| Ruled {
            ruling: Ruling::Skip {
                reason: reason.into(),
            },
            counts: false,
        };
        let prepared = match run::prepare(event, step, source, flow) {
            Ok(Some(prepared)) => prepared,
            Ok(None) => return self.record(step, self.empty_run(), skip("condition")).await,
            Err(failure) => return self.give_up(step, failure).await,
        };
        if flow.plan.kind == Kind::CheckTask && prepared.missing.is_empty() {
            return self.record(step, self.empty_run(), skip("complete")).await;
        }
        if let Some(link) = event
            .links
            .iter()
            .find(|l| l.destination == flow.plan.destination && l.step == step.name)
        {
            // ID-3: a link that exists ends the step.
            let delivered = Delivered {
                object: Some(link.object.clone()),
                id: Some(link.id.clone()),
                how: "linked".into(),
                data: serde_json::Value::Null,
            };
            return self
                .record(
                    step,
                    self.empty_run(),
                    Ruled {
                        ruling: Ruling::Done(delivered),
                        counts: false,
                    },
                )
                .await;
        }
        let rested_at = rested_at(event, step, connector.repeat(&flow.plan.object));
        if rested_at > self.parts.env.now() {
            self.put_back(step.target, rested_at).await?;
            return Ok(After::Left);
        }
        let Some(lead) = &event.lead else {
            return self
                .give_up(
                    step,
                    Failure::internal("the step runs before the lead was read"),
                )
                .await;
        };
        let input = StepInput {
            object: &flow.plan.object,
            external_id: &prepared.external_id,
            key: &prepared.key,
            lead,
            fields: &prepared.fields,
            missing: &prepared.missing,
            links: &prepared.links,
            maybe_applied: step.maybe_applied,
        };
        self.run(
            step,
            &Party::Destination { connector, input },
            &flow.plan.retry,
        )
        .await
    }

    /// Runs the step and carries out what follows from its result.
    async fn run(
        &self,
        step: &StepRecord,
        party: &Party<'_>,
        policy: &backoff::Policy,
    ) -> Result<After, Stopped> {
        let limits = self.installation.limits(step.target);
        let runner = Runner {
            parts: &self.parts,
            lease: &self.claim.lease,
            working: &self.working,
            step,
            limits,
        };
        let mut ended = runner.run(party).await?;
        let result = std::mem::replace(&mut ended.result, Err(Failure::internal("taken")));
        match result {
            Ok(delivered) => {
                let after = self
                    .record(
                        step,
                        ended,
                        Ruled {
                            ruling: Ruling::Done(delivered),
                            counts: true,
                        },
                    )
                    .await?;
                self.parts
                    .succeeded(
                        &self.installation,
                        self.claim.lease.workspace,
                        step.target,
                        self.has_pass(step.target),
                    )
                    .await?;
                Ok(after)
            }
            Err(failure) => {
                let safe = party.repeat_is_safe();
                let ruled = self.rule(step, failure, safe, policy).await?;
                self.record(step, ended, ruled).await
            }
        }
    }

    /// Whether the event may go through a closed gate of the target: only of the one its first step is for, and only if it was
    /// closed when the event was let go.
    pub(super) fn has_pass(&self, target: Target) -> bool {
        self.pass.get().is_some_and(|(to, given_at)| {
            *to == target && self.parts.targets.state(target).honours_pass_of(*given_at)
        })
    }

    pub(super) async fn event(&self) -> Result<EventRecord, Stopped> {
        Ok(self
            .parts
            .store
            .event(self.claim.lease.workspace, self.claim.lease.event)
            .await?)
    }
}

/// When a look-up can be believed again: an attempt that may have been applied has had time to show (F38, ID-2).
fn rested_at(event: &EventRecord, step: &StepRecord, repeat: Repeat) -> Timestamp {
    let is_doubtful = |attempt: &&AttemptRecord| {
        let failure = attempt.outcome.as_ref().and_then(|o| o.failure.as_ref());
        failure.is_none_or(|f| f.effect != Effect::NotApplied)
    };
    let of_step = event
        .attempts
        .iter()
        .filter(|a| a.step == step.id && a.revision == step.revision);
    let last = of_step
        .filter(is_doubtful)
        .map(|a| a.ended_at.unwrap_or(a.started_at))
        .max();
    match last.filter(|_| step.maybe_applied) {
        Some(at) => at.saturating_add(repeat.rest()).unwrap_or(Timestamp::MAX),
        None => Timestamp::MIN,
    }
}

fn is_fetched(event: &EventRecord) -> bool {
    event
        .steps
        .iter()
        .any(|s| s.kind == Kind::Fetch && s.state == State::Done)
}

fn flow_step<'a>(source: &'a SourceEntry, step: &StepRecord) -> Option<&'a FlowStep> {
    source.flow.as_ref()?.steps.iter().find(|f| {
        f.plan.name == step.name && Target::Destination(f.plan.destination) == step.target
    })
}

fn poison() -> Failure {
    Failure {
        hint: format!(
            "The program died {CLAIMS_MAX} times while it worked on this lead; it is set aside so that the others go on. Please report it."
        ),
        ..Failure::internal("the lead brought its worker down again and again")
    }
}

fn not_configured(what: &str) -> Failure {
    Failure {
        class: Class::PermanentConfig,
        scope: classify::Scope::Lead,
        vendor_code: Some(format!("no_{}", what.replace(' ', "_"))),
        hint: format!(
            "The {what} this lead needs is not in the configuration any more. Put it back (or correct the flow), apply, and replay."
        ),
        ..Failure::internal(format!("the {what} is gone"))
    }
}
