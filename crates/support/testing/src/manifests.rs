//! The network, the nodes and the pods of the small clusters that tests use.

use std::fmt;

/// The `spec.network` of Facts: nodes in 10.0.0.0/16, pods in 10.1.0.0/16 and Services in
/// 172.16.0.0/16.
pub const NETWORK: &str = "{mode: global-router, podCIDRs: [10.1.0.0/16], \
                           vpcCIDRs: [10.0.0.0/16], serviceCIDRs: [172.16.0.0/16]}";

/// Returns a Facts document that states [`NETWORK`] and these fields of `spec`.
pub fn facts(fields: &[&str]) -> String {
    let fields: String = fields.iter().map(|field| format!("  {field}\n")).collect();
    format!(
        "---\napiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec:\n  network: {NETWORK}\n{fields}"
    )
}

/// Returns the Node `nN`: its address is 10.0.0.1N, its pods are in 10.1.N.0/24.
pub fn node(number: u8) -> String {
    format!(
        "---
apiVersion: v1
kind: Node
metadata: {{name: n{number}}}
spec: {{podCIDR: 10.1.{number}.0/24}}
status: {{addresses: [{{type: InternalIP, address: 10.0.0.{}}}]}}
",
        10 + number
    )
}

/// A ready Node, whose providerID, labels and ranges the test chooses. It is displayed as its
/// document.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadyNode<'a> {
    /// The number of the node, which is called `nN`.
    pub number: u32,
    /// The address of the node in the cluster's network.
    pub address: &'a str,
    /// The labels of the node, as the entries of a YAML mapping.
    pub labels: &'a str,
    /// The fields of the node's `spec`.
    pub spec: &'a str,
    /// Further entries of `status.addresses`, each after a comma.
    pub more_addresses: &'a str,
}

impl fmt::Display for ReadyNode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, address, labels, spec, more_addresses } = self;
        write!(
            f,
            "---\n{{apiVersion: v1, kind: Node, metadata: {{name: n{number}, labels: {{{labels}}}}}, \
             spec: {{{spec}}}, status: {{conditions: [{{type: Ready, status: 'True'}}], addresses: \
             [{{type: InternalIP, address: {address}}}{more_addresses}]}}}}\n"
        )
    }
}

/// Returns the Deployment `NAME`. Its pods have the label `app: NAME` and declare port 80.
pub fn deployment(name: &str, replicas: u32) -> String {
    format!(
        "---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: shop}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec: {{containers: [{{name: c, image: c, ports: [{{containerPort: 80}}]}}]}}
"
    )
}

/// Returns the Service `web` of type LoadBalancer for the pods with the label `app: web`, with these
/// annotations and fields of `spec`, and addresses of a load balancer, as entries of YAML mappings.
pub fn balanced_service(cluster_ip: &str, notes: &str, spec: &str, addresses: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop, annotations: {{{notes}}}}}
spec:
  type: LoadBalancer
  clusterIP: {cluster_ip}
  selector: {{app: web}}
  {spec}
  ports: [{{port: 80, nodePort: 30080}}]
status: {{loadBalancer: {{ingress: [{addresses}]}}}}
"
    )
}

/// A Pod with one container. It is displayed as its document.
#[derive(Clone, Copy, Debug)]
pub struct RunningPod<'a> {
    /// The namespace of the pod.
    pub namespace: &'a str,
    /// The name of the pod.
    pub name: &'a str,
    /// The value of the pod's label `app`.
    pub app: &'a str,
    /// The number of the [`ReadyNode`] that the pod is on.
    pub node: u32,
    /// The address of the pod.
    pub address: &'a str,
    /// The image of the container, and further fields of the container after a comma.
    pub image: &'a str,
    /// Further containers, each after a comma.
    pub more_containers: &'a str,
    /// Whether the pod is in its node's network.
    pub host_network: bool,
    /// The entries of the container's `ports`.
    pub ports: &'a str,
    /// Whether the pod is ready: `True` or `False`.
    pub ready: &'a str,
}

impl Default for RunningPod<'_> {
    fn default() -> Self {
        Self {
            namespace: "shop",
            name: "web",
            app: "web",
            node: 1,
            address: "",
            image: "c",
            more_containers: "",
            host_network: false,
            ports: "{containerPort: 8080}",
            ready: "True",
        }
    }
}

impl fmt::Display for RunningPod<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, name, app, node, address, image, more_containers, .. } = self;
        let Self { host_network, ports, ready, .. } = self;
        write!(
            f,
            "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: {namespace}, labels: \
             {{app: {app}}}}}, spec: {{nodeName: n{node}, hostNetwork: {host_network}, containers: \
             [{{name: c, image: {image}, ports: [{ports}]}}{more_containers}]}}, status: {{phase: Running, podIP: {address}, \
             podIPs: [{{ip: {address}}}], conditions: [{{type: Ready, status: '{ready}'}}]}}}}\n"
        )
    }
}
