//! Runs the suite on every engine there is.
#![expect(clippy::unwrap_used, reason = "set-up that fails must end its test")]

use emanet_store::conformance::{self, Harness};
use emanet_store::sqlite::SqliteStore;
use emanet_store::{Store, promises};
use proptest::test_runner::{Config, RngSeed};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

type Open = fn(&Path) -> emanet_store::Result<SqliteStore>;

/// SQLite in a directory of its own.
struct Sqlite {
    open: Open,
    store: Arc<SqliteStore>,
    dirs: Mutex<Vec<TempDir>>,
}

impl Sqlite {
    fn new(open: Open) -> Self {
        let dir = TempDir::new().unwrap();
        Self {
            open,
            store: Arc::new(open(dir.path()).unwrap()),
            dirs: Mutex::new(vec![dir]),
        }
    }
}

#[async_trait::async_trait]
impl Harness for Sqlite {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as Arc<dyn Store>
    }

    /// The files as they stand are what a killed process leaves; the first store stays open and is used no more.
    async fn crash(&self) -> Arc<dyn Store> {
        let copy = TempDir::new().unwrap();
        let mut dirs = self.dirs.lock().unwrap();
        for file in ["emanet.db", "emanet.db-wal"] {
            std::fs::copy(dirs[0].path().join(file), copy.path().join(file)).unwrap();
        }
        let store = (self.open)(copy.path()).unwrap();
        dirs.push(copy);
        Arc::new(store)
    }

    fn fail_next_commit(&self) {
        self.store.fail_commits(1);
    }
}

macro_rules! on_sqlite {
    ($($topic:ident: $($promise:ident),+;)+) => {$(
        mod $topic {
            use super::{SqliteStore, Sqlite, conformance};
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
                async fn $promise() {
                    conformance::$topic::$promise(&Sqlite::new(SqliteStore::open)).await;
                }
            )+
        }
    )+};
}

promises!(on_sqlite);

/// The same seeds in every run, so that a failure is one for everybody.
fn few_fixed_seeds() -> Config {
    Config {
        cases: 6,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..Config::default()
    }
}

proptest::proptest! {
    #![proptest_config(few_fixed_seeds())]

    /// Invariant 3, for seeds nobody chose.
    #[test]
    fn sum_closes_after_any_operations(seed: u64) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let sqlite = Sqlite::new(SqliteStore::open_inline);
        runtime.block_on(conformance::tally::sum_closes_after_operations_of_seed(&sqlite, seed));
    }
}

/// The engine that runs on the caller's own thread keeps the same promises.
mod inline {
    use super::{Sqlite, SqliteStore, conformance, promises};

    macro_rules! on_inline {
        ($($topic:ident: $($promise:ident),+;)+) => {$(
            mod $topic {
                use super::{SqliteStore, Sqlite, conformance};
                $(
                    #[tokio::test]
                    async fn $promise() {
                        conformance::$topic::$promise(&Sqlite::new(SqliteStore::open_inline)).await;
                    }
                )+
            }
        )+};
    }

    promises!(on_inline);
}
