//! Commands that only look: `status`, `events list`, `dead list|show`, `doctor`.

use super::args::{Doctor, EventsList, Range, Rows, Selection};
use super::client::{Client, Query};
use super::exit::{Exit, Failed};
use super::output::{Output, at, list, time_at};
use crate::env::Env;
use clap::ValueEnum;
use serde_json::{Value, json};

pub(super) async fn status(client: &Client, output: Output) -> Result<(), Failed> {
    let status = client.get("/status").await?;
    if output.json {
        output.json_line(&status)?;
    } else {
        output.text(&status_text(&status))?;
    }
    let closes = status.get("closes").and_then(Value::as_bool);
    if closes == Some(false) {
        return Err(Failed::new(
            Exit::Failed,
            "the sum does not close: run `emanet doctor --deep`",
        ));
    }
    Ok(())
}

pub(super) fn status_text(status: &Value) -> String {
    let mut text = format!("received            {}\n", at(status, "/received"));
    for state in [
        "pending",
        "processing",
        "held",
        "done",
        "dead",
        "ignored",
        "erased",
    ] {
        text.push_str(&format!(
            "  {state:<18}{}\n",
            at(status, &format!("/{state}"))
        ));
    }
    text.push_str(&format!(
        "oldest pending      {} s\nopen dead letters   {}\n",
        at(status, "/oldest_pending_seconds"),
        at(status, "/open_dead_letters"),
    ));
    let by_class = status.get("by_class").and_then(Value::as_object);
    for (class, count) in by_class.into_iter().flatten() {
        if count != &json!(0) {
            text.push_str(&format!("  {class:<18}{count}\n"));
        }
    }
    text
}

pub(super) async fn events(
    client: &Client,
    output: Output,
    env: &Env,
    args: EventsList,
) -> Result<(), Failed> {
    let mut query = Query::default();
    query.add("source", args.source);
    query.add("state", args.state.map(|state| word(&state)));
    add_range(&mut query, args.range, env);
    let head = [
        "event", "received", "state", "source", "name", "phone", "e-mail",
    ];
    let row = |event: &Value| {
        vec![
            at(event, "/id"),
            time_at(event, "/received_at"),
            state_of(event),
            at(event, "/source"),
            at(event, "/name"),
            at(event, "/phone"),
            at(event, "/email"),
        ]
    };
    rows(client, output, "/events", query, &args.rows, &head, row).await
}

/// The state of an event in one word, with what is worth adding.
pub(super) fn state_of(event: &Value) -> String {
    let state = at(event, "/state");
    if event.get("processing") == Some(&json!(true)) {
        return "processing".into();
    }
    match at(event, "/ignored_because") {
        reason if reason.is_empty() => state,
        reason => format!("{state} ({reason})"),
    }
}

pub(super) async fn dead_letters(
    client: &Client,
    output: Output,
    env: &Env,
    selection: Selection,
    resolved: bool,
    args: &Rows,
) -> Result<(), Failed> {
    let mut query = Query::default();
    query.add("open", (!resolved).then_some(true));
    query.add("source", selection.source);
    query.add("destination", selection.destination);
    query.add("class", selection.class.map(|class| word(&class)));
    query.add("cause", selection.cause);
    query.add("step", selection.step);
    add_range(&mut query, selection.range, env);
    let head = [
        "dead letter",
        "since",
        "class",
        "source",
        "step",
        "what",
        "resolved",
    ];
    let row = |letter: &Value| {
        vec![
            at(letter, "/id"),
            time_at(letter, "/dead_at"),
            at(letter, "/failure/class"),
            at(letter, "/source"),
            step_of(letter),
            at(letter, "/failure/message"),
            at(letter, "/resolution"),
        ]
    };
    rows(client, output, "/dead-letters", query, args, &head, row).await
}

/// Step and target of a dead letter: `crm → acme`.
fn step_of(letter: &Value) -> String {
    match (at(letter, "/step"), at(letter, "/target/name")) {
        (step, target) if target.is_empty() => step,
        (step, target) if step.is_empty() => target,
        (step, target) => format!("{step} → {target}"),
    }
}

pub(super) async fn dead_letter(client: &Client, output: Output, id: &str) -> Result<(), Failed> {
    let letter = client
        .get(&format!("/dead-letters/{}", path_part(id)))
        .await?;
    if output.json {
        output.json_line(&letter)?;
    } else {
        output.text(&dead_letter_text(&letter))?;
    }
    Ok(())
}

pub(super) fn dead_letter_text(letter: &Value) -> String {
    let mut text = format!("{}\n", at(letter, "/id"));
    let lines = [
        ("event", at(letter, "/event")),
        (
            "source",
            format!("{} {}", at(letter, "/source"), at(letter, "/source_ref")),
        ),
        ("step", step_of(letter)),
        ("since", time_at(letter, "/dead_at")),
        (
            "class",
            format!(
                "{}, {}",
                at(letter, "/failure/class"),
                at(letter, "/failure/effect")
            ),
        ),
        ("answer", answer_of(letter)),
        ("what", at(letter, "/failure/message")),
        ("said", at(letter, "/answer")),
        ("to do", at(letter, "/failure/hint")),
        ("body", body_of(letter)),
        ("cause", at(letter, "/cause")),
        ("attempts", at(letter, "/attempts")),
        ("owner", at(letter, "/owner")),
        ("after", at(letter, "/previous")),
        ("resolved", resolved_of(letter)),
        ("object", at(letter, "/object_id")),
    ];
    for (name, value) in lines {
        if !value.is_empty() {
            text.push_str(&format!("  {name:<10}{value}\n"));
        }
    }
    text
}

/// Where hints send people to the stored body: how to see it. It is what is left to look at where what died is the event as a whole.
fn body_of(letter: &Value) -> String {
    match at(letter, "/step") {
        none if none.is_empty() => format!(
            "`emanet events show {} --raw` prints it as it was received",
            at(letter, "/event")
        ),
        _ => String::new(),
    }
}

fn answer_of(letter: &Value) -> String {
    [
        at(letter, "/failure/status"),
        at(letter, "/failure/vendor_code"),
        at(letter, "/failure/field"),
    ]
    .into_iter()
    .filter(|part| !part.is_empty())
    .collect::<Vec<_>>()
    .join(" ")
}

fn resolved_of(letter: &Value) -> String {
    match at(letter, "/resolution") {
        none if none.is_empty() => none,
        how => format!(
            "{how} by {} at {}: {}",
            at(letter, "/resolved_by"),
            time_at(letter, "/resolved_at"),
            at(letter, "/note")
        ),
    }
}

pub(super) async fn doctor(client: &Client, output: Output, args: Doctor) -> Result<(), Failed> {
    let findings = client
        .post("/doctor", &json!({ "deep": args.deep }))
        .await?;
    if output.json {
        output.json_line(&findings)?;
    } else {
        output.text(&doctor_text(&findings, client.is_served()))?;
    }
    match findings.get("ok") {
        Some(Value::Bool(true)) => Ok(()),
        _ => Err(Failed::said(Exit::Failed)),
    }
}

fn doctor_text(findings: &Value, is_served: bool) -> String {
    let mut text = String::new();
    for check in list(findings, "/checks") {
        let mark = match at(check, "/finding").as_str() {
            "ok" => "ok    ",
            "note" => "note  ",
            _ => "FAILED",
        };
        text.push_str(&format!(
            "{mark}  {}: {}\n",
            at(check, "/name"),
            at(check, "/message")
        ));
        let hint = at(check, "/hint");
        if !hint.is_empty() {
            text.push_str(&format!("        {hint}\n"));
        }
    }
    if !is_served {
        text.push_str("note    server: none is running on this data directory\n");
    }
    text
}

pub(super) async fn sandbox(
    client: &Client,
    output: Output,
    destination: &str,
    object: Option<String>,
    args: &Rows,
) -> Result<(), Failed> {
    let mut query = Query::default();
    query.add("object", object);
    let path = format!("/sandbox/{}/objects", path_part(destination));
    let head = ["id", "object", "external id", "created", "fields"];
    let row = |object: &Value| {
        let fields = object.get("fields").and_then(Value::as_object);
        let fields: Vec<_> = fields
            .into_iter()
            .flatten()
            .map(|(name, value)| format!("{name}: {}", at(value, "")))
            .collect();
        vec![
            at(object, "/id"),
            at(object, "/object"),
            at(object, "/external_id"),
            time_at(object, "/created_at"),
            fields.join(", "),
        ]
    };
    rows(client, output, &path, query, args, &head, row).await
}

/// Lists rows: as they come for programs, as one table for people.
pub(super) async fn rows(
    client: &Client,
    output: Output,
    path: &str,
    query: Query,
    args: &Rows,
    head: &[&str],
    row: impl Fn(&Value) -> Vec<String>,
) -> Result<(), Failed> {
    let limit = (!args.all).then_some(args.limit);
    let mut table = Vec::new();
    client
        .rows(path, &query, limit, |value| {
            if output.json {
                output.json_line(&value)
            } else {
                table.push(row(&value));
                Ok(())
            }
        })
        .await?;
    if !output.json {
        output.table(head, table)?;
    }
    Ok(())
}

fn add_range(query: &mut Query, range: Range, env: &Env) {
    query.add("since", range.since.map(|when| when.from(env.now())));
    query.add("until", range.until.map(|when| when.from(env.now())));
    query.add("text", range.text);
}

/// The word of a choice on the command line.
pub(super) fn word(choice: &impl ValueEnum) -> String {
    choice
        .to_possible_value()
        .map(|value| value.get_name().to_owned())
        .expect("no choice is hidden")
}

/// An id or name as part of a path.
pub(super) fn path_part(text: &str) -> String {
    const KEEP: &[u8] = b"-_.~";
    let mut part = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || KEEP.contains(&byte) {
            part.push(char::from(byte));
        } else {
            part.push_str(&format!("%{byte:02X}"));
        }
    }
    part
}
