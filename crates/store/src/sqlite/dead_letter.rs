//! Dead letters: opened in one transaction with the event's state (DL-1), listed, and resolved by a person (DL-2).

use super::alert;
use super::page::{Place, Query, merged};
use super::record::{self, Step};
use super::row::{
    count, document, first, id, id_opt, key, key_opt, micros, parsed, run, spelled, target,
    target_key, target_opt, time, time_opt, word, word_opt,
};
use super::settle::{By, settle};
use super::tally;
use crate::{
    DeadLetter, Error, Filter, Lease, Listed, Page, Resolution, Resolve, Result, RunResult,
};
use emanet_core::classify::{Class, Failure};
use emanet_core::ids::{DeadLetterId, EventId, StepId, Target, WorkspaceId};
use emanet_core::step::Delivered;
use jiff::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Row, Transaction, named_params, params};

const SELECT: &str = "SELECT d.*, e.source_id, e.source_ref
    FROM dead_letter d JOIN event e ON e.workspace_id = d.workspace_id AND e.event_id = d.event_id";

// ---- opening -----------------------------------------------------------------------------------------------------------

/// Opens the dead letter of a step.
pub(super) fn bury_step(
    tx: &Transaction<'_>,
    lease: &Lease,
    step: &Step,
    result: &RunResult,
    failure: &Failure,
    cause: &str,
) -> Result<()> {
    let new = New {
        id: result.dead_letter,
        step: Some((step.id, &step.name, step.target)),
        failure,
        cause,
        attempts: i64::from(step.attempts),
        dead_at: result.now,
    };
    insert(tx, lease, &new)
}

/// Opens the dead letter of an event as a whole.
pub(super) fn bury_event(
    tx: &Transaction<'_>,
    lease: &Lease,
    id: DeadLetterId,
    failure: &Failure,
    cause: &str,
    now: Timestamp,
) -> Result<()> {
    let attempts = first(
        tx,
        "SELECT count(*) AS n FROM attempt WHERE workspace_id = ?1 AND event_id = ?2 AND counts",
        params![key(lease.workspace), key(lease.event)],
        |row| Ok(row.get("n")?),
    )?;
    let new = New {
        id,
        step: None,
        failure,
        cause,
        attempts: attempts.unwrap_or(0),
        dead_at: now,
    };
    insert(tx, lease, &new)
}

struct New<'a> {
    id: DeadLetterId,
    step: Option<(StepId, &'a str, Target)>,
    failure: &'a Failure,
    cause: &'a str,
    attempts: i64,
    dead_at: Timestamp,
}

/// Links back to the dead letter whose replay failed again with this one (RP-1).
fn insert(tx: &Transaction<'_>, lease: &Lease, new: &New<'_>) -> Result<()> {
    let step_id = new.step.map(|(id, ..)| key(id));
    let previous = first(
        tx,
        "SELECT dead_letter_id FROM dead_letter
         WHERE workspace_id = ?1 AND event_id = ?2 AND step_id IS ?3 AND resolution = 'replayed'
         ORDER BY resolved_at DESC, dead_at DESC LIMIT 1",
        params![key(lease.workspace), key(lease.event), step_id],
        |row| id::<DeadLetterId>(row, "dead_letter_id"),
    )?;
    run(
        tx,
        "INSERT INTO dead_letter (workspace_id, dead_letter_id, event_id, step_id, step, target, failure, class, message,
             vendor_code, cause, attempts, dead_at, previous_id)
         VALUES (:workspace, :id, :event, :step_id, :step, :target, :failure, :class, :message,
             :vendor_code, :cause, :attempts, :dead_at, :previous)",
        named_params! {
            ":workspace": key(lease.workspace),
            ":id": key(new.id),
            ":event": key(lease.event),
            ":step_id": step_id,
            ":step": new.step.map(|(_, name, _)| name),
            ":target": new.step.map(|(.., target)| target_key(target)),
            ":failure": document(new.failure)?,
            ":class": spelled(&new.failure.class)?,
            ":message": new.failure.message,
            ":vendor_code": new.failure.vendor_code,
            ":cause": new.cause,
            ":attempts": new.attempts,
            ":dead_at": micros(new.dead_at),
            ":previous": key_opt(previous),
        },
    )?;
    Ok(())
}

// ---- looking -----------------------------------------------------------------------------------------------------------

/// Dead letters, newest first.
pub(super) fn list(
    tx: &Transaction<'_>,
    filter: &Filter,
    page: &Page,
) -> Result<Listed<DeadLetter>> {
    let place = |letter: &DeadLetter| Place::new(letter.dead_at, &key(letter.id));
    let one = |workspace| {
        let mut query = Query::new(SELECT);
        restrict(&mut query, workspace, filter)?;
        query.page(tx, page, ["d.dead_at", "d.dead_letter_id"], read, place)
    };
    match filter.workspace {
        Some(workspace) => one(workspace),
        None => merged(tally::workspaces(tx)?, page, one, place),
    }
}

/// Adds a filter's conditions to a query over dead letters `d` and their events `e`.
pub(super) fn restrict(query: &mut Query, workspace: WorkspaceId, filter: &Filter) -> Result<()> {
    let bytes = |key: &[u8]| Value::Blob(key.to_vec());
    query.when("d.workspace_id = ?", [bytes(&key(workspace))]);
    query.when_some("e.source_id = ?", filter.source.map(|s| bytes(&key(s))));
    query.when_some("d.target = ?", filter.target.map(|t| bytes(&target_key(t))));
    let class = filter.class.as_ref().map(spelled).transpose()?;
    query.when_some("d.class = ?", class);
    query.when_some("d.cause = ?", filter.cause.clone());
    query.when_some(
        "d.dead_letter_id = ?",
        filter.dead_letter.map(|l| bytes(&key(l))),
    );
    query.when_some("d.step = ?", filter.step.clone());
    query.when_some("d.dead_at >= ?", filter.since.map(micros));
    query.when_some("d.dead_at < ?", filter.until.map(micros));
    match filter.open {
        Some(true) => query.when("d.resolution IS NULL", []),
        Some(false) => query.when("d.resolution IS NOT NULL", []),
        None => {}
    }
    query.when_contains(&["d.message", "d.vendor_code"], filter.text.as_deref());
    Ok(())
}

/// All dead letters of an event, oldest first.
pub(super) fn of_event(
    tx: &Transaction<'_>,
    workspace: WorkspaceId,
    event: EventId,
) -> Result<Vec<DeadLetter>> {
    let mut query = Query::new(SELECT);
    query.when("d.workspace_id = ?", [Value::Blob(key(workspace).to_vec())]);
    query.when("d.event_id = ?", [Value::Blob(key(event).to_vec())]);
    query.all(tx, " ORDER BY d.dead_at, d.dead_letter_id", read)
}

/// One dead letter.
pub(super) fn get(
    tx: &Transaction<'_>,
    workspace: WorkspaceId,
    id: DeadLetterId,
) -> Result<DeadLetter> {
    first(
        tx,
        &format!("{SELECT} WHERE d.workspace_id = ?1 AND d.dead_letter_id = ?2"),
        params![key(workspace), key(id)],
        read,
    )?
    .ok_or(Error::NotFound("dead letter"))
}

fn read(row: &Row<'_>) -> Result<DeadLetter> {
    let step = match id_opt(row, "step_id")? {
        Some(step) => Some((step, row.get("step")?)),
        None => None,
    };
    Ok(DeadLetter {
        workspace: id(row, "workspace_id")?,
        id: id(row, "dead_letter_id")?,
        event: id(row, "event_id")?,
        source: id(row, "source_id")?,
        source_ref: row.get("source_ref")?,
        step,
        target: target_opt(row, "target")?,
        failure: failure(row)?,
        cause: row.get("cause")?,
        attempts: u32::try_from(count(row, "attempts")?).unwrap_or(u32::MAX),
        dead_at: time(row, "dead_at")?,
        owner: row.get("owner")?,
        resolution: word_opt(row, "resolution")?,
        resolved_by: row.get("resolved_by")?,
        resolved_at: time_opt(row, "resolved_at")?,
        note: row.get("note")?,
        previous: id_opt(row, "previous_id")?,
    })
}

/// What happened. If its document is of another version, the columns beside it say enough: one row must not break a list (H59).
fn failure(row: &Row<'_>) -> Result<Failure> {
    if let Ok(failure) = parsed(row, "failure") {
        return Ok(failure);
    }
    Ok(Failure {
        class: word(row, "class").unwrap_or(Class::Unknown),
        vendor_code: row.get("vendor_code")?,
        ..Failure::internal(row.get::<_, String>("message")?)
    })
}

// ---- resolving ---------------------------------------------------------------------------------------------------------

/// Resolves a dead letter without sending anything.
pub(super) fn resolve(tx: &Transaction<'_>, resolve: &Resolve) -> Result<DeadLetter> {
    if resolve.resolution == Resolution::Replayed {
        return Err(Error::Conflict("only a replay resolves as replayed".into()));
    }
    let letter = get(tx, resolve.workspace, resolve.id)?;
    if letter.resolution.is_some() {
        return Err(Error::Conflict(
            "the dead letter is resolved already".into(),
        ));
    }
    mark(
        tx,
        &letter,
        resolve.resolution,
        &resolve.by,
        &resolve.note,
        resolve.now,
    )?;
    match (&letter.step, &resolve.object_id) {
        (Some((step, _)), Some(object_id)) => link(tx, &letter, *step, object_id)?,
        (Some((step, _)), None) => {
            run(
                tx,
                "UPDATE step SET resolved = 1 WHERE workspace_id = ?1 AND event_id = ?2 AND step_id = ?3",
                params![key(letter.workspace), key(letter.event), key(*step)],
            )?;
        }
        (None, None) => {
            run(
                tx,
                "UPDATE event SET whole = 'resolved' WHERE workspace_id = ?1 AND event_id = ?2",
                params![key(letter.workspace), key(letter.event)],
            )?;
        }
        (None, Some(_)) => {
            return Err(Error::Conflict(
                "the event as a whole is dead: there is no step whose object could be there".into(),
            ));
        }
    }
    settle(tx, letter.workspace, letter.event, resolve.now, By::Other)?;
    alert::close_if_settled(tx, letter.workspace, &letter.cause, resolve.now)?;
    get(tx, resolve.workspace, resolve.id)
}

/// "It is there": the step is done, with a link to the object a person found.
fn link(tx: &Transaction<'_>, letter: &DeadLetter, step: StepId, object_id: &str) -> Result<()> {
    let (step, object) = first(
        tx,
        "SELECT step_id, name, target, revision, attempts, object FROM step
         WHERE workspace_id = ?1 AND event_id = ?2 AND step_id = ?3",
        params![key(letter.workspace), key(letter.event), key(step)],
        |row| {
            let step = Step {
                id: id(row, "step_id")?,
                name: row.get("name")?,
                target: target(row, "target")?,
                revision: row.get("revision")?,
                attempts: row.get("attempts")?,
            };
            Ok((step, row.get("object")?))
        },
    )?
    .ok_or(Error::NotFound("step"))?;
    let delivered = Delivered {
        object: Some(object),
        id: Some(object_id.to_owned()),
        how: "linked".into(),
        data: serde_json::Value::Null,
    };
    record::deliver(tx, letter.workspace, letter.event, &step, &delivered)
}

/// Writes down who resolved a dead letter, how, when and why.
pub(super) fn mark(
    tx: &Transaction<'_>,
    letter: &DeadLetter,
    resolution: Resolution,
    by: &str,
    note: &str,
    now: Timestamp,
) -> Result<()> {
    run(
        tx,
        "UPDATE dead_letter SET resolution = ?3, resolved_by = ?4, resolved_at = ?5, note = ?6
         WHERE workspace_id = ?1 AND dead_letter_id = ?2",
        params![
            key(letter.workspace),
            key(letter.id),
            spelled(&resolution)?,
            by,
            micros(now),
            note
        ],
    )?;
    Ok(())
}
