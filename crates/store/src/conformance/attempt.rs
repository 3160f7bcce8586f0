//! Intents: written before the first byte leaves (invariant 4).

use super::Harness;
use super::world::{LEASE_SECONDS, World, at, done, request, retry};
use crate::Error;
use emanet_core::classify::Effect;

/// Invariant 4: all attempts of a call send the bytes fixed first.
pub async fn first_intent_fixes_the_request(harness: &dyn Harness) {
    let world = World::new(harness);
    let (lease, step) = world.started("a").await;
    let first = world.intent(step, world.attempt_id(), "first");
    let attempt = first.attempt;
    let recorded = world.store.record_intent(&lease, first).await.unwrap();
    assert_eq!(recorded.request, request("first"));
    assert_eq!(recorded.attempts, 1);
    let mut result = world.result(step, retry(5, Effect::MaybeApplied), at(2));
    result.attempt = attempt;
    world.store.record_result(&lease, result).await.unwrap();
    let lease = world.claim_one(world.crm(), at(5)).await.lease;
    let second = world.intent(step, world.attempt_id(), "second");
    let recorded = world.store.record_intent(&lease, second).await.unwrap();
    assert_eq!(recorded.request, request("first"));
    assert_eq!(recorded.attempts, 2);
    let steps = world.event(lease.event).await.steps;
    assert_eq!(steps[0].requests["create"], request("first"));
}

/// A run counts once, however many calls it makes.
pub async fn several_calls_of_a_run_are_one_attempt(harness: &dyn Harness) {
    let world = World::new(harness);
    let (lease, step) = world.started("a").await;
    let create = world.intent(step, world.attempt_id(), "create");
    let mut update = create.clone();
    update.call = "update".into();
    update.request = request("update");
    let attempt = create.attempt;
    world.store.record_intent(&lease, create).await.unwrap();
    let recorded = world.store.record_intent(&lease, update).await.unwrap();
    assert_eq!(recorded.attempts, 1);
    let mut result = world.result(step, done(), at(2));
    result.attempt = attempt;
    world.store.record_result(&lease, result).await.unwrap();
    let record = world.event(lease.event).await;
    assert_eq!(record.attempts.len(), 1);
    let attempt = &record.attempts[0];
    assert_eq!((attempt.number, attempt.counts), (1, true));
    assert_eq!(attempt.call.as_deref(), Some("update"));
    assert_eq!(attempt.ended_at, Some(at(2)));
    assert!(attempt.outcome.as_ref().unwrap().delivered.is_some());
    assert_eq!(record.steps[0].requests.len(), 2);
}

/// WRK-2: after a crash between intent and result the next worker finds the attempt open, with its request; what it records
/// next closes it as interrupted, and the step remembers that it may have been applied.
pub async fn attempt_is_open_after_a_crash(harness: &dyn Harness) {
    let world = World::new(harness);
    let (lease, step) = world.started("a").await;
    let intent = world.intent(step, world.attempt_id(), "{}");
    world.store.record_intent(&lease, intent).await.unwrap();
    let world = world.after(harness.crash().await);
    let lease = world.claim_one(world.crm(), at(LEASE_SECONDS)).await.lease;
    let record = world.event(lease.event).await;
    assert_eq!(record.attempts[0].ended_at, None);
    assert_eq!(record.attempts[0].outcome, None);
    assert_eq!(record.steps[0].attempts, 1);
    assert_eq!(record.steps[0].requests["create"], request("{}"));
    let ruling = retry(60, Effect::NotApplied);
    world
        .record(&lease, step, ruling, at(LEASE_SECONDS + 1))
        .await;
    let record = world.event(lease.event).await;
    assert!(record.attempts[0].ended_at.is_some());
    let outcome = record.attempts[0].outcome.as_ref().unwrap();
    let effect = outcome.failure.as_ref().unwrap().effect;
    assert_eq!(effect, Effect::MaybeApplied);
    assert!(record.steps[0].maybe_applied);
    assert_eq!(record.attempts[1].number, 2);
}

/// Invariant 5: what has a result takes no further intent.
pub async fn intent_of_a_finished_attempt_or_step_is_refused(harness: &dyn Harness) {
    let world = World::new(harness);
    let (lease, step) = world.started("a").await;
    let intent = world.intent(step, world.attempt_id(), "{}");
    let attempt = intent.attempt;
    let store = &world.store;
    store.record_intent(&lease, intent.clone()).await.unwrap();
    let mut result = world.result(step, retry(1, Effect::NotApplied), at(1));
    result.attempt = attempt;
    let progress = store.record_result(&lease, result).await.unwrap();
    assert!(progress.keeps_lease);
    let refused = store.record_intent(&lease, intent).await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    let other = world.new_step("x", emanet_core::step::Kind::Crm, world.crm(), &[]);
    let intent = world.intent(other.id, world.attempt_id(), "{}");
    let refused = store.record_intent(&lease, intent).await;
    assert!(matches!(refused, Err(Error::NotFound(_))), "{refused:?}");
}

/// A commit that failed leaves no trace of the intent; it can be recorded again.
pub async fn failed_commit_records_no_intent(harness: &dyn Harness) {
    let world = World::new(harness);
    let (lease, step) = world.started("a").await;
    let intent = world.intent(step, world.attempt_id(), "{}");
    harness.fail_next_commit();
    let refused = world.store.record_intent(&lease, intent.clone()).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    assert_eq!(world.event(lease.event).await.attempts, []);
    let recorded = world.store.record_intent(&lease, intent).await.unwrap();
    assert_eq!(recorded.attempts, 1);
}
