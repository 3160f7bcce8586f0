//! Opens connections, and refuses any on which the settings durability rests on are not in force (invariant 1).

use crate::{Error, Result};
use rusqlite::{Connection, OpenFlags};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

/// Before 3.51.3 two connections that write and checkpoint at once can lose acknowledged commits (dependencies.md 1).
const LIBRARY_VERSION_MIN: i32 = 3_051_003;
/// Prepared statements kept per connection; more than there are in the engine.
const STATEMENTS_KEPT: usize = 256;
/// How long a connection waits for another one, before "busy". There is one writer, so only recovery and checkpoints make it wait.
pub(super) const BUSY_WAIT: Duration = Duration::from_secs(5);

/// Pages of the log that are moved into the database in one go: 32 MB. Pages that change often are moved once for many changes,
/// and the log never gets much larger.
const LOG_PAGES: u32 = 8_192;
/// Memory the writer keeps pages in, in KiB. Each new event changes a page somewhere in the index it is unique by.
const WRITER_CACHE_KIB: i32 = 16 * 1024;

/// Settings of every connection, with the values SQLite reports for them.
const SETTINGS: &[(&str, &str)] = &[
    ("foreign_keys", "1"),
    ("journal_mode", "wal"),
    ("secure_delete", "1"),
    ("synchronous", "2"),
    ("temp_store", "2"),
    ("wal_autocheckpoint", "8192"),
];

/// The writing connection. There is never a second one on a file.
pub(super) fn open_writer(path: &Path) -> Result<Connection> {
    if rusqlite::version_number() < LIBRARY_VERSION_MIN {
        return Err(Error::Unavailable(format!(
            "SQLite {} can lose acknowledged commits; 3.51.3 or newer is needed",
            rusqlite::version()
        )));
    }
    create(path)
        .map_err(|error| Error::Unavailable(format!("cannot open the database: {error}")))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    configure(&connection)?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    refuse_unless_in_force(&connection)?;
    Ok(connection)
}

/// A connection that cannot write.
pub(super) fn open_reader(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    configure(&connection)?;
    Ok(connection)
}

/// Every setting as SQLite reports it.
pub(super) fn settings(connection: &Connection) -> Result<BTreeMap<String, String>> {
    SETTINGS
        .iter()
        .map(|(name, _)| {
            let value = connection.pragma_query_value(None, name, |row| {
                Ok(match row.get_ref(0)? {
                    rusqlite::types::ValueRef::Integer(number) => number.to_string(),
                    other => other.as_str()?.to_owned(),
                })
            })?;
            Ok(((*name).to_owned(), value))
        })
        .collect()
}

/// What is wrong with the settings; empty if all are in force.
pub(super) fn problems(settings: &BTreeMap<String, String>) -> Vec<String> {
    SETTINGS
        .iter()
        .filter_map(|(name, wanted)| {
            let found = settings.get(*name).map_or("unknown", String::as_str);
            (found != *wanted).then(|| format!("{name} is {found}, not {wanted}"))
        })
        .collect()
}

fn configure(connection: &Connection) -> Result<()> {
    connection.busy_timeout(BUSY_WAIT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    connection.pragma_update(None, "secure_delete", "ON")?;
    // What a statement may have to undo is kept in memory, not in a file of its own.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    Ok(())
}

fn refuse_unless_in_force(connection: &Connection) -> Result<()> {
    let problems = problems(&settings(connection)?);
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Error::Unavailable(format!(
            "SQLite does not keep what durability rests on: {}",
            problems.join(", ")
        )))
    }
}

/// Creates the file for its owner only, before SQLite would create it for everybody; the log beside it inherits the mode. The
/// directory is synced, so that the file's name survives a power cut too.
fn create(path: &Path) -> io::Result<()> {
    let owner_only = 0o600;
    match OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(owner_only)
        .open(path)
    {
        Ok(file) => {
            file.sync_all()?;
            match path.parent() {
                Some(dir) => File::open(dir)?.sync_all(),
                None => Ok(()),
            }
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::set_permissions(path, Permissions::from_mode(owner_only))
        }
        Err(error) => Err(error),
    }
}
