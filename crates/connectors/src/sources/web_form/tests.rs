use super::*;
use crate::contract;
use emanet_core::field::Settings;
use emanet_core::lead::Problem;
use emanet_core::secret::Secret;
use proptest::prelude::*;
use serde_json::json;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn form(values: serde_json::Value, secrets: &[(&str, &str)]) -> Box<dyn Source> {
    let secrets = secrets
        .iter()
        .map(|(k, v)| ((*k).to_owned(), Secret::new(*v)));
    let settings = Settings {
        values: values.as_object().cloned().expect("an object"),
        secrets: secrets.collect(),
    };
    (KIND.build)(&settings).expect("right settings")
}

fn plain() -> Box<dyn Source> {
    form(json!({}), &[])
}

fn post(content_type: &str, body: &[u8]) -> Inbound {
    Inbound {
        method: "POST".into(),
        query: String::new(),
        headers: vec![header("content-type", content_type)],
        body: body.to_vec(),
    }
}

const URLENCODED: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

fn with(mut request: Inbound, name: &str, value: &str) -> Inbound {
    request.headers.push(header(name, value));
    request
}

fn items(source: &dyn Source, request: &Inbound, now: Timestamp) -> Vec<Item> {
    match source.receive(request, now) {
        Received::Events { items, .. } => items,
        other => panic!("no events: {other:?}"),
    }
}

fn refs(source: &dyn Source, request: &Inbound) -> Vec<String> {
    let items = items(source, request, NOW);
    items.into_iter().map(|item| item.source_ref).collect()
}

fn fates(request: &Inbound) -> Vec<Fate> {
    items(&*plain(), request, NOW)
        .into_iter()
        .map(|i| i.fate)
        .collect()
}

/// Fields with their values, and codes of problems.
type Expected<'a> = (&'a [(&'a str, &'a [&'a str])], &'a [&'a str]);

/// What each event of a request reads as: fields and problem codes.
fn check(request: &Inbound, expected: &[Expected<'_>]) {
    let source = plain();
    let read: Vec<_> = items(&*source, request, NOW)
        .iter()
        .map(|item| source.read(request, &item.pointer, None).expect("readable"))
        .map(|lead| {
            let codes: Vec<_> = lead.problems.iter().map(|p| p.code.clone()).collect();
            (lead.fields, codes)
        })
        .collect();
    let expected: Vec<_> = expected
        .iter()
        .map(|(fields, codes)| {
            let texts =
                |values: &[&str]| values.iter().map(|v| (*v).to_owned()).collect::<Vec<_>>();
            let fields: Vec<_> = fields
                .iter()
                .map(|(n, v)| ((*n).to_owned(), texts(v)))
                .collect();
            (fields, texts(codes))
        })
        .collect();
    assert_eq!(read, expected);
}

#[test]
fn it_keeps_the_contract() {
    contract::source_keeps_the_contract(&KIND, &json!({}));
}

#[test]
fn recorded_requests_read_as_recorded() {
    contract::requests_read_as_recorded(&*plain(), include_str!("fixtures/requests.json"));
}

#[test]
fn urlencoded_bodies_are_read() {
    check(
        &post(
            URLENCODED,
            "ad=Ay%C5%9Fe+Y%C4%B1lmaz&ilgi=2%2B1&ilgi=3%2B1&bos=&yuzde=%zz%4".as_bytes(),
        ),
        &[(
            &[
                ("ad", &["Ayşe Yılmaz"]),
                ("ilgi", &["2+1", "3+1"]),
                ("bos", &[""]),
                ("yuzde", &["%zz%4"]),
            ],
            &[],
        )],
    );
}

/// Old Turkish pages: bytes of windows-1254, with and without saying so.
#[test]
fn the_turkish_code_page_is_understood() {
    check(
        &post(URLENCODED, b"ad=%DEule+%D6z&%FCr%FCn=x"),
        &[(
            &[("ad", &["Şule Öz"]), ("ürün", &["x"])],
            &["charset_fallback"],
        )],
    );
    check(
        &post(URLENCODED, b"_charset_=windows-1254&ad=%DEule"),
        &[(&[("ad", &["Şule"])], &[])],
    );
    check(
        &post(URLENCODED, b"_charset_=iso-8859-2&ad=%B1"),
        &[(&[("ad", &["ą"])], &[])],
    );
    check(
        &post(
            "application/x-www-form-urlencoded; charset=\"ISO-8859-9\"",
            b"ad=%DEule",
        ),
        &[(&[("ad", &["Şule"])], &[])],
    );
    check(
        &post(URLENCODED, b"_charset_=UTF-8&ad=%DEule"),
        &[(&[("ad", &["Şule"])], &["charset_fallback"])],
    );
    check(
        &post(JSON, b"{\"ad\":\"\xDEule\"}"),
        &[(&[("ad", &["Şule"])], &["charset_fallback"])],
    );
}

#[test]
fn a_byte_order_mark_is_skipped() {
    check(
        &post(JSON, b"\xef\xbb\xbf{\"ad\":\"Ece\"}"),
        &[(&[("ad", &["Ece"])], &[])],
    );
    check(
        &post(URLENCODED, b"\xef\xbb\xbfad=Ece"),
        &[(&[("ad", &["Ece"])], &[])],
    );
    check(
        &post(JSON, b"\xff\xfe{\0\"\0a\0\"\0:\0\"\0\x5e\x01\"\0}\0"),
        &[(&[("a", &["Ş"])], &[])],
    );
}

fn multipart(parts: &[(&str, &[u8])]) -> Inbound {
    let mut body = Vec::new();
    for (disposition, value) in parts {
        body.extend_from_slice(
            format!("--XX\r\nContent-Disposition: form-data; {disposition}\r\n\r\n").as_bytes(),
        );
        body.extend_from_slice(value);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--XX--\r\n");
    post("multipart/form-data; boundary=XX", &body)
}

#[test]
fn multipart_bodies_are_read_and_files_leave_name_and_size() {
    check(
        &multipart(&[
            ("name=\"ad\"", "Ayşe".as_bytes()),
            ("name=\"a%22b\"", b"x"),
            (
                "name=\"plan\"; filename=\"kat plan\u{131}.pdf\"",
                &[0_u8; 300],
            ),
            ("name=\"foto\"; filename=\"\"", b""),
        ]),
        &[(
            &[
                ("ad", &["Ayşe"]),
                ("a\"b", &["x"]),
                ("plan", &["kat planı.pdf (300 bytes)"]),
                ("foto", &[""]),
            ],
            &[],
        )],
    );
    check(
        &multipart(&[("name=\"ad\"", b"\xDEule")]),
        &[(&[("ad", &["Şule"])], &["charset_fallback"])],
    );
    let cut = post(
        "multipart/form-data; boundary=XX",
        b"--XX\r\nContent-Disposition: form-data; name=\"ad\"\r\n\r\nAy",
    );
    assert_eq!(fates(&cut), [Fate::Unreadable("not_multipart".into())]);
    assert_eq!(
        fates(&post("multipart/form-data", b"--XX--")),
        [Fate::Unreadable("no_boundary".into())]
    );
}

/// Numbers as written, nested names, doubles kept and flagged (never the last one in silence).
#[test]
fn json_bodies_are_read() {
    check(
        &post(JSON, br#"{"phone":"1","phone":"2","id":90071992547409931234,"k":{"il":"Van","x":null},"s":["a",true],"l":[{"b":1.50}]}"#),
        &[(
            &[
                ("phone", &["1", "2"]),
                ("id", &["90071992547409931234"]),
                ("k.il", &["Van"]),
                ("k.x", &[]),
                ("s", &["a", "true"]),
                ("l.0.b", &["1.50"]),
            ],
            &["duplicate_key"],
        )],
    );
}

/// H25: the escaped form and the true NUL are told apart by decoding, once.
#[test]
fn an_escaped_backslash_is_no_nul() {
    check(
        &post(JSON, br#"{"a":"\\u0000","b":"\u0000"}"#),
        &[(&[("a", &["\\u0000"]), ("b", &["\0"])], &[])],
    );
}

/// IN-5: a list is as many events, and one bad element stops none of the others (H9).
#[test]
fn a_list_is_several_leads() {
    let request = post(JSON, br#"[{"ad":"A"},7,{"ad":"B"},{}]"#);
    let items = items(&*plain(), &request, NOW);
    let seen: Vec<_> = items
        .iter()
        .map(|i| (i.pointer.as_str(), i.fate.clone()))
        .collect();
    let unreadable = |reason: &str| Fate::Unreadable(reason.into());
    assert_eq!(
        seen,
        [
            ("/0", Fate::Process),
            ("/1", unreadable("not_an_object")),
            ("/2", Fate::Process),
            ("/3", unreadable("no_fields"))
        ]
    );
    let lead = plain().read(&request, "/2", None).expect("readable");
    assert_eq!(lead.fields, [("ad".to_owned(), vec!["B".to_owned()])]);
    let unique: std::collections::BTreeSet<_> = items.iter().map(|i| &i.source_ref).collect();
    assert_eq!(unique.len(), 4);
}

#[test]
fn a_wrong_or_missing_content_type_is_seen_through() {
    let field: &[Expected<'_>] = &[(&[("ad", &["Ece"])], &[])];
    for content_type in ["", "text/plain", "application/octet-stream", URLENCODED] {
        check(&post(content_type, br#" {"ad":"Ece"}"#), field);
        check(&post(content_type, b"ad=Ece"), field);
    }
}

/// IN-5: what cannot be parsed is kept, under a reason, and always as the same event.
#[test]
fn what_cannot_be_read_is_an_event_all_the_same() {
    for (content_type, body, reason) in [
        ("text/plain", r#"{"mesaj":"iki "tırnak" ve"}"#, "not_json"),
        (JSON, "{\"a\":1", "not_json"),
        (JSON, "7", "not_an_object"),
        (JSON, "{}", "no_fields"),
        (JSON, "[]", "no_fields"),
        (JSON, &"[".repeat(100), "too_deep"),
        ("text/plain", "Merhaba, beni arayın", "unknown_format"),
        ("application/xml", "<a b=\"c\"/>", "unknown_format"),
        (URLENCODED, "&", "no_fields"),
    ] {
        let request = post(content_type, body.as_bytes());
        assert_eq!(fates(&request), [Fate::Unreadable(reason.into())], "{body}");
        assert_eq!(refs(&*plain(), &request), refs(&*plain(), &request));
        let read = plain().read(&request, "", None).map_err(|u| u.reason);
        assert_eq!(read, Err(reason.to_owned()), "{body}");
    }
    assert_eq!(fates(&post("", b" ")), [Fate::Ignore("empty_body".into())]);
}

/// IN-6: the id of the submission where there is one, in this order of trust.
#[test]
fn a_submission_id_is_the_source_ref() {
    let source = plain();
    let of = |request: &Inbound| refs(&*source, request);
    assert_eq!(
        of(&post(URLENCODED, b"emanet_id=abc-1&source_ref=z&ad=A")),
        ["abc-1"]
    );
    assert_eq!(
        of(&with(
            post(JSON, br#"{"source_ref":42,"ad":"A"}"#),
            "idempotency-key",
            "k"
        )),
        ["42"]
    );
    assert_eq!(
        of(&with(post(JSON, br#"{"ad":"A"}"#), "idempotency-key", "k")),
        ["k"]
    );
    assert_eq!(
        of(&with(
            post(JSON, br#"[{"ad":"A"},{"ad":"B"}]"#),
            "idempotency-key",
            "k"
        )),
        ["k/0", "k/1"]
    );
    let long = format!("emanet_id={}&ad=A", "x".repeat(4_000));
    assert_eq!(of(&post(URLENCODED, long.as_bytes()))[0].len(), 64);
}

/// Two different leads under one id in one request are both kept; the same lead twice is one.
#[test]
fn one_id_for_two_leads_drops_none() {
    let got = refs(&*plain(), &post(JSON, br#"[{"source_ref":"1","ad":"A"},{"source_ref":"1","ad":"B"},{"source_ref":"1","ad":"A"}]"#));
    assert_eq!((got[0].as_str(), got[2].as_str()), ("1", "1"));
    assert_eq!(got[1].len(), 64);
}

/// IN-6: without an id, the same content in the same window is one event, whatever the order of fields and the tokens with it.
#[test]
fn the_same_content_within_the_window_is_one_event() {
    let source = form(
        json!({"dedup_window_seconds": 60, "volatile_fields": ["sayac"]}),
        &[],
    );
    let first = post(URLENCODED, b"ad=A&tel=1&_token=x&_wpcf7_unit_tag=1&sayac=3");
    let again = post(URLENCODED, b"tel=1&ad=A&_token=y&_wpcf7_unit_tag=2&sayac=9");
    let other = post(URLENCODED, b"ad=A&tel=2");
    let at = |request: &Inbound, second: i64| {
        items(
            &*source,
            request,
            Timestamp::from_second(second).expect("in range"),
        )[0]
        .source_ref
        .clone()
    };
    let of_minute: Vec<_> = (0..120).map(|s| at(&first, s)).collect();
    let changes: Vec<_> = of_minute.windows(2).filter(|w| w[0] != w[1]).collect();
    assert_eq!(
        changes.len(),
        2,
        "120 seconds cross two edges of a 60 s window"
    );
    assert_eq!(at(&first, 30), at(&again, 30));
    assert_ne!(at(&first, 30), at(&other, 30));
}

#[test]
fn fields_and_values_do_not_run_into_each_other() {
    let of = |body: &[u8]| refs(&*plain(), &post(URLENCODED, body));
    assert_ne!(of(b"a=b&c=d"), of(b"a=b&a=c&a=d"));
    assert_ne!(of(b"ab=c"), of(b"a=bc"));
}

#[test]
fn a_filled_trap_is_kept_as_ignored() {
    assert_eq!(
        fates(&post(URLENCODED, b"ad=A&emanet_website=http%3A%2F%2Fx")),
        [Fate::Ignore("honeypot".into())]
    );
    assert_eq!(
        fates(&post(URLENCODED, b"ad=A&emanet_website=+")),
        [Fate::Process]
    );
}

/// What is not the person's stays out of the lead; consent is never guessed.
#[test]
fn machinery_and_consent_are_kept_apart() {
    let source = form(json!({"consent_fields": ["kvkk", "iys", "arama"]}), &[]);
    let request = post(
        URLENCODED,
        b"emanet_id=1&_wpcf7=5&g-recaptcha-response=t&emanet_website=&ad=A&kvkk=on&iys=hay%C4%B1r",
    );
    let lead = source.read(&request, "", None).expect("readable");
    assert_eq!(lead.fields, [("ad".to_owned(), vec!["A".to_owned()])]);
    let consent = [("kvkk", true), ("iys", false), ("arama", false)];
    assert_eq!(lead.consent, consent.map(|(k, v)| (k.to_owned(), v)));
    assert!(lead.problems.is_empty());
}

fn refused(source: &dyn Source, request: &Inbound) -> Option<&'static str> {
    match source.receive(request, NOW) {
        Received::Refused {
            status: 401,
            reason,
        } => Some(reason),
        Received::Events { .. } => None,
        other => panic!("{other:?}"),
    }
}

/// IN-4, H17, H54.
#[test]
fn a_shared_secret_is_asked_for() {
    let source = form(json!({}), &[("secret", "open sesame")]);
    let request = || post(URLENCODED, b"ad=A");
    let given = |name: &str, value: &str| refused(&*source, &with(request(), name, value));
    assert_eq!(refused(&*source, &request()), Some("no_secret"));
    assert_eq!(given("x-emanet-secret", "open sesame"), None);
    assert_eq!(given("authorization", "Bearer open sesame"), None);
    for wrong in ["", "open", "open sesame ", "Bearer "] {
        assert_eq!(given("x-emanet-secret", wrong), Some("wrong_secret"));
    }
    let twice = with(
        with(request(), "x-emanet-secret", "open sesame"),
        "x-emanet-secret",
        "guess",
    );
    assert_eq!(refused(&*source, &twice), Some("no_secret"));
}

/// H62: signed over the raw form bytes: taken; over a JSON rendering of the same content: refused.
#[test]
fn a_signature_is_over_the_raw_bytes() {
    let secret = Secret::new("key");
    let source = form(json!({}), &[("hmac_secret", "key")]);
    let body = b"full_name=Ali+Veli&lead_id=42";
    let signed = |over: &[u8]| {
        with(
            post(URLENCODED, body),
            "x-emanet-signature",
            &signature::sign(&secret, over),
        )
    };
    assert_eq!(refused(&*source, &signed(body)), None);
    assert_eq!(
        refused(
            &*source,
            &signed(br#"{"full_name":"Ali Veli","lead_id":"42"}"#)
        ),
        Some("bad_signature")
    );
    assert_eq!(
        refused(&*source, &post(URLENCODED, body)),
        Some("no_signature")
    );
    let right = signature::sign(&secret, body);
    let other = with(signed(body), "x-emanet-signature", &right[..20]);
    assert_eq!(refused(&*source, &other), Some("bad_signature"));
}

#[test]
fn an_empty_secret_is_refused_at_the_door() {
    let settings = Settings {
        secrets: [("secret".to_owned(), Secret::new(""))].into(),
        ..Settings::default()
    };
    let wrong = (KIND.build)(&settings).expect_err("an empty secret");
    assert_eq!(wrong[0].key, "secret");
}

#[test]
fn browsers_see_a_page_and_programs_json() {
    let browser = |language: &str| {
        let accept = "text/html,application/xhtml+xml,*/*;q=0.8";
        with(
            with(post(URLENCODED, b"ad=A"), "accept", accept),
            "accept-language",
            language,
        )
    };
    let reply = |source: &dyn Source, request: &Inbound| match source.receive(request, NOW) {
        Received::Events { reply, .. } => reply,
        other => panic!("{other:?}"),
    };
    let there = form(
        json!({"thank_you_url": "https://example.com/tesekkurler"}),
        &[],
    );
    assert_eq!(
        reply(&*there, &browser("tr")),
        Reply::SeeOther("https://example.com/tesekkurler".into())
    );
    for (language, word) in [
        ("tr-TR,tr;q=0.9,en;q=0.8", "Teşekkür"),
        ("en-GB,tr;q=0.5", "Thank you"),
        ("", "Thank you"),
    ] {
        assert!(
            matches!(reply(&*plain(), &browser(language)), Reply::Html(page) if page.contains(word)),
            "{language}"
        );
    }
    assert_eq!(reply(&*there, &post(URLENCODED, b"ad=A")), Reply::Json);
    assert_eq!(
        reply(&*there, &with(post(JSON, b"{}"), "accept", "text/html")),
        Reply::Json
    );
    let program = with(
        post(URLENCODED, b"ad=A"),
        "accept",
        "application/json, text/html",
    );
    assert_eq!(reply(&*there, &program), Reply::Json);
}

#[test]
fn a_get_explains_or_gives_the_script_and_stores_nothing() {
    let source = form(json!({}), &[("secret", "s3cret")]);
    let get = |query: &str| {
        let request = Inbound {
            method: "GET".into(),
            query: query.into(),
            headers: vec![],
            body: vec![],
        };
        source.receive(&request, NOW)
    };
    assert!(
        matches!(get("script"), Received::Handshake(Reply::Script(script)) if script.contains(ID_FIELD))
    );
    assert!(matches!(
        get("script=1&v=2"),
        Received::Handshake(Reply::Script(_))
    ));
    assert!(matches!(get(""), Received::Handshake(Reply::Text(text)) if !text.contains("s3cret")));
}

/// What `emanet send` posts is taken, and reads back as it was.
#[test]
fn a_composed_request_is_taken() {
    let source = form(json!({}), &[("secret", "a"), ("hmac_secret", "b")]);
    let sample = Sample {
        source_ref: "s-1".into(),
        fields: vec![("full_name".into(), "Çağrı & Öz".into())],
        created_at: NOW,
    };
    let request = source.compose(&sample);
    assert_eq!(refs(&*source, &request), ["s-1"]);
    let lead = source.read(&request, "", None).expect("readable");
    assert_eq!(
        lead.fields,
        [("full_name".to_owned(), vec!["Çağrı & Öz".to_owned()])]
    );
    assert_eq!(lead.problems, Vec::<Problem>::new());
}

proptest! {
    /// No body panics, each is an event, and reading agrees with receiving.
    #[test]
    fn any_body_is_an_event(
        body in proptest::collection::vec(any::<u8>(), 0..300),
        kind in prop_oneof![Just(URLENCODED), Just(JSON), Just(""), Just("multipart/form-data; boundary=XX")],
    ) {
        let request = post(kind, &body);
        let source = plain();
        let items = items(&*source, &request, NOW);
        prop_assert!(!items.is_empty());
        for item in &items {
            let read = source.read(&request, &item.pointer, None);
            prop_assert_eq!(matches!(item.fate, Fate::Unreadable(_)), read.is_err() && item.fate == fate_of(&read));
        }
    }

    /// Whatever a browser encodes comes back.
    #[test]
    fn urlencoded_values_come_back(name in "[a-z]{1,8}", value in ".*") {
        let body = url::form_urlencoded::Serializer::new(String::new()).append_pair(&name, &value).finish();
        let lead = plain().read(&post(URLENCODED, body.as_bytes()), "", None).expect("readable");
        prop_assert_eq!(lead.fields, [(name, vec![value])]);
    }
}

fn fate_of(read: &Result<RawLead, Unreadable>) -> Fate {
    match read {
        Ok(_) => Fate::Process,
        Err(unreadable) => Fate::Unreadable(unreadable.reason.clone()),
    }
}

/// F28: whatever fits into a body is read in a time that grows with its length, not with its square: a body of 200,000 names
/// must not hold up everybody else's leads. Each is kept, as unreadable or as what it says.
#[test]
fn many_names_take_no_longer_than_long_values() {
    let each = |n: usize, one: &dyn Fn(usize) -> String| (0..n).map(one).collect::<Vec<_>>();
    let form = each(200_000, &|i| format!("f{i}=1")).join("&");
    let object = each(100_000, &|i| format!("\"f{i}\":1")).join(",");
    let doubled = each(100_000, &|_| "\"f\":1".into()).join(",");
    let empties = each(50_000, &|i| format!("\"o{i}\":{{\"a\":{{}},\"a\":{{}}}}")).join(",");
    let begun = std::time::Instant::now();
    let too_many = Fate::Unreadable("too_many_fields".into());
    assert_eq!(
        fates(&post(URLENCODED, form.as_bytes())),
        std::slice::from_ref(&too_many)
    );
    for (members, fate) in [
        (object, too_many),
        (doubled, Fate::Process),
        (empties, Fate::Unreadable("no_fields".into())),
    ] {
        assert_eq!(
            fates(&post(JSON, format!("{{{members}}}").as_bytes())),
            [fate]
        );
    }
    // A second or two without optimisation; the square of any of these takes minutes.
    assert!(begun.elapsed() < std::time::Duration::from_secs(20));
}
