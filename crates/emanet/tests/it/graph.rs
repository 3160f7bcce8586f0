//! A fake Graph API: leads by id, read with a page token, and the form they came from.

use crate::fake::{Fake, Reaction, Reply, Seen};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The page token it takes at first.
pub(crate) const PAGE_TOKEN: &str = "page-token-canary-77d0";
/// The app secret the notifications are signed with.
pub(crate) const APP_SECRET: &str = "app-secret-canary-3b9a";
/// The form of all leads here.
pub(crate) const FORM: &str = "5544332211009988";
/// The page of all leads here.
pub(crate) const PAGE: &str = "1029384756";

type Plan = dyn Fn(&Seen) -> Option<Reply> + Send + Sync;

/// The Graph API.
pub(crate) struct Graph {
    fake: Fake,
    state: Arc<State>,
}

struct State {
    leads: Mutex<BTreeMap<String, Value>>,
    token: Mutex<String>,
    plan: Mutex<Arc<Plan>>,
}

impl Graph {
    pub(crate) fn start() -> Self {
        let state = Arc::new(State {
            leads: Mutex::default(),
            token: Mutex::new(PAGE_TOKEN.to_owned()),
            plan: Mutex::new(Arc::new(|_: &Seen| None)),
        });
        let handler = Arc::clone(&state);
        Self {
            fake: Fake::start(move |seen| Reaction::Answer(handler.answer(seen))),
            state,
        }
    }

    pub(crate) fn url(&self) -> String {
        self.fake.url()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.fake.seen()
    }

    /// The token it takes from now on.
    pub(crate) fn set_token(&self, token: &str) {
        token.clone_into(&mut self.state.token.lock().unwrap());
    }

    /// From now on each request is asked of `plan`; `None` is the usual behaviour.
    pub(crate) fn plan(&self, plan: impl Fn(&Seen) -> Option<Reply> + Send + Sync + 'static) {
        *self.state.plan.lock().unwrap() = Arc::new(plan);
    }

    /// Makes a lead that can be fetched.
    pub(crate) fn add_lead(&self, id: &str, name: &str, phone: &str, email: &str) {
        let lead = json!({
            "id": id, "created_time": "2026-11-30T09:00:00+0000", "form_id": FORM, "ad_id": "120200000000000111",
            "is_organic": false, "platform": "ig",
            "field_data": [
                {"name": "full_name", "values": [name]},
                {"name": "phone_number", "values": [phone]},
                {"name": "email", "values": [email]},
                {"name": "hangi_daire_tipi?", "values": ["2+1"]},
            ],
        });
        self.state.leads.lock().unwrap().insert(id.to_owned(), lead);
    }
}

impl State {
    fn answer(&self, seen: &Seen) -> Reply {
        let plan = Arc::clone(&self.plan.lock().unwrap());
        if let Some(reply) = plan(seen) {
            return reply;
        }
        let bearer = format!("Bearer {}", self.token.lock().unwrap());
        if seen.headers.get("authorization") != Some(&bearer) {
            return error(
                400,
                190,
                463,
                "Error validating access token: Session has expired",
            );
        }
        let id = seen.path().rsplit('/').next().unwrap_or_default();
        if id == FORM {
            return Reply::json(200, &json!({"id": FORM, "name": "Konut"}));
        }
        match self.leads.lock().unwrap().get(id) {
            Some(lead) => Reply::json(200, lead),
            None => error(
                400,
                100,
                33,
                "Unsupported get request. Object does not exist",
            ),
        }
    }
}

/// An error in Graph's own form.
pub(crate) fn error(status: u16, code: u32, subcode: u32, message: &str) -> Reply {
    let error = json!({"message": message, "type": "OAuthException", "code": code, "error_subcode": subcode, "fbtrace_id": "t"});
    Reply::json(status, &json!({ "error": error }))
}

/// A notification about leads, as Meta posts it: `per_entry` changes in each entry.
pub(crate) fn notification(ids: &[String], per_entry: usize) -> Vec<u8> {
    let change = |id: &String| json!({"field": "leadgen", "value": {"leadgen_id": id, "page_id": PAGE, "form_id": FORM, "created_time": 1_796_029_200}});
    let entries: Vec<Value> = ids
        .chunks(per_entry)
        .map(|part| {
            let changes: Vec<Value> = part.iter().map(change).collect();
            json!({"id": PAGE, "time": 1_796_029_202, "changes": changes})
        })
        .collect();
    json!({"object": "page", "entry": entries})
        .to_string()
        .into_bytes()
}
