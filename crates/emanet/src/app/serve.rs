//! `emanet serve`: runs until it is told to stop.

use super::{AppError, Running, Start, start};
use crate::config::File;
use crate::env::Env;
use crate::telemetry::{self, LogFormat};
use emanet_core::secret::Secret;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use tokio::signal::unix::{SignalKind, signal};

/// Options of `emanet serve` (design 6).
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The data directory.
    pub data_dir: PathBuf,
    /// Address to listen on; the configuration's if none.
    pub listen: Option<SocketAddr>,
    /// The configuration file, if one is given.
    pub config: Option<PathBuf>,
    /// Say in JSON that it is ready.
    pub json: bool,
    /// How log lines look.
    pub log_format: LogFormat,
    /// Which log lines are written (`info,emanet=debug`).
    pub log_filter: String,
}

/// Runs until SIGTERM or SIGINT; then ends in order.
///
/// # Errors
/// Whatever keeps it from running.
pub async fn serve(options: ServeOptions) -> Result<(), AppError> {
    telemetry::init(options.log_format, &options.log_filter)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(AppError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(AppError::Signals)?;
    let file = options.config.as_deref().map(read).transpose()?;
    let mut running = start(
        Start {
            data_dir: options.data_dir,
            listen: options.listen,
            file,
        },
        Env::system(),
    )
    .await?;
    announce(&running, options.json);
    let broken = tokio::select! {
        _ = terminate.recv() => None,
        _ = interrupt.recv() => None,
        error = running.broken() => Some(error),
    };
    tracing::info!("stopping: no new work is begun, what is in flight ends");
    running.stop().await?;
    broken.map_or(Ok(()), Err)
}

/// Reads a configuration file.
///
/// # Errors
/// If it cannot be read.
pub fn read(path: &Path) -> Result<File, AppError> {
    let text = std::fs::read_to_string(path).map_err(|source| AppError::File {
        path: path.into(),
        source,
    })?;
    Ok(File {
        name: path.display().to_string(),
        text: Secret::new(text),
    })
}

#[expect(
    clippy::print_stdout,
    reason = "the ready line is what the caller waits for"
)]
fn announce(running: &Running, as_json: bool) {
    if as_json {
        println!("{}", running.ready.json());
    } else {
        println!("{}", running.ready.text());
    }
}
