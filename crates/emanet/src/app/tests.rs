//! Whole installations in this process, each life of one on the same data directory.

use super::*;
use emanet_connectors::connector::{Received, Sample};
use emanet_core::classify::Class;
use emanet_core::event::NewEvent;
use emanet_core::ids::{EventId, ReceiptId};
use emanet_core::secret::Secret;
use emanet_store::{Filter, NewReceipt, Page, Status};
use std::time::Duration;

const FORM: &str = "[sources.web]\nkind = \"web_form\"\n";
const PAUSED: &str = "[sources.second]\nkind = \"web_form\"\npaused = true\n";
const CRM: &str = "[destinations.crm]\nkind = \"sandbox\"\n";
const DOWN: &str = "faults = { token_expired = true }\n";

async fn life(dir: &std::path::Path, configuration: &str) -> Running {
    let begin = Start {
        data_dir: dir.join("data"),
        listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        file: Some(File {
            name: "emanet.toml".into(),
            text: Secret::new(configuration),
        }),
    };
    start(begin, Env::system()).await.unwrap()
}

/// Takes leads in at a source.
async fn accept(running: &Running, source: &str, n: usize) {
    let installation = running.installation.get();
    let mut all = installation.sources.values();
    let source = all.find(|s| s.name == source).unwrap();
    let env = &running.parts.env;
    for i in 0..n {
        let now = env.now();
        let request = source.connector.compose(&Sample {
            source_ref: format!("{}-{i}", source.name),
            fields: vec![
                ("full_name".into(), "Ayşe Yılmaz".into()),
                ("phone_number".into(), "0555 000 11 22".into()),
            ],
            created_at: now,
        });
        let Received::Events { items, .. } = source.connector.receive(&request, now) else {
            panic!("the source takes what it composes");
        };
        let events = items.into_iter().map(|item| NewEvent {
            id: EventId::new(now, env.bytes()),
            ref_hash: [u8::try_from(i).unwrap() + 1; 32],
            item,
        });
        let receipt = NewReceipt {
            workspace: source.workspace,
            source: source.id,
            id: ReceiptId::new(now, env.bytes()),
            request,
            received_at: now,
            day: "2026-11-30".into(),
            revision: 1,
            events: events.collect(),
        };
        running.store.accept(receipt).await.unwrap();
    }
    running.parts.wake.notify_one();
}

/// Waits until it stands like that.
async fn until(running: &Running, what: &str, is_so: impl Fn(&Status) -> bool) -> Status {
    let wait = async {
        loop {
            let status = running
                .store
                .status(None, running.parts.env.now())
                .await
                .unwrap();
            if is_so(&status) {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(30), wait).await;
    waited.unwrap_or_else(|_| panic!("never {what}"))
}

/// Invariant 3, DL-1, DL-3: leads of a source or destination that is taken out of the configuration, held and waiting ones, are
/// not left to wait for nobody: each is a dead letter, and a person is alerted, once for each of the two. Put back and replayed,
/// all arrive.
#[tokio::test(flavor = "multi_thread")]
async fn leads_of_what_is_configured_no_longer_are_brought_to_a_person() {
    let dir = tempfile::tempdir().unwrap();
    let before = life(dir.path(), &format!("{FORM}{PAUSED}{CRM}{DOWN}")).await;
    accept(&before, "web", 4).await;
    accept(&before, "second", 3).await;
    until(&before, "held", |s| {
        s.held == 3 && s.dead == 1 && s.pending == 3
    })
    .await;
    before.stop().await.unwrap();

    let without = life(dir.path(), FORM).await;
    let status = until(&without, "brought to a person", |s| s.dead == 7).await;
    assert_eq!(status.by_class[&Class::PermanentConfig], 7);
    assert!(status.closes);
    let page = Page {
        after: None,
        limit: 100,
    };
    let alerts = without.store.alerts(None, page).await.unwrap().rows;
    // The expired token; the destination that held leads waited for; the source of waiting ones.
    assert_eq!(alerts.len(), 3);
    without.stop().await.unwrap();

    let again = life(
        dir.path(),
        &format!("{FORM}{}{CRM}", PAUSED.replace("true", "false")),
    )
    .await;
    let replay = emanet_store::NewReplay {
        workspace: *again.installation.get().workspaces.keys().next().unwrap(),
        id: emanet_core::ids::ReplayId::new(again.parts.env.now(), again.parts.env.bytes()),
        filter: Filter::default(),
        stages: vec![5],
        by: "a person".into(),
        reason: "it is back".into(),
        now: again.parts.env.now(),
    };
    again.store.start_replay(replay).await.unwrap();
    until(&again, "delivered", |s| s.done == 7).await;
    again.stop().await.unwrap();
}
