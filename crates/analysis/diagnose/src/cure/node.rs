//! Cures of nodes: their firewall, routes, sysctls, bandwidth and kube-proxy.

use std::net::IpAddr;

use uturn_document::edit::{At, Change, Tree};
use uturn_kubeproxy::pod_network;
use uturn_model::node::RpFilter;
use uturn_model::shell::{Advice, Command};
use uturn_model::{Family, IpNet, Mechanism, Node};
use uturn_netfilter::iptables::rule_words;

use super::facts::facts;
use super::{Case, Proposal, way};
use crate::cloud;

pub(super) fn propose(case: &Case<'_>) -> Vec<Proposal> {
    let mut all = Vec::new();
    if case.has(Mechanism::Firewall) {
        all.extend(firewall(case));
    }
    if case.has(Mechanism::RuleMissing) {
        all.extend(rules_missing(case));
    }
    let has = |mechanism| case.has(mechanism);
    if has(Mechanism::NoRoute) || has(Mechanism::CrossNode) {
        all.extend(settle(
            case,
            "podRoutes",
            "true",
            |node| node.routed == Some(false),
            &Words {
                name: "pod-routes",
                title: "routes in the VPC to the pods of",
                command: cloud::words(case.cluster()).add_route,
                cost: "none that is known",
            },
        ));
        all.extend(settle(case, "forwarding", "true", |node| node.forwards == Some(false), &Words {
            name: "forwarding",
            title: "forwarding on for",
            command: "on node {}: sysctl -w net.ipv4.ip_forward=1, and the same in /etc/sysctl.d",
            cost: "the node passes on packets that are not for itself, which is what a node does",
        }));
    }
    if has(Mechanism::NoRoute) {
        all.extend(default_route(case));
    }
    if has(Mechanism::HairpinOff) {
        all.extend(settle(case, "hairpin", "true", |node| node.hairpin == Some(false), &Words {
            name: "hairpin",
            title: "hairpin mode of the pods' links on for",
            command: "on node {}: for l in /sys/class/net/*/brport/hairpin_mode; do echo 1 > $l; done; for new pods in the network plugin's configuration (hairpinMode, or a release of the plugin that sets it)",
            cost: "links of pods that are made later need it too: the plugin has to set it",
        }));
    }
    if case.is_reply_unseen {
        all.extend(settle(case, "bridgeRules", "true", |node| node.bridge_rules == Some(false), &Words {
            name: "bridge-rules",
            title: "the bridge's frames shown to the rules of",
            command: "on node {}: modprobe br_netfilter; sysctl -w net.bridge.bridge-nf-call-iptables=1 net.bridge.bridge-nf-call-ip6tables=1, and the same in /etc/modules-load.d and /etc/sysctl.d",
            cost: "rules see every packet between pods of one node, network policies too",
        }));
    }
    if has(Mechanism::NoBandwidth) {
        all.extend(settle(
            case,
            "publicBandwidth",
            "true",
            |node| node.public_bandwidth == Some(false),
            &Words {
                name: "bandwidth",
                title: "public bandwidth for",
                command: cloud::words(case.cluster()).add_bandwidth,
                cost: "bandwidth is paid for",
            },
        ));
    }
    if has(Mechanism::ReversePathFilter) {
        let is_strict =
            |node: &Node| matches!(node.rp_filter, Some(RpFilter::Strict | RpFilter::Loose));
        all.extend(settle(case, "rpFilter", "0", is_strict, &Words {
            name: "rp-filter",
            title: "source validation off on",
            command: "on node {}: sysctl -w net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.INTERFACE.rp_filter=0 (of the interface that packets arrive by)",
            cost: "the node accepts packets that arrive by another interface than the route to their source",
        }));
    }
    all
}

/// The description of the cure of a fact about a node.
struct Words {
    name: &'static str,
    title: &'static str,
    command: &'static str,
    cost: &'static str,
}

/// Returns the path of a node's fact in Facts: that of the node alone, or of all nodes.
pub(super) fn stated(case: &Case<'_>, node: &Node, field: &str) -> Option<Vec<At>> {
    let own = |whose: &str| way!["nodes", whose, field];
    let ways = [own(node.name.as_str()), own("*")];
    ways.into_iter().find(|way| {
        case.manifests.text_at(&facts(), way).is_some()
            || case.manifests.items_at(&facts(), way).is_some_and(|many| many > 0)
    })
}

/// Corrects a fact on each node on which it is wrong.
fn settle(
    case: &Case<'_>,
    field: &str,
    value: &str,
    is_wrong: impl Fn(&Node) -> bool,
    words: &Words,
) -> Option<Proposal> {
    let wrong: Vec<&Node> = case.cluster().nodes.values().filter(|node| is_wrong(node)).collect();
    let names: Vec<&str> = wrong.iter().map(|node| node.name.as_str()).collect();
    let mut made = Proposal::new(words.name, 25, format!("{} {}", words.title, some(&names)))
        .costs(words.cost)
        .trial();
    let mut done: Vec<Vec<At>> = Vec::new();
    for node in &wrong {
        let way = stated(case, node, field)?;
        if !done.contains(&way) {
            made = made.edit(facts(), way.clone(), Change::Set(Tree::bare(value)));
            done.push(way);
        }
        made = made.types(Advice::naming(words.command, &node.name));
    }
    (!wrong.is_empty()).then_some(made)
}

/// Proposes a default route on each node that is stated to have none.
fn default_route(case: &Case<'_>) -> Option<Proposal> {
    let all = |net: &IpNet| net.prefix_len() == 0;
    let lacks = |node: &&Node| node.routes.as_ref().is_some_and(|own| !own.iter().any(all));
    let wrong: Vec<&Node> = case.cluster().nodes.values().filter(lacks).collect();
    let names: Vec<&str> = wrong.iter().map(|node| node.name.as_str()).collect();
    let mut made =
        Proposal::new("default-route", 24, format!("a default route on {}", some(&names)))
            .costs("what the node sends beyond its network leaves by the gateway")
            .trial();
    for node in &wrong {
        let own = way!["nodes", node.name.as_str(), "routes"];
        let is_own = case.manifests.items_at(&facts(), &own).is_some();
        let path = if is_own { own } else { way!["nodes", "*", "routes"] };
        let family = node.internal_ips.first().map_or(Family::V4, |ip| Family::of(*ip));
        let change = Change::Set(Tree::List(vec![Tree::text(family.everything().to_string())]));
        made = made.edit(facts(), path, change);
        made = made.types(Advice::naming(
            "on node {}: ip route add default via GATEWAY, and the same in its network's configuration",
            &node.name,
        ));
    }
    (!wrong.is_empty()).then_some(made)
}

pub(super) fn some(names: &[&str]) -> String {
    match names {
        [] | [_] | [_, _] | [_, _, _] => names.join(", "),
        [first, second, rest @ ..] => format!("{first}, {second} and {} more", rest.len()),
    }
}

/// Proposes to accept packets that a rule of the node drops.
fn firewall(case: &Case<'_>) -> Vec<Proposal> {
    let mut all: Vec<Proposal> = Vec::new();
    let mut seen: Vec<(Vec<At>, usize)> = Vec::new();
    let mut stated_so_far: Vec<Vec<At>> = Vec::new();
    for node in case.cluster().nodes.values() {
        let (Some(firewall), Some(way)) = (&node.firewall, stated(case, node, "iptables")) else {
            continue;
        };
        let whose = if way.contains(&At::from("*")) { "every node" } else { node.name.as_str() };
        if case.stopped_at.contains(&node.name) && !stated_so_far.contains(&way) {
            stated_so_far.push(way.clone());
            all.extend(only_this_port(case, &firewall.text, &way, whose));
            all.extend(wrapped(case, &firewall.text, &way, whose));
        }
        let mut table = FILTER;
        for (at, line) in firewall.text.lines().enumerate() {
            if let Some(name) = line.trim().strip_prefix('*') {
                table = name;
            }
            let Some(passing) = letting_through(line) else { continue };
            if rule_words(&passing).is_none() {
                continue;
            }
            if seen.contains(&(way.clone(), at)) {
                continue;
            }
            seen.push((way.clone(), at));
            let rule = line.trim();
            // A rule for some ports lets only these pass. Any other lets everything pass.
            let rank = if passing.contains("--dport") { 17 } else { 40 };
            all.push(
                Proposal::new(
                    "node-firewall",
                    rank,
                    format!("on {whose}, let packets pass that `{rule}` stops"),
                )
                .edit(facts(), way.clone(), Change::Line(at, passing.clone()))
                .types(Advice::on(whose, &first_of(table, &passing)))
                .costs("everything that the rule stopped passes, not only this")
                .trial(),
            );
        }
    }
    all
}

/// Proposes rules of the node's firewall that let nothing but the called port pass, from the ranges
/// of the client, before the rule or the policy that stops it.
fn only_this_port(case: &Case<'_>, text: &str, way: &[At], whose: &str) -> Vec<Proposal> {
    let Some(flow) = case.walked() else { return Vec::new() };
    let mut ports = case.called_ports();
    ports.extend(case.aim.port.as_ref().and_then(|port| port.node_port));
    if case.aim.service.is_none() && ports.is_empty() {
        ports.extend(case.aim.called);
    }
    let network = &case.cluster().network;
    let ranges = network.vpc_cidrs.value.iter().chain(&network.pod_cidrs.value);
    let mut sources: Vec<String> = if case.is_from_inside() {
        ranges.map(|net| format!(" -s {net}")).take(MAX_RANGES).collect()
    } else {
        Vec::new()
    };
    sources.dedup();
    if sources.is_empty() {
        sources.push(String::new());
    }
    let protocol = flow.protocol.lower();
    let mut all = Vec::new();
    for (at, chain) in places(text) {
        for (port, source) in
            ports.iter().flat_map(|port| sources.iter().map(move |source| (port, source)))
        {
            let rule =
                format!("-A {chain}{source} -p {protocol} -m {protocol} --dport {port} -j ACCEPT");
            let from = source.strip_prefix(" -s ").unwrap_or("anywhere");
            let title = format!(
                "on {whose}, let {} {port} from {from} pass in chain {chain}",
                protocol.to_uppercase()
            );
            let rank = if source.is_empty() { 19 } else { 18 };
            all.push(
                Proposal::new("node-firewall", rank, title)
                    .edit(facts(), way.to_vec(), Change::Line(at, rule.clone()))
                    .types(Advice::on(whose, &first_of(FILTER, &rule)))
                    .costs("it lasts until the firewall is loaded again: write it where its rules are kept")
                    .trial(),
            );
            if all.len() == MAX_RULES {
                return all;
            }
        }
    }
    all
}

/// Proposes rules that let in the UDP in which other nodes wrap what pods send, before all rules for what
/// a node receives.
fn wrapped(case: &Case<'_>, text: &str, way: &[At], whose: &str) -> Vec<Proposal> {
    let network = &case.cluster().network;
    let mut of_udp = pod_network::wrappings(network.plugin.value).iter();
    let wrapping = of_udp.find(|wrapping| wrapping.is_udp());
    let is_tunnelled = network.is_encapsulated(Family::V4);
    let (Some(wrapping), Some(at), true) = (wrapping, first_of_input(text), is_tunnelled) else {
        return Vec::new();
    };
    let stated = network.vpc_cidrs.value.iter().filter(|net| net.addr().is_ipv4());
    let ranges: Vec<IpNet> = match around_nodes(case) {
        // Nodes take such packets from whoever sends them.
        Some(range) if network.vpc_cidrs.is_supposed() => vec![range],
        _ => stated.take(MAX_RANGES).copied().collect(),
    };
    let rule_for = |range: &IpNet| {
        let port = wrapping.port;
        let rule = format!("-A INPUT -s {range} -p udp -m udp --dport {port} -j ACCEPT");
        let title = format!(
            "on {whose}, let UDP {port}, in which nodes wrap what pods send, from {range} pass in chain INPUT"
        );
        Proposal::new("node-firewall", 16, title)
            .edit(facts(), way.to_vec(), Change::Line(at, rule.clone()))
            .types(Advice::on(whose, &first_of(FILTER, &rule)))
            .costs("it lasts until the firewall is loaded again: write it where its rules are kept")
            .trial()
    };
    ranges.iter().map(rule_for).collect()
}

/// The length of the prefix of the largest range that is taken for that of the nodes.
const MIN_LENGTH: u8 = 8;

/// Returns the smallest range that has the internal IPv4 addresses of all nodes.
fn around_nodes(case: &Case<'_>) -> Option<IpNet> {
    let nodes = case.cluster().nodes.values();
    let own = nodes.flat_map(|node| &node.internal_ips).filter(|ip| ip.is_ipv4());
    let own: Vec<&IpAddr> = own.collect();
    let mut range = IpNet::from(**own.first()?);
    while !own.iter().all(|ip| range.contains(*ip)) {
        range = range.supernet()?;
    }
    (range.prefix_len() >= MIN_LENGTH).then_some(range)
}

/// Returns the line of the first rule of the filter table for what a node receives, or of the table's
/// end.
fn first_of_input(text: &str) -> Option<usize> {
    let mut lines = text.lines().map(str::trim).enumerate();
    lines.find(|(_, line)| *line == "*filter")?;
    let mut lines = lines.filter(|(_, line)| line.starts_with("-A INPUT ") || *line == "COMMIT");
    lines.next().map(|(at, _)| at)
}

/// The maximum number of ranges of clients that are tried.
const MAX_RANGES: usize = 2;

/// The maximum number of rules that are tried on a node.
const MAX_RULES: usize = 18;

/// Returns the lines of the filter table before which a rule of a built-in chain takes effect: the
/// first rule of the chain that stops everything that reaches it, or the table's end if its policy
/// stops packets.
fn places(text: &str) -> Vec<(usize, &'static str)> {
    let mut table = FILTER;
    let mut all: Vec<(usize, &'static str)> = Vec::new();
    let mut dropping: Vec<&'static str> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('*') {
            table = name;
            continue;
        }
        if table != FILTER {
            continue;
        }
        for chain in ["INPUT", "FORWARD"] {
            if line.starts_with(&format!(":{chain} DROP")) {
                dropping.push(chain);
            }
            let is_first = all.iter().all(|(_, known)| *known != chain);
            let is_of_chain = line.starts_with(&format!("-A {chain} "));
            if is_first && is_of_chain && letting_through(line).is_some() {
                all.push((at, chain));
            }
        }
        if line == "COMMIT" {
            for chain in dropping.drain(..) {
                if all.iter().all(|(_, known)| *known != chain) {
                    all.push((at, chain));
                }
            }
        }
    }
    all
}

/// Returns a rule with the same matches and the target ACCEPT, for a rule that stops packets.
fn letting_through(line: &str) -> Option<String> {
    let (before, after) =
        ["-j DROP", "-j REJECT"].into_iter().find_map(|stop| line.split_once(stop))?;
    let is_last = after.is_empty() || after.starts_with(' ');
    (before.trim_start().starts_with("-A ") && is_last).then(|| format!("{before}-j ACCEPT"))
}

/// The table that `iptables` changes by default.
const FILTER: &str = "filter";

/// Returns the `iptables` command that inserts a rule before all others of a table. Each word is
/// quoted for the shell.
fn first_of(table: &str, passing: &str) -> Command {
    let iptables = match table {
        FILTER => Command::new("iptables"),
        table => Command::new("iptables -t").value(table),
    };
    let words = rule_words(passing).unwrap_or_default().into_iter().enumerate();
    words.fold(iptables, |command, (at, word)| match (at, &*word) {
        (0, "-A") => command.words("-I"),
        _ => command.value(word),
    })
}

/// Proposes to restart kube-proxy on nodes that lack rules, so that it programs everything again.
fn rules_missing(case: &Case<'_>) -> Option<Proposal> {
    let service = case.service()?;
    let lacks = |node: &&Node| node.unprogrammed.contains(&service.name);
    let lacking: Vec<&Node> = case.cluster().nodes.values().filter(lacks).collect();
    let names: Vec<&str> = lacking.iter().map(|node| node.name.as_str()).collect();
    let title = format!("restart kube-proxy on {}", some(&names));
    let mut made = Proposal::new("restart-kube-proxy", 15, title)
        .costs("it programs every Service of the node again; open connections stay");
    let mut done = Vec::new();
    for node in &lacking {
        let way = stated(case, node, "unprogrammed")?;
        if !done.contains(&way) {
            let rest = node.unprogrammed.iter().filter(|name| **name != service.name);
            let rest = rest.map(|name| Tree::text(name.to_string())).collect();
            made = made.edit(facts(), way.clone(), Change::Set(Tree::List(rest)));
            done.push(way);
        }
        made = made.types(
            Command::new("kubectl -n kube-system delete pod -l k8s-app=kube-proxy")
                .words("--field-selector spec.nodeName=")
                .joined(&node.name),
        );
    }
    (!lacking.is_empty()).then_some(made)
}
