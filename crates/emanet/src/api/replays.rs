//! Sending again, in stages, with who and why: `/replays` (RP-1 … RP-4). This only records what is wanted; the scheduler
//! sends.

use super::Api;
use super::error::ApiError;
use super::filter::Selection;
use super::request::{Ask, Body, Scope, TargetView, id, invalid, workspace_name};
use super::shape::{ListView, PageQuery};
use crate::engine::STAGES;
use crate::installation::Installation;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use emanet_core::ids::ReplayId;
use emanet_store::{EndReplay, Error, NewReplay, Replay, ReplayCounts, ReplayState};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A replay.
#[derive(Debug, Serialize)]
pub(super) struct ReplayView {
    id: String,
    workspace: String,
    selection: Selection,
    stages: Vec<u32>,
    stage: u32,
    state: ReplayState,
    by: String,
    reason: String,
    started_at: Timestamp,
    ended: Option<EndedView>,
    total: CountsView,
    current: CountsView,
    targets: Vec<TargetView>,
}

#[derive(Debug, Serialize)]
struct EndedView {
    at: Timestamp,
    by: String,
    note: String,
}

#[derive(Debug, Serialize)]
struct CountsView {
    waiting: u64,
    running: u64,
    done: u64,
    failed: u64,
}

impl From<ReplayCounts> for CountsView {
    fn from(counts: ReplayCounts) -> Self {
        Self {
            waiting: counts.waiting,
            running: counts.running,
            done: counts.done,
            failed: counts.failed,
        }
    }
}

impl ReplayView {
    fn new(installation: &Installation, replay: Replay) -> Self {
        Self {
            id: replay.id.to_string(),
            workspace: workspace_name(installation, replay.workspace),
            selection: Selection::of(replay.filter, installation),
            stages: replay.stages,
            stage: replay.stage,
            state: replay.state,
            by: replay.by,
            reason: replay.reason,
            started_at: replay.started_at,
            ended: replay.ended.map(|end| EndedView {
                at: end.at,
                by: end.by,
                note: end.note,
            }),
            total: replay.total.into(),
            current: replay.current.into(),
            targets: replay
                .targets
                .into_iter()
                .map(|target| TargetView::new(installation, target))
                .collect(),
        }
    }
}

/// What to send again.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StartBody {
    /// Everything, if left out.
    #[serde(default)]
    selection: Selection,
    /// Sizes of the first stages; the rest follows them.
    stages: Option<Vec<u32>>,
    reason: String,
    by: Option<String>,
}

pub(super) async fn start(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    Body(body): Body<StartBody>,
) -> Result<(StatusCode, Json<ReplayView>), ApiError> {
    let installation = api.installation.get();
    let workspace = Scope::of(&headers, &installation)?.one(&installation)?;
    let stages = body.stages.unwrap_or_else(|| STAGES.to_vec());
    if stages.len() > 100 || stages.contains(&0) {
        return Err(invalid("stages", "at most 100 sizes, each at least 1"));
    }
    if body.reason.trim().is_empty() {
        return Err(invalid("reason", "say why, for those who read it later"));
    }
    let now = api.env.now();
    let replay = api
        .store
        .start_replay(NewReplay {
            workspace,
            id: ReplayId::new(now, api.env.bytes()),
            filter: body
                .selection
                .filter(Scope(Some(workspace)), &installation)?,
            stages,
            by: super::who(body.by),
            reason: body.reason,
            now,
        })
        .await?;
    api.wake_scheduler.notify_one();
    let view = ReplayView::new(&installation, replay);
    Ok((StatusCode::CREATED, Json(view)))
}

pub(super) async fn list(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    Ask(query): Ask<PageQuery>,
) -> Result<Json<ListView<ReplayView>>, ApiError> {
    let installation = api.installation.get();
    let Scope(workspace) = Scope::of(&headers, &installation)?;
    let listed = api.store.replays(workspace, query.into()).await?;
    Ok(Json(ListView::of(listed, |replay| {
        ReplayView::new(&installation, replay)
    })))
}

pub(super) async fn show(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    Path(text): Path<String>,
) -> Result<Json<ReplayView>, ApiError> {
    let installation = api.installation.get();
    let replay = find(&api, Scope::of(&headers, &installation)?, id(&text)?).await?;
    Ok(Json(ReplayView::new(&installation, replay)))
}

/// Why a replay is stopped.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StopBody {
    note: String,
    by: Option<String>,
}

/// Stops a replay: what has been sent goes on, nothing more is sent.
pub(super) async fn stop(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    Path(text): Path<String>,
    Body(body): Body<StopBody>,
) -> Result<Json<ReplayView>, ApiError> {
    let installation = api.installation.get();
    let replay = find(&api, Scope::of(&headers, &installation)?, id(&text)?).await?;
    let end = EndReplay {
        state: ReplayState::Stopped,
        by: super::who(body.by),
        note: body.note,
        at: api.env.now(),
    };
    let stopped = api
        .store
        .end_replay(replay.workspace, replay.id, end)
        .await?;
    Ok(Json(ReplayView::new(&installation, stopped)))
}

async fn find(api: &Api, scope: Scope, id: ReplayId) -> Result<Replay, ApiError> {
    for workspace in scope.candidates(&api.installation.get()) {
        match api.store.replay(workspace, id).await {
            Err(Error::NotFound(_)) => {}
            found => return Ok(found?),
        }
    }
    Err(ApiError::not_found())
}
