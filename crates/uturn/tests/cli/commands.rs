//! Whole commands: what a user types, and everything that comes back.

use std::fs;

use super::common::{Folder, root, run, uturn};
use super::conforms::assert_conforms;
use insta::assert_snapshot;
use serde_json::Value;

const SHOP: &[&str] = &["-f", "examples/shop"];

fn on_shop(args: &[&str]) -> String {
    run(&[&args[..1], SHOP, &args[1..]].concat())
}

fn json(args: &[&str]) -> Value {
    let output = uturn(args).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn scan_of_the_shop() {
    assert_snapshot!(on_shop(&["scan"]));
}

#[test]
fn scan_wide() {
    assert_snapshot!(on_shop(&["scan", "-o", "wide"]));
}

#[test]
fn scan_yaml() {
    assert_snapshot!(on_shop(&["scan", "-o", "yaml"]));
}

/// Without classes, each flow walked by itself, a scan says the same.
#[test]
fn scan_exhaustive_says_the_same() {
    for output in ["text", "json"] {
        let by_class = on_shop(&["scan", "-o", output]);
        let each = on_shop(&["scan", "--exhaustive", "-o", output]);
        assert_eq!(by_class, each, "{output}");
    }
}

#[test]
fn scan_exhaustive_is_for_small_clusters() {
    let mut text = String::from(
        "{apiVersion: v1, kind: Node, metadata: {name: n1}, spec: {podCIDR: 10.1.0.0/16}, \
         status: {addresses: [{type: InternalIP, address: 10.0.0.11}]}}\n",
    );
    for number in 0..450 {
        let (high, low) = (1 + number / 250, 1 + number % 250);
        text.push_str(&format!(
            "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: p{number}, namespace: shop}}, \
             spec: {{nodeName: n1, containers: [{{name: c, image: c}}]}}, \
             status: {{phase: Running, podIP: 10.1.{high}.{low}}}}}\n\
             ---\n{{apiVersion: v1, kind: Service, metadata: {{name: s{number}, namespace: shop}}, \
             spec: {{clusterIP: 172.16.{high}.{low}, ports: [{{port: 80}}]}}}}\n"
        ));
    }
    let folder = Folder::new("exhaustive");
    let printed =
        folder.file("large.yaml", &text).run(&["scan", "--exhaustive", "-f", "large.yaml"]);
    assert!(printed.starts_with("exit 2\n"), "{printed}");
    assert!(printed.contains("there are 202500: at most 200000 can be walked"), "{printed}");
}

#[test]
fn scan_explains_its_classes() {
    let printed = on_shop(&["scan", "--explain-classes"]);
    let of_ingress = printed.split("\n\n").find(|block| block.starts_with("Ingress shop/front"));
    assert_snapshot!(of_ingress.unwrap());
}

#[test]
fn explained_classes_as_json() {
    let printed = json(&["scan", "--explain-classes", "-f", "examples/shop", "-o", "json"]);
    assert_conforms("explain-classes", &printed);
    let targets = printed["targets"].as_array().unwrap();
    let ingress = targets.iter().find(|target| target["object"] == "Ingress shop/front").unwrap();
    assert_eq!(ingress["closeness"], "classes");
    assert_eq!(ingress["protocol"], "TCP");
    let classes = ingress["classes"].as_array().unwrap();
    // Every pod is in one class.
    let pods = |target: &Value| -> u64 {
        let classes = target["classes"].as_array().unwrap();
        classes.iter().map(|class| class["pods"].as_u64().unwrap()).sum()
    };
    assert!(targets.iter().all(|target| pods(target) == pods(ingress)));
    let is_endpoint = |class: &Value| {
        let common = class["common"].as_array().unwrap();
        common.iter().any(|class_trait| {
            class_trait["trait"] == "endpoint-of" && class_trait["value"] == "shop/front"
        })
    };
    assert_eq!(classes.iter().filter(|class| is_endpoint(class)).count(), 1);
    for (number, class) in classes.iter().enumerate() {
        let is_last = number + 1 == classes.len();
        let differs = ["not_in_next", "only_in_next"];
        let differs = differs.iter().any(|field| !class[field].as_array().unwrap().is_empty());
        assert_ne!(is_last, differs, "{class}");
    }
}

#[test]
fn explained_classes_are_no_findings() {
    let printed = on_shop(&["scan", "--explain-classes", "-o", "sarif"]);
    assert_eq!(
        printed,
        "exit 2\n--- stderr\nerror: --explain-classes prints text, json and yaml\n"
    );
}

#[test]
fn scan_json_follows_the_contract() {
    let scan = json(&["scan", "-f", "examples/shop", "-o", "json"]);
    let findings = scan["findings"].as_array().unwrap();
    let finding = findings.iter().find(|finding| finding["code"] == "UT101").unwrap();
    assert_eq!(finding["severity"], "error");
    assert_eq!(finding["subject"]["kind"], "Ingress");
    assert_eq!(finding["subject"]["namespace"], "shop");
    assert_eq!(finding["subject"]["name"], "front");
    assert_eq!(finding["mechanism"], "asymmetric-return");
    assert!((finding["share_failing"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-6);
    assert_eq!(finding["outcome"], "answered");
    assert_eq!(finding["after_ms"], 4000);
    let clients = finding["clients"].as_array().unwrap();
    assert!(clients.iter().any(|client| client == "pod/shop/web-0"), "{clients:?}");
    for field in ["evidence", "cures"] {
        assert!(!finding[field].as_array().unwrap().is_empty(), "{field}");
    }
    for field in ["supposed", "skipped"] {
        assert!(scan[field].is_array(), "{field}");
    }
    assert!(scan["seen"].is_object());
}

#[test]
fn snat_stated_in_facts_cures_it() {
    assert_snapshot!(run(&["scan", "-f", "examples/shop", "-f", "examples/facts-snat.yaml"]));
}

#[test]
fn severity_that_counts_is_the_users_choice() {
    assert!(on_shop(&["scan", "--fail-on", "never"]).starts_with("exit 0\n"));
    assert!(on_shop(&["scan", "--fail-on", "info"]).starts_with("exit 1\n"));
    assert!(on_shop(&["scan", "-n", "shop"]).starts_with("exit 1\n"));
    assert!(on_shop(&["scan", "-n", "kube-system"]).starts_with("exit 0\n"));
    assert!(on_shop(&["scan", "-n", "nowhere"]).starts_with("exit 2\n"));
}

#[test]
fn trace_of_the_loop() {
    assert_snapshot!(on_shop(&[
        "trace",
        "--from",
        "pod/shop/web-0",
        "--to",
        "http://shop.example.com/"
    ]));
}

#[test]
fn trace_of_the_short_circuit() {
    assert_snapshot!(on_shop(&["trace", "--from", "pod/shop/web-0", "--to", "10.0.0.101:80"]));
}

#[test]
fn trace_json_follows_the_contract() {
    let trace = json(&[
        "trace",
        "-f",
        "examples/shop",
        "--from",
        "pod/shop/web-0",
        "--to",
        "http://10.0.0.100/",
        "-o",
        "json",
    ]);
    assert_eq!(trace["flow"]["from"], "pod/shop/web-0");
    assert_eq!(trace["flow"]["to"], "http://10.0.0.100/");
    assert_eq!(trace["flow"]["protocol"], "tcp");
    assert_eq!(trace["findings"], serde_json::json!(["UT101"]));
    let sum = |list: &Value| -> f64 {
        list.as_array().unwrap().iter().map(|item| item["share"].as_f64().unwrap()).sum()
    };
    for verdict in trace["verdicts"].as_array().unwrap() {
        assert!((sum(&verdict["outcomes"]) - 1.0).abs() < 1e-9);
        assert_eq!(verdict["mechanisms"], serde_json::json!(["asymmetric-return"]));
    }
    assert!((sum(&trace["routes"]) - 1.0).abs() < 1e-9);
    for route in trace["routes"].as_array().unwrap() {
        let hops = route["hops"].as_array().unwrap();
        for way in ["out", "back"] {
            assert!(hops.iter().any(|hop| hop["way"] == way), "no way {way}");
        }
        for step in hops.iter().flat_map(|hop| hop["steps"].as_array().unwrap()) {
            for field in ["rule", "source"] {
                assert!(!step["by"][field].as_str().unwrap().is_empty(), "{step}");
            }
            assert!(!step["why"].as_str().unwrap().is_empty(), "{step}");
        }
    }
}

#[test]
fn every_way_adds_up_too() {
    let trace = json(&[
        "trace",
        "-f",
        "examples/shop",
        "--from",
        "deploy/shop/web",
        "--to",
        "ingress/shop/front",
        "--all",
        "-o",
        "json",
    ]);
    let routes = trace["routes"].as_array().unwrap();
    let sum: f64 = routes.iter().map(|route| route["share"].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-9);
    assert!(routes.len() > 3 * 3, "three clients, three targets: {}", routes.len());
}

#[test]
fn a_flow_that_is_fine_exits_with_0() {
    assert!(
        on_shop(&["trace", "--from", "pod/shop/web-0", "--to", "svc/shop/front"])
            .starts_with("exit 0\n")
    );
}

#[test]
fn explain() {
    assert!(run(&["explain", "UT101"]).starts_with("exit 0\n--- stdout\n# UT101 "));
    assert!(run(&["explain", "asymmetric-return"]).starts_with("exit 0\n"));
    assert_snapshot!(run(&["explain"]));
    assert_snapshot!("explain_unknown", run(&["explain", "UT999"]));
    let named = run(&["explain", "Hairpin"]);
    assert!(named.contains("pages that mention it:\n  UT613  hairpin mode off"), "{named}");
}

#[test]
fn rules_are_ready_to_load() {
    let printed = on_shop(&["rules", "--node", "n1"]);
    assert!(printed.starts_with("exit 0\n"), "{printed}");
    for line in ["*nat", "*filter", "COMMIT", ":KUBE-SERVICES - [0:0]"] {
        assert!(printed.lines().any(|other| other == line), "{line}");
    }
    assert_snapshot!("rules_unknown_node", on_shop(&["rules", "--node", "n9"]));
}

#[test]
fn rules_of_every_mode() {
    let rules = |mode: &str, format: &str| {
        on_shop(&["rules", "--node", "n1", "--mode", mode, "--format", format])
    };
    for (mode, format, line) in [
        ("ipvs", "ipvs", "-A -t 172.16.12.7:80 -s rr"),
        ("ipvs", "ipset", "add KUBE-CLUSTER-IP 172.16.12.7,tcp:80"),
        ("ipvs", "iptables", ":KUBE-LOAD-BALANCER - [0:0]"),
        ("ipvs", "ip6tables", "*nat"),
        ("nftables", "nft", "table ip kube-proxy {"),
    ] {
        let printed = rules(mode, format);
        assert!(printed.starts_with("exit 0\n"), "{printed}");
        assert!(printed.lines().any(|other| other.trim() == line), "{mode} {format}: no {line}");
    }
    assert_snapshot!("rules_nothing_of_that_kind", rules("iptables", "ipvs"));
}

#[test]
fn walk_through_a_capture() {
    const NODE: &str = "crates/analysis/netfilter/tests/golden/ipvs-n1";
    let walk = json(&[
        "walk",
        "--capture",
        NODE,
        "--src",
        "10.0.0.11:4000",
        "--dst",
        "203.0.113.10:80",
        "-o",
        "json",
    ]);
    let ends = walk["ends"].as_array().unwrap();
    let sum: f64 = ends.iter().map(|end| end["share"].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-9);
    for end in ends {
        assert_eq!(end["end"], "forward");
        assert_eq!(end["out"], "eth0");
        assert!(end["dst"].as_str().unwrap().ends_with(":8080"), "{end}");
        assert!(!end["steps"].as_array().unwrap().is_empty());
    }
    let walk = |args: &[&str]| run(&[&["walk", "--capture"], args].concat());
    let there = ["--src", "10.1.1.9:4000", "--dst", "10.1.1.10:80"];
    assert_snapshot!("walk_no_capture", walk(&[&["docs/nowhere"], &there[..]].concat()));
    assert_snapshot!("walk_no_interface", walk(&[&[NODE, "--in", "eth9"], &there[..]].concat()));
    let mixed = ["--src", "[fd00::1]:1", "--dst", "10.1.1.10:80"];
    assert_snapshot!("walk_mixed_families", walk(&[&[NODE], &mixed[..]].concat()));
}

#[test]
fn help_and_usage() {
    assert_snapshot!("help", run(&["--help"]));
    assert_snapshot!("help_trace", run(&["trace", "--help"]));
    assert_snapshot!(
        "wrong_client",
        on_shop(&["trace", "--from", "web", "--to", "svc/shop/front"])
    );
    assert_snapshot!(
        "unknown_client",
        on_shop(&["trace", "--from", "pod/shop/nobody", "--to", "svc/shop/front"])
    );
    assert_snapshot!("no_manifests", run(&["scan"]));
}

#[test]
fn lab_list() {
    assert_snapshot!(run(&["lab", "list"]));
}

/// The call that a scan says to follow is one that fails.
#[test]
fn what_scan_says_to_type_shows_what_it_found() {
    let mut followed = 0;
    let files = fs::read_dir(root().join("scenarios")).unwrap();
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files.iter().step_by(2) {
        let file = file.to_str().unwrap();
        let printed = run(&["scan", "-f", file]);
        let typed = |what: &str| {
            let line = printed.lines().find_map(|line| line.strip_prefix(what)).unwrap_or_default();
            line.trim_start().strip_prefix("uturn ")
        };
        let Some(words) = typed("  packet by packet") else { continue };
        let words: Vec<&str> = words.split(' ').collect();
        let trace = run(&words);
        assert!(trace.starts_with("exit 1\n"), "{}: {trace}", words.join(" "));
        followed += 1;
    }
    assert!(followed > 10, "{followed}");
}

/// As with kubectl, -n gives the namespace of names that leave it out.
#[test]
fn the_namespace_may_be_given_once() {
    let shop = ["-f", "examples/shop"];
    for (short, full) in [
        (
            &["trace", "-n", "shop", "--from", "pod/web-0", "--to", "svc/front"][..],
            &["trace", "--from", "pod/shop/web-0", "--to", "svc/shop/front"][..],
        ),
        (
            &["cure", "-n", "shop", "--from", "pod/web-0", "--to", "ingress/front"],
            &["cure", "--from", "pod/shop/web-0", "--to", "ingress/shop/front"],
        ),
        (&["cure", "UT101", "front", "-n", "shop"], &["cure", "UT101", "shop/front"]),
        (&["check", "ingress", "front", "-n", "shop"], &["check", "ingress", "shop/front"]),
    ] {
        let (short, full) = (run(&[short, &shop].concat()), run(&[full, &shop].concat()));
        assert!(!full.starts_with("exit 2\n"), "{full}");
        assert_eq!(short, full);
    }
    let missing =
        run(&[&["trace", "--from", "pod/web-0", "--to", "svc/front"], &shop[..]].concat());
    assert_eq!(
        missing,
        "exit 2\n--- stderr\nerror: \"pod/web-0\" is not a client: expected pod/NAMESPACE/NAME, \
         such as \
         pod/default/web; or give the namespace with -n\n"
    );
    let all = run(&[&["check", "service", "-n", "shop"], &shop[..]].concat());
    assert!(all.contains("svc/shop/front\n") && !all.contains("svc/default/"), "{all}");
    let none = run(&[&["check", "service", "-n", "other"], &shop[..]].concat());
    assert!(none.contains("there is no Service in namespace other in this cluster"), "{none}");
}
