//! The differences between versions of kube-proxy.
//!
//! Each field names a behaviour. [`Features::of`] alone decides which versions have it. Feature
//! gates have their default values, but for that of `ipMode`, which the settings can state.
//!
//! From v1.22 the rules are those of a real kube-proxy to the letter. From v1.9 to v1.21 they are
//! as far back as what a packet meets: each difference that decides where it goes is here, read in
//! that version's source, and wording, empty chains and the order of rules that exclude each other
//! are as in v1.22. docs/kube-proxy.md has the differences as a table.

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
    /// `internalTrafficPolicy` is read.
    pub(crate) reads_internal_policy: bool,
    /// `healthCheckNodePort` has a rule that accepts it.
    pub(crate) accepts_health_checks: bool,
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
    /// Under policy Local, the node's own traffic may use all endpoints, as that of pods may.
    pub(crate) node_reaches_all: bool,
    /// External IPs are served whoever calls them; before, only for what comes from outside the
    /// node, or if the node has the address.
    pub(crate) external_ips_for_all: bool,
    /// `externalTrafficPolicy` counts for external IPs; before, they were masqueraded and took
    /// all endpoints.
    pub(crate) external_ips_heed_policy: bool,
    /// What becomes of traffic to load-balancer addresses without an endpoint.
    pub(crate) empty_vips: EmptyVips,
    /// Cluster IPs without an endpoint are refused also where the packet is forwarded, as a
    /// pod's is; before, only the node's own were.
    pub(crate) refuses_forwarded: bool,
    /// The same for external addresses.
    pub(crate) refuses_external_forwarded: bool,
    /// The chain that refuses cluster IPs also sees what comes in for the node.
    pub(crate) refuses_incoming: bool,
    /// Packets without a connection are dropped.
    pub(crate) drops_invalid: bool,
    /// Replies pass whatever their addresses; before, only those from or to the cluster CIDR.
    pub(crate) accepts_all_replies: bool,
    /// Under policy Local, what localhost sends to a NodePort is masqueraded.
    pub(crate) masquerades_localhost: bool,
}

/// What becomes of traffic to load-balancer addresses of a Service without an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EmptyVips {
    /// Its own chain marks it to be dropped.
    Marked,
    /// There is no rule: it goes to the load balancer.
    Left,
    /// It is refused with cluster IPs.
    RefusedAsClusterIps,
    /// It is refused with external addresses.
    RefusedAsExternal,
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
    /// The guard lets probes of `healthCheckNodePort` pass at bound addresses.
    pub(crate) guard_knows_health_checks: bool,
    /// The same rules know external addresses under policy Local.
    pub(crate) guard_knows_local: bool,
    /// The node cannot use addresses whose source ranges do not contain it.
    pub(crate) guards_output: bool,
    /// An external address that the node has on another interface is not bound.
    pub(crate) spares_own_addresses: bool,
    /// An address that is bound takes no NodePorts, even if the node has it on another interface too.
    pub(crate) bound_take_no_node_ports: bool,
    /// Scheduler `mh` takes the source port into account.
    pub(crate) hashes_ports: bool,
    /// Under policy Local, a node without an endpoint sends to those of other nodes.
    pub(crate) local_falls_back: bool,
    /// SCTP NodePorts under policy Local keep the source, as those of TCP and UDP do.
    pub(crate) local_sctp_keeps_source: bool,
    /// One rule lets replies pass; before, there were two that did the same.
    pub(crate) one_reply_rule: bool,
    /// Load-balancer addresses and external IPs are bound.
    pub(crate) binds_external: bool,
    /// When a load-balancer address under policy Local has the node's own endpoints alone.
    pub(crate) local_vips: LocalVips,
    /// Under `externalTrafficPolicy: Local` the cluster IP has the node's own endpoints alone.
    pub(crate) policy_for_cluster_ips: bool,
    /// Which endpoints external IPs have under policy Local, and whether they are masqueraded.
    pub(crate) local_external_ips: LocalExternalIps,
    /// Without a local detector, the node's own traffic to cluster IPs is masqueraded.
    pub(crate) masquerades_own: bool,
    /// A chain in FORWARD accepts marked packets and replies.
    pub(crate) accepts_forwarded: bool,
    /// Replies pass whatever their addresses; before, only those from or to the cluster CIDR.
    pub(crate) accepts_all_replies: bool,
    /// NodePorts are told by the packet's address too; before, any packet to a port of that
    /// number was masqueraded.
    pub(crate) node_ports_are_local: bool,
    /// What is served ends its way through the chain accepted.
    pub(crate) accepts_served: bool,
}

/// When a load-balancer address under policy Local has the node's own endpoints alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalVips {
    Always,
    /// With session affinity; otherwise it has all endpoints.
    WithAffinity,
}

/// What external IPs have under policy Local.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalExternalIps {
    /// The node's own endpoints, and the source is masqueraded.
    OwnMasqueraded,
    /// All endpoints, and the source is masqueraded.
    AllMasqueraded,
    /// The node's own endpoints, and the source is kept.
    Own,
}

impl Features {
    /// Those of a version, where the feature gate of `ipMode` is set so, if it is set.
    pub(crate) fn of(version: Version, ip_mode_gate: Option<bool>) -> Self {
        let since = |minor: u16| (version.major, version.minor) >= (1, minor);
        Self {
            plan: Planning {
                // The gate came with v1.29, switched off; it cannot be switched off since v1.32.
                reads_ip_mode: match ip_mode_gate {
                    Some(on) if since(29) && !since(32) => on,
                    _ => since(30),
                },
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
                reads_internal_policy: since(22),
                accepts_health_checks: since(21),
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
                node_reaches_all: since(15),
                external_ips_for_all: since(21),
                external_ips_heed_policy: since(20),
                empty_vips: match () {
                    () if since(20) => EmptyVips::RefusedAsExternal,
                    () if since(13) => EmptyVips::RefusedAsClusterIps,
                    () if since(10) => EmptyVips::Left,
                    () => EmptyVips::Marked,
                },
                refuses_forwarded: since(13),
                refuses_external_forwarded: since(20),
                refuses_incoming: !since(10) || (since(13) && !since(20)),
                drops_invalid: since(15),
                accepts_all_replies: since(18),
                masquerades_localhost: since(10),
            },
            ipvs: Ipvs {
                drops_in_filter: since(25),
                guards_bound: since(26),
                guard_knows_health_checks: match version.minor {
                    26 => version.patch >= 5,
                    27 => version.patch >= 2,
                    _ => true,
                },
                guard_knows_local: since(28),
                guards_output: since(29),
                spares_own_addresses: since(27),
                bound_take_no_node_ports: since(23) && !since(27),
                hashes_ports: since(27),
                local_falls_back: since(24),
                local_sctp_keeps_source: since(23),
                one_reply_rule: since(23),
                binds_external: since(11),
                local_vips: match () {
                    () if since(11) && !since(14) => LocalVips::WithAffinity,
                    () => LocalVips::Always,
                },
                policy_for_cluster_ips: !since(10),
                local_external_ips: match () {
                    () if since(20) => LocalExternalIps::Own,
                    () if since(11) => LocalExternalIps::AllMasqueraded,
                    () => LocalExternalIps::OwnMasqueraded,
                },
                masquerades_own: since(11),
                accepts_forwarded: since(11),
                accepts_all_replies: since(18),
                node_ports_are_local: since(12),
                accepts_served: since(11),
            },
        }
    }
}
