//! The objects of every cluster, unless the manifests have their own: CoreDNS, its Service and its
//! rights; kube-proxy.

use serde_json::{Value, json};

use super::credentials::CORE_DNS;
use super::layout::{DNS_SERVICE, Layout};
use super::manifests::{kind, name, namespace};

/// The Corefile of a cluster whose manifests have none, as kubeadm writes it.
const COREFILE: &str = ".:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    forward . /etc/resolv.conf
    cache 30
    reload 2s
}
";

/// Returns the objects that are applied besides the manifests'. `proxy` are those of kube-proxy.
pub(super) fn objects(layout: &Layout, manifests: &[Value], proxy: Vec<Value>) -> Vec<Value> {
    let mut all = rights();
    let is_own = |wanted: &Value| {
        let id =
            |object: &Value| [kind(object), namespace(object), name(object)].map(str::to_owned);
        manifests.iter().any(|object| id(object) == id(wanted))
    };
    all.extend(proxy.into_iter().filter(|object| !is_own(object)));
    let (space, service) = DNS_SERVICE;
    let has_dns = manifests.iter().any(|object| {
        kind(object) == "Service" && namespace(object) == space && name(object) == service
    });
    if !has_dns {
        all.extend(dns(layout));
    }
    all
}

fn rights() -> Vec<Value> {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": CORE_DNS},
        "rules": [
            {"apiGroups": [""], "resources": ["services", "pods", "namespaces", "endpoints"],
             "verbs": ["list", "watch"]},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"],
             "verbs": ["list", "watch"]},
        ],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": CORE_DNS},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": CORE_DNS},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": CORE_DNS}],
    });
    vec![role, binding]
}

fn dns(layout: &Layout) -> Vec<Value> {
    let (space, service) = DNS_SERVICE;
    let labels = json!({"k8s-app": "kube-dns"});
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": space, "name": "coredns"},
        "data": {"Corefile": COREFILE},
    });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": space, "name": "coredns", "labels": labels},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"dnsPolicy": "Default", "containers": [{
                "name": "coredns", "image": "coredns/coredns",
                "ports": [
                    {"name": "dns", "containerPort": 53, "protocol": "UDP"},
                    {"name": "dns-tcp", "containerPort": 53, "protocol": "TCP"},
                ],
            }]},
        }},
    });
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"namespace": space, "name": service, "labels": labels},
        "spec": {"clusterIP": layout.dns, "selector": labels, "ports": [
            {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 53},
            {"name": "dns-tcp", "port": 53, "protocol": "TCP", "targetPort": 53},
        ]},
    });
    vec![config, service, deployment]
}
