//! The writer of nftables mode, for kube-proxy v1.30 and later.
//!
//! The text is in the format of `nft list ruleset` (1.0.6), in the order in which kube-proxy
//! creates objects. `port` writes what every Service port adds; this file writes the rules that
//! exist without any Service.

mod elements;
mod generation;
mod names;
mod port;
mod ranges;

use std::fmt::Write as _;
use std::net::IpAddr;

use ipnet::IpNet;
use uturn_model::{Family, ProxySettings};

use crate::Program;
use crate::plan::{Local, NodePortsOn, Plan};
use elements::{Elements, Head};
pub(crate) use generation::Generation;
use port::PortWriter;
use ranges::Ranges;

/// The settings that all parts of the writer share.
struct Style<'p> {
    family: Family,
    generation: Generation,
    local: &'p Local<'p>,
    masquerade_all: bool,
    masquerade_bit: u8,
}

/// The sets and maps of one table.
#[derive(Default)]
struct Sets {
    hairpins: Elements,
    cluster_ips: Elements,
    unserved: Elements,
    unserved_node_ports: Elements,
    firewalled: Elements,
    services: Elements,
    node_ports: Elements,
}

/// Writes the table of a plan. `service_ranges` are the ranges of cluster IPs, of any family.
pub(crate) fn write(
    plan: &Plan<'_>,
    settings: &ProxySettings,
    service_ranges: &[IpNet],
    generation: Generation,
) -> Program {
    let style = Style {
        family: plan.family,
        generation,
        local: &plan.node.local,
        masquerade_all: settings.masquerade_all,
        masquerade_bit: settings.masquerade_bit,
    };
    let mut writer = PortWriter::new(&style, plan);
    for port in &plan.ports {
        writer.write(port);
    }
    let (sets, affinity, chains) = writer.finish();
    let mut head = String::with_capacity(affinity.len() + (1 << 14));
    push(&mut head, &["table ", style.ip(), " kube-proxy {\n"]);
    if generation.remarks_objects() {
        head.push_str("\tcomment \"rules for kube-proxy\"\n");
    }
    named_sets(&style, plan, sets, &mut head);
    head.push_str(&affinity);
    head.extend(generation.base_chains());
    shared_chains(&style, plan, service_ranges, &mut head);
    let mut out = chains;
    out.insert_str(0, &head);
    out.truncate(out.trim_end_matches('\n').len());
    out.push_str("\n}\n");
    let mut sysctls = Vec::new();
    if settings.conntrack_tcp_be_liberal {
        sysctls.push(("net.netfilter.nf_conntrack_tcp_be_liberal".to_owned(), "1".to_owned()));
    }
    Program { nft: out, sysctls, ..Program::default() }
}

fn named_sets(style: &Style<'_>, plan: &Plan<'_>, sets: Sets, out: &mut String) {
    let address = style.address_type();
    let pair = "inet_proto . inet_service : verdict";
    let triple = [address, " . ", pair].concat();
    let hairpin = [address, " . ", address, " . inet_proto . inet_service"].concat();
    let in_a_line = if style.family == Family::V4 { 2 } else { 1 };
    let mut print = |set: Elements, name, key: &str, remark| {
        let remark = if style.generation.remarks_objects() { remark } else { "" };
        let in_a_line = if key == address { in_a_line } else { 1 };
        set.print(&Head { name, key, remark, in_a_line }, out);
    };
    if style.generation.has_hairpin_set() {
        let remark = "service hairpin connections";
        print(sets.hairpins, "set hairpin-connections", &hairpin, remark);
    }
    print(sets.cluster_ips, "set cluster-ips", address, "Active ClusterIPs");
    if let NodePortsOn::These(addresses) = &plan.node.node_ports {
        let mut taking = Elements::default();
        // Localhost cannot take NodePorts in this mode.
        addresses.iter().filter(|ip| !ip.is_loopback()).for_each(|ip| taking.add_address(*ip));
        print(taking, "set nodeport-ips", address, "IPs that accept NodePort traffic");
    }
    let remark = "vmap to drop or reject packets to services with no endpoints";
    print(sets.unserved, "map no-endpoint-services", &triple, remark);
    let remark = "vmap to drop or reject packets to service nodeports with no endpoints";
    print(sets.unserved_node_ports, "map no-endpoint-nodeports", pair, remark);
    let remark = "destinations that are subject to LoadBalancerSourceRanges";
    print(sets.firewalled, "map firewall-ips", &triple, remark);
    let remark = "ClusterIP, ExternalIP and LoadBalancer IP traffic";
    print(sets.services, "map service-ips", &triple, remark);
    print(sets.node_ports, "map service-nodeports", pair, "NodePort traffic");
}

/// Writes the chains to which the base chains jump.
fn shared_chains(style: &Style<'_>, plan: &Plan<'_>, ranges: &[IpNet], out: &mut String) {
    let ip = style.ip();
    let destination = [ip, " daddr . meta l4proto . th dport vmap @"].concat();
    let (checked, taken) = match (&plan.node.node_ports, plan.family) {
        (NodePortsOn::These(_), _) => ([ip, " daddr @nodeport-ips"].concat(), ""),
        (NodePortsOn::All, Family::V4) => {
            ("ip daddr != 127.0.0.0/8".to_owned(), "fib daddr type local ")
        }
        (NodePortsOn::All, Family::V6) => ("ip6 daddr != ::1".to_owned(), "fib daddr type local "),
    };
    let to_port = " meta l4proto . th dport vmap @";
    chain(out, "nodeport-endpoints-check", &[&[&checked, to_port, "no-endpoint-nodeports"]]);
    chain(out, "service-endpoints-check", &[&[&destination, "no-endpoint-services"]]);
    chain(out, "firewall-check", &[&[&destination, "firewall-ips"]]);

    begin(out, "services", "");
    if style.generation.marks_in_services() {
        let sources_besides_pods = style.sources_besides_pods();
        let remark = if style.masquerade_all {
            "masquerade all clusterIP traffic"
        } else {
            "masquerade clusterIP traffic from outside cluster"
        };
        if let Some(sources_besides_pods) = sources_besides_pods {
            let to = [ip, " daddr @cluster-ips", &sources_besides_pods, " "].concat();
            rule(out, &[&to, &style.mark(), " comment \"", remark, "\""]);
        }
    }
    rule(out, &[&destination, "service-ips"]);
    rule(out, &[taken, &checked, to_port, "service-nodeports"]);
    end(out);

    masquerade(style, out);
    begin(out, "cluster-ips-check", "");
    let remark = " comment \"Reject traffic to invalid ports of ClusterIPs\"";
    rule(out, &[ip, " daddr @cluster-ips reject", remark]);
    let of_family = |net: &&IpNet| Family::of(net.addr()) == style.family;
    let ranges: Ranges = ranges.iter().filter(of_family).copied().collect();
    if !ranges.is_empty() && style.generation.drops_unallocated() {
        let remark = " comment \"Drop traffic to unallocated ClusterIPs\"";
        rule(out, &[ip, " daddr ", &ranges.to_string(), " drop", remark]);
    }
    end(out);
    if !style.generation.spares_chains() {
        chain(out, "mark-for-masquerade", &[&[&style.mark()]]);
    }
    begin(out, "reject-chain", "");
    if style.generation.remarks_objects() {
        rule(out, &["comment \"helper for @no-endpoint-services / @no-endpoint-nodeports\""]);
    }
    rule(out, &["reject"]);
    end(out);
}

/// Writes the chain that masquerades marked packets when they leave the node.
fn masquerade(style: &Style<'_>, out: &mut String) {
    let mark = 1u32 << style.masquerade_bit;
    let clear = format!("meta mark set meta mark ^ {mark:#010x}");
    // `nft` prints a mask of only the highest bit as a prefix.
    let (set, unset) = match style.masquerade_bit {
        31 => ("!= 0x00000000/1".to_owned(), "0x00000000/1".to_owned()),
        _ => (format!("& {mark:#010x} != 0x00000000"), format!("& {mark:#010x} == 0x00000000")),
    };
    let ip = style.ip();
    begin(out, "masquerading", "");
    if style.generation.has_hairpin_set() {
        rule(out, &["meta mark ", &set, " ", &clear, " masquerade fully-random"]);
        let connection = [ip, " saddr . ", ip, " daddr . meta l4proto . th dport"].concat();
        let set = " @hairpin-connections masquerade fully-random";
        rule(out, &["ct status dnat ", &connection, set]);
    } else {
        rule(out, &["meta mark ", &unset, " return"]);
        rule(out, &[&clear]);
        rule(out, &["masquerade fully-random"]);
    }
    end(out);
}

impl Style<'_> {
    /// Returns the name of the family's header and table.
    fn ip(&self) -> &'static str {
        match self.family {
            Family::V4 => "ip",
            Family::V6 => "ip6",
        }
    }

    fn address_type(&self) -> &'static str {
        match self.family {
            Family::V4 => "ipv4_addr",
            Family::V6 => "ipv6_addr",
        }
    }

    /// Returns the statement that marks a packet for masquerading.
    fn mark(&self) -> String {
        format!("meta mark set meta mark | {:#010x}", 1u32 << self.masquerade_bit)
    }

    /// Returns the match for sources other than pods, with a leading blank. The match is empty if
    /// everything is masqueraded.
    fn sources_besides_pods(&self) -> Option<String> {
        if self.masquerade_all {
            Some(String::new())
        } else {
            self.sources("!= ").map(|words| [" ", &words].concat())
        }
    }

    /// Returns the match for sources that are pods.
    fn pods(&self) -> Option<String> {
        self.sources("")
    }

    fn sources(&self, not: &str) -> Option<String> {
        let by_name = self.generation.interface_by();
        Some(match self.local {
            Local::Range(net) => [self.ip(), " saddr ", not, &ranges::text_of(net)].concat(),
            Local::Interface(name) => [by_name, " ", not, "\"", name, "\""].concat(),
            Local::InterfacePrefix(prefix) => [by_name, " ", not, "\"", prefix, "*\""].concat(),
            Local::Unknown => return None,
        })
    }
}

/// Writes a chain of a few rules, each given in parts.
fn chain(out: &mut String, name: &str, rules: &[&[&str]]) {
    begin(out, name, "");
    rules.iter().for_each(|parts| rule(out, parts));
    end(out);
}

/// Begins a chain. Its name is given in two parts.
fn begin(out: &mut String, kind: &str, name: &str) {
    push(out, &["\tchain ", kind, name, " {\n"]);
}

fn rule(out: &mut String, parts: &[&str]) {
    out.push_str("\t\t");
    push(out, parts);
    out.push('\n');
}

fn end(out: &mut String) {
    out.push_str("\t}\n\n");
}

fn push(out: &mut String, parts: &[&str]) {
    parts.iter().for_each(|part| out.push_str(part));
}

fn push_number(out: &mut String, number: usize) {
    if number > 9 {
        push_number(out, number / 10);
    }
    out.push(char::from(b'0' + (number % 10) as u8));
}

fn push_address(out: &mut String, ip: IpAddr) {
    let written = write!(out, "{ip}");
    debug_assert!(written.is_ok(), "a string takes all");
}
