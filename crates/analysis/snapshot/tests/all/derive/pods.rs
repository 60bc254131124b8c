//! Pods, their endpoints and addresses, where manifests leave them out.

use super::*;

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
    assert!(is_assumed(&cluster, "nodes n2"));
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

/// Where no node is given, there are as many as have room for the pods.
#[test]
fn nodes_have_room_for_their_pods() {
    let text = PULL_REQUEST.replace("replicas: 4", "replicas: 950");
    let cluster = cluster(&text);
    assert_eq!(cluster.nodes.len(), 9, "110 pods a node, one of them of the DaemonSet");
    assert!(cluster.pods.values().all(|pod| !pod.ips.is_empty()));
    for node in cluster.nodes.keys() {
        let count = cluster.pods_on(node).count();
        assert!((100..=110).contains(&count), "{node}: {count}");
    }
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
    assert!(is_assumed(&cluster, "pods of Deployment shop/web"));
}

/// As the scheduler does, by what the nodes' labels and taints tell.
#[test]
fn pods_are_supposed_where_the_scheduler_may_put_them() {
    const NODES: &str = "
apiVersion: v1
kind: Node
metadata: {name: first, labels: {role: control}}
spec:
  podCIDR: 10.1.1.0/24
  taints:
  - {key: node-role.kubernetes.io/control-plane, effect: NoSchedule}
  - {key: node.kubernetes.io/disk-pressure, effect: NoSchedule}
---
apiVersion: v1
kind: Node
metadata: {name: second, labels: {role: work}}
spec: {podCIDR: 10.1.2.0/24, taints: [{key: soft, effect: PreferNoSchedule}]}
---
apiVersion: v1
kind: Node
metadata: {name: third, labels: {role: work, disk: fast}}
spec: {podCIDR: 10.1.3.0/24, taints: [{key: team, value: db, effect: NoExecute}]}
";
    let required = |terms: &str| {
        format!(
            "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: \
             {{nodeSelectorTerms: [{terms}]}}}}}}"
        )
    };
    let exists = "tolerations: [{operator: Exists}]";
    let not_control = "{matchExpressions: [{key: role, operator: NotIn, values: [control]}]}";
    let fast = "{matchExpressions: [{key: disk, operator: Exists}]}";
    for (spec, nodes) in [
        (String::new(), &["second"][..]),
        (exists.into(), &["first", "second", "third"]),
        ("tolerations: [{key: team, value: db}]".into(), &["second", "third"]),
        ("tolerations: [{key: team, value: web}]".into(), &["second"]),
        (
            "tolerations: [{key: team, operator: Exists, effect: NoExecute}]".into(),
            &["second", "third"],
        ),
        ("tolerations: [{key: team, operator: Exists, effect: NoSchedule}]".into(), &["second"]),
        (format!("{exists}, {}", required(not_control)), &["second", "third"]),
        (format!("{exists}, {}", required(fast)), &["third"]),
        (
            format!("{exists}, {}", required(&format!("{fast}, {not_control}"))),
            &["second", "third"],
        ),
        (format!("nodeSelector: {{disk: fast}}, {exists}"), &["third"]),
        // What more than labels decides is not known: any node.
        (
            format!(
                "{exists}, {}",
                required("{matchExpressions: [{key: cores, operator: Gt, values: ['4']}]}")
            ),
            &["first", "second", "third"],
        ),
    ] {
        for kind in ["Deployment", "DaemonSet"] {
            let text = format!(
                "{NODES}---
apiVersion: apps/v1
kind: {kind}
metadata: {{name: web}}
spec:
  replicas: 6
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: c, image: c}}], {spec}}}
"
            );
            let cluster = cluster(&text);
            let mut used: Vec<String> = cluster
                .pods
                .values()
                .filter_map(|pod| Some(pod.node.as_ref()?.to_string()))
                .collect();
            used.sort();
            used.dedup();
            assert_eq!(used, nodes, "{kind}: {spec}");
        }
    }
}

/// Where nodes have no ranges, pods have addresses of the range that kube-proxy is told.
#[test]
fn addresses_are_of_the_range_that_kube_proxy_has() {
    let azure = |arguments: &str| {
        format!(
            "apiVersion: v1
kind: Node
metadata: {{name: n1}}
spec: {{providerID: 'azure:///subscriptions/0/virtualMachines/1'}}
status: {{addresses: [{{type: InternalIP, address: 10.224.0.4}}]}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: kube-proxy, namespace: kube-system}}
spec:
  selector: {{matchLabels: {{component: kube-proxy}}}}
  template:
    metadata: {{labels: {{component: kube-proxy}}}}
    spec:
      hostNetwork: true
      containers: [{{name: kube-proxy, image: kube-proxy, command: [kube-proxy{arguments}]}}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: azure-cns, namespace: kube-system}}
spec:
  selector: {{matchLabels: {{k8s-app: azure-cns}}}}
  template:
    metadata: {{labels: {{k8s-app: azure-cns}}}}
    spec: {{hostNetwork: true, containers: [{{name: cns, image: cns}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: web}}}}
  template: {{metadata: {{labels: {{app: web}}}}, spec: {{containers: [{{name: c, image: c}}]}}}}
"
        )
    };
    let range: uturn_model::IpNet = "10.224.0.0/16".parse().unwrap();
    let told = cluster(&azure(", --cluster-cidr=10.224.0.0/16"));
    let pods = || told.pods.values().filter(|pod| !pod.spec.host_network);
    assert!(pods().count() == 2 && pods().all(|pod| range.contains(&pod.ips[0])));
    assert!(!is_assumed(&told, "addresses of 2 pods"));
    // Where nothing tells, the range is supposed, and that is said.
    assert!(is_assumed(&cluster(&azure("")), "addresses of 2 pods"));
}

/// Blocks of nodes that state none are of that range too, and it is that of the network.
#[test]
fn ranges_of_nodes_are_of_the_range_that_kube_proxy_has() {
    let told = cluster(
        "apiVersion: v1
kind: Node
metadata: {name: n1}
status: {addresses: [{type: InternalIP, address: 192.168.0.4}]}
---
apiVersion: v1
kind: Pod
metadata: {name: kube-proxy-n1, namespace: kube-system, labels: {component: kube-proxy}}
spec:
  nodeName: n1
  hostNetwork: true
  containers: [{name: kube-proxy, image: kube-proxy, command: [kube-proxy, --cluster-cidr=10.50.0.0/16]}]
",
    );
    let range: uturn_model::IpNet = "10.50.0.0/16".parse().unwrap();
    assert_eq!(told.network.pod_cidrs.value, [range]);
    assert!(matches!(told.network.pod_cidrs.basis, Basis::Stated(_)));
    let own = told.nodes.values().flat_map(|node| &node.pod_cidrs).collect::<Vec<_>>();
    assert!(own.len() == 1 && range.contains(own[0]), "{own:?}");
}

/// GKE starts kube-proxy with the range of all pods: that there is none is no case there.
#[test]
fn a_cloud_that_gives_kube_proxy_the_range_of_pods() {
    let node = |label: &str| {
        cluster(&format!(
            "apiVersion: v1
kind: Node
metadata: {{name: n1, labels: {{{label}: pool}}}}
spec: {{providerID: 'gce://project/zone/n1', podCIDR: 10.8.0.0/24}}
status: {{addresses: [{{type: InternalIP, address: 10.128.0.4}}]}}
"
        ))
    };
    assert!(!node("cloud.google.com/gke-nodepool").proxy.detector.is_supposed());
    assert!(node("example.com/pool").proxy.detector.is_supposed());
}
