//! Between rows and values: ids, times, targets, documents. What cannot be read is an error, never a default.

use crate::{Error, Result};
use emanet_core::ids::{
    AlertId, AttemptId, DeadLetterId, DestinationId, EventId, ReceiptId, ReplayId, SourceId,
    StepId, Target, WorkspaceId,
};
use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Params, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

/// Runs a statement; says how many rows it changed.
pub(super) fn run(tx: &Connection, sql: &str, params: impl Params) -> Result<usize> {
    Ok(tx.prepare_cached(sql)?.execute(params)?)
}

/// Every row of a query.
pub(super) fn list<T>(
    tx: &Connection,
    sql: &str,
    params: impl Params,
    read: impl Fn(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut statement = tx.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// The first row of a query, if there is one.
pub(super) fn first<T>(
    tx: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> Result<T>,
) -> Result<Option<T>> {
    let mut statement = tx.prepare_cached(sql)?;
    statement
        .query_row(params, |row| Ok(read(row)))
        .optional()?
        .transpose()
}

/// An id that is kept as the 16 bytes of its UUID.
pub(super) trait Id: Sized {
    fn uuid(&self) -> &Uuid;
    fn of(uuid: Uuid) -> Self;
}

macro_rules! ids {
    ($($name:ident),*) => {$(
        impl Id for $name {
            fn uuid(&self) -> &Uuid {
                self.as_uuid()
            }

            fn of(uuid: Uuid) -> Self {
                Self::from_uuid(uuid)
            }
        }
    )*};
}

ids!(
    AlertId,
    AttemptId,
    DeadLetterId,
    DestinationId,
    EventId,
    ReceiptId,
    ReplayId,
    SourceId,
    StepId,
    WorkspaceId
);

/// An id as it is stored.
pub(super) fn key<T: Id>(id: T) -> [u8; 16] {
    *id.uuid().as_bytes()
}

/// An optional id as it is stored.
pub(super) fn key_opt<T: Id>(id: Option<T>) -> Option<[u8; 16]> {
    id.map(key)
}

/// Reads an id.
pub(super) fn id<T: Id>(row: &Row<'_>, column: &str) -> Result<T> {
    Ok(T::of(Uuid::from_bytes(row.get(column)?)))
}

/// Reads an id that may be absent.
pub(super) fn id_opt<T: Id>(row: &Row<'_>, column: &str) -> Result<Option<T>> {
    let bytes: Option<[u8; 16]> = row.get(column)?;
    Ok(bytes.map(|bytes| T::of(Uuid::from_bytes(bytes))))
}

/// A target as it is stored: what it is, then its id.
pub(super) fn target_key(target: Target) -> [u8; 17] {
    let mut key = [0; 17];
    key[0] = match target {
        Target::Source(_) => b's',
        Target::Destination(_) => b'd',
    };
    key[1..].copy_from_slice(target.as_uuid().as_bytes());
    key
}

/// Reads a target.
pub(super) fn target(row: &Row<'_>, column: &str) -> Result<Target> {
    target_opt(row, column)?.ok_or_else(|| unreadable(column))
}

/// Reads a target that may be absent.
pub(super) fn target_opt(row: &Row<'_>, column: &str) -> Result<Option<Target>> {
    let Some(bytes) = row.get::<_, Option<[u8; 17]>>(column)? else {
        return Ok(None);
    };
    let uuid = Uuid::from_slice(&bytes[1..]).map_err(|_| unreadable(column))?;
    match bytes[0] {
        b's' => Ok(Some(Target::Source(SourceId::from_uuid(uuid)))),
        b'd' => Ok(Some(Target::Destination(DestinationId::from_uuid(uuid)))),
        _ => Err(unreadable(column)),
    }
}

/// A time as it is stored.
pub(super) fn micros(time: Timestamp) -> i64 {
    time.as_microsecond()
}

/// Reads a time.
pub(super) fn time(row: &Row<'_>, column: &str) -> Result<Timestamp> {
    Timestamp::from_microsecond(row.get(column)?).map_err(|_| unreadable(column))
}

/// Reads a time that may be absent.
pub(super) fn time_opt(row: &Row<'_>, column: &str) -> Result<Option<Timestamp>> {
    row.get::<_, Option<i64>>(column)?
        .map(|micros| Timestamp::from_microsecond(micros).map_err(|_| unreadable(column)))
        .transpose()
}

/// A count as it is stored. Counts stay far below the limit: one per microsecond would take 292,000 years (H19).
pub(super) fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Reads a count.
pub(super) fn count(row: &Row<'_>, column: &str) -> Result<u64> {
    u64::try_from(row.get::<_, i64>(column)?).map_err(|_| unreadable(column))
}

/// A document as it is stored.
pub(super) fn document<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Error::Corrupt(format!("a document cannot be written: {error}")))
}

/// Reads a document.
pub(super) fn parsed<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> Result<T> {
    serde_json::from_str(
        row.get_ref(column)?
            .as_str()
            .map_err(|_| unreadable(column))?,
    )
    .map_err(|_| unreadable(column))
}

/// Reads a document that may be absent.
pub(super) fn parsed_opt<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> Result<Option<T>> {
    match row.get_ref(column)? {
        rusqlite::types::ValueRef::Null => Ok(None),
        _ => parsed(row, column).map(Some),
    }
}

/// Reads a word that a serde enum spells the same way.
pub(super) fn word<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> Result<T> {
    word_opt(row, column)?.ok_or_else(|| unreadable(column))
}

/// Reads a word that may be absent.
pub(super) fn word_opt<T: DeserializeOwned>(row: &Row<'_>, column: &str) -> Result<Option<T>> {
    row.get::<_, Option<String>>(column)?
        .map(|text| {
            serde_json::from_value(serde_json::Value::String(text)).map_err(|_| unreadable(column))
        })
        .transpose()
}

/// A serde enum as the word it is stored under.
pub(super) fn spelled<T: Serialize>(value: &T) -> Result<String> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => Ok(text),
        _ => Err(Error::Corrupt("a value has no single word".into())),
    }
}

/// What is stored in a column makes no sense. Names the column only: the content may be personal.
pub(super) fn unreadable(column: &str) -> Error {
    Error::Corrupt(format!("column {column} cannot be read"))
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        match &error {
            rusqlite::Error::SqliteFailure(failure, message) => match failure.code {
                ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
                    Self::Corrupt(failure.to_string())
                }
                ErrorCode::ConstraintViolation => {
                    Self::Conflict(message.clone().unwrap_or_else(|| failure.to_string()))
                }
                _ => Self::Unavailable(failure.to_string()),
            },
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..) => {
                Self::Corrupt("a stored value has another type than expected".into())
            }
            // Statements carry placeholders, never values, so their text may be shown.
            _ => Self::Unavailable(error.to_string()),
        }
    }
}
