//! Alibaba Cloud: ACK's controller writes an address for a Classic Load Balancer, and a name for a
//! Network Load Balancer or where an annotation asks for one.

use uturn_model::{Mechanism, Outcome};

use super::case::{ALL, BESIDE, Case, ELSEWHERE, HOST, OTHER_HOST, OUTSIDE, PRIVATE, Pods, SERVER};

/// Nodes have providerIDs without a scheme.
const USUAL: Case = Case::new("cn-hangzhou.i-bp1d4k");
const INTRANET: (&str, &str) =
    ("service.beta.kubernetes.io/alibaba-cloud-loadbalancer-address-type", "intranet");
const CLB: Case = Case { notes: &[INTRANET], ..USUAL };
const NAMED: Case = Case {
    notes: &[
        INTRANET,
        ("service.beta.kubernetes.io/alibaba-cloud-loadbalancer-hostname", "web.example.com"),
    ],
    status: "{hostname: web.example.com}",
    ..USUAL
};
const NLB: Case = Case {
    notes: &[INTRANET],
    spec: "loadBalancerClass: alibabacloud.com/nlb, ",
    status: "{hostname: nlb-0a1b2c.cn-hangzhou.nlb.aliyuncs.com}",
    ..USUAL
};

#[test]
fn nodes_class_name_and_annotations_tell_the_product() {
    assert_eq!(USUAL.product(), "Alibaba Cloud CLB");
    assert_eq!(NAMED.product(), "Alibaba Cloud CLB");
    assert_eq!(NLB.product(), "Alibaba Cloud NLB");
    assert_eq!(Case { spec: "", ..NLB }.product(), "Alibaba Cloud NLB", "by its name");
    let other = Case { provider_id: "kind://n", ..CLB };
    assert_eq!(other.product(), "Alibaba Cloud CLB", "by an annotation");
}

#[test]
fn nodes_answer_for_the_address_of_the_status() {
    CLB.is_answered(&ALL);
    Case { policy: "Local", ..CLB }.is_answered(&ALL);
    // In IPVS mode the address is on every node, so it is a node's own source, which flannel replaces.
    let ipvs = Case { policy: "Local", mode: "ipvs", ..CLB };
    ipvs.is_answered(&ALL);
    let native = Case { pods: Pods::Native, ..ipvs };
    native.is_answered(&[HOST, BESIDE, ELSEWHERE, OUTSIDE]);
    native.hangs(&[OTHER_HOST]);
}

#[test]
fn calls_within_miss_the_header_and_tls() {
    let header = ("service.beta.kubernetes.io/alibaba-cloud-loadbalancer-proxy-protocol", "on");
    let tls = (
        "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-protocol-port",
        "https:443,http:80",
    );
    let asked = Case { notes: &[header], ..USUAL };
    let lost = asked.met(ELSEWHERE, "http");
    assert_eq!(lost.outcomes, [Outcome::EmptyReply]);
    assert_eq!(lost.mechanisms, [Mechanism::ProxyHeader]);
    asked.is_answered(&[OUTSIDE]);
    let asked = Case { notes: &[tls], ..USUAL };
    let met = asked.met(ELSEWHERE, "https");
    assert_eq!(met.outcomes, [Outcome::TlsError]);
    assert_eq!(met.mechanisms, [Mechanism::TlsBypassed]);
    assert_eq!(asked.met(OUTSIDE, "https").outcomes, [Outcome::AT_ONCE]);
    // A name leads through the load balancer, on layer 7 with its own address.
    let notes = &[tls];
    let named = Case { notes, status: NAMED.status, ..USUAL };
    assert_eq!(named.met(HOST, "https").outcomes, [Outcome::AT_ONCE]);
}

#[test]
fn a_name_leads_out_of_the_cluster_and_back_to_the_caller() {
    for from in [HOST, OTHER_HOST, ELSEWHERE] {
        let met = NAMED.met(from, "http");
        assert_eq!((met.answered, met.hangs), (0.67, 0.33), "{from}: {met:?}");
    }
    assert_eq!(NAMED.met(HOST, "http").mechanisms, [Mechanism::LocalSourceDrop]);
    let local = Case { policy: "Local", ..NAMED };
    local.hangs(&[HOST, BESIDE, SERVER]);
    local.is_answered(&[ELSEWHERE, OTHER_HOST, OUTSIDE]);
}

#[test]
fn an_address_of_the_internet_has_another_source() {
    let public = Case { notes: &[], ..NAMED };
    public.is_answered(&[HOST, ELSEWHERE]);
}

#[test]
fn pods_as_targets_lose_the_calls_of_their_own_node() {
    let eni = ("service.beta.kubernetes.io/backend-type", "eni");
    for case in [
        Case { notes: &[INTRANET, eni], pods: Pods::Native, ..NAMED },
        // Without the annotation, the pods' network decides.
        Case { pods: Pods::Native, ..NAMED },
    ] {
        case.hangs(&[SERVER, BESIDE, HOST]);
        case.is_answered(&[ELSEWHERE, OTHER_HOST, OUTSIDE]);
        let doubts = case.met(BESIDE, "http").doubts;
        assert!(doubts.iter().any(|doubt| doubt.contains("two pods of one node")), "{doubts:?}");
    }
    let nodes = ("service.beta.kubernetes.io/backend-type", "ecs");
    let by_nodes = Case { notes: &[INTRANET, nodes], pods: Pods::Native, ..NAMED };
    assert_eq!(by_nodes.met(HOST, "http").hangs, 0.33);
}

#[test]
fn a_network_load_balancer_keeps_the_source_unless_asked_not_to() {
    let met = NLB.met(OTHER_HOST, "http");
    assert_eq!((met.answered, met.hangs), (0.67, 0.33));
    assert!(met.doubts.iter().any(|doubt| doubt.contains("keeps the client's address")));
    let off = ("service.beta.kubernetes.io/alibaba-cloud-loadbalancer-preserve-client-ip", "off");
    Case { notes: &[INTRANET, off], ..NLB }.is_answered(&ALL);
    // An address in the status, written by hand, has nodes answer for it.
    Case { status: PRIVATE, ..NLB }.is_answered(&ALL);
}
