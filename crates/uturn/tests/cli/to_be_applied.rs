//! Manifests of a pull request, whose load balancers are still to be made: what their controllers will
//! write into the status is supposed.

use uturn_testing::manifests::deployment;

use super::common::{Folder, assert_has};

/// A server and a client, and a Service with these annotations.
fn request(test: &str, annotations: &str) -> Folder {
    let service = format!(
        "---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop, annotations: {{{annotations}}}}}
spec: {{type: LoadBalancer, selector: {{app: web}}, ports: [{{port: 80}}]}}
"
    );
    let folder = Folder::new(&format!("to-be-applied-{test}"));
    folder.file("all.yaml", &[deployment("web", 2), deployment("client", 1), service].concat());
    folder
}

#[test]
fn loopback_is_found_before_the_load_balancer_is_there() {
    let aws = "service.beta.kubernetes.io/aws-load-balancer-type: nlb, \
               service.beta.kubernetes.io/aws-load-balancer-internal: \"true\"";
    let printed = request("nlb", aws).run(&["scan", "-f", ".", "-o", "wide"]);
    assert!(printed.starts_with("exit 1\n"), "{printed}");
    assert_has(
        &printed,
        &[
            "svc/shop/web web.shop.lb.example:80",
            "UT102",
            "supposed: address of Service shop/web: web.shop.lb.example (its status has no \
             address, and its controller writes a name;",
        ],
    );
}

#[test]
fn the_status_has_the_shape_that_its_controller_writes() {
    let hetzner = "load-balancer.hetzner.cloud/";
    for (test, annotations, supposed) in [
        ("address", format!("{hetzner}location: fsn1"), "203.0.113.100 (public)"),
        ("own-name", format!("{hetzner}hostname: shop.example.com"), "shop.example.com"),
        ("announced", "metallb.io/address-pool: p".to_owned(), "10.0.0.100 (private)"),
    ] {
        let printed = request(test, &annotations).run(&["scan", "-f", ".", "-o", "wide"]);
        assert!(printed.starts_with("exit 0\n"), "{printed}");
        assert_has(&printed, &[&format!("supposed: address of Service shop/web: {supposed} (")]);
    }
}

#[test]
fn calls_that_need_the_header_are_left_to_the_load_balancer() {
    let header = "load-balancer.hetzner.cloud/uses-proxyprotocol: \"true\"";
    let folder = request("header", header);
    let to = ["trace", "-f", ".", "--from", "deploy/shop/client", "--to", "203.0.113.100:80"];
    assert_has(&folder.run(&to), &["lb      shop-web"]);
}

#[test]
fn a_service_that_a_cluster_has_waits_for_its_load_balancer() {
    let folder = request("applied", "load-balancer.hetzner.cloud/location: fsn1");
    let text = std::fs::read_to_string(folder.0.join("all.yaml")).unwrap();
    let applied = text.replace("spec: {type: Load", "spec: {clusterIP: 10.96.0.9, type: Load");
    folder.file("all.yaml", &applied);
    let printed = folder.run(&["scan", "-f", ".", "-o", "wide"]);
    assert!(!printed.contains("address of Service shop/web"), "{printed}");
}
