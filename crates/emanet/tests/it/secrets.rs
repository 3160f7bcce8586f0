//! Invariant 7: no secret and no personal datum in a log line or a metric, whatever goes wrong.

use crate::config;
use crate::crm::{Crm, Script, TOKEN, error};
use crate::graph::{APP_SECRET, Graph, PAGE_TOKEN};
use crate::http::{get, post, post_signed};
use crate::leads::{self, CANARIES};
use crate::process::Home;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn no_secret_and_no_personal_datum_is_in_a_log_line_or_a_metric() {
    let (crm, graph) = (Crm::start(), Graph::start());
    let home = Home::new(&config::web_and_meta(&crm, &graph));
    let server = home.serve();
    let n = AtomicU64::new(0);
    // Vendors quote what they were sent; that must not reach the log either.
    crm.plan(move |seen| {
        let words = format!("{} is not welcome", String::from_utf8_lossy(&seen.body));
        match n.fetch_add(1, Ordering::SeqCst) % 5 {
            1 => Some(Script::Refuse(error(422, "invalid_email", &words))),
            2 => Some(Script::HangUpAfterCommit),
            3 => Some(Script::AnswerAfterCommit(words)),
            _ => None,
        }
    });
    let web = server.intake("web");
    for n in 0..20 {
        leads::send(&web, n);
        leads::send_json(&web, 100 + n);
    }
    let ids = leads::in_graph(&graph, 200..210);
    leads::notify(&server.intake("meta"), &ids, 3);
    post_signed(
        &server.intake("meta"),
        "wrong",
        b"{\"full_name\":\"Kanarya\"}",
    )
    .unwrap();
    post(&web, "text/plain", "full_name=Kanarya".as_bytes());
    graph.set_token("another");
    let late = leads::in_graph(&graph, 210..212);
    leads::notify(&server.intake("meta"), &late, 1);
    home.until_settled();
    let metrics = get(&format!("{}/metrics", server.base())).body;
    let token = web.rsplit('/').next().unwrap().to_owned();
    server.kill();
    let server = home.serve();
    home.until_settled();
    assert!(server.terminate().success());

    let log = home.log();
    assert!(!log.is_empty(), "there is a log to look at");
    let secrets = [TOKEN, PAGE_TOKEN, APP_SECRET, config::VERIFY_TOKEN, &token];
    for canary in CANARIES.iter().chain(&secrets) {
        let line = log
            .lines()
            .chain(metrics.lines())
            .find(|line| line.contains(canary));
        assert_eq!(line, None, "{canary} was written down");
    }
}

/// Secrets are sealed from the first day: none of them stands in a file of the data directory.
#[test]
fn no_secret_stands_open_in_the_data_directory() {
    let (crm, graph) = (Crm::start(), Graph::start());
    let home = Home::new(&config::web_and_meta(&crm, &graph));
    let server = home.serve();
    let token = server.intake("web").rsplit('/').next().unwrap().to_owned();
    leads::send(&server.intake("web"), 1);
    home.until_n("done", 1);
    assert!(server.terminate().success());
    for file in std::fs::read_dir(home.data_dir())
        .unwrap()
        .map(|entry| entry.unwrap().path())
    {
        if !file.is_file() {
            continue;
        }
        let bytes = std::fs::read(&file).unwrap();
        for secret in [TOKEN, PAGE_TOKEN, APP_SECRET, config::VERIFY_TOKEN, &token] {
            let found = bytes
                .windows(secret.len())
                .any(|window| window == secret.as_bytes());
            assert!(!found, "{secret} stands in {}", file.display());
        }
    }
}
