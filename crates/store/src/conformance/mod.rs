//! The suite every engine passes. Each function shows one promise of [`crate::Store`]; [`promises!`] lists them all, so that an
//! engine cannot run some and skip others.
//!
//! Test code: it panics where a promise is broken.
#![expect(
    clippy::unwrap_used,
    reason = "a promise that is broken must end its test"
)]

pub mod attempt;
pub mod dead_letter;
pub mod hold;
pub mod inbox;
pub mod installation;
pub mod lease;
pub mod paging;
pub mod replay;
pub mod result;
pub mod sandbox;
pub mod tally;
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
            lease:
                due_events_are_claimed_in_order,
                next_due_is_the_first_that_is_not_due_yet,
                claims_of_a_dead_process_end_at_once,
                fresh_events_go_first_but_old_ones_get_a_quarter,
                targets_are_claimed_apart,
                parallel_claimers_take_each_event_once,
                expired_lease_is_claimable_again,
                renewed_lease_is_not_claimable,
                stale_worker_is_refused_everywhere,
                token_survives_leaving_the_queue,
                claims_without_result_are_counted,
                handing_back_counts_nothing;
            attempt:
                first_intent_fixes_the_request,
                several_calls_of_a_run_are_one_attempt,
                attempt_is_open_after_a_crash,
                intent_of_a_finished_attempt_or_step_is_refused,
                failed_commit_records_no_intent;
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
            hold:
                held_events_are_released_oldest_first,
                pass_is_used_up_by_a_result,
                release_of_another_target_lets_nothing_go,
                release_leaves_a_running_worker_its_lease,
                event_finished_as_a_whole_holds_nothing,
                target_state_is_compared_and_set,
                event_with_dead_and_held_steps_is_dead_first;
            dead_letter:
                discarded_letter_leaves_its_trace,
                letter_is_resolved_only_once,
                object_found_by_a_person_is_linked_and_dependants_go_on,
                event_dead_as_a_whole_stays_so_until_resolved,
                event_ignored_by_the_worker_keeps_its_reason,
                dead_letters_are_found_by_every_part_of_a_filter;
            replay:
                stages_are_sent_one_after_the_other,
                replayed_step_starts_over_with_its_history,
                replayed_request_is_formed_anew_unless_it_may_have_been_applied,
                failing_again_links_to_the_previous_letter,
                event_dead_as_a_whole_is_replayed_from_the_start,
                running_replay_keeps_others_off_its_items,
                only_what_the_filter_says_is_covered,
                doubtful_letter_is_sent_again_only_by_name,
                letter_resolved_meanwhile_is_not_sent,
                large_stage_is_sent_whole;
            tally:
                sum_closes_after_random_operations,
                fresh_store_closes_with_nothing_in_it,
                status_says_what_is_worked_on_and_how_old_it_is;
            paging:
                every_event_is_listed_once,
                rows_that_come_between_pages_disturb_nothing,
                lists_over_workspaces_are_merged,
                dead_letters_are_listed_once,
                limits_and_cursors_are_checked,
                events_are_found_by_every_part_of_a_filter;
            installation:
                applied_revision_is_in_force,
                revision_that_was_overtaken_is_refused,
                names_keep_their_ids_for_ever,
                alert_of_the_same_cause_is_counted,
                alert_closes_with_the_last_that_waits_under_its_cause,
                alert_raised_since_the_last_dead_letter_stays_open,
                replay_of_the_last_dead_letter_closes_its_alert,
                closed_store_is_unavailable_and_keeps_everything;
            sandbox:
                same_key_makes_one_object,
                named_fields_are_replaced,
                objects_are_found_by_id_and_external_id;
        }
    };
}
