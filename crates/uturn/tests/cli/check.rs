//! `uturn check`: the checklists, on a cluster that is well and on those that are not.

use insta::assert_snapshot;
use serde_json::Value;

use super::common::{run, uturn};

const SHOP: &str = "examples/shop";

#[test]
fn check_of_a_service() {
    assert_snapshot!(run(&["check", "-f", SHOP, "service", "shop/front"]));
}

#[test]
fn check_of_an_ingress_that_loops() {
    assert_snapshot!(run(&["check", "-f", SHOP, "ingress"]));
}

#[test]
fn check_of_names() {
    assert_snapshot!("dns_that_is_well", run(&["check", "-f", SHOP, "dns"]));
    assert_snapshot!(
        "dns_that_is_broken",
        run(&["check", "-f", "scenarios/dns-broken.yaml", "dns"])
    );
}

#[test]
fn check_of_nodes() {
    let printed = run(&["check", "-f", "scenarios/probe-firewall.yaml", "nodes"]);
    assert!(printed.contains("failed  no firewall on the node stops health checks"), "{printed}");
    assert_snapshot!("nodes_wide", run(&["check", "-f", SHOP, "nodes", "-o", "wide"]));
}

#[test]
fn check_across_nodes() {
    assert_snapshot!("across_nodes_well", run(&["check", "-f", SHOP, "cross-node"]));
    assert_snapshot!(
        "across_nodes_shut",
        run(&["check", "-f", "scenarios/cross-node.yaml", "cross-node"])
    );
}

/// Each row of the seeds' lists fails the line that asks for it.
#[test]
fn the_line_that_is_meant_fails() {
    for (scenario, topic, line) in [
        ("node-sg", "service", "the nodes' security groups let 30000-32768 in"),
        ("no-bandwidth", "service", "the nodes have public bandwidth"),
        ("wrong-port", "service", "spec.ports lead where pods listen"),
        ("no-endpoint", "service", "there are endpoints that are ready"),
        ("dns-broken", "service", "its name leads there"),
        ("cross-node", "service", "every endpoint answers by its own address"),
        ("rules-missing", "service", "every node has its rules"),
        ("rules-missing", "service", "the ClusterIP answers in the cluster"),
        ("l4-ipvs-unbound-local", "service", "pods reach the load balancer's address"),
        ("l4-ipvs-upstream", "service", "health checks of 10.0.0.101:80 are answered"),
        ("node-sg", "ingress", "the nodes' security groups let 30000-32768 in"),
        ("lb-sg-443", "ingress", "the load balancer's security group lets 443 in"),
        ("l7-loop", "ingress", "pods that call it are answered at once"),
        ("cross-node-forwarding", "cross-node", "every node forwards"),
        ("cross-node-route", "cross-node", "the VPC has routes to every node's pods"),
    ] {
        let file = format!("scenarios/{scenario}.yaml");
        let args = ["check", "-f", &file, topic, "-o", "json"];
        let output = uturn(&args).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{scenario}");
        let value: Value = serde_json::from_slice(&output.stdout).unwrap();
        let lists = value["checklists"].as_array().unwrap();
        let checks: Vec<&Value> =
            lists.iter().flat_map(|list| list["checks"].as_array().unwrap()).collect();
        let found = checks.iter().find(|check| {
            check["state"] == "failed" && check["check"].as_str().unwrap().starts_with(line)
        });
        let found = found.unwrap_or_else(|| panic!("{scenario}: {line} did not fail: {value:#}"));
        assert!(!found["evidence"].as_array().unwrap().is_empty(), "{scenario}: {line}");
        assert!(found["next"].is_string(), "{scenario}: {line}");
    }
}

#[test]
fn what_is_not_there_cannot_be_checked() {
    assert_snapshot!("no_such_service", run(&["check", "-f", SHOP, "service", "shop/none"]));
    assert_snapshot!("nodes_have_no_namespace", run(&["check", "-f", SHOP, "nodes", "shop/none"]));
}

/// That servers expect a header is only concluded from the load balancer that sends one.
#[test]
fn what_rests_on_a_supposition_has_not_failed() {
    let clouds = "examples/clouds/hetzner.yaml";
    let found = run(&["check", "-f", clouds, "service", "shop/web"]);
    assert!(found.starts_with("exit 0\n"), "{found}");
    assert!(found.contains("(proxy-header) if its pods expect a PROXY header"), "{found}");
    let traced = run(&["trace", "-f", clouds, "--from", "outside", "--to", "svc/shop/web"]);
    let client = found.split("--from pod/shop/").nth(1).unwrap().split(' ').next().unwrap();
    let client = format!("pod/shop/{client}");
    let traced_inside = run(&["trace", "-f", clouds, "--from", &client, "--to", "svc/shop/web"]);
    let condition = "if its pods expect a PROXY header: empty reply   UT108 proxy-header\n";
    assert!(traced_inside.contains(condition), "{traced_inside}");
    assert!(!traced.contains("if its pods"), "{traced}");
}

/// The Service is there: what is missing is the port.
#[test]
fn ports_that_may_have_been_meant() {
    let call = |to: &str| run(&["trace", "-f", SHOP, "--from", "pod/shop/api-0", "--to", to]);
    let found = call("svc/shop/front:htp");
    assert!(found.contains("svc/shop/front has no port htp; it has "), "{found}");
    let folder = super::common::Folder::new("port-none");
    folder.file(
        "a.yaml",
        "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: c}]}}\n---\n\
         {apiVersion: v1, kind: Service, metadata: {name: db}, spec: {type: ExternalName, externalName: \
         db.example.org}}\n",
    );
    let found =
        folder.run(&["trace", "-f", "a.yaml", "--from", "pod/default/a", "--to", "svc/default/db"]);
    assert!(found.contains("svc/default/db has no ports: call it by its name"), "{found}");
}

#[test]
fn names_that_may_have_been_meant() {
    for (arguments, instead) in [
        (
            &["check", "service", "shop/frnt"] as &[&str],
            "; there are svc/shop/front and svc/shop/api",
        ),
        (&["check", "ingress", "shop/frnt"], "; there is ingress/shop/front"),
        (&["rules", "--node", "n9"], "; there are node/n1, node/n2 and node/n3"),
    ] {
        let found = run(&[arguments, &["-f", SHOP]].concat());
        assert!(found.starts_with("exit 2\n") && found.contains(instead), "{found}");
    }
}

/// Nothing that is asked for is there: no fault of the user's.
#[test]
fn a_cluster_without_ingresses_has_nothing_to_check() {
    let folder = super::common::Folder::new("check-none");
    folder.file("a.yaml", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}\n");
    let nothing = "exit 0\n--- stdout\nnothing to check: there is no Ingress in this cluster\n";
    assert_eq!(folder.run(&["check", "ingress", "-f", "."]), nothing);
    let json = folder.run(&["check", "ingress", "-f", ".", "-o", "json"]);
    assert!(json.starts_with("exit 0\n--- stdout\n{"), "{json}");
    let named = folder.run(&["check", "ingress", "shop/web", "-f", "."]);
    assert!(
        named.starts_with("exit 2\n--- stderr\nerror: there is no Ingress shop/web"),
        "{named}"
    );
}

/// A status with a name has addresses too: one stands for each zone.
#[test]
fn a_load_balancer_with_a_name_is_checked() {
    let checked = run(&["check", "service", "shop/web", "-f", "scenarios/zones.yaml"]);
    assert!(checked.starts_with("exit 1\n"), "{checked}");
    for line in [
        "  failed  pods reach the load balancer's address, and it does not send them back\n",
        "          pod/shop/client-3 to 10.0.0.201:80: hangs (asymmetric-return)\n",
        "  ok      health checks of 10.0.0.200:80 are answered\n",
        "  ok      health checks of 10.0.0.201:80 are answered\n",
    ] {
        assert!(checked.contains(line), "{checked}");
    }
}
