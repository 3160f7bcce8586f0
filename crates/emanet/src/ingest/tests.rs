//! Intake over real connections, into the real store.

mod world;

use crate::telemetry::{LogFormat, captured};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;
use world::{Answer, FORM, World, sign, within};

const LEAD: &[u8] = b"emanet_id=a-1&full_name=Ali+Veli&phone=05321234567";

fn assert_code(answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.json()["error"]["code"], code, "{answer:?}");
    assert_eq!(
        answer.json()["error"]["trace_id"].as_str().map(str::len),
        Some(32)
    );
}

/// IN-2, invariant 1: answered after the commit, with the ids of what was stored.
#[tokio::test]
async fn a_lead_is_stored_and_then_answered() {
    let world = World::start().await;
    let answer = world
        .post(&[FORM, ("accept", "application/json")], LEAD)
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let [event] = &world.events().await[..] else {
        panic!("expected one event")
    };
    let body = answer.json();
    assert_eq!(body["status"], "stored");
    assert_eq!(
        body["events"],
        json!([{ "id": event.id.to_string(), "new": true }])
    );
    assert_eq!(body["trace_id"].as_str().map(str::len), Some(32));
    let request = world.request(event.id).await;
    assert_eq!(request.body, LEAD);
    assert_eq!(request.header("x-emanet-peer"), Some("127.0.0.1"));
    within(world.wake.notified()).await;
}

/// IN-3: at-least-once delivery by the source, once here.
#[tokio::test]
async fn the_same_event_a_hundred_times_at_once_is_one_event() {
    let world = Arc::new(World::start().await);
    let mut posts = JoinSet::new();
    for _ in 0..100 {
        let world = Arc::clone(&world);
        posts.spawn(async move {
            world
                .post(&[FORM, ("accept", "application/json")], LEAD)
                .await
        });
    }
    let answers = posts.join_all().await;
    assert!(answers.iter().all(|a| a.status == 200), "{answers:?}");
    let events: Vec<Value> = answers
        .iter()
        .map(|a| a.json()["events"][0].take())
        .collect();
    assert_eq!(events.iter().filter(|e| e["new"] == true).count(), 1);
    assert!(events.iter().all(|e| e["id"] == events[0]["id"]));
    let [event] = &world.events().await[..] else {
        panic!("expected one event")
    };
    assert_eq!(event.seen, 100);
}

/// H22: a burst is stored whole, whatever the worker does.
#[tokio::test]
async fn a_burst_is_stored_whole() {
    let world = Arc::new(World::start().await);
    let mut posts = JoinSet::new();
    for i in 0..25 {
        let world = Arc::clone(&world);
        let body = format!("emanet_id=burst-{i}&full_name=Ali");
        posts.spawn(async move { world.post(&[FORM], body.as_bytes()).await });
    }
    assert!(posts.join_all().await.iter().all(|a| a.status == 200));
    assert_eq!(world.events().await.len(), 25);
}

/// IN-4, H17, H54, S2: not authentic is 401, not stored, counted.
#[tokio::test]
async fn nothing_of_an_unauthentic_request_is_stored() {
    let world = World::signed().await;
    let right = sign(LEAD);
    let commas = ",".repeat(64 * 1024);
    let forged = [
        "",
        "sha256=",
        "sha256=%%%",
        &right[..8],
        &right[..43],
        &commas,
        &sign(b"another body"),
        "sha256=\u{ff}\u{fe}",
    ];
    for signature in forged {
        let answer = world
            .post(&[FORM, ("x-emanet-signature", signature)], LEAD)
            .await;
        assert_code(&answer, 401, "CORE-AUTH-0001");
    }
    let twice = [
        FORM,
        ("x-emanet-signature", &*right),
        ("x-emanet-signature", "sha256=00"),
    ];
    assert_code(&world.post(&twice, LEAD).await, 401, "CORE-AUTH-0001");
    assert_code(&world.post(&[FORM], LEAD).await, 401, "CORE-AUTH-0001");
    assert!(world.events().await.is_empty());
    let counted = r#"intake_requests_total{source_kind="web_form",outcome="refused"} 10"#;
    assert!(world.metrics().contains(counted), "{}", world.metrics());
}

/// H26, H62: the raw bytes are what is signed, escapes and all, and nothing made of them.
#[tokio::test]
async fn the_raw_bytes_are_what_is_signed() {
    let world = World::signed().await;
    let escaped = br#"{"emanet_id":"b-1","message":"J'ai mang\u00e9 des p\u00e2tes"}"#;
    let decoded = r#"{"emanet_id":"b-1","message":"J'ai mangé des pâtes"}"#.as_bytes();
    let json = ("content-type", "application/json");
    let answer = world
        .post(&[json, ("x-emanet-signature", &sign(decoded))], escaped)
        .await;
    assert_eq!(answer.status, 401, "{answer:?}");
    let answer = world
        .post(&[json, ("x-emanet-signature", &sign(escaped))], escaped)
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(world.events().await.len(), 1);
}

/// Secrets come with a request and stay out of the store (S1, invariant 7).
#[tokio::test]
async fn what_authenticates_is_not_stored() {
    let world = World::start().await;
    let headers = [
        FORM,
        ("x-emanet-secret", "s3cret"),
        ("authorization", "Bearer s3cret"),
        ("cookie", "session=s3cret"),
        ("user-agent", "Mozilla"),
    ];
    assert_eq!(world.post(&headers, LEAD).await.status, 200);
    let event = world.events().await[0].id;
    let stored = world.request(event).await.headers;
    assert!(
        stored.iter().all(|(_, value)| !value.contains("s3cret")),
        "{stored:?}"
    );
    assert!(stored.contains(&("user-agent".into(), "Mozilla".into())));
}

/// F29: whatever the bytes, an authentic request is stored byte for byte.
#[tokio::test]
async fn bytes_are_stored_as_they_came() {
    let world = World::signed().await;
    let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    let utf16: Vec<u8> = "{\"ad\":\"Şükrü\"}"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let corpus: [(&str, &[u8]); 12] = [
        ("application/json", &deep),
        ("application/json", b"\xef\xbb\xbf{\"emanet_id\":\"bom\"}"),
        ("application/json", &utf16),
        (
            "application/json",
            b"{\"emanet_id\":\"nul\",\"a\":\"\\u0000\",\"b\":\"\0\"}",
        ),
        (
            "application/json",
            b"{\"emanet_id\":\"bad\",\"a\":\"\xc3\x28\xff\"}",
        ),
        ("application/json", br#"{"emanet_id":"lone","a":"\ud800"}"#),
        (
            "application/json",
            br#"{"emanet_id":"two","phone":"1","phone":"2"}"#,
        ),
        (
            "application/json",
            br#"{"emanet_id":"num","n":1e400,"m":123456789012345678901234567890}"#,
        ),
        ("application/json", b"{\"emanet_id\":\"nan\",\"n\":NaN}"),
        ("application/json", b"{"),
        (
            "application/x-www-form-urlencoded",
            b"emanet_id=%ff%fe&a=%00&b=%",
        ),
        ("text/plain", b"\0\xff\x1b[31m"),
    ];
    for (content_type, body) in corpus {
        let headers = [
            ("content-type", content_type),
            ("x-emanet-signature", &*sign(body)),
            ("accept", "application/json"),
        ];
        let answer = world.post(&headers, body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let id = answer.json()["events"][0]["id"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        assert!(
            world.request(id).await.body == body,
            "{content_type} {} bytes",
            body.len()
        );
    }
    assert_eq!(world.events().await.len(), corpus.len());
}

/// S8, F28: at the limit it is taken, one byte more is refused, whether its length was declared or not.
#[tokio::test]
async fn a_body_may_have_so_many_bytes_and_no_more() {
    let world = World::start().await;
    let limit = world::BODY_BYTES_MAX;
    let body = |n: usize| {
        let mut body = b"emanet_id=size&message=".to_vec();
        body.resize(n, b'a');
        body
    };
    assert_eq!(world.post(&[FORM], &body(limit)).await.status, 200);
    assert_code(
        &world.post(&[FORM], &body(limit + 1)).await,
        413,
        "CORE-REQ-0006",
    );
    assert_eq!(world.post_chunked(&[FORM], &body(limit)).await.status, 200);
    let over = world.post_chunked(&[FORM], &body(limit + 1)).await;
    assert_code(&over, 413, "CORE-REQ-0006");
    assert_eq!(world.events().await.len(), 1);
}

/// F28: a body without end is answered at its limit, and the connection ends.
#[tokio::test]
async fn a_body_without_end_is_cut() {
    let world = World::start().await;
    let mut io = world.dial().await;
    io.write_all(
        world
            .head("POST", &[FORM, ("transfer-encoding", "chunked")])
            .as_bytes(),
    )
    .await
    .unwrap();
    let (mut reader, mut writer) = io.into_split();
    let endless = tokio::spawn(async move {
        let chunk = format!("1000\r\n{}\r\n", "a".repeat(0x1000));
        while writer.write_all(chunk.as_bytes()).await.is_ok() {}
    });
    let answer = within(Answer::read(&mut reader)).await;
    assert_code(&answer, 413, "CORE-REQ-0006");
    within(endless).await.unwrap();
    assert!(world.events().await.is_empty());
}

/// F27: a body that does not come is not waited for for ever.
#[tokio::test]
async fn a_slow_body_is_cut() {
    let world = World::with_limits(super::Limits {
        body_timeout: Duration::from_millis(200),
        ..super::Limits::default()
    })
    .await;
    let mut io = world.dial().await;
    let head = world.head("POST", &[FORM, ("content-length", "100")]);
    io.write_all(head.as_bytes()).await.unwrap();
    io.write_all(b"emanet_id=").await.unwrap();
    let answer = within(Answer::read(&mut io)).await;
    assert_code(&answer, 504, "CORE-SYS-0003");
    assert!(world.events().await.is_empty());
}

/// F27: who is slow to send takes no place from one whose lead is here.
#[tokio::test]
async fn a_slow_sender_takes_nobodys_place() {
    let world = World::with_limits(super::Limits {
        requests_max: 1,
        ..super::Limits::default()
    })
    .await;
    let headers = [FORM, ("content-length", "100"), ("expect", "100-continue")];
    let mut slow = Vec::new();
    for _ in 0..20 {
        let mut io = world.dial().await;
        io.write_all(world.head("POST", &headers).as_bytes())
            .await
            .unwrap();
        // The handler waits for the body now.
        let asked = within(Answer::read_head(&mut io)).await;
        assert!(asked.starts_with("HTTP/1.1 100"), "{asked}");
        slow.push(io);
    }
    assert_eq!(world.post(&[FORM], LEAD).await.status, 200);
}

/// F13: a commit that takes too long is not waited for; it still counts, and the repeat is a duplicate.
#[tokio::test]
async fn a_slow_commit_puts_the_sender_off_and_is_not_lost() {
    let world = World::with_limits(super::Limits {
        accept_timeout: Duration::from_millis(100),
        ..super::Limits::default()
    })
    .await;
    let release = world.store.hold_writer().await.unwrap();
    let answer = world.post(&[FORM], LEAD).await;
    assert_code(&answer, 503, "CORE-SYS-0002");
    drop(release);
    within(world.wake.notified()).await;
    let events = world.events().await;
    assert_eq!(events.len(), 1);
}

/// F12, F14: a commit that fails acknowledges nothing and leaves nothing; the next one is fine.
#[tokio::test]
async fn a_failed_commit_is_not_acknowledged() {
    let world = World::start().await;
    world.store.fail_commits(1);
    let answer = world.post(&[FORM], LEAD).await;
    assert_code(&answer, 503, "CORE-SYS-0002");
    assert!(world.events().await.is_empty());
    assert_eq!(world.post(&[FORM], LEAD).await.status, 200);
    assert_eq!(world.events().await.len(), 1);
}

#[tokio::test]
async fn a_token_of_no_source_is_unknown() {
    let world = World::start().await;
    for path in ["/in/nothing", "/in/%ff", &format!("{}x", world.path)] {
        let answer = world.send("POST", path, &[FORM], LEAD).await;
        assert_code(&answer, 404, "CORE-REQ-0003");
        let body = format!("{answer:?}");
        assert!(
            body.contains("Check the address; `emanet serve` prints it."),
            "{body}"
        );
    }
    assert!(world.events().await.is_empty());
}

/// F12: nothing is acknowledged that is not durable; the sender is asked to come again.
#[tokio::test]
async fn a_closed_store_puts_the_sender_off() {
    use emanet_store::Store;
    let world = World::start().await;
    world.store.close().await.unwrap();
    let answer = world.post(&[FORM], LEAD).await;
    assert_code(&answer, 503, "CORE-SYS-0002");
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((2..=10).contains(&wait), "{wait}");
}

/// F13: who finds no room is told at once.
#[tokio::test]
async fn no_room_puts_the_sender_off() {
    let default = super::Limits::default();
    for limits in [
        super::Limits {
            requests_max: 0,
            ..default
        },
        super::Limits {
            memory_bytes_max: 0,
            ..default
        },
    ] {
        let world = World::with_limits(limits).await;
        let answer = world.post(&[FORM], LEAD).await;
        assert_code(&answer, 503, "CORE-SYS-0002");
        assert!(answer.header("retry-after").is_some());
        assert!(world.events().await.is_empty());
    }
}

/// Design 4: for the sender, a paused source and a suspended workspace look like any other.
#[tokio::test]
async fn a_paused_source_stores_and_answers_200() {
    let world = World::paused().await;
    assert_eq!(world.post(&[FORM], LEAD).await.status, 200);
    assert_eq!(world.events().await.len(), 1);
}

#[tokio::test]
async fn what_cannot_be_taken_is_declined_with_a_code() {
    let world = World::start().await;
    let gzip = [FORM, ("content-encoding", "gzip")];
    assert_code(&world.post(&gzip, LEAD).await, 415, "CORE-REQ-0008");
    let answer = world.send("PUT", &world.path, &[FORM], LEAD).await;
    assert_code(&answer, 405, "CORE-REQ-0007");
    assert_eq!(answer.header("allow"), Some("GET, HEAD, POST"));
    assert!(world.events().await.is_empty());
}

/// A request in which the connector finds nothing at all is told so, and a connector that panics costs one answer.
#[tokio::test]
async fn an_odd_connector_does_no_harm() {
    let world = World::odd().await;
    assert_code(&world.post(&[], b"panic").await, 500, "CORE-SYS-0001");
    assert_code(&world.post(&[], b"nothing").await, 400, "CORE-REQ-0001");
    assert!(world.events().await.is_empty());
}

/// Pages of other origins post forms with scripts.
#[tokio::test]
async fn a_page_of_another_origin_may_post() {
    let world = World::start().await;
    let asked = [
        ("origin", "https://example.com"),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type"),
    ];
    let answer = world.send("OPTIONS", &world.path, &asked, b"").await;
    assert_eq!(answer.status, 204, "{answer:?}");
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    assert_eq!(
        answer.header("access-control-allow-headers"),
        Some("content-type")
    );
    assert_eq!(
        answer.header("access-control-allow-methods"),
        Some("GET, POST")
    );
    for body in [LEAD, b""] {
        let answer = world.post(&[FORM, asked[0]], body).await;
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    }
}

/// F36, invariant 7: no lead's data, token or signature in a log line, at any level.
#[tokio::test]
async fn logs_hold_no_personal_data() {
    let (lines, _guard) = captured::lines(LogFormat::Json);
    let world = World::signed().await;
    let body = b"emanet_id=canary-ref&phone=05321234567&email=canary@example.com&full_name=Kanarya%0d%0aERROR";
    let signature = sign(body);
    let headers = |signature| [FORM, ("x-emanet-signature", signature)];
    assert_eq!(world.post(&headers(&signature), body).await.status, 200);
    assert_eq!(
        world.post(&headers("sha256=canary"), body).await.status,
        401
    );
    assert_eq!(
        world
            .post(&[FORM, ("content-encoding", "br")], body)
            .await
            .status,
        415
    );
    emanet_store::Store::close(&*world.store).await.unwrap();
    assert_eq!(world.post(&headers(&signature), body).await.status, 503);
    let text = lines.text();
    assert!(text.contains("emanet::refused"), "{text}");
    for canary in ["5321234567", "anary", &world.token, &signature] {
        assert!(!text.contains(canary), "{canary} in\n{text}");
    }
}

/// A sender that hangs up keeps neither the lead from being stored nor the engine from hearing of it.
#[tokio::test]
async fn a_sender_that_hangs_up_changes_nothing() {
    let world = World::start().await;
    let mut io = world.dial().await;
    let head = world.head("POST", &[FORM, ("content-length", &LEAD.len().to_string())]);
    io.write_all(&[head.as_bytes(), LEAD].concat())
        .await
        .unwrap();
    drop(io);
    within(world.wake.notified()).await;
    assert_eq!(world.events().await.len(), 1);
}

/// A stop lets a request finish whose body is still on its way.
#[tokio::test]
async fn a_stop_lets_a_lead_on_its_way_arrive() {
    let world = World::start().await;
    let mut io = world.dial().await;
    let head = world.head(
        "POST",
        &[
            FORM,
            ("content-length", &LEAD.len().to_string()),
            ("expect", "100-continue"),
        ],
    );
    io.write_all(head.as_bytes()).await.unwrap();
    let asked = within(Answer::read_head(&mut io)).await;
    assert!(asked.starts_with("HTTP/1.1 100"), "{asked}");
    world.stop.send(true).unwrap();
    io.write_all(LEAD).await.unwrap();
    let answer = within(Answer::read(&mut io)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    drop(io);
    assert_eq!(world.events().await.len(), 1);
    world.ended().await;
}
