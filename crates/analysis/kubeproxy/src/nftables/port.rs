//! The rules and elements that one Service port adds to the table.

use std::net::IpAddr;

use ipnet::IpNet;

use super::names::PortNames;
use super::ranges::Ranges;
use super::{Sets, Style, begin, end, push, push_number, rule};
use crate::plan::{Backend, Plan, PortPlan};

/// The writer of a plan's ports, one after the other.
pub(super) struct PortWriter<'p> {
    style: &'p Style<'p>,
    node_address: IpAddr,
    words: Words,
    sets: Sets,
    affinity: String,
    chains: String,
}

/// The parts that many rules share.
struct Words {
    ip: &'static str,
    /// The statement that marks a packet for masquerading.
    masquerade: String,
    /// The match for sources other than pods, with a leading blank. `None` if pods are not
    /// recognised.
    sources_besides_pods: Option<String>,
    /// The match for sources that are pods. `None` if pods are not recognised.
    pods: Option<String>,
}

/// An endpoint, and the suffix of its chain `endpoint-…`.
type EndpointChain<'b> = (&'b Backend, String);

impl<'p> PortWriter<'p> {
    pub(super) fn new(style: &'p Style<'p>, plan: &Plan<'_>) -> Self {
        let words = Words {
            ip: style.ip(),
            masquerade: if style.generation.spares_chains() {
                style.mark()
            } else {
                "jump mark-for-masquerade".to_owned()
            },
            sources_besides_pods: style.sources_besides_pods(),
            pods: style.pods(),
        };
        Self {
            style,
            node_address: plan.node.address,
            words,
            sets: Sets::default(),
            affinity: String::new(),
            chains: String::with_capacity(size(style, plan)),
        }
    }

    /// Returns the sets; then, as text, the affinity sets and the chains.
    pub(super) fn finish(self) -> (Sets, String, String) {
        (self.sets, self.affinity, self.chains)
    }

    pub(super) fn write(&mut self, port: &PortPlan<'_>) {
        let names = PortNames::new(port);
        let fenced = !port.vips.is_empty() && !port.source_ranges.is_empty();
        self.capture(port, &names, fenced);
        self.turn_away(port);
        if port.backends.any {
            if self.style.generation.has_hairpin_set() {
                self.hairpins(port);
            }
            if port.affinity_seconds.is_some() || !self.style.generation.spares_chains() {
                self.add_endpoint_chains(port, &names);
            } else {
                self.straight(port, &names);
            }
            if port.is_external() {
                self.external(port, &names.base);
            }
        }
        if fenced {
            self.fence(port, &names.base);
        }
    }

    /// Adds the destinations of this port.
    fn capture(&mut self, port: &PortPlan<'_>, names: &PortNames, fenced: bool) {
        let to = (port.protocol, port.port);
        let (base, sets) = (names.base.as_str(), &mut self.sets);
        sets.cluster_ips.add_address(port.cluster_ip);
        if port.serves_internal() {
            let kind = if port.internal_local { "goto local-" } else { "goto service-" };
            sets.services.add_service(port.cluster_ip, to, "", &[kind, base]);
        }
        if port.backends.any {
            for ip in port.external_ips.iter().chain(&port.vips) {
                sets.services.add_service(*ip, to, "", &["goto external-", base]);
            }
            if let Some(number) = port.node_port {
                sets.node_ports.add_port((port.protocol, number), "", &["goto external-", base]);
            }
        }
        if fenced {
            let whose = if self.style.generation.remarks_firewall() {
                remark(&port.name)
            } else {
                String::new()
            };
            for ip in &port.vips {
                sets.firewalled.add_service(*ip, to, &whose, &["goto firewall-", base]);
            }
        }
    }

    /// Adds destinations without an endpoint.
    fn turn_away(&mut self, port: &PortPlan<'_>) {
        let to = (port.protocol, port.port);
        let verdict = if port.backends.any { "drop" } else { "goto reject-chain" };
        let remark = remark(&port.name);
        if !port.serves_internal() {
            self.sets.unserved.add_service(port.cluster_ip, to, &remark, &[verdict]);
        }
        if port.serves_external() {
            return;
        }
        for ip in port.external_ips.iter().chain(&port.vips) {
            self.sets.unserved.add_service(*ip, to, &remark, &[verdict]);
        }
        if let Some(number) = port.node_port {
            let to = (port.protocol, number);
            self.sets.unserved_node_ports.add_port(to, &remark, &[verdict]);
        }
    }

    /// Adds the endpoints on this node for hairpin connections.
    fn hairpins(&mut self, port: &PortPlan<'_>) {
        for backend in &port.backends.all {
            if port.backends.here.contains(&(backend.ip, backend.port)) {
                self.sets.hairpins.add_hairpin(backend.ip, (port.protocol, backend.port));
            }
        }
    }

    /// Writes a chain for each endpoint, and the chains of the port that choose one of these.
    fn add_endpoint_chains(&mut self, port: &PortPlan<'_>, names: &PortNames) {
        let mut room = String::new();
        let chains_of_endpoints: Vec<EndpointChain<'_>> = port
            .backends
            .all
            .iter()
            .map(|backend| (backend, names.endpoint(backend, &mut room)))
            .collect();
        for (backend, suffix) in &chains_of_endpoints {
            self.endpoint_chain(port, backend, suffix);
        }
        for (kind, takes, is_internal) in policies(port) {
            let chosen = chains_of_endpoints.iter().filter(|(backend, _)| takes(backend));
            let count = chosen.clone().count();
            if count == 0 {
                continue;
            }
            begin(&mut self.chains, kind, &names.base);
            if is_internal {
                self.masquerade_from_outside(port);
            }
            if port.affinity_seconds.is_some() {
                for (_, suffix) in chosen.clone() {
                    let (ip, out) = (self.words.ip, &mut self.chains);
                    rule(out, &[ip, " saddr @affinity-", suffix, " goto endpoint-", suffix]);
                }
            }
            let out = &mut self.chains;
            push(out, &["\t\tnumgen random mod ", &count.to_string(), " vmap { "]);
            for (place, (_, suffix)) in chosen.enumerate() {
                let comma = if place == 0 { "" } else { ", " };
                out.push_str(comma);
                push_number(out, place);
                push(out, &[" : goto endpoint-", suffix]);
            }
            out.push_str(" }\n");
            end(out);
        }
    }

    /// Writes the chain of one endpoint.
    fn endpoint_chain(&mut self, port: &PortPlan<'_>, backend: &Backend, suffix: &str) {
        let (ip, out) = (self.words.ip, &mut self.chains);
        begin(out, "endpoint-", suffix);
        if !self.style.generation.has_hairpin_set() {
            rule(out, &[ip, " saddr ", backend.address(), " ", &self.words.masquerade]);
        }
        if port.affinity_seconds.is_some() {
            rule(out, &["update @affinity-", suffix, " { ", ip, " saddr }"]);
        }
        rule(out, &["meta l4proto ", port.protocol.lower(), " dnat to ", &backend.text]);
        end(out);
        if let Some(seconds) = port.affinity_seconds {
            let out = &mut self.affinity;
            push(out, &["\tset affinity-", suffix, " {\n\t\ttype ", self.style.address_type()]);
            out.push_str("\n\t\tsize 65535\n\t\tflags dynamic,timeout\n\t\ttimeout ");
            push(out, &[&time(seconds), "\n\t}\n\n"]);
        }
    }

    /// Writes the chains of the port, which contain the endpoints themselves.
    fn straight(&mut self, port: &PortPlan<'_>, names: &PortNames) {
        let protocol = port.protocol.lower();
        for (kind, takes, _) in policies(port) {
            let chosen = port.backends.all.iter().filter(|backend| takes(backend));
            let count = chosen.clone().count();
            if count == 0 {
                continue;
            }
            let out = &mut self.chains;
            begin(out, kind, &names.base);
            push(out, &["\t\tmeta l4proto ", protocol, " dnat ", self.words.ip]);
            push(out, &[" to numgen random mod ", &count.to_string(), " map { "]);
            for (place, backend) in chosen.enumerate() {
                let comma = if place == 0 { "" } else { ", " };
                out.push_str(comma);
                push_number(out, place);
                push(out, &[" : ", backend.address(), " . "]);
                push_number(out, usize::from(backend.port.number()));
            }
            out.push_str(" }\n");
            end(out);
        }
    }

    /// Writes the rule that masquerades traffic from outside the cluster to a cluster IP, so that
    /// replies pass this node.
    fn masquerade_from_outside(&mut self, port: &PortPlan<'_>) {
        if self.style.generation.marks_in_services() {
            return;
        }
        let Some(sources_besides_pods) = &self.words.sources_besides_pods else { return };
        let to_port = if self.style.generation.marks_by_port() {
            [" ", port.protocol.lower(), " dport ", &port.port.to_string()].concat()
        } else {
            String::new()
        };
        let to = [self.words.ip, " daddr ", &port.cluster_ip.to_string(), &to_port].concat();
        rule(&mut self.chains, &[&to, sources_besides_pods, " ", &self.words.masquerade]);
    }

    /// Writes the chain for traffic to addresses other than the cluster IP.
    fn external(&mut self, port: &PortPlan<'_>, base: &str) {
        let (words, out) = (&self.words, &mut self.chains);
        begin(out, "external-", base);
        if !port.external_local {
            let remark = if self.style.generation.marks_in_services() {
                " comment \"masquerade\""
            } else {
                ""
            };
            rule(out, &[&words.masquerade, remark]);
            rule(out, &["goto service-", base]);
            return end(out);
        }
        if let Some(pods) = &words.pods {
            let remark = " comment \"short-circuit pod traffic\"";
            rule(out, &[pods, " goto service-", base, remark]);
        }
        let from_node = "fib saddr type local ";
        rule(out, &[from_node, &words.masquerade, " comment \"masquerade local traffic\""]);
        let remark = " comment \"short-circuit local traffic\"";
        rule(out, &[from_node, "goto service-", base, remark]);
        if port.serves_external() {
            rule(out, &["goto local-", base]);
        }
        end(out);
    }

    /// Writes the chain that enforces the source ranges of load-balancer addresses.
    fn fence(&mut self, port: &PortPlan<'_>, base: &str) {
        let ranges = port.source_ranges.iter().copied();
        // If the node holds the VIP, its own traffic to the VIP has the VIP as its source.
        let node_may = port.source_ranges.iter().any(|range| range.contains(&self.node_address));
        let vips = port.vips.iter().copied().map(IpNet::from).filter(|_| node_may);
        let ranges: Ranges = ranges.chain(vips).collect();
        let out = &mut self.chains;
        begin(out, "firewall-", base);
        rule(out, &[self.words.ip, " saddr != ", &ranges.to_string(), " drop"]);
        end(out);
    }
}

/// Estimates the length of all chains. Too large an estimate costs nothing, since unwritten memory
/// is not committed.
fn size(style: &Style<'_>, plan: &Plan<'_>) -> usize {
    let an_endpoint = if style.generation.spares_chains() { 64 } else { 512 };
    let all: usize = plan.ports.iter().map(|port| port.backends.all.len()).sum();
    (1 << 14) + plan.ports.len() * 512 + all * an_endpoint
}

/// A chain that chooses among endpoints: its kind, the endpoints from which it chooses, and whether
/// traffic to the cluster IP takes it.
type Chooser = (&'static str, fn(&Backend) -> bool, bool);

fn policies(port: &PortPlan<'_>) -> [Chooser; 2] {
    [
        ("service-", Backend::serves_cluster, !port.internal_local),
        ("local-", Backend::serves_local, port.internal_local),
    ]
}

/// Returns the comment of an element, cut to the 128 bytes that `nft` accepts.
fn remark(name: &str) -> String {
    let plain = |byte: u8| (b' '..0x7f).contains(&byte) && byte != b'"';
    let name = name.bytes().take(128).map(|byte| if plain(byte) { char::from(byte) } else { '?' });
    [" comment \"", &name.collect::<String>(), "\""].concat()
}

/// Formats seconds as `nft` does: `1d3h10s`.
fn time(seconds: u32) -> String {
    let parts = [(seconds / 86400, "d"), (seconds / 3600 % 24, "h"), (seconds / 60 % 60, "m")];
    let mut text = String::new();
    for (count, unit) in parts.into_iter().chain([(seconds % 60, "s")]) {
        if count > 0 {
            push(&mut text, &[&count.to_string(), unit]);
        }
    }
    text
}
