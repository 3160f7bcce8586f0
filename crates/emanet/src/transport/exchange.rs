//! One request and its answer on one connection, and the verdict.
//!
//! The connection is driven by the same task that waits for the answer. So when that task stops waiting, nobody is left who could
//! still write, and the byte counter is final; with a task of its own for the connection, the counter would have to wait for it.

use super::wire::Wire;
use emanet_core::call::{ANSWER_BYTES_MAX, Answer, BodyState, Broken, Outcome};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use tokio::time::{Instant, timeout_at};

/// Longest head of an answer that is read.
const HEAD_BYTES_MAX: usize = 128 * 1024;

/// Sends the request and reads the answer. Gives the connection back if it is fit for another exchange.
pub(super) async fn exchange(
    mut wire: Wire,
    request: Request<Full<Bytes>>,
    deadline: Instant,
) -> (Outcome, Option<Wire>) {
    wire.begin();
    let unused = wire.never_used();
    let handshake = Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .handshake(TokioIo::new(wire))
        .await;
    let Ok((mut sender, connection)) = handshake else {
        return (Outcome::NotSent(unused), None);
    };
    let mut driven = Driven::new(connection);
    let head = timeout_at(deadline, driven.alongside(sender.try_send_request(request))).await;
    let why = match head {
        Ok(Ok(response)) => return answered(response, driven, &sender, deadline).await,
        Ok(Err(error)) if error.message().is_some() => return (Outcome::NotSent(unused), None),
        Ok(Err(error)) => broken(error.error()),
        Err(_) => Broken::TimedOut,
    };
    let outcome = if driven.into_wire().accepted() == 0 {
        Outcome::NotSent(unused)
    } else {
        Outcome::Unknown(why)
    };
    (outcome, None)
}

fn broken(error: &hyper::Error) -> Broken {
    if error.is_parse() {
        Broken::Garbage
    } else {
        Broken::Closed
    }
}

/// The head is there, so this is an answer, whatever becomes of its body.
async fn answered(
    response: Response<Incoming>,
    mut driven: Driven,
    sender: &SendRequest<Full<Bytes>>,
    deadline: Instant,
) -> (Outcome, Option<Wire>) {
    let (head, incoming) = response.into_parts();
    let mut body = Vec::new();
    let reading = driven.alongside(read(incoming, &mut body));
    let body_state = timeout_at(deadline, reading)
        .await
        .unwrap_or(BodyState::Lost);
    let is_idle = body_state == BodyState::Whole && driven.is_idle(sender).await;
    let (wire, is_clean) = driven.into_parts();
    let answer = Answer {
        status: head.status.as_u16(),
        headers: texts(&head.headers),
        body,
        body_state,
        reused_connection: wire.is_reused(),
    };
    (
        Outcome::Answered(answer),
        (is_idle && is_clean).then_some(wire),
    )
}

/// Reads at most [`ANSWER_BYTES_MAX`] (H27, F41).
async fn read(mut incoming: Incoming, body: &mut Vec<u8>) -> BodyState {
    let announced = incoming.size_hint().lower();
    body.reserve_exact(
        usize::try_from(announced).map_or(ANSWER_BYTES_MAX, |n| n.min(ANSWER_BYTES_MAX)),
    );
    while let Some(frame) = incoming.frame().await {
        let Ok(frame) = frame else {
            return BodyState::Lost;
        };
        // Trailers say nothing that anybody here asks about.
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let room = ANSWER_BYTES_MAX - body.len();
        if data.len() > room {
            body.extend_from_slice(&data[..room]);
            return BodyState::Capped;
        }
        body.extend_from_slice(&data);
    }
    BodyState::Whole
}

/// Header values are bytes; what is not UTF-8 is replaced, never a reason to lose the answer (H64).
fn texts(headers: &HeaderMap) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|(name, value)| {
            let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), text)
        })
        .collect()
}

/// A connection that moves only while somebody waits on it.
struct Driven {
    connection: Connection<TokioIo<Wire>, Full<Bytes>>,
    has_ended: bool,
}

impl Driven {
    fn new(connection: Connection<TokioIo<Wire>, Full<Bytes>>) -> Self {
        Self {
            connection,
            has_ended: false,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) {
        if !self.has_ended {
            // How it ended, the future that waits for its answer says.
            self.has_ended = Pin::new(&mut self.connection).poll(cx).is_ready();
        }
    }

    /// Awaits a future that needs the connection to move.
    async fn alongside<F: Future>(&mut self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|cx| {
            self.poll(cx);
            future.as_mut().poll(cx)
        })
        .await
    }

    /// Whether it would take another request: both sides finished this one and neither said it would close.
    async fn is_idle(&mut self, sender: &SendRequest<Full<Bytes>>) -> bool {
        poll_fn(|cx| {
            self.poll(cx);
            Poll::Ready(())
        })
        .await;
        !self.has_ended && sender.is_ready()
    }

    fn into_wire(self) -> Wire {
        self.into_parts().0
    }

    /// The connection, and whether nothing was read beyond the answer.
    fn into_parts(self) -> (Wire, bool) {
        let parts = self.connection.into_parts();
        (parts.io.into_inner(), parts.read_buf.is_empty())
    }
}
