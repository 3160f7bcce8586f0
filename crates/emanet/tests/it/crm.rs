//! A fake CRM that keeps what it is told: every object, under every external id, so that a test can say "exactly one".
//!
//! `POST /leads` makes a lead (201 with its id), `PATCH /leads/ID` changes it, `GET /leads?external_id=X` finds by the field
//! `external_id`; the same for `/tasks`. `GET /me` tells whether the token is good.

use crate::fake::{Fake, Reaction, Reply, Seen};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};

/// The token it takes at first.
pub(crate) const TOKEN: &str = "crm-token-canary-5f1c";

/// An object in the CRM.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) id: String,
    /// `leads` or `tasks`.
    pub(crate) kind: String,
    pub(crate) external_id: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) fields: Value,
}

/// What to do with a request instead of carrying it out and answering.
#[derive(Clone, Debug)]
pub(crate) enum Script {
    /// Answers this, does nothing.
    Refuse(Reply),
    /// Carries it out, then never answers.
    SilentAfterCommit,
    /// Carries it out, then closes the connection.
    HangUpAfterCommit,
    /// Carries it out, then answers 200 with this in place of the body.
    AnswerAfterCommit(String),
    /// Carries it out, then answers with a body that ends too early.
    CutAfterCommit,
    /// Reads it, does nothing and closes the connection.
    HangUp,
    /// Carries it out, tells the gate, and answers when the gate opens.
    Wait(Arc<Gate>),
    /// Tells the gate first, and carries it out when the gate opens.
    WaitBefore(Arc<Gate>),
}

/// A place where a request waits for the test.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<(u64, bool)>,
    changed: Condvar,
}

impl Gate {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Waits until a request stands here.
    pub(crate) fn reached(&self) {
        let state = self.state.lock().unwrap();
        let _state = self.changed.wait_while(state, |s| s.0 == 0).unwrap();
    }

    /// Lets all pass, now and later.
    pub(crate) fn open(&self) {
        self.state.lock().unwrap().1 = true;
        self.changed.notify_all();
    }

    fn stand(&self) {
        let mut state = self.state.lock().unwrap();
        state.0 += 1;
        self.changed.notify_all();
        let _state = self.changed.wait_while(state, |s| !s.1).unwrap();
    }
}

type Plan = dyn Fn(&Seen) -> Option<Script> + Send + Sync;

/// The CRM.
pub(crate) struct Crm {
    fake: Fake,
    state: Arc<State>,
}

struct State {
    objects: Mutex<BTreeMap<String, Object>>,
    token: Mutex<String>,
    plan: Mutex<Arc<Plan>>,
    honours_keys: bool,
}

impl Crm {
    /// A CRM that finds objects by external id and ignores idempotency keys.
    pub(crate) fn start() -> Self {
        Self::with_keys(false)
    }

    /// A CRM that answers a repeated idempotency key with the object made then.
    pub(crate) fn honouring_keys() -> Self {
        Self::with_keys(true)
    }

    fn with_keys(honours_keys: bool) -> Self {
        let state = Arc::new(State {
            objects: Mutex::default(),
            token: Mutex::new(TOKEN.to_owned()),
            plan: Mutex::new(Arc::new(|_: &Seen| None)),
            honours_keys,
        });
        let handler = Arc::clone(&state);
        Self {
            fake: Fake::start(move |seen| handler.react(seen)),
            state,
        }
    }

    pub(crate) fn url(&self) -> String {
        self.fake.url()
    }

    /// From now on each request is asked of `plan`; `None` is the usual behaviour.
    pub(crate) fn plan(&self, plan: impl Fn(&Seen) -> Option<Script> + Send + Sync + 'static) {
        *self.state.plan.lock().unwrap() = Arc::new(plan);
    }

    /// Behaves as usual again.
    pub(crate) fn behave(&self) {
        self.plan(|_| None);
    }

    /// The token it takes from now on.
    pub(crate) fn set_token(&self, token: &str) {
        token.clone_into(&mut self.state.token.lock().unwrap());
    }

    pub(crate) fn go_away(&self) {
        self.fake.go_away();
    }

    pub(crate) fn come_back(&self) {
        self.fake.come_back();
    }

    /// All requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.fake.seen()
    }

    /// Requests so far with this method on this kind of object.
    pub(crate) fn seen_of(&self, method: &str, kind: &str) -> Vec<Seen> {
        let start = format!("/{kind}");
        let mut seen = self.seen();
        seen.retain(|s| s.method == method && s.path().starts_with(&start));
        seen
    }

    /// Objects of a kind (`leads`, `tasks`), oldest first.
    pub(crate) fn objects(&self, kind: &str) -> Vec<Object> {
        let objects = self.state.objects.lock().unwrap();
        objects
            .values()
            .filter(|o| o.kind == kind)
            .cloned()
            .collect()
    }

    pub(crate) fn n(&self, kind: &str) -> usize {
        self.objects(kind).len()
    }

    /// Says which external ids stand on more than one object of a kind; the test wants none.
    pub(crate) fn doubled(&self, kind: &str) -> Vec<String> {
        let mut counts = BTreeMap::<String, u32>::new();
        for object in self.objects(kind) {
            *counts
                .entry(object.external_id.unwrap_or_default())
                .or_default() += 1;
        }
        counts.retain(|_, n| *n > 1);
        counts.into_keys().collect()
    }

    /// The value of a field on every object of a kind, sorted.
    pub(crate) fn values(&self, kind: &str, field: &str) -> Vec<String> {
        let text = |o: &Object| o.fields[field].as_str().unwrap_or_default().to_owned();
        let mut values: Vec<String> = self.objects(kind).iter().map(text).collect();
        values.sort();
        values
    }
}

impl State {
    fn react(&self, seen: &Seen) -> Reaction {
        let plan = Arc::clone(&self.plan.lock().unwrap());
        match plan(seen) {
            None => Reaction::Answer(self.carry_out(seen)),
            Some(Script::Refuse(reply)) => Reaction::Answer(reply),
            Some(Script::HangUp) => Reaction::HangUp,
            Some(Script::SilentAfterCommit) => {
                self.carry_out(seen);
                Reaction::Silence
            }
            Some(Script::HangUpAfterCommit) => {
                self.carry_out(seen);
                Reaction::HangUp
            }
            Some(Script::CutAfterCommit) => {
                self.carry_out(seen);
                let cut = "HTTP/1.1 201 Created\r\ncontent-length: 200\r\n\r\n{\"id\":";
                Reaction::Raw(cut.as_bytes().to_vec())
            }
            Some(Script::AnswerAfterCommit(body)) => {
                let reply = self.carry_out(seen);
                Reaction::Answer(Reply { body, ..reply })
            }
            Some(Script::Wait(gate)) => {
                let reply = self.carry_out(seen);
                gate.stand();
                Reaction::Answer(reply)
            }
            Some(Script::WaitBefore(gate)) => {
                gate.stand();
                Reaction::Answer(self.carry_out(seen))
            }
        }
    }

    fn carry_out(&self, seen: &Seen) -> Reply {
        let expected = format!("Bearer {}", self.token.lock().unwrap());
        if seen.headers.get("authorization") != Some(&expected) {
            return error(401, "token_expired", "the token is not valid any more");
        }
        let parts: Vec<&str> = seen.path().split('/').skip(1).collect();
        match (seen.method.as_str(), parts.as_slice()) {
            ("GET", ["me"]) => Reply::json(200, &json!({"name": "relay"})),
            ("GET", [kind]) => self.find(kind, seen),
            ("POST", [kind]) => self.create(kind, seen),
            ("PATCH", [_, id]) => self.change(id, seen),
            _ => error(404, "not_found", "there is no such thing here"),
        }
    }

    fn find(&self, kind: &str, seen: &Seen) -> Reply {
        let wanted = seen.parameter("external_id");
        let objects = self.objects.lock().unwrap();
        let found: Vec<Value> = objects
            .values()
            .filter(|o| o.kind == kind && o.external_id == wanted)
            .map(|o| json!({"id": o.id, "external_id": o.external_id}))
            .collect();
        Reply::json(200, &json!({"items": found}))
    }

    fn create(&self, kind: &str, seen: &Seen) -> Reply {
        let key = seen.headers.get("idempotency-key").cloned();
        let mut objects = self.objects.lock().unwrap();
        let known = objects.values().find(|o| key.is_some() && o.key == key);
        if let Some(known) = known.filter(|_| self.honours_keys) {
            return Reply::json(200, &json!({"id": known.id}));
        }
        let id = format!("{}-{:05}", kind.trim_end_matches('s'), objects.len() + 1);
        let fields = seen.json();
        let object = Object {
            id: id.clone(),
            kind: kind.to_owned(),
            external_id: fields["external_id"].as_str().map(str::to_owned),
            key,
            fields,
        };
        objects.insert(id.clone(), object);
        Reply::json(201, &json!({"id": id}))
    }

    fn change(&self, id: &str, seen: &Seen) -> Reply {
        let mut objects = self.objects.lock().unwrap();
        let Some(object) = objects.get_mut(id) else {
            return error(404, "not_found", "there is no object with this id");
        };
        if let (Some(old), Some(new)) = (object.fields.as_object_mut(), seen.json().as_object()) {
            old.extend(new.clone());
        }
        Reply::json(200, &json!({"id": id}))
    }
}

/// A refusal in the CRM's own form.
pub(crate) fn error(status: u16, code: &str, message: &str) -> Reply {
    Reply::json(
        status,
        &json!({"error": {"code": code, "message": message}}),
    )
}

/// A refusal with Retry-After.
pub(crate) fn error_retry_after(status: u16, seconds: u32) -> Reply {
    let mut reply = error(status, "busy", "come back later");
    reply.headers.push(("retry-after", seconds.to_string()));
    reply
}
