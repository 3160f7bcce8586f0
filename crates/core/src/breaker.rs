//! The state of a target: may it be called now? (RET-4, design 5.) Pure: results and times go in, the next state comes out.
//!
//! A target that is down, throttled or set up wrong is *open*: leads for it are held and burn no attempts. One held lead at a
//! time is let through as a probe; when it succeeds the target closes and the held leads drain, two for every success, so that
//! the flow grows only as fast as the other side answers.

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
        /// Leads in a row that met the same lead-scoped configuration cause.
        config_leads: Vec<String>,
    },
    /// No calls but probes.
    Open {
        /// Why.
        reason: Reason,
        /// Fingerprint of the failure that opened it.
        cause: String,
        /// Since when.
        since: Timestamp,
        /// When the next probe may go.
        probe_at: Timestamp,
        /// Probes that failed so far.
        probes: u32,
    },
}

impl Default for State {
    fn default() -> Self {
        Self::Closed {
            failures: 0,
            config_leads: Vec::new(),
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

/// What the gate says to a lead that wants to call the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Go on.
    Pass,
    /// Wait under this cause.
    Hold(String),
}

impl State {
    /// May a lead call the target? `has_pass`: it was released as a probe or by a replay.
    pub fn gate(&self, has_pass: bool) -> Gate {
        match self {
            Self::Open { cause, .. } if !has_pass => Gate::Hold(cause.clone()),
            Self::Open { .. } | Self::Closed { .. } => Gate::Pass,
        }
    }

    /// Whether the target is open.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
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
            *probe_at = later(now, probe_wait(*reason, *probes, policy));
        }
        self
    }

    /// The state after a call succeeded.
    pub fn succeeded(&self) -> Self {
        Self::default()
    }

    /// The state after a lead's call failed. `lead` names the lead, `cause` is the failure's fingerprint.
    pub fn failed(
        &self,
        failure: &Failure,
        cause: &str,
        lead: &str,
        now: Timestamp,
        policy: &Policy,
    ) -> Self {
        let open = |reason, wait| Self::Open {
            reason,
            cause: cause.into(),
            since: now,
            probe_at: later(now, wait),
            probes: 0,
        };
        match self {
            Self::Open { .. } => self.failed_again(failure, cause, now, policy),
            Self::Closed {
                failures,
                config_leads,
            } => match (failure.class, failure.effect) {
                (Class::Transient, _) if failure.retry_after.is_some_and(|r| !r.wait.is_zero()) => {
                    open(
                        Reason::Throttled,
                        failure.retry_after.map_or(policy.probe_min, |r| r.wait),
                    )
                }
                (Class::Transient, Effect::NotApplied) if failure.status.is_none() => {
                    open(Reason::Down, policy.probe_min)
                }
                (Class::Transient, _) | (Class::Unknown, Effect::MaybeApplied) => {
                    if failures + 1 >= policy.failures_max {
                        open(Reason::Down, policy.probe_min)
                    } else {
                        Self::Closed {
                            failures: failures + 1,
                            config_leads: config_leads.clone(),
                        }
                    }
                }
                (Class::PermanentConfig, _) => {
                    let mut leads = config_leads.clone();
                    if !leads.iter().any(|l| l == lead) {
                        leads.push(lead.to_owned());
                    }
                    if failure.scope == Scope::Target || leads.len() >= policy.config_leads_max {
                        open(Reason::Config, policy.config_probe)
                    } else {
                        Self::Closed {
                            failures: 0,
                            config_leads: leads,
                        }
                    }
                }
                // The other side answered and understood: it works.
                (Class::PermanentData, _)
                | (Class::Unknown, Effect::NotApplied | Effect::Applied) => Self::Closed {
                    failures: 0,
                    config_leads: config_leads.clone(),
                },
            },
        }
    }

    /// A call that was in flight, or a probe, failed while the target is open.
    fn failed_again(
        &self,
        failure: &Failure,
        cause: &str,
        now: Timestamp,
        policy: &Policy,
    ) -> Self {
        let Self::Open {
            reason,
            since,
            probe_at,
            probes,
            ..
        } = self
        else {
            return self.clone();
        };
        let reason_now = match (failure.class, failure.retry_after) {
            (Class::PermanentConfig, _) if failure.scope == Scope::Target => Reason::Config,
            (Class::Transient, Some(wait)) if !wait.wait.is_zero() => Reason::Throttled,
            (Class::Transient | Class::Unknown, _) => Reason::Down,
            // It answers and understands: whatever it was open for is over.
            (Class::PermanentData, _) => return Self::default(),
            (Class::PermanentConfig, _) => *reason,
        };
        let wait = failure
            .retry_after
            .map_or_else(|| probe_wait(reason_now, *probes, policy), |r| r.wait);
        let (probe_at, cause) = if reason_now == *reason {
            (
                (*probe_at).max(later(
                    now,
                    wait.min(probe_wait(reason_now, *probes, policy)),
                )),
                self.cause().unwrap_or(cause),
            )
        } else {
            (later(now, wait), cause)
        };
        let probe_at = if failure.retry_after.is_some() {
            probe_at.max(later(now, wait))
        } else {
            probe_at
        };
        Self::Open {
            reason: reason_now,
            cause: cause.into(),
            since: *since,
            probe_at,
            probes: *probes,
        }
    }

    /// The fingerprint it is open under.
    pub fn cause(&self) -> Option<&str> {
        match self {
            Self::Open { cause, .. } => Some(cause),
            Self::Closed { .. } => None,
        }
    }
}

fn probe_wait(reason: Reason, probes: u32, policy: &Policy) -> Duration {
    match reason {
        Reason::Config => policy.config_probe,
        Reason::Down | Reason::Throttled => policy
            .probe_min
            .saturating_mul(1 << probes.min(16))
            .min(policy.probe_max),
    }
}

/// `now + wait`, at the end of time at the latest.
pub(crate) fn later(now: Timestamp, wait: Duration) -> Timestamp {
    now.saturating_add(wait).unwrap_or(Timestamp::MAX)
}
