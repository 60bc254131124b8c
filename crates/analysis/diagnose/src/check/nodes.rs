//! Checks each node by itself: the settings of its kernel, security groups and kube-proxy.

use std::net::IpAddr;

use uturn_model::network::{NetworkMode, SecurityRule};
use uturn_model::node::RpFilter;
use uturn_model::shell::{Advice, Command};
use uturn_model::{Cluster, Family, Node, Protocol, ProxyMode};
use uturn_path::{Engine, any_client};

use super::{Check, Checklist, State};
use crate::nodes::{self, Answer, Question};
use crate::{Code, cloud};

/// Returns the range of NodePorts that the cloud's documentation opens in firewalls.
pub(super) fn node_ports(cluster: &Cluster) -> (u16, u16) {
    (30_000, cloud::last_node_port(cluster))
}

pub(super) fn check(engine: &Engine<'_>, node: &Node) -> Checklist {
    let cluster = engine.cluster();
    let captured: Vec<Check> =
        nodes::examine(engine, node).into_iter().flatten().map(answered).collect();
    let mut checks = vec![ready(node), version(engine, node)];
    let peers = format!("NodePorts {} from anywhere", cloud::node_ports(cluster));
    checks.push(lets(engine, node, &peers, node_ports(cluster), any_client(Family::V4)));
    let pods = cluster.network.pod_cidrs.value.iter().filter(|net| net.addr().is_ipv4());
    for net in pods {
        let peer = net.hosts().next().unwrap_or(net.addr());
        checks.push(lets(engine, node, &format!("the pods of {net}"), (1, 65_535), peer));
    }
    checks.push(lets(engine, node, "SSH (22)", (22, 22), any_client(Family::V4)));
    checks.push(stated("it forwards packets", node.forwards, "sysctl net.ipv4.ip_forward"));
    checks.push(stated(
        "rules see what its bridge passes",
        node.bridge_rules,
        "sysctl net.bridge.bridge-nf-call-iptables",
    ));
    let (what, how) = cloud::words(cluster).routes_to_pods;
    checks.push(stated(what, node.routed, how));
    checks.push(rp_filter(engine, node));
    checks.push(firewall(cluster, node));
    checks.push(programmed(engine, node));
    // Answers from a capture replace those from Facts.
    checks.retain(|check| {
        let is_answered = |own: &Check| own.what == check.what && own.state != State::Unknown;
        !captured.iter().any(is_answered)
    });
    let is_open = |own: &Check| checks.iter().all(|check| check.what != own.what);
    let captured: Vec<Check> = captured.into_iter().filter(is_open).collect();
    checks.extend(captured);
    Checklist { subject: format!("node/{}", node.name), checks }
}

/// The maximum number of differences that are shown.
const SHOWN: usize = 5;

/// Converts a question about a node's capture to a check.
fn answered(question: Question) -> Check {
    let differences = match question.answer {
        Answer::Agrees(by) => return Check::ok(question.what, by),
        Answer::Unknown(why) => {
            let mut check = Check::new(question.what, State::Unknown);
            check.evidence = why;
            return check;
        }
        Answer::Differs(differences) => differences,
    };
    let mut check = Check::new(question.what, State::Failed);
    check.evidence = differences.iter().take(SHOWN).map(|own| own.what.clone()).collect();
    if differences.len() > SHOWN {
        check.evidence.push(format!("and {} more", differences.len() - SHOWN));
    }
    match differences.first() {
        Some(first) => check.next(first.code.explain()),
        None => check,
    }
}

fn ready(node: &Node) -> Check {
    match (node.supposed, node.ready) {
        (true, _) => Check::unknown("it is ready", "no Node object is given"),
        (false, true) => Check::ok("it is ready", node.origin.to_string()),
        (false, false) => Check::failed("it is ready", node.origin.to_string())
            .next(Command::new("kubectl describe node").value(&node.name)),
    }
}

fn version(engine: &Engine<'_>, node: &Node) -> Check {
    let proxy = &engine.cluster().proxy;
    if let Some(other) = proxy.replaced_by() {
        let found = format!("{other} serves Services, and kube-proxy does not run");
        return Check::ok(
            "what serves Services is known",
            format!("{found} ({})", proxy.served_by.basis),
        );
    }
    let found = format!("{} {} ({})", proxy.mode.value, proxy.version.value, proxy.version.basis);
    let what = "kube-proxy's mode and version are known";
    if proxy.mode.is_supposed() || proxy.version.is_supposed() {
        Check::unknown(what, found)
            .next(Advice::on(&node.name, &Command::new("curl -s localhost:10249/proxyMode")))
    } else {
        Check::ok(what, found)
    }
}

/// Returns whether a node's groups let in ports from any address. Returns `None` if the groups are
/// not known.
pub(super) fn group_lets_in(
    engine: &Engine<'_>,
    node: &Node,
    ports: (u16, u16),
) -> Option<Result<(), String>> {
    groups_let(engine, node, ports, any_client(Family::V4))
}

fn groups_let(
    engine: &Engine<'_>,
    node: &Node,
    (first, last): (u16, u16),
    peer: IpAddr,
) -> Option<Result<(), String>> {
    let names = node.security_groups.as_ref()?;
    let known = &engine.cluster().security_groups;
    let groups: Vec<_> = names.iter().map(|name| known.get(name)).collect::<Option<_>>()?;
    // The answer can only change where the ports of a rule begin or end.
    let rules: Vec<&SecurityRule> = groups.iter().flat_map(|group| &group.inbound).collect();
    let edges = rules.iter().filter_map(|rule| rule.ports);
    let mut ports: Vec<u16> = edges
        .flat_map(|(from, to)| [from, to.saturating_add(1)])
        .chain([first, last])
        .filter(|port| (first..=last).contains(port))
        .collect();
    ports.sort_unstable();
    ports.dedup();
    for port in ports {
        let rule = rules.iter().find(|rule| rule.matches(peer, Some(Protocol::Tcp), port));
        match rule {
            Some(rule) if rule.accept => {}
            Some(rule) => return Some(Err(format!("port {port} is dropped by {}", rule.origin))),
            None => {
                let is_any = peer == any_client(Family::V4);
                let from = if is_any { "any address".to_owned() } else { peer.to_string() };
                let names = names.join(", ");
                return Some(Err(format!("no rule of {names} accepts port {port} from {from}")));
            }
        }
    }
    Some(Ok(()))
}

fn lets(engine: &Engine<'_>, node: &Node, peers: &str, ports: (u16, u16), peer: IpAddr) -> Check {
    let cluster = engine.cluster();
    let what = format!("its {} lets in {peers}", cloud::firewall(cluster));
    match groups_let(engine, node, ports, peer) {
        None => {
            let groups = cloud::firewalls(cluster);
            let place = cloud::place(cluster);
            Check::unknown(what, format!("its {groups}, or their rules, are not stated")).next(
                Advice::sentence(&format!(
                    "look {place}, or state nodes.*.securityGroups in Facts"
                )),
            )
        }
        Some(Ok(())) => Check::ok(what, "as Facts state it"),
        Some(Err(why)) => Check::failed(what, why).next(Code::SecurityGroup.explain()),
    }
}

fn stated(what: &str, fact: Option<bool>, how: &'static str) -> Check {
    match fact {
        Some(true) => Check::ok(what, "as Facts state it"),
        Some(false) => {
            Check::failed(what, "Facts state that it does not").next(Code::CrossNode.explain())
        }
        None => Check::unknown(what, "not stated, and assumed").next(how),
    }
}

fn rp_filter(engine: &Engine<'_>, node: &Node) -> Check {
    let what = "rp_filter does not drop packets that come back another way";
    let is_cni = engine.cluster().network.mode.value == NetworkMode::VpcCni;
    match node.rp_filter {
        None => Check::unknown(what, "not stated")
            .next("sysctl net.ipv4.conf.all.rp_filter net.ipv4.conf.eth0.rp_filter"),
        Some(RpFilter::Off) => Check::ok(what, "0"),
        Some(RpFilter::Loose) => Check::ok(what, "2: loose"),
        Some(RpFilter::Strict) if is_cni => {
            Check::failed(what, "1, and pods have addresses of the VPC")
                .next(Code::ReversePathFilter.explain())
        }
        Some(RpFilter::Strict) => Check::ok(what, "1: strict; fine with pods behind a bridge"),
    }
}

/// Checks the node's own rules, above all those that stop health checks.
fn firewall(cluster: &Cluster, node: &Node) -> Check {
    let probes = cloud::words(cluster).probes;
    let what = format!("no firewall on the node stops {probes} or NodePorts");
    let Some(firewall) = &node.firewall else {
        return Check::unknown(what, "no rules beside kube-proxy's are stated")
            .next(Advice::on(&node.name, &Command::new("iptables-save | grep -v KUBE-")));
    };
    let stops = |line: &&str| line.contains("-j DROP") || line.contains("-j REJECT");
    let lines: Vec<&str> = firewall.text.lines().filter(stops).collect();
    match lines.as_slice() {
        [] => Check::ok(what, format!("{} has no rule that stops anything", firewall.origin)),
        some => {
            let mut check = Check::new(what, State::Failed);
            check.evidence = some.iter().map(|line| line.trim().to_owned()).collect();
            check.evidence.push(firewall.origin.to_string());
            check.next(Code::NodeFirewall.explain())
        }
    }
}

fn programmed(engine: &Engine<'_>, node: &Node) -> Check {
    if let Some(other) = engine.cluster().proxy.replaced_by() {
        let what = format!("{other} serves every Service");
        return Check::unknown(what, "what it has programmed is not read");
    }
    let what = "kube-proxy has programmed every Service";
    if !node.unprogrammed.is_empty() {
        let some: Vec<String> = node.unprogrammed.iter().map(ToString::to_string).collect();
        return Check::failed(what, format!("not {}", some.join(", ")))
            .next(Code::RulesMissing.explain());
    }
    let see = match engine.cluster().proxy.mode.value {
        ProxyMode::Iptables => "iptables-save | grep -c KUBE-SVC",
        ProxyMode::Ipvs => "ipvsadm -Ln",
        ProxyMode::Nftables => "nft list table ip kube-proxy",
    };
    if engine.cluster().captures.contains_key(&node.name) {
        Check::ok(what, "its capture is compared below")
    } else {
        let see = Advice::on(&node.name, &Command::new(see));
        Check::unknown(what, "it was not captured").next(see)
    }
}
