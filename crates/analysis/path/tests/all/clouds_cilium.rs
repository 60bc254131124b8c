//! What clients meet where Cilium serves Services in place of kube-proxy: it connects to endpoints
//! at once, wherever the load balancer would have sent them.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use crate::small::{LOCAL, SMALL, Small, URL};
use uturn_model::{Flow, Mechanism, Protocol};
use uturn_path::Engine;

/// Cilium's configuration, and its agent in a version.
macro_rules! cilium {
    ($version:literal) => {
        concat!(
            "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: cilium-config, namespace: kube-system}, ",
            "data: {kube-proxy-replacement: 'true', enable-l2-announcements: 'true'}}\n",
            "---\n{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: cilium, namespace: kube-system}, ",
            "spec: {selector: {matchLabels: {k8s-app: cilium}}, template: {metadata: {labels: ",
            "{k8s-app: cilium}}, spec: {hostNetwork: true, containers: [{name: cilium-agent, ",
            "image: 'example.com/cilium/cilium:",
            $version,
            "'}]}}}}\n"
        )
    };
}

const CILIUM: Small = Small { proxy: "", more: cilium!("v1.17.6"), ..SMALL };
const PROXIED: Small = Small {
    provider_id: "hcloud://",
    notes: "load-balancer.hetzner.cloud/uses-proxyprotocol: 'true'",
    status: "{ip: 192.0.2.80, ipMode: Proxy}",
    ..CILIUM
};

const CLIENTS: [&str; 3] = ["pod/shop/client-2", "pod/shop/web-1", "node/n2"];
const FINE: (f64, Vec<Mechanism>) = (1.0, Vec::new());

#[test]
fn addresses_and_node_ports_lead_to_endpoints() {
    assert_eq!(CILIUM.products(), ["Cilium"]);
    let ranges = "loadBalancerSourceRanges: [198.51.100.0/24], ";
    for spec in ["", LOCAL, ranges] {
        for from in CLIENTS {
            for to in [URL, "10.0.0.13:30080", "10.96.0.10:80"] {
                assert_eq!(Small { spec, ..CILIUM }.met(from, to), FINE, "{spec} {from} {to}");
            }
        }
    }
}

/// Whether v1.19 goes to other nodes for a call from inside is not the same in all of its releases: where
/// no endpoint is on the client's node, it is not known.
#[test]
fn newer_versions_may_take_policy_local_for_calls_from_inside() {
    let unknown = (0.0, vec![Mechanism::NotModelled]);
    for (more, there) in [(cilium!("v1.18.4"), FINE), (cilium!("v1.19.2"), unknown)] {
        let local = Small { spec: LOCAL, more, ..CILIUM };
        for from in ["pod/shop/client-2", "node/n2"] {
            assert_eq!(local.met(from, URL), there, "{from} {more}");
            assert_eq!(local.met(from, "10.96.0.10:80"), FINE, "{from} {more}");
            assert_eq!(Small { more, ..CILIUM }.met(from, URL), FINE, "{from} {more}");
        }
        assert_eq!(local.met("pod/shop/client-1", URL), FINE, "{more}");
    }
}

/// v1.16 does not read it, and v1.18.0 forgot it.
#[test]
fn versions_that_ignore_ip_mode_lose_the_header() {
    for more in [cilium!("v1.16.9@sha256:0a1b"), cilium!("v1.18.0")] {
        for from in CLIENTS {
            let met = Small { more, ..PROXIED }.met(from, URL);
            assert_eq!(met, (0.0, vec![Mechanism::ProxyHeader]), "{from} {more}");
        }
    }
}

#[test]
fn versions_that_read_ip_mode_let_the_call_out() {
    for more in [cilium!("v1.17.0"), cilium!("v1.18.1")] {
        let verdict = Small { more, ..PROXIED }.verdict("pod/shop/client-2", URL);
        let route = format!("{:?}", verdict.routes);
        assert!(route.contains("LoadBalancer") && !route.contains("connects to 10.244"), "{route}");
    }
}

#[test]
fn without_a_version_it_is_not_known() {
    let met = Small { more: cilium!("latest"), ..PROXIED }.met("pod/shop/client-2", URL);
    assert_eq!(met, (0.0, vec![Mechanism::NotGiven]));
}

/// The guest agent of Google's machines gives each node the load balancer's address. The socket's
/// address is replaced before the kernel looks for a route, so that address is no source.
#[test]
fn a_node_that_holds_the_address_calls_from_its_own() {
    let google = Small { provider_id: "gce://p/europe-west1-b/vm", ..CILIUM };
    for spec in ["", LOCAL] {
        for from in ["node/n1", "node/n2"] {
            assert_eq!(Small { spec, ..google }.met(from, URL), FINE, "{spec} {from}");
        }
    }
    let route = format!("{:?}", google.verdict("node/n2", URL).routes);
    let own = "Some(Leg { src: 10.244.2.0:40000, dst: 10.244.1.80:80 })";
    assert!(route.contains(own), "the tunnel's own address: {route}");
}

/// Cilium's operator writes this endpoint for Services of its Ingresses and Gateways.
#[test]
fn what_cilium_serves_by_its_own_proxy_is_not_judged() {
    const MORE: &str = concat!(
        cilium!("v1.17.6"),
        "---\n{apiVersion: v1, kind: Service, metadata: {name: cilium-gateway-g, namespace: shop}, ",
        "spec: {type: LoadBalancer, clusterIP: 10.96.0.11, ports: [{name: p, port: 80, nodePort: 30081}]}, ",
        "status: {loadBalancer: {ingress: [{ip: 192.0.2.81}]}}}\n",
        "---\n{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: g, namespace: shop, ",
        "labels: {kubernetes.io/service-name: cilium-gateway-g}}, addressType: IPv4, ",
        "ports: [{name: p, port: 9999}], endpoints: [{addresses: [192.192.192.192]}]}\n"
    );
    let cluster = Small { more: MORE, ..CILIUM }.cluster();
    let engine = Engine::new(&cluster).unwrap();
    for to in ["http://192.0.2.81/", "svc/shop/cilium-gateway-g:80"] {
        let (from, to) = ("pod/shop/client-2".parse().unwrap(), to.parse().unwrap());
        let verdict = engine.verdict(&Flow { from, to, protocol: Protocol::Tcp }).unwrap();
        assert_eq!(verdict.mechanisms, [Mechanism::NotModelled]);
    }
}

/// What comes to a node from outside it is translated there, and gets the node's address as its source
/// where the endpoint is elsewhere: the answer comes back through this node.
#[test]
fn calls_that_arrive_at_nodes_lead_to_endpoints() {
    for node in 1..=3 {
        let to = format!("10.0.0.1{node}:30080");
        assert_eq!(CILIUM.met("outside", &to), FINE, "{to}");
    }
    assert_eq!(CILIUM.met("outside", URL), FINE, "an announced address");
    let route = format!("{:?}", CILIUM.verdict("outside", "10.0.0.13:30080").routes);
    assert!(route.contains("Cilium sends it to 10.244.1.80:80"), "{route}");
    // Under policy Local a node serves its own endpoints only; that it has none is not judged.
    let local = Small { spec: LOCAL, ..CILIUM };
    assert_eq!(local.met("outside", "10.0.0.11:30080"), FINE);
    assert_eq!(local.met("outside", "10.0.0.13:30080"), (0.0, vec![Mechanism::NotModelled]));
    // Behind a load balancer, out of the cluster and back.
    let proxied = Small { more: cilium!("v1.17.6"), ..PROXIED };
    for from in ["outside", "pod/shop/client-2", "node/n2"] {
        assert_eq!(proxied.met(from, URL), FINE, "{from}");
    }
}

/// Other ways of handing calls over, and ranges of clients, are not modelled.
#[test]
fn what_is_not_known_of_calls_that_arrive() {
    let unknown = (0.0, vec![Mechanism::NotModelled]);
    let more: &'static str = Box::leak(
        cilium!("v1.17.6").replace("data: {kube", "data: {bpf-lb-mode: dsr, kube").into_boxed_str(),
    );
    assert_eq!(Small { more, ..CILIUM }.met("outside", "10.0.0.13:30080"), unknown);
    let spec = "loadBalancerSourceRanges: [198.51.100.0/24], ";
    assert_eq!(Small { spec, ..CILIUM }.met("outside", "10.0.0.13:30080"), unknown);
}
