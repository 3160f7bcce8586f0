//! The only place that sends bytes to a vendor, and the only one that answers "was it sent?".
//!
//! A call goes through phases: resolve, guard, connect, TLS, peek, send, head, body. A failure before the first byte of the
//! request was accepted by the socket is [`Outcome::NotSent`], a head that was read is [`Outcome::Answered`], and everything
//! else is [`Outcome::Unknown`]. The verdict rests on counted bytes, never on the text or kind of an error.
//!
//! Never here: a second try, a redirect followed, HTTP/2 (its clients repeat requests by themselves), a certificate check
//! that can be switched off, a URL in a log (some vendors keep their key in the path).

mod dial;
mod exchange;
mod guard;
mod pool;
mod request;
#[cfg(test)]
mod tests;
mod tls;
mod wire;

use crate::env::Env;
use async_trait::async_trait;
use dial::Dialer;
pub use dial::{Resolve, SystemResolver};
use emanet_core::call::{CALL_DEADLINE, Call, NotSent, Outcome};
pub use guard::{Guard, InvalidRange, Range};
use pool::Pool;
use request::Origin;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
pub use tls::{RootsError, install_crypto};
use tokio::time::Instant;
use wire::{Peeked, Wire};

/// Performs calls.
#[async_trait]
pub trait Transport: Debug + Send + Sync {
    /// Performs one call, once. Never retries, never follows a redirect; ends within the deadline.
    async fn send(&self, call: &Call) -> Outcome;
}

/// What the operator may set.
#[derive(Clone, Debug)]
pub struct Options {
    /// Address ranges that may be called besides public addresses (S14).
    pub allow: Vec<Range>,
    /// PEM files with roots of private certificate authorities, trusted besides the public ones.
    pub extra_roots: Vec<PathBuf>,
    /// How long each phase may take.
    pub deadlines: Deadlines,
    /// How long an idle connection is kept for the next reading call. Zero: not at all.
    pub keep_alive: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            extra_roots: Vec::new(),
            deadlines: Deadlines::default(),
            keep_alive: Duration::from_secs(3),
        }
    }
}

/// How long each phase may take. None reaches beyond the end of the whole call.
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// Asking the name service.
    pub resolve: Duration,
    /// Connecting, shared by all addresses of the name.
    pub connect: Duration,
    /// The TLS handshake.
    pub tls: Duration,
    /// Everything, from the name service to the last byte of the body.
    pub call: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            resolve: Duration::from_secs(5),
            connect: Duration::from_secs(8),
            tls: Duration::from_secs(8),
            call: CALL_DEADLINE,
        }
    }
}

/// The transport over HTTP/1.1.
///
/// A call that changes something on the other side (`Call::mutates`) always gets a connection of its own: on a reused one a stray
/// answer that is still in flight cannot be told from ours. Calls that only read may use one that was left idle.
#[derive(Debug)]
pub struct HttpTransport {
    dialer: Dialer,
    pool: Pool,
    deadlines: Deadlines,
}

impl HttpTransport {
    /// With these options; certificates are judged by the clock of `env`.
    ///
    /// # Errors
    /// A root certificate file that cannot be read, or no root certificate at all.
    pub fn new(options: Options, env: &Env) -> Result<Self, RootsError> {
        Self::with_resolver(options, env, Arc::new(SystemResolver::default()))
    }

    /// As [`HttpTransport::new`], with a name service of one's own.
    ///
    /// # Errors
    /// As [`HttpTransport::new`].
    pub fn with_resolver(
        options: Options,
        env: &Env,
        resolver: Arc<dyn Resolve>,
    ) -> Result<Self, RootsError> {
        let connector = tls::connector(&options.extra_roots, env)?;
        Ok(Self {
            dialer: Dialer {
                resolver,
                guard: Guard::new(options.allow),
                connector,
                deadlines: options.deadlines,
            },
            pool: Pool::new(options.keep_alive),
            deadlines: options.deadlines,
        })
    }

    /// A connection on which not a byte waits: an idle one if the call only reads, else a new one.
    async fn clean_wire(
        &self,
        origin: &Origin,
        mutates: bool,
        deadline: Instant,
    ) -> Result<Wire, NotSent> {
        if !mutates {
            while let Some(mut wire) = self.pool.take(origin) {
                if wire.peek(deadline).await == Peeked::Clean {
                    return Ok(wire);
                }
            }
        }
        let mut wire = self.dialer.dial(origin, deadline).await?;
        match wire.peek(deadline).await {
            Peeked::Clean => Ok(wire),
            Peeked::Dirty => Err(wire.never_used()),
        }
    }
}

#[async_trait]
impl Transport for HttpTransport {
    async fn send(&self, call: &Call) -> Outcome {
        let deadline = Instant::now() + self.deadlines.call;
        let (origin, request) = match request::prepare(call) {
            Ok(prepared) => prepared,
            Err(request::InvalidCall) => return Outcome::NotSent(NotSent::InvalidCall),
        };
        let wire = match self.clean_wire(&origin, call.mutates, deadline).await {
            Ok(wire) => wire,
            Err(why) => return Outcome::NotSent(why),
        };
        let (outcome, rest) = Box::pin(exchange::exchange(wire, request, deadline)).await;
        if let Some(wire) = rest {
            self.pool.put(origin, wire);
        }
        outcome
    }
}
