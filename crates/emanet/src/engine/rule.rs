//! What follows from a failure: try again, wait with the others, or give up. Pure; the one place where the engine decides it.

use emanet_core::backoff;
use emanet_core::classify::{Class, Effect, Failure};
use emanet_core::step::Ruling;
use jiff::Timestamp;

/// What the decision rests on besides the failure itself.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Attempts of the step that count, the one just made included.
    pub attempts: u32,
    /// The step's retry policy.
    pub policy: &'a backoff::Policy,
    /// A repeat cannot make a second object (ID-4).
    pub repeat_is_safe: bool,
    /// The target is open now, the failure taken into account.
    pub target_is_open: bool,
    /// The target was open before this failure: somebody else met the cause first.
    pub target_was_open: bool,
    /// Fingerprint of the failure.
    pub cause: &'a str,
    /// Fingerprint the target is open under, where it is: what leads that wait for it wait under.
    pub held_under: &'a str,
    /// Two random values in 0 … 1.
    pub random: [f64; 2],
    /// Now.
    pub now: Timestamp,
}

/// A ruling, and whether the attempt counts against the step's limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruled {
    /// What to do.
    pub ruling: Ruling,
    /// Whether the attempt counts.
    pub counts: bool,
}

/// Decides (ERR-5, RET-1, RET-3, RET-4, ID-4, design 5).
pub fn rule(failure: Failure, facts: &Facts<'_>) -> Ruled {
    let counted = |ruling| Ruled {
        ruling,
        counts: true,
    };
    match (failure.class, failure.effect) {
        (Class::PermanentConfig, Effect::NotApplied) if facts.target_was_open => {
            hold(failure, facts)
        }
        (Class::PermanentData | Class::PermanentConfig, _) => counted(bury(failure, facts)),
        (Class::Unknown, Effect::NotApplied) => counted(bury(failure, facts)),
        (Class::Transient | Class::Unknown, Effect::Applied | Effect::MaybeApplied)
            if !facts.repeat_is_safe =>
        {
            counted(bury(ask_a_person(failure), facts))
        }
        (Class::Transient, Effect::NotApplied) if facts.target_is_open => hold(failure, facts),
        (Class::Transient | Class::Unknown, _) if facts.attempts >= facts.policy.attempts_max => {
            counted(bury(failure, facts))
        }
        (Class::Transient | Class::Unknown, _) if facts.target_is_open => counted(Ruling::Hold {
            cause: facts.held_under.to_owned(),
            failure: Some(failure),
        }),
        (Class::Transient | Class::Unknown, _) => {
            let delay = facts
                .policy
                .delay(facts.attempts, failure.retry_after, facts.random);
            let at = facts.now.saturating_add(delay).unwrap_or(Timestamp::MAX);
            counted(Ruling::Retry { at, failure })
        }
    }
}

/// Waits for the target with the others. Nothing was done on the other side, so the attempt does not count (RET-4).
fn hold(failure: Failure, facts: &Facts<'_>) -> Ruled {
    Ruled {
        ruling: Ruling::Hold {
            cause: facts.held_under.to_owned(),
            failure: Some(failure),
        },
        counts: false,
    }
}

fn bury(failure: Failure, facts: &Facts<'_>) -> Ruling {
    Ruling::Bury {
        failure,
        cause: facts.cause.to_owned(),
    }
}

/// The call may have worked, and repeating it could make a second object: a person looks (ERR-5).
fn ask_a_person(failure: Failure) -> Failure {
    Failure {
        class: Class::Unknown,
        hint: "The request was sent, but what became of it is not known, and this destination offers no way to find out or to repeat it \
               safely. Look there whether the record exists; then resolve this as fixed manually with its id, or replay it."
            .into(),
        ..failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emanet_core::classify::Scope;

    fn failure(class: Class, effect: Effect) -> Failure {
        Failure {
            class,
            effect,
            scope: Scope::Target,
            ..Failure::internal("test")
        }
    }

    struct Case {
        attempts: u32,
        safe: bool,
        was_open: bool,
        is_open: bool,
    }

    const FIRST: Case = Case {
        attempts: 1,
        safe: true,
        was_open: false,
        is_open: false,
    };

    fn check(class: Class, effect: Effect, case: &Case, want: &str, counts: bool) {
        let facts = Facts {
            attempts: case.attempts,
            policy: &backoff::Policy::default(),
            repeat_is_safe: case.safe,
            target_is_open: case.is_open,
            target_was_open: case.was_open,
            cause: "c",
            held_under: "c",
            random: [0.5, 0.5],
            now: Timestamp::UNIX_EPOCH,
        };
        let ruled = rule(failure(class, effect), &facts);
        let got = match &ruled.ruling {
            Ruling::Retry { .. } => "retry",
            Ruling::Hold { .. } => "hold",
            Ruling::Bury { .. } => "bury",
            Ruling::Done(_) | Ruling::Skip { .. } => "other",
        };
        assert_eq!((got, ruled.counts), (want, counts), "{class:?} {effect:?}");
    }

    /// RET-3: permanent errors are never retried; ERR-6: unknown and not applied is not retried either.
    #[test]
    fn permanent_failures_are_buried_at_once() {
        check(
            Class::PermanentData,
            Effect::NotApplied,
            &FIRST,
            "bury",
            true,
        );
        check(
            Class::PermanentConfig,
            Effect::NotApplied,
            &Case {
                is_open: true,
                ..FIRST
            },
            "bury",
            true,
        );
        check(
            Class::PermanentConfig,
            Effect::Applied,
            &Case {
                was_open: true,
                is_open: true,
                ..FIRST
            },
            "bury",
            true,
        );
        check(Class::Unknown, Effect::NotApplied, &FIRST, "bury", true);
    }

    /// F46: one dead letter per configuration cause; whoever meets it later is held and burns no attempt.
    #[test]
    fn later_leads_of_a_config_cause_are_held() {
        check(
            Class::PermanentConfig,
            Effect::NotApplied,
            &Case {
                was_open: true,
                is_open: true,
                ..FIRST
            },
            "hold",
            false,
        );
    }

    /// ERR-5, ID-4: a repeat after maybe_applied needs an idempotency mechanism.
    #[test]
    fn maybe_applied_without_any_mechanism_stops_and_asks() {
        for class in [Class::Transient, Class::Unknown] {
            check(
                class,
                Effect::MaybeApplied,
                &Case {
                    safe: false,
                    ..FIRST
                },
                "bury",
                true,
            );
            check(class, Effect::MaybeApplied, &FIRST, "retry", true);
        }
    }

    /// RET-4: leads waiting for a target that is down do not burn attempts.
    #[test]
    fn an_open_target_holds_instead_of_burning_attempts() {
        check(
            Class::Transient,
            Effect::NotApplied,
            &Case {
                is_open: true,
                attempts: 12,
                ..FIRST
            },
            "hold",
            false,
        );
        check(
            Class::Transient,
            Effect::MaybeApplied,
            &Case {
                is_open: true,
                ..FIRST
            },
            "hold",
            true,
        );
    }

    /// RET-1: twelve attempts, then the dead letters.
    #[test]
    fn attempts_run_out() {
        check(
            Class::Transient,
            Effect::NotApplied,
            &Case {
                attempts: 11,
                ..FIRST
            },
            "retry",
            true,
        );
        check(
            Class::Transient,
            Effect::NotApplied,
            &Case {
                attempts: 12,
                ..FIRST
            },
            "bury",
            true,
        );
    }
}
