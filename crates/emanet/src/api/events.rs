//! Where each lead is: `GET /events` and the story of one, `GET /events/{id}`.

use super::Api;
use super::error::ApiError;
use super::filter::EventsQuery;
use super::request::{Ask, Scope, id, workspace_name};
use super::shape::{ListView, page};
use super::story::StoryView;
use crate::installation::Installation;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use emanet_core::ids::{EventId, Target};
use emanet_core::step::EventState;
use emanet_store::{Error, EventRecord, EventSummary};
use jiff::Timestamp;
use serde::Serialize;
use std::sync::Arc;

/// An event as it stands in lists.
#[derive(Debug, Serialize)]
pub(super) struct EventView {
    id: String,
    workspace: String,
    source: String,
    source_ref: String,
    state: EventState,
    processing: bool,
    received_at: Timestamp,
    created_at: Option<Timestamp>,
    due_at: Option<Timestamp>,
    deliveries: u64,
    ignored_because: Option<String>,
    revision: u64,
    name: Option<String>,
    phone: Option<String>,
    email: Option<String>,
    is_test: bool,
}

impl EventView {
    pub(super) fn new(installation: &Installation, event: EventSummary) -> Self {
        Self {
            id: event.id.to_string(),
            workspace: workspace_name(installation, event.workspace),
            source: installation.target_name(Target::Source(event.source)),
            source_ref: event.source_ref,
            state: event.state,
            processing: event.processing,
            received_at: event.received_at,
            created_at: event.created_at,
            due_at: event.run_at,
            deliveries: event.seen,
            ignored_because: event.ignored,
            revision: event.revision,
            name: event.name,
            phone: event.phone,
            email: event.email,
            is_test: event.is_test,
        }
    }
}

pub(super) async fn list(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    Ask(mut query): Ask<EventsQuery>,
) -> Result<Json<ListView<EventView>>, ApiError> {
    let installation = api.installation.get();
    let scope = Scope::of(&headers, &installation)?;
    let page = page(query.after.take(), query.limit);
    let filter = query.filter(scope, &installation)?;
    let listed = api.store.events(filter, page).await?;
    Ok(Json(ListView::of(listed, |event| {
        EventView::new(&installation, event)
    })))
}

pub(super) async fn show(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    Path(text): Path<String>,
) -> Result<Json<StoryView>, ApiError> {
    let installation = api.installation.get();
    let record = find(&api, Scope::of(&headers, &installation)?, id(&text)?).await?;
    Ok(Json(StoryView::new(&installation, record)))
}

async fn find(api: &Api, scope: Scope, id: EventId) -> Result<EventRecord, ApiError> {
    for workspace in scope.candidates(&api.installation.get()) {
        match api.store.event(workspace, id).await {
            Err(Error::NotFound(_)) => {}
            found => return Ok(found?),
        }
    }
    Err(ApiError::not_found())
}
