//! Ranges of addresses, as `10.0.0.0/8` or a single address.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A range of addresses: those that share the first bits with the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpRange {
    base: IpAddr,
    prefix: u8,
}

/// A text that is no range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a range of addresses like 10.0.0.0/8")]
pub struct InvalidRange;

impl IpRange {
    /// Whether the address is in the range. An IPv4 address written as IPv6 (`::ffff:10.0.0.1`) counts as what it is.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.base, address.to_canonical()) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                let mask = u32::MAX
                    .checked_shl(32 - u32::from(self.prefix))
                    .unwrap_or(0);
                (u32::from(base) ^ u32::from(address)) & mask == 0
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => {
                let mask = u128::MAX
                    .checked_shl(128 - u32::from(self.prefix))
                    .unwrap_or(0);
                (u128::from(base) ^ u128::from(address)) & mask == 0
            }
            _ => false,
        }
    }
}

impl FromStr for IpRange {
    type Err = InvalidRange;

    fn from_str(text: &str) -> Result<Self, InvalidRange> {
        let (base, prefix) = text
            .split_once('/')
            .map_or((text, None), |(a, p)| (a, Some(p)));
        let base: IpAddr = base.parse().map_err(|_| InvalidRange)?;
        let longest = if base.is_ipv4() { 32 } else { 128 };
        let prefix = prefix
            .map_or(Ok(longest), str::parse)
            .map_err(|_| InvalidRange)?;
        if prefix > longest {
            return Err(InvalidRange);
        }
        Ok(Self { base, prefix })
    }
}

impl fmt::Display for IpRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_what_shares_its_first_bits() {
        let check = |range: &str, address: &str, expected: bool| {
            let range: IpRange = range.parse().unwrap();
            assert_eq!(
                range.contains(address.parse().unwrap()),
                expected,
                "{range} {address}"
            );
        };
        check("127.0.0.0/8", "127.255.0.1", true);
        check("127.0.0.0/8", "128.0.0.1", false);
        check("127.0.0.0/8", "::ffff:127.0.0.1", true);
        check("0.0.0.0/0", "8.8.8.8", true);
        check("10.1.2.3", "10.1.2.3", true);
        check("10.1.2.3", "10.1.2.4", false);
        check("fd00::/8", "fd12::1", true);
        check("fd00::/8", "fe80::1", false);
        check("::/0", "10.0.0.1", false);
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in [
            "",
            "10.0.0.0/33",
            "10.0.0/8",
            "::/129",
            "10.0.0.0/",
            "host/8",
        ] {
            assert_eq!(text.parse::<IpRange>(), Err(InvalidRange), "{text}");
        }
    }
}
