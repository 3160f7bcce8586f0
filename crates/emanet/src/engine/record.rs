//! What becomes of a run is recorded here: the target's breaker, the ruling, the alert, the log line; one place for each end.

use super::carry::{After, Carrier};
use super::rule::{self, Facts, Ruled};
use super::run::{Ended, Stopped};
use super::targets::Transition;
use emanet_core::backoff;
use emanet_core::breaker::Caller;
use emanet_core::call::Broken;
use emanet_core::cause;
use emanet_core::classify::{self, Class, Failure};
use emanet_core::ids::{AlertId, AttemptId, DeadLetterId, Target};
use emanet_core::lead::Lead;
use emanet_core::step::{Kind, Ruling};
use emanet_store::{AttemptRecord, EventRecord, Finish, NewAlert, RunResult, StepRecord};

impl Carrier {
    /// Takes a failure to the target's breaker and decides what follows.
    pub(super) async fn rule(
        &self,
        step: &StepRecord,
        failure: Failure,
        repeat_is_safe: bool,
        policy: &backoff::Policy,
    ) -> Result<Ruled, Stopped> {
        let env = &self.parts.env;
        let cause = cause::fingerprint(step.target, step.kind, &failure);
        let transition = self.note_failure(step, &failure, &cause).await?;
        let state = self.parts.targets.state(step.target);
        let facts = Facts {
            attempts: step.attempts.saturating_add(1),
            policy,
            repeat_is_safe,
            target_is_open: transition.is_open,
            target_was_open: transition.was_open,
            cause: &cause,
            held_under: state.cause().unwrap_or(&cause),
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
        let caller = Caller {
            lead: &self.claim.lease.event.to_string(),
            has_pass: self.has_pass(step.target),
        };
        let transition = self
            .parts
            .targets
            .failed(workspace, step.target, failure, cause, caller, now)
            .await?;
        self.parts.metrics.step_failed(step.kind, failure.class);
        let target = self.installation.target_name(step.target);
        if transition.opened() {
            tracing::warn!(target.name = %target, error.class = ?failure.class, cause, "target paused; leads for it are held");
            self.parts.wake_scheduler.notify_one();
        }
        if let Some(reopened) = transition.reopened.clone() {
            self.parts
                .works_again(&self.installation, workspace, step.target, reopened)
                .await?;
        }
        self.call_for_help(step.target, failure, cause).await?;
        Ok(transition)
    }

    /// Alerts a person, once per cause, to what only a person can mend (DL-3), and to a Retry-After that is absurd (ERR-4).
    async fn call_for_help(
        &self,
        target: Target,
        failure: &Failure,
        cause: &str,
    ) -> Result<(), Stopped> {
        let clamped = failure.retry_after.is_some_and(|r| r.clamped);
        if failure.class != Class::PermanentConfig && !clamped {
            return Ok(());
        }
        let hint = if clamped {
            "The Retry-After it sent was absurd and was clamped to 24 hours at most; look at the other side."
        } else {
            &failure.hint
        };
        let name = self.installation.target_name(target);
        let now = self.parts.env.now();
        let alert = NewAlert {
            workspace: self.claim.lease.workspace,
            id: AlertId::new(now, self.parts.env.bytes()),
            cause: cause.to_owned(),
            class: Some(failure.class),
            target: Some(target),
            message: format!("{name}: {}", failure.message),
            hint: hint.to_owned(),
            now,
        };
        let (alert, is_new) = self.parts.store.raise_alert(alert).await?;
        if is_new {
            tracing::error!(alert.id = %alert.id, target.name = %name, cause, hint = %alert.hint, "a person is needed: {}", alert.message);
        }
        Ok(())
    }

    /// An attempt that a worker left open when it died: the call may have been applied (WRK-2).
    pub(super) async fn close_interrupted(
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
            held_under: &cause,
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
            return self.bury_event(self.claim.target, failure, None).await;
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
            After::Read | After::Left => Ok(()),
        }
    }

    /// Gives a step up without a call.
    pub(super) async fn give_up(
        &self,
        step: &StepRecord,
        failure: Failure,
    ) -> Result<After, Stopped> {
        let cause = cause::fingerprint(step.target, step.kind, &failure);
        self.call_for_help(step.target, &failure, &cause).await?;
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

    /// Gives the event up as a whole. `target` is what stands in the way.
    pub(super) async fn bury_event(
        &self,
        target: Target,
        failure: Failure,
        lead: Option<Lead>,
    ) -> Result<(), Stopped> {
        let now = self.parts.env.now();
        let cause = cause::fingerprint(target, Kind::Fetch, &failure);
        self.call_for_help(target, &failure, &cause).await?;
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

    pub(super) async fn record(
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

    pub(super) fn empty_run(&self) -> Ended {
        let now = self.parts.env.now();
        Ended {
            attempt: AttemptId::new(now, self.parts.env.bytes()),
            started_at: now,
            result: Err(Failure::internal("no call was made")),
            calls: Vec::new(),
            answer: None,
        }
    }
}
