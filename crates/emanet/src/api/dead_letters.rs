//! The work queue of what could not be delivered: `/dead-letters` (DL-2).

use super::Api;
use super::error::ApiError;
use super::filter::DeadLettersQuery;
use super::request::{Ask, Body, Scope, TargetView, id, invalid, workspace_name};
use super::shape::{FailureView, ListView, page};
use crate::installation::Installation;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use emanet_core::ids::{DeadLetterId, Target};
use emanet_store::{DeadLetter, Error, EventRecord, Resolution, Resolve};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A dead letter.
#[derive(Debug, Serialize)]
pub(super) struct DeadLetterView {
    id: String,
    event: String,
    workspace: String,
    source: String,
    source_ref: String,
    step: Option<String>,
    target: Option<TargetView>,
    failure: FailureView,
    cause: String,
    attempts: u32,
    dead_at: Timestamp,
    owner: Option<String>,
    resolution: Option<Resolution>,
    resolved_by: Option<String>,
    resolved_at: Option<Timestamp>,
    note: Option<String>,
    previous: Option<String>,
}

impl DeadLetterView {
    pub(super) fn new(installation: &Installation, letter: DeadLetter) -> Self {
        Self {
            id: letter.id.to_string(),
            event: letter.event.to_string(),
            workspace: workspace_name(installation, letter.workspace),
            source: installation.target_name(Target::Source(letter.source)),
            source_ref: letter.source_ref,
            step: letter.step.map(|(_, name)| name),
            target: letter.target.map(|t| TargetView::new(installation, t)),
            failure: letter.failure.into(),
            cause: letter.cause,
            attempts: letter.attempts,
            dead_at: letter.dead_at,
            owner: letter.owner,
            resolution: letter.resolution,
            resolved_by: letter.resolved_by,
            resolved_at: letter.resolved_at,
            note: letter.note,
            previous: letter.previous.map(|id| id.to_string()),
        }
    }
}

/// A dead letter with what its event knows of it.
#[derive(Debug, Serialize)]
pub(super) struct DeadLetterDetail {
    #[serde(flatten)]
    letter: DeadLetterView,
    /// First bytes of what the vendor answered to the attempt it died of; none if there was no answer, or it was erased.
    answer: Option<String>,
    /// Id of the object in the destination, once it is known to be there.
    object_id: Option<String>,
}

impl DeadLetterDetail {
    fn new(installation: &Installation, letter: DeadLetter, event: EventRecord) -> Self {
        let step = letter.step.as_ref().map(|(id, _)| *id);
        let answer = event
            .attempts
            .into_iter()
            // Later ones belong to a replay.
            .rfind(|a| Some(a.step) == step && a.started_at <= letter.dead_at)
            .and_then(|attempt| attempt.outcome?.answer);
        let object_id = event
            .steps
            .into_iter()
            .find(|s| Some(s.id) == step)
            .and_then(|s| s.delivered?.id);
        Self {
            letter: DeadLetterView::new(installation, letter),
            answer,
            object_id,
        }
    }
}

pub(super) async fn list(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    Ask(mut query): Ask<DeadLettersQuery>,
) -> Result<Json<ListView<DeadLetterView>>, ApiError> {
    let installation = api.installation.get();
    let scope = Scope::of(&headers, &installation)?;
    let page = page(query.after.take(), query.limit);
    let filter = query.filter(scope, &installation)?;
    let listed = api.store.dead_letters(filter, page).await?;
    Ok(Json(ListView::of(listed, |letter| {
        DeadLetterView::new(&installation, letter)
    })))
}

pub(super) async fn show(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    Path(text): Path<String>,
) -> Result<Json<DeadLetterDetail>, ApiError> {
    let installation = api.installation.get();
    let letter = find(&api, Scope::of(&headers, &installation)?, id(&text)?).await?;
    let event = api.store.event(letter.workspace, letter.event).await?;
    Ok(Json(DeadLetterDetail::new(&installation, letter, event)))
}

/// How a person settles a dead letter without sending it again.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ResolveBody {
    resolution: Resolution,
    /// Id of the object in the destination, for "it is there".
    object_id: Option<String>,
    note: String,
    by: Option<String>,
}

pub(super) async fn resolve(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    Path(text): Path<String>,
    Body(body): Body<ResolveBody>,
) -> Result<Json<DeadLetterView>, ApiError> {
    let installation = api.installation.get();
    if body.resolution == Resolution::Replayed {
        return Err(invalid(
            "resolution",
            "to send it again, start a replay: POST /api/v1/replays",
        ));
    }
    if body.note.trim().is_empty() {
        return Err(invalid("note", "say what was done, or why it is left"));
    }
    let letter = find(&api, Scope::of(&headers, &installation)?, id(&text)?).await?;
    let resolved = api
        .store
        .resolve(Resolve {
            workspace: letter.workspace,
            id: letter.id,
            resolution: body.resolution,
            object_id: body.object_id,
            by: super::who(body.by),
            note: body.note,
            now: api.env.now(),
        })
        .await?;
    // Steps that waited for this one may go on.
    api.wake.notify_one();
    Ok(Json(DeadLetterView::new(&installation, resolved)))
}

async fn find(api: &Api, scope: Scope, id: DeadLetterId) -> Result<DeadLetter, ApiError> {
    for workspace in scope.candidates(&api.installation.get()) {
        match api.store.dead_letter(workspace, id).await {
            Err(Error::NotFound(_)) => {}
            found => return Ok(found?),
        }
    }
    Err(ApiError::not_found())
}
