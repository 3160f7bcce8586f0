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

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::{Body, to_bytes};
    use axum::extract::Request;
    use emanet_store::sqlite::SqliteStore;
    use tower::ServiceExt;

    struct World {
        app: Router,
        store: Arc<SqliteStore>,
        stop: watch::Sender<bool>,
        _directory: tempfile::TempDir,
    }

    fn world() -> World {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(directory.path()).unwrap());
        let (stop, stopped) = watch::channel(false);
        let app = router(Health {
            store: Arc::clone(&store) as Arc<dyn Store>,
            metrics: Arc::new(Metrics::new()),
            env: Env::system(),
            stop: stopped,
        });
        World {
            app,
            store,
            stop,
            _directory: directory,
        }
    }

    async fn check(world: &World, path: &str, status: u16, part: &str) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let answer = world.app.clone().oneshot(request).await.unwrap();
        let got = answer.status();
        let body = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        let body = std::str::from_utf8(&body).unwrap();
        assert_eq!(got, status, "{path}: {body}");
        assert!(body.contains(part), "{path}: {body}");
    }

    #[tokio::test]
    async fn it_is_ready_while_the_store_answers() {
        let world = world();
        check(&world, "/healthz", 200, "ok").await;
        check(&world, "/readyz", 200, r#"{"ready":true}"#).await;
        check(&world, "/metrics", 200, "emanet_store_up 1").await;
        world.store.close().await.unwrap();
        check(&world, "/healthz", 200, "ok").await;
        check(&world, "/readyz", 503, "store_unavailable").await;
        check(&world, "/metrics", 200, "emanet_store_up 0").await;
    }

    /// Load balancers must look elsewhere before connections are closed.
    #[tokio::test]
    async fn it_is_not_ready_while_it_stops() {
        let world = world();
        world.stop.send(true).unwrap();
        check(&world, "/readyz", 503, "stopping").await;
        check(&world, "/healthz", 200, "ok").await;
    }
}
