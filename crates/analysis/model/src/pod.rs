//! Pods.

use std::net::IpAddr;
use std::sync::Arc;

use crate::{
    Family, Labels, Name, NamespacedName, ObjectKind, ObjectRef, Origin, Port, Protocol, Text,
};

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its name.
    pub name: NamespacedName,
    /// The part that comes from its template. Pods that are derived from one workload share it.
    pub spec: Arc<PodSpec>,
    /// The node that it runs on; `None` while it is pending.
    pub node: Option<Name>,
    /// `status.podIPs`, the primary one first.
    pub ips: Vec<IpAddr>,
    /// Its phase.
    pub phase: Phase,
    /// Its Ready condition.
    pub ready: bool,
    /// The readiness gates that decide whether it is ready: those that are closed, or all if none
    /// is. Empty if its containers are not ready, which decides first.
    pub deciding_gates: Vec<Text>,
    /// Whether it has a `deletionTimestamp`.
    pub terminating: bool,
    /// The top-level workload that owns it, if known.
    pub owner: Option<ObjectRef>,
    /// Whether there is no Pod object: it represents a pod that its workload will create.
    pub supposed: bool,
    /// Where it was written.
    pub origin: Origin,
}

impl Pod {
    /// Returns a reference to the pod.
    pub fn object(&self) -> ObjectRef {
        ObjectRef::namespaced(ObjectKind::Pod, &self.name)
    }

    /// Returns its first address of a family.
    pub fn address(&self, family: Family) -> Option<IpAddr> {
        self.ips.iter().copied().find(|ip| Family::of(*ip) == family)
    }

    /// Returns whether a readiness gate decides whether the pod is ready.
    pub fn is_decided_by(&self, gate: &str) -> bool {
        self.deciding_gates.iter().any(|deciding| **deciding == *gate)
    }

    /// Returns whether the pod is scheduled and has not ended.
    pub fn is_alive(&self) -> bool {
        self.node.is_some() && matches!(self.phase, Phase::Running | Phase::Pending)
    }
}

/// `status.phase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the Kubernetes phase of that name")]
pub enum Phase {
    Pending,
    Running,
    Succeeded,
    Failed,
    Unknown,
}

/// The part of a pod that comes from its template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSpec {
    /// Labels.
    pub labels: Labels,
    /// Annotations.
    pub annotations: Labels,
    /// Whether it uses the host network.
    pub host_network: bool,
    /// Long-running containers (including sidecars), in order.
    pub containers: Vec<Container>,
    /// The DNS policy.
    pub dns_policy: DnsPolicy,
    /// `dnsConfig.nameservers`.
    pub dns_nameservers: Vec<IpAddr>,
    /// `dnsConfig.searches`.
    pub dns_searches: Vec<Text>,
    /// `dnsConfig.options` `ndots`.
    pub dns_ndots: Option<u8>,
    /// `hostname`, if it is not the pod's name.
    pub hostname: Option<Text>,
    /// `subdomain`: the headless Service below which it has a name.
    pub subdomain: Option<Text>,
    /// `hostAliases`.
    pub host_aliases: Vec<(Text, IpAddr)>,
    /// The rules for the nodes on which it may run.
    pub placement: crate::scheduling::Placement,
    /// Pods with which it must not share a node (`requiredDuringScheduling…`, by hostname).
    pub anti_affinity: Vec<crate::Selector>,
    /// Files from ConfigMaps in containers of servers: the configuration of nginx, HAProxy or
    /// CoreDNS. Other mounts are ignored.
    pub files: Vec<ConfigFile>,
}

impl PodSpec {
    /// Returns whether pods ask the cluster's name servers.
    pub fn asks_cluster_dns(&self) -> bool {
        match self.dns_policy {
            DnsPolicy::ClusterFirst => !self.host_network,
            DnsPolicy::ClusterFirstWithHostNet => true,
            DnsPolicy::Default | DnsPolicy::None => false,
        }
    }

    /// Returns the port that a Service's named `targetPort` refers to in this pod.
    pub fn named_port(&self, name: &str, protocol: Protocol) -> Option<Port> {
        self.ports()
            .find(|port| port.protocol == protocol && port.name.as_deref() == Some(name))
            .map(|port| port.port)
    }

    /// Returns whether the kubelet probes a TCP port of one of its containers.
    pub fn is_probed(&self, port: Port) -> bool {
        self.containers.iter().any(|container| container.probed.contains(&port))
    }

    /// Returns all ports that its containers declare.
    pub fn ports(&self) -> impl Iterator<Item = &ContainerPort> {
        self.containers.iter().flat_map(|container| &container.ports)
    }
}

/// The environment variables of containers that are read: those with settings of Ingress
/// controllers and load balancers. Values of others may be secrets.
pub const READ_VARIABLES: [&str; 6] = [
    "CONTROLLER_INGRESS_CLASS",
    "CONTROLLER_PUBLISH_SERVICE",
    "CONTROLLER_WATCH_NAMESPACE",
    "KONG_PROXY_LISTEN",
    "bgp_enable",
    "svc_election",
];

/// A container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Its name.
    pub name: Text,
    /// Its image, with tag.
    pub image: Text,
    /// `command` and `args` in sequence (which contain kube-proxy's settings).
    pub arguments: Vec<Text>,
    /// The environment variables that are read ([`READ_VARIABLES`]), as they are written.
    pub environment: Labels,
    /// The ports that it declares.
    pub ports: Vec<ContainerPort>,
    /// Ports with TCP or HTTP probes: while the container is ready, it listens on them.
    pub probed: Vec<Port>,
    /// What its readiness probe asks, in words: `GET /ready at http`. `None` if it has none.
    pub readiness: Option<Text>,
    /// Numbers in values of its environment that may be ports.
    pub configured: Vec<Port>,
    /// The ConfigMaps that it reads.
    pub reads: Vec<ConfigSource>,
    /// Names that its command line, its environment or, in a template, a ConfigMap that it reads
    /// calls: the hosts of URLs, of `HOST:PORT`, and names below `svc`. Others than names of Services
    /// are among them.
    pub called: Vec<CalledName>,
}

impl Container {
    /// Returns whether its command line or its environment contains the number of a port.
    pub fn mentions(&self, port: Port) -> bool {
        let mut words = self.arguments.iter().flat_map(|word| numbers(word));
        self.configured.contains(&port) || words.any(|number| number == port)
    }

    /// Returns the name of its image without registry and tag.
    pub fn program(&self) -> &str {
        crate::image::name(&self.image)
    }

    /// Returns whether it runs CoreDNS, as its image, its command or its arguments say. The cache on
    /// each node is a CoreDNS too.
    pub fn runs_coredns(&self) -> bool {
        let is_one = |name: &str| name.ends_with("coredns") || is_node_cache(name);
        let command = self.arguments.first().and_then(|word| word.rsplit('/').next());
        let file = self.argument("conf").and_then(|path| path.rsplit('/').next());
        is_one(self.program())
            || command.is_some_and(is_one)
            || file.is_some_and(|file| file.starts_with("Corefile"))
    }

    /// Returns whether it runs the cache on each node, `NodeLocal DNSCache`.
    pub fn is_node_cache(&self) -> bool {
        is_node_cache(self.program())
    }

    /// Returns the value of an argument such as `-conf PATH` or `--conf=PATH`.
    pub fn argument(&self, name: &str) -> Option<&str> {
        let mut words = self.arguments.iter();
        words
            .find_map(|word| {
                let rest = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
                match rest.strip_prefix(name)? {
                    "" => Some(None),
                    value => Some(Some(value.strip_prefix('=')?)),
                }
            })?
            .or_else(|| words.next().map(|word| &**word))
    }
}

/// A name that a container calls.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CalledName {
    /// The name.
    pub host: Text,
    /// The port, if it is stated or its scheme has one.
    pub port: Option<Port>,
    /// The ConfigMap that states it, in the pod's namespace; `None` for the command line and the
    /// environment.
    pub stated_in: Option<Text>,
    /// Whether it is only supposed that the container reads this ConfigMap.
    pub is_supposed: bool,
}

/// A ConfigMap of the pod's namespace that a container reads: as files, or as variables.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigSource {
    /// Its name.
    pub config_map: Text,
    /// The key that is read; `None` for all.
    pub key: Option<Text>,
}

fn is_node_cache(program: &str) -> bool {
    program.ends_with("node-cache")
}

/// Returns the numbers in a text that may be ports: `8080` of `--listen=0.0.0.0:8080`.
pub fn numbers(text: &str) -> impl Iterator<Item = Port> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    words.filter_map(|word| word.parse().ok())
}

/// A file that a ConfigMap mounts into a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFile {
    /// Its path; the path of the folder if no key is named.
    pub path: Text,
    /// The ConfigMap, in the pod's namespace.
    pub config_map: Text,
    /// The ConfigMap's key; `None` if all keys are files of a folder.
    pub key: Option<Text>,
    /// Whether it is mounted as a single file (`subPath`) rather than over its folder.
    pub alone: bool,
    /// Its content, if the ConfigMap is known and has the key.
    pub text: Option<Text>,
}

/// A port of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerPort {
    /// Its name.
    pub name: Option<Text>,
    /// Its number.
    pub port: Port,
    /// Its protocol.
    pub protocol: Protocol,
    /// The node's port that is forwarded to the container's.
    pub host_port: Option<Port>,
    /// The node's address at which that port is forwarded; `None` for all of its addresses.
    pub host_ip: Option<IpAddr>,
}

/// `dnsPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DnsPolicy {
    /// The cluster's DNS; a hostNetwork pod falls back to the node's.
    #[default]
    ClusterFirst,
    /// The cluster's DNS, also for hostNetwork pods.
    ClusterFirstWithHostNet,
    /// The node's resolv.conf.
    Default,
    /// Only `dnsConfig`.
    None,
}
