//! `/sources`: where each source takes leads in, and requests formed as its platform forms them, for `emanet send`.
//!
//! Both carry what only the owner may know (tokens, signatures), which is why they exist on the local socket.

use super::Api;
use super::error::ApiError;
use super::request::{Body, Scope, invalid, workspace_name};
use super::shape::ListView;
use crate::installation::SourceEntry;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use base64::Engine as _;
use emanet_connectors::connector::Sample;
use emanet_core::event::Inbound;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Samples composed in one call at most.
const SAMPLES_MAX: usize = 1_000;

/// A source.
#[derive(Debug, Serialize)]
pub(super) struct SourceView {
    id: String,
    workspace: String,
    name: String,
    kind: &'static str,
    paused: bool,
    receives_only: bool,
    /// Path of its intake; the token in it is what a sender must know.
    intake_path: String,
    /// The whole address, where the server knows its own.
    intake: Option<String>,
}

pub(super) async fn list(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
) -> Result<Json<ListView<SourceView>>, ApiError> {
    let installation = api.installation.get();
    let Scope(workspace) = Scope::of(&headers, &installation)?;
    let sources = installation.sources.values();
    let rows = sources
        .filter(|source| workspace.is_none_or(|w| w == source.workspace))
        .map(|source| SourceView {
            id: source.id.to_string(),
            workspace: workspace_name(&installation, source.workspace),
            name: source.name.clone(),
            kind: source.kind.kind,
            paused: source.paused,
            receives_only: source.flow.is_none(),
            intake_path: intake_path(source),
            intake: intake(&api, source),
        })
        .collect();
    let listed = emanet_store::Listed { rows, next: None };
    Ok(Json(ListView::of(listed, |view| view)))
}

/// Leads to form requests of.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ComposeBody {
    samples: Vec<SampleBody>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SampleBody {
    source_ref: String,
    created_at: Timestamp,
    fields: Vec<(String, String)>,
}

/// The requests, in the order of the samples.
#[derive(Debug, Serialize)]
pub(super) struct ComposedView {
    /// Where they belong.
    intake: Option<String>,
    intake_path: String,
    requests: Vec<RequestView>,
}

#[derive(Debug, Serialize)]
struct RequestView {
    method: String,
    query: String,
    headers: Vec<(String, String)>,
    body_base64: String,
}

impl From<Inbound> for RequestView {
    fn from(request: Inbound) -> Self {
        Self {
            method: request.method,
            query: request.query,
            headers: request.headers,
            body_base64: base64::engine::general_purpose::STANDARD.encode(request.body),
        }
    }
}

pub(super) async fn compose(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    Path(name): Path<String>,
    Body(body): Body<ComposeBody>,
) -> Result<Json<ComposedView>, ApiError> {
    let installation = api.installation.get();
    let scope = Scope::of(&headers, &installation)?;
    if body.samples.len() > SAMPLES_MAX {
        return Err(invalid("samples", format!("at most {SAMPLES_MAX} at once")));
    }
    let id = scope.source(&installation, &name)?;
    let source = installation
        .sources
        .get(&id)
        .ok_or_else(ApiError::not_found)?;
    let requests = body.samples.into_iter().map(|sample| {
        let sample = Sample {
            source_ref: sample.source_ref,
            fields: sample.fields,
            created_at: sample.created_at,
        };
        RequestView::from(source.connector.compose(&sample))
    });
    Ok(Json(ComposedView {
        intake: intake(&api, source),
        intake_path: intake_path(source),
        requests: requests.collect(),
    }))
}

/// The whole address, where the server knows its own.
fn intake(api: &Api, source: &SourceEntry) -> Option<String> {
    let base = api.base_url.as_ref()?;
    Some(format!(
        "{}{}",
        base.trim_end_matches('/'),
        intake_path(source)
    ))
}

fn intake_path(source: &SourceEntry) -> String {
    format!("/in/{}", source.token.expose())
}
