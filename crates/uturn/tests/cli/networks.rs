//! Healthy clusters of each kind of pod network, as `kubectl get -o yaml` shows them: nothing
//! is found, and the network is recognised.

use super::common::{Folder, uturn};
use serde_json::Value;

/// What tells one kind of network from another.
struct NetworkKind {
    /// The word of the scan's JSON.
    plugin: &'static str,
    transport: &'static str,
    masquerade: bool,
    provider_id: &'static str,
    /// `10.244.0.0/24` for the first node; the second has the next range. Empty where nodes
    /// have none.
    first_range: &'static str,
    second_range: &'static str,
    /// What the plugin writes on the nodes.
    annotations: [&'static str; 2],
    labels: &'static str,
    /// The DaemonSet of the plugin's agent, with its namespace.
    agent: &'static str,
    /// The addresses of the client on the first node, and of the server on the second.
    pods: [&'static str; 2],
    /// More objects.
    more: &'static str,
}

const PLAIN: NetworkKind = NetworkKind {
    plugin: "",
    transport: "underlay",
    masquerade: false,
    provider_id: "",
    first_range: "",
    second_range: "",
    annotations: ["{}", "{}"],
    labels: "{}",
    agent: "",
    pods: ["", ""],
    more: "",
};

/// Of kubeadm, whose nodes have ranges that Calico and others leave unused.
const KUBEADM: NetworkKind =
    NetworkKind { first_range: "192.168.0.0/24", second_range: "192.168.1.0/24", ..PLAIN };

fn kinds() -> Vec<NetworkKind> {
    let kubeadm = |plugin, agent| NetworkKind { plugin, agent, masquerade: true, ..KUBEADM };
    vec![
        NetworkKind {
            transport: "tunnel",
            annotations: [
                "{projectcalico.org/IPv4Address: 10.0.0.11/24, projectcalico.org/IPv4IPIPTunnelAddr: 192.168.185.0}",
                "{projectcalico.org/IPv4Address: 10.0.0.12/24, projectcalico.org/IPv4IPIPTunnelAddr: 192.168.7.0}",
            ],
            pods: ["192.168.185.14", "192.168.7.9"],
            ..kubeadm("calico", "kube-system/calico-node")
        },
        NetworkKind {
            annotations: [
                "{projectcalico.org/IPv4Address: 10.0.0.11/24}",
                "{projectcalico.org/IPv4Address: 10.0.0.12/24}",
            ],
            pods: ["192.168.185.14", "192.168.7.9"],
            ..kubeadm("calico", "calico-system/calico-node")
        },
        NetworkKind {
            transport: "tunnel",
            pods: ["10.0.1.14", "10.0.2.9"],
            more: "
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cilium-config, namespace: kube-system}
data: {routing-mode: tunnel, tunnel-protocol: vxlan, kube-proxy-replacement: \"false\"}
",
            ..kubeadm("cilium", "kube-system/cilium")
        },
        NetworkKind {
            pods: ["10.0.1.14", "10.0.2.9"],
            more: "
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cilium-config, namespace: kube-system}
data: {routing-mode: native, ipv4-native-routing-cidr: 10.0.0.0/8}
",
            ..kubeadm("cilium", "kube-system/cilium")
        },
        NetworkKind {
            transport: "tunnel",
            annotations: [
                "{flannel.alpha.coreos.com/backend-type: vxlan}",
                "{flannel.alpha.coreos.com/backend-type: vxlan}",
            ],
            pods: ["192.168.0.14", "192.168.1.9"],
            ..kubeadm("flannel", "kube-flannel/kube-flannel-ds")
        },
        NetworkKind {
            plugin: "kubenet",
            masquerade: true,
            provider_id: "azure:///subscriptions/s",
            pods: ["192.168.0.14", "192.168.1.9"],
            ..KUBEADM
        },
        NetworkKind {
            plugin: "aws-vpc-cni",
            provider_id: "aws:///eu-central-1a",
            agent: "kube-system/aws-node",
            // Two nodes in one subnet.
            pods: ["10.0.0.114", "10.0.0.9"],
            ..PLAIN
        },
        NetworkKind {
            plugin: "azure-cni-overlay",
            masquerade: true,
            provider_id: "azure:///subscriptions/s",
            labels: "{kubernetes.azure.com/podnetwork-type: overlay}",
            agent: "kube-system/azure-cns",
            pods: ["192.168.0.14", "192.168.1.9"],
            ..KUBEADM
        },
        NetworkKind {
            plugin: "azure-cni",
            provider_id: "azure:///subscriptions/s",
            agent: "kube-system/azure-cns",
            pods: ["10.0.0.114", "10.0.0.9"],
            ..PLAIN
        },
        NetworkKind {
            plugin: "gke",
            provider_id: "gce://project/zone",
            // The first address of a range is a pod's here.
            pods: ["192.168.0.1", "192.168.1.1"],
            ..KUBEADM
        },
        NetworkKind {
            plugin: "terway",
            agent: "kube-system/terway-eniip",
            pods: ["10.0.0.114", "10.0.0.9"],
            ..PLAIN
        },
        NetworkKind {
            transport: "tunnel",
            pods: ["10.128.0.14", "10.129.0.9"],
            ..kubeadm("ovn-kubernetes", "openshift-ovn-kubernetes/ovnkube-node")
        },
        NetworkKind {
            transport: "tunnel",
            pods: ["192.168.0.14", "192.168.1.9"],
            ..kubeadm("antrea", "kube-system/antrea-agent")
        },
        NetworkKind {
            transport: "tunnel",
            pods: ["10.32.0.1", "10.46.0.1"],
            ..kubeadm("weave", "kube-system/weave-net")
        },
        // Nothing names the plugin: the pods' addresses say that it is no bridge.
        NetworkKind { plugin: "unknown", pods: ["192.168.185.14", "192.168.7.9"], ..KUBEADM },
    ]
}

/// Whether the plugin serves Services in place of kube-proxy, in ways that are not all modelled.
fn is_proxy_replaced(kind: &NetworkKind) -> bool {
    kind.plugin == "ovn-kubernetes"
}

/// Nodes, the agent, a client, a server, a Service of each type, slices and an Ingress.
fn cluster(kind: &NetworkKind) -> String {
    let mut text = String::from(kind.more);
    let ranges = [kind.first_range, kind.second_range];
    for (at, (range, annotations)) in ranges.iter().zip(kind.annotations).enumerate() {
        let number = at + 1;
        let range = if range.is_empty() { String::new() } else { format!("podCIDR: {range}, ") };
        let id = match kind.provider_id {
            "" => String::new(),
            id => format!("providerID: {id}/n{number}"),
        };
        text += &format!(
            "---
apiVersion: v1
kind: Node
metadata: {{name: n{number}, labels: {labels}, annotations: {annotations}}}
spec: {{{range}{id}}}
status: {{addresses: [{{type: InternalIP, address: 10.0.0.1{number}}}]}}
",
            labels = kind.labels
        );
    }
    if let Some((namespace, name)) = kind.agent.split_once('/') {
        text += &format!(
            "---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  selector: {{matchLabels: {{k8s-app: {name}}}}}
  template:
    metadata: {{labels: {{k8s-app: {name}}}}}
    spec: {{hostNetwork: true, containers: [{{name: agent, image: agent}}]}}
"
        );
    }
    for (at, (name, ip)) in ["client", "web"].iter().zip(kind.pods).enumerate() {
        text += &format!(
            "---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: shop, labels: {{app: {name}}}}}
spec: {{nodeName: n{}, containers: [{{name: c, image: c, ports: [{{containerPort: 8080}}]}}]}}
status: {{phase: Running, podIP: {ip}, conditions: [{{type: Ready, status: \"True\"}}]}}
",
            at + 1
        );
    }
    text += "---
apiVersion: v1
kind: ConfigMap
metadata: {name: kube-proxy, namespace: kube-system}
data: {config.conf: \"{mode: iptables}\"}
---
apiVersion: v1
kind: Service
metadata: {name: kubernetes, namespace: default}
spec: {clusterIP: 10.96.0.1, ports: [{name: https, port: 443, targetPort: 6443}]}
";
    // The API server is a process of the first node.
    let server = kind.pods[1];
    let mut slices = vec![("default/kubernetes", "10.0.0.11", 6443, "https")];
    for (number, service) in ["ClusterIP", "NodePort", "LoadBalancer"].into_iter().enumerate() {
        let name = service.to_lowercase();
        let (port, status) = match service {
            "ClusterIP" => (String::new(), "{}"),
            _ => (
                format!(", nodePort: 3008{number}"),
                if service == "NodePort" { "{}" } else { "{ingress: [{ip: 198.18.0.7}]}" },
            ),
        };
        text += &format!(
            "---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: shop}}
spec:
  type: {service}
  clusterIP: 10.96.7.{number}
  selector: {{app: web}}
  ports: [{{name: http, port: 80, targetPort: 8080{port}}}]
status: {{loadBalancer: {status}}}
"
        );
    }
    for name in ["shop/clusterip", "shop/nodeport", "shop/loadbalancer"] {
        slices.push((name, server, 8080, "http"));
    }
    for (service, ip, port, name) in slices {
        let (namespace, service) = service.split_once('/').unwrap();
        let node = if name == "http" { "nodeName: n2, " } else { "" };
        text += &format!(
            "---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {service}-1, namespace: {namespace}, labels: {{kubernetes.io/service-name: {service}}}}}
addressType: IPv4
endpoints: [{{addresses: [{ip}], {node}conditions: {{ready: true}}}}]
ports: [{{name: {name}, port: {port}, protocol: TCP}}]
"
        );
    }
    text + "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec:
  ingressClassName: nginx
  rules: [{host: shop.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: clusterip, port: {number: 80}}}}]}}]
status: {loadBalancer: {ingress: [{ip: 198.18.0.8}]}}
"
}

fn scan(folder: &Folder) -> (Option<i32>, Value) {
    let args = ["scan", "-f", ".", "-o", "json", "--fail-on", "info"];
    let output = uturn(&args).current_dir(&folder.0).output().unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn nothing_is_found_in_a_healthy_cluster_of_any_network() {
    for (number, kind) in kinds().iter().enumerate() {
        let folder = Folder::new(&format!("network-{number}"));
        folder.file("cluster.yaml", &cluster(kind));
        let (code, scan) = scan(&folder);
        let what = format!("{} {number}: {scan:#}", kind.plugin);
        assert_eq!(scan["findings"], serde_json::json!([]), "{what}");
        assert_eq!(code, Some(0), "{what}");
        let network = &scan["network"];
        assert_eq!(network["plugin"], kind.plugin, "{what}");
        assert_eq!(network["transport"], kind.transport, "{what}");
        assert!(network.get("transport_v6").is_none(), "without IPv6 there is one way: {what}");
        assert_eq!(network["masquerade"], kind.masquerade, "{what}");
        // Both pods call the three Services and the API server.
        let count = |key: &str| scan[key].as_u64().unwrap();
        assert!(count("flows") >= 8 && count("fine") + count("open") == count("flows"), "{what}");
        assert!(count("open") == 0 || is_proxy_replaced(kind), "{what}");
    }
}

#[test]
fn a_node_port_is_answered_in_each_network() {
    let kinds = kinds();
    let walked = kinds.iter().filter(|kind| !is_proxy_replaced(kind)).enumerate();
    for (number, kind) in walked {
        let folder = Folder::new(&format!("node-port-{number}"));
        folder.file("cluster.yaml", &cluster(kind));
        for (from, node) in [("outside", 11), ("outside", 12), ("pod/shop/client", 12)] {
            let to = format!("http://10.0.0.{node}:30081/");
            let trace = folder.run(&["trace", "-f", ".", "--from", from, "--to", &to]);
            let is_answered = trace.starts_with("exit 0\n--- stdout\nanswered at once\n");
            assert!(is_answered, "{} {number}, {from} to {to}:\n{trace}", kind.plugin);
        }
    }
}

/// A ready endpoint answers even if no given object has its address: pods of other namespaces are
/// often not given, and a managed API server is no node.
#[test]
fn endpoints_answer_whose_pods_are_not_given() {
    let slice = |service: &str, ip: &str, node: &str| {
        format!(
            "---
apiVersion: v1
kind: Service
metadata: {{name: {service}, namespace: shop}}
spec: {{clusterIP: 10.96.8.{number}, ports: [{{port: 80, targetPort: 8080}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {service}-1, namespace: shop, labels: {{kubernetes.io/service-name: {service}}}}}
addressType: IPv4
endpoints: [{{addresses: [{ip}], {node}conditions: {{ready: true}}}}]
ports: [{{name: \"\", port: 8080, protocol: TCP}}]
",
            number = service.len()
        )
    };
    for (number, kind) in kinds().iter().filter(|kind| !is_proxy_replaced(kind)).enumerate() {
        let folder = Folder::new(&format!("no-pods-{number}"));
        let beside = kind.pods[1].rsplit_once('.').unwrap().0;
        let text = [
            cluster(kind),
            slice("beside", &format!("{beside}.77"), "nodeName: n2, "),
            slice("nowhere", &format!("{beside}.78"), ""),
            slice("in-the-vpc", "10.0.77.9", ""),
            slice("far-away", "192.0.2.7", ""),
        ];
        folder.file("cluster.yaml", &text.concat());
        let (code, scan) = scan(&folder);
        assert_eq!(scan["findings"], serde_json::json!([]), "{} {number}: {scan:#}", kind.plugin);
        assert_eq!(code, Some(0), "{}", kind.plugin);
    }
}

/// A range that is only supposed leads to no finding: which host has an address of it is not known.
#[test]
fn an_address_of_a_supposed_range_is_not_known() {
    let kinds = kinds();
    let calico = kinds.iter().find(|kind| kind.plugin == "calico").unwrap();
    let folder = Folder::new("supposed-range");
    folder.file("cluster.yaml", &cluster(calico));
    let trace =
        |to: &str| folder.run(&["trace", "-f", ".", "--from", "pod/shop/client", "--to", to]);
    for to in ["10.0.200.7:80", "192.168.7.200:80"] {
        let text = trace(to);
        assert!(
            text.starts_with("exit 0\n--- stdout\nnot known   UT902 not-given"),
            "{to}: {text}"
        );
    }
    // Where the range is stated and pods are given, no host has the address.
    folder.file(
        "facts.yaml",
        "apiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec: {network: {vpcCIDRs: [10.0.0.0/16]}}\n",
    );
    let text = trace("10.0.200.7:80");
    assert!(text.starts_with("exit 1\n--- stdout\nhangs   UT701 no-route"), "{text}");
}
