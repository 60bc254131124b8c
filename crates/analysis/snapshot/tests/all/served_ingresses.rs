//! An Ingress has an address exactly where the cloud's controller makes a load balancer for it.

use uturn_clouds::controller;
use uturn_snapshot::{Source, read};

/// A cluster in Tencent's cloud with one Ingress without a status.
fn cluster(class_line: &str, classes: &[(&str, &str, bool)]) -> uturn_model::Cluster {
    let mut text = format!(
        "apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: front, namespace: shop}}
spec:
{class_line}  rules:
  - http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: web, port: {{number: 80}}}}}}}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop}}
spec: {{type: NodePort, clusterIP: 172.16.0.9, ports: [{{port: 80, nodePort: 30080}}]}}
---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec: {{provider: tke}}
"
    );
    for (name, controller, is_default) in classes {
        text += &format!(
            "---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {{name: {name}, annotations: {{ingressclass.kubernetes.io/is-default-class: \"{is_default}\"}}}}
spec: {{controller: {controller}}}
"
        );
    }
    let loaded = read(vec![Source { name: "a.yaml".into(), text }]);
    match loaded {
        Ok(loaded) => loaded.cluster,
        Err(faults) => {
            panic!("{}", faults.iter().map(|fault| format!("{fault}\n")).collect::<String>())
        }
    }
}

#[test]
fn an_address_means_a_load_balancer() {
    const OURS: &str = "qcloud.example.com/ingress";
    const OTHER: &str = "k8s.io/ingress-nginx";
    let named = |class: &str| format!("  ingressClassName: {class}\n");
    for (class, classes, is_served) in [
        (String::new(), vec![], true),
        (named("qcloud"), vec![], true),
        (named("edge"), vec![("edge", OURS, false)], true),
        (named("edge"), vec![("edge", OTHER, false)], false),
        (named("edge"), vec![], false),
        (String::new(), vec![("edge", OURS, true)], true),
        (String::new(), vec![("edge", OURS, false)], true),
        (String::new(), vec![("nginx", OTHER, true)], false),
        (String::new(), vec![("qcloud", OTHER, true)], true),
    ] {
        let cluster = cluster(&class, &classes);
        let ingress = cluster.ingresses.values().next().expect("there is one");
        let case = format!("{class:?} {classes:?}");
        assert_eq!(!ingress.load_balancer.is_empty(), is_served, "an address: {case}");
        assert_eq!(
            controller::is_served_by_cloud(&cluster, ingress),
            is_served,
            "served by the cloud: {case}"
        );
        assert_eq!(
            !controller::load_balancers(&cluster).is_empty(),
            is_served,
            "a load balancer: {case}"
        );
    }
}

/// The listeners of an Ingress are those of the cluster's cloud.
#[test]
fn annotations_of_one_cloud_are_not_read_in_another() {
    let ports = |provider: &str| {
        let text = format!(
            "apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: front
  namespace: shop
  annotations: {{kubernetes.io/ingress.rule-mix-both: \"true\"}}
spec:
  rules:
  - http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: web, port: {{number: 80}}}}}}}}]}}
---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec: {{provider: {provider}}}
"
        );
        let loaded = read(vec![Source { name: "a.yaml".into(), text }]);
        let cluster = loaded.expect("it has no faults").cluster;
        let ingress = cluster.ingresses.values().next().expect("there is one");
        let ports = controller::ingress_ports(&cluster, ingress);
        ports.into_iter().map(|port| port.number()).collect::<Vec<u16>>()
    };
    assert_eq!(ports("tke"), [80, 443]);
    assert_eq!(ports("aws"), [80]);
}
