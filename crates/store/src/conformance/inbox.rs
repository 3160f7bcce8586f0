//! What a sender may rely on once it was answered.

use super::Harness;
use super::world::{World, at};
use crate::{Error, Filter};
use emanet_core::event::Fate;
use emanet_core::step::EventState;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::task::JoinSet;

/// IN-2, IN-5: byte for byte.
pub async fn request_is_kept_byte_for_byte(harness: &dyn Harness) {
    let world = World::new(harness);
    let receipt = world.receipt(&["a"], at(0));
    let event = world.store.accept(receipt.clone()).await.unwrap()[0].event;
    let record = world.event(event).await;
    assert_eq!(record.request, Some(receipt.request));
    assert_eq!(record.summary.source_ref, "a");
    assert_eq!(record.summary.state, EventState::Pending);
    assert_eq!(record.summary.revision, 7);
    assert_eq!(record.summary.run_at, Some(at(0)));
    assert!(!record.summary.processing);
}

/// IN-3.
pub async fn event_delivered_again_is_the_event_that_was_there(harness: &dyn Harness) {
    let world = World::new(harness);
    let first = world.accept("a").await;
    let again = world.accept_all(&["a"], at(5)).await;
    assert_eq!(again[0].event, first);
    assert!(!again[0].is_new);
    assert_eq!(world.event(first).await.summary.seen, 2);
    assert_eq!(world.claim(world.inbox(), 10, at(9)).await.len(), 1);
    world.closes().await;
}

/// IN-5: N leads in one request are N events; ignored and unreadable ones are kept as what they are.
pub async fn each_event_of_a_request_meets_its_fate(harness: &dyn Harness) {
    let world = World::new(harness);
    let mut receipt = world.receipt(&["a", "b", "c"], at(0));
    receipt.events[1].item.fate = Fate::Ignore("honeypot".into());
    receipt.events[2].item.fate = Fate::Unreadable("invalid_json".into());
    let accepted = world.store.accept(receipt).await.unwrap();
    assert!(accepted.iter().all(|event| event.is_new));
    let ignored = world.event(accepted[1].event).await;
    assert_eq!(ignored.summary.state, EventState::Ignored);
    assert_eq!(ignored.summary.ignored.as_deref(), Some("honeypot"));
    let unreadable = world.event(accepted[2].event).await;
    assert_eq!(unreadable.summary.state, EventState::Pending);
    assert_eq!(unreadable.unreadable.as_deref(), Some("invalid_json"));
    assert_eq!(world.claim(world.inbox(), 10, at(0)).await.len(), 2);
    let status = world.store.status(None, at(0)).await.unwrap();
    assert_eq!((status.received, status.ignored), (3, 1));
    world.closes().await;
}

/// H66: ten items of which two are the same are nine events.
pub async fn event_twice_in_one_request_is_one_event(harness: &dyn Harness) {
    let world = World::new(harness);
    let refs = ["1", "2", "3", "4", "5", "6", "7", "3", "9", "10"];
    let accepted = world.accept_all(&refs, at(0)).await;
    assert_eq!(accepted.iter().filter(|event| event.is_new).count(), 9);
    assert_eq!(accepted[7].event, accepted[2].event);
    assert_eq!(world.event(accepted[2].event).await.summary.seen, 2);
    let status = world.store.status(None, at(0)).await.unwrap();
    assert_eq!(status.received, 9);
    world.closes().await;
}

/// H41: decided by the database, not by a look beforehand.
pub async fn hundred_parallel_deliveries_make_one_event(harness: &dyn Harness) {
    let world = World::new(harness);
    let mut deliveries = JoinSet::new();
    for _ in 0..100 {
        let store = Arc::clone(&world.store);
        let receipt = world.receipt(&["same"], at(0));
        deliveries.spawn(async move { store.accept(receipt).await.unwrap()[0] });
    }
    let accepted = deliveries.join_all().await;
    assert_eq!(accepted.iter().filter(|event| event.is_new).count(), 1);
    let events: HashSet<_> = accepted.iter().map(|event| event.event).collect();
    assert_eq!(events.len(), 1);
    assert_eq!(world.event(accepted[0].event).await.summary.seen, 100);
    world.closes().await;
}

/// IN-3: the pair (source, source_ref) is what is unique, within a workspace.
pub async fn same_source_ref_of_another_source_is_another_event(harness: &dyn Harness) {
    let world = World::new(harness);
    let first = world.accept("a").await;
    let mut elsewhere = world.receipt(&["a"], at(0));
    elsewhere.source = emanet_core::ids::SourceId::new(at(0), world.random());
    let second = world.store.accept(elsewhere).await.unwrap()[0];
    assert!(second.is_new);
    let mut foreign = world.receipt(&["a"], at(0));
    foreign.workspace = emanet_core::ids::WorkspaceId::new(at(0), world.random());
    let third = world.store.accept(foreign).await.unwrap()[0];
    assert!(third.is_new);
    // H39: no other workspace can look at it.
    let seen = world.store.event(world.workspace, third.event).await;
    assert!(matches!(seen, Err(Error::NotFound(_))), "{seen:?}");
    let all = world
        .store
        .events(Filter::default(), super::world::page(10))
        .await;
    let ids: HashSet<_> = all.unwrap().rows.iter().map(|event| event.id).collect();
    assert_eq!(ids, HashSet::from([first, second.event, third.event]));
}

/// Invariant 1, H22: what was acknowledged is there after a crash.
pub async fn accepted_event_survives_a_crash(harness: &dyn Harness) {
    let world = World::new(harness);
    let accepted = world.accept_all(&["a", "b"], at(0)).await;
    let world = world.after(harness.crash().await);
    for event in &accepted {
        assert!(world.event(event.event).await.request.is_some());
    }
    assert_eq!(world.claim(world.inbox(), 10, at(0)).await.len(), 2);
    world.closes().await;
}

/// Invariant 1, H47: a commit that failed leaves neither a row nor a reserved key; the next delivery is processed.
pub async fn failed_commit_acknowledges_and_leaves_nothing(harness: &dyn Harness) {
    let world = World::new(harness);
    harness.fail_next_commit();
    let refused = world.store.accept(world.receipt(&["a"], at(0))).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    assert_eq!(world.store.status(None, at(0)).await.unwrap().received, 0);
    let again = world.accept_all(&["a"], at(1)).await;
    assert!(again[0].is_new);
    world.closes().await;
}
