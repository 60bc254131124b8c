//! Random captures: what kube-proxy would have left on a node, and what a real node has
//! beside or instead of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use uturn_kubeproxy::compile;
use uturn_model::capture::{Capture, CaptureFile, CapturedText};
use uturn_model::network::NetworkMode;
use uturn_model::{Cluster, Family, IpNet, Node};

use super::dice::Dice;

/// Captures some nodes, now and then all of them.
pub(crate) fn add(cluster: &mut Cluster, dice: &mut Dice) {
    let are_all = dice.once_in(6);
    let mut captures = BTreeMap::new();
    for node in cluster.nodes.values() {
        if are_all || dice.once_in(3) {
            captures.insert(node.name.clone(), capture(cluster, node, dice));
        }
    }
    cluster.captures = captures;
}

fn capture(cluster: &Cluster, node: &Node, dice: &mut Dice) -> Capture {
    let is_well = dice.once_in(2);
    // kube-proxy may have missed what happened last.
    let mut seen = cluster.programmed_on(node).into_owned();
    if !is_well && dice.once_in(6) {
        let mut all: Vec<_> = seen.endpoints.values_mut().collect();
        let many = all.len();
        if many > 1 {
            let (first, rest) = all.split_at_mut(1);
            std::mem::swap(&mut *first[0], &mut *rest[dice.below(many - 1)]);
        }
    }
    let mut texts: BTreeMap<CaptureFile, String> = BTreeMap::new();
    let mut bound = Vec::new();
    let mut sysctls = String::new();
    for family in Family::BOTH {
        if node.address(family).is_none() {
            continue;
        }
        let program = compile(&seen, &node.name, &cluster.proxy, family).expect("rules");
        let (file, other) = match family {
            Family::V4 => (CaptureFile::Iptables, "ip"),
            Family::V6 => (CaptureFile::Ip6tables, "ip6"),
        };
        let client = some_client(cluster, family, dice);
        let mut iptables = program.iptables.clone();
        let own = dice.once_in(3);
        if own && program.nft.is_empty() {
            iptables = iptables.replacen("*filter\n", "*filter\n:OWN - [0:0]\n", 1);
            let rules = format!("-A OWN -s {client} -j DROP\nCOMMIT\n");
            let at = iptables.find("*filter").expect("a table");
            let rest = iptables.split_off(at).replacen("COMMIT\n", &rules, 1);
            // Before kube-proxy's or behind.
            let place = if dice.once_in(2) { "-A " } else { "-A OWN" };
            iptables.push_str(&rest.replacen(place, &format!("-A FORWARD -j OWN\n{place}"), 1));
        }
        texts.insert(file, iptables);
        texts.entry(CaptureFile::Ipset).or_default().push_str(&program.ipset);
        texts.entry(CaptureFile::Ipvs).or_default().push_str(&program.ipvs);
        if !program.nft.is_empty() {
            let nft = texts.entry(CaptureFile::Nft).or_default();
            nft.push_str(&program.nft);
            if own {
                let _ = write!(
                    nft,
                    "table {other} own {{\n\tchain forward {{\n\t\ttype filter hook forward priority filter; policy accept;\n\t\t{other} saddr {client} drop\n\t}}\n}}\n"
                );
            }
        }
        bound.extend(program.bound);
        for (key, value) in program.sysctls {
            let _ = writeln!(sysctls, "{key} = {value}");
        }
    }
    if !is_well && dice.once_in(3) {
        let files = [CaptureFile::Iptables, CaptureFile::Ip6tables, CaptureFile::Nft];
        lose_a_rule(&mut texts, dice.one_of(&files), dice);
    }
    if dice.once_in(2) {
        routed(cluster, node, &bound, &mut texts, is_well, dice);
        let forwards = u8::from(!dice.once_in(12));
        let _ = write!(
            sysctls,
            "net.ipv4.ip_forward = {forwards}\nnet.ipv6.conf.all.forwarding = {forwards}\nnet.ipv4.conf.all.rp_filter = {}\n",
            dice.below(3)
        );
        if dice.once_in(3) {
            let link = dice.one_of(&["eth0", "cbr0"]);
            let _ = writeln!(sysctls, "net.ipv4.conf.{link}.rp_filter = {}", dice.below(3));
        }
        texts.insert(CaptureFile::Sysctls, sysctls);
    }
    let files = texts.into_iter().filter(|(_, text)| !text.is_empty());
    let file = |(file, text): (CaptureFile, String)| {
        let path = format!("nodes/{}/{}", node.name, file.file_name());
        (file, CapturedText { path: path.into(), text: text.into() })
    };
    Capture { node: node.name.clone(), files: files.map(file).collect() }
}

/// The address of some pod or node, or an address that none has.
fn some_client(cluster: &Cluster, family: Family, dice: &mut Dice) -> IpAddr {
    let pods = cluster.pods.values().flat_map(|pod| &pod.ips);
    let nodes = cluster.nodes.values().flat_map(|node| &node.internal_ips);
    let all: Vec<IpAddr> =
        pods.chain(nodes).copied().filter(|ip| Family::of(*ip) == family).collect();
    if all.is_empty() {
        "192.0.2.1".parse().expect("an address")
    } else {
        all[dice.below(all.len())]
    }
}

/// Takes one rule out, if there is one to take.
fn lose_a_rule(texts: &mut BTreeMap<CaptureFile, String>, file: CaptureFile, dice: &mut Dice) {
    let Some(text) = texts.get_mut(&file) else { return };
    let is_rule = |line: &&str| match file {
        CaptureFile::Nft => {
            line.starts_with("\t\t") && !line.contains(['{', '}', '=']) && line.contains("jump")
        }
        _ => line.starts_with("-A "),
    };
    let lines: Vec<&str> = text.lines().collect();
    let rules: Vec<usize> =
        lines.iter().enumerate().filter(|(_, line)| is_rule(line)).map(|(at, _)| at).collect();
    if rules.is_empty() {
        return;
    }
    let lost = rules[dice.below(rules.len())];
    let left = lines.iter().enumerate().filter(|(at, _)| *at != lost);
    *text = left.map(|(_, line)| format!("{line}\n")).collect();
}

/// Interfaces, routes and their policy.
fn routed(
    cluster: &Cluster,
    node: &Node,
    bound: &[IpAddr],
    texts: &mut BTreeMap<CaptureFile, String>,
    is_well: bool,
    dice: &mut Dice,
) {
    let mut links: Vec<(String, Vec<String>)> = vec![
        ("lo".to_owned(), vec!["127.0.0.1/8".to_owned(), "::1/128".to_owned()]),
        ("eth0".to_owned(), node.internal_ips.iter().map(|ip| whole(*ip)).collect()),
    ];
    let mut routes = String::from("default via 10.0.0.1 dev eth0\ndefault via fe80::1 dev eth0\n");
    let mut rules = String::from("0: from all lookup local\n");
    match cluster.network.mode.value {
        NetworkMode::GlobalRouter => {
            let mut own = Vec::new();
            for net in &node.pod_cidrs {
                let gateway = net.hosts().next().expect("an address");
                own.push(format!("{gateway}/{}", net.prefix_len()));
                let _ = writeln!(routes, "{net} dev cbr0 scope link src {gateway}");
            }
            links.push(("cbr0".to_owned(), own));
        }
        NetworkMode::Routed => {
            let own = cluster.pods_on(&node.name).filter(|pod| !pod.spec.host_network);
            for (number, pod) in own.enumerate() {
                links.push((format!("veth{number}"), Vec::new()));
                for ip in &pod.ips {
                    let _ = writeln!(routes, "{ip} dev veth{number} scope link");
                }
            }
        }
        NetworkMode::VpcCni => {
            links.push(("eth1".to_owned(), Vec::new()));
            routes.push_str("default via 10.0.0.1 dev eth1 table 2003\n");
            routes.push_str("default via fe80::1 dev eth1 table 2003\n");
            let own = cluster.pods_on(&node.name).filter(|pod| !pod.spec.host_network);
            for (number, pod) in own.enumerate() {
                links.push((format!("veth{number}"), Vec::new()));
                for ip in &pod.ips {
                    let _ = writeln!(routes, "{ip} dev veth{number} scope link");
                    let _ = writeln!(rules, "512: from all to {ip} lookup main");
                    let _ = writeln!(rules, "1536: from {ip} lookup 2003");
                }
            }
        }
    }
    if cluster.network.has_tunnels() {
        let is_wrapped = |net: &&IpNet| cluster.network.is_encapsulated(Family::of(net.addr()));
        for net in cluster.network.pod_cidrs.value.iter().filter(is_wrapped) {
            let _ = writeln!(routes, "{net} dev flannel.1 scope link");
        }
        links.push(("flannel.1".to_owned(), node.tunnel_ips.iter().map(|ip| whole(*ip)).collect()));
    }
    if !bound.is_empty() {
        let all = bound.iter().map(|ip| whole(*ip)).collect();
        links.push(("kube-ipvs0".to_owned(), all));
    }
    for other in cluster.nodes.values().filter(|other| other.name != node.name) {
        for net in &other.pod_cidrs {
            let _ = match dice.below(9) {
                0 | 1 if is_well => Ok(()),
                0 => writeln!(routes, "blackhole {net}"),
                1 => writeln!(routes, "unreachable {net}"),
                2 => writeln!(routes, "{net} dev eth0 scope link"),
                _ => Ok(()),
            };
        }
    }
    if !is_well && dice.once_in(4) {
        let client = some_client(cluster, Family::V4, dice);
        let _ = match dice.below(3) {
            0 => writeln!(routes, "blackhole {client}"),
            1 => writeln!(rules, "100: from {client} prohibit"),
            _ => writeln!(rules, "100: from all to {client} blackhole"),
        };
    }
    rules.push_str("32766: from all lookup main\n32767: from all lookup default\n");
    texts.insert(CaptureFile::Addresses, addresses(&links));
    texts.insert(CaptureFile::Routes, routes);
    texts.insert(CaptureFile::Rules, rules);
}

fn whole(ip: IpAddr) -> String {
    format!("{ip}/{}", Family::of(ip).bits())
}

/// As `ip addr` prints them.
fn addresses(links: &[(String, Vec<String>)]) -> String {
    let mut text = String::new();
    for (number, (name, own)) in (1..).zip(links) {
        let up = if name == "kube-ipvs0" { "NOARP" } else { "UP,LOWER_UP" };
        let _ = writeln!(text, "{number}: {name}: <{up}> mtu 1500 qdisc noqueue state UP");
        for net in own {
            let family = if net.contains(':') { "inet6" } else { "inet" };
            let _ = writeln!(text, "    {family} {net} scope global {name}");
        }
    }
    text
}
