//! How it stands: `GET /status`, `/targets`, `/alerts`.

use super::Api;
use super::error::ApiError;
use super::request::{Ask, Scope, TargetView, workspace_name};
use super::shape::{ListView, PageQuery};
use crate::installation::Installation;
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use emanet_core::breaker::{Reason, State as Breaker};
use emanet_core::classify::Class;
use emanet_core::ids::{Target, WorkspaceId};
use emanet_store::{Alert, Status, TargetRecord};
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A fixed point (design 6).
#[derive(Debug, Serialize)]
pub(super) struct StatusView {
    received: u64,
    pending: u64,
    processing: u64,
    held: u64,
    done: u64,
    dead: u64,
    ignored: u64,
    erased: u64,
    oldest_pending_seconds: u64,
    open_dead_letters: u64,
    by_class: BTreeMap<Class, u64>,
    closes: bool,
}

impl From<Status> for StatusView {
    fn from(status: Status) -> Self {
        let classes = [
            Class::Transient,
            Class::PermanentData,
            Class::PermanentConfig,
            Class::Unknown,
        ];
        let mut by_class: BTreeMap<_, _> = classes.into_iter().map(|class| (class, 0)).collect();
        by_class.extend(status.by_class);
        Self {
            received: status.received,
            pending: status.pending,
            processing: status.processing,
            held: status.held,
            done: status.done,
            dead: status.dead,
            ignored: status.ignored,
            erased: status.erased,
            oldest_pending_seconds: status.oldest_pending_seconds,
            open_dead_letters: status.open_dead_letters,
            by_class,
            closes: status.closes,
        }
    }
}

pub(super) async fn status(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
) -> Result<Json<StatusView>, ApiError> {
    let Scope(workspace) = Scope::of(&headers, &api.installation.get())?;
    let status = api.store.status(workspace, api.env.now()).await?;
    Ok(Json(status.into()))
}

/// A source or destination, and whether it may be called.
#[derive(Debug, Serialize)]
pub(super) struct TargetStateView {
    workspace: String,
    #[serde(flatten)]
    target: TargetView,
    kind: &'static str,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probe_at: Option<Timestamp>,
    n_held: u64,
}

impl TargetStateView {
    fn new(installation: &Installation, record: TargetRecord) -> Self {
        let mut view = Self::closed(installation, record.workspace, record.target, record.n_held);
        if let Breaker::Open {
            reason,
            cause,
            since,
            probe_at,
            ..
        } = record.state
        {
            view.state = "open";
            view.reason = Some(reason);
            view.cause = Some(cause);
            view.since = Some(since);
            view.probe_at = Some(probe_at);
        }
        view
    }

    fn closed(
        installation: &Installation,
        workspace: WorkspaceId,
        target: Target,
        n_held: u64,
    ) -> Self {
        Self {
            workspace: workspace_name(installation, workspace),
            target: TargetView::new(installation, target),
            kind: match target {
                Target::Source(_) => "source",
                Target::Destination(_) => "destination",
            },
            state: "closed",
            reason: None,
            cause: None,
            since: None,
            probe_at: None,
            n_held,
        }
    }
}

/// Every target that is configured, and every other the store has a state of.
pub(super) async fn targets(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
) -> Result<Json<ListView<TargetStateView>>, ApiError> {
    let installation = api.installation.get();
    let Scope(workspace) = Scope::of(&headers, &installation)?;
    let mut records: BTreeMap<Target, TargetRecord> = api
        .store
        .targets()
        .await?
        .into_iter()
        .map(|record| (record.target, record))
        .collect();
    let sources = installation
        .sources
        .values()
        .map(|s| (s.workspace, Target::Source(s.id)));
    let destinations = installation
        .destinations
        .values()
        .map(|d| (d.workspace, Target::Destination(d.id)));
    for (owner, target) in sources.chain(destinations) {
        records.entry(target).or_insert(TargetRecord {
            workspace: owner,
            target,
            state: Breaker::default(),
            version: 0,
            n_held: 0,
        });
    }
    let rows = records
        .into_values()
        .filter(|record| workspace.is_none_or(|w| w == record.workspace))
        .collect();
    let listed = emanet_store::Listed { rows, next: None };
    Ok(Json(ListView::of(listed, |record| {
        TargetStateView::new(&installation, record)
    })))
}

/// Something a person was told.
#[derive(Debug, Serialize)]
pub(super) struct AlertView {
    id: String,
    workspace: String,
    cause: String,
    class: Option<Class>,
    target: Option<TargetView>,
    message: String,
    hint: String,
    first_at: Timestamp,
    last_at: Timestamp,
    count: u64,
    closed_at: Option<Timestamp>,
}

impl AlertView {
    fn new(installation: &Installation, alert: Alert) -> Self {
        Self {
            id: alert.id.to_string(),
            workspace: workspace_name(installation, alert.workspace),
            cause: alert.cause,
            class: alert.class,
            target: alert.target.map(|t| TargetView::new(installation, t)),
            message: alert.message,
            hint: alert.hint,
            first_at: alert.first_at,
            last_at: alert.last_at,
            count: alert.count,
            closed_at: alert.closed_at,
        }
    }
}

pub(super) async fn alerts(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    Ask(query): Ask<PageQuery>,
) -> Result<Json<ListView<AlertView>>, ApiError> {
    let installation = api.installation.get();
    let Scope(workspace) = Scope::of(&headers, &installation)?;
    let listed = api.store.alerts(workspace, query.into()).await?;
    Ok(Json(ListView::of(listed, |alert| {
        AlertView::new(&installation, alert)
    })))
}
