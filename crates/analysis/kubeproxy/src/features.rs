//! The differences between versions of kube-proxy.
//!
//! Each field names a behaviour. [`Features::of`] alone decides which versions have it. Feature
//! gates have their default values, except that of `ipMode`, which the settings can state.
//!
//! From v1.22 the rules are exactly those of a real kube-proxy. From v1.9 to v1.21 they have the
//! same effect on a packet: each difference that decides where a packet goes is listed here, as
//! read in that version's source; wording, empty chains and the order of mutually exclusive rules
//! are as in v1.22. docs/kube-proxy.md has the differences as a table.

use uturn_model::Version;

/// The behaviour of one version of kube-proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Features {
    pub(crate) plan: Planning,
    pub(crate) iptables: Iptables,
    pub(crate) ipvs: Ipvs,
}

/// The differences in every mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planning {
    /// Whether `ipMode` is read; before, every load-balancer address was served.
    pub(crate) reads_ip_mode: bool,
    /// The condition under which endpoints' hints for zones are used.
    pub(crate) zone_hints: ZoneHints,
    /// Whether endpoints' hints for nodes are used.
    pub(crate) node_hints: bool,
    /// Whether terminating endpoints that still serve are used if there are no ready ones.
    pub(crate) last_resort: bool,
    /// Whether, of several endpoints with the same address, the last one that is not terminating is
    /// used; before, it was the first, or the last on this node.
    pub(crate) prefers_running: bool,
    /// Whether a source range that contains every address means no source ranges.
    pub(crate) open_range_is_none: bool,
    /// Whether `internalTrafficPolicy` applies to the cluster IP only; before, it excluded
    /// endpoints of other nodes for every address, unless `externalTrafficPolicy` was Local as
    /// well.
    pub(crate) policies_are_apart: bool,
    /// Whether `nodePortAddresses` of the other family are ignored; otherwise a range of all
    /// addresses of the other family also stands for all of this family, and other ranges leave
    /// this family no addresses.
    pub(crate) node_port_ranges_apart: bool,
    /// Whether, in nftables mode, a family without `nodePortAddresses` has NodePorts on the node's
    /// primary address, which is localhost if the node has none; otherwise on all addresses.
    pub(crate) primary_if_unstated: bool,
    /// Whether `externalTrafficPolicy` also applies to a Service that has only external IPs.
    pub(crate) policy_for_external_ips: bool,
    /// Whether a setting decides if localhost accepts NodePorts; before, IPv4's localhost always
    /// did.
    pub(crate) localhost_is_a_choice: bool,
    /// Whether `internalTrafficPolicy` is read.
    pub(crate) reads_internal_policy: bool,
    /// Whether a rule accepts packets to `healthCheckNodePort`.
    pub(crate) accepts_health_checks: bool,
}

/// The condition under which endpoints' hints for zones are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ZoneHints {
    Never,
    /// Hints are used if the Service's annotation is `Auto`.
    OnAuto,
    /// Hints are used if the Service has an annotation, under the old or the new name, that is not
    /// `Disabled`.
    UnlessDisabled,
    Always,
}

/// The differences in iptables mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Iptables {
    /// Whether each Service port has a chain for traffic from outside (KUBE-EXT); before, the
    /// port's own chain masqueraded this traffic, and KUBE-XLB was for policy Local.
    pub(crate) external_chains: bool,
    /// Whether the filter table drops packets that must not pass; before, the nat table marked them
    /// and kubelet's rules dropped them.
    pub(crate) drops_in_filter: bool,
    /// Whether comments of rules that lead to an endpoint name the endpoint.
    pub(crate) remarks_name_endpoints: bool,
    /// Whether each rule of KUBE-XLB that leads to an endpoint has a number.
    pub(crate) numbers_local_endpoints: bool,
    /// Whether kube-proxy protects localhost itself; before, kubelet did.
    pub(crate) guards_localhost: bool,
    /// Whether a rule with only a comment ends the chains of source ranges.
    pub(crate) remarks_fence: bool,
    /// Whether NodePorts have rules even if no address of the node accepts them.
    pub(crate) node_ports_without_address: bool,
    /// Whether IPv6's localhost accepts no NodePorts.
    pub(crate) spares_v6_localhost: bool,
    /// Whether INVALID packets pass if connection tracking is set to be liberal.
    pub(crate) heeds_liberal: bool,
    /// Whether one rule accepts replies; before, two rules did the same.
    pub(crate) one_reply_rule: bool,
    /// Whether kube-proxy counts packets with nfacct if the kernel supports it.
    pub(crate) accounts: bool,
    /// Whether `route_localnet` is left unchanged if localhost accepts no NodePorts.
    pub(crate) spares_route_localnet: bool,
    /// Whether, under policy Local, the node's own traffic may use all endpoints, as that of pods
    /// may.
    pub(crate) node_reaches_all: bool,
    /// Whether external IPs are served for every source; before, only for traffic from outside the
    /// node, or if the node has the address.
    pub(crate) external_ips_for_all: bool,
    /// Whether `externalTrafficPolicy` applies to external IPs; before, their traffic was
    /// masqueraded and used all endpoints.
    pub(crate) external_ips_heed_policy: bool,
    /// The treatment of traffic to load-balancer addresses without an endpoint.
    pub(crate) empty_vips: EmptyVips,
    /// Whether packets to cluster IPs without an endpoint are also refused if they are forwarded,
    /// as those of pods are; before, only the node's own were.
    pub(crate) refuses_forwarded: bool,
    /// Whether forwarded packets to external addresses without an endpoint are refused, too.
    pub(crate) refuses_external_forwarded: bool,
    /// Whether the chain that refuses packets to cluster IPs also sees incoming packets for the
    /// node.
    pub(crate) refuses_incoming: bool,
    /// Whether packets without a connection are dropped.
    pub(crate) drops_invalid: bool,
    /// Whether replies are accepted whatever their addresses; before, only those from or to the
    /// cluster CIDR were.
    pub(crate) accepts_all_replies: bool,
    /// Whether, under policy Local, packets from localhost to a NodePort are masqueraded.
    pub(crate) masquerades_localhost: bool,
}

/// The treatment of traffic to load-balancer addresses of a Service without an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EmptyVips {
    /// The chain of the Service marks it to be dropped.
    Marked,
    /// No rule matches it: it goes to the load balancer.
    Left,
    /// The chain for cluster IPs refuses it.
    RefusedAsClusterIps,
    /// The chain for external addresses refuses it.
    RefusedAsExternal,
}

/// The differences in IPVS mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ipvs {
    /// Whether the filter table drops packets from outside the source ranges; before, the nat table
    /// marked them and kubelet's rules dropped them.
    pub(crate) drops_in_filter: bool,
    /// Whether packets to bound addresses are refused at ports that no Service lists, and packets
    /// from localhost are left unchanged.
    pub(crate) guards_bound: bool,
    /// Whether the guard of bound addresses accepts probes of `healthCheckNodePort`.
    pub(crate) guard_knows_health_checks: bool,
    /// Whether the guard of bound addresses also accepts external addresses under policy Local.
    pub(crate) guard_knows_local: bool,
    /// Whether the node cannot use addresses whose source ranges do not contain it.
    pub(crate) guards_output: bool,
    /// Whether an external address that the node has on another interface is not bound.
    pub(crate) spares_own_addresses: bool,
    /// Whether a bound address accepts no NodePorts, even if the node also has it on another
    /// interface.
    pub(crate) bound_take_no_node_ports: bool,
    /// Whether the scheduler `mh` takes the source port into account.
    pub(crate) hashes_ports: bool,
    /// Whether, under policy Local, a node without an endpoint sends to endpoints of other nodes.
    pub(crate) local_falls_back: bool,
    /// Whether SCTP NodePorts under policy Local keep the source, as those of TCP and UDP do.
    pub(crate) local_sctp_keeps_source: bool,
    /// Whether one rule accepts replies; before, two rules did the same.
    pub(crate) one_reply_rule: bool,
    /// Whether load-balancer addresses and external IPs are bound.
    pub(crate) binds_external: bool,
    /// The condition under which a load-balancer address under policy Local uses only the node's
    /// own endpoints.
    pub(crate) local_vips: LocalVips,
    /// Whether, under `externalTrafficPolicy: Local`, the cluster IP uses only the node's own
    /// endpoints.
    pub(crate) policy_for_cluster_ips: bool,
    /// The endpoints of external IPs under policy Local, and whether their traffic is masqueraded.
    pub(crate) local_external_ips: LocalExternalIps,
    /// Whether, without a local detector, the node's own traffic to cluster IPs is masqueraded.
    pub(crate) masquerades_own: bool,
    /// Whether a chain in FORWARD accepts marked packets and replies.
    pub(crate) accepts_forwarded: bool,
    /// Whether replies are accepted whatever their addresses; before, only those from or to the
    /// cluster CIDR were.
    pub(crate) accepts_all_replies: bool,
    /// Whether NodePorts are recognised by the packet's address too; before, any packet to a port
    /// of that number was masqueraded.
    pub(crate) node_ports_are_local: bool,
    /// Whether NodePorts under policy Local use only the node's own endpoints; otherwise they use all,
    /// and the source is kept.
    pub(crate) node_ports_heed_policy: bool,
    /// Whether packets of Services are accepted at the end of the chain.
    pub(crate) accepts_served: bool,
}

/// The condition under which a load-balancer address under policy Local uses only the node's own
/// endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalVips {
    Always,
    /// Only with session affinity; otherwise it uses all endpoints.
    WithAffinity,
}

/// The endpoints and the source of traffic to external IPs under policy Local.
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
    /// Returns the behaviour of a version. `ip_mode_gate` is the feature gate of `ipMode`, if it is
    /// set.
    pub(crate) fn of(version: Version, ip_mode_gate: Option<bool>) -> Self {
        let since = |minor: u16| (version.major, version.minor) >= (1, minor);
        // v1.27.0 and v1.27.1 bind as v1.26 does.
        let spares_own_addresses = since(28) || since(27) && version.patch >= 2;
        Self {
            plan: Planning {
                // The gate was added in v1.29, off by default; it cannot be switched off since
                // v1.32.
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
                // v1.30 added it, and releases of v1.28 and v1.29 took it over.
                guard_knows_local: since(30)
                    || since(29) && version.patch >= 1
                    || since(28) && !since(29) && version.patch >= 6,
                guards_output: since(29),
                spares_own_addresses,
                bound_take_no_node_ports: since(23) && !spares_own_addresses,
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
                // v1.11.4 took over what v1.12 mended.
                node_ports_heed_policy: !since(11) || since(12) || version.patch >= 4,
                accepts_served: since(11),
            },
        }
    }
}
