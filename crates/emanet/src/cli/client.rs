//! One way to ask `/api/v1`: a running server through its local socket, or, when none runs, the same routes in this process
//! on the data directory itself (design 6: the embedded database has one writer).

use super::exit::{Exit, Failed};
use crate::api::{Api, trace};
use crate::config::Keeper;
use crate::config::data_dir::{self, DataDir, Lock};
use crate::env::Env;
use crate::installation::Current;
use crate::sandbox::{Sandbox, SandboxTransport};
use crate::transport::{HttpTransport, Options};
use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use emanet_store::Store;
use emanet_store::sqlite::SqliteStore;
use http_body_util::{BodyExt as _, Limited};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::{Mutex, Notify};
use tower::ServiceExt as _;

/// How long an answer may take; `doctor` waits for other servers.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// Largest answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Asks `/api/v1`.
#[derive(Debug)]
pub(super) struct Client {
    reach: Reach,
    workspace: Option<String>,
}

#[derive(Debug)]
enum Reach {
    /// A running server.
    Socket(PathBuf),
    /// This process.
    Here(Here),
}

/// The installation opened in this process.
#[derive(Debug)]
struct Here {
    router: Router,
    store: Arc<dyn Store>,
    _lock: Lock,
}

/// Whether a data directory may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// It must be there.
    Refuse,
    /// It is made (`apply` before the first `serve`).
    Make,
}

impl Client {
    /// Reaches the installation in a data directory.
    pub(super) async fn open(
        data_dir: &DataDir,
        workspace: Option<String>,
        missing: Missing,
    ) -> Result<Self, Failed> {
        let socket = data_dir.socket();
        let reach = match UnixStream::connect(&socket).await {
            Ok(_) => Reach::Socket(socket),
            // Nobody listens, or the socket is what a killed server left behind.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                Reach::Here(open_here(data_dir, missing).await?)
            }
            Err(error) => {
                return Err(unreachable(format!(
                    "the server's socket {} cannot be used: {error}",
                    socket.display()
                )));
            }
        };
        Ok(Self { reach, workspace })
    }

    /// Whether a server runs.
    pub(super) fn is_served(&self) -> bool {
        matches!(self.reach, Reach::Socket(_))
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value, Failed> {
        self.ask(Method::GET, path, None).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value, Failed> {
        self.ask(Method::POST, path, Some(body)).await
    }

    pub(super) async fn put(&self, path: &str, body: &Value) -> Result<Value, Failed> {
        self.ask(Method::PUT, path, Some(body)).await
    }

    /// The rows of a list, page by page, until `limit` are there. `query` begins with `?` or is empty.
    pub(super) async fn rows(
        &self,
        path: &str,
        query: &Query,
        limit: Option<u32>,
        mut each: impl FnMut(Value) -> io::Result<()>,
    ) -> Result<(), Failed> {
        const PAGE: u32 = 500;
        let mut left = limit.unwrap_or(u32::MAX);
        let mut after: Option<String> = None;
        while left > 0 {
            let mut query = query.clone();
            query.add("limit", Some(left.min(PAGE)));
            query.add("after", after.as_ref());
            let mut page = self.get(&format!("{path}{}", query.text())).await?;
            let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) else {
                return Err(Failed::new(Exit::Failed, "the server's answer is no list"));
            };
            left = left.saturating_sub(u32::try_from(items.len()).unwrap_or(u32::MAX));
            for item in items {
                each(item)?;
            }
            after = page.get("next").and_then(Value::as_str).map(str::to_owned);
            if after.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Closes what was opened here.
    pub(super) async fn close(self) -> Result<(), Failed> {
        if let Reach::Here(here) = self.reach {
            here.store
                .close()
                .await
                .map_err(|error| Failed::new(Exit::Failed, error.to_string()))?;
        }
        Ok(())
    }

    /// An answer that is no JSON, as it is.
    pub(super) async fn bytes(&self, path: &str) -> Result<Vec<u8>, Failed> {
        let (status, bytes) = self.answer(Method::GET, path, None).await?;
        if status.is_success() {
            return Ok(bytes);
        }
        Err(refusal(status, &bytes))
    }

    async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Failed> {
        let (status, bytes) = self.answer(method, path, body).await?;
        read_answer(status, &bytes)
    }

    async fn answer(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Vec<u8>), Failed> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("/api/v1{path}"))
            .header(header::HOST, "emanet");
        if let Some(workspace) = &self.workspace {
            request = request.header("x-workspace", workspace);
        }
        let request = match body {
            Some(body) => request
                .header(header::CONTENT_TYPE, "application/json")
                .body(Body::from(body.to_string())),
            None => request.body(Body::empty()),
        }
        .map_err(|error| Failed::new(Exit::Usage, format!("this cannot be asked: {error}")))?;
        let answered = tokio::time::timeout(ANSWER_TIMEOUT, self.exchange(request)).await;
        answered.map_err(|_| {
            unreachable(format!(
                "no answer within {} seconds",
                ANSWER_TIMEOUT.as_secs()
            ))
        })?
    }

    async fn exchange(&self, request: Request<Body>) -> Result<(StatusCode, Vec<u8>), Failed> {
        match &self.reach {
            Reach::Socket(path) => {
                let lost = |error: &dyn std::fmt::Display| {
                    unreachable(format!("the server did not answer: {error}"))
                };
                let stream = UnixStream::connect(path).await.map_err(|e| lost(&e))?;
                let (mut sender, connection) =
                    hyper::client::conn::http1::handshake(TokioIo::new(stream))
                        .await
                        .map_err(|e| lost(&e))?;
                let driver = tokio::spawn(connection);
                let response = sender.send_request(request).await.map_err(|e| lost(&e))?;
                let read = read_body(response.status(), response.into_body()).await;
                driver.abort();
                read
            }
            Reach::Here(here) => {
                let response = match here.router.clone().oneshot(request).await {
                    Ok(response) => response,
                    Err(never) => match never {},
                };
                read_body(response.status(), response.into_body()).await
            }
        }
    }
}

async fn read_body<B>(status: StatusCode, body: B) -> Result<(StatusCode, Vec<u8>), Failed>
where
    B: hyper::body::Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>>,
{
    match Limited::new(body, ANSWER_BYTES_MAX).collect().await {
        Ok(bytes) => Ok((status, bytes.to_bytes().to_vec())),
        Err(error) => Err(unreachable(format!("the answer broke off: {error}"))),
    }
}

async fn open_here(data_dir: &DataDir, missing: Missing) -> Result<Here, Failed> {
    if !data_dir.exists() && missing == Missing::Refuse {
        return Err(unreachable(format!(
            "there is no installation in {}; start one with `emanet serve`, or say where it is with --data-dir",
            data_dir.path().display()
        )));
    }
    let cannot = |error: &dyn std::fmt::Display| unreachable(error.to_string());
    let env = Env::system();
    let lock = data_dir.lock().map_err(|e| cannot(&e))?;
    let keyring = data_dir
        .keyring(&lock, data_dir::key_from_environment(), &env)
        .map_err(|e| cannot(&e))?;
    let store: Arc<dyn Store> =
        Arc::new(SqliteStore::open(data_dir.path()).map_err(|e| cannot(&e))?);
    let keeper = Keeper {
        store: Arc::clone(&store),
        keyring: Arc::new(keyring),
        env: env.clone(),
    };
    let in_force = keeper.load().await.map_err(|e| cannot(&e))?;
    let mut options = Options::default();
    let installation = match in_force {
        Some(in_force) => {
            options.allow = in_force.document.network.allow_private;
            options.extra_roots = in_force.document.network.extra_root_certificates;
            in_force.installation
        }
        None => crate::installation::Installation::default(),
    };
    let transport = SandboxTransport {
        sandbox: Arc::new(Sandbox::new(Arc::clone(&store), env.clone())),
        inner: Arc::new(HttpTransport::new(options, &env).map_err(|e| cannot(&e))?),
    };
    let api = Arc::new(Api {
        store: Arc::clone(&store),
        installation: Arc::new(Current::new(installation)),
        keeper,
        data_dir: data_dir.clone(),
        transport: Arc::new(transport),
        env: env.clone(),
        wake: Arc::new(Notify::new()),
        wake_scheduler: Arc::new(Notify::new()),
        applying: Mutex::new(()),
        sandbox: None,
        base_url: None,
    });
    Ok(Here {
        router: trace::traced(api.router(), env),
        store,
        _lock: lock,
    })
}

/// The answer's JSON, or what is wrong in words.
pub(super) fn read_answer(status: StatusCode, bytes: &[u8]) -> Result<Value, Failed> {
    if status.is_success() {
        return serde_json::from_slice(bytes)
            .map_err(|_| Failed::new(Exit::Failed, "the server's answer is no JSON"));
    }
    Err(refusal(status, bytes))
}

/// What is wrong, with the exit code for it.
fn refusal(status: StatusCode, bytes: &[u8]) -> Failed {
    let value: Option<Value> = serde_json::from_slice(bytes).ok();
    let exit = match status.as_u16() {
        404 => Exit::NotFound,
        400..=499 => Exit::Refused,
        503 | 504 => Exit::Unreachable,
        _ => Exit::Failed,
    };
    Failed::new(exit, error_text(status, value.as_ref()))
}

/// The envelope of API-1 as a few lines.
fn error_text(status: StatusCode, value: Option<&Value>) -> String {
    let Some(error) = value.and_then(|v| v.get("error")) else {
        return format!("the server answered {status}");
    };
    let text = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut lines = vec![format!("{} ({})", text("message"), text("code"))];
    let details = error.get("details").and_then(Value::as_array);
    for detail in details.into_iter().flatten() {
        let part = |key: &str| detail.get(key).and_then(Value::as_str).unwrap_or_default();
        lines.push(match part("field") {
            "" => format!("  {}", part("message")),
            field => format!("  {field}: {}", part("message")),
        });
    }
    if details.is_none_or(Vec::is_empty) {
        lines.push(format!("  {}", text("hint")));
    }
    if status.is_server_error() {
        lines.push(format!("  trace id {}", text("trace_id")));
    }
    lines.join("\n")
}

fn unreachable(message: String) -> Failed {
    Failed::new(Exit::Unreachable, message)
}

/// A query string in the making.
#[derive(Debug, Clone, Default)]
pub(super) struct Query(Vec<(&'static str, String)>);

impl Query {
    /// Adds a value, if there is one.
    pub(super) fn add(&mut self, name: &'static str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.0.push((name, value.to_string()));
        }
    }

    /// `?a=b&c=d`, or nothing.
    fn text(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let mut query = url::form_urlencoded::Serializer::for_suffix(String::from("?"), 1);
        query.extend_pairs(&self.0);
        query.finish()
    }
}
