//! Commands that change something: `apply`, `config`, `dead resolve`, `replay`. Each says what it touched.

use super::args::{Apply, ReplayStart, Resolve, Selection};
use super::client::Client;
use super::exit::{Exit, Failed};
use super::looking::{dead_letter_text, path_part, word};
use super::output::{Output, at, list, remark, time_at};
use crate::config::{self, Reference};
use crate::env::Env;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::Duration;

pub(super) async fn apply(client: &Client, output: Output, args: Apply) -> Result<(), Failed> {
    let body = json!({
        "text": read_file(&args.file)?,
        "file": args.file.display().to_string(),
        "dry_run": args.dry_run,
        "by": who(),
    });
    let applied = client.post("/config", &body).await?;
    if output.json {
        output.json_line(&applied)?;
        return Ok(());
    }
    for line in list(&applied, "/differences") {
        output.text(&format!("{}\n", at(line, "")))?;
    }
    for note in list(&applied, "/notes") {
        remark(&format!("note: {}", at(note, "")));
    }
    remark(&if args.dry_run {
        "nothing was changed (dry run)".into()
    } else {
        format!("revision {} is in force", at(&applied, "/revision"))
    });
    Ok(())
}

/// Checks a file here, without any installation.
pub(super) fn config_check(output: Output, file: &Path) -> Result<(), Failed> {
    let text = read_file(file)?;
    let name = file.display().to_string();
    let checked = config::check(&name, &text, &Reference::resolve_here);
    let problems = match &checked {
        Ok(_) => Vec::new(),
        Err(error) => error
            .problems
            .iter()
            .map(|p| json!({ "line": p.line, "key": p.key, "message": p.message }))
            .collect(),
    };
    let notes = checked.as_ref().map(config::notes).unwrap_or_default();
    if output.json {
        output.json_line(
            &json!({ "ok": checked.is_ok(), "file": name, "problems": problems, "notes": notes }),
        )?;
    }
    match checked {
        Ok(_) => {
            for note in notes {
                remark(&format!("note: {note}"));
            }
            remark(&format!("{name} is in order"));
            Ok(())
        }
        Err(_) if output.json => Err(Failed::said(Exit::Refused)),
        Err(error) => Err(Failed::new(Exit::Refused, error.to_string())),
    }
}

pub(super) async fn config_show(client: &Client, output: Output) -> Result<(), Failed> {
    let shown = client.get("/config").await?;
    if output.json {
        output.json_line(&shown)?;
        return Ok(());
    }
    let document = shown.get("document").unwrap_or(&Value::Null);
    let text = toml::to_string_pretty(document)
        .map_err(|error| Failed::new(Exit::Failed, format!("cannot be shown: {error}")))?;
    output.text(&format!(
        "# revision {}, applied by {} at {}\n{text}",
        at(&shown, "/revision"),
        at(&shown, "/by"),
        time_at(&shown, "/at")
    ))?;
    Ok(())
}

pub(super) async fn resolve(client: &Client, output: Output, args: Resolve) -> Result<(), Failed> {
    let mut body = json!({
        "resolution": word(&args.resolution),
        "note": args.note,
        "by": who(),
    });
    if let Some(id) = args.object_id {
        body["object_id"] = id.into();
    }
    let path = format!("/dead-letters/{}/resolve", path_part(&args.id));
    let letter = client.post(&path, &body).await?;
    if output.json {
        output.json_line(&letter)?;
    } else {
        output.text(&dead_letter_text(&letter))?;
    }
    Ok(())
}

pub(super) async fn replay_start(
    client: &Client,
    output: Output,
    env: &Env,
    args: ReplayStart,
) -> Result<(), Failed> {
    let body = json!({
        "selection": selection_body(args.selection, args.dead_letter, env),
        "stages": args.stages,
        "reason": args.reason,
        "by": who(),
    });
    let mut replay = client.post("/replays", &body).await?;
    if !client.is_served() {
        remark("no server is running: it will be sent when one is started");
    } else if args.wait {
        replay = wait(client, &at(&replay, "/id")).await?;
    }
    print_replay(output, &replay)?;
    match at(&replay, "/state").as_str() {
        "failed" | "stopped" => Err(Failed::said(Exit::Failed)),
        _ => Ok(()),
    }
}

pub(super) async fn replay_status(
    client: &Client,
    output: Output,
    id: Option<String>,
) -> Result<(), Failed> {
    if let Some(id) = id {
        let replay = client.get(&format!("/replays/{}", path_part(&id))).await?;
        return Ok(print_replay(output, &replay)?);
    }
    let head = [
        "replay", "started", "state", "stage", "waiting", "running", "done", "failed", "reason",
    ];
    let rows = super::args::Rows {
        limit: 50,
        all: false,
    };
    super::looking::rows(
        client,
        output,
        "/replays",
        super::client::Query::default(),
        &rows,
        &head,
        |replay| {
            vec![
                at(replay, "/id"),
                time_at(replay, "/started_at"),
                at(replay, "/state"),
                at(replay, "/stage"),
                at(replay, "/total/waiting"),
                at(replay, "/total/running"),
                at(replay, "/total/done"),
                at(replay, "/total/failed"),
                at(replay, "/reason"),
            ]
        },
    )
    .await
}

pub(super) async fn replay_stop(
    client: &Client,
    output: Output,
    id: &str,
    note: &str,
) -> Result<(), Failed> {
    let path = format!("/replays/{}/stop", path_part(id));
    let replay = client
        .post(&path, &json!({ "note": note, "by": who() }))
        .await?;
    Ok(print_replay(output, &replay)?)
}

fn print_replay(output: Output, replay: &Value) -> std::io::Result<()> {
    if output.json {
        return output.json_line(replay);
    }
    let mut text = format!("{}  {}\n", at(replay, "/id"), at(replay, "/state"));
    let lines = [
        (
            "reason",
            format!("{} ({})", at(replay, "/reason"), at(replay, "/by")),
        ),
        ("started", time_at(replay, "/started_at")),
        ("stage", at(replay, "/stage")),
        ("waiting", at(replay, "/total/waiting")),
        ("running", at(replay, "/total/running")),
        ("done", at(replay, "/total/done")),
        ("failed", at(replay, "/total/failed")),
        ("ended", time_at(replay, "/ended/at")),
        ("because", at(replay, "/ended/note")),
    ];
    for (name, value) in lines {
        if !value.is_empty() {
            text.push_str(&format!("  {name:<9}{value}\n"));
        }
    }
    output.text(&text)
}

/// Follows a replay to its end; the bar is drawn on terminals only.
async fn wait(client: &Client, id: &str) -> Result<Value, Failed> {
    const LOOK_EVERY: Duration = Duration::from_millis(300);
    let bar = ProgressBar::new(0).with_style(
        ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}").expect("the template is valid"),
    );
    loop {
        let replay = client.get(&format!("/replays/{}", path_part(id))).await?;
        let count = |pointer: &str| replay.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        let ended = count("/total/done") + count("/total/failed");
        bar.set_length(ended + count("/total/waiting") + count("/total/running"));
        bar.set_position(ended);
        bar.set_message(format!(
            "stage {}, {} failed",
            count("/stage"),
            count("/total/failed")
        ));
        if at(&replay, "/state") != "running" {
            bar.finish_and_clear();
            return Ok(replay);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn selection_body(selection: Selection, dead_letter: Option<String>, env: &Env) -> Value {
    let mut body = Map::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            body.insert(name.into(), value.into());
        }
    };
    let time = |when: super::args::When| when.from(env.now()).to_string();
    add("source", selection.source);
    add("destination", selection.destination);
    add("class", selection.class.map(|class| word(&class)));
    add("cause", selection.cause);
    add("dead_letter", dead_letter);
    add("step", selection.step);
    add("since", selection.range.since.map(time));
    add("until", selection.range.until.map(time));
    add("text", selection.range.text);
    Value::Object(body)
}

/// Adds faults to what a sandbox does wrong already.
pub(super) async fn sandbox_fail(
    client: &Client,
    output: Output,
    destination: &str,
    faults: Vec<(String, Value)>,
) -> Result<(), Failed> {
    let path = format!("/sandbox/{}/faults", path_part(destination));
    let mut state = client.get(&path).await?;
    if !faults.is_empty() {
        let mut wanted = state
            .get_mut("faults")
            .and_then(Value::as_object_mut)
            .map(std::mem::take)
            .unwrap_or_default();
        wanted.extend(faults);
        state = client.put(&path, &Value::Object(wanted)).await?;
    }
    Ok(print_faults(output, &state)?)
}

pub(super) async fn sandbox_heal(
    client: &Client,
    output: Output,
    destination: &str,
) -> Result<(), Failed> {
    let path = format!("/sandbox/{}/faults", path_part(destination));
    let state = client.put(&path, &json!({})).await?;
    Ok(print_faults(output, &state)?)
}

fn print_faults(output: Output, state: &Value) -> std::io::Result<()> {
    if output.json {
        return output.json_line(state);
    }
    let faults = state.get("faults").and_then(Value::as_object);
    let mut text = String::new();
    for (fault, rule) in faults.into_iter().flatten() {
        text.push_str(&format!("{fault}  {rule}\n"));
    }
    if text.is_empty() {
        text.push_str("nothing goes wrong\n");
    }
    output.text(&text)
}

fn read_file(file: &Path) -> Result<String, Failed> {
    std::fs::read_to_string(file).map_err(|error| {
        let exit = match error.kind() {
            std::io::ErrorKind::NotFound => Exit::NotFound,
            _ => Exit::Refused,
        };
        Failed::new(exit, format!("{} cannot be read: {error}", file.display()))
    })
}

/// Who sits at the terminal, as the system says; for the record, not for access.
pub(super) fn who() -> String {
    ["SUDO_USER", "USER", "LOGNAME"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|name| !name.trim().is_empty())
        .unwrap_or_else(|| "local".into())
}
