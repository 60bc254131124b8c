//! The rules that one Service port adds to the nat table in versions of kube-proxy before v1.24:
//! the port's own chain (KUBE-SVC) masquerades traffic from outside, and KUBE-XLB keeps traffic to
//! external addresses under policy Local on this node.

use std::net::IpAddr;

use super::endpoints::{EndpointChain, endpoint_chains};
use super::port::{Chains, PortWriter, portal};
use super::{MARK_MASQ, NODE_PORTS, SERVICES};
use crate::features::EmptyVips;
use crate::kubelet::MARK_DROP;
use crate::names::PortHash;
use crate::plan::PortPlan;
use crate::text::{Chain, Rules, Table};

impl PortWriter<'_> {
    /// Writes the chains of a port and the rules that jump to them.
    pub(super) fn write_with_xlb(
        &self,
        port: &PortPlan<'_>,
        chains: &Chains,
        hash: &PortHash,
        nat: &mut Table,
    ) {
        if !port.backends.any {
            if port.external_local {
                nat.chain(chains.local, |_| {});
            }
            if self.features.empty_vips == EmptyVips::Marked {
                self.drop_vips(port, chains, nat);
            }
            return;
        }
        let outside = if port.external_local { chains.local } else { chains.cluster };
        let cluster = chains.cluster.as_str();
        portal(nat, SERVICES, port, port.cluster_ip, " cluster IP", cluster);
        for ip in &port.external_ips {
            self.take_external_ip(port, *ip, chains, nat);
        }
        for ip in &port.vips {
            portal(nat, SERVICES, port, *ip, " loadbalancer IP", chains.firewall.as_str());
        }
        if !port.vips.is_empty() {
            nat.chain(chains.firewall, |rules| self.fence(port, outside, rules));
        }
        self.take_node_port(port, outside, nat);
        let endpoint_chains = endpoint_chains(port, hash);
        self.open(port, &endpoint_chains, nat);
        let all: Vec<&EndpointChain<'_>> =
            endpoint_chains.iter().filter(|(backend, _)| backend.serves_cluster()).collect();
        nat.chain(chains.cluster, |rules| {
            self.masquerade_from_outside(port, rules);
            self.masquerade_outsiders(port, rules);
            self.choose(port, &all, rules);
        });
        if port.external_local {
            let here: Vec<_> =
                endpoint_chains.iter().filter(|(backend, _)| backend.serves_local()).collect();
            nat.chain(chains.local, |rules| self.stay_here(port, chains.cluster, &here, rules));
        }
    }

    /// Adds the rules that lead to the endpoints of an external IP.
    fn take_external_ip(&self, port: &PortPlan<'_>, ip: IpAddr, chains: &Chains, nat: &mut Table) {
        let keeps_source = port.external_local && self.features.external_ips_heed_policy;
        let target = if keeps_source { chains.local } else { chains.cluster };
        let remark = " external IP";
        if self.features.external_ips_for_all {
            return portal(nat, SERVICES, port, ip, remark, target.as_str());
        }
        if !keeps_source {
            portal(nat, SERVICES, port, ip, remark, MARK_MASQ.as_str());
        }
        for from_outside in [
            "-m physdev ! --physdev-is-in -m addrtype ! --src-type LOCAL",
            "-m addrtype --dst-type LOCAL",
        ] {
            let rule = nat.add(SERVICES).destination(ip).protocol(port.protocol);
            rule.comment(&[&port.name, remark])
                .destination_port(port.protocol, port.port)
                .words(from_outside)
                .jump(target);
        }
    }

    /// Writes the rules that drop traffic to load-balancer addresses of a port without endpoints.
    fn drop_vips(&self, port: &PortPlan<'_>, chains: &Chains, nat: &mut Table) {
        for ip in &port.vips {
            portal(nat, SERVICES, port, *ip, " loadbalancer IP", chains.firewall.as_str());
        }
        if !port.vips.is_empty() {
            nat.chain(chains.firewall, |rules| {
                let remark = [&port.name, " loadbalancer IP"];
                if !port.external_local {
                    rules.add().comment(&remark).jump(MARK_MASQ);
                }
                rules.add().comment(&remark).jump(MARK_DROP);
            });
        }
    }

    /// Writes the chain of source ranges, which all load-balancer addresses share.
    fn fence(&self, port: &PortPlan<'_>, outside: Chain, rules: &mut Rules<'_>) {
        let remark = [&port.name, " loadbalancer IP"];
        let takes_node = port.source_ranges.iter().any(|range| range.contains(&self.node.address));
        for ip in &port.vips {
            if !port.external_local {
                rules.add().comment(&remark).jump(MARK_MASQ);
            }
            if port.source_ranges.is_empty() {
                rules.add().comment(&remark).jump(outside);
            }
            // If the node holds the VIP, its own traffic to the VIP has the VIP as its source.
            let own = takes_node.then_some((*ip).into());
            for range in port.source_ranges.iter().copied().chain(own) {
                rules.add().source_range(&range).comment(&remark).jump(outside);
            }
            rules.add().comment(&remark).jump(MARK_DROP);
        }
    }

    fn take_node_port(&self, port: &PortPlan<'_>, outside: Chain, nat: &mut Table) {
        let Some(number) = self.node_port(port) else { return };
        if port.external_local && self.features.masquerades_localhost {
            let localhost = match port.cluster_ip {
                IpAddr::V4(_) => "-s 127.0.0.0/8",
                IpAddr::V6(_) => "-s ::1/128",
            };
            let rule = nat.add(NODE_PORTS).words(localhost).protocol(port.protocol);
            let rule = rule.comment(&[&port.name]).destination_port(port.protocol, number);
            rule.jump(MARK_MASQ);
        }
        let rule = nat.add(NODE_PORTS).protocol(port.protocol).comment(&[&port.name]);
        rule.destination_port(port.protocol, number).jump(outside);
    }

    /// Writes the rules that masquerade traffic from outside, so that replies pass this node.
    fn masquerade_outsiders(&self, port: &PortPlan<'_>, rules: &mut Rules<'_>) {
        if port.external_local {
            return;
        }
        let masqueraded_here = self.features.external_ips_for_all;
        for ip in port.external_ips.iter().filter(|_| masqueraded_here) {
            self.unless_from_pods(*ip, rules)
                .protocol(port.protocol)
                .comment(&[&port.name, " external IP"])
                .destination_port(port.protocol, port.port)
                .jump(MARK_MASQ);
        }
        if let Some(number) = self.node_port(port) {
            let rule = rules.add().protocol(port.protocol).comment(&[&port.name]);
            rule.destination_port(port.protocol, number).jump(MARK_MASQ);
        }
    }

    /// Writes the chain of policy Local. Pods may use all endpoints, and in newer versions so may
    /// the node itself.
    fn stay_here(
        &self,
        port: &PortPlan<'_>,
        cluster: Chain,
        here: &[&EndpointChain<'_>],
        rules: &mut Rules<'_>,
    ) {
        if let Some(rule) = self.pod_traffic(rules) {
            rule.comment(&["Redirect pods trying to reach external loadbalancer VIP to clusterIP"])
                .jump(cluster);
        }
        for (verb, goal, target) in
            [("masquerade", "", MARK_MASQ), ("route", " to service chain", cluster)]
        {
            if !self.features.node_reaches_all {
                break;
            }
            rules
                .add()
                .comment(&[verb, " LOCAL traffic for ", &port.name, " LB IP", goal])
                .words("-m addrtype --src-type LOCAL")
                .jump(target);
        }
        if here.is_empty() {
            rules.add().comment(&[&port.name, " has no local endpoints"]).jump(MARK_DROP);
        } else if self.features.numbers_local_endpoints {
            self.choose_by_number(port, here, rules);
        } else {
            self.choose(port, here, rules);
        }
    }

    fn choose_by_number(
        &self,
        port: &PortPlan<'_>,
        here: &[&EndpointChain<'_>],
        rules: &mut Rules<'_>,
    ) {
        for (_, chain) in here {
            let Some(seconds) = port.affinity_seconds else { break };
            let rule = rules.add().comment(&[&port.name]);
            self.remembered(rule, seconds, *chain).jump(*chain);
        }
        for (place, (_, chain)) in here.iter().enumerate() {
            let number = place.to_string();
            let rule = rules.add().comment(&["Balancing rule ", &number, " for ", &port.name]);
            match self.probabilities.one_in(here.len() - place) {
                Some(probability) => rule.words(probability).jump(*chain),
                None => rule.jump(*chain),
            }
        }
    }
}
