//! The generations of nftables rules, and their differences.

use uturn_model::Version;

/// Versions between which the rules differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Generation {
    /// v1.30: sets and chains have no comments.
    V30,
    /// v1.31 and v1.32: filters before DNAT in every hook.
    V31,
    /// v1.33.0 to v1.33.5: packets to addresses that no Service has are dropped.
    V33Early,
    /// v1.33 from v1.33.6: the current base chains; rules of a cluster IP name its port.
    V33,
    /// v1.34.0 and v1.34.1: interfaces by index.
    V34Early,
    /// v1.34 from v1.34.2, and v1.35.
    V34,
    /// v1.36: endpoints have chains only with session affinity.
    V36,
}

impl Generation {
    /// Returns the generation of a version. Returns `None` for versions without the mode or with
    /// its alpha (v1.29).
    pub(crate) fn of(version: Version) -> Option<Self> {
        match version {
            Version { major: 0, .. } | Version { major: 1, minor: ..30, .. } => None,
            Version { major: 1, minor: 30, .. } => Some(Self::V30),
            Version { major: 1, minor: 31..=32, .. } => Some(Self::V31),
            Version { major: 1, minor: 33, patch: ..6, .. } => Some(Self::V33Early),
            Version { major: 1, minor: 33, .. } => Some(Self::V33),
            Version { major: 1, minor: 34, patch: ..2, .. } => Some(Self::V34Early),
            Version { major: 1, minor: 34..=35, .. } => Some(Self::V34),
            Version { .. } => Some(Self::V36),
        }
    }

    /// Returns whether a set matches hairpin connections of pods, instead of a rule for each
    /// endpoint.
    pub(super) fn has_hairpin_set(self) -> bool {
        self >= Self::V36
    }

    /// Returns whether an endpoint has a chain only with session affinity. (Before, each has one,
    /// and a chain instead of a rule sets the mark for masquerading.)
    pub(super) fn spares_chains(self) -> bool {
        self >= Self::V36
    }

    /// Returns whether one rule for all cluster IPs marks traffic from outside.
    pub(super) fn marks_in_services(self) -> bool {
        self >= Self::V36
    }

    /// Returns whether the rule that marks traffic from outside also names the port.
    pub(super) fn marks_by_port(self) -> bool {
        self <= Self::V33
    }

    /// Returns whether elements of `firewall-ips` have comments.
    pub(super) fn remarks_firewall(self) -> bool {
        self == Self::V30
    }

    /// Returns whether tables, sets and chains have comments. v1.30 tests whether `nft` supports
    /// them, and the test fails with every tested `nft`.
    pub(super) fn remarks_objects(self) -> bool {
        self > Self::V30
    }

    /// Returns whether packets to addresses that no Service has are dropped. By default kube-proxy
    /// does not learn the ranges of these addresses before v1.33.
    pub(super) fn drops_unallocated(self) -> bool {
        self >= Self::V33Early
    }

    /// Returns the keyword with which a rule matches the interface of incoming packets.
    pub(super) fn interface_by(self) -> &'static str {
        if self.matches_by_name() { "iifname" } else { "iif" }
    }

    /// Returns whether rules can match a prefix of interface names. Rules that match interfaces by
    /// index cannot: the kernel rejects the ruleset if there is no interface of that name.
    pub(crate) fn knows_prefixes(self) -> bool {
        self.matches_by_name()
    }

    fn matches_by_name(self) -> bool {
        self >= Self::V33 && self != Self::V34Early
    }

    /// Returns the chains at the hooks, and the chains to which they jump.
    pub(super) fn base_chains(self) -> [&'static str; 2] {
        [if self >= Self::V33 { FILTER_CHAINS_33 } else { FILTER_CHAINS_30 }, NAT_CHAINS]
    }
}

const FILTER_CHAINS_30: &str = "\
\tchain filter-prerouting {
\t\ttype filter hook prerouting priority dstnat - 10; policy accept;
\t\tct state new jump firewall-check
\t}

\tchain filter-input {
\t\ttype filter hook input priority -110; policy accept;
\t\tct state new jump nodeport-endpoints-check
\t\tct state new jump service-endpoints-check
\t}

\tchain filter-forward {
\t\ttype filter hook forward priority -110; policy accept;
\t\tct state new jump service-endpoints-check
\t\tct state new jump cluster-ips-check
\t}

\tchain filter-output {
\t\ttype filter hook output priority -110; policy accept;
\t\tct state new jump service-endpoints-check
\t\tct state new jump firewall-check
\t}

\tchain filter-output-post-dnat {
\t\ttype filter hook output priority -90; policy accept;
\t\tct state new jump cluster-ips-check
\t}

";

const FILTER_CHAINS_33: &str = "\
\tchain filter-prerouting-pre-dnat {
\t\ttype filter hook prerouting priority dstnat - 10; policy accept;
\t\tct state new jump firewall-check
\t}

\tchain filter-output-pre-dnat {
\t\ttype filter hook output priority -110; policy accept;
\t\tct state new jump firewall-check
\t}

\tchain filter-input {
\t\ttype filter hook input priority filter; policy accept;
\t\tct state new jump nodeport-endpoints-check
\t\tct state new jump service-endpoints-check
\t}

\tchain filter-forward {
\t\ttype filter hook forward priority filter; policy accept;
\t\tct state new jump service-endpoints-check
\t\tct state new jump cluster-ips-check
\t}

\tchain filter-output {
\t\ttype filter hook output priority filter; policy accept;
\t\tct state new jump service-endpoints-check
\t\tct state new jump cluster-ips-check
\t}

";

const NAT_CHAINS: &str = "\
\tchain nat-prerouting {
\t\ttype nat hook prerouting priority dstnat; policy accept;
\t\tjump services
\t}

\tchain nat-output {
\t\ttype nat hook output priority -100; policy accept;
\t\tjump services
\t}

\tchain nat-postrouting {
\t\ttype nat hook postrouting priority srcnat; policy accept;
\t\tjump masquerading
\t}

";
