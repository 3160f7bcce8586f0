//! SIGKILL, at the worst moments: 0 lost, 0 doubled.

use crate::config;
use crate::crm::{Crm, Gate, Script};
use crate::fake::Seen;
use crate::graph::Graph;
use crate::leads;
use crate::process::Home;
use crate::wait::until_true;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Where a lead's journey can be cut, seen from outside: the call that is under way, and whether the other side has carried it out.
const CUTS: [(&str, &str, bool); 6] = [
    ("GET", "/leads", false),
    ("POST", "/leads", false),
    ("POST", "/leads", true),
    ("GET", "/tasks", false),
    ("POST", "/tasks", false),
    ("POST", "/tasks", true),
];
/// Leads per cut.
const LEADS_PER_CUT: usize = 5;

/// F1, F2: killed at every boundary at once, the commit of the CRM without our record included. Each lead is made to stand at one of the
/// cuts; when all stand, the process dies.
#[test]
fn killed_at_every_step_boundary_nothing_is_lost_or_doubled() {
    let (crm, graph) = (Crm::start(), Graph::start());
    // All of them may be under way at the same time.
    let room = "\n[destinations.crm.limits]\nconcurrency = 64\n";
    let home = Home::new(&(config::web_and_meta(&crm, &graph) + room));
    let server = home.serve();
    let n_leads = CUTS.len() * LEADS_PER_CUT;
    let gate = Gate::new();
    let standing = Arc::new(Mutex::new(BTreeSet::new()));
    let (at, stand) = (Arc::clone(&gate), Arc::clone(&standing));
    crm.plan(move |seen| {
        let lead = number(seen)?;
        let (method, path, after_commit) = CUTS[lead % CUTS.len()];
        if seen.method != method || seen.path() != path {
            return None;
        }
        stand.lock().unwrap().insert(lead);
        let gate = Arc::clone(&at);
        Some(if after_commit {
            Script::Wait(gate)
        } else {
            Script::WaitBefore(gate)
        })
    });
    let ids = leads::in_graph(&graph, 0..n_leads);
    leads::notify(&server.intake("meta"), &ids, 10);
    until_true("every lead stands at its cut", || {
        standing.lock().unwrap().len() == n_leads
    });
    server.kill();
    // What was under way is carried out on the other side all the same.
    gate.open();
    crm.behave();

    let _server = home.serve();
    let status = home.until_n("done", n_leads as u64);
    assert_eq!(status.n("open_dead_letters"), 0);
    assert_eq!((crm.n("leads"), crm.n("tasks")), (n_leads, n_leads));
    assert_eq!(crm.doubled("leads"), Vec::<String>::new());
    assert_eq!(crm.doubled("tasks"), Vec::<String>::new());
    assert!(status.closes());
}

/// The number of the lead a call to the CRM is about: its external id carries the id Meta gave it.
fn number(seen: &Seen) -> Option<usize> {
    let id = match seen.method.as_str() {
        "GET" => seen.parameter("external_id")?,
        _ => seen.json()["external_id"].as_str()?.to_owned(),
    };
    let source_ref = id.split(':').nth(1)?;
    source_ref.get(12..)?.parse().ok()
}

/// Kills in a row while senders keep sending: whatever was acknowledged is in the CRM exactly once at the end.
#[test]
fn killed_again_and_again_while_leads_keep_coming_every_acknowledged_lead_arrives_once() {
    const KILLS: usize = 8;
    const ACKNOWLEDGED_BETWEEN_KILLS: usize = 25;
    let crm = Crm::start();
    let home = Home::new(&config::web(&crm));
    let mut server = home.serve();
    let intake = Mutex::new(server.intake("web"));
    let next = AtomicU64::new(0);
    let acknowledged = Mutex::new(BTreeSet::new());
    let done = AtomicBool::new(false);

    let _server = std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    let n = usize::try_from(next.fetch_add(1, Ordering::SeqCst)).unwrap();
                    // A sender that gets no answer sends again, as all of them do; it gives up only at the end.
                    while !done.load(Ordering::SeqCst) {
                        let url = intake.lock().unwrap().clone();
                        if leads::try_send(&url, n).is_ok_and(|answer| answer.status == 200) {
                            acknowledged.lock().unwrap().insert(n);
                            break;
                        }
                        std::thread::yield_now();
                    }
                }
            });
        }
        for kill in 1..=KILLS {
            let enough = kill * ACKNOWLEDGED_BETWEEN_KILLS;
            until_true("leads are acknowledged", || {
                acknowledged.lock().unwrap().len() >= enough
            });
            // The old one must be gone before the new one may have the data directory.
            server.kill();
            server = home.serve();
            *intake.lock().unwrap() = server.intake("web");
        }
        done.store(true, Ordering::SeqCst);
        server
    });

    let status = home.until_settled();
    let acknowledged = acknowledged.into_inner().unwrap();
    assert_eq!(
        status.n("held") + status.n("open_dead_letters"),
        0,
        "{status:?}"
    );
    assert!(status.closes());
    let arrived: BTreeSet<String> = crm.values("leads", "email").into_iter().collect();
    let lost: Vec<usize> = acknowledged
        .iter()
        .copied()
        .filter(|n| !arrived.contains(&leads::email(*n)))
        .collect();
    assert_eq!(lost, Vec::<usize>::new(), "acknowledged and not in the CRM");
    assert_eq!(crm.doubled("leads"), Vec::<String>::new());
    assert_eq!(crm.doubled("tasks"), Vec::<String>::new());
    assert_eq!(crm.n("leads"), arrived.len(), "one object per lead");
}
