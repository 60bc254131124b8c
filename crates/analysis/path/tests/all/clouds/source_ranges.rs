//! `loadBalancerSourceRanges` that a load balancer applies itself, before packets come to a node.

use uturn_model::{Mechanism, Outcome};

use super::case::{BESIDE, Case, ELSEWHERE, HOST, OUTSIDE, Pods};

const NLB: &str = "{hostname: k8s-shop-web-0a1b-0123456789abcdef.elb.eu-west-1.amazonaws.com}";

/// An internal load balancer of AWS that lets in the pods of the second node.
const OF_AWS: Case<'_> = Case {
    spec: "loadBalancerClass: service.k8s.aws/nlb, loadBalancerSourceRanges: [10.0.130.0/24], ",
    status: NLB,
    pods: Pods::Native,
    ..Case::new("aws:///eu-west-1a/i-")
};

/// A proxy that nodes leave its address to.
const IN_MODE_PROXY: &str = "{ip: 10.0.9.9, ipMode: Proxy}";

fn is_kept_out(case: &Case<'_>, clients: &[&str]) {
    for from in clients {
        let met = case.met(from, "http");
        let expected = (vec![Outcome::Hangs], vec![Mechanism::Firewall]);
        assert_eq!((met.outcomes, met.mechanisms), expected, "{from}");
    }
}

#[test]
fn a_network_load_balancer_drops_what_is_in_no_range() {
    is_kept_out(&OF_AWS, &[BESIDE, HOST, OUTSIDE]);
    // It is one of three targets itself.
    let let_in = OF_AWS.met(ELSEWHERE, "http");
    assert_eq!((let_in.answered, let_in.mechanisms), (0.67, vec![Mechanism::AsymmetricReturn]));
    // One with security groups of the user's own has no rules of the controller's.
    let notes = [("service.beta.kubernetes.io/aws-load-balancer-security-groups", "sg-1")];
    Case { notes: &notes, ..OF_AWS }.is_answered(&[OUTSIDE]);
}

#[test]
fn without_the_clients_address_only_newer_releases_drop_it() {
    let key = "service.beta.kubernetes.io/aws-load-balancer-target-group-attributes";
    let notes = [(key, "preserve_client_ip.enabled=false")];
    let case = Case { notes: &notes, ..OF_AWS };
    is_kept_out(&case, &[BESIDE]);
    for from in [BESIDE, ELSEWHERE] {
        let doubts = case.met(from, "http").doubts;
        let about = "it lets in only what loadBalancerSourceRanges names";
        assert!(doubts.iter().any(|doubt| doubt == about), "{from}: {doubts:?}");
    }
}

#[test]
fn scaleway_lets_nodes_in() {
    let case = Case {
        spec: "loadBalancerSourceRanges: [192.0.2.0/24], ",
        status: IN_MODE_PROXY,
        ..Case::new("scaleway://instance/fr-par-1/")
    };
    case.is_answered(&[BESIDE, HOST, ELSEWHERE]);
    is_kept_out(&case, &[OUTSIDE]);
}

#[test]
fn of_octavias_drivers_amphora_knows_ranges() {
    let case = Case {
        spec: "loadBalancerSourceRanges: [198.51.100.0/24], ",
        status: IN_MODE_PROXY,
        ..Case::new("openstack:///")
    };
    is_kept_out(&case, &[BESIDE, HOST]);
    case.is_answered(&[OUTSIDE]);
}

/// Which public address pods have is not given.
#[test]
fn a_public_address_that_is_not_given_is_supposed_to_be_let_in() {
    let case = Case {
        spec: "loadBalancerSourceRanges: [192.0.2.0/24], ",
        status: "{ip: 203.0.113.9, ipMode: Proxy}",
        ..Case::new("openstack:///")
    };
    let met = case.met(BESIDE, "http");
    assert_eq!(met.outcomes, [Outcome::AT_ONCE]);
    let taken = "they have the public address that this call comes from";
    assert!(met.doubts.iter().any(|doubt| doubt == taken), "{:?}", met.doubts);
    is_kept_out(&case, &[OUTSIDE]);
}
