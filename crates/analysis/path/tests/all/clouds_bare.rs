//! What clients meet behind load balancers that pass packets on, that are devices in front of the
//! cluster, or that are pods in it.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use crate::small::{LOCAL, SMALL, Small, URL};
use uturn_model::{Mechanism, Outcome};

const CLIENT: &str = "pod/shop/client-2";
const CLIENTS: [&str; 4] = [CLIENT, "pod/shop/web-1", "node/n2", "outside"];
const FINE: (f64, Vec<Mechanism>) = (1.0, Vec::new());

const EXOSCALE: Small = Small { provider_id: "exoscale://7b1e-", network: "192.0.2.1", ..SMALL };
const F5: Small = Small { notes: "cis.f5.com/ip: 192.0.2.80", ..SMALL };

#[test]
fn exoscale_answers_everybody_at_an_address() {
    assert_eq!(EXOSCALE.products(), ["Exoscale NLB"]);
    for spec in ["", LOCAL] {
        for from in CLIENTS {
            assert_eq!(Small { spec, ..EXOSCALE }.met(from, URL), FINE, "{spec} {from}");
        }
    }
}

/// Forced out, a node loses what comes back to it; that the source is kept is not certain.
#[test]
fn exoscale_loses_a_node_that_is_its_own_target() {
    let case = Small { status: "{ip: 192.0.2.80, ipMode: Proxy}", ..EXOSCALE };
    assert_eq!(case.met("node/n2", URL), (0.67, vec![Mechanism::LocalSourceDrop]));
    let verdict = case.verdict("node/n2", URL);
    let mut doubts = verdict.supposed.iter().filter_map(uturn_path::supposed_of_balancer);
    assert!(doubts.any(|doubt| doubt.contains("keeps the client's address")), "{verdict:?}");
    assert_eq!(case.met("outside", URL), FINE);
}

#[test]
fn a_device_takes_an_address_of_its_own() {
    assert_eq!(F5.products(), ["F5 BIG-IP"]);
    for status in ["{ip: 192.0.2.80}", "{ip: 192.0.2.80, ipMode: Proxy}"] {
        for from in CLIENTS {
            assert_eq!(Small { status, ..F5 }.met(from, URL), FINE, "{status} {from}");
        }
    }
    // Nothing is probed without an annotation.
    let local = Small { spec: LOCAL, ..F5 };
    assert_eq!(local.met("outside", URL), (0.33, vec![Mechanism::NoEndpoint]));
    let notes = "cis.f5.com/ip: 192.0.2.80, cis.f5.com/health: '{\"interval\": 5}'";
    assert_eq!(Small { notes, ..local }.met("outside", URL), FINE);
    // Pods as members need no node port.
    let spec = "allocateLoadBalancerNodePorts: false, ";
    let pods = Small { spec, ports: "{name: http, port: 80}", ..F5 };
    assert_eq!(pods.met("outside", URL), FINE);
}

/// The pods that k3s makes on each node for the Service, and nodes as their controller lists them:
/// under policy Local only the one with a server.
const K3S: Small = Small {
    provider_id: "k3s://",
    status: "{ip: 10.0.0.11}, {ip: 10.0.0.12}, {ip: 10.0.0.13}",
    more: "
---
{apiVersion: v1, kind: Pod, metadata: {name: svclb-web-0a1b-1, namespace: kube-system, labels: {app: svclb-web-0a1b, svccontroller.k3s.cattle.io/svcname: web, svccontroller.k3s.cattle.io/svcnamespace: shop}}, spec: {nodeName: n1, containers: [{name: lb-tcp-80, image: lb, ports: [{containerPort: 80, hostPort: 80}]}]}, status: {phase: Running, podIP: 10.244.1.7, conditions: [{type: Ready, status: 'True'}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: svclb-web-0a1b-2, namespace: kube-system, labels: {app: svclb-web-0a1b, svccontroller.k3s.cattle.io/svcname: web, svccontroller.k3s.cattle.io/svcnamespace: shop}}, spec: {nodeName: n2, containers: [{name: lb-tcp-80, image: lb, ports: [{containerPort: 80, hostPort: 80}]}]}, status: {phase: Running, podIP: 10.244.2.7, conditions: [{type: Ready, status: 'True'}]}}
",
    ..SMALL
};
const K3S_LOCAL: Small = Small { spec: LOCAL, status: "{ip: 10.0.0.11}", ..K3S };

/// Whether a pod of the load balancer had a part in it.
fn is_relayed(case: Small, from: &str, to: &str) -> bool {
    format!("{:?}", case.verdict(from, to).routes).contains("with its own address")
}

#[test]
fn nodes_in_the_status_answer_by_the_rules_of_kube_proxy() {
    for node in 1..=3 {
        let to = format!("http://10.0.0.1{node}/");
        for from in CLIENTS {
            assert_eq!(K3S.met(from, &to), FINE, "{from} {to}");
            assert!(!is_relayed(K3S, from, &to), "{from} {to}");
        }
    }
    assert!(K3S.products().is_empty(), "nothing stands before the nodes");
}

/// A node without a server is not in the status; its pod answers all the same, and no server sees
/// the client's address.
#[test]
fn a_node_that_is_not_in_the_status_answers_by_its_pod() {
    let other = "http://10.0.0.12/";
    for from in ["outside", "pod/shop/client-3", "pod/shop/web-1"] {
        assert_eq!(K3S_LOCAL.met(from, "http://10.0.0.11/"), FINE, "{from}");
        assert_eq!(K3S_LOCAL.met(from, other), FINE, "{from}");
        assert!(is_relayed(K3S_LOCAL, from, other), "{from}");
    }
    // The third node has no such pod.
    let third = K3S_LOCAL.met("outside", "http://10.0.0.13/");
    assert_eq!(third, (0.0, vec![Mechanism::NotGiven]));
}

#[test]
fn which_nodes_have_such_pods_has_to_be_given() {
    let case = Small { more: "", ..K3S_LOCAL };
    assert_eq!(case.met("outside", "http://10.0.0.11/"), FINE);
    let (answered, why) = case.met("outside", "http://10.0.0.12/");
    assert_eq!((answered, why), (0.0, vec![Mechanism::NotGiven]));
}

#[test]
fn source_ranges_hold_for_those_pods() {
    let spec = "externalTrafficPolicy: Local, loadBalancerSourceRanges: [198.51.100.0/24], ";
    let case = Small { spec, ..K3S_LOCAL };
    let (answered, why) = case.met("pod/shop/client-3", "http://10.0.0.12/");
    assert_eq!((answered, why), (0.0, vec![Mechanism::Firewall]));
}

/// Azure's and Google Cloud's load balancers pass on what is for their ports and nothing else. A node
/// that announces an address refuses for it if it has that, as in IPVS mode.
#[test]
fn ports_that_no_service_has() {
    let met = |case: Small| {
        let verdict = case.verdict("outside", "http://10.0.0.80:81/");
        (verdict.outcomes[0].0, verdict.mechanisms)
    };
    let announced =
        Small { notes: "metallb.io/address-pool: pool", status: "{ip: 10.0.0.80}", ..SMALL };
    let dropped = (Outcome::Hangs, vec![Mechanism::WrongPort]);
    let refused = (Outcome::Refused, vec![Mechanism::WrongPort]);
    assert_eq!(met(announced), dropped);
    assert_eq!(met(Small { proxy: "mode: ipvs, version: v1.34.4", ..announced }), refused);
    let of_cloud = |provider_id, notes| Small { provider_id, notes, ..announced };
    let azure = "service.beta.kubernetes.io/azure-load-balancer-internal: 'true'";
    let google = "networking.gke.io/load-balancer-type: Internal";
    for (id, notes) in [("azure:///", azure), ("gce://project/zone/", google)] {
        assert_eq!(met(of_cloud(id, notes)), dropped, "{id}");
    }
    let proxy = "load-balancer.hetzner.cloud/use-private-ip: 'true'";
    assert_eq!(met(of_cloud("hcloud://", proxy)), refused);
}

/// kube-proxy's configuration in IPVS mode, with a setting of `ipvs`.
fn ipvs(setting: &str) -> &'static str {
    let text = format!(
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: kube-proxy, namespace: kube-system}}\ndata:\n  \
         config.conf: |\n    kind: KubeProxyConfiguration\n    mode: ipvs\n    clusterCIDR: 10.244.0.0/16\n    \
         ipvs: {{{setting}}}\n"
    );
    Box::leak(text.into_boxed_str())
}

/// Whichever node an announcer elects: with strictARP off, each that has the address answers for it, also
/// one without an endpoint.
#[test]
fn nodes_that_bound_an_announced_address_answer_for_it() {
    let near = Small {
        notes: "metallb.io/address-pool: pool",
        spec: LOCAL,
        status: "{ip: 10.0.0.80}",
        proxy: "version: v1.23.17",
        more: ipvs("strictARP: false"),
        ..SMALL
    };
    let url = "http://10.0.0.80/";
    for notes in [near.notes, "kube-vip.io/loadbalancerIPs: 10.0.0.80"] {
        let case = Small { notes, ..near };
        assert_eq!(case.met("outside", url), (0.33, vec![Mechanism::NoEndpoint]), "{notes}");
        let verdict = case.verdict("outside", url);
        let mut doubts = verdict.supposed.iter().filter_map(uturn_path::supposed_of_balancer);
        assert!(doubts.any(|doubt| doubt.contains("ARP requests for 10.0.0.80")), "{verdict:?}");
    }
    let fine = |case: Small, url| assert_eq!(case.met("outside", url), FINE, "{}", case.more);
    // kube-proxy's own default is off; policy Cluster does not care who gets it.
    assert_eq!(Small { more: ipvs(""), ..near }.met("outside", url).0, 0.33);
    fine(Small { spec: "", ..near }, url);
    fine(Small { more: ipvs("strictARP: true"), ..near }, url);
    // Where no configuration is given, it may well be on; other modes bind nothing; and an address of
    // another network is routed to one node.
    fine(Small { more: "", proxy: "mode: ipvs, version: v1.23.17", ..near }, url);
    fine(Small { proxy: "mode: iptables, version: v1.23.17", ..near }, url);
    fine(Small { status: "{ip: 192.0.2.80}", ..near }, URL);
}
