//! `events show`: the story of one lead, readable from top to bottom.

use super::client::Client;
use super::exit::Failed;
use super::looking::{dead_letter_text, path_part, state_of};
use super::output::{Output, at, list, time_at};
use serde_json::{Value, json};

pub(super) async fn show(
    client: &Client,
    output: Output,
    id: &str,
    is_raw: bool,
) -> Result<(), Failed> {
    if is_raw {
        return show_raw(client, output, id).await;
    }
    let story = client.get(&format!("/events/{}", path_part(id))).await?;
    if output.json {
        output.json_line(&story)?;
    } else {
        output.text(&text(&story))?;
    }
    Ok(())
}

pub(super) fn text(story: &Value) -> String {
    let mut lines = vec![format!("{}  {}", at(story, "/id"), state_of(story))];
    received(story, &mut lines);
    lead(story, &mut lines);
    for step in list(story, "/steps") {
        step_lines(step, &mut lines);
    }
    for letter in list(story, "/dead_letters") {
        lines.push(String::new());
        lines.push(format!(
            "dead letter {}",
            dead_letter_text(letter).trim_end()
        ));
    }
    for link in list(story, "/links") {
        lines.push(String::new());
        lines.push(format!(
            "there now   {} {} in {}",
            at(link, "/object"),
            at(link, "/id"),
            at(link, "/destination/name")
        ));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// The body byte for byte: what cannot be read is looked at as it came.
async fn show_raw(client: &Client, output: Output, id: &str) -> Result<(), Failed> {
    let body = client
        .bytes(&format!("/events/{}/raw", path_part(id)))
        .await?;
    Ok(output.bytes(&body)?)
}

fn received(story: &Value, lines: &mut Vec<String>) {
    let mut entry = |name: &str, value: String| {
        if !value.is_empty() {
            lines.push(format!("  {name:<11}{value}"));
        }
    };
    entry("workspace", at(story, "/workspace"));
    entry(
        "source",
        format!("{} {}", at(story, "/source"), at(story, "/source_ref")),
    );
    entry("submitted", time_at(story, "/created_at"));
    entry("received", time_at(story, "/received_at"));
    if story.get("deliveries").and_then(Value::as_u64) > Some(1) {
        entry(
            "delivered",
            format!("{} times; kept once", at(story, "/deliveries")),
        );
    }
    if story.get("request").is_some_and(Value::is_object) {
        entry(
            "request",
            format!(
                "{} with {} bytes, receipt {}",
                at(story, "/request/method"),
                at(story, "/request/body_bytes"),
                at(story, "/request/receipt")
            ),
        );
        for header in list(story, "/request/headers") {
            entry("", format!("{}: {}", at(header, "/0"), at(header, "/1")));
        }
    } else {
        entry("request", "erased".into());
    }
    entry("unreadable", at(story, "/unreadable"));
    entry("revision", at(story, "/revision"));
    entry("due", time_at(story, "/due_at"));
}

fn lead(story: &Value, lines: &mut Vec<String>) {
    let Some(lead) = story.get("lead").filter(|lead| lead.is_object()) else {
        return;
    };
    lines.push(String::new());
    lines.push(if lead.get("is_test") == Some(&json!(true)) {
        "lead (a test)".into()
    } else {
        "lead".into()
    });
    let either = |a: &str, b: &str| match at(lead, a) {
        empty if empty.is_empty() => at(lead, b),
        value => value,
    };
    let values = [
        ("name", at(lead, "/full_name")),
        ("phone", either("/phone/e164", "/phone/raw")),
        ("e-mail", either("/email/address", "/email/raw")),
        ("city", at(lead, "/city")),
        ("message", at(lead, "/message")),
    ];
    for (name, value) in values {
        if !value.is_empty() {
            lines.push(format!("  {name:<11}{value}"));
        }
    }
    for answer in list(lead, "/answers") {
        let values: Vec<_> = list(answer, "/values").iter().map(|v| at(v, "")).collect();
        lines.push(format!("  {}: {}", at(answer, "/name"), values.join(", ")));
    }
    for problem in list(lead, "/problems") {
        lines.push(format!(
            "  note       {}: {}",
            at(problem, "/field"),
            at(problem, "/code")
        ));
    }
}

fn step_lines(step: &Value, lines: &mut Vec<String>) {
    lines.push(String::new());
    lines.push(format!(
        "step {}  {}  ({} to {})",
        at(step, "/name"),
        at(step, "/state"),
        at(step, "/object"),
        at(step, "/target/name")
    ));
    let skipped = at(step, "/skipped_because");
    if !skipped.is_empty() {
        lines.push(format!("  skipped: {skipped}"));
    }
    for attempt in list(step, "/tries") {
        attempt_lines(attempt, lines);
    }
    let held = at(step, "/held_under");
    if !held.is_empty() {
        lines.push(format!(
            "  held until {} works again (cause {held})",
            at(step, "/target/name")
        ));
        let reason = at(step, "/held_because");
        if !reason.is_empty() {
            lines.push(format!("       what: {reason}"));
        }
    }
    let next = time_at(step, "/next_at");
    if !next.is_empty() {
        lines.push(format!("  next try {next}"));
    }
}

fn attempt_lines(attempt: &Value, lines: &mut Vec<String>) {
    lines.push(format!(
        "  #{} {}  {}{}",
        at(attempt, "/number"),
        time_at(attempt, "/started_at"),
        outcome_of(attempt),
        if attempt.get("counts") == Some(&json!(false)) {
            "  (does not count)"
        } else {
            ""
        }
    ));
    for call in list(attempt, "/calls") {
        lines.push(format!(
            "       {}  {}  → {} in {} ms",
            at(call, "/name"),
            at(call, "/request"),
            at(call, "/outcome"),
            at(call, "/millis")
        ));
    }
    for (name, pointer) in [
        ("what", "/failure/message"),
        ("to do", "/failure/hint"),
        ("answer", "/answer"),
    ] {
        let value = at(attempt, pointer);
        if !value.is_empty() {
            lines.push(format!("       {name}: {value}"));
        }
    }
}

fn outcome_of(attempt: &Value) -> String {
    if attempt.get("failure").is_some_and(Value::is_object) {
        return format!(
            "{}, {}",
            at(attempt, "/failure/class"),
            at(attempt, "/failure/effect")
        );
    }
    if attempt.get("delivered").is_some_and(Value::is_object) {
        return format!(
            "{} {} {}",
            at(attempt, "/delivered/how"),
            at(attempt, "/delivered/object"),
            at(attempt, "/delivered/id")
        );
    }
    match at(attempt, "/ended_at") {
        none if none.is_empty() => "under way, or its process died in it".into(),
        _ => "no result".into(),
    }
}
