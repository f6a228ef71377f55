//! Addresses that are not of the public internet, as data.

/// An entry: a network and what it is for. The source is the table's.
pub(super) type Entry = (&'static str, &'static str);

/// IANA's IPv4 Special-Purpose Address Registry, whole; a test compares it with the registry's file, which
/// is beside this one: <https://www.iana.org/assignments/iana-ipv4-special-registry/>. Entries that the registry calls
/// globally reachable are listed, too: they are anycast services of the network that one stands in.
pub(super) const IANA_V4: &[Entry] = &[
    ("0.0.0.0/8", "this network (RFC 791)"),
    ("10.0.0.0/8", "private use (RFC 1918)"),
    ("100.64.0.0/10", "shared address space (RFC 6598)"),
    ("127.0.0.0/8", "loopback (RFC 1122)"),
    ("169.254.0.0/16", "link local (RFC 3927)"),
    ("172.16.0.0/12", "private use (RFC 1918)"),
    ("192.0.0.0/24", "IETF protocol assignments (RFC 6890)"),
    ("192.0.2.0/24", "documentation (RFC 5737)"),
    ("192.31.196.0/24", "AS112-v4 (RFC 7535)"),
    ("192.52.193.0/24", "AMT (RFC 7450)"),
    ("192.88.99.0/24", "deprecated 6to4 relay anycast (RFC 7526)"),
    ("192.168.0.0/16", "private use (RFC 1918)"),
    (
        "192.175.48.0/24",
        "direct delegation AS112 service (RFC 7534)",
    ),
    ("198.18.0.0/15", "benchmarking (RFC 2544)"),
    ("198.51.100.0/24", "documentation (RFC 5737)"),
    ("203.0.113.0/24", "documentation (RFC 5737)"),
    ("240.0.0.0/4", "reserved (RFC 1112), with limited broadcast"),
];

/// IANA's IPv6 Special-Purpose Address Registry, whole, compared in the same way:
/// <https://www.iana.org/assignments/iana-ipv6-special-registry/>. `::ffff:0:0/96`, `64:ff9b::/96` and
/// `2002::/16` hold an IPv4 address, which decides about them.
pub(super) const IANA_V6: &[Entry] = &[
    ("::1/128", "loopback (RFC 4291)"),
    ("::/128", "unspecified (RFC 4291)"),
    ("64:ff9b:1::/48", "local translation (RFC 8215)"),
    ("100::/64", "discard only (RFC 6666)"),
    ("100:0:0:1::/64", "dummy prefix (RFC 9780)"),
    (
        "2001::/23",
        "IETF protocol assignments (RFC 2928), with Teredo and ORCHID",
    ),
    ("2001:db8::/32", "documentation (RFC 3849)"),
    (
        "2620:4f:8000::/48",
        "direct delegation AS112 service (RFC 7534)",
    ),
    ("3fff::/20", "documentation (RFC 9637)"),
    ("5f00::/16", "segment routing (RFC 9602)"),
    ("fc00::/7", "unique local (RFC 4193)"),
    ("fe80::/10", "link local (RFC 4291)"),
];

/// Networks outside of those registries that are no hosts of the internet either.
pub(super) const NOT_UNICAST: &[Entry] = &[
    ("224.0.0.0/4", "multicast (RFC 5771)"),
    ("::/96", "IPv4-compatible, deprecated (RFC 4291)"),
    ("fec0::/10", "site local, deprecated (RFC 3879)"),
    ("ff00::/8", "multicast (RFC 4291)"),
];

/// Addresses at which a provider's machines reach services that trust them: metadata, credentials,
/// resolvers. Those that lie in a network above are listed for the tests.
pub(super) const PROVIDERS: &[Entry] = &[
    // learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
    (
        "168.63.129.16/32",
        "Azure's WireServer, DNS and health probes",
    ),
    // docs.oracle.com/iaas/Content/Compute/Tasks/gettingmetadata.htm
    ("192.0.0.192/32", "Oracle Cloud's metadata (classic)"),
    // alibabacloud.com/help/en/ecs/user-guide/view-instance-metadata
    ("100.100.100.200/32", "Alibaba Cloud's metadata"),
    ("100.100.2.136/31", "Alibaba Cloud's resolvers"),
    // docs.aws.amazon.com: EC2's metadata, ECS's credentials, the VPC's resolver and clock
    (
        "169.254.169.254/32",
        "metadata of AWS, Google Cloud, Azure and others",
    ),
    ("169.254.170.2/32", "credentials of AWS ECS"),
    ("169.254.169.253/32", "resolver of AWS"),
    ("fd00:ec2::254/128", "metadata of AWS"),
    ("fd00:ec2::23/128", "credentials of AWS EKS"),
    // cloud.google.com/compute/docs/metadata
    ("fd20:ce::254/128", "metadata of Google Cloud"),
    // www.scaleway.com/en/docs, metadata service
    ("169.254.42.42/32", "metadata of Scaleway"),
    ("fd00:42::42/128", "metadata of Scaleway"),
    // cloud.tencent.com/document/product/213/4934
    ("169.254.0.23/32", "metadata of Tencent Cloud"),
];
