//! Objects of the CRM inside the product.

use super::page::{Place, Query};
use super::row::{document, first, id, key, micros, parsed, run, time};
use crate::{
    Error, Listed, NewSandboxObject, Page, Result, SandboxChange, SandboxFilter, SandboxObject,
};
use emanet_core::ids::{DestinationId, WorkspaceId};
use rusqlite::types::Value;
use rusqlite::{Row, Transaction, named_params, params};

/// Creates an object, or returns the one made with the same key.
pub(super) fn create(tx: &Transaction<'_>, new: &NewSandboxObject) -> Result<SandboxObject> {
    let made = match &new.key {
        Some(used) => first(
            tx,
            "SELECT * FROM sandbox_object WHERE workspace_id = ?1 AND destination_id = ?2 AND idempotency_key = ?3",
            params![key(new.workspace), key(new.destination), used],
            read,
        )?,
        None => None,
    };
    if let Some(made) = made {
        return Ok(made);
    }
    run(
        tx,
        "INSERT INTO sandbox_object (workspace_id, destination_id, object_id, object, external_id, idempotency_key, fields, created_at, updated_at)
         VALUES (:workspace, :destination, :id, :object, :external_id, :key, :fields, :now, :now)",
        named_params! {
            ":workspace": key(new.workspace),
            ":destination": key(new.destination),
            ":id": new.id,
            ":object": new.object,
            ":external_id": new.external_id,
            ":key": new.key,
            ":fields": document(&new.fields)?,
            ":now": micros(new.now),
        },
    )?;
    get(tx, new.workspace, new.destination, &new.id)
}

/// Replaces the named fields of an object.
pub(super) fn update(tx: &Transaction<'_>, change: &SandboxChange) -> Result<SandboxObject> {
    let mut object = get(tx, change.workspace, change.destination, &change.id)?;
    object.fields.extend(change.fields.clone());
    object.updated_at = change.now;
    run(
        tx,
        "UPDATE sandbox_object SET fields = ?4, updated_at = ?5
         WHERE workspace_id = ?1 AND destination_id = ?2 AND object_id = ?3",
        params![
            key(change.workspace),
            key(change.destination),
            change.id,
            document(&object.fields)?,
            micros(change.now)
        ],
    )?;
    Ok(object)
}

/// Objects, newest first.
pub(super) fn list(
    tx: &Transaction<'_>,
    filter: &SandboxFilter,
    page: &Page,
) -> Result<Listed<SandboxObject>> {
    let bytes = |key: [u8; 16]| Value::Blob(key.to_vec());
    let mut query = Query::new("SELECT * FROM sandbox_object");
    query.when_some("workspace_id = ?", filter.workspace.map(|w| bytes(key(w))));
    query.when_some(
        "destination_id = ?",
        filter.destination.map(|d| bytes(key(d))),
    );
    query.when_some("object = ?", filter.object.clone());
    query.when_some("external_id = ?", filter.external_id.clone());
    query.when_some("object_id = ?", filter.id.clone());
    let columns = [
        "created_at",
        "CAST(hex(destination_id) || object_id AS BLOB)",
    ];
    query.page(tx, page, columns, read, |object| {
        let destination = object.destination.as_uuid().simple();
        Place::new(
            object.created_at,
            format!("{destination:X}{}", object.id).as_bytes(),
        )
    })
}

fn get(
    tx: &Transaction<'_>,
    workspace: WorkspaceId,
    destination: DestinationId,
    object: &str,
) -> Result<SandboxObject> {
    first(
        tx,
        "SELECT * FROM sandbox_object WHERE workspace_id = ?1 AND destination_id = ?2 AND object_id = ?3",
        params![key(workspace), key(destination), object],
        read,
    )?
    .ok_or(Error::NotFound("object"))
}

fn read(row: &Row<'_>) -> Result<SandboxObject> {
    Ok(SandboxObject {
        destination: id(row, "destination_id")?,
        id: row.get("object_id")?,
        object: row.get("object")?,
        external_id: row.get("external_id")?,
        fields: parsed(row, "fields")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
    })
}
