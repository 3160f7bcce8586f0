use super::*;
use crate::contract::{self, NOW, Ran, SECRET, drive, json as answer};
use emanet_core::call::{Answer, BodyState, Call, HeaderValue};
use emanet_core::classify::{Class, Effect};
use emanet_core::field::Settings;
use emanet_core::secret::Secret;
use proptest::prelude::*;

const SIGNED: &[u8] = include_bytes!("fixtures/signed.json");
const BATCH: &[u8] = include_bytes!("fixtures/batch.json");
const LEAD: &str = include_str!("fixtures/lead.json");
const TEST_LEAD: &str = include_str!("fixtures/test_lead.json");
const NOT_FOUND: &str = include_str!("fixtures/not_found.json");
const THROTTLED: &str = include_str!("fixtures/throttled.json");
const EXPIRED: &str = include_str!("fixtures/expired.json");

fn source(values: Value) -> Box<dyn Source> {
    (KIND.build)(&contract::settings(KIND.fields, values)).expect("right settings")
}

/// With a secret of its own, so that vectors can be checked.
fn with_secrets(app: &str, previous: Option<&str>) -> Box<dyn Source> {
    let secrets = [
        ("app_secret", app),
        ("verify_token", "v"),
        ("page_token", "p"),
    ]
    .into_iter();
    let secrets = secrets.chain(previous.map(|secret| ("previous_app_secret", secret)));
    let settings = Settings {
        secrets: secrets
            .map(|(k, v)| (k.to_owned(), Secret::new(v)))
            .collect(),
        ..Settings::default()
    };
    (KIND.build)(&settings).expect("right settings")
}

fn post(body: &[u8], signature: Option<&str>) -> Inbound {
    let signature = signature.map(|s| ("x-hub-signature-256".to_owned(), s.to_owned()));
    Inbound {
        method: "POST".into(),
        query: String::new(),
        headers: signature.into_iter().collect(),
        body: body.to_vec(),
    }
}

fn signed(body: &[u8]) -> Inbound {
    post(body, Some(&signature::sign(&Secret::new(SECRET), body)))
}

fn items(source: &dyn Source, body: &[u8]) -> Vec<Item> {
    match source.receive(&signed(body), NOW) {
        Received::Events {
            items,
            reply: Reply::Text(_),
        } => items,
        other => panic!("no events: {other:?}"),
    }
}

fn refused(source: &dyn Source, request: &Inbound) -> Option<(u16, &'static str)> {
    match source.receive(request, NOW) {
        Received::Refused { status, reason } => Some((status, reason)),
        Received::Events { .. } | Received::Handshake(_) => None,
    }
}

#[test]
fn it_keeps_the_contract() {
    contract::source_keeps_the_contract(&KIND, &json!({}));
}

#[test]
fn wrong_settings_are_reported() {
    let settings = Settings {
        values: json!({"graph_url": "graph", "graph_version": "25", "page_ids": ["x"], "pages": 1, "source_id": "src_1"})
            .as_object()
            .cloned()
            .expect("an object"),
        secrets: [("app_secret".to_owned(), Secret::new(""))].into(),
    };
    let wrong = (KIND.build)(&settings).expect_err("much is wrong");
    let keys: Vec<_> = wrong.iter().map(|w| w.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "graph_url",
            "graph_version",
            "page_ids",
            "app_secret",
            "verify_token",
            "page_token",
            "pages"
        ]
    );
}

fn handshake(query: &str) -> Received {
    let request = Inbound {
        method: "GET".into(),
        query: query.into(),
        headers: vec![],
        body: vec![],
    };
    source(json!({})).receive(&request, NOW)
}

/// The bare challenge and nothing else; a wrong token is 403; nothing harmful is echoed.
#[test]
fn the_handshake_echoes_the_challenge() {
    let asked = |token: &str, challenge: &str| {
        handshake(&format!(
            "hub.mode=subscribe&hub.challenge={challenge}&hub.verify_token={token}"
        ))
    };
    assert_eq!(
        asked(SECRET, "1158201444"),
        Received::Handshake(Reply::Text("1158201444".into()))
    );
    let refused = |received| match received {
        Received::Refused {
            status: 403,
            reason,
        } => reason,
        other => panic!("{other:?}"),
    };
    for token in ["", "s3cret", "s3cret-of-the-tesT"] {
        assert_eq!(refused(asked(token, "1")), "wrong_verify_token");
    }
    for challenge in ["", "%3Cscript%3E", "a%0Ab", &"1".repeat(257)] {
        assert_eq!(refused(asked(SECRET, challenge)), "bad_challenge");
    }
    assert_eq!(refused(handshake("")), "no_handshake");
    assert_eq!(
        refused(handshake(&format!(
            "hub.mode=subscribe&hub.challenge=1&hub.verify_token={SECRET}&hub.verify_token=x"
        ))),
        "wrong_verify_token"
    );
}

/// H26: the vector of the reference, 1.2, as bytes. A signature over the text with its escapes undone is refused (H62).
#[test]
fn the_signature_is_over_the_bytes_as_they_travel() {
    let source = with_secrets("emanet-app-secret", None);
    let right = "sha256=d6e0c3cac3b9bc64a0c9264b04993160c69849f6c307277611213e281ee8e328";
    let rewritten = "sha256=94e6b4aba5ee562a24dd47cb38980a07a8f196ac0d3553b3bf3a469ca5968cf2";
    assert_eq!(refused(&*source, &post(SIGNED, Some(right))), None);
    assert_eq!(
        refused(&*source, &post(SIGNED, Some(rewritten))),
        Some((401, "bad_signature"))
    );
    assert_eq!(
        refused(&*source, &post(SIGNED, None)),
        Some((401, "no_signature"))
    );
    let parsed: Value = serde_json::from_slice(SIGNED).expect("JSON");
    let text = parsed.to_string();
    assert!(text.contains("Çağrı Şener"));
    assert_eq!(
        refused(&*source, &post(text.as_bytes(), Some(right))),
        Some((401, "bad_signature"))
    );
    assert!(wire::ascii(&parsed).contains(r"\u00c7a\u011fr\u0131 \u015eener"));
    assert!(wire::ascii(&json!("🏠")).contains(r"\ud83c\udfe0"));
}

/// Both secrets live while one is being changed; SHA-1 is never looked at.
#[test]
fn the_previous_secret_is_taken_too() {
    let by = |secret: &str| post(SIGNED, Some(&signature::sign(&Secret::new(secret), SIGNED)));
    let source = with_secrets("new", Some("old"));
    assert_eq!(refused(&*source, &by("new")), None);
    assert_eq!(refused(&*source, &by("old")), None);
    assert_eq!(
        refused(&*source, &by("older")),
        Some((401, "bad_signature"))
    );
    let mut sha1 = post(SIGNED, None);
    sha1.headers.push((
        "x-hub-signature".into(),
        "sha1=0000000000000000000000000000000000000000".into(),
    ));
    assert_eq!(refused(&*source, &sha1), Some((401, "no_signature")));
}

/// H9: every change of every entry; ids exact, as text or number; nothing in the list stops the rest.
#[test]
fn a_batch_is_split_into_all_its_changes() {
    let items = items(
        &*source(json!({"page_ids": ["1029384756", "444444444444"]})),
        BATCH,
    );
    let ignore = |reason: &str| Fate::Ignore(reason.into());
    let seen: Vec<_> = items
        .iter()
        .map(|i| (i.pointer.as_str(), i.fate.clone()))
        .collect();
    assert_eq!(
        seen,
        [
            ("0/0", Fate::Process),
            ("0/1", ignore("unrelated_change")),
            ("0/2", Fate::Process),
            ("2/0", ignore("foreign_page")),
            ("2/1", Fate::Unreadable("no_leadgen_id".into())),
            ("3/0", ignore("test_notification")),
        ]
    );
    assert_eq!(items[0].source_ref, "9900112233445566");
    assert_eq!(items[2].source_ref, "9007199254740993123");
    assert_eq!(
        items[2].created_at,
        Timestamp::from_second(1_767_225_599).ok()
    );
    assert_eq!(items[3].source_ref, "9900112233445568");
}

/// IN-3: a repeat has the same refs, though Meta writes another time into the entry.
#[test]
fn a_repeat_has_the_same_refs() {
    let again = String::from_utf8_lossy(BATCH).replace("\"time\":17672256", "\"time\":17672999");
    let refs = |body: &[u8]| -> Vec<String> {
        items(&*source(json!({})), body)
            .into_iter()
            .map(|i| i.source_ref)
            .collect()
    };
    assert_eq!(refs(BATCH), refs(again.as_bytes()));
    let unique: std::collections::BTreeSet<_> = refs(BATCH).into_iter().collect();
    assert_eq!(unique.len(), 6);
}

/// IN-5.
#[test]
fn a_signed_body_that_cannot_be_read_is_kept() {
    let fate = |body: &[u8]| {
        let items = items(&*source(json!({})), body);
        assert_eq!((items.len(), items[0].source_ref.len()), (1, 64));
        items[0].fate.clone()
    };
    let unreadable = |reason: &str| Fate::Unreadable(reason.into());
    assert_eq!(fate(b"{\"entry\":[{"), unreadable("not_json"));
    assert_eq!(fate(b""), unreadable("not_json"));
    assert_eq!(fate(b"\xff"), unreadable("not_json"));
    assert_eq!(fate(b"[]"), unreadable("not_an_object"));
    assert_eq!(fate("[".repeat(500).as_bytes()), unreadable("too_deep"));
    assert_eq!(
        fate(br#"{"object":"page","entry":[{"id":"1","changes":[]}]}"#),
        Fate::Ignore("no_changes".into())
    );
    let doubled = br#"{"entry":[{"changes":[{"field":"leadgen","value":{"leadgen_id":"1","leadgen_id":"2"}}]}]}"#;
    assert_eq!(fate(doubled), unreadable("no_leadgen_id"));
}

/// A composed notification is taken, signed and in ASCII as Meta's are.
#[test]
fn a_composed_request_is_taken() {
    let source = source(json!({"page_ids": ["77"]}));
    let sample = Sample {
        source_ref: "9900112233445570".into(),
        fields: vec![],
        created_at: NOW,
    };
    let request = source.compose(&sample);
    assert!(request.body.is_ascii());
    match source.receive(&request, NOW) {
        Received::Events { items, .. } => {
            assert_eq!(
                (items[0].source_ref.as_str(), &items[0].fate),
                ("9900112233445570", &Fate::Process)
            );
        }
        other => panic!("{other:?}"),
    }
}

fn fetched(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn a_fetched_lead_is_read() {
    let request = signed(BATCH);
    let lead = source(json!({}))
        .read(&request, "0/0", Some(&fetched(LEAD)))
        .expect("readable");
    let fields: Vec<_> = lead
        .fields
        .iter()
        .map(|(n, v)| (n.as_str(), v.join("|")))
        .collect();
    let expected = [
        ("full_name", "Ayşe Yılmaz"),
        ("phone_number", "+905321234567"),
        ("email", "ayse@example.com"),
        ("hangi_daire_tipi?", "2+1"),
        ("ne_zaman_arayalım?", "hafta içi|akşam"),
        ("not", ""),
    ];
    assert_eq!(fields, expected.map(|(n, v)| (n, v.to_owned())));
    assert_eq!(
        lead.consent,
        [("kvkk".to_owned(), true), ("iys".to_owned(), false)]
    );
    assert_eq!(lead.created_at, Timestamp::from_second(1_767_225_600).ok());
    for (name, value) in [
        ("campaign_name", "Kış"),
        ("is_organic", "false"),
        ("platform", "ig"),
        ("page_id", "1029384756"),
        ("leadgen_id", "9900112233445566"),
    ] {
        assert_eq!(lead.attribution.get(name).map(String::as_str), Some(value));
    }
    assert!(!lead.is_test);
}

#[test]
fn a_test_lead_is_known_by_its_dummy_texts() {
    let lead = source(json!({}))
        .read(&signed(BATCH), "0/0", Some(&fetched(TEST_LEAD)))
        .expect("readable");
    assert!(lead.is_test);
}

#[test]
fn what_is_missing_is_said() {
    let read = |pointer: &str, fetched: Option<&Value>| {
        source(json!({}))
            .read(&signed(BATCH), pointer, fetched)
            .map_err(|u| u.reason)
    };
    assert_eq!(read("0/0", None), Err("not_fetched".into()));
    assert_eq!(read("9/9", None), Err("no_such_change".into()));
    assert_eq!(read("2/1", None), Err("no_leadgen_id".into()));
    assert_eq!(
        read("0/0", Some(&json!({"id": "1", "field_data": []}))),
        Err("no_fields".into())
    );
}

fn fetch(mut respond: impl FnMut(&Call) -> Answer) -> Ran {
    let source = source(json!({"graph_url": "https://graph.example/", "graph_version": "v24.0"}));
    let request = signed(BATCH);
    let input = FetchInput {
        request: &request,
        pointer: "0/0",
        source_ref: "9900112233445566",
    };
    drive(|run| source.fetch(&input, run, NOW), &mut respond)
}

fn text(status: u16, body: &str) -> Answer {
    contract::answer(status, "application/json", body.as_bytes())
}

#[test]
fn a_lead_is_fetched_with_the_token_in_a_secret_header() {
    let ran = fetch(|_| text(200, LEAD));
    let delivered = ran.end.as_ref().expect("delivered");
    assert_eq!(
        (delivered.how.as_str(), &delivered.data),
        ("fetched", &fetched(LEAD))
    );
    let call = &ran.calls[0];
    assert!(
        call.url
            .starts_with("https://graph.example/v24.0/9900112233445566?fields=id,created_time,"),
        "{}",
        call.url
    );
    assert!(
        call.url.contains("field_data,custom_disclaimer_responses")
            && !call.url.contains(SECRET)
            && !call.mutates
    );
    let bearer = HeaderValue::Secret(Secret::new(format!("Bearer {SECRET}")));
    assert!(call.headers.contains(&("authorization".into(), bearer)));
    contract::shows_no_secret(&format!("{call:?}"));
}

/// F38, H64: a 2xx is no lead unless it is this one, whole.
#[test]
fn only_the_lead_asked_for_is_taken() {
    let class = |answer: &Answer| {
        let ran = fetch(|_| answer.clone());
        (ran.failure().class, ran.failure().effect)
    };
    let not_applied = |class| (class, Effect::NotApplied);
    assert_eq!(
        class(&answer(200, &json!({"id": "1", "field_data": []}))),
        not_applied(Class::Unknown)
    );
    assert_eq!(
        class(&answer(200, &json!({"id": "9900112233445566"}))),
        not_applied(Class::PermanentConfig)
    );
    assert_eq!(
        class(&text(200, "{\"id\":\"99")),
        not_applied(Class::Transient)
    );
    assert_eq!(class(&text(200, "")), not_applied(Class::Transient));
    assert_eq!(
        class(&contract::answer(200, "text/html", b"<html>login</html>")),
        not_applied(Class::PermanentConfig)
    );
    let lost = Answer {
        body_state: BodyState::Lost,
        ..text(200, LEAD)
    };
    assert_eq!(class(&lost), not_applied(Class::Transient));
    assert_eq!(
        class(&text(200, EXPIRED)),
        not_applied(Class::PermanentConfig)
    );
}

/// ERR-6: the rows of the error catalogue for the Graph API that a read can meet (506, "duplicate post", is none of them).
#[test]
fn catalogued_answers_have_class_and_effect() {
    contract::answers_mean_what_is_recorded(include_str!("fixtures/errors.json"), |answer| {
        let ran = fetch(|_| answer.clone());
        assert_eq!(ran.names(), ["fetch"]);
        ran.failure().clone()
    });
}

#[test]
fn what_meta_calls_transient_is_believed_unless_the_table_knows_better() {
    let class = |code: i64| {
        let error = json!({"error": {"message": "…", "code": code, "is_transient": true}});
        fetch(|_| answer(400, &error)).failure().class
    };
    assert_eq!(class(9_999_999), Class::Transient);
    assert_eq!(class(100), Class::Transient);
    assert_eq!(class(190), Class::PermanentConfig);
}

/// The ambiguous 100/33: the form tells whether the lead is gone or the token is blind.
#[test]
fn an_unknown_lead_is_told_apart_by_its_form() {
    let by_form = |form: &Answer| {
        let ran = fetch(|call| {
            if call.name == "fetch" {
                text(400, NOT_FOUND)
            } else {
                form.clone()
            }
        });
        assert_eq!(ran.names(), ["fetch", "probe_form"]);
        assert_eq!(
            ran.calls[1].url,
            "https://graph.example/v24.0/5544332211009988?fields=id"
        );
        let failure = ran.failure();
        assert_eq!(failure.effect, Effect::NotApplied);
        (
            failure.class,
            failure.vendor_code.clone().unwrap_or_default(),
        )
    };
    assert_eq!(
        by_form(&text(200, r#"{"id":"5544332211009988"}"#)),
        (Class::PermanentData, "100/33".into())
    );
    assert_eq!(
        by_form(&text(400, NOT_FOUND)),
        (Class::PermanentConfig, "100/33".into())
    );
    assert_eq!(
        by_form(&text(401, EXPIRED)),
        (Class::PermanentConfig, "190/463".into())
    );
    assert_eq!(
        by_form(&text(400, THROTTLED)),
        (Class::Transient, "80005".into())
    );
    assert_eq!(by_form(&text(503, "")).0, Class::Transient);
    assert_eq!(by_form(&text(200, "{\"id\"")).0, Class::Transient);
}

#[test]
fn without_a_form_to_try_a_person_decides() {
    let body = br#"{"entry":[{"changes":[{"field":"leadgen","value":{"leadgen_id":"1"}}]}]}"#;
    let request = signed(body);
    let source = source(json!({}));
    let input = FetchInput {
        request: &request,
        pointer: "0/0",
        source_ref: "1",
    };
    let ran = drive(|run| source.fetch(&input, run, NOW), &mut |_| {
        text(400, NOT_FOUND)
    });
    assert_eq!(
        (ran.failure().class, ran.failure().effect),
        (Class::Unknown, Effect::NotApplied)
    );
}

/// ERR-4: Meta says the wait in minutes, in a header of its own; the longest counts.
#[test]
fn throttling_waits_as_long_as_meta_asks() {
    let wait = |header: &str, also: Option<&str>| {
        let mut answer = text(400, THROTTLED);
        answer
            .headers
            .push(("x-business-use-case-usage".into(), header.into()));
        answer
            .headers
            .extend(also.map(|seconds| ("retry-after".to_owned(), seconds.to_owned())));
        let ran = fetch(|_| answer.clone());
        assert_eq!(ran.failure().class, Class::Transient);
        ran.failure()
            .retry_after
            .map(|r| (r.wait.as_secs(), r.clamped))
    };
    let minutes = |m: i64| {
        json!({"1": [{"type": "leadgen", "estimated_time_to_regain_access": m}, {"type": "pages", "estimated_time_to_regain_access": 1}]}).to_string()
    };
    assert_eq!(wait(&minutes(19), None), Some((19 * 60, false)));
    assert_eq!(wait(&minutes(19), Some("7200")), Some((7_200, false)));
    assert_eq!(wait(&minutes(i64::MAX), None), Some((86_400, true)));
    assert_eq!(wait(&minutes(0), None).map(|w| w.0), Some(60));
    for broken in ["", "{", "[]", "{\"1\":7}", "{\"1\":[{}]}"] {
        assert_eq!(wait(broken, None), None, "{broken}");
    }
}

proptest! {
    /// IN-5, H54: whatever is signed is kept, whatever is not is refused, and reading never panics.
    #[test]
    fn no_body_panics(body in proptest::collection::vec(any::<u8>(), 0..200), cut in 0..BATCH.len()) {
        let source = source(json!({}));
        for body in [body.as_slice(), &BATCH[..cut]] {
            let request = signed(body);
            for item in items(&*source, body) {
                let input = FetchInput { request: &request, pointer: &item.pointer, source_ref: &item.source_ref };
                let _ = source.fetch(&input, &[], NOW);
                let _ = source.read(&request, &item.pointer, Some(&json!({"field_data": 7})));
            }
            prop_assert!(refused(&*source, &post(body, Some("sha256=00"))).is_some());
        }
    }

    /// H64: no answer of the Graph API panics, and none but the lead itself is a success.
    #[test]
    fn no_answer_is_taken_for_a_lead(status in 100_u16..1000, body in ".*", code in any::<i64>()) {
        prop_assert!(fetch(|_| text(status, &body)).end.is_err());
        let error = json!({"error": {"code": code, "message": body}});
        prop_assert!(fetch(|_| answer(status, &error)).end.is_err());
    }
}
