//! One claimed event, carried as far as it goes now: read, planned, and step after step.

use super::Parts;
use super::leases::Working;
use super::read::{self, Read};
use super::rule::{self, Facts, Ruled};
use super::run::{self, Ended, Party, Runner, Stopped};
use super::targets::{Slot, Transition};
use crate::installation::{FlowStep, Installation, SourceEntry};
use emanet_connectors::connector::{FetchInput, StepInput};
use emanet_core::backoff;
use emanet_core::breaker::Gate;
use emanet_core::call::Broken;
use emanet_core::cause;
use emanet_core::classify::{self, Class, Failure};
use emanet_core::ids::{AlertId, AttemptId, DeadLetterId, Target};
use emanet_core::step::{Delivered, Kind, Ruling, State};
use emanet_store::{
    AttemptRecord, Claim, EventRecord, Finish, NewAlert, NextStep, Plan, Progress, RunResult,
    StepRecord,
};
use std::sync::Arc;

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
}

/// What to do after a step.
enum After {
    /// The claim is kept: go on with this step.
    GoOn(NextStep),
    /// The event is out of our hands.
    Left,
}

impl From<Progress> for After {
    fn from(progress: Progress) -> Self {
        match progress.next {
            Some(next) if progress.keeps_lease => Self::GoOn(next),
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
                match self
                    .parts
                    .targets
                    .slot(next.target, self.installation.limits(next.target))
                {
                    Some(free) => slot = (next.target, free),
                    None => {
                        return Ok(self
                            .parts
                            .store
                            .hand_back(self.claim.lease, next.target, self.parts.env.now())
                            .await?);
                    }
                }
            }
            if self.parts.is_stopping() {
                return Ok(self
                    .parts
                    .store
                    .hand_back(self.claim.lease, next.target, self.parts.env.now())
                    .await?);
            }
            match self.step(next).await? {
                After::GoOn(following) => next = following,
                After::Left => return Ok(()),
            }
        }
    }

    /// Everything before the first step: poison events, attempts a dead worker left open, reading and planning.
    async fn begin(&self) -> Result<Option<NextStep>, Stopped> {
        let event = self.event().await?;
        if self.claim.claims > CLAIMS_MAX {
            self.bury_event(poison(), None).await?;
            return Ok(None);
        }
        for attempt in event.attempts.iter().filter(|a| a.ended_at.is_none()) {
            if let After::Left = self.close_interrupted(&event, attempt).await? {
                return Ok(None);
            }
        }
        let Some(source) = self.installation.sources.get(&event.summary.source) else {
            self.bury_event(not_configured("source"), event.lead)
                .await?;
            return Ok(None);
        };
        if event.request.is_none() && event.lead.is_none() {
            // Erased while it waited: there is nothing to carry.
            self.bury_event(not_configured("payload"), None).await?;
            return Ok(None);
        }
        let steps = read::plan(source, source.flow.as_deref(), &self.parts.env);
        let lead = if source.connector.needs_fetch() && !is_fetched(&event) {
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
        Ok(match After::from(progress) {
            After::GoOn(next) => Some(next),
            After::Left => None,
        })
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
                self.bury_event(failure, lead).await?;
                Ok(None)
            }
        }
    }

    /// One step: gate, run, ruling.
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
        if let Gate::Hold(cause) = self.parts.targets.gate(step.target, self.claim.has_pass) {
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
        let after = match step.target {
            Target::Source(_) => self.fetch(&event, step, source).await,
            Target::Destination(id) => match (
                self.installation.destinations.get(&id),
                flow_step(source, step),
            ) {
                (Some(destination), Some(flow)) => {
                    self.deliver(&event, step, source, destination.connector.as_ref(), flow)
                        .await
                }
                _ => {
                    self.give_up(step, not_configured("destination or step"))
                        .await
                }
            },
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
        let After::GoOn(next) = after else {
            return Ok(After::Left);
        };
        // The fields are here now: read the lead before the steps that need it.
        let event = self.event().await?;
        let Some(lead) = self.read(&event, source).await? else {
            return Ok(After::Left);
        };
        let plan = Plan {
            now: self.parts.env.now(),
            lead: Some(lead),
            steps: Vec::new(),
        };
        self.parts.store.plan(&self.claim.lease, plan).await?;
        Ok(After::GoOn(next))
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
                    .succeeded(&self.installation, self.claim.lease.workspace, step.target)
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

    /// Takes a failure to the target's breaker and decides what follows.
    async fn rule(
        &self,
        step: &StepRecord,
        failure: Failure,
        repeat_is_safe: bool,
        policy: &backoff::Policy,
    ) -> Result<Ruled, Stopped> {
        let env = &self.parts.env;
        let cause = cause::fingerprint(step.target, step.kind, &failure);
        let transition = self.note_failure(step, &failure, &cause).await?;
        let cause = self
            .parts
            .targets
            .state(step.target)
            .cause()
            .map_or(cause, str::to_owned);
        let facts = Facts {
            attempts: step.attempts.saturating_add(1),
            policy,
            repeat_is_safe,
            target_is_open: transition.is_open,
            target_was_open: transition.was_open,
            cause: &cause,
            random: [env.unit(), env.unit()],
            now: env.now(),
        };
        Ok(rule::rule(failure, &facts))
    }

    async fn note_failure(
        &self,
        step: &StepRecord,
        failure: &Failure,
        cause: &str,
    ) -> Result<Transition, Stopped> {
        let workspace = self.claim.lease.workspace;
        let now = self.parts.env.now();
        let lead = self.claim.lease.event.to_string();
        let transition = self
            .parts
            .targets
            .failed(workspace, step.target, failure, cause, &lead, now)
            .await?;
        self.parts.metrics.step_failed(step.kind, failure.class);
        let target = self.installation.target_name(step.target);
        if transition.opened() {
            tracing::warn!(target.name = %target, error.class = ?failure.class, cause, "target paused; leads for it are held");
            self.parts.wake_scheduler.notify_one();
        }
        let clamped = failure.retry_after.is_some_and(|r| r.clamped);
        if failure.class == Class::PermanentConfig || clamped {
            let hint = if clamped {
                "The Retry-After it sent was absurd and was clamped to 24 hours at most; look at the other side."
            } else {
                &failure.hint
            };
            let alert = NewAlert {
                workspace,
                id: AlertId::new(now, self.parts.env.bytes()),
                cause: cause.to_owned(),
                class: Some(failure.class),
                target: Some(step.target),
                message: format!("{target}: {}", failure.message),
                hint: hint.to_owned(),
                now,
            };
            let (alert, is_new) = self.parts.store.raise_alert(alert).await?;
            if is_new {
                tracing::error!(alert.id = %alert.id, target.name = %target, cause, hint = %alert.hint, "a person is needed: {}", alert.message);
            }
        }
        Ok(transition)
    }

    /// An attempt that a worker left open when it died: the call may have been applied (WRK-2).
    async fn close_interrupted(
        &self,
        event: &EventRecord,
        attempt: &AttemptRecord,
    ) -> Result<After, Stopped> {
        let Some(step) = event.steps.iter().find(|s| s.id == attempt.step) else {
            return Err(Stopped::Store(emanet_store::Error::Corrupt(
                "an attempt whose step does not exist".into(),
            )));
        };
        let failure = classify::broken(Broken::Interrupted);
        self.record_unknown(step, failure, Some(attempt.id)).await
    }

    /// Ends a run whose worker died or panicked, without blaming the target.
    async fn record_unknown(
        &self,
        step: &StepRecord,
        failure: Failure,
        attempt: Option<AttemptId>,
    ) -> Result<After, Stopped> {
        let env = &self.parts.env;
        let safe = match step.target {
            Target::Source(_) => true,
            Target::Destination(id) => self
                .installation
                .destinations
                .get(&id)
                .is_some_and(|d| d.connector.repeat(&step.object).is_safe()),
        };
        let cause = cause::fingerprint(step.target, step.kind, &failure);
        let facts = Facts {
            // The intent counted it already.
            attempts: step.attempts,
            policy: &backoff::Policy::default(),
            repeat_is_safe: safe,
            target_is_open: false,
            target_was_open: false,
            cause: &cause,
            random: [0.0, 0.0],
            now: env.now(),
        };
        let ruled = rule::rule(failure, &facts);
        let mut ended = self.empty_run();
        ended.attempt = attempt.unwrap_or(ended.attempt);
        self.record(step, ended, ruled).await
    }

    /// After a panic while the event was carried (WRK-3): class unknown, and nobody else is affected.
    pub async fn after_panic(&self) -> Result<(), Stopped> {
        let failure = Failure::internal(
            "Emanet itself failed on this lead (a panic); the other leads are not affected",
        );
        let Some((id, may_have_sent)) = self.working.step() else {
            return self.bury_event(failure, None).await;
        };
        let event = self.event().await?;
        let Some(step) = event.steps.iter().find(|s| s.id == id) else {
            return Ok(());
        };
        let open = event
            .attempts
            .iter()
            .find(|a| a.step == id && a.ended_at.is_none())
            .map(|a| a.id);
        let failure = if may_have_sent {
            classify::broken(Broken::Interrupted)
        } else {
            failure
        };
        match self.record_unknown(step, failure, open).await? {
            After::GoOn(next) => Ok(self
                .parts
                .store
                .hand_back(self.claim.lease, next.target, next.run_at)
                .await?),
            After::Left => Ok(()),
        }
    }

    /// Gives a step up without a call.
    async fn give_up(&self, step: &StepRecord, failure: Failure) -> Result<After, Stopped> {
        let cause = cause::fingerprint(step.target, step.kind, &failure);
        self.record(
            step,
            self.empty_run(),
            Ruled {
                ruling: Ruling::Bury { failure, cause },
                counts: false,
            },
        )
        .await
    }

    async fn bury_event(
        &self,
        failure: Failure,
        lead: Option<emanet_core::lead::Lead>,
    ) -> Result<(), Stopped> {
        let now = self.parts.env.now();
        let cause = cause::fingerprint(self.claim.target, Kind::Fetch, &failure);
        tracing::warn!(event.id = %self.claim.lease.event, error.class = ?failure.class, cause, "event dead-lettered: {}", failure.message);
        let dead_letter = DeadLetterId::new(now, self.parts.env.bytes());
        let finish = Finish::Dead {
            failure,
            cause,
            dead_letter,
            lead,
        };
        self.parts.metrics.event_buried();
        Ok(self
            .parts
            .store
            .finish_event(&self.claim.lease, finish, now)
            .await?)
    }

    async fn record(
        &self,
        step: &StepRecord,
        ended: Ended,
        ruled: Ruled,
    ) -> Result<After, Stopped> {
        let env = &self.parts.env;
        let now = env.now();
        self.tell(step, &ruled.ruling);
        let result = RunResult {
            step: step.id,
            attempt: ended.attempt,
            started_at: ended.started_at,
            now,
            ruling: ruled.ruling,
            counts: ruled.counts,
            calls: ended.calls,
            answer: ended.answer,
            dead_letter: DeadLetterId::new(now, env.bytes()),
        };
        Ok(self
            .parts
            .store
            .record_result(&self.claim.lease, result)
            .await?
            .into())
    }

    /// Logs and counts what became of a step; no lead data.
    fn tell(&self, step: &StepRecord, ruling: &Ruling) {
        let target = self.installation.target_name(step.target);
        let event = self.claim.lease.event;
        self.parts.metrics.step_ruled(step.kind, ruling);
        match ruling {
            Ruling::Done(delivered) => {
                tracing::info!(event.id = %event, step.id = %step.id, step.name, target.name = %target, how = delivered.how, "step done");
            }
            Ruling::Skip { reason } => {
                tracing::debug!(event.id = %event, step.id = %step.id, step.name, reason, "step skipped")
            }
            Ruling::Retry { at, failure } => {
                tracing::info!(event.id = %event, step.id = %step.id, step.name, target.name = %target, error.class = ?failure.class, error.effect = ?failure.effect, next_at = %at, "step failed, will be tried again");
            }
            Ruling::Hold { cause, .. } => {
                tracing::debug!(event.id = %event, step.id = %step.id, step.name, target.name = %target, cause, "step held")
            }
            Ruling::Bury { failure, cause } => {
                tracing::warn!(event.id = %event, step.id = %step.id, step.name, target.name = %target, error.class = ?failure.class, error.effect = ?failure.effect, cause, "step dead-lettered");
            }
        }
    }

    fn empty_run(&self) -> Ended {
        let now = self.parts.env.now();
        Ended {
            attempt: AttemptId::new(now, self.parts.env.bytes()),
            started_at: now,
            result: Err(Failure::internal("no call was made")),
            calls: Vec::new(),
            answer: None,
        }
    }

    async fn event(&self) -> Result<EventRecord, Stopped> {
        Ok(self
            .parts
            .store
            .event(self.claim.lease.workspace, self.claim.lease.event)
            .await?)
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
