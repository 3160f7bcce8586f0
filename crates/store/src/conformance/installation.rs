//! Revisions, ids of names, alerts, and what the engine says of itself.

use super::Harness;
use super::dead_letter::discard;
use super::world::{World, at, bury, page};
use crate::{Error, NamedDestination, NamedSource, NewAlert, NewRevision, Release};
use emanet_core::classify::Class;
use emanet_core::ids::{AlertId, DestinationId, SourceId, WorkspaceId};
use emanet_core::step::Ruling;
use jiff::Timestamp;
use std::collections::BTreeMap;

fn revision(world: &World, based_on: u64, token: &[u8]) -> NewRevision {
    NewRevision {
        based_on,
        digest: format!("digest-{based_on}"),
        document: vec![0, 255, 1],
        by: "file".into(),
        at: at(1),
        workspaces: BTreeMap::from([("main".to_owned(), world.workspace)]),
        sources: vec![NamedSource {
            workspace: world.workspace,
            name: "form".into(),
            id: world.source,
            token: token.to_vec(),
        }],
        destinations: vec![NamedDestination {
            workspace: world.workspace,
            name: "crm".into(),
            id: world.destination,
        }],
    }
}

/// A revision, its document and the ids of its names are there after a crash.
pub async fn applied_revision_is_in_force(harness: &dyn Harness) {
    let world = World::new(harness);
    assert!(world.store.configuration().await.unwrap().is_none());
    let applied = world.store.apply(revision(&world, 0, b"t")).await.unwrap();
    assert_eq!(applied.revision.number, 1);
    let world = world.after(harness.crash().await);
    let found = world.store.configuration().await.unwrap().unwrap();
    assert_eq!(found.revision, applied.revision);
    assert_eq!(found.revision.document, [0, 255, 1]);
    assert_eq!(found.workspaces["main"], world.workspace);
    assert_eq!(found.sources, applied.sources);
    assert_eq!(found.destinations[0].id, world.destination);
    let one = world.store.revision(1).await.unwrap();
    assert_eq!(one, found.revision);
    let none = world.store.revision(2).await;
    assert!(matches!(none, Err(Error::NotFound(_))), "{none:?}");
}

/// Two that were derived from the same revision cannot both be applied.
pub async fn revision_that_was_overtaken_is_refused(harness: &dyn Harness) {
    let world = World::new(harness);
    world.store.apply(revision(&world, 0, b"t")).await.unwrap();
    for based_on in [0, 2] {
        let refused = world.store.apply(revision(&world, based_on, b"t")).await;
        assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    }
    let applied = world.store.apply(revision(&world, 1, b"t")).await.unwrap();
    assert_eq!(applied.revision.number, 2);
}

/// ID-1: an id is part of every key; a name keeps the one it got first. Its token may change.
pub async fn names_keep_their_ids_for_ever(harness: &dyn Harness) {
    let world = World::new(harness);
    world
        .store
        .apply(revision(&world, 0, b"old"))
        .await
        .unwrap();
    let mut again = revision(&world, 1, b"new");
    let stranger = WorkspaceId::new(at(0), world.random());
    again.workspaces.insert("main".into(), stranger);
    again.sources[0].id = SourceId::new(at(0), world.random());
    again.destinations[0].id = DestinationId::new(at(0), world.random());
    let applied = world.store.apply(again).await.unwrap();
    assert_eq!(applied.workspaces["main"], world.workspace);
    assert_eq!(applied.sources.len(), 1);
    assert_eq!(applied.sources[0].id, world.source);
    assert_eq!(applied.sources[0].token, b"new");
    assert_eq!(applied.destinations[0].id, world.destination);
}

fn alert(world: &World, cause: &str, seconds: i64) -> NewAlert {
    NewAlert {
        workspace: world.workspace,
        id: AlertId::new(at(0), world.random()),
        cause: cause.into(),
        class: Some(Class::PermanentConfig),
        target: Some(world.crm()),
        message: "the token expired".into(),
        hint: "renew it".into(),
        now: at(seconds),
    }
}

/// DL-3: one alert per cause, counted while it lasts.
pub async fn alert_of_the_same_cause_is_counted(harness: &dyn Harness) {
    let world = World::new(harness);
    let alert = |seconds| alert(&world, "token", seconds);
    let (first, is_new) = world.store.raise_alert(alert(1)).await.unwrap();
    assert!(is_new);
    let (second, is_new) = world.store.raise_alert(alert(2)).await.unwrap();
    assert!(!is_new);
    assert_eq!((second.id, second.count), (first.id, 2));
    assert_eq!((second.first_at, second.last_at), (at(1), at(2)));
    let close = world.store.close_alerts(world.workspace, "token", at(3));
    close.await.unwrap();
    let (third, is_new) = world.store.raise_alert(alert(4)).await.unwrap();
    assert!(is_new);
    assert_ne!(third.id, first.id);
    let listed = world.store.alerts(None, page(10)).await.unwrap();
    assert_eq!(listed.rows.len(), 2);
    assert_eq!(listed.rows[0], third);
    assert_eq!(listed.rows[1].closed_at, Some(at(3)));
}

async fn raise(world: &World, seconds: i64) {
    let alert = alert(world, "bad-field", seconds);
    world.store.raise_alert(alert).await.unwrap();
}

async fn closed_at(world: &World) -> Option<Timestamp> {
    let listed = world.store.alerts(None, page(10)).await.unwrap();
    listed.rows[0].closed_at
}

/// DL-3: a cause that never paused its target has no probe that would end its alert. Its last case does.
pub async fn alert_closes_with_the_last_that_waits_under_its_cause(harness: &dyn Harness) {
    let world = World::new(harness);
    raise(&world, 0).await;
    world.ended("a", bury()).await;
    world.ended("b", bury()).await;
    let held = Ruling::Hold {
        cause: "bad-field".into(),
        failure: None,
    };
    world.ended("c", held).await;
    let [first, second] = &world.letters().await[..] else {
        panic!("two were buried");
    };
    world.store.resolve(discard(first)).await.unwrap();
    assert_eq!(closed_at(&world).await, None, "a dead letter is open");
    world.store.resolve(discard(second)).await.unwrap();
    assert_eq!(closed_at(&world).await, None, "a step is held");
    let release = Release {
        workspace: world.workspace,
        target: world.crm(),
        limit: 1,
        with_pass: true,
        now: at(500),
    };
    world.store.release_held(release).await.unwrap();
    let probe = world.claim_one(world.crm(), at(500)).await.lease;
    let step = world.event(probe.event).await.steps[0].id;
    world.record(&probe, step, bury(), at(501)).await;
    let open = world.letters().await;
    let third = open.iter().find(|l| l.resolution.is_none()).unwrap();
    world.store.resolve(discard(third)).await.unwrap();
    assert_eq!(closed_at(&world).await, Some(at(500)));
}

/// DL-3: the dead letter of the latest failure is about to be written down; its alert must be open by then.
pub async fn alert_raised_since_the_last_dead_letter_stays_open(harness: &dyn Harness) {
    let world = World::new(harness);
    raise(&world, 0).await;
    world.ended("a", bury()).await;
    raise(&world, 9).await;
    let letter = world.letters().await.remove(0);
    world.store.resolve(discard(&letter)).await.unwrap();
    assert_eq!(closed_at(&world).await, None);
}

/// DL-3, RP-3: the stage that sends the last one; if it fails again, that raises a new alert.
pub async fn replay_of_the_last_dead_letter_closes_its_alert(harness: &dyn Harness) {
    let world = World::new(harness);
    raise(&world, 0).await;
    world.ended("a", bury()).await;
    world.ended("b", bury()).await;
    let replay = world.new_replay(&[1], at(40));
    let id = world.store.start_replay(replay).await.unwrap().id;
    let send = |seconds| world.store.advance_replay(world.workspace, id, at(seconds));
    send(50).await.unwrap();
    assert_eq!(closed_at(&world).await, None);
    send(60).await.unwrap();
    assert_eq!(closed_at(&world).await, Some(at(60)));
}

/// What was acknowledged outlives closing; closing twice is no error.
pub async fn closed_store_is_unavailable_and_keeps_everything(harness: &dyn Harness) {
    let world = World::new(harness);
    let event = world.accept("a").await;
    let report = world.store.check().await.unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    assert!(report.schema >= 1);
    let crashed = harness.crash().await;
    world.store.close().await.unwrap();
    world.store.close().await.unwrap();
    let refused = world.store.accept(world.receipt(&["b"], at(1))).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    let refused = world.store.status(None, at(1)).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    crashed.event(world.workspace, event).await.unwrap();
}
