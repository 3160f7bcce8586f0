//! Revisions of the configuration, and the ids of the names in them. An id, once given to a name, is kept for ever: it is part
//! of every idempotency key.

use super::row::{count, first, id, key, list, micros, number, run, time};
use crate::{Configuration, Error, NamedDestination, NamedSource, NewRevision, Result, Revision};
use emanet_core::ids::WorkspaceId;
use rusqlite::{Row, Transaction, params};

/// The configuration in force.
pub(super) fn configuration(tx: &Transaction<'_>) -> Result<Option<Configuration>> {
    let latest = first(
        tx,
        "SELECT * FROM revision ORDER BY number DESC LIMIT 1",
        [],
        read,
    )?;
    let Some(revision) = latest else {
        return Ok(None);
    };
    let workspaces = list(tx, "SELECT name, workspace_id FROM workspace", [], |row| {
        Ok((row.get("name")?, id(row, "workspace_id")?))
    })?;
    Ok(Some(Configuration {
        revision,
        workspaces: workspaces.into_iter().collect(),
        sources: list(
            tx,
            "SELECT * FROM source ORDER BY workspace_id, name",
            [],
            |row| {
                Ok(NamedSource {
                    workspace: id(row, "workspace_id")?,
                    name: row.get("name")?,
                    id: id(row, "source_id")?,
                    token: row.get("token")?,
                })
            },
        )?,
        destinations: list(
            tx,
            "SELECT * FROM destination ORDER BY workspace_id, name",
            [],
            |row| {
                Ok(NamedDestination {
                    workspace: id(row, "workspace_id")?,
                    name: row.get("name")?,
                    id: id(row, "destination_id")?,
                })
            },
        )?,
    }))
}

/// A revision by number.
pub(super) fn revision(tx: &Transaction<'_>, wanted: u64) -> Result<Revision> {
    first(
        tx,
        "SELECT * FROM revision WHERE number = ?1",
        [number(wanted)],
        read,
    )?
    .ok_or(Error::NotFound("revision"))
}

/// Records a revision, if nothing was applied since the one it was derived from.
pub(super) fn apply(tx: &Transaction<'_>, new: &NewRevision) -> Result<Configuration> {
    let current = first(
        tx,
        "SELECT coalesce(max(number), 0) AS number FROM revision",
        [],
        |row| count(row, "number"),
    )?
    .unwrap_or(0);
    if current != new.based_on {
        return Err(Error::Conflict(format!(
            "revision {current} is in force; the change was derived from {}",
            new.based_on
        )));
    }
    run(
        tx,
        "INSERT INTO revision (number, digest, document, applied_by, applied_at) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![
            number(current + 1),
            new.digest,
            new.document,
            new.by,
            micros(new.at)
        ],
    )?;
    for (name, workspace) in &new.workspaces {
        keep_workspace(tx, name, *workspace)?;
    }
    for source in &new.sources {
        run(
            tx,
            "INSERT INTO source (workspace_id, source_id, name, token) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (workspace_id, name) DO UPDATE SET token = excluded.token",
            params![
                key(source.workspace),
                key(source.id),
                source.name,
                source.token
            ],
        )?;
    }
    for destination in &new.destinations {
        run(
            tx,
            "INSERT INTO destination (workspace_id, destination_id, name) VALUES (?1, ?2, ?3)
             ON CONFLICT (workspace_id, name) DO NOTHING",
            params![
                key(destination.workspace),
                key(destination.id),
                destination.name
            ],
        )?;
    }
    configuration(tx)?.ok_or(Error::NotFound("revision"))
}

/// Names are unique in the installation. No constraint says so, since none may span workspaces; there is one writer.
fn keep_workspace(tx: &Transaction<'_>, name: &str, workspace: WorkspaceId) -> Result<()> {
    run(
        tx,
        "INSERT INTO workspace (workspace_id, name) SELECT ?1, ?2
         WHERE NOT EXISTS (SELECT 1 FROM workspace WHERE name = ?2)",
        params![key(workspace), name],
    )?;
    Ok(())
}

fn read(row: &Row<'_>) -> Result<Revision> {
    Ok(Revision {
        number: count(row, "number")?,
        digest: row.get("digest")?,
        document: row.get("document")?,
        by: row.get("applied_by")?,
        at: time(row, "applied_at")?,
    })
}
