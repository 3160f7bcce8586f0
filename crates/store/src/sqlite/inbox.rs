//! Stores requests and the events in them (IN-2, IN-3).

use super::row::{document, first, id, key, micros, number, run, target_key, unreadable};
use super::tally;
use crate::{NewReceipt, Result};
use emanet_core::event::{Accepted, Fate, NewEvent};
use emanet_core::ids::Target;
use emanet_core::step::EventState;
use rusqlite::{Transaction, named_params, params};
use sha2::{Digest, Sha256};

/// Stores a request. Whether an event is new is decided by the unique constraint, not by a look beforehand (H41); the same
/// event twice in one request is one event, seen twice (H66).
pub(super) fn accept(tx: &Transaction<'_>, receipt: &NewReceipt) -> Result<Vec<Accepted>> {
    let accepted = receipt
        .events
        .iter()
        .map(|event| accept_event(tx, receipt, event))
        .collect::<Result<Vec<_>>>()?;
    // A request that only repeats what is known adds nothing that is not stored already.
    if accepted.is_empty() || accepted.iter().any(|event| event.is_new) {
        keep_request(tx, receipt)?;
    }
    Ok(accepted)
}

fn keep_request(tx: &Transaction<'_>, receipt: &NewReceipt) -> Result<()> {
    let request = &receipt.request;
    run(
        tx,
        "INSERT INTO receipt (workspace_id, receipt_id, received_at, method, query, headers, body, body_sha256)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            key(receipt.workspace),
            key(receipt.id),
            micros(receipt.received_at),
            request.method,
            request.query,
            document(&request.headers)?,
            request.body,
            Sha256::digest(&request.body).as_slice(),
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
    let (event_id, seen) = first(
        tx,
        "INSERT INTO event (workspace_id, event_id, source_id, ref_hash, source_ref, receipt_id, pointer, received_at,
             created_at, day, revision, seen, seen_at, state, whole, ignored, unreadable)
         VALUES (:workspace, :event, :source, :hash, :source_ref, :receipt, :pointer, :received_at,
             :created_at, :day, :revision, 1, :received_at, :state, :whole, :ignored, :unreadable)
         ON CONFLICT (workspace_id, source_id, ref_hash) DO UPDATE SET seen = seen + 1, seen_at = excluded.seen_at
         RETURNING event_id, seen",
        named_params! {
            ":workspace": key(receipt.workspace),
            ":event": key(event.id),
            ":source": key(receipt.source),
            ":hash": event.ref_hash,
            ":source_ref": event.item.source_ref,
            ":receipt": key(receipt.id),
            ":pointer": event.item.pointer,
            ":received_at": micros(receipt.received_at),
            ":created_at": event.item.created_at.map(micros),
            ":day": receipt.day,
            ":revision": number(receipt.revision),
            ":state": state.as_str(),
            ":whole": ignored.map(|_| "ignored"),
            ":ignored": ignored,
            ":unreadable": unreadable_for,
        },
        |row| Ok((id(row, "event_id")?, row.get::<_, i64>("seen")?)),
    )?
    .ok_or_else(|| unreadable("event_id"))?;
    let is_new = seen == 1;
    if is_new {
        tally::received(tx, receipt.workspace, receipt.source, &receipt.day, state)?;
    }
    if is_new && state == EventState::Pending {
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
        event: event_id,
        is_new,
    })
}
