//! Reading API requests: strict bodies and queries, and the workspace they are about.
//!
//! What is not known is refused, so that a slip of the pen is never taken for "no filter".

use super::error::{ApiError, Detail};
use crate::installation::{Installation, Workspace};
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use emanet_core::ids::{DestinationId, SourceId, Target, WorkspaceId};
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use std::str::FromStr;

/// Largest body of an API call: a configuration file, at most.
pub(super) const BODY_BYTES_MAX: usize = 1024 * 1024;

/// A JSON body.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let is_json = request
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.split(';').next())
            .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
        if !is_json {
            return Err(ApiError::unsupported_media());
        }
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(|_| ApiError::too_large(BODY_BYTES_MAX))?;
        serde_json::from_slice(&bytes)
            .map(Self)
            .map_err(|error| body_error(&error))
    }
}

/// Missing or unreadable is malformed, there but unusable is invalid (API-3, Decision).
fn body_error(error: &serde_json::Error) -> ApiError {
    let detail = vec![Detail::new("body", error.to_string())];
    let is_missing = error.to_string().starts_with("missing field");
    match error.classify() {
        Category::Data if !is_missing => ApiError::invalid(detail),
        Category::Data | Category::Syntax | Category::Eof | Category::Io => {
            ApiError::malformed(detail)
        }
    }
}

/// A query string.
pub(super) struct Ask<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Ask<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        Query::<T>::from_request_parts(parts, state)
            .await
            .map(|Query(query)| Self(query))
            .map_err(|error| ApiError::malformed(vec![Detail::new("query", error.body_text())]))
    }
}

/// The id in a path. What is no id of its kind names nothing.
pub(super) fn id<T: FromStr>(text: &str) -> Result<T, ApiError> {
    text.parse().map_err(|_| ApiError::not_found())
}

/// A value that is there and not valid.
pub(super) fn invalid(field: &str, message: impl Into<String>) -> ApiError {
    ApiError::invalid(vec![Detail::new(field, message)])
}

/// Name of the header that names the workspace.
pub(super) const WORKSPACE_HEADER: &str = "x-workspace";

/// The workspace a request is about: the one named by `X-Workspace`, else all of them. The local socket belongs to the
/// operator, who may see every one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scope(pub(super) Option<WorkspaceId>);

impl Scope {
    /// The scope of a request.
    pub(super) fn of(headers: &HeaderMap, installation: &Installation) -> Result<Self, ApiError> {
        let Some(value) = headers.get(WORKSPACE_HEADER) else {
            return Ok(Self(None));
        };
        value
            .to_str()
            .ok()
            .and_then(|name| installation.workspaces.values().find(|w| w.name == name))
            .map(|workspace| Self(Some(workspace.id)))
            .ok_or_else(|| invalid("x-workspace", "there is no workspace of that name"))
    }

    /// The workspaces to look through for a thing with an id.
    pub(super) fn candidates(self, installation: &Installation) -> Vec<WorkspaceId> {
        match self.0 {
            Some(only) => vec![only],
            None => installation.workspaces.keys().copied().collect(),
        }
    }

    /// The one workspace a change is made in.
    pub(super) fn one(self, installation: &Installation) -> Result<WorkspaceId, ApiError> {
        match (self.0, installation.workspaces.len()) {
            (Some(only), _) => Ok(only),
            (None, 1) => self
                .candidates(installation)
                .first()
                .copied()
                .ok_or_else(ApiError::not_found),
            (None, _) => Err(ApiError::malformed(vec![Detail::new(
                WORKSPACE_HEADER,
                "there are several workspaces: name one",
            )])),
        }
    }

    /// The source of that name or id.
    pub(super) fn source(
        self,
        installation: &Installation,
        text: &str,
    ) -> Result<SourceId, ApiError> {
        if let Ok(id) = text.parse() {
            return Ok(id);
        }
        let found = installation
            .sources
            .values()
            .filter(|s| self.0.is_none_or(|w| w == s.workspace) && s.name == text)
            .map(|s| s.id);
        only(found, "source", text)
    }

    /// The destination of that name or id.
    pub(super) fn destination(
        self,
        installation: &Installation,
        text: &str,
    ) -> Result<DestinationId, ApiError> {
        if let Ok(id) = text.parse() {
            return Ok(id);
        }
        let found = installation
            .destinations
            .values()
            .filter(|d| self.0.is_none_or(|w| w == d.workspace) && d.name == text)
            .map(|d| d.id);
        only(found, "destination", text)
    }
}

fn only<T>(mut found: impl Iterator<Item = T>, what: &str, name: &str) -> Result<T, ApiError> {
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(invalid(what, format!("there is no {what} called {name:?}"))),
        (Some(_), Some(_)) => Err(invalid(
            what,
            format!("several workspaces have a {what} called {name:?}: name the workspace"),
        )),
    }
}

/// Name of a workspace for people; its id for one that is configured no longer.
pub(super) fn workspace_name(installation: &Installation, id: WorkspaceId) -> String {
    let named = installation.workspaces.get(&id);
    named.map_or_else(|| id.to_string(), |w: &Workspace| w.name.clone())
}

/// A target with its name.
#[derive(Debug, serde::Serialize)]
pub(super) struct TargetView {
    id: String,
    name: String,
}

impl TargetView {
    pub(super) fn new(installation: &Installation, target: Target) -> Self {
        Self {
            id: target.to_string(),
            name: installation.target_name(target),
        }
    }
}
