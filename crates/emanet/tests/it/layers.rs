//! GS-1: each layer is useful alone. Receive only; upsert only; dead letters only.

use crate::config::{self, Means};
use crate::crm::{Crm, Script, error};
use crate::leads;
use crate::process::Home;

#[test]
fn a_receive_only_source_keeps_leads_and_calls_nobody() {
    let crm = Crm::start();
    let home = Home::new(&config::receive_only(&crm));
    let server = home.serve();
    let intake = server.intake("web");
    for n in 0..3 {
        assert_eq!(leads::send(&intake, n).status, 200);
    }
    let status = home.until_n("done", 3);
    assert!(status.closes());
    assert_eq!(crm.seen().len(), 0, "nobody was called");
    let events = home.lines(&["events", "list"]);
    assert_eq!(events.len(), 3);
    assert!(
        events
            .iter()
            .any(|e| e["email"] == leads::email(2).as_str()),
        "the lead can be read: {events:?}"
    );
}

#[test]
fn an_upsert_only_flow_writes_the_lead_and_nothing_else() {
    let crm = Crm::start();
    let home = Home::new(&config::upsert_only(&crm, Means::LookUp));
    let server = home.serve();
    let intake = server.intake("web");
    leads::send(&intake, 1);
    leads::send(&intake, 1);
    home.until_n("done", 1);
    assert_eq!((crm.n("leads"), crm.n("tasks")), (1, 0));
}

/// Without look-up and keys, what fails becomes a work item: listed, with a reason, resolved by a person.
#[test]
fn dead_letters_work_without_any_upsert() {
    let crm = Crm::start();
    let home = Home::new(&config::upsert_only(&crm, Means::Nothing));
    let server = home.serve();
    let intake = server.intake("web");
    crm.plan(|_| {
        Some(Script::Refuse(error(
            422,
            "invalid_email",
            "the address does not exist",
        )))
    });
    leads::send(&intake, 1);
    leads::send(&intake, 2);
    home.until_n("open_dead_letters", 2);

    let letters = home.lines(&["dead", "list"]);
    let id = |n: usize| letters[n]["id"].as_str().unwrap().to_owned();
    let resolve = [
        "dead",
        "resolve",
        &id(0),
        "--as",
        "fixed_manually",
        "--note",
        "typed in by hand",
    ];
    home.json(&resolve);
    let shown = home.json(&["dead", "show", &id(0)]);
    assert_eq!(shown["resolution"], "fixed_manually", "{shown}");
    let status = home.status();
    assert_eq!(status.n("open_dead_letters"), 1);
    assert!(status.closes());

    crm.behave();
    home.json(&[
        "replay",
        "start",
        "--class",
        "permanent_data",
        "--reason",
        "the CRM takes it now",
    ]);
    let status = home.until_n("done", 2);
    assert_eq!(status.n("open_dead_letters"), 0);
    assert_eq!(
        crm.n("leads"),
        1,
        "the one resolved by hand was not sent again"
    );
}
