//! One workspace with a source and a destination, and short words for what tests do with them.

use super::Harness;
use crate::{
    Claim, ClaimDue, DeadLetter, EventRecord, Filter, Intent, Lease, NewReceipt, NewReplay,
    NewStep, Page, Plan, Progress, RunResult, Store, StoredRequest,
};
use emanet_core::call::Method;
use emanet_core::classify::{Class, Effect, Failure, Scope};
use emanet_core::event::{Accepted, Fate, Inbound, Item, NewEvent};
use emanet_core::ids::{
    AttemptId, DeadLetterId, DestinationId, EventId, ReceiptId, ReplayId, SourceId, StepId, Target,
    WorkspaceId,
};
use emanet_core::step::{Delivered, Kind, Ruling};
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How long leases last in these tests.
pub(super) const LEASE_SECONDS: i64 = 30;
/// The day every event comes in on.
pub(super) const DAY: &str = "2026-11-30";

/// So many seconds after the tests' beginning.
pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_796_000_000 + seconds).unwrap()
}

pub(super) struct World {
    pub(super) store: Arc<dyn Store>,
    pub(super) workspace: WorkspaceId,
    pub(super) source: SourceId,
    pub(super) destination: DestinationId,
    minted: AtomicU64,
}

/// Ten bytes no other id has.
fn bytes(n: u64) -> [u8; 10] {
    let mut bytes = [0; 10];
    bytes[2..].copy_from_slice(&n.to_be_bytes());
    bytes
}

impl World {
    pub(super) fn new(harness: &dyn Harness) -> Self {
        Self::on(harness.store())
    }

    pub(super) fn on(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            workspace: WorkspaceId::new(at(0), bytes(1)),
            source: SourceId::new(at(0), bytes(2)),
            destination: DestinationId::new(at(0), bytes(3)),
            minted: AtomicU64::new(100),
        }
    }

    /// The same world in the store that a new process opened.
    pub(super) fn after(&self, store: Arc<dyn Store>) -> Self {
        Self {
            store,
            minted: AtomicU64::new(self.minted.load(Ordering::SeqCst) + 1_000_000),
            ..Self::on(Arc::clone(&self.store))
        }
    }

    fn unique(&self) -> [u8; 10] {
        bytes(self.minted.fetch_add(1, Ordering::SeqCst))
    }

    pub(super) fn inbox(&self) -> Target {
        Target::Source(self.source)
    }

    pub(super) fn crm(&self) -> Target {
        Target::Destination(self.destination)
    }

    pub(super) fn attempt_id(&self) -> AttemptId {
        AttemptId::new(at(0), self.unique())
    }

    pub(super) fn dead_letter_id(&self) -> DeadLetterId {
        DeadLetterId::new(at(0), self.unique())
    }

    pub(super) fn event_id(&self) -> EventId {
        EventId::new(at(0), self.unique())
    }

    pub(super) fn random(&self) -> [u8; 10] {
        self.unique()
    }

    // ---- intake --------------------------------------------------------------------------------------------------------

    pub(super) fn new_event(&self, source_ref: &str) -> NewEvent {
        NewEvent {
            id: self.event_id(),
            item: Item {
                source_ref: source_ref.into(),
                pointer: String::new(),
                created_at: None,
                fate: Fate::Process,
            },
            ref_hash: Sha256::digest(source_ref).into(),
        }
    }

    pub(super) fn receipt(&self, source_refs: &[&str], now: Timestamp) -> NewReceipt {
        NewReceipt {
            workspace: self.workspace,
            source: self.source,
            id: ReceiptId::new(at(0), self.unique()),
            request: Inbound {
                method: "POST".into(),
                query: "a=1".into(),
                headers: vec![("content-type".into(), "application/json".into())],
                body: b"{\"ad\":\"\xff\x00\"}".to_vec(),
            },
            received_at: now,
            day: DAY.into(),
            revision: 7,
            events: source_refs.iter().map(|r| self.new_event(r)).collect(),
        }
    }

    pub(super) async fn accept_all(&self, source_refs: &[&str], now: Timestamp) -> Vec<Accepted> {
        self.store
            .accept(self.receipt(source_refs, now))
            .await
            .unwrap()
    }

    pub(super) async fn accept(&self, source_ref: &str) -> EventId {
        self.accept_all(&[source_ref], at(0)).await[0].event
    }

    // ---- working -------------------------------------------------------------------------------------------------------

    pub(super) async fn claim(&self, target: Target, n: u32, now: Timestamp) -> Vec<Claim> {
        let ask = ClaimDue {
            now,
            lease_until: now + jiff::SignedDuration::from_secs(LEASE_SECONDS),
            slots: vec![(target, n)],
        };
        self.store.claim_due(ask).await.unwrap().claims
    }

    pub(super) async fn claim_one(&self, target: Target, now: Timestamp) -> Claim {
        let mut claims = self.claim(target, 1, now).await;
        assert_eq!(claims.len(), 1, "one event is due");
        claims.remove(0)
    }

    pub(super) fn new_step(
        &self,
        name: &str,
        kind: Kind,
        target: Target,
        needs: &[&str],
    ) -> NewStep {
        NewStep {
            id: StepId::new(at(0), self.unique()),
            name: name.into(),
            kind,
            target,
            object: "lead".into(),
            needs: needs.iter().map(|&need| need.to_owned()).collect(),
            skipped: None,
        }
    }

    pub(super) async fn plan(
        &self,
        lease: &Lease,
        steps: Vec<NewStep>,
        now: Timestamp,
    ) -> Progress {
        let plan = Plan {
            now,
            lead: Some(lead()),
            steps,
        };
        self.store.plan(lease, plan).await.unwrap()
    }

    /// An event with one CRM step, claimed and planned.
    pub(super) async fn started(&self, source_ref: &str) -> (Lease, StepId) {
        let event = self.accept(source_ref).await;
        let lease = self.claim_one(self.inbox(), at(0)).await.lease;
        assert_eq!(lease.event, event);
        let step = self.new_step("crm", Kind::Crm, self.crm(), &[]);
        let id = step.id;
        let progress = self.plan(&lease, vec![step], at(0)).await;
        assert!(progress.keeps_lease);
        (lease, id)
    }

    /// An event with one CRM step, whose run ended so.
    pub(super) async fn ended(&self, source_ref: &str, ruling: Ruling) -> (Lease, StepId) {
        let (lease, step) = self.started(source_ref).await;
        self.record(&lease, step, ruling, at(0)).await;
        (lease, step)
    }

    pub(super) fn intent(&self, step: StepId, attempt: AttemptId, body: &str) -> Intent {
        Intent {
            step,
            attempt,
            now: at(1),
            call: "create".into(),
            request: request(body),
        }
    }

    pub(super) fn result(&self, step: StepId, ruling: Ruling, now: Timestamp) -> RunResult {
        RunResult {
            step,
            attempt: self.attempt_id(),
            started_at: now,
            now,
            ruling,
            counts: true,
            calls: Vec::new(),
            answer: None,
            dead_letter: self.dead_letter_id(),
        }
    }

    pub(super) async fn record(
        &self,
        lease: &Lease,
        step: StepId,
        ruling: Ruling,
        now: Timestamp,
    ) -> Progress {
        self.store
            .record_result(lease, self.result(step, ruling, now))
            .await
            .unwrap()
    }

    // ---- looking -------------------------------------------------------------------------------------------------------

    pub(super) async fn event(&self, event: EventId) -> EventRecord {
        self.store.event(self.workspace, event).await.unwrap()
    }

    pub(super) async fn letters(&self) -> Vec<DeadLetter> {
        let listed = self.store.dead_letters(Filter::default(), page(100)).await;
        listed.unwrap().rows
    }

    /// Nothing was lost or counted twice (invariant 3).
    pub(super) async fn closes(&self) {
        assert_eq!(self.store.recount().await.unwrap(), []);
        let status = self.store.status(None, at(0)).await.unwrap();
        assert!(status.closes, "{status:?}");
    }

    pub(super) fn new_replay(&self, stages: &[u32], now: Timestamp) -> NewReplay {
        NewReplay {
            workspace: self.workspace,
            id: ReplayId::new(now, self.unique()),
            filter: Filter::default(),
            stages: stages.to_vec(),
            by: "ayşe".into(),
            reason: "the token was renewed".into(),
            now,
        }
    }
}

pub(super) fn page(limit: u32) -> Page {
    Page { after: None, limit }
}

pub(super) fn lead() -> emanet_core::lead::Lead {
    emanet_core::lead::Lead {
        full_name: Some("İpek Çağlar".into()),
        ..Default::default()
    }
}

pub(super) fn request(body: &str) -> StoredRequest {
    StoredRequest {
        method: Method::Post,
        url: "https://crm.example/leads".into(),
        headers: vec![("idempotency-key".into(), "k".into())],
        body: body.as_bytes().to_vec(),
    }
}

pub(super) fn failure(class: Class, effect: Effect) -> Failure {
    Failure {
        class,
        effect,
        scope: Scope::Lead,
        status: Some(500),
        vendor_code: Some("E_42".into()),
        field: None,
        message: "the other side said no".into(),
        hint: "ask it".into(),
        retry_after: None,
    }
}

pub(super) fn done() -> Ruling {
    Ruling::Done(Delivered {
        object: Some("lead".into()),
        id: Some("crm-1".into()),
        how: "created".into(),
        data: serde_json::Value::Null,
    })
}

pub(super) fn retry(seconds: i64, effect: Effect) -> Ruling {
    Ruling::Retry {
        at: at(seconds),
        failure: failure(Class::Transient, effect),
    }
}

pub(super) fn hold() -> Ruling {
    Ruling::Hold {
        cause: "crm-down".into(),
        failure: None,
    }
}

pub(super) fn bury() -> Ruling {
    Ruling::Bury {
        failure: failure(Class::PermanentData, Effect::NotApplied),
        cause: "bad-field".into(),
    }
}
