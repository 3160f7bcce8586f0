//! Lists of events and the health of the queue. Lists read columns only, never documents, so that no single row breaks them (H59).

use super::page::{Place, Query, merged};
use super::row::{count, first, id, key, list, micros, spelled, target_key, time, time_opt, word};
use super::tally;
use crate::{EventSummary, Filter, Listed, Page, Result, Status};
use emanet_core::ids::{Target, WorkspaceId};
use jiff::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Row, Transaction, params};

/// An event with its place in the queue.
pub(super) const SELECT: &str = "SELECT e.*, q.run_at, q.lease_until IS NOT NULL AS processing
    FROM event e LEFT JOIN queue q ON q.workspace_id = e.workspace_id AND q.event_id = e.event_id";

/// Reads a row of [`SELECT`].
pub(super) fn summary(row: &Row<'_>) -> Result<EventSummary> {
    Ok(EventSummary {
        workspace: id(row, "workspace_id")?,
        id: id(row, "event_id")?,
        receipt: id(row, "receipt_id")?,
        source: id(row, "source_id")?,
        source_ref: row.get("source_ref")?,
        received_at: time(row, "received_at")?,
        created_at: time_opt(row, "created_at")?,
        state: word(row, "state")?,
        processing: row.get("processing")?,
        run_at: time_opt(row, "run_at")?,
        seen: count(row, "seen")?,
        ignored: row.get("ignored")?,
        revision: count(row, "revision")?,
        name: row.get("name")?,
        phone: row.get("phone")?,
        email: row.get("email")?,
        is_test: row.get("is_test")?,
    })
}

/// Events, newest first.
pub(super) fn events(
    tx: &Transaction<'_>,
    filter: &Filter,
    page: &Page,
) -> Result<Listed<EventSummary>> {
    let place = |event: &EventSummary| Place::new(event.received_at, &key(event.id));
    let one = |workspace| {
        let mut query = Query::new(SELECT);
        restrict(&mut query, workspace, filter)?;
        query.page(tx, page, ["e.received_at", "e.event_id"], summary, place)
    };
    match filter.workspace {
        Some(workspace) => one(workspace),
        None => merged(tally::workspaces(tx)?, page, one, place),
    }
}

fn restrict(query: &mut Query, workspace: WorkspaceId, filter: &Filter) -> Result<()> {
    let bytes = |key: &[u8]| Value::Blob(key.to_vec());
    query.when("e.workspace_id = ?", [bytes(&key(workspace))]);
    query.when_some("e.source_id = ?", filter.source.map(|s| bytes(&key(s))));
    query.when_some("e.state = ?", filter.state.map(|s| s.as_str().to_owned()));
    query.when_some("e.received_at >= ?", filter.since.map(micros));
    query.when_some("e.received_at < ?", filter.until.map(micros));
    query.when_contains(
        &["e.name", "e.phone", "e.email", "e.source_ref"],
        filter.text.as_deref(),
    );
    match filter.target {
        Some(Target::Source(source)) => query.when("e.source_id = ?", [bytes(&key(source))]),
        Some(target) => query.when(&step_with("s.target = ?"), [bytes(&target_key(target))]),
        None => {}
    }
    query.when_some(&step_with("s.name = ?"), filter.step.clone());
    if let Some(class) = filter.class.as_ref().map(spelled).transpose()? {
        let condition = format!(
            "({} OR {})",
            step_with("s.class = ?"),
            letter_with("d.class = ?")
        );
        query.when(&condition, [class.clone().into(), class.into()]);
    }
    if let Some(cause) = &filter.cause {
        let condition = format!(
            "({} OR {})",
            step_with("s.held_under = ?"),
            letter_with("d.cause = ?")
        );
        query.when(&condition, [cause.clone().into(), cause.clone().into()]);
    }
    match filter.open {
        Some(true) => query.when(&letter_with("d.resolution IS NULL"), []),
        Some(false) => query.when(&letter_with("d.resolution IS NOT NULL"), []),
        None => {}
    }
    Ok(())
}

fn step_with(condition: &str) -> String {
    format!(
        "EXISTS (SELECT 1 FROM step s WHERE s.workspace_id = e.workspace_id AND s.event_id = e.event_id AND {condition})"
    )
}

fn letter_with(condition: &str) -> String {
    format!(
        "EXISTS (SELECT 1 FROM dead_letter d WHERE d.workspace_id = e.workspace_id AND d.event_id = e.event_id AND {condition})"
    )
}

/// Queue health (MON-3): sums of the counters, and a few look-ups that read only what is unfinished.
pub(super) fn status(
    tx: &Transaction<'_>,
    workspace: Option<WorkspaceId>,
    now: Timestamp,
) -> Result<Status> {
    let only = workspace.map(key);
    let mut status = tally::sums(tx, workspace)?;
    // CROSS JOIN keeps the order: from the few that are leased to their events, not from all that are pending.
    let processing = first(
        tx,
        "SELECT count(*) AS n FROM queue q CROSS JOIN event e ON e.workspace_id = q.workspace_id AND e.event_id = q.event_id
         WHERE q.lease_until IS NOT NULL AND q.lease_until > ?2 AND (?1 IS NULL OR q.workspace_id = ?1) AND e.state = 'pending'",
        params![only, micros(now)],
        |row| count(row, "n"),
    )?
    .unwrap_or(0);
    status.processing = processing.min(status.pending);
    status.pending -= status.processing;
    let oldest = first(
        tx,
        "SELECT received_at FROM event WHERE state = 'pending' AND (?1 IS NULL OR workspace_id = ?1)
         ORDER BY received_at LIMIT 1",
        [only],
        |row| time(row, "received_at"),
    )?;
    let age = oldest.map_or(0, |oldest| now.as_second() - oldest.as_second());
    status.oldest_pending_seconds = u64::try_from(age).unwrap_or(0);
    status.by_class = list(
        tx,
        "SELECT class, count(*) AS n FROM dead_letter WHERE resolution IS NULL AND (?1 IS NULL OR workspace_id = ?1)
         GROUP BY class",
        [only],
        |row| Ok((word(row, "class")?, count(row, "n")?)),
    )?
    .into_iter()
    .collect();
    status.open_dead_letters = status.by_class.values().sum();
    let sum = status.done
        + status.pending
        + status.processing
        + status.held
        + status.dead
        + status.ignored
        + status.erased;
    status.closes = status.received == sum;
    Ok(status)
}
