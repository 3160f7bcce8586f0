//! `POST /doctor`: is everything this installation rests on as it should be? It changes nothing.

use super::Api;
use super::error::ApiError;
use super::request::Body;
use crate::config::data_dir::DataDirError;
use crate::installation::{DestinationEntry, Installation};
use axum::Json;
use axum::extract::State;
use emanet_core::breaker;
use emanet_core::call::{Exchange, Outcome};
use emanet_core::classify::{self, Failure};
use emanet_core::ids::Target;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio::task::JoinSet;

/// How deep to look.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DoctorBody {
    /// Recount every row as well.
    #[serde(default)]
    deep: bool,
}

/// The findings.
#[derive(Debug, Serialize)]
pub(super) struct DoctorView {
    /// Nothing is wrong.
    ok: bool,
    checks: Vec<Check>,
}

#[derive(Debug, Serialize)]
struct Check {
    name: String,
    finding: Finding,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Finding {
    Ok,
    /// Worth knowing.
    Note,
    /// Wrong.
    Failed,
}

impl Check {
    fn new(name: impl Into<String>, finding: Finding, message: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            finding,
            message: message.into(),
            hint: None,
        }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }
}

pub(super) async fn doctor(
    State(api): State<Arc<Api>>,
    Body(body): Body<DoctorBody>,
) -> Result<Json<DoctorView>, ApiError> {
    let installation = api.installation.get();
    let mut checks = engine(&api).await?;
    checks.push(data_dir(&api));
    checks.push(configuration(&api).await);
    checks.extend(sources(&installation));
    checks.extend(destinations(&api, &installation).await);
    checks.extend(targets(&api, &installation).await?);
    checks.push(sum(&api).await?);
    if body.deep {
        checks.extend(recount(&api, &installation).await?);
    }
    let ok = checks.iter().all(|c| c.finding != Finding::Failed);
    Ok(Json(DoctorView { ok, checks }))
}

async fn engine(api: &Api) -> Result<Vec<Check>, ApiError> {
    let report = api.store.check().await?;
    if report.problems.is_empty() {
        let settings: Vec<_> = report
            .settings
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let message = format!(
            "{}, schema {}; {}",
            report.engine,
            report.schema,
            settings.join(", ")
        );
        return Ok(vec![Check::new("database", Finding::Ok, message)]);
    }
    let failed = |problem| Check::new("database", Finding::Failed, problem);
    Ok(report.problems.into_iter().map(failed).collect())
}

fn data_dir(api: &Api) -> Check {
    match api.data_dir.check_modes() {
        Ok(()) => Check::new(
            "data directory",
            Finding::Ok,
            "directory and key are yours alone",
        ),
        Err(error @ DataDirError::Open { .. }) => {
            Check::new("data directory", Finding::Failed, error.to_string())
                .hint("Whoever reads the key reads every secret and every lead.")
        }
        Err(error) => Check::new("data directory", Finding::Failed, error.to_string()),
    }
}

/// Loads the configuration anew, secrets by reference included: would a restart work?
async fn configuration(api: &Api) -> Check {
    match api.keeper.load().await {
        Ok(Some(in_force)) => Check::new(
            "configuration",
            Finding::Ok,
            format!("revision {} can be loaded", in_force.revision.number),
        ),
        Ok(None) => Check::new("configuration", Finding::Note, "none has been applied yet"),
        Err(error) => Check::new("configuration", Finding::Failed, error.to_string())
            .hint("The next start would fail on this; what runs now goes on."),
    }
}

fn sources(installation: &Installation) -> Vec<Check> {
    let mut checks = Vec::new();
    for source in installation.sources.values() {
        let name = format!("source {}", source.name);
        let is_suspended = installation
            .workspaces
            .get(&source.workspace)
            .is_some_and(|w| w.suspended);
        let check = match &source.flow {
            _ if is_suspended => Check::new(
                name,
                Finding::Note,
                "its workspace is suspended: leads are stored, none is delivered",
            ),
            _ if source.paused => Check::new(
                name,
                Finding::Note,
                "paused: leads are stored, none is delivered",
            ),
            None => Check::new(
                name,
                Finding::Note,
                "receives only: leads are stored and go nowhere",
            ),
            Some(flow) => {
                let steps: Vec<_> = flow.steps.iter().map(|s| s.plan.name.as_str()).collect();
                Check::new(
                    name,
                    Finding::Ok,
                    format!("{}, steps: {}", source.kind.title, steps.join(", ")),
                )
            }
        };
        checks.push(check);
    }
    checks
}

/// Probes every destination at the same time; each probe ends within the transport's deadline.
async fn destinations(api: &Api, installation: &Installation) -> Vec<Check> {
    let mut probes = JoinSet::new();
    for destination in installation.destinations.values() {
        let destination = Arc::clone(destination);
        let transport = Arc::clone(&api.transport);
        let env = api.env.clone();
        probes.spawn(async move {
            let Some(call) = destination.connector.probe() else {
                return unprobed(&destination);
            };
            let probed = match transport.send(&call).await {
                Outcome::Answered(answer) => destination
                    .connector
                    .probed(&Exchange { call, answer }, env.now()),
                Outcome::NotSent(why) => Err(classify::not_sent(why)),
                Outcome::Unknown(why) => Err(classify::broken(why)),
            };
            probed_check(&destination, probed)
        });
    }
    let mut checks: Vec<_> = probes.join_all().await;
    checks.sort_by(|a, b| a.name.cmp(&b.name));
    checks
}

fn unprobed(destination: &DestinationEntry) -> Check {
    Check::new(
        format!("destination {}", destination.name),
        Finding::Note,
        "cannot be tried without changing something in it",
    )
}

fn probed_check(destination: &DestinationEntry, probed: Result<(), Failure>) -> Check {
    let name = format!("destination {}", destination.name);
    match probed {
        Ok(()) => Check::new(name, Finding::Ok, "answers, and takes the credentials"),
        Err(failure) => Check::new(name, Finding::Failed, failure.message).hint(failure.hint),
    }
}

/// Targets that are not called at the moment.
async fn targets(api: &Api, installation: &Installation) -> Result<Vec<Check>, ApiError> {
    let mut checks = Vec::new();
    for record in api.store.targets().await? {
        let breaker::State::Open { reason, since, .. } = record.state else {
            continue;
        };
        if !installation.knows(record.target) {
            continue;
        }
        let what = match record.target {
            Target::Source(_) => "source",
            Target::Destination(_) => "destination",
        };
        let (why, hint) = match reason {
            breaker::Reason::Down => ("does not answer", "It is tried again by itself."),
            breaker::Reason::Throttled => (
                "asked to be left alone for a while",
                "It is tried again by itself.",
            ),
            breaker::Reason::Config => (
                "is set up wrong",
                "What to mend is in the checks above or in `emanet dead list --resolved`; a probe finds out when it is.",
            ),
        };
        let name = installation.target_name(record.target);
        checks.push(
            Check::new(
                format!("{what} {name}"),
                Finding::Failed,
                format!(
                    "{why}, since {}; leads held for it: {}",
                    since.strftime("%Y-%m-%d %H:%M:%SZ"),
                    record.n_held
                ),
            )
            .hint(hint),
        );
    }
    Ok(checks)
}

async fn sum(api: &Api) -> Result<Check, ApiError> {
    let status = api.store.status(None, api.env.now()).await?;
    Ok(if status.closes {
        Check::new(
            "sum",
            Finding::Ok,
            format!(
                "every one of {} received events is accounted for",
                status.received
            ),
        )
    } else {
        Check::new(
            "sum",
            Finding::Failed,
            "received events and their states do not add up",
        )
        .hint("Run `emanet doctor --deep` to find the day and the source, and report it.")
    })
}

async fn recount(api: &Api, installation: &Installation) -> Result<Vec<Check>, ApiError> {
    let miscounts = api.store.recount().await?;
    if miscounts.is_empty() {
        return Ok(vec![Check::new(
            "recount",
            Finding::Ok,
            "the counters agree with the rows",
        )]);
    }
    let failed = miscounts.into_iter().map(|miscount| {
        let source = installation.target_name(Target::Source(miscount.source));
        Check::new(
            "recount",
            Finding::Failed,
            format!(
                "{source} on {}: {} is counted as {}, there are {} rows",
                miscount.day, miscount.what, miscount.tally, miscount.rows
            ),
        )
    });
    Ok(failed.collect())
}
