//! The CRM inside the product: what is in it, and what it does wrong. `/sandbox/{destination}/…`

use super::Api;
use super::error::ApiError;
use super::request::{Ask, Body, Scope};
use super::shape::{ListView, page};
use crate::installation::DestinationEntry;
use crate::sandbox::{Calls, Faults, Sandbox};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use emanet_store::{SandboxFilter, SandboxObject};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An object in a sandbox.
#[derive(Debug, Serialize)]
pub(super) struct ObjectView {
    id: String,
    object: String,
    external_id: Option<String>,
    fields: serde_json::Map<String, serde_json::Value>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl From<SandboxObject> for ObjectView {
    fn from(object: SandboxObject) -> Self {
        Self {
            id: object.id,
            object: object.object,
            external_id: object.external_id,
            fields: object.fields,
            created_at: object.created_at,
            updated_at: object.updated_at,
        }
    }
}

/// The query of `GET /sandbox/{destination}/objects`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ObjectsQuery {
    object: Option<String>,
    external_id: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

pub(super) async fn objects(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    Path(name): Path<String>,
    Ask(query): Ask<ObjectsQuery>,
) -> Result<Json<ListView<ObjectView>>, ApiError> {
    let destination = find(&api, &headers, &name)?;
    let filter = SandboxFilter {
        workspace: Some(destination.workspace),
        destination: Some(destination.id),
        object: query.object,
        external_id: query.external_id,
        id: None,
    };
    let listed = api
        .store
        .sandbox_objects(filter, page(query.after, query.limit))
        .await?;
    Ok(Json(ListView::of(listed, ObjectView::from)))
}

/// What a sandbox does wrong, and what it has seen.
#[derive(Debug, Serialize)]
pub(super) struct FaultsView {
    faults: Faults,
    calls: Calls,
}

pub(super) async fn faults(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    Path(name): Path<String>,
) -> Result<Json<FaultsView>, ApiError> {
    let destination = find(&api, &headers, &name)?;
    Ok(Json(faults_view(running(&api)?, &destination)))
}

/// Replaces what a sandbox does wrong, until it is set again or the server ends.
pub(super) async fn set_faults(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    Path(name): Path<String>,
    Body(faults): Body<Faults>,
) -> Result<Json<FaultsView>, ApiError> {
    let destination = find(&api, &headers, &name)?;
    let sandbox = running(&api)?;
    sandbox.set_faults(destination.id, faults);
    Ok(Json(faults_view(sandbox, &destination)))
}

fn faults_view(sandbox: &Sandbox, destination: &DestinationEntry) -> FaultsView {
    FaultsView {
        faults: sandbox.faults(destination.id),
        calls: sandbox.calls(destination.id),
    }
}

fn running(api: &Api) -> Result<&Sandbox, ApiError> {
    api.sandbox
        .as_deref()
        .ok_or_else(|| ApiError::conflict("a sandbox does wrong only while a server runs"))
}

/// The sandbox of that name or id. Another kind of destination is none.
fn find(api: &Api, headers: &HeaderMap, name: &str) -> Result<Arc<DestinationEntry>, ApiError> {
    let installation = api.installation.get();
    let scope = Scope::of(headers, &installation)?;
    let id = scope.destination(&installation, name)?;
    installation
        .destinations
        .get(&id)
        .filter(|destination| destination.kind.kind == "sandbox")
        .cloned()
        .ok_or_else(ApiError::not_found)
}
