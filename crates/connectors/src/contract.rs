//! The suite every connector passes, and what its tests are written with.
//!
//! A connector's own tests show what it does; this shows what all of them must do alike: one key and one body for every attempt of a
//! step, no secret in `Debug`, an answer for whatever the other side sends.

use crate::connector::{
    Destination, DestinationKind, Next, Received, Sample, Source, SourceKind, StepInput,
};
use emanet_core::call::{Answer, BodyState, Call, Exchange};
use emanet_core::classify::{Class, Effect, Failure, Scope};
use emanet_core::event::{Fate, Inbound};
use emanet_core::field::{Field, Settings};
use emanet_core::lead::{Email, Lead, Phone, PhoneKind};
use emanet_core::mapping::Mapping;
use emanet_core::secret::Secret;
use emanet_core::step::Delivered;
use jiff::Timestamp;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::collections::BTreeMap;

pub(crate) const NOW: Timestamp = Timestamp::UNIX_EPOCH;
/// No connector needs more calls for one step.
const CALLS_MAX: usize = 8;
/// What every secret of a connector under test is; it must be seen nowhere.
pub(crate) const SECRET: &str = "s3cret-of-the-test";

/// Settings of a kind: these values, and [`SECRET`] for every secret field.
pub(crate) fn settings(fields: &[Field], values: serde_json::Value) -> Settings {
    let secrets = fields.iter().filter(|f| f.secret);
    Settings {
        values: values.as_object().cloned().expect("an object"),
        secrets: secrets
            .map(|f| (f.key.to_owned(), Secret::new(SECRET)))
            .collect(),
    }
}

/// The settings that a guide's TOML example shows: what the loader of the configuration takes for itself is taken out, and secrets
/// are filled in. So the examples people copy are known to work.
pub(crate) fn documented(docs: &str, list: &str, fields: &[Field]) -> Settings {
    let toml = docs
        .split("```toml")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let document: serde_json::Value = toml::from_str(toml.expect("an example")).expect("TOML");
    let (_, values) = document[list]
        .as_object()
        .and_then(|named| named.iter().next())
        .expect("something with a name");
    let mut values = values.clone();
    let table = values.as_object_mut().expect("a table");
    for key in ["kind", "limits"]
        .into_iter()
        .chain(fields.iter().filter(|f| f.secret).map(|f| f.key))
    {
        table.remove(key);
    }
    settings(fields, values)
}

/// A whole answer with a JSON body.
pub(crate) fn json(status: u16, body: &serde_json::Value) -> Answer {
    answer(status, "application/json", body.to_string().as_bytes())
}

/// A whole answer.
pub(crate) fn answer(status: u16, content_type: &str, body: &[u8]) -> Answer {
    Answer {
        status,
        headers: vec![("content-type".into(), content_type.into())],
        body: body.to_vec(),
        body_state: BodyState::Whole,
        reused_connection: false,
    }
}

/// What a step is told, owned.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) object: &'static str,
    pub(crate) external_id: String,
    pub(crate) key: String,
    pub(crate) lead: Lead,
    pub(crate) fields: BTreeMap<String, String>,
    pub(crate) missing: Vec<String>,
    pub(crate) links: BTreeMap<String, String>,
    pub(crate) maybe_applied: bool,
}

impl Given {
    /// A lead with these rendered fields.
    pub(crate) fn lead(fields: &[(&str, &str)]) -> Self {
        Self {
            object: "lead",
            external_id: "src_1:L-1".into(),
            key: "src_1:L-1:crm".into(),
            lead: ayse(),
            fields: fields
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            missing: Vec::new(),
            links: BTreeMap::new(),
            maybe_applied: false,
        }
    }

    pub(crate) fn input(&self) -> StepInput<'_> {
        StepInput {
            object: self.object,
            external_id: &self.external_id,
            key: &self.key,
            lead: &self.lead,
            fields: &self.fields,
            missing: &self.missing,
            links: &self.links,
            maybe_applied: self.maybe_applied,
        }
    }
}

fn ayse() -> Lead {
    Lead {
        full_name: Some("Ayşe Yılmaz".into()),
        phone: Some(Phone {
            raw: "0532 123 45 67".into(),
            e164: Some("+905321234567".into()),
            kind: PhoneKind::Mobile,
            valid: true,
            extension: None,
        }),
        email: Some(Email {
            raw: "ayse@example.com".into(),
            address: Some("ayse@example.com".into()),
            suggestion: None,
        }),
        ..Lead::default()
    }
}

/// One run of a step: the calls made, and how it ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) calls: Vec<Call>,
    pub(crate) end: Result<Delivered, Failure>,
}

impl Ran {
    /// Names of the calls.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.calls.iter().map(|c| c.name.as_str()).collect()
    }

    /// How it was delivered, and the id.
    pub(crate) fn delivered(&self) -> (&str, &str) {
        match &self.end {
            Ok(delivered) => (&delivered.how, delivered.id.as_deref().unwrap_or_default()),
            Err(failure) => panic!("not delivered: {failure:?}"),
        }
    }

    pub(crate) fn failure(&self) -> &Failure {
        match &self.end {
            Ok(delivered) => panic!("delivered: {delivered:?}"),
            Err(failure) => failure,
        }
    }
}

/// Runs a step against `respond`. Asks for every call twice: the same input must give the same answer.
pub(crate) fn run(
    destination: &dyn Destination,
    given: &Given,
    mut respond: impl FnMut(&Call) -> Answer,
) -> Ran {
    drive(
        |run| destination.next(&given.input(), run, NOW),
        &mut respond,
    )
}

/// Drives whatever answers with the next call.
pub(crate) fn drive(
    next: impl Fn(&[Exchange]) -> Next,
    respond: &mut dyn FnMut(&Call) -> Answer,
) -> Ran {
    let mut exchanges = Vec::new();
    let end = loop {
        assert!(
            exchanges.len() < CALLS_MAX,
            "it goes on for ever: {exchanges:?}"
        );
        let answer = next(&exchanges);
        assert_eq!(answer, next(&exchanges), "next is not pure");
        match answer {
            Next::Done(delivered) => break Ok(delivered),
            Next::Fail(failure) => break Err(failure),
            Next::Call(call) => {
                let is_new = exchanges
                    .iter()
                    .all(|e: &Exchange| e.call.name != call.name);
                assert!(
                    is_new,
                    "a call's name is not unique in its step: {}",
                    call.name
                );
                let answer = respond(&call);
                exchanges.push(Exchange { call, answer });
            }
        }
    };
    let calls = exchanges.into_iter().map(|e| e.call).collect();
    Ran { calls, end }
}

/// What every kind of destination must do, shown with these settings and leads.
pub(crate) fn destination_keeps_the_contract(
    kind: &DestinationKind,
    values: &serde_json::Value,
    given: &[Given],
) {
    let destination = (kind.build)(&settings(kind.fields, values.clone())).expect("right settings");
    kind_is_described(kind.kind, kind.title, kind.docs, kind.fields);
    (kind.build)(&documented(kind.docs, "destinations", kind.fields))
        .expect("the guide's example is right");
    shows_no_secret(&format!("{destination:?}"));
    let unknown = destination.next(&unknown().input(), &[], NOW);
    assert!(
        matches!(unknown, Next::Fail(_)),
        "an unknown object: {unknown:?}"
    );
    for object in destination.objects() {
        Mapping::compile(&destination.default_fields(&object), None)
            .expect("default fields compile");
    }
    for given in given {
        survives_any_answer(&*destination, given);
    }
    assert!(
        destination.probe().is_none_or(|call| !call.mutates),
        "a probe changes nothing"
    );
}

/// What every kind of source must do, shown with these settings.
pub(crate) fn source_keeps_the_contract(kind: &SourceKind, values: &serde_json::Value) {
    let source = (kind.build)(&settings(kind.fields, values.clone())).expect("right settings");
    kind_is_described(kind.kind, kind.title, kind.docs, kind.fields);
    (kind.build)(&documented(kind.docs, "sources", kind.fields))
        .expect("the guide's example is right");
    shows_no_secret(&format!("{source:?}"));
    takes_what_it_composes(&*source);
    refuses_what_is_tampered_with(&*source);
}

/// IN-3, IN-6: what `emanet send` posts is one event under the sample's own id, every time.
fn takes_what_it_composes(source: &dyn Source) {
    let request = source.compose(&sample());
    let Received::Events { items, .. } = source.receive(&request, NOW) else {
        panic!("the source refuses what it composed");
    };
    let [item] = items.as_slice() else {
        panic!("one sample is not one event: {items:?}");
    };
    assert_eq!(
        (item.source_ref.as_str(), &item.fate),
        ("4711", &Fate::Process)
    );
    assert_eq!(
        source.receive(&request, NOW),
        source.receive(&source.compose(&sample()), NOW)
    );
}

/// IN-4, H17: one byte more in the body, or no headers, and it is not authentic.
fn refuses_what_is_tampered_with(source: &dyn Source) {
    let mut longer = source.compose(&sample());
    longer.body.push(b' ');
    let mut bare = source.compose(&sample());
    bare.headers.clear();
    for request in [longer, bare] {
        let received = source.receive(&request, NOW);
        assert!(
            matches!(received, Received::Refused { status: 401, .. }),
            "{received:?}"
        );
    }
}

fn sample() -> Sample {
    Sample {
        source_ref: "4711".into(),
        fields: vec![("full_name".into(), "Çağrı Öz".into())],
        created_at: NOW,
    }
}

/// A vendor's answer as recorded, and what it means.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedAnswer {
    case: String,
    status: u16,
    #[serde(default = "json_type")]
    content_type: String,
    body: serde_json::Value,
    class: Class,
    effect: Effect,
    scope: Option<Scope>,
    code: Option<String>,
    field: Option<String>,
}

fn json_type() -> String {
    "application/json".into()
}

/// ERR-6: each recorded answer has its class and effect. `fail` gives the failure that an answer makes of a step.
pub(crate) fn answers_mean_what_is_recorded(
    recorded: &str,
    mut fail: impl FnMut(Answer) -> Failure,
) {
    let recorded: Vec<RecordedAnswer> = serde_json::from_str(recorded).expect("recorded answers");
    for expected in recorded {
        let body = match &expected.body {
            serde_json::Value::String(text) => text.clone(),
            json => json.to_string(),
        };
        let failure = fail(answer(
            expected.status,
            &expected.content_type,
            body.as_bytes(),
        ));
        let case = &expected.case;
        assert_eq!(
            (failure.class, failure.effect),
            (expected.class, expected.effect),
            "{case}"
        );
        assert_eq!(
            failure.scope,
            expected.scope.unwrap_or(failure.scope),
            "{case}"
        );
        assert_eq!(
            (failure.vendor_code, failure.field),
            (expected.code, expected.field),
            "{case}"
        );
        assert!(failure.hint.len() > 30, "{case}: a hint says what to do");
    }
}

/// A request as recorded, and the events in it.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedRequest {
    case: String,
    content_type: String,
    body: String,
    events: Vec<RecordedEvent>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedEvent {
    pointer: String,
    source_ref: Option<String>,
    ignored: Option<String>,
    unreadable: Option<String>,
    #[serde(default)]
    fields: Vec<(String, Vec<String>)>,
    #[serde(default)]
    problems: Vec<String>,
}

/// Each recorded request has its events, and each of these reads as recorded.
pub(crate) fn requests_read_as_recorded(source: &dyn Source, recorded: &str) {
    let recorded: Vec<RecordedRequest> = serde_json::from_str(recorded).expect("recorded requests");
    for expected in recorded {
        let case = &expected.case;
        let request = Inbound {
            method: "POST".into(),
            query: String::new(),
            headers: vec![("content-type".into(), expected.content_type)],
            body: expected.body.into_bytes(),
        };
        let Received::Events { items, .. } = source.receive(&request, NOW) else {
            panic!("{case}: no events");
        };
        assert_eq!(items.len(), expected.events.len(), "{case}");
        for (item, event) in items.iter().zip(expected.events) {
            assert_eq!(item.pointer, event.pointer, "{case}");
            assert_eq!(
                &item.source_ref,
                event.source_ref.as_ref().unwrap_or(&item.source_ref),
                "{case}"
            );
            let fate = match (event.ignored, event.unreadable) {
                (Some(reason), _) => Fate::Ignore(reason),
                (None, Some(reason)) => Fate::Unreadable(reason),
                (None, None) => Fate::Process,
            };
            assert_eq!(item.fate, fate, "{case}");
            if fate == Fate::Process {
                let lead = source.read(&request, &item.pointer, None).expect(case);
                let problems: Vec<_> = lead.problems.into_iter().map(|p| p.code).collect();
                assert_eq!(
                    (lead.fields, problems),
                    (event.fields, event.problems),
                    "{case}"
                );
            }
        }
    }
}

/// Everything people read about a kind is there.
pub(crate) fn kind_is_described(kind: &str, title: &str, docs: &str, fields: &[Field]) {
    assert!(
        kind.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'),
        "{kind}"
    );
    assert!(!title.is_empty() && docs.len() > 200, "{kind}");
    for field in fields {
        let texts = [field.key, field.label_en, field.label_tr, field.help];
        assert!(
            texts.iter().all(|t| !t.trim().is_empty()),
            "{kind}.{}",
            field.key
        );
    }
}

/// No secret is in a text that may be logged.
pub(crate) fn shows_no_secret(text: &str) {
    assert!(!text.contains(SECRET), "a secret is shown: {text}");
}

/// Whatever comes back: no panic, no endless run, no success without an id, and the same bytes for the same mutating call in every
/// run of the step (H2, F38, H64).
fn survives_any_answer(destination: &dyn Destination, given: &Given) {
    let mut runner = TestRunner::deterministic();
    let answers = proptest::collection::vec(any_answer(), CALLS_MAX);
    let fixed = std::cell::RefCell::new(BTreeMap::<String, (String, Vec<u8>)>::new());
    let result = runner.run(&answers, |answers| {
        let mut answers = answers.into_iter();
        let mut echo = |call: &Call| {
            shows_no_secret(&format!("{call:?}"));
            answers.next().expect("as many as calls").into_answer(given)
        };
        let ran = run(destination, given, &mut echo);
        for call in ran.calls.iter().filter(|c| c.mutates && c.name == "create") {
            let bytes = (call.url.clone(), call.body.clone());
            let first = fixed
                .borrow_mut()
                .entry(call.name.clone())
                .or_insert_with(|| bytes.clone())
                .clone();
            prop_assert_eq!(first, bytes, "a mutating call changed between runs");
        }
        if let Ok(delivered) = &ran.end {
            prop_assert!(
                delivered
                    .id
                    .as_ref()
                    .is_some_and(|id| !id.trim().is_empty())
            );
        }
        Ok(())
    });
    result.expect("the contract holds");
}

/// An answer as a vendor, a proxy or a broken line may give it.
#[derive(Clone, Debug)]
struct AnyAnswer {
    status: u16,
    content_type: &'static str,
    body: Vec<u8>,
    body_state: BodyState,
}

impl AnyAnswer {
    fn into_answer(self, given: &Given) -> Answer {
        // Some answers speak of this very lead.
        let body = String::from_utf8_lossy(&self.body).replace("EXTERNAL_ID", &given.external_id);
        Answer {
            body_state: self.body_state,
            ..answer(self.status, self.content_type, body.as_bytes())
        }
    }
}

fn any_answer() -> impl Strategy<Value = AnyAnswer> {
    let body = prop_oneof![
        any::<Vec<u8>>(),
        Just(b"{\"id\":\"4".to_vec()),
        Just(b"\xff\xfe{\0".to_vec()),
        Just(b"<!doctype html><title>Login</title>".to_vec()),
        Just(Vec::new()),
        Just(br#"{"leads":[],"tasks":[]}"#.to_vec()),
        Just(br#"{"leads":[{"id":"7","external_id":"EXTERNAL_ID"}],"tasks":[{"id":8,"external_id":"EXTERNAL_ID"}]}"#.to_vec()),
        Just(br#"{"leads":[{"id":"9","external_id":"other"}]}"#.to_vec()),
        Just(br#"{"id":"7"}"#.to_vec()),
        Just(br#"{"id":""}"#.to_vec()),
        Just(br#"{"id":null,"error":{"code":"deleted_field","field":"phone"}}"#.to_vec()),
    ];
    let status = prop_oneof![
        3 => Just(200_u16),
        1 => prop_oneof![Just(201_u16), Just(204), Just(301), Just(400), Just(401), Just(409), Just(429), Just(500), Just(503)],
        1 => 100_u16..1000,
    ];
    let content_type = prop_oneof![Just("application/json"), Just("text/html"), Just("")];
    let body_state = prop_oneof![4 => Just(BodyState::Whole), 1 => Just(BodyState::Lost), 1 => Just(BodyState::Capped)];
    (status, content_type, body, body_state).prop_map(|(status, content_type, body, body_state)| {
        AnyAnswer {
            status,
            content_type,
            body,
            body_state,
        }
    })
}

fn unknown() -> Given {
    Given {
        object: "no_such_object",
        ..Given::lead(&[])
    }
}
