//! Dead letters and what a person does with them.

use super::Harness;
use super::world::{World, at, bury, done, failure};
use crate::{DeadLetter, Error, Filter, Finish, Lease, Resolution, Resolve};
use emanet_core::classify::{Class, Effect};
use emanet_core::ids::Target;
use emanet_core::step::{EventState, Kind, Ruling, State};

/// A person leaves it.
pub(super) fn discard(letter: &DeadLetter) -> Resolve {
    Resolve {
        workspace: letter.workspace,
        id: letter.id,
        resolution: Resolution::Discarded,
        object_id: None,
        by: "ayşe".into(),
        note: "a joke".into(),
        now: at(500),
    }
}

/// The event dies as a whole.
pub(super) async fn kill(world: &World, lease: &Lease) {
    let finish = Finish::Dead {
        failure: failure(Class::Unknown, Effect::NotApplied),
        cause: "poison".into(),
        dead_letter: world.dead_letter_id(),
        lead: None,
    };
    let finished = world.store.finish_event(lease, finish, at(2));
    finished.await.unwrap();
}

/// DL-2: who, when, how and why; the event is done.
pub async fn discarded_letter_leaves_its_trace(harness: &dyn Harness) {
    let world = World::new(harness);
    let (lease, _) = world.ended("a", bury()).await;
    let letter = world.letters().await.remove(0);
    let resolved = world.store.resolve(discard(&letter)).await.unwrap();
    assert_eq!(resolved.resolution, Some(Resolution::Discarded));
    assert_eq!(resolved.resolved_by.as_deref(), Some("ayşe"));
    assert_eq!(resolved.resolved_at, Some(at(500)));
    assert_eq!(resolved.note.as_deref(), Some("a joke"));
    let record = world.event(lease.event).await;
    assert_eq!(record.summary.state, EventState::Done);
    assert_eq!(record.steps[0].state, State::Dead);
    let status = world.store.status(None, at(1)).await.unwrap();
    assert_eq!(status.open_dead_letters, 0);
    world.closes().await;
}

/// DL-2: resolved once.
pub async fn letter_is_resolved_only_once(harness: &dyn Harness) {
    let world = World::new(harness);
    world.ended("a", bury()).await;
    let letter = world.letters().await.remove(0);
    let replayed = Resolve {
        resolution: Resolution::Replayed,
        ..discard(&letter)
    };
    let refused = world.store.resolve(replayed).await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    world.store.resolve(discard(&letter)).await.unwrap();
    let refused = world.store.resolve(discard(&letter)).await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
}

/// Design 9.1: "it is there": linked, done, and what needs the step goes on.
pub async fn object_found_by_a_person_is_linked_and_dependants_go_on(harness: &dyn Harness) {
    let world = World::new(harness);
    world.accept("a").await;
    let lease = world.claim_one(world.inbox(), at(0)).await.lease;
    let crm = world.new_step("crm", Kind::Crm, world.crm(), &[]);
    let task = world.new_step("task", Kind::Task, world.crm(), &["crm"]);
    let (crm_id, task_id) = (crm.id, task.id);
    world.plan(&lease, vec![crm, task], at(0)).await;
    let ruling = Ruling::Bury {
        failure: failure(Class::Unknown, Effect::MaybeApplied),
        cause: "lost".into(),
    };
    world.record(&lease, crm_id, ruling, at(1)).await;
    assert_eq!(world.claim(world.crm(), 1, at(400)).await.len(), 0);
    let letter = world.letters().await.remove(0);
    let found = Resolve {
        resolution: Resolution::FixedManually,
        object_id: Some("crm-77".into()),
        ..discard(&letter)
    };
    world.store.resolve(found).await.unwrap();
    let record = world.event(lease.event).await;
    assert_eq!(record.summary.state, EventState::Pending);
    assert_eq!(record.steps[0].state, State::Done);
    assert!(!record.steps[0].maybe_applied);
    assert_eq!(record.steps[0].delivered.as_ref().unwrap().how, "linked");
    assert_eq!(record.links[0].id, "crm-77");
    let lease = world.claim_one(world.crm(), at(500)).await.lease;
    let progress = world.record(&lease, task_id, done(), at(501)).await;
    assert_eq!(progress.state, EventState::Done);
    world.closes().await;
}

/// Unreadable or poisonous: the event is dead as a whole, whatever its steps say, until a person resolves it.
pub async fn event_dead_as_a_whole_stays_so_until_resolved(harness: &dyn Harness) {
    let world = World::new(harness);
    let (lease, _) = world.started("a").await;
    kill(&world, &lease).await;
    let record = world.event(lease.event).await;
    assert_eq!(record.summary.state, EventState::Dead);
    assert_eq!(record.dead_letters[0].step, None);
    assert_eq!(record.dead_letters[0].target, None);
    assert_eq!(world.claim(world.crm(), 1, at(900)).await.len(), 0);
    world.closes().await;
    let letter = world.letters().await.remove(0);
    let linked = Resolve {
        object_id: Some("x".into()),
        ..discard(&letter)
    };
    let refused = world.store.resolve(linked).await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    world.store.resolve(discard(&letter)).await.unwrap();
    let state = world.event(lease.event).await.summary.state;
    assert_eq!(state, EventState::Done);
    assert_eq!(world.claim(world.crm(), 1, at(900)).await.len(), 0);
    world.closes().await;
}

/// Test leads and the like: kept, shown, not delivered.
pub async fn event_ignored_by_the_worker_keeps_its_reason(harness: &dyn Harness) {
    let world = World::new(harness);
    let event = world.accept("a").await;
    let lease = world.claim_one(world.inbox(), at(0)).await.lease;
    let finish = Finish::Ignored {
        reason: "test_lead".into(),
        lead: Some(super::world::lead()),
    };
    world
        .store
        .finish_event(&lease, finish, at(1))
        .await
        .unwrap();
    let record = world.event(event).await;
    assert_eq!(record.summary.state, EventState::Ignored);
    assert_eq!(record.summary.ignored.as_deref(), Some("test_lead"));
    assert_eq!(record.summary.name, super::world::lead().full_name);
    assert!(record.lead.is_some());
    world.closes().await;
}

/// RP-2: every part of a filter filters.
pub async fn dead_letters_are_found_by_every_part_of_a_filter(harness: &dyn Harness) {
    let world = World::new(harness);
    world.ended("a", bury()).await;
    let (lease, step) = world.started("b").await;
    let mut other = failure(Class::PermanentConfig, Effect::NotApplied);
    other.message = "50% off_".into();
    other.vendor_code = None;
    let ruling = Ruling::Bury {
        failure: other,
        cause: "token".into(),
    };
    world.record(&lease, step, ruling, at(9)).await;
    world
        .store
        .resolve(discard(&world.letters().await[1]))
        .await
        .unwrap();
    let stranger = world.event_id();
    let checks = [
        ("all", Filter::default(), 2),
        (
            "workspace",
            Filter {
                workspace: Some(world.workspace),
                ..Filter::default()
            },
            2,
        ),
        (
            "source",
            Filter {
                source: Some(world.source),
                ..Filter::default()
            },
            2,
        ),
        (
            "no source",
            Filter {
                source: Some(emanet_core::ids::SourceId::from_uuid(*stranger.as_uuid())),
                ..Filter::default()
            },
            0,
        ),
        (
            "target",
            Filter {
                target: Some(world.crm()),
                ..Filter::default()
            },
            2,
        ),
        (
            "no target",
            Filter {
                target: Some(Target::Source(world.source)),
                ..Filter::default()
            },
            0,
        ),
        (
            "class",
            Filter {
                class: Some(Class::PermanentConfig),
                ..Filter::default()
            },
            1,
        ),
        (
            "cause",
            Filter {
                cause: Some("bad-field".into()),
                ..Filter::default()
            },
            1,
        ),
        (
            "step",
            Filter {
                step: Some("crm".into()),
                ..Filter::default()
            },
            2,
        ),
        (
            "since",
            Filter {
                since: Some(at(9)),
                ..Filter::default()
            },
            1,
        ),
        (
            "until",
            Filter {
                until: Some(at(9)),
                ..Filter::default()
            },
            1,
        ),
        (
            "open",
            Filter {
                open: Some(true),
                ..Filter::default()
            },
            1,
        ),
        (
            "resolved",
            Filter {
                open: Some(false),
                ..Filter::default()
            },
            1,
        ),
        (
            "text",
            Filter {
                text: Some("50% OFF_".into()),
                ..Filter::default()
            },
            1,
        ),
        (
            "wildcard",
            Filter {
                text: Some("%no_".into()),
                ..Filter::default()
            },
            0,
        ),
        (
            "code",
            Filter {
                text: Some("e_42".into()),
                ..Filter::default()
            },
            1,
        ),
        (
            "state",
            Filter {
                state: Some(EventState::Ignored),
                ..Filter::default()
            },
            2,
        ),
    ];
    for (what, filter, expected) in checks {
        let found = world
            .store
            .dead_letters(filter, super::world::page(10))
            .await;
        assert_eq!(found.unwrap().rows.len(), expected, "{what}");
    }
}
