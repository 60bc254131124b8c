//! What one Service port adds to the tables.

use uturn_model::{Family, Port, ProxySettings};

use super::{
    EXTERNAL_SERVICES, MARK_MASQ, MOST_ENDPOINTS_WITH_REMARKS, NODE_PORTS, PROXY_FIREWALL,
    SERVICES, Tables, accounted,
};
use crate::Options;
use crate::names::PortHash;
use crate::plan::{Backend, Local, NodeFacts, Plan, PortPlan};
use crate::text::{Chain, Rule, Rules, Table};

/// What is the same for every port.
pub(super) struct PortWriter<'p> {
    node: &'p NodeFacts<'p>,
    family: Family,
    masquerade_all: bool,
    options: Options,
    /// Whether rules of endpoints say whose they are.
    remarks: bool,
    odds: Odds,
}

/// The chains of a Service port. Not all of them are written for each.
struct Chains {
    cluster: Chain,
    local: Chain,
    external: Chain,
    firewall: Chain,
}

impl<'p> PortWriter<'p> {
    pub(super) fn new(plan: &'p Plan<'p>, settings: &ProxySettings, options: Options) -> Self {
        let most = plan.ports.iter().map(|port| port.backends.all.len()).max();
        Self {
            node: &plan.node,
            family: plan.family,
            masquerade_all: settings.masquerade_all,
            options,
            remarks: plan.endpoints <= MOST_ENDPOINTS_WITH_REMARKS,
            odds: Odds::up_to(most.unwrap_or(0)),
        }
    }

    pub(super) fn write(&self, port: &PortPlan<'_>, tables: &mut Tables) {
        let hash = PortHash::new(&port.name, port.protocol.lower());
        let letters = hash.letters();
        let chains = Chains {
            cluster: Chain::hashed("KUBE-SVC-", letters),
            local: Chain::hashed("KUBE-SVL-", letters),
            external: Chain::hashed("KUBE-EXT-", letters),
            firewall: Chain::hashed("KUBE-FW-", letters),
        };
        self.capture(port, &chains, tables);
        self.turn_away(port, &chains, &mut tables.filter);
        if port.backends.any {
            self.external(port, &chains, &mut tables.nat);
            self.endpoints(port, &chains, &hash, &mut tables.nat);
        }
    }

    /// The nat table's shared chains: which destinations are this port's.
    fn capture(&self, port: &PortPlan<'_>, chains: &Chains, tables: &mut Tables) {
        if port.serves_internal() {
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
        let Some(number) = port.node_port else { return };
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

    /// The filter table: destinations without an endpoint, sources without permission,
    /// and the one port that answers for the node itself.
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
        if !port.serves_internal() {
            portal(filter, SERVICES, port, port.cluster_ip, why, target);
        }
        if !port.serves_external() {
            for ip in port.external_ips.iter().chain(&port.vips) {
                portal(filter, EXTERNAL_SERVICES, port, *ip, why, target);
            }
            if let Some(number) = port.node_port {
                filter
                    .add(EXTERNAL_SERVICES)
                    .protocol(port.protocol)
                    .comment(&[&port.name, why])
                    .words("-m addrtype --dst-type LOCAL")
                    .destination_port(port.protocol, number)
                    .end(target);
            }
        }
        if port.backends.any && !port.source_ranges.is_empty() {
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

    /// The chains that everything but the cluster IP leads to.
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
            if port.serves_external() {
                let policy = if port.external_local { chains.local } else { chains.cluster };
                rules.add().jump(policy);
            }
        });
        if port.vips.is_empty() || port.source_ranges.is_empty() {
            return;
        }
        nat.chain(chains.firewall, |rules| {
            let remark = [name, " loadbalancer IP"];
            for range in &port.source_ranges {
                rules.add().source_range(range).comment(&remark).jump(chains.external);
            }
            // The node itself, where it talks to a VIP that it holds: the VIP is the source.
            if port.source_ranges.iter().any(|range| range.contains(&self.node.address)) {
                for ip in &port.vips {
                    let range = (*ip).into();
                    rules.add().source_range(&range).comment(&remark).jump(chains.external);
                }
            }
            rules
                .add()
                .comment(&["other traffic to ", name, " will be dropped by KUBE-PROXY-FIREWALL"])
                .finish();
        });
    }

    /// The chains that choose an endpoint, and one chain for each endpoint.
    fn endpoints(&self, port: &PortPlan<'_>, chains: &Chains, hash: &PortHash, nat: &mut Table) {
        let doors: Vec<(&Backend, Chain)> = port
            .backends
            .all
            .iter()
            .map(|one| (one, Chain::hashed("KUBE-SEP-", hash.endpoint(&one.text))))
            .collect();
        let internal = if port.internal_local { chains.local } else { chains.cluster };
        for (chain, takes) in [
            (chains.cluster, Backend::serves_cluster as fn(&Backend) -> bool),
            (chains.local, Backend::serves_local),
        ] {
            let chosen = doors.iter().filter(|(one, _)| takes(one));
            let count = chosen.clone().count();
            if count == 0 {
                continue;
            }
            nat.chain(chain, |rules| {
                if chain == internal {
                    self.masquerade_strangers(port, rules);
                }
                for (one, door) in chosen.clone() {
                    let Some(seconds) = port.affinity_seconds else { break };
                    self.choice(rules, port, one)
                        .display(" -m recent --rcheck --seconds ", seconds)
                        .words("--reap")
                        .display(" --name ", door.as_str())
                        .words(self.by_source())
                        .jump(*door);
                }
                for (place, (one, door)) in chosen.enumerate() {
                    let rule = self.choice(rules, port, one);
                    match self.odds.one_in(count - place) {
                        Some(odds) => rule.words(odds).jump(*door),
                        None => rule.jump(*door),
                    }
                }
            });
        }
        for (one, door) in &doors {
            nat.chain(*door, |rules| self.endpoint(port, one, *door, rules));
        }
    }

    /// Who comes to the cluster IP from outside must get its answer through this node.
    fn masquerade_strangers(&self, port: &PortPlan<'_>, rules: &mut Rules<'_>) {
        let rule = match (self.masquerade_all, &self.node.local) {
            (true, _) => rules.add().destination(port.cluster_ip),
            (false, Local::Range(range)) => {
                rules.add().words("!").source_range(range).destination(port.cluster_ip)
            }
            (false, Local::Interface(name)) => {
                rules.add().destination(port.cluster_ip).display(" ! -i ", name)
            }
            (false, Local::InterfacePrefix(prefix)) => rules
                .add()
                .destination(port.cluster_ip)
                .display(" ! -i ", format_args!("{prefix}+")),
            (false, Local::Unknown) => return,
        };
        rule.protocol(port.protocol)
            .comment(&[&port.name, " cluster IP"])
            .destination_port(port.protocol, port.port)
            .jump(MARK_MASQ);
    }

    /// Begins a rule for traffic of pods, if that can be told.
    fn pod_traffic<'t>(&self, rules: &'t mut Rules<'_>) -> Option<Rule<'t>> {
        Some(match &self.node.local {
            Local::Range(range) => rules.add().source_range(range),
            Local::Interface(name) => rules.add().display(" -i ", name),
            Local::InterfacePrefix(prefix) => {
                rules.add().display(" -i ", format_args!("{prefix}+"))
            }
            Local::Unknown => return None,
        })
    }

    /// Begins a rule that leads to an endpoint.
    fn choice<'t>(&self, rules: &'t mut Rules<'_>, port: &PortPlan<'_>, one: &Backend) -> Rule<'t> {
        match self.remarks {
            true => rules.add().comment(&[&port.name, " -> ", &one.text]),
            false => rules.add(),
        }
    }

    /// The chain of one endpoint.
    fn endpoint(&self, port: &PortPlan<'_>, one: &Backend, door: Chain, rules: &mut Rules<'_>) {
        let rule = rules.add().source(one.address());
        self.remark(rule, port).jump(MARK_MASQ);
        let mut rule = self.remark(rules.add().protocol(port.protocol), port);
        if port.affinity_seconds.is_some() {
            rule = rule.display(" -m recent --set --name ", door.as_str()).words(self.by_source());
        }
        rule.with_protocol(port.protocol)
            .words("-j DNAT --to-destination")
            .words(&one.text)
            .finish();
    }

    fn remark<'t>(&self, rule: Rule<'t>, port: &PortPlan<'_>) -> Rule<'t> {
        if self.remarks { rule.comment(&[&port.name]) } else { rule }
    }

    /// How `recent` tells clients apart.
    fn by_source(&self) -> &'static str {
        match self.family {
            Family::V4 => "--mask 255.255.255.255 --rsource",
            Family::V6 => "--mask ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff --rsource",
        }
    }
}

/// A rule for one address and the port of the Service.
fn portal(
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

/// The words for one chance in so many, as the kernel keeps them.
struct Odds(Vec<String>);

impl Odds {
    fn up_to(most: usize) -> Self {
        Self((0..=most).map(words_for).collect())
    }

    /// None where the packet has no other way to go.
    fn one_in(&self, count: usize) -> Option<&str> {
        (count > 1).then(|| self.0[count].as_str())
    }
}

/// kube-proxy says ten decimals, the kernel keeps 31 bits, `iptables-save` prints eleven.
fn words_for(count: usize) -> String {
    let said = (1e10 / count.max(1) as f64).round() / 1e10;
    let whole = f64::from(1u32 << 31);
    let kept = (said * whole).round() / whole;
    format!("-m statistic --mode random --probability {kept:.11}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odds_as_the_kernel_rounds_them() {
        let odds = Odds::up_to(4);
        let said = |count| odds.one_in(count).unwrap().rsplit(' ').next().unwrap();
        assert_eq!(odds.one_in(1), None);
        assert_eq!(said(2), "0.50000000000");
        assert_eq!(said(3), "0.33333333349");
        assert_eq!(said(4), "0.25000000000");
    }
}
