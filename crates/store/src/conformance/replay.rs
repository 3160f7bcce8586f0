//! Replays: staged, traced, and through the normal path.

use super::Harness;
use super::world::{World, at, bury, done, failure, hold, page, request};
use crate::{EndReplay, Error, Filter, Replay, ReplayCounts, ReplayState, Resolution};
use emanet_core::classify::{Class, Effect, Failure};
use emanet_core::ids::ReplayId;
use emanet_core::step::{EventState, Ruling, State};

fn counts(waiting: u64, running: u64, done: u64, failed: u64) -> ReplayCounts {
    ReplayCounts {
        waiting,
        running,
        done,
        failed,
    }
}

async fn advance(world: &World, replay: ReplayId) -> Replay {
    let advanced = world.store.advance_replay(world.workspace, replay, at(50));
    advanced.await.unwrap()
}

async fn start(world: &World, stages: &[u32]) -> Replay {
    let new = world.new_replay(stages, at(40));
    world.store.start_replay(new).await.unwrap()
}

fn bury_doubtful() -> Ruling {
    let failure = Failure {
        class: Class::Unknown,
        effect: Effect::MaybeApplied,
        ..Failure::internal("no answer")
    };
    Ruling::Bury {
        failure,
        cause: "no-answer".into(),
    }
}

fn stopped() -> EndReplay {
    EndReplay {
        state: ReplayState::Stopped,
        by: "mehmet".into(),
        note: "too early".into(),
        at: at(60),
    }
}

/// RP-3: a small batch first, then the rest; held ones go with the dead.
pub async fn stages_are_sent_one_after_the_other(harness: &dyn Harness) {
    let world = World::new(harness);
    for n in 0..3 {
        world.ended(&format!("dead-{n}"), bury()).await;
    }
    world.ended("held", hold()).await;
    let replay = start(&world, &[1, 2]).await;
    assert_eq!((replay.stage, replay.total), (0, counts(4, 0, 0, 0)));
    assert_eq!(replay.current, counts(0, 0, 0, 0));
    assert_eq!(replay.targets, [world.crm()]);
    assert_eq!(world.claim(world.crm(), 9, at(50)).await.len(), 0);

    let replay = advance(&world, replay.id).await;
    assert_eq!((replay.stage, replay.total), (1, counts(3, 1, 0, 0)));
    let claim = world.claim_one(world.crm(), at(50)).await;
    assert!(claim.has_pass);
    let step = world.event(claim.lease.event).await.steps.remove(0);
    world.record(&claim.lease, step.id, done(), at(51)).await;

    let replay = advance(&world, replay.id).await;
    assert_eq!((replay.stage, replay.current), (2, counts(0, 2, 0, 0)));
    assert_eq!(replay.total, counts(1, 2, 1, 0));
    let replay = advance(&world, replay.id).await;
    assert_eq!((replay.stage, replay.current), (3, counts(0, 1, 0, 0)));
    assert_eq!(replay.total, counts(0, 3, 1, 0));
    let again = advance(&world, replay.id).await;
    assert_eq!(again, replay);
    assert_eq!(world.claim(world.crm(), 9, at(50)).await.len(), 3);
    assert_eq!(world.store.status(None, at(50)).await.unwrap().held, 0);
    world.closes().await;
}

/// RP-1: attempts restart at 0, history stays, and the letter says it was replayed.
pub async fn replayed_step_starts_over_with_its_history(harness: &dyn Harness) {
    let world = World::new(harness);
    let (lease, _) = world.ended("a", bury()).await;
    let replay = start(&world, &[]).await;
    advance(&world, replay.id).await;
    let record = world.event(lease.event).await;
    assert_eq!(record.summary.state, EventState::Pending);
    let step = &record.steps[0];
    assert_eq!((step.state, step.attempts), (State::Pending, 0));
    assert_eq!(record.attempts.len(), 1);
    let letter = &record.dead_letters[0];
    assert_eq!(letter.resolution, Some(Resolution::Replayed));
    assert_eq!(letter.resolved_by.as_deref(), Some("ayşe"));
    assert_eq!(letter.note.as_deref(), Some("the token was renewed"));
    assert_eq!(letter.resolved_at, Some(at(50)));
    world.closes().await;
}

/// Invariant 4, design 9.4: a mended mapping reaches the CRM with the replay; a request that may have been applied stays the same.
pub async fn replayed_request_is_formed_anew_unless_it_may_have_been_applied(
    harness: &dyn Harness,
) {
    let world = World::new(harness);
    let cases = [
        ("a", Effect::NotApplied, 2, "mended"),
        ("b", Effect::MaybeApplied, 1, "first"),
        ("c", Effect::Applied, 1, "first"),
    ];
    for (source_ref, effect, revision, body) in cases {
        let (lease, step) = world.started(source_ref).await;
        let intent = world.intent(step, world.attempt_id(), "first");
        let mut result = world.result(step, bury_with(effect), at(2));
        result.attempt = intent.attempt;
        world.store.record_intent(&lease, intent).await.unwrap();
        world.store.record_result(&lease, result).await.unwrap();

        let replay = start(&world, &[]).await;
        advance(&world, replay.id).await;
        assert_eq!(world.event(lease.event).await.steps[0].revision, revision);
        let lease = world.claim_one(world.crm(), at(50)).await.lease;
        let intent = world.intent(step, world.attempt_id(), "mended");
        let recorded = world.store.record_intent(&lease, intent).await.unwrap();
        assert_eq!(recorded.request, request(body), "{effect:?}");
        world.record(&lease, step, done(), at(51)).await;
    }
    world.closes().await;
}

fn bury_with(effect: Effect) -> Ruling {
    Ruling::Bury {
        failure: failure(Class::PermanentConfig, effect),
        cause: "wrong address".into(),
    }
}

/// RP-1: a new failure opens a new letter, linked to the old one.
pub async fn failing_again_links_to_the_previous_letter(harness: &dyn Harness) {
    let world = World::new(harness);
    let (lease, step) = world.ended("a", bury()).await;
    let replay = start(&world, &[]).await;
    advance(&world, replay.id).await;
    let lease2 = world.claim_one(world.crm(), at(50)).await.lease;
    world.record(&lease2, step, bury(), at(51)).await;
    let letters = world.event(lease.event).await.dead_letters;
    assert_eq!(letters.len(), 2);
    assert_eq!(letters[1].previous, Some(letters[0].id));
    assert_eq!(letters[0].previous, None);
    let replay = world.store.replay(world.workspace, replay.id).await;
    assert_eq!(replay.unwrap().total, counts(0, 0, 0, 1));
    world.closes().await;
}

/// An event that died as a whole is read anew.
pub async fn event_dead_as_a_whole_is_replayed_from_the_start(harness: &dyn Harness) {
    let world = World::new(harness);
    let event = world.accept("a").await;
    let lease = world.claim_one(world.inbox(), at(0)).await.lease;
    super::dead_letter::kill(&world, &lease).await;
    let replay = start(&world, &[]).await;
    let replay = advance(&world, replay.id).await;
    assert_eq!(replay.total, counts(0, 1, 0, 0));
    let claim = world.claim_one(world.inbox(), at(50)).await;
    assert_eq!((claim.lease.event, claim.claims), (event, 1));
    assert!(claim.has_pass);
    world.plan(&claim.lease, Vec::new(), at(51)).await;
    let replay = world.store.replay(world.workspace, replay.id).await;
    assert_eq!(replay.unwrap().total, counts(0, 0, 1, 0));
    world.closes().await;
}

/// A second replay cannot cover what a running one covers; afterwards it can.
pub async fn running_replay_keeps_others_off_its_items(harness: &dyn Harness) {
    let world = World::new(harness);
    world.ended("a", bury()).await;
    let first = start(&world, &[]).await;
    let again = world
        .store
        .start_replay(world.new_replay(&[], at(41)))
        .await;
    assert!(matches!(again, Err(Error::Conflict(_))), "{again:?}");
    let replays = world.store.replays(None, page(10)).await.unwrap();
    assert_eq!(replays.rows.len(), 1);
    assert_eq!(world.store.running_replays().await.unwrap(), replays.rows);
    let ended = world
        .store
        .end_replay(world.workspace, first.id, stopped())
        .await
        .unwrap();
    assert_eq!(ended.ended, Some(stopped()));
    assert_eq!(world.store.running_replays().await.unwrap(), []);
    let refused = world
        .store
        .advance_replay(world.workspace, first.id, at(61))
        .await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    let refused = world
        .store
        .end_replay(world.workspace, first.id, stopped())
        .await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    start(&world, &[]).await;
    let replays = world.store.replays(None, page(10)).await.unwrap();
    assert_eq!(replays.rows.len(), 2);
    world.closes().await;
}

/// RP-2: only what the filter says, and it is kept with the replay (RP-4).
pub async fn only_what_the_filter_says_is_covered(harness: &dyn Harness) {
    let world = World::new(harness);
    world.ended("dead", bury()).await;
    world.ended("held", hold()).await;
    for (cause, expected) in [("bad-field", 1), ("crm-down", 1), ("none", 0)] {
        let mut new = world.new_replay(&[5, 25], at(40));
        new.filter = Filter {
            cause: Some(cause.into()),
            ..Filter::default()
        };
        let replay = world.store.start_replay(new.clone()).await.unwrap();
        assert_eq!(replay.total.waiting, expected, "{cause}");
        assert_eq!((replay.filter, replay.stages), (new.filter, new.stages));
        assert_eq!((replay.by, replay.reason), (new.by, new.reason));
    }
}

/// ERR-5, design 9.1: what may be there already is sent again only when it is meant by name.
pub async fn doubtful_letter_is_sent_again_only_by_name(harness: &dyn Harness) {
    let world = World::new(harness);
    world.ended("doubtful", bury_doubtful()).await;
    let letter = world.letters().await.remove(0);
    let named = [
        (Filter::default(), 0),
        (
            Filter {
                target: Some(world.crm()),
                ..Filter::default()
            },
            0,
        ),
        (
            Filter {
                class: Some(Class::PermanentData),
                ..Filter::default()
            },
            0,
        ),
        (
            Filter {
                class: Some(Class::Unknown),
                ..Filter::default()
            },
            1,
        ),
        (
            Filter {
                cause: Some(letter.cause.clone()),
                ..Filter::default()
            },
            1,
        ),
        (
            Filter {
                dead_letter: Some(letter.id),
                ..Filter::default()
            },
            1,
        ),
    ];
    for (filter, expected) in named {
        let mut new = world.new_replay(&[], at(40));
        new.filter = filter.clone();
        let replay = world.store.start_replay(new).await.unwrap();
        assert_eq!(replay.total.waiting, expected, "{filter:?}");
        world
            .store
            .end_replay(world.workspace, replay.id, stopped())
            .await
            .unwrap();
    }
}

/// What a person resolved since the start is not sent.
pub async fn letter_resolved_meanwhile_is_not_sent(harness: &dyn Harness) {
    let world = World::new(harness);
    let (lease, _) = world.ended("a", bury()).await;
    let replay = start(&world, &[]).await;
    let letter = world.letters().await.remove(0);
    let discard = super::dead_letter::discard(&letter);
    world.store.resolve(discard).await.unwrap();
    let replay = advance(&world, replay.id).await;
    assert_eq!(replay.total, counts(0, 0, 1, 0));
    let record = world.event(lease.event).await;
    assert_eq!(record.summary.state, EventState::Done);
    let resolution = record.dead_letters[0].resolution;
    assert_eq!(resolution, Some(Resolution::Discarded));
}

/// A stage larger than one portion of work is sent whole.
pub async fn large_stage_is_sent_whole(harness: &dyn Harness) {
    let world = World::new(harness);
    for n in 0..450 {
        world.ended(&format!("{n}"), hold()).await;
    }
    let replay = start(&world, &[420]).await;
    let replay = advance(&world, replay.id).await;
    assert_eq!(replay.current, counts(0, 420, 0, 0));
    assert_eq!((replay.stage, replay.total), (1, counts(30, 420, 0, 0)));
    assert_eq!(world.claim(world.crm(), 1000, at(50)).await.len(), 420);
    world.closes().await;
}
