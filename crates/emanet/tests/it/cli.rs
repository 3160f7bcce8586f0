//! The fixed points scripts rely on: ready line, status, lists, exit codes; and a second server kept out.

use crate::config;
use crate::crm::Crm;
use crate::http::{get, post};
use crate::leads;
use crate::process::{Home, program};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

#[test]
fn status_has_the_promised_keys() {
    let crm = Crm::start();
    let home = Home::new(&config::web(&crm));
    let server = home.serve();
    leads::send(&server.intake("web"), 1);
    let status = home.until_n("done", 1).0;
    for key in [
        "pending",
        "processing",
        "held",
        "done",
        "ignored",
        "open_dead_letters",
        "received",
        "dead",
        "erased",
    ] {
        assert!(status[key].is_u64(), "{key} in {status}");
    }
    assert!(
        status["oldest_pending_seconds"].is_number() || status["oldest_pending_seconds"].is_null(),
        "{status}"
    );
    assert!(
        status["by_class"].is_object() && status["closes"] == true,
        "{status}"
    );
}

#[test]
fn the_ready_line_says_where_everything_is() {
    let crm = Crm::start();
    let home = Home::new(&config::web(&crm));
    let server = home.serve();
    let ready = &server.ready;
    assert_eq!(ready["ready"], true);
    assert!(
        ready["api"]
            .as_str()
            .is_some_and(|at| at.starts_with("unix:")),
        "{ready}"
    );
    for key in ["console", "login"] {
        assert!(
            ready[key]
                .as_str()
                .is_some_and(|url| url.starts_with("http://")),
            "{key} in {ready}"
        );
    }
    assert!(
        ready["intake"]["web"]
            .as_str()
            .is_some_and(|url| url.contains("/in/")),
        "{ready}"
    );
    assert_eq!(get(&format!("{}/healthz", server.base())).status, 200);
    assert_eq!(get(&format!("{}/readyz", server.base())).status, 200);
    for path in ["/", "/console/"] {
        assert_eq!(
            get(&format!("{}{path}", server.base())).status,
            303,
            "{path}"
        );
    }
    let metrics = get(&format!("{}/metrics", server.base()));
    assert!(metrics.body.contains("emanet_"), "{}", metrics.body);
}

/// Without configuration: a web form, a sandbox CRM, and a first lead that arrives.
#[test]
fn without_configuration_the_first_lead_arrives_in_the_sandbox() {
    let home = Home::new("");
    let server = home.serve_unconfigured();
    let intake = server.ready["intake"]
        .as_object()
        .unwrap()
        .values()
        .next()
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(leads::send(&intake, 1).status, 200);
    home.until_n("done", 1);
    let event = &home.lines(&["events", "list"])[0];
    let story = home.json(&["events", "show", event["id"].as_str().unwrap()]);
    assert!(
        story["steps"]
            .as_array()
            .is_some_and(|steps| !steps.is_empty()),
        "{story}"
    );
    let mode = std::fs::metadata(home.data_dir())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(
        mode & 0o777,
        0o700,
        "the data directory is its owner's alone"
    );
}

/// The whole story of one lead: received, steps, attempts with class, effect and hint.
#[test]
fn the_story_of_a_lead_names_its_steps_and_attempts() {
    let crm = Crm::start();
    let home = Home::new(&config::web(&crm));
    let server = home.serve();
    leads::send(&server.intake("web"), 1);
    home.until_n("done", 1);
    let id = home.lines(&["events", "list"])[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let story = home.json(&["events", "show", &id]);
    assert_eq!(story["state"], "done", "{story}");
    let steps = story["steps"].as_array().unwrap();
    let crm_step = steps
        .iter()
        .find(|s| s["kind"] == "crm")
        .unwrap_or_else(|| panic!("{story}"));
    assert_eq!(crm_step["state"], "done");
    assert!(
        story.to_string().contains("lead-00001"),
        "the CRM's id of the lead: {story}"
    );
    let table = home.run(&["events", "show", &id]);
    assert!(
        table.status.success() && table.stdout.contains("crm"),
        "{table:?}"
    );
}

/// F1's neighbour: the embedded database has one writer.
#[test]
fn a_second_server_on_the_same_directory_is_refused_with_a_clear_message() {
    let crm = Crm::start();
    let home = Home::new(&config::web(&crm));
    let _server = home.serve();
    let refused = home.try_serve().err().expect("it may not start");
    assert!(!refused.success());
    assert!(
        home.log().contains(home.data_dir().to_str().unwrap()),
        "says which directory: {}",
        home.log()
    );
}

#[test]
fn a_mistake_in_the_configuration_is_named_with_line_and_key() {
    let home =
        Home::new("[sources.web]\nkind = \"web_form\"\nthank_yu_url = \"https://example.com\"\n");
    let refused = home.try_serve().err().expect("it may not start");
    assert!(!refused.success());
    let log = home.log();
    assert!(
        log.contains("emanet.toml:3") && log.contains("thank_yu_url"),
        "{log}"
    );
}

/// What the documentation shows can be copied: every configuration in it is taken as it is.
#[test]
fn every_configuration_in_the_documentation_is_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let connectors = [
        "sources/web_form",
        "sources/meta_lead_ads",
        "destinations/http",
        "destinations/sandbox",
    ];
    let pages = connectors.map(|folder| format!("crates/connectors/src/{folder}/docs.md"));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("emanet.toml");
    for page in pages
        .iter()
        .map(String::as_str)
        .chain(["README.md", "README.tr.md"])
    {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        let blocks: Vec<&str> = text
            .split("```toml\n")
            .skip(1)
            .filter_map(|b| b.split("```").next())
            .collect();
        assert!(!blocks.is_empty(), "{page} shows a configuration");
        for block in blocks {
            std::fs::write(&file, block).unwrap();
            let variables = block
                .split("env = \"")
                .skip(1)
                .filter_map(|rest| rest.split('"').next());
            let output = program()
                .args(["config", "check"])
                .arg(&file)
                .envs(variables.map(|name| (name, "a-value-for-the-check")))
                .output()
                .unwrap();
            assert!(
                output.status.success(),
                "{page}:\n{}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}

/// The commands work without a server too: then they open the data directory themselves.
#[test]
fn the_commands_work_while_no_server_runs() {
    let crm = Crm::start();
    let home = Home::new(&config::web(&crm));
    let server = home.serve();
    leads::send(&server.intake("web"), 1);
    home.until_n("done", 1);
    assert!(server.terminate().success());
    assert_eq!(home.status().n("done"), 1);
    let event = &home.lines(&["events", "list"])[0];
    assert_eq!(event["email"], leads::email(1));
    let doctor = home.run(&["doctor"]);
    assert!(doctor.stdout.contains("sqlite"), "{doctor:?}");
}

/// `send` signs as the real platform does, so it tests the real path.
#[test]
fn send_posts_as_the_platform_does() {
    let (crm, graph) = (Crm::start(), crate::graph::Graph::start());
    let home = Home::new(&config::web_and_meta(&crm, &graph));
    let _server = home.serve();
    let sent = home.run(&["send", "--json"]);
    assert!(sent.status.success(), "{sent:?}");
    home.until_n("received", 1);
    let sent = home.run(&["send", "--source", "meta", "--json"]);
    assert!(sent.status.success(), "{sent:?}");
    home.until_n("received", 2);
}

/// The demo's promise: a CRM that fails in every way, and a sum that closes.
#[test]
fn the_demo_loses_and_doubles_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let output = program()
        .args(["demo", "--json", "--leads", "120", "--seed", "7"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{stdout}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let last: Value = serde_json::from_str(stdout.lines().last().expect("a last line")).unwrap();
    let n = |key: &str| {
        last[key]
            .as_u64()
            .unwrap_or_else(|| panic!("{key} in {last}"))
    };
    assert_eq!((n("lost"), n("doubled")), (0, 0), "{last}");
    assert_eq!(
        n("received"),
        n("delivered") + n("held") + n("dead") + n("ignored"),
        "{last}"
    );
    assert!(
        n("received") >= 120 && last["seconds"].is_number(),
        "{last}"
    );
}

#[test]
fn completions_and_help_need_no_installation() {
    for words in [
        vec!["completions", "bash"],
        vec!["--help"],
        vec!["--version"],
    ] {
        let output = program().args(&words).output().unwrap();
        assert!(
            output.status.success() && !output.stdout.is_empty(),
            "{words:?}"
        );
    }
    let wrong = program().arg("no-such-command").output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
}

/// API-3: errors carry a stable code, over HTTP too.
#[test]
fn an_unknown_route_answers_by_the_error_contract() {
    let crm = Crm::start();
    let home = Home::new(&config::web(&crm));
    let server = home.serve();
    let answer = post(
        &format!("{}/api/v1/no-such-thing", server.base()),
        "application/json",
        b"{}",
    );
    let error = &answer.json()["error"];
    assert!(
        error["code"].is_string() && error["trace_id"].is_string(),
        "{answer:?}"
    );
}
