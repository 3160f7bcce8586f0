//! The suite every engine passes. Each function shows one promise of [`crate::Store`]; [`promises!`] lists them all, so that an
//! engine cannot run some and skip others.
//!
//! Test code: it panics where a promise is broken.
#![expect(
    clippy::unwrap_used,
    reason = "a promise that is broken must end its test"
)]

pub mod inbox;
pub mod result;
mod world;

use crate::Store;
use std::sync::Arc;

/// An engine under test, with nothing in it at first.
#[async_trait::async_trait]
pub trait Harness: Send + Sync {
    /// The store.
    fn store(&self) -> Arc<dyn Store>;

    /// What a new process finds after this one died here, without closing anything.
    async fn crash(&self) -> Arc<dyn Store>;

    /// Lets the next commit fail.
    fn fail_next_commit(&self);
}

/// Hands the list of all promises to a macro, by topic.
#[macro_export]
macro_rules! promises {
    ($run:ident) => {
        $run! {
            inbox:
                request_is_kept_byte_for_byte,
                event_delivered_again_is_the_event_that_was_there,
                each_event_of_a_request_meets_its_fate,
                event_twice_in_one_request_is_one_event,
                hundred_parallel_deliveries_make_one_event,
                same_source_ref_of_another_source_is_another_event,
                accepted_event_survives_a_crash,
                failed_commit_acknowledges_and_leaves_nothing;
            result:
                done_leaves_a_link_and_ends_the_event,
                next_step_follows_under_the_same_lease,
                retry_waits_for_its_time,
                maybe_applied_is_remembered_until_done,
                skipped_step_lets_dependants_go_on,
                held_step_burns_no_attempt,
                bury_opens_a_dead_letter_with_the_event_dead,
                failed_commit_leaves_neither_dead_letter_nor_dead_event,
                independent_step_goes_on_beside_a_dead_one,
                fetched_but_unread_event_is_not_done,
                event_without_steps_is_done_when_read,
                second_plan_leaves_known_steps_alone,
                plan_with_a_need_that_cannot_be_met_is_refused,
                failure_comes_back_as_it_was_recorded;
        }
    };
}
