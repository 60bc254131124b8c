//! Captures that say what would be worked out without them.
//!
//! A node that is well has the rules that kube-proxy writes, maybe some of its own beside them,
//! and routes that lead where those of every node lead. Where a capture comes to just that for
//! every address that anybody here has, a scan takes the node for one without a capture, with
//! what it has of its own as the node's firewall: it is then like others of its class, and its
//! rules need not be walked for each Service anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::IpAddr;

use ipnet::IpNet;
use uturn_model::capture::CaptureFile;
use uturn_model::node::{Firewall, RpFilter};
use uturn_model::{Capture, Cluster, Family, Node, Text};
use uturn_netfilter::hash::FastMap;
use uturn_netfilter::iptables::{Chain, Rule, Ruleset, TableKind};
use uturn_netfilter::{NodeState, PolicyRule, RouteEntry, RouteKind, nft};

use crate::census::addresses;
use crate::node::World;

/// Chains to which every Service adds, in no order.
const SHARED: [&str; 4] =
    ["KUBE-SERVICES", "KUBE-NODEPORTS", "KUBE-EXTERNAL-SERVICES", "KUBE-PROXY-FIREWALL"];

/// Those beside the addresses of a cluster's objects that packets may come from or go to:
/// somebody outside, and whom load balancers send in the name of.
const OTHERS: [&str; 5] =
    ["198.51.100.10", "192.0.2.1", "100.64.0.1", "100.127.0.1", "2001:db8:ffff::1"];

/// Every address that a packet of a scan may have.
pub(crate) fn known_addresses(cluster: &Cluster) -> Vec<IpAddr> {
    let nodes = cluster.nodes.values().flat_map(|node| &node.internal_ips);
    let families: BTreeSet<Family> = nodes.map(|ip| Family::of(*ip)).collect();
    let others = OTHERS.iter().filter_map(|one| one.parse().ok());
    let mut all: BTreeSet<IpAddr> =
        others.filter(|ip| families.contains(&Family::of(*ip))).collect();
    for node in cluster.nodes.values() {
        all.extend(node.internal_ips.iter().chain(&node.external_ips));
        for net in &node.pod_cidrs {
            all.extend([net.network(), net.broadcast()]);
            all.extend(net.hosts().next());
        }
    }
    all.extend(cluster.pods.values().flat_map(|pod| &pod.ips));
    all.extend(cluster.services.values().flat_map(addresses));
    let slices = cluster.endpoints.values().flatten();
    all.extend(slices.flat_map(|slice| &slice.endpoints).map(|one| one.address));
    let ingresses = cluster.ingresses.values().flat_map(|one| &one.load_balancer);
    all.extend(ingresses.filter_map(|one| one.ip));
    all.extend(cluster.load_balancers.iter().map(|one| one.vip));
    all.extend(cluster.dns.outside.iter().map(|(_, ip)| *ip));
    all.into_iter().collect()
}

/// A captured node as it is without its capture, if that comes to the same.
pub(crate) fn without_capture(
    cluster: &Cluster,
    node: &Node,
    captured: &World,
    known: &[IpAddr],
) -> Option<Node> {
    let capture = cluster.captures.get(&node.name)?;
    let state = captured.kernel.state();
    let mut plain = node.clone();
    if capture.files.contains_key(&CaptureFile::Sysctls) {
        switch(&mut plain, captured)?;
    }
    if capture.has_rules(Family::V4) {
        plain.firewall = None;
        let bare = World::without_capture(cluster, &plain).ok()?;
        let own = beyond(&bare.kernel.state().iptables, &state.iptables)?;
        if !own.is_empty() {
            plain.firewall = Some(Firewall { text: own.into(), origin: node.origin.clone() });
        }
    }
    let worked_out = World::without_capture(cluster, &plain).ok()?;
    let is_same = are_alike(state, worked_out.kernel.state())
        && has_same_links(cluster, node, captured, &worked_out)
        && (!knows_links(capture) || leads_alike(captured, &worked_out, known));
    is_same.then_some(plain)
}

fn knows_links(capture: &Capture) -> bool {
    [CaptureFile::Addresses, CaptureFile::Routes]
        .iter()
        .all(|file| capture.files.contains_key(file))
}

/// States what the captured switches say; nothing where that cannot be stated.
fn switch(plain: &mut Node, captured: &World) -> Option<()> {
    let sysctls = &captured.kernel.state().sysctls;
    plain.forwards = Some(sysctls.ip_forward(Family::V4));
    plain.rp_filter = Some(match sysctls.rp_filter(&captured.uplink) {
        0 => RpFilter::Off,
        1 => RpFilter::Strict,
        2 => RpFilter::Loose,
        _ => return None,
    });
    let [v4, v6] =
        ["0.0.0.0", "::"].map(|ip| ip.parse().map(|ip| captured.bridge_shows_rules(ip)).ok());
    if v4 != v6 {
        return None;
    }
    plain.bridge_rules = v4;
    Some(())
}

/// What a ruleset has beside another, as a part of a dump that is loaded onto that; nothing
/// where some rule of a chain of kube-proxy's is not there.
fn beyond(base: &Ruleset, whole: &Ruleset) -> Option<String> {
    let mut text = String::new();
    for table in &whole.tables {
        let known = base.table(table.kind);
        let (mut heads, mut rules) = (String::new(), String::new());
        for chain in &table.chains {
            let below = known.and_then(|table| table.chain(&chain.name));
            match (chain.policy, below) {
                (Some(policy), _) => {
                    let _ = writeln!(heads, ":{} {} [0:0]", chain.name, policy.as_str());
                }
                (None, None) => {
                    let _ = writeln!(heads, ":{} - [0:0]", chain.name);
                }
                (None, Some(_)) => {}
            }
            let there = below.map_or(&[][..], |chain| chain.rules.as_slice());
            let of = |rules| lines(&chain.name, rules);
            let rest = match chain.rules.split_at_checked(there.len()) {
                Some((first, rest)) if of(first) == of(there) => rest,
                // What kube-proxy has in these is the same for all Services.
                _ if chain.policy.is_some() => {
                    let _ = writeln!(rules, "-F {}", chain.name);
                    chain.rules.as_slice()
                }
                _ => return None,
            };
            for rule in rest {
                let _ = writeln!(rules, "{}", rule.line(&chain.name));
            }
        }
        let says_nothing = |line: &str| line.ends_with(" ACCEPT [0:0]");
        if !rules.is_empty() || !heads.lines().all(says_nothing) {
            let _ = write!(text, "*{}\n{heads}{rules}COMMIT\n", table.kind);
        }
    }
    Some(text)
}

/// The rules of a chain as they count: those of Services in a shared chain in one order.
fn lines(chain: &str, rules: &[Rule]) -> Vec<String> {
    let line = |rule: &Rule| without_comment(&rule.line(chain).to_string());
    let mut lines: Vec<String> = rules.iter().map(line).collect();
    if SHARED.contains(&chain) {
        // The rule for node ports is the last, and has several lines on some nodes.
        let is_last = |line: &String| line.contains("-j KUBE-NODEPORTS");
        let end = lines.iter().position(is_last).unwrap_or(lines.len());
        let matches = |line: &String| line.split(" -j ").next().unwrap_or_default().to_owned();
        let distinct: BTreeSet<String> = lines[..end].iter().map(matches).collect();
        // Of two rules for the same packets, the first one counts.
        if distinct.len() == end {
            lines[..end].sort();
        }
    }
    lines
}

/// A rule's line without what is said of it.
fn without_comment(line: &str) -> String {
    const COMMENT: &str = " -m comment --comment ";
    let Some((before, after)) = line.split_once(COMMENT) else { return line.to_owned() };
    let rest = match after.strip_prefix('"') {
        Some(quoted) => {
            let mut is_escaped = false;
            let end = quoted.find(|c: char| {
                let ends = c == '"' && !is_escaped;
                is_escaped = c == '\\' && !is_escaped;
                ends
            });
            end.map_or("", |end| &quoted[end + 1..])
        }
        None => after.find(' ').map_or("", |end| &after[end..]),
    };
    format!("{before}{rest}")
}

/// Whether two kernels have rules, sets, servers and switches that do the same.
fn are_alike(one: &NodeState, other: &NodeState) -> bool {
    let policies = |state: &NodeState| {
        let mut all: Vec<String> = state.rules.iter().map(policy).collect();
        all.sort();
        all
    };
    let words = |text: String| {
        let mut words: Vec<String> = text.lines().map(str::to_owned).collect();
        words.sort();
        words
    };
    let switches = |state: &NodeState| {
        let all = &state.sysctls;
        (
            [Family::V4, Family::V6].map(|family| all.ip_forward(family)),
            [all.tcp_be_liberal(), all.tcp_loose()],
            [all.ipvs_conntrack(), all.ipvs_sloppy_tcp(), all.ipvs_snat_reroute()],
        )
    };
    chains(&one.iptables) == chains(&other.iptables)
        && chains(&one.ip6tables) == chains(&other.ip6tables)
        && blocks(one) == blocks(other)
        && words(one.sets.to_string()) == words(other.sets.to_string())
        && words(one.ipvs.to_string()) == words(other.ipvs.to_string())
        && policies(one) == policies(other)
        && switches(one) == switches(other)
}

fn policy(rule: &PolicyRule) -> String {
    let PolicyRule { priority, from, to, iif, oif, mark, invert, action, origin: _ } = rule;
    format!("{priority} {from:?} {to:?} {iif:?} {oif:?} {mark:?} {invert} {action:?}")
}

/// Chains that do something, with policy and rules.
fn chains(rules: &Ruleset) -> BTreeMap<(TableKind, &str), (String, Vec<String>)> {
    let all = rules.tables.iter().flat_map(|table| {
        table.chains.iter().map(move |chain: &Chain| {
            let policy = chain.policy.map_or("", |policy| policy.as_str()).to_owned();
            ((table.kind, &*chain.name), (policy, lines(&chain.name, &chain.rules)))
        })
    });
    // Jumping to a chain without rules does nothing, so whether it is there makes none.
    all.filter(|(_, (policy, lines))| !lines.is_empty() || !matches!(&**policy, "" | "ACCEPT"))
        .collect()
}

/// The tables of nftables: each chain as it is, the elements of sets and maps in one order.
fn blocks(state: &NodeState) -> BTreeMap<String, Vec<String>> {
    let tables = state.nft.tables.iter().filter(|table| state.counts(table));
    let mut blocks: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for table in tables {
        let text = nft::Ruleset { tables: vec![table.clone()] }.to_string();
        let mut head = String::new();
        for line in text.lines() {
            if !line.starts_with("\t\t") {
                head = format!("{:?} {} {}", table.family, table.name, line.trim());
            }
            blocks.entry(head.clone()).or_default().push(line.trim().to_owned());
        }
    }
    for (_, lines) in blocks.iter_mut().filter(|(head, _)| !head.contains(" chain ")) {
        let text = lines.join(" ");
        if let Some((before, elements)) = text.split_once("elements = {") {
            let mut elements: Vec<String> =
                elements.trim_end_matches([' ', '}']).split(',').map(one_space).collect();
            elements.sort();
            elements.push(one_space(before));
            *lines = elements;
        }
    }
    blocks
}

/// A text with one space where it has several.
fn one_space(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether pods and the fabric are at the same links, and these are alike.
fn has_same_links(cluster: &Cluster, node: &Node, one: &World, other: &World) -> bool {
    let pods = cluster.pods_on(&node.name).filter(|pod| !pod.spec.host_network);
    let pods: Vec<IpAddr> = pods.flat_map(|pod| pod.ips.iter().copied()).collect();
    let link = |world: &World, pod: &IpAddr| {
        let link = world.pod_link(*pod);
        (world.is_bridge(&link, *pod), link)
    };
    let own = pods.first().map(|pod| link(one, pod).1);
    let mut links = [Some(&one.uplink), one.card.as_ref(), own.as_ref()].into_iter().flatten();
    let (state, others) = (one.kernel.state(), other.kernel.state());
    (&one.uplink, &one.card) == (&other.uplink, &other.card)
        && pods.iter().all(|pod| link(one, pod) == link(other, pod))
        && links.all(|link| {
            let look = looks(state, link);
            look.is_some() && look == looks(others, link)
        })
}

/// Whether packets from and to all these addresses are led alike.
fn leads_alike(one: &World, other: &World, known: &[IpAddr]) -> bool {
    let usual: Vec<String> = PolicyRule::defaults().iter().map(policy).collect();
    let is_usual = |rule: &PolicyRule| usual.contains(&policy(rule));
    let (own, worked_out) = (one.kernel.state(), other.kernel.state());
    if !own.rules.iter().all(is_usual) {
        return false;
    }
    let ways = Ways::of(own);
    let others = Ways::of(worked_out);
    known.iter().all(|ip| {
        let found = ways.find(*ip);
        found.is_some() && found == others.find(*ip)
    })
}

/// An interface's switches, whether it is up, and its address of each family; nothing where
/// it has several.
fn looks(state: &NodeState, link: &str) -> Option<(Vec<bool>, u8, Vec<IpAddr>)> {
    let all = &state.sysctls;
    let interface = state.interfaces.iter().find(|one| *one.name == *link)?;
    let is_own = |ip: &IpAddr| !matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
    let mut own: Vec<IpAddr> =
        interface.addresses.iter().map(|(ip, _)| *ip).filter(is_own).collect();
    own.sort();
    let is_only = |family| own.iter().filter(|ip| Family::of(**ip) == family).count() < 2;
    if !Family::BOTH.into_iter().all(is_only) {
        return None;
    }
    let switches = vec![
        interface.up,
        all.forwards_from(link),
        all.accept_local(link),
        all.route_localnet(link),
        all.src_valid_mark(link),
    ];
    Some((switches, all.rp_filter(link), own))
}

/// Where a route leads, and the source that it gives.
type Way<'s> = (RouteKind, Option<&'s str>, Option<IpAddr>);

/// Routes by family, in the order in which tables are asked; then by length of prefix, the
/// longest first, and network.
struct Ways<'s> {
    state: &'s NodeState,
    tables: BTreeMap<(Family, u8), Lengths<'s>>,
}

type Lengths<'s> = BTreeMap<std::cmp::Reverse<u8>, FastMap<IpAddr, Vec<&'s RouteEntry>>>;

impl<'s> Ways<'s> {
    fn of(state: &'s NodeState) -> Self {
        use uturn_netfilter::{TABLE_DEFAULT, TABLE_LOCAL, TABLE_MAIN};
        let mut tables: BTreeMap<(Family, u8), Lengths<'s>> = BTreeMap::new();
        for route in &state.routes {
            let rank = match route.table {
                TABLE_LOCAL => 0,
                TABLE_MAIN => 1,
                TABLE_DEFAULT => 2,
                _ => continue,
            };
            let table = tables.entry((Family::of(route.dst.addr()), rank)).or_default();
            let lengths = table.entry(std::cmp::Reverse(route.dst.prefix_len())).or_default();
            lengths.entry(route.dst.network()).or_default().push(route);
        }
        Self { state, tables }
    }

    /// The way to an address; nothing where there are several of one rank.
    fn find(&self, ip: IpAddr) -> Option<Way<'s>> {
        let is_here = |(own, _): &(IpAddr, u8)| *own == ip;
        if self.state.interfaces.iter().any(|one| one.addresses.iter().any(is_here)) {
            return Some((RouteKind::Local, None, None));
        }
        let family = Family::of(ip);
        for rank in 0..3 {
            for (length, nets) in self.tables.get(&(family, rank)).into_iter().flatten() {
                let network = IpNet::new(ip, length.0).ok()?.network();
                let Some(routes) = nets.get(&network) else { continue };
                let best = routes.iter().min_by_key(|route| route.metric)?;
                if routes.iter().filter(|route| route.metric == best.metric).count() > 1 {
                    return None;
                }
                return Some(match best.kind {
                    RouteKind::Throw => break,
                    RouteKind::Unicast => {
                        (best.kind, best.dev.as_deref(), best.src.or_else(|| self.own(best)))
                    }
                    other => (other, None, None),
                });
            }
        }
        Some((RouteKind::Unreachable, None, None))
    }

    /// The address that a packet gets that leaves there.
    fn own(&self, route: &RouteEntry) -> Option<IpAddr> {
        let family = Family::of(route.dst.addr());
        let dev: &Text = route.dev.as_ref()?;
        let link = self.state.interfaces.iter().find(|one| one.name == *dev)?;
        let mut all = link.addresses.iter().map(|(ip, _)| *ip);
        all.find(|ip| Family::of(*ip) == family)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Ruleset {
        uturn_netfilter::iptables::parse("x", text, Family::V4).unwrap()
    }

    #[test]
    fn what_a_node_has_beside_kube_proxys_rules_is_its_own() {
        let base = "*filter\n:FORWARD ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\n\
            -A FORWARD -m comment --comment \"a \\\"b\\\" c\" -j KUBE-SERVICES\n\
            -A KUBE-SERVICES -d 10.0.0.1/32 -j ACCEPT\n\
            -A KUBE-SERVICES -d 10.0.0.2/32 -j ACCEPT\nCOMMIT\n";
        let whole = "*filter\n:FORWARD DROP [1:2]\n:OWN - [0:0]\n:KUBE-SERVICES - [0:0]\n\
            -A FORWARD -m comment --comment other -j KUBE-SERVICES\n-A FORWARD -j OWN\n\
            -A OWN -s 10.9.9.9/32 -j DROP\n\
            -A KUBE-SERVICES -d 10.0.0.2/32 -j ACCEPT\n\
            -A KUBE-SERVICES -d 10.0.0.1/32 -j ACCEPT\nCOMMIT\n";
        let own = beyond(&rules(base), &rules(whole)).unwrap();
        assert_eq!(
            own,
            "*filter\n:FORWARD DROP [0:0]\n:OWN - [0:0]\n-A FORWARD -j OWN\n\
             -A OWN -s 10.9.9.9/32 -j DROP\nCOMMIT\n"
        );
        let again =
            uturn_netfilter::iptables::parse_fragment(rules(base), "x", &own, Family::V4).unwrap();
        assert_eq!(chains(&again), chains(&rules(whole)));
        assert_eq!(beyond(&rules(base), &rules(base)).unwrap(), "");
    }

    const BASE: &str = "*filter\n:FORWARD ACCEPT [0:0]\n:K - [0:0]\n-A FORWARD -j K\n\
        -A K -j DROP\nCOMMIT\n";

    #[test]
    fn what_stands_before_kube_proxys_rules_is_its_own_too() {
        let whole = BASE.replace("-A FORWARD", "-A FORWARD -s 10.9.9.9/32 -j ACCEPT\n-A FORWARD");
        let own = beyond(&rules(BASE), &rules(&whole)).unwrap();
        let again =
            uturn_netfilter::iptables::parse_fragment(rules(BASE), "x", &own, Family::V4).unwrap();
        assert_eq!(chains(&again), chains(&rules(&whole)), "{own}");
    }

    #[test]
    fn a_chain_of_kube_proxys_that_lacks_a_rule_is_none() {
        let found = beyond(&rules(BASE), &rules(&BASE.replace("-A K -j DROP\n", "")));
        assert!(found.is_none(), "{found:?}");
        // A chain that is not there at all is only met when all is put together.
        let lacking = rules("*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n");
        assert_ne!(chains(&rules(BASE)), chains(&lacking));
    }

    #[test]
    fn elements_of_maps_have_no_order_and_keep_their_values() {
        let of = |elements: &str| {
            let text = format!(
                "table ip kube-proxy {{\n\tmap m {{\n\t\ttype ipv4_addr : verdict\n\t\t\
                 elements = {{ {elements} }}\n\t}}\n\n\tchain a {{\n\t\taccept\n\t}}\n\n\t\
                 chain b {{\n\t\tdrop\n\t}}\n}}\n"
            );
            let nft = nft::parse("x", &text).unwrap();
            blocks(&NodeState { nft, ..NodeState::default() })
        };
        let one = of("10.0.0.1 : goto a, 10.0.0.2 : goto b");
        assert_eq!(one, of("10.0.0.2 : goto b,\n\t\t\t     10.0.0.1 : goto a"));
        assert_ne!(one, of("10.0.0.1 : goto b, 10.0.0.2 : goto a"));
    }

    #[test]
    fn of_two_rules_for_the_same_packets_the_first_counts() {
        let text = |first: &str, second: &str| {
            rules(&format!(
                "*nat\n:KUBE-SERVICES - [0:0]\n-A KUBE-SERVICES -d 10.0.0.1/32 -j {first}\n\
                 -A KUBE-SERVICES -d 10.0.0.1/32 -j {second}\nCOMMIT\n"
            ))
        };
        assert_ne!(chains(&text("ACCEPT", "RETURN")), chains(&text("RETURN", "ACCEPT")));
    }
}
