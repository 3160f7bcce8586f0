//! Counters of what came in and where it stands, moved in the same transaction as the rows they count (invariant 3).

use super::row::{first, id, key, list, run, word};
use crate::{Miscount, Result, Status};
use emanet_core::ids::{SourceId, WorkspaceId};
use emanet_core::step::EventState;
use rusqlite::{Row, Transaction, params};
use std::collections::BTreeMap;

/// Every state an event can be in; the tally has a column for each.
const STATES: [EventState; 6] = [
    EventState::Pending,
    EventState::Held,
    EventState::Done,
    EventState::Dead,
    EventState::Ignored,
    EventState::Erased,
];

/// The counter of everything that came in.
const RECEIVED: &str = "received";

/// Counts a new event.
pub(super) fn received(
    tx: &Transaction<'_>,
    workspace: WorkspaceId,
    source: SourceId,
    day: &str,
    state: EventState,
) -> Result<()> {
    let column = state.as_str();
    run(
        tx,
        &format!(
            "INSERT INTO tally (workspace_id, source_id, day, received, {column}) VALUES (?1, ?2, ?3, 1, 1)
             ON CONFLICT DO UPDATE SET received = received + 1, {column} = {column} + 1"
        ),
        params![key(workspace), key(source), day],
    )?;
    Ok(())
}

/// Counts that an event went from one state to another.
pub(super) fn moved(
    tx: &Transaction<'_>,
    workspace: WorkspaceId,
    source: SourceId,
    day: &str,
    from: EventState,
    to: EventState,
) -> Result<()> {
    let (from, to) = (from.as_str(), to.as_str());
    run(
        tx,
        &format!(
            "UPDATE tally SET {from} = {from} - 1, {to} = {to} + 1
             WHERE workspace_id = ?1 AND source_id = ?2 AND day = ?3"
        ),
        params![key(workspace), key(source), day],
    )?;
    Ok(())
}

/// Sums of the counters, as far as they make up a status.
pub(super) fn sums(tx: &Transaction<'_>, workspace: Option<WorkspaceId>) -> Result<Status> {
    let columns: Vec<_> = STATES
        .iter()
        .map(|state| format!("coalesce(sum({0}), 0) AS {0}", state.as_str()))
        .collect();
    let sums = first(
        tx,
        &format!(
            "SELECT coalesce(sum(received), 0) AS received, {} FROM tally
             WHERE ?1 IS NULL OR workspace_id = ?1",
            columns.join(", ")
        ),
        [workspace.map(key)],
        |row| {
            // A counter below zero is a miscount like any other; it must not keep the status from being shown.
            let sum = |column: &str| -> Result<u64> {
                Ok(u64::try_from(row.get::<_, i64>(column)?).unwrap_or(0))
            };
            Ok(Status {
                received: sum("received")?,
                pending: sum("pending")?,
                held: sum("held")?,
                done: sum("done")?,
                dead: sum("dead")?,
                ignored: sum("ignored")?,
                erased: sum("erased")?,
                ..Status::default()
            })
        },
    )?;
    Ok(sums.unwrap_or_default())
}

/// Every workspace that ever received anything.
pub(super) fn workspaces(tx: &Transaction<'_>) -> Result<Vec<WorkspaceId>> {
    list(
        tx,
        "SELECT DISTINCT workspace_id FROM tally ORDER BY workspace_id",
        [],
        |row| id(row, "workspace_id"),
    )
}

/// Compares a workspace's counters with the rows they count, both as they stand at one moment.
pub(super) fn recount(tx: &Transaction<'_>, workspace: WorkspaceId) -> Result<Vec<Miscount>> {
    let mut figures = BTreeMap::<_, (i64, i64)>::new();
    for state in STATES {
        let column = state.as_str();
        let tallied =
            format!("SELECT source_id, day, {column} AS n FROM tally WHERE workspace_id = ?1");
        for (source, day, n) in list(tx, &tallied, [key(workspace)], figure)? {
            figures.entry((source, day, column)).or_default().0 = n;
        }
    }
    let received = "SELECT source_id, day, received AS n FROM tally WHERE workspace_id = ?1";
    for (source, day, n) in list(tx, received, [key(workspace)], figure)? {
        figures.entry((source, day, RECEIVED)).or_default().0 = n;
    }
    let rows = "SELECT source_id, day, state, count(*) AS n FROM event WHERE workspace_id = ?1 GROUP BY 1, 2, 3";
    let rows = list(tx, rows, [key(workspace)], |row| {
        Ok((figure(row)?, word::<EventState>(row, "state")?))
    })?;
    for ((source, day, n), state) in rows {
        figures
            .entry((source, day.clone(), state.as_str()))
            .or_default()
            .1 = n;
        figures.entry((source, day, RECEIVED)).or_default().1 += n;
    }
    Ok(figures
        .into_iter()
        .filter(|(_, (tally, rows))| tally != rows)
        .map(|((source, day, what), (tally, rows))| Miscount {
            workspace,
            source,
            day,
            what: what.to_owned(),
            tally: u64::try_from(tally).unwrap_or(0),
            rows: u64::try_from(rows).unwrap_or(0),
        })
        .collect())
}

fn figure(row: &Row<'_>) -> Result<(SourceId, String, i64)> {
    Ok((id(row, "source_id")?, row.get("day")?, row.get("n")?))
}
