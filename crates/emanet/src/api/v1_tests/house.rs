//! A small installation to ask: a store, a configuration, and events put in and carried by hand.

use crate::api::{Api, trace};
use crate::config::data_dir::{DataDir, Lock};
use crate::config::{File, Keeper, default_file};
use crate::env::{Clock, Env, Random};
use crate::installation::{Current, SourceEntry};
use crate::sandbox::{Sandbox, SandboxTransport};
use crate::transport::Transport;
use async_trait::async_trait;
use axum::body::Body;
use axum::http::{Request, header};
use base64::Engine as _;
use emanet_connectors::connector::{Received, Sample};
use emanet_core::call::{Call, NotSent, Outcome};
use emanet_core::classify::Failure;
use emanet_core::event::{Inbound, NewEvent};
use emanet_core::ids::{AttemptId, DeadLetterId, EventId, ReceiptId, StepId, Target};
use emanet_core::normalise;
use emanet_core::seal::Keyring;
use emanet_core::secret::Secret;
use emanet_core::step::{Kind, Ruling};
use emanet_store::sqlite::SqliteStore;
use emanet_store::{CallNote, ClaimDue, NewReceipt, NewStep, Plan, RunResult, Store};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::task::{Context, Waker};
use tempfile::TempDir;
use tokio::sync::{Mutex, Notify};
use tower::ServiceExt as _;

pub(super) struct House {
    pub(super) api: Arc<Api>,
    keyring: Arc<Keyring>,
    is_away: Arc<AtomicBool>,
    _lock: Lock,
    _dir: TempDir,
}

/// A clock that goes on by a millisecond each time it is read, so that nothing happens at the same time.
#[derive(Debug, Default)]
struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        let noon = 1_796_040_000_000;
        Timestamp::from_millisecond(noon + self.0.fetch_add(1, Ordering::SeqCst)).unwrap()
    }
}

/// The same random numbers in every run.
#[derive(Debug)]
struct Dice(std::sync::Mutex<fastrand::Rng>);

impl Default for Dice {
    fn default() -> Self {
        Self(std::sync::Mutex::new(fastrand::Rng::with_seed(1)))
    }
}

impl Random for Dice {
    fn fill(&self, buffer: &mut [u8]) {
        self.0.lock().unwrap().fill(buffer);
    }
}

/// A network that reaches nothing; the sandbox stands before it until everything is broken.
#[derive(Debug)]
struct Network {
    sandbox: SandboxTransport,
    is_away: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Nothing;

#[async_trait]
impl Transport for Nothing {
    async fn send(&self, _: &Call) -> Outcome {
        Outcome::NotSent(NotSent::Connect)
    }
}

#[async_trait]
impl Transport for Network {
    async fn send(&self, call: &Call) -> Outcome {
        if self.is_away.load(Ordering::SeqCst) {
            return Outcome::NotSent(NotSent::Connect);
        }
        self.sandbox.send(call).await
    }
}

impl House {
    /// With the built-in configuration.
    pub(super) async fn new() -> Self {
        Self::furnished(default_file()).await
    }

    /// With this configuration.
    pub(super) async fn with(text: &str) -> Self {
        Self::furnished(File {
            name: "emanet.toml".into(),
            text: Secret::new(text),
        })
        .await
    }

    async fn furnished(file: File) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let data_dir = DataDir::new(dir.path().join("data"));
        let env = Env::new(Arc::new(Ticking::default()), Arc::new(Dice::default()));
        let lock = data_dir.lock().unwrap();
        let keyring = Arc::new(data_dir.keyring(&lock, None, &env).unwrap());
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open_inline(data_dir.path()).unwrap());
        let keeper = Keeper {
            store: Arc::clone(&store),
            keyring: Arc::clone(&keyring),
            env: env.clone(),
        };
        let in_force = keeper.start(Some(&file)).await.unwrap();
        let sandbox = Arc::new(Sandbox::new(Arc::clone(&store), env.clone()));
        for (destination, faults) in in_force.sandbox_faults() {
            sandbox.set_faults(destination, faults);
        }
        let is_away = Arc::new(AtomicBool::new(false));
        let network = Network {
            sandbox: SandboxTransport {
                sandbox: Arc::clone(&sandbox),
                inner: Arc::new(Nothing),
            },
            is_away: Arc::clone(&is_away),
        };
        let api = Arc::new(Api {
            store,
            installation: Arc::new(Current::new(in_force.installation)),
            keeper,
            data_dir,
            transport: Arc::new(network),
            env,
            wake: Arc::new(Notify::new()),
            wake_scheduler: Arc::new(Notify::new()),
            sandbox: Some(sandbox),
            base_url: Some("http://127.0.0.1:7420".into()),
            applying: Mutex::new(()),
        });
        Self {
            api,
            keyring,
            is_away,
            _lock: lock,
            _dir: dir,
        }
    }

    /// Asks `/api/v1`; the status and the JSON of the answer.
    pub(super) async fn ask(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
        header: Option<(&str, &str)>,
    ) -> (u16, Value) {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("/api/v1{path}"));
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        let request = match body.filter(|body| !body.is_null()) {
            Some(body) => request
                .header(header::CONTENT_TYPE, "application/json")
                .body(Body::from(body.to_string())),
            None => request.body(Body::empty()),
        };
        let router = trace::traced(Arc::clone(&self.api).router(), self.api.env.clone());
        let response = router.oneshot(request.unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 20)
            .await
            .unwrap();
        (status, serde_json::from_slice(&bytes).unwrap())
    }

    /// Asks for what is no JSON.
    pub(super) async fn bytes(&self, path: &str) -> Vec<u8> {
        let request = Request::get(format!("/api/v1{path}"));
        let router = Arc::clone(&self.api).router();
        let response = router
            .oneshot(request.body(Body::empty()).unwrap())
            .await
            .unwrap();
        assert_eq!(response.status().as_u16(), 200, "{path}");
        let body = axum::body::to_bytes(response.into_body(), 1 << 20).await;
        body.unwrap().to_vec()
    }

    pub(super) async fn get(&self, path: &str) -> Value {
        let (status, value) = self.ask("GET", path, None, None).await;
        assert_eq!(status, 200, "{path}: {value}");
        value
    }

    fn source(&self) -> Arc<SourceEntry> {
        let installation = self.api.installation.get();
        let mut sources = installation.sources.values();
        Arc::clone(sources.find(|source| source.name == "web").unwrap())
    }

    /// Takes one lead in at the source `web`.
    pub(super) async fn accept(&self, source_ref: &str) -> EventId {
        let source = self.source();
        let now = self.api.env.now();
        self.accept_request(source.connector.compose(&Sample {
            source_ref: source_ref.into(),
            fields: vec![
                ("full_name".into(), "Ayşe Yılmaz".into()),
                ("phone_number".into(), "0555 000 11 22".into()),
            ],
            created_at: now,
        }))
        .await
    }

    /// Takes one request in at the source `web`.
    pub(super) async fn accept_request(&self, request: Inbound) -> EventId {
        let source = self.source();
        let now = self.api.env.now();
        let Received::Events { items, .. } = source.connector.receive(&request, now) else {
            panic!("the source takes what it composes");
        };
        let events = items.into_iter().map(|item| NewEvent {
            id: EventId::new(now, self.api.env.bytes()),
            ref_hash: self.keyring.ref_hash(source.id, &item.source_ref),
            item,
        });
        let receipt = NewReceipt {
            workspace: source.workspace,
            source: source.id,
            id: ReceiptId::new(now, self.api.env.bytes()),
            request,
            received_at: now,
            day: "2026-11-30".into(),
            revision: 1,
            events: events.collect(),
        };
        self.api.store.accept(receipt).await.unwrap()[0].event
    }

    /// Carries the next due event to a failure of its first step that nobody but a person can mend.
    pub(super) async fn bury(&self, failure: Failure) {
        self.rule(Ruling::Bury {
            failure,
            cause: "a-cause".into(),
        })
        .await;
    }

    /// Carries the next due event to this ruling on its first step.
    pub(super) async fn rule(&self, ruling: Ruling) {
        let source = self.source();
        let (store, env, now) = (&self.api.store, &self.api.env, self.api.env.now());
        let claimed = store
            .claim_due(ClaimDue {
                now,
                lease_until: now + SignedDuration::from_secs(30),
                slots: vec![(Target::Source(source.id), 1)],
            })
            .await
            .unwrap();
        let lease = claimed.claims[0].lease;
        let record = store.event(lease.workspace, lease.event).await.unwrap();
        let request = record.request.unwrap();
        let raw = source
            .connector
            .read(&request, &record.pointer, None)
            .unwrap();
        let flow = source.flow.as_ref().unwrap();
        let step = StepId::new(now, env.bytes());
        let target = Target::Destination(flow.steps[0].plan.destination);
        let plan = Plan {
            now,
            lead: Some(normalise::lead(&raw, &source.normalise)),
            steps: vec![NewStep {
                id: step,
                name: "crm".into(),
                kind: Kind::Crm,
                target,
                object: "lead".into(),
                needs: Vec::new(),
                skipped: None,
            }],
        };
        store.plan(&lease, plan).await.unwrap();
        let call = CallNote {
            name: "create".into(),
            request: "POST sandbox://crm/leads".into(),
            outcome: "401".into(),
            millis: 12,
        };
        let result = RunResult {
            step,
            attempt: AttemptId::new(now, env.bytes()),
            started_at: now,
            now,
            ruling,
            counts: true,
            calls: vec![call],
            answer: Some("<h1>Who are you?</h1>".into()),
            dead_letter: DeadLetterId::new(now, env.bytes()),
        };
        store.record_result(&lease, result).await.unwrap();
    }

    /// Opens the data directory to everybody and cuts every line.
    pub(super) fn break_everything(&self) {
        set_permissions(self.api.data_dir.path(), Permissions::from_mode(0o755)).unwrap();
        self.is_away.store(true, Ordering::SeqCst);
    }

    /// The source_refs the source `web` finds in a composed request.
    pub(super) fn received(&self, composed: &Value) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let headers = composed["headers"].as_array().unwrap().iter();
        let body = base64::engine::general_purpose::STANDARD.decode(text(&composed["body_base64"]));
        let request = Inbound {
            method: text(&composed["method"]),
            query: text(&composed["query"]),
            headers: headers
                .map(|pair| (text(&pair[0]), text(&pair[1])))
                .collect(),
            body: body.unwrap(),
        };
        match self
            .source()
            .connector
            .receive(&request, Timestamp::UNIX_EPOCH)
        {
            Received::Events { items, .. } => items.into_iter().map(|i| i.source_ref).collect(),
            other => panic!("not taken: {other:?}"),
        }
    }

    pub(super) fn is_woken(&self) -> bool {
        is_notified(&self.api.wake)
    }

    pub(super) fn is_scheduler_woken(&self) -> bool {
        is_notified(&self.api.wake_scheduler)
    }
}

/// Whether a signal waits to be taken.
fn is_notified(notify: &Notify) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    pin!(notify.notified()).poll(&mut context).is_ready()
}
