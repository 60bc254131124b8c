//! The differences between versions of kube-proxy.
//!
//! Each field names a behaviour. [`Features::of`] alone decides which versions have it. Feature
//! gates have their default values.

use uturn_model::Version;

/// What kube-proxy of a version does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Features {
    pub(crate) plan: Planning,
    pub(crate) iptables: Iptables,
    pub(crate) ipvs: Ipvs,
}

/// What differs in every mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planning {
    /// `ipMode` is read; before, every load-balancer address was served.
    pub(crate) reads_ip_mode: bool,
    /// Whether endpoints' hints for zones count.
    pub(crate) zone_hints: ZoneHints,
    /// Endpoints' hints for nodes count.
    pub(crate) node_hints: bool,
    /// Terminating endpoints that still serve are used if there are no ready ones.
    pub(crate) last_resort: bool,
    /// If several endpoints have the same address, the last that is not terminating counts;
    /// before, the first, or the last on this node.
    pub(crate) prefers_running: bool,
    /// A source range that holds every address means no source ranges.
    pub(crate) open_range_is_none: bool,
    /// `internalTrafficPolicy` is for the cluster IP; before, it took endpoints of other
    /// nodes from every address, unless `externalTrafficPolicy` was Local as well.
    pub(crate) policies_are_apart: bool,
    /// `nodePortAddresses` of the other family are as if not stated; else a range of all
    /// its addresses stands for this family's too, and others leave none of this family's.
    pub(crate) node_port_ranges_apart: bool,
    /// In nftables mode, a family of which `nodePortAddresses` states nothing has NodePorts
    /// on the node's primary address, which is localhost where it has none; else on all.
    pub(crate) primary_if_unstated: bool,
    /// `externalTrafficPolicy` counts for a Service that has only external IPs, too.
    pub(crate) policy_for_external_ips: bool,
    /// It is a setting whether localhost takes NodePorts; before, IPv4's always did.
    pub(crate) localhost_is_a_choice: bool,
}

/// When endpoints' hints for zones count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZoneHints {
    Never,
    /// If the Service says `Auto` in its annotation.
    OnAuto,
    /// If the Service has an annotation, under the old name or the new, that does not say
    /// `Disabled`.
    UnlessDisabled,
    Always,
}

/// What differs in iptables mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Iptables {
    /// Each Service port has a chain for what comes from outside (KUBE-EXT); before, its
    /// own chain masqueraded that, and KUBE-XLB was for policy Local.
    pub(crate) external_chains: bool,
    /// The filter table drops packets that must not pass; before, the nat table marked them and
    /// kubelet's rules dropped them.
    pub(crate) drops_in_filter: bool,
    /// Comments of rules that lead to an endpoint name it.
    pub(crate) remarks_name_endpoints: bool,
    /// In KUBE-XLB, each rule that leads to an endpoint has a number.
    pub(crate) numbers_local_endpoints: bool,
    /// kube-proxy protects localhost itself; before, kubelet did.
    pub(crate) guards_localhost: bool,
    /// A rule that only has a comment ends the chains of source ranges.
    pub(crate) remarks_fence: bool,
    /// NodePorts have rules also where no address of the node takes them.
    pub(crate) node_ports_without_address: bool,
    /// IPv6's localhost takes no NodePorts.
    pub(crate) spares_v6_localhost: bool,
    /// INVALID packets pass where connection tracking is set to be liberal.
    pub(crate) heeds_liberal: bool,
    /// One rule lets replies pass; before, there were two that did the same.
    pub(crate) one_reply_rule: bool,
    /// It counts packets with nfacct if the kernel supports it.
    pub(crate) accounts: bool,
    /// `route_localnet` is left alone where localhost takes no NodePorts.
    pub(crate) spares_route_localnet: bool,
}

/// What differs in IPVS mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ipvs {
    /// The filter table drops packets from outside the source ranges; before, the nat table
    /// marked them and kubelet's rules dropped them.
    pub(crate) drops_in_filter: bool,
    /// Ports of bound addresses that no Service lists are refused, and what comes from
    /// localhost is left alone.
    pub(crate) guards_bound: bool,
    /// The same rules know external addresses under policy Local.
    pub(crate) guard_knows_local: bool,
    /// The node cannot use addresses whose source ranges do not contain it.
    pub(crate) guards_output: bool,
    /// An external address that the node has on another interface is not bound.
    pub(crate) spares_own_addresses: bool,
    /// Scheduler `mh` takes the source port into account.
    pub(crate) hashes_ports: bool,
    /// Under policy Local, a node without an endpoint sends to those of other nodes.
    pub(crate) local_falls_back: bool,
    /// SCTP NodePorts under policy Local keep the source, as those of TCP and UDP do.
    pub(crate) local_sctp_keeps_source: bool,
    /// One rule lets replies pass; before, there were two that did the same.
    pub(crate) one_reply_rule: bool,
}

impl Features {
    pub(crate) fn of(version: Version) -> Self {
        let since = |minor: u16| (version.major, version.minor) >= (1, minor);
        Self {
            plan: Planning {
                reads_ip_mode: since(30),
                zone_hints: match () {
                    () if since(31) => ZoneHints::Always,
                    () if since(27) => ZoneHints::UnlessDisabled,
                    () if since(24) => ZoneHints::OnAuto,
                    () => ZoneHints::Never,
                },
                node_hints: since(34),
                last_resort: since(26),
                prefers_running: since(36),
                open_range_is_none: since(34),
                policies_are_apart: since(24),
                node_port_ranges_apart: !since(27) || since(28),
                primary_if_unstated: !since(31),
                policy_for_external_ips: since(29),
                localhost_is_a_choice: since(26),
            },
            iptables: Iptables {
                external_chains: since(24),
                drops_in_filter: since(25),
                remarks_name_endpoints: since(24),
                numbers_local_endpoints: !since(23),
                guards_localhost: since(27),
                remarks_fence: since(27),
                node_ports_without_address: since(27),
                spares_v6_localhost: since(26),
                heeds_liberal: since(29),
                one_reply_rule: since(23),
                accounts: since(31),
                spares_route_localnet: since(24),
            },
            ipvs: Ipvs {
                drops_in_filter: since(25),
                guards_bound: since(26),
                guard_knows_local: since(28),
                guards_output: since(29),
                spares_own_addresses: since(27),
                hashes_ports: since(27),
                local_falls_back: since(24),
                local_sctp_keeps_source: since(23),
                one_reply_rule: since(23),
            },
        }
    }
}
