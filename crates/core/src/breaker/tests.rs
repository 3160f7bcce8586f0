//! The breaker by example (design 5, H40, F45, F46), and what holds after any run of events.

use super::*;
use crate::call::{Answer, BodyState, Broken, NotSent};
use crate::classify::{self, VendorError};
use proptest::prelude::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn status(status: u16, retry_after: Option<u32>) -> Failure {
    let answer = Answer {
        status,
        headers: retry_after
            .map(|s| ("retry-after".into(), s.to_string()))
            .into_iter()
            .collect(),
        body: Vec::new(),
        body_state: BodyState::Whole,
        reused_connection: false,
    };
    match classify::answer(&answer, &VendorError::default(), at(0)) {
        classify::Verdict::Failed(failure) | classify::Verdict::Link(failure) => failure,
    }
}

/// The failure's stand-in for a fingerprint: its status.
fn cause(failure: &Failure) -> String {
    failure.status.map_or("none".into(), |s| s.to_string())
}

const fn lead(lead: &str) -> Caller<'_> {
    Caller {
        lead,
        has_pass: false,
    }
}

const fn probe(lead: &str) -> Caller<'_> {
    Caller {
        lead,
        has_pass: true,
    }
}

impl State {
    /// `failed` with the default figures and the stand-in for a cause.
    fn fail(&self, failure: &Failure, caller: Caller<'_>, seconds: i64) -> Self {
        let policy = Policy::default();
        self.failed(failure, &cause(failure), caller, at(seconds), &policy)
    }

    fn is_open_for(&self, wanted: Reason) -> bool {
        matches!(self, Self::Open { reason, .. } if *reason == wanted)
    }

    fn next_probe(&self) -> Option<i64> {
        match self {
            Self::Open { probe_at, .. } => Some(probe_at.as_second() - at(0).as_second()),
            Self::Closed { .. } => None,
        }
    }
}

/// Takes failures in turn, each of another lead, and says after how many the target opened, and for what.
fn check(failures: &[Failure], opens_after: Option<(usize, Reason)>) {
    let mut state = State::default();
    let mut opened = None;
    for (n, failure) in failures.iter().enumerate() {
        state = state.fail(failure, lead(&format!("lead {n}")), 0);
        if let (State::Open { reason, .. }, None) = (&state, opened) {
            opened = Some((n + 1, *reason));
        }
    }
    assert_eq!(opened, opens_after, "{failures:#?}");
}

/// RET-4: what was never reached opens at once, what answers badly after three in a row.
#[test]
fn a_target_that_is_down_opens() {
    let refused = || classify::not_sent(NotSent::Connect);
    let lost = || classify::broken(Broken::TimedOut);
    let of = |code| status(code, None);
    check(&[refused()], Some((1, Reason::Down)));
    check(&[of(500), of(503)], None);
    check(&[of(500), of(503), lost()], Some((3, Reason::Down)));
    check(&[of(500), lost(), refused()], Some((3, Reason::Down)));
    check(&[of(429), of(429), of(429)], Some((3, Reason::Down)));
    // An answer that shows the other side at work starts the count again; one that shows nothing does not.
    check(&[of(500), of(500), of(422), of(500), of(500)], None);
    check(
        &[of(500), of(500), of(451), of(500)],
        Some((4, Reason::Down)),
    );
    // Without proof in three answers, nothing more is sent into the dark.
    check(&[of(200), of(200), of(200)], Some((3, Reason::Down)));
}

/// F46: bad data and what nobody understands never pause a target.
#[test]
fn bad_data_never_opens_it() {
    let of = |code: u16| std::iter::repeat_with(move || status(code, None)).take(20);
    for code in [400, 409, 413, 422, 451] {
        check(&of(code).collect::<Vec<_>>(), None);
    }
    check(&vec![Failure::internal("a defect of ours"); 20], None);
}

/// Design 5: identity and permission pause at once; what hangs on a lead's value after three different leads.
#[test]
fn a_wrong_set_up_opens_by_its_scope() {
    let of = |code| status(code, None);
    check(&[of(401)], Some((1, Reason::Config)));
    check(&[of(403)], Some((1, Reason::Config)));
    check(
        &[classify::not_sent(NotSent::Certificate)],
        Some((1, Reason::Config)),
    );
    check(&[of(404), of(404)], None);
    check(&[of(404), of(404), of(404)], Some((3, Reason::Config)));
    // Another cause starts its own count; bad data between tells nothing of the set-up.
    check(&[of(404), of(404), of(410), of(410), of(404)], None);
    check(
        &[of(404), of(422), of(404), of(422), of(404)],
        Some((5, Reason::Config)),
    );
}

#[test]
fn one_lead_that_meets_it_again_and_again_pauses_nobody() {
    let gone = status(404, None);
    let state = (0..9).fold(State::default(), |s, t| s.fail(&gone, lead("the same"), t));
    assert!(!state.is_open());
}

#[test]
fn a_success_between_ends_the_row() {
    for failure in [status(500, None), status(404, None)] {
        let mut state = State::default();
        for n in 0..9 {
            state = state.fail(&failure, lead(&n.to_string()), n);
            if n % 2 == 1 {
                state = state.succeeded(false, at(n));
            }
        }
        assert!(!state.is_open(), "{failure:?}");
    }
}

/// H40, ERR-4: after Retry-After 120 nobody calls for 120 s, pass or not; then one probe goes.
#[test]
fn nobody_calls_before_retry_after_is_over() {
    let busy = |seconds| status(503, Some(seconds));
    let mut state = State::default().fail(&busy(120), lead("1"), 0);
    assert!(state.is_open_for(Reason::Throttled));
    // Calls that were in flight come back: a shorter wish shortens nothing, a success opens no door, a longer wish counts.
    state = state.fail(&busy(5), lead("2"), 1);
    state = state.succeeded(false, at(2));
    state = state.succeeded(true, at(2));
    state = state.fail(&status(422, None), probe("3"), 3);
    assert_eq!(state.next_probe(), Some(120));
    state = state.fail(&busy(130), lead("4"), 4);
    assert_eq!(state.next_probe(), Some(134));
    for has_pass in [false, true] {
        assert_eq!(state.gate(has_pass, at(133)), Gate::Hold("503".into()));
    }
    assert!(!state.probe_due(at(133)));
    assert!(state.probe_due(at(134)));
    assert_eq!(state.gate(false, at(134)), Gate::Hold("503".into()));
    assert_eq!(state.gate(true, at(134)), Gate::Pass);
    assert_eq!(state.succeeded(true, at(135)), State::default());
}

/// H21: `Retry-After: 0`, or a date that has passed, is no wish; the usual counting applies.
#[test]
fn a_retry_after_of_zero_is_no_wish() {
    check(&[status(503, Some(0)), status(503, Some(0))], None);
    let third = status(503, Some(0));
    check(
        &[third.clone(), third.clone(), third],
        Some((3, Reason::Down)),
    );
}

/// Calls in flight when the target opened neither close it nor change what it is open for; a probe does both.
#[test]
fn only_a_call_with_a_pass_tells_about_now() {
    let expired = State::default().fail(&status(401, None), lead("1"), 0);
    for (failure, after_probe) in [
        (status(422, None), "closed"),
        (status(403, None), "open 403"),
        (status(401, None), "open 401"),
        (status(404, None), "closed"),
        (status(503, None), "open 401"),
        (status(451, None), "open 401"),
    ] {
        let in_flight = expired.fail(&failure, lead("2"), 1);
        assert_eq!(in_flight, expired, "{failure:?}");
        let probed = expired.fail(&failure, probe("2"), 1);
        let is = probed
            .cause()
            .map_or("closed".into(), |cause| format!("open {cause}"));
        assert_eq!(is, after_probe, "{failure:?}");
        assert!(!probed.is_open() || probed.is_open_for(Reason::Config));
    }
    assert_eq!(expired.succeeded(false, at(1)), expired);
    assert_eq!(expired.succeeded(true, at(1)), State::default());
}

/// A target comes back from being down, and its token has expired meanwhile: now a person must act, and hear why.
#[test]
fn a_probe_can_find_another_reason() {
    let down = State::default().fail(&classify::not_sent(NotSent::Dns), lead("1"), 0);
    let expired = down.fail(&status(401, None), probe("2"), 100);
    assert!(expired.is_open_for(Reason::Config));
    assert_eq!(expired.cause(), Some("401"));
    assert_eq!(expired.next_probe(), Some(400));

    let throttled = down.fail(&status(429, Some(30)), probe("2"), 100);
    assert!(throttled.is_open_for(Reason::Throttled));
    assert_eq!(
        throttled.cause(),
        Some("none"),
        "held leads stay under one cause"
    );
    assert_eq!(throttled.next_probe(), Some(130));
    assert!(
        throttled
            .fail(&status(500, None), probe("3"), 131)
            .is_open_for(Reason::Down)
    );

    // A lead-scoped cause found by a probe counts as the first of three.
    let first = down.fail(&status(404, None), probe("2"), 100);
    assert!(!first.is_open());
    let third =
        first
            .fail(&status(404, None), lead("3"), 101)
            .fail(&status(404, None), lead("4"), 102);
    assert!(third.is_open_for(Reason::Config));
    assert_eq!(third.fail(&status(404, None), probe("5"), 500), third);
}

/// Lets every probe fail in the same way from second 0 on, and says when they went.
fn probes(mut state: State, failure: &Failure, until: i64) -> Vec<i64> {
    let policy = Policy::default();
    let mut times = Vec::new();
    while let Some(due) = state.next_probe().filter(|t| *t <= until) {
        assert!(state.probe_due(at(due)) && !state.probe_due(at(due - 1)));
        times.push(due);
        state = state.probing(at(due), &policy);
        assert!(!state.probe_due(at(due)), "one probe at a time");
        state = state.fail(failure, probe("p"), due);
    }
    times
}

/// F45: waits double up to a minute; over a day that is at most one probe a minute.
#[test]
fn probes_of_a_target_that_is_down_wait_longer_and_longer() {
    let refused = classify::not_sent(NotSent::Connect);
    let state = State::default().fail(&refused, lead("1"), 0);
    assert_eq!(
        probes(state.clone(), &refused, 300),
        [1, 3, 7, 15, 31, 63, 123, 183, 243]
    );
    assert!(probes(state, &refused, 86_400).len() <= 24 * 60 + 6);
}

/// F46: a target that is set up wrong is probed every five minutes at most.
#[test]
fn probes_of_a_target_that_is_set_up_wrong_are_rare() {
    let expired = status(401, None);
    let state = State::default().fail(&expired, lead("1"), 0);
    assert_eq!(probes(state.clone(), &expired, 1_000), [300, 600, 900]);
    let away = status(503, None);
    assert_eq!(probes(state, &away, 1_000), [300, 600, 900]);
}

/// Issue 2: the CRM is away for a minute while 500 leads arrive: a handful of calls, and all goes on within a few seconds.
#[test]
fn a_minute_away_costs_a_handful_of_calls() {
    for failure in [classify::not_sent(NotSent::Connect), status(503, None)] {
        let policy = Policy::default();
        let (mut state, mut n_calls) = (State::default(), 0);
        for n in 0..500 {
            let second = n * 60 / 500;
            if state.probe_due(at(second)) {
                state = state.probing(at(second), &policy);
                state = state.fail(&failure, probe("p"), second);
                n_calls += 1;
            }
            if state.gate(false, at(second)) == Gate::Pass {
                state = state.fail(&failure, lead(&n.to_string()), second);
                n_calls += 1;
            }
        }
        assert!(n_calls <= 8, "{n_calls} calls");
        assert!(state.next_probe().is_some_and(|t| t <= 64), "{state:?}");
    }
}

/// What may happen to a target.
#[derive(Clone, Debug)]
enum Happening {
    Later(i64),
    Probe,
    Success(bool),
    Failure(Failure, u8, bool),
}

fn any_happening() -> impl Strategy<Value = Happening> {
    let failure = prop_oneof![
        (
            prop::sample::select(vec![
                200, 302, 400, 401, 403, 404, 410, 422, 429, 451, 500, 503
            ]),
            prop::option::of(0_u32..2_000)
        )
            .prop_map(|(code, wish)| status(code, wish)),
        Just(classify::not_sent(NotSent::Connect)),
        Just(classify::broken(Broken::Closed)),
    ];
    prop_oneof![
        (0_i64..400).prop_map(Happening::Later),
        Just(Happening::Probe),
        any::<bool>().prop_map(Happening::Success),
        (failure, 0_u8..5, any::<bool>())
            .prop_map(|(f, lead, pass)| Happening::Failure(f, lead, pass)),
    ]
}

impl State {
    fn after(self, happening: &Happening, seconds: i64) -> Self {
        match happening {
            Happening::Later(_) => self,
            Happening::Probe if self.probe_due(at(seconds)) => {
                self.probing(at(seconds), &Policy::default())
            }
            Happening::Probe => self,
            Happening::Success(has_pass) => self.succeeded(*has_pass, at(seconds)),
            Happening::Failure(failure, n, has_pass) => {
                let lead = n.to_string();
                let has_pass = *has_pass;
                self.fail(
                    failure,
                    Caller {
                        lead: &lead,
                        has_pass,
                    },
                    seconds,
                )
            }
        }
    }
}

/// RET-4: a target that goes down in the middle of a replay's stage is not called by the rest of it; a probe, let through after
/// it went down, does call it.
#[test]
fn a_pass_is_good_only_for_what_was_open_when_it_was_given() {
    let closed = State::default();
    assert!(closed.honours_pass_of(at(0)));
    let down = closed.fail(&status(503, Some(1)), lead("a"), 10);
    assert!(down.is_open_for(Reason::Down) || down.is_open_for(Reason::Throttled));
    assert!(!down.honours_pass_of(at(9)));
    assert!(down.honours_pass_of(at(10)));
    // A failed probe does not make it open anew.
    let still_down = down.fail(&status(503, None), probe("b"), 20);
    assert!(still_down.honours_pass_of(at(11)));
    // Another cause does: what was let go for the first one does not get past it.
    let token = closed.fail(&status(401, None), lead("a"), 30);
    let permission = token.fail(&status(403, None), probe("b"), 40);
    assert!(permission.is_open() && !permission.honours_pass_of(at(35)));
}

proptest! {
    /// ERR-4, H40: once the other side asked to be left alone, nobody calls and no probe goes before that time.
    #[test]
    fn nothing_goes_before_retry_after(
        before in prop::collection::vec(any_happening(), 0..20),
        code in prop::sample::select(vec![429_u16, 500, 503]),
        wish in 1_u32..5_000,
        after in prop::collection::vec(any_happening(), 0..20),
    ) {
        let mut state = before.iter().fold(State::default(), |state, h| state.after(h, 0));
        state = state.fail(&status(code, Some(wish)), lead("l"), 0);
        let mut seconds = 0;
        for happening in &after {
            if let Happening::Later(more) = happening {
                seconds += more;
            }
            if seconds >= i64::from(wish) {
                break;
            }
            state = state.after(happening, seconds);
            for has_pass in [false, true] {
                let is_held = matches!(state.gate(has_pass, at(seconds)), Gate::Hold(_));
                prop_assert!(is_held, "{:?} after {:?}", state, happening);
            }
            prop_assert!(!state.probe_due(at(seconds)), "{:?} after {:?}", state, happening);
        }
    }

    /// F46, RET-4 and the module's own rules, after any run of events.
    #[test]
    fn the_rules_hold_after_any_run(happenings in prop::collection::vec(any_happening(), 0..60)) {
        let (mut state, mut seconds) = (State::default(), 0);
        let mut last_probe = None;
        for happening in &happenings {
            if let Happening::Later(more) = happening {
                seconds += more;
            }
            let before = state.clone();
            state = state.after(happening, seconds);
            prop_assert_eq!(&state, &before.clone().after(happening, seconds), "the same again");
            let story = format!("{before:?} + {happening:?} at {seconds} -> {state:?}");

            if let (State::Open { since, cause, probe_at, not_before, .. },
                    State::Open { since: since_now, cause: cause_now, probe_at: probe_now, not_before: not_before_now, .. })
                = (&before, &state)
                && (since, cause) == (since_now, cause_now)
            {
                prop_assert!(probe_at <= probe_now && not_before <= not_before_now, "{}", story);
            }
            if let State::Open { reason: Reason::Config, since, .. } = &before
                && matches!(happening, Happening::Probe) && state != before
            {
                let after = last_probe.filter(|t| t > since).unwrap_or(*since);
                prop_assert!(after + Policy::default().config_probe <= at(seconds), "{}", story);
            }
            if matches!(happening, Happening::Probe) && state != before {
                last_probe = Some(at(seconds));
            }
            match happening {
                Happening::Success(has_pass) if before.gate(*has_pass, at(seconds)) == Gate::Pass => {
                    prop_assert_eq!(&state, &State::default(), "{}", story);
                }
                Happening::Success(_) => prop_assert_eq!(&state, &before, "{}", story),
                Happening::Failure(_, _, false) if before.is_open() => {
                    prop_assert_eq!(state.cause(), before.cause(), "{}", story);
                }
                Happening::Failure(..) | Happening::Later(_) | Happening::Probe => {}
            }
            let stored = serde_json::to_string(&state).unwrap();
            prop_assert_eq!(serde_json::from_str::<State>(&stored).unwrap(), state.clone());
        }
    }

    /// RET-4: whatever the figures, waits do not overflow, never shrink and never pass the longest.
    #[test]
    fn probe_waits_grow_up_to_the_longest(probe_min: u64, probe_max: u64, n in 0_u32..u32::MAX) {
        let policy = Policy {
            probe_min: Duration::from_millis(probe_min),
            probe_max: Duration::from_millis(probe_max),
            ..Policy::default()
        };
        let [one, next] = [n, n + 1].map(|n| policy.probe_wait(Reason::Down, n));
        prop_assert!(one <= next && next <= policy.probe_max);
        if n < 16 {
            prop_assert_eq!(next, policy.probe_max.min(one.saturating_mul(2)));
        }
        let state = State::default().failed(&classify::not_sent(NotSent::Dns), "c", lead("l"), Timestamp::MAX, &policy);
        prop_assert!(state.probing(Timestamp::MAX, &policy).is_open());
    }
}
