//! Captures that equal what would be derived without them.
//!
//! A healthy node has the rules that kube-proxy writes, perhaps some additional rules, and routes
//! that lead where those of every node lead. If a capture has just that for every address of the
//! cluster, a scan ignores the capture and keeps the additional rules as the node's firewall: the
//! node is then like others of its class, and its rules need not be walked for each Service.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::IpAddr;

use ipnet::IpNet;
use uturn_model::capture::CaptureFile;
use uturn_model::node::{Firewall, RpFilter};
use uturn_model::{Cluster, Family, Node, Text};
use uturn_netfilter::hash::{FastMap, FastSet};
use uturn_netfilter::iptables::{Chain, Match, Rule, Ruleset, TableKind};
use uturn_netfilter::ipvs::{VirtualAddress, VirtualServer, VirtualServers};
use uturn_netfilter::{NodeState, PolicyRule, RouteEntry, RouteKind, nft};
use uturn_path::NodeRuntime;

use crate::addresses;

/// Chains to which every Service adds, in no order.
const SHARED: [&str; 4] =
    ["KUBE-SERVICES", "KUBE-NODEPORTS", "KUBE-EXTERNAL-SERVICES", "KUBE-PROXY-FIREWALL"];

/// Those beside the addresses of a cluster's objects that packets may come from or go to:
/// a client outside, and the addresses that load balancers send from.
const OTHERS: [&str; 5] =
    ["198.51.100.10", "192.0.2.1", "100.64.0.1", "100.127.0.1", "2001:db8:ffff::1"];

/// The addresses that packets of a scan have.
pub(crate) struct Addresses {
    /// Those that may be called, in their order.
    called: BTreeSet<IpAddr>,
    /// These, and those that packets may come from.
    all: BTreeSet<IpAddr>,
}

impl Addresses {
    /// Those of a cluster.
    pub(crate) fn of(cluster: &Cluster) -> Self {
        let mut called = BTreeSet::new();
        let nodes = || cluster.nodes.values();
        called.extend(nodes().flat_map(|node| node.internal_ips.iter().chain(&node.external_ips)));
        called.extend(cluster.pods.values().flat_map(|pod| &pod.ips));
        called.extend(cluster.services.values().flat_map(addresses::of_service));
        let slices = cluster.endpoints.values().flatten();
        called.extend(slices.flat_map(|slice| &slice.endpoints).map(|endpoint| endpoint.address));
        let ingresses = cluster.ingresses.values().flat_map(|ingress| &ingress.load_balancer);
        called.extend(ingresses.filter_map(|entry| entry.ip));
        called.extend(cluster.load_balancers.iter().map(|balancer| balancer.vip));
        called.extend(cluster.dns.outside.iter().map(|(_, ip)| *ip));
        let families: BTreeSet<Family> =
            nodes().flat_map(|node| &node.internal_ips).map(|ip| Family::of(*ip)).collect();
        let others = OTHERS.iter().filter_map(|address| address.parse().ok());
        let mut all: BTreeSet<IpAddr> =
            others.filter(|ip| families.contains(&Family::of(*ip))).collect();
        for net in nodes().flat_map(|node| &node.pod_cidrs) {
            all.extend([net.network(), net.broadcast()]);
            all.extend(net.hosts().next());
        }
        all.extend(&called);
        Self { called, all }
    }
}

/// A captured node without its capture. Returns `None` if the capture makes a difference.
pub(crate) fn without_capture(
    cluster: &Cluster,
    node: &Node,
    captured: &NodeRuntime,
    known: &Addresses,
) -> Option<Node> {
    let capture = cluster.captures.get(&node.name)?;
    let state = captured.kernel.state();
    let mut plain = node.clone();
    if capture.files.contains_key(&CaptureFile::Sysctls) {
        switch(&mut plain, captured)?;
    }
    if capture.has_rules(Family::V4) {
        plain.firewall = None;
    }
    let mut worked_out = NodeRuntime::without_capture(cluster, &plain).ok()?;
    if capture.has_rules(Family::V4) {
        let own = beyond(&worked_out.kernel.state().iptables, &state.iptables)?;
        if !own.is_empty() {
            plain.firewall = Some(Firewall { text: own.into(), origin: node.origin.clone() });
            worked_out = NodeRuntime::without_capture(cluster, &plain).ok()?;
        }
    }
    // A node without addresses of a family receives no packets of that family.
    let has = |family: &Family| {
        let is_of = |net: &IpNet| Family::of(net.addr()) == *family;
        node.address(*family).is_some() || node.pod_cidrs.iter().any(is_of)
    };
    let families: Vec<Family> = Family::BOTH.into_iter().filter(has).collect();
    let is_same = are_alike(&families, known, state, worked_out.kernel.state())
        && has_same_links(cluster, node, captured, &worked_out)
        && (!capture.has_links() || leads_alike(captured, &worked_out, known));
    is_same.then_some(plain)
}

/// States what the captured switches say; nothing where that cannot be stated.
fn switch(plain: &mut Node, captured: &NodeRuntime) -> Option<()> {
    let sysctls = &captured.kernel.state().sysctls;
    plain.forwards = Some(sysctls.ip_forward(Family::V4));
    plain.rp_filter = Some(match sysctls.rp_filter(&captured.uplink) {
        0 => RpFilter::Off,
        1 => RpFilter::Strict,
        2 => RpFilter::Loose,
        _ => return None,
    });
    let [v4, v6] = Family::BOTH.map(|family| captured.bridge_shows_rules(family));
    if v4 != v6 {
        return None;
    }
    plain.bridge_rules = Some(v4);
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
    let mut lines: Vec<String> = rules.iter().map(|rule| bare_line(chain, rule)).collect();
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

/// A rule's line without its comments and counters.
fn bare_line(chain: &str, rule: &Rule) -> String {
    let asks = |matched: &&Match| !matches!(matched, Match::Comment(_) | Match::Nfacct(_));
    let matches: Vec<Match> = rule.matches.iter().filter(asks).cloned().collect();
    Rule { matches: matches.into(), ..rule.clone() }.line(chain).to_string()
}

/// Whether two kernels have rules, sets, servers and switches that do the same to packets of
/// these families.
fn are_alike(families: &[Family], known: &Addresses, own: &NodeState, other: &NodeState) -> bool {
    let policies = |state: &NodeState| {
        let mut all: Vec<String> = state.rules.iter().map(policy).collect();
        all.sort();
        all
    };
    let counts = |line: &&str| families.contains(&Family::V6) || !line.contains(" KUBE-6-");
    let lines = |text: String| {
        // How large a set is made says nothing.
        let without_sizes =
            |line: &str| line.split(" hashsize ").next().unwrap_or_default().to_owned();
        let mut lines: Vec<String> = text.lines().filter(counts).map(without_sizes).collect();
        lines.sort();
        lines
    };
    let switches = |state: &NodeState| {
        let all = &state.sysctls;
        (
            families.iter().map(|family| all.ip_forward(*family)).collect::<Vec<_>>(),
            [all.tcp_be_liberal(), all.tcp_loose()],
            [all.ipvs_conntrack(), all.ipvs_sloppy_tcp(), all.ipvs_snat_reroute()],
        )
    };
    let has_same_rules = |family: &Family| match family {
        Family::V4 => chains(&own.iptables) == chains(&other.iptables),
        Family::V6 => chains(&own.ip6tables) == chains(&other.ip6tables),
    };
    families.iter().all(has_same_rules)
        && blocks(families, own) == blocks(families, other)
        && lines(own.sets.to_string()) == lines(other.sets.to_string())
        && servers(known, own) == servers(known, other)
        && policies(own) == policies(other)
        && switches(own) == switches(other)
}

/// The virtual servers that may be called. A node has those of node ports at each of its
/// addresses, and the cluster does not know them all.
fn servers(known: &Addresses, state: &NodeState) -> Vec<String> {
    let is_called = |server: &&VirtualServer| match server.at {
        VirtualAddress::Address { address, .. } => known.called.contains(&address.ip()),
        VirtualAddress::Mark { .. } => true,
    };
    let called = VirtualServers(state.ipvs.0.iter().filter(is_called).cloned().collect());
    let mut lines: Vec<String> = called.to_string().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn policy(rule: &PolicyRule) -> String {
    rule.to_string()
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
fn blocks(families: &[Family], state: &NodeState) -> BTreeMap<String, Vec<String>> {
    let is_met = |table: &&nft::Table| match table.family {
        nft::TableFamily::Ip => families.contains(&Family::V4),
        nft::TableFamily::Ip6 => families.contains(&Family::V6),
        _ => true,
    };
    let tables = state.nft.tables.iter().filter(is_met).filter(|table| state.is_walked(table));
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
fn has_same_links(
    cluster: &Cluster,
    node: &Node,
    runtime: &NodeRuntime,
    other: &NodeRuntime,
) -> bool {
    let pods = cluster.pods_on(&node.name).filter(|pod| !pod.spec.host_network);
    let pods: Vec<IpAddr> = pods.flat_map(|pod| pod.ips.iter().copied()).collect();
    let link = |world: &NodeRuntime, pod: &IpAddr| {
        let link = world.pod_link(*pod);
        (world.is_bridge(&link, *pod), link)
    };
    let own = pods.first().map(|pod| link(runtime, pod).1);
    let mut links =
        [Some(&runtime.uplink), runtime.card.as_ref(), own.as_ref()].into_iter().flatten();
    let (state, others) = (runtime.kernel.state(), other.kernel.state());
    (&runtime.uplink, &runtime.card) == (&other.uplink, &other.card)
        && pods.iter().all(|pod| link(runtime, pod) == link(other, pod))
        && links.all(|link| {
            let look = looks(state, link);
            look.is_some() && look == looks(others, link)
        })
}

/// Whether packets from and to all these addresses are led alike.
fn leads_alike(runtime: &NodeRuntime, other: &NodeRuntime, known: &Addresses) -> bool {
    let usual: Vec<String> = PolicyRule::defaults().iter().map(policy).collect();
    let is_usual = |rule: &PolicyRule| usual.contains(&policy(rule));
    let (own, worked_out) = (runtime.kernel.state(), other.kernel.state());
    if !own.rules.iter().all(is_usual) {
        return false;
    }
    let ways = Ways::of(own);
    let others = Ways::of(worked_out);
    known.all.iter().all(|ip| {
        let found = ways.find(*ip);
        found.is_some() && found == others.find(*ip)
    })
}

/// An interface's switches, whether it is up, and its address of each family; nothing where
/// it has several.
fn looks(state: &NodeState, link: &str) -> Option<(Vec<bool>, u8, Vec<IpAddr>)> {
    let all = &state.sysctls;
    let interface = state.interfaces.iter().find(|interface| *interface.name == *link)?;
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
    /// The addresses of its interfaces, of which there may be thousands.
    own: FastSet<IpAddr>,
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
        let own =
            state.interfaces.iter().flat_map(|interface| &interface.addresses).map(|(ip, _)| *ip);
        Self { state, own: own.collect(), tables }
    }

    /// The way to an address; nothing where there are several of one rank.
    fn find(&self, ip: IpAddr) -> Option<Way<'s>> {
        if self.own.contains(&ip) {
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
                        (best.kind, best.dev.as_deref(), best.src.or_else(|| self.source(best)))
                    }
                    other => (other, None, None),
                });
            }
        }
        Some((RouteKind::Unreachable, None, None))
    }

    /// The address that a packet gets that leaves there.
    fn source(&self, route: &RouteEntry) -> Option<IpAddr> {
        let family = Family::of(route.dst.addr());
        let dev: &Text = route.dev.as_ref()?;
        let link = self.state.interfaces.iter().find(|interface| interface.name == *dev)?;
        let mut all = link.addresses.iter().map(|(ip, _)| *ip);
        all.find(|ip| Family::of(*ip) == family)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use uturn_model::capture::CapturedText;
    use uturn_model::proxy::{LocalDetector, NodePortAddresses};
    use uturn_model::{Capture, Name, ProxyMode};
    use uturn_snapshot::Source;

    use super::*;

    fn rules(text: &str) -> Ruleset {
        uturn_netfilter::iptables::parse("x", text, Family::V4).unwrap()
    }

    /// What a real kube-proxy left is what is worked out, in all its modes. (The second node
    /// with IPVS had the first one's address too.)
    #[test]
    fn what_kube_proxy_left_says_nothing_new() {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../uturn-kubeproxy/tests/golden");
        let objects = [golden.join("objects.yaml"), golden.join("beside.yaml")];
        for (mode, nodes) in
            [(ProxyMode::Iptables, 3), (ProxyMode::Nftables, 3), (ProxyMode::Ipvs, 1)]
        {
            let facts = format!(
                "apiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec:\n  \
                 kubeProxy: {{mode: {mode}, version: v1.34.4, variant: upstream}}\n  \
                 network: {{mode: global-router, podCIDRs: [10.1.0.0/16], serviceCIDRs: [172.16.0.0/16]}}\n"
            );
            let mut sources = vec![Source { name: "facts".into(), text: facts }];
            for path in &objects {
                let name = path.display().to_string().into();
                sources.push(Source { name, text: fs::read_to_string(path).unwrap() });
            }
            let mut cluster = uturn_snapshot::read(sources).unwrap().cluster;
            for (node, number) in cluster.nodes.values_mut().zip(11..) {
                node.internal_ips = vec![[10, 0, 0, number].into()];
            }
            let pods = vec!["10.1.0.0/16".parse().unwrap()];
            cluster.proxy.detector.value = LocalDetector::ClusterCidr(pods);
            cluster.proxy.node_port_addresses = match mode {
                ProxyMode::Ipvs => NodePortAddresses::All,
                ProxyMode::Iptables | ProxyMode::Nftables => NodePortAddresses::Primary,
            };
            for number in 1..=nodes {
                let node: Name = format!("n{number}").parse().unwrap();
                let folder = golden.join(format!("{mode}-{node}"));
                let mut files = BTreeMap::new();
                for file in CaptureFile::ALL {
                    if let Ok(text) = fs::read_to_string(folder.join(file.file_name())) {
                        let path = file.file_name().into();
                        files.insert(file, CapturedText { path, text: text.into() });
                    }
                }
                assert!(!files.is_empty(), "{}", folder.display());
                cluster.captures.insert(node.clone(), Capture { node, files });
            }
            let known = Addresses::of(&cluster);
            for name in cluster.captures.keys() {
                let node = &cluster.nodes[name];
                let captured = NodeRuntime::new(&cluster, node).unwrap();
                let plain = without_capture(&cluster, node, &captured, &known);
                assert!(plain.is_some(), "{mode} {name}");
            }
        }
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
            blocks(&Family::BOTH, &NodeState { nft, ..NodeState::default() })
        };
        let map = of("10.0.0.1 : goto a, 10.0.0.2 : goto b");
        assert_eq!(map, of("10.0.0.2 : goto b,\n\t\t\t     10.0.0.1 : goto a"));
        assert_ne!(map, of("10.0.0.1 : goto b, 10.0.0.2 : goto a"));
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
