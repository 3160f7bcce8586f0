//! Leads come in: from a form and from Meta, once, many times, many at once, and forged.

use crate::config;
use crate::crm::Crm;
use crate::graph::{APP_SECRET, Graph};
use crate::http::{form, get, post, post_signed, request};
use crate::leads;
use crate::process::Home;

/// IN-1, IN-2: form → store → CRM → task, and the story can be told.
#[test]
fn a_form_lead_arrives_in_the_crm_with_a_task() {
    let crm = Crm::start();
    let home = Home::new(&config::web(&crm));
    let server = home.serve();

    let answer = leads::send(&server.intake("web"), 1);
    assert_eq!(answer.status, 200, "{answer:?}");
    home.until_n("done", 1);

    let lead = &crm.objects("leads")[0];
    assert_eq!(lead.fields["name"], "Ayşe1 Kanarya");
    assert_eq!(lead.fields["email"], leads::email(1));
    assert_eq!(lead.fields["phone"], "+905327710001");
    let task = &crm.objects("tasks")[0];
    assert_eq!(
        task.fields["lead"],
        lead.id.as_str(),
        "the task hangs on the lead"
    );
    assert_eq!((crm.n("leads"), crm.n("tasks")), (1, 1));
    assert!(home.status().closes());
}

/// IN-1 with Meta: handshake, signed notification, fetch, CRM.
#[test]
fn a_meta_lead_is_fetched_and_arrives_in_the_crm() {
    let (crm, graph) = (Crm::start(), Graph::start());
    let home = Home::new(&config::web_and_meta(&crm, &graph));
    let server = home.serve();
    let intake = server.intake("meta");

    let handshake = format!(
        "{intake}?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token={}",
        config::VERIFY_TOKEN
    );
    let answer = get(&handshake);
    assert_eq!((answer.status, answer.body.as_str()), (200, "1158201444"));
    let wrong = handshake.replace(config::VERIFY_TOKEN, "guess");
    assert_eq!(get(&wrong).status, 403);

    let ids = leads::in_graph(&graph, 1..2);
    leads::notify(&intake, &ids, 1);
    home.until_n("done", 1);
    let lead = &crm.objects("leads")[0];
    assert_eq!(lead.fields["name"], "Ayşe1 Kanarya");
    assert_eq!(lead.fields["phone"], "+905327710001");
    assert!(
        lead.external_id
            .as_deref()
            .is_some_and(|id| id.ends_with(&ids[0])),
        "{lead:?}"
    );
}

/// IN-3: at-least-once senders, all at the same moment.
#[test]
fn the_same_event_a_hundred_times_in_parallel_is_one_object() {
    let crm = Crm::start();
    let home = Home::new(&config::web(&crm));
    let server = home.serve();
    let intake = server.intake("web");

    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..100)
            .map(|_| scope.spawn(|| leads::send(&intake, 7).status))
            .collect();
        senders.into_iter().map(|s| s.join().unwrap()).collect()
    });
    assert_eq!(statuses, vec![200; 100], "a repeat is as good as the first");
    let status = home.until_settled();
    assert_eq!(
        (status.n("received"), status.n("done")),
        (1, 1),
        "{status:?}"
    );
    assert_eq!((crm.n("leads"), crm.n("tasks")), (1, 1));
}

/// IN-5: one request with N leads is N events.
#[test]
fn one_post_with_fifty_meta_leads_is_fifty_leads() {
    let (crm, graph) = (Crm::start(), Graph::start());
    let home = Home::new(&config::web_and_meta(&crm, &graph));
    let server = home.serve();

    let ids = leads::in_graph(&graph, 0..50);
    leads::notify(&server.intake("meta"), &ids, 7);
    let status = home.until_n("done", 50);
    assert_eq!(status.n("received"), 50);
    assert_eq!(crm.n("leads"), 50);
    assert_eq!(crm.doubled("leads"), Vec::<String>::new());
    let mut expected: Vec<String> = (0..50).map(leads::email).collect();
    expected.sort();
    assert_eq!(crm.values("leads", "email"), expected);
}

/// IN-4: a forged request leaves nothing behind but a line in the log.
#[test]
fn a_wrong_signature_is_refused_stored_nowhere_and_logged_apart() {
    let (crm, graph) = (Crm::start(), Graph::start());
    let home = Home::new(&config::web_and_meta(&crm, &graph));
    let server = home.serve();
    let intake = server.intake("meta");
    let ids = leads::in_graph(&graph, 1..2);
    let body = crate::graph::notification(&ids, 1);

    assert_eq!(
        post_signed(&intake, "not the secret", &body)
            .unwrap()
            .status,
        401
    );
    assert_eq!(
        post(&intake, "application/json", &body).status,
        401,
        "no signature at all"
    );
    let mut tampered = body.clone();
    tampered.push(b' ');
    let signature = crate::http::meta_signature(APP_SECRET, &body);
    let answer = request(
        "POST",
        &intake,
        &[("x-hub-signature-256", &signature)],
        &tampered,
    )
    .unwrap();
    assert_eq!(answer.status, 401, "one byte more than was signed");

    assert_eq!(home.status().n("received"), 0);
    assert_eq!(home.lines(&["events", "list"]).len(), 0);
    let log = home.log();
    assert!(
        log.contains("bad_signature") && log.contains("no_signature"),
        "{log}"
    );
}

/// An unknown token is nobody's: 404, and nothing stored.
#[test]
fn an_unknown_intake_token_is_not_found() {
    let crm = Crm::start();
    let home = Home::new(&config::web(&crm));
    let server = home.serve();
    let url = format!("{}/in/no-such-token", server.base());
    let answer = post(&url, "application/json", b"{}");
    assert_eq!(answer.status, 404);
    assert_eq!(answer.json()["error"]["code"], "CORE-REQ-0003");
    assert_eq!(home.status().n("received"), 0);
}

/// IN-5: authentic but unreadable is kept and shown to a person.
#[test]
fn an_authentic_body_that_cannot_be_read_becomes_a_dead_letter() {
    let (crm, graph) = (Crm::start(), Graph::start());
    let home = Home::new(&config::web_and_meta(&crm, &graph));
    let server = home.serve();
    let answer = post_signed(&server.intake("meta"), APP_SECRET, b"{\"object\":\"page\",").unwrap();
    assert_eq!(answer.status, 200, "kept is kept");
    home.until_n("open_dead_letters", 1);
    let letters = home.lines(&["dead", "list"]);
    assert_eq!(
        letters[0]["failure"]["class"], "permanent_data",
        "{letters:?}"
    );
}

/// A browser is sent to the thank-you page; a program gets JSON; a double click is one lead.
#[test]
fn a_browser_is_thanked_and_a_double_click_is_one_lead() {
    let crm = Crm::start();
    let home = Home::new(&config::web(&crm));
    let server = home.serve();
    let intake = server.intake("web");
    let fields = leads::fields(3);
    let mut pairs: Vec<(&str, &str)> = fields.iter().map(|(k, v)| (*k, v.as_str())).collect();
    pairs.push(("emanet_id", "one-form-view"));
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("accept", "text/html,application/xhtml+xml"),
    ];
    for _ in 0..2 {
        let answer = request("POST", &intake, &headers, &form(&pairs)).unwrap();
        assert_eq!(answer.status, 303, "{answer:?}");
        assert_eq!(answer.header("location"), Some(config::THANK_YOU));
    }
    assert_eq!(leads::send_json(&intake, 4).status, 200);
    home.until_n("done", 2);
    assert_eq!(crm.n("leads"), 2);
}
