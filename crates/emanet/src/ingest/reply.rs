//! What a sender is answered: the connector's reply, and what browsers need to see it.

use crate::api::trace::Trace;
use axum::Json;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use emanet_connectors::connector::Reply;
use emanet_core::event::Accepted;
use serde::Serialize;

/// The connector's reply as an HTTP answer.
pub(super) fn render(reply: Reply, accepted: &[Accepted]) -> Response {
    match reply {
        Reply::Json => Json(Stored::of(accepted)).into_response(),
        Reply::Text(text) => typed("text/plain; charset=utf-8", text),
        Reply::Html(page) => typed("text/html; charset=utf-8", page),
        Reply::Script(script) => {
            let mut response = typed("text/javascript; charset=utf-8", script);
            // Every view of a page with the form loads it.
            response.headers_mut().insert(
                header::CACHE_CONTROL,
                HeaderValue::from_static("public, max-age=300"),
            );
            response
        }
        Reply::SeeOther(address) => match HeaderValue::try_from(address) {
            Ok(address) => (StatusCode::SEE_OTHER, [(header::LOCATION, address)]).into_response(),
            // The lead is safe; a thank-you page that cannot be named must not make it look lost.
            Err(_) => Json(Stored::of(accepted)).into_response(),
        },
    }
}

/// Whether pages of other origins post to this kind of source with scripts.
pub(super) fn is_cross_origin(source_kind: &str) -> bool {
    source_kind == "web_form"
}

/// Lets any page read the answer, where pages post; and no browser guess a type or, unless told so, keep an answer.
pub(super) fn for_browsers(source_kind: &str, mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    if is_cross_origin(source_kind) {
        allow_all_origins(headers);
        headers.insert(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("retry-after, traceparent"),
        );
    }
    response
}

/// Answers a browser's question whether a page may post. It may: what is sent here carries no credentials of the browser's.
pub(super) fn preflight(asked: &HeaderMap) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    allow_all_origins(headers);
    let fixed: [(HeaderName, &'static str); 3] = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
        (header::ACCESS_CONTROL_MAX_AGE, "7200"),
        (header::VARY, "access-control-request-headers"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Some(wanted) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    response
}

fn allow_all_origins(headers: &mut HeaderMap) {
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_ORIGIN,
        HeaderValue::from_static("*"),
    );
}

fn typed(content_type: &'static str, body: String) -> Response {
    ([(header::CONTENT_TYPE, content_type)], body).into_response()
}

#[derive(Serialize)]
struct Stored {
    status: &'static str,
    events: Vec<StoredEvent>,
    trace_id: String,
}

#[derive(Serialize)]
struct StoredEvent {
    id: String,
    new: bool,
}

impl Stored {
    fn of(accepted: &[Accepted]) -> Self {
        Self {
            status: "stored",
            events: accepted
                .iter()
                .map(|a| StoredEvent {
                    id: a.event.to_string(),
                    new: a.is_new,
                })
                .collect(),
            trace_id: Trace::current().map(|t| t.id()).unwrap_or_default(),
        }
    }
}
