//! The address guard (S14, H48, F44): which addresses may be called. Asked for every resolved address right before connecting,
//! so a name that changes its answer gains nothing.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// A range of addresses: `10.0.0.0/8`, `fd00::/8`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Range {
    network: IpAddr,
    prefix: u8,
}

/// A text that is not a range of addresses.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not a range of addresses: expected something like 10.0.0.0/8, fd00::/8 or 192.168.1.20")]
pub struct InvalidRange;

impl Range {
    const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Self {
        Self {
            network: IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
            prefix,
        }
    }

    const fn v6(a: u16, b: u16, c: u16, prefix: u8) -> Self {
        Self {
            network: IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)),
            prefix,
        }
    }

    /// Whether the address lies in the range.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let differing = u32::from(network) ^ u32::from(address);
                differing.leading_zeros() >= u32::from(self.prefix)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let differing = u128::from(network) ^ u128::from(address);
                differing.leading_zeros() >= u32::from(self.prefix)
            }
            _ => false,
        }
    }
}

impl FromStr for Range {
    type Err = InvalidRange;

    fn from_str(text: &str) -> Result<Self, InvalidRange> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let network: IpAddr = address.parse().map_err(|_| InvalidRange)?;
        let longest = if network.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            Some(prefix) => prefix.parse().map_err(|_| InvalidRange)?,
            None => longest,
        };
        if prefix > longest {
            return Err(InvalidRange);
        }
        Ok(Self { network, prefix })
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

impl TryFrom<String> for Range {
    type Error = InvalidRange;

    fn try_from(text: String) -> Result<Self, InvalidRange> {
        text.parse()
    }
}

impl From<Range> for String {
    fn from(range: Range) -> Self {
        range.to_string()
    }
}

/// IPv4 that is not the public internet: the IANA special-purpose registry, multicast, and the one public address that cloud
/// machines reach their metadata under.
const CLOSED_V4: &[Range] = &[
    Range::v4(0, 0, 0, 0, 8),        // "this network"
    Range::v4(10, 0, 0, 0, 8),       // private
    Range::v4(100, 64, 0, 0, 10),    // carrier-grade NAT
    Range::v4(127, 0, 0, 0, 8),      // loopback
    Range::v4(168, 63, 129, 16, 32), // metadata and health probes of Azure
    Range::v4(169, 254, 0, 0, 16),   // link-local, most metadata services
    Range::v4(172, 16, 0, 0, 12),    // private
    Range::v4(192, 0, 0, 0, 24),     // protocol assignments
    Range::v4(192, 0, 2, 0, 24),     // documentation
    Range::v4(192, 88, 99, 0, 24),   // 6to4 relays
    Range::v4(192, 168, 0, 0, 16),   // private
    Range::v4(198, 18, 0, 0, 15),    // benchmarks
    Range::v4(198, 51, 100, 0, 24),  // documentation
    Range::v4(203, 0, 113, 0, 24),   // documentation
    Range::v4(224, 0, 0, 0, 4),      // multicast
    Range::v4(240, 0, 0, 0, 4),      // reserved, broadcast
];

/// The only IPv6 block in public use (RFC 4291); loopback, unique local, link-local, multicast and the rest lie outside it.
const GLOBAL_V6: Range = Range::v6(0x2000, 0, 0, 3);

/// Parts of [`GLOBAL_V6`] that are not the public internet.
const CLOSED_V6: &[Range] = &[
    Range::v6(0x2001, 0, 0, 23), // protocol assignments, Teredo among them
    Range::v6(0x2001, 0xdb8, 0, 32), // documentation
    Range::v6(0x3fff, 0, 0, 20), // documentation
];

const NAT64: Range = Range::v6(0x64, 0xff9b, 0, 96);
const SIX_TO_FOUR: Range = Range::v6(0x2002, 0, 0, 16);

/// Decides which addresses may be called.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    allow: Vec<Range>,
}

impl Guard {
    /// Public addresses and these.
    pub fn new(allow: Vec<Range>) -> Self {
        Self { allow }
    }

    /// Whether this address may be called. What the operator allows, on any port; public addresses on 80, 443 and ports from
    /// 1024, so that nobody makes us speak to mail or remote-login servers.
    pub fn admits(&self, target: SocketAddr) -> bool {
        let address = target.ip().to_canonical();
        let port = target.port();
        if port == 0 {
            return false;
        }
        self.allow.iter().any(|range| range.contains(address))
            || (is_public(address) && matches!(port, 80 | 443 | 1024..))
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !within(CLOSED_V4, IpAddr::V4(address))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let ip = IpAddr::V6(address);
    let octets = address.octets();
    let [.., a, b, c, d] = octets;
    let last = Ipv4Addr::new(a, b, c, d);
    if NAT64.contains(ip) {
        return is_public_v4(last);
    }
    if SIX_TO_FOUR.contains(ip) {
        let [_, _, a, b, c, d, ..] = octets;
        return is_public_v4(Ipv4Addr::new(a, b, c, d)) && !hides_closed_v4(address, last);
    }
    GLOBAL_V6.contains(ip) && !within(CLOSED_V6, ip) && !hides_closed_v4(address, last)
}

/// An ISATAP interface id (RFC 5214) whose IPv4 address is not public.
fn hides_closed_v4(address: Ipv6Addr, last: Ipv4Addr) -> bool {
    let [.., flags, marker, _, _] = address.segments();
    matches!((flags, marker), (0 | 0x200, 0x5efe)) && !is_public_v4(last)
}

fn within(ranges: &[Range], address: IpAddr) -> bool {
    ranges.iter().any(|range| range.contains(address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(guard: &Guard, address: &str, admitted: bool) {
        let target: SocketAddr = address.parse().unwrap();
        assert_eq!(guard.admits(target), admitted, "{address}");
    }

    /// S14, H48: nothing but the public internet, in whatever form the address comes.
    #[test]
    fn closed_addresses_are_refused_in_every_form() {
        let guard = Guard::default();
        for address in [
            "0.0.0.0:80",
            "0.1.2.3:80",
            "10.0.0.1:443",
            "100.64.0.1:80",
            "100.100.100.200:80",
            "127.0.0.1:80",
            "127.255.255.254:8080",
            "168.63.129.16:80",
            "169.254.169.254:80",
            "172.16.0.1:80",
            "172.31.255.255:80",
            "192.0.0.192:80",
            "192.0.2.1:80",
            "192.88.99.1:80",
            "192.168.1.1:80",
            "198.18.0.1:80",
            "198.19.255.255:80",
            "198.51.100.7:80",
            "203.0.113.7:80",
            "224.0.0.1:80",
            "239.255.255.255:80",
            "240.0.0.1:80",
            "255.255.255.255:80",
            "[::]:80",
            "[::1]:80",
            "[::127.0.0.1]:80",
            "[::ffff:127.0.0.1]:80",
            "[::ffff:169.254.169.254]:80",
            "[::ffff:a00:1]:80",
            "[64:ff9b::a9fe:a9fe]:80",
            "[64:ff9b::7f00:1]:80",
            "[64:ff9b:1::1]:80",
            "[100::1]:80",
            "[2001::1]:80",
            "[2001:0:4136:e378:8000:63bf:3fff:fdd2]:80",
            "[2001:db8::1]:80",
            "[2002:7f00:1::1]:80",
            "[2002:a9fe:a9fe::]:80",
            "[2002:c0a8:101::1]:80",
            "[3fff::1]:80",
            "[5f00::1]:80",
            "[fc00::1]:80",
            "[fd00:ec2::254]:80",
            "[fe80::1]:80",
            "[fec0::1]:80",
            "[ff02::1]:80",
            "[2a00:1450::5efe:7f00:1]:80",
            "[2a00:1450::200:5efe:a00:1]:80",
        ] {
            check(&guard, address, false);
        }
    }

    #[test]
    fn the_public_internet_is_admitted_on_web_ports() {
        let guard = Guard::default();
        for address in [
            "1.1.1.1:443",
            "100.63.255.255:80",
            "100.128.0.0:80",
            "172.15.255.255:80",
            "172.32.0.1:8069",
            "198.17.255.255:80",
            "[::ffff:1.1.1.1]:443",
            "[64:ff9b::101:101]:443",
            "[2002:101:101::1]:443",
            "[2606:4700::1111]:443",
            "[2a00:1450:4001:80b::200e]:8443",
        ] {
            check(&guard, address, true);
        }
        for port in [0, 22, 25, 81, 110, 445, 1023] {
            check(&guard, &format!("1.1.1.1:{port}"), false);
        }
    }

    /// S14: private networks only by an explicit list of the operator.
    #[test]
    fn allowed_ranges_are_admitted_and_nothing_beside_them() {
        let guard = Guard::new(vec![
            "10.1.0.0/16".parse().unwrap(),
            "fd00:1::/32".parse().unwrap(),
            "127.0.0.1".parse().unwrap(),
        ]);
        check(&guard, "10.1.255.255:25", true);
        check(&guard, "[::ffff:10.1.0.1]:80", true);
        check(&guard, "[fd00:1::5]:80", true);
        check(&guard, "127.0.0.1:9", true);
        check(&guard, "127.0.0.1:0", false);
        check(&guard, "127.0.0.2:80", false);
        check(&guard, "10.2.0.1:80", false);
        check(&guard, "[fd00:2::5]:80", false);
        // Translated on the way, so not the host that was allowed.
        check(&guard, "[64:ff9b::a01:1]:80", false);
    }

    #[test]
    fn ranges_are_read_as_written_or_refused() {
        for text in ["10.0.0.0/8", "0.0.0.0/0", "::/0", "fd00::/8"] {
            assert_eq!(text.parse::<Range>().unwrap().to_string(), text);
        }
        assert_eq!("::1".parse::<Range>().unwrap().to_string(), "::1/128");
        for text in [
            "",
            "10.0.0.0/33",
            "10.0.0/8",
            "::/129",
            "10.0.0.0/",
            "10.0.0.0/-1",
            "crm/8",
        ] {
            assert_eq!(text.parse::<Range>(), Err(InvalidRange), "{text}");
        }
    }

    proptest! {
        /// A mapped address is judged as the IPv4 address it is; so is one that is translated on the way.
        #[test]
        fn embedding_an_address_opens_nothing(bits: u32, port in 1_u16..) {
            let guard = Guard::default();
            let v4 = Ipv4Addr::from(bits);
            let plain = guard.admits(SocketAddr::new(v4.into(), port));
            let mapped = guard.admits(SocketAddr::new(v4.to_ipv6_mapped().into(), port));
            let nat64 = Ipv6Addr::from((0x64_ff9b_u128 << 96) | u128::from(bits));
            let six_to_four = Ipv6Addr::from((0x2002_u128 << 112) | (u128::from(bits) << 80));
            prop_assert_eq!(plain, mapped);
            prop_assert_eq!(plain, guard.admits(SocketAddr::new(nat64.into(), port)));
            prop_assert_eq!(plain, guard.admits(SocketAddr::new(six_to_four.into(), port)));
        }
    }
}
