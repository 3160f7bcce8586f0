//! Hands out unfinished work: claims by lease with a fencing token (WRK-1, WRK-2), fresh leads before old ones.

use super::row::{count, first, id, key, list, micros, number, run, target_key, time_opt};
use crate::{Claim, ClaimDue, Claimed, Error, Lease, Result};
use emanet_core::ids::{EventId, Target, WorkspaceId};
use jiff::Timestamp;
use rusqlite::{Transaction, params};
use std::collections::HashMap;

/// What a target is asked for: so many claims, of which so many for events tried or held before, while there are any.
pub(super) type Share = (Target, u32, u32);

/// Remembers what older work is owed, so that a quarter is kept for it even where one claim is asked for at a time.
#[derive(Debug, Default)]
pub(super) struct Fairness {
    quarters: HashMap<Target, u32>,
}

impl Fairness {
    /// Divides what is asked for.
    pub(super) fn divide(&mut self, slots: &[(Target, u32)]) -> Vec<Share> {
        slots
            .iter()
            .map(|(target, wanted)| {
                let owed = self.quarters.entry(*target).or_default();
                *owed = owed.saturating_add(*wanted);
                let older = *owed / 4;
                *owed %= 4;
                (*target, *wanted, older.min(*wanted))
            })
            .collect()
    }
}

/// Claims due events.
pub(super) fn claim_due(tx: &Transaction<'_>, ask: &ClaimDue, shares: &[Share]) -> Result<Claimed> {
    let mut claims = Vec::new();
    let mut next_due = None;
    for (target, wanted, older) in shares {
        let fresh_due = due(tx, *target, 0, ask.now, *wanted)?;
        let older_due = due(tx, *target, 1, ask.now, *wanted)?;
        let wanted = *wanted as usize;
        let n_older = older_due
            .len()
            .min((*older as usize).max(wanted.saturating_sub(fresh_due.len())));
        let n_fresh = fresh_due.len().min(wanted - n_older);
        let chosen = fresh_due[..n_fresh].iter().chain(&older_due[..n_older]);
        for (workspace, event) in chosen {
            claims.push(claim(tx, *workspace, *event, *target, ask.lease_until)?);
        }
        next_due = earlier(next_due, first_after(tx, *target, ask.now)?);
    }
    Ok(Claimed { claims, next_due })
}

fn due(
    tx: &Transaction<'_>,
    target: Target,
    priority: u8,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<(WorkspaceId, EventId)>> {
    list(
        tx,
        "SELECT workspace_id, event_id FROM queue
         WHERE target = ?1 AND priority = ?2 AND run_at <= ?3 AND (lease_until IS NULL OR lease_until <= ?3)
         ORDER BY run_at, event_id LIMIT ?4",
        params![target_key(target), priority, micros(now), limit],
        |row| Ok((id(row, "workspace_id")?, id(row, "event_id")?)),
    )
}

/// Token and claim count rise in the statement that claims, so that no crash can keep them from it (H18).
fn claim(
    tx: &Transaction<'_>,
    workspace: WorkspaceId,
    event: EventId,
    target: Target,
    until: Timestamp,
) -> Result<Claim> {
    first(
        tx,
        "UPDATE queue SET lease_until = ?3, token = token + 1, claims = claims + 1
         WHERE workspace_id = ?1 AND event_id = ?2 RETURNING token, claims, pass",
        params![key(workspace), key(event), micros(until)],
        |row| {
            Ok(Claim {
                lease: Lease {
                    workspace,
                    event,
                    token: count(row, "token")?,
                },
                target,
                claims: row.get("claims")?,
                has_pass: row.get("pass")?,
            })
        },
    )?
    .ok_or(Error::NotFound("event in the queue"))
}

/// When the next event of a target that is not due yet will be.
fn first_after(tx: &Transaction<'_>, target: Target, now: Timestamp) -> Result<Option<Timestamp>> {
    let mut next = None;
    for priority in [0, 1] {
        let found = first(
            tx,
            "SELECT min(run_at) AS run_at FROM queue WHERE target = ?1 AND priority = ?2 AND run_at > ?3",
            params![target_key(target), priority, micros(now)],
            |row| time_opt(row, "run_at"),
        )?;
        next = earlier(next, found.flatten());
    }
    Ok(next)
}

fn earlier(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Refuses whoever does not hold the event (invariant 6). An expired lease that nobody took over is still good.
pub(super) fn check_lease(tx: &Transaction<'_>, lease: &Lease) -> Result<()> {
    first(
        tx,
        "SELECT 1 FROM queue WHERE workspace_id = ?1 AND event_id = ?2 AND token = ?3 AND lease_until IS NOT NULL",
        params![key(lease.workspace), key(lease.event), number(lease.token)],
        |_| Ok(()),
    )?
    .ok_or(Error::LeaseLost)
}

/// Renews leases; returns those that were lost.
pub(super) fn renew(
    tx: &Transaction<'_>,
    leases: &[Lease],
    until: Timestamp,
) -> Result<Vec<Lease>> {
    let mut lost = Vec::new();
    for lease in leases {
        let renewed = run(
            tx,
            "UPDATE queue SET lease_until = ?4
             WHERE workspace_id = ?1 AND event_id = ?2 AND token = ?3 AND lease_until IS NOT NULL",
            params![
                key(lease.workspace),
                key(lease.event),
                number(lease.token),
                micros(until)
            ],
        )?;
        if renewed == 0 {
            lost.push(*lease);
        }
    }
    Ok(lost)
}

/// Ends every claim; whoever held one is gone, and would be refused.
pub(super) fn take_over(tx: &Transaction<'_>) -> Result<u64> {
    let ended = run(
        tx,
        "UPDATE queue SET lease_until = NULL, token = token + 1 WHERE lease_until IS NOT NULL",
        [],
    )?;
    Ok(ended as u64)
}

/// Gives an event back; the claim is taken back too.
pub(super) fn hand_back(
    tx: &Transaction<'_>,
    lease: &Lease,
    target: Target,
    run_at: Timestamp,
) -> Result<()> {
    check_lease(tx, lease)?;
    run(
        tx,
        "UPDATE queue SET lease_until = NULL, claims = max(claims - 1, 0), target = ?3, run_at = ?4
         WHERE workspace_id = ?1 AND event_id = ?2",
        params![
            key(lease.workspace),
            key(lease.event),
            target_key(target),
            micros(run_at)
        ],
    )?;
    Ok(())
}
