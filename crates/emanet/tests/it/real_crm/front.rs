//! Stands between `emanet` and the real CRM: passes everything on, counts what is under way, and can spoil an answer after the CRM
//! has done its work.

use crate::fake::{Fake, Reaction, Reply, Seen};
use crate::http::request;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What becomes of a request or its answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spoil {
    /// The CRM does its work; the answer is replaced by the page its web server shows when a worker dies.
    ServerErrorAfter,
    /// The answer is a list in which nothing was found.
    FindNothing,
}

type Plan = dyn Fn(&Seen) -> Option<Spoil> + Send + Sync;

pub(super) struct Front {
    fake: Fake,
    plan: Arc<Mutex<Arc<Plan>>>,
    at_once: Arc<AtomicUsize>,
}

impl Front {
    pub(super) fn of(crm: &str) -> Self {
        let crm = crm.to_owned();
        let plan: Arc<Mutex<Arc<Plan>>> = Arc::new(Mutex::new(Arc::new(|_: &Seen| None)));
        let (at_once, now) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
        let (asked, highest) = (Arc::clone(&plan), Arc::clone(&at_once));
        let fake = Fake::start(move |seen| {
            highest.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let plan = Arc::clone(&asked.lock().unwrap());
            let reply = match plan(seen) {
                None => pass_on(&crm, seen),
                Some(Spoil::FindNothing) => nothing_found(),
                Some(Spoil::ServerErrorAfter) => {
                    pass_on(&crm, seen);
                    page(500)
                }
            };
            now.fetch_sub(1, Ordering::SeqCst);
            Reaction::Answer(reply)
        });
        Self {
            fake,
            plan,
            at_once,
        }
    }

    pub(super) fn url(&self) -> String {
        self.fake.url()
    }

    /// From now on each request is asked of `plan`; `None` passes it on.
    pub(super) fn plan(&self, plan: impl Fn(&Seen) -> Option<Spoil> + Send + Sync + 'static) {
        *self.plan.lock().unwrap() = Arc::new(plan);
    }

    /// Requests of that method so far whose target or body names `word`.
    pub(super) fn n(&self, method: &str, word: &str) -> usize {
        let names =
            |s: &Seen| s.target.contains(word) || String::from_utf8_lossy(&s.body).contains(word);
        self.fake
            .seen()
            .iter()
            .filter(|s| s.method == method && names(s))
            .count()
    }

    /// Starts to count anew how many requests are under way at the same time.
    pub(super) fn forget_peak(&self) {
        self.at_once.store(0, Ordering::SeqCst);
    }

    /// The most requests that were under way at the same time.
    pub(super) fn at_once(&self) -> usize {
        self.at_once.load(Ordering::SeqCst)
    }
}

fn pass_on(crm: &str, seen: &Seen) -> Reply {
    let kept = ["authorization", "content-type", "accept"];
    let headers: Vec<(&str, &str)> = kept
        .iter()
        .filter_map(|name| Some((*name, seen.headers.get(*name)?.as_str())))
        .collect();
    let answer = request(
        &seen.method,
        &format!("{crm}{}", seen.target),
        &headers,
        &seen.body,
    )
    .expect("the CRM answers");
    let passed = |name: &'static str| answer.header(name).map(|value| (name, value.to_owned()));
    Reply {
        status: answer.status,
        headers: ["content-type", "location"]
            .into_iter()
            .filter_map(passed)
            .collect(),
        body: answer.body.clone(),
    }
}

fn page(status: u16) -> Reply {
    Reply {
        status,
        headers: vec![("content-type", "text/html".to_owned())],
        body: "<!doctype html><title>Server Error</title><h1>Server Error</h1>".to_owned(),
    }
}

fn nothing_found() -> Reply {
    let none = serde_json::json!({
        "open_leads": {"leads_count": 0, "open_leads": []},
        "close_leads": {"leads_count": 0, "close_leads": []},
    });
    Reply::json(200, &none)
}
