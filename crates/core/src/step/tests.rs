//! Design 9.1 by example, and what holds for any flow.

use super::*;
use crate::ids::DestinationId;
use proptest::prelude::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn target(n: usize) -> Target {
    Target::Destination(DestinationId::new(at(0), [n as u8; 10]))
}

/// A word for a step in the tables: its state, or `fixed` for a dead one that a person resolved.
fn standing(n: usize, word: &str, needs: &[usize]) -> Standing {
    let (state, resolved) = match word {
        "pending" => (State::Pending, false),
        "held" => (State::Held, false),
        "done" => (State::Done, false),
        "skipped" => (State::Skipped, false),
        "dead" => (State::Dead, false),
        "fixed" => (State::Dead, true),
        other => panic!("no such state: {other}"),
    };
    Standing {
        state,
        resolved,
        target: target(n),
        run_at: at(0),
        needs: needs.to_vec(),
    }
}

fn check(steps: &[(&str, &[usize])], state: EventState, next: Option<usize>) {
    let standings: Vec<_> = steps
        .iter()
        .enumerate()
        .map(|(n, (word, needs))| standing(n, word, needs))
        .collect();
    let settled = settle(&standings);
    assert_eq!(settled.state, state, "{steps:?}");
    assert_eq!(settled.next.map(|n| n.step), next, "{steps:?}");
}

/// Design 9.1: dead before held, held before pending, done only when nothing is left.
#[test]
fn an_events_state_follows_from_its_steps() {
    use EventState::{Dead, Done, Held, Pending};
    check(&[], Done, None);
    check(&[("done", &[]), ("skipped", &[])], Done, None);
    check(&[("done", &[]), ("fixed", &[])], Done, None);
    check(&[("done", &[]), ("pending", &[0])], Pending, Some(1));
    check(&[("held", &[]), ("pending", &[0])], Held, None);
    check(&[("dead", &[]), ("held", &[])], Dead, None);
    check(&[("dead", &[]), ("done", &[])], Dead, None);
    check(&[("fixed", &[]), ("held", &[])], Held, None);
}

/// Design 9.1: independent steps go on while others are dead or held.
#[test]
fn independent_steps_go_on() {
    use EventState::{Dead, Held};
    check(
        &[("dead", &[]), ("pending", &[0]), ("pending", &[])],
        Dead,
        Some(2),
    );
    check(
        &[("held", &[]), ("pending", &[0]), ("pending", &[])],
        Held,
        Some(2),
    );
    check(
        &[("dead", &[]), ("held", &[]), ("pending", &[])],
        Dead,
        Some(2),
    );
}

/// A step runs when all it needs is done, skipped, or was settled by a person.
#[test]
fn a_step_waits_for_what_it_needs() {
    use EventState::{Dead, Pending};
    check(&[("pending", &[]), ("pending", &[0])], Pending, Some(0));
    check(&[("pending", &[1]), ("pending", &[])], Pending, Some(1));
    check(
        &[("done", &[]), ("skipped", &[]), ("pending", &[0, 1])],
        Pending,
        Some(2),
    );
    check(&[("fixed", &[]), ("pending", &[0])], Pending, Some(1));
    check(
        &[("done", &[]), ("dead", &[]), ("pending", &[0, 1])],
        Dead,
        None,
    );
}

/// A flow that can never end is never called done: the event would vanish from sight.
#[test]
fn a_step_that_can_never_run_keeps_the_event_pending() {
    use EventState::Pending;
    check(&[("pending", &[0])], Pending, None);
    check(&[("pending", &[1]), ("pending", &[0])], Pending, None);
    check(&[("done", &[]), ("pending", &[7])], Pending, None);
}

/// Of the steps that can run, the one due first comes next; with whom it calls and when.
#[test]
fn the_step_due_first_is_next() {
    let mut steps = [
        standing(0, "pending", &[]),
        standing(1, "pending", &[]),
        standing(2, "pending", &[]),
    ];
    for (times, first) in [([5, 5, 5], 0), ([9, 5, 5], 1), ([9, 5, 2], 2)] {
        for (step, time) in steps.iter_mut().zip(times) {
            step.run_at = at(time);
        }
        let expected = Next {
            step: first,
            target: target(first),
            run_at: at(times[first]),
        };
        assert_eq!(settle(&steps).next, Some(expected), "{times:?}");
    }
}

/// The words stored and shown are the ones serde writes, for ever.
#[test]
fn words_match_their_serialised_form() {
    for state in [
        State::Pending,
        State::Held,
        State::Done,
        State::Skipped,
        State::Dead,
    ] {
        assert_eq!(serde_json::json!(state), state.as_str());
    }
    for kind in [Kind::Fetch, Kind::Crm, Kind::Task, Kind::CheckTask] {
        assert_eq!(serde_json::json!(kind), kind.as_str());
    }
    use EventState::{Dead, Done, Erased, Held, Ignored, Pending};
    for state in [Pending, Held, Done, Dead, Ignored, Erased] {
        assert_eq!(serde_json::json!(state), state.as_str());
    }
}

/// Steps in any states; each needs only earlier ones, as in every flow that the configuration lets through.
fn any_flow() -> impl Strategy<Value = Vec<Standing>> {
    let word = prop::sample::select(vec!["pending", "held", "done", "skipped", "dead", "fixed"]);
    prop::collection::vec((word, any::<u8>(), 0_i64..3), 0..8).prop_map(|steps| {
        let each = steps.iter().enumerate();
        each.map(|(n, (word, bits, run_at))| {
            let needs: Vec<_> = (0..n).filter(|need| bits >> need & 1 == 1).collect();
            Standing {
                run_at: at(*run_at),
                ..standing(n, word, &needs)
            }
        })
        .collect()
    })
}

fn is_over(step: &Standing) -> bool {
    matches!(
        (step.state, step.resolved),
        (State::Done | State::Skipped, _) | (State::Dead, true)
    )
}

proptest! {
    /// Design 9.1, invariant 3: done exactly when nothing is pending, held, or dead and unresolved.
    #[test]
    fn done_means_that_nothing_is_left(steps in any_flow()) {
        let settled = settle(&steps);
        prop_assert_eq!(settled.state == EventState::Done, steps.iter().all(is_over));
        let is_dead = steps.iter().any(|s| s.state == State::Dead && !s.resolved);
        prop_assert_eq!(settled.state == EventState::Dead, is_dead);
        let is_held = steps.iter().any(|s| s.state == State::Held);
        prop_assert_eq!(settled.state == EventState::Held, is_held && !is_dead);
    }

    /// What is next may run, and nothing that may run is due before it; and if nothing is next, nothing may run.
    #[test]
    fn next_is_the_first_that_may_run(steps in any_flow()) {
        let may_run = |s: &&Standing| s.state == State::Pending && s.needs.iter().all(|n| is_over(&steps[*n]));
        let first_due = steps.iter().filter(may_run).map(|s| s.run_at).min();
        let next = settle(&steps).next;
        prop_assert_eq!(next.map(|n| n.run_at), first_due);
        if let Some(next) = next {
            let step = &steps[next.step];
            prop_assert!(may_run(&step));
            prop_assert_eq!((step.target, step.run_at), (next.target, next.run_at));
        }
    }

    /// ID-5: doing what is next until nothing is ends every flow, runs no step twice and leaves only what is dead or held
    /// and what waits for that.
    #[test]
    fn every_flow_comes_to_its_end(mut steps in any_flow()) {
        let mut ran = Vec::new();
        while let Some(next) = settle(&steps).next {
            prop_assert!(!ran.contains(&next.step));
            ran.push(next.step);
            steps[next.step].state = State::Done;
        }
        let is_stopped = steps.iter().any(|s| s.state == State::Held || (s.state == State::Dead && !s.resolved));
        if !is_stopped {
            prop_assert_eq!(settle(&steps).state, EventState::Done);
        }
    }

    /// Needs that make no sense neither panic nor let an event end that has steps to do.
    #[test]
    fn senseless_needs_never_end_an_event(mut steps in any_flow(), needs: Vec<u8>) {
        for (step, need) in steps.iter_mut().zip(needs) {
            step.needs.push(need.into());
        }
        let is_left = steps.iter().any(|s| s.state == State::Pending);
        prop_assert!(!is_left || settle(&steps).state != EventState::Done);
    }
}
