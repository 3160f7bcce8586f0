//! The sandbox over the real store: what it does, what each fault does, and that the connector understands it.

use super::*;
use crate::transport::{HttpTransport, Options};
use emanet_connectors::connector::{Destination, Next, StepInput};
use emanet_connectors::destinations;
use emanet_core::call::{Exchange, HeaderValue, Method};
use emanet_core::classify::{Class, Effect, Failure};
use emanet_core::field::Settings;
use emanet_core::lead::Lead;
use emanet_core::step::Delivered;
use emanet_store::sqlite::SqliteStore;
use emanet_store::{NamedDestination, NewRevision};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Two sandboxes in a store of their own.
struct World {
    sandbox: Arc<Sandbox>,
    transport: SandboxTransport,
    crm: DestinationId,
    other: DestinationId,
    _directory: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(directory.path()).unwrap());
        let env = Env::seeded(7);
        let (crm, other) = (
            DestinationId::new(env.now(), env.bytes()),
            DestinationId::new(env.now(), env.bytes()),
        );
        store.apply(revision(&env, &[crm, other])).await.unwrap();
        let sandbox = Arc::new(Sandbox::new(store, env.clone()));
        let inner = Arc::new(HttpTransport::new(Options::default(), &env).unwrap());
        let transport = SandboxTransport {
            sandbox: Arc::clone(&sandbox),
            inner,
        };
        Self {
            sandbox,
            transport,
            crm,
            other,
            _directory: directory,
        }
    }

    fn set(&self, fault: Fault, rule: Rule) {
        self.sandbox
            .set_faults(self.crm, Faults::from([(fault, rule)]));
    }

    async fn send(&self, method: Method, path: &str, body: Value) -> Outcome {
        let url = format!("sandbox://{}{path}", self.crm);
        self.transport.send(&call(method, &url, &body)).await
    }

    /// Status and body of an answer.
    async fn ask(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        let answer = answer(self.send(method, path, body).await);
        (answer.status, answer.json().unwrap())
    }

    async fn create(&self, external_id: &str) -> Outcome {
        let body = json!({"external_id": external_id, "full_name": "Ayşe Yılmaz"});
        self.send(Method::Post, "/leads", body).await
    }

    async fn n_found(&self, external_id: &str) -> usize {
        let path = format!("/leads?external_id={external_id}");
        let (status, body) = self.ask(Method::Get, &path, json!(null)).await;
        assert_eq!(status, 200);
        body["leads"].as_array().unwrap().len()
    }
}

fn revision(env: &Env, destinations: &[DestinationId]) -> NewRevision {
    let workspace = WorkspaceId::new(env.now(), env.bytes());
    let named = destinations.iter().map(|id| NamedDestination {
        workspace,
        name: id.to_string(),
        id: *id,
    });
    NewRevision {
        based_on: 0,
        digest: String::new(),
        document: Vec::new(),
        by: "test".into(),
        at: env.now(),
        workspaces: BTreeMap::from([("default".into(), workspace)]),
        sources: Vec::new(),
        destinations: named.collect(),
    }
}

fn call(method: Method, url: &str, body: &Value) -> Call {
    Call {
        name: "call".into(),
        method,
        url: url.into(),
        headers: Vec::new(),
        body: body.to_string().into_bytes(),
        mutates: method != Method::Get,
    }
}

fn answer(outcome: Outcome) -> Answer {
    match outcome {
        Outcome::Answered(answer) => answer,
        other => panic!("not answered: {other:?}"),
    }
}

#[tokio::test]
async fn it_keeps_finds_and_changes_records() {
    let world = World::new().await;
    for path in ["leads", "tasks"] {
        let body = json!({"external_id": "src:1", "city": "İzmir"});
        let (status, made) = world.ask(Method::Post, &format!("/{path}"), body).await;
        assert_eq!(status, 201);
        let id = made["id"].as_str().unwrap().to_owned();
        let one = format!("/{path}/{id}");
        let changed = world
            .ask(Method::Patch, &one, json!({"city": "Muğla"}))
            .await;
        assert_eq!(changed, (200, json!({"id": id})));
        let by_external_id = format!("/{path}?external_id=src%3A1");
        let (_, found) = world.ask(Method::Get, &by_external_id, json!(null)).await;
        let (_, shown) = world.ask(Method::Get, &one, json!(null)).await;
        assert_eq!(found[path], json!([shown]));
        assert_eq!(shown["city"], "Muğla");
        assert_eq!(shown["external_id"], "src:1");
    }
    let calls = world.sandbox.calls(world.crm);
    assert_eq!(
        (calls.creates, calls.updates, calls.reads, calls.made),
        (2, 2, 4, 2)
    );
}

#[tokio::test]
async fn a_key_makes_one_record_and_none_makes_two() {
    let world = World::new().await;
    let url = format!("sandbox://{}/leads", world.crm);
    let mut keyed = call(Method::Post, &url, &json!({"external_id": "a"}));
    keyed
        .headers
        .push(("Idempotency-Key".into(), HeaderValue::Plain("k1".into())));
    let first = answer(world.transport.send(&keyed).await);
    let second = answer(world.transport.send(&keyed).await);
    assert_eq!(first, second);
    assert_eq!(world.n_found("a").await, 1);
    world.create("b").await;
    world.create("b").await;
    assert_eq!(world.n_found("b").await, 2);
    assert_eq!(world.sandbox.calls(world.crm).made, 3);
}

/// Every destination of this kind is a CRM of its own, named in a header or in the URL.
#[tokio::test]
async fn sandboxes_do_not_see_each_other() {
    let world = World::new().await;
    world.set(Fault::Unavailable, Rule::always());
    let mut create = call(
        Method::Post,
        "sandbox://crm/leads",
        &json!({"external_id": "a"}),
    );
    let which = HeaderValue::Plain(world.other.to_string());
    create.headers.push(("x-emanet-sandbox".into(), which));
    assert_eq!(answer(world.transport.send(&create).await).status, 201);
    world.set(Fault::Slow, Rule::chance(0.0));
    assert_eq!(world.n_found("a").await, 0);
}

#[tokio::test]
async fn what_it_cannot_do_it_refuses() {
    let world = World::new().await;
    for (method, path, body, status) in [
        (Method::Get, "/leads/none", json!(null), 404),
        (Method::Patch, "/leads/none", json!({}), 404),
        (Method::Get, "/deals", json!(null), 404),
        (Method::Get, "/", json!(null), 404),
        (Method::Delete, "/leads/1", json!(null), 405),
        (Method::Post, "/leads/1", json!({}), 405),
        (Method::Post, "/leads", json!([1]), 400),
        (Method::Post, "/leads", json!({"full_name": "A"}), 422),
        (Method::Post, "/leads", json!({"external_id": ""}), 422),
    ] {
        let (got, body) = world.ask(method, path, body).await;
        assert_eq!(got, status, "{method} {path}");
        assert!(body["error"]["code"].is_string());
    }
    // A task is no lead.
    let task = json!({"external_id": "t"});
    let (_, made) = world.ask(Method::Post, "/tasks", task).await;
    let path = format!("/leads/{}", made["id"].as_str().unwrap());
    assert_eq!(world.ask(Method::Patch, &path, json!({})).await.0, 404);
}

#[tokio::test]
async fn only_calls_to_a_sandbox_are_answered_here() {
    let world = World::new().await;
    let nobody = DestinationId::new(Env::system().now(), [9; 10]);
    let unknown = call(
        Method::Get,
        &format!("sandbox://{nobody}/leads"),
        &json!(null),
    );
    assert_eq!(answer(world.transport.send(&unknown).await).status, 404);
    let nameless = call(Method::Get, "sandbox://crm/leads", &json!(null));
    let outcome = world.transport.send(&nameless).await;
    assert_eq!(outcome, Outcome::NotSent(NotSent::InvalidCall));
    let outside = call(Method::Get, "http://127.0.0.1/leads", &json!(null));
    let outcome = world.transport.send(&outside).await;
    assert_eq!(outcome, Outcome::NotSent(NotSent::AddressRefused));
}

/// A fault that refuses: this status, code and Retry-After, and nothing is made.
async fn check_refusal(fault: Fault, status: u16, code: &str, retry_after: Option<&str>) {
    let world = World::new().await;
    world.set(fault, Rule::always());
    for _ in 0..2 {
        let answer = answer(world.create("a").await);
        assert_eq!(answer.status, status);
        assert_eq!(answer.json().unwrap()["error"]["code"], code);
        assert_eq!(answer.header("retry-after"), retry_after);
    }
    assert_eq!(world.sandbox.calls(world.crm).faults[&fault], 2);
    world.sandbox.set_faults(world.crm, Faults::new());
    assert_eq!(world.n_found("a").await, 0);
    assert_eq!(answer(world.create("a").await).status, 201);
}

#[tokio::test]
async fn refusing_faults_do_nothing() {
    check_refusal(Fault::Unavailable, 503, "maintenance", None).await;
    check_refusal(Fault::UnavailableRetryAfter, 503, "maintenance", Some("1")).await;
    check_refusal(Fault::RateLimited, 429, "rate_limited", Some("1")).await;
    check_refusal(Fault::TokenExpired, 401, "token_expired", None).await;
    check_refusal(Fault::DeletedField, 400, "deleted_field", None).await;
    check_refusal(Fault::RefuseData, 422, "invalid_value", None).await;
}

/// The answer is lost or spoilt, and the record is there: what a look-up must find.
#[tokio::test]
async fn losing_faults_do_it_first() {
    let world = World::new().await;
    for (fault, why) in [
        (Fault::TimeoutAfterCommit, Broken::TimedOut),
        (Fault::CutAfterCommit, Broken::Closed),
    ] {
        world.set(fault, Rule::times(1));
        let external_id = format!("{why:?}");
        assert_eq!(world.create(&external_id).await, Outcome::Unknown(why));
        assert_eq!(world.n_found(&external_id).await, 1);
    }
    world.set(Fault::BrokenBody, Rule::times(1));
    let spoilt = answer(world.create("broken").await);
    assert_eq!((spoilt.status, spoilt.json()), (201, None));
    assert_eq!(world.n_found("broken").await, 1);
}

#[tokio::test]
async fn what_never_arrived_did_nothing_and_is_not_counted_as_a_call() {
    let world = World::new().await;
    world.set(Fault::NeverSent, Rule::times(1));
    let outcome = world.create("a").await;
    assert_eq!(outcome, Outcome::NotSent(NotSent::Connect));
    assert_eq!(world.sandbox.calls(world.crm).creates, 0);
    assert_eq!(world.n_found("a").await, 0);
}

#[tokio::test]
async fn a_counted_fault_strikes_so_often() {
    let world = World::new().await;
    world.set(Fault::Unavailable, Rule::times(2));
    let mut statuses = Vec::new();
    for n in 0..4 {
        statuses.push(answer(world.create(&n.to_string()).await).status);
    }
    assert_eq!(statuses, [503, 503, 201, 201]);
    let left = world.sandbox.faults(world.crm);
    assert_eq!(left[&Fault::Unavailable].count, Some(0));
}

#[tokio::test]
async fn a_probable_fault_strikes_as_often_as_said() {
    let world = World::new().await;
    world.set(Fault::Unavailable, Rule::chance(0.3));
    for _ in 0..400 {
        world.send(Method::Get, "/leads", json!(null)).await;
    }
    let struck = world.sandbox.calls(world.crm).faults[&Fault::Unavailable];
    assert!((80..160).contains(&struck), "{struck}");
}

/// Permanent for the lead: a repeat meets the same answer, other leads pass.
#[tokio::test]
async fn refused_data_stays_refused() {
    let world = World::new().await;
    world.set(Fault::RefuseData, Rule::chance(0.5));
    let mut n_refused = 0;
    for n in 0..40 {
        let first = answer(world.create(&n.to_string()).await).status;
        let second = answer(world.create(&n.to_string()).await).status;
        assert_eq!(first, second);
        n_refused += usize::from(first == 422);
    }
    assert!((8..33).contains(&n_refused), "{n_refused}");
    world.set(Fault::RefuseData, Rule::times(1));
    let mut statuses = Vec::new();
    for external_id in ["x", "y", "x"] {
        statuses.push(answer(world.create(external_id).await).status);
    }
    assert_eq!(statuses, [422, 201, 422]);
}

#[tokio::test]
async fn a_deleted_field_is_met_by_those_who_send_it() {
    let world = World::new().await;
    let rule = Rule {
        field: Some("city".into()),
        ..Rule::always()
    };
    world.set(Fault::DeletedField, rule);
    assert_eq!(answer(world.create("a").await).status, 201);
    let body = json!({"external_id": "b", "city": "İzmir"});
    let (status, body) = world.ask(Method::Post, "/leads", body).await;
    assert_eq!((status, &body["error"]["field"]), (400, &json!("city")));
}

#[tokio::test]
async fn search_may_lag_behind() {
    let world = World::new().await;
    world.set(Fault::SearchLag, Rule::times(2));
    world.create("a").await;
    let mut found = Vec::new();
    for _ in 0..4 {
        found.push(world.n_found("a").await);
    }
    assert_eq!(found, [0, 0, 1, 1]);
}

#[tokio::test]
async fn a_slow_call_takes_its_time_and_is_done() {
    let world = World::new().await;
    let rule = Rule {
        delay_ms: Some(30),
        ..Rule::times(1)
    };
    world.set(Fault::Slow, rule);
    let started = tokio::time::Instant::now();
    assert_eq!(answer(world.create("a").await).status, 201);
    assert!(started.elapsed().as_millis() >= 30);
}

/// The connector `sandbox` against this sandbox, run as the engine would.
async fn deliver(world: &World, maybe_applied: bool) -> Result<Delivered, Ended> {
    let id = Value::String(world.crm.to_string());
    let settings = Settings {
        values: serde_json::Map::from_iter([("destination_id".to_owned(), id)]),
        secrets: BTreeMap::new(),
    };
    let kind = destinations::find("sandbox").unwrap();
    let connector: Box<dyn Destination> = (kind.build)(&settings).unwrap();
    let fields = BTreeMap::from([("full_name".to_owned(), "Ayşe Yılmaz".to_owned())]);
    let input = StepInput {
        object: "lead",
        external_id: "src_1:L-1",
        key: "src_1:L-1:crm",
        lead: &Lead::default(),
        fields: &fields,
        missing: &[],
        links: &BTreeMap::new(),
        maybe_applied,
    };
    let mut run = Vec::new();
    loop {
        match connector.next(&input, &run, Env::system().now()) {
            Next::Done(delivered) => return Ok(delivered),
            Next::Fail(failure) => return Err(Ended::Failed(failure)),
            Next::Call(call) => match world.transport.send(&call).await {
                Outcome::Answered(answer) => run.push(Exchange { call, answer }),
                other => return Err(Ended::Lost(other)),
            },
        }
    }
}

#[derive(Debug)]
enum Ended {
    Failed(Failure),
    Lost(Outcome),
}

#[tokio::test]
async fn the_connector_delivers_once_whatever_gets_lost() {
    for fault in [Fault::TimeoutAfterCommit, Fault::CutAfterCommit] {
        let world = World::new().await;
        world.set(fault, Rule::times(1));
        let lost = deliver(&world, false).await.unwrap_err();
        assert!(matches!(lost, Ended::Lost(Outcome::Unknown(_))), "{lost:?}");
        deliver(&world, true).await.unwrap();
        assert_eq!(world.n_found("src_1%3AL-1").await, 1);
        assert_eq!(world.sandbox.calls(world.crm).made, 1);
    }
    let world = World::new().await;
    world.set(Fault::BrokenBody, Rule::times(1));
    deliver(&world, false).await.unwrap();
    assert_eq!(world.sandbox.calls(world.crm).made, 1);
}

/// ERR-6: the connector's table knows the codes that this sandbox sends.
#[tokio::test]
async fn the_connector_understands_every_refusal() {
    for (fault, class, effect) in [
        (
            Fault::TokenExpired,
            Class::PermanentConfig,
            Effect::NotApplied,
        ),
        (
            Fault::DeletedField,
            Class::PermanentConfig,
            Effect::NotApplied,
        ),
        (Fault::RefuseData, Class::PermanentData, Effect::NotApplied),
        (Fault::RateLimited, Class::Transient, Effect::NotApplied),
        (Fault::Unavailable, Class::Transient, Effect::NotApplied),
        (
            Fault::UnavailableRetryAfter,
            Class::Transient,
            Effect::NotApplied,
        ),
    ] {
        let world = World::new().await;
        world.set(fault, Rule::always());
        match deliver(&world, false).await {
            Err(Ended::Failed(failure)) => {
                assert_eq!(
                    (failure.class, failure.effect),
                    (class, effect),
                    "{fault:?}"
                );
            }
            other => panic!("{fault:?}: {other:?}"),
        }
        assert_eq!(world.sandbox.calls(world.crm).made, 0);
    }
}
