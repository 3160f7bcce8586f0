//! The CRM inside the product: for trying out, for the demo, and for seeing what becomes of leads when a CRM fails.
//!
//! It stands behind the transport, so everything before it works as with any other CRM: `sandbox://<destination id>/leads` is
//! answered here instead of going out. Its records are in the store; its faults and counts last as long as the process.
//!
//! Never here: a short cut around the engine, or knowledge of what the engine expects. It is the other side.

mod crm;
mod fault;
mod room;
#[cfg(test)]
mod tests;

use crate::env::Env;
use crate::transport::Transport;
use async_trait::async_trait;
use crm::{Crm, Reply, Request, Work};
use emanet_core::call::{Answer, BodyState, Broken, CALL_DEADLINE, Call, NotSent, Outcome};
use emanet_core::ids::{DestinationId, WorkspaceId};
use emanet_store::Store;
pub use fault::{Fault, Faults, InvalidFault, Rule};
pub use room::Calls;
use room::Room;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::sleep;

/// All sandbox destinations of an installation. Each is a CRM of its own.
#[derive(Debug)]
pub struct Sandbox {
    store: Arc<dyn Store>,
    env: Env,
    rooms: Mutex<HashMap<DestinationId, Room>>,
    homes: Mutex<HashMap<DestinationId, WorkspaceId>>,
}

impl Sandbox {
    /// With its records in this store.
    pub fn new(store: Arc<dyn Store>, env: Env) -> Self {
        Self {
            store,
            env,
            rooms: Mutex::default(),
            homes: Mutex::default(),
        }
    }

    /// What a sandbox does wrong from now on. Replaces what was set before; the default is nothing.
    pub fn set_faults(&self, destination: DestinationId, faults: Faults) {
        self.room(destination, |room| room.set_faults(faults));
    }

    /// What a sandbox still does wrong, with the counts that are left.
    pub fn faults(&self, destination: DestinationId) -> Faults {
        self.room(destination, |room| room.faults().clone())
    }

    /// How often a sandbox was called, and how often it did something wrong.
    pub fn calls(&self, destination: DestinationId) -> Calls {
        self.room(destination, |room| room.calls().clone())
    }

    /// Performs a call to a sandbox.
    pub async fn perform(&self, call: &Call) -> Outcome {
        let Some((destination, request)) = Request::read(call) else {
            return Outcome::NotSent(NotSent::InvalidCall);
        };
        let crm = match self.home(destination).await {
            Ok(Some(workspace)) => Crm {
                store: &*self.store,
                env: &self.env,
                workspace,
                destination,
            },
            Ok(None) => return answered(Reply::unknown("sandbox")),
            Err(error) => return answered(Reply::of_store(&error)),
        };
        let delay = self.draw(destination, Fault::Slow, &request);
        if let Some(rule) = &delay {
            sleep(rule.delay().min(CALL_DEADLINE)).await;
        }
        if let Some(outcome) = self.refusal(destination, &request) {
            return outcome;
        }
        let reply = self.work(&crm, &request).await;
        let is_late = delay.is_some_and(|rule| rule.delay() >= CALL_DEADLINE);
        if is_late {
            return Outcome::Unknown(Broken::TimedOut);
        }
        self.delivery(destination, &request, reply)
    }

    /// Does what is asked, less what a search index would not show yet.
    async fn work(&self, crm: &Crm<'_>, request: &Request) -> Reply {
        if let Work::LookUp { external_id, .. } = &request.work
            && self.room(crm.destination, |room| room.is_hidden(external_id))
        {
            return Reply::nothing_found(&request.object);
        }
        let reply = crm.work(request).await;
        if let Some(external_id) = &reply.created {
            let lag = self.draw(crm.destination, Fault::SearchLag, request);
            self.room(crm.destination, |room| {
                room.created(external_id, lag.map(|rule| rule.count.unwrap_or(1)));
            });
        }
        reply
    }

    /// A fault that keeps the sandbox from doing anything.
    fn refusal(&self, destination: DestinationId, request: &Request) -> Option<Outcome> {
        if self.draw(destination, Fault::NeverSent, request).is_some() {
            return Some(Outcome::NotSent(NotSent::Connect));
        }
        self.room(destination, |room| room.came(&request.work));
        Fault::REFUSALS.into_iter().find_map(|fault| {
            let rule = self.draw(destination, fault, request)?;
            Some(answered(Reply::refused(fault, &rule, request)))
        })
    }

    /// The way back: a fault may lose or spoil the answer to what was done.
    fn delivery(&self, destination: DestinationId, request: &Request, reply: Reply) -> Outcome {
        let is_drawn = |fault| self.draw(destination, fault, request).is_some();
        if is_drawn(Fault::TimeoutAfterCommit) {
            return Outcome::Unknown(Broken::TimedOut);
        }
        if is_drawn(Fault::CutAfterCommit) {
            return Outcome::Unknown(Broken::Closed);
        }
        let mut answer = reply.into_answer();
        if is_drawn(Fault::BrokenBody) {
            answer.body.truncate(answer.body.len() / 2);
        }
        Outcome::Answered(answer)
    }

    fn draw(&self, destination: DestinationId, fault: Fault, request: &Request) -> Option<Rule> {
        self.room(destination, |room| room.draw(fault, request, &self.env))
    }

    fn room<T>(&self, destination: DestinationId, visit: impl FnOnce(&mut Room) -> T) -> T {
        visit(lock(&self.rooms).entry(destination).or_default())
    }

    /// The workspace a sandbox belongs to. That never changes, so it is asked for once.
    async fn home(&self, destination: DestinationId) -> emanet_store::Result<Option<WorkspaceId>> {
        let known = lock(&self.homes).get(&destination).copied();
        if known.is_some() {
            return Ok(known);
        }
        let Some(configuration) = self.store.configuration().await? else {
            return Ok(None);
        };
        let mut homes = lock(&self.homes);
        homes.extend(
            configuration
                .destinations
                .iter()
                .map(|named| (named.id, named.workspace)),
        );
        Ok(homes.get(&destination).copied())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answered(reply: Reply) -> Outcome {
    Outcome::Answered(reply.into_answer())
}

/// A transport that answers for the sandboxes and hands on everything else.
#[derive(Debug)]
pub struct SandboxTransport {
    /// The sandboxes.
    pub sandbox: Arc<Sandbox>,
    /// The way out.
    pub inner: Arc<dyn Transport>,
}

#[async_trait]
impl Transport for SandboxTransport {
    async fn send(&self, call: &Call) -> Outcome {
        if call.url.starts_with("sandbox:") {
            self.sandbox.perform(call).await
        } else {
            self.inner.send(call).await
        }
    }
}
