//! What follows from the result of a run, ruling by ruling.

use super::Harness;
use super::world::{World, at, bury, done, failure, hold, retry};
use crate::{Error, Plan};
use emanet_core::classify::{Class, Effect};
use emanet_core::step::{EventState, Kind, Ruling, State};

/// ID-3: the link is there with the step's end.
pub async fn done_leaves_a_link_and_ends_the_event(harness: &dyn Harness) {
    let world = World::new(harness);
    let (lease, step) = world.started("a").await;
    let progress = world.record(&lease, step, done(), at(2)).await;
    assert_eq!(progress.state, EventState::Done);
    assert_eq!(progress.next, None);
    assert!(!progress.keeps_lease);
    let record = world.event(lease.event).await;
    assert_eq!(record.summary.state, EventState::Done);
    assert_eq!(record.summary.run_at, None);
    assert_eq!(record.steps[0].state, State::Done);
    assert_eq!(record.links.len(), 1);
    assert_eq!(record.links[0].id, "crm-1");
    assert_eq!(record.links[0].destination, world.destination);
    assert_eq!(record.summary.name.as_deref(), Some("İpek Çağlar"));
    assert_eq!(world.claim(world.crm(), 10, at(1_000)).await.len(), 0);
    world.closes().await;
}

/// ID-5: only unfinished steps go on, each at its own target.
pub async fn next_step_follows_under_the_same_lease(harness: &dyn Harness) {
    let world = World::new(harness);
    world.accept("a").await;
    let lease = world.claim_one(world.inbox(), at(0)).await.lease;
    let crm = world.new_step("crm", Kind::Crm, world.crm(), &[]);
    let task = world.new_step("task", Kind::Task, world.crm(), &["crm"]);
    let (crm_id, task_id) = (crm.id, task.id);
    let progress = world.plan(&lease, vec![crm, task], at(0)).await;
    assert_eq!(progress.next.unwrap().step, crm_id);
    let progress = world.record(&lease, crm_id, done(), at(1)).await;
    assert_eq!(progress.state, EventState::Pending);
    assert_eq!(progress.next.unwrap().step, task_id);
    assert!(progress.keeps_lease);
    let progress = world.record(&lease, task_id, done(), at(2)).await;
    assert_eq!(progress.state, EventState::Done);
    // WRK-2: a finished step takes no second result.
    let again = world.result(crm_id, done(), at(3));
    let refused = world.store.record_result(&lease, again).await;
    assert!(matches!(refused, Err(Error::LeaseLost)), "{refused:?}");
    world.closes().await;
}

/// RET-1: not before its time, and the attempt counts.
pub async fn retry_waits_for_its_time(harness: &dyn Harness) {
    let world = World::new(harness);
    let ruling = retry(60, Effect::NotApplied);
    let (lease, _) = world.ended("a", ruling).await;
    let step = world.event(lease.event).await.steps.remove(0);
    assert_eq!((step.state, step.attempts), (State::Pending, 1));
    assert!(!step.maybe_applied);
    assert_eq!(step.failure.unwrap().class, Class::Transient);
    assert_eq!(world.claim(world.crm(), 1, at(59)).await.len(), 0);
    let claim = world.claim_one(world.crm(), at(60)).await;
    assert_eq!(claim.lease.event, lease.event);
    world.closes().await;
}

/// ERR-5: what may have been applied stays so until a result says otherwise.
pub async fn maybe_applied_is_remembered_until_done(harness: &dyn Harness) {
    let world = World::new(harness);
    let ruling = retry(10, Effect::MaybeApplied);
    let (lease, step) = world.ended("a", ruling).await;
    let lease2 = world.claim_one(world.crm(), at(10)).await.lease;
    let ruling = retry(20, Effect::NotApplied);
    world.record(&lease2, step, ruling, at(11)).await;
    assert!(world.event(lease.event).await.steps[0].maybe_applied);
    let lease3 = world.claim_one(world.crm(), at(20)).await.lease;
    world.record(&lease3, step, done(), at(21)).await;
    assert!(!world.event(lease.event).await.steps[0].maybe_applied);
}

/// A skipped step leaves its reason and lets those that need it go on.
pub async fn skipped_step_lets_dependants_go_on(harness: &dyn Harness) {
    let world = World::new(harness);
    world.accept("a").await;
    let lease = world.claim_one(world.inbox(), at(0)).await.lease;
    let check = world.new_step("check", Kind::CheckTask, world.crm(), &[]);
    let task = world.new_step("task", Kind::Task, world.crm(), &["check"]);
    let (check_id, task_id) = (check.id, task.id);
    world.plan(&lease, vec![check, task], at(0)).await;
    let reason = "complete".to_owned();
    let ruling = Ruling::Skip { reason };
    let progress = world.record(&lease, check_id, ruling, at(1)).await;
    assert_eq!(progress.next.unwrap().step, task_id);
    let record = world.event(lease.event).await;
    assert_eq!(record.steps[0].state, State::Skipped);
    assert_eq!(record.steps[0].skipped.as_deref(), Some("complete"));
    assert_eq!(record.attempts, []);
}

/// RET-4: a held step burns no attempt, and the claim is returned.
pub async fn held_step_burns_no_attempt(harness: &dyn Harness) {
    let world = World::new(harness);
    let (lease, step) = world.started("a").await;
    let intent = world.intent(step, world.attempt_id(), "{}");
    let attempt = intent.attempt;
    world.store.record_intent(&lease, intent).await.unwrap();
    let mut result = world.result(step, hold(), at(2));
    result.attempt = attempt;
    result.counts = false;
    let progress = world.store.record_result(&lease, result).await.unwrap();
    assert_eq!(progress.state, EventState::Held);
    assert!(!progress.keeps_lease);
    let record = world.event(lease.event).await;
    assert_eq!(record.steps[0].attempts, 0);
    assert_eq!(record.steps[0].held_under.as_deref(), Some("crm-down"));
    assert!(!record.attempts[0].counts);
    assert_eq!(world.claim(world.crm(), 1, at(1_000)).await.len(), 0);
    world.closes().await;
}

/// DL-1: dead letter, step and event in one transaction.
pub async fn bury_opens_a_dead_letter_with_the_event_dead(harness: &dyn Harness) {
    let world = World::new(harness);
    let (lease, step) = world.ended("a", bury()).await;
    let record = world.event(lease.event).await;
    assert_eq!(record.summary.state, EventState::Dead);
    assert_eq!(record.steps[0].state, State::Dead);
    let letter = &record.dead_letters[0];
    assert_eq!(letter.step, Some((step, "crm".into())));
    assert_eq!(letter.cause, "bad-field");
    assert_eq!(letter.attempts, 1);
    assert_eq!(letter.target, Some(world.crm()));
    assert_eq!(letter.failure.hint, "ask it");
    assert_eq!(letter.resolution, None);
    let status = world.store.status(None, at(1)).await.unwrap();
    assert_eq!((status.dead, status.open_dead_letters), (1, 1));
    assert_eq!(status.by_class[&Class::PermanentData], 1);
    world.closes().await;
}

/// DL-1: a commit that fails leaves neither half.
pub async fn failed_commit_leaves_neither_dead_letter_nor_dead_event(harness: &dyn Harness) {
    let world = World::new(harness);
    let (lease, step) = world.started("a").await;
    harness.fail_next_commit();
    let result = world.result(step, bury(), at(1));
    let refused = world.store.record_result(&lease, result).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    let record = world.event(lease.event).await;
    assert_eq!(record.summary.state, EventState::Pending);
    assert_eq!(record.dead_letters, []);
    world.record(&lease, step, bury(), at(2)).await;
    assert_eq!(world.letters().await.len(), 1);
    world.closes().await;
}

/// Design 9.1: independent steps go on while one is dead.
pub async fn independent_step_goes_on_beside_a_dead_one(harness: &dyn Harness) {
    let world = World::new(harness);
    world.accept("a").await;
    let lease = world.claim_one(world.inbox(), at(0)).await.lease;
    let crm = world.new_step("crm", Kind::Crm, world.crm(), &[]);
    let task = world.new_step("task", Kind::Task, world.crm(), &[]);
    let after = world.new_step("after", Kind::Task, world.crm(), &["crm"]);
    let (crm_id, task_id) = (crm.id, task.id);
    world.plan(&lease, vec![crm, task, after], at(0)).await;
    let progress = world.record(&lease, crm_id, bury(), at(1)).await;
    assert_eq!(progress.state, EventState::Dead);
    assert_eq!(progress.next.unwrap().step, task_id);
    assert!(progress.keeps_lease);
    let progress = world.record(&lease, task_id, done(), at(2)).await;
    assert_eq!((progress.state, progress.next), (EventState::Dead, None));
    world.closes().await;
}

/// The fields were fetched, but nobody has read the lead yet: that is not done.
pub async fn fetched_but_unread_event_is_not_done(harness: &dyn Harness) {
    let world = World::new(harness);
    world.accept("a").await;
    let lease = world.claim_one(world.inbox(), at(0)).await.lease;
    let fetch = world.new_step("fetch", Kind::Fetch, world.inbox(), &[]);
    let fetch_id = fetch.id;
    let plan = Plan {
        now: at(0),
        lead: None,
        steps: vec![fetch],
    };
    world.store.plan(&lease, plan).await.unwrap();
    let progress = world.record(&lease, fetch_id, done(), at(1)).await;
    assert_eq!(progress.state, EventState::Pending);
    assert!(progress.keeps_lease);
    // A fetch makes nothing outside.
    assert_eq!(world.event(lease.event).await.links, []);
    let progress = world.plan(&lease, Vec::new(), at(2)).await;
    assert_eq!(progress.state, EventState::Done);
    world.closes().await;
}

/// GS-1: a receive-only source has no steps.
pub async fn event_without_steps_is_done_when_read(harness: &dyn Harness) {
    let world = World::new(harness);
    let event = world.accept("a").await;
    let lease = world.claim_one(world.inbox(), at(0)).await.lease;
    let progress = world.plan(&lease, Vec::new(), at(0)).await;
    assert_eq!(progress.state, EventState::Done);
    assert_eq!(world.event(event).await.summary.state, EventState::Done);
    world.closes().await;
}

/// A plan is made once; a second one adds only what is new.
pub async fn second_plan_leaves_known_steps_alone(harness: &dyn Harness) {
    let world = World::new(harness);
    let (lease, step) = world.started("a").await;
    let again = world.new_step("crm", Kind::Crm, world.crm(), &[]);
    let added = world.new_step("task", Kind::Task, world.crm(), &["crm"]);
    world.plan(&lease, vec![again, added], at(1)).await;
    let steps = world.event(lease.event).await.steps;
    assert_eq!(steps.len(), 2);
    assert_eq!(steps[0].id, step);
    assert_eq!(steps[1].needs, ["crm"]);
}

/// A step that needs none of those before it would wait for ever, and its event would look done.
pub async fn plan_with_a_need_that_cannot_be_met_is_refused(harness: &dyn Harness) {
    let world = World::new(harness);
    let event = world.accept("a").await;
    let lease = world.claim_one(world.inbox(), at(0)).await.lease;
    let plan = Plan {
        now: at(0),
        lead: None,
        steps: vec![world.new_step("task", Kind::Task, world.crm(), &["crm"])],
    };
    let refused = world.store.plan(&lease, plan).await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    assert_eq!(world.event(event).await.steps, []);
}

/// A failure's words are kept as they are, whatever is in them (H59).
pub async fn failure_comes_back_as_it_was_recorded(harness: &dyn Harness) {
    let world = World::new(harness);
    let mut sent = failure(Class::Unknown, Effect::MaybeApplied);
    sent.message = "100 % \"ğ\" \u{0} \\".into();
    let ruling = Ruling::Bury {
        failure: sent.clone(),
        cause: "c".into(),
    };
    world.ended("a", ruling).await;
    assert_eq!(world.letters().await[0].failure, sent);
}
