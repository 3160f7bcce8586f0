//! Everything periodic: probes of open targets, the drain of held leads, replay stages, the recount of the sum. One pass at a
//! time; each pass looks at the store and decides anew, so a crash between two passes loses nothing.

use crate::engine::Parts;
use emanet_core::breaker::{Reason, State};
use emanet_core::ids::Target;
use emanet_store::{EndReplay, Release, Replay, ReplayCounts, ReplayState, TargetRecord};
use jiff::Timestamp;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// The net under the wake-up signal.
const PASS_AT_LEAST_EVERY: Duration = Duration::from_millis(500);
/// Leads of a target that is configured no longer that are let go in one pass.
const RETIRED_BATCH: u32 = 200;
/// How often the sum is recounted from rows.
const RECOUNT_EVERY: Duration = Duration::from_secs(24 * 3_600);

/// Runs the scheduler until the process is to stop.
pub async fn run(parts: Arc<Parts>) {
    let mut stopping = parts.stopping.clone();
    let mut recount_at = parts.env.now();
    while !parts.is_stopping() {
        if let Err(error) = pass(&parts).await {
            tracing::error!(error = %error, "a scheduler pass failed; the next one tries again");
        }
        if parts.env.now() >= recount_at {
            recount_at = parts
                .env
                .now()
                .saturating_add(RECOUNT_EVERY)
                .unwrap_or(Timestamp::MAX);
            recount(&parts).await;
        }
        tokio::select! {
            () = parts.wake_scheduler.notified() => {}
            () = tokio::time::sleep(PASS_AT_LEAST_EVERY) => {}
            _ = stopping.wait_for(|stop| *stop) => {}
        }
    }
}

/// One pass over replays and targets.
///
/// # Errors
/// If the store fails; the next pass tries again.
pub async fn pass(parts: &Parts) -> emanet_store::Result<()> {
    // Read before the replays: what was let go in between then costs one more pass, and never a replay.
    let records = parts.store.targets().await?;
    let recovering = recovering(parts, &records);
    let mut replayed = HashSet::new();
    for replay in parts.store.running_replays().await? {
        replayed.extend(replay.targets.iter().copied());
        advance(parts, replay, &recovering).await?;
    }
    for record in records {
        if record.n_held > 0 {
            let in_replay = replayed.contains(&record.target);
            look_after(parts, &record, in_replay).await?;
        }
    }
    Ok(())
}

/// Targets that a replay waits for instead of failing: they want to be left alone for a while, or let go what they had held.
fn recovering(parts: &Parts, records: &[TargetRecord]) -> HashSet<Target> {
    let now = parts.env.now();
    let is_recovering = |record: &&TargetRecord| {
        let target = record.target;
        let state = parts.targets.state(target);
        recovers(
            &state,
            record.n_held > 0,
            parts.targets.is_draining(target),
            now,
        )
    };
    let recovering = records.iter().filter(is_recovering);
    recovering.map(|record| record.target).collect()
}

/// A held lead is what probes a throttled target, and what is drained; without one, nothing would ever end the wait.
fn recovers(state: &State, holds_leads: bool, is_draining: bool, now: Timestamp) -> bool {
    state.is_left_alone(now)
        || holds_leads
            && match state {
                State::Open { reason, .. } => *reason == Reason::Throttled,
                State::Closed { .. } => is_draining,
            }
}

/// Sends a replay's next stage when the last one is through, or ends it (RP-3).
async fn advance(
    parts: &Parts,
    replay: Replay,
    recovering: &HashSet<Target>,
) -> emanet_store::Result<()> {
    let now = parts.env.now();
    let must_wait = replay.targets.iter().any(|t| recovering.contains(t));
    let end = match verdict(&replay, must_wait) {
        Verdict::Wait => return Ok(()),
        Verdict::NextStage => {
            let replay = parts
                .store
                .advance_replay(replay.workspace, replay.id, now)
                .await?;
            tracing::info!(replay.id = %replay.id, stage = replay.stage, n_sent = replay.current.running, "replay stage sent");
            parts.wake.notify_one();
            return Ok(());
        }
        Verdict::Done => (ReplayState::Done, "every stage is through"),
        Verdict::Failed => (
            ReplayState::Failed,
            "too many of the last stage failed again; the rest was not sent",
        ),
    };
    let (state, note) = end;
    tracing::info!(replay.id = %replay.id, state = ?state, "replay ended");
    let end = EndReplay {
        state,
        by: "emanet".into(),
        note: note.into(),
        at: now,
    };
    parts
        .store
        .end_replay(replay.workspace, replay.id, end)
        .await
        .map(|_| ())
}

/// What to do with a running replay.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Wait,
    NextStage,
    Done,
    Failed,
}

/// A stage failed when more than a tenth of it did: one lead with bad data among many does not stop the rest, a target that is
/// still set up wrong does. While one of its targets recovers, nothing is known of the rest yet (ERR-4).
fn verdict(replay: &Replay, is_target_recovering: bool) -> Verdict {
    let ReplayCounts {
        running,
        done,
        failed,
        ..
    } = replay.current;
    let is_unfinished = running + failed + replay.total.waiting > 0;
    if is_target_recovering && is_unfinished {
        Verdict::Wait
    } else if replay.stage > 0 && failed * 10 > running + done + failed {
        Verdict::Failed
    } else if running > 0 {
        Verdict::Wait
    } else if replay.total.waiting > 0 {
        Verdict::NextStage
    } else {
        Verdict::Done
    }
}

/// Leads are held for a target: let one through as a probe when it is time, or let them go if it works again.
async fn look_after(
    parts: &Parts,
    record: &TargetRecord,
    in_replay: bool,
) -> emanet_store::Result<()> {
    let TargetRecord {
        workspace, target, ..
    } = *record;
    if !parts.installation.get().knows(target) {
        // Configured no longer, so it never opens again: a worker brings its leads to a person, a batch at a time. What it was
        // paused for needs nobody any more.
        if let Some(cause) = parts.targets.state(target).cause() {
            let now = parts.env.now();
            parts.store.close_alerts(workspace, cause, now).await?;
        }
        return release(parts, record, RETIRED_BATCH, false)
            .await
            .map(|_| ());
    }
    let now = parts.env.now();
    let state = parts.targets.state(target);
    let is_draining = parts.targets.is_draining(target);
    if state.is_open() {
        if state.probe_due(now) && !release(parts, record, 1, true).await?.is_empty() {
            parts.targets.probing(workspace, target, now).await?;
        }
    } else if (is_draining && parts.targets.busy(target) == 0) || (!is_draining && !in_replay) {
        let released = release(parts, record, 2, false).await?;
        parts.targets.set_draining(target, !released.is_empty());
    }
    Ok(())
}

async fn release(
    parts: &Parts,
    record: &TargetRecord,
    limit: u32,
    with_pass: bool,
) -> emanet_store::Result<Vec<emanet_core::ids::EventId>> {
    let TargetRecord {
        workspace, target, ..
    } = *record;
    let released = parts
        .store
        .release_held(Release {
            workspace,
            target,
            limit,
            with_pass,
            now: parts.env.now(),
        })
        .await?;
    if !released.is_empty() {
        let name = parts.installation.get().target_name(target);
        tracing::debug!(target.name = %name, n_released = released.len(), probe = with_pass, "held leads released");
        parts.wake.notify_one();
    }
    Ok(released)
}

/// The sum closes, or somebody hears of it (invariant 3).
async fn recount(parts: &Parts) {
    match parts.store.recount().await {
        Ok(miscounts) => {
            for miscount in miscounts {
                tracing::error!(
                    day = miscount.day,
                    what = miscount.what,
                    tally = miscount.tally,
                    rows = miscount.rows,
                    "the sum does not close"
                );
            }
        }
        Err(error) => tracing::error!(error = %error, "the sum could not be recounted"),
    }
}

#[cfg(test)]
mod tests;
