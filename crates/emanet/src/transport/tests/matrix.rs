//! One call on a fresh connection, for every row of the table.

use super::fake::{Fake, OK, Peer, full_listener};
use super::*;
use emanet_core::call::{ANSWER_BYTES_MAX, BodyState, Broken};
use std::io;

/// Sends one mutating call to a server that follows the script. Whatever came of it: what the server read completely is never
/// called not sent, and it is never sent twice (H45).
async fn play(
    options: Options,
    script: impl Fn(&mut Peer) -> io::Result<()> + Send + Sync + 'static,
) -> (Outcome, usize) {
    play_with(&transport(options), script).await
}

async fn play_with(
    transport: &HttpTransport,
    script: impl Fn(&mut Peer) -> io::Result<()> + Send + Sync + 'static,
) -> (Outcome, usize) {
    let fake = Fake::plain(move |peer, _| script(peer));
    let outcome = transport.send(&post(&fake)).await;
    fake.settle();
    let n_read = fake.requests().len();
    assert!(n_read <= 1, "sent {n_read} times");
    if n_read == 1 {
        assert!(!matches!(outcome, Outcome::NotSent(_)), "{outcome:?}");
    }
    assert_eq!(fake.connections(), 1);
    (outcome, n_read)
}

async fn check(
    options: Options,
    script: impl Fn(&mut Peer) -> io::Result<()> + Send + Sync + 'static,
    expected: (Outcome, usize),
) {
    assert_eq!(play(options, script).await, expected);
}

fn unknown(why: Broken) -> (Outcome, usize) {
    (Outcome::Unknown(why), 1)
}

#[tokio::test]
async fn what_is_asked_arrives_byte_for_byte_and_the_answer_comes_back() {
    let fake = Fake::plain(|peer, _| {
        peer.read_request()?;
        peer.send(OK)
    });
    let answer = answer(transport(options()).send(&post(&fake)).await);
    assert_eq!((answer.status, answer.body_state), (200, BodyState::Whole));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json(), Some(serde_json::json!({"id": "7"})));
    assert!(!answer.reused_connection);
    let request = String::from_utf8(fake.requests().remove(0)).unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert_eq!(body, "{\"name\":\"Ayşe\"}");
    let mut lines: Vec<&str> = head.lines().collect();
    assert_eq!(lines.remove(0), "POST /leads HTTP/1.1");
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "accept: application/json, */*;q=0.5",
            "content-length: 16",
            &format!("host: {}", fake.address),
            concat!("user-agent: emanet/", env!("CARGO_PKG_VERSION")),
        ]
    );
}

#[tokio::test]
async fn no_listener_is_not_sent() {
    let fake = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", fake.local_addr().unwrap());
    drop(fake);
    let outcome = transport(options())
        .send(&call(Method::Post, &url, b""))
        .await;
    assert_eq!(outcome, Outcome::NotSent(NotSent::Connect));
}

#[tokio::test]
async fn a_stalled_connect_is_not_sent() {
    let (listener, _fillers) = full_listener();
    let port = listener.local_addr().unwrap().as_socket().unwrap().port();
    let mut options = options();
    options.deadlines.connect = Duration::from_millis(200);
    let outcome = transport(options)
        .send(&call(
            Method::Post,
            &format!("http://127.0.0.1:{port}/"),
            b"",
        ))
        .await;
    assert_eq!(outcome, Outcome::NotSent(NotSent::Connect));
}

/// The kernel took the bytes; whether the program will ever read them, nobody can say.
#[tokio::test]
async fn never_accepted_by_the_program_is_unknown() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let outcome = transport(impatient())
        .send(&call(Method::Post, &url, b"{}"))
        .await;
    assert_eq!(outcome, Outcome::Unknown(Broken::TimedOut));
}

#[tokio::test]
async fn closed_unread_is_never_an_answer() {
    let (outcome, n_read) = play(options(), |_| Ok(())).await;
    assert_eq!(n_read, 0);
    assert!(
        matches!(
            outcome,
            Outcome::NotSent(NotSent::Connect) | Outcome::Unknown(Broken::Closed)
        ),
        "{outcome:?}"
    );
}

/// H45: the server reads the request, performs it and closes without a reply.
#[tokio::test]
async fn read_then_closed_is_unknown() {
    let script = |peer: &mut Peer| {
        peer.read_request()?;
        peer.finish();
        Ok(())
    };
    check(options(), script, unknown(Broken::Closed)).await;
}

#[tokio::test]
async fn read_then_reset_is_unknown() {
    let script = |peer: &mut Peer| {
        peer.read_request()?;
        peer.reset();
        Ok(())
    };
    check(options(), script, unknown(Broken::Closed)).await;
}

#[tokio::test]
async fn read_then_silence_is_unknown() {
    let script = |peer: &mut Peer| {
        peer.read_request()?;
        peer.await_hang_up();
        Ok(())
    };
    check(impatient(), script, unknown(Broken::TimedOut)).await;
}

#[tokio::test]
async fn half_a_head_is_unknown() {
    let script = |peer: &mut Peer| {
        peer.read_request()?;
        peer.send(b"HTTP/1.1 200 OK\r\ncontent-le")
    };
    check(options(), script, unknown(Broken::Closed)).await;
}

#[tokio::test]
async fn half_a_head_then_silence_is_unknown() {
    let script = |peer: &mut Peer| {
        peer.read_request()?;
        peer.send(b"HTTP/1.1 200 OK\r\ncontent-le")?;
        peer.await_hang_up();
        Ok(())
    };
    check(impatient(), script, unknown(Broken::TimedOut)).await;
}

#[tokio::test]
async fn garbage_is_unknown() {
    for garbage in [
        &b"\x00\x01\x02\x03\xff\xfe"[..],
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"<html>oops</html>",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
        b"HTTP/2.0 200 OK\r\n\r\n",
    ] {
        let script = move |peer: &mut Peer| {
            peer.read_request()?;
            peer.send(garbage)?;
            peer.await_hang_up();
            Ok(())
        };
        check(options(), script, unknown(Broken::Garbage)).await;
    }
}

#[tokio::test]
async fn a_head_without_end_is_unknown() {
    let script = |peer: &mut Peer| {
        peer.read_request()?;
        peer.send(b"HTTP/1.1 200 OK\r\n")?;
        loop {
            peer.send(&[b"x-filler: ", [b'x'; 4000].as_slice(), b"\r\n"].concat())?;
        }
    };
    check(options(), script, unknown(Broken::Garbage)).await;
}

#[tokio::test]
async fn reset_in_the_middle_of_a_large_body_is_unknown() {
    let fake = Fake::plain(|peer, _| {
        peer.read_head()?;
        peer.read_exactly(100_000)?;
        peer.reset();
        Ok(())
    });
    let call = call(Method::Post, &fake.url(), &vec![b'x'; 16 * 1024 * 1024]);
    let outcome = transport(options()).send(&call).await;
    assert_eq!(outcome, Outcome::Unknown(Broken::Closed));
}

/// H64, F38: a parsed head is an answer, whatever happens to its body.
#[tokio::test]
async fn a_body_that_breaks_is_an_answer_with_a_lost_body() {
    type Ending = fn(&mut Peer);
    let cases: [(&[u8], Ending); 4] = [
        (b"content-length: 100\r\n\r\n{\"id\":\"4", |_| ()),
        (b"content-length: 100\r\n\r\n{\"id\":\"4", |peer| {
            peer.await_hang_up();
        }),
        (
            b"transfer-encoding: chunked\r\n\r\n8\r\n{\"id\":\"4\r\n",
            |_| (),
        ),
        (
            b"transfer-encoding: chunked\r\n\r\n8\r\n{\"id\":\"4\r\nzz\r\n",
            |_| (),
        ),
    ];
    for (rest, ending) in cases {
        let script = move |peer: &mut Peer| {
            peer.read_request()?;
            peer.send(&[b"HTTP/1.1 200 OK\r\n", rest].concat())?;
            ending(peer);
            Ok(())
        };
        let (outcome, _) = play(impatient(), script).await;
        let answer = answer(outcome);
        assert_eq!((answer.status, answer.body_state), (200, BodyState::Lost));
        assert_eq!(answer.body, b"{\"id\":\"4");
        assert_eq!(answer.json(), None);
    }
}

/// H27, F41: a fixed number of bytes is read, of 50 MiB as of an endless body.
#[tokio::test]
async fn a_body_over_the_limit_is_capped() {
    for head in [
        "content-length: 52428800\r\n\r\n".to_owned(),
        "transfer-encoding: chunked\r\n\r\n40000000\r\n".to_owned(),
        "\r\n".to_owned(),
    ] {
        let script = move |peer: &mut Peer| {
            peer.read_request()?;
            peer.send(format!("HTTP/1.1 200 OK\r\n{head}").as_bytes())?;
            loop {
                peer.send(&[b'x'; 65_536])?;
            }
        };
        let (outcome, _) = play(options(), script).await;
        let answer = answer(outcome);
        assert_eq!(answer.body_state, BodyState::Capped);
        assert_eq!(answer.body.len(), ANSWER_BYTES_MAX);
    }
}

#[tokio::test]
async fn a_body_of_exactly_the_limit_is_whole() {
    let script = |peer: &mut Peer| {
        peer.read_request()?;
        peer.send(
            format!("HTTP/1.1 200 OK\r\ncontent-length: {ANSWER_BYTES_MAX}\r\n\r\n").as_bytes(),
        )?;
        peer.send(&vec![b'x'; ANSWER_BYTES_MAX])
    };
    let (outcome, _) = play(options(), script).await;
    let answer = answer(outcome);
    assert_eq!(answer.body_state, BodyState::Whole);
    assert_eq!(answer.body.len(), ANSWER_BYTES_MAX);
}

/// F41: the deadline is kept within a second although bytes never stop coming.
#[tokio::test]
async fn a_slow_drip_ends_at_the_deadline() {
    let started = Instant::now();
    let script = |peer: &mut Peer| {
        peer.read_request()?;
        peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")?;
        while !peer.has_hung_up_within(Duration::from_millis(20)) {
            peer.send(b"x")?;
        }
        Ok(())
    };
    let (outcome, _) = play(impatient(), script).await;
    assert_eq!(answer(outcome).body_state, BodyState::Lost);
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn an_early_refusal_is_an_answer() {
    let fake = Fake::plain(|peer, _| {
        peer.read_head()?;
        peer.send(
            b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        )?;
        peer.await_hang_up();
        Ok(())
    });
    let large = call(Method::Post, &fake.url(), &vec![b'x'; 16 * 1024 * 1024]);
    let answer = answer(transport(options()).send(&large).await);
    assert_eq!((answer.status, answer.body_state), (413, BodyState::Whole));
}

/// The reset that follows unread data may destroy the answer; then nobody knows.
#[tokio::test]
async fn an_early_refusal_with_a_reset_is_never_not_sent() {
    let fake = Fake::plain(|peer, _| {
        peer.read_head()?;
        peer.send(b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n")
    });
    let large = call(Method::Post, &fake.url(), &vec![b'x'; 16 * 1024 * 1024]);
    match transport(options()).send(&large).await {
        Outcome::Answered(answer) => assert_eq!(answer.status, 413),
        outcome => assert_eq!(outcome, Outcome::Unknown(Broken::Closed)),
    }
}

/// F40: no redirect is followed, so no credential leaves the host.
#[tokio::test]
async fn redirects_are_answers() {
    let trap = Fake::plain(|peer, _| {
        peer.read_request()?;
        peer.send(OK)
    });
    for status in [301, 302, 303, 307, 308] {
        let target = trap.url();
        let script = move |peer: &mut Peer| {
            peer.read_request()?;
            peer.send(
                format!(
                    "HTTP/1.1 {status} Moved\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n"
                )
                .as_bytes(),
            )
        };
        let (outcome, _) = play(options(), script).await;
        assert_eq!(answer(outcome).status, status);
    }
    assert_eq!(trap.connections(), 0);
}

#[tokio::test]
async fn interim_answers_are_not_the_answer() {
    let script = |peer: &mut Peer| {
        peer.read_request()?;
        peer.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: <a>\r\n\r\n")?;
        peer.send(OK)
    };
    let (outcome, _) = play(options(), script).await;
    assert_eq!(answer(outcome).json(), Some(serde_json::json!({"id": "7"})));
}

#[tokio::test]
async fn answers_without_a_body_are_whole() {
    for (status, line) in [
        (
            101,
            "101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket",
        ),
        (204, "204 No Content"),
        (304, "304 Not Modified\r\ncontent-length: 5"),
    ] {
        let script = move |peer: &mut Peer| {
            peer.read_request()?;
            peer.send(format!("HTTP/1.1 {line}\r\n\r\n").as_bytes())
        };
        let (outcome, _) = play(options(), script).await;
        let answer = answer(outcome);
        assert_eq!(
            (answer.status, answer.body_state),
            (status, BodyState::Whole)
        );
        assert_eq!(answer.body, b"");
    }
}

/// H64: what is not text is no reason to lose the answer.
#[tokio::test]
async fn bytes_that_are_no_text_are_kept() {
    let script = |peer: &mut Peer| {
        peer.read_request()?;
        peer.send(b"HTTP/1.0 200 OK\r\nx-owner: \xe7a\xf0lar\r\ncontent-encoding: gzip\r\n\r\n\x1f\x8b\x00\xff\x00")
    };
    let (outcome, _) = play(options(), script).await;
    let answer = answer(outcome);
    assert_eq!(answer.body, b"\x1f\x8b\x00\xff\x00");
    assert_eq!(answer.body_state, BodyState::Whole);
    assert_eq!(answer.header("x-owner"), Some("\u{fffd}a\u{fffd}lar"));
}

/// F37: the answer cut after every single byte, by FIN and by RST.
#[tokio::test]
async fn an_answer_cut_at_any_byte_is_unknown_or_answered() {
    let head_bytes = OK.len() - b"{\"id\":\"7\"}".len();
    let transport = transport(options());
    for n in 0..=OK.len() {
        for with_reset in [false, true] {
            let script = move |peer: &mut Peer| {
                peer.read_request()?;
                peer.send(&OK[..n])?;
                if with_reset {
                    peer.reset();
                }
                Ok(())
            };
            let (outcome, n_read) = play_with(&transport, script).await;
            assert_eq!(n_read, 1);
            match outcome {
                Outcome::Unknown(why) => {
                    assert!(n < head_bytes || with_reset, "{n}");
                    assert_eq!(why, Broken::Closed);
                }
                Outcome::Answered(answer) => {
                    assert!(n >= head_bytes, "{n}");
                    let is_whole = n == OK.len();
                    assert!((answer.body_state == BodyState::Whole) == is_whole || with_reset);
                }
                Outcome::NotSent(why) => panic!("{n}: {why:?}"),
            }
        }
    }
}

/// F37: the request cut after every single byte.
#[tokio::test]
async fn a_request_cut_at_any_byte_is_unknown() {
    let fake = Fake::plain(|peer, _| {
        peer.read_request()?;
        peer.send(OK)
    });
    let transport = transport(options());
    transport.send(&post(&fake)).await;
    for n in 1..=fake.requests()[0].len() {
        let fake = Fake::plain(move |peer, _| {
            peer.read_exactly(n)?;
            peer.reset();
            Ok(())
        });
        let outcome = transport.send(&post(&fake)).await;
        assert_eq!(outcome, Outcome::Unknown(Broken::Closed), "{n}");
        assert_eq!(fake.connections(), 1);
    }
}

/// A call that gives up at any moment never lies: what was read is unknown, what is called not sent was not read.
#[tokio::test]
async fn time_outs_at_any_moment_are_judged_rightly() {
    let fake = Fake::plain(|peer, _| {
        peer.read_request()?;
        peer.await_hang_up();
        Ok(())
    });
    let mut transport = transport(options());
    let mut n_read = 0;
    for micros in (0..4_000).step_by(20) {
        transport.deadlines.call = Duration::from_micros(micros);
        let outcome = transport.send(&post(&fake)).await;
        fake.settle();
        let was_read = fake.requests().len() > n_read;
        n_read = fake.requests().len();
        match outcome {
            Outcome::NotSent(_) => assert!(!was_read, "{micros}"),
            outcome => assert_eq!(outcome, Outcome::Unknown(Broken::TimedOut), "{micros}"),
        }
    }
}
