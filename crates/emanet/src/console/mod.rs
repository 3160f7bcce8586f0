//! The console, first form: is anything wrong, what came in last, and the CRM inside the product. Server-rendered, nothing from
//! foreign hosts, Turkish and English. It shows; it changes nothing.

mod session;
mod texts;
mod view;

use crate::env::Env;
use crate::installation::Current;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use emanet_core::ids::DestinationId;
use emanet_store::{Filter, Page, SandboxFilter, Store};
use serde::Deserialize;
pub use session::Login;
use session::Sessions;
use std::sync::Arc;
use texts::Language;

/// What the console needs.
#[derive(Debug)]
pub struct Console {
    store: Arc<dyn Store>,
    installation: Arc<Current>,
    env: Env,
    sessions: Sessions,
}

impl Console {
    /// A console, and the one-time login to it.
    pub fn new(store: Arc<dyn Store>, installation: Arc<Current>, env: Env) -> (Arc<Self>, Login) {
        let (sessions, login) = Sessions::new(&env);
        (
            Arc::new(Self {
                store,
                installation,
                env,
                sessions,
            }),
            login,
        )
    }

    /// Its routes: everything below `/console`, and the way there from `/`.
    pub fn router(self: Arc<Self>) -> axum::Router {
        let pages = axum::Router::new()
            .route("/console", get(overview))
            .route("/console/sandbox/{destination}", get(sandbox))
            .route_layer(middleware::from_fn_with_state(
                Arc::clone(&self),
                require_session,
            ));
        pages
            .route("/", get(to_console))
            .route("/console/", get(to_console))
            .route("/console/login", get(log_in))
            .route("/console/style.css", get(style))
            .route("/favicon.ico", get(no_icon))
            .layer(middleware::from_fn(secure_headers))
            .with_state(self)
    }
}

/// Whoever types the bare address, or one slash too many, means the console.
async fn to_console() -> Redirect {
    Redirect::to("/console")
}

#[derive(Debug, Deserialize)]
struct LogIn {
    token: String,
}

/// Trades the one-time login for a session.
async fn log_in(
    State(console): State<Arc<Console>>,
    headers: HeaderMap,
    Query(query): Query<LogIn>,
) -> Response {
    let language = Language::of(&headers);
    match console.sessions.redeem(&query.token, &console.env) {
        Some(cookie) => ([(header::SET_COOKIE, cookie)], Redirect::to("/console")).into_response(),
        None => page(
            StatusCode::UNAUTHORIZED,
            view::message(language, "login_used"),
        ),
    }
}

/// Lets only sessions through; everybody else learns how to get one.
async fn require_session(
    State(console): State<Arc<Console>>,
    request: Request,
    next: Next,
) -> Response {
    let cookies = request
        .headers()
        .get(header::COOKIE)
        .and_then(|v| v.to_str().ok())
        .unwrap_or_default();
    if console.sessions.knows(cookies, console.env.now()) {
        next.run(request).await
    } else {
        page(
            StatusCode::UNAUTHORIZED,
            view::message(Language::of(request.headers()), "login_needed"),
        )
    }
}

/// No scripts, no frames, no foreign hosts, nothing cached (S12).
async fn secure_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let policy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(policy),
    );
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
    headers.insert(
        HeaderName::from_static("x-frame-options"),
        HeaderValue::from_static("DENY"),
    );
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

async fn overview(State(console): State<Arc<Console>>, headers: HeaderMap) -> Response {
    let language = Language::of(&headers);
    let now = console.env.now();
    let facts = async {
        let status = console.store.status(None, now).await?;
        let targets = console.store.targets().await?;
        let alerts = console
            .store
            .alerts(
                None,
                Page {
                    after: None,
                    limit: 20,
                },
            )
            .await?;
        let events = console
            .store
            .events(
                Filter::default(),
                Page {
                    after: None,
                    limit: 25,
                },
            )
            .await?;
        emanet_store::Result::Ok(view::Overview {
            status,
            targets,
            alerts: alerts.rows,
            events: events.rows,
        })
    };
    match facts.await {
        Ok(facts) => page(
            StatusCode::OK,
            view::overview(language, &console.installation.get(), &facts),
        ),
        Err(error) => unavailable(language, &error),
    }
}

#[derive(Debug, Deserialize)]
struct Paging {
    after: Option<String>,
}

async fn sandbox(
    State(console): State<Arc<Console>>,
    headers: HeaderMap,
    Path(destination): Path<String>,
    Query(paging): Query<Paging>,
) -> Response {
    let language = Language::of(&headers);
    let installation = console.installation.get();
    let entry = destination
        .parse::<DestinationId>()
        .ok()
        .and_then(|id| installation.destinations.get(&id));
    let Some(entry) = entry.filter(|d| d.kind.kind == "sandbox") else {
        return page(StatusCode::NOT_FOUND, view::message(language, "not_found"));
    };
    let filter = SandboxFilter {
        workspace: Some(entry.workspace),
        destination: Some(entry.id),
        ..SandboxFilter::default()
    };
    match console
        .store
        .sandbox_objects(
            filter,
            Page {
                after: paging.after,
                limit: 50,
            },
        )
        .await
    {
        Ok(objects) => page(
            StatusCode::OK,
            view::sandbox(language, &installation, entry, &objects),
        ),
        Err(error) => unavailable(language, &error),
    }
}

async fn style() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/css; charset=utf-8"),
        (header::CACHE_CONTROL, "max-age=3600"),
    ];
    (headers, include_str!("style.css")).into_response()
}

/// Browsers ask for it by themselves; there is none, and that is no error.
async fn no_icon() -> StatusCode {
    StatusCode::NO_CONTENT
}

fn page(status: StatusCode, html: Result<String, minijinja::Error>) -> Response {
    match html {
        Ok(html) => (status, Html(html)).into_response(),
        Err(error) => {
            tracing::error!(error = %error, "a console page could not be rendered");
            (StatusCode::INTERNAL_SERVER_ERROR, "CORE-SYS-0001").into_response()
        }
    }
}

fn unavailable(language: Language, error: &emanet_store::Error) -> Response {
    tracing::error!(error = %error, "the console cannot read the store");
    page(
        StatusCode::SERVICE_UNAVAILABLE,
        view::message(language, "unavailable"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::installation::Installation;
    use axum::body::Body;
    use emanet_store::sqlite::SqliteStore;
    use tower::ServiceExt as _;

    /// Browsers ask for an icon before anybody has logged in; the log must not show it as an error.
    #[tokio::test]
    async fn the_icon_browsers_ask_for_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open_inline(dir.path()).unwrap());
        let installation = Arc::new(Current::new(Installation::default()));
        let (console, _) = Console::new(store, installation, Env::system());
        let request = Request::get("/favicon.ico").body(Body::empty()).unwrap();
        let response = console.router().oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::NO_CONTENT);
    }
}
