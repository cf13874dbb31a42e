//! Addresses that only this machine or its network can reach.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Looks up the host of a page, and refuses private addresses. Other names are those of proxies.
#[derive(Debug)]
pub(super) struct Resolver {
    pub(super) host: String,
    pub(super) allow_private: bool,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let checked = !self.allow_private && name.as_str() == self.host;
        Box::pin(async move {
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            if checked && found.iter().any(|address| is_private(address.ip())) {
                let why = "the name leads to a loopback or private address, which is refused";
                return Err(io::Error::other(why).into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Whether a host is written as a private address.
pub(super) fn is_private_literal(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse().is_ok_and(is_private)
}

/// Whether an address is not one of the public internet.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            address.is_loopback()
                || address.is_private()
                || address.is_link_local()
                || address.is_unspecified()
                || address.is_broadcast()
                || address.is_multicast()
                || first == 0
                // Addresses of providers, and of benchmarks.
                || (first == 100 && (64..128).contains(&second))
                || (first == 198 && (18..20).contains(&second))
        }
        IpAddr::V6(address) => {
            let embedded = address.to_ipv4_mapped().or_else(|| embedded(address));
            address.is_loopback()
                || address.is_unspecified()
                || address.is_unique_local()
                || address.is_unicast_link_local()
                || address.is_multicast()
                || embedded.is_some_and(|address| is_private(IpAddr::V4(address)))
        }
    }
}

/// The address that a translator (NAT64) would reach.
fn embedded(address: Ipv6Addr) -> Option<std::net::Ipv4Addr> {
    match address.octets() {
        [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d] => Some([a, b, c, d].into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_known() {
        let private = [
            "127.0.0.1",
            "10.1.2.3",
            "192.168.0.1",
            "172.16.0.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "[::1]",
            "[::]",
            "[fe80::1]",
            "[fd00::1]",
            "[::ffff:127.0.0.1]",
            "[64:ff9b::7f00:1]",
        ];
        for address in private {
            assert!(is_private_literal(address), "{address}");
        }
        for address in ["1.1.1.1", "[2606:4700::1111]", "example.org", "100.128.0.1"] {
            assert!(!is_private_literal(address), "{address}");
        }
    }
}
