//! Cures that need no cloud: the Service itself, and its status.

use super::more_cures::{CLIENT, IPTABLES, IPVS, client, cures, offered, pod, service, web};

/// Who calls a node port may call the Service; processes of nodes have no name for it.
#[test]
fn who_calls_a_node_port_may_call_the_service() {
    let ports = "ports: [{port: 80, targetPort: 8080, nodePort: 30080}]";
    let objects =
        [service(&format!("type: NodePort, clusterIP: 172.16.0.10, {ports}")), web(1), client(1)];
    // Nodes do not reach each other's node ports.
    let groups = "nodes: {\"*\": {securityGroups: [nodes]}}
  securityGroups: {nodes: {inbound: [{action: accept, protocol: tcp, ports: 443, peer: all}]}}";
    for (from, name) in [
        (CLIENT, "10.0.0.12:30080 becomes web.shop.svc.cluster.local:80"),
        ("node/n1", "10.0.0.12:30080 becomes 172.16.0.10:80"),
    ] {
        let all = cures(&[IPTABLES, groups], &objects.concat(), from, "10.0.0.12:30080");
        assert_eq!(offered(&all)[0], ("call-service", "call svc/shop/web:80"), "{from}");
        let said = all[0].commands[0].to_string();
        assert!(said.contains(name), "{said}");
    }
}

/// A server that wants the load balancer's header, which kube-proxy's way lacks.
#[test]
fn nodes_leave_the_address_alone() {
    let config = "---
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: shop}
data: {web.conf: \"server { listen 8080 proxy_protocol; location / { return 200; } }\"}
";
    let server = pod("web-1", 2, ", labels: {app: web}", "")
        .replace(
            "image: c,",
            "image: 'nginx:1.29', volumeMounts: [{name: v, mountPath: /etc/nginx/conf.d}],",
        )
        .replace("containers:", "volumes: [{name: v, configMap: {name: web}}], containers:");
    let ports = "ports: [{port: 80, targetPort: 8080, nodePort: 30080}]";
    let service = service(&format!("type: LoadBalancer, clusterIP: 172.16.0.10, {ports}"))
        + "status: {loadBalancer: {ingress: [{ip: 203.0.113.80}]}}\n";
    let objects = [&*service, config, &server, &client(1)].concat();
    // A product of which no annotation helps.
    let balancer = "loadBalancers: [{vip: 203.0.113.80, listeners: [{port: 80, proxyHeader: v1, \
                    delivery: to-target, snat: true}]}]";
    let stated = [IPVS, "provider: ibm", balancer];
    let all = cures(&stated, &objects, CLIENT, "203.0.113.80:80");
    let title = "ipMode Proxy for svc/shop/web: nodes leave 203.0.113.80 alone";
    let name = "a host name in place of 203.0.113.80 in the status of svc/shop/web";
    assert_eq!(offered(&all), [("name-in-status", name), ("ip-mode-proxy", title)]);
    assert!(all[1].commands[0].to_string().contains("--subresource=status"));
    // From 1.30 on kube-proxy heeds it by default.
    let old = ["kubeProxy: {mode: ipvs, version: v1.28.0}", "provider: ibm", balancer];
    let all = cures(&old, &objects, CLIENT, "203.0.113.80:80");
    assert!(all.iter().all(|cure| cure.name != "ip-mode-proxy" || !cure.is_offered()), "{all:#?}");
}
