//! AntreaProxy beside kube-proxy: it takes over what pods send to addresses of load balancers.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use crate::small::{LOCAL, SMALL, Small, URL};
use uturn_model::Mechanism;

/// The agent in a version, and its configuration.
macro_rules! antrea {
    ($version:literal, $configuration:literal) => {
        concat!(
            "---\n{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: antrea-agent, namespace: kube-system}, ",
            "spec: {selector: {matchLabels: {app: antrea}}, template: {metadata: {labels: {app: antrea}}, ",
            "spec: {hostNetwork: true, containers: [{name: antrea-agent, image: 'antrea/antrea-ubuntu:",
            $version,
            "'}]}}}}\n",
            "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: antrea-config, namespace: kube-system}, ",
            "data: {antrea-agent.conf: \"",
            $configuration,
            "\"}}\n"
        )
    };
}

const FINE: (f64, Vec<Mechanism>) = (1.0, Vec::new());
const METALLB: Small =
    Small { spec: LOCAL, notes: "metallb.io/ip-allocated-from-pool: p", ..SMALL };

#[track_caller]
fn assert_pods(more: &'static str, met: &(f64, Vec<Mechanism>)) {
    let local = Small { more, ..METALLB };
    assert_eq!(local.met("pod/shop/client-2", URL), *met);
    // An endpoint is on the pod's node; the node itself is kube-proxy's.
    assert_eq!(local.met("pod/shop/client-1", URL), FINE);
    assert_eq!(local.met("node/n2", URL), FINE);
    assert_eq!(local.met("pod/shop/client-2", "10.96.0.10:80"), FINE);
    assert_eq!(Small { spec: "", ..local }.met("pod/shop/client-2", URL), FINE);
}

#[test]
fn whether_it_looks_beyond_the_node_is_not_known() {
    let unknown = (0.0, vec![Mechanism::NotModelled]);
    assert_pods(antrea!("v1.11.3", "antreaProxy:\\n  enable: true\\n"), &unknown);
    assert_pods(antrea!("v1.15.0", "trafficEncapMode: networkPolicyOnly\\n"), &unknown);
}

#[test]
fn it_serves_the_load_balancer() {
    assert_eq!(METALLB.products(), ["MetalLB"]);
}

#[test]
fn newer_releases_do_and_it_may_be_off() {
    assert_pods(antrea!("v1.12.0", "trafficEncapMode: encap\\n"), &FINE);
    assert_pods(antrea!("v1.11.3", "antreaProxy:\\n  enable: false\\n"), &FINE);
    assert_pods(antrea!("v1.11.3", "featureGates:\\n  AntreaProxy: false # off\\n"), &FINE);
    assert_pods(antrea!("v1.11.3", "antreaProxy:\\n  proxyLoadBalancerIPs: false\\n"), &FINE);
}
