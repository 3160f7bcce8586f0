//! The error contract as a caller sees it.

use super::error::{ApiError, Detail};
use super::trace::traced;
use crate::env::Env;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use serde_json::{Value, json};
use std::time::Duration;
use tower::ServiceExt;

const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn app() -> Router {
    let routes = Router::new()
        .route("/fine", get(async || "fine"))
        .route("/panic", get(panics))
        .route(
            "/away",
            get(async || ApiError::unavailable("disk /dev/sda1 is full", Duration::from_secs(7))),
        )
        .route(
            "/invalid",
            get(async || ApiError::invalid(vec![Detail::new("name", "must not be empty")])),
        )
        .route(
            "/closed",
            get(async || ApiError::from(emanet_store::Error::Corrupt("page 7".into()))),
        );
    traced(routes, Env::system())
}

#[expect(clippy::panic, reason = "the subject of the test")]
async fn panics() {
    panic!("+905321234567");
}

async fn ask(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> (StatusCode, HeaderMap, String) {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = app()
        .oneshot(request.body(Body::empty()).unwrap())
        .await
        .unwrap();
    let (head, body) = answer.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    (
        head.status,
        head.headers,
        String::from_utf8(body.to_vec()).unwrap(),
    )
}

/// API-1, S9: status, envelope, trace id in body and header, nothing else.
async fn check(path: &str, status: u16, code: &str) -> Value {
    let traceparent = format!("00-{TRACE_ID}-00f067aa0ba902b7-01");
    let (got, headers, body) = ask("GET", path, &[("traceparent", &traceparent)]).await;
    assert_eq!(got, status, "{path}");
    let error = serde_json::from_str::<Value>(&body).unwrap()["error"].take();
    assert_eq!(error["code"], code, "{path}");
    assert_eq!(error["trace_id"], TRACE_ID, "{path}");
    let answered = headers["traceparent"].to_str().unwrap();
    assert!(
        answered.starts_with(&format!("00-{TRACE_ID}-")),
        "{answered}"
    );
    assert!(
        !answered.contains("00f067aa0ba902b7"),
        "our span, not the caller's"
    );
    error
}

#[tokio::test]
async fn every_error_has_code_trace_and_hint() {
    check("/nowhere", 501, "CORE-SYS-0004").await;
    check("/panic", 500, "CORE-SYS-0001").await;
    check("/away", 503, "CORE-SYS-0002").await;
    check("/closed", 500, "CORE-SYS-0001").await;
    let error = check("/invalid", 422, "CORE-REQ-0002").await;
    assert_eq!(
        error["details"],
        json!([{ "field": "name", "message": "must not be empty" }])
    );
}

#[tokio::test]
async fn internals_are_not_shown() {
    for (path, secret) in [
        ("/away", "sda1"),
        ("/closed", "page 7"),
        ("/panic", "+9053"),
    ] {
        let (_, _, body) = ask("GET", path, &[]).await;
        assert!(!body.contains(secret), "{body}");
    }
}

#[tokio::test]
async fn a_put_off_request_is_told_when_to_come_again() {
    let (_, headers, _) = ask("GET", "/away", &[]).await;
    assert_eq!(headers["retry-after"], "7");
}

#[tokio::test]
async fn a_wrong_method_is_told_the_right_ones() {
    let (status, headers, body) = ask("DELETE", "/fine", &[]).await;
    assert_eq!(status, 405);
    assert!(body.contains("CORE-REQ-0007"), "{body}");
    assert_eq!(headers["allow"], "GET,HEAD");
}

#[tokio::test]
async fn a_request_without_a_trace_gets_one() {
    let (_, first, _) = ask("GET", "/fine", &[]).await;
    let (_, second, _) = ask("GET", "/fine", &[("traceparent", "nonsense")]).await;
    assert_eq!(first["traceparent"].len(), 55);
    assert_ne!(first["traceparent"], second["traceparent"]);
}

#[tokio::test]
async fn the_message_is_in_the_callers_language() {
    let (_, _, english) = ask("GET", "/nowhere", &[]).await;
    let (_, _, turkish) = ask("GET", "/nowhere", &[("accept-language", "tr-TR,en;q=0.5")]).await;
    assert!(english.contains("There is no such endpoint"), "{english}");
    assert!(turkish.contains("Böyle bir uç nokta yok"), "{turkish}");
}
