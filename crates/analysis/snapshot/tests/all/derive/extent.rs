//! Whether objects are missing, and what cannot be judged then.

use uturn_model::cluster::{ReadTime, Unread};
use uturn_snapshot::Listing;

use super::*;

/// What an operator makes pods of is no workload: a Service for them is not said to be empty
/// without a word.
#[test]
fn pods_that_other_controllers_may_make_are_supposed() {
    let manifests = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: made, namespace: shop}
spec:
  replicas: 0
  selector: {matchLabels: {app: made}}
  template:
    metadata: {labels: {app: made}}
    spec: {containers: [{name: made, image: made}]}
---
apiVersion: databases.example.com/v1
kind: Database
metadata: {name: db, namespace: shop}
---
apiVersion: v1
kind: Service
metadata: {name: db, namespace: shop}
spec: {selector: {database: db}, ports: [{port: 5432}], clusterIP: 172.16.0.9}
---
apiVersion: v1
kind: Service
metadata: {name: made, namespace: shop}
spec: {selector: {app: made}, ports: [{port: 80}], clusterIP: 172.16.0.10}
";
    assert_eq!(unjudged(manifests), ["endpoints of 1 Service: svc/shop/db"]);
    // A pod that is given says nothing of others.
    let pod = "---
apiVersion: v1
kind: Pod
metadata: {name: other, namespace: shop}
spec: {nodeName: n1, containers: [{name: other, image: other}]}
";
    assert_eq!(unjudged(&format!("{manifests}{pod}")).len(), 1);
    // A selected pod that does not serve shows that no pod does.
    let own = "---
apiVersion: v1
kind: Pod
metadata: {name: db-0, namespace: shop, labels: {database: db}}
spec: {nodeName: n1, containers: [{name: db, image: db}]}
status: {phase: Pending}
";
    assert_eq!(unjudged(&format!("{manifests}{own}")), [""; 0]);
    let over = own.replace("Pending", "Succeeded");
    assert_eq!(unjudged(&format!("{manifests}{over}")).len(), 1);
    let source = Source { name: "all.yaml".into(), text: manifests.into() };
    let whole = Manifests::of(vec![source]).complete_if(true).load().unwrap().cluster;
    assert_eq!((whole.unjudged, whole.extent), (Vec::new(), Extent::OBJECTS));
}

/// What cannot be judged, with the objects.
fn unjudged(text: &str) -> Vec<String> {
    let objects = |gap: &Unjudged| {
        gap.objects.iter().map(uturn_model::ObjectRef::short).collect::<Vec<_>>().join(", ")
    };
    let is_part = |gap: &&Unjudged| matches!(gap.subject, Unknown::Endpoints | Unknown::Backends);
    let cluster = cluster(text);
    let parts = cluster.unjudged.iter().filter(is_part);
    parts.map(|gap| format!("{gap}: {}", objects(gap))).collect()
}

const PARTS: &str = "
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{port: 80}], clusterIP: 172.16.0.9}
---
apiVersion: v1
kind: Service
metadata: {name: outer, namespace: shop}
spec: {ports: [{port: 80}], clusterIP: 172.16.0.10}
---
apiVersion: v1
kind: Service
metadata: {name: other, namespace: shop}
spec: {type: ExternalName, externalName: shop.example.com}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: front, namespace: shop}
spec:
  ingressClassName: nginx
  defaultBackend: {service: {name: front, port: {number: 80}}}
";

/// What a listing of a whole cluster has of one kind settles what is there of that kind.
#[test]
fn a_listing_of_a_whole_cluster_is_all_there_is() {
    let all = [
        "endpoints of 1 Service: svc/shop/web",
        "endpoints of 1 Service: svc/shop/outer",
        "backends of 1 Ingress: ingress/shop/front",
    ];
    assert_eq!(unjudged(PARTS), all);
    let node = "---
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.1.1.0/24}
status: {addresses: [{type: InternalIP, address: 10.0.0.11}]}
";
    let pod = |namespace: &str| {
        format!(
            "---
apiVersion: v1
kind: Pod
metadata: {{name: some, namespace: {namespace}}}
spec: {{nodeName: n1, containers: [{{name: c, image: c}}]}}
status: {{phase: Running, podIP: 10.1.1.9}}
"
        )
    };
    let of_shop = format!("{PARTS}{node}{}", pod("shop"));
    assert_eq!(unjudged(&of_shop), all, "pods of one namespace");
    let of_all = format!("{PARTS}{node}{}", pod("kube-system"));
    assert_eq!(unjudged(&of_all), all, "pods may be labelled later than they were written");
    let maker = "---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
";
    assert_eq!(unjudged(&format!("{of_all}{maker}")), all[1..], "all pods, and none of these");
    let service = |name: &str| {
        let (namespace, name) = name.split_once('/').unwrap();
        format!(
            "---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{ports: [{{port: 443}}], clusterIP: 172.16.0.{}}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}, namespace: {namespace}, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: IPv4
ports: [{{port: 443}}]
endpoints: []
",
            name.len()
        )
    };
    let one_service = format!("{PARTS}{}", service("default/kubernetes"));
    assert_eq!(unjudged(&one_service), all, "Services of one namespace");
    let both = format!("{one_service}{}", service("kube-system/dns"));
    assert_eq!(unjudged(&both), [""; 0], "all Services and slices");
}

/// Pods that no node here fits are somewhere else, as the node is.
#[test]
fn pods_without_a_place_leave_endpoints_open() {
    let deployment = "
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.1.1.0/24}
status: {addresses: [{type: InternalIP, address: 10.0.0.11}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {nodeSelector: {gpu: \"true\"}, containers: [{name: web, image: web}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{port: 80}], clusterIP: 172.16.0.9}
";
    assert_eq!(unjudged(deployment), ["endpoints of 1 Service: svc/shop/web"]);
    let fits = deployment.replace("{gpu: \"true\"}", "{}");
    assert_eq!(unjudged(&fits), [""; 0]);
}

/// An object of a kind that an API server refuses to list may set listeners: a load balancer that it
/// may belong to is not judged.
#[test]
fn listeners_that_an_unread_object_sets_are_not_judged() {
    let ingress = |annotation: &str| {
        format!(
            "
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web
  namespace: shop
  annotations:
    kubernetes.io/ingress.class: qcloud
    {annotation}
spec: {{defaultBackend: {{service: {{name: web, port: {{number: 80}}}}}}}}
"
        )
    };
    let read = |annotation: &str, unread: &[&str]| {
        let unread = unread.iter().map(|what| Unread {
            what: (*what).into(),
            known: "none are known".into(),
            why: "it is forbidden: no".into(),
        });
        let at = |time: &str| format!("2026-01-01T00:00:{time}Z").into();
        let read_at = ReadTime { begun: at("00"), ended: at("01") };
        let listing = Listing::new(Extent::OBJECTS, unread.collect(), read_at);
        let source = Source { name: "ingress/web".into(), text: ingress(annotation) };
        let manifests = Manifests::default().with_live(vec![source], listing);
        let cluster = manifests.into_loaded().unwrap().cluster;
        let gaps = cluster.unjudged.iter().filter(|gap| gap.subject == Unknown::Listeners);
        gaps.map(ToString::to_string).collect::<Vec<_>>()
    };
    let named = "ingress.cloud.tencent.com/tke-service-config: tuned";
    let unread = ["Nodes", "TkeServiceConfigs"];
    assert_eq!(read(named, &unread), ["listeners of 1 load balancer"]);
    let made = "ingress.cloud.tencent.com/tke-service-config-auto: \"true\"";
    assert_eq!(read(made, &unread), ["listeners of 1 load balancer"]);
    assert_eq!(read("other: x", &unread), [""; 0]);
    assert_eq!(read(named, &unread[..1]), [""; 0]);
}
