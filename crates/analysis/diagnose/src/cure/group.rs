//! Cures in security groups: the rules that the seeds of scenarios require, tried one by one.

mod dropped;

use uturn_document::edit::{Change, Tree};
use uturn_model::lb::TargetKind;
use uturn_model::shell::Advice;
use uturn_model::{Client, IpNet, Mechanism, Text};

use super::facts::facts;
use super::{Case, Proposal, way};
use crate::cloud;

pub(super) fn propose(case: &Case<'_>) -> Vec<Proposal> {
    let mut all = dropped::propose(case);
    if !case.has(Mechanism::SecurityGroup) {
        return each_once(all);
    }
    let cluster = case.cluster();
    if let Some((balancer, listener)) = case.listener() {
        let transport = listener.protocol.transport().lower();
        let port = listener.port.to_string();
        let rule = Rule { rank: 20, protocol: transport, ports: port, peer: "all".into() };
        all.extend(rule.into_first(
            &balancer.security_groups,
            case,
            "clients reach the load balancer",
        ));
    }
    let mut groups: Vec<&Vec<Text>> = Vec::new();
    for list in cluster.nodes.values().filter_map(|node| node.security_groups.as_ref()) {
        if !groups.contains(&list) {
            groups.push(list);
        }
    }
    let targets = case.listener().map(|(_, listener)| &listener.rules).into_iter().flatten();
    let mut targets = targets.flat_map(|rule| &rule.targets);
    let to_pods = targets.any(|target| matches!(target.kind, TargetKind::Pod { .. }));
    let udp =
        case.listener().is_some_and(|(_, listener)| listener.protocol.transport().lower() == "udp");
    let protocol = if udp { "udp" } else { "tcp" };
    let node_ports = || cloud::node_ports(cluster);
    for list in groups {
        if let Some(model) = uturn_clouds::cloud::model(cluster) {
            let snat = model.replaced_source().to_string();
            let rule = Rule { rank: 21, protocol: "tcp", ports: node_ports(), peer: snat };
            all.extend(rule.into_first(
                list,
                case,
                "a load balancer that replaces the source reaches NodePorts",
            ));
        }
        let rule = Rule { rank: 23, protocol, ports: node_ports(), peer: "all".into() };
        all.extend(rule.into_first(
            list,
            case,
            "every client of a load balancer reaches NodePorts",
        ));
        for net in &cluster.network.pod_cidrs.value {
            let (ports, peer) = ("all".to_owned(), net.to_string());
            let rule = Rule { rank: 22, protocol: "all", ports, peer };
            all.extend(rule.into_first(list, case, "pods reach pods on other nodes"));
            all.extend(outward(list, case, &net.to_string()));
        }
        all.extend(outward(list, case, "all"));
        if case.dropped.is_empty() {
            all.extend(between(list, case));
        }
        if to_pods && let Some(port) = &case.aim.port {
            let slices =
                case.service().map(|service| cluster.slices(&service.name)).unwrap_or_default();
            let found = slices.iter().flat_map(|slice| &slice.ports);
            for own in found.filter(|own| own.name == port.name) {
                let (ports, peer) = (own.port.to_string(), "all".to_owned());
                let rule = Rule { rank: 23, protocol, ports, peer };
                all.extend(rule.into_first(list, case, "clients reach pods that are targets"));
            }
        }
    }
    each_once(all)
}

/// Returns the proposals with equal edits once: the first, since what is proposed for a packet that
/// was dropped says more than the same rule for every case.
fn each_once(all: Vec<Proposal>) -> Vec<Proposal> {
    let mut seen: Vec<Proposal> = Vec::new();
    for made in all {
        let is_same = |known: &Proposal| known.title == made.title || known.edits == made.edits;
        if !seen.iter().any(is_same) {
            seen.push(made);
        }
    }
    seen
}

/// Proposes to let only the called port of the pods pass between the nodes: in, and also out where
/// the group limits that.
fn between(groups: &[Text], case: &Case<'_>) -> Vec<Proposal> {
    let known = &case.cluster().security_groups;
    let Some(group) = groups.iter().find(|name| known.contains_key(*name)) else {
        return Vec::new();
    };
    let Some(flow) = case.walked() else { return Vec::new() };
    let protocol = flow.protocol.lower();
    let network = &case.cluster().network;
    let mut peers: Vec<String> = match flow.from {
        Client::Outside(Some(ip)) => vec![IpNet::from(ip).to_string()],
        _ => Vec::new(),
    };
    for net in network.vpc_cidrs.value.iter().chain(&network.pod_cidrs.value) {
        if !peers.contains(&net.to_string()) {
            peers.push(net.to_string());
        }
    }
    let limits_out = !known[group].outbound.is_empty();
    let mut all = Vec::new();
    for (port, peer) in case
        .called_ports()
        .iter()
        .flat_map(|port| peers.iter().take(MAX_PEERS).map(move |peer| (port, peer)))
    {
        let traffic = format!("{} {port}", protocol.to_uppercase());
        let inbound = accept(protocol, Tree::number(port.number()), peer);
        let into = Proposal::new("security-group", 18, format!("let {traffic} from {peer} in, in {group}"))
            .edit(facts(), way!["securityGroups", &**group, "inbound"], Change::Prepend(inbound.clone()))
            .types(Advice::sentence(&format!(
                "{}security group {group}, inbound: let {traffic} from {peer} in, before any rule that drops it",
                cloud::at_place(case.cluster())
            )))
            .costs("every client in that range reaches that port of the pods")
            .trial();
        if limits_out {
            let title = format!("let {traffic} in from {peer} and out to it, in {group}");
            all.push(
                Proposal { rank: 19, title, ..into.clone() }
                    .edit(facts(), way!["securityGroups", &**group, "outbound"], Change::Prepend(inbound))
                    .types(Advice::sentence(&format!(
                        "{}security group {group}, outbound: let {traffic} to {peer} out, before any rule that drops it",
                        cloud::at_place(case.cluster())
                    ))),
            );
        }
        all.push(into);
    }
    all
}

/// The maximum number of ranges that are tried as the other side of a port.
const MAX_PEERS: usize = 2;

/// Returns a rule that accepts packets of a protocol, at a port, from or to a range.
fn accept(protocol: &str, ports: Tree, peer: &str) -> Tree {
    Tree::map([
        ("action", Tree::text("accept")),
        ("protocol", Tree::text(protocol)),
        ("ports", ports),
        ("peer", Tree::text(peer)),
    ])
}

/// Proposes to allow all outbound traffic to a range, before all rules that stop it.
fn outward(groups: &[Text], case: &Case<'_>, peer: &str) -> Option<Proposal> {
    let known = &case.cluster().security_groups;
    let group = groups
        .iter()
        .find(|name| known.get(*name).is_some_and(|group| !group.outbound.is_empty()))?;
    let to = if peer == "all" { "anywhere" } else { peer };
    let rule = Tree::map([
        ("action", Tree::text("accept")),
        ("protocol", Tree::text("all")),
        ("ports", Tree::text("all")),
        ("peer", Tree::text(peer)),
    ]);
    Some(
        Proposal::new(
            "security-group",
            if peer == "all" { 25 } else { 24 },
            format!("let everything to {to} out, in {group}"),
        )
        .edit(facts(), way!["securityGroups", &**group, "outbound"], Change::Prepend(rule))
        .types(Advice::sentence(&format!(
            "{}security group {group}, outbound: let everything to {to} out first",
            cloud::at_place(case.cluster())
        )))
        .costs("every process on these nodes reaches that range")
        .trial(),
    )
}

struct Rule {
    rank: u8,
    protocol: &'static str,
    ports: String,
    peer: String,
}

impl Rule {
    /// Proposes the rule before all rules of the first of these groups, because the first match
    /// decides.
    fn into_first(self, groups: &[Text], case: &Case<'_>, so: &str) -> Option<Proposal> {
        let group =
            groups.iter().find(|name| case.cluster().security_groups.contains_key(*name))?;
        let from = if self.peer == "all" { "anywhere" } else { &self.peer };
        let ports = if self.ports == "all" { "all ports" } else { &self.ports };
        let traffic = match self.protocol {
            "all" => format!("everything from {from}"),
            protocol => format!("{} {ports} from {from}", protocol.to_uppercase()),
        };
        let rule = Tree::map([
            ("action", Tree::text("accept")),
            ("protocol", Tree::text(self.protocol)),
            (
                "ports",
                match self.ports.parse::<u32>() {
                    Ok(number) => Tree::number(number),
                    Err(_) => Tree::text(&*self.ports),
                },
            ),
            ("peer", Tree::text(&*self.peer)),
        ]);
        let way = way!["securityGroups", &**group, "inbound"];
        Some(
            Proposal::new("security-group", self.rank, format!("let {traffic} in, in {group}"))
                .edit(facts(), way, Change::Prepend(rule))
                .types(Advice::sentence(&format!(
                    "{}security group {group}: let {traffic} in, before any rule that drops it",
                    cloud::at_place(case.cluster())
                )))
                .costs(format!("{so}: every client in that range does"))
                .trial(),
        )
    }
}
