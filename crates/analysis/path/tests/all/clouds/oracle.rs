//! Oracle Cloud: its controller writes addresses, with `ipMode: Proxy` where an annotation asks for
//! it.

use uturn_model::{Mechanism, Outcome};

use super::case::{
    ALL, BESIDE, Case, ELSEWHERE, HOST, OTHER_HOST, OUTSIDE, PRIVATE, PUBLIC, SERVER,
};

const LB: Case = Case {
    notes: &[("service.beta.kubernetes.io/oci-load-balancer-internal", "true")],
    ..Case::new("ocid1.instance.oc1.iad.anuwc")
};
const TYPE: (&str, &str) = ("oci.oraclecloud.com/load-balancer-type", "nlb");
const INTERNAL: (&str, &str) = ("oci-network-load-balancer.oraclecloud.com/internal", "true");
const NLB: Case = Case { notes: &[TYPE, INTERNAL], ..LB };
const MODE: (&str, &str) = ("oci.oraclecloud.com/ingress-ip-mode", "proxy");
const THROUGH: &str = "{ip: 10.0.9.9, ipMode: Proxy}";

#[test]
fn an_annotation_tells_the_product() {
    assert_eq!(LB.product(), "Oracle Cloud Load Balancer");
    assert_eq!(NLB.product(), "Oracle Cloud Network Load Balancer");
    let provider_id = "oci://ocid1.instance.oc1.iad.anuwc";
    assert_eq!(Case { provider_id, ..LB }.product(), "Oracle Cloud Load Balancer");
}

#[test]
fn nodes_answer_for_the_address_of_the_status() {
    for case in [LB, NLB] {
        case.is_answered(&ALL);
        Case { policy: "Local", ..case }.is_answered(&ALL);
        Case { status: PUBLIC, ..case }.is_answered(&ALL);
    }
}

#[test]
fn calls_within_miss_tls_and_the_header_unless_the_address_is_left_to_it() {
    let tls = [
        ("service.beta.kubernetes.io/oci-load-balancer-ssl-ports", "443"),
        ("service.beta.kubernetes.io/oci-load-balancer-tls-secret", "web-tls"),
    ];
    let asked = Case { notes: &[tls[0], tls[1]], ..LB };
    let met = asked.met(ELSEWHERE, "https");
    assert_eq!(
        (met.outcomes, met.mechanisms),
        (vec![Outcome::TlsError], vec![Mechanism::TlsBypassed])
    );
    assert_eq!(asked.met(OUTSIDE, "https").outcomes, [Outcome::AT_ONCE]);
    let notes = &[tls[0], tls[1], MODE];
    let through = Case { notes, status: THROUGH, ..LB };
    for from in [SERVER, HOST, ELSEWHERE, OTHER_HOST] {
        assert_eq!(through.met(from, "https").outcomes, [Outcome::AT_ONCE], "{from}");
    }
    let header =
        ("service.beta.kubernetes.io/oci-load-balancer-connection-proxy-protocol-version", "2");
    let nlb_header = ("oci-network-load-balancer.oraclecloud.com/is-ppv2-enabled", "true");
    for notes in [&[header][..], &[TYPE, nlb_header]] {
        let lost = Case { notes, ..LB }.met(ELSEWHERE, "http");
        assert_eq!(lost.outcomes, [Outcome::EmptyReply], "{notes:?}");
        assert_eq!(lost.mechanisms, [Mechanism::ProxyHeader], "{notes:?}");
        Case { notes, status: THROUGH, ..LB }.is_answered(&ALL);
    }
}

#[test]
fn a_network_load_balancer_loops_under_policy_local_where_calls_reach_it() {
    let cluster = Case { status: THROUGH, ..NLB };
    cluster.is_answered(&ALL);
    let local = Case { policy: "Local", ..cluster };
    local.hangs(&[HOST, BESIDE, SERVER]);
    local.is_answered(&[ELSEWHERE, OTHER_HOST, OUTSIDE]);
    let met = local.met(HOST, "http");
    assert!(met.doubts.iter().any(|doubt| doubt.contains("back to the node")), "{:?}", met.doubts);
    let replaced = ("oci-network-load-balancer.oraclecloud.com/is-preserve-source", "false");
    let notes = &[TYPE, INTERNAL, replaced];
    Case { notes, ..local }.is_answered(&ALL);
    assert_eq!(LB.status, PRIVATE);
}
