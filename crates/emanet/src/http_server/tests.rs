//! The server over real sockets.

use super::{Limits, Listener, Peer, serve};
use axum::Router;
use axum::extract::Extension;
use axum::routing::{get, post};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(20);

struct Running {
    address: std::net::SocketAddr,
    stop: watch::Sender<bool>,
    served: JoinHandle<()>,
}

async fn start(app: Router, limits: Limits) -> Running {
    let listener = Listener::tcp("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let Listener::Tcp(tcp) = &listener else {
        unreachable!("asked for TCP")
    };
    let address = tcp.local_addr().unwrap();
    let (stop, stopped) = watch::channel(false);
    let served = tokio::spawn(serve(listener, app, limits, stopped));
    Running {
        address,
        stop,
        served,
    }
}

impl Running {
    async fn dial(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn stop(self) {
        self.stop.send(true).unwrap();
        within(self.served).await.unwrap();
    }
}

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("it takes too long")
}

/// Reads until the other side ends.
async fn rest<S: AsyncRead + Unpin>(io: &mut S) -> String {
    let mut bytes = Vec::new();
    within(io.read_to_end(&mut bytes)).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

async fn ask<S: AsyncRead + AsyncWrite + Unpin>(io: &mut S, request: &str) -> String {
    io.write_all(request.as_bytes()).await.unwrap();
    rest(io).await
}

const GET: &str = "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

fn greeting() -> Router {
    Router::new().route(
        "/",
        get(|Extension(peer): Extension<Peer>| async move { format!("hello {peer}") }),
    )
}

#[tokio::test]
async fn requests_know_their_peer() {
    let server = start(greeting(), Limits::default()).await;
    let answer = ask(&mut server.dial().await, GET).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.ends_with("hello 127.0.0.1"), "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn slow_heads_and_idle_connections_are_cut() {
    let limits = Limits {
        head_timeout: Duration::from_millis(200),
        ..Limits::default()
    };
    let server = start(greeting(), limits).await;
    for start in ["", "GET / HTTP/1.1\r\nhost: x\r\nx-slow: "] {
        let mut slow = server.dial().await;
        slow.write_all(start.as_bytes()).await.unwrap();
        let answer = rest(&mut slow).await;
        assert!(!answer.contains("200 OK"), "{answer}");
    }
    let mut idle = server.dial().await;
    let answer = ask(&mut idle, "GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn an_oversized_head_is_refused() {
    let server = start(greeting(), Limits::default()).await;
    let line = format!("x-big: {}\r\n", "a".repeat(200 * 1024));
    let answer = ask(
        &mut server.dial().await,
        &format!("GET / HTTP/1.1\r\n{line}\r\n"),
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn an_answer_survives_an_unread_body() {
    let app = Router::new().route("/", post(async || "no, thanks"));
    let server = start(app, Limits::default()).await;
    let mut peer = server.dial().await;
    let head = "POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 700000\r\n\r\n";
    peer.write_all(head.as_bytes()).await.unwrap();
    // A reset would make one of these writes, or the read, fail.
    for _ in 0..70 {
        peer.write_all(&[b'a'; 10_000]).await.unwrap();
    }
    let answer = rest(&mut peer).await;
    assert!(answer.ends_with("no, thanks"), "{answer}");
    server.stop().await;
}

#[tokio::test]
async fn more_connections_than_allowed_wait_their_turn() {
    let limits = Limits {
        connections_max: 1,
        ..Limits::default()
    };
    let server = start(greeting(), limits).await;
    let mut first = server.dial().await;
    first.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    let mut second = server.dial().await;
    second.write_all(GET.as_bytes()).await.unwrap();
    let answer = ask(&mut first, "host: x\r\nconnection: close\r\n\r\n").await;
    assert!(answer.ends_with("hello 127.0.0.1"), "{answer}");
    drop(first);
    assert!(rest(&mut second).await.ends_with("hello 127.0.0.1"));
    server.stop().await;
}

#[tokio::test]
async fn a_stop_answers_what_is_in_flight_and_closes_the_rest() {
    let (entered, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let app = {
        let (entered, go) = (Arc::clone(&entered), Arc::clone(&go));
        Router::new().route(
            "/",
            get(move || async move {
                entered.notify_one();
                go.notified().await;
                "finished"
            }),
        )
    };
    let server = start(app, Limits::default()).await;
    // Accepted before the busy one; connections are accepted in order.
    let mut unused = server.dial().await;
    let mut busy = server.dial().await;
    busy.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    within(entered.notified()).await;
    let begun = Instant::now();
    server.stop.send(true).unwrap();
    assert_eq!(rest(&mut unused).await, "");
    go.notify_one();
    let answer = rest(&mut busy).await;
    assert!(answer.ends_with("finished"), "{answer}");
    let address = server.address;
    within(server.served).await.unwrap();
    assert!(
        begun.elapsed() < Duration::from_secs(8),
        "it waited for idle connections"
    );
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_stop_cuts_what_does_not_finish_in_time() {
    let entered = Arc::new(Notify::new());
    let app = {
        let entered = Arc::clone(&entered);
        Router::new().route(
            "/",
            get(move || async move {
                entered.notify_one();
                std::future::pending::<()>().await;
            }),
        )
    };
    let limits = Limits {
        drain_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let server = start(app, limits).await;
    let mut stuck = server.dial().await;
    stuck
        .write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    within(entered.notified()).await;
    server.stop().await;
    assert_eq!(rest(&mut stuck).await, "");
}

#[tokio::test]
async fn the_local_socket_is_the_owners_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("emanet.sock");
    std::fs::write(&path, "left by an earlier run").unwrap();
    let listener = Listener::local(&path).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let (stop, stopped) = watch::channel(false);
    let served = tokio::spawn(serve(listener, greeting(), Limits::default(), stopped));
    let mut client = UnixStream::connect(&path).await.unwrap();
    assert!(ask(&mut client, GET).await.ends_with("hello local"));
    stop.send(true).unwrap();
    within(served).await.unwrap();
}
