//! Stores requests and the events in them (IN-2, IN-3).

use super::row::{document, first, id, key, micros, number, run, target_key, unreadable};
use super::tally;
use crate::{NewReceipt, Result};
use emanet_core::event::{Accepted, Fate, NewEvent};
use emanet_core::ids::Target;
use emanet_core::step::EventState;
use rusqlite::{Transaction, params};
use sha2::{Digest, Sha256};

/// A request, with what can be worked out before its turn at the writer, for whom everybody waits.
pub(super) struct Request {
    receipt: NewReceipt,
    headers: String,
    body_sha256: [u8; 32],
}

impl Request {
    pub(super) fn new(receipt: NewReceipt) -> Result<Self> {
        Ok(Self {
            headers: document(&receipt.request.headers)?,
            body_sha256: Sha256::digest(&receipt.request.body).into(),
            receipt,
        })
    }
}

/// Stores a request. Whether an event is new is decided by the unique constraint, not by a look beforehand (H41); the same
/// event twice in one request is one event, seen twice (H66).
pub(super) fn accept(tx: &Transaction<'_>, request: &Request) -> Result<Vec<Accepted>> {
    let receipt = &request.receipt;
    let accepted = receipt
        .events
        .iter()
        .map(|event| accept_event(tx, receipt, event))
        .collect::<Result<Vec<_>>>()?;
    // A request that only repeats what is known adds nothing that is not stored already.
    if accepted.is_empty() || accepted.iter().any(|event| event.is_new) {
        keep_request(tx, request)?;
    }
    Ok(accepted)
}

fn keep_request(tx: &Transaction<'_>, request: &Request) -> Result<()> {
    let receipt = &request.receipt;
    run(
        tx,
        "INSERT INTO receipt (workspace_id, receipt_id, received_at, method, query, headers, body, body_sha256)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            key(receipt.workspace),
            key(receipt.id),
            micros(receipt.received_at),
            receipt.request.method,
            receipt.request.query,
            request.headers,
            receipt.request.body,
            request.body_sha256,
        ],
    )?;
    Ok(())
}

fn accept_event(tx: &Transaction<'_>, receipt: &NewReceipt, event: &NewEvent) -> Result<Accepted> {
    let (state, ignored, unreadable_for) = match &event.item.fate {
        Fate::Process => (EventState::Pending, None, None),
        Fate::Ignore(reason) => (EventState::Ignored, Some(reason), None),
        Fate::Unreadable(reason) => (EventState::Pending, None, Some(reason)),
    };
    let inserted = run(
        tx,
        "INSERT INTO event (workspace_id, event_id, source_id, ref_hash, source_ref, receipt_id, pointer, received_at,
             created_at, day, revision, seen, seen_at, state, whole, ignored, unreadable)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 1, ?8, ?12, ?13, ?14, ?15)
         ON CONFLICT (workspace_id, source_id, ref_hash) DO NOTHING",
        params![
            key(receipt.workspace),
            key(event.id),
            key(receipt.source),
            event.ref_hash,
            event.item.source_ref,
            key(receipt.id),
            event.item.pointer,
            micros(receipt.received_at),
            event.item.created_at.map(micros),
            receipt.day,
            number(receipt.revision),
            state.as_str(),
            ignored.map(|_| "ignored"),
            ignored,
            unreadable_for,
        ],
    )?;
    if inserted == 0 {
        return seen_again(tx, receipt, event);
    }
    tally::received(tx, receipt.workspace, receipt.source, &receipt.day, state)?;
    if state == EventState::Pending {
        run(
            tx,
            "INSERT INTO queue (workspace_id, event_id, target, priority, run_at, token) VALUES (?1, ?2, ?3, 0, ?4, 0)",
            params![
                key(receipt.workspace),
                key(event.id),
                target_key(Target::Source(receipt.source)),
                micros(receipt.received_at),
            ],
        )?;
    }
    Ok(Accepted {
        event: event.id,
        is_new: true,
    })
}

/// A duplicate writes too (invariant 1).
fn seen_again(tx: &Transaction<'_>, receipt: &NewReceipt, event: &NewEvent) -> Result<Accepted> {
    let event = first(
        tx,
        "UPDATE event SET seen = seen + 1, seen_at = ?4 WHERE workspace_id = ?1 AND source_id = ?2 AND ref_hash = ?3
         RETURNING event_id",
        params![
            key(receipt.workspace),
            key(receipt.source),
            event.ref_hash,
            micros(receipt.received_at),
        ],
        |row| id(row, "event_id"),
    )?
    .ok_or_else(|| unreadable("event_id"))?;
    Ok(Accepted {
        event,
        is_new: false,
    })
}
