//! Pods.

use std::net::IpAddr;

use crate::{Family, Kind, Labels, Name, NamespacedName, ObjectRef, Origin, Port, Protocol, Text};

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its name.
    pub name: NamespacedName,
    /// What every pod of its template shares.
    pub spec: PodSpec,
    /// The node it runs on; none while it waits for one.
    pub node: Option<Name>,
    /// `status.podIPs`, the primary one first.
    pub ips: Vec<IpAddr>,
    /// Its phase.
    pub phase: Phase,
    /// Its Ready condition.
    pub ready: bool,
    /// It has a `deletionTimestamp`.
    pub terminating: bool,
    /// The workload at the top of its owners, as far as it can be told.
    pub owner: Option<ObjectRef>,
    /// Whether no object says it: it stands for a pod that its workload will make.
    pub supposed: bool,
    /// Where it was written.
    pub origin: Origin,
}

impl Pod {
    /// Itself, to be named.
    pub fn object(&self) -> ObjectRef {
        ObjectRef::namespaced(Kind::Pod, &self.name)
    }

    /// Its first address of a family.
    pub fn address(&self, family: Family) -> Option<IpAddr> {
        self.ips.iter().copied().find(|ip| Family::of(*ip) == family)
    }

    /// Whether it runs: it has a node and has not ended.
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

/// What a pod and the template it came from have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSpec {
    /// Labels.
    pub labels: Labels,
    /// Annotations.
    pub annotations: Labels,
    /// Shares the node's network.
    pub host_network: bool,
    /// Containers that keep running (sidecars too), in order.
    pub containers: Vec<Container>,
    /// How it resolves names.
    pub dns_policy: DnsPolicy,
    /// `dnsConfig.nameservers`.
    pub dns_nameservers: Vec<IpAddr>,
    /// `dnsConfig.searches`.
    pub dns_searches: Vec<Text>,
    /// `dnsConfig.options` `ndots`.
    pub dns_ndots: Option<u8>,
    /// `hostname`, where it is not the pod's name.
    pub hostname: Option<Text>,
    /// `subdomain`: the headless Service that it has a name below.
    pub subdomain: Option<Text>,
    /// `hostAliases`: names it knows by itself.
    pub host_aliases: Vec<(Text, IpAddr)>,
    /// `nodeSelector`.
    pub node_selector: Labels,
    /// Pods it refuses to share a node with (`requiredDuringScheduling…`, by hostname).
    pub anti_affinity: Vec<crate::Selector>,
    /// What ConfigMaps bring to its containers of nginx: that program's configuration. Nothing
    /// else that is mounted is kept.
    pub files: Vec<ConfigFile>,
}

impl PodSpec {
    /// The port a Service's named `targetPort` means in this pod.
    pub fn named_port(&self, name: &str, protocol: Protocol) -> Option<Port> {
        self.ports()
            .find(|port| port.protocol == protocol && port.name.as_deref() == Some(name))
            .map(|port| port.port)
    }

    /// Whether one of its containers is asked by the kubelet at a TCP port.
    pub fn is_probed(&self, port: Port) -> bool {
        self.containers.iter().any(|container| container.probed.contains(&port))
    }

    /// All ports its containers say they listen on.
    pub fn ports(&self) -> impl Iterator<Item = &ContainerPort> {
        self.containers.iter().flat_map(|container| &container.ports)
    }
}

/// A container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Its name.
    pub name: Text,
    /// Its image, with tag.
    pub image: Text,
    /// Its arguments, `command` and `args` in a row (settings of kube-proxy stand here).
    pub arguments: Vec<Text>,
    /// Ports it says it listens on.
    pub ports: Vec<ContainerPort>,
    /// Ports that the kubelet's probes ask by TCP or HTTP: while it is ready, it listens there.
    pub probed: Vec<Port>,
}

impl Container {
    /// The program that its image is named after: neither registry nor tag.
    pub fn program(&self) -> &str {
        let image = self.image.split('@').next().unwrap_or_default();
        let name = image.rsplit('/').next().unwrap_or_default();
        name.split(':').next().unwrap_or_default()
    }
}

/// A file in a container that a ConfigMap brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFile {
    /// Where it is; the folder, where no key is named.
    pub path: Text,
    /// The ConfigMap, in the pod's namespace.
    pub config_map: Text,
    /// The ConfigMap's key; none where all of them are files of a folder.
    pub key: Option<Text>,
    /// Whether it is put beside what the image has there, and does not cover its folder.
    pub alone: bool,
    /// What is in it, where the ConfigMap is known and has that key.
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
    /// The node's port that leads here.
    pub host_port: Option<Port>,
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
