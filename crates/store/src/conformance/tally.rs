//! The sum closes (invariant 3), whatever is done in whatever order.

use super::Harness;
use super::world::{World, at, bury, done, hold, lead, retry};
use crate::{Filter, Finish, Lease, Plan, Release, Resolution, Resolve};
use emanet_core::classify::Effect;
use emanet_core::ids::{EventId, StepId, Target};
use emanet_core::step::{EventState, Kind, Ruling, State};
use std::collections::BTreeMap;

/// Operations of one random run.
const N_OPERATIONS: u32 = 150;

/// Design 9.2: counters and rows agree after any operations, and everything can still be brought to an end.
pub async fn sum_closes_after_random_operations(harness: &dyn Harness) {
    let world = World::new(harness);
    for seed in 0..4 {
        run_seed(&world, seed).await;
    }
}

/// One random run, from its seed.
pub async fn sum_closes_after_operations_of_seed(harness: &dyn Harness, seed: u64) {
    run_seed(&World::new(harness), seed).await;
}

/// An empty sum closes too.
pub async fn fresh_store_closes_with_nothing_in_it(harness: &dyn Harness) {
    let world = World::new(harness);
    world.closes().await;
    let status = world.store.status(None, at(0)).await.unwrap();
    assert_eq!((status.received, status.oldest_pending_seconds), (0, 0));
}

/// MON-3: what is worked on, how old the oldest is, and each workspace by itself.
pub async fn status_says_what_is_worked_on_and_how_old_it_is(harness: &dyn Harness) {
    let world = World::new(harness);
    world.accept_all(&["a", "b"], at(0)).await;
    world.accept_all(&["c"], at(60)).await;
    world.claim(world.inbox(), 2, at(60)).await;
    let status = world.store.status(None, at(80)).await.unwrap();
    assert_eq!((status.pending, status.processing), (1, 2));
    assert_eq!(status.oldest_pending_seconds, 80);
    assert!(status.closes);
    // Leases that ran out are nobody's work.
    let status = world.store.status(None, at(90)).await.unwrap();
    assert_eq!((status.pending, status.processing), (3, 0));
    let stranger = emanet_core::ids::WorkspaceId::new(at(0), world.random());
    let status = world.store.status(Some(stranger), at(90)).await.unwrap();
    assert_eq!((status.received, status.closes), (0, true));
    let status = world.store.status(Some(world.workspace), at(90)).await;
    assert_eq!(status.unwrap().received, 3);
}

/// A small generator: the suite has no random source but its seeds.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

async fn run_seed(world: &World, seed: u64) {
    let mut dice = Dice(seed);
    let mut leases = BTreeMap::<EventId, Lease>::new();
    for n in 0..N_OPERATIONS {
        let now = i64::from(n);
        match dice.below(10) {
            0 | 1 => {
                let fresh = format!("{seed}-{n}");
                let known = format!("{seed}-{}", dice.below(n as usize + 1));
                world.accept_all(&[&fresh, &known, &fresh], at(now)).await;
            }
            2 | 3 => {
                let target = [world.inbox(), world.crm()][dice.below(2)];
                for claim in world.claim(target, 3, at(now)).await {
                    leases.insert(claim.lease.event, claim.lease);
                }
            }
            4 => {
                let with_pass = dice.below(2) == 0;
                release(world, world.crm(), 2, with_pass, now).await;
            }
            5 => resolve_one(world, &mut dice, now).await,
            6 => replay(world, &mut dice, now).await,
            _ => {
                let chosen = dice.below(leases.len().max(1));
                if let Some(lease) = leases.values().nth(chosen).copied()
                    && !work(world, &mut dice, &lease, now).await
                {
                    leases.remove(&lease.event);
                }
            }
        }
        if n % 30 == 0 {
            world.closes().await;
        }
    }
    world.closes().await;
    drain(world).await;
    world.closes().await;
}

/// Takes one step forward with an event; says whether the lease is kept. A lease lost meanwhile is as good an outcome.
async fn work(world: &World, dice: &mut Dice, lease: &Lease, now: i64) -> bool {
    let store = &world.store;
    let record = world.event(lease.event).await;
    let pending = record.steps.iter().find(|s| s.state == State::Pending);
    let progress = match (dice.below(12), pending) {
        (0, _) => {
            let back = store.hand_back(*lease, world.inbox(), at(now));
            // Losing the lease is one of the things that happen here.
            drop(back.await);
            return false;
        }
        (1, _) => return finish(world, dice, lease, now).await,
        (_, None) => {
            let crm = world.new_step("crm", Kind::Crm, world.crm(), &[]);
            let task = world.new_step("task", Kind::Task, world.inbox(), &["crm"]);
            let note = world.new_step("note", Kind::Task, world.crm(), &[]);
            let steps = [vec![], vec![crm.clone()], vec![crm, task, note]];
            let plan = Plan {
                now: at(now),
                lead: Some(lead()),
                steps: steps[dice.below(3)].clone(),
            };
            store.plan(lease, plan).await
        }
        (n, Some(step)) => {
            let mut result = world.result(step.id, ruling(dice, now), at(now));
            if n % 2 == 0 {
                let intent = world.intent(step.id, result.attempt, "{}");
                if store.record_intent(lease, intent).await.is_err() {
                    return false;
                }
            }
            result.counts = n % 3 != 0;
            store.record_result(lease, result).await
        }
    };
    progress.is_ok_and(|progress| progress.keeps_lease)
}

fn ruling(dice: &mut Dice, now: i64) -> Ruling {
    match dice.below(6) {
        0 => retry(now + 5, Effect::MaybeApplied),
        1 => hold(),
        2 => bury(),
        3 => Ruling::Skip { reason: "s".into() },
        _ => done(),
    }
}

async fn finish(world: &World, dice: &mut Dice, lease: &Lease, now: i64) -> bool {
    if dice.below(2) == 0 {
        let reason = "test_lead".into();
        let finish = Finish::Ignored { reason, lead: None };
        // Losing the lease is one of the things that happen here.
        drop(world.store.finish_event(lease, finish, at(now)).await);
    } else {
        let finish = Finish::Dead {
            failure: emanet_core::classify::Failure::internal("poison"),
            cause: "poison".into(),
            dead_letter: world.dead_letter_id(),
            lead: None,
        };
        drop(world.store.finish_event(lease, finish, at(now)).await);
    }
    false
}

async fn release(world: &World, target: Target, limit: u32, with_pass: bool, now: i64) {
    let release = Release {
        workspace: world.workspace,
        target,
        limit,
        with_pass,
        now: at(now),
    };
    world.store.release_held(release).await.unwrap();
}

async fn resolve_one(world: &World, dice: &mut Dice, now: i64) {
    let open = world
        .letters()
        .await
        .into_iter()
        .find(|letter| letter.resolution.is_none());
    let Some(letter) = open else {
        return;
    };
    let is_there = letter.step.is_some() && dice.below(2) == 0;
    let resolve = Resolve {
        workspace: letter.workspace,
        id: letter.id,
        resolution: Resolution::FixedManually,
        object_id: is_there.then(|| "crm-9".to_owned()),
        by: "ayşe".into(),
        note: String::new(),
        now: at(now),
    };
    world.store.resolve(resolve).await.unwrap();
}

async fn replay(world: &World, dice: &mut Dice, now: i64) {
    let mut new = world.new_replay(&[1, 2], at(now));
    if dice.below(2) == 0 {
        new.filter = Filter {
            step: Some("crm".into()),
            ..Filter::default()
        };
    }
    let id = new.id;
    let store = &world.store;
    store.start_replay(new).await.unwrap();
    for _ in 0..dice.below(4) {
        store
            .advance_replay(world.workspace, id, at(now))
            .await
            .unwrap();
    }
    let end = crate::EndReplay {
        state: crate::ReplayState::Stopped,
        by: "ayşe".into(),
        note: String::new(),
        at: at(now),
    };
    store.end_replay(world.workspace, id, end).await.unwrap();
}

/// Brings everything to an end: nothing is stuck anywhere.
async fn drain(world: &World) {
    let mut now = i64::from(N_OPERATIONS);
    loop {
        now += 100;
        release(world, world.crm(), 1000, false, now).await;
        release(world, world.inbox(), 1000, false, now).await;
        let mut claims = world.claim(world.inbox(), 1000, at(now)).await;
        claims.extend(world.claim(world.crm(), 1000, at(now)).await);
        if claims.is_empty() {
            break;
        }
        for claim in claims {
            let mut progress = world.plan(&claim.lease, Vec::new(), at(now)).await;
            while progress.keeps_lease {
                let step: StepId = progress.next.unwrap().step;
                progress = world.record(&claim.lease, step, done(), at(now)).await;
            }
        }
    }
    let status = world.store.status(None, at(now)).await.unwrap();
    assert_eq!((status.pending, status.processing, status.held), (0, 0, 0));
    let dead = Filter {
        state: Some(EventState::Dead),
        ..Filter::default()
    };
    let dead = world.store.events(dead, super::world::page(1000)).await;
    assert_eq!(dead.unwrap().rows.len() as u64, status.dead);
}
