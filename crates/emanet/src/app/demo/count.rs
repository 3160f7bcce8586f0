//! What came of it: every acknowledged lead is looked for, in the store and in the CRM, independently of the counters.

use super::traffic::Sent;
use super::{AppError, Running};
use crate::sandbox::Calls;
use emanet_core::ids::DestinationId;
use emanet_core::step::EventState;
use emanet_store::{Filter, Page, SandboxFilter, Status};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The end of a demonstration.
#[derive(Debug)]
pub struct Tally {
    status: Status,
    requests: u64,
    refused: u64,
    /// Acknowledged, and neither stored nor accounted for; or said to be delivered, and not in the CRM.
    lost: u64,
    /// More than one record in the CRM for one event.
    doubled: u64,
    calls: Calls,
}

impl Tally {
    /// Looks for everything that was acknowledged.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn count(
        running: &Running,
        crm: DestinationId,
        sent: &Sent,
    ) -> Result<Self, AppError> {
        let events = events(running).await?;
        let records = records(running, crm).await?;
        let installation = running.installation.get();
        let external_id =
            |source, source_ref: &str| emanet_core::key::external_id(source, source_ref, None);
        let in_crm = |submission: &str| {
            installation
                .sources
                .keys()
                .any(|source| records.contains_key(&external_id(*source, submission)))
        };
        let missing = sent
            .acknowledged
            .iter()
            .filter(|(submission, id)| match events.get(*id) {
                None => true,
                Some(EventState::Done) => !in_crm(submission),
                Some(_) => false,
            });
        let lost = missing.count() as u64;
        let doubled = records.values().map(|n| n.saturating_sub(1)).sum();
        Ok(Self {
            status: running.store.status(None, running.parts.env.now()).await?,
            requests: sent.requests,
            refused: sent.refused,
            lost,
            doubled,
            calls: running.sandbox.calls(crm),
        })
    }

    /// The fixed point of design 6.
    pub fn json(&self, seconds: f64) -> Value {
        let Status {
            received,
            done,
            held,
            dead,
            ignored,
            ..
        } = self.status;
        json!({
            "received": received, "delivered": done, "held": held, "dead": dead, "ignored": ignored,
            "lost": self.lost, "doubled": self.doubled, "seconds": (seconds * 10.0).round() / 10.0,
        })
    }

    /// The same for people.
    pub fn table(&self, seconds: f64) -> String {
        let Status {
            received,
            done,
            held,
            dead,
            ignored,
            ..
        } = self.status;
        let mut crm = comfy_table::Table::new();
        crm.load_style(comfy_table::presets::UTF8_FULL_CONDENSED)
            .set_header(["What the CRM did", "times"]);
        for (fault, times) in &self.calls.faults {
            let name = serde_json::to_value(fault).unwrap_or_default();
            crm.add_row([
                name.as_str().unwrap_or_default().replace('_', " "),
                times.to_string(),
            ]);
        }
        for (what, times) in [
            ("records made", self.calls.made),
            ("calls answered", self.answered()),
        ] {
            crm.add_row([what.to_owned(), times.to_string()]);
        }
        let mut sum = comfy_table::Table::new();
        sum.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
        sum.set_header([
            "received",
            "=",
            "delivered",
            "+",
            "held",
            "+",
            "dead",
            "+",
            "ignored",
            "",
            "lost",
            "doubled",
        ]);
        let figures = [received, done, held, dead, ignored].map(|n| n.to_string());
        let [received, done, held, dead, ignored] = figures;
        let (lost, doubled) = (self.lost.to_string(), self.doubled.to_string());
        sum.add_row([
            &received, "=", &done, "+", &held, "+", &dead, "+", &ignored, "", &lost, &doubled,
        ]);
        let repeats = self.requests.saturating_sub(self.status.received);
        let waiting = self.status.by_class.iter().filter(|(_, n)| **n > 0);
        let waiting: Vec<_> = waiting
            .map(|(class, n)| format!("{n} {}", class.as_str()))
            .collect();
        let dead = if waiting.is_empty() {
            String::new()
        } else {
            let classes = waiting.join(", ");
            format!(
                "\nDead letters wait for a person, each with a reason and a hint: {classes} (no way to reach the person, or refused by the CRM)."
            )
        };
        format!(
            "{crm}\n\n{} requests, {repeats} of them repeats, in {seconds:.0} s\n{sum}{dead}",
            self.requests
        )
    }

    fn answered(&self) -> u64 {
        let Calls {
            reads,
            creates,
            updates,
            others,
            ..
        } = self.calls;
        reads + creates + updates + others
    }

    /// Whether the promise held.
    ///
    /// # Errors
    /// How it did not.
    pub fn verdict(&self) -> Result<(), String> {
        let Status {
            received,
            done,
            held,
            dead,
            ignored,
            closes,
            ..
        } = self.status;
        if self.lost > 0 || self.doubled > 0 {
            return Err(format!(
                "{} leads lost, {} doubled",
                self.lost, self.doubled
            ));
        }
        if !closes || received != done + held + dead + ignored {
            return Err(format!(
                "the sum does not close: {received} received, {done} delivered, {held} held, {dead} dead, {ignored} ignored"
            ));
        }
        if self.refused > 0 {
            return Err(format!("{} requests were refused", self.refused));
        }
        Ok(())
    }
}

async fn events(running: &Running) -> Result<BTreeMap<String, EventState>, AppError> {
    let mut all = BTreeMap::new();
    let mut page = Page {
        after: None,
        limit: 1_000,
    };
    loop {
        let listed = running.store.events(Filter::default(), page).await?;
        all.extend(listed.rows.into_iter().map(|e| (e.id.to_string(), e.state)));
        match listed.next {
            Some(after) => {
                page = Page {
                    after: Some(after),
                    limit: 1_000,
                }
            }
            None => return Ok(all),
        }
    }
}

/// Lead records in the CRM by external id, and how many there are of each.
async fn records(running: &Running, crm: DestinationId) -> Result<BTreeMap<String, u64>, AppError> {
    let mut all = BTreeMap::new();
    let mut page = Page {
        after: None,
        limit: 1_000,
    };
    loop {
        let filter = SandboxFilter {
            destination: Some(crm),
            object: Some("lead".into()),
            ..SandboxFilter::default()
        };
        let listed = running.store.sandbox_objects(filter, page).await?;
        for object in listed.rows {
            *all.entry(object.external_id.unwrap_or_default())
                .or_insert(0) += 1;
        }
        match listed.next {
            Some(after) => {
                page = Page {
                    after: Some(after),
                    limit: 1_000,
                }
            }
            None => return Ok(all),
        }
    }
}
