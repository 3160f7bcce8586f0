//! A server with one source, mostly a web form, over a store of its own, and a client that shows every byte.

mod odd;

use crate::api::trace::traced;
use crate::env::Env;
use crate::http_server::{self, Listener};
use crate::ingest::{Intake, Limits, router};
use crate::installation::{Current, Installation, SourceEntry, Workspace};
use crate::telemetry::Metrics;
use emanet_core::event::Inbound;
use emanet_core::field::Settings;
use emanet_core::ids::{EventId, SourceId, WorkspaceId};
use emanet_core::lead::Required;
use emanet_core::normalise;
use emanet_core::seal::Keyring;
use emanet_core::secret::Secret;
use emanet_store::sqlite::SqliteStore;
use emanet_store::{EventSummary, Filter, NamedSource, NewRevision, Page, Store};
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, Notify, watch};
use tokio::task::JoinHandle;

pub(super) const BODY_BYTES_MAX: usize = 256 * 1024;
pub(super) const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const SIGNING_SECRET: &str = "a signing secret of the form";

/// Waits for what must come, but not for ever.
pub(super) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(30), future)
        .await
        .expect("it takes too long")
}

/// The signature the source expects.
pub(super) fn sign(body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SIGNING_SECRET.as_bytes()).unwrap();
    mac.update(body);
    let digest = mac.finalize().into_bytes();
    let hex: String = digest.iter().map(|b| format!("{b:02x}")).collect();
    format!("sha256={hex}")
}

pub(super) struct World {
    pub(super) store: Arc<SqliteStore>,
    pub(super) wake: Arc<Notify>,
    pub(super) stop: watch::Sender<bool>,
    pub(super) token: String,
    pub(super) path: String,
    metrics: Arc<Metrics>,
    workspace: WorkspaceId,
    address: SocketAddr,
    served: Mutex<Option<JoinHandle<()>>>,
    _directory: tempfile::TempDir,
}

#[derive(Default)]
struct Setup {
    is_signed: bool,
    is_paused: bool,
    is_odd: bool,
    limits: Limits,
}

impl World {
    pub(super) async fn start() -> Self {
        Self::of(Setup::default()).await
    }

    pub(super) async fn signed() -> Self {
        Self::of(Setup {
            is_signed: true,
            ..Setup::default()
        })
        .await
    }

    /// The source is paused and the workspace suspended.
    pub(super) async fn paused() -> Self {
        Self::of(Setup {
            is_paused: true,
            ..Setup::default()
        })
        .await
    }

    /// The source panics, or finds nothing in a request.
    pub(super) async fn odd() -> Self {
        Self::of(Setup {
            is_odd: true,
            ..Setup::default()
        })
        .await
    }

    pub(super) async fn with_limits(limits: Limits) -> Self {
        Self::of(Setup {
            limits,
            ..Setup::default()
        })
        .await
    }

    async fn of(setup: Setup) -> Self {
        let env = Env::system();
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(directory.path()).unwrap());
        let token = "tkn_0123456789abcdef0123456789abcdef".to_owned();
        let (workspace, source) = name(&store, env.now()).await;
        let installation = installation(&setup, workspace, source, &token);
        let metrics = Arc::new(Metrics::new());
        let wake = Arc::new(Notify::new());
        let intake = Intake {
            store: Arc::clone(&store) as Arc<dyn Store>,
            installation: Arc::new(Current::new(installation)),
            env: env.clone(),
            keyring: Arc::new(Keyring::generate([7; 72])),
            metrics: Arc::clone(&metrics),
            wake: Arc::clone(&wake),
            limits: setup.limits,
        };
        let listener = Listener::tcp("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let Listener::Tcp(tcp) = &listener else {
            unreachable!("asked for TCP")
        };
        let address = tcp.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let app = traced(router(intake), env);
        let limits = http_server::Limits::default();
        let served = tokio::spawn(http_server::serve(listener, app, limits, stopped));
        Self {
            store,
            wake,
            stop,
            path: format!("/in/{token}"),
            token,
            metrics,
            workspace,
            address,
            served: Mutex::new(Some(served)),
            _directory: directory,
        }
    }

    pub(super) async fn dial(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    pub(super) async fn post(&self, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.send("POST", &self.path, headers, body).await
    }

    pub(super) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let length = body.len().to_string();
        let headers = [headers, &[("content-length", &*length)]].concat();
        let mut io = self.dial().await;
        let head = head(method, path, &headers);
        io.write_all(&[&head, body].concat()).await.unwrap();
        within(Answer::read(&mut io)).await
    }

    pub(super) async fn post_chunked(&self, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let headers = [headers, &[("transfer-encoding", "chunked")]].concat();
        let mut io = self.dial().await;
        let mut request = head("POST", &self.path, &headers);
        for chunk in body.chunks(50_000) {
            request.extend(format!("{:x}\r\n", chunk.len()).bytes());
            request.extend(chunk);
            request.extend(b"\r\n");
        }
        request.extend(b"0\r\n\r\n");
        io.write_all(&request).await.unwrap();
        within(Answer::read(&mut io)).await
    }

    /// The head of a request to the source.
    pub(super) fn head(&self, method: &str, headers: &[(&str, &str)]) -> String {
        String::from_utf8(head(method, &self.path, headers)).unwrap()
    }

    pub(super) async fn events(&self) -> Vec<EventSummary> {
        let page = Page {
            after: None,
            limit: 1_000,
        };
        self.store
            .events(Filter::default(), page)
            .await
            .unwrap()
            .rows
    }

    /// The stored request of an event.
    pub(super) async fn request(&self, event: EventId) -> Inbound {
        let record = self.store.event(self.workspace, event).await.unwrap();
        record.request.unwrap()
    }

    pub(super) fn metrics(&self) -> String {
        self.metrics.render().unwrap()
    }

    /// Waits until the server has ended.
    pub(super) async fn ended(&self) {
        let served = self.served.lock().await.take().unwrap();
        within(served).await.unwrap();
    }
}

/// Makes workspace and source known to the store.
async fn name(store: &SqliteStore, now: Timestamp) -> (WorkspaceId, SourceId) {
    let workspace = WorkspaceId::new(now, [1; 10]);
    let source = SourceId::new(now, [2; 10]);
    let revision = NewRevision {
        based_on: 0,
        digest: String::new(),
        document: Vec::new(),
        by: "test".into(),
        at: now,
        workspaces: BTreeMap::from([("main".to_owned(), workspace)]),
        sources: vec![NamedSource {
            workspace,
            name: "form".into(),
            id: source,
            token: Vec::new(),
        }],
        destinations: Vec::new(),
    };
    store.apply(revision).await.unwrap();
    (workspace, source)
}

fn installation(
    setup: &Setup,
    workspace: WorkspaceId,
    source: SourceId,
    token: &str,
) -> Installation {
    let kind = if setup.is_odd {
        &odd::KIND
    } else {
        emanet_connectors::sources::find("web_form").unwrap()
    };
    let mut settings = Settings::default();
    if setup.is_signed {
        let secret = Secret::new(SIGNING_SECRET);
        settings.secrets.insert("hmac_secret".into(), secret);
    }
    let entry = SourceEntry {
        workspace,
        id: source,
        name: "form".into(),
        kind,
        connector: (kind.build)(&settings).unwrap(),
        token: Secret::new(token),
        normalise: normalise::Options::default(),
        required: Required::default(),
        flow: None,
        paused: setup.is_paused,
        body_bytes_max: BODY_BYTES_MAX,
        limits: Default::default(),
    };
    let owner = Workspace {
        id: workspace,
        name: "main".into(),
        language: "tr".into(),
        time_zone: jiff::tz::TimeZone::get("Europe/Istanbul").unwrap(),
        suspended: setup.is_paused,
    };
    Installation {
        revision: 1,
        workspaces: BTreeMap::from([(workspace, owner)]),
        sources: BTreeMap::from([(source, Arc::new(entry))]),
        tokens: HashMap::from([(Sha256::digest(token).into(), source)]),
        ..Installation::default()
    }
}

fn head(method: &str, path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\n").into_bytes();
    for (name, value) in headers {
        head.extend(format!("{name}: {value}\r\n").bytes());
    }
    head.extend(b"\r\n");
    head
}

/// An answer, read no further than it goes.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    head: String,
    body: String,
}

impl Answer {
    pub(super) async fn read<S: AsyncRead + Unpin>(io: &mut S) -> Self {
        let head = Self::read_head(io).await;
        let status = head[9..12].parse().unwrap();
        let mut answer = Self {
            status,
            head,
            body: String::new(),
        };
        let length = answer.header("content-length").unwrap_or("0");
        let mut body = vec![0; length.parse().unwrap()];
        io.read_exact(&mut body).await.unwrap();
        answer.body = String::from_utf8(body).unwrap();
        answer
    }

    pub(super) async fn read_head<S: AsyncRead + Unpin>(io: &mut S) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(io.read_u8().await.unwrap());
        }
        String::from_utf8(head).unwrap()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}
