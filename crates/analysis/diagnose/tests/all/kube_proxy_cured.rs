//! Cures of kube-proxy's configuration: its name, and strictARP.

use super::more_cures::{IPTABLES, IPVS, changes, cures, offered, service, web};

const LOCAL: &str = "type: NodePort, externalTrafficPolicy: Local, clusterIP: 172.16.0.10, \
                     ports: [{port: 80, targetPort: 8080, nodePort: 30080}]";

/// kube-proxy's DaemonSet with an argument, and its ConfigMap with settings.
fn proxy(argument: &str, settings: &str) -> String {
    format!(
        "---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: kube-proxy, namespace: kube-system}}
spec:
  selector: {{matchLabels: {{k8s-app: kube-proxy}}}}
  template:
    metadata: {{labels: {{k8s-app: kube-proxy}}}}
    spec:
      hostNetwork: true
      containers:
      - name: kube-proxy
        image: kube-proxy:v1.34.4
        command:
        - kube-proxy
        - --config=/var/lib/kube-proxy/config.conf{argument}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: kube-proxy, namespace: kube-system}}
data:
  config.conf: |
    kind: KubeProxyConfiguration
    {settings}
"
    )
}

/// All kube-proxies take themselves for one node: the flag names each one's own, or none is named.
#[test]
fn every_kube_proxy_gets_the_name_of_its_node() {
    let flag = "--hostname-override=$(NODE_NAME) in DaemonSet kube-system/kube-proxy";
    let none = "no hostnameOverride in ConfigMap kube-system/kube-proxy";
    let objects = [service(LOCAL), web(1), proxy("", "hostnameOverride: n2")].concat();
    let all = cures(&[IPTABLES], &objects, "outside", "10.0.0.11:30080");
    assert_eq!(offered(&all)[..2], [("kube-proxy-name", flag), ("kube-proxy-name", none)]);
    assert_eq!(all[0].conditions[0].because, "kube-proxy on n1 takes itself for n2");
    assert_eq!(
        changes(&all, "kube-proxy-name"),
        [
            "+        - \"--hostname-override=$(NODE_NAME)\"",
            "+        env:",
            "+        - name: NODE_NAME",
            "+          valueFrom:",
            "+            fieldRef:",
            "+              fieldPath: spec.nodeName",
        ]
    );
    let lines: Vec<&str> = all[1].diffs[0].lines().filter(|line| line.contains("Over")).collect();
    assert_eq!(lines, ["-    hostnameOverride: n2", "+    hostnameOverride: \"\""]);
    // An argument with a name is replaced.
    let named = proxy("\n        - --hostname-override=n2", "mode: iptables");
    let objects = [service(LOCAL), web(1), named].concat();
    let all = cures(&[IPTABLES], &objects, "outside", "10.0.0.11:30080");
    assert_eq!(offered(&all)[0].1, flag);
    assert_eq!(changes(&all, "kube-proxy-name")[0], "-        - --hostname-override=n2");
}

/// A name that the host may have, and that nothing overrides.
#[test]
fn a_host_with_another_name_than_its_node_is_overridden() {
    let node = "---
apiVersion: v1
kind: Node
metadata: {name: n3.example, labels: {kubernetes.io/hostname: n3}}
spec: {podCIDR: 10.1.3.0/24}
status: {addresses: [{type: InternalIP, address: 10.0.0.13}]}
";
    let web = web(3).replace("nodeName: n3", "nodeName: n3.example");
    let objects = [&*service(LOCAL), &web, node, &proxy("", "mode: iptables")].concat();
    let all = cures(&[IPTABLES], &objects, "outside", "10.0.0.13:30080");
    let title = "--hostname-override=$(NODE_NAME) in DaemonSet kube-system/kube-proxy";
    assert_eq!(offered(&all)[0], ("kube-proxy-name", title));
    assert_eq!(all[0].conditions[0].because, "kube-proxy on n3.example may take itself for n3");
    // Releases before 1.13 read no argument beside a configuration.
    let old = "kubeProxy: {mode: iptables, version: v1.12.6}";
    let all = cures(&[old], &objects, "outside", "10.0.0.13:30080");
    let title = "hostnameOverride of ConfigMap kube-system/kube-proxy, completed on each node with \
                 the node's name";
    assert_eq!(offered(&all)[0], ("kube-proxy-name", title));
}

#[test]
fn a_stated_name_and_that_of_a_static_pod_are_made_right() {
    let stated = "nodes: {n1: {kubeProxyName: worker-1}}";
    let objects = [service(LOCAL), web(1)].concat();
    let all = cures(&[IPTABLES, stated], &objects, "outside", "10.0.0.11:30080");
    assert_eq!(offered(&all)[0], ("kube-proxy-name", "kube-proxy takes the node's own name on n1"));
    let pod = "---
apiVersion: v1
kind: Pod
metadata: {name: kube-proxy-n1, namespace: kube-system, labels: {k8s-app: kube-proxy}}
spec:
  nodeName: n1
  hostNetwork: true
  containers:
  - name: kube-proxy
    image: kube-proxy:v1.34.4
    command: [/bin/sh, -c, 'exec kube-proxy --hostname-override=worker-1 --v=2']
status: {phase: Running, podIP: 10.0.0.11, conditions: [{type: Ready, status: 'True'}]}
";
    let objects = [&*service(LOCAL), &web(1), pod].concat();
    let all = cures(&[IPTABLES], &objects, "outside", "10.0.0.11:30080");
    assert_eq!(
        offered(&all)[0],
        ("kube-proxy-name", "--hostname-override with the name of the node on n1")
    );
    let lines = changes(&all, "kube-proxy-name");
    assert!(lines[1].contains("exec kube-proxy --hostname-override=n1 --v=2"), "{lines:?}");
}

/// Every node answers ARP requests for an address that IPVS binds, also those without an endpoint.
#[test]
fn only_the_announcer_answers_arp_requests() {
    let spec = "type: LoadBalancer, externalTrafficPolicy: Local, clusterIP: 172.16.0.10, \
                ports: [{port: 80, targetPort: 8080, nodePort: 30080}]";
    let service = service(spec) + "status: {loadBalancer: {ingress: [{ip: 10.0.0.99}]}}\n";
    for (settings, new) in [
        ("mode: ipvs", "+    ipvs: {strictARP: true}"),
        ("mode: ipvs\n    ipvs:\n      scheduler: rr", "+      strictARP: true"),
        ("mode: ipvs\n    ipvs:\n      strictARP: false", "+      strictARP: true"),
        ("mode: ipvs\n    ipvs: {}", "+    ipvs: {strictARP: true}"),
    ] {
        let objects = [&*service, &web(1), &proxy("", settings)].concat();
        let stated = [IPVS, "provider: metallb"];
        let all = cures(&stated, &objects, "outside/10.0.0.200", "10.0.0.99:80");
        let title = "strictARP: true in ConfigMap kube-system/kube-proxy: only the announcer \
                     answers for 10.0.0.99";
        assert_eq!(offered(&all)[0], ("strict-arp", title), "{settings}");
        let lines = changes(&all, "strict-arp");
        assert_eq!(lines.last().map(String::as_str), Some(new), "{settings}");
        // Every node may also answer for all pods.
        assert!(offered(&all).iter().any(|(name, _)| *name == "policy-cluster"));
    }
}
