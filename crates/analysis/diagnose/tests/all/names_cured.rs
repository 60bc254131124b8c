//! Cures of names that do not fit: of pods, and of the ports of endpoints that people write.

use super::more_cures::{CLIENT, IPTABLES, changes, client, cures, offered, pod, service};

/// The names of the ports of a Service and of its hand-made endpoints.
#[test]
fn the_port_of_endpoints_gets_the_name_of_the_services() {
    let server = pod("server", 1, "", "");
    let of = |service: &str, endpoints: &str, list: &str| {
        format!(
            "---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop}}
spec: {{clusterIP: 172.16.0.10, ports: [{{{service}port: 80, targetPort: 8080}}]}}
---
{list}
  ports: [{{{endpoints}port: 8080}}]
"
        )
    };
    let slice = "apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints: [{addresses: [10.1.1.16]}]";
    let old = "apiVersion: v1
kind: Endpoints
metadata: {name: web, namespace: shop}
subsets:
- addresses: [{ip: 10.1.1.16}]";
    let slice_of = |service: &str, endpoints: &str| {
        of(service, endpoints, slice).replace("\n  ports: [{", "\nports: [{")
    };
    let old_of = |service: &str, endpoints: &str| of(service, endpoints, old);
    for (objects, first, second) in [
        (
            slice_of("name: http, ", ""),
            "port name http in EndpointSlice shop/web-1, as in svc/shop/web",
            "port without a name in svc/shop/web, as its endpoints have it",
        ),
        (
            old_of("name: http, ", "name: web, "),
            "port name http in Endpoints shop/web, as in svc/shop/web",
            "port name web in svc/shop/web, as its endpoints have it",
        ),
    ] {
        let objects = [&*objects, &server, &client(2)].concat();
        let all = cures(&[IPTABLES], &objects, CLIENT, "svc/shop/web:80");
        assert_eq!(offered(&all), [("endpoint-port", first), ("endpoint-port", second)]);
    }
    // Names that agree are not at fault.
    let objects = [&*slice_of("name: http, ", "name: http, "), &server, &client(2)].concat();
    let all = cures(&[IPTABLES], &objects, CLIENT, "svc/shop/web:80");
    assert!(all.iter().all(|cure| cure.name != "endpoint-port"), "{all:#?}");
}

/// A pod's own name is no name in DNS: `hostname` and `subdomain` make one.
#[test]
fn a_pod_gets_a_name_below_its_headless_service() {
    let service = service("clusterIP: None, ports: [{port: 8080}]");
    let server = pod("web-1", 1, ", labels: {app: web}", "");
    let slice = "---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-x, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [10.1.1.15], nodeName: n1, targetRef: {kind: Pod, namespace: shop, name: web-1}}]
";
    let objects = [&*service, &server, slice, &client(2)].concat();
    let to = "web-1.web.shop.svc.cluster.local:8080";
    let all = cures(&[IPTABLES], &objects, CLIENT, to);
    let title = "hostname web-1 and subdomain web for Pod shop/web-1";
    assert_eq!(offered(&all)[0], ("pod-name", title));
    let lines = changes(&all, "pod-name");
    assert!(lines[1].contains("hostname: web-1, subdomain: web"), "{lines:?}");
    // A headless Service needs no ports.
    let portless = service.replace(", ports: [{port: 8080}]", "");
    let old = "---
apiVersion: v1
kind: Endpoints
metadata: {name: web, namespace: shop}
subsets: [{addresses: [{ip: 10.1.1.15, nodeName: n1, targetRef: {kind: Pod, namespace: shop, name: web-1}}]}]
";
    let objects = [&*portless, &server, old, &client(2)].concat();
    let all = cures(&[IPTABLES], &objects, CLIENT, to);
    assert_eq!(offered(&all)[0], ("pod-name", title));
    // The pods of a workload would all get that name.
    let owned = server.replace(
        "labels: {app: web}",
        "labels: {app: web}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, \
         controller: true}]",
    );
    let objects = [&*service, &owned, slice, &client(2)].concat();
    let all = cures(&[IPTABLES], &objects, CLIENT, to);
    assert!(all.iter().all(|cure| cure.name != "pod-name"), "{all:#?}");
}
