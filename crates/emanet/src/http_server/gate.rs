//! Who may have a connection: a cap for all, a smaller one for each address.

use super::{Limits, Peer};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Connections counted, in all and by address.
pub(super) struct Gate {
    slots: Arc<Semaphore>,
    addresses: Arc<Mutex<HashMap<IpAddr, usize>>>,
    per_address_max: usize,
    trusted: Vec<IpAddr>,
}

/// The right to one connection; given back when dropped.
pub(super) struct Slot {
    _permit: OwnedSemaphorePermit,
    address: Option<Counted>,
}

struct Counted {
    address: IpAddr,
    addresses: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl Gate {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(limits.connections_max)),
            addresses: Arc::default(),
            per_address_max: limits.per_address_max,
            trusted: limits
                .trusted_proxies
                .iter()
                .map(IpAddr::to_canonical)
                .collect(),
        }
    }

    /// Waits until one more connection is allowed.
    pub(super) async fn permit(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.slots)
            .acquire_owned()
            .await
            .expect("the semaphore is never closed")
    }

    /// The slot of a new connection; `None` if its address has its share already.
    pub(super) fn slot(&self, permit: OwnedSemaphorePermit, peer: Peer) -> Option<Slot> {
        let address = match peer {
            Peer::Local => None,
            Peer::Tcp(address) => Some(address.ip().to_canonical())
                .filter(|ip| !ip.is_loopback() && !self.trusted.contains(ip)),
        };
        let address = match address {
            None => None,
            Some(ip) => Some(self.count(network(ip))?),
        };
        Some(Slot {
            _permit: permit,
            address,
        })
    }

    fn count(&self, address: IpAddr) -> Option<Counted> {
        let mut counts = lock(&self.addresses);
        let count = counts.entry(address).or_default();
        if *count >= self.per_address_max {
            return None;
        }
        *count += 1;
        Some(Counted {
            address,
            addresses: Arc::clone(&self.addresses),
        })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = lock(&self.addresses);
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

/// One household or server has a whole /64 of IPv6 addresses.
fn network(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => ip,
        IpAddr::V6(v6) => {
            let prefix = u128::from(v6) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(prefix))
        }
    }
}

fn lock(
    counts: &Mutex<HashMap<IpAddr, usize>>,
) -> std::sync::MutexGuard<'_, HashMap<IpAddr, usize>> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slot")
            .field("counted", &self.address.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens connections from each address in turn and says which were let in; all stay open.
    async fn check(limits: Limits, peers: &[&str], expected: &[bool]) {
        let gate = Gate::new(&limits);
        let mut slots = Vec::new();
        for (peer, expected) in peers.iter().zip(expected) {
            let slot = gate.slot(gate.permit().await, Peer::Tcp(peer.parse().unwrap()));
            assert_eq!(slot.is_some(), *expected, "{peer}");
            slots.push(slot);
        }
    }

    fn two_each() -> Limits {
        Limits {
            per_address_max: 2,
            trusted_proxies: vec!["10.0.0.7".parse().unwrap()],
            ..Limits::default()
        }
    }

    #[tokio::test]
    async fn an_address_gets_its_share_and_no_more() {
        let peers = ["192.0.2.1:1", "192.0.2.1:2", "192.0.2.1:3", "192.0.2.2:1"];
        check(two_each(), &peers, &[true, true, false, true]).await;
    }

    #[tokio::test]
    async fn an_ipv6_network_counts_as_one_address() {
        let peers = [
            "[2001:db8::1]:1",
            "[2001:db8::2]:1",
            "[2001:db8::3]:1",
            "[2001:db8:0:1::1]:1",
        ];
        check(two_each(), &peers, &[true, true, false, true]).await;
    }

    #[tokio::test]
    async fn loopback_and_trusted_proxies_are_exempt() {
        let peers = ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"];
        check(two_each(), &peers, &[true; 3]).await;
        let peers = ["10.0.0.7:1", "10.0.0.7:2", "[::ffff:10.0.0.7]:3"];
        check(two_each(), &peers, &[true; 3]).await;
    }

    #[tokio::test]
    async fn a_closed_connection_makes_room() {
        let gate = Gate::new(&Limits {
            per_address_max: 1,
            ..Limits::default()
        });
        let peer = Peer::Tcp("192.0.2.1:1".parse().unwrap());
        let first = gate.slot(gate.permit().await, peer);
        assert!(first.is_some());
        assert!(gate.slot(gate.permit().await, peer).is_none());
        drop(first);
        assert!(gate.slot(gate.permit().await, peer).is_some());
        assert!(lock(&gate.addresses).is_empty());
    }
}
