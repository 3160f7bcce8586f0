//! Brings the schema up to this binary's version. Migrations are only ever added: one that was applied is compared by
//! checksum, and a database written by something newer is refused, never guessed at.

use super::row::{first, list, run};
use crate::{Error, Result};
use rusqlite::{Connection, TransactionBehavior, params};
use sha2::{Digest, Sha256};

/// Marks a file as ours (`EMNT`), so that somebody else's database is never migrated.
const APPLICATION_ID: i64 = 0x454d_4e54;

struct Migration {
    name: &'static str,
    sql: &'static str,
}

/// In order; the version of a migration is its place, counted from 1.
const MIGRATIONS: &[Migration] = &[Migration {
    name: "start",
    sql: include_str!("../../migrations/sqlite/0001_start.sql"),
}];

/// The schema version this binary writes.
pub(super) fn version() -> u32 {
    u32::try_from(MIGRATIONS.len()).expect("there are fewer than four billion migrations")
}

/// Checks the header and the schema's version, and applies what is missing in one transaction.
pub(super) fn migrate(connection: &mut Connection) -> Result<()> {
    let application = pragma(connection, "application_id")?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION_ID && (application != 0 || tables != 0) {
        return Err(Error::Corrupt(
            "the database was not written by Emanet".into(),
        ));
    }
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    tx.execute_batch(
        "CREATE TABLE IF NOT EXISTS schema_version (
    version INTEGER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL
) STRICT",
    )?;
    let applied = list(
        &tx,
        "SELECT version, checksum FROM schema_version ORDER BY version",
        [],
        |row| Ok((row.get::<_, u32>(0)?, row.get::<_, String>(1)?)),
    )?;
    check_history(&applied)?;
    for (version, migration) in (1..=version()).zip(MIGRATIONS).skip(applied.len()) {
        tx.execute_batch(migration.sql)?;
        run(
            &tx,
            "INSERT INTO schema_version (version, name, checksum) VALUES (?1, ?2, ?3)",
            params![version, migration.name, checksum(migration)],
        )?;
    }
    tx.execute_batch(&format!("PRAGMA application_id = {APPLICATION_ID}"))?;
    tx.commit()?;
    Ok(())
}

/// The version in the database.
pub(super) fn stored_version(connection: &Connection) -> Result<u32> {
    let version = first(
        connection,
        "SELECT max(version) FROM schema_version",
        [],
        |row| Ok(row.get::<_, Option<u32>>(0)?),
    )?;
    Ok(version.flatten().unwrap_or(0))
}

fn check_history(applied: &[(u32, String)]) -> Result<()> {
    let newest = applied.last().map_or(0, |(version, _)| *version);
    if newest > version() {
        return Err(Error::Corrupt(format!(
            "the schema has version {newest}, this program knows versions up to {}; use a newer program",
            version()
        )));
    }
    for ((version, stored), migration) in applied.iter().zip(MIGRATIONS) {
        if *stored != checksum(migration) {
            return Err(Error::Corrupt(format!(
                "migration {version} was applied in another wording than this program has"
            )));
        }
    }
    Ok(())
}

fn checksum(migration: &Migration) -> String {
    Sha256::digest(migration.sql)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn pragma(connection: &Connection, name: &str) -> Result<i64> {
    Ok(connection.pragma_query_value(None, name, |row| row.get(0))?)
}
