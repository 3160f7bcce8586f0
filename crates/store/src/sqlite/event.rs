//! Reads everything that is known of one event. Each part that cannot be understood makes this call fail, and no other (H67).

use super::dead_letter;
use super::look;
use super::row::{
    first, id, key, list, parsed, parsed_opt, target, time, time_opt, unreadable, word,
};
use crate::{
    AttemptRecord, Error, EventRecord, EventSummary, LinkRecord, Result, StepRecord, StoredRequest,
};
use emanet_core::event::Inbound;
use emanet_core::ids::{EventId, StepId, WorkspaceId};
use rusqlite::{Row, Transaction, params};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The whole record of an event.
pub(super) fn record(
    tx: &Transaction<'_>,
    workspace: WorkspaceId,
    event: EventId,
) -> Result<EventRecord> {
    let (summary, pointer, unreadable) = first(
        tx,
        &format!(
            "{} WHERE e.workspace_id = ?1 AND e.event_id = ?2",
            look::SELECT
        ),
        params![key(workspace), key(event)],
        |row| {
            Ok((
                look::summary(row)?,
                row.get("pointer")?,
                row.get("unreadable")?,
            ))
        },
    )?
    .ok_or(Error::NotFound("event"))?;
    Ok(EventRecord {
        request: request(tx, &summary)?,
        pointer,
        unreadable,
        lead: first(
            tx,
            "SELECT document FROM lead WHERE workspace_id = ?1 AND event_id = ?2",
            params![key(workspace), key(event)],
            |row| parsed(row, "document"),
        )?,
        steps: steps(tx, workspace, event)?,
        attempts: attempts(tx, workspace, event)?,
        dead_letters: dead_letter::of_event(tx, workspace, event)?,
        links: links(tx, workspace, event)?,
        summary,
    })
}

/// The request as it came. A body that does not match its digest is damage, and is not served as truth (F17).
fn request(tx: &Transaction<'_>, event: &EventSummary) -> Result<Option<Inbound>> {
    let found = first(
        tx,
        "SELECT method, query, headers, body, body_sha256 FROM receipt WHERE workspace_id = ?1 AND receipt_id = ?2",
        params![key(event.workspace), key(event.receipt)],
        |row| {
            let Some(body) = row.get::<_, Option<Vec<u8>>>("body")? else {
                return Ok(None);
            };
            let digest: [u8; 32] = row.get("body_sha256")?;
            if Sha256::digest(&body).as_slice() != digest {
                return Err(Error::Corrupt(format!(
                    "the request of {} does not match its digest",
                    event.id
                )));
            }
            Ok(Some(Inbound {
                method: row.get("method")?,
                query: row.get("query")?,
                headers: parsed(row, "headers")?,
                body,
            }))
        },
    )?;
    found.ok_or_else(|| unreadable("receipt_id"))
}

fn steps(tx: &Transaction<'_>, workspace: WorkspaceId, event: EventId) -> Result<Vec<StepRecord>> {
    let mut requests = requests(tx, workspace, event)?;
    let mut steps = list(
        tx,
        "SELECT * FROM step WHERE workspace_id = ?1 AND event_id = ?2 ORDER BY position",
        params![key(workspace), key(event)],
        step,
    )?;
    for step in &mut steps {
        step.requests = requests
            .remove(&(step.id, step.revision))
            .unwrap_or_default();
    }
    Ok(steps)
}

fn step(row: &Row<'_>) -> Result<StepRecord> {
    Ok(StepRecord {
        id: id(row, "step_id")?,
        name: row.get("name")?,
        kind: word(row, "kind")?,
        target: target(row, "target")?,
        object: row.get("object")?,
        needs: parsed(row, "needs")?,
        revision: row.get("revision")?,
        state: word(row, "state")?,
        attempts: row.get("attempts")?,
        maybe_applied: row.get("maybe_applied")?,
        run_at: time(row, "run_at")?,
        delivered: parsed_opt(row, "delivered")?,
        failure: parsed_opt(row, "failure")?,
        held_under: row.get("held_under")?,
        skipped: row.get("skipped")?,
        requests: BTreeMap::new(),
    })
}

type Requests = BTreeMap<(StepId, u32), BTreeMap<String, StoredRequest>>;

fn requests(tx: &Transaction<'_>, workspace: WorkspaceId, event: EventId) -> Result<Requests> {
    let rows = list(
        tx,
        "SELECT step_id, revision, call, document, body FROM request WHERE workspace_id = ?1 AND event_id = ?2",
        params![key(workspace), key(event)],
        |row| {
            let request = StoredRequest {
                body: row.get("body")?,
                ..parsed(row, "document")?
            };
            Ok((
                (id(row, "step_id")?, row.get("revision")?),
                row.get("call")?,
                request,
            ))
        },
    )?;
    let mut requests = Requests::new();
    for (step, call, request) in rows {
        requests.entry(step).or_default().insert(call, request);
    }
    Ok(requests)
}

fn attempts(
    tx: &Transaction<'_>,
    workspace: WorkspaceId,
    event: EventId,
) -> Result<Vec<AttemptRecord>> {
    list(
        tx,
        "SELECT * FROM attempt WHERE workspace_id = ?1 AND event_id = ?2 ORDER BY started_at, number, step_id",
        params![key(workspace), key(event)],
        |row| {
            Ok(AttemptRecord {
                id: id(row, "attempt_id")?,
                step: id(row, "step_id")?,
                number: row.get("number")?,
                revision: row.get("revision")?,
                call: row.get("call")?,
                started_at: time(row, "started_at")?,
                ended_at: time_opt(row, "ended_at")?,
                outcome: parsed_opt(row, "outcome")?,
                counts: row.get("counts")?,
            })
        },
    )
}

fn links(tx: &Transaction<'_>, workspace: WorkspaceId, event: EventId) -> Result<Vec<LinkRecord>> {
    list(
        tx,
        "SELECT destination_id, step, object, object_id FROM link WHERE workspace_id = ?1 AND event_id = ?2
         ORDER BY step, object",
        params![key(workspace), key(event)],
        |row| {
            Ok(LinkRecord {
                destination: id(row, "destination_id")?,
                step: row.get("step")?,
                object: row.get("object")?,
                id: row.get("object_id")?,
            })
        },
    )
}
