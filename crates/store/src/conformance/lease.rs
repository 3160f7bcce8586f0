//! Claims: who gets what, in which order, and what a stale worker may not do.

use super::Harness;
use super::world::{LEASE_SECONDS, World, at, done, retry};
use crate::{ClaimDue, Error, Finish, Lease};
use emanet_core::classify::Effect;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::task::JoinSet;

/// WRK-1: what is due, in order, and no more than asked for.
pub async fn due_events_are_claimed_in_order(harness: &dyn Harness) {
    let world = World::new(harness);
    let mut events = Vec::new();
    for (seconds, name) in [(3, "c"), (1, "a"), (2, "b"), (9, "later")] {
        events.push(world.accept_all(&[name], at(seconds)).await[0].event);
    }
    let claimed = world.claim(world.inbox(), 2, at(5)).await;
    let order: Vec<_> = claimed.iter().map(|claim| claim.lease.event).collect();
    assert_eq!(order, [events[1], events[2]]);
    assert!(world.event(events[1]).await.summary.processing);
    let rest = world.claim(world.inbox(), 10, at(5)).await;
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].lease.event, events[0]);
}

/// A worker sleeps until then.
pub async fn next_due_is_the_first_that_is_not_due_yet(harness: &dyn Harness) {
    let world = World::new(harness);
    world.accept_all(&["now"], at(0)).await;
    world.accept_all(&["later"], at(40)).await;
    world.accept_all(&["latest"], at(50)).await;
    let ask = ClaimDue {
        now: at(1),
        lease_until: at(31),
        slots: vec![(world.inbox(), 0), (world.crm(), 8)],
    };
    let claimed = world.store.claim_due(ask).await.unwrap();
    assert_eq!(claimed.claims.len(), 0);
    assert_eq!(claimed.next_due, Some(at(40)));
}

/// Design 5: fresh leads first, but a quarter for those tried before, and no slot stays empty.
pub async fn fresh_events_go_first_but_old_ones_get_a_quarter(harness: &dyn Harness) {
    let world = World::new(harness);
    let mut old = HashSet::new();
    for n in 0..8 {
        let (lease, _) = world
            .ended(&format!("old-{n}"), retry(1, Effect::NotApplied))
            .await;
        old.insert(lease.event);
    }
    for n in 0..20 {
        world.accept(&format!("new-{n}")).await;
        let lease = world.claim_one(world.inbox(), at(2)).await.lease;
        let back = world.store.hand_back(lease, world.crm(), at(2));
        back.await.unwrap();
    }
    let is_old = |lease: &Lease| old.contains(&lease.event);
    let claimed = world.claim(world.crm(), 8, at(3)).await;
    let n_old = claimed.iter().filter(|claim| is_old(&claim.lease)).count();
    assert_eq!((claimed.len(), n_old), (8, 2));
    // One at a time, as slots become free: one in four.
    let mut n_old = 0;
    for _ in 0..8 {
        n_old += usize::from(is_old(&world.claim_one(world.crm(), at(3)).await.lease));
    }
    assert_eq!(n_old, 2);
    // Four fresh ones are left; the old ones take the other slots.
    let claimed = world.claim(world.crm(), 100, at(3)).await;
    assert_eq!(claimed.len(), 12);
}

/// One dead target does not slow the rest: each is claimed by itself.
pub async fn targets_are_claimed_apart(harness: &dyn Harness) {
    let world = World::new(harness);
    let (lease, _) = world.ended("a", retry(1, Effect::NotApplied)).await;
    world.accept("b").await;
    assert_eq!(world.claim(world.inbox(), 10, at(5)).await.len(), 1);
    let claimed = world.claim(world.crm(), 10, at(5)).await;
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].lease.event, lease.event);
    assert_eq!(claimed[0].target, world.crm());
}

/// H38: eight takers, 2,000 events, each taken once.
pub async fn parallel_claimers_take_each_event_once(harness: &dyn Harness) {
    let world = Arc::new(World::new(harness));
    for batch in 0..20 {
        let refs: Vec<_> = (0..100).map(|n| format!("{batch}-{n}")).collect();
        let refs: Vec<_> = refs.iter().map(String::as_str).collect();
        world.accept_all(&refs, at(0)).await;
    }
    let mut claimers = JoinSet::new();
    for _ in 0..8 {
        let world = Arc::clone(&world);
        claimers.spawn(async move {
            let mut taken = Vec::new();
            loop {
                let claims = world.claim(world.inbox(), 7, at(1)).await;
                if claims.is_empty() {
                    return taken;
                }
                taken.extend(claims.iter().map(|claim| claim.lease.event));
            }
        });
    }
    let taken: Vec<_> = claimers.join_all().await.concat();
    assert_eq!(taken.len(), 2000);
    assert_eq!(taken.iter().collect::<HashSet<_>>().len(), 2000);
}

/// WRK-2: an event whose worker died returns by itself, one microsecond after the end of its lease at the latest.
pub async fn expired_lease_is_claimable_again(harness: &dyn Harness) {
    let world = World::new(harness);
    world.accept("a").await;
    let first = world.claim_one(world.inbox(), at(0)).await.lease;
    let before = at(LEASE_SECONDS - 1);
    assert_eq!(world.claim(world.inbox(), 1, before).await.len(), 0);
    let second = world
        .claim_one(world.inbox(), at(LEASE_SECONDS))
        .await
        .lease;
    assert!(second.token > first.token);
}

/// WRK-2: renewing keeps it.
pub async fn renewed_lease_is_not_claimable(harness: &dyn Harness) {
    let world = World::new(harness);
    world.accept("a").await;
    let lease = world.claim_one(world.inbox(), at(0)).await.lease;
    let stale = Lease {
        token: lease.token + 1,
        ..lease
    };
    let lost = world.store.renew(vec![lease, stale], at(100)).await;
    assert_eq!(lost.unwrap(), [stale]);
    assert_eq!(world.claim(world.inbox(), 1, at(99)).await.len(), 0);
    assert_eq!(world.claim(world.inbox(), 1, at(100)).await.len(), 1);
}

/// F5, invariant 6: whatever a stale worker tries is refused and changes nothing.
pub async fn stale_worker_is_refused_everywhere(harness: &dyn Harness) {
    let world = World::new(harness);
    let (stale, step) = world.started("a").await;
    let current = world.claim_one(world.crm(), at(LEASE_SECONDS)).await.lease;
    let store = &world.store;
    let lost = store.renew(vec![stale], at(90)).await.unwrap();
    assert_eq!(lost, [stale]);
    let intent = world.intent(step, world.attempt_id(), "{}");
    let finish = Finish::Ignored {
        reason: "r".into(),
        lead: None,
    };
    let plan = crate::Plan {
        now: at(31),
        lead: None,
        steps: Vec::new(),
    };
    let outcomes = [
        store.plan(&stale, plan).await.map(|_| ()),
        store.record_intent(&stale, intent).await.map(|_| ()),
        store
            .record_result(&stale, world.result(step, done(), at(31)))
            .await
            .map(|_| ()),
        store.finish_event(&stale, finish, at(31)).await,
        store.hand_back(stale, world.crm(), at(31)).await,
    ];
    for outcome in outcomes {
        assert!(matches!(outcome, Err(Error::LeaseLost)), "{outcome:?}");
    }
    let record = world.event(stale.event).await;
    assert_eq!((record.attempts, record.links), (Vec::new(), Vec::new()));
    world.record(&current, step, done(), at(31)).await;
    world.closes().await;
}

/// F5: the token never starts over, not even when the event left the queue and came back.
pub async fn token_survives_leaving_the_queue(harness: &dyn Harness) {
    let world = World::new(harness);
    let (held, step) = world.ended("a", super::world::hold()).await;
    let release = crate::Release {
        workspace: world.workspace,
        target: world.crm(),
        limit: 10,
        with_pass: false,
        now: at(5),
    };
    world.store.release_held(release).await.unwrap();
    let current = world.claim_one(world.crm(), at(5)).await.lease;
    assert!(current.token > held.token);
    let result = world.result(step, done(), at(6));
    let refused = world.store.record_result(&held, result).await;
    assert!(matches!(refused, Err(Error::LeaseLost)), "{refused:?}");
}

/// H18: the claiming statement counts, so no crash can keep it from counting.
pub async fn claims_without_result_are_counted(harness: &dyn Harness) {
    let mut world = World::new(harness);
    world.accept("poison").await;
    for n in 1..=3 {
        let now = at(i64::from(n) * LEASE_SECONDS);
        assert_eq!(world.claim_one(world.inbox(), now).await.claims, n);
    }
    world = world.after(harness.crash().await);
    let now = at(4 * LEASE_SECONDS);
    let claim = world.claim_one(world.inbox(), now).await;
    assert_eq!(claim.claims, 4);
    // A plan is no result: a lead that brings its worker down right after it counts on.
    let step = world.new_step("crm", emanet_core::step::Kind::Crm, world.crm(), &[]);
    let id = step.id;
    world.plan(&claim.lease, vec![step], now).await;
    let now = at(6 * LEASE_SECONDS);
    let claim = world.claim_one(world.crm(), now).await;
    assert_eq!(claim.claims, 5);
    // A recorded result starts the count over.
    world
        .record(&claim.lease, id, retry(1, Effect::NotApplied), now)
        .await;
    let now = at(8 * LEASE_SECONDS);
    assert_eq!(world.claim_one(world.crm(), now).await.claims, 1);
}

/// A graceful stop counts nothing.
pub async fn handing_back_counts_nothing(harness: &dyn Harness) {
    let world = World::new(harness);
    world.accept("a").await;
    for _ in 0..5 {
        let claim = world.claim_one(world.inbox(), at(1)).await;
        assert_eq!(claim.claims, 1);
        let back = world.store.hand_back(claim.lease, world.inbox(), at(1));
        back.await.unwrap();
        let again = world.store.hand_back(claim.lease, world.inbox(), at(1));
        assert!(matches!(again.await, Err(Error::LeaseLost)));
    }
    let claim = world.claim_one(world.inbox(), at(1)).await;
    let back = world.store.hand_back(claim.lease, world.crm(), at(8));
    back.await.unwrap();
    assert_eq!(world.claim(world.inbox(), 1, at(9)).await.len(), 0);
    assert_eq!(world.claim(world.crm(), 1, at(7)).await.len(), 0);
    assert_eq!(world.claim(world.crm(), 1, at(8)).await.len(), 1);
}

/// WRK-2, H11: a process that takes over does not wait for the leases of one that is gone, and nobody can use them any more.
pub async fn claims_of_a_dead_process_end_at_once(harness: &dyn Harness) {
    let world = World::new(harness);
    world.accept("a").await;
    let lost = world.claim_one(world.inbox(), at(1)).await;
    assert_eq!(world.claim(world.inbox(), 9, at(2)).await.len(), 0);
    assert_eq!(world.store.take_over().await.unwrap(), 1);
    assert_eq!(world.store.take_over().await.unwrap(), 0);
    let claim = world.claim_one(world.inbox(), at(2)).await;
    assert_eq!(claim.lease.event, lost.lease.event);
    assert!(claim.lease.token > lost.lease.token);
    assert_eq!((lost.claims, claim.claims), (1, 2));
    let back = world
        .store
        .hand_back(lost.lease, world.inbox(), at(3))
        .await;
    assert!(matches!(back, Err(Error::LeaseLost)), "{back:?}");
    world.closes().await;
}
