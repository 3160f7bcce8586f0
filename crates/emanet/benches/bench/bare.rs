//! The baselines: the same row into bare SQLite, durably, without Emanet around it.

use crate::load::body;
use rusqlite::{Connection, params};
use std::time::Instant;

/// Rows per second into one table with a unique key, `batch` rows per commit, on this machine's disk.
pub fn rows_per_second(total: usize, batch: usize) -> Result<f64, Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let connection = Connection::open(dir.path().join("bare.db"))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch(
        "CREATE TABLE row (key TEXT PRIMARY KEY, at INTEGER NOT NULL, body BLOB NOT NULL) STRICT;",
    )?;
    let mut insert = connection.prepare("INSERT INTO row (key, at, body) VALUES (?1, ?2, ?3)")?;
    let started = Instant::now();
    for first in (0..total).step_by(batch) {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        for number in first..(first + batch).min(total) {
            insert.execute(params![
                format!("bench-{number}"),
                number as i64,
                body(number).as_bytes()
            ])?;
        }
        connection.execute_batch("COMMIT")?;
    }
    Ok(total as f64 / started.elapsed().as_secs_f64())
}
