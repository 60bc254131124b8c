//! The rules that one Service port adds to the tables.

use ipnet::IpNet;
use uturn_model::{Family, Port, ProxySettings};

use super::probability::Probabilities;
use super::{
    EXTERNAL_SERVICES, MARK_MASQ, MAX_ENDPOINTS_WITH_REMARKS, NODE_PORTS, PROXY_FIREWALL, SERVICES,
    Tables, accounted,
};
use crate::Options;
use crate::features::{EmptyVips, Iptables};
use crate::kubelet::MARK_DROP;
use crate::names::PortHash;
use crate::plan::{Local, NodeFacts, Plan, PortPlan};
use crate::text::{Chain, Rule, Rules, Table};

/// The writer of Service ports, with the settings that all ports share.
pub(super) struct PortWriter<'p> {
    pub(super) node: &'p NodeFacts<'p>,
    pub(super) features: Iptables,
    pub(super) family: Family,
    masquerade_all: bool,
    options: Options,
    /// Whether rules of endpoints have comments.
    pub(super) remarks: bool,
    pub(super) probabilities: Probabilities,
}

/// The chains of a Service port. Not all of them are written for each.
pub(super) struct Chains {
    pub(super) cluster: Chain,
    pub(super) local: Chain,
    external: Chain,
    pub(super) firewall: Chain,
}

impl<'p> PortWriter<'p> {
    pub(super) fn new(
        plan: &'p Plan<'p>,
        settings: &ProxySettings,
        features: Iptables,
        options: Options,
    ) -> Self {
        let most = plan.ports.iter().map(|port| port.backends.all.len()).max();
        Self {
            node: &plan.node,
            features,
            family: plan.family,
            masquerade_all: settings.masquerade_all,
            options,
            remarks: plan.endpoints <= MAX_ENDPOINTS_WITH_REMARKS,
            probabilities: Probabilities::up_to(most.unwrap_or(0)),
        }
    }

    pub(super) fn write(&self, port: &PortPlan<'_>, tables: &mut Tables) {
        let hash = PortHash::new(&port.name, port.protocol.lower());
        let letters = hash.letters();
        let local = if self.features.external_chains { "KUBE-SVL-" } else { "KUBE-XLB-" };
        let chains = Chains {
            cluster: Chain::hashed("KUBE-SVC-", letters),
            local: Chain::hashed(local, letters),
            external: Chain::hashed("KUBE-EXT-", letters),
            firewall: Chain::hashed("KUBE-FW-", letters),
        };
        self.turn_away(port, &chains, &mut tables.filter);
        if !self.features.external_chains {
            return self.write_with_xlb(port, &chains, &hash, &mut tables.nat);
        }
        self.capture(port, &chains, tables);
        if port.backends.any {
            self.external(port, &chains, &mut tables.nat);
            self.endpoints(port, &chains, &hash, &mut tables.nat);
        }
    }

    /// Adds the port's destinations to the shared chains of the nat table.
    fn capture(&self, port: &PortPlan<'_>, chains: &Chains, tables: &mut Tables) {
        if port.serves_internal() || self.drops_later(port) {
            let target = if port.internal_local { chains.local } else { chains.cluster };
            portal(
                &mut tables.nat,
                SERVICES,
                port,
                port.cluster_ip,
                " cluster IP",
                target.as_str(),
            );
        }
        if !port.backends.any {
            return;
        }
        for ip in &port.external_ips {
            let target = chains.external.as_str();
            portal(&mut tables.nat, SERVICES, port, *ip, " external IP", target);
        }
        let fenced = !port.source_ranges.is_empty();
        for ip in &port.vips {
            let target = if fenced { chains.firewall } else { chains.external };
            portal(&mut tables.nat, SERVICES, port, *ip, " loadbalancer IP", target.as_str());
        }
        let Some(number) = self.node_port(port) else { return };
        if self.options.accounting && self.family == Family::V4 && self.node.localhost {
            let rule = tables.nat.add(NODE_PORTS).words("-d 127.0.0.0/8").protocol(port.protocol);
            let rule = rule.comment(&[&port.name]).destination_port(port.protocol, number);
            accounted(rule, self.options, "localhost_nps_accepted_pkts").jump(chains.external);
        }
        tables
            .nat
            .add(NODE_PORTS)
            .protocol(port.protocol)
            .comment(&[&port.name])
            .destination_port(port.protocol, number)
            .jump(chains.external);
    }

    /// Adds rules to the filter table: for destinations without an endpoint, source ranges, and the
    /// health check node port.
    fn turn_away(&self, port: &PortPlan<'_>, chains: &Chains, filter: &mut Table) {
        let (why, target) = match (port.backends.any, self.family) {
            (true, _) => (" has no local endpoints", "DROP"),
            (false, Family::V4) => {
                (" has no endpoints", "REJECT --reject-with icmp-port-unreachable")
            }
            (false, Family::V6) => {
                (" has no endpoints", "REJECT --reject-with icmp6-port-unreachable")
            }
        };
        if !(port.serves_internal() || self.drops_later(port)) {
            portal(filter, SERVICES, port, port.cluster_ip, why, target);
        }
        if !(port.serves_external() || self.drops_later(port)) {
            for ip in &port.external_ips {
                portal(filter, EXTERNAL_SERVICES, port, *ip, why, target);
            }
            if let Some(chain) = self.refuses_vips() {
                for ip in &port.vips {
                    portal(filter, chain, port, *ip, why, target);
                }
            }
            if let Some(number) = self.node_port(port) {
                filter
                    .add(EXTERNAL_SERVICES)
                    .protocol(port.protocol)
                    .comment(&[&port.name, why])
                    .words("-m addrtype --dst-type LOCAL")
                    .destination_port(port.protocol, number)
                    .end(target);
            }
        }
        if self.features.drops_in_filter && port.backends.any && !port.source_ranges.is_empty() {
            for ip in &port.vips {
                filter
                    .add(PROXY_FIREWALL)
                    .destination(*ip)
                    .protocol(port.protocol)
                    .comment(&[&port.name, " traffic not accepted by ", chains.firewall.as_str()])
                    .destination_port(port.protocol, port.port)
                    .end("DROP");
            }
        }
        if let Some(number) = port.health_check {
            health_check(filter, &port.name, number);
        }
    }

    /// Returns the chain that refuses packets to load-balancer addresses without an endpoint.
    fn refuses_vips(&self) -> Option<Chain> {
        match self.features.empty_vips {
            EmptyVips::RefusedAsExternal => Some(EXTERNAL_SERVICES),
            EmptyVips::RefusedAsClusterIps => Some(SERVICES),
            EmptyVips::Left | EmptyVips::Marked => None,
        }
    }

    /// Returns whether the port has endpoints, and traffic without an endpoint on this node is
    /// marked to be dropped.
    pub(super) fn drops_later(&self, port: &PortPlan<'_>) -> bool {
        !self.features.drops_in_filter && port.backends.any
    }

    /// Returns the NodePort, if rules are written for it.
    pub(super) fn node_port(&self, port: &PortPlan<'_>) -> Option<Port> {
        port.node_port
            .filter(|_| self.node.any_node_port || self.features.node_ports_without_address)
    }

    /// Writes the chains of addresses other than the cluster IP.
    fn external(&self, port: &PortPlan<'_>, chains: &Chains, nat: &mut Table) {
        if !port.is_external() {
            return;
        }
        let name = port.name.as_str();
        nat.chain(chains.external, |rules| {
            let to = " external destinations";
            if port.external_local {
                if let Some(rule) = self.pod_traffic(rules) {
                    rule.comment(&["pod traffic for ", name, to]).jump(chains.cluster);
                }
                let from_node = "-m addrtype --src-type LOCAL";
                let remark = ["masquerade LOCAL traffic for ", name, to];
                rules.add().comment(&remark).words(from_node).jump(MARK_MASQ);
                let remark = ["route LOCAL traffic for ", name, to];
                rules.add().comment(&remark).words(from_node).jump(chains.cluster);
            } else {
                rules.add().comment(&["masquerade traffic for ", name, to]).jump(MARK_MASQ);
            }
            if port.serves_external() || self.drops_later(port) {
                let policy = if port.external_local { chains.local } else { chains.cluster };
                rules.add().jump(policy);
            }
        });
        if port.vips.is_empty() || port.source_ranges.is_empty() {
            return;
        }
        let remark = [name, " loadbalancer IP"];
        // If the node holds the VIP, its own traffic to the VIP has the VIP as its source.
        let takes_node = port.source_ranges.iter().any(|range| range.contains(&self.node.address));
        let own = |ip: &std::net::IpAddr| takes_node.then_some(IpNet::from(*ip));
        nat.chain(chains.firewall, |rules| {
            if !self.features.drops_in_filter {
                for ip in &port.vips {
                    for range in port.source_ranges.iter().copied().chain(own(ip)) {
                        rules.add().source_range(&range).comment(&remark).jump(chains.external);
                    }
                    rules.add().comment(&remark).jump(MARK_DROP);
                }
                return;
            }
            let vips = port.vips.iter().filter_map(own);
            for range in port.source_ranges.iter().copied().chain(vips) {
                rules.add().source_range(&range).comment(&remark).jump(chains.external);
            }
            if self.features.remarks_fence {
                rules
                    .add()
                    .comment(&[
                        "other traffic to ",
                        name,
                        " will be dropped by KUBE-PROXY-FIREWALL",
                    ])
                    .finish();
            }
        });
    }

    /// Writes the rule that masquerades traffic from outside the cluster to a cluster IP, so that
    /// replies pass this node.
    pub(super) fn masquerade_from_outside(&self, port: &PortPlan<'_>, rules: &mut Rules<'_>) {
        let rule = match (self.masquerade_all, &self.node.local) {
            (true, _) => rules.add().destination(port.cluster_ip),
            (false, Local::Unknown) => return,
            (false, _) => self.unless_from_pods(port.cluster_ip, rules),
        };
        rule.protocol(port.protocol)
            .comment(&[&port.name, " cluster IP"])
            .destination_port(port.protocol, port.port)
            .jump(MARK_MASQ);
    }

    /// Begins a rule for traffic to an address from sources other than pods or, if pods are not
    /// recognised, from all sources.
    pub(super) fn unless_from_pods<'t>(
        &self,
        ip: std::net::IpAddr,
        rules: &'t mut Rules<'_>,
    ) -> Rule<'t> {
        match &self.node.local {
            Local::Range(range) => rules.add().display(" ! -s ", range).destination(ip),
            Local::Interface(name) => rules.add().destination(ip).display(" ! -i ", name),
            Local::InterfacePrefix(prefix) => {
                rules.add().destination(ip).display(" ! -i ", format_args!("{prefix}+"))
            }
            Local::Unknown => rules.add().destination(ip),
        }
    }

    /// Begins a rule for traffic of pods, if pods are recognised.
    pub(super) fn pod_traffic<'t>(&self, rules: &'t mut Rules<'_>) -> Option<Rule<'t>> {
        Some(match &self.node.local {
            Local::Range(range) => rules.add().source_range(range),
            Local::Interface(name) => rules.add().display(" -i ", name),
            Local::InterfacePrefix(prefix) => {
                rules.add().display(" -i ", format_args!("{prefix}+"))
            }
            Local::Unknown => return None,
        })
    }
}

/// Writes a rule for one address and the port of the Service.
pub(super) fn portal(
    table: &mut Table,
    chain: Chain,
    port: &PortPlan<'_>,
    ip: std::net::IpAddr,
    remark: &str,
    target: &str,
) {
    table
        .add(chain)
        .destination(ip)
        .protocol(port.protocol)
        .comment(&[&port.name, remark])
        .destination_port(port.protocol, port.port)
        .end(target);
}

fn health_check(filter: &mut Table, name: &str, number: Port) {
    let tcp = uturn_model::Protocol::Tcp;
    filter
        .add(NODE_PORTS)
        .protocol(tcp)
        .comment(&[name, " health check node port"])
        .destination_port(tcp, number)
        .end("ACCEPT");
}
