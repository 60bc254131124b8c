//! What clients outside the cluster are supposed to ask a load balancer for.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use uturn_diagnose::{Code, diagnose};
use uturn_path::Engine;
use uturn_scan::Scanner;
use uturn_snapshot::{Source, read};
use uturn_testing::manifests::{facts, node};

/// A load balancer that ends TLS before a controller in the cluster, which serves one host; its class,
/// and the ports of the controller's Service.
fn found(class: &str, target: &str) -> Vec<Code> {
    let text = format!(
        "---
apiVersion: v1
kind: Pod
metadata: {{name: nginx, namespace: shop, labels: {{app: nginx}}}}
spec:
  nodeName: n1
  containers:
  - {{name: controller, image: registry.example/ingress-nginx/controller:v1.12.0, \
     args: [/nginx-ingress-controller], ports: [{{name: http, containerPort: 80}}]}}
status: {{phase: Running, podIP: 10.1.1.20, podIPs: [{{ip: 10.1.1.20}}], conditions: [{{type: Ready, status: \"True\"}}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: web, namespace: shop, labels: {{app: web}}}}
spec: {{nodeName: n2, containers: [{{name: web, image: web, ports: [{{containerPort: 8080}}]}}]}}
status: {{phase: Running, podIP: 10.1.2.30, podIPs: [{{ip: 10.1.2.30}}], conditions: [{{type: Ready, status: \"True\"}}]}}
---
apiVersion: v1
kind: Service
metadata:
  name: nginx
  namespace: shop
  annotations:
    service.beta.kubernetes.io/aws-load-balancer-type: {class}
    service.beta.kubernetes.io/aws-load-balancer-scheme: internet-facing
    service.beta.kubernetes.io/aws-load-balancer-ssl-cert: arn
    service.beta.kubernetes.io/aws-load-balancer-ssl-ports: https
spec:
  type: LoadBalancer
  clusterIP: 172.16.0.10
  selector: {{app: nginx}}
  ports: [{{name: https, port: 443, targetPort: {target}, nodePort: 30443}}]
status: {{loadBalancer: {{ingress: [{{hostname: a-1.elb.eu-west-1.amazonaws.com}}]}}}}
---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop}}
spec: {{clusterIP: 172.16.0.11, selector: {{app: web}}, ports: [{{port: 80, targetPort: 8080}}]}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: front, namespace: shop}}
spec: {{ingressClassName: nginx, rules: [{{host: a.example.com, http: {{paths: [{{path: /, pathType: Prefix, \
       backend: {{service: {{name: web, port: {{number: 80}}}}}}}}]}}}}]}}
"
    );
    let mode = "kubeProxy: {mode: iptables, version: v1.34.4}";
    let text =
        facts(&["provider: aws", mode, "declaredPortsOnly: true"]) + &text + &node(1) + &node(2);
    let read = read(vec![Source { name: "cluster.yaml".into(), text }]).unwrap();
    let engine = Engine::new(&read.cluster).unwrap();
    let scanner = Scanner::new(&engine);
    let findings = diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap();
    let outside = findings.iter().filter(|found| found.clients.others().contains(&"outside"));
    outside.map(|found| found.code).collect()
}

/// Nobody asks for the address in place of a host: that no Ingress has a rule for it is no fault.
#[test]
fn a_host_that_nobody_asks_for_is_not_missed() {
    for class in ["nlb", "clb"] {
        assert_eq!(found(class, "http"), [], "{class}");
    }
}

/// What is behind the load balancer is looked at all the same.
#[test]
fn a_port_on_which_nothing_listens_is_found_from_outside() {
    let codes = found("nlb", "9999");
    assert!(codes.contains(&Code::WrongPort), "{codes:?}");
}
