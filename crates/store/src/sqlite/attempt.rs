//! Attempts and the requests they send: written before the first byte leaves, closed with the result (invariant 4).

use super::record::Step;
use super::row::{document, first, key, micros, parsed, run, unreadable};
use crate::{AttemptOutcome, Error, Intent, Lease, Result, RunResult, StoredRequest};
use emanet_core::call::Broken;
use emanet_core::classify::{self, Failure};
use emanet_core::ids::AttemptId;
use emanet_core::step::Ruling;
use jiff::Timestamp;
use rusqlite::{Transaction, params};

/// Opens the attempt of a run at its first intent, or notes the next call. Says whether it was opened.
pub(super) fn open(
    tx: &Transaction<'_>,
    lease: &Lease,
    step: &Step,
    intent: &Intent,
) -> Result<bool> {
    match is_closed(tx, lease, intent.attempt)? {
        Some(true) => Err(Error::Conflict("the attempt has a result already".into())),
        Some(false) => {
            run(
                tx,
                "UPDATE attempt SET call = ?4 WHERE workspace_id = ?1 AND event_id = ?2 AND attempt_id = ?3",
                params![
                    key(lease.workspace),
                    key(lease.event),
                    key(intent.attempt),
                    intent.call
                ],
            )?;
            Ok(false)
        }
        None => {
            insert(
                tx,
                lease,
                step,
                &New {
                    id: intent.attempt,
                    call: Some(&intent.call),
                    started_at: intent.now,
                    counts: true,
                    ended: None,
                },
            )?;
            Ok(true)
        }
    }
}

/// The request of a call: the one fixed before, else the given one, fixed now.
pub(super) fn fix_request(
    tx: &Transaction<'_>,
    lease: &Lease,
    step: &Step,
    intent: &Intent,
) -> Result<StoredRequest> {
    run(
        tx,
        "INSERT INTO request (workspace_id, event_id, step_id, revision, call, document, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
         ON CONFLICT DO NOTHING",
        params![
            key(lease.workspace),
            key(lease.event),
            key(step.id),
            step.revision,
            intent.call,
            document(&intent.request)?,
            intent.request.body
        ],
    )?;
    first(
        tx,
        "SELECT document, body FROM request
         WHERE workspace_id = ?1 AND event_id = ?2 AND step_id = ?3 AND revision = ?4 AND call = ?5",
        params![
            key(lease.workspace),
            key(lease.event),
            key(step.id),
            step.revision,
            intent.call
        ],
        |row| {
            Ok(StoredRequest {
                body: row.get("body")?,
                ..parsed(row, "document")?
            })
        },
    )?
    .ok_or_else(|| unreadable("document"))
}

/// Closes a run's attempt, or adds one where no intent was recorded and anything was done at all. Says by how much that
/// changes the attempts that count.
pub(super) fn close(
    tx: &Transaction<'_>,
    lease: &Lease,
    step: &Step,
    result: &RunResult,
) -> Result<i32> {
    let outcome = document(&outcome(result))?;
    match is_closed(tx, lease, result.attempt)? {
        Some(true) => Err(Error::Conflict("the attempt has a result already".into())),
        Some(false) => {
            run(
                tx,
                "UPDATE attempt SET ended_at = ?4, outcome = ?5, counts = ?6
                 WHERE workspace_id = ?1 AND event_id = ?2 AND attempt_id = ?3",
                params![
                    key(lease.workspace),
                    key(lease.event),
                    key(result.attempt),
                    micros(result.now),
                    outcome,
                    result.counts
                ],
            )?;
            Ok(if result.counts { 0 } else { -1 })
        }
        None if did_nothing(result) => Ok(0),
        None => {
            insert(
                tx,
                lease,
                step,
                &New {
                    id: result.attempt,
                    call: None,
                    started_at: result.started_at,
                    counts: result.counts,
                    ended: Some((result.now, outcome)),
                },
            )?;
            Ok(i32::from(result.counts))
        }
    }
}

/// Closes attempts that a worker opened and did not live to close. What they sent may have been applied, and the step
/// remembers it.
pub(super) fn close_interrupted(
    tx: &Transaction<'_>,
    lease: &Lease,
    step: &Step,
    current: AttemptId,
    now: Timestamp,
) -> Result<()> {
    let is_left_open = first(
        tx,
        "SELECT 1 FROM attempt
         WHERE workspace_id = ?1 AND event_id = ?2 AND step_id = ?3 AND attempt_id != ?4 AND ended_at IS NULL",
        params![key(lease.workspace), key(lease.event), key(step.id), key(current)],
        |_| Ok(()),
    )?
    .is_some();
    if !is_left_open {
        return Ok(());
    }
    let outcome = AttemptOutcome {
        delivered: None,
        failure: Some(classify::broken(Broken::Interrupted)),
        calls: Vec::new(),
        answer: None,
        next_at: None,
    };
    run(
        tx,
        "UPDATE attempt SET ended_at = ?5, outcome = ?6
         WHERE workspace_id = ?1 AND event_id = ?2 AND step_id = ?3 AND attempt_id != ?4 AND ended_at IS NULL",
        params![
            key(lease.workspace),
            key(lease.event),
            key(step.id),
            key(current),
            micros(now),
            document(&outcome)?
        ],
    )?;
    run(
        tx,
        "UPDATE step SET maybe_applied = 1 WHERE workspace_id = ?1 AND event_id = ?2 AND step_id = ?3",
        params![key(lease.workspace), key(lease.event), key(step.id)],
    )?;
    Ok(())
}

struct New<'a> {
    id: AttemptId,
    call: Option<&'a String>,
    started_at: Timestamp,
    counts: bool,
    ended: Option<(Timestamp, String)>,
}

fn insert(tx: &Transaction<'_>, lease: &Lease, step: &Step, attempt: &New<'_>) -> Result<()> {
    let (ended_at, outcome) = attempt.ended.clone().unzip();
    run(
        tx,
        "INSERT INTO attempt (workspace_id, event_id, attempt_id, step_id, number, revision, call, started_at, ended_at, outcome, counts)
         SELECT ?1, ?2, ?3, ?4, coalesce(max(number), 0) + 1, ?5, ?6, ?7, ?8, ?9, ?10
         FROM attempt WHERE workspace_id = ?1 AND event_id = ?2 AND step_id = ?4",
        params![
            key(lease.workspace),
            key(lease.event),
            key(attempt.id),
            key(step.id),
            step.revision,
            attempt.call,
            micros(attempt.started_at),
            ended_at.map(micros),
            outcome,
            attempt.counts
        ],
    )?;
    Ok(())
}

/// Whether the attempt has a result; `None` if there is no such attempt.
fn is_closed(tx: &Transaction<'_>, lease: &Lease, attempt: AttemptId) -> Result<Option<bool>> {
    first(
        tx,
        "SELECT ended_at IS NOT NULL AS closed FROM attempt
         WHERE workspace_id = ?1 AND event_id = ?2 AND attempt_id = ?3",
        params![key(lease.workspace), key(lease.event), key(attempt)],
        |row| Ok(row.get("closed")?),
    )
}

/// A gate that said no, or a step that turned out not to be needed, is no attempt.
fn did_nothing(result: &RunResult) -> bool {
    result.calls.is_empty()
        && matches!(
            result.ruling,
            Ruling::Hold { failure: None, .. } | Ruling::Skip { .. }
        )
}

fn outcome(result: &RunResult) -> AttemptOutcome {
    let (delivered, failure, next_at): (_, Option<&Failure>, _) = match &result.ruling {
        Ruling::Done(delivered) => (Some(delivered.clone()), None, None),
        Ruling::Skip { .. } => (None, None, None),
        Ruling::Retry { at, failure } => (None, Some(failure), Some(*at)),
        Ruling::Hold { failure, .. } => (None, failure.as_ref(), None),
        Ruling::Bury { failure, .. } => (None, Some(failure), None),
    };
    AttemptOutcome {
        delivered,
        failure: failure.cloned(),
        calls: result.calls.clone(),
        answer: result.answer.clone(),
        next_at,
    }
}
