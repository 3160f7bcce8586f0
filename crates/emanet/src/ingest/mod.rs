//! Intake: takes a request in, writes it down, and only then answers 2xx (invariant 1).
//!
//! It authenticates, splits a request into events and stores the bytes; reading them is the worker's business. Nothing of a
//! request that is not authentic is stored (IN-4); anything authentic is, readable or not (IN-5). Answers are chosen for the
//! sender: a paused source or a suspended workspace stores and answers 200 like any other, since 404 or 410 would make
//! senders switch the hook off for good (design 4).

mod admission;
mod body;
mod carried;
mod headers;
mod reply;
#[cfg(test)]
mod tests;

use crate::api::error::{ApiError, Detail};
use crate::env::Env;
use crate::http_server::Peer;
use crate::installation::{Current, Installation, SourceEntry};
use crate::telemetry::{IntakeOutcome, Metrics};
use admission::{Admission, Admitted};
use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use carried::CarriedThrough;
use emanet_connectors::connector::Received;
use emanet_core::event::{Accepted, Inbound, Item, NewEvent};
use emanet_core::ids::{EventId, ReceiptId};
use emanet_core::seal::Keyring;
use emanet_store::{NewReceipt, Store};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

/// How much intake takes on at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests past their body and not answered yet; more are put off at once (F13).
    pub requests_max: usize,
    /// Bytes of bodies in memory, over all requests; more are put off at once (F27, F28).
    pub memory_bytes_max: usize,
    /// A body must be complete within this time (F27).
    pub body_timeout: Duration,
    /// A commit that takes longer is answered with 503; it may still succeed, and the repeat is then a duplicate.
    pub accept_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests_max: 2_048,
            memory_bytes_max: 128 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            accept_timeout: Duration::from_secs(10),
        }
    }
}

/// What intake works with.
#[derive(Clone, Debug)]
pub struct Intake {
    /// Where requests are written down.
    pub store: Arc<dyn Store>,
    /// The configuration in force.
    pub installation: Arc<Current>,
    /// Clock and random source.
    pub env: Env,
    /// Key of the hash that events are unique by.
    pub keyring: Arc<Keyring>,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Told after each commit that there is work.
    pub wake: Arc<Notify>,
    /// How much to take on.
    pub limits: Limits,
}

/// `/in/{token}`.
pub fn router(intake: Intake) -> Router {
    let desk = Arc::new(Desk {
        admission: Admission::new(&intake.limits),
        intake,
    });
    Router::new()
        .route("/in/{token}", any(take_in))
        .with_state(desk)
}

#[derive(Debug)]
struct Desk {
    intake: Intake,
    admission: Admission,
}

/// A request that was not stored: how it counts, and what the sender is told.
#[derive(Debug)]
struct Declined(IntakeOutcome, ApiError);

async fn take_in(
    State(desk): State<Arc<Desk>>,
    token: Result<Path<String>, PathRejection>,
    request: Request,
) -> Response {
    let installation = desk.intake.installation.get();
    let metrics = &desk.intake.metrics;
    let Some(source) = token
        .ok()
        .and_then(|Path(token)| find(&installation, &token))
    else {
        metrics.request_ended("", IntakeOutcome::UnknownToken);
        // The body is not read for nobody.
        return ApiError::not_found()
            .hint("Check the address; `emanet serve` prints it.")
            .closing()
            .into_response();
    };
    let kind = source.kind.kind;
    if *request.method() == Method::OPTIONS && reply::is_cross_origin(kind) {
        return reply::preflight(request.headers());
    }
    let (outcome, response) = match desk.serve(&installation, source, request).await {
        Ok(served) => served,
        Err(Declined(outcome, error)) => (outcome, error.into_response()),
    };
    metrics.request_ended(kind, outcome);
    reply::for_browsers(kind, response)
}

/// The source a token belongs to. Tokens are compared as hashes in a table, so the time tells nothing of how much of a token
/// is right, and an unknown one costs what a known one does (F32).
fn find<'a>(installation: &'a Installation, token: &str) -> Option<&'a Arc<SourceEntry>> {
    let hash: [u8; 32] = Sha256::digest(token).into();
    let id = installation.tokens.get(&hash)?;
    installation.sources.get(id)
}

impl Desk {
    async fn serve(
        &self,
        installation: &Installation,
        source: &SourceEntry,
        request: Request,
    ) -> Result<(IntakeOutcome, Response), Declined> {
        acceptable(request.method(), request.headers())?;
        let peer = request.extensions().get().copied().unwrap_or(Peer::Local);
        let (inbound, admitted) = self.read(source, request, peer).await?;
        let now = self.intake.env.now();
        match source.connector.receive(&inbound, now) {
            Received::Refused { status, reason } => Err(self.refuse(source, peer, status, reason)),
            Received::Handshake(reply) => Ok((IntakeOutcome::Handshake, reply::render(reply, &[]))),
            Received::Events { items, .. } if items.is_empty() => Err(Declined(
                IntakeOutcome::Declined,
                ApiError::malformed(vec![Detail::new("body", "carries no event")]),
            )),
            Received::Events { items, reply } => {
                let receipt = self.receipt(installation, source, inbound, items, now);
                let accepted = self.store(source, receipt, admitted).await?;
                Ok((IntakeOutcome::Stored, reply::render(reply, &accepted)))
            }
        }
    }

    /// Reads the whole request, and finds room for it. Reading comes first: a peer that is slow to send must not take the
    /// place of one whose lead is here.
    async fn read(
        &self,
        source: &SourceEntry,
        request: Request,
        peer: Peer,
    ) -> Result<(Inbound, Admitted), Declined> {
        let (head, body) = request.into_parts();
        let limit = source.body_bytes_max;
        let declared = head.headers.get(header::CONTENT_LENGTH);
        let mut memory = self.admission.memory();
        let body = body::read(body, declared, limit, &mut memory);
        let body = timeout(self.intake.limits.body_timeout, body)
            .await
            .unwrap_or(Err(body::Error::TooSlow))
            .map_err(|error| self.unread(error, limit))?;
        let admitted = self
            .admission
            .request(memory)
            .ok_or_else(|| self.put_off("too many requests in flight"))?;
        let inbound = Inbound {
            method: head.method.as_str().to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            headers: headers::received(&head.headers, peer),
            body,
        };
        Ok((inbound, admitted))
    }

    fn unread(&self, error: body::Error, limit: usize) -> Declined {
        let error = match error {
            body::Error::TooLarge => ApiError::too_large(limit),
            body::Error::TooSlow => ApiError::timeout().closing(),
            body::Error::Broken => {
                ApiError::malformed(vec![Detail::new("body", "ended early")]).closing()
            }
            body::Error::NoMemory => return self.put_off("too many bytes in memory"),
        };
        Declined(IntakeOutcome::Declined, error)
    }

    fn put_off(&self, why: &str) -> Declined {
        // Senders that were put off together must not come back together.
        let wait = Duration::from_secs_f64(2.0 + 8.0 * self.intake.env.unit());
        let error = ApiError::unavailable(why, wait).closing();
        Declined(IntakeOutcome::PutOff, error)
    }

    /// An attack or a misconfiguration, not a delivery error: logged apart, nothing stored (IN-4).
    fn refuse(
        &self,
        source: &SourceEntry,
        peer: Peer,
        status: u16,
        reason: &'static str,
    ) -> Declined {
        tracing::warn!(
            target: "emanet::refused",
            {
                source.id = %source.id,
                source.kind = source.kind.kind,
                peer = %peer,
                reason,
            },
            "a request to this source is not authentic and was not stored"
        );
        let metrics = &self.intake.metrics;
        metrics.request_refused(source.kind.kind, reason);
        let error = match status {
            403 => ApiError::forbidden(),
            _ => ApiError::unauthenticated(),
        };
        Declined(IntakeOutcome::Refused, error)
    }

    fn receipt(
        &self,
        installation: &Installation,
        source: &SourceEntry,
        mut request: Inbound,
        items: Vec<Item>,
        now: Timestamp,
    ) -> NewReceipt {
        let env = &self.intake.env;
        let zone = installation
            .workspaces
            .get(&source.workspace)
            .map_or(TimeZone::UTC, |w| w.time_zone.clone());
        headers::keep_storable(&mut request.headers);
        NewReceipt {
            workspace: source.workspace,
            source: source.id,
            id: ReceiptId::new(now, env.bytes()),
            request,
            received_at: now,
            day: now.to_zoned_datetime(zone).date().to_string(),
            revision: installation.revision,
            events: items
                .into_iter()
                .map(|item| NewEvent {
                    id: EventId::new(now, env.bytes()),
                    ref_hash: self.intake.keyring.ref_hash(source.id, &item.source_ref),
                    item,
                })
                .collect(),
        }
    }

    /// Writes it down. A sender that hangs up meanwhile must not keep the engine from hearing of the commit.
    async fn store(
        &self,
        source: &SourceEntry,
        receipt: NewReceipt,
        admitted: Admitted,
    ) -> Result<Vec<Accepted>, Declined> {
        let store = Arc::clone(&self.intake.store);
        let metrics = Arc::clone(&self.intake.metrics);
        let wake = Arc::clone(&self.intake.wake);
        let kind = source.kind.kind;
        let commit = CarriedThrough::new(async move {
            // Room is taken up until the commit has ended, whoever still waits for it.
            let _admitted = admitted;
            let begun = Instant::now();
            let accepted = store.accept(receipt).await?;
            metrics.events_accepted(kind, &accepted, begun.elapsed());
            wake.notify_one();
            Ok::<_, emanet_store::Error>(accepted)
        });
        match timeout(self.intake.limits.accept_timeout, commit).await {
            Ok(Ok(accepted)) => Ok(accepted),
            Ok(Err(emanet_store::Error::Unavailable(why))) => Err(self.put_off(&why)),
            Ok(Err(error)) => Err(not_stored(&error.to_string())),
            Err(_) => Err(self.put_off("the commit takes too long")),
        }
    }
}

/// Whatever the store says, the sender must come again: 5xx, never 404 or 409.
fn not_stored(why: &str) -> Declined {
    Declined(IntakeOutcome::PutOff, ApiError::internal(why))
}

/// Refuses what cannot be taken whatever its content. A compressed body cannot be authenticated by its content, and
/// unpacking before authenticating would be a gift to attackers (S2, F28).
fn acceptable(method: &Method, headers: &HeaderMap) -> Result<(), Declined> {
    let error = if !matches!(*method, Method::GET | Method::HEAD | Method::POST) {
        ApiError::method_not_allowed("GET, HEAD, POST")
    } else if headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
    {
        ApiError::unsupported_media()
    } else {
        return Ok(());
    };
    Err(Declined(IntakeOutcome::Declined, error.closing()))
}
