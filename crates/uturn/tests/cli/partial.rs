//! Captures that lack files: what is missing is unknown, and what is supposed is said.

use super::common::{Folder, root, uturn};
use insta::assert_snapshot;

/// A host of containers: one published port, and nothing forwarded that no rule lets through.
const RULES: &str = "\
*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:PORTS - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j PORTS
-A POSTROUTING -s 10.88.0.0/16 ! -o pods0 -j MASQUERADE
-A PORTS ! -i pods0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 10.88.0.7:80
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A FORWARD -d 10.88.0.7/32 -o pods0 -p tcp -m tcp --dport 80 -j ACCEPT
-A FORWARD -i pods0 ! -o pods0 -j ACCEPT
COMMIT
";
const ADDRESSES: &str = "\
1: lo: <LOOPBACK,UP> mtu 65536
    inet 127.0.0.1/8 scope host lo
2: ens5: <BROADCAST,UP> mtu 1500
    inet 203.0.113.5/24 scope global ens5
3: pods0: <BROADCAST,UP> mtu 1500
    inet 10.88.0.1/16 scope global pods0
";
const ROUTES: &str = "\
default via 203.0.113.1 dev ens5 proto static
203.0.113.0/24 dev ens5 proto kernel scope link src 203.0.113.5
10.88.0.0/16 dev pods0 proto kernel scope link src 10.88.0.1
";
const SWITCHES: &str = "net.ipv4.ip_forward = 1\nnet.ipv4.conf.all.rp_filter = 0\n";
const USUAL: &str = "\
0:	from all lookup local
32766:	from all lookup main
32767:	from all lookup default
";

fn node(test: &str, files: &[(&str, &str)]) -> Folder {
    let folder = Folder::new(test);
    for (name, text) in files {
        folder.file(&format!("node/{name}"), text);
    }
    folder
}

/// From outside to the published port, through `device`.
fn call(folder: &Folder, device: &str, more: &[&str]) -> String {
    let from = ["walk", "--capture", "node", "--in", device, "--src", "192.0.2.1:4000"];
    folder.run(&[&from[..], &["--dst", "203.0.113.5:8080"], more].concat())
}

#[test]
fn rules_alone_leave_both_ways_open() {
    let node = node("partial-rules", &[("iptables.save", RULES)]);
    assert_snapshot!("partial_rules_alone", call(&node, "ens5", &[]));
    let json = call(&node, "ens5", &["-o", "json"]);
    assert!(json.contains("\"supposed\"") && json.contains("forwarding of IPv4: on"), "{json}");
    // That 127.0.0.0/8 is the node itself need not be stated.
    let own = node.run(&[
        "walk",
        "--capture",
        "node",
        "--src",
        "127.0.0.1:4000",
        "--dst",
        "127.0.0.53:53",
        "--proto",
        "udp",
    ]);
    assert!(own.contains("end 1 of 1 · always · local"), "{own}");
    assert!(!own.contains("supposed"), "{own}");
}

#[test]
fn addresses_bring_routes_with_them() {
    let files = [("iptables.save", RULES), ("addr", ADDRESSES), ("sysctl", SWITCHES)];
    let node = node("partial-no-route", &files);
    assert_snapshot!("partial_no_route", call(&node, "ens5", &[]));
    let out = ["walk", "--capture", "node", "--in", "pods0", "--src", "10.88.0.7:4000"];
    let out = node.run(&[&out[..], &["--dst", "198.51.100.9:443"]].concat());
    assert!(out.contains("forward by ens5 · 203.0.113.5:4000 → 198.51.100.9:443"), "{out}");
    assert!(out.contains("supposed: routes: "), "{out}");
}

#[test]
fn routes_name_addresses() {
    let files = [("iptables.save", RULES), ("route", ROUTES), ("rule", USUAL)];
    let node = node("partial-no-addr", &files);
    assert_snapshot!("partial_no_addr", call(&node, "ens5", &[]));
}

#[test]
fn nothing_is_supposed_of_what_is_stated() {
    let mut files = vec![("iptables.save", RULES), ("addr", ADDRESSES), ("route", ROUTES)];
    files.extend([("rule", USUAL), ("sysctl", SWITCHES), ("ipset.save", ""), ("ipvs.save", "")]);
    let text = call(&node("partial-none", &files), "ens5", &[]);
    assert!(text.contains("forward by pods0") && !text.contains("supposed"), "{text}");
    // A node that says that it does not forward is believed.
    let off = SWITCHES.replace("forward = 1", "forward = 0");
    files[4].1 = &off;
    let text = call(&node("partial-off", &files), "ens5", &[]);
    assert!(text.contains("drop: the node does not forward"), "{text}");
}

#[test]
fn sources_that_a_strict_check_would_refuse_are_reported() {
    let files = [
        ("iptables.save", RULES),
        ("addr", ADDRESSES),
        ("route", ROUTES),
        ("rule", USUAL),
        ("sysctl", "net.ipv4.ip_forward = 1\n"),
    ];
    let node = node("partial-rp", &files);
    let strange = call(&node, "pods0", &[]);
    assert!(
        strange.contains("supposed: checks of the source (rp_filter): off or loose"),
        "{strange}"
    );
    assert!(!call(&node, "ens5", &[]).contains("rp_filter"));
}

#[test]
fn sets_that_nobody_captured_hold_anything() {
    let rules = "*filter\n:FORWARD ACCEPT [0:0]\n\
        -A FORWARD -m set --match-set blocked src -j DROP\n\
        -A FORWARD -m set ! --match-set blocked src -j ACCEPT\nCOMMIT\n";
    let files =
        [("iptables.save", rules), ("addr", ADDRESSES), ("route", ROUTES), ("sysctl", SWITCHES)];
    let from = ["walk", "--capture", "node", "--in", "ens5", "--src", "192.0.2.1:4000"];
    let to = [&from[..], &["--dst", "10.88.0.7:80"]].concat();
    let folder = node("partial-sets", &files);
    assert_snapshot!("partial_sets", folder.run(&to));
    // With the file, a set that is not in it is a fault.
    folder.file("node/ipset.save", "create other hash:ip family inet\n");
    let printed = folder.run(&to);
    assert!(printed.starts_with("exit 2") && printed.contains("the set blocked"), "{printed}");
}

#[test]
fn addresses_that_ipvs_serves_lead_nowhere_without_its_table() {
    let bound = "4: kube-ipvs0: <BROADCAST,NOARP> mtu 1500\n    inet 10.96.0.10/32 scope global kube-ipvs0\n";
    let addresses = format!("{ADDRESSES}{bound}");
    let files = [("iptables.save", RULES), ("addr", &addresses), ("route", ROUTES)];
    let node = node("partial-ipvs", &files);
    let text = node.run(&[
        "walk",
        "--capture",
        "node",
        "--in",
        "pods0",
        "--src",
        "10.88.0.7:4000",
        "--dst",
        "10.96.0.10:53",
    ]);
    assert!(text.contains("unsettled"), "{text}");
    assert!(text.contains("its real servers are not known"), "{text}");
}

/// A bundle as people have it, one file of one node: what its capture does not say changes
/// nothing, and is said.
#[test]
fn a_bundle_says_what_its_captures_lack() {
    let folder = Folder::new("partial-bundle");
    for name in ["api", "front", "kube-system", "nodes", "web"] {
        let text =
            std::fs::read_to_string(root().join(format!("examples/shop/{name}.yaml"))).unwrap();
        folder.file(&format!("bundle/objects/{name}.yaml"), &text);
    }
    let rules = uturn(&["rules", "-f", "examples/shop", "--node", "n1"]).output().unwrap();
    let rules = String::from_utf8(rules.stdout).unwrap();
    folder.file("bundle/nodes/n1/iptables.save", &rules);
    let flow = ["--from", "pod/shop/web-0", "--to", "svc/shop/front:80"];
    let printed = folder.run(&[&["trace", "--bundle", "bundle", "-o", "wide"], &flow[..]].concat());
    assert!(printed.starts_with("exit 0\n"), "{printed}");
    for about in ["addresses and routes of n1", "rules that pick tables of routes of n1"] {
        assert!(printed.contains(&format!("supposed: {about}: ")), "{about}: {printed}");
    }
    assert!(printed.contains("supposed: forwarding of n1: on"), "{printed}");
    let scan = folder.run(&["scan", "--bundle", "bundle", "-o", "json"]);
    assert!(scan.contains("forwarding of n1: on"), "{scan}");
    // A set that is not captured may hold anything: neither refused nor taken for empty.
    let other = rules.replacen(
        "COMMIT",
        "-I FORWARD 1 -m set --match-set blocked src -j DROP\nCOMMIT",
        usize::from(rules.contains("*filter")),
    );
    let other = other.replace("-I FORWARD 1", "-A FORWARD");
    folder.file("bundle/nodes/n1/iptables.save", &other);
    let printed = folder.run(&[&["trace", "--bundle", "bundle", "-o", "wide"], &flow[..]].concat());
    assert!(!printed.starts_with("exit 2") && !printed.starts_with("exit 3"), "{printed}");
    assert!(printed.contains("sets that rules name of n1"), "{printed}");
}

/// A packet for another host does not leave through the loopback, whatever the routes are.
#[test]
fn the_loopback_leads_to_nobody_else() {
    let rules = "\
*nat
:OUTPUT ACCEPT [0:0]
-A OUTPUT -o lo -j RETURN
-A OUTPUT -p tcp -j REDIRECT --to-ports 15001
COMMIT
";
    let folder = node("partial-loopback", &[("iptables.save", rules)]);
    let packet = ["--src", "10.88.0.7:4000", "--dst", "192.0.2.1:80", "-o", "json"];
    let output = uturn(&[&["walk", "--capture", "node"][..], &packet].concat())
        .current_dir(&folder.0)
        .output()
        .unwrap();
    let walk: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for end in walk["ends"].as_array().unwrap() {
        let conditions = end["if"].to_string();
        assert!(!conditions.contains("interface lo"), "{conditions}");
        let is_foreign = conditions.contains("none of this node");
        assert_eq!(is_foreign, end["dst"] == "127.0.0.1:15001", "{end:#}");
    }
}
