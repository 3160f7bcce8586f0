//! Alerts: one open at a time per cause, counted while it lasts.

use super::page::{Place, Query};
use super::row::{
    count, first, id, key, micros, run, spelled, target_key, target_opt, time, time_opt,
    unreadable, word_opt,
};
use crate::{Alert, Listed, NewAlert, Page, Result};
use emanet_core::ids::WorkspaceId;
use jiff::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Row, Transaction, named_params, params};

/// An alert and its dead letter are at most this far apart by the clock.
const SAME_MOMENT_MICROS: i64 = 100_000;

/// Raises an alert, or counts it under the open one.
pub(super) fn raise(tx: &Transaction<'_>, alert: &NewAlert) -> Result<(Alert, bool)> {
    let raised = first(
        tx,
        "INSERT INTO alert (workspace_id, alert_id, cause, class, target, message, hint, first_at, last_at, count)
         VALUES (:workspace, :id, :cause, :class, :target, :message, :hint, :now, :now, 1)
         ON CONFLICT (workspace_id, cause) WHERE closed_at IS NULL
         DO UPDATE SET count = count + 1, last_at = max(last_at, excluded.last_at)
         RETURNING *",
        named_params! {
            ":workspace": key(alert.workspace),
            ":id": key(alert.id),
            ":cause": alert.cause,
            ":class": alert.class.as_ref().map(spelled).transpose()?,
            ":target": alert.target.map(target_key),
            ":message": alert.message,
            ":hint": alert.hint,
            ":now": micros(alert.now),
        },
        read,
    )?
    .ok_or_else(|| unreadable("alert_id"))?;
    let is_new = raised.count == 1;
    Ok((raised, is_new))
}

/// Closes the open alert of a cause, if there is one.
pub(super) fn close(
    tx: &Transaction<'_>,
    workspace: WorkspaceId,
    cause: &str,
    now: Timestamp,
) -> Result<()> {
    run(
        tx,
        "UPDATE alert SET closed_at = ?3 WHERE workspace_id = ?1 AND cause = ?2 AND closed_at IS NULL",
        params![key(workspace), cause, micros(now)],
    )?;
    Ok(())
}

/// Closes the open alert of a cause under which nothing waits for a person any more. An alert is raised just before its dead
/// letter is written down; one that was raised since the last dead letter is left open, since its own is still to come.
/// The two look at the clock one after the other, in either order.
pub(super) fn close_if_settled(
    tx: &Transaction<'_>,
    workspace: WorkspaceId,
    cause: &str,
    now: Timestamp,
) -> Result<()> {
    run(
        tx,
        "UPDATE alert SET closed_at = ?3 WHERE workspace_id = ?1 AND cause = ?2 AND closed_at IS NULL
             AND NOT EXISTS (SELECT 1 FROM dead_letter WHERE workspace_id = ?1 AND cause = ?2 AND resolution IS NULL)
             AND NOT EXISTS (SELECT 1 FROM step INDEXED BY step_held
                 WHERE workspace_id = ?1 AND state = 'held' AND held_under = ?2)
             AND EXISTS (SELECT 1 FROM dead_letter
                 WHERE workspace_id = ?1 AND dead_at >= alert.last_at - ?4 AND dead_letter.cause = ?2)",
        params![key(workspace), cause, micros(now), SAME_MOMENT_MICROS],
    )?;
    Ok(())
}

/// Alerts, newest first.
pub(super) fn list(
    tx: &Transaction<'_>,
    workspace: Option<WorkspaceId>,
    page: &Page,
) -> Result<Listed<Alert>> {
    let mut query = Query::new("SELECT * FROM alert");
    query.when_some(
        "workspace_id = ?",
        workspace.map(|w| Value::Blob(key(w).to_vec())),
    );
    query.page(tx, page, ["first_at", "alert_id"], read, |alert| {
        Place::new(alert.first_at, &key(alert.id))
    })
}

fn read(row: &Row<'_>) -> Result<Alert> {
    Ok(Alert {
        workspace: id(row, "workspace_id")?,
        id: id(row, "alert_id")?,
        cause: row.get("cause")?,
        class: word_opt(row, "class")?,
        target: target_opt(row, "target")?,
        message: row.get("message")?,
        hint: row.get("hint")?,
        first_at: time(row, "first_at")?,
        last_at: time(row, "last_at")?,
        count: count(row, "count")?,
        closed_at: time_opt(row, "closed_at")?,
    })
}
