//! When a replay goes on, waits and ends.

use super::{Verdict, recovers, verdict};
use emanet_core::breaker::{Reason, State};
use emanet_core::ids::{ReplayId, WorkspaceId};
use emanet_store::{Filter, Replay, ReplayCounts, ReplayState};
use jiff::Timestamp;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_796_000_000 + seconds).unwrap()
}

/// Of this stage: running, done, failed; and what waits for the next ones.
fn replay(stage: u32, running: u64, done: u64, failed: u64, waiting: u64) -> Replay {
    let current = ReplayCounts {
        waiting: 0,
        running,
        done,
        failed,
    };
    Replay {
        workspace: WorkspaceId::new(at(0), [1; 10]),
        id: ReplayId::new(at(0), [2; 10]),
        filter: Filter::default(),
        stages: vec![1, 10],
        stage,
        state: ReplayState::Running,
        by: "ayşe".into(),
        reason: "the CRM is back".into(),
        started_at: at(0),
        ended: None,
        total: ReplayCounts { waiting, ..current },
        current,
        targets: Vec::new(),
    }
}

/// RP-3.
#[test]
fn replay_goes_stage_by_stage_until_too_many_fail() {
    for (what, replay, expected) in [
        ("not begun", replay(0, 0, 0, 0, 5), Verdict::NextStage),
        ("nothing to do", replay(0, 0, 0, 0, 0), Verdict::Done),
        ("on its way", replay(1, 1, 0, 0, 4), Verdict::Wait),
        ("stage through", replay(1, 0, 1, 0, 4), Verdict::NextStage),
        ("one in ten", replay(2, 0, 9, 1, 4), Verdict::NextStage),
        ("two in ten", replay(2, 0, 8, 2, 4), Verdict::Failed),
        ("all through", replay(2, 0, 10, 0, 0), Verdict::Done),
    ] {
        assert_eq!(verdict(&replay, false), expected, "{what}");
    }
}

/// ERR-4, RP-3: what a target that wants to be left alone holds back has not failed.
#[test]
fn replay_waits_for_a_target_that_recovers() {
    for (what, replay, expected) in [
        ("not begun", replay(0, 0, 0, 0, 5), Verdict::Wait),
        ("stage through", replay(1, 0, 1, 0, 4), Verdict::Wait),
        ("held again", replay(1, 0, 0, 1, 4), Verdict::Wait),
        ("the last held", replay(2, 0, 5, 5, 0), Verdict::Wait),
        ("all through", replay(2, 0, 10, 0, 0), Verdict::Done),
    ] {
        assert_eq!(verdict(&replay, true), expected, "{what}");
    }
}

/// ERR-4: until the time the other side named; then as long as a held lead brings the target further.
#[test]
fn target_recovers_while_something_will_end_it() {
    let open = |reason, not_before| State::Open {
        reason,
        cause: "429".into(),
        since: at(0),
        probe_at: at(1),
        probes: 0,
        not_before,
    };
    let throttled = open(Reason::Throttled, Some(at(60)));
    let down = open(Reason::Down, None);
    let closed = State::default();
    // State, holds leads, drains, seconds, recovers.
    for (state, holds, drains, seconds, expected) in [
        (&throttled, false, false, 59, true),
        (&throttled, true, false, 60, true),
        (&throttled, false, false, 60, false),
        (&down, true, false, 0, false),
        (&down, true, true, 0, false),
        (&closed, true, true, 0, true),
        (&closed, true, false, 0, false),
        (&closed, false, true, 0, false),
    ] {
        assert_eq!(
            recovers(state, holds, drains, at(seconds)),
            expected,
            "{state:?}, holds leads: {holds}, drains: {drains}, at {seconds} s"
        );
    }
}
