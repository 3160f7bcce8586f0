//! The HTTP server: our own accept loop over an axum router, for TCP and for the local socket of the CLI.
//!
//! It never lets a peer hold a connection for nothing (F27): heads, idle connections and answers that nobody reads have
//! deadlines, connections have a cap, and one address has a smaller one. A stop drains: what is being answered is answered.
//! Bodies are the handlers' business; a connection that ends with an unread body is closed gently, so that the answer
//! survives (F28).

mod gate;
#[cfg(test)]
mod tests;
mod write_deadline;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use gate::{Gate, Slot};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower::ServiceExt;
use write_deadline::WriteDeadline;

/// How much a peer may ask of the server.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at a time; more wait in the kernel's backlog.
    pub connections_max: usize,
    /// Connections at a time from one address (IPv6: one /64); more are closed at once. Loopback and `trusted_proxies`
    /// speak for many senders and are exempt.
    pub per_address_max: usize,
    /// Reverse proxies in front of us.
    pub trusted_proxies: Vec<IpAddr>,
    /// A request's head must be complete this long after the connection opened or its last answer was sent.
    pub head_timeout: Duration,
    /// A peer that takes nothing of an answer for this long is cut off.
    pub write_timeout: Duration,
    /// Largest head of a request.
    pub head_bytes_max: usize,
    /// After a stop, requests in flight may take this long.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 4_096,
            per_address_max: 512,
            trusted_proxies: Vec::new(),
            head_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(20),
            // Room for a signature header of 64 KiB, which must be refused by its connector and counted (H54).
            head_bytes_max: 96 * 1024,
            drain_timeout: Duration::from_secs(25),
        }
    }
}

/// Who is at the other end of a connection; every request carries it as an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// This address.
    Tcp(SocketAddr),
    /// A process of this machine that may open the socket in the data directory.
    Local,
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().fmt(f),
            Self::Local => f.write_str("local"),
        }
    }
}

/// Where connections come from.
#[derive(Debug)]
pub enum Listener {
    /// The network.
    Tcp(TcpListener),
    /// The socket in the data directory.
    Local(UnixListener),
}

impl Listener {
    /// Listens on an address.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub async fn tcp(address: SocketAddr) -> io::Result<Self> {
        TcpListener::bind(address).await.map(Self::Tcp)
    }

    /// Listens on a socket that only this user may open. It takes the place of one left by an earlier run; whoever calls this
    /// holds the data directory already. At no moment is it open to others: it gets its name after its mode.
    ///
    /// # Errors
    /// If the socket cannot be made (no such directory, path longer than the system allows).
    pub fn local(path: &Path) -> io::Result<Self> {
        let unnamed = path.with_extension("new");
        match std::fs::remove_file(&unnamed) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&unnamed)?;
        std::fs::set_permissions(&unnamed, std::fs::Permissions::from_mode(0o600))?;
        std::fs::rename(&unnamed, path)?;
        Ok(Self::Local(listener))
    }

    async fn accept(&self) -> io::Result<(Stream, Peer)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok((Stream::Tcp(stream), Peer::Tcp(address)))
            }
            Self::Local(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok((Stream::Local(stream), Peer::Local))
            }
        }
    }
}

enum Stream {
    Tcp(tokio::net::TcpStream),
    Local(UnixStream),
}

/// Serves until `stop` turns true (or its sender is gone), then drains: no new connections, requests in flight are answered,
/// idle connections closed. Returns when all have ended, or the time for it is up.
pub async fn serve(
    listener: Listener,
    app: Router,
    limits: Limits,
    mut stop: watch::Receiver<bool>,
) {
    let gate = Gate::new(&limits);
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = admit(&gate, &listener) => accepted,
        };
        let Some((stream, peer, slot)) = accepted else {
            continue;
        };
        let (app, limits, stop) = (app.clone(), limits.clone(), stop.clone());
        connections.spawn(async move {
            let _slot = slot;
            match stream {
                Stream::Tcp(io) => connection(io, peer, app, &limits, stop).await,
                Stream::Local(io) => connection(io, peer, app, &limits, stop).await,
            }
        });
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    if timeout(limits.drain_timeout, drained).await.is_err() {
        tracing::warn!(
            connections.open = connections.len(),
            "connections were cut: they did not finish in time after the stop"
        );
        connections.shutdown().await;
    }
}

/// Returns when it is time to stop.
pub async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone: whoever would say stop no longer can.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Waits for a free slot first, so that more connections than allowed stay in the backlog.
async fn admit(gate: &Gate, listener: &Listener) -> Option<(Stream, Peer, Slot)> {
    let permit = gate.permit().await;
    match listener.accept().await {
        Ok((stream, peer)) => gate.slot(permit, peer).map(|slot| (stream, peer, slot)),
        Err(error) => {
            if !is_of_one_connection(&error) {
                tracing::error!(error = %error, "no connection can be accepted");
                // Out of descriptors, most likely: turning in circles would only burn the processor.
                sleep(Duration::from_millis(100)).await;
            }
            None
        }
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::NotConnected
    )
}

async fn connection<S>(
    io: S,
    peer: Peer,
    app: Router,
    limits: &Limits,
    mut stop: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(peer);
        answer(app.clone(), request.map(axum::body::Body::new))
    });
    let io = TokioIo::new(WriteDeadline::new(io, limits.write_timeout));
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_buf_size(limits.head_bytes_max)
        .serve_connection(io, service);
    let served = tokio::select! {
        served = poll_fn(|cx| connection.poll_without_shutdown(cx)) => served,
        () = stopped(&mut stop) => {
            Pin::new(&mut connection).graceful_shutdown();
            poll_fn(|cx| connection.poll_without_shutdown(cx)).await
        }
    };
    match served {
        Ok(()) => close_gently(connection.into_parts().io.into_inner()).await,
        // The server has answered 400 or 431 by itself.
        Err(error) if error.is_parse() => {
            close_gently(connection.into_parts().io.into_inner()).await;
        }
        Err(error) => tracing::debug!(error = %error, "a connection ended early"),
    }
}

/// Boxed, because only a future that can be moved lets go of its connection for [`close_gently`].
fn answer(
    app: Router,
    request: Request,
) -> Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>> {
    Box::pin(app.oneshot(request))
}

/// How much of an unread body is swallowed before closing.
const LINGER_BYTES: usize = 1024 * 1024;
/// How long an unread body is swallowed before closing.
const LINGER: Duration = Duration::from_secs(2);

/// Ends our side and swallows a bounded rest of what the peer still sends. Closing with unread data would make the system
/// reset the connection, and the reset can destroy the answer before the peer has read it.
async fn close_gently<S: AsyncRead + AsyncWrite + Unpin>(mut io: S) {
    let rest = async {
        io.shutdown().await?;
        let mut swallowed = 0;
        let mut buffer = vec![0; 16 * 1024];
        while swallowed < LINGER_BYTES {
            match io.read(&mut buffer).await? {
                0 => break,
                n => swallowed += n,
            }
        }
        io::Result::Ok(())
    };
    if let Ok(Err(error)) = timeout(LINGER, rest).await {
        tracing::debug!(error = %error, "a connection was reset while it was being closed");
    }
}
