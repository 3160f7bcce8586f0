//! Where operations run: on the writer's thread and a few readers (production), or one after the other on the caller's own
//! thread (the simulator). The operations are the same plain functions over a transaction.

use super::connection::open_reader;
use super::faults::Faults;
use super::writer::{BATCH_MAX, Job, Writer, job};
use crate::{Error, Result};
use rusqlite::{Connection, Transaction};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};

/// Operations that may wait for the writer; more are refused, so that callers hear it while it still helps.
const WAITING_MAX: usize = 4096;
/// Queries that run at a time.
const READERS: usize = 4;
/// Without a write for this long the log is truncated. Less than the second after which the engine looks for work again, which is
/// an operation of the writer too.
const IDLE: Duration = Duration::from_millis(500);

/// Where operations run.
#[derive(Debug)]
pub(super) enum Executor {
    Threaded(Threaded),
    Inline(Inline),
}

impl Executor {
    /// Runs an operation that writes, in a transaction that is on stable storage when this returns. It may be run twice: what
    /// the first run did is undone then.
    pub(super) async fn write<T, F>(&self, op: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Transaction<'_>) -> Result<T> + Send + 'static,
    {
        let (job, outcome) = job(op);
        match self {
            Self::Threaded(threaded) => threaded.send(job)?,
            Self::Inline(inline) => locked(&inline.writer)
                .as_mut()
                .ok_or_else(closed)?
                .batch(vec![job]),
        }
        outcome.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Runs an operation that only reads, on what is committed.
    pub(super) async fn read<T, F>(&self, op: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> Result<T> + Send + 'static,
    {
        match self {
            Self::Threaded(threaded) => threaded.readers.read(op).await,
            Self::Inline(inline) => locked(&inline.writer).as_mut().ok_or_else(closed)?.read(op),
        }
    }

    /// Finishes what waits, writes everything down and closes.
    pub(super) async fn close(&self) -> Result<()> {
        match self {
            Self::Threaded(threaded) => threaded.close().await,
            Self::Inline(inline) => match locked(&inline.writer).take() {
                Some(writer) => writer.close(),
                None => Ok(()),
            },
        }
    }

    /// How many commits were made.
    pub(super) fn commits(&self) -> u64 {
        match self {
            Self::Threaded(threaded) => &threaded.commits,
            Self::Inline(inline) => &inline.commits,
        }
        .load(Ordering::Relaxed)
    }

    /// How many writes wait for their turn.
    pub(super) fn waiting(&self) -> u64 {
        match self {
            Self::Threaded(threaded) => threaded.waiting.load(Ordering::Relaxed),
            Self::Inline(_) => 0,
        }
    }
}

fn closed() -> Error {
    Error::Unavailable("the store is closed".into())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// ---- one thread --------------------------------------------------------------------------------------------------------

/// Runs each operation at once, in a transaction of its own.
#[derive(Debug)]
pub(super) struct Inline {
    writer: Mutex<Option<Writer>>,
    commits: Arc<AtomicU64>,
}

impl Inline {
    pub(super) fn open(path: PathBuf, faults: Faults) -> Result<Self> {
        let writer = Writer::open(path, faults)?;
        Ok(Self {
            commits: writer.commits(),
            writer: Mutex::new(Some(writer)),
        })
    }
}

// ---- a writer's thread and readers -------------------------------------------------------------------------------------

enum Message {
    Run(Box<dyn Job>),
    Close(oneshot::Sender<Result<()>>),
}

/// Hands writes to the writer's thread and reads to a few connections of their own.
#[derive(Debug)]
pub(super) struct Threaded {
    messages: Mutex<Option<SyncSender<Message>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    readers: Readers,
    commits: Arc<AtomicU64>,
    waiting: Arc<AtomicU64>,
}

impl Threaded {
    pub(super) fn open(path: PathBuf, faults: Faults) -> Result<Self> {
        let writer = Writer::open(path.clone(), faults)?;
        let commits = writer.commits();
        let (messages, inbox) = sync_channel(WAITING_MAX);
        let waiting = Arc::<AtomicU64>::default();
        let taken = Arc::clone(&waiting);
        let thread = std::thread::Builder::new()
            .name("emanet-store".into())
            .spawn(move || work(writer, &inbox, &taken))
            .map_err(|error| Error::Unavailable(format!("no thread for the writer: {error}")))?;
        Ok(Self {
            messages: Mutex::new(Some(messages)),
            thread: Mutex::new(Some(thread)),
            readers: Readers::new(path),
            commits,
            waiting,
        })
    }

    pub(super) fn send(&self, job: Box<dyn Job>) -> Result<()> {
        let messages = locked(&self.messages);
        let messages = messages.as_ref().ok_or_else(closed)?;
        self.waiting.fetch_add(1, Ordering::Relaxed);
        messages.try_send(Message::Run(job)).map_err(|error| {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            match error {
                TrySendError::Full(_) => {
                    Error::Unavailable(format!("{WAITING_MAX} writes are waiting already"))
                }
                TrySendError::Disconnected(_) => closed(),
            }
        })
    }

    async fn close(&self) -> Result<()> {
        self.readers.close();
        let Some(messages) = locked(&self.messages).take() else {
            return Ok(());
        };
        let thread = locked(&self.thread).take();
        let (reply, closing) = oneshot::channel();
        let joined = tokio::task::spawn_blocking(move || {
            // Sent behind everything that waits. If the thread is gone already, `closing` says so.
            drop(messages.send(Message::Close(reply)));
            thread.map(JoinHandle::join);
        });
        let outcome = closing.await.unwrap_or_else(|_| Err(closed()));
        joined
            .await
            .map_err(|_| Error::Unavailable("the writer could not be joined".into()))?;
        outcome
    }
}

/// Waits for the writer, so that a file is never open for writing twice.
impl Drop for Threaded {
    fn drop(&mut self) {
        locked(&self.messages).take();
        if let Some(thread) = locked(&self.thread).take()
            && thread.join().is_err()
        {
            tracing::error!("the writer's thread had panicked");
        }
    }
}

/// The writer's thread: the first message that comes, and whatever has queued up behind it.
fn work(mut writer: Writer, inbox: &Receiver<Message>, waiting: &AtomicU64) {
    while let Some(message) = next(&mut writer, inbox) {
        let mut jobs = Vec::new();
        let mut closing = None;
        take(message, &mut jobs, &mut closing);
        while jobs.len() < BATCH_MAX && closing.is_none() {
            match inbox.try_recv() {
                Ok(message) => take(message, &mut jobs, &mut closing),
                Err(_) => break,
            }
        }
        if !jobs.is_empty() {
            waiting.fetch_sub(jobs.len() as u64, Ordering::Relaxed);
            writer.batch(jobs);
        }
        if let Some(reply) = closing {
            // Whoever asked to close may have gone; it is closed all the same.
            drop(reply.send(writer.close()));
            return;
        }
    }
}

fn take(
    message: Message,
    jobs: &mut Vec<Box<dyn Job>>,
    closing: &mut Option<oneshot::Sender<Result<()>>>,
) {
    match message {
        Message::Run(job) => jobs.push(job),
        Message::Close(reply) => *closing = Some(reply),
    }
}

/// The next message; `None` when nobody can send one any more. Truncates the log when it has been quiet for a while.
fn next(writer: &mut Writer, inbox: &Receiver<Message>) -> Option<Message> {
    if writer.has_log() {
        match inbox.recv_timeout(IDLE) {
            Ok(message) => return Some(message),
            Err(RecvTimeoutError::Timeout) => writer.checkpoint(),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
    inbox.recv().ok()
}

/// Connections that cannot write. Each query is one short transaction, and its statements are reset before the connection goes
/// back (H61).
#[derive(Debug)]
struct Readers {
    path: PathBuf,
    free: Arc<Mutex<Vec<Connection>>>,
    slots: Arc<Semaphore>,
}

impl Readers {
    fn new(path: PathBuf) -> Self {
        Self {
            path,
            free: Arc::default(),
            slots: Arc::new(Semaphore::new(READERS)),
        }
    }

    async fn read<T, F>(&self, op: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> Result<T> + Send + 'static,
    {
        let slot = Arc::clone(&self.slots)
            .acquire_owned()
            .await
            .map_err(|_| closed())?;
        let slots = Arc::clone(&self.slots);
        let free = Arc::clone(&self.free);
        let path = self.path.clone();
        let running = tokio::task::spawn_blocking(move || {
            let kept = locked(&free).pop();
            let mut connection = match kept {
                Some(connection) => connection,
                None => open_reader(&path)?,
            };
            let outcome = op(&connection.transaction()?);
            if !slots.is_closed() {
                locked(&free).push(connection);
            }
            drop(slot);
            outcome
        });
        running
            .await
            .unwrap_or_else(|_| Err(Error::Unavailable("the query failed inside".into())))
    }

    fn close(&self) {
        self.slots.close();
        locked(&self.free).clear();
    }
}
