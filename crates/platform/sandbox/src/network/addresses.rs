//! Addresses that scripts may reach through the proxy.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Returns true for an address that is public, or in a permitted network. The rest belongs to this
/// machine, its network or its cloud, whose metadata service is at 169.254.169.254.
pub(crate) fn is_permitted(address: IpAddr, allow: &[IpNet]) -> bool {
    let address = unmapped(address);
    is_public(address) || allow.iter().any(|network| network.contains(&address))
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Returns the IPv4 address that an IPv6 address stands for on this machine.
fn unmapped(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(address) => address
            .to_ipv4_mapped()
            .map_or(IpAddr::V6(address), IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    // 100.64.0.0/10 (RFC 6598) is routed inside of providers and clouds only.
    let is_shared = first == 100 && (64..128).contains(&second);
    !(first == 0
        || is_shared
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || first >= 240)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let [first, second, ..] = segments;
    // Translated and tunnelled addresses contain the IPv4 address that is reached.
    let inner = match segments {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => Some((high, low)),
        _ => None,
    };
    if let Some((high, low)) = inner {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        return is_public_v4(Ipv4Addr::new(a, b, c, d));
    }
    let is_site_local = first & 0xffc0 == 0xfec0;
    let is_local_translation = (first, second) == (0x64, 0xff9b);
    let is_compatible = segments.iter().take(6).all(|segment| *segment == 0);
    !(is_compatible
        || is_site_local
        || is_local_translation
        || address.is_multicast()
        || address.is_unique_local()
        || address.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permitted(address: &str, allow: &[&str]) -> bool {
        let allow: Vec<IpNet> = allow.iter().map(|net| net.parse().unwrap()).collect();
        is_permitted(address.parse().unwrap(), &allow)
    }

    #[test]
    fn loopback_link_local_and_private_addresses_are_refused_in_every_spelling() {
        for address in [
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.64.0.1",
            "169.254.169.254",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!permitted(address, &[]), "{address}");
        }
    }

    #[test]
    fn public_addresses_are_permitted() {
        for address in [
            "1.1.1.1",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
        ] {
            assert!(permitted(address, &[]), "{address}");
        }
    }

    #[test]
    fn a_network_that_the_operator_names_is_permitted() {
        assert!(permitted("10.1.2.3", &["10.1.0.0/16"]));
        assert!(permitted("::ffff:10.1.2.3", &["10.1.0.0/16"]));
        assert!(!permitted("10.2.0.1", &["10.1.0.0/16", "fd00::/8"]));
        assert!(permitted("fd12::1", &["10.1.0.0/16", "fd00::/8"]));
    }
}
