//! Metrics in the OpenMetrics format. Label values come from closed sets: kinds of connectors, reasons and states in code.

use emanet_core::breaker::{self, Reason};
use emanet_core::call::Outcome;
use emanet_core::classify::Class;
use emanet_core::event::Accepted;
use emanet_core::step::{Kind, Ruling};
use emanet_store::{Status, TargetRecord};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use std::time::Duration;

/// Everything that is counted and timed.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<Request, Counter>,
    refused: Family<Refused, Counter>,
    events: Family<Event, Counter>,
    accept: Histogram,
    steps: Family<Step, Counter>,
    step_failures: Family<StepFailure, Counter>,
    finished: Family<Finished, Counter>,
    calls: Family<Call, Counter>,
    call_time: Histogram,
    inbox: Family<InState, Gauge>,
    dead_letters: Family<OfClass, Gauge>,
    oldest_pending: Gauge,
    closes: Gauge,
    targets: Family<InState, Gauge>,
    held: Gauge,
    store_up: Gauge,
}

/// How a request to an intake address ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntakeOutcome {
    /// Durable, and answered 2xx.
    Stored,
    /// A handshake or probe, answered; nothing to store.
    Handshake,
    /// Not authentic.
    Refused,
    /// The token belongs to no source.
    UnknownToken,
    /// Cannot be accepted as it is: empty, too large, compressed, too slow, wrong method.
    Declined,
    /// Put off with 503: the store is away or we are full.
    PutOff,
}

impl IntakeOutcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Handshake => "handshake",
            Self::Refused => "refused",
            Self::UnknownToken => "unknown_token",
            Self::Declined => "declined",
            Self::PutOff => "put_off",
        }
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Request {
    source_kind: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Refused {
    source_kind: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Event {
    source_kind: &'static str,
    delivery: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Step {
    step_kind: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StepFailure {
    step_kind: &'static str,
    class: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Finished {
    how: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Call {
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct InState {
    state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfClass {
    class: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("emanet");
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "What is running", build);
        let r = &mut registry;
        Self {
            requests: family(r, "intake_requests", "Requests to intake addresses"),
            refused: family(
                r,
                "intake_refused",
                "Requests that are not authentic, by reason",
            ),
            events: family(
                r,
                "intake_events",
                "Events received, new or delivered again",
            ),
            accept: seconds(r, "intake_accept", "From the whole body to stable storage"),
            steps: family(r, "steps", "Runs of steps, by what followed"),
            step_failures: family(r, "step_failures", "Failed runs of steps, by class"),
            finished: family(
                r,
                "events_finished_whole",
                "Events ended without their steps",
            ),
            calls: family(r, "calls", "Calls to other systems, by what came of them"),
            call_time: seconds(r, "call", "Duration of calls to other systems"),
            inbox: family(r, "events", "Events, by state"),
            dead_letters: family(r, "dead_letters_open", "Open dead letters, by class"),
            oldest_pending: gauge(
                r,
                "oldest_pending_seconds",
                "Age of the oldest pending event",
            ),
            closes: gauge(r, "sum_closes", "1 if received is the sum of all states"),
            targets: family(r, "targets", "Targets, by state"),
            held: gauge(r, "held_for_targets", "Leads held for paused targets"),
            store_up: gauge(r, "store_up", "1 if the store answered this scrape"),
            registry,
        }
    }

    /// A request to an intake address ended. The kind of an unknown token's source is empty.
    pub fn request_ended(&self, source_kind: &'static str, outcome: IntakeOutcome) {
        let labels = Request {
            source_kind,
            outcome: outcome.as_str(),
        };
        self.requests.get_or_create(&labels).inc();
    }

    /// A request was not authentic.
    pub fn request_refused(&self, source_kind: &'static str, reason: &'static str) {
        let labels = Refused {
            source_kind,
            reason,
        };
        self.refused.get_or_create(&labels).inc();
    }

    /// Events are on stable storage; `took` is the time for the whole request.
    pub fn events_accepted(
        &self,
        source_kind: &'static str,
        accepted: &[Accepted],
        took: Duration,
    ) {
        for event in accepted {
            let labels = Event {
                source_kind,
                delivery: if event.is_new { "new" } else { "repeated" },
            };
            self.events.get_or_create(&labels).inc();
        }
        self.accept.observe(took.as_secs_f64());
    }

    /// It was ruled what follows a run of a step.
    pub fn step_ruled(&self, kind: Kind, ruling: &Ruling) {
        let labels = Step {
            step_kind: kind.as_str(),
            outcome: match ruling {
                Ruling::Done(_) => "done",
                Ruling::Skip { .. } => "skipped",
                Ruling::Retry { .. } => "retry",
                Ruling::Hold { .. } => "held",
                Ruling::Bury { .. } => "dead",
            },
        };
        self.steps.get_or_create(&labels).inc();
    }

    /// A run of a step failed.
    pub fn step_failed(&self, kind: Kind, of: Class) {
        let labels = StepFailure {
            step_kind: kind.as_str(),
            class: class(of),
        };
        self.step_failures.get_or_create(&labels).inc();
    }

    /// An event ended as a whole: not to be delivered.
    pub fn event_ignored(&self) {
        self.finished
            .get_or_create(&Finished { how: "ignored" })
            .inc();
    }

    /// An event ended as a whole: it cannot be read, or kills its workers.
    pub fn event_buried(&self) {
        self.finished.get_or_create(&Finished { how: "dead" }).inc();
    }

    /// A call ended.
    pub fn call_ended(&self, outcome: &Outcome, took: Duration) {
        let outcome = match outcome {
            Outcome::NotSent(_) => "not_sent",
            Outcome::Unknown(_) => "unknown",
            Outcome::Answered(answer) => match answer.status {
                200..=299 => "2xx",
                300..=399 => "3xx",
                400..=499 => "4xx",
                _ => "5xx",
            },
        };
        self.calls.get_or_create(&Call { outcome }).inc();
        self.call_time.observe(took.as_secs_f64());
    }

    /// Takes over what the store says; `None` if it did not answer, which leaves the old figures out of date and says so.
    pub fn store_answered(&self, answer: Option<(&Status, &[TargetRecord])>) {
        self.store_up.set(answer.is_some().into());
        if let Some((status, targets)) = answer {
            self.set_status(status);
            self.set_targets(targets);
        }
    }

    /// The text for a scrape.
    ///
    /// # Errors
    /// None in practice: it writes to a string.
    pub fn render(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }

    fn set_status(&self, status: &Status) {
        for (state, n) in [
            ("pending", status.pending),
            ("processing", status.processing),
            ("held", status.held),
            ("done", status.done),
            ("dead", status.dead),
            ("ignored", status.ignored),
            ("erased", status.erased),
        ] {
            self.inbox.get_or_create(&InState { state }).set(signed(n));
        }
        for of in [
            Class::Transient,
            Class::PermanentData,
            Class::PermanentConfig,
            Class::Unknown,
        ] {
            let n = status.by_class.get(&of).copied().unwrap_or_default();
            let labels = OfClass { class: class(of) };
            self.dead_letters.get_or_create(&labels).set(signed(n));
        }
        self.oldest_pending
            .set(signed(status.oldest_pending_seconds));
        self.closes.set(status.closes.into());
    }

    fn set_targets(&self, targets: &[TargetRecord]) {
        for state in ["closed", "down", "throttled", "config"] {
            let n = targets
                .iter()
                .filter(|t| target_state(&t.state) == state)
                .count();
            self.targets
                .get_or_create(&InState { state })
                .set(signed(n as u64));
        }
        self.held
            .set(signed(targets.iter().map(|t| t.n_held).sum()));
    }
}

fn family<M>(registry: &mut Registry, name: &str, help: &str) -> M
where
    M: prometheus_client::registry::Metric + Default + Clone,
{
    let family = M::default();
    registry.register(name, help, family.clone());
    family
}

fn gauge(registry: &mut Registry, name: &str, help: &str) -> Gauge {
    let gauge = Gauge::default();
    registry.register(name, help, gauge.clone());
    gauge
}

/// From a millisecond to the retry window of a day.
fn seconds(registry: &mut Registry, name: &str, help: &str) -> Histogram {
    let histogram = Histogram::new([
        0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 120.0, 600.0, 3_600.0, 86_400.0,
    ]);
    registry.register_with_unit(name, help, Unit::Seconds, histogram.clone());
    histogram
}

fn class(class: Class) -> &'static str {
    match class {
        Class::Transient => "transient",
        Class::PermanentData => "permanent_data",
        Class::PermanentConfig => "permanent_config",
        Class::Unknown => "unknown",
    }
}

fn target_state(state: &breaker::State) -> &'static str {
    match state {
        breaker::State::Closed { .. } => "closed",
        breaker::State::Open { reason, .. } => match reason {
            Reason::Down => "down",
            Reason::Throttled => "throttled",
            Reason::Config => "config",
        },
    }
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use emanet_core::call::NotSent;
    use emanet_core::classify::Failure;
    use emanet_core::ids::{EventId, SourceId, Target, WorkspaceId};
    use jiff::Timestamp;
    use std::collections::BTreeMap;

    fn check(metrics: &Metrics, expected: &[&str]) {
        let text = metrics.render().unwrap();
        for line in expected {
            assert!(text.lines().any(|l| l == *line), "no `{line}` in\n{text}");
        }
    }

    #[test]
    fn intake_is_counted_by_kind_and_outcome() {
        let metrics = Metrics::new();
        let event = EventId::new(Timestamp::UNIX_EPOCH, [0; 10]);
        let accepted = |is_new| Accepted { event, is_new };
        metrics.request_ended("web_form", IntakeOutcome::Stored);
        metrics.request_ended("", IntakeOutcome::UnknownToken);
        metrics.request_refused("web_form", "bad_signature");
        metrics.events_accepted(
            "web_form",
            &[accepted(true), accepted(true), accepted(false)],
            Duration::from_millis(2),
        );
        check(
            &metrics,
            &[
                r#"emanet_intake_requests_total{source_kind="web_form",outcome="stored"} 1"#,
                r#"emanet_intake_requests_total{source_kind="",outcome="unknown_token"} 1"#,
                r#"emanet_intake_refused_total{source_kind="web_form",reason="bad_signature"} 1"#,
                r#"emanet_intake_events_total{source_kind="web_form",delivery="new"} 2"#,
                r#"emanet_intake_events_total{source_kind="web_form",delivery="repeated"} 1"#,
                r#"emanet_intake_accept_seconds_bucket{le="0.003"} 1"#,
            ],
        );
    }

    #[test]
    fn steps_and_calls_are_counted_by_what_came_of_them() {
        let metrics = Metrics::new();
        metrics.step_failed(Kind::Crm, Class::PermanentData);
        metrics.step_ruled(
            Kind::Crm,
            &Ruling::Bury {
                failure: Failure::internal("x"),
                cause: "c".into(),
            },
        );
        metrics.step_ruled(Kind::Task, &Ruling::Skip { reason: "r".into() });
        metrics.event_ignored();
        metrics.call_ended(&Outcome::NotSent(NotSent::Dns), Duration::from_secs(2));
        check(
            &metrics,
            &[
                r#"emanet_steps_total{step_kind="crm",outcome="dead"} 1"#,
                r#"emanet_steps_total{step_kind="task",outcome="skipped"} 1"#,
                r#"emanet_step_failures_total{step_kind="crm",class="permanent_data"} 1"#,
                r#"emanet_events_finished_whole_total{how="ignored"} 1"#,
                r#"emanet_calls_total{outcome="not_sent"} 1"#,
                r#"emanet_call_seconds_sum 2.0"#,
            ],
        );
    }

    #[test]
    fn a_scrape_shows_what_the_store_says() {
        let metrics = Metrics::new();
        let status = Status {
            received: 7,
            pending: 3,
            done: 4,
            oldest_pending_seconds: 61,
            by_class: BTreeMap::from([(Class::PermanentConfig, 2)]),
            closes: true,
            ..Status::default()
        };
        let now = Timestamp::UNIX_EPOCH;
        let target = TargetRecord {
            workspace: WorkspaceId::new(now, [0; 10]),
            target: Target::Source(SourceId::new(now, [0; 10])),
            state: breaker::State::Open {
                reason: Reason::Throttled,
                cause: "c".into(),
                since: now,
                probe_at: now,
                probes: 0,
                not_before: None,
            },
            version: 1,
            n_held: 5,
        };
        metrics.store_answered(Some((&status, &[target])));
        check(
            &metrics,
            &[
                r#"emanet_events{state="pending"} 3"#,
                r#"emanet_events{state="dead"} 0"#,
                r#"emanet_dead_letters_open{class="permanent_config"} 2"#,
                "emanet_oldest_pending_seconds 61",
                "emanet_sum_closes 1",
                r#"emanet_targets{state="throttled"} 1"#,
                "emanet_held_for_targets 5",
                "emanet_store_up 1",
            ],
        );
        metrics.store_answered(None);
        check(&metrics, &["emanet_store_up 0"]);
    }

    #[test]
    fn the_build_is_named() {
        let version = env!("CARGO_PKG_VERSION");
        let line = format!("emanet_build_info{{version=\"{version}\"}} 1");
        check(&Metrics::new(), &[&line]);
    }
}
