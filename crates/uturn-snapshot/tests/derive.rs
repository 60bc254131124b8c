//! What is made of objects where some are missing, and what is said about it.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail like the test")]

use uturn_model::cluster::Provider;
use uturn_model::network::NetworkMode;
use uturn_model::proxy::LocalDetector;
use uturn_model::{
    Cloud, Cluster, Extent, NamespacedName, Pod, ProxyMode, Unjudged, Unknown, WorkloadKind,
};
use uturn_snapshot::{Manifests, Source, read};

fn cluster(text: &str) -> Cluster {
    match read(vec![Source { name: "a.yaml".into(), text: text.into() }]) {
        Ok(loaded) => loaded.cluster,
        Err(faults) => {
            panic!("{}", faults.iter().map(|fault| format!("{fault}\n")).collect::<String>())
        }
    }
}

fn name(text: &str) -> NamespacedName {
    text.parse().unwrap()
}

fn abouts(cluster: &Cluster) -> Vec<&str> {
    cluster.supposed.iter().map(|fact| &*fact.about).collect()
}

const PULL_REQUEST: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web, ports: [{name: http, containerPort: 8080}]}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: shop}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {hostNetwork: true, containers: [{name: agent, image: agent}]}
---
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: shop
  annotations: {service.kubernetes.io/qcloud-loadbalancer-internal-subnetid: subnet-a}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80, targetPort: http}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
";

#[test]
fn a_pull_request_is_enough() {
    let cluster = cluster(PULL_REQUEST);
    let nodes: Vec<String> = cluster
        .nodes
        .values()
        .map(|node| format!("{} {:?} {:?}", node.name, node.internal_ips, node.pod_cidrs))
        .collect();
    assert_eq!(
        nodes,
        [
            "n1 [10.0.0.11] [10.1.1.0/24]",
            "n2 [10.0.0.12] [10.1.2.0/24]",
            "n3 [10.0.0.13] [10.1.3.0/24]"
        ]
    );
    assert!(cluster.nodes.values().all(|node| node.supposed));
    let place =
        |pod: &Pod| format!("{} {} {:?}", pod.name.name, pod.node.as_ref().unwrap(), pod.ips);
    let pods: Vec<String> = cluster.pods.values().map(place).collect();
    assert_eq!(
        pods,
        [
            "agent-n1 n1 [10.0.0.11]",
            "agent-n2 n2 [10.0.0.12]",
            "agent-n3 n3 [10.0.0.13]",
            "web-1 n1 [10.1.1.10]",
            "web-2 n2 [10.1.2.10]",
            "web-3 n3 [10.1.3.10]",
            "web-4 n1 [10.1.1.11]"
        ]
    );
    assert!(cluster.pods.values().all(|pod| pod.supposed && pod.ready));
    let service = &cluster.services[&name("shop/web")];
    assert_eq!(service.cluster_ips, ["172.16.0.10".parse::<std::net::IpAddr>().unwrap()]);
    assert_eq!(service.ports[0].node_port.unwrap().number(), 30000);
    assert_eq!(service.load_balancer[0].ip.unwrap().to_string(), "10.0.0.100");
    let ingress = &cluster.ingresses[&name("shop/web")];
    assert_eq!(ingress.load_balancer[0].ip.unwrap().to_string(), "203.0.113.100", "public");
    let slices = cluster.slices(&name("shop/web"));
    assert_eq!((slices.len(), slices[0].endpoints.len()), (1, 4));
    assert_eq!(slices[0].ports[0].port.number(), 8080);
    assert!(slices[0].derived);
    assert_eq!(
        cluster.provider.to_owned().basis.to_string(),
        "from service.kubernetes.io/qcloud-loadbalancer-internal-subnetid of Service shop/web"
    );
    let said: Vec<String> = cluster.supposed.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "VPC ranges: 10.0.0.0/16 (the ranges around nodes and private load balancers; \
             state spec.network.vpcCIDRs in Facts)",
            "address of Ingress shop/web: 203.0.113.100 (public) (its status has no address; give \
             the object's status, or state spec.loadBalancers in Facts)",
            "address of Service shop/web: 10.0.0.100 (private) (its status has no address; give \
             the object's status, or state spec.loadBalancers in Facts)",
            "addresses of 3 nodes: free ones of 10.0.0.0/16 (no InternalIP is given; give Node \
             objects with status.addresses)",
            "clusterIP of 1 Service: shop/web: free ones of 172.16.0.0/16 (no clusterIP is given; \
             give the applied Service objects)",
            "kube-proxy cluster CIDR: 10.1.0.0/22, which has all pods (nothing names a cluster CIDR \
             for kube-proxy; give kube-proxy's ConfigMap, or state \
             spec.network.podCIDRs in Facts)",
            "kube-proxy mode: iptables (nothing says it; iptables is kube-proxy's default; state \
             spec.kubeProxy.mode in Facts)",
            "kube-proxy version: v1.34.0 (neither an image of kube-proxy nor a node says it; \
             state spec.kubeProxy.version in Facts)",
            "network: global-router (neither nodes nor pods say it; state spec.network.mode in \
             Facts)",
            "nodePorts of 1 Service: shop/web: free ones from 30000 on (no nodePort is given; \
             give the applied Service objects)",
            "nodes: 3 (n1, n2, n3) (there is no Node object; give the cluster's Node objects)",
            "placement of 7 pods of Deployment shop/web, DaemonSet shop/agent: spread over the \
             nodes (there are no Pod objects of theirs; give the Pod objects)",
            "pod ranges of 3 nodes: a /24 of 10.1.0.0/16 each (no podCIDR is given; give Node \
             objects with spec.podCIDRs)",
        ]
    );
}

/// What an operator makes pods of is no workload: a Service for them is not said to be empty
/// without a word.
#[test]
fn pods_that_others_may_make_are_said() {
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
    // One that is selected and does not serve says that nobody does.
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
    assert_eq!(unjudged(&of_all), all[1..], "all pods");
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

/// A Corefile says which domain the cluster has, where nobody else does.
#[test]
fn the_domain_is_the_one_that_coredns_serves() {
    let corefile = |zones: &str| {
        format!(
            "
apiVersion: v1
kind: ConfigMap
metadata: {{name: coredns, namespace: kube-system}}
data:
  Corefile: |
    .:53 {{
        kubernetes {zones} {{
            fallthrough in-addr.arpa
        }}
    }}
"
        )
    };
    let domain = |text: &str| cluster(text).dns.domain().to_owned();
    assert_eq!(domain(&corefile("corp.internal in-addr.arpa")), "corp.internal");
    assert_eq!(domain(&corefile("corp.internal cluster.local. in-addr.arpa")), "cluster.local");
    assert_eq!(domain(&corefile("{$DOMAIN} in-addr.arpa")), "cluster.local");
    assert_eq!(domain(&corefile("")), "cluster.local");
    let said = cluster(&corefile("corp.internal")).supposed;
    assert!(said.iter().any(|fact| *fact.about == *"the cluster's domain"), "{said:?}");
}

#[test]
fn what_nobody_needs_is_not_supposed() {
    assert_eq!(cluster("").supposed, []);
    let lonely = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    assert_eq!(cluster(lonely).supposed, []);
    let cluster = cluster(
        "
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.1.1.0/24}
status: {addresses: [{type: InternalIP, address: 10.0.0.11}]}
",
    );
    assert_eq!(cluster.supposed, []);
    assert_eq!(cluster.provider.value, Provider::None);
}

/// A LoadBalancer Service with these annotations, class and status.
fn balanced(name: &str, annotations: &str, more: &str, status: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: shop, annotations: {{{annotations}}}}}
spec: {{type: LoadBalancer, {more} ports: [{{port: 80, nodePort: 30080}}]}}
status: {{loadBalancer: {{ingress: [{status}]}}}}
"
    )
}

fn node_of(provider_id: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Node
metadata: {{name: n1}}
spec: {{podCIDR: 10.1.1.0/24, providerID: \"{provider_id}\"}}
status: {{addresses: [{{type: InternalIP, address: 10.0.0.11}}]}}
"
    )
}

/// Whose load balancers are not judged.
fn gaps(cluster: &Cluster) -> Vec<String> {
    of_balancers(cluster).map(ToString::to_string).collect()
}

fn of_balancers(cluster: &Cluster) -> impl Iterator<Item = &Unjudged> {
    let is_given = |gap: &&Unjudged| !matches!(gap.subject, Unknown::Endpoints | Unknown::Backends);
    cluster.unjudged.iter().filter(is_given)
}

/// What another cloud's load balancers do is not known, and not taken from TKE's.
#[test]
fn another_clouds_load_balancers_are_not_looked_at() {
    const IP: &str = "{ip: 10.0.0.100}";
    let service = |annotations: &str| balanced("web", annotations, "", IP);
    let aws = "service.beta.kubernetes.io/aws-load-balancer-type: nlb";
    let read = cluster(&service(aws));
    assert_eq!(read.provider.value, Provider::Other(Cloud::Aws));
    assert_eq!(gaps(&read), ["1 load balancer of AWS NLB"]);
    let because = &read.unjudged[0].because;
    assert!(because.contains("aws-load-balancer-type of Service shop/web"), "{because}");
    let read = cluster(&(service("") + &node_of("gce://project/zone/n1")));
    assert_eq!(gaps(&read), ["1 load balancer of Google Cloud"]);
    assert!(read.unjudged[0].because.contains("providerID gce:// of Node n1"));
    // TKE's own traces say more.
    for own in [
        service(&format!("{aws}, service.cloud.tencent.com/direct-access: \"true\"")),
        service("") + &node_of("qcloud:///800002/ins-1"),
    ] {
        let read = cluster(&own);
        assert_eq!((read.provider.value, gaps(&read)), (Provider::Tke, Vec::new()));
    }
}

/// One cluster has load balancers of several: the class says it before annotations, these
/// before the status, and the nodes' cloud comes last.
#[test]
fn each_load_balancer_is_of_whoever_makes_it() {
    let text = [
        node_of("aws:///eu-west-1a/i-0123"),
        balanced("class", "metallb.io/address-pool: a", "loadBalancerClass: tailscale,", ""),
        balanced("own-class", "", "loadBalancerClass: example.com/lb,", ""),
        balanced("annotation", "metallb.universe.tf/address-pool: a", "", "{ip: 10.0.0.9}"),
        balanced("status", "", "", "{hostname: a-1.nlb.aliyuncs.com}"),
        balanced("nodes", "", "", "{hostname: a-1.elb.eu-west-1.amazonaws.com}"),
    ];
    let read = cluster(&text.concat());
    let found: Vec<(String, String)> =
        of_balancers(&read).map(|gap| (gap.to_string(), gap.objects[0].name.to_string())).collect();
    let expected = [
        ("1 load balancer of AWS", "nodes"),
        ("1 load balancer of Alibaba Cloud NLB", "status"),
        ("1 load balancer of MetalLB", "annotation"),
        ("1 load balancer of Tailscale", "class"),
        ("1 load balancer of class example.com/lb", "own-class"),
    ];
    assert_eq!(found, expected.map(|(gap, name)| (gap.to_owned(), name.to_owned())));
}

/// Ingresses are of their class's controller. One in the cluster has its address from a
/// Service, which can be traced to.
#[test]
fn each_ingress_is_of_its_controller() {
    let ingress = |name: &str, class: &str, status: &str| {
        format!(
            "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: {name}, namespace: shop}}
spec: {{{class} rules: [{{host: a.example.com}}]}}
status: {{loadBalancer: {{ingress: [{status}]}}}}
"
        )
    };
    let class = |name: &str, controller: &str| {
        format!(
            "---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {{name: {name}}}
spec: {{controller: {controller}}}
"
        )
    };
    let text = [
        node_of("azure:///subscriptions/s/n1"),
        class("public", "k8s.io/ingress-nginx"),
        class("edge", "example.com/edge"),
        ingress("nginx", "ingressClassName: public,", "{ip: 10.0.0.9}"),
        ingress("own", "ingressClassName: edge,", ""),
        ingress("named", "ingressClassName: traefik,", ""),
        ingress("gateway", "ingressClassName: azure-application-gateway,", "{ip: 10.0.0.10}"),
        ingress("none", "", "{ip: 10.0.0.11}"),
        balanced("controller", "", "", "{ip: 10.0.0.9}"),
    ];
    let read = cluster(&text.concat());
    let expected = [
        "2 load balancers of Azure",
        "1 load balancer of Azure Application Gateway",
        "1 Ingress that Traefik serves",
        "1 Ingress that example.com/edge serves",
        "1 Ingress that ingress-nginx serves",
    ];
    assert_eq!(gaps(&read), expected);
    assert_eq!(&*read.unjudged[4].settle, "trace to svc/shop/controller, whose pods serve it");
}

/// Nothing names a cloud: none is supposed, and the load balancer is not judged.
#[test]
fn a_load_balancer_without_a_trace_is_of_nobody_known() {
    let service = balanced("a", "", "", "");
    let plain = cluster(&service);
    assert_eq!(plain.provider.value, Provider::Unknown);
    assert_eq!(gaps(&plain), ["1 load balancer of an unknown cloud"]);
    assert_eq!(&*plain.unjudged[0].settle, "state spec.provider in Facts");
    assert!(plain.services[&name("shop/a")].load_balancer.is_empty());
    assert!(!abouts(&plain).contains(&"cloud"));
    let stated = |provider: &str| {
        let facts = "---\napiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec: {provider: ";
        cluster(&format!("{service}{facts}{provider}}}\n"))
    };
    assert_eq!(gaps(&stated("none")), Vec::<String>::new());
    assert_eq!(gaps(&stated("metallb")), ["1 load balancer of MetalLB"]);
    let tke = stated("tke");
    assert_eq!(gaps(&tke), Vec::<String>::new());
    assert!(!tke.services[&name("shop/a")].load_balancer.is_empty());
}

#[test]
fn facts_give_a_load_balancer_its_address() {
    let text = format!(
        "{PULL_REQUEST}---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec: {{loadBalancers: [{{vip: 10.0.0.50, listeners: [{{port: 443}}]}}]}}
"
    );
    let cluster = cluster(&text);
    let vip = |ip: Option<std::net::IpAddr>| ip.unwrap().to_string();
    assert_eq!(vip(cluster.ingresses[&name("shop/web")].load_balancer[0].ip), "10.0.0.50");
    assert_eq!(vip(cluster.services[&name("shop/web")].load_balancer[0].ip), "10.0.0.100");
}

#[test]
fn pods_decide_where_there_are_no_slices() {
    let pod = |pod: &str, ip: &str, app: &str, status: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {pod}, namespace: shop, labels: {{app: {app}}}}}\n\
             spec: {{nodeName: n1, containers: [{{name: c, image: i, ports: [{{name: http, containerPort: 80{pod_port}}}]}}]}}\n\
             status: {{podIP: {ip}, {status}}}\n---\n",
            pod_port = if pod == "other" { "90" } else { "80" }
        )
    };
    let mut text = pod(
        "ready",
        "10.1.1.1",
        "a",
        "phase: Running, conditions: [{type: Ready, status: 'True'}]",
    );
    text += &pod(
        "unready",
        "10.1.1.2",
        "a",
        "phase: Running, conditions: [{type: Ready, status: 'False'}]",
    );
    text += &pod("done", "10.1.1.3", "a", "phase: Succeeded");
    text += &pod("other", "10.1.1.4", "a", "phase: Running");
    text += &pod("foreign", "10.1.1.5", "b", "phase: Running");
    text += "apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: shop}\n\
             spec: {clusterIP: 172.16.0.1, selector: {app: a}, ports: [{port: 80, targetPort: http}]}\n";
    let cluster = cluster(&text);
    let slices = cluster.slices(&name("shop/a"));
    let shown: Vec<String> = slices
        .iter()
        .flat_map(|slice| {
            slice.endpoints.iter().map(|endpoint| {
                format!("{}:{} {}", endpoint.address, slice.ports[0].port, endpoint.ready)
            })
        })
        .collect();
    assert_eq!(shown, ["10.1.1.4:8090 true", "10.1.1.1:8080 true", "10.1.1.2:8080 false"]);
}

#[test]
fn anti_affinity_and_selectors_are_kept() {
    let text = "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      nodeSelector: {disk: ssd}
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: db}}}
      containers: [{name: db, image: db}]
---
apiVersion: v1
kind: NodeList
items:
- {metadata: {name: n1, labels: {disk: ssd}}}
- {metadata: {name: n2}}
- {metadata: {name: n3, labels: {disk: ssd}}}
- {metadata: {name: n4, labels: {disk: ssd}}, spec: {unschedulable: true}}
";
    let cluster = cluster(text);
    let places: Vec<_> = cluster
        .pods
        .values()
        .map(|pod| (pod.name.name.as_str(), pod.node.as_ref().map(|node| node.as_str())))
        .collect();
    assert_eq!(places, [("db-0", Some("n1")), ("db-1", Some("n3")), ("db-2", None)]);
}

#[test]
fn what_a_deployment_made_makes_nothing_itself() {
    let text = format!(
        "{PULL_REQUEST}---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: web-5d8c7f4b6d, namespace: shop}}
spec: {{replicas: 4, template: {{metadata: {{labels: {{app: web}}}}, spec: {{containers: []}}}}}}
"
    );
    let cluster = cluster(&text);
    assert!(
        cluster.workloads.contains_key(&(WorkloadKind::ReplicaSet, name("shop/web-5d8c7f4b6d")))
    );
    assert_eq!(cluster.pods.len(), 7);
}

#[test]
fn vpc_cni_gives_pods_addresses_of_the_vpc() {
    let text = "
apiVersion: v1
kind: Pod
metadata: {name: a, annotations: {tke.cloud.tencent.com/networks: tke-route-eni}}
spec: {containers: [{name: c, image: i}]}
";
    let cluster = cluster(text);
    assert_eq!(cluster.network.mode.value, NetworkMode::VpcCni);
    assert!(!cluster.network.mode.is_supposed());
    let pod = &cluster.pods[&name("default/a")];
    assert!(cluster.network.vpc_cidrs.value[0].contains(&pod.ips[0]));
    assert!(cluster.nodes.values().all(|node| node.pod_cidrs.is_empty()));
}

#[test]
fn supposed_ranges_keep_clear_of_known_ones() {
    let text = "
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.0.0.0/24}
---
apiVersion: v1
kind: Service
metadata: {name: a}
spec: {clusterIP: 10.1.0.1, ports: [{port: 80}]}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {nodeName: n2, containers: [{name: c, image: i}]}
";
    let cluster = cluster(text);
    let (n1, n2) = (&cluster.nodes["n1"], &cluster.nodes["n2"]);
    assert_eq!(n1.internal_ips[0].to_string(), "10.2.0.11");
    assert_eq!(n2.pod_cidrs[0].to_string(), "10.3.1.0/24");
    assert_eq!(cluster.pods[&name("default/p")].ips[0].to_string(), "10.3.1.10");
    assert!(abouts(&cluster).contains(&"nodes n2"));
}

#[test]
fn a_private_load_balancer_is_in_the_vpc() {
    let text = "
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.1.1.0/24}
status: {addresses: [{type: InternalIP, address: 192.168.1.5}]}
---
apiVersion: v1
kind: Service
metadata: {name: a}
spec: {type: LoadBalancer, clusterIP: 172.16.0.1, ports: [{port: 80, nodePort: 30000}]}
status: {loadBalancer: {ingress: [{ip: 10.9.0.7}]}}
";
    let vpc = &cluster(text).network.vpc_cidrs.value;
    assert_eq!(
        vpc.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["10.9.0.0/16", "192.168.0.0/16"]
    );
}

#[test]
fn scaled_to_nothing_means_no_pods() {
    let text = PULL_REQUEST.replace("replicas: 4", "replicas: 0");
    let pods: Vec<String> = cluster(&text).pods.keys().map(ToString::to_string).collect();
    assert_eq!(pods, ["shop/agent-n1", "shop/agent-n2", "shop/agent-n3"]);
}

#[test]
fn a_crowd_gets_distinct_addresses() {
    let text = PULL_REQUEST.replace("replicas: 4", "replicas: 4000000000");
    let cluster = cluster(&text);
    let mut ips: Vec<_> = cluster
        .pods
        .values()
        .filter(|pod| !pod.spec.host_network)
        .flat_map(|pod| pod.ips.clone())
        .collect();
    let all = ips.len();
    ips.sort_unstable();
    ips.dedup();
    assert_eq!(ips.len(), all);
    assert!(all > 700, "{all}: three ranges of 256 hold that many");
    assert!(abouts(&cluster).contains(&"pods of Deployment shop/web"));
}

#[test]
fn k3s_says_on_its_nodes_how_kube_proxy_is_set() {
    let node = |args: &str| {
        format!(
            "
apiVersion: v1
kind: Node
metadata: {{name: n1, annotations: {{k3s.io/node-args: '{args}'}}}}
spec: {{podCIDR: 10.42.0.0/24}}
status: {{addresses: [{{type: InternalIP, address: 10.0.0.11}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: a}}
spec: {{clusterIP: 10.43.0.7, ports: [{{port: 80}}]}}
"
        )
    };
    let plain = cluster(&node(r#"["server"]"#));
    assert!(!plain.proxy.mode.is_supposed() && !plain.proxy.detector.is_supposed());
    assert_eq!(plain.proxy.mode.value, ProxyMode::Iptables);
    let ranges = |text: &str| LocalDetector::ClusterCidr(vec![text.parse().unwrap()]);
    assert_eq!(plain.proxy.detector.value, ranges("10.42.0.0/16"));
    let set = r#"["server","--cluster-cidr","10.52.0.0/16","--kube-proxy-arg=proxy-mode=ipvs"]"#;
    let set = cluster(&node(set));
    assert_eq!(set.proxy.mode.value, ProxyMode::Ipvs);
    assert_eq!(set.proxy.detector.value, ranges("10.52.0.0/16"));
    // What is no list of words says nothing.
    assert!(cluster(&node("server")).proxy.mode.is_supposed());
}

#[test]
fn kube_proxys_arguments_are_all_that_is_set_where_no_file_is_named() {
    let pod = |arguments: &str| {
        format!(
            "
apiVersion: v1
kind: Pod
metadata: {{name: kube-proxy-x, namespace: kube-system, labels: {{k8s-app: kube-proxy}}}}
spec:
  nodeName: n1
  hostNetwork: true
  containers: [{{name: kube-proxy, image: kube-proxy:v1.31.5, command: [kube-proxy, {arguments}]}}]
status: {{phase: Running, podIP: 10.0.0.11}}
---
apiVersion: v1
kind: Service
metadata: {{name: a}}
spec: {{clusterIP: 10.43.0.7, ports: [{{port: 80}}]}}
"
        )
    };
    let read = |arguments: &str| cluster(&pod(arguments)).proxy;
    let plain = read("--v=3, --detect-local-mode=ClusterCIDR, --pod-interface-name-prefix=");
    assert!(!plain.mode.is_supposed());
    assert_eq!(plain.detector.value, LocalDetector::None, "an empty flag is none");
    let prefix = read("--detect-local-mode=InterfaceNamePrefix, --pod-interface-name-prefix=azv");
    assert_eq!(prefix.detector.value, LocalDetector::InterfaceNamePrefix("azv".into()));
    assert!(read("--config=/etc/kube-proxy.conf").mode.is_supposed());
}
