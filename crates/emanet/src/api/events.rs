//! Where each lead is: `GET /events`, the story of one, `GET /events/{id}`, and its request as received, `GET /events/{id}/raw`.

use super::Api;
use super::error::ApiError;
use super::filter::EventsQuery;
use super::request::{Ask, Scope, id, workspace_name};
use super::shape::{ListView, page};
use super::story::StoryView;
use crate::installation::Installation;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use emanet_core::breaker;
use emanet_core::ids::{EventId, Target};
use emanet_core::step::EventState;
use emanet_store::{Error, EventRecord, EventSummary, Filter};
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;
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
    let reasons = reasons(&api, &record).await?;
    Ok(Json(StoryView::new(&installation, record, &reasons)))
}

/// The body of the request an event came in, byte for byte. Only whoever owns the data directory can ask.
pub(super) async fn raw(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    Path(text): Path<String>,
) -> Result<Response, ApiError> {
    let installation = api.installation.get();
    let record = find(&api, Scope::of(&headers, &installation)?, id(&text)?).await?;
    let request = record
        .request
        .ok_or_else(|| ApiError::conflict("the payload of this event was erased"))?;
    let kind = (header::CONTENT_TYPE, "application/octet-stream");
    Ok(([kind], request.body).into_response())
}

/// What is wrong with the targets an event is held for, by cause. A lead that was never tried has no failure of its own: what
/// the lead that died of the cause was told, else why the target is open.
async fn reasons(api: &Api, record: &EventRecord) -> Result<BTreeMap<String, String>, ApiError> {
    let mut reasons = BTreeMap::new();
    for step in record.steps.iter().filter(|s| s.failure.is_none()) {
        let Some(cause) = &step.held_under else {
            continue;
        };
        let filter = Filter {
            workspace: Some(record.summary.workspace),
            cause: Some(cause.clone()),
            ..Filter::default()
        };
        let newest = api.store.dead_letters(filter, page(None, Some(1))).await?;
        if let Some(letter) = newest.rows.into_iter().next() {
            reasons.insert(cause.clone(), letter.failure.message);
            continue;
        }
        let targets = api.store.targets().await?;
        let open = targets.into_iter().find(|t| t.target == step.target);
        if let Some(breaker::State::Open { reason, .. }) = open.map(|t| t.state) {
            reasons.insert(cause.clone(), in_words(reason).into());
        }
    }
    Ok(reasons)
}

fn in_words(reason: breaker::Reason) -> &'static str {
    match reason {
        breaker::Reason::Down => "It does not answer, or answers that it cannot.",
        breaker::Reason::Throttled => "It asked to be left alone for a while.",
        breaker::Reason::Config => "It is set up wrong; somebody must act.",
    }
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
