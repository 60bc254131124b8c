//! Huawei Cloud's CCE: nodes have bare ids, Services say by annotations which load balancer they get.

use uturn_model::{Mechanism, Outcome};

use super::case::{ALL, BESIDE, Case, ELSEWHERE, HOST, OTHER_HOST, OUTSIDE, Pods, SERVER};

const SHARED: Case = Case {
    notes: &[("kubernetes.io/elb.class", "union"), ("kubernetes.io/elb.id", "0a1b")],
    ..Case::new("3f2c8e1a-0000-4b1c-9d7e-00000000000")
};
const DEDICATED: Case = Case { notes: &[CLASS, ID], ..SHARED };
const CLASS: (&str, &str) = ("kubernetes.io/elb.class", "performance");
const ID: (&str, &str) = ("kubernetes.io/elb.id", "0a1b");
const PASS_THROUGH: (&str, &str) = ("kubernetes.io/elb.pass-through", "true");
const ONLY_LOCAL: (&str, &str) = ("kubernetes.io/elb.pass-through", "onlyLocal");

#[test]
fn the_class_tells_the_product() {
    assert_eq!(SHARED.product(), "Huawei Cloud shared ELB");
    assert_eq!(DEDICATED.product(), "Huawei Cloud dedicated ELB");
    let open = &[("kubernetes.io/elb.class", "dedicated")];
    let open = Case { provider_id: "huaweicloud://", notes: open, ..SHARED };
    assert_eq!(open.product(), "Huawei Cloud dedicated ELB");
}

#[test]
fn nodes_answer_for_the_address_of_the_status() {
    for mode in ["iptables", "ipvs"] {
        Case { mode, ..SHARED }.is_answered(&ALL);
        Case { mode, ..DEDICATED }.is_answered(&ALL);
    }
    // The open controller runs beside an ordinary kube-proxy, under policy Local too.
    let open = &[("kubernetes.io/elb.class", "dedicated")];
    Case { notes: open, policy: "Local", ..SHARED }.is_answered(&ALL);
}

/// As the vendor measured it: the server's own node and what runs there fail, all others do not, in
/// either mode.
#[test]
fn under_policy_local_calls_come_back_to_the_node_of_the_server() {
    for mode in ["iptables", "ipvs"] {
        let by_class = [
            &[("kubernetes.io/elb.class", "union")][..],
            &[("kubernetes.io/elb.class", "union"), ONLY_LOCAL],
            &[CLASS, ONLY_LOCAL],
        ];
        for notes in by_class {
            let local = Case { mode, notes, policy: "Local", ..SHARED };
            local.hangs(&[HOST, BESIDE, SERVER]);
            local.is_answered(&[ELSEWHERE, OTHER_HOST, OUTSIDE]);
        }
    }
    let shared = Case { policy: "Local", ..SHARED }.met(HOST, "http");
    assert_eq!(shared.mechanisms, [Mechanism::LocalSourceDrop]);
    assert!(shared.doubts.iter().any(|doubt| doubt.ends_with("under policy Local")));
}

/// The vendor's kube-proxy left addresses out before there was a field for it.
#[test]
fn versions_that_do_not_read_the_mode_leave_the_address_out_too() {
    for version in ["v1.19.16", "v1.25.16", "v1.28.1"] {
        let local = Case { version, policy: "Local", ..SHARED };
        local.hangs(&[HOST, BESIDE, SERVER]);
        local.is_answered(&[ELSEWHERE, OTHER_HOST, OUTSIDE]);
    }
}

/// In IPVS mode an address that one Service leaves to the load balancer is a node's own as soon as
/// another Service does not: nothing there listens on the port of the first.
#[test]
fn services_of_one_load_balancer_have_to_agree() {
    const OTHER: &str = "---
apiVersion: v1
kind: Service
metadata:
  name: other
  namespace: shop
  annotations: {kubernetes.io/elb.class: union, kubernetes.io/elb.id: 0a1b}
spec: {type: LoadBalancer, clusterIP: 172.20.0.11, selector: {app: web}, ports: [{port: 8443, nodePort: 30099}]}
status: {loadBalancer: {ingress: [{ip: 10.0.9.9}]}}
";
    let notes = &[("kubernetes.io/elb.class", "union"), PASS_THROUGH];
    let both = Case { notes, more: OTHER, ..SHARED };
    both.is_answered(&ALL);
    let ipvs = Case { mode: "ipvs", ..both };
    for from in [ELSEWHERE, HOST] {
        assert_eq!(ipvs.met(from, "http").answered, 0.0, "{from}");
    }
    ipvs.is_answered(&[OUTSIDE]);
}

#[test]
fn pass_through_loops_where_the_source_is_kept() {
    let shared = &[("kubernetes.io/elb.class", "union"), PASS_THROUGH];
    Case { notes: shared, ..SHARED }.is_answered(&ALL);
    let dedicated = Case { notes: &[CLASS, PASS_THROUGH], ..SHARED };
    dedicated.hangs(&[HOST, BESIDE, SERVER]);
    dedicated.is_answered(&[ELSEWHERE, OTHER_HOST, OUTSIDE]);
    let kept = ("kubernetes.io/elb.enable-transparent-client-ip", "true");
    let notes = &[("kubernetes.io/elb.class", "union"), PASS_THROUGH, kept];
    Case { notes, ..SHARED }.hangs(&[HOST]);
}

#[test]
fn a_public_address_has_another_source() {
    let notes = &[CLASS, PASS_THROUGH];
    Case { notes, status: "{ip: 203.0.113.9}", ..SHARED }.is_answered(&[HOST, ELSEWHERE]);
}

#[test]
fn pods_with_addresses_of_the_network_are_targets_of_a_dedicated_one() {
    let native = Case { notes: &[CLASS, PASS_THROUGH], pods: Pods::Native, ..SHARED };
    native.hangs(&[SERVER, BESIDE, HOST]);
    native.is_answered(&[ELSEWHERE, OTHER_HOST, OUTSIDE]);
    assert!(!native.met(BESIDE, "http").doubts.is_empty());
}

#[test]
fn calls_within_miss_tls() {
    let tls = ("kubernetes.io/elb.protocol-port", "https:443,http:80");
    let asked = Case { notes: &[("kubernetes.io/elb.class", "union"), tls], ..SHARED };
    let met = asked.met(ELSEWHERE, "https");
    assert_eq!(met.outcomes, [Outcome::TlsError]);
    assert_eq!(met.mechanisms, [Mechanism::TlsBypassed]);
    let notes = &[("kubernetes.io/elb.class", "union"), tls, PASS_THROUGH];
    let through = Case { notes, ..SHARED };
    assert_eq!(through.met(HOST, "https").outcomes, [Outcome::AT_ONCE]);
}
