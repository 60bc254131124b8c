//! What objects of a Gateway's controller say of its proxies is the same in a redacted bundle.

use super::common::assert_same;
use uturn_model::ProxyExpectation;
use uturn_snapshot::{Manifests, Source};

/// A Gateway of a class behind a load balancer that sends a PROXY header, and what is set for it.
fn manifests(class: &str, parameters: &str, settings: &str) -> Manifests {
    let mut text = format!(
        "apiVersion: uturn.dev/v1alpha1
kind: Facts
spec: {{provider: hetzner, kubeProxy: {{version: v1.34.4}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {{name: acmeclass}}
spec: {{controllerName: {class}{parameters}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: acmegate, namespace: acmeshop, labels: {{acmetier: acmepublic}}}}
spec:
  gatewayClassName: acmeclass
  listeners: [{{name: acmelistener, protocol: HTTP, port: 80}}]
status: {{addresses: [{{type: IPAddress, value: 203.0.113.100}}]}}
---
apiVersion: v1
kind: Service
metadata:
  name: acmeproxy
  namespace: acmeshop
  labels: {{gateway.networking.k8s.io/gateway-name: acmegate}}
  annotations: {{load-balancer.hetzner.cloud/uses-proxyprotocol: 'true'}}
spec:
  type: LoadBalancer
  clusterIP: 172.16.0.10
  selector: {{app: acmeproxy}}
  ports: [{{port: 80, targetPort: 10080, nodePort: 30080}}]
status: {{loadBalancer: {{ingress: [{{ip: 203.0.113.100}}]}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: acmeroute, namespace: acmeshop}}
spec:
  parentRefs: [{{name: acmegate, sectionName: acmelistener}}]
  hostnames: [web.acme.example]
  rules: [{{backendRefs: [{{name: acmeweb, port: 80}}]}}]
---
apiVersion: v1
kind: Service
metadata: {{name: acmeweb, namespace: acmeshop}}
spec: {{clusterIP: 172.16.0.11, selector: {{app: acmeweb}}, ports: [{{port: 80, targetPort: 8080}}]}}
---
{settings}
"
    );
    for (name, node, host) in [("acmeproxy", 1, 20), ("acmeweb", 2, 30), ("acmeclient", 2, 31)] {
        text.push_str(&format!(
            "---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: acmeshop, labels: {{app: {name}}}}}
spec: {{nodeName: acmenode-{node}, containers: [{{name: c, image: acme/c}}]}}
status: {{phase: Running, podIP: 10.1.{node}.{host}, conditions: [{{type: Ready, status: \"True\"}}]}}
"
        ));
    }
    for node in 1..=2 {
        text.push_str(&format!(
            "---
apiVersion: v1
kind: Node
metadata: {{name: acmenode-{node}}}
spec: {{podCIDR: 10.1.{node}.0/24}}
status: {{addresses: [{{type: InternalIP, address: 10.0.0.1{node}}}]}}
"
        ));
    }
    Manifests::of(vec![Source { name: "all.yaml".into(), text }])
}

#[test]
fn settings_of_proxies_are_read() {
    const ENVOY: &str = "gateway.envoyproxy.io/gatewayclass-controller";
    const NGINX: &str = "gateway.nginx.org/nginx-gateway-controller";
    let policy = |spec: &str| {
        format!(
            "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: ClientTrafficPolicy\n\
             metadata: {{name: acmepolicy, namespace: acmeshop}}\nspec: {{{spec}}}\n"
        )
    };
    let named = "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: acmegate, \
                 sectionName: acmelistener}]";
    let labelled = "targetSelectors: [{kind: Gateway, matchLabels: {acmetier: acmepublic}}]";
    let proxy = "apiVersion: gateway.nginx.org/v1alpha2\nkind: NginxProxy\n\
                 metadata: {name: acmesettings, namespace: acmesystem}\n\
                 spec: {rewriteClientIP: {mode: ProxyProtocol, trustedAddresses: [{type: CIDR, value: 0.0.0.0/0}]}}\n";
    let parameters = ", parametersRef: {group: gateway.nginx.org, kind: NginxProxy, name: acmesettings, \
                      namespace: acmesystem}";
    let required = ProxyExpectation::Required(Vec::new());
    let cases = [
        (ENVOY, "", policy(&format!("{named}, enableProxyProtocol: true")), required.clone()),
        (
            ENVOY,
            "",
            policy(&format!("{labelled}, proxyProtocol: {{optional: true}}")),
            ProxyExpectation::Accepted(Vec::new()),
        ),
        (NGINX, parameters, proxy.to_owned(), required),
    ];
    for (number, (class, parameters, settings, expected)) in cases.into_iter().enumerate() {
        let manifests = manifests(class, parameters, &settings);
        let cluster = manifests.load().unwrap().cluster;
        let pod = cluster.pods.values().find(|pod| pod.name.name.as_str() == "acmeproxy").unwrap();
        assert_eq!(cluster.proxy_expectation(pod, 10080), Some(&expected), "{settings}");
        let redacted = assert_same(&manifests, 1, &format!("gateway {number}"));
        let all: String = redacted.files.values().map(String::as_str).collect();
        assert!(!all.contains("acme"), "{all}");
    }
}
