//! The iptables rules of IPVS mode. Their number does not depend on the number of Services.

use std::collections::BTreeSet;

use uturn_model::{Family, Protocol, ProxySettings};

use super::Fence;
use super::sets::{Set, Sets};
use crate::features::Ipvs;
use crate::kubelet::{self, FIREWALL, MARK_DROP};
use crate::plan::{Local, Plan};
use crate::text::{Chain, Mark, Rule, Table, accept_replies, accept_replies_of_pods};

const SERVICES: Chain = Chain::named("KUBE-SERVICES");
const POSTROUTING: Chain = Chain::named("KUBE-POSTROUTING");
const NODE_PORT: Chain = Chain::named("KUBE-NODE-PORT");
const LOAD_BALANCER: Chain = Chain::named("KUBE-LOAD-BALANCER");
const MARK_MASQ: Chain = Chain::named("KUBE-MARK-MASQ");
const FORWARD: Chain = Chain::named("KUBE-FORWARD");
const PROXY_FIREWALL: Chain = Chain::named("KUBE-PROXY-FIREWALL");
const SOURCE_RANGES: Chain = Chain::named("KUBE-SOURCE-RANGES-FIREWALL");
const IPVS_FILTER: Chain = Chain::named("KUBE-IPVS-FILTER");
const IPVS_OUT_FILTER: Chain = Chain::named("KUBE-IPVS-OUT-FILTER");

/// Writes all rules of one family.
pub(super) fn write(
    plan: &Plan<'_>,
    settings: &ProxySettings,
    features: Ipvs,
    sets: &Sets,
    fenced_off: &BTreeSet<Fence>,
) -> String {
    let mut writer = Writer {
        family: plan.family,
        mark: settings.masquerade_mark(),
        features,
        sets,
        nat: Table::new("nat", &nat_chains(features)),
        filter: Table::new("filter", &filter_chains(features)),
    };
    writer.services(&plan.node.local, settings.masquerade_all);
    writer.load_balancers();
    writer.node_ports();
    writer.masquerade();
    writer.forward(&plan.node.local);
    writer.guard_bound();
    if features.guards_output {
        fenced_off.iter().for_each(|fence| writer.fence_off(*fence));
    }
    writer.print()
}

fn nat_chains(features: Ipvs) -> Vec<Chain> {
    let mut chains = vec![SERVICES, POSTROUTING, NODE_PORT, LOAD_BALANCER, MARK_MASQ];
    if !features.drops_in_filter {
        chains.extend([FIREWALL, MARK_DROP]);
    }
    chains
}

fn filter_chains(features: Ipvs) -> Vec<Chain> {
    let mut chains = vec![FORWARD, NODE_PORT];
    if features.drops_in_filter {
        chains.extend([PROXY_FIREWALL, SOURCE_RANGES]);
    } else {
        chains.push(FIREWALL);
    }
    if features.guards_bound {
        chains.push(IPVS_FILTER);
    }
    if features.guards_output {
        chains.push(IPVS_OUT_FILTER);
    }
    chains
}

struct Writer<'s> {
    family: Family,
    mark: u32,
    features: Ipvs,
    sets: &'s Sets,
    nat: Table,
    filter: Table,
}

impl Writer<'_> {
    /// Writes the rules that select traffic to Services, mark it for masquerading, and accept it.
    fn services(&mut self, local: &Local<'_>, masquerade_all: bool) {
        if self.features.guards_bound {
            let localhost = match self.family {
                Family::V4 => "-s 127.0.0.0/8",
                Family::V6 => "-s ::1/128",
            };
            self.nat.add(SERVICES).words(localhost).end("RETURN");
        }
        self.nat_unless_empty(SERVICES, Set::LoadBalancer, LOAD_BALANCER.as_str());
        if !self.sets.is_empty(Set::ClusterIp) {
            self.masquerade_from_outside(local, masquerade_all);
        }
        self.nat_unless_empty(SERVICES, Set::ExternalIp, MARK_MASQ.as_str());
        for set in [Set::ExternalIp, Set::ExternalIpLocal] {
            if self.sets.is_empty(set) {
                continue;
            }
            for from_outside in [
                "-m physdev ! --physdev-is-in -m addrtype ! --src-type LOCAL",
                "-m addrtype --dst-type LOCAL",
            ] {
                looked_up(self.sets, set, self.nat.add(SERVICES)).words(from_outside).end("ACCEPT");
            }
        }
        let rule = self.nat.add(SERVICES);
        if self.features.node_ports_are_local {
            rule.words("-m addrtype --dst-type LOCAL").jump(NODE_PORT);
        } else {
            rule.jump(NODE_PORT);
        }
        for set in [Set::ClusterIp, Set::LoadBalancer] {
            if self.features.accepts_served && !self.sets.is_empty(set) {
                found(self.sets, set, set.directions(), self.nat.add(SERVICES)).end("ACCEPT");
            }
        }
    }

    /// Writes the rule that masquerades calls to a cluster IP from outside, so that answers return
    /// through this node.
    fn masquerade_from_outside(&mut self, local: &Local<'_>, masquerade_all: bool) {
        if matches!(local, Local::Unknown) && !masquerade_all && !self.features.masquerades_own {
            return;
        }
        let rule = self.nat.add(SERVICES);
        let (rule, directions) = match local {
            _ if masquerade_all => (rule, "dst,dst"),
            Local::Range(range) => (rule.display(" ! -s ", range), "dst,dst"),
            Local::Interface(name) => (rule.display(" ! -i ", name), "dst,dst"),
            Local::InterfacePrefix(prefix) => {
                (rule.display(" ! -i ", format_args!("{prefix}+")), "dst,dst")
            }
            // The node's own traffic has the cluster IP as its source, since that is bound.
            Local::Unknown => (rule, "src,dst"),
        };
        let rule = rule.comment(&[Set::ClusterIp.remark()]);
        found(self.sets, Set::ClusterIp, directions, rule).jump(MARK_MASQ);
    }

    /// Writes the rules for load-balancer addresses: source ranges, and traffic that keeps its
    /// source.
    fn load_balancers(&mut self) {
        let ranges = [Set::LoadBalancerSourceCidr, Set::LoadBalancerSourceIp];
        if self.features.drops_in_filter {
            self.filter_unless_empty(PROXY_FIREWALL, Set::LoadBalancerFw, SOURCE_RANGES.as_str());
            for set in ranges {
                self.filter_unless_empty(SOURCE_RANGES, set, "RETURN");
            }
            self.filter.add(SOURCE_RANGES).end("DROP");
        } else {
            self.nat_unless_empty(LOAD_BALANCER, Set::LoadBalancerFw, FIREWALL.as_str());
            for set in ranges {
                self.nat_unless_empty(FIREWALL, set, "RETURN");
            }
            self.nat.add(FIREWALL).jump(MARK_DROP);
            kubelet::drop_marked(&mut self.nat, &mut self.filter, self.family);
        }
        self.nat_unless_empty(LOAD_BALANCER, Set::LoadBalancerLocal, "RETURN");
        self.nat.add(LOAD_BALANCER).jump(MARK_MASQ);
    }

    /// Writes the rules for NodePorts, and for the health check node port.
    fn node_ports(&mut self) {
        for protocol in [Protocol::Tcp, Protocol::Udp, Protocol::Sctp] {
            let keep = (Set::node_ports(protocol, true), "RETURN");
            let change = (Set::node_ports(protocol, false), MARK_MASQ.as_str());
            let turned = protocol == Protocol::Sctp && !self.features.local_sctp_keeps_source;
            for (set, target) in if turned { [change, keep] } else { [keep, change] } {
                if !self.sets.is_empty(set) {
                    let rule = self.nat.add(NODE_PORT).protocol(protocol);
                    looked_up(self.sets, set, rule).end(target);
                }
            }
        }
        looked_up(self.sets, Set::HealthCheckNodePort, self.filter.add(NODE_PORT)).end("ACCEPT");
    }

    /// Writes the rules that mark packets, and masquerade marked packets when they leave.
    fn masquerade(&mut self) {
        let mark = self.mark;
        self.nat_unless_empty(POSTROUTING, Set::LoopBack, "MASQUERADE");
        let nat = &mut self.nat;
        nat.add(POSTROUTING).words("-m mark !").display(" --mark ", Mark(mark, mark)).end("RETURN");
        nat.add(POSTROUTING).words("-j MARK").display(" --set-xmark ", Mark(mark, 0)).finish();
        nat.add(POSTROUTING)
            .comment(&["kubernetes service traffic requiring SNAT"])
            .end("MASQUERADE --random-fully");
        nat.add(MARK_MASQ).words("-j MARK").display(" --set-xmark ", Mark(mark, mark)).finish();
    }

    /// Writes the rules that accept Service traffic even if the node's FORWARD policy is DROP.
    fn forward(&mut self, local: &Local<'_>) {
        if !self.features.accepts_forwarded {
            return;
        }
        self.filter
            .add(FORWARD)
            .comment(&["kubernetes forwarding rules"])
            .display(" -m mark --mark ", Mark(self.mark, self.mark))
            .end("ACCEPT");
        match local {
            _ if self.features.accepts_all_replies => {
                accept_replies(&mut self.filter, FORWARD, self.features.one_reply_rule);
            }
            Local::Range(range) => accept_replies_of_pods(&mut self.filter, FORWARD, range),
            _ => {}
        }
    }

    /// Writes the rules that reject traffic to the node's own listening ports at bound addresses.
    fn guard_bound(&mut self) {
        if !self.features.guards_bound {
            return;
        }
        let mut known = vec![Set::LoadBalancer, Set::ClusterIp, Set::ExternalIp];
        if self.features.guard_knows_local {
            known.push(Set::ExternalIpLocal);
        }
        if self.features.guard_knows_health_checks {
            known.push(Set::HealthCheckNodePort);
        }
        for set in known {
            found(self.sets, set, set.directions(), self.filter.add(IPVS_FILTER)).end("RETURN");
        }
        let rule = self.filter.add(IPVS_FILTER).words("-m conntrack --ctstate NEW");
        found(self.sets, Set::IpvsIps, "dst", rule).end(match self.family {
            Family::V4 => "REJECT --reject-with icmp-port-unreachable",
            Family::V6 => "REJECT --reject-with icmp6-port-unreachable",
        });
    }

    /// Writes the rule that drops the node's own traffic to an address whose source ranges do not
    /// contain the node. Such packets have the address itself as their source.
    fn fence_off(&mut self, (ip, protocol, port): Fence) {
        let number = match protocol {
            Protocol::Tcp => 6,
            Protocol::Udp => 17,
            Protocol::Sctp => 132,
        };
        let rule = self.filter.add(IPVS_OUT_FILTER).source_range(&ip.into());
        rule.display(" -m ipvs --vproto ", number)
            .display(" --vaddr ", ip)
            .display(" --vport ", port)
            .end("DROP");
    }

    fn nat_unless_empty(&mut self, chain: Chain, set: Set, target: &str) {
        if !self.sets.is_empty(set) {
            looked_up(self.sets, set, self.nat.add(chain)).end(target);
        }
    }

    fn filter_unless_empty(&mut self, chain: Chain, set: Set, target: &str) {
        if !self.sets.is_empty(set) {
            looked_up(self.sets, set, self.filter.add(chain)).end(target);
        }
    }

    fn print(&self) -> String {
        let mut out = String::new();
        // kube-proxy inserts each jump before the existing ones, so the last is first.
        let mut filter = String::new();
        for (wanted, jumps) in [
            (!self.features.drops_in_filter, kubelet::INPUT_JUMP),
            (self.features.guards_bound, INPUT_GUARD),
            (self.features.drops_in_filter, INPUT_FIREWALL),
            (true, INPUT_HEALTH),
            (self.features.drops_in_filter, FORWARD_FIREWALL),
            (true, FORWARD_RULES),
            (!self.features.drops_in_filter, kubelet::OUTPUT_JUMP),
            (self.features.guards_output, OUTPUT_GUARD),
        ] {
            if wanted {
                filter.push_str(jumps);
            }
        }
        self.filter.print(&["INPUT", "FORWARD", "OUTPUT"], &filter, &mut out);
        self.nat.print(&["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"], NAT_JUMPS, &mut out);
        out
    }
}

/// Adds a match for a set to a rule, and the set's comment.
fn looked_up<'t>(sets: &Sets, set: Set, rule: Rule<'t>) -> Rule<'t> {
    found(sets, set, set.directions(), rule.comment(&[set.remark()]))
}

/// Adds a match for a set with these parts of a packet.
fn found<'t>(sets: &Sets, set: Set, directions: &str, rule: Rule<'t>) -> Rule<'t> {
    rule.display(" -m set --match-set ", sets.name(set)).words(directions)
}

const INPUT_GUARD: &str =
    "-A INPUT -m comment --comment \"kubernetes ipvs access filter\" -j KUBE-IPVS-FILTER\n";
const INPUT_FIREWALL: &str =
    "-A INPUT -m comment --comment \"kube-proxy firewall rules\" -j KUBE-PROXY-FIREWALL\n";
const INPUT_HEALTH: &str =
    "-A INPUT -m comment --comment \"kubernetes health check rules\" -j KUBE-NODE-PORT\n";
const FORWARD_FIREWALL: &str =
    "-A FORWARD -m comment --comment \"kube-proxy firewall rules\" -j KUBE-PROXY-FIREWALL\n";
const FORWARD_RULES: &str =
    "-A FORWARD -m comment --comment \"kubernetes forwarding rules\" -j KUBE-FORWARD\n";
const OUTPUT_GUARD: &str =
    "-A OUTPUT -m comment --comment \"kubernetes ipvs access filter\" -j KUBE-IPVS-OUT-FILTER\n";

const NAT_JUMPS: &str = "\
-A PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES
-A OUTPUT -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment \"kubernetes postrouting rules\" -j KUBE-POSTROUTING
";
