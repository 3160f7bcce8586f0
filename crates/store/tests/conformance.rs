//! Runs the suite on every engine there is.
#![expect(clippy::unwrap_used, reason = "set-up that fails must end its test")]

use emanet_store::conformance::{self, Harness};
use emanet_store::sqlite::SqliteStore;
use emanet_store::{Store, promises};
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
