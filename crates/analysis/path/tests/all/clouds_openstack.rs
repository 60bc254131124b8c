//! What clients meet behind load balancers of Octavia, and of those who run it.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use crate::small::{LOCAL, SMALL, Small, URL, share};
use uturn_model::{Mechanism, Outcome};

const OPENSTACK: Small = Small { provider_id: "openstack:///3f2c-", ..SMALL };
const OVH: Small = Small { labels: "node.k8s.ovh/type: standard", ..OPENSTACK };

const CLIENT: &str = "pod/shop/client-2";
const CLIENTS: [&str; 4] = [CLIENT, "pod/shop/web-1", "node/n2", "outside"];
const FINE: (f64, Vec<Mechanism>) = (1.0, Vec::new());

const HEADER: &str = "loadbalancer.openstack.org/proxy-protocol: 'true'";
const OVN: &str = "loadbalancer.openstack.org/lb-method: SOURCE_IP_PORT";

#[test]
fn under_policy_cluster_everybody_is_answered() {
    for case in [OPENSTACK, Small { notes: OVN, ..OPENSTACK }, OVH] {
        for from in CLIENTS {
            assert_eq!(case.met(from, URL), FINE, "{from}");
        }
    }
}

#[test]
fn with_a_header_calls_lead_out_and_have_it() {
    // As the controller writes the status: with ipMode, or with a name made of the address.
    for status in ["{ip: 192.0.2.80, ipMode: Proxy}", "{hostname: 192.0.2.80.nip.io}"] {
        let case = Small { notes: HEADER, status, ..OPENSTACK };
        for from in CLIENTS {
            assert_eq!(case.met(from, URL), FINE, "{from} {status}");
        }
    }
    // Before it knew of ipMode.
    let old = Small { notes: HEADER, ..OPENSTACK };
    let (answered, why) = old.met(CLIENT, URL);
    assert_eq!((answered, why), (0.0, vec![Mechanism::ProxyHeader]));
    assert_eq!(share(&old.verdict(CLIENT, URL), |end| end == Outcome::EmptyReply), 1.0);
    assert_eq!(old.met("outside", URL), FINE);
}

#[test]
fn without_a_monitor_policy_local_loses_what_other_nodes_get() {
    let case = Small { spec: LOCAL, ..OPENSTACK };
    assert_eq!(case.met("outside", URL), (0.33, vec![Mechanism::NoEndpoint]));
    // It is not certain that there is none.
    let verdict = case.verdict("outside", URL);
    assert!(verdict.supposed.iter().any(|supposed| supposed.settle.contains("create-monitor")));
    // Within the cluster kube-proxy takes the call over.
    assert_eq!(case.met(CLIENT, URL), FINE);
}

#[test]
fn with_a_monitor_it_finds_the_node_of_the_pod() {
    let asked = "loadbalancer.openstack.org/enable-health-monitor: 'true'";
    let both = "loadbalancer.openstack.org/enable-health-monitor: 'true', \
                loadbalancer.openstack.org/lb-method: SOURCE_IP_PORT";
    for notes in [asked, both] {
        let case = Small { spec: LOCAL, notes, ..OPENSTACK };
        assert_eq!(case.met("outside", URL), FINE);
        let verdict = case.verdict("outside", URL);
        assert!(verdict.supposed.iter().all(|own| !own.settle.contains("create-monitor")));
    }
    // One of its operators says that it makes monitors by itself.
    assert_eq!(Small { spec: LOCAL, ..OVH }.met("outside", URL), FINE);
}

/// Its source is kept, and yet a node that is its own target is answered.
#[test]
fn a_node_that_is_its_own_target_is_answered() {
    let status = "{ip: 192.0.2.80, ipMode: Proxy}";
    for from in ["node/n1", "node/n2", CLIENT] {
        assert_eq!(Small { notes: OVN, status, ..OPENSTACK }.met(from, URL), FINE, "{from}");
    }
}

#[test]
fn tls_that_ends_there_is_missed_inside() {
    let case = Small {
        notes: "loadbalancer.openstack.org/default-tls-container-ref: ref",
        ports: "{name: web, port: 443, targetPort: 80, nodePort: 30443}",
        ..OPENSTACK
    };
    let to = "https://192.0.2.80/";
    assert_eq!(case.met("outside", to), FINE);
    assert_eq!(case.met(CLIENT, to), (0.0, vec![Mechanism::TlsBypassed]));
}

#[test]
fn class_and_older_keys_tell_the_product() {
    let of = |case: Small| case.products();
    assert_eq!(of(OPENSTACK), ["OpenStack Octavia"]);
    assert_eq!(of(Small { notes: OVN, ..OPENSTACK }), ["OpenStack Octavia (OVN)"]);
    assert_eq!(of(OVH), ["OVHcloud Public Cloud Load Balancer"]);
    // Annotations of both: those of the operator tell more.
    let both =
        "loadbalancer.openstack.org/proxy-protocol: v2, loadbalancer.ovhcloud.com/class: octavia";
    assert_eq!(of(Small { notes: both, ..OPENSTACK }), ["OVHcloud Public Cloud Load Balancer"]);
    let older = "service.beta.kubernetes.io/ovh-loadbalancer-proxy-protocol: v2";
    let own = Small { notes: older, ..OPENSTACK };
    assert_eq!(of(own), ["OVHcloud Load Balancer for Kubernetes"]);
    assert_eq!(own.met(CLIENT, URL), (0.0, vec![Mechanism::ProxyHeader]));
    assert_eq!(own.met("outside", URL), FINE);
}

/// Its address lies in the network around the nodes, and no node has it.
#[test]
fn a_host_beside_the_nodes_has_its_answer() {
    for case in [OPENSTACK, Small { notes: OVN, ..OPENSTACK }] {
        assert_eq!(case.met("outside/10.0.0.200", URL), FINE);
        assert_eq!(case.met("outside/10.0.0.200", "10.0.0.12:30080"), FINE);
    }
}
