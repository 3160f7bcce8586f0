//! The HTTP API's edge: error contract and trace of every request, and the routes of `/api/v1`.
//!
//! For now `/api/v1` is served on the local socket only, to whoever may open it (design 9.10): the CLI. Nothing here asks who
//! is there, so it must not be mounted on a network listener.

mod codes;
mod configuration;
mod dead_letters;
mod doctor;
pub mod error;
mod events;
mod filter;
mod replays;
mod request;
mod sandbox;
mod shape;
mod sources;
mod status;
mod story;
#[cfg(test)]
mod tests;
pub mod trace;
#[cfg(test)]
mod v1_tests;

use crate::config::Keeper;
use crate::config::data_dir::DataDir;
use crate::env::Env;
use crate::installation::Current;
use crate::sandbox::Sandbox;
use crate::transport::Transport;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use emanet_store::Store;
use std::sync::Arc;
use tokio::sync::{Mutex, Notify};

/// What the API works with.
#[derive(Debug)]
pub struct Api {
    /// Storage.
    pub store: Arc<dyn Store>,
    /// The configuration in force.
    pub installation: Arc<Current>,
    /// Puts configurations into force.
    pub keeper: Keeper,
    /// Where the data is.
    pub data_dir: DataDir,
    /// Performs the calls of `doctor`.
    pub transport: Arc<dyn Transport>,
    /// Clock and random source.
    pub env: Env,
    /// Wakes the dispatcher.
    pub wake: Arc<Notify>,
    /// Wakes the scheduler.
    pub wake_scheduler: Arc<Notify>,
    /// The CRM inside the product, while it runs; without a server there is none.
    pub sandbox: Option<Arc<Sandbox>>,
    /// What the server is reached under (`http://127.0.0.1:7420`), while it listens.
    pub base_url: Option<String>,
    /// Held while a configuration is put into force.
    pub applying: Mutex<()>,
}

impl Api {
    /// The routes of `/api/v1`. Unknown routes, traces and panics are [`trace::traced`]'s.
    pub fn router(self: Arc<Self>) -> Router {
        let v1 = Router::new()
            .route("/status", get(status::status))
            .route("/targets", get(status::targets))
            .route("/alerts", get(status::alerts))
            .route("/events", get(events::list))
            .route("/events/{id}", get(events::show))
            .route("/events/{id}/raw", get(events::raw))
            .route("/dead-letters", get(dead_letters::list))
            .route("/dead-letters/{id}", get(dead_letters::show))
            .route("/dead-letters/{id}/resolve", post(dead_letters::resolve))
            .route("/replays", get(replays::list).post(replays::start))
            .route("/replays/{id}", get(replays::show))
            .route("/replays/{id}/stop", post(replays::stop))
            .route(
                "/config",
                get(configuration::show).post(configuration::apply),
            )
            .route("/doctor", post(doctor::doctor))
            .route("/sources", get(sources::list))
            .route("/sources/{name}/compose", post(sources::compose))
            .route("/sandbox/{destination}/objects", get(sandbox::objects))
            .route(
                "/sandbox/{destination}/faults",
                get(sandbox::faults).put(sandbox::set_faults),
            )
            .route("/errors", get(codes::list))
            .layer(DefaultBodyLimit::max(request::BODY_BYTES_MAX))
            .with_state(self);
        Router::new().nest("/api/v1", v1)
    }
}

/// Who does it, as far as they say. On the local socket it is whoever owns the data directory.
fn who(by: Option<String>) -> String {
    by.filter(|by| !by.trim().is_empty())
        .unwrap_or_else(|| "local".into())
}
