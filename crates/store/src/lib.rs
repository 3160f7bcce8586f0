//! Where leads are safe: the storage trait and its engines.
//!
//! Each method is one use case and one transaction. `now` is always an argument; no engine reads a clock of its own. Every
//! key begins with the workspace. What is true after a crash stands at each method; the conformance suite shows it on each engine.
#![warn(missing_docs)]

#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
pub mod sqlite;
mod types;

use async_trait::async_trait;
use emanet_core::ids::{DeadLetterId, EventId, ReplayId, Target, WorkspaceId};
pub use error::Error;
use jiff::Timestamp;
use std::fmt::Debug;
pub use types::*;

/// What every method returns.
pub type Result<T> = std::result::Result<T, Error>;

/// The storage of one installation.
#[async_trait]
pub trait Store: Debug + Send + Sync {
    // ---- inbox -------------------------------------------------------------------------------------------------------

    /// Stores one request and the events in it. An event whose (source, ref_hash) is known is not stored again; the known
    /// row is touched (a duplicate writes too, invariant 1). Counts `received` and the first state in the same transaction.
    /// Events with fate `Ignore` are stored as ignored; `Unreadable` ones go through the worker like all others.
    ///
    /// When this returns `Ok`, everything is on stable storage. After a crash during it, all of the request is there or none.
    async fn accept(&self, request: NewReceipt) -> Result<Vec<emanet_core::event::Accepted>>;

    // ---- queue -------------------------------------------------------------------------------------------------------

    /// Claims due events, per target at most as many as asked. Fresh events go before such as were tried or held before,
    /// but at least a quarter of each target's share goes to those while there are any. A lease that has expired is claimable again.
    /// Each claim raises the event's claim count and fencing token inside the claiming statement (H18).
    ///
    /// Also says when the next event that is not due yet will be.
    async fn claim_due(&self, ask: ClaimDue) -> Result<Claimed>;

    /// Renews leases; returns those that were lost.
    async fn renew(&self, leases: Vec<Lease>, until: Timestamp) -> Result<Vec<Lease>>;

    /// Ends the claims of earlier processes at once, where the engine can know that they are gone: the embedded engine belongs to
    /// one process at a time. Their events are due again, their claims stay counted, and their tokens are worth nothing. An engine
    /// that several processes share leaves such claims to lapse. Returns how many were ended. Called once, before any claim.
    async fn take_over(&self) -> Result<u64>;

    /// Gives an event back unprocessed (graceful stop, no free slot for its next target): nothing is counted, the claim is
    /// taken back, and it is due again at `run_at` for `target`.
    async fn hand_back(&self, lease: Lease, target: Target, run_at: Timestamp) -> Result<()>;

    /// Everything known of an event: request, lead, steps, attempts, dead letters.
    async fn event(&self, workspace: WorkspaceId, event: EventId) -> Result<EventRecord>;

    /// Records the lead that was read and the steps planned for it (once; a second call only replaces the lead and adds
    /// steps whose names are new). Resets the claim count.
    async fn plan(&self, lease: &Lease, plan: Plan) -> Result<Progress>;

    /// Records the intent of one mutating call, before it is sent. The first intent of a run opens an attempt and counts it
    /// against the step. The first intent of a call name in a step revision also fixes its request; later ones get the fixed
    /// request back and must send exactly that (invariant 4).
    async fn record_intent(&self, lease: &Lease, intent: Intent) -> Result<IntentRecorded>;

    /// Records how a run of a step ended, with the ruling carried out: step and event state, link, dead letter, tally,
    /// queue row; all in one transaction. Closes the run's open attempt, or adds one if no intent was recorded. Resets the claim count.
    ///
    /// After a crash before it commits, the attempt is open: the next claimer finds it in `EventRecord` and must treat it as
    /// `maybe_applied`. A lease that is no longer ours gives `Error::LeaseLost` and changes nothing (invariant 6).
    async fn record_result(&self, lease: &Lease, result: RunResult) -> Result<Progress>;

    /// Ends an event as a whole, before or without steps: ignored (with reason), or dead (unreadable, poison).
    async fn finish_event(&self, lease: &Lease, finish: Finish, now: Timestamp) -> Result<()>;

    // ---- targets -----------------------------------------------------------------------------------------------------

    /// State of every target that has one, with the number of leads held for it.
    async fn targets(&self) -> Result<Vec<TargetRecord>>;

    /// Stores a target's state if `version` is still current (compare and set); returns the new version.
    async fn save_target(&self, target: SaveTarget) -> Result<u64>;

    /// Lets held events of a target go: they become pending and due, oldest first, at most `limit`. With `pass`, each may go
    /// through a closed gate once (probe, replay). Returns which.
    async fn release_held(&self, release: Release) -> Result<Vec<EventId>>;

    // ---- dead letters and replay -------------------------------------------------------------------------------------

    /// Dead letters, newest first.
    async fn dead_letters(&self, filter: Filter, page: Page) -> Result<Listed<DeadLetter>>;

    /// One dead letter.
    async fn dead_letter(&self, workspace: WorkspaceId, id: DeadLetterId) -> Result<DeadLetter>;

    /// Resolves a dead letter without sending again (`fixed_manually`, `discarded`), in one transaction with the event's
    /// state. `Error::Conflict` if it is resolved already. With an id given ("it is there"), the link is recorded too.
    async fn resolve(&self, resolve: Resolve) -> Result<DeadLetter>;

    /// Starts a replay: fixes which dead letters and held steps belong to it and records who and why. Sends nothing yet.
    /// What a dead letter of class unknown with effect maybe_applied stands for may exist already; it belongs to it only if the filter names their class, their cause or
    /// the letter itself.
    /// `Error::Conflict` while another replay of the workspace covers one of them.
    async fn start_replay(&self, replay: NewReplay) -> Result<Replay>;

    /// Sends the next stage: its dead letters are resolved as `replayed`, their steps become pending with attempts 0 (history
    /// stays), held ones are released, all with a pass. A step whose fixed requests surely changed nothing begins its next
    /// revision, so that they are formed anew from what was mended; one that may have been applied keeps them (design 9.4).
    async fn advance_replay(
        &self,
        workspace: WorkspaceId,
        id: ReplayId,
        now: Timestamp,
    ) -> Result<Replay>;

    /// Ends a replay (`done`, `stopped`, `failed`), with who and why.
    async fn end_replay(
        &self,
        workspace: WorkspaceId,
        id: ReplayId,
        end: EndReplay,
    ) -> Result<Replay>;

    /// One replay, with counts of the current stage and overall by outcome.
    async fn replay(&self, workspace: WorkspaceId, id: ReplayId) -> Result<Replay>;

    /// Replays that are running, oldest first, of all workspaces. Costs nothing for those that have ended.
    async fn running_replays(&self) -> Result<Vec<Replay>>;

    /// Replays, newest first.
    async fn replays(&self, workspace: Option<WorkspaceId>, page: Page) -> Result<Listed<Replay>>;

    // ---- looking -----------------------------------------------------------------------------------------------------

    /// Events, newest first.
    async fn events(&self, filter: Filter, page: Page) -> Result<Listed<EventSummary>>;

    /// Queue health in one cheap query (MON-3), and whether the sum closes.
    async fn status(&self, workspace: Option<WorkspaceId>, now: Timestamp) -> Result<Status>;

    /// Recounts states from rows and compares with the tallies (design 9.2). Pages through; may take a while.
    async fn recount(&self) -> Result<Vec<Miscount>>;

    /// Raises an alert, or counts it under the open one of the same cause. Returns it, and whether it is new.
    async fn raise_alert(&self, alert: NewAlert) -> Result<(Alert, bool)>;

    /// Closes the open alerts of a cause. Resolving or replaying the last dead letter under a cause closes them too, unless a step
    /// is held under it.
    async fn close_alerts(&self, workspace: WorkspaceId, cause: &str, now: Timestamp)
    -> Result<()>;

    /// Alerts, newest first.
    async fn alerts(&self, workspace: Option<WorkspaceId>, page: Page) -> Result<Listed<Alert>>;

    // ---- installation ------------------------------------------------------------------------------------------------

    /// The configuration in force: the latest revision, and ids of everything it names.
    async fn configuration(&self) -> Result<Option<Configuration>>;

    /// A revision by number.
    async fn revision(&self, number: u64) -> Result<Revision>;

    /// Records a new revision and the ids of new workspaces, sources and destinations. `Error::Conflict` unless `based_on` is
    /// the current number. Ids of names that exist are kept for ever: they are part of every key.
    async fn apply(&self, revision: NewRevision) -> Result<Configuration>;

    /// What durability rests on, read back from the engine, for `doctor` and start-up.
    async fn check(&self) -> Result<EngineReport>;

    /// Writes everything down, truncates the log and closes. Later calls give `Error::Unavailable`.
    async fn close(&self) -> Result<()>;

    // ---- the CRM inside the product ----------------------------------------------------------------------------------

    /// Creates a sandbox object; with a key that was used before in this destination, returns the object made then.
    async fn sandbox_create(&self, object: NewSandboxObject) -> Result<SandboxObject>;

    /// Replaces the named fields of a sandbox object.
    async fn sandbox_update(&self, change: SandboxChange) -> Result<SandboxObject>;

    /// Sandbox objects, newest first; all, or those with an external id.
    async fn sandbox_objects(
        &self,
        filter: SandboxFilter,
        page: Page,
    ) -> Result<Listed<SandboxObject>>;
}
