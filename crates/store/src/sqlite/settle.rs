//! After any change of a step: what the event's state is now and what comes next, from `emanet_core::step::settle`, carried out
//! on event, tally and queue. The only code that changes an event's state.

use super::row::{
    first, id, key, list, micros, parsed, run, target, target_key, time, word, word_opt,
};
use super::tally;
use crate::{Error, NextStep, Progress, Result};
use emanet_core::ids::{EventId, SourceId, StepId, Target, WorkspaceId};
use emanet_core::step::{self, EventState, Kind, Standing, State};
use jiff::Timestamp;
use rusqlite::{Transaction, params};
use serde::Deserialize;

/// Whose change it is, which decides what becomes of the event's place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The worker that holds the event, planning it: it goes on if the next step can run now. A plan is no result, so the claim
    /// still counts: an event that brings its worker down before the first call must not begin anew for ever (design 5).
    Planner,
    /// The worker that holds the event, after a run: a pass is used up, and the event goes on if the next step can run now.
    Runner {
        /// The event was tried or held: it queues behind fresh ones from now on.
        tried: bool,
    },
    /// Somebody else (a release, a replay, a person): a worker that holds the event keeps it.
    Other,
}

/// An end that does not follow from the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Whole {
    Dead,
    Resolved,
    Ignored,
    Erased,
}

struct Event {
    source: SourceId,
    day: String,
    state: EventState,
    whole: Option<Whole>,
    planned: bool,
    has_lead: bool,
}

struct Step {
    id: StepId,
    name: String,
    kind: Kind,
    state: State,
    resolved: bool,
    target: Target,
    run_at: Timestamp,
    needs: Vec<String>,
    pass: bool,
}

/// The event's place in the queue from now on.
struct Place {
    target: Target,
    run_at: Timestamp,
    pass: bool,
}

/// Derives state and place of an event and stores both.
pub(super) fn settle(
    tx: &Transaction<'_>,
    workspace: WorkspaceId,
    event_id: EventId,
    now: Timestamp,
    by: By,
) -> Result<Progress> {
    let event = read_event(tx, workspace, event_id)?;
    let steps = read_steps(tx, workspace, event_id)?;
    let (state, next, place) = outlook(&event, &steps, now);
    if state != event.state {
        run(
            tx,
            "UPDATE event SET state = ?3 WHERE workspace_id = ?1 AND event_id = ?2",
            params![key(workspace), key(event_id), state.as_str()],
        )?;
        tally::moved(tx, workspace, event.source, &event.day, event.state, state)?;
    }
    let keeps_lease = match place {
        Some(place) => enqueue(tx, workspace, event_id, &place, now, by)?,
        None => {
            dequeue(tx, workspace, event_id)?;
            false
        }
    };
    Ok(Progress {
        state,
        next,
        keeps_lease,
    })
}

fn outlook(
    event: &Event,
    steps: &[Step],
    now: Timestamp,
) -> (EventState, Option<NextStep>, Option<Place>) {
    match event.whole {
        Some(Whole::Dead) => return (EventState::Dead, None, None),
        Some(Whole::Resolved) => return (EventState::Done, None, None),
        Some(Whole::Ignored) => return (EventState::Ignored, None, None),
        Some(Whole::Erased) => return (EventState::Erased, None, None),
        None => {}
    }
    let settled = step::settle(&standings(steps));
    if !event.planned || (settled.state == EventState::Done && awaits_reading(event, steps)) {
        let place = Place {
            target: Target::Source(event.source),
            run_at: now,
            pass: false,
        };
        return (EventState::Pending, None, Some(place));
    }
    let next = settled.next.and_then(|next| {
        steps.get(next.step).map(|step| {
            let next_step = NextStep {
                step: step.id,
                target: next.target,
                run_at: next.run_at,
            };
            let place = Place {
                target: next.target,
                run_at: next.run_at,
                pass: step.pass,
            };
            (next_step, place)
        })
    });
    let (next, place) = next.unzip();
    (settled.state, next, place)
}

/// The fields were fetched and nobody has read the lead yet: the event is not done, whatever its steps say.
fn awaits_reading(event: &Event, steps: &[Step]) -> bool {
    let fetched = |step: &Step| step.kind == Kind::Fetch && step.state == State::Done;
    !event.has_lead && steps.iter().any(fetched)
}

fn standings(steps: &[Step]) -> Vec<Standing> {
    let index = |name: &String| steps.iter().position(|step| step.name == *name);
    steps
        .iter()
        .map(|step| Standing {
            state: step.state,
            resolved: step.resolved,
            target: step.target,
            run_at: step.run_at,
            needs: step
                .needs
                .iter()
                .map(|name| index(name).unwrap_or(usize::MAX))
                .collect(),
        })
        .collect()
}

/// Puts an event into the queue, or moves it there. Says whether the worker that made the change keeps its lease.
fn enqueue(
    tx: &Transaction<'_>,
    workspace: WorkspaceId,
    event: EventId,
    place: &Place,
    now: Timestamp,
    by: By,
) -> Result<bool> {
    let keeps_lease = by != By::Other && place.run_at <= now;
    let (target, run_at) = (target_key(place.target), micros(place.run_at));
    let (workspace, event) = (key(workspace), key(event));
    match by {
        By::Planner => run(
            tx,
            "UPDATE queue SET target = ?3, run_at = ?4, pass = max(pass, ?5), claims = CASE WHEN ?6 THEN claims ELSE 0 END,
                 lease_until = CASE WHEN ?6 THEN lease_until END
             WHERE workspace_id = ?1 AND event_id = ?2",
            params![workspace, event, target, run_at, place.pass, keeps_lease],
        )?,
        By::Runner { tried } => run(
            tx,
            "UPDATE queue SET target = ?3, run_at = ?4, pass = ?5, priority = max(priority, ?6), claims = 0,
                 lease_until = CASE WHEN ?7 THEN lease_until END
             WHERE workspace_id = ?1 AND event_id = ?2",
            params![workspace, event, target, run_at, place.pass, tried, keeps_lease],
        )?,
        By::Other => run(
            tx,
            "INSERT INTO queue (workspace_id, event_id, target, run_at, pass, priority, token)
             SELECT workspace_id, event_id, ?3, ?4, ?5, 1, token FROM event WHERE workspace_id = ?1 AND event_id = ?2
             ON CONFLICT DO UPDATE SET target = excluded.target, run_at = excluded.run_at, pass = excluded.pass, priority = 1
                 WHERE lease_until IS NULL",
            params![workspace, event, target, run_at, place.pass],
        )?,
    };
    Ok(keeps_lease)
}

/// Takes an event out of the queue. Its fencing token stays with the event, so that it never starts over.
fn dequeue(tx: &Transaction<'_>, workspace: WorkspaceId, event: EventId) -> Result<()> {
    let token = first(
        tx,
        "DELETE FROM queue WHERE workspace_id = ?1 AND event_id = ?2 RETURNING token",
        params![key(workspace), key(event)],
        |row| Ok(row.get::<_, i64>("token")?),
    )?;
    if let Some(token) = token {
        run(
            tx,
            "UPDATE event SET token = ?3 WHERE workspace_id = ?1 AND event_id = ?2",
            params![key(workspace), key(event), token],
        )?;
    }
    Ok(())
}

fn read_event(tx: &Transaction<'_>, workspace: WorkspaceId, event: EventId) -> Result<Event> {
    first(
        tx,
        "SELECT source_id, day, state, whole, planned,
             EXISTS (SELECT 1 FROM lead l WHERE l.workspace_id = e.workspace_id AND l.event_id = e.event_id) AS has_lead
         FROM event e WHERE workspace_id = ?1 AND event_id = ?2",
        params![key(workspace), key(event)],
        |row| {
            Ok(Event {
                source: id(row, "source_id")?,
                day: row.get("day")?,
                state: word(row, "state")?,
                whole: word_opt(row, "whole")?,
                planned: row.get("planned")?,
                has_lead: row.get("has_lead")?,
            })
        },
    )?
    .ok_or(Error::NotFound("event"))
}

fn read_steps(tx: &Transaction<'_>, workspace: WorkspaceId, event: EventId) -> Result<Vec<Step>> {
    list(
        tx,
        "SELECT step_id, name, kind, state, resolved, target, run_at, needs, pass FROM step
         WHERE workspace_id = ?1 AND event_id = ?2 ORDER BY position",
        params![key(workspace), key(event)],
        |row| {
            Ok(Step {
                id: id(row, "step_id")?,
                name: row.get("name")?,
                kind: word(row, "kind")?,
                state: word(row, "state")?,
                resolved: row.get("resolved")?,
                target: target(row, "target")?,
                run_at: time(row, "run_at")?,
                needs: parsed(row, "needs")?,
                pass: row.get("pass")?,
            })
        },
    )
}
