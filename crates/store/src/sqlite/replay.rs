//! Replays: what they cover is fixed when they start, sent in stages through the normal path, and traced (RP-1 … RP-4).

use super::page::{Place, Query};
use super::row::{
    count, document, first, id, id_opt, key, key_opt, list, micros, parsed, run, spelled, target,
    target_key, target_opt, time, time_opt, word,
};
use super::settle::{By, settle};
use super::{alert, dead_letter};
use crate::{
    EndReplay, Error, Filter, Listed, NewReplay, Page, Replay, ReplayCounts, ReplayState,
    Resolution, Result,
};
use emanet_core::ids::{DeadLetterId, EventId, ReplayId, StepId, Target, WorkspaceId};
use emanet_core::step::State;
use jiff::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Row, Transaction, named_params, params};
use std::collections::BTreeSet;

/// What a replay covers: a step that is dead or held, or an event that died as a whole.
struct Item {
    event: EventId,
    step: Option<StepId>,
    dead_letter: Option<DeadLetterId>,
    target: Option<Target>,
    since: Timestamp,
}

// ---- starting ----------------------------------------------------------------------------------------------------------

/// Fixes what belongs to a replay, oldest first.
pub(super) fn start(tx: &Transaction<'_>, new: &NewReplay) -> Result<Replay> {
    run(
        tx,
        "INSERT INTO replay (workspace_id, replay_id, filter, stages, state, started_by, reason, started_at)
         VALUES (?1, ?2, ?3, ?4, 'running', ?5, ?6, ?7)",
        params![
            key(new.workspace),
            key(new.id),
            document(&new.filter)?,
            document(&new.stages)?,
            new.by,
            new.reason,
            micros(new.now)
        ],
    )?;
    let mut items = dead_items(tx, new)?;
    items.extend(held_items(tx, new)?);
    items.sort_by_key(|item| (item.since, item.event, item.step));
    for (position, item) in (0_i64..).zip(&items) {
        refuse_if_covered(tx, new.workspace, item)?;
        run(
            tx,
            "INSERT INTO replay_item (workspace_id, replay_id, position, event_id, step_id, dead_letter_id, target)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                key(new.workspace),
                key(new.id),
                position,
                key(item.event),
                key_opt(item.step),
                key_opt(item.dead_letter),
                item.target.map(target_key)
            ],
        )?;
    }
    get(tx, new.workspace, new.id)
}

fn dead_items(tx: &Transaction<'_>, new: &NewReplay) -> Result<Vec<Item>> {
    let filter = Filter {
        open: Some(true),
        ..new.filter.clone()
    };
    let mut query = Query::new(
        "SELECT d.event_id, d.step_id, d.dead_letter_id, d.target, d.dead_at AS since
         FROM dead_letter d JOIN event e ON e.workspace_id = d.workspace_id AND e.event_id = d.event_id",
    );
    dead_letter::restrict(&mut query, new.workspace, &filter)?;
    let is_named = filter.class.is_some() || filter.cause.is_some() || filter.dead_letter.is_some();
    if !is_named {
        // It may be there already: sent again only when somebody says that they mean these (design 9.1).
        query.when(
            "(d.class <> 'unknown' OR json_extract(d.failure, '$.effect') IS NOT 'maybe_applied')",
            [],
        );
    }
    query.all(tx, "", read_item)
}

/// Held steps; a filter for resolved or for dead letters only leaves them out.
fn held_items(tx: &Transaction<'_>, new: &NewReplay) -> Result<Vec<Item>> {
    let filter = &new.filter;
    if filter.open == Some(false) || filter.dead_letter.is_some() {
        return Ok(Vec::new());
    }
    let bytes = |key: &[u8]| Value::Blob(key.to_vec());
    let mut query = Query::new(
        "SELECT s.event_id, s.step_id, NULL AS dead_letter_id, s.target, e.received_at AS since
         FROM step s INDEXED BY step_held JOIN event e ON e.workspace_id = s.workspace_id AND e.event_id = s.event_id",
    );
    query.when("s.state = 'held'", []);
    query.when("s.workspace_id = ?", [bytes(&key(new.workspace))]);
    query.when_some("e.source_id = ?", filter.source.map(|s| bytes(&key(s))));
    query.when_some("s.target = ?", filter.target.map(|t| bytes(&target_key(t))));
    let class = filter.class.as_ref().map(spelled).transpose()?;
    query.when_some("s.class = ?", class);
    query.when_some("s.held_under = ?", filter.cause.clone());
    query.when_some("s.name = ?", filter.step.clone());
    query.when_some("e.received_at >= ?", filter.since.map(micros));
    query.when_some("e.received_at < ?", filter.until.map(micros));
    query.when_contains(&["s.message", "s.vendor_code"], filter.text.as_deref());
    query.all(tx, "", read_item)
}

fn read_item(row: &Row<'_>) -> Result<Item> {
    Ok(Item {
        event: id(row, "event_id")?,
        step: id_opt(row, "step_id")?,
        dead_letter: id_opt(row, "dead_letter_id")?,
        target: target_opt(row, "target")?,
        since: time(row, "since")?,
    })
}

fn refuse_if_covered(tx: &Transaction<'_>, workspace: WorkspaceId, item: &Item) -> Result<()> {
    let other = first(
        tx,
        "SELECT r.replay_id FROM replay_item i
         JOIN replay r ON r.workspace_id = i.workspace_id AND r.replay_id = i.replay_id
         WHERE i.workspace_id = ?1 AND i.event_id = ?2 AND i.step_id IS ?3 AND r.state = 'running'",
        params![key(workspace), key(item.event), key_opt(item.step)],
        |row| id::<ReplayId>(row, "replay_id"),
    )?;
    match other {
        Some(other) => Err(Error::Conflict(format!(
            "{other} is running and covers {}",
            item.event
        ))),
        None => Ok(()),
    }
}

// ---- sending -----------------------------------------------------------------------------------------------------------

/// The most items sent in one transaction, so that a large stage does not keep intake waiting.
pub(super) const PORTION: u32 = 200;

/// A stage on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage {
    /// Counts from 1.
    pub(super) number: u32,
    /// At most how many items; what is left over after a crash goes with the next stage.
    pub(super) size: u32,
}

/// Opens the next stage; `None` when everything was sent.
pub(super) fn begin_stage(
    tx: &Transaction<'_>,
    workspace: WorkspaceId,
    replay: ReplayId,
) -> Result<Option<Stage>> {
    let current = running(tx, workspace, replay)?;
    let is_waiting = first(
        tx,
        "SELECT 1 FROM replay_item WHERE workspace_id = ?1 AND replay_id = ?2 AND stage IS NULL LIMIT 1",
        params![key(workspace), key(replay)],
        |_| Ok(()),
    )?;
    if is_waiting.is_none() {
        return Ok(None);
    }
    run(
        tx,
        "UPDATE replay SET stage = stage + 1 WHERE workspace_id = ?1 AND replay_id = ?2",
        params![key(workspace), key(replay)],
    )?;
    let size = current.stages.get(current.stage as usize);
    Ok(Some(Stage {
        number: current.stage + 1,
        size: size.copied().unwrap_or(u32::MAX),
    }))
}

/// Sends the next items of a stage; says how many there were.
pub(super) fn send_portion(
    tx: &Transaction<'_>,
    workspace: WorkspaceId,
    replay: ReplayId,
    stage: Stage,
    now: Timestamp,
) -> Result<u32> {
    let current = running(tx, workspace, replay)?;
    let items = list(
        tx,
        "SELECT i.position, i.event_id, i.step_id, i.dead_letter_id, i.target, 0 AS since FROM replay_item i
         WHERE workspace_id = ?1 AND replay_id = ?2 AND stage IS NULL ORDER BY position LIMIT ?3",
        params![key(workspace), key(replay), stage.size.min(PORTION)],
        |row| Ok((row.get::<_, i64>("position")?, read_item(row)?)),
    )?;
    let mut causes = BTreeSet::new();
    for (position, item) in &items {
        causes.extend(send(tx, workspace, &current, item, now)?);
        run(
            tx,
            "UPDATE replay_item SET stage = ?4 WHERE workspace_id = ?1 AND replay_id = ?2 AND position = ?3",
            params![key(workspace), key(replay), position, stage.number],
        )?;
    }
    for cause in causes {
        alert::close_if_settled(tx, workspace, &cause, now)?;
    }
    Ok(u32::try_from(items.len()).unwrap_or(PORTION))
}

/// Sends one item through the normal path again. What was resolved or went on by itself since the start is left alone.
/// Returns the cause of the dead letter that it resolved.
fn send(
    tx: &Transaction<'_>,
    workspace: WorkspaceId,
    replay: &Running,
    item: &Item,
    now: Timestamp,
) -> Result<Option<String>> {
    let mut cause = None;
    if let Some(dead_letter) = item.dead_letter {
        let letter = dead_letter::get(tx, workspace, dead_letter)?;
        if letter.resolution.is_some() {
            return Ok(None);
        }
        let (by, note) = (&replay.by, &replay.reason);
        dead_letter::mark(tx, &letter, Resolution::Replayed, by, note, now)?;
        cause = Some(letter.cause);
    }
    match item.step {
        // What was mended may stand in the request, so that one which surely changed nothing is formed anew (design 9.4).
        Some(step) => run(
            tx,
            "UPDATE step SET state = 'pending', attempts = 0, run_at = ?4, pass = 1, resolved = 0, held_under = NULL, held_at = NULL,
                 revision = revision + (maybe_applied = 0 AND EXISTS (
                     SELECT 1 FROM request
                     WHERE request.workspace_id = step.workspace_id AND request.event_id = step.event_id
                         AND request.step_id = step.step_id AND request.revision = step.revision))
             WHERE workspace_id = ?1 AND event_id = ?2 AND step_id = ?3 AND state IN ('dead', 'held')",
            params![key(workspace), key(item.event), key(step), micros(now)],
        )?,
        None => run(
            tx,
            "UPDATE event SET whole = NULL WHERE workspace_id = ?1 AND event_id = ?2 AND whole = 'dead'",
            params![key(workspace), key(item.event)],
        )?,
    };
    settle(tx, workspace, item.event, now, By::Other)?;
    if item.step.is_none() {
        run(
            tx,
            "UPDATE queue SET pass = 1 WHERE workspace_id = ?1 AND event_id = ?2",
            params![key(workspace), key(item.event)],
        )?;
    }
    Ok(cause)
}

/// Ends a replay.
pub(super) fn end(
    tx: &Transaction<'_>,
    workspace: WorkspaceId,
    replay: ReplayId,
    end: &EndReplay,
) -> Result<Replay> {
    if end.state == ReplayState::Running {
        return Err(Error::Conflict("a replay does not end as running".into()));
    }
    running(tx, workspace, replay)?;
    run(
        tx,
        "UPDATE replay SET state = ?3, ended_by = ?4, ended_note = ?5, ended_at = ?6
         WHERE workspace_id = ?1 AND replay_id = ?2",
        params![
            key(workspace),
            key(replay),
            spelled(&end.state)?,
            end.by,
            end.note,
            micros(end.at)
        ],
    )?;
    get(tx, workspace, replay)
}

/// What sending needs of a replay; its counts are left alone, since they grow with it.
struct Running {
    by: String,
    reason: String,
    stage: u32,
    stages: Vec<u32>,
}

fn running(tx: &Transaction<'_>, workspace: WorkspaceId, replay: ReplayId) -> Result<Running> {
    let (running, state) = first(
        tx,
        "SELECT * FROM replay WHERE workspace_id = ?1 AND replay_id = ?2",
        params![key(workspace), key(replay)],
        |row| {
            let running = Running {
                by: row.get("started_by")?,
                reason: row.get("reason")?,
                stage: row.get("stage")?,
                stages: parsed(row, "stages")?,
            };
            Ok((running, word(row, "state")?))
        },
    )?
    .ok_or(Error::NotFound("replay"))?;
    match state {
        ReplayState::Running => Ok(running),
        ended => Err(Error::Conflict(format!(
            "the replay is {}",
            spelled(&ended)?
        ))),
    }
}

// ---- looking -----------------------------------------------------------------------------------------------------------

/// One replay, with its counts.
pub(super) fn get(
    tx: &Transaction<'_>,
    workspace: WorkspaceId,
    replay: ReplayId,
) -> Result<Replay> {
    first(
        tx,
        "SELECT * FROM replay WHERE workspace_id = ?1 AND replay_id = ?2",
        params![key(workspace), key(replay)],
        |row| read(tx, row),
    )?
    .ok_or(Error::NotFound("replay"))
}

/// Replays that are running, oldest first; read from an index that holds no others.
pub(super) fn all_running(tx: &Transaction<'_>) -> Result<Vec<Replay>> {
    let mut query = Query::new("SELECT * FROM replay INDEXED BY replay_running");
    query.when("state = 'running'", []);
    query.all(tx, " ORDER BY started_at, replay_id", |row| read(tx, row))
}

/// Replays, newest first.
pub(super) fn replays(
    tx: &Transaction<'_>,
    workspace: Option<WorkspaceId>,
    page: &Page,
) -> Result<Listed<Replay>> {
    let mut query = Query::new("SELECT * FROM replay");
    query.when_some(
        "workspace_id = ?",
        workspace.map(|w| Value::Blob(key(w).to_vec())),
    );
    query.page(
        tx,
        page,
        ["started_at", "replay_id"],
        |row| read(tx, row),
        |replay| Place::new(replay.started_at, &key(replay.id)),
    )
}

fn read(tx: &Transaction<'_>, row: &Row<'_>) -> Result<Replay> {
    let workspace = id(row, "workspace_id")?;
    let replay = id(row, "replay_id")?;
    let stage = row.get("stage")?;
    let state = word(row, "state")?;
    let ended = match time_opt(row, "ended_at")? {
        Some(at) => Some(EndReplay {
            state,
            by: row.get("ended_by")?,
            note: row.get("ended_note")?,
            at,
        }),
        None => None,
    };
    let (total, current) = counts(tx, workspace, replay, stage)?;
    Ok(Replay {
        workspace,
        id: replay,
        filter: parsed(row, "filter")?,
        stages: parsed(row, "stages")?,
        stage,
        state,
        by: row.get("started_by")?,
        reason: row.get("reason")?,
        started_at: time(row, "started_at")?,
        ended,
        total,
        current,
        targets: list(
            tx,
            "SELECT DISTINCT target FROM replay_item
             WHERE workspace_id = ?1 AND replay_id = ?2 AND target IS NOT NULL ORDER BY target",
            params![key(workspace), key(replay)],
            |row| target(row, "target"),
        )?,
    })
}

/// Counts by outcome, of all items and of the stage that was sent last. An outcome is where the step stands now,
/// or the event, if it ended as a whole.
fn counts(
    tx: &Transaction<'_>,
    workspace: WorkspaceId,
    replay: ReplayId,
    stage: u32,
) -> Result<(ReplayCounts, ReplayCounts)> {
    let groups = list(
        tx,
        "SELECT i.stage, CASE WHEN e.whole IS NULL THEN coalesce(s.state, e.state) ELSE e.state END AS state,
             coalesce(s.resolved, 0) AND e.whole IS NULL AS resolved, count(*) AS n
         FROM replay_item i
         JOIN event e ON e.workspace_id = i.workspace_id AND e.event_id = i.event_id
         LEFT JOIN step s ON s.workspace_id = i.workspace_id AND s.event_id = i.event_id AND s.step_id = i.step_id
         WHERE i.workspace_id = :workspace AND i.replay_id = :replay
         GROUP BY 1, 2, 3",
        named_params! { ":workspace": key(workspace), ":replay": key(replay) },
        |row| {
            Ok((
                row.get::<_, Option<u32>>("stage")?,
                row.get::<_, String>("state")?,
                row.get::<_, bool>("resolved")?,
                count(row, "n")?,
            ))
        },
    )?;
    let (mut total, mut current) = (ReplayCounts::default(), ReplayCounts::default());
    for (sent, state, resolved, n) in groups {
        *outcome(&mut total, sent, &state, resolved) += n;
        if sent == Some(stage) {
            *outcome(&mut current, sent, &state, resolved) += n;
        }
    }
    Ok((total, current))
}

fn outcome<'a>(
    counts: &'a mut ReplayCounts,
    sent: Option<u32>,
    state: &str,
    resolved: bool,
) -> &'a mut u64 {
    if sent.is_none() {
        &mut counts.waiting
    } else if state == State::Pending.as_str() {
        &mut counts.running
    } else if state == State::Held.as_str() || (state == State::Dead.as_str() && !resolved) {
        &mut counts.failed
    } else {
        &mut counts.done
    }
}
