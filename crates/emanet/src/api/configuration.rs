//! The configuration in force, and putting another into force: `/config`.

use super::Api;
use super::error::{ApiError, Detail};
use super::request::Body;
use crate::config::{ConfigError, File, ReviseError};
use axum::Json;
use axum::extract::State;
use emanet_core::secret::Secret;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The configuration in force, its secrets covered.
#[derive(Debug, Serialize)]
pub(super) struct ConfigView {
    revision: u64,
    digest: String,
    by: String,
    at: Timestamp,
    document: serde_json::Value,
}

pub(super) async fn show(State(api): State<Arc<Api>>) -> Result<Json<ConfigView>, ApiError> {
    let in_force = api
        .keeper
        .load()
        .await
        .map_err(revise_error)?
        .ok_or_else(ApiError::not_found)?;
    Ok(Json(ConfigView {
        revision: in_force.revision.number,
        digest: in_force.revision.digest,
        by: in_force.revision.by,
        at: in_force.revision.at,
        document: in_force.document.masked(),
    }))
}

/// A configuration to put into force. `Debug` of the text would show its secrets, so there is none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ApplyBody {
    text: String,
    /// What messages call it.
    file: Option<String>,
    /// Try it out, keep nothing.
    #[serde(default)]
    dry_run: bool,
    by: Option<String>,
}

/// What came of it.
#[derive(Debug, Serialize)]
pub(super) struct AppliedView {
    /// The revision in force now; absent in a trial.
    revision: Option<u64>,
    dry_run: bool,
    differences: Vec<String>,
    notes: Vec<String>,
}

pub(super) async fn apply(
    State(api): State<Arc<Api>>,
    Body(body): Body<ApplyBody>,
) -> Result<Json<AppliedView>, ApiError> {
    let file = File {
        name: body.file.unwrap_or_else(|| "emanet.toml".into()),
        text: Secret::new(body.text),
    };
    // One at a time: what is in force here must be what the store says last.
    let _turn = api.applying.lock().await;
    if body.dry_run {
        let change = api.keeper.preview(&file).await.map_err(revise_error)?;
        return Ok(Json(AppliedView {
            revision: None,
            dry_run: true,
            differences: change.differences,
            notes: change.notes,
        }));
    }
    let (in_force, change) = api
        .keeper
        .apply(&file, &super::who(body.by))
        .await
        .map_err(revise_error)?;
    let revision = in_force.revision.number;
    if let Some(sandbox) = &api.sandbox {
        for (destination, faults) in in_force.sandbox_faults() {
            sandbox.set_faults(destination, faults);
        }
    }
    api.installation.set(in_force.installation);
    tracing::info!(
        config.revision = revision,
        "a configuration was put into force"
    );
    api.wake.notify_one();
    api.wake_scheduler.notify_one();
    Ok(Json(AppliedView {
        revision: Some(revision),
        dry_run: false,
        differences: change.differences,
        notes: change.notes,
    }))
}

fn revise_error(error: ReviseError) -> ApiError {
    match error {
        ReviseError::Config(error) => ApiError::invalid(details(error)),
        ReviseError::Store(error) => error.into(),
        ReviseError::Edited { .. } => ApiError::conflict(error.to_string()),
        ReviseError::Seal(_) => ApiError::internal(error.to_string()),
    }
}

fn details(error: ConfigError) -> Vec<Detail> {
    let ConfigError { file, problems } = error;
    problems
        .into_iter()
        .map(|problem| {
            let message = format!("{file}:{}: {}", problem.line, problem.message);
            Detail::new(problem.key, message)
        })
        .collect()
}
