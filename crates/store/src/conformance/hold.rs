//! Leads that wait for a paused target, and the state of targets.

use super::Harness;
use super::world::{World, at, bury, done, hold};
use crate::{Error, Release, SaveTarget};
use emanet_core::breaker::{Reason, State};
use emanet_core::step::{EventState, Kind};

fn release(world: &World, limit: u32, with_pass: bool) -> Release {
    Release {
        workspace: world.workspace,
        target: world.crm(),
        limit,
        with_pass,
        now: at(100),
    }
}

/// Those held longest go first, at most as many as asked, and each is due at once.
pub async fn held_events_are_released_oldest_first(harness: &dyn Harness) {
    let world = World::new(harness);
    let mut held = Vec::new();
    for n in 0..3 {
        let (lease, step) = world.started(&format!("{n}")).await;
        world.record(&lease, step, hold(), at(10 + n)).await;
        held.push(lease.event);
    }
    let targets = world.store.targets().await.unwrap();
    assert_eq!((targets[0].n_held, targets[0].version), (3, 0));
    let released = world.store.release_held(release(&world, 2, true)).await;
    assert_eq!(released.unwrap(), held[..2]);
    let claims = world.claim(world.crm(), 10, at(100)).await;
    assert_eq!(claims.len(), 2);
    assert!(claims.iter().all(|claim| claim.has_pass));
    assert_eq!(world.store.targets().await.unwrap()[0].n_held, 1);
    let record = world.event(held[0]).await;
    assert_eq!(record.summary.state, EventState::Pending);
    assert_eq!(record.steps[0].held_under, None);
    assert_eq!(world.store.status(None, at(100)).await.unwrap().held, 1);
    world.closes().await;
}

/// A pass lets through once: the result uses it up.
pub async fn pass_is_used_up_by_a_result(harness: &dyn Harness) {
    let world = World::new(harness);
    world.ended("a", hold()).await;
    let store = &world.store;
    store.release_held(release(&world, 1, true)).await.unwrap();
    let claim = world.claim_one(world.crm(), at(100)).await;
    assert!(claim.has_pass);
    let step = world.event(claim.lease.event).await.steps[0].id;
    world.record(&claim.lease, step, hold(), at(101)).await;
    store.release_held(release(&world, 1, false)).await.unwrap();
    assert!(!world.claim_one(world.crm(), at(101)).await.has_pass);
}

/// A released lead is not fresh any more.
pub async fn release_of_another_target_lets_nothing_go(harness: &dyn Harness) {
    let world = World::new(harness);
    world.ended("a", hold()).await;
    let other = Release {
        target: world.inbox(),
        ..release(&world, 10, true)
    };
    assert_eq!(world.store.release_held(other).await.unwrap(), []);
    assert_eq!(world.claim(world.crm(), 1, at(200)).await.len(), 0);
}

/// Design 9.1: an independent step goes on while another is held, and the release leaves its worker alone.
pub async fn release_leaves_a_running_worker_its_lease(harness: &dyn Harness) {
    let world = World::new(harness);
    world.accept("a").await;
    let lease = world.claim_one(world.inbox(), at(0)).await.lease;
    let crm = world.new_step("crm", Kind::Crm, world.crm(), &[]);
    let task = world.new_step("task", Kind::Task, world.inbox(), &[]);
    let (crm_id, task_id) = (crm.id, task.id);
    world.plan(&lease, vec![crm, task], at(0)).await;
    let progress = world.record(&lease, crm_id, hold(), at(1)).await;
    assert_eq!(progress.state, EventState::Held);
    assert_eq!(progress.next.unwrap().step, task_id);
    assert!(progress.keeps_lease);
    let store = &world.store;
    store.release_held(release(&world, 1, true)).await.unwrap();
    let progress = world.record(&lease, task_id, done(), at(100)).await;
    assert_eq!(progress.next.unwrap().step, crm_id);
    assert!(progress.keeps_lease);
    let progress = world.record(&lease, crm_id, done(), at(101)).await;
    assert_eq!(progress.state, EventState::Done);
    world.closes().await;
}

/// A dead event's held steps come back neither by themselves nor as probes.
pub async fn event_finished_as_a_whole_holds_nothing(harness: &dyn Harness) {
    let world = World::new(harness);
    world.accept("a").await;
    let lease = world.claim_one(world.inbox(), at(0)).await.lease;
    let crm = world.new_step("crm", Kind::Crm, world.crm(), &[]);
    let task = world.new_step("task", Kind::Task, world.crm(), &[]);
    let crm_id = crm.id;
    world.plan(&lease, vec![crm, task], at(0)).await;
    world.record(&lease, crm_id, hold(), at(1)).await;
    super::dead_letter::kill(&world, &lease).await;
    let released = world.store.release_held(release(&world, 9, true)).await;
    assert_eq!(released.unwrap(), []);
    assert_eq!(world.store.status(None, at(1)).await.unwrap().dead, 1);
    world.closes().await;
}

/// Two workers that saw the same state cannot both change it.
pub async fn target_state_is_compared_and_set(harness: &dyn Harness) {
    let world = World::new(harness);
    let open = State::Open {
        reason: Reason::Config,
        cause: "token".into(),
        since: at(1),
        probe_at: at(301),
        not_before: None,
        probes: 2,
    };
    let save = |state: &State, version| SaveTarget {
        workspace: world.workspace,
        target: world.crm(),
        state: state.clone(),
        version,
        now: at(1),
    };
    let store = &world.store;
    assert_eq!(store.save_target(save(&open, 0)).await.unwrap(), 1);
    for stale in [0, 2] {
        let refused = store.save_target(save(&open, stale)).await;
        assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    }
    let targets = store.targets().await.unwrap();
    assert_eq!((&targets[0].state, targets[0].version), (&open, 1));
    assert_eq!(targets[0].target, world.crm());
    let closed = State::default();
    assert_eq!(store.save_target(save(&closed, 1)).await.unwrap(), 2);
    assert_eq!(store.targets().await.unwrap()[0].state, closed);
}

/// A dead step beside a held one: the event is dead first, held once that is settled.
pub async fn event_with_dead_and_held_steps_is_dead_first(harness: &dyn Harness) {
    let world = World::new(harness);
    world.accept("a").await;
    let lease = world.claim_one(world.inbox(), at(0)).await.lease;
    let crm = world.new_step("crm", Kind::Crm, world.crm(), &[]);
    let task = world.new_step("task", Kind::Task, world.crm(), &[]);
    let (crm_id, task_id) = (crm.id, task.id);
    world.plan(&lease, vec![crm, task], at(0)).await;
    world.record(&lease, crm_id, hold(), at(1)).await;
    let progress = world.record(&lease, task_id, bury(), at(2)).await;
    assert_eq!((progress.state, progress.next), (EventState::Dead, None));
    let letter = world.letters().await.remove(0);
    world
        .store
        .resolve(super::dead_letter::discard(&letter))
        .await
        .unwrap();
    let state = world.event(lease.event).await.summary.state;
    assert_eq!(state, EventState::Held);
    world.closes().await;
}
