//! Writes down what a worker plans, is about to do, and did. Every function checks the lease first and settles the event last.

use super::queue::check_lease;
use super::row::{
    document, first, id, key, list, micros, number, run, spelled, target, target_key, word,
};
use super::settle::{By, settle};
use super::{attempt, dead_letter};
use crate::{Error, Finish, Intent, IntentRecorded, Lease, Plan, Progress, Result, RunResult};
use emanet_core::classify::{Effect, Failure};
use emanet_core::ids::{EventId, StepId, Target, WorkspaceId};
use emanet_core::lead::Lead;
use emanet_core::step::{Delivered, Ruling, State};
use jiff::Timestamp;
use rusqlite::{Transaction, named_params, params};

// ---- plan --------------------------------------------------------------------------------------------------------------

/// Records lead and steps; steps whose names exist are left alone.
pub(super) fn plan(tx: &Transaction<'_>, lease: &Lease, plan: &Plan) -> Result<Progress> {
    check_lease(tx, lease)?;
    if let Some(lead) = &plan.lead {
        save_lead(tx, lease, lead)?;
    }
    let mut names = list(
        tx,
        "SELECT name FROM step WHERE workspace_id = ?1 AND event_id = ?2 ORDER BY position",
        params![key(lease.workspace), key(lease.event)],
        |row| Ok(row.get::<_, String>("name")?),
    )?;
    for step in &plan.steps {
        if names.contains(&step.name) {
            continue;
        }
        // A step that needs itself, a later one or none at all would wait for ever.
        if let Some(need) = step.needs.iter().find(|need| !names.contains(need)) {
            return Err(Error::Conflict(format!(
                "step {} needs {need}, which does not stand before it",
                step.name
            )));
        }
        let state = if step.skipped.is_some() {
            State::Skipped
        } else {
            State::Pending
        };
        run(
            tx,
            "INSERT INTO step (workspace_id, event_id, step_id, position, name, kind, target, object, needs, state, skipped, run_at)
             VALUES (:workspace, :event, :step, :position, :name, :kind, :target, :object, :needs, :state, :skipped, :run_at)",
            named_params! {
                ":workspace": key(lease.workspace),
                ":event": key(lease.event),
                ":step": key(step.id),
                ":position": number(names.len() as u64),
                ":name": step.name,
                ":kind": step.kind.as_str(),
                ":target": target_key(step.target),
                ":object": step.object,
                ":needs": document(&step.needs)?,
                ":state": state.as_str(),
                ":skipped": step.skipped,
                ":run_at": micros(plan.now),
            },
        )?;
        names.push(step.name.clone());
    }
    run(
        tx,
        "UPDATE event SET planned = 1 WHERE workspace_id = ?1 AND event_id = ?2",
        params![key(lease.workspace), key(lease.event)],
    )?;
    settle(tx, lease.workspace, lease.event, plan.now, By::Planner)
}

/// Keeps the lead, and on the event what lists show and search of it.
fn save_lead(tx: &Transaction<'_>, lease: &Lease, lead: &Lead) -> Result<()> {
    run(
        tx,
        "INSERT INTO lead (workspace_id, event_id, document) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET document = excluded.document",
        params![key(lease.workspace), key(lease.event), document(lead)?],
    )?;
    let phone = lead.phone.as_ref();
    let email = lead.email.as_ref();
    run(
        tx,
        "UPDATE event SET name = ?3, phone = ?4, email = ?5, is_test = ?6, created_at = coalesce(created_at, ?7)
         WHERE workspace_id = ?1 AND event_id = ?2",
        params![
            key(lease.workspace),
            key(lease.event),
            lead.full_name,
            phone.map(|phone| phone.e164.as_ref().unwrap_or(&phone.raw)),
            email.map(|email| email.address.as_ref().unwrap_or(&email.raw)),
            lead.is_test,
            lead.created_at.map(micros),
        ],
    )?;
    Ok(())
}

// ---- steps -------------------------------------------------------------------------------------------------------------

/// What recording needs to know of a step.
pub(super) struct Step {
    pub(super) id: StepId,
    pub(super) name: String,
    pub(super) target: Target,
    pub(super) revision: u32,
    pub(super) attempts: u32,
}

/// The step, if it is waiting to be run; what is finished, held or dead takes no results (invariant 5).
fn pending_step(tx: &Transaction<'_>, lease: &Lease, step: StepId) -> Result<Step> {
    let (step, state) = first(
        tx,
        "SELECT step_id, name, target, revision, attempts, state FROM step
         WHERE workspace_id = ?1 AND event_id = ?2 AND step_id = ?3",
        params![key(lease.workspace), key(lease.event), key(step)],
        |row| {
            let step = Step {
                id: id(row, "step_id")?,
                name: row.get("name")?,
                target: target(row, "target")?,
                revision: row.get("revision")?,
                attempts: row.get("attempts")?,
            };
            Ok((step, word::<State>(row, "state")?))
        },
    )?
    .ok_or(Error::NotFound("step"))?;
    if state == State::Pending {
        Ok(step)
    } else {
        Err(Error::Conflict(format!("the step is {}", state.as_str())))
    }
}

/// Records the intent of one call.
pub(super) fn intent(
    tx: &Transaction<'_>,
    lease: &Lease,
    intent: &Intent,
) -> Result<IntentRecorded> {
    check_lease(tx, lease)?;
    let step = pending_step(tx, lease, intent.step)?;
    attempt::close_interrupted(tx, lease, &step, intent.attempt, intent.now)?;
    let opened = attempt::open(tx, lease, &step, intent)?;
    let attempts = step.attempts + u32::from(opened);
    set_attempts(tx, lease, step.id, attempts)?;
    Ok(IntentRecorded {
        attempts,
        request: attempt::fix_request(tx, lease, &step, intent)?,
    })
}

fn set_attempts(tx: &Transaction<'_>, lease: &Lease, step: StepId, attempts: u32) -> Result<()> {
    run(
        tx,
        "UPDATE step SET attempts = ?4 WHERE workspace_id = ?1 AND event_id = ?2 AND step_id = ?3",
        params![key(lease.workspace), key(lease.event), key(step), attempts],
    )?;
    Ok(())
}

/// Records how a run ended and carries the ruling out.
pub(super) fn result(tx: &Transaction<'_>, lease: &Lease, result: &RunResult) -> Result<Progress> {
    check_lease(tx, lease)?;
    let mut step = pending_step(tx, lease, result.step)?;
    attempt::close_interrupted(tx, lease, &step, result.attempt, result.now)?;
    let counted = attempt::close(tx, lease, &step, result)?;
    step.attempts = step.attempts.saturating_add_signed(counted);
    set_attempts(tx, lease, step.id, step.attempts)?;
    carry_out(tx, lease, &step, result)?;
    let tried = matches!(result.ruling, Ruling::Retry { .. } | Ruling::Hold { .. });
    settle(
        tx,
        lease.workspace,
        lease.event,
        result.now,
        By::Runner { tried },
    )
}

fn carry_out(tx: &Transaction<'_>, lease: &Lease, step: &Step, result: &RunResult) -> Result<()> {
    match &result.ruling {
        Ruling::Done(delivered) => deliver(tx, lease.workspace, lease.event, step, delivered),
        Ruling::Skip { reason } => change(
            tx,
            lease,
            step.id,
            &Change {
                skipped: Some(reason),
                ..Change::to(State::Skipped)
            },
        ),
        Ruling::Retry { at, failure } => change(
            tx,
            lease,
            step.id,
            &Change {
                run_at: Some(*at),
                failure: Some(failure),
                ..Change::to(State::Pending)
            },
        ),
        Ruling::Hold { cause, failure } => change(
            tx,
            lease,
            step.id,
            &Change {
                held: Some((cause, result.now)),
                failure: failure.as_ref(),
                ..Change::to(State::Held)
            },
        ),
        Ruling::Bury { failure, cause } => {
            dead_letter::bury_step(tx, lease, step, result, failure, cause)?;
            change(
                tx,
                lease,
                step.id,
                &Change {
                    failure: Some(failure),
                    ..Change::to(State::Dead)
                },
            )
        }
    }
}

/// A step is done: what it left behind, and the link to what exists outside (ID-3).
pub(super) fn deliver(
    tx: &Transaction<'_>,
    workspace: WorkspaceId,
    event: EventId,
    step: &Step,
    delivered: &Delivered,
) -> Result<()> {
    if let (Target::Destination(destination), Some(object), Some(object_id)) =
        (step.target, &delivered.object, &delivered.id)
    {
        run(
            tx,
            "INSERT INTO link (workspace_id, event_id, destination_id, step, object, object_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT DO UPDATE SET object_id = excluded.object_id",
            params![
                key(workspace),
                key(event),
                key(destination),
                step.name,
                object,
                object_id
            ],
        )?;
    }
    run(
        tx,
        "UPDATE step SET state = 'done', delivered = ?4, maybe_applied = 0, resolved = 0, pass = 0,
             failure = NULL, class = NULL, message = NULL, vendor_code = NULL, held_under = NULL, held_at = NULL
         WHERE workspace_id = ?1 AND event_id = ?2 AND step_id = ?3",
        params![
            key(workspace),
            key(event),
            key(step.id),
            document(delivered)?
        ],
    )?;
    Ok(())
}

/// What a run that did not deliver changes on its step.
struct Change<'a> {
    state: State,
    run_at: Option<Timestamp>,
    failure: Option<&'a Failure>,
    held: Option<(&'a String, Timestamp)>,
    skipped: Option<&'a String>,
}

impl Change<'_> {
    fn to(state: State) -> Self {
        Self {
            state,
            run_at: None,
            failure: None,
            held: None,
            skipped: None,
        }
    }
}

fn change(tx: &Transaction<'_>, lease: &Lease, step: StepId, change: &Change<'_>) -> Result<()> {
    let failure = change.failure;
    run(
        tx,
        "UPDATE step SET state = :state, pass = 0, run_at = coalesce(:run_at, run_at), skipped = :skipped,
             held_under = :held_under, held_at = :held_at, maybe_applied = maybe_applied OR :maybe_applied,
             failure = coalesce(:failure, failure), class = coalesce(:class, class),
             message = CASE WHEN :failure IS NULL THEN message ELSE :message END,
             vendor_code = CASE WHEN :failure IS NULL THEN vendor_code ELSE :vendor_code END
         WHERE workspace_id = :workspace AND event_id = :event AND step_id = :step",
        named_params! {
            ":workspace": key(lease.workspace),
            ":event": key(lease.event),
            ":step": key(step),
            ":state": change.state.as_str(),
            ":run_at": change.run_at.map(micros),
            ":skipped": change.skipped,
            ":held_under": change.held.map(|(cause, _)| cause),
            ":held_at": change.held.map(|(_, at)| micros(at)),
            ":maybe_applied": failure.is_some_and(|failure| failure.effect != Effect::NotApplied),
            ":failure": failure.map(document).transpose()?,
            ":class": failure.map(|failure| spelled(&failure.class)).transpose()?,
            ":message": failure.map(|failure| &failure.message),
            ":vendor_code": failure.and_then(|failure| failure.vendor_code.as_ref()),
        },
    )?;
    Ok(())
}

// ---- events as a whole -------------------------------------------------------------------------------------------------

/// Ends an event without regard to its steps. Steps that were held wait for nobody any more.
pub(super) fn finish_event(
    tx: &Transaction<'_>,
    lease: &Lease,
    finish: &Finish,
    now: Timestamp,
) -> Result<()> {
    check_lease(tx, lease)?;
    let (whole, ignored, lead) = match finish {
        Finish::Ignored { reason, lead } => ("ignored", Some(reason), lead),
        Finish::Dead {
            failure,
            cause,
            dead_letter,
            lead,
        } => {
            dead_letter::bury_event(tx, lease, *dead_letter, failure, cause, now)?;
            ("dead", None, lead)
        }
    };
    if let Some(lead) = lead {
        save_lead(tx, lease, lead)?;
    }
    run(
        tx,
        "UPDATE step SET state = 'pending', held_under = NULL, held_at = NULL
         WHERE workspace_id = ?1 AND event_id = ?2 AND state = 'held'",
        params![key(lease.workspace), key(lease.event)],
    )?;
    run(
        tx,
        "UPDATE event SET whole = ?3, ignored = ?4 WHERE workspace_id = ?1 AND event_id = ?2",
        params![key(lease.workspace), key(lease.event), whole, ignored],
    )?;
    settle(
        tx,
        lease.workspace,
        lease.event,
        now,
        By::Runner { tried: true },
    )?;
    Ok(())
}
