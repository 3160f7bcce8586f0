//! One sandbox's memory: its faults, its counts, and what its search does not show yet.

use super::crm::{Request, Work};
use super::fault::{Fault, Faults, Rule};
use crate::env::Env;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap, HashSet};

/// How many records search may be behind by; more are shown at once.
const HIDDEN_MAX: usize = 10_000;

/// How often a sandbox was called. Calls that never arrived are only counted as a fault.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Calls {
    /// Look-ups and lists.
    pub reads: u64,
    /// Calls to create something.
    pub creates: u64,
    /// Calls to change something.
    pub updates: u64,
    /// Everything else.
    pub others: u64,
    /// Records made: less than `creates` by what was refused or came twice under one key.
    pub made: u64,
    /// Faults that struck.
    pub faults: BTreeMap<Fault, u64>,
}

/// The memory.
#[derive(Debug, Default)]
pub(super) struct Room {
    faults: Faults,
    calls: Calls,
    hidden: HashMap<String, u32>,
    refused: HashSet<String>,
}

impl Room {
    pub(super) fn set_faults(&mut self, faults: Faults) {
        self.faults = faults;
        self.hidden.clear();
        self.refused.clear();
    }

    pub(super) fn faults(&self) -> &Faults {
        &self.faults
    }

    pub(super) fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Counts a call that arrived.
    pub(super) fn came(&mut self, work: &Work) {
        let counter = match work {
            Work::LookUp { .. } | Work::List | Work::Get { .. } => &mut self.calls.reads,
            Work::Create { .. } => &mut self.calls.creates,
            Work::Update { .. } => &mut self.calls.updates,
            Work::Nothing(_) => &mut self.calls.others,
        };
        *counter += 1;
    }

    /// Counts a new record, and hides it from as many look-ups.
    pub(super) fn created(&mut self, external_id: &str, lag: Option<u32>) {
        self.calls.made += 1;
        if let Some(lag) = lag.filter(|_| self.hidden.len() < HIDDEN_MAX) {
            self.hidden.insert(external_id.to_owned(), lag);
        }
    }

    /// Whether search does not show this record yet. Each time it is asked for, it comes nearer.
    pub(super) fn is_hidden(&mut self, external_id: &str) -> bool {
        match self.hidden.get_mut(external_id) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => {
                self.hidden.remove(external_id);
                false
            }
        }
    }

    /// Whether a fault strikes this call, and by which rule.
    pub(super) fn draw(&mut self, fault: Fault, request: &Request, env: &Env) -> Option<Rule> {
        let rule = self.faults.get(&fault)?.clone();
        if fault.needs_a_write() && !request.work.is_write() {
            return None;
        }
        let strikes = match fault {
            Fault::RefuseData => return self.refuse(request, rule),
            Fault::DeletedField if !request.has_field(rule.field.as_deref()) => false,
            _ => env.unit() < rule.probability,
        };
        if !strikes {
            return None;
        }
        // For search the count is how far it lags behind, not how often.
        if fault != Fault::SearchLag {
            self.use_up(fault)?;
        }
        Some(self.struck(fault, rule))
    }

    /// Data is refused for what it is: the same lead every time, whether a lead is among them decided by its id.
    fn refuse(&mut self, request: &Request, rule: Rule) -> Option<Rule> {
        let lead = request.external_id()?;
        if !self.refused.contains(lead) {
            if share(lead) >= rule.probability {
                return None;
            }
            if rule.count.is_some() {
                self.use_up(Fault::RefuseData)?;
                self.refused.insert(lead.to_owned());
            }
        }
        Some(self.struck(Fault::RefuseData, rule))
    }

    fn struck(&mut self, fault: Fault, rule: Rule) -> Rule {
        *self.calls.faults.entry(fault).or_default() += 1;
        rule
    }

    /// Takes one of the times that are left; `None` if there was none.
    fn use_up(&mut self, fault: Fault) -> Option<()> {
        let left = match self.faults.get_mut(&fault) {
            Some(Rule {
                count: Some(left), ..
            }) => left,
            _ => return Some(()),
        };
        *left = left.checked_sub(1)?;
        Some(())
    }
}

/// A text's place in 0 … 1, always the same.
fn share(text: &str) -> f64 {
    let [a, b, c, d, ..]: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    f64::from(u32::from_be_bytes([a, b, c, d])) / f64::from(u32::MAX)
}
