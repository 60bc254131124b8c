//! IBM Cloud: in a VPC the status has a name, with an address beside it for a Network Load Balancer;
//! in classic clusters it has an address alone.

use uturn_model::{Mechanism, Outcome};

use super::case::{ALL, Case, ELSEWHERE, HOST, OTHER_HOST, OUTSIDE, PRIVATE, Pods, SERVER};

const PREFIX: &str = "service.kubernetes.io/ibm-load-balancer-cloud-provider-";
const FEATURES: &str = "service.kubernetes.io/ibm-load-balancer-cloud-provider-enable-features";
const REACH: (&str, &str) =
    ("service.kubernetes.io/ibm-load-balancer-cloud-provider-ip-type", "private");
const ALB: Case = Case {
    notes: &[REACH],
    status: "{hostname: 0a1b2c3d-eu-de.lb.appdomain.cloud}",
    ..Case::new("ibm://0123///cluster/worker-")
};
const NLB: Case = Case {
    notes: &[REACH, (FEATURES, "nlb")],
    status: "{hostname: 0a1b2c3d-eu-de.lb.appdomain.cloud, ip: 10.0.9.9}",
    ..ALB
};
const CLASSIC: Case = Case { status: PRIVATE, ..ALB };
const IPVS: Case =
    Case { notes: &[REACH, (FEATURES, "ipvs")], policy: "Local", status: PRIVATE, ..ALB };

#[test]
fn features_and_the_status_tell_the_product() {
    assert!(FEATURES.starts_with(PREFIX));
    assert_eq!(ALB.product(), "IBM Cloud ALB for VPC");
    assert_eq!(NLB.product(), "IBM Cloud NLB for VPC");
    assert_eq!(Case { notes: &[], ..NLB }.product(), "IBM Cloud NLB for VPC", "by its status");
    assert_eq!(CLASSIC.product(), "IBM Cloud NLB 1.0");
    assert_eq!(IPVS.product(), "IBM Cloud NLB 2.0");
    let elsewhere = Case { provider_id: "kind://n", notes: &[], ..ALB };
    assert_eq!(elsewhere.product(), "IBM Cloud ALB for VPC", "by its name");
}

#[test]
fn a_proxy_answers_all_with_and_without_a_header() {
    for policy in ["Cluster", "Local"] {
        for notes in [&[REACH][..], &[REACH, (FEATURES, "proxy-protocol")], &[]] {
            Case { notes, policy, ..ALB }.is_answered(&ALL);
        }
    }
    let notes = &[REACH, (FEATURES, "proxy-protocol")];
    let by_hand = Case { notes, status: PRIVATE, ..ALB };
    assert_eq!(by_hand.product(), "IBM Cloud NLB 1.0", "a classic one has no header");
}

#[test]
fn nodes_answer_for_the_address_of_the_status() {
    for case in [NLB, CLASSIC, IPVS] {
        case.is_answered(&ALL);
        Case { policy: "Local", ..case }.is_answered(&ALL);
        let ipvs = Case { policy: "Local", mode: "ipvs", ..case };
        ipvs.is_answered(&ALL);
        let native = Case { pods: Pods::Native, ..ipvs };
        native.is_answered(&[HOST, ELSEWHERE, OUTSIDE]);
        native.hangs(&[OTHER_HOST]);
    }
}

/// Packets come with the load balancer's address, so that nodes have to know it.
#[test]
fn direct_returns_need_the_rule_that_a_status_without_an_address_takes_away() {
    for case in [NLB, CLASSIC, IPVS] {
        let by_proxy = Case { status: "{ip: 10.0.9.9, ipMode: Proxy}", ..case };
        by_proxy.hangs(&[SERVER]);
        for from in [OTHER_HOST, OUTSIDE] {
            let met = by_proxy.met(from, "http");
            assert_eq!(met.outcomes, [Outcome::Hangs], "{from}");
            assert!(met.mechanisms.contains(&Mechanism::VipUnknown), "{from}: {met:?}");
        }
    }
    let doubts = NLB.met(OUTSIDE, "http").doubts;
    assert!(doubts.iter().any(|doubt| doubt.contains("as clients sent them")), "{doubts:?}");
}
