//! The writer of IPVS mode.
//!
//! Each address and port of a Service has a virtual server. The addresses are bound on a device
//! of the node, so that the kernel treats them as local. A fixed list of iptables rules (`rules`)
//! that match ipsets (`sets`) masquerades or rejects packets. The state is that of a freshly
//! started kube-proxy: no endpoint of an earlier time is being drained.

mod rules;
mod servers;
mod sets;

use std::collections::BTreeSet;
use std::net::IpAddr;

use uturn_model::{AddressBinding, Port, Protocol, ProxySettings};

use crate::features::{Ipvs, LocalExternalIps, LocalVips};
use crate::plan::{NodePortsOn, Plan, PortPlan};
use crate::{Options, Program, UnboundVip};
use servers::{Choice, Servers};
use sets::{Entry, Set, Sets};

/// Writes the rules, sets and virtual servers of a plan.
pub(crate) fn write(
    plan: &Plan<'_>,
    settings: &ProxySettings,
    features: Ipvs,
    options: Options,
) -> Program {
    let mut writer = Writer {
        plan,
        features,
        binding: settings.address_binding,
        unbound_vip: options.unbound_vip,
        node_ips: node_ips(plan),
        sets: Sets::new(plan.family),
        servers: Servers::new(&settings.ipvs_scheduler, features.hashes_ports),
        bound: BTreeSet::new(),
        fenced_off: BTreeSet::new(),
    };
    for port in &plan.ports {
        writer.write(port);
    }
    writer.leave_out_bound();
    writer.bound_node_ips();
    for port in &plan.ports {
        let local = port.external_local && features.node_ports_heed_policy;
        let choice = writer.choice(port, local);
        if writer.node_port(port, choice)
            && let Some(number) = port.health_check
        {
            writer.sets.insert(Set::HealthCheckNodePort, Entry::Port(number));
        }
    }
    for ip in &writer.bound {
        writer.sets.insert(Set::IpvsIps, Entry::Ip(*ip));
    }
    let mut ipset = String::new();
    writer.sets.print(|set| set != Set::IpvsIps || features.guards_bound, &mut ipset);
    Program {
        iptables: rules::write(plan, settings, features, &writer.sets, &writer.fenced_off),
        ipset,
        ipvs: writer.servers.print(),
        bound: writer.bound.into_iter().collect(),
        sysctls: sysctls(plan, settings),
        ..Program::default()
    }
}

/// A load-balancer address and port that the node itself may not use.
type Fence = (IpAddr, Protocol, Port);

struct Writer<'p> {
    plan: &'p Plan<'p>,
    features: Ipvs,
    binding: AddressBinding,
    unbound_vip: UnboundVip,
    /// The node's addresses that accept NodePorts.
    node_ips: Vec<IpAddr>,
    sets: Sets,
    servers: Servers<'p>,
    bound: BTreeSet<IpAddr>,
    fenced_off: BTreeSet<Fence>,
}

impl<'p> Writer<'p> {
    fn write(&mut self, port: &'p PortPlan<'p>) {
        for (ip, number) in &port.backends.here {
            self.sets.insert(Set::LoopBack, Entry::IpPortIp(*ip, port.protocol, *number, *ip));
        }
        self.sets.insert(Set::ClusterIp, portal(port, port.cluster_ip));
        self.bound.insert(port.cluster_ip);
        let internal_local =
            port.internal_local || (self.features.policy_for_cluster_ips && port.external_local);
        let choice = self.choice(port, internal_local);
        self.servers.insert(port, (port.cluster_ip, port.port), choice);
        let handling = self.features.local_external_ips;
        let keeps_source = port.external_local && handling == LocalExternalIps::Own;
        let local = port.external_local && handling != LocalExternalIps::AllMasqueraded;
        let outside = self.choice(port, local);
        for ip in &port.external_ips {
            let set = if keeps_source { Set::ExternalIpLocal } else { Set::ExternalIp };
            self.sets.insert(set, portal(port, *ip));
            self.servers.insert(port, (*ip, port.port), outside);
            self.bind(*ip);
        }
        let local = port.external_local
            && (self.features.local_vips == LocalVips::Always || port.affinity_seconds.is_some());
        let outside = self.choice(port, local);
        for ip in &port.vips {
            self.vip(port, *ip, outside);
        }
    }

    /// Removes bound addresses from those that accept NodePorts if no ranges are set: NodePorts are
    /// then on the addresses of all other interfaces.
    fn leave_out_bound(&mut self) {
        let on_all = matches!(self.plan.node.node_ports, NodePortsOn::All);
        if on_all && self.features.bound_take_no_node_ports {
            self.node_ips.retain(|ip| !self.bound.contains(ip));
        }
    }

    /// Adds bound addresses within the ranges to those that accept NodePorts: kube-proxy matches
    /// ranges against the addresses of all interfaces, including that of bound addresses.
    fn bound_node_ips(&mut self) {
        let ranges = &self.plan.node.node_port_ranges;
        let is_in = |ip: &&IpAddr| ranges.iter().any(|net| net.contains(*ip));
        let own = &mut self.node_ips;
        for ip in self.bound.iter().filter(is_in) {
            if !own.contains(ip) {
                own.push(*ip);
            }
        }
    }

    fn vip(&mut self, port: &'p PortPlan<'p>, ip: IpAddr, choice: Choice) {
        let binds = self.binding.binds(port.annotations);
        if !binds && self.unbound_vip == UnboundVip::Absent {
            return;
        }
        self.sets.insert(Set::LoadBalancer, portal(port, ip));
        if port.external_local {
            self.sets.insert(Set::LoadBalancerLocal, portal(port, ip));
        }
        if !port.source_ranges.is_empty() {
            self.fence(port, ip);
        }
        self.servers.insert(port, (ip, port.port), choice);
        if binds {
            self.bind(ip);
        }
    }

    /// Enforces the source ranges of a load balancer address.
    fn fence(&mut self, port: &PortPlan<'_>, ip: IpAddr) {
        self.sets.insert(Set::LoadBalancerFw, portal(port, ip));
        for range in &port.source_ranges {
            let entry = Entry::IpPortNet(ip, port.protocol, port.port, *range);
            self.sets.insert(Set::LoadBalancerSourceCidr, entry);
        }
        // If the node holds the address, its own traffic has that address as its source.
        if port.source_ranges.iter().any(|range| range.contains(&self.plan.node.address)) {
            let entry = Entry::IpPortIp(ip, port.protocol, port.port, ip);
            self.sets.insert(Set::LoadBalancerSourceIp, entry);
        } else {
            self.fenced_off.insert((ip, port.protocol, port.port));
        }
    }

    /// Adds the sets and virtual servers of a NodePort. Returns `false` if kube-proxy skips the
    /// rest of the Service port.
    fn node_port(&mut self, port: &'p PortPlan<'p>, choice: Choice) -> bool {
        let Some(number) = port.node_port else { return true };
        let locals = if port.external_local { &[false, true][..] } else { &[false] };
        for local in locals {
            let set = Set::node_ports(port.protocol, *local);
            match port.protocol {
                _ if self.node_ips.is_empty() => {}
                Protocol::Tcp | Protocol::Udp => self.sets.insert(set, Entry::Port(number)),
                Protocol::Sctp => {
                    for ip in &self.node_ips {
                        self.sets.insert(set, Entry::IpPort(*ip, port.protocol, number));
                    }
                }
            }
        }
        for ip in &self.node_ips {
            self.servers.insert(port, (*ip, number), choice);
        }
        !self.node_ips.is_empty()
    }

    fn choice(&self, port: &PortPlan<'_>, local: bool) -> Choice {
        Choice::of(port, local, self.features.local_falls_back)
    }

    /// Binds an external address, unless the node already has it.
    fn bind(&mut self, ip: IpAddr) {
        if !self.features.binds_external {
            return;
        }
        if !(self.features.spares_own_addresses && self.plan.node.addresses.contains(&ip)) {
            self.bound.insert(ip);
        }
    }
}

fn portal(port: &PortPlan<'_>, ip: IpAddr) -> Entry {
    Entry::IpPort(ip, port.protocol, port.port)
}

/// Returns the addresses on which NodePorts are virtual servers, without those of localhost.
fn node_ips(plan: &Plan<'_>) -> Vec<IpAddr> {
    let all = match &plan.node.node_ports {
        NodePortsOn::All => &plan.node.addresses,
        NodePortsOn::These(addresses) => addresses,
    };
    all.iter().copied().filter(|ip| !ip.is_loopback()).collect()
}

/// Returns the sysctls that IPVS mode sets, for both families.
fn sysctls(plan: &Plan<'_>, settings: &ProxySettings) -> Vec<(String, String)> {
    let mut all = vec![("net.ipv4.vs.conntrack", 1)];
    if plan.node.kernel.is_some_and(|kernel| ((4, 1)..(5, 9)).contains(&kernel)) {
        all.push(("net.ipv4.vs.conn_reuse_mode", 0));
    }
    all.push(("net.ipv4.vs.expire_nodest_conn", 1));
    all.push(("net.ipv4.vs.expire_quiescent_template", 1));
    all.push(("net.ipv4.ip_forward", 1));
    if settings.strict_arp {
        all.push(("net.ipv4.conf.all.arp_ignore", 1));
        all.push(("net.ipv4.conf.all.arp_announce", 2));
    }
    if settings.conntrack_tcp_be_liberal {
        all.push(("net.netfilter.nf_conntrack_tcp_be_liberal", 1));
    }
    all.into_iter().map(|(name, value)| (name.to_owned(), value.to_string())).collect()
}
