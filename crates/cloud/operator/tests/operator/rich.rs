//! A cluster in which everything occurs that the controllers know.

use uturn_model::Cluster;
use uturn_operator::clb::Certificate;
use uturn_operator::environment::{CertificateSecret, Environment};

use crate::stage::{Stage, cluster, environment};

pub(crate) const RICH: &str = r#"
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  provider: tke
  network: {mode: global-router, podCIDRs: [10.1.0.0/16], vpcCIDRs: [10.0.0.0/16], serviceCIDRs: [172.16.0.0/16]}
---
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.1.1.0/24}
status: {addresses: [{type: InternalIP, address: 10.0.0.11}]}
---
apiVersion: v1
kind: Node
metadata: {name: n2}
spec: {podCIDR: 10.1.2.0/24}
status: {addresses: [{type: InternalIP, address: 10.0.0.12}]}
---
apiVersion: v1
kind: Node
metadata: {name: n3}
spec: {podCIDR: 10.1.3.0/24}
status: {addresses: [{type: InternalIP, address: 10.0.0.13}]}
---
apiVersion: v1
kind: Service
metadata:
  name: both
  namespace: shop
  annotations:
    service.kubernetes.io/qcloud-loadbalancer-internal-subnetid: subnet-aaaaaaaa
    service.cloud.tencent.com/prevent-loopback: "true"
spec:
  type: LoadBalancer
  clusterIP: 172.16.0.10
  sessionAffinity: ClientIP
  ports:
  - {name: web, port: 80, protocol: TCP, targetPort: 8080, nodePort: 30080}
  - {name: dns, port: 53, protocol: UDP, targetPort: 8053, nodePort: 30053}
---
apiVersion: v1
kind: Service
metadata:
  name: direct
  namespace: shop
  annotations:
    service.cloud.tencent.com/direct-access: "true"
    service.cloud.tencent.com/tke-service-config: direct-config
spec:
  type: LoadBalancer
  clusterIP: 172.16.0.11
  externalTrafficPolicy: Local
  ports: [{name: web, port: 8080, protocol: TCP, targetPort: 8080, nodePort: 30081}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: direct-x, namespace: shop, labels: {kubernetes.io/service-name: direct}}
addressType: IPv4
ports: [{name: web, port: 8080, protocol: TCP}]
endpoints:
- {addresses: [10.1.1.5], nodeName: n1, conditions: {ready: true}}
- {addresses: [10.1.2.5], nodeName: n2, conditions: {ready: true}}
- {addresses: [10.1.2.6], nodeName: n2, conditions: {ready: false}}
---
apiVersion: cloud.tencent.com/v1alpha1
kind: TkeServiceConfig
metadata: {name: direct-config, namespace: shop}
spec:
  loadBalancer:
    l4Listeners:
    - protocol: TCP
      port: 8080
      session: {enable: true, sessionExpireTime: 600}
      scheduler: LEAST_CONN
      healthCheck: {enable: true, intervalTime: 10, timeout: 3, healthNum: 2, unHealthNum: 4, sourceIpType: 1}
---
apiVersion: v1
kind: Service
metadata:
  name: secure
  namespace: shop
  annotations:
    service.cloud.tencent.com/specify-protocol: '{"443":{"protocol":["TCP_SSL"],"tls":"service-cert"}}'
    service.cloud.tencent.com/pass-to-target: "true"
    service.cloud.tencent.com/security-groups: sg-aaaaaaaa,sg-bbbbbbbb
spec:
  type: LoadBalancer
  clusterIP: 172.16.0.12
  ports: [{name: web, port: 443, protocol: TCP, targetPort: 8080, nodePort: 30082}]
---
apiVersion: v1
kind: Service
metadata:
  name: local
  namespace: shop
  annotations:
    service.kubernetes.io/local-svc-only-bind-node-with-pod: "true"
spec:
  type: LoadBalancer
  clusterIP: 172.16.0.13
  externalTrafficPolicy: Local
  ports: [{name: web, port: 80, protocol: TCP, targetPort: 8080, nodePort: 30083}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: local-x, namespace: shop, labels: {kubernetes.io/service-name: local}}
addressType: IPv4
ports: [{name: web, port: 8080, protocol: TCP}]
endpoints:
- {addresses: [10.1.2.7], nodeName: n2, conditions: {ready: true}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  type: NodePort
  clusterIP: 172.16.0.14
  ports: [{name: web, port: 80, protocol: TCP, targetPort: 8080, nodePort: 30084}]
---
apiVersion: v1
kind: Service
metadata: {name: api, namespace: shop}
spec:
  type: NodePort
  clusterIP: 172.16.0.15
  ports: [{name: web, port: 80, protocol: TCP, targetPort: 8080, nodePort: 30085}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: tls
  namespace: shop
  annotations: {ingress.cloud.tencent.com/auto-rewrite: "true"}
spec:
  tls:
  - {hosts: [a.example.com], secretName: a-cert}
  - {secretName: default-cert}
  rules:
  - {host: a.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}
  - {host: b.example.com, http: {paths: [{path: /api, pathType: Exact, backend: {service: {name: api, port: {number: 80}}}}]}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: keep
  namespace: shop
  annotations:
    kubernetes.io/ingress.subnetId: subnet-aaaaaaaa
    ingress.cloud.tencent.com/tke-service-config-auto: "true"
spec:
  rules:
  - {http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}, {path: /api, pathType: ImplementationSpecific, backend: {service: {name: api, port: {number: 80}}}}]}}
---
apiVersion: cloud.tencent.com/v1alpha1
kind: TkeServiceConfig
metadata: {name: keep-auto-ingress-config, namespace: shop}
spec:
  loadBalancer:
    l7Listeners:
    - protocol: HTTP
      port: 80
      keepaliveEnable: 1
      domains:
      - domain: ""
        rules:
        - {url: /, forwardType: HTTP, scheduler: IP_HASH, session: {enable: false}, healthCheck: {enable: true, intervalTime: 6, timeout: 2, httpCheckPath: /health, httpCheckMethod: GET, httpCode: 3}}
        - {url: /api, forwardType: HTTP, scheduler: IP_HASH, healthCheck: {enable: true, intervalTime: 6, timeout: 2}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: mixed
  namespace: shop
  annotations:
    kubernetes.io/ingress.rule-mix: "true"
    kubernetes.io/ingress.http-rules: '[{"host":"m.example.com","path":"/","backend":{"serviceName":"web","servicePort":"80"}}]'
    kubernetes.io/ingress.https-rules: '[{"host":"m.example.com","path":"/api","backend":{"serviceName":"api","servicePort":"80"}}]'
spec:
  tls: [{secretName: default-cert}]
  rules:
  - {host: m.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}, {path: /api, pathType: Prefix, backend: {service: {name: api, port: {number: 80}}}}]}}
"#;

/// The cluster, and what the controllers know beside it. The certificates are in the cloud.
pub(crate) fn cluster_and_environment(stage: &Stage) -> (Cluster, Environment) {
    let cluster = cluster(RICH);
    let environment = environment(&cluster);
    let environment = with_certificates(stage, environment);
    (cluster, environment)
}

fn with_certificates(stage: &Stage, mut environment: Environment) -> Environment {
    for name in ["service-cert", "a-cert", "default-cert"] {
        let certificate = Certificate { server: stage.certificate(), authority: None };
        let secret = CertificateSecret::Certificate(certificate);
        environment.secrets.insert(format!("shop/{name}").parse().unwrap(), secret);
    }
    environment
}
