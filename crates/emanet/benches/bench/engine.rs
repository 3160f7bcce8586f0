//! The storage engine alone: the very rows that intake writes, from callers that each wait for their commit, without HTTP.

use crate::load::body;
use emanet::env::Env;
use emanet_core::event::{Fate, Inbound, Item, NewEvent};
use emanet_core::ids::{EventId, ReceiptId, SourceId, WorkspaceId};
use emanet_store::sqlite::SqliteStore;
use emanet_store::{NamedSource, NewReceipt, NewRevision, Store};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Leads per second that the engine takes from so many callers.
pub fn leads_per_second(total: usize, callers: usize) -> Result<f64, Failed> {
    let dir = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let env = Env::system();
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(dir.path())?);
        let workspace = WorkspaceId::new(env.now(), env.bytes());
        let source = SourceId::new(env.now(), env.bytes());
        store.apply(configuration(workspace, source, &env)).await?;
        let started = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for caller in 0..callers {
            let (store, env) = (Arc::clone(&store), env.clone());
            tasks.spawn(async move {
                for number in (caller..total).step_by(callers) {
                    store
                        .accept(receipt(workspace, source, number, &env))
                        .await?;
                }
                Ok::<_, Failed>(())
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        let took = started.elapsed();
        store.close().await?;
        Ok(total as f64 / took.as_secs_f64())
    })
}

fn receipt(workspace: WorkspaceId, source: SourceId, number: usize, env: &Env) -> NewReceipt {
    let now = env.now();
    let mut ref_hash = [0; 32];
    ref_hash[..8].copy_from_slice(&(number as u64).to_be_bytes());
    let item = Item {
        source_ref: format!("bench-{number}"),
        pointer: String::new(),
        created_at: None,
        fate: Fate::Process,
    };
    NewReceipt {
        workspace,
        source,
        id: ReceiptId::new(now, env.bytes()),
        request: Inbound {
            method: "POST".into(),
            query: String::new(),
            headers: vec![
                ("content-type".into(), "application/json".into()),
                ("accept".into(), "application/json".into()),
            ],
            body: body(number).into_bytes(),
        },
        received_at: now,
        day: "2026-01-01".into(),
        revision: 1,
        events: vec![NewEvent {
            id: EventId::new(now, env.bytes()),
            item,
            ref_hash,
        }],
    }
}

fn configuration(workspace: WorkspaceId, source: SourceId, env: &Env) -> NewRevision {
    NewRevision {
        based_on: 0,
        digest: String::new(),
        document: Vec::new(),
        by: "bench".into(),
        at: env.now(),
        workspaces: BTreeMap::from([("default".into(), workspace)]),
        sources: vec![NamedSource {
            workspace,
            name: "web".into(),
            id: source,
            token: Vec::new(),
        }],
        destinations: Vec::new(),
    }
}
