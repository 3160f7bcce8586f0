//! State of targets, shared by all workers through compare-and-set, and the leads held for them.

use super::row::{
    count, document, first, id, key, list, micros, number, parsed, run, target, target_key,
};
use super::settle::{By, settle};
use crate::{Error, Release, Result, SaveTarget, TargetRecord};
use emanet_core::breaker;
use emanet_core::ids::EventId;
use rusqlite::{Transaction, params};
use std::collections::HashSet;

/// Every target that has a state or holds a lead.
pub(super) fn targets(tx: &Transaction<'_>) -> Result<Vec<TargetRecord>> {
    list(
        tx,
        "SELECT k.workspace_id, k.target, t.state, coalesce(t.version, 0) AS version, coalesce(h.n_held, 0) AS n_held
         FROM (SELECT workspace_id, target FROM target
               UNION SELECT workspace_id, target FROM step WHERE state = 'held') k
         LEFT JOIN target t ON t.workspace_id = k.workspace_id AND t.target = k.target
         LEFT JOIN (SELECT workspace_id, target, count(DISTINCT event_id) AS n_held FROM step WHERE state = 'held'
                    GROUP BY workspace_id, target) h ON h.workspace_id = k.workspace_id AND h.target = k.target",
        [],
        |row| {
            let has_state = row.get::<_, Option<String>>("state")?.is_some();
            Ok(TargetRecord {
                workspace: id(row, "workspace_id")?,
                target: target(row, "target")?,
                state: if has_state { state(row) } else { breaker::State::default() },
                version: count(row, "version")?,
                n_held: count(row, "n_held")?,
            })
        },
    )
}

/// A state of another version counts as closed: the next call finds out what is true, and overwrites it.
fn state(row: &rusqlite::Row<'_>) -> breaker::State {
    parsed(row, "state").unwrap_or_else(|error| {
        tracing::warn!(%error, "the state of a target cannot be read; it is taken as closed");
        breaker::State::default()
    })
}

/// Stores a state unless another worker stored one since.
pub(super) fn save(tx: &Transaction<'_>, save: &SaveTarget) -> Result<u64> {
    let saved = first(
        tx,
        "INSERT INTO target (workspace_id, target, state, version, saved_at) SELECT ?1, ?2, ?3, 1, ?4 WHERE ?5 = 0
         ON CONFLICT DO NOTHING RETURNING version",
        params![
            key(save.workspace),
            target_key(save.target),
            document(&save.state)?,
            micros(save.now),
            number(save.version)
        ],
        |row| count(row, "version"),
    )?;
    let saved = match saved {
        Some(version) => Some(version),
        None => first(
            tx,
            "UPDATE target SET state = ?3, version = version + 1, saved_at = ?4
             WHERE workspace_id = ?1 AND target = ?2 AND version = ?5 RETURNING version",
            params![
                key(save.workspace),
                target_key(save.target),
                document(&save.state)?,
                micros(save.now),
                number(save.version)
            ],
            |row| count(row, "version"),
        )?,
    };
    saved.ok_or_else(|| Error::Conflict("the target's state was changed by another worker".into()))
}

/// Lets held events go, those held longest first: one that fails its probe goes behind the others. The index is named because
/// a drain comes here for every few leads, and must not look through all the steps there ever were.
pub(super) fn release_held(tx: &Transaction<'_>, release: &Release) -> Result<Vec<EventId>> {
    let mut held = list(
        tx,
        "SELECT event_id FROM step INDEXED BY step_held WHERE workspace_id = ?1 AND target = ?2 AND state = 'held'
         ORDER BY held_at, event_id LIMIT ?3",
        params![
            key(release.workspace),
            target_key(release.target),
            release.limit
        ],
        |row| id::<EventId>(row, "event_id"),
    )?;
    let mut seen = HashSet::new();
    held.retain(|event| seen.insert(*event));
    for event in &held {
        run(
            tx,
            "UPDATE step SET state = 'pending', run_at = ?4, pass = ?5, held_under = NULL, held_at = NULL
             WHERE workspace_id = ?1 AND event_id = ?2 AND target = ?3 AND state = 'held'",
            params![
                key(release.workspace),
                key(*event),
                target_key(release.target),
                micros(release.now),
                release.with_pass
            ],
        )?;
        settle(tx, release.workspace, *event, release.now, By::Other)?;
    }
    Ok(held)
}
