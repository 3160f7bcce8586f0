//! `/healthz` (the process lives), `/readyz` (it may be sent leads), `/metrics`.

use super::Metrics;
use crate::env::Env;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use emanet_store::{Status, Store, TargetRecord};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// The store must answer a health question within this time.
const PATIENCE: Duration = Duration::from_secs(2);

/// What health is judged by.
#[derive(Clone, Debug)]
pub struct Health {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// The clock.
    pub env: Env,
    /// True once the process is shutting down.
    pub stop: watch::Receiver<bool>,
}

/// The routes.
pub fn router(health: Health) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(health)
}

async fn ready(State(health): State<Health>) -> Response {
    match obstacle(&health).await {
        None => Json(json!({ "ready": true })).into_response(),
        Some(reason) => {
            let body = Json(json!({ "ready": false, "reason": reason }));
            (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
        }
    }
}

/// Why no lead should be sent here now.
async fn obstacle(health: &Health) -> Option<&'static str> {
    if *health.stop.borrow() {
        return Some("stopping");
    }
    match timeout(PATIENCE, health.store.check()).await {
        Ok(Ok(report)) if report.problems.is_empty() => None,
        Ok(Ok(report)) => {
            tracing::error!(store.problems = ?report.problems, "not ready: the store has problems");
            Some("store_has_problems")
        }
        Ok(Err(error)) => {
            tracing::warn!(error.detail = ?error.to_string(), "not ready: the store is away");
            Some("store_unavailable")
        }
        Err(_) => {
            tracing::warn!("not ready: the store does not answer in time");
            Some("store_slow")
        }
    }
}

async fn metrics(State(health): State<Health>) -> Response {
    let answer = timeout(PATIENCE, look(&health)).await.ok().flatten();
    health.metrics.store_answered(
        answer
            .as_ref()
            .map(|(status, targets)| (status, &**targets)),
    );
    match health.metrics.render() {
        Ok(text) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn look(health: &Health) -> Option<(Status, Vec<TargetRecord>)> {
    let status = health.store.status(None, health.env.now()).await.ok()?;
    let targets = health.store.targets().await.ok()?;
    Some((status, targets))
}
