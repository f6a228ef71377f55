//! Addresses that scripts reach through the proxy, and webhooks directly.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::LazyLock,
};

use ipnet::IpNet;

use super::special_addresses::{IANA_V4, IANA_V6, NOT_UNICAST, PROVIDERS};

/// Returns true for an address that is public, or in a permitted network. The rest belongs to this
/// machine, its network or its cloud, whose metadata service is at 169.254.169.254.
#[must_use]
pub fn is_permitted(address: IpAddr, allow: &[IpNet]) -> bool {
    let address = unmapped(address);
    is_public(address) || allow.iter().any(|network| network.contains(&address))
}

fn is_public(address: IpAddr) -> bool {
    // Translated and tunnelled addresses contain the IPv4 address that is reached.
    let reached = match address {
        IpAddr::V6(outer) => translated(outer).map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    };
    !SPECIAL.iter().any(|network| network.contains(&reached))
}

/// Networks of no public hosts.
static SPECIAL: LazyLock<Vec<IpNet>> = LazyLock::new(|| {
    let tables = [IANA_V4, IANA_V6, NOT_UNICAST, PROVIDERS];
    let entries = tables.into_iter().flatten();
    // A test reads every entry.
    entries
        .filter_map(|(network, _)| network.parse().ok())
        .collect()
});

/// Returns the IPv4 address that an IPv6 address stands for on this machine.
fn unmapped(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(address) => address
            .to_ipv4_mapped()
            .map_or(IpAddr::V6(address), IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// Returns the IPv4 address that an address of a translator (RFC 6052), or of a 6to4 tunnel (RFC
/// 3056), leads to.
fn translated(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let ([0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..]) = address.segments()
    else {
        return None;
    };
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Some(Ipv4Addr::new(a, b, c, d))
}

#[cfg(test)]
mod tests {
    use super::super::special_addresses::Entry;
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
            // Azure's, in the midst of public ones.
            "168.63.129.16",
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

    /// The first, the last and a middle address of a network.
    fn samples(network: IpNet) -> Vec<IpAddr> {
        let middle = match (network.network(), network.broadcast()) {
            (IpAddr::V4(first), IpAddr::V4(last)) => {
                let (first, last) = (u32::from(first), u32::from(last));
                IpAddr::V4((first + (last - first) / 2).into())
            }
            (IpAddr::V6(first), IpAddr::V6(last)) => {
                let (first, last) = (u128::from(first), u128::from(last));
                IpAddr::V6((first + (last - first) / 2).into())
            }
            mixed => panic!("{mixed:?}"),
        };
        vec![network.network(), middle, network.broadcast()]
    }

    #[test]
    fn every_special_network_is_refused_whole_and_in_every_spelling() {
        let tables = [IANA_V4, IANA_V6, NOT_UNICAST, PROVIDERS];
        for (network, purpose) in tables.into_iter().flatten() {
            let network: IpNet = network.parse().unwrap();
            assert_eq!(network, network.trunc(), "{purpose}");
            for address in samples(network) {
                let mut spellings = vec![address];
                if let IpAddr::V4(address) = address {
                    let [a, b, c, d] = address.octets().map(u16::from);
                    let (high, low) = (a << 8 | b, c << 8 | d);
                    spellings.extend([
                        IpAddr::V6(address.to_ipv6_mapped()),
                        IpAddr::V6(address.to_ipv6_compatible()),
                        IpAddr::V6(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low)),
                        IpAddr::V6(Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1)),
                    ]);
                }
                for address in spellings {
                    assert!(!is_permitted(address, &[]), "{address}: {purpose}");
                    let allow = [IpNet::from(unmapped(address))];
                    assert!(is_permitted(address, &allow), "{address}: {purpose}");
                }
            }
        }
    }

    /// The registries' files, as of 2026-07-18.
    const REGISTRIES: [(&str, &[Entry]); 2] = [
        (include_str!("iana-ipv4-special-registry-1.csv"), IANA_V4),
        (include_str!("iana-ipv6-special-registry-1.csv"), IANA_V6),
    ];

    /// Blocks whose addresses hold an IPv4 address, which decides about them.
    const TRANSLATED: [&str; 3] = ["::ffff:0:0/96", "64:ff9b::/96", "2002::/16"];

    /// The address blocks of a registry. A block may be followed by the number of a note.
    fn blocks(registry: &str) -> Vec<IpNet> {
        let records = registry
            .lines()
            .skip(1)
            // A line that begins with a blank continues a field in quotation marks.
            .filter(|line| !line.starts_with(' '));
        records
            .flat_map(|record| match record.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next().unwrap().split(", "),
                None => record.split(',').next().unwrap().split(", "),
            })
            .map(|block| block.split(' ').next().unwrap().parse().unwrap())
            .collect()
    }

    #[test]
    fn the_tables_are_ianas_registries() {
        let translated = TRANSLATED.map(|block| block.parse::<IpNet>().unwrap());
        for (registry, table) in REGISTRIES {
            let blocks = blocks(registry);
            assert!(blocks.len() >= 25, "{blocks:?}");
            let entries = table.iter().map(|(network, _)| network.parse().unwrap());
            let entries: Vec<IpNet> = entries.collect();
            for block in &blocks {
                let is_listed = entries.iter().any(|entry| entry.contains(block));
                assert!(
                    is_listed || translated.contains(block),
                    "{block} is missing"
                );
            }
            for entry in entries {
                assert!(blocks.contains(&entry), "{entry} is not of the registry");
            }
        }
    }

    #[test]
    fn the_addresses_around_each_special_network_are_refused_only_if_another_one_holds_them() {
        for (network, _) in IANA_V4 {
            let IpNet::V4(network) = network.parse().unwrap() else {
                panic!("{network} is in the wrong table");
            };
            let (first, last) = (u32::from(network.network()), u32::from(network.broadcast()));
            for neighbour in [first.checked_sub(1), last.checked_add(1)]
                .into_iter()
                .flatten()
            {
                let neighbour = IpAddr::V4(neighbour.into());
                let is_listed = SPECIAL.iter().any(|other| other.contains(&neighbour));
                assert_eq!(is_permitted(neighbour, &[]), !is_listed, "{neighbour}");
            }
        }
    }

    #[test]
    fn public_addresses_are_permitted() {
        for address in [
            "1.1.1.1",
            "168.63.129.15",
            "198.17.255.255",
            "198.20.0.0",
            "192.0.1.1",
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
