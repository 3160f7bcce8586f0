//! What goes into the store and comes out of it.

use emanet_core::breaker;
use emanet_core::call::Method;
use emanet_core::classify::{Class, Failure};
use emanet_core::event::{Inbound, NewEvent};
use emanet_core::ids::{
    AlertId, AttemptId, DeadLetterId, DestinationId, EventId, ReceiptId, ReplayId, SourceId,
    StepId, Target, WorkspaceId,
};
use emanet_core::lead::Lead;
use emanet_core::step::{Delivered, EventState, Kind, Ruling, State};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

// ---- inbox -----------------------------------------------------------------------------------------------------------

/// One authentic request.
#[derive(Clone, Debug)]
pub struct NewReceipt {
    /// Whose.
    pub workspace: WorkspaceId,
    /// From which source.
    pub source: SourceId,
    /// Id of the request.
    pub id: ReceiptId,
    /// The request, byte for byte.
    pub request: Inbound,
    /// When it came.
    pub received_at: Timestamp,
    /// The day it came, in the workspace's time zone (`2026-11-30`); the sum closes per day.
    pub day: String,
    /// Configuration revision in force.
    pub revision: u64,
    /// What is in it.
    pub events: Vec<NewEvent>,
}

// ---- queue -----------------------------------------------------------------------------------------------------------

/// What a worker asks for.
#[derive(Clone, Debug)]
pub struct ClaimDue {
    /// Now.
    pub now: Timestamp,
    /// How long the claim is good for.
    pub lease_until: Timestamp,
    /// Targets with free slots, and how many.
    pub slots: Vec<(Target, u32)>,
}

/// What a worker gets.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The claims, each with its lease.
    pub claims: Vec<Claim>,
    /// When the next event of the asked targets that is not due yet will be due.
    pub next_due: Option<Timestamp>,
}

/// A worker's claim on an event.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Proof of it.
    pub lease: Lease,
    /// Target it was queued for.
    pub target: Target,
    /// Claims without a recorded result, this one included.
    pub claims: u32,
    /// It may go through a closed gate once.
    pub has_pass: bool,
}

/// Proof of a claim. The token rises with every claim of the event, so a stale one is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Which event.
    pub event: EventId,
    /// Fencing token.
    pub token: u64,
}

/// An event with everything that belongs to it.
#[derive(Clone, Debug)]
pub struct EventRecord {
    /// Summary, as in lists.
    pub summary: EventSummary,
    /// The request it came in; `None` once its payload was erased.
    pub request: Option<Inbound>,
    /// Where in the request it stands.
    pub pointer: String,
    /// Why it cannot be read, if intake found so.
    pub unreadable: Option<String>,
    /// Its lead, once read.
    pub lead: Option<Lead>,
    /// Its steps, in order.
    pub steps: Vec<StepRecord>,
    /// All attempts, oldest first.
    pub attempts: Vec<AttemptRecord>,
    /// All its dead letters, oldest first.
    pub dead_letters: Vec<DeadLetter>,
    /// Ids made outside: the links of the event.
    pub links: Vec<LinkRecord>,
}

/// An event as it stands in lists. Name and such are for people who may see them; never logged.
#[derive(Clone, Debug, PartialEq)]
pub struct EventSummary {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Its id.
    pub id: EventId,
    /// Request it came in.
    pub receipt: ReceiptId,
    /// From which source.
    pub source: SourceId,
    /// The source's id.
    pub source_ref: String,
    /// When it came.
    pub received_at: Timestamp,
    /// When the person submitted, if known.
    pub created_at: Option<Timestamp>,
    /// Its state.
    pub state: EventState,
    /// Being worked on right now (counts as pending in sums).
    pub processing: bool,
    /// When it is due, if it is queued.
    pub run_at: Option<Timestamp>,
    /// How often it was delivered to us.
    pub seen: u64,
    /// Why it is ignored.
    pub ignored: Option<String>,
    /// Revision it ran under.
    pub revision: u64,
    /// Name on the lead.
    pub name: Option<String>,
    /// Phone on the lead.
    pub phone: Option<String>,
    /// E-mail on the lead.
    pub email: Option<String>,
    /// It is a test lead.
    pub is_test: bool,
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRecord {
    /// Its id.
    pub id: StepId,
    /// Name in the flow.
    pub name: String,
    /// What it does.
    pub kind: Kind,
    /// Whom it calls.
    pub target: Target,
    /// Object of the destination.
    pub object: String,
    /// Names of steps it needs.
    pub needs: Vec<String>,
    /// Revision of the request; counts from 1.
    pub revision: u32,
    /// Its state.
    pub state: State,
    /// Attempts that count, in this round (a replay starts at 0 again).
    pub attempts: u32,
    /// An attempt of this revision may have been applied.
    pub maybe_applied: bool,
    /// When it may run next.
    pub run_at: Timestamp,
    /// What it left behind.
    pub delivered: Option<Delivered>,
    /// Last failure.
    pub failure: Option<Failure>,
    /// Cause it is held under.
    pub held_under: Option<String>,
    /// Why it was skipped.
    pub skipped: Option<String>,
    /// Requests fixed by intents of this revision: call name → request.
    pub requests: BTreeMap<String, StoredRequest>,
}

/// A request fixed at its first intent. Secret headers are not in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredRequest {
    /// Method.
    pub method: Method,
    /// URL.
    pub url: String,
    /// Headers that are no secrets.
    pub headers: Vec<(String, String)>,
    /// Body bytes.
    #[serde(skip)]
    pub body: Vec<u8>,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptRecord {
    /// Its id.
    pub id: AttemptId,
    /// Of which step.
    pub step: StepId,
    /// Number within the step, over all rounds; counts from 1.
    pub number: u32,
    /// Revision of the step's request.
    pub revision: u32,
    /// Name of the last call with an intent, if any was recorded.
    pub call: Option<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// When its result was recorded; `None` while open, and after a crash.
    pub ended_at: Option<Timestamp>,
    /// How it ended.
    pub outcome: Option<AttemptOutcome>,
    /// Whether it counts against the step's limit.
    pub counts: bool,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptOutcome {
    /// Done.
    pub delivered: Option<Delivered>,
    /// Failed.
    pub failure: Option<Failure>,
    /// Calls made in the run: name, status or what went wrong, milliseconds.
    pub calls: Vec<CallNote>,
    /// First bytes of the last answer, made printable.
    pub answer: Option<String>,
    /// When the next attempt is planned.
    pub next_at: Option<Timestamp>,
}

/// One call of a run, for the story.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallNote {
    /// Name.
    pub name: String,
    /// Method and URL without secrets.
    pub request: String,
    /// Status, or `not_sent: dns` and the like.
    pub outcome: String,
    /// How long it took.
    pub millis: u64,
}

/// What exists outside.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkRecord {
    /// Where.
    pub destination: DestinationId,
    /// By which step.
    pub step: String,
    /// What.
    pub object: String,
    /// Its id there.
    pub id: String,
}

/// Lead and steps of an event.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Now.
    pub now: Timestamp,
    /// The lead, once it can be read.
    pub lead: Option<Lead>,
    /// Steps, in order; those whose names exist are left alone.
    pub steps: Vec<NewStep>,
}

/// A step to plan.
#[derive(Clone, Debug)]
pub struct NewStep {
    /// Its id.
    pub id: StepId,
    /// Name, unique in the event.
    pub name: String,
    /// What it does.
    pub kind: Kind,
    /// Whom it calls.
    pub target: Target,
    /// Object of the destination.
    pub object: String,
    /// Names of steps it needs.
    pub needs: Vec<String>,
    /// Skipped from the start, with this reason.
    pub skipped: Option<String>,
}

/// Intent of one mutating call.
#[derive(Clone, Debug)]
pub struct Intent {
    /// Of which step.
    pub step: StepId,
    /// The run's attempt: a new id at the first intent of a run, the same for further calls.
    pub attempt: AttemptId,
    /// Now.
    pub now: Timestamp,
    /// Name of the call.
    pub call: String,
    /// The request about to be sent.
    pub request: StoredRequest,
}

/// What stands after an intent.
#[derive(Clone, Debug)]
pub struct IntentRecorded {
    /// Attempts of the step that count, this one included.
    pub attempts: u32,
    /// The request to send: the given one, or the one fixed before.
    pub request: StoredRequest,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// Of which step.
    pub step: StepId,
    /// Id of the attempt: the one given at the intent, else a new one.
    pub attempt: AttemptId,
    /// When the run began and ended.
    pub started_at: Timestamp,
    /// Now.
    pub now: Timestamp,
    /// What follows.
    pub ruling: Ruling,
    /// Whether the attempt counts against the limit.
    pub counts: bool,
    /// Calls made, for the story.
    pub calls: Vec<CallNote>,
    /// First bytes of the last answer, made printable.
    pub answer: Option<String>,
    /// Id for the dead letter, should the ruling open one.
    pub dead_letter: DeadLetterId,
}

/// Where an event stands after something was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Its state.
    pub state: EventState,
    /// The next step, if one can run now or later; the lease is kept when it can run now, else given up.
    pub next: Option<NextStep>,
    /// The lease is still held.
    pub keeps_lease: bool,
}

/// The next step of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextStep {
    /// Which.
    pub step: StepId,
    /// Whom it calls.
    pub target: Target,
    /// When.
    pub run_at: Timestamp,
}

/// How an event ends without steps.
#[derive(Clone, Debug)]
pub enum Finish {
    /// Not delivered, with a stable reason.
    Ignored {
        /// Why.
        reason: String,
        /// The lead, if it was read.
        lead: Option<Lead>,
    },
    /// Dead as a whole.
    Dead {
        /// Why.
        failure: Failure,
        /// Fingerprint.
        cause: String,
        /// Id of the dead letter.
        dead_letter: DeadLetterId,
        /// The lead, if it was read.
        lead: Option<Lead>,
    },
}

// ---- targets ---------------------------------------------------------------------------------------------------------

/// A target's state.
#[derive(Clone, Debug)]
pub struct TargetRecord {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Which.
    pub target: Target,
    /// Its breaker.
    pub state: breaker::State,
    /// Version for compare-and-set; 0 before the first save.
    pub version: u64,
    /// Leads held for it.
    pub n_held: u64,
}

/// A change of a target's state.
#[derive(Clone, Debug)]
pub struct SaveTarget {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Which.
    pub target: Target,
    /// The new state.
    pub state: breaker::State,
    /// The version it was derived from.
    pub version: u64,
    /// Now.
    pub now: Timestamp,
}

/// Which held events to let go.
#[derive(Clone, Copy, Debug)]
pub struct Release {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Of which target.
    pub target: Target,
    /// At most how many.
    pub limit: u32,
    /// They may go through a closed gate once.
    pub with_pass: bool,
    /// Now.
    pub now: Timestamp,
}

// ---- dead letters and replay -----------------------------------------------------------------------------------------

/// What to list or replay. Empty fields do not filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// Whose.
    pub workspace: Option<WorkspaceId>,
    /// Of this source.
    pub source: Option<SourceId>,
    /// Of this target (destination, or source for a fetch).
    pub target: Option<Target>,
    /// Of this class.
    pub class: Option<Class>,
    /// Of this cause.
    pub cause: Option<String>,
    /// Dead letters: this one. Ignored for events.
    pub dead_letter: Option<DeadLetterId>,
    /// Of a step with this name.
    pub step: Option<String>,
    /// Received (events) or dead since (dead letters) this time, inclusive.
    pub since: Option<Timestamp>,
    /// Before this time, exclusive.
    pub until: Option<Timestamp>,
    /// Events: in this state. Ignored for dead letters.
    pub state: Option<EventState>,
    /// Dead letters: only open (true) or resolved (false) ones.
    pub open: Option<bool>,
    /// Part of name, phone, e-mail, source_ref (events) or message, vendor code (dead letters).
    pub text: Option<String>,
}

/// Part of a list.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Where the last page ended; opaque.
    pub after: Option<String>,
    /// At most this many; the store caps it at 1,000.
    pub limit: u32,
}

/// One page of a list.
#[derive(Clone, Debug)]
pub struct Listed<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// Cursor of the next page; `None` on the last (H46).
    pub next: Option<String>,
}

/// How a dead letter was resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Resolution {
    Replayed,
    FixedManually,
    Discarded,
}

/// A work item.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadLetter {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Its id.
    pub id: DeadLetterId,
    /// Of which event.
    pub event: EventId,
    /// From which source.
    pub source: SourceId,
    /// The source's id.
    pub source_ref: String,
    /// Of which step (id, name); none if the event as a whole.
    pub step: Option<(StepId, String)>,
    /// Whom it could not be delivered to; none if it could not be read.
    pub target: Option<Target>,
    /// Why.
    pub failure: Failure,
    /// What it is grouped under.
    pub cause: String,
    /// Attempts made.
    pub attempts: u32,
    /// Since when.
    pub dead_at: Timestamp,
    /// Whose job it is.
    pub owner: Option<String>,
    /// How it was resolved.
    pub resolution: Option<Resolution>,
    /// By whom.
    pub resolved_by: Option<String>,
    /// When.
    pub resolved_at: Option<Timestamp>,
    /// Why, or with what.
    pub note: Option<String>,
    /// The dead letter whose replay failed again with this one.
    pub previous: Option<DeadLetterId>,
}

/// Resolve without sending.
#[derive(Clone, Debug)]
pub struct Resolve {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Which.
    pub id: DeadLetterId,
    /// How (not `replayed`).
    pub resolution: Resolution,
    /// Id of the object that is there, for "it is there".
    pub object_id: Option<String>,
    /// By whom.
    pub by: String,
    /// Why.
    pub note: String,
    /// Now.
    pub now: Timestamp,
}

/// A replay to start.
#[derive(Clone, Debug)]
pub struct NewReplay {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Its id.
    pub id: ReplayId,
    /// Which dead letters (open ones) and held steps.
    pub filter: Filter,
    /// Sizes of the stages; after the last, the rest.
    pub stages: Vec<u32>,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Now.
    pub now: Timestamp,
}

/// State of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ReplayState {
    Running,
    Done,
    Stopped,
    Failed,
}

/// A replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Its id.
    pub id: ReplayId,
    /// What was selected.
    pub filter: Filter,
    /// Sizes of the stages.
    pub stages: Vec<u32>,
    /// Stages sent so far.
    pub stage: u32,
    /// State.
    pub state: ReplayState,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When.
    pub started_at: Timestamp,
    /// When it ended, who ended it, and why.
    pub ended: Option<EndReplay>,
    /// All of it, by outcome.
    pub total: ReplayCounts,
    /// The stage that was sent last, by outcome.
    pub current: ReplayCounts,
    /// Targets its items call.
    pub targets: Vec<Target>,
}

/// Items of a replay by outcome. An item is a step (or an event that died whole).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReplayCounts {
    /// Not sent yet.
    pub waiting: u64,
    /// Sent, not finished.
    pub running: u64,
    /// Done or skipped.
    pub done: u64,
    /// Dead or held again.
    pub failed: u64,
}

/// How a replay ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndReplay {
    /// As what.
    pub state: ReplayState,
    /// By whom.
    pub by: String,
    /// Why.
    pub note: String,
    /// When.
    pub at: Timestamp,
}

// ---- looking ---------------------------------------------------------------------------------------------------------

/// Queue health.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Status {
    /// All events ever received.
    pub received: u64,
    /// Queued, without those being worked on.
    pub pending: u64,
    /// Being worked on.
    pub processing: u64,
    /// Waiting for a paused target.
    pub held: u64,
    /// Finished.
    pub done: u64,
    /// Dead and unresolved.
    pub dead: u64,
    /// Kept, not delivered.
    pub ignored: u64,
    /// Erased.
    pub erased: u64,
    /// Age of the oldest pending event.
    pub oldest_pending_seconds: u64,
    /// Open dead letters.
    pub open_dead_letters: u64,
    /// Open dead letters by class.
    pub by_class: BTreeMap<Class, u64>,
    /// received = done + pending + processing + held + dead + ignored + erased.
    pub closes: bool,
}

/// A tally that rows do not bear out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Miscount {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Of which source.
    pub source: SourceId,
    /// On which day.
    pub day: String,
    /// `received` or a state.
    pub what: String,
    /// What the tally says.
    pub tally: u64,
    /// What the rows say.
    pub rows: u64,
}

/// Something a person must be told.
#[derive(Clone, Debug)]
pub struct NewAlert {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Its id.
    pub id: AlertId,
    /// What it is counted under.
    pub cause: String,
    /// Class of failure, or none for others.
    pub class: Option<Class>,
    /// About which target.
    pub target: Option<Target>,
    /// What happened; no personal data.
    pub message: String,
    /// What to do.
    pub hint: String,
    /// Now.
    pub now: Timestamp,
}

/// An alert.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alert {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Its id.
    pub id: AlertId,
    /// What it is counted under.
    pub cause: String,
    /// Class of failure.
    pub class: Option<Class>,
    /// About which target.
    pub target: Option<Target>,
    /// What happened.
    pub message: String,
    /// What to do.
    pub hint: String,
    /// First time.
    pub first_at: Timestamp,
    /// Last time.
    pub last_at: Timestamp,
    /// How often.
    pub count: u64,
    /// When it was closed.
    pub closed_at: Option<Timestamp>,
}

// ---- installation ----------------------------------------------------------------------------------------------------

/// The configuration in force.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// The latest revision.
    pub revision: Revision,
    /// Name → id, for ever.
    pub workspaces: BTreeMap<String, WorkspaceId>,
    /// (workspace, name) → id, for ever.
    pub sources: Vec<NamedSource>,
    /// (workspace, name) → id, for ever.
    pub destinations: Vec<NamedDestination>,
}

/// A source's name and ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSource {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Name in the configuration.
    pub name: String,
    /// Its id.
    pub id: SourceId,
    /// The intake token, sealed.
    pub token: Vec<u8>,
}

/// A destination's name and ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedDestination {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Name in the configuration.
    pub name: String,
    /// Its id.
    pub id: DestinationId,
}

/// A revision of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// Number; counts from 1.
    pub number: u64,
    /// SHA-256 of the file it came from, hexadecimal.
    pub digest: String,
    /// The document, sealed (it may hold secrets).
    pub document: Vec<u8>,
    /// Who applied it (`file`, `cli`, a user).
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// A revision to apply.
#[derive(Clone, Debug)]
pub struct NewRevision {
    /// Number it was derived from; 0 for none.
    pub based_on: u64,
    /// SHA-256 of the file, hexadecimal.
    pub digest: String,
    /// The document, sealed.
    pub document: Vec<u8>,
    /// Who.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// Ids for workspaces whose names are new.
    pub workspaces: BTreeMap<String, WorkspaceId>,
    /// Sources whose names are new, or whose token changed.
    pub sources: Vec<NamedSource>,
    /// Destinations whose names are new.
    pub destinations: Vec<NamedDestination>,
}

/// What the engine says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EngineReport {
    /// `sqlite 3.54.1`.
    pub engine: String,
    /// Setting → value, as read back.
    pub settings: BTreeMap<String, String>,
    /// Version of the schema.
    pub schema: u32,
    /// What is wrong; empty if all is well.
    pub problems: Vec<String>,
}

// ---- the CRM inside the product --------------------------------------------------------------------------------------

/// A sandbox object to create.
#[derive(Clone, Debug)]
pub struct NewSandboxObject {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Of which sandbox.
    pub destination: DestinationId,
    /// Its id.
    pub id: String,
    /// `lead`, `task`.
    pub object: String,
    /// Our external id.
    pub external_id: Option<String>,
    /// Idempotency key.
    pub key: Option<String>,
    /// Fields.
    pub fields: serde_json::Map<String, serde_json::Value>,
    /// Now.
    pub now: Timestamp,
}

/// A change of a sandbox object.
#[derive(Clone, Debug)]
pub struct SandboxChange {
    /// Whose.
    pub workspace: WorkspaceId,
    /// Of which sandbox.
    pub destination: DestinationId,
    /// Which.
    pub id: String,
    /// Fields to replace.
    pub fields: serde_json::Map<String, serde_json::Value>,
    /// Now.
    pub now: Timestamp,
}

/// Which sandbox objects.
#[derive(Clone, Debug, Default)]
pub struct SandboxFilter {
    /// Whose.
    pub workspace: Option<WorkspaceId>,
    /// Of which sandbox.
    pub destination: Option<DestinationId>,
    /// `lead`, `task`.
    pub object: Option<String>,
    /// With this external id.
    pub external_id: Option<String>,
    /// With this id.
    pub id: Option<String>,
}

/// A sandbox object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SandboxObject {
    /// Of which sandbox.
    pub destination: DestinationId,
    /// Its id.
    pub id: String,
    /// `lead`, `task`.
    pub object: String,
    /// Our external id.
    pub external_id: Option<String>,
    /// Fields.
    pub fields: serde_json::Map<String, serde_json::Value>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
}
