//! The parts put together: one installation running in this process, from its data directory to its listeners, and its orderly
//! end. `serve` runs one until it is told to stop; `demo` runs one under fire.

pub mod demo;
mod error;
mod ready;
pub mod serve;

pub use error::AppError;
pub use ready::Ready;

use crate::api::{self, Api};
use crate::config::data_dir::{DataDir, Lock, key_from_environment};
use crate::config::{Document, File, InForce, Keeper};
use crate::console::Console;
use crate::engine::{self, Parts};
use crate::env::Env;
use crate::http_server::{self, Listener};
use crate::ingest::{self, Intake};
use crate::installation::Current;
use crate::sandbox::{Sandbox, SandboxTransport};
use crate::scheduler;
use crate::telemetry::{self, Counted, Health, Metrics};
use crate::transport::{HttpTransport, Options, Transport};
use emanet_core::normalise;
use emanet_core::seal::Keyring;
use emanet_store::Store;
use emanet_store::sqlite::SqliteStore;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{Mutex, Notify, watch};
use tokio::task::JoinSet;

/// Where and how to run.
#[derive(Debug, Clone)]
pub struct Start {
    /// The data directory.
    pub data_dir: PathBuf,
    /// Address to listen on; the configuration's if none.
    pub listen: Option<SocketAddr>,
    /// Configuration to put into force, if it is new.
    pub file: Option<File>,
}

/// A running installation.
#[derive(Debug)]
pub struct Running {
    /// Where it can be reached.
    pub ready: Ready,
    /// Its storage.
    pub store: Arc<dyn Store>,
    /// The configuration in force.
    pub installation: Arc<Current>,
    /// The CRM inside the product.
    pub sandbox: Arc<Sandbox>,
    /// Engine and scheduler share these.
    pub parts: Arc<Parts>,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
    socket: PathBuf,
    _lock: Lock,
}

/// Starts an installation. When this returns, it takes leads.
///
/// # Errors
/// Whatever is in the way, said so that a person can remove it.
pub async fn start(start: Start, env: Env) -> Result<Running, AppError> {
    let Opened {
        data_dir,
        lock,
        keyring,
        store,
        keeper,
        in_force,
    } = open(&start, &env).await?;
    let sandbox = Arc::new(Sandbox::new(Arc::clone(&store), env.clone()));
    for (destination, faults) in in_force.sandbox_faults() {
        sandbox.set_faults(destination, faults);
    }
    let document = in_force.document;
    let installation = Arc::new(Current::new(in_force.installation));
    let metrics = Arc::new(Metrics::new());
    let transport = transport(&document, &sandbox, &metrics, &env)?;
    let wake = Arc::new(Notify::new());
    let (stop, stopping) = watch::channel(false);
    let parts = Parts::assemble(
        Arc::clone(&store),
        Arc::clone(&installation),
        Arc::clone(&transport),
        env.clone(),
        Arc::clone(&metrics),
        Arc::clone(&wake),
        stopping.clone(),
    )
    .await?;
    let socket = data_dir.socket();
    let doors = Doors::open(start.listen.unwrap_or(document.server.listen), &socket).await?;
    let (console, login) = Console::new(Arc::clone(&store), Arc::clone(&installation), env.clone());
    let intake = Intake {
        store: Arc::clone(&store),
        installation: Arc::clone(&installation),
        env: env.clone(),
        keyring,
        metrics: Arc::clone(&metrics),
        wake: Arc::clone(&wake),
        limits: ingest::Limits::default(),
    };
    let health = Health {
        store: Arc::clone(&store),
        metrics,
        env: env.clone(),
        stop: stopping.clone(),
    };
    let public = ingest::router(intake)
        .merge(telemetry::router(health))
        .merge(console.router());
    let ready = Ready::new(
        &document,
        &installation.get(),
        doors.address,
        &socket,
        &login,
    );
    let api = Arc::new(Api {
        store: Arc::clone(&store),
        installation: Arc::clone(&installation),
        keeper,
        data_dir,
        transport,
        sandbox: Some(Arc::clone(&sandbox)),
        env: env.clone(),
        wake,
        wake_scheduler: Arc::clone(&parts.wake_scheduler),
        base_url: Some(format!("http://{}", ready::reachable(doors.address))),
        applying: Mutex::new(()),
    });
    let proxies = document.server.trusted_proxies;
    let limits = http_server::Limits {
        trusted_proxies: proxies,
        ..http_server::Limits::default()
    };
    let serve = |door, router| {
        http_server::serve(
            door,
            api::trace::traced(router, env.clone()),
            limits.clone(),
            stopping.clone(),
        )
    };
    let mut tasks = JoinSet::new();
    tasks.spawn_blocking(normalise::warm);
    tasks.spawn(serve(doors.network, public));
    tasks.spawn(serve(doors.local, api.router()));
    tasks.spawn(engine::run(Arc::clone(&parts)));
    tasks.spawn(scheduler::run(Arc::clone(&parts)));
    Ok(Running {
        ready,
        store,
        installation,
        sandbox,
        parts,
        stop,
        tasks,
        socket,
        _lock: lock,
    })
}

/// An installation taken for this process, its configuration in force.
struct Opened {
    data_dir: DataDir,
    lock: Lock,
    keyring: Arc<Keyring>,
    store: Arc<dyn Store>,
    keeper: Keeper,
    in_force: InForce,
}

async fn open(start: &Start, env: &Env) -> Result<Opened, AppError> {
    let data_dir = DataDir::new(&start.data_dir);
    let lock = data_dir.lock()?;
    let keyring = Arc::new(data_dir.keyring(&lock, key_from_environment(), env)?);
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(data_dir.path())?);
    let keeper = Keeper {
        store: Arc::clone(&store),
        keyring: Arc::clone(&keyring),
        env: env.clone(),
    };
    let in_force = keeper.start(start.file.as_ref()).await?;
    Ok(Opened {
        data_dir,
        lock,
        keyring,
        store,
        keeper,
        in_force,
    })
}

/// Where requests come in.
struct Doors {
    network: Listener,
    address: SocketAddr,
    local: Listener,
}

impl Doors {
    async fn open(listen: SocketAddr, socket: &Path) -> Result<Self, AppError> {
        let failed = |source| AppError::Listen { listen, source };
        let network = tokio::net::TcpListener::bind(listen)
            .await
            .map_err(failed)?;
        let address = network.local_addr().map_err(failed)?;
        let local = Listener::local(socket).map_err(|source| AppError::Socket {
            path: socket.into(),
            source,
        })?;
        Ok(Self {
            network: Listener::Tcp(network),
            address,
            local,
        })
    }
}

/// What performs calls: the network, behind it the CRM inside the product, all of it counted.
fn transport(
    document: &Document,
    sandbox: &Arc<Sandbox>,
    metrics: &Arc<Metrics>,
    env: &Env,
) -> Result<Arc<dyn Transport>, AppError> {
    let options = Options {
        allow: document.network.allow_private.clone(),
        extra_roots: document.network.extra_root_certificates.clone(),
        ..Options::default()
    };
    let http: Arc<dyn Transport> = Arc::new(HttpTransport::new(options, env)?);
    let all: Arc<dyn Transport> = Arc::new(SandboxTransport {
        sandbox: Arc::clone(sandbox),
        inner: http,
    });
    Ok(Arc::new(Counted::new(all, Arc::clone(metrics))))
}

impl Running {
    /// Stops in order: no new requests, what is in flight ends or is handed back, the store is written down and closed.
    ///
    /// # Errors
    /// If the store cannot be closed; everything acknowledged is on disk all the same.
    pub async fn stop(mut self) -> Result<(), AppError> {
        // Nobody listening any more means everything has ended already.
        let _ = self.stop.send(true);
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(error = %error, "a part of the program ended badly");
            }
        }
        self.store.close().await?;
        if let Err(error) = std::fs::remove_file(&self.socket) {
            tracing::debug!(error = %error, "the local socket could not be removed; the next start replaces it");
        }
        Ok(())
    }

    /// Ends when a part of the program ends that never should while it runs.
    pub async fn broken(&mut self) -> AppError {
        loop {
            match self.tasks.join_next().await {
                // The warm-up is done.
                Some(Ok(())) if self.tasks.len() >= PARTS => {}
                Some(Ok(())) => return AppError::Part("ended".into()),
                Some(Err(error)) => return AppError::Part(error.to_string()),
                None => std::future::pending().await,
            }
        }
    }
}

/// Tasks that run as long as the installation does: two listeners, the engine, the scheduler.
const PARTS: usize = 4;

#[cfg(test)]
mod tests;
