//! Wiring: store, intake, engine, scheduler, console and sockets into one running program.

use crate::cli::Failed;
use crate::telemetry::LogFormat;
use std::net::SocketAddr;
use std::path::PathBuf;

/// What `emanet serve` was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeOptions {
    /// The data directory.
    pub data_dir: PathBuf,
    /// Address to listen on, before that of the configuration.
    pub listen: Option<SocketAddr>,
    /// A configuration file to start with.
    pub config: Option<PathBuf>,
    /// Say that it is ready as one JSON line.
    pub json: bool,
    /// How log lines look.
    pub log_format: LogFormat,
    /// Which log lines are written.
    pub log_filter: String,
}

/// What `emanet demo` was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoOptions {
    /// Leads to send.
    pub leads: u32,
    /// Seed of everything random in it; drawn if none is given.
    pub seed: Option<u64>,
    /// End with one JSON line.
    pub json: bool,
}

/// Serves until it is told to stop.
///
/// # Errors
/// If it cannot start.
pub async fn serve(options: ServeOptions) -> Result<(), Failed> {
    let _ = options;
    Err(Failed::new(
        crate::cli::Exit::Failed,
        "serve is not wired yet",
    ))
}

/// Shows the product under fire, and ends when every lead is accounted for.
///
/// # Errors
/// If a lead was lost or doubled, or the sum does not close.
pub async fn demo(options: DemoOptions) -> Result<(), Failed> {
    let _ = options;
    Err(Failed::new(
        crate::cli::Exit::Failed,
        "demo is not wired yet",
    ))
}
