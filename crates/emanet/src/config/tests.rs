//! Messages about broken files.

mod data_directory;
mod documentation;
mod revisions;
mod secrets;

use super::*;
use crate::env::Env;
use emanet_connectors::{destinations, sources};
use emanet_core::secret::Secret;

/// Every message of a configuration that is wrong.
fn problems(text: &str) -> Vec<String> {
    match check("emanet.toml", text, &Reference::resolve) {
        Ok(_) => Vec::new(),
        Err(error) => error.to_string().lines().map(str::to_owned).collect(),
    }
}

/// Each broken file gives exactly these messages, in the order of its lines.
#[track_caller]
fn check_problems(text: &str, expected: &[&str]) {
    // The lists of kinds grow with every connector.
    let quoted = |kinds: Vec<&str>, between| {
        let quoted: Vec<_> = kinds.iter().map(|kind| format!("{kind:?}")).collect();
        quoted.join(between)
    };
    let sources: Vec<_> = sources::ALL.iter().map(|k| k.kind).collect();
    let destinations: Vec<_> = destinations::ALL.iter().map(|k| k.kind).collect();
    let expected: Vec<_> = expected
        .iter()
        .map(|message| {
            message
                .replace("SOURCES", &quoted(sources.clone(), ", "))
                .replace("A SOURCE", &quoted(sources.clone(), " or "))
                .replace("DESTINATIONS", &quoted(destinations.clone(), ", "))
        })
        .collect();
    assert_eq!(problems(text), expected, "{text}");
}

#[test]
fn what_is_no_toml_is_named_with_its_line() {
    let found = problems("[server]\nlisten = \n[network\n");
    assert!(
        found[0].starts_with("emanet.toml:2: this is no TOML: "),
        "{found:?}"
    );
    check_problems(
        "[server]\nbody_bytes_max = 99999999999999999999\n",
        &["emanet.toml:2: server.body_bytes_max: this number is out of range"],
    );
}

#[test]
fn every_mistake_is_named_at_once_with_line_and_key() {
    check_problems(
        r#"[server]
lissten = "127.0.0.1:1"
listen = "localhost"
public_url = "ftp://example.com"
trusted_proxies = ["10.0.0.0/8"]
body_bytes_max = 12

[network]
allow_private = ["127.0.0.0/8", "home", 7]
extra_root_certificates = ["ca.pem"]

[workspaces.default]
language = "de"
time_zone = "Istanbul"
suspended = "no"

[colours]
red = 1
"#,
        &[
            "emanet.toml:2: server.lissten: unknown key. Did you mean \"listen\"?",
            "emanet.toml:3: server.listen: expected an address and a port (\"127.0.0.1:7420\"), found \"localhost\"",
            "emanet.toml:4: server.public_url: expected http:// or https://, a host and nothing behind the path",
            "emanet.toml:5: server.trusted_proxies[0]: expected an address (\"10.0.0.7\"), found \"10.0.0.0/8\"",
            "emanet.toml:6: server.body_bytes_max: expected a whole number from 1024 to 67108864, found 12",
            "emanet.toml:9: network.allow_private[1]: expected a range of addresses (\"10.0.0.0/8\"), found \"home\"",
            "emanet.toml:9: network.allow_private[2]: expected a range of addresses (\"10.0.0.0/8\"), found 7",
            "emanet.toml:10: network.extra_root_certificates[0]: expected a full path to a PEM file, found \"ca.pem\"",
            "emanet.toml:13: workspaces.default.language: expected \"tr\", \"en\", found \"de\"",
            "emanet.toml:14: workspaces.default.time_zone: there is no time zone \"Istanbul\"; write it like \"Europe/Istanbul\"",
            "emanet.toml:15: workspaces.default.suspended: expected true or false, found \"no\"",
            "emanet.toml:17: colours: unknown key. Known here: \"server\", \"network\", \"workspaces\", \"sources\", \"destinations\", \"flows\".",
        ],
    );
}

#[test]
fn steps_are_checked_one_by_one() {
    check_problems(
        r#"[flows.a]
[[flows.a.steps]]
name = "CRM yazımı"
kind = "crm"
[[flows.a.steps]]
name = "x"
kind = "mail"
[[flows.a.steps]]
kind = "task"
retry = { atempts_max = 3, base_ms = 0 }
fields = { title = 1 }
[flows.b]
"#,
        &[
            "emanet.toml:3: flows.a.steps[0].name: a step's name has 1 to 32 of a-z, 0-9, _ and -: it is part of keys at the vendor",
            "emanet.toml:7: flows.a.steps[1].kind: expected \"crm\", \"task\", \"check_task\", found \"mail\"",
            "emanet.toml:8: flows.a.steps[2]: `name` is missing; add name = \"crm\"",
            "emanet.toml:10: flows.a.steps[2].retry.atempts_max: unknown key. Did you mean \"attempts_max\"?",
            "emanet.toml:10: flows.a.steps[2].retry.base_ms: expected a whole number from 1 to 86400000, found 0",
            "emanet.toml:11: flows.a.steps[2].fields.title: expected a text in quotes, found 1",
            "emanet.toml:12: flows.b: a flow needs at least one step; a source that only receives has flow = false",
        ],
    );
}

#[test]
fn an_empty_file_is_a_configuration() {
    let document = parse("emanet.toml", "").unwrap();
    assert_eq!(document.server, Server::default());
    assert_eq!(document.network, Network::default());
    assert_eq!(
        document.workspaces.into_keys().collect::<Vec<_>>(),
        [DEFAULT_WORKSPACE]
    );
}

#[test]
fn unknown_kinds_and_keys_come_with_what_is_known() {
    check_problems(
        r#"[sources.web]
kind = "web_from"
sekret = "never shown"
[sources.bare]
[destinations.crm]
kind = "sandbox"
look_upp = false
limits = { concurrency = 0, rate_per_second = -1, burst = 2 }
"#,
        &[
            "emanet.toml:2: sources.web.kind: there is no kind of source called \"web_from\". Did you mean \"web_form\"? Known kinds: SOURCES.",
            "emanet.toml:4: sources.bare: `kind` is missing; add kind = A SOURCE",
            "emanet.toml:7: destinations.crm.look_upp: unknown key. Did you mean \"look_up\"?",
            "emanet.toml:8: destinations.crm.limits.burst: unknown key. Known here: \"concurrency\", \"rate_per_second\".",
            "emanet.toml:8: destinations.crm.limits.concurrency: expected a whole number from 1 to 1000, found 0",
            "emanet.toml:8: destinations.crm.limits.rate_per_second: expected a number of at least 0.001, found -1",
        ],
    );
}

/// A rate nobody can have meant would hold every lead for years.
#[test]
fn limits_out_of_all_proportion_are_refused() {
    for (limits, problem) in [
        (
            "rate_per_second = 1e-300",
            "rate_per_second: expected a number of at least 0.001, found 1e-300",
        ),
        (
            "rate_per_second = 0.0009",
            "rate_per_second: expected a number of at least 0.001, found 0.0009",
        ),
        (
            "rate_per_second = inf",
            "rate_per_second: this number is out of range",
        ),
        (
            "concurrency = 1001",
            "concurrency: expected a whole number from 1 to 1000, found 1001",
        ),
    ] {
        let text = format!("[destinations.crm]\nkind = \"sandbox\"\nlimits = {{ {limits} }}\n");
        check_problems(
            &text,
            &[&format!("emanet.toml:3: destinations.crm.limits.{problem}")],
        );
    }
}

#[test]
fn what_a_connector_objects_to_has_its_line_too() {
    check_problems(
        r#"[sources.meta]
kind = "meta_lead_ads"
app_secret = { env = "EMANET_TEST_NOT_SET" }
verify_token = ""
graph_url = "graph.facebook.com"
[destinations.crm]
kind = "sandbox"
native_key = "yes"
"#,
        &[
            "emanet.toml:1: sources.meta.page_token: is missing. Page access token: A long-lived token of the page with the permission leads_retrieval: the leads are fetched with it.",
            "emanet.toml:3: sources.meta.app_secret: the environment variable EMANET_TEST_NOT_SET is not set where the server runs",
            "emanet.toml:4: sources.meta.verify_token: the secret is empty; expected a text, { env = \"NAME\" } or { file = \"/full/path\" }; keep secrets out of the file where you can",
            "emanet.toml:5: sources.meta.graph_url: must be a whole address: https://…",
            "emanet.toml:8: destinations.crm.native_key: must be true or false",
        ],
    );
}

#[test]
fn parts_that_do_not_fit_together_are_named() {
    check_problems(
        r#"[sources.a]
kind = "web_form"
flow = "mian"
[sources.b]
kind = "web_form"
workspace = "klinik"
[sources.c]
kind = "web_form"
field_names = { "Adınız" = "ful_name" }
required = { wanted = ["phone", "fax"] }
[destinations.crm]
kind = "sandbox"
[destinations.second]
kind = "sandbox"
[flows.main]
[[flows.main.steps]]
name = "crm"
kind = "crm"
destination = "crmm"
[[flows.main.steps]]
name = "task"
kind = "task"
destination = "crm"
object = "ticket"
needs = ["later"]
[[flows.main.steps]]
name = "later"
kind = "task"
destination = "crm"
fields = { title = "{{ lead.name" }
when = "lead.phone ==="
"#,
        &[
            "emanet.toml:3: sources.a.flow: there is no flow \"mian\" in workspace \"default\". Did you mean \"main\"? Write flow = false to receive only.",
            "emanet.toml:6: sources.b.workspace: there is no workspace \"klinik\". Add [workspaces.klinik].",
            "emanet.toml:7: sources.c: which CRM do its leads go to? There are several (\"crm\", \"second\"): define a flow (docs/configuration.md shows one) and name it with flow = \"…\", or write flow = false to receive only",
            "emanet.toml:9: sources.c.field_names.\"Adınız\": there is no field \"ful_name\". Did you mean \"full_name\"? Known: \"full_name\", \"first_name\", \"last_name\", \"phone\", \"email\", \"city\", \"message\", \"ignore\".",
            "emanet.toml:10: sources.c.required.wanted[1]: expected one of full_name, phone, email, city, message, found \"fax\"",
            "emanet.toml:19: flows.main.steps[0].destination: there is no destination \"crmm\" in workspace \"default\". Did you mean \"crm\"? Known: \"crm\", \"second\".",
            "emanet.toml:24: flows.main.steps[1].object: \"crm\" knows no object \"ticket\". It knows: \"lead\", \"task\".",
            "emanet.toml:25: flows.main.steps[1].needs[0]: there is no step \"later\" before this one. Steps before it: none.",
            "emanet.toml:30: flows.main.steps[2].fields.title: unexpected end of input, expected end of variable block (line 1)",
            "emanet.toml:31: flows.main.steps[2].when: unexpected `=` (line 1)",
        ],
    );
}

/// What cannot be read is said once: not again by all that refers to it.
#[test]
fn a_mistake_is_reported_once() {
    check_problems(
        r#"[sources.web]
kind = "web_form"
flow = "main"
[destinations.crm]
kind = "sandbx"
[flows.main]
[[flows.main.steps]]
name = "crm"
kind = "crm"
destination = "crm"
"#,
        &[
            "emanet.toml:5: destinations.crm.kind: there is no kind of destination called \"sandbx\". Did you mean \"sandbox\"? Known kinds: DESTINATIONS.",
        ],
    );
}
