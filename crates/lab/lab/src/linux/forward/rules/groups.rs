//! Security groups as rules at the fabric's end of each link, and in front of each load balancer.
//!
//! Groups are stateful: only the first packet of a connection is checked. Rules of several groups
//! are concatenated, the first match decides, and packets that no rule matches are dropped. An
//! unknown group admits everything. Health checks from the modelled cloud's own range pass every
//! group, those of other clouds unless a rule drops them.
//!
//! A group without outbound rules admits all outbound packets.

use std::net::IpAddr;

use uturn_clouds::cloud;
use uturn_lb::source::replaced_source;
use uturn_model::lb::{Listener, Scope, Source};
use uturn_model::network::SecurityRule;
use uturn_model::{Cluster, Family, IpNet, LoadBalancer, Node, Protocol, Text};

use crate::linux::build::links::links_of;
use crate::linux::build::public::{ANY_PUBLIC, let_in, let_in_unless_denied};
use crate::linux::forward::layer_4::is_in_kernel;

/// The chains of the mangle table from which the chains of groups are called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hooks {
    /// For packets to nodes.
    pub(crate) inbound: &'static str,
    /// For packets from nodes.
    pub(crate) outbound: &'static str,
}

impl Hooks {
    /// The built-in chains of the kernel.
    pub(super) const BUILT_IN: Self = Self { inbound: "POSTROUTING", outbound: "PREROUTING" };
}

/// Returns rules of the mangle table for the nodes' groups.
pub(crate) fn of_nodes(cluster: &Cluster, family: Family, hooks: Hooks) -> String {
    let Hooks { inbound, outbound } = hooks;
    let mut text = String::new();
    for (number, node) in cluster.nodes.values().enumerate() {
        let Some(groups) = known(cluster, node.security_groups.as_deref().unwrap_or_default())
        else {
            continue;
        };
        let links = links_of(&cluster.network, number);
        text += &format!(":SG-IN-{number} - [0:0]\n");
        for link in &links {
            // The fabric does not track packets that a public load balancer forwards to a node
            // unchanged.
            text += &format!(
                "-A {inbound} -o {link} -m conntrack --ctstate NEW,UNTRACKED -j SG-IN-{number}\n"
            );
        }
        for prober in let_in(cluster, family) {
            text += &format!("-A SG-IN-{number} -s {prober} -j RETURN\n");
        }
        let rules = chain(&format!("SG-IN-{number}"), &groups.inbound, Way::In, family);
        // A cloud's own probers are let in unless a rule keeps them out.
        let (stated, denied) = rules.split_at(rules.trim_end().rfind('\n').map_or(0, |at| at + 1));
        text += stated;
        for prober in let_in_unless_denied(family) {
            text += &format!("-A SG-IN-{number} -s {prober} -j RETURN\n");
        }
        text += denied;
        if !groups.outbound.is_empty() {
            text += &format!(":SG-OUT-{number} - [0:0]\n");
            for link in &links {
                text += &format!(
                    "-A {outbound} -i {link} -m conntrack --ctstate NEW -j SG-OUT-{number}\n"
                );
            }
            text += &chain(&format!("SG-OUT-{number}"), &groups.outbound, Way::Out, family);
        }
    }
    text
}

/// Returns rules before those of nodes' groups, for connections that the kernel forwards with a load
/// balancer's own address. These tables are walked before the client's address is replaced, so the
/// rules for the own address are chosen here. An address that stands for one that is not given is let
/// in.
pub(super) fn let_in_replaced(
    cluster: &Cluster,
    all: &[LoadBalancer],
    family: Family,
    of_nodes: &str,
) -> String {
    let mut text = String::new();
    if cloud::model(cluster).is_some() {
        return text;
    }
    let of_family = all.iter().enumerate().filter(|(_, lb)| Family::of(lb.vip) == family);
    for (place, lb) in of_family {
        let replaces = |listener: &&Listener| {
            is_in_kernel(listener) && listener.profile.source != Source::Kept
        };
        for listener in lb.listeners.iter().filter(replaces) {
            let protocol = listener.protocol.transport().lower();
            let own = match listener.profile.source {
                Source::Replaced(range) if !cloud::stands_for_balancer(range.addr()) => {
                    Some(replaced_source(range))
                }
                _ => None,
            };
            for (number, node) in cluster.nodes.values().enumerate() {
                let to = format!("SG-IN-{number}");
                if !of_nodes.contains(&format!(":{to} ")) {
                    continue;
                }
                let judge = match own {
                    None => "RETURN".to_owned(),
                    Some(own) => {
                        let judge = format!("SG-IN-{number}-{place}-{protocol}-{}", listener.port);
                        text += &format!(":{judge} - [0:0]\n");
                        text += &judged_from(cluster, node, &judge, own, family);
                        judge
                    }
                };
                let goes = if own.is_some() { "-g" } else { "-j" };
                text += &format!(
                    "-I {to} -p {protocol} -m conntrack --ctstate DNAT --ctorigdst {} \
                     --ctorigdstport {} {goes} {judge}\n",
                    lb.vip, listener.port
                );
            }
        }
    }
    text
}

/// Returns whether a node's groups let in a health check from this address.
pub(crate) fn let_in_probe(cluster: &Cluster, node: &Node, prober: IpAddr, port: u16) -> bool {
    let all = let_in(cluster, Family::of(prober));
    let Some(groups) = known(cluster, node.security_groups.as_deref().unwrap_or_default()) else {
        return true;
    };
    let mut inbound = groups.inbound.iter();
    let rule = inbound.find(|rule| rule.matches(prober, Some(Protocol::Tcp), port));
    all.contains(&prober) || rule.map_or(cloud::probers_at(prober).is_some(), |rule| rule.accept)
}

/// Returns the chain of a node's groups for packets from one source.
fn judged_from(
    cluster: &Cluster,
    node: &Node,
    name: &str,
    source: IpAddr,
    family: Family,
) -> String {
    let groups = known(cluster, node.security_groups.as_deref().unwrap_or_default());
    let inbound = groups.map(|groups| groups.inbound).unwrap_or_default();
    let from_source =
        inbound.into_iter().filter(|rule| rule.peer.is_none_or(|net| net.contains(&source)));
    let of_all: Vec<SecurityRule> =
        from_source.map(|rule| SecurityRule { peer: None, ..rule.clone() }).collect();
    let of_all: Vec<&SecurityRule> = of_all.iter().collect();
    chain(name, &of_all, Way::In, family)
}

/// Returns rules of the mangle table for the load balancers' own groups.
pub(super) fn of_balancers(cluster: &Cluster, all: &[LoadBalancer], family: Family) -> String {
    let mut text = String::new();
    for (number, lb) in all.iter().enumerate().filter(|(_, lb)| Family::of(lb.vip) == family) {
        let Some(groups) = known(cluster, &lb.security_groups) else { continue };
        text += &format!(
            ":SG-LB-{number} - [0:0]\n\
             -A PREROUTING -d {} -m conntrack --ctstate NEW -j SG-LB-{number}\n",
            lb.vip
        );
        text += &chain(&format!("SG-LB-{number}"), &groups.inbound, Way::In, family);
    }
    text
}

/// Returns rules of the mangle table for listeners that admit only some sources.
pub(super) fn of_allowed_sources(all: &[LoadBalancer], family: Family) -> String {
    let mut text = String::new();
    let of_family = all.iter().enumerate().filter(|(_, lb)| Family::of(lb.vip) == family);
    for (number, lb) in of_family {
        for listener in &lb.listeners {
            let Some(allowed) = &listener.profile.allowed_sources else { continue };
            let protocol = listener.protocol.transport().lower();
            let (vip, port) = (lb.vip, listener.port);
            let chain = format!("SRC-LB-{number}-{protocol}-{port}");
            text += &format!(
                ":{chain} - [0:0]\n\
                 -A PREROUTING -d {vip} -p {protocol} -m {protocol} --dport {port} \
                 -m conntrack --ctstate NEW -j {chain}\n"
            );
            let mut sources: Vec<IpNet> =
                allowed.iter().filter(|net| Family::of(net.addr()) == family).copied().collect();
            if lb.scope == Scope::Public && family == Family::V4 {
                // The prediction assumes that an address that is not given is admitted.
                sources.push(IpNet::from(ANY_PUBLIC));
            }
            for source in sources {
                text += &format!("-A {chain} -s {source} -j RETURN\n");
            }
            text += &format!("-A {chain} -j DROP\n");
        }
    }
    text
}

/// The concatenated rules of groups.
struct Groups<'a> {
    inbound: Vec<&'a SecurityRule>,
    outbound: Vec<&'a SecurityRule>,
}

/// Concatenates the rules of groups. Returns `None` if everything is admitted: there is no group,
/// or one is unknown.
fn known<'a>(cluster: &'a Cluster, names: &[Text]) -> Option<Groups<'a>> {
    let groups: Vec<_> =
        names.iter().map(|name| cluster.security_groups.get(name)).collect::<Option<_>>()?;
    let inbound = groups.iter().flat_map(|group| &group.inbound).collect();
    let outbound = groups.iter().flat_map(|group| &group.outbound).collect();
    (!groups.is_empty()).then_some(Groups { inbound, outbound })
}

#[derive(Clone, Copy)]
enum Way {
    In,
    Out,
}

fn chain(chain: &str, rules: &[&SecurityRule], way: Way, family: Family) -> String {
    let of_family =
        |rule: &&&SecurityRule| rule.peer.is_none_or(|peer| Family::of(peer.addr()) == family);
    let mut text = String::new();
    for rule in rules.iter().filter(of_family) {
        let verdict = if rule.accept { "RETURN" } else { "DROP" };
        let peer = match (rule.peer, way) {
            (None, _) => String::new(),
            (Some(peer), Way::In) => format!("-s {peer} "),
            (Some(peer), Way::Out) => format!("-d {peer} "),
        };
        for what in matches(rule) {
            text += &format!("-A {chain} {peer}{what}-j {verdict}\n");
        }
    }
    text + &format!("-A {chain} -j DROP\n")
}

/// Returns the protocol and port matches of a rule. A rule for ports of every protocol becomes one
/// for each protocol with ports.
fn matches(rule: &SecurityRule) -> Vec<String> {
    let protocols = match (rule.protocol, rule.ports) {
        (Some(protocol), _) => vec![protocol],
        (None, None) => return vec![String::new()],
        (None, Some(_)) => vec![Protocol::Tcp, Protocol::Udp, Protocol::Sctp],
    };
    let ports = |name: &str| match rule.ports {
        None => String::new(),
        Some((first, last)) => format!("-m {name} --dport {first}:{last} "),
    };
    protocols
        .into_iter()
        .map(|protocol| format!("-p {0} {1}", protocol.lower(), ports(protocol.lower())))
        .collect()
}

#[cfg(test)]
mod tests {
    use uturn_model::Origin;

    use super::*;

    fn rule(accept: bool, protocol: Option<Protocol>, ports: bool, peer: &str) -> SecurityRule {
        SecurityRule {
            accept,
            protocol,
            ports: ports.then_some((30000, 32768)),
            peer: peer.parse().ok(),
            origin: Origin::file("test"),
        }
    }

    #[test]
    fn rules_stand_in_a_row_and_the_rest_is_dropped() {
        let rules = [
            rule(true, Some(Protocol::Tcp), true, "10.0.0.0/8"),
            rule(false, None, true, ""),
            rule(true, None, false, ""),
            rule(true, None, false, "fd00::/8"),
        ];
        let rules: Vec<&SecurityRule> = rules.iter().collect();
        assert_eq!(
            chain("C", &rules, Way::In, Family::V4),
            "-A C -s 10.0.0.0/8 -p tcp -m tcp --dport 30000:32768 -j RETURN\n\
             -A C -p tcp -m tcp --dport 30000:32768 -j DROP\n\
             -A C -p udp -m udp --dport 30000:32768 -j DROP\n\
             -A C -p sctp -m sctp --dport 30000:32768 -j DROP\n\
             -A C -j RETURN\n\
             -A C -j DROP\n"
        );
        assert_eq!(
            chain("C", &rules[3..], Way::Out, Family::V6),
            "-A C -d fd00::/8 -j RETURN\n-A C -j DROP\n"
        );
    }
}
