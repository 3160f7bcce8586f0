//! What keeps the program from running.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Why it does not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The data directory.
    #[error(transparent)]
    DataDir(#[from] crate::config::data_dir::DataDirError),
    /// The configuration.
    #[error(transparent)]
    Configuration(#[from] crate::config::ReviseError),
    /// The configuration file.
    #[error("cannot read {}: {source}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The store.
    #[error(transparent)]
    Store(#[from] emanet_store::Error),
    /// Root certificates.
    #[error(transparent)]
    Roots(#[from] crate::transport::RootsError),
    /// The address.
    #[error(
        "cannot listen on {listen}: {source}; is another program there? Choose another with --listen"
    )]
    Listen {
        /// Which.
        listen: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The local socket.
    #[error("cannot make the local socket {}: {source}; a path may be about 100 bytes long, choose a shorter --data-dir", .path.display())]
    Socket {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Logging.
    #[error(transparent)]
    Logging(#[from] crate::telemetry::InitError),
    /// Signals of the operating system.
    #[error("cannot listen to signals: {0}")]
    Signals(std::io::Error),
    /// A part of the program ended by itself.
    #[error("a part of the program stopped ({0}); it was ended so that a restart can mend it")]
    Part(String),
    /// The demonstration found what must not be.
    #[error("{0}")]
    Demo(String),
}
