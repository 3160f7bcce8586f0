//! Reading `emanet.toml` into a [`Document`]: shape and spelling, every mistake with its line.
//!
//! Whether the parts fit together, and whether each connector accepts its settings, is found out by [`super::build()`].

use super::document::{
    DEFAULT_WORKSPACE, DestinationDoc, Document, FlowChoice, FlowDoc, Network, OwnSettings, Server,
    SourceDoc, StepDoc, WorkspaceDoc,
};
use super::problem::{ConfigError, Places, Problems, choices, did_you_mean};
use super::reader::Table;
use super::toml_tree;
use crate::installation::Limits;
use emanet_connectors::{destinations, sources};
use emanet_core::backoff;
use emanet_core::field::Field;
use emanet_core::lead::{LeadField, Required};
use emanet_core::normalise;
use emanet_core::secret::Secret;
use emanet_core::step::Kind;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Reads a configuration. `file` is what messages call it.
///
/// # Errors
/// Every mistake in it.
pub fn parse(file: &str, text: &str) -> Result<Document, ConfigError> {
    let (document, problems) = read(file, text)?;
    problems.into_result(&document.places)?;
    Ok(document)
}

/// Reads a configuration as far as it can be read, with the mistakes found on the way.
///
/// # Errors
/// If it is no TOML at all.
pub(super) fn read(file: &str, text: &str) -> Result<(Document, Problems), ConfigError> {
    let (root, places) = toml_tree::read(file, text)?;
    let problems = Problems::default();
    let document = read_document(text, &root, places, &problems);
    Ok((document, problems))
}

fn read_document(
    text: &str,
    root: &Map<String, Value>,
    places: Places,
    problems: &Problems,
) -> Document {
    let mut table = Table::new("", root, problems);
    let document = Document {
        text: Secret::new(text),
        server: table.table("server").map(read_server).unwrap_or_default(),
        network: table.table("network").map(read_network).unwrap_or_default(),
        workspaces: read_workspaces(&mut table),
        sources: read_each(&mut table, "sources", read_source),
        destinations: read_each(&mut table, "destinations", read_destination),
        flows: read_each(&mut table, "flows", read_flow),
        places,
    };
    table.finish();
    document
}

fn read_each<T>(
    root: &mut Table<'_>,
    key: &'static str,
    read: impl Fn(Table<'_>) -> Option<T>,
) -> BTreeMap<String, T> {
    root.named_tables(key)
        .into_iter()
        .filter_map(|(name, table)| Some((name, read(table)?)))
        .collect()
}

fn read_server(mut table: Table<'_>) -> Server {
    let default = Server::default();
    let server = Server {
        listen: table
            .parsed("listen", "an address and a port (\"127.0.0.1:7420\")")
            .unwrap_or(default.listen),
        public_url: read_public_url(&mut table),
        trusted_proxies: table
            .list("trusted_proxies", "an address (\"10.0.0.7\")", |address| {
                address.parse().ok()
            })
            .unwrap_or_default(),
        body_bytes_max: read_body_bytes_max(&mut table).unwrap_or(default.body_bytes_max),
    };
    table.finish();
    server
}

fn read_public_url(table: &mut Table<'_>) -> Option<url::Url> {
    let url: url::Url = table.parsed(
        "public_url",
        "a web address (\"https://leads.example.com\")",
    )?;
    let is_base = matches!(url.scheme(), "http" | "https")
        && url.host_str().is_some()
        && url.query().is_none()
        && url.fragment().is_none();
    if !is_base {
        table.wrong(
            "public_url",
            "expected http:// or https://, a host and nothing behind the path",
        );
        return None;
    }
    Some(url)
}

fn read_network(mut table: Table<'_>) -> Network {
    let network = Network {
        allow_private: table
            .list(
                "allow_private",
                "a range of addresses (\"10.0.0.0/8\")",
                |range| range.parse().ok(),
            )
            .unwrap_or_default(),
        extra_root_certificates: table
            .list(
                "extra_root_certificates",
                "a full path to a PEM file",
                |path| path.starts_with('/').then(|| PathBuf::from(path)),
            )
            .unwrap_or_default(),
    };
    table.finish();
    network
}

fn read_body_bytes_max(table: &mut Table<'_>) -> Option<usize> {
    const LEAST: u64 = 1024;
    const MOST: u64 = 64 * 1024 * 1024;
    table
        .number("body_bytes_max", LEAST, MOST)
        .and_then(|n| usize::try_from(n).ok())
}

fn read_workspaces(root: &mut Table<'_>) -> BTreeMap<String, WorkspaceDoc> {
    let mut workspaces = read_each(root, "workspaces", |table| Some(read_workspace(table)));
    workspaces.entry(DEFAULT_WORKSPACE.into()).or_default();
    workspaces
}

fn read_workspace(mut table: Table<'_>) -> WorkspaceDoc {
    let default = WorkspaceDoc::default();
    let workspace = WorkspaceDoc {
        language: one_of(&mut table, "language", &["tr", "en"])
            .map_or(default.language, str::to_owned),
        time_zone: read_time_zone(&mut table).unwrap_or(default.time_zone),
        suspended: table.flag("suspended").unwrap_or(false),
    };
    table.finish();
    workspace
}

fn read_time_zone(table: &mut Table<'_>) -> Option<jiff::tz::TimeZone> {
    let name = table.text("time_zone")?;
    match jiff::tz::TimeZone::get(&name) {
        Ok(zone) => Some(zone),
        Err(_) => {
            table.wrong(
                "time_zone",
                format!("there is no time zone {name:?}; write it like \"Europe/Istanbul\""),
            );
            None
        }
    }
}

fn read_source(mut table: Table<'_>) -> Option<SourceDoc> {
    let kinds: Vec<_> = sources::ALL.iter().map(|k| k.kind).collect();
    let Some(kind) = read_kind(&mut table, "source", &kinds).and_then(|k| sources::find(&k)) else {
        table.abandon();
        return None;
    };
    let source = SourceDoc {
        workspace: read_workspace_name(&mut table),
        kind,
        token: table.secret("token"),
        paused: table.flag("paused").unwrap_or(false),
        flow: read_flow_choice(&mut table),
        normalise: read_normalise(&mut table),
        required: table
            .table("required")
            .map(read_required)
            .unwrap_or_default(),
        limits: read_limits(&mut table),
        body_bytes_max: read_body_bytes_max(&mut table),
        settings: read_own(&mut table, kind.fields),
    };
    table.finish();
    Some(source)
}

fn read_destination(mut table: Table<'_>) -> Option<DestinationDoc> {
    let kinds: Vec<_> = destinations::ALL.iter().map(|k| k.kind).collect();
    let Some(kind) =
        read_kind(&mut table, "destination", &kinds).and_then(|k| destinations::find(&k))
    else {
        table.abandon();
        return None;
    };
    let destination = DestinationDoc {
        workspace: read_workspace_name(&mut table),
        kind,
        limits: read_limits(&mut table),
        settings: read_own(&mut table, kind.fields),
    };
    table.finish();
    Some(destination)
}

/// The `kind` of a source or destination, if there is such a kind.
fn read_kind(table: &mut Table<'_>, of: &str, kinds: &[&'static str]) -> Option<String> {
    let kind = table.required_text(
        "kind",
        &choices(kinds.iter().copied()).replace(", ", " or "),
    )?;
    if kinds.contains(&kind.as_str()) {
        return Some(kind);
    }
    let hint = did_you_mean(&kind, kinds.iter().copied()).unwrap_or_default();
    table.wrong(
        "kind",
        format!(
            "there is no kind of {of} called {kind:?}.{hint} Known kinds: {}.",
            choices(kinds.iter().copied())
        ),
    );
    None
}

fn read_workspace_name(table: &mut Table<'_>) -> String {
    table
        .text("workspace")
        .unwrap_or_else(|| DEFAULT_WORKSPACE.into())
}

fn read_flow_choice(table: &mut Table<'_>) -> FlowChoice {
    match table.value("flow") {
        None => FlowChoice::Default,
        Some(Value::Bool(false)) => FlowChoice::None,
        Some(Value::String(name)) if name == "none" => FlowChoice::None,
        Some(Value::String(name)) => FlowChoice::Named(name.clone()),
        Some(_) => {
            table.wrong(
                "flow",
                "expected the name of a flow in quotes, or false to receive only",
            );
            FlowChoice::None
        }
    }
}

fn read_normalise(table: &mut Table<'_>) -> normalise::Options {
    let mut options = normalise::Options::default();
    if let Some(region) = table.text("region") {
        if region.len() == 2 && region.bytes().all(|b| b.is_ascii_uppercase()) {
            options.region = region;
        } else {
            table.wrong(
                "region",
                format!(
                    "expected a country code of two capital letters (\"TR\"), found {region:?}"
                ),
            );
        }
    }
    const OURS: [&str; 8] = [
        "full_name",
        "first_name",
        "last_name",
        "phone",
        "email",
        "city",
        "message",
        "ignore",
    ];
    for (theirs, ours) in table.texts("field_names").unwrap_or_default() {
        if OURS.contains(&ours.as_str()) {
            options.fields.insert(theirs, ours);
        } else {
            let hint = did_you_mean(&ours, OURS).unwrap_or_default();
            table.wrong_below(
                "field_names",
                &theirs,
                format!(
                    "there is no field {ours:?}.{hint} Known: {}.",
                    choices(OURS)
                ),
            );
        }
    }
    options
}

fn read_required(mut table: Table<'_>) -> Required {
    const FIELDS: &str = "one of full_name, phone, email, city, message";
    let field = |text: &str| serde_json::from_value::<LeadField>(text.into()).ok();
    let default = Required::default();
    let required = Required {
        wanted: table
            .list("wanted", FIELDS, field)
            .unwrap_or(default.wanted),
        any_of: table
            .list("any_of", FIELDS, field)
            .unwrap_or(default.any_of),
    };
    table.finish();
    required
}

/// Calls per second below which a limit is taken for a mistake: one call in about a quarter of an hour. A rate far below holds
/// every lead for years, and nothing would show why.
const SLOWEST_RATE: f64 = 0.001;

fn read_limits(table: &mut Table<'_>) -> Limits {
    let mut limits = Limits::default();
    let Some(mut table) = table.table("limits") else {
        return limits;
    };
    if let Some(n) = table.number("concurrency", 1, 1_000) {
        limits.concurrency = u32::try_from(n).unwrap_or(limits.concurrency);
    }
    limits.rate_per_second = table.at_least("rate_per_second", SLOWEST_RATE);
    table.finish();
    limits
}

/// The connector's own settings, secrets apart.
fn read_own(table: &mut Table<'_>, fields: &'static [Field]) -> OwnSettings {
    let secrets = fields
        .iter()
        .filter(|field| field.secret)
        .filter_map(|field| Some((field.key.to_owned(), table.secret(field.key)?)))
        .collect();
    let plain: Vec<_> = fields
        .iter()
        .filter(|field| !field.secret)
        .map(|field| field.key)
        .collect();
    OwnSettings {
        values: table.rest(&plain),
        secrets,
    }
}

fn read_flow(mut table: Table<'_>) -> Option<FlowDoc> {
    let flow = FlowDoc {
        workspace: read_workspace_name(&mut table),
        steps: table
            .listed_tables("steps")
            .into_iter()
            .filter_map(read_step)
            .collect(),
    };
    table.finish();
    Some(flow)
}

fn read_step(mut table: Table<'_>) -> Option<StepDoc> {
    let name = read_step_name(&mut table);
    let kind = match one_of(&mut table, "kind", &["crm", "task", "check_task"]) {
        Some("crm") => Some(Kind::Crm),
        Some("task") => Some(Kind::Task),
        Some(_) => Some(Kind::CheckTask),
        None => {
            table.required_text("kind", "\"crm\", \"task\" or \"check_task\"");
            None
        }
    };
    let step = StepDoc {
        name: name.clone().unwrap_or_default(),
        kind: kind.unwrap_or(Kind::Crm),
        destination: table.text("destination"),
        object: table.text("object"),
        fields: table
            .texts("fields")
            .unwrap_or_default()
            .into_iter()
            .collect(),
        when: table.text("when"),
        needs: table
            .list("needs", "the name of a step", |name| Some(name.to_owned()))
            .unwrap_or_default(),
        retry: table.table("retry").map(read_retry).unwrap_or_default(),
        path: table.path.clone(),
    };
    table.finish();
    (name.is_some() && kind.is_some()).then_some(step)
}

/// A step's name: part of every idempotency key, so plain.
fn read_step_name(table: &mut Table<'_>) -> Option<String> {
    let name = table.required_text("name", "\"crm\"")?;
    let plain = (1..=32).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-');
    if !plain {
        table.wrong(
            "name",
            "a step's name has 1 to 32 of a-z, 0-9, _ and -: it is part of keys at the vendor",
        );
        return None;
    }
    Some(name)
}

fn read_retry(mut table: Table<'_>) -> backoff::Policy {
    const DAY_MS: u64 = 24 * 60 * 60 * 1000;
    let default = backoff::Policy::default();
    let policy = backoff::Policy {
        base_ms: table
            .number("base_ms", 1, DAY_MS)
            .unwrap_or(default.base_ms),
        cap_ms: table.number("cap_ms", 1, DAY_MS).unwrap_or(default.cap_ms),
        attempts_max: table
            .number("attempts_max", 1, 1000)
            .and_then(|n| u32::try_from(n).ok())
            .unwrap_or(default.attempts_max),
    };
    table.finish();
    policy
}

fn one_of(
    table: &mut Table<'_>,
    key: &'static str,
    all: &'static [&'static str],
) -> Option<&'static str> {
    let given = table.text(key)?;
    let found = all.iter().copied().find(|one| *one == given);
    if found.is_none() {
        table.wrong(
            key,
            format!("expected {}, found {given:?}", choices(all.iter().copied())),
        );
    }
    found
}
