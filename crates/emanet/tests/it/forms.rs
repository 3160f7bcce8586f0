//! Forms as they come: other encodings, files, traps, test leads, and leads that lack something.

use crate::config::{self, NETWORK};
use crate::crm::Crm;
use crate::graph::Graph;
use crate::http::{form, request};
use crate::leads;
use crate::process::Home;

/// Turkish pages that still speak windows-1254.
#[test]
fn a_form_in_windows_1254_keeps_its_turkish_letters() {
    let crm = Crm::start();
    let home = Home::new(&config::web(&crm));
    let server = home.serve();
    let body = b"full_name=%C7a%F0r%FD+Kanarya&email=cagri@kanarya.example&phone=0532+771+00+01";
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("accept", "application/json"),
    ];
    let answer = request("POST", &server.intake("web"), &headers, body).unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    home.until_n("done", 1);
    assert_eq!(crm.values("leads", "name"), ["Çağrı Kanarya"]);
}

/// A form with a file: the fields arrive, the file does not get in the way.
#[test]
fn a_multipart_form_is_read() {
    let crm = Crm::start();
    let home = Home::new(&config::web(&crm));
    let server = home.serve();
    let parts = [
        ("full_name", "", "Şule Kanarya"),
        ("email", "", "sule@kanarya.example"),
        ("plan", "; filename=\"plan.pdf\"", "%PDF-1.4 not really"),
    ];
    let part = |(name, more, value): (&str, &str, &str)| {
        format!("--cut\r\ncontent-disposition: form-data; name=\"{name}\"{more}\r\n\r\n{value}\r\n")
    };
    let body: String = parts.map(part).concat() + "--cut--\r\n";
    let headers = [
        ("content-type", "multipart/form-data; boundary=cut"),
        ("accept", "application/json"),
    ];
    let answer = request("POST", &server.intake("web"), &headers, body.as_bytes()).unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    home.until_n("done", 1);
    assert_eq!(crm.values("leads", "name"), ["Şule Kanarya"]);
}

/// DL-4: a phone nobody can read does not cost the lead: it is written, tagged, and somebody is asked to check.
#[test]
fn a_lead_whose_phone_cannot_be_read_is_tagged_and_gets_a_check_task() {
    let crm = Crm::start();
    let tag = "[destinations.crm.objects.lead.missing_data]\nfield = \"tags\"\nvalue = [\"missing data\"]\n";
    let config = [
        NETWORK,
        &config::web_source(""),
        &config::destination(&crm.url(), config::Means::LookUp),
        tag,
    ]
    .concat();
    let home = Home::new(&config);
    let server = home.serve();
    let fields = [
        ("full_name", "Elif Kanarya"),
        ("email", "elif@kanarya.example"),
        ("phone", "aramayın"),
    ];
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("accept", "application/json"),
    ];
    request("POST", &server.intake("web"), &headers, &form(&fields)).unwrap();
    leads::send(&server.intake("web"), 1);
    home.until_n("done", 2);

    let tagged: Vec<_> = crm
        .objects("leads")
        .into_iter()
        .filter(|o| o.fields["tags"][0] == "missing data")
        .collect();
    assert_eq!(tagged.len(), 1, "{tagged:?}");
    assert_eq!(tagged[0].fields["email"], "elif@kanarya.example");
    // A task to call for each of the two, and one to check for the one that lacks something.
    assert_eq!((crm.n("leads"), crm.n("tasks")), (2, 3));
}

/// What fills in the trap is a program: kept and counted, but not carried.
#[test]
fn what_falls_into_the_trap_is_ignored_with_its_reason() {
    let crm = Crm::start();
    let home = Home::new(&config::web(&crm));
    let server = home.serve();
    let fields = [
        ("full_name", "Bot Kanarya"),
        ("email", "bot@kanarya.example"),
        ("emanet_website", "http://spam.example"),
    ];
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("accept", "application/json"),
    ];
    let answer = request("POST", &server.intake("web"), &headers, &form(&fields)).unwrap();
    assert_eq!(
        answer.status, 200,
        "the program learns nothing from the answer"
    );
    home.until_n("ignored", 1);
    assert_eq!(
        home.lines(&["events", "list"])[0]["ignored_because"],
        "honeypot"
    );
    assert_eq!(crm.seen().len(), 0);
}

/// Test leads of the platform's own tool are marked and kept out of the CRM.
#[test]
fn a_test_lead_from_meta_is_kept_out_of_the_crm() {
    let (crm, graph) = (Crm::start(), Graph::start());
    let home = Home::new(&config::web_and_meta(&crm, &graph));
    let server = home.serve();
    let id = "990011223388888";
    let dummy = |field: &str| format!("<test lead: dummy data for {field}>");
    graph.add_lead(
        id,
        &dummy("full_name"),
        &dummy("phone_number"),
        "test@meta.com",
    );
    leads::notify(&server.intake("meta"), &[id.to_owned()], 1);
    let status = home.until_n("ignored", 1);
    assert!(status.closes());
    assert_eq!(
        home.lines(&["events", "list"])[0]["ignored_because"],
        "test_lead"
    );
    assert_eq!(crm.seen().len(), 0);
}
