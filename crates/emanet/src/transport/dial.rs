//! From a name to a connection: resolve, guard, connect, TLS. Whatever fails here was never sent.

use super::Deadlines;
use super::guard::Guard;
use super::request::Origin;
use super::tls;
use super::wire::{Counted, Wire};
use async_trait::async_trait;
use emanet_core::call::NotSent;
use rustls::pki_types::ServerName;
use std::fmt::{self, Debug};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use url::Host;

/// A name service.
#[async_trait]
pub trait Resolve: Debug + Send + Sync {
    /// The addresses of a name, each with the port.
    ///
    /// # Errors
    /// The name service cannot be asked, or does not know the name.
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// How many look-ups may be under way. The operating system's look-up blocks a thread and cannot be cancelled; without a limit,
/// a silent name service would take all threads and the intake with them (F43).
const LOOKUPS_MAX: usize = 32;
/// How many addresses of a name are tried.
const ADDRESSES_MAX: usize = 6;

/// The operating system's name service.
#[derive(Debug)]
pub struct SystemResolver {
    slots: Arc<Semaphore>,
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self {
            slots: Arc::new(Semaphore::new(LOOKUPS_MAX)),
        }
    }
}

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let slot = Arc::clone(&self.slots)
            .acquire_owned()
            .await
            .map_err(io::Error::other)?;
        let host = host.to_owned();
        // A task of its own: it keeps its slot until the thread is free again, even when the caller has given up.
        let lookup = tokio::spawn(async move {
            let found = tokio::net::lookup_host((host, port)).await;
            drop(slot);
            found.map(Iterator::collect)
        });
        lookup.await.map_err(io::Error::other)?
    }
}

/// Makes connections.
pub(super) struct Dialer {
    pub(super) resolver: Arc<dyn Resolve>,
    pub(super) guard: Guard,
    pub(super) connector: TlsConnector,
    pub(super) deadlines: Deadlines,
}

impl Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer")
            .field("guard", &self.guard)
            .field("deadlines", &self.deadlines)
            .finish_non_exhaustive()
    }
}

impl Dialer {
    /// A fresh connection to the origin.
    pub(super) async fn dial(&self, origin: &Origin, deadline: Instant) -> Result<Wire, NotSent> {
        let found = self.resolve(origin, deadline).await?;
        let admitted: Vec<SocketAddr> = found
            .into_iter()
            .filter(|address| self.guard.admits(*address))
            .take(ADDRESSES_MAX)
            .collect();
        if admitted.is_empty() {
            return Err(NotSent::AddressRefused);
        }
        let tcp = self.connect(&admitted, deadline).await?;
        // Without it the end of a request may wait for an acknowledgement; failing to set it costs time, nothing else.
        let _delayed_at_worst = tcp.set_nodelay(true);
        let counted = Counted::new(tcp);
        if origin.tls {
            self.encrypt(counted, origin, deadline).await
        } else {
            Ok(Wire::plain(counted))
        }
    }

    async fn resolve(
        &self,
        origin: &Origin,
        deadline: Instant,
    ) -> Result<Vec<SocketAddr>, NotSent> {
        let name = match &origin.host {
            Host::Ipv4(address) => {
                return Ok(vec![SocketAddr::new((*address).into(), origin.port)]);
            }
            Host::Ipv6(address) => {
                return Ok(vec![SocketAddr::new((*address).into(), origin.port)]);
            }
            Host::Domain(name) => name,
        };
        let end = deadline.min(Instant::now() + self.deadlines.resolve);
        match timeout_at(end, self.resolver.resolve(name, origin.port)).await {
            Ok(Ok(found)) if !found.is_empty() => Ok(found),
            _ => Err(NotSent::Dns),
        }
    }

    /// Tries the addresses in order. Each gets an equal part of what time is left, so that a dead first one does not use it all.
    async fn connect(
        &self,
        addresses: &[SocketAddr],
        deadline: Instant,
    ) -> Result<TcpStream, NotSent> {
        let end = deadline.min(Instant::now() + self.deadlines.connect);
        for (address, left) in addresses.iter().zip((1_u32..=addresses.len() as u32).rev()) {
            let now = Instant::now();
            let part = end.saturating_duration_since(now) / left;
            if let Ok(Ok(tcp)) = timeout_at(now + part, TcpStream::connect(address)).await {
                return Ok(tcp);
            }
        }
        Err(NotSent::Connect)
    }

    async fn encrypt(
        &self,
        tcp: Counted,
        origin: &Origin,
        deadline: Instant,
    ) -> Result<Wire, NotSent> {
        let name = server_name(&origin.host)?;
        let end = deadline.min(Instant::now() + self.deadlines.tls);
        match timeout_at(end, self.connector.connect(name, tcp)).await {
            Ok(Ok(stream)) => Ok(Wire::encrypted(stream)),
            Ok(Err(error)) => Err(tls::failure(&error)),
            Err(_) => Err(NotSent::Tls),
        }
    }
}

/// The name the certificate must be for. A final dot means "not relative" to the name service and nothing to a certificate.
fn server_name(host: &Host<String>) -> Result<ServerName<'static>, NotSent> {
    match host {
        Host::Domain(name) => ServerName::try_from(name.trim_end_matches('.').to_owned())
            .map_err(|_| NotSent::InvalidCall),
        Host::Ipv4(address) => Ok(ServerName::IpAddress((*address).into())),
        Host::Ipv6(address) => Ok(ServerName::IpAddress((*address).into())),
    }
}
