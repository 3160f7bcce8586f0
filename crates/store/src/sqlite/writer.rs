//! The one connection that writes, and group commit: what has arrived while the last commit ran shares the next one. There is
//! no delay timer; a single caller waits for a single commit.
//!
//! One operation that fails does not spoil its neighbours: the batch is undone and run again, each operation in a savepoint of
//! its own. Savepoints from the start would cost every batch a copy of every page it changes. When a commit fails, nothing of
//! the batch is acknowledged and the connection is never used again: what it would say next cannot be trusted (F15).

use super::connection::{self, BUSY_WAIT};
use super::{faults::Faults, migrate};
use crate::{Error, Result};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;

/// Operations that share one commit at most.
pub(super) const BATCH_MAX: usize = 512;
/// How long an idle checkpoint waits for readers; it is tried again after the next write.
const CHECKPOINT_WAIT: Duration = Duration::from_millis(50);

/// An operation waiting for its turn, with the caller waiting for it.
pub(super) trait Job: Send {
    /// Runs the operation, perhaps for the second time; says whether its changes stand.
    fn run(&mut self, tx: &Transaction<'_>) -> bool;

    /// Tells the caller what the operation said, or why its commit failed.
    fn acknowledge(self: Box<Self>, failed: Option<&str>);
}

/// An operation as a job, and where its outcome will arrive.
pub(super) fn job<T, F>(op: F) -> (Box<dyn Job>, oneshot::Receiver<Result<T>>)
where
    T: Send + 'static,
    F: FnMut(&Transaction<'_>) -> Result<T> + Send + 'static,
{
    let (reply, outcome) = oneshot::channel();
    let job = Call {
        op,
        outcome: Err(Error::Unavailable("the operation was not run".into())),
        reply,
    };
    (Box::new(job), outcome)
}

struct Call<T, F> {
    op: F,
    outcome: Result<T>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, F> Job for Call<T, F>
where
    T: Send,
    F: FnMut(&Transaction<'_>) -> Result<T> + Send,
{
    fn run(&mut self, tx: &Transaction<'_>) -> bool {
        self.outcome = catch_unwind(AssertUnwindSafe(|| (self.op)(tx))).unwrap_or_else(|_| {
            tracing::error!("a storage operation panicked; it was rolled back");
            Err(Error::Unavailable("the operation failed inside".into()))
        });
        self.outcome.is_ok()
    }

    fn acknowledge(self: Box<Self>, failed: Option<&str>) {
        let outcome = match failed {
            None => self.outcome,
            Some(why) => Err(Error::Unavailable(why.to_owned())),
        };
        // A caller that went away has nobody to tell; what it asked for stands all the same.
        drop(self.reply.send(outcome));
    }
}

/// The writing connection. Reopened after a failed commit, when it is needed next.
#[derive(Debug)]
pub(super) struct Writer {
    path: PathBuf,
    connection: Option<Connection>,
    commits: Arc<AtomicU64>,
    faults: Faults,
    has_log: bool,
}

impl Writer {
    /// Opens the database, brings its schema up to date and truncates its log.
    pub(super) fn open(path: PathBuf, faults: Faults) -> Result<Self> {
        let mut connection = connection::open_writer(&path)?;
        migrate::migrate(&mut connection)?;
        Ok(Self {
            path,
            connection: Some(connection),
            commits: Arc::default(),
            faults,
            has_log: true,
        })
    }

    /// How many commits were made.
    pub(super) fn commits(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.commits)
    }

    /// Runs jobs in one transaction, then tells every caller.
    pub(super) fn batch(&mut self, mut jobs: Vec<Box<dyn Job>>) {
        let failed = self.commit(&mut jobs).err().map(|error| {
            tracing::error!(%error, "a commit failed; nothing of it is acknowledged");
            self.connection = None;
            match error {
                Error::Unavailable(why) => why,
                other => other.to_string(),
            }
        });
        for job in jobs {
            job.acknowledge(failed.as_deref());
        }
    }

    /// Runs an operation that only reads.
    pub(super) fn read<T>(&mut self, op: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        op(&self.connection()?.transaction()?)
    }

    /// Moves the log into the database and truncates it, as far as readers let it (H61).
    pub(super) fn checkpoint(&mut self) {
        if !self.has_log {
            return;
        }
        let truncated = self.connection().and_then(|connection| {
            connection.busy_timeout(CHECKPOINT_WAIT)?;
            let busy: i64 =
                connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
            connection.busy_timeout(BUSY_WAIT)?;
            Ok(busy == 0)
        });
        match truncated {
            Ok(truncated) => self.has_log = !truncated,
            Err(error) => {
                tracing::warn!(%error, "the log could not be truncated");
                self.connection = None;
            }
        }
    }

    /// Whether a checkpoint has something to do.
    pub(super) fn has_log(&self) -> bool {
        self.has_log
    }

    /// Writes everything down and closes the connection.
    pub(super) fn close(mut self) -> Result<()> {
        self.checkpoint();
        match self.connection.take() {
            Some(connection) => connection.close().map_err(|(_, error)| error.into()),
            None => Ok(()),
        }
    }

    fn connection(&mut self) -> Result<&mut Connection> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => connection::open_writer(&self.path)?,
        };
        Ok(self.connection.insert(connection))
    }

    fn commit(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<()> {
        let faults = self.faults.clone();
        let connection = self.connection()?;
        let changes = connection.total_changes();
        let tx = match all_stand(connection, jobs)? {
            Some(tx) => tx,
            None => each_apart(connection, jobs)?,
        };
        faults.before_commit()?;
        tx.commit()?;
        let has_written = connection.total_changes() != changes;
        self.has_log |= has_written;
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Runs jobs until one of them fails, which undoes them all.
fn all_stand<'c>(
    connection: &'c Connection,
    jobs: &mut [Box<dyn Job>],
) -> Result<Option<Transaction<'c>>> {
    let tx = begin(connection)?;
    for job in jobs {
        if !job.run(&tx) {
            return Ok(None);
        }
    }
    Ok(Some(tx))
}

/// Runs each job in a savepoint; undoes the changes of those that fail. SQLite itself gives up the whole transaction on some
/// errors (disk full, out of memory): then the batch has failed.
fn each_apart<'c>(
    connection: &'c Connection,
    jobs: &mut [Box<dyn Job>],
) -> Result<Transaction<'c>> {
    let tx = begin(connection)?;
    for job in jobs {
        tx.prepare_cached("SAVEPOINT op")?.execute([])?;
        let stands = job.run(&tx);
        if tx.is_autocommit() {
            return Err(Error::Unavailable(
                "the database gave up the transaction".into(),
            ));
        }
        if !stands {
            tx.prepare_cached("ROLLBACK TO op")?.execute([])?;
        }
        tx.prepare_cached("RELEASE op")?.execute([])?;
    }
    Ok(tx)
}

fn begin(connection: &Connection) -> Result<Transaction<'_>> {
    Ok(Transaction::new_unchecked(
        connection,
        TransactionBehavior::Immediate,
    )?)
}
