//! Connections that served a call before.

use super::fake::{Fake, OK, Peer};
use super::*;
use emanet_core::call::{BodyState, Broken};
use std::io;
use std::sync::Barrier;

/// A connection that answers one call, does something while idle, and a second call after that. The script's last part serves
/// whatever comes on later connections.
struct Idle {
    fake: Fake,
    moment: Arc<Barrier>,
}

impl Idle {
    fn new(meanwhile: impl Fn(&mut Peer) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let moment = Arc::new(Barrier::new(2));
        let theirs = Arc::clone(&moment);
        let fake = Fake::plain(move |peer, number| {
            if number > 0 {
                return serve(peer);
            }
            peer.read_request()?;
            peer.send(OK)?;
            theirs.wait();
            let rest = meanwhile(peer);
            theirs.wait();
            rest?;
            serve(peer)
        });
        Self { fake, moment }
    }

    /// Two reading calls, with the idle moment between them.
    async fn two_calls(&self) -> (Outcome, Outcome) {
        let transport = transport(options());
        let first = transport.send(&get(&self.fake)).await;
        self.moment.wait();
        self.moment.wait();
        (first, transport.send(&get(&self.fake)).await)
    }
}

const SECOND: &[u8] = b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n";

fn serve(peer: &mut Peer) -> io::Result<()> {
    loop {
        peer.read_request()?;
        peer.send(SECOND)?;
    }
}

/// Checks that the second call found its own answer, on this many connections.
async fn check(idle: Idle, n_connections: usize) {
    let (first, second) = idle.two_calls().await;
    assert_eq!(answer(first).status, 200);
    let second = answer(second);
    assert_eq!(second.status, 201);
    assert_eq!(second.reused_connection, n_connections == 1);
    assert_eq!(idle.fake.requests().len(), 2);
    assert_eq!(idle.fake.connections(), n_connections);
}

#[tokio::test]
async fn a_quiet_connection_serves_again() {
    check(Idle::new(|_| Ok(())), 1).await;
}

#[tokio::test]
async fn one_that_was_closed_is_not_used() {
    let meanwhile = |peer: &mut Peer| {
        peer.finish();
        Ok(())
    };
    check(Idle::new(meanwhile), 2).await;
}

#[tokio::test]
async fn one_that_was_reset_is_not_used() {
    let meanwhile = |peer: &mut Peer| {
        peer.reset();
        Ok(())
    };
    check(Idle::new(meanwhile), 2).await;
}

/// Without the peek every client reports the stray answer for a request that nobody read.
#[tokio::test]
async fn one_with_a_stray_answer_is_not_used() {
    for stray in [
        OK,
        b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n",
        b"\r",
    ] {
        let meanwhile = move |peer: &mut Peer| {
            peer.send(stray)?;
            peer.await_delivery();
            Ok(())
        };
        check(Idle::new(meanwhile), 2).await;
    }
}

#[tokio::test]
async fn one_that_dies_under_the_second_request_leaves_it_unknown() {
    let fake = Fake::plain(|peer, _| {
        peer.read_request()?;
        peer.send(OK)?;
        peer.read_request()?;
        peer.finish();
        Ok(())
    });
    let transport = transport(options());
    assert_eq!(answer(transport.send(&get(&fake)).await).status, 200);
    let second = transport.send(&get(&fake)).await;
    assert_eq!(second, Outcome::Unknown(Broken::Closed));
    assert_eq!(fake.requests().len(), 2);
    assert_eq!(fake.connections(), 1);
}

/// Rule of section 2: a call that is not safe to repeat gets a connection that no stray answer can be in flight on.
#[tokio::test]
async fn a_call_that_mutates_never_gets_a_used_connection() {
    let fake = Fake::plain(|peer, _| serve(peer));
    let transport = transport(options());
    for call in [get(&fake), post(&fake), post(&fake)] {
        assert!(!answer(transport.send(&call).await).reused_connection);
    }
    assert_eq!(fake.connections(), 3);
    assert!(answer(transport.send(&get(&fake)).await).reused_connection);
}

#[tokio::test]
async fn what_the_server_will_close_is_not_kept() {
    for response in [
        &b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}"[..],
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}, and more than announced",
        b"HTTP/1.1 200 OK\r\n\r\n{}",
    ] {
        let fake = Fake::plain(move |peer, _| {
            peer.read_request()?;
            peer.send(response)
        });
        let transport = transport(options());
        for _ in 0..2 {
            let answer = answer(transport.send(&get(&fake)).await);
            assert_eq!(answer.body, b"{}");
            assert_eq!(answer.body_state, BodyState::Whole);
        }
        assert_eq!(fake.connections(), 2);
    }
}

#[tokio::test]
async fn idle_connections_are_closed_in_time() {
    let (closed, is_closed) = std::sync::mpsc::channel();
    let fake = Fake::plain(move |peer, _| {
        peer.read_request()?;
        peer.send(OK)?;
        peer.await_hang_up();
        closed.send(()).map_err(io::Error::other)
    });
    let transport = transport(Options {
        keep_alive: Duration::from_millis(20),
        ..options()
    });
    assert_eq!(answer(transport.send(&get(&fake)).await).status, 200);
    let waited =
        tokio::task::spawn_blocking(move || is_closed.recv_timeout(Duration::from_secs(10)));
    assert_eq!(waited.await.unwrap(), Ok(()));
}
