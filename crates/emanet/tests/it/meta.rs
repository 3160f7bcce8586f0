//! The fetch step: Meta sends ids only, and its answers are ambiguous on purpose.

use crate::config;
use crate::crm::Crm;
use crate::graph::{Graph, PAGE_TOKEN, error};
use crate::leads;
use crate::process::Home;
use std::sync::atomic::{AtomicU64, Ordering};

/// Code 190: the page token expired. One dead letter, the rest held; after the fix all of them are fetched.
#[test]
fn an_expired_page_token_holds_the_leads_until_it_is_renewed() {
    let (crm, graph) = (Crm::start(), Graph::start());
    let home = Home::new(&config::web_and_meta(&crm, &graph));
    let server = home.serve();
    let intake = server.intake("meta");
    graph.set_token("the-new-page-token");
    let ids = leads::in_graph(&graph, 0..12);
    leads::notify(&intake, &ids[..1], 1);
    home.until_n("open_dead_letters", 1);
    leads::notify(&intake, &ids[1..], 5);
    home.until_n("held", 11);
    assert_eq!(crm.n("leads"), 0);

    home.configure(&config::web_and_meta(&crm, &graph).replace(PAGE_TOKEN, "the-new-page-token"));
    let path = home.config_path();
    let applied = home.run(&["apply", path.to_str().unwrap()]);
    assert!(applied.status.success(), "{applied:?}");
    home.json(&["replay", "start", "--reason", "page token renewed"]);
    home.until_n("done", 12);
    assert_eq!((crm.n("leads"), crm.n("tasks")), (12, 12));
    assert_eq!(home.status().n("open_dead_letters"), 0);
}

/// Code 100, subcode 33 means "deleted" or "no access": the form is asked with the same token. It reads, so the lead is gone:
/// the lead's fault, and nobody else waits for it.
#[test]
fn a_lead_that_is_gone_is_dead_alone() {
    let (crm, graph) = (Crm::start(), Graph::start());
    let home = Home::new(&config::web_and_meta(&crm, &graph));
    let server = home.serve();
    let there = leads::in_graph(&graph, 0..3);
    leads::notify(&server.intake("meta"), &["990011223399999".to_owned()], 1);
    leads::notify(&server.intake("meta"), &there, 3);
    home.until_n("done", 3);
    let status = home.until_n("open_dead_letters", 1);
    assert_eq!(status.0["by_class"]["permanent_data"], 1, "{status:?}");
    assert!(
        graph
            .seen()
            .iter()
            .any(|seen| seen.path().ends_with(crate::graph::FORM)),
        "the form was asked"
    );
    assert_eq!(crm.n("leads"), 3);
}

/// Codes 2 and 4: the service is down or throttles; the lead waits and comes through.
#[test]
fn a_graph_that_is_down_for_a_moment_delays_the_lead_and_no_more() {
    let (crm, graph) = (Crm::start(), Graph::start());
    let home = Home::new(&config::web_and_meta(&crm, &graph));
    let server = home.serve();
    let n = AtomicU64::new(0);
    graph.plan(move |_| match n.fetch_add(1, Ordering::SeqCst) {
        0 => Some(error(500, 2, 0, "Service temporarily unavailable")),
        1 => Some(error(403, 4, 0, "Application request limit reached")),
        _ => None,
    });
    let ids = leads::in_graph(&graph, 0..1);
    leads::notify(&server.intake("meta"), &ids, 1);
    home.until_n("done", 1);
    assert_eq!(crm.n("leads"), 1);
}
