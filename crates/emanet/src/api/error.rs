//! The error contract of the HTTP edge (API-1 … API-4): the only type that knows statuses. What is public is the table's
//! code, its text in the caller's language and field details; what is private goes to the log, never into an answer (S9).

use super::trace::Trace;
use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use emanet_core::error_code::{self as code, Code};
use emanet_core::field::Invalid;
use serde::Serialize;
use std::time::Duration;

/// An error as the API answers it.
#[derive(Debug)]
pub struct ApiError {
    code: &'static Code,
    details: Vec<Detail>,
    hint: Option<&'static str>,
    private: Option<String>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// What is wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Detail {
    /// Path of the field, dots between.
    pub field: String,
    /// What is wrong and how to mend it.
    pub message: String,
}

impl ApiError {
    /// 500: something that should not happen. `private` is for the log.
    pub fn internal(private: impl Into<String>) -> Self {
        Self::new(&code::INTERNAL).private(private)
    }

    /// 503: something we depend on is away; the caller is asked to come again after `retry_after`.
    pub fn unavailable(private: impl Into<String>, retry_after: Duration) -> Self {
        Self::new(&code::UNAVAILABLE)
            .private(private)
            .header(header::RETRY_AFTER, retry_after.as_secs().into())
    }

    /// 504: it took too long.
    pub fn timeout() -> Self {
        Self::new(&code::TIMEOUT)
    }

    /// 501: no such endpoint or feature.
    pub fn no_such_endpoint() -> Self {
        Self::new(&code::NO_SUCH_ENDPOINT)
    }

    /// 400: cannot be read, or a required field is missing.
    pub fn malformed(details: Vec<Detail>) -> Self {
        Self::new(&code::MALFORMED).details(details)
    }

    /// 422: present but invalid.
    pub fn invalid(details: Vec<Detail>) -> Self {
        Self::new(&code::INVALID).details(details)
    }

    /// 404: no such resource, or not in this workspace.
    pub fn not_found() -> Self {
        Self::new(&code::NOT_FOUND)
    }

    /// 409: the state does not allow it. `why` is shown.
    pub fn conflict(why: impl Into<String>) -> Self {
        Self::new(&code::CONFLICT).details(vec![Detail::new("", why)])
    }

    /// 413: more than `bytes_max`. The connection is closed: what else the caller sends is not read.
    pub fn too_large(bytes_max: usize) -> Self {
        Self::new(&code::TOO_LARGE)
            .details(vec![Detail::new(
                "body",
                format!("at most {bytes_max} bytes"),
            )])
            .closing()
    }

    /// 405, with the methods there are.
    pub fn method_not_allowed(allow: &'static str) -> Self {
        Self::new(&code::METHOD).header(header::ALLOW, HeaderValue::from_static(allow))
    }

    /// 415: content type or encoding.
    pub fn unsupported_media() -> Self {
        Self::new(&code::MEDIA_TYPE)
    }

    /// 401: no identity, or an invalid one.
    pub fn unauthenticated() -> Self {
        Self::new(&code::UNAUTHENTICATED)
    }

    /// 403: a valid identity that may not.
    pub fn forbidden() -> Self {
        Self::new(&code::FORBIDDEN)
    }

    fn new(code: &'static Code) -> Self {
        Self {
            code,
            details: Vec::new(),
            hint: None,
            private: None,
            headers: Vec::new(),
        }
    }

    fn details(self, details: Vec<Detail>) -> Self {
        Self { details, ..self }
    }

    /// A hint that says more than the table's.
    pub fn hint(self, hint: &'static str) -> Self {
        Self {
            hint: Some(hint),
            ..self
        }
    }

    /// Why, for the log; never shown.
    pub fn private(self, why: impl Into<String>) -> Self {
        Self {
            private: Some(why.into()),
            ..self
        }
    }

    /// The connection ends after this answer: the rest of the request was not read.
    pub fn closing(self) -> Self {
        self.header(header::CONNECTION, HeaderValue::from_static("close"))
    }

    fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }
}

impl Detail {
    /// A detail.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}

impl From<Invalid> for Detail {
    fn from(invalid: Invalid) -> Self {
        Self::new(invalid.key, invalid.message)
    }
}

/// The store's errors, as a caller may see them. `LeaseLost` belongs to workers and should not come this way.
impl From<emanet_store::Error> for ApiError {
    fn from(error: emanet_store::Error) -> Self {
        use emanet_store::Error;
        match error {
            Error::NotFound(_) => Self::not_found(),
            Error::Conflict(why) => Self::conflict(why),
            Error::Unavailable(why) => Self::unavailable(why, Duration::from_secs(5)),
            Error::LeaseLost | Error::Corrupt(_) => Self::internal(error.to_string()),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        self.log();
        let trace = Trace::current();
        let language = trace.map(|t| t.language).unwrap_or_default();
        let envelope = Envelope {
            error: Body {
                code: self.code.text,
                message: self.code.message(language),
                hint: self.hint.unwrap_or_else(|| self.code.hint(language)),
                trace_id: trace.map(|t| t.id()).unwrap_or_default(),
                details: self.details,
            },
        };
        let status =
            StatusCode::from_u16(self.code.status).expect("the table holds valid statuses");
        let mut response = (status, Json(envelope)).into_response();
        response.headers_mut().extend(
            self.headers
                .into_iter()
                .map(|(name, value)| (Some(name), value)),
        );
        response
    }
}

impl ApiError {
    fn log(&self) {
        let code = self.code.text;
        let why = self.private.as_deref().unwrap_or_default();
        match self.code.status {
            503 => tracing::warn!(error.code = code, error.detail = ?why, "a request was put off"),
            500 => tracing::error!(error.code = code, error.detail = ?why, "a request failed here"),
            _ => tracing::debug!(error.code = code, error.detail = ?why, "a request was declined"),
        }
    }
}

#[derive(Serialize)]
struct Envelope {
    error: Body,
}

#[derive(Serialize)]
struct Body {
    code: &'static str,
    message: &'static str,
    hint: &'static str,
    trace_id: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    details: Vec<Detail>,
}

/// Answer to a route that does not exist (API-3, Decision).
pub(super) async fn no_such_endpoint() -> ApiError {
    ApiError::no_such_endpoint()
}

/// Answer to a method a route does not have; the router adds which it has.
pub(super) async fn method_not_allowed() -> ApiError {
    ApiError::new(&code::METHOD)
}
