//! The state of a target: may it be called now? (RET-4, design 5.) Pure: results and times go in, the next state comes out.
//!
//! A target that is down, throttled or set up wrong is *open*: leads for it are held and burn no attempts. One held lead at a
//! time is let through as a probe; when it succeeds the target closes and the held leads drain, two for every success, so that
//! the flow grows only as fast as the other side answers.
//!
//! A lead gets to an open target only with a *pass*: it is a probe, or part of a replay. When a call comes back that the gate
//! would hold by now, it was on its way before; it tells nothing about now, so it neither closes the target nor changes what
//! that is open for. Only a wish to be left alone (Retry-After) counts from whomever it comes.

use crate::classify::{Class, Effect, Failure, Scope};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Why a target is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It does not answer, or answers that it cannot.
    Down,
    /// It asked to be left alone until a time (Retry-After).
    Throttled,
    /// It is set up wrong; somebody must act.
    Config,
}

/// State of a target, as stored and shared by all workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum State {
    /// Calls go through.
    Closed {
        /// Failures in a row, across leads.
        failures: u32,
        /// A configuration cause that so far may hang on single leads' values.
        suspect: Option<Suspect>,
    },
    /// No calls but those with a pass.
    Open {
        /// Why.
        reason: Reason,
        /// Fingerprint of the failure that opened it.
        cause: String,
        /// Since when.
        since: Timestamp,
        /// When the next probe may go.
        probe_at: Timestamp,
        /// Probes let through so far.
        probes: u32,
        /// No call before this time, with a pass or without: the other side said so (ERR-4).
        not_before: Option<Timestamp>,
    },
}

/// A lead-scoped configuration cause, and the different leads that met it in a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspect {
    /// Its fingerprint.
    pub cause: String,
    /// The leads, by id.
    pub leads: Vec<String>,
}

impl Default for State {
    fn default() -> Self {
        Self::Closed {
            failures: 0,
            suspect: None,
        }
    }
}

/// Figures of the breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Failures in a row that open it, where the other side was reached. One that was never reached opens it at once.
    pub failures_max: u32,
    /// Different leads that must meet a lead-scoped configuration cause before the target pauses (design 5).
    pub config_leads_max: usize,
    /// First probe after this long; doubles up to `probe_max`.
    pub probe_min: Duration,
    /// Longest wait between probes of a target that is down.
    pub probe_max: Duration,
    /// Wait between probes of a target that is set up wrong.
    pub config_probe: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            failures_max: 3,
            config_leads_max: 3,
            probe_min: Duration::from_secs(1),
            probe_max: Duration::from_secs(60),
            config_probe: Duration::from_secs(300),
        }
    }
}

impl Policy {
    /// Wait before the next probe, so many having been let through.
    fn probe_wait(&self, reason: Reason, probes: u32) -> Duration {
        match reason {
            Reason::Config => self.config_probe,
            Reason::Down | Reason::Throttled => self
                .probe_min
                .saturating_mul(1 << probes.min(16))
                .min(self.probe_max),
        }
    }
}

/// What the gate says to a lead that wants to call the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Go on.
    Pass,
    /// Wait under this cause.
    Hold(String),
}

/// The lead whose call it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller<'a> {
    /// The lead, by id.
    pub lead: &'a str,
    /// It was released as a probe or by a replay.
    pub has_pass: bool,
}

/// What a failure tells of the target.
enum Verdict {
    /// It does not do its work, or wants to be left alone.
    Down,
    /// It is set up wrong for everyone.
    Config,
    /// It is set up wrong, or only this lead's value points at nothing.
    Suspect,
    /// It answers and understands; the lead's data is what it minds.
    Works,
    /// Nothing.
    Silent,
}

impl State {
    /// May a lead call the target? `has_pass`: it was released as a probe or by a replay.
    pub fn gate(&self, has_pass: bool, now: Timestamp) -> Gate {
        match self {
            Self::Open { cause, .. } if self.holds(has_pass, now) => Gate::Hold(cause.clone()),
            Self::Open { .. } | Self::Closed { .. } => Gate::Pass,
        }
    }

    /// Whether the target is open.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }

    /// The fingerprint it is open under.
    pub fn cause(&self) -> Option<&str> {
        match self {
            Self::Open { cause, .. } => Some(cause),
            Self::Closed { .. } => None,
        }
    }

    /// Whether a pass given at that time is good: not if the target opened after it. A replay gives passes to a whole stage; when
    /// the target goes down in the middle of it, the rest must wait like everybody else and not call it one by one (RET-4).
    pub fn honours_pass_of(&self, given_at: Timestamp) -> bool {
        match self {
            Self::Open { since, .. } => *since <= given_at,
            Self::Closed { .. } => true,
        }
    }

    /// Whether the other side asked to be left alone until a time that has not come yet: a pass is no use (ERR-4).
    pub fn is_left_alone(&self, now: Timestamp) -> bool {
        matches!(self, Self::Open { not_before: Some(until), .. } if now < *until)
    }

    /// Whether a probe is due.
    pub fn probe_due(&self, now: Timestamp) -> bool {
        matches!(self, Self::Open { probe_at, .. } if *probe_at <= now)
    }

    /// The state once a probe was let through: the next one waits its turn, whatever becomes of this one.
    pub fn probing(mut self, now: Timestamp, policy: &Policy) -> Self {
        if let Self::Open {
            reason,
            probe_at,
            probes,
            ..
        } = &mut self
        {
            *probes = probes.saturating_add(1);
            *probe_at = (*probe_at).max(later(now, policy.probe_wait(*reason, *probes)));
        }
        self
    }

    /// The state after a call succeeded; `has_pass` as the lead had it at the gate.
    pub fn succeeded(&self, has_pass: bool, now: Timestamp) -> Self {
        if self.holds(has_pass, now) {
            self.clone()
        } else {
            Self::default()
        }
    }

    /// The state after a call failed. `cause` is the failure's fingerprint.
    pub fn failed(
        &self,
        failure: &Failure,
        cause: &str,
        caller: Caller<'_>,
        now: Timestamp,
        policy: &Policy,
    ) -> Self {
        let next = match self {
            Self::Open { .. } if self.holds(caller.has_pass, now) => self.clone(),
            Self::Open { .. } => self.failed_with_pass(failure, cause, caller.lead, now, policy),
            Self::Closed { failures, suspect } => match verdict(failure) {
                Verdict::Down if opens_at_once(failure) || failures + 1 >= policy.failures_max => {
                    Self::open(reason_down(failure), cause, now, policy)
                }
                Verdict::Down => Self::Closed {
                    failures: failures + 1,
                    suspect: suspect.clone(),
                },
                Verdict::Config => Self::open(Reason::Config, cause, now, policy),
                Verdict::Suspect => {
                    Self::suspected(suspect.as_ref(), cause, caller.lead, now, policy)
                }
                Verdict::Works => Self::Closed {
                    failures: 0,
                    suspect: suspect.clone(),
                },
                Verdict::Silent => self.clone(),
            },
        };
        next.left_alone_until(wish(failure).map(|wait| later(now, wait)))
    }

    /// A probe, or a lead of a replay, met an open target and failed.
    fn failed_with_pass(
        &self,
        failure: &Failure,
        cause: &str,
        lead: &str,
        now: Timestamp,
        policy: &Policy,
    ) -> Self {
        let is_same_cause = self.cause() == Some(cause);
        let is_config = matches!(
            self,
            Self::Open {
                reason: Reason::Config,
                ..
            }
        );
        match verdict(failure) {
            // It is back: what stands in the way now is this lead's data, or a set-up that was not reached before.
            Verdict::Works => Self::default(),
            Verdict::Config if !is_same_cause => Self::open(Reason::Config, cause, now, policy),
            Verdict::Suspect if !is_same_cause => Self::suspected(None, cause, lead, now, policy),
            // A target that is set up wrong stays so until a call gets past that; being down as well is no news of it.
            Verdict::Down if !is_config => self.with_reason(reason_down(failure)),
            Verdict::Config | Verdict::Suspect | Verdict::Down | Verdict::Silent => self.clone(),
        }
    }

    fn holds(&self, has_pass: bool, now: Timestamp) -> bool {
        self.is_open() && (!has_pass || self.is_left_alone(now))
    }

    fn open(reason: Reason, cause: &str, now: Timestamp, policy: &Policy) -> Self {
        Self::Open {
            reason,
            cause: cause.into(),
            since: now,
            probe_at: later(now, policy.probe_wait(reason, 0)),
            probes: 0,
            not_before: None,
        }
    }

    /// Another lead met a lead-scoped configuration cause: when enough have, the target is what is set up wrong.
    fn suspected(
        before: Option<&Suspect>,
        cause: &str,
        lead: &str,
        now: Timestamp,
        policy: &Policy,
    ) -> Self {
        let mut leads = match before {
            Some(suspect) if suspect.cause == cause => suspect.leads.clone(),
            Some(_) | None => Vec::new(),
        };
        if !leads.iter().any(|l| l == lead) {
            leads.push(lead.into());
        }
        if leads.len() >= policy.config_leads_max {
            return Self::open(Reason::Config, cause, now, policy);
        }
        Self::Closed {
            failures: 0,
            suspect: Some(Suspect {
                cause: cause.into(),
                leads,
            }),
        }
    }

    fn with_reason(&self, now_because: Reason) -> Self {
        let mut next = self.clone();
        if let Self::Open { reason, .. } = &mut next {
            *reason = now_because;
        }
        next
    }

    /// Puts off whatever comes next, never brings it forward.
    fn left_alone_until(mut self, until: Option<Timestamp>) -> Self {
        if let Self::Open {
            probe_at,
            not_before,
            ..
        } = &mut self
        {
            *not_before = (*not_before).max(until);
            *probe_at = until.map_or(*probe_at, |t| t.max(*probe_at));
        }
        self
    }
}

fn verdict(failure: &Failure) -> Verdict {
    match (failure.class, failure.effect, failure.scope) {
        (Class::Transient, _, _) | (Class::Unknown, Effect::MaybeApplied, _) => Verdict::Down,
        (Class::PermanentConfig, _, Scope::Target) => Verdict::Config,
        (Class::PermanentConfig, _, Scope::Lead) => Verdict::Suspect,
        (Class::PermanentData, _, _) => Verdict::Works,
        (Class::Unknown, Effect::NotApplied | Effect::Applied, _) => Verdict::Silent,
    }
}

/// How long the other side asks to be left alone. Zero is no wish (H21).
fn wish(failure: &Failure) -> Option<Duration> {
    failure.retry_after.map(|r| r.wait).filter(|w| !w.is_zero())
}

/// It was never reached, or it asks to be left alone: the next lead would fare no better.
fn opens_at_once(failure: &Failure) -> bool {
    let is_reached = failure.status.is_some() || failure.effect != Effect::NotApplied;
    !is_reached || wish(failure).is_some()
}

fn reason_down(failure: &Failure) -> Reason {
    match wish(failure) {
        Some(_) => Reason::Throttled,
        None => Reason::Down,
    }
}

/// `now + wait`, at the end of time at the latest.
fn later(now: Timestamp, wait: Duration) -> Timestamp {
    now.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
