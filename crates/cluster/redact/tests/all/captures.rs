//! Captures of nodes on which real kube-proxies ran: what `check nodes` and a scan say of them, as
//! they are and with faults put into them, they say of the redacted ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::common::{self, Folder, assert_same, assert_same_without_edits};
use super::dice::{self, Dice};
use super::{random, seeds};
use serde_json::{Value, json};
use uturn_kubeproxy::compile;
use uturn_model::{CaptureFile, Cluster, Family, Name};
use uturn_snapshot::{Manifests, Source};
use uturn_testing::variables;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

const FACTS: &str = "\
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  kubeProxy: {mode: MODE, version: v1.34.4}
  network: {serviceCIDRs: [172.16.0.0/16], podCIDRs: [10.1.0.0/16]}
---
";

/// The cluster that real kube-proxies were given, and what they left on these nodes, with one text
/// replaced by another in every file.
fn bundle(
    folder: &Folder,
    mode: &str,
    nodes: u8,
    fault: Option<(CaptureFile, &str, &str)>,
) -> Manifests {
    let bundle = folder.0.join(format!("{mode}-{nodes}"));
    fs::create_dir_all(bundle.join("objects")).unwrap();
    let golden = root().join("crates/analysis/kubeproxy/tests/golden");
    for file in ["objects.yaml", "beside.yaml"] {
        // No pods: their calls fail, since the captures have no routes to them, and there are more
        // causes of that than a scan looks for.
        let text = fs::read_to_string(golden.join(file)).unwrap();
        let text = text.replace("kind: Pod\n", "kind: Machine\n");
        fs::write(bundle.join("objects").join(file), text).unwrap();
    }
    let facts = FACTS.replace("MODE", mode);
    let mut config = String::new();
    for node in 1..=3 {
        config.push_str(&format!(
            "apiVersion: v1\nkind: Node\nmetadata: {{name: n{node}}}\nspec: {{podCIDRs: \
             [10.1.{node}.0/24]}}\nstatus: {{addresses: [{{type: InternalIP, address: 10.0.0.1{node}}}]}}\n---\n"
        ));
    }
    config.push_str(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kube-proxy, namespace: kube-system}\ndata:\n  \
         config.conf: |\n    clusterCIDR: 10.1.0.0/16\n    nodePortAddresses: [primary]\n",
    );
    if mode == "ipvs" {
        config = config.replace("    nodePortAddresses: [primary]\n", "");
    }
    fs::write(bundle.join("objects/zones.yaml"), format!("{facts}{config}")).unwrap();
    for node in 1..=nodes {
        let from =
            root().join("crates/analysis/netfilter/tests/golden").join(format!("{mode}-n{node}"));
        let to = bundle.join(format!("nodes/n{node}"));
        fs::create_dir_all(&to).unwrap();
        for file in CaptureFile::ALL {
            let Ok(mut text) = fs::read_to_string(from.join(file.file_name())) else { continue };
            if mode == "ipvs" && file == CaptureFile::Addresses {
                let own = "2: eth0: <BROADCAST,UP>\n    inet 10.0.0.11/24 scope global eth0\n    \
                           inet 10.0.2.15/24 scope global eth0\n";
                text = format!("{own}{text}");
            }
            if file == CaptureFile::Sysctls {
                let others = text.lines().filter(|line| !line.starts_with("net.ipv4.ip_forward"));
                text = others.map(|line| format!("{line}\n")).collect();
                text.push_str("net.ipv4.ip_forward = 1\n");
            }
            if let Some((wanted, old, new)) = fault
                && wanted == file
            {
                assert!(text.contains(old), "{mode}: {old}");
                text = text.replacen(old, new, 1);
            }
            fs::write(to.join(file.file_name()), text).unwrap();
        }
    }
    let (manifests, faults) = Manifests::gather(&[], &[bundle]);
    assert!(faults.is_empty(), "{faults:?}");
    manifests
}

#[test]
fn healthy_nodes() {
    for (mode, nodes) in [("iptables", 3), ("nftables", 3), ("ipvs", 2)] {
        let folder = Folder::new();
        let manifests = bundle(&folder, mode, nodes, None);
        let redacted = assert_same(&manifests, 5, mode);
        if variables::is_set(variables::SHOW) {
            println!("{:#?}", common::checks_of_nodes(&manifests.load().unwrap().cluster));
            for (name, text) in &redacted.files {
                println!("== {name}\n{text}");
            }
        }
        let text = redacted.files.values().cloned().collect::<String>();
        for gone in ["shop/", "172.16.1.", "10.1.1.10", "203.0.113.1", "lb-cluster", "affinity/tcp"]
        {
            assert!(!text.contains(gone), "{mode}: {gone}");
        }
    }
}

/// Puts faults into the capture of a node, one after another: a file's text that is replaced by another.
/// `check nodes` sees each of them, and says the same of the redacted capture.
fn assert_faults_stay(mode: &str, faults: &[(CaptureFile, &str, &str)]) {
    for &(file, old, new) in faults {
        let folder = Folder::new();
        let manifests = bundle(&folder, mode, 1, Some((file, old, new)));
        let checks = common::checks_of_nodes(&manifests.load().unwrap().cluster);
        assert!(checks.values().flatten().any(|line| line.contains("Failed")), "{new}: {checks:?}");
        assert_same_without_edits(&manifests, 9, new);
    }
}

#[test]
fn nodes_with_faults_in_iptables_mode() {
    use CaptureFile::{Iptables, Sysctls};
    assert_faults_stay(
        "iptables",
        &[
            (Sysctls, "net.ipv4.ip_forward = 1", "net.ipv4.ip_forward = 0"),
            (Iptables, "--to-destination 10.1.1.10:8080", "--to-destination 10.99.99.99:8080"),
            (
                Iptables,
                ":KUBE-SERVICES - [0:0]\n",
                ":KUBE-SERVICES - [0:0]\n:ACME-BLOCK - [0:0]\n-A OUTPUT -m comment --comment \"acme says no\" -j ACME-BLOCK\n-A ACME-BLOCK -d 10.1.1.10/32 -j DROP\n",
            ),
            (Iptables, "-A KUBE-SERVICES -d 172.16.1.1/32", "-A KUBE-SERVICES -d 172.16.99.99/32"),
            (Iptables, "-A KUBE-FORWARD -m comment", "-A KUBE-FORWARD -s 9.9.9.9/32 -m comment"),
        ],
    );
}

#[test]
fn nodes_with_faults_in_nftables_mode() {
    use CaptureFile::Nft;
    assert_faults_stay(
        "nftables",
        &[
            (Nft, "172.16.1.1 . tcp . 80 : goto", "172.16.99.99 . tcp . 80 : goto"),
            (Nft, "dnat to 10.1.1.10:8080", "dnat to 10.99.99.99:8080"),
        ],
    );
}

#[test]
fn nodes_with_faults_in_ipvs_mode() {
    use CaptureFile::Ipvs;
    assert_faults_stay(
        "ipvs",
        &[
            (Ipvs, "-a -t 172.16.1.1:80 -r 10.1.1.10:8080 -m -w 1\n", ""),
            (Ipvs, "-A -t 172.16.1.1:80 -s rr\n", "-A -t 172.16.1.1:80 -s wlc\n"),
        ],
    );
}

#[test]
fn random_captures() {
    for seed in seeds::of(900, 3) {
        let mut dice = Dice::new(seed);
        let text = dice::cluster(&mut dice);
        let source = Source { name: "random.yaml".into(), text: text.clone() };
        let mut cluster = uturn_snapshot::read(vec![source]).unwrap().cluster;
        random::add(&mut cluster, &mut dice);
        let folder = Folder::new();
        let bundle = folder.0.join("bundle");
        fs::create_dir(&bundle).unwrap();
        fs::write(bundle.join("objects.yaml"), &text).unwrap();
        for (node, capture) in &cluster.captures {
            let to = bundle.join(format!("nodes/{node}"));
            fs::create_dir_all(&to).unwrap();
            for (file, captured) in &capture.files {
                fs::write(to.join(file.file_name()), &*captured.text).unwrap();
            }
        }
        let (manifests, faults) = Manifests::gather(&[], &[bundle]);
        assert!(faults.is_empty(), "{faults:?}");
        assert_same(&manifests, 6, &format!("seed {seed}\n{text}"));
    }
}

/// The rules, and the elements of sets and maps, which have no order. In the chain of a Service, rules
/// have their number: kube-proxy sorts its endpoints.
fn rules(text: &str) -> BTreeSet<String> {
    let (mut chain, mut number) = (String::new(), 0);
    text.lines()
        .map(|line| {
            let line = line.trim();
            let rule = line.trim_start_matches("elements = { ").trim_end_matches([' ', ',', '}']);
            let own = match line.strip_prefix("-A ") {
                Some(rest) => rest.split(' ').next(),
                None => line.strip_prefix("chain ").and_then(|rest| rest.strip_suffix(" {")),
            };
            match own {
                Some(own) if *own != chain => (chain, number) = (own.to_owned(), 0),
                None if matches!(line, "}" | "COMMIT") => chain.clear(),
                _ => {}
            }
            number += 1;
            if ["service-", "KUBE-SVC-", "KUBE-SVL-"].iter().any(|of| chain.starts_with(of)) {
                format!("{chain} {number} {rule}")
            } else {
                rule.to_owned()
            }
        })
        .collect()
}

/// What kube-proxy writes is still what it writes, remarks and the order of endpoints too: else the
/// nodes of a redacted bundle would differ from each other.
#[test]
fn rules_of_kube_proxy() {
    let proxies = [
        ("iptables", ["v1.22.5", "v1.28.0", "v1.31.2", "v1.36.3"], "upstream"),
        ("nftables", ["v1.30.14", "v1.31.2", "v1.33.0", "v1.36.3"], "upstream"),
        ("ipvs", ["v1.22.5", "v1.28.0", "v1.30.0", "v1.36.3"], "upstream"),
        ("ipvs", ["v1.22.5-tke.12", "v1.24.4-tke.5", "v1.28.3-tke.1", "v1.30.0-tke.5"], "tke"),
    ];
    let mut compared = 0;
    for (seed, (mode, versions, variant)) in seeds::of(700, 16).zip(proxies.iter().cycle()) {
        let mut dice = Dice::new(seed);
        let text = dice::cluster(&mut dice);
        let start = text.find("kubeProxy: {").unwrap();
        let rest = &text[start + text[start..].find('}').unwrap()..];
        let version = dice.one_of(versions);
        let proxy = format!("kubeProxy: {{mode: {mode}, version: {version}, variant: {variant}");
        let text = format!("{}{proxy}{rest}", &text[..start]);
        let source = Source { name: "random.yaml".into(), text: text.clone() };
        let cluster = uturn_snapshot::read(vec![source]).unwrap().cluster;
        let folder = Folder::new();
        let bundle = folder.0.join("bundle");
        fs::create_dir(&bundle).unwrap();
        fs::write(bundle.join("objects.yaml"), &text).unwrap();
        for (node, written) in written_by_kube_proxy(&cluster) {
            let to = bundle.join(format!("nodes/{node}"));
            fs::create_dir_all(&to).unwrap();
            for (file, text) in written {
                fs::write(to.join(file.file_name()), text).unwrap();
            }
        }
        let (manifests, faults) = Manifests::gather(&[], &[bundle]);
        assert!(faults.is_empty(), "{faults:?}");
        let (_, read) = common::redacted(&manifests, seed as u8);
        let redacted = read.load().unwrap().cluster;
        for (node, written) in written_by_kube_proxy(&redacted) {
            let captured = &redacted.captures[&node].files;
            for (file, text) in written.iter().filter(|(file, _)| captured.contains_key(*file)) {
                let (own, captured) = (rules(text), rules(&captured[file].text));
                let differ: Vec<&String> = own.symmetric_difference(&captured).collect();
                assert!(differ.is_empty(), "seed {seed}, {mode} {version}, {file:?}: {differ:#?}");
                compared += own.len();
            }
        }
    }
    assert!(compared > 1_000, "{compared}");
}

/// What kube-proxy writes on each node.
fn written_by_kube_proxy(cluster: &Cluster) -> BTreeMap<Name, BTreeMap<CaptureFile, String>> {
    let mut all = BTreeMap::new();
    for node in cluster.nodes.values() {
        let mut files: BTreeMap<CaptureFile, String> = BTreeMap::new();
        let seen = cluster.programmed_on(node);
        for family in Family::BOTH.into_iter().filter(|family| node.address(*family).is_some()) {
            let program = compile(&seen, &node.name, &cluster.proxy, family).unwrap();
            let of_family = match family {
                Family::V4 => CaptureFile::Iptables,
                Family::V6 => CaptureFile::Ip6tables,
            };
            let parts = [(of_family, program.iptables), (CaptureFile::Nft, program.nft)];
            for (file, text) in parts.into_iter().filter(|(_, text)| !text.is_empty()) {
                files.entry(file).or_default().push_str(&text);
            }
        }
        all.insert(node.name.clone(), files);
    }
    all
}

/// In names of chains, dots stand for the colons of addresses.
#[test]
fn chains_of_endpoints_with_ipv6() {
    let text = "\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {addresses: [{type: InternalIP, address: \"fd00::11\"}]}
---
apiVersion: v1
kind: Service
metadata: {name: shop, namespace: shop}
spec: {clusterIP: \"fd02::a\", ports: [{name: api, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: shop-x, namespace: shop, labels: {kubernetes.io/service-name: shop}}
addressType: IPv6
ports: [{name: api, port: 8080}]
endpoints: [{addresses: [\"fd01::1:0:0:7\"]}, {addresses: [\"fd01:0:0:1::8\"]}]
";
    let rules = "\
table ip6 kube-proxy {
\tchain service-AAAAAAAA-shop/shop/tcp/api {
\t\tnumgen random mod 2 vmap { 0 : goto endpoint-BBBBBBBB-shop/shop/tcp/api__fd01..1.0.0.7/8080, 1 : goto endpoint-CCCCCCCC-shop/shop/tcp/api__fd01.0.0.1..8/8080 }
\t}

\tchain endpoint-BBBBBBBB-shop/shop/tcp/api__fd01..1.0.0.7/8080 {
\t\tmeta l4proto tcp dnat to [fd01::1:0:0:7]:8080
\t}

\tchain endpoint-CCCCCCCC-shop/shop/tcp/api__fd01.0.0.1..8/8080 {
\t\tmeta l4proto tcp dnat to [fd01:0:0:1::8]:8080
\t}
}
";
    let folder = Folder::new();
    let bundle = folder.0.join("bundle");
    fs::create_dir_all(bundle.join("nodes/n1")).unwrap();
    fs::write(bundle.join("objects.yaml"), text).unwrap();
    fs::write(bundle.join("nodes/n1").join(CaptureFile::Nft.file_name()), rules).unwrap();
    let (manifests, faults) = Manifests::gather(&[], &[bundle]);
    assert!(faults.is_empty(), "{faults:?}");
    let (redacted, _) = common::redacted(&manifests, 3);
    let slice: Value = serde_json::from_str(&redacted.files["objects/endpointslice.json"]).unwrap();
    let (_, new) = redacted.files.iter().find(|(name, _)| name.contains("/nft")).unwrap();
    for endpoint in slice["items"][0]["endpoints"].as_array().unwrap() {
        let address = endpoint["addresses"][0].as_str().unwrap();
        let of_chain = format!("__{}/8080", address.replace(':', "."));
        assert_eq!(new.matches(&of_chain).count(), 2, "{of_chain}: {new}");
        assert!(new.contains(&format!("dnat to [{address}]:8080")), "{address}: {new}");
    }
    assert!(redacted.restored(new).contains("shop/shop/tcp/api__fd01..1.0.0.7/8080"));
}

/// In JSON too, endpoints are picked by number in the order of their new addresses.
#[test]
fn picks_by_number_in_json() {
    let ips: Vec<String> = (1..40).map(|host| format!("10.1.{}.{host}", host % 7)).collect();
    let mut sorted = ips.clone();
    sorted.sort_by_key(|ip| format!("{ip}:80"));
    let name = |ip: &str| format!("endpoint-AAAAAAAA-shop/shop/tcp/api__{ip}/80");
    let goto = |(at, ip): (usize, &String)| json!([at, {"goto": {"target": name(ip)}}]);
    let concat = |(at, ip): (usize, &String)| json!([at, {"concat": [ip, 80]}]);
    let key = json!({"numgen": {"mode": "random", "mod": ips.len(), "offset": 0}});
    let data = |set: Vec<Value>| json!({"key": key, "data": {"set": set}});
    let gotos = data(sorted.iter().enumerate().map(goto).collect());
    let concats = data(sorted.iter().enumerate().map(concat).collect());
    let rule = |expressions: Vec<Value>| {
        json!({"rule": {"family": "ip", "table": "kube-proxy", "chain": "service-AAAAAAAA-shop/shop/tcp/api",
            "handle": 7, "expr": expressions}})
    };
    let mut rules = vec![
        rule(vec![json!({"vmap": gotos})]),
        rule(vec![json!({"dnat": {"family": "ip", "addr": {"map": concats}}})]),
    ];
    for ip in &sorted {
        let set = format!("@affinity-BBBBBBBB-shop/shop/tcp/api__{ip}/80");
        let source = json!({"payload": {"protocol": "ip", "field": "saddr"}});
        let is_known = json!({"match": {"op": "==", "left": source, "right": set}});
        rules.push(rule(vec![is_known, json!({"goto": {"target": name(ip)}})]));
    }
    let rules = json!({"nftables": rules});
    let folder = Folder::new();
    let bundle = folder.0.join("bundle");
    fs::create_dir_all(bundle.join("nodes/n1")).unwrap();
    let node = "{apiVersion: v1, kind: Node, metadata: {name: n1}}";
    fs::write(bundle.join("objects.yaml"), node).unwrap();
    fs::write(bundle.join("nodes/n1/nft.json"), rules.to_string()).unwrap();
    let (manifests, faults) = Manifests::gather(&[], &[bundle]);
    assert!(faults.is_empty(), "{faults:?}");
    let mut changed = 0;
    for key in 1..6 {
        let (redacted, _) = common::redacted(&manifests, key);
        let (_, new) = redacted.files.iter().find(|(own, _)| own.ends_with("/nft.json")).unwrap();
        let new: Value = serde_json::from_str(new).unwrap();
        let of = |place: &str| new["nftables"].pointer(place).unwrap().as_array().unwrap().clone();
        let endpoint = |name: &Value| -> String {
            name.as_str().unwrap().split("__").nth(1).unwrap().replace('/', ":")
        };
        let gotos: Vec<String> = of("/0/rule/expr/0/vmap/data/set")
            .iter()
            .map(|item| endpoint(&item[1]["goto"]["target"]))
            .collect();
        for (rule, goto) in new["nftables"].as_array().unwrap()[2..].iter().zip(&gotos) {
            let expressions = &rule["rule"]["expr"];
            assert_eq!(endpoint(&expressions[0]["match"]["right"]), *goto);
            assert_eq!(endpoint(&expressions[1]["goto"]["target"]), *goto);
        }
        let concats: Vec<String> = of("/1/rule/expr/0/dnat/addr/map/data/set")
            .iter()
            .map(|item| format!("{}:80", item[1]["concat"][0].as_str().unwrap()))
            .collect();
        assert!(gotos.is_sorted(), "{gotos:?}");
        assert_eq!(gotos, concats);
        let old: Vec<String> = gotos.iter().map(|new| redacted.restored(new)).collect();
        let before: Vec<String> = sorted.iter().map(|ip| format!("{ip}:80")).collect();
        changed += usize::from(old != before);
    }
    assert!(changed > 0, "no key changes the order");
}

/// Interfaces and sets are called alike by every tool, and rules of others name them.
#[test]
fn names_of_interfaces_and_sets() {
    let pods = |link: &str| {
        format!(
            "3: {link}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP\n    inet \
             10.1.1.1/24 scope global {link}\n"
        )
    };
    let rule = |matches: &str| format!(":KUBE-SERVICES - [0:0]\n-A OUTPUT {matches} -j DROP\n");
    let known = ["kube-bridge", "br-ex", "br-4f3c2a1b0d9e", "acme0.100", "acmebr"];
    // Each name is met by one form of the rule, the first by both.
    let forms = ["", " -m comment --comment --acme"];
    let more = known.iter().zip(forms.into_iter().cycle());
    for (link, form) in [(&known[0], forms[1])].into_iter().chain(more) {
        let matches = format!("-o {link}{form}");
        let folder = Folder::new();
        bundle(&folder, "iptables", 1, None);
        let node = folder.0.join("iptables-1/nodes/n1");
        change(&node, CaptureFile::Addresses, |text| text + &pods(link));
        change(&node, CaptureFile::Routes, |text| {
            format!("10.1.1.0/24 dev {link} proto kernel scope link src 10.1.1.1\n{text}")
        });
        change(&node, CaptureFile::Iptables, |text| {
            text.replacen(":KUBE-SERVICES - [0:0]\n", &rule(&matches), 1)
        });
        let (manifests, faults) = again(&folder);
        assert!(faults.is_empty(), "{faults:?}");
        let redacted = assert_same_without_edits(&manifests, 4, link);
        let text = redacted.files.values().cloned().collect::<String>();
        assert!(!text.contains("acme"), "{text}");
        let saved = CaptureFile::Iptables.file_name();
        let (_, rules) = redacted.files.iter().find(|(own, _)| own.ends_with(saved)).unwrap();
        let line = rules.lines().find(|line| line.starts_with("-A OUTPUT -o")).unwrap();
        let name = line.split(' ').nth(3).unwrap();
        for file in ["addr", "route"] {
            let (_, text) = redacted.files.iter().find(|(own, _)| own.ends_with(file)).unwrap();
            assert!(text.contains(name), "{name} of {link}: {text}");
        }
    }
    let folder = Folder::new();
    bundle(&folder, "iptables", 1, None);
    let node = folder.0.join("iptables-1/nodes/n1");
    fs::write(
        node.join(CaptureFile::Ipset.file_name()),
        "create mysql-hosts hash:ip family inet hashsize 1024 maxelem 65536\nadd mysql-hosts 10.1.1.9\n\
         create all list:set size 8\nadd all mysql-hosts\n",
    )
    .unwrap();
    let (manifests, _) = again(&folder);
    assert_same_without_edits(&manifests, 4, "sets");
}

/// Masks are the same in every cluster, and kube-proxy's rules for `sessionAffinity` have them.
#[test]
fn masks_of_both_families() {
    let folder = Folder::new();
    bundle(&folder, "iptables", 1, None);
    let node = folder.0.join("iptables-1/nodes/n1");
    let whole = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
    for (file, mask) in
        [(CaptureFile::Iptables, "255.255.255.255"), (CaptureFile::Ip6tables, whole)]
    {
        change(&node, file, |text| {
            let rule = format!(
                "-A KUBE-SERVICES -m recent --rcheck --seconds 10800 --reap --name acme --mask {mask} --rsource -j DROP\n"
            );
            text.replacen("-A KUBE-SERVICES", &format!("{rule}-A KUBE-SERVICES"), 1)
        });
    }
    let (manifests, faults) = again(&folder);
    assert!(faults.is_empty(), "{faults:?}");
    let redacted = assert_same(&manifests, 4, "masks");
    for (file, mask) in [("iptables.save", "255.255.255.255"), ("ip6tables.save", whole)] {
        let (_, rules) =
            redacted.files.iter().find(|(own, _)| own.ends_with(&format!("/{file}"))).unwrap();
        let is_ours = |line: &&str| line.ends_with("-j DROP") && line.contains("--seconds 10800");
        let line = rules.lines().find(is_ours).unwrap();
        assert!(line.contains(&format!("--mask {mask} ")), "{line}");
    }
}

fn change(node: &Path, file: CaptureFile, of: impl Fn(String) -> String) {
    let path = node.join(file.file_name());
    fs::write(&path, of(fs::read_to_string(&path).unwrap())).unwrap();
}

/// The bundle of a folder as its files are now.
fn again(folder: &Folder) -> (Manifests, Vec<uturn_snapshot::Fault>) {
    Manifests::gather(&[], &[folder.0.join("iptables-1")])
}
