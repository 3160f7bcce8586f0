//! The baselines: the same row into bare SQLite, durably, without Emanet around it.

use crate::load::body;
use rusqlite::{Connection, Statement, params};
use std::path::Path;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Rows per second from callers that each wait for their row to be durable, into one writer thread that commits whatever is
/// waiting: what a bare engine gives the same senders.
pub fn rows_per_second_waiting(total: usize, callers: usize) -> Result<f64, Failed> {
    let dir = tempfile::tempdir()?;
    let (rows, mut waiting) = mpsc::channel::<(usize, oneshot::Sender<()>)>(4_096);
    let path = dir.path().join("bare.db");
    let writer = std::thread::spawn(move || -> Result<(), Failed> {
        let connection = open(&path)?;
        let mut insert = prepare(&connection)?;
        while let Some(first) = waiting.blocking_recv() {
            let mut batch = vec![first];
            while let (true, Ok(row)) = (batch.len() < 512, waiting.try_recv()) {
                batch.push(row);
            }
            connection.execute_batch("BEGIN IMMEDIATE")?;
            for (number, _) in &batch {
                put(&mut insert, *number)?;
            }
            connection.execute_batch("COMMIT")?;
            for (_, done) in batch {
                // A caller that is gone needs no answer.
                let _ = done.send(());
            }
        }
        Ok(())
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()?;
    let started = Instant::now();
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for caller in 0..callers {
            let rows = rows.clone();
            tasks.spawn(async move {
                for number in (caller..total).step_by(callers) {
                    let (done, durable) = oneshot::channel();
                    rows.send((number, done)).await?;
                    durable.await?;
                }
                Ok::<_, Failed>(())
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        Ok::<_, Failed>(())
    })?;
    let took = started.elapsed();
    drop(rows);
    writer.join().map_err(|_| "the writer panicked")??;
    Ok(total as f64 / took.as_secs_f64())
}

/// Rows per second in a plain loop, `batch` rows per commit, nobody waiting.
pub fn rows_per_second(total: usize, batch: usize) -> Result<f64, Failed> {
    let dir = tempfile::tempdir()?;
    let connection = open(&dir.path().join("bare.db"))?;
    let mut insert = prepare(&connection)?;
    let started = Instant::now();
    for first in (0..total).step_by(batch) {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        for number in first..(first + batch).min(total) {
            put(&mut insert, number)?;
        }
        connection.execute_batch("COMMIT")?;
    }
    Ok(total as f64 / started.elapsed().as_secs_f64())
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch(
        "CREATE TABLE row (key TEXT PRIMARY KEY, at INTEGER NOT NULL, body BLOB NOT NULL) STRICT;",
    )?;
    Ok(connection)
}

fn prepare(connection: &Connection) -> rusqlite::Result<Statement<'_>> {
    connection.prepare("INSERT INTO row (key, at, body) VALUES (?1, ?2, ?3)")
}

fn put(insert: &mut Statement<'_>, number: usize) -> rusqlite::Result<usize> {
    insert.execute(params![
        format!("bench-{number}"),
        number as i64,
        body(number).as_bytes()
    ])
}
