//! What only the embedded engine promises: its settings, its file, and how commits are shared.
#![expect(clippy::unwrap_used, reason = "set-up that fails must end its test")]

use emanet_core::event::{Accepted, Fate, Inbound, Item, NewEvent};
use emanet_core::ids::{EventId, ReceiptId, SourceId, Target, WorkspaceId};
use emanet_store::sqlite::SqliteStore;
use emanet_store::{Error, Filter, Lease, NewReceipt, Page, Result, Store};
use jiff::Timestamp;
use rusqlite::Connection;
use sha2::{Digest, Sha256};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::task::JoinSet;

fn random(n: u32) -> [u8; 10] {
    let mut bytes = [7; 10];
    bytes[6..].copy_from_slice(&n.to_be_bytes());
    bytes
}

fn now() -> Timestamp {
    Timestamp::from_second(1_796_000_000).unwrap()
}

fn workspace() -> WorkspaceId {
    WorkspaceId::new(now(), random(1))
}

fn source() -> SourceId {
    SourceId::new(now(), random(2))
}

/// A request with one event, told apart by its number.
fn receipt(n: u32) -> NewReceipt {
    NewReceipt {
        workspace: workspace(),
        source: source(),
        id: ReceiptId::new(now(), random(n)),
        request: Inbound {
            method: "POST".into(),
            query: String::new(),
            headers: Vec::new(),
            body: vec![b'x'; 1500],
        },
        received_at: now(),
        day: "2026-11-30".into(),
        revision: 1,
        events: vec![NewEvent {
            id: EventId::new(now(), random(n)),
            item: Item {
                source_ref: n.to_string(),
                pointer: String::new(),
                created_at: None,
                fate: Fate::Process,
            },
            ref_hash: Sha256::digest(n.to_be_bytes()).into(),
        }],
    }
}

fn opened() -> (TempDir, Arc<SqliteStore>) {
    let dir = TempDir::new().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    (dir, Arc::new(store))
}

/// The file by itself, with nobody else on it.
fn file(dir: &TempDir) -> Connection {
    Connection::open(dir.path().join("emanet.db")).unwrap()
}

/// Sends requests at once; their outcomes come in this order too.
async fn accept(store: &Arc<SqliteStore>, numbers: std::ops::Range<u32>) -> Vec<Result<Accepted>> {
    let mut calls = JoinSet::new();
    for n in numbers {
        let store = Arc::clone(store);
        calls.spawn(async move { (n, store.accept(receipt(n)).await.map(|events| events[0])) });
    }
    let mut outcomes = calls.join_all().await;
    outcomes.sort_by_key(|(n, _)| *n);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

async fn received(store: &SqliteStore) -> u64 {
    store.status(None, now()).await.unwrap().received
}

// ---- settings and file -----------------------------------------------------------------------------------------------------

/// Invariant 1: read back from the engine, not assumed.
#[tokio::test]
async fn settings_are_in_force() {
    let (_dir, store) = opened();
    let report = store.check().await.unwrap();
    assert!(report.engine.starts_with("sqlite 3."));
    assert_eq!(report.problems, Vec::<String>::new());
    let expected = [
        ("foreign_keys", "1"),
        ("journal_mode", "wal"),
        ("secure_delete", "1"),
        ("synchronous", "2"),
        ("temp_store", "2"),
        ("wal_autocheckpoint", "8192"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(report.settings, expected.into());
}

/// Personal data is for the owner of the process only.
#[tokio::test]
async fn files_are_for_their_owner_only() {
    let (dir, store) = opened();
    store.accept(receipt(3)).await.unwrap();
    store.status(None, now()).await.unwrap();
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{:?}", entry.file_name());
    }
}

/// A file made readable for others by hand or by a copy is closed to them again.
#[tokio::test]
async fn mode_of_an_existing_file_is_tightened() {
    let (dir, store) = opened();
    store.close().await.unwrap();
    let path = dir.path().join("emanet.db");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let _store = SqliteStore::open(dir.path()).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// A migration shows its effect in review: the schema it leads to is kept in the repository. Set `UPDATE_SCHEMA` to write it.
#[tokio::test]
async fn schema_is_as_the_repository_says() {
    let (dir, store) = opened();
    store.close().await.unwrap();
    let file = file(&dir);
    let mut statement = file
        .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY tbl_name, type DESC, name")
        .unwrap();
    let parts = statement
        .query_map([], |row| row.get::<_, String>(0))
        .unwrap();
    let parts: Vec<_> = parts.map(|part| part.unwrap() + ";\n").collect();
    let schema = parts.join("\n");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/sqlite/schema.sql");
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&kept, &schema).unwrap();
    }
    assert_eq!(schema, std::fs::read_to_string(kept).unwrap());
}

/// Design 2 and 7: keys begin with the workspace; the exceptions are declared here (design 9.8).
#[tokio::test]
async fn every_key_begins_with_the_workspace() {
    let (dir, store) = opened();
    store.close().await.unwrap();
    let file = file(&dir);
    let mut statement = file
        .prepare(
            "SELECT t.name, i.name, c.name FROM sqlite_schema t, pragma_index_list(t.name) i, pragma_index_info(i.name) c
             WHERE t.type = 'table' AND i.\"unique\" AND c.seqno = 0",
        )
        .unwrap();
    let keys = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap();
    let keys: Vec<(String, String, String)> = keys.map(|key| key.unwrap()).collect();
    assert!(keys.len() >= 20);
    for (table, key, first) in keys {
        assert_eq!(first, "workspace_id", "{table}: {key}");
    }
    let mut statement = file
        .prepare(
            "SELECT t.name FROM sqlite_schema t WHERE t.type = 'table'
             AND NOT EXISTS (SELECT 1 FROM pragma_table_info(t.name) c WHERE c.name = 'workspace_id') ORDER BY 1",
        )
        .unwrap();
    let without = statement
        .query_map([], |row| row.get::<_, String>(0))
        .unwrap();
    let without: Vec<_> = without.map(|name| name.unwrap()).collect();
    assert_eq!(without, ["revision", "schema_version"]);
}

/// F17: what something newer wrote is refused, with both numbers.
#[tokio::test]
async fn newer_schema_is_refused() {
    let (dir, store) = opened();
    store.close().await.unwrap();
    file(&dir)
        .execute("INSERT INTO schema_version VALUES (999, 'future', '')", [])
        .unwrap();
    let Err(Error::Corrupt(why)) = SqliteStore::open(dir.path()) else {
        panic!("a newer schema was opened");
    };
    assert!(why.contains("999") && why.contains("up to 1"), "{why}");
}

/// A migration in another wording than ours made another schema than ours.
#[tokio::test]
async fn changed_migration_is_refused() {
    let (dir, store) = opened();
    store.close().await.unwrap();
    file(&dir)
        .execute("UPDATE schema_version SET checksum = 'x'", [])
        .unwrap();
    let opened = SqliteStore::open(dir.path());
    assert!(matches!(opened, Err(Error::Corrupt(_))), "{opened:?}");
}

/// F17: the header is looked at before anything is written.
#[test]
fn file_of_somebody_else_is_refused() {
    let dir = TempDir::new().unwrap();
    file(&dir).execute("CREATE TABLE theirs (x)", []).unwrap();
    let opened = SqliteStore::open(dir.path());
    assert!(matches!(opened, Err(Error::Corrupt(_))), "{opened:?}");
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("emanet.db"), [b'x'; 8192]).unwrap();
    let opened = SqliteStore::open(dir.path());
    assert!(matches!(opened, Err(Error::Corrupt(_))), "{opened:?}");
}

/// F17: a flipped bit in a stored body is found, and never served as truth.
#[tokio::test]
async fn flipped_bit_in_a_body_is_found() {
    let (dir, store) = opened();
    let event = store.accept(receipt(3)).await.unwrap()[0].event;
    store.close().await.unwrap();
    let path = dir.path().join("emanet.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let body = bytes.windows(1500).position(|w| w == [b'x'; 1500]).unwrap();
    bytes[body + 700] ^= 4;
    std::fs::write(&path, bytes).unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let found = store.event(workspace(), event).await;
    assert!(matches!(found, Err(Error::Corrupt(_))), "{found:?}");
}

/// H59, H67: a row that makes no sense to this version fails its own call, and no list.
#[tokio::test]
async fn unreadable_document_breaks_no_list() {
    let (dir, store) = opened();
    let event = store.accept(receipt(3)).await.unwrap()[0].event;
    store.accept(receipt(4)).await.unwrap();
    store.close().await.unwrap();
    file(&dir)
        .execute(
            "INSERT INTO lead SELECT workspace_id, event_id, '{\"phone\": 1e400}' FROM event WHERE source_ref = '3'",
            [],
        )
        .unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let found = store.event(workspace(), event).await;
    assert!(matches!(found, Err(Error::Corrupt(_))), "{found:?}");
    let page = Page {
        after: None,
        limit: 10,
    };
    let listed = store.events(Filter::default(), page).await.unwrap();
    assert_eq!(listed.rows.len(), 2);
}

/// Design 9.2: a counter that rows do not bear out is found and named.
#[tokio::test]
async fn recount_finds_what_does_not_add_up() {
    let (dir, store) = opened();
    for n in 3..6 {
        store.accept(receipt(n)).await.unwrap();
    }
    store.close().await.unwrap();
    file(&dir)
        .execute("UPDATE tally SET pending = pending - 1", [])
        .unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    assert!(!store.status(None, now()).await.unwrap().closes);
    let miscounts = store.recount().await.unwrap();
    assert_eq!(miscounts.len(), 1);
    assert_eq!(miscounts[0].what, "pending");
    assert_eq!((miscounts[0].tally, miscounts[0].rows), (2, 3));
}

/// Everything is there after closing and opening; the log is gone.
#[tokio::test]
async fn reopening_keeps_everything() {
    let (dir, store) = opened();
    let accepted = accept(&store, 3..53).await;
    store.close().await.unwrap();
    assert!(!dir.path().join("emanet.db-wal").exists());
    let store = SqliteStore::open(dir.path()).unwrap();
    for event in accepted {
        let record = store
            .event(workspace(), event.unwrap().event)
            .await
            .unwrap();
        assert_eq!(record.request.unwrap().body.len(), 1500);
    }
    assert_eq!(received(&store).await, 50);
}

// ---- commits ---------------------------------------------------------------------------------------------------------------

/// What arrives while a commit runs shares the next one.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_calls_share_a_commit() {
    let (_dir, store) = opened();
    let release = store.hold_writer().await.unwrap();
    let before = store.commits();
    let calls = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { accept(&store, 3..603).await })
    };
    while store.waiting() < 600 {
        tokio::task::yield_now().await;
    }
    drop(release);
    for outcome in calls.await.unwrap() {
        assert!(outcome.unwrap().is_new);
    }
    // The call that held the writer, then 512 and the other 88.
    assert_eq!(store.commits() - before, 3);
    assert_eq!(received(&store).await, 600);
}

/// A call that fails or panics is undone alone; its neighbours in the same commit stand.
#[tokio::test(flavor = "multi_thread")]
async fn failing_call_does_not_spoil_its_neighbours() {
    let (_dir, store) = opened();
    store.accept(receipt(3)).await.unwrap();
    let release = store.hold_writer().await.unwrap();
    let before = store.commits();
    let mut calls = JoinSet::new();
    for n in 0..3_u32 {
        let store = Arc::clone(&store);
        calls.spawn(async move {
            match n {
                0 => store.accept(receipt(4)).await.map(|_| ()),
                1 => {
                    let stale = Lease {
                        workspace: workspace(),
                        event: EventId::new(now(), random(3)),
                        token: 9,
                    };
                    let target = Target::Source(source());
                    let outcome = store.hand_back(stale, target, now()).await;
                    assert!(matches!(outcome, Err(Error::LeaseLost)), "{outcome:?}");
                    Ok(())
                }
                _ => {
                    let outcome = store.panic_inside().await;
                    assert!(matches!(outcome, Err(Error::Unavailable(_))), "{outcome:?}");
                    Ok(())
                }
            }
        });
    }
    while store.waiting() < 3 {
        tokio::task::yield_now().await;
    }
    drop(release);
    for outcome in calls.join_all().await {
        outcome.unwrap();
    }
    assert_eq!(store.commits() - before, 2);
    assert_eq!(received(&store).await, 2);
    assert_eq!(store.recount().await.unwrap(), []);
}

/// F15: after a failed commit nobody of its batch is acknowledged, and the next one works on a connection opened anew.
#[tokio::test(flavor = "multi_thread")]
async fn failed_commit_acknowledges_nobody_and_recovers() {
    let (_dir, store) = opened();
    let release = store.hold_writer().await.unwrap();
    let calls = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { accept(&store, 3..53).await })
    };
    while store.waiting() < 50 {
        tokio::task::yield_now().await;
    }
    // The first is the commit of the call that holds the writer.
    store.fail_commits(2);
    drop(release);
    for outcome in calls.await.unwrap() {
        assert!(matches!(outcome, Err(Error::Unavailable(_))), "{outcome:?}");
    }
    assert_eq!(received(&store).await, 0);
    for outcome in accept(&store, 3..53).await {
        assert!(outcome.unwrap().is_new);
    }
    assert_eq!(store.check().await.unwrap().problems, Vec::<String>::new());
    assert_eq!(store.recount().await.unwrap(), []);
}

/// The queue is bounded: more is refused at once, while the sender can still be told.
#[tokio::test(flavor = "multi_thread")]
async fn full_queue_refuses() {
    let (_dir, store) = opened();
    let release = store.hold_writer().await.unwrap();
    let calls = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { accept(&store, 3..4103).await })
    };
    while store.waiting() < 4096 {
        tokio::task::yield_now().await;
    }
    let refused = store.accept(receipt(2)).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    drop(release);
    let outcomes = calls.await.unwrap();
    let n_accepted = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert!((4096..=4100).contains(&n_accepted), "{n_accepted}");
    assert_eq!(received(&store).await, n_accepted as u64);
}

/// H49, F20: sixteen writers beside a reader that takes its time; nobody hears "busy".
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_beside_a_long_reader_are_never_busy() {
    let (dir, store) = opened();
    store.accept(receipt(2)).await.unwrap();
    let reader = file(&dir);
    let mut statement = reader.prepare("SELECT event_id FROM event").unwrap();
    let mut half_read = statement.query([]).unwrap();
    half_read.next().unwrap().unwrap();
    let mut writers = JoinSet::new();
    for writer in 0..16_u32 {
        let store = Arc::clone(&store);
        writers.spawn(async move {
            for n in 0..40 {
                store
                    .accept(receipt(100 + writer * 1000 + n))
                    .await
                    .unwrap();
                store.status(None, now()).await.unwrap();
            }
        });
    }
    writers.join_all().await;
    assert_eq!(received(&store).await, 641);
}

/// H61: the log is truncated once it is quiet, and no connection of the engine keeps a statement half-read.
#[tokio::test(flavor = "multi_thread")]
async fn log_is_truncated_when_idle() {
    let (dir, store) = opened();
    accept(&store, 3..203).await;
    received(&store).await;
    let log = dir.path().join("emanet.db-wal");
    assert!(std::fs::metadata(&log).unwrap().len() > 0);
    let mut again = tokio::time::interval(std::time::Duration::from_millis(20));
    while std::fs::metadata(&log).unwrap().len() > 0 {
        again.tick().await;
    }
    assert_eq!(received(&store).await, 200);
}

/// F14: a full disk refuses without losing or damaging anything, and the engine works again once there is room.
#[tokio::test(flavor = "multi_thread")]
async fn full_disk_loses_nothing_and_is_survived() {
    let (dir, store) = opened();
    store.limit_pages(200).await.unwrap();
    let outcomes = accept(&store, 3..603).await;
    let n_accepted = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert!((1..600).contains(&n_accepted), "{n_accepted}");
    for outcome in &outcomes {
        assert!(
            matches!(outcome, Ok(_) | Err(Error::Unavailable(_))),
            "{outcome:?}"
        );
    }
    store.limit_pages(1_000_000).await.unwrap();
    assert_eq!(received(&store).await, n_accepted as u64);
    for outcome in accept(&store, 3..603).await {
        outcome.unwrap();
    }
    assert_eq!(received(&store).await, 600);
    assert_eq!(store.recount().await.unwrap(), []);
    store.close().await.unwrap();
    let ok: String = file(&dir)
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(ok, "ok");
}
