//! The embedded engine: SQLite in one file, one writer with group commit, readers apart.
//!
//! The operations are plain functions over a transaction, in files by topic; this file only says which runs where. What may
//! write never runs on a reader's connection, and there is never a second writing connection.

mod alert;
mod attempt;
mod connection;
mod dead_letter;
mod event;
mod executor;
mod faults;
mod inbox;
mod installation;
mod look;
mod migrate;
mod page;
mod queue;
mod record;
mod replay;
mod row;
mod sandbox;
mod settle;
mod tally;
mod target;
mod writer;

use crate::{
    Alert, ClaimDue, Claimed, Configuration, DeadLetter, EndReplay, EngineReport, EventRecord,
    EventSummary, Filter, Finish, Intent, IntentRecorded, Lease, Listed, Miscount, NewAlert,
    NewReceipt, NewReplay, NewRevision, NewSandboxObject, Page, Plan, Progress, Release, Replay,
    Resolve, Result, Revision, RunResult, SandboxChange, SandboxFilter, SandboxObject, SaveTarget,
    Status, Store, TargetRecord,
};
use async_trait::async_trait;
use emanet_core::event::Accepted;
use emanet_core::ids::{DeadLetterId, EventId, ReplayId, Target, WorkspaceId};
use executor::{Executor, Inline, Threaded};
use faults::Faults;
use jiff::Timestamp;
use queue::Fairness;
use rusqlite::Transaction;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Name of the database in the data directory.
const FILE: &str = "emanet.db";

/// The embedded store.
#[derive(Debug)]
pub struct SqliteStore {
    executor: Executor,
    fairness: Mutex<Fairness>,
    #[cfg_attr(
        not(feature = "conformance"),
        expect(dead_code, reason = "only tests inject faults")
    )]
    faults: Faults,
}

impl SqliteStore {
    /// Opens the database in a data directory, making it if there is none, with a writer's thread and readers of its own.
    ///
    /// # Errors
    /// `Unavailable` if the library or the settings in force could lose what was acknowledged, or the file cannot be used;
    /// `Corrupt` if the file is none of ours, damaged, or written by a newer program.
    pub fn open(dir: &Path) -> Result<Self> {
        let faults = Faults::default();
        let executor = Executor::Threaded(Threaded::open(dir.join(FILE), faults.clone())?);
        Ok(Self::new(executor, faults))
    }

    /// The same engine, with every call run at once on the caller's own thread: for simulations, where one thread and one
    /// order make a seed reproduce a run.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub fn open_inline(dir: &Path) -> Result<Self> {
        let faults = Faults::default();
        let executor = Executor::Inline(Inline::open(dir.join(FILE), faults.clone())?);
        Ok(Self::new(executor, faults))
    }

    fn new(executor: Executor, faults: Faults) -> Self {
        Self {
            executor,
            fairness: Mutex::default(),
            faults,
        }
    }

    /// How many commits were made since it was opened; with group commit, fewer than there were calls.
    pub fn commits(&self) -> u64 {
        self.executor.commits()
    }

    /// How many writes wait for their turn.
    pub fn waiting(&self) -> u64 {
        self.executor.waiting()
    }

    async fn write<T, F>(&self, op: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Transaction<'_>) -> Result<T> + Send + 'static,
    {
        self.executor.write(op).await
    }

    async fn read<T, F>(&self, op: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> Result<T> + Send + 'static,
    {
        self.executor.read(op).await
    }
}

/// Ways for tests to make the engine fail.
#[cfg(feature = "conformance")]
impl SqliteStore {
    /// Lets the next commits fail, as a full or broken disk would.
    pub fn fail_commits(&self, n: u32) {
        self.faults.fail_commits(n);
    }

    /// Keeps the writer busy until the sender is dropped, so that what is sent meanwhile shares the next commit.
    pub async fn hold_writer(&self) -> Result<std::sync::mpsc::Sender<()>> {
        let (release, held) = std::sync::mpsc::channel::<()>();
        let (started, running) = tokio::sync::oneshot::channel();
        let Executor::Threaded(threaded) = &self.executor else {
            return Err(crate::Error::Conflict("there is no writer's thread".into()));
        };
        let mut started = Some(started);
        let (job, _) = writer::job(move |_| {
            // Both ends belong to the test; whichever it drops means "go on".
            let _ = started.take().map(|started| started.send(()));
            let _ = held.recv();
            Ok(())
        });
        threaded.send(job)?;
        running
            .await
            .map_err(|_| crate::Error::Unavailable("the writer is gone".into()))?;
        Ok(release)
    }

    /// Lets the database grow no larger than so many pages, as a full disk would.
    pub async fn limit_pages(&self, n: u32) -> Result<()> {
        self.write(move |tx| Ok(tx.pragma_update(None, "max_page_count", n)?))
            .await
    }

    /// Runs an operation that panics.
    pub async fn panic_inside(&self) -> Result<()> {
        self.write(|tx| -> Result<()> {
            tx.execute("DELETE FROM tally", [])?;
            panic!("as a test asked for")
        })
        .await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn accept(&self, request: NewReceipt) -> Result<Vec<Accepted>> {
        let request = inbox::Request::new(request)?;
        self.write(move |tx| inbox::accept(tx, &request)).await
    }

    async fn claim_due(&self, ask: ClaimDue) -> Result<Claimed> {
        let shares = self
            .fairness
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .divide(&ask.slots);
        self.write(move |tx| queue::claim_due(tx, &ask, &shares))
            .await
    }

    async fn renew(&self, leases: Vec<Lease>, until: Timestamp) -> Result<Vec<Lease>> {
        self.write(move |tx| queue::renew(tx, &leases, until)).await
    }

    async fn take_over(&self) -> Result<u64> {
        self.write(queue::take_over).await
    }

    async fn hand_back(&self, lease: Lease, target: Target, run_at: Timestamp) -> Result<()> {
        self.write(move |tx| queue::hand_back(tx, &lease, target, run_at))
            .await
    }

    async fn event(&self, workspace: WorkspaceId, event: EventId) -> Result<EventRecord> {
        self.read(move |tx| event::record(tx, workspace, event))
            .await
    }

    async fn plan(&self, lease: &Lease, plan: Plan) -> Result<Progress> {
        let lease = *lease;
        self.write(move |tx| record::plan(tx, &lease, &plan)).await
    }

    async fn record_intent(&self, lease: &Lease, intent: Intent) -> Result<IntentRecorded> {
        let lease = *lease;
        self.write(move |tx| record::intent(tx, &lease, &intent))
            .await
    }

    async fn record_result(&self, lease: &Lease, result: RunResult) -> Result<Progress> {
        let lease = *lease;
        self.write(move |tx| record::result(tx, &lease, &result))
            .await
    }

    async fn finish_event(&self, lease: &Lease, finish: Finish, now: Timestamp) -> Result<()> {
        let lease = *lease;
        self.write(move |tx| record::finish_event(tx, &lease, &finish, now))
            .await
    }

    async fn targets(&self) -> Result<Vec<TargetRecord>> {
        self.read(target::targets).await
    }

    async fn save_target(&self, target: SaveTarget) -> Result<u64> {
        self.write(move |tx| target::save(tx, &target)).await
    }

    async fn release_held(&self, release: Release) -> Result<Vec<EventId>> {
        self.write(move |tx| target::release_held(tx, &release))
            .await
    }

    async fn dead_letters(&self, filter: Filter, page: Page) -> Result<Listed<DeadLetter>> {
        self.read(move |tx| dead_letter::list(tx, &filter, &page))
            .await
    }

    async fn dead_letter(&self, workspace: WorkspaceId, id: DeadLetterId) -> Result<DeadLetter> {
        self.read(move |tx| dead_letter::get(tx, workspace, id))
            .await
    }

    async fn resolve(&self, resolve: Resolve) -> Result<DeadLetter> {
        self.write(move |tx| dead_letter::resolve(tx, &resolve))
            .await
    }

    async fn start_replay(&self, replay: NewReplay) -> Result<Replay> {
        self.write(move |tx| replay::start(tx, &replay)).await
    }

    async fn advance_replay(
        &self,
        workspace: WorkspaceId,
        id: ReplayId,
        now: Timestamp,
    ) -> Result<Replay> {
        let stage = self
            .write(move |tx| replay::begin_stage(tx, workspace, id))
            .await?;
        let mut left = stage;
        while let Some(stage) = left.take().filter(|stage| stage.size > 0) {
            let sent = self
                .write(move |tx| replay::send_portion(tx, workspace, id, stage, now))
                .await?;
            if sent == replay::PORTION {
                left = Some(replay::Stage {
                    size: stage.size - sent,
                    ..stage
                });
            }
        }
        self.replay(workspace, id).await
    }

    async fn end_replay(
        &self,
        workspace: WorkspaceId,
        id: ReplayId,
        end: EndReplay,
    ) -> Result<Replay> {
        self.write(move |tx| replay::end(tx, workspace, id, &end))
            .await
    }

    async fn replay(&self, workspace: WorkspaceId, id: ReplayId) -> Result<Replay> {
        self.read(move |tx| replay::get(tx, workspace, id)).await
    }

    async fn running_replays(&self) -> Result<Vec<Replay>> {
        self.read(replay::all_running).await
    }

    async fn replays(&self, workspace: Option<WorkspaceId>, page: Page) -> Result<Listed<Replay>> {
        self.read(move |tx| replay::replays(tx, workspace, &page))
            .await
    }

    async fn events(&self, filter: Filter, page: Page) -> Result<Listed<EventSummary>> {
        self.read(move |tx| look::events(tx, &filter, &page)).await
    }

    async fn status(&self, workspace: Option<WorkspaceId>, now: Timestamp) -> Result<Status> {
        self.read(move |tx| look::status(tx, workspace, now)).await
    }

    async fn recount(&self) -> Result<Vec<Miscount>> {
        let mut miscounts = Vec::new();
        for workspace in self.read(tally::workspaces).await? {
            miscounts.extend(self.read(move |tx| tally::recount(tx, workspace)).await?);
        }
        Ok(miscounts)
    }

    async fn raise_alert(&self, alert: NewAlert) -> Result<(Alert, bool)> {
        self.write(move |tx| alert::raise(tx, &alert)).await
    }

    async fn close_alerts(
        &self,
        workspace: WorkspaceId,
        cause: &str,
        now: Timestamp,
    ) -> Result<()> {
        let cause = cause.to_owned();
        self.write(move |tx| alert::close(tx, workspace, &cause, now))
            .await
    }

    async fn alerts(&self, workspace: Option<WorkspaceId>, page: Page) -> Result<Listed<Alert>> {
        self.read(move |tx| alert::list(tx, workspace, &page)).await
    }

    async fn configuration(&self) -> Result<Option<Configuration>> {
        self.read(installation::configuration).await
    }

    async fn revision(&self, number: u64) -> Result<Revision> {
        self.read(move |tx| installation::revision(tx, number))
            .await
    }

    async fn apply(&self, revision: NewRevision) -> Result<Configuration> {
        self.write(move |tx| installation::apply(tx, &revision))
            .await
    }

    async fn check(&self) -> Result<EngineReport> {
        self.write(|tx| {
            let settings = connection::settings(tx)?;
            Ok(EngineReport {
                engine: format!("sqlite {}", rusqlite::version()),
                problems: connection::problems(&settings),
                settings,
                schema: migrate::stored_version(tx)?,
            })
        })
        .await
    }

    async fn close(&self) -> Result<()> {
        self.executor.close().await
    }

    async fn sandbox_create(&self, object: NewSandboxObject) -> Result<SandboxObject> {
        self.write(move |tx| sandbox::create(tx, &object)).await
    }

    async fn sandbox_update(&self, change: SandboxChange) -> Result<SandboxObject> {
        self.write(move |tx| sandbox::update(tx, &change)).await
    }

    async fn sandbox_objects(
        &self,
        filter: SandboxFilter,
        page: Page,
    ) -> Result<Listed<SandboxObject>> {
        self.read(move |tx| sandbox::list(tx, &filter, &page)).await
    }
}
