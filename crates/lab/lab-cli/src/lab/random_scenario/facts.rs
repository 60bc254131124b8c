//! Facts that manifests do not state: kube-proxy, node settings, security groups, and the source of
//! health checks.

use serde_json::{Map, Value, json};
use uturn_dice::Dice;
use uturn_model::{ProxyMode, Variant, Version};

use super::Cluster;

/// Returns random Facts of a cluster.
pub(super) fn random(dice: &mut Dice, cluster: &Cluster) -> Value {
    let variants: Vec<&str> = uturn_clouds::cloud::variants().map(Variant::word).collect();
    let mut facts = json!({
        "provider": cluster.cloud.cloud.word(),
        "kubeProxy": {
            "mode": cluster.mode.to_string(),
            "version": version(dice, cluster),
            "variant": dice.choose(&variants),
        },
    });
    if let Some(network) = cluster.network.facts() {
        facts["network"] = network;
    }
    let mut groups = Map::new();
    let mut nodes = Map::new();
    if dice.once_in(3) {
        groups.insert("sg-nodes".into(), group(dice, cluster));
        nodes.insert("*".into(), json!({ "securityGroups": ["sg-nodes"] }));
    }
    for node in &cluster.nodes {
        let facts = node_facts(dice, cluster);
        if !facts.is_empty() {
            nodes.insert(node.name.clone(), facts.into());
        }
    }
    let mut balancers = Vec::new();
    for vip in &cluster.vips {
        let mut stated = json!({ "vip": vip.address });
        if cluster.cloud.model.is_some() && dice.once_in(2) {
            stated["probeSource"] = dice.choose(&["vip", "reserved"]).into();
        }
        if dice.once_in(6) {
            let name = format!("sg-lb-{}", balancers.len() + 1);
            let mut group = group(dice, cluster);
            // The lab does not judge what load balancers send by their own groups.
            if let (None, Some(group)) = (cluster.cloud.model, group.as_object_mut()) {
                group.remove("outbound");
            }
            groups.insert(name.clone(), group);
            stated["securityGroups"] = json!([name]);
        }
        balancers.push(stated);
    }
    if !nodes.is_empty() {
        facts["nodes"] = nodes.into();
    }
    if !balancers.is_empty() {
        facts["loadBalancers"] = balancers.into();
    }
    if !groups.is_empty() {
        facts["securityGroups"] = groups.into();
    }
    if !cluster.hosts.is_empty() {
        let known = cluster.hosts.iter().map(|(host, ip)| (host.clone(), ip.as_str().into()));
        facts["dns"] = json!({ "outside": known.collect::<Map<_, _>>() });
    }
    facts
}

fn version(dice: &mut Dice, cluster: &Cluster) -> &'static str {
    match cluster.mode {
        ProxyMode::Nftables => dice.choose(&["v1.31.4", "v1.33.1", "v1.34.4", "v1.36.0"]),
        ProxyMode::Iptables | ProxyMode::Ipvs => {
            let builds = cluster.cloud.kube_proxy.map_or(&[][..], |builds| builds.samples);
            let upstream = ["v1.24.4", "v1.28.3", "v1.34.4", "v1.36.0"];
            let mut all = [builds, &upstream[..]].concat();
            all.sort_by_key(|text| text.parse::<Version>().ok());
            dice.choose(&all)
        }
    }
}

fn node_facts(dice: &mut Dice, cluster: &Cluster) -> Map<String, Value> {
    let mut facts = Map::new();
    if dice.once_in(8) {
        facts.insert("rpFilter".into(), dice.below(3).into());
    }
    // Load balancers that products describe reach nodes over a path of their own.
    if dice.once_in(12) && cluster.cloud.model.is_some() {
        facts.insert("publicBandwidth".into(), false.into());
    }
    if dice.once_in(16) {
        facts.insert("forwarding".into(), false.into());
    }
    if dice.once_in(16) {
        facts.insert("bridgeRules".into(), false.into());
    }
    if dice.once_in(12) {
        facts.insert("podRoutes".into(), false.into());
    }
    if dice.once_in(12) {
        facts.insert("unprogrammed".into(), json!(["shop/svc-1"]));
    }
    if dice.once_in(12) {
        // The name of another node, or of none.
        let name = dice.choose(&["n1", "n2", "master-0"]);
        facts.insert("kubeProxyName".into(), name.into());
    }
    if dice.once_in(6) {
        facts.insert("iptables".into(), firewall(dice, cluster).into());
    }
    facts
}

/// Returns typical firewall rules of a node.
fn firewall(dice: &mut Dice, cluster: &Cluster) -> String {
    let reason = dice.choose(&["net-unreachable", "host-prohibited", "admin-prohibited"]);
    let verdict = match dice.below(3) {
        0 => "DROP".to_owned(),
        1 => "REJECT".to_owned(),
        _ => format!("REJECT --reject-with icmp-{reason}"),
    };
    let vip = cluster.vips.first().map_or("10.0.0.100", |vip| &vip.address);
    let (table, rule) = match dice.below(9) {
        0 => ("mangle", "-A PREROUTING -s 100.64.0.0/10 -j DROP".to_owned()),
        1 => ("filter", format!("-A INPUT -p tcp -m tcp --dport 30000:32767 -j {verdict}")),
        2 => ("filter", format!("-A FORWARD -p tcp -m tcp --dport 8080 -j {verdict}")),
        3 => ("filter", format!("-A OUTPUT -d {vip} -j {verdict}")),
        4 => ("filter", format!("-A FORWARD -s 10.0.0.0/24 -j {verdict}")),
        5 => ("nat", "-A POSTROUTING -s 10.1.0.0/16 ! -d 10.1.0.0/16 -j MASQUERADE".to_owned()),
        6 => ("raw", format!("-A PREROUTING -d {vip} -j DROP")),
        7 => {
            let chain = dice.choose(&["INPUT", "FORWARD"]);
            ("filter", format!("-A {chain} -p tcp -j REJECT --reject-with tcp-reset"))
        }
        _ => ("filter", "-A INPUT -m conntrack --ctstate INVALID -j DROP".to_owned()),
    };
    format!("*{table}\n{rule}\nCOMMIT\n")
}

fn group(dice: &mut Dice, cluster: &Cluster) -> Value {
    let vip = cluster.vips.first().map_or("10.0.0.100", |vip| &vip.address);
    let own = format!("{vip}/32");
    let peers = [
        "all",
        "10.0.0.0/8",
        "10.0.0.0/16",
        "10.1.0.0/16",
        "100.64.0.0/10",
        "198.51.100.0/24",
        &own,
    ];
    let rules = |dice: &mut Dice, first: usize| {
        let rule = |dice: &mut Dice| {
            json!({
                "action": dice.choose(&["accept", "accept", "accept", "drop"]),
                "protocol": dice.choose(&["all", "tcp", "udp"]),
                "ports": dice.choose(&["all", "30000-32768", "80", "8080", "443"]),
                "peer": dice.choose(&peers),
            })
        };
        (first..=dice.between(1, 3)).map(|_| rule(dice)).collect::<Vec<_>>()
    };
    let mut inbound = rules(dice, 1);
    // Most groups end with a rule that accepts something.
    if !dice.once_in(3) {
        let peer = dice.choose(&["all", "10.0.0.0/8"]);
        inbound
            .push(json!({ "action": "accept", "protocol": "all", "ports": "all", "peer": peer }));
    }
    let mut group = json!({ "inbound": inbound });
    if dice.once_in(4) {
        group["outbound"] = rules(dice, 1).into();
    }
    group
}
