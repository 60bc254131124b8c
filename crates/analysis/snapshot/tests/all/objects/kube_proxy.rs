//! What is known of kube-proxy, CoreDNS and ip-masq-agent by their ConfigMaps and DaemonSets.

use uturn_model::proxy::{LocalDetector, NodePortAddresses};
use uturn_model::{Basis, ProxyMode, Variant};

use super::*;

#[test]
fn config_maps_that_matter() {
    let loaded = loaded(
        r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: kube-proxy, namespace: kube-system}
data:
  config.conf: |
    apiVersion: kubeproxy.config.k8s.io/v1alpha1
    kind: KubeProxyConfiguration
    mode: ipvs
    clusterCIDR: 10.1.0.0/16,fd01::/48
    nodePortAddresses: [10.0.0.0/16]
    iptables: {masqueradeAll: true, masqueradeBit: 15, localhostNodePorts: false}
    ipvs: {scheduler: wrr, strictARP: true}
    conntrack: {tcpBeLiberal: true}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    .:53 {
    	forward . /etc/resolv.conf
    }
---
apiVersion: v1
kind: ConfigMap
metadata: {name: ip-masq-agent-config, namespace: kube-system}
data: {config: '{"NonMasqueradeCIDRs": ["10.1.0.0/16"], "MasqLinkLocal": true}'}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: tke-service-controller-config, namespace: kube-system}
data: {GlobalRouteDirectAccess: "true"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: whatever, namespace: shop}
data: {a: b}
---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec: {clusterIP: 172.16.0.2, ports: [{port: 53, protocol: UDP}]}
---
apiVersion: example.com/v1
kind: Service
spec: {of: another kind}
"#,
    );
    let cluster = loaded.cluster;
    let proxy = &cluster.proxy;
    assert_eq!(proxy.mode.value, ProxyMode::Ipvs);
    assert!(matches!(&proxy.mode.basis, Basis::Stated(origin) if origin.line() == 9), "{proxy:?}");
    let ranges = vec!["10.1.0.0/16".parse().unwrap(), "fd01::/48".parse().unwrap()];
    assert_eq!(proxy.detector.value, LocalDetector::ClusterCidr(ranges));
    assert_eq!(
        proxy.node_port_addresses,
        NodePortAddresses::Ranges(vec!["10.0.0.0/16".parse().unwrap()])
    );
    assert_eq!((proxy.masquerade_all, proxy.masquerade_bit), (true, 15));
    assert_eq!((&*proxy.ipvs_scheduler, proxy.strict_arp), ("wrr", true));
    assert!(proxy.conntrack_tcp_be_liberal && !proxy.localhost_node_ports);
    let corefile = cluster.dns.corefile.unwrap();
    assert!(corefile.text.starts_with(".:53 {\n\tforward"));
    assert_eq!(corefile.origin.line(), 21);
    assert_eq!(cluster.dns.service, Some(name("kube-system/kube-dns")));
    assert_eq!(cluster.network.non_masquerade_cidrs.value, ["10.1.0.0/16".parse().unwrap()]);
    assert!(cluster.controller_switches.is("GlobalRouteDirectAccess", "true"));
    let skipped: Vec<String> = cluster
        .skipped
        .iter()
        .map(|skipped| format!("{} {}", skipped.kind, skipped.count))
        .collect();
    assert_eq!(skipped, ["example.com/v1/Service 1", "v1/ConfigMap 1"]);
    assert_eq!(loaded.seen["ConfigMap"], 5);
}

#[test]
fn an_empty_mode_is_iptables() {
    let text = "
apiVersion: v1
kind: ConfigMap
metadata: {name: kube-proxy, namespace: kube-system}
data: {config.conf: 'mode: \"\"'}
";
    let proxy = cluster(text).proxy;
    assert_eq!(proxy.mode.value, ProxyMode::Iptables);
    assert!(!proxy.mode.is_supposed());
}

#[test]
fn the_command_line_says_what_the_configuration_leaves_out() {
    let text = "
apiVersion: v1
kind: ConfigMap
metadata: {name: kube-proxy, namespace: kube-system}
data: {config.conf: '{mode: \"\", clusterCIDR: 10.1.0.0/16}'}
---
apiVersion: v1
kind: Pod
metadata: {name: kube-proxy-x, namespace: kube-system, labels: {k8s-app: kube-proxy}}
spec:
  nodeName: n1
  containers: [{name: kube-proxy, image: 'kube-proxy:v1.33.1', command: [kube-proxy --proxy-mode=nftables]}]
";
    let proxy = cluster(text).proxy;
    assert_eq!(proxy.mode.value, ProxyMode::Nftables);
    assert_eq!(proxy.version.value.to_string(), "v1.33.1");
    assert_eq!(proxy.node_port_addresses, NodePortAddresses::Primary);
}

/// The kubelet and kube-proxy of a node are of one release; new releases leave the second field empty.
#[test]
fn the_version_of_the_kubelet_stands_in_for_kube_proxy_s() {
    let version = |info: &str| {
        let text = format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: n1}}, status: {{nodeInfo: {{{info}}}}}}}"
        );
        cluster(&text).proxy.version.value.to_string()
    };
    assert_eq!(version("kubeletVersion: v1.28.5+k3s1, kubeProxyVersion: ''"), "v1.28.5");
    assert_eq!(version("kubeletVersion: v1.31.2"), "v1.31.2");
    assert_eq!(version("kubeletVersion: v1.31.2, kubeProxyVersion: v1.30.0"), "v1.30.0");
}

#[test]
fn kube_proxy_by_its_daemon_set() {
    let proxy = cluster(
        "
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: kube-proxy, namespace: kube-system}
spec:
  selector: {matchLabels: {k8s-app: kube-proxy}}
  template:
    metadata: {labels: {k8s-app: kube-proxy}}
    spec:
      hostNetwork: true
      containers:
      - name: kube-proxy
        image: example.com:5000/kube-proxy:v1.22.5-tke.13
        command: [kube-proxy, --proxy-mode=ipvs, --cluster-cidr, 10.1.0.0/16]
        args: [--ipvs-scheduler=lc, --masquerade-all]
",
    )
    .proxy;
    assert_eq!(proxy.mode.value, ProxyMode::Ipvs);
    assert_eq!(proxy.version.value.to_string(), "v1.22.5-tke.13");
    assert_eq!(proxy.variant.value, Variant::Cloud(tke::TKE));
    assert_eq!(
        proxy.detector.value,
        LocalDetector::ClusterCidr(vec!["10.1.0.0/16".parse().unwrap()])
    );
    assert_eq!((&*proxy.ipvs_scheduler, proxy.masquerade_all), ("lc", true));
}
