//! Reads pods and pod templates.

use std::cell::RefCell;
use std::net::IpAddr;

use uturn_document::{Faults, Node, Value};
use uturn_model::pod::{
    ConfigFile, Container, ContainerPort, DnsPolicy, Phase, PodSpec, READ_VARIABLES, numbers,
};
use uturn_model::{
    Labels, Name, NamespacedName, ObjectRef, Pod, Port, Selector, Text, WorkloadKind,
};

use super::lenient::items;
use super::objects::Objects;
use super::value::{Loose, one_of};
use super::{
    Doc, FromNode, calico, called_names, config_source, fields, meta, scheduling, selector, service,
};

/// Reads a Pod.
pub(crate) fn read(doc: &Doc<'_>, objects: &mut Objects) {
    let Some(meta) = meta::read(doc) else { return };
    let spec_node = doc.map(doc.root, "spec");
    calico::look_into(doc, spec_node, objects);
    let spec = spec(doc, spec_node, meta.labels, meta.annotations);
    let node = spec_node.and_then(|spec| {
        let node = spec.get("nodeName").filter(|node| node.as_str() != Some(""))?;
        doc.value::<Name>(node)
    });
    let owner = owner(doc, &meta.name);
    let mut pod = Pod {
        spec: objects.share_spec(owner.as_ref(), spec),
        node,
        ips: Vec::new(),
        phase: Phase::Pending,
        ready: false,
        deciding_gates: Vec::new(),
        terminating: meta.terminating,
        owner,
        supposed: false,
        origin: meta.origin,
        name: meta.name,
    };
    // `status: {}` is written by a kubectl that has not contacted a cluster.
    let is_empty =
        |status: &&Node<'_>| matches!(&status.value, Value::Map(entries) if entries.is_empty());
    match doc.map(doc.root, "status").filter(|status| !is_empty(status)) {
        Some(status) => {
            read_status(doc, status, &mut pod);
            pod.deciding_gates = deciding_gates(doc, spec_node, status);
            if let Some(node) = pod.node.as_ref().filter(|_| !pod.ips.is_empty()) {
                read_host(doc, status, node, objects);
            }
        }
        // A pod without a status was written by hand and is assumed to be ready.
        None if pod.node.is_some() => (pod.phase, pod.ready) = (Phase::Running, true),
        None => objects.written_pods.push(pod.name.clone()),
    }
    objects.pods.add(doc, pod.name.clone(), pod);
}

fn read_status<'d>(doc: &Doc<'d>, status: &'d Node<'d>, pod: &mut Pod) {
    pod.ips =
        doc.maps(status, "podIPs").filter_map(|item| doc.need::<IpAddr>(item, "ip")).collect();
    if pod.ips.is_empty()
        && let Some(ip) = status.get("podIP").filter(|ip| ip.as_str() != Some(""))
    {
        pod.ips.extend(doc.value::<IpAddr>(ip));
    }
    let phase = doc.read::<Phase>(status, "phase");
    let conditions = doc.items(status, "conditions");
    let ready = conditions.iter().find(|condition| is(condition, "type", "Ready"));
    pod.phase = phase.unwrap_or(if pod.ips.is_empty() { Phase::Pending } else { Phase::Running });
    pod.ready = match ready {
        Some(ready) => is(ready, "status", "True"),
        None => conditions.is_empty() && pod.phase == Phase::Running && pod.node.is_some(),
    };
}

/// Reads the addresses of a pod's node from the pod's status.
fn read_host<'d>(doc: &Doc<'d>, status: &'d Node<'d>, node: &Name, objects: &mut Objects) {
    let mut ips: Vec<IpAddr> =
        doc.maps(status, "hostIPs").filter_map(|item| doc.need(item, "ip")).collect();
    if ips.is_empty()
        && let Some(ip) = status.get("hostIP").filter(|ip| ip.as_str() != Some(""))
    {
        ips.extend(doc.value::<IpAddr>(ip));
    }
    let known = objects.host_addresses.entry(node.clone()).or_default();
    known.extend(ips.into_iter().filter(|ip| !known.contains(ip)).collect::<Vec<_>>());
}

/// Returns the readiness gates that decide whether a pod is ready. If there are unmet gates, only
/// those are returned.
fn deciding_gates<'d>(
    doc: &Doc<'d>,
    spec: Option<&'d Node<'d>>,
    status: &'d Node<'d>,
) -> Vec<Text> {
    let conditions = doc.items(status, "conditions");
    let is_true = |kind: &str| {
        let condition = conditions.iter().find(|condition| is(condition, "type", kind));
        condition.is_some_and(|condition| is(condition, "status", "True"))
    };
    if !is_true("ContainersReady") {
        return Vec::new();
    }
    let gates = spec.map(|spec| doc.maps(spec, "readinessGates")).into_iter().flatten();
    let gates = gates.filter_map(|gate| doc.read::<Text>(gate, "conditionType"));
    let (open, closed): (Vec<_>, Vec<_>) = gates.partition(|gate| is_true(gate));
    if closed.is_empty() { open } else { closed }
}

fn is(node: &Node<'_>, key: &str, value: &str) -> bool {
    node.get(key).and_then(Node::as_str) == Some(value)
}

impl FromNode for Phase {
    const EXPECTED: &'static str = "a phase";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        one_of(
            node,
            &[
                ("Pending", Self::Pending),
                ("Running", Self::Running),
                ("Succeeded", Self::Succeeded),
                ("Failed", Self::Failed),
                ("Unknown", Self::Unknown),
            ],
        )
    }
}

impl FromNode for DnsPolicy {
    const EXPECTED: &'static str = "a DNS policy";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        one_of(
            node,
            &[
                ("ClusterFirst", Self::ClusterFirst),
                ("ClusterFirstWithHostNet", Self::ClusterFirstWithHostNet),
                ("Default", Self::Default),
                ("None", Self::None),
            ],
        )
    }
}

/// Returns the workload that controls the pod, as far as the pod states it: a ReplicaSet rather
/// than its Deployment.
fn owner(doc: &Doc<'_>, name: &NamespacedName) -> Option<ObjectRef> {
    let meta = doc.root.get("metadata")?;
    let owner = doc.maps(meta, "ownerReferences").next()?;
    let kind = match owner.get("kind")?.as_str()? {
        "ReplicaSet" => WorkloadKind::ReplicaSet,
        "StatefulSet" => WorkloadKind::StatefulSet,
        "DaemonSet" => WorkloadKind::DaemonSet,
        "Job" => WorkloadKind::Job,
        "ReplicationController" => WorkloadKind::ReplicationController,
        "CloneSet" => WorkloadKind::CloneSet,
        _ => return None,
    };
    let owner_name = owner.get("name")?.as_str()?;
    Some(ObjectRef {
        kind: kind.into(),
        namespace: Some(name.namespace.clone()),
        name: owner_name.into(),
    })
}

/// Reads a pod's `spec`, to which the labels and annotations beside it are added.
pub(crate) fn spec<'d>(
    doc: &Doc<'d>,
    spec: Option<&'d Node<'d>>,
    labels: Labels,
    annotations: Labels,
) -> PodSpec {
    let mut read = PodSpec { labels, annotations, ..PodSpec::default() };
    let Some(spec) = spec else { return read };
    doc.spelled(spec, fields::POD);
    read.host_network = doc.read(spec, "hostNetwork").unwrap_or_default();
    read.containers = doc.maps(spec, "containers").map(|item| container(doc, item)).collect();
    let sidecars =
        doc.maps(spec, "initContainers").filter(|item| is(item, "restartPolicy", "Always"));
    read.containers.extend(sidecars.map(|item| container(doc, item)));
    add_sources(spec, &mut read.containers);
    read.dns_policy = doc.read(spec, "dnsPolicy").unwrap_or_default();
    if let Some(config) = doc.map(spec, "dnsConfig") {
        read.dns_nameservers = doc.list(config, "nameservers");
        read.dns_searches = doc.list(config, "searches");
        read.dns_ndots = doc
            .maps(config, "options")
            .find(|item| is(item, "name", "ndots"))
            .and_then(|item| doc.read::<Loose>(item, "value")?.0.parse().ok());
    }
    read.hostname = doc.read(spec, "hostname");
    read.subdomain = doc.read(spec, "subdomain");
    for alias in doc.maps(spec, "hostAliases") {
        let Some(ip) = doc.need::<IpAddr>(alias, "ip") else { continue };
        let names = doc.list::<Text>(alias, "hostnames");
        read.host_aliases.extend(names.into_iter().map(|name| (name, ip)));
    }
    read.placement = scheduling::placement(doc, spec);
    read.anti_affinity = anti_affinity(doc, spec);
    read.files = files(doc, spec);
    read
}

/// Sets the ConfigMaps that containers read.
fn add_sources(spec: &Node<'_>, containers: &mut [Container]) {
    for item in ["containers", "initContainers"].into_iter().flat_map(|key| items(spec, key)) {
        let name = item.get("name").and_then(Node::as_str).unwrap_or_default();
        if let Some(own) = containers.iter_mut().find(|own| *own.name == *name) {
            own.reads = config_source::read(spec, item);
        }
    }
}

/// The servers whose configurations are kept, beside CoreDNS.
const SERVERS: [&str; 2] = ["nginx", "haproxy"];

/// Returns the files that ConfigMaps mount into containers of servers.
fn files<'d>(doc: &Doc<'d>, spec: &'d Node<'d>) -> Vec<ConfigFile> {
    let mut files = Vec::new();
    // The faults of the container are reported where the container is read.
    let ignored = RefCell::new(Faults::default());
    let trial = Doc::new(doc.file, doc.root, &ignored);
    let is_server = |item: &&Node<'_>| {
        let container = container(&trial, item);
        SERVERS.contains(&container.program()) || container.runs_coredns()
    };
    for mount in doc
        .maps(spec, "containers")
        .filter(is_server)
        .flat_map(|item| doc.maps(item, "volumeMounts"))
    {
        let is_it = |volume: &&Node<'_>| {
            volume
                .get("name")
                .is_some_and(|name| name.as_str() == mount.get("name").and_then(Node::as_str))
        };
        let volume = doc.maps(spec, "volumes").find(is_it);
        let Some(map) = volume.and_then(|volume| doc.map(volume, "configMap")) else { continue };
        let Some(config_map) = doc.read::<Text>(map, "name") else { continue };
        let Some(path) = doc.need::<Text>(mount, "mountPath") else { continue };
        let file = |path: Text, key| ConfigFile {
            path,
            config_map: config_map.clone(),
            key,
            alone: mount.get("subPath").is_some(),
            text: None,
        };
        let items: Vec<(Text, Text)> = doc
            .maps(map, "items")
            .filter_map(|item| Some((doc.need(item, "key")?, doc.need(item, "path")?)))
            .collect();
        match doc.read::<Text>(mount, "subPath") {
            Some(sub) => {
                let key = items.iter().find(|(_, path)| *path == sub).map(|(key, _)| key.clone());
                files.push(file(path, Some(key.unwrap_or(sub))));
            }
            None if items.is_empty() => files.push(file(path, None)),
            None => files.extend(items.into_iter().map(|(key, name)| {
                file(format!("{}/{name}", path.trim_end_matches('/')).into(), Some(key))
            })),
        }
    }
    files
}

/// Returns the variables that are read. Variables whose values come from elsewhere are left out.
fn environment(container: &Node<'_>) -> Labels {
    variables(container).filter(|(name, _)| READ_VARIABLES.contains(name)).collect()
}

/// Returns all numbers in variables that may be ports.
fn configured(container: &Node<'_>) -> Vec<Port> {
    let mut all: Vec<Port> = variables(container).flat_map(|(_, value)| numbers(value)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Iterates over the variables whose values are stated here.
fn variables<'n>(container: &'n Node<'_>) -> impl Iterator<Item = (&'n str, &'n str)> {
    items(container, "env").iter().filter_map(|variable| {
        let name = variable.get("name").and_then(Node::as_str)?;
        Some((name, variable.get("value").and_then(Node::as_str)?))
    })
}

fn container<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Container {
    doc.spelled(node, fields::CONTAINER);
    // A null item is an empty text, as in the API server.
    let word = |word: &Node<'_>| match word.value {
        Value::Null => Some("".into()),
        _ => doc.value::<Text>(word),
    };
    let words = |key| doc.items(node, key).iter().filter_map(word);
    let arguments: Vec<Text> = words("command").chain(words("args")).collect();
    let values = variables(node).map(|(_, value)| value);
    let called = called_names::read(arguments.iter().map(|word| &**word).chain(values));
    let ports: Vec<ContainerPort> = doc
        .maps(node, "ports")
        .filter_map(|port| {
            doc.spelled(port, fields::CONTAINER_PORT);
            let protocol = service::protocol(doc, port);
            Some(ContainerPort {
                name: doc.read(port, "name"),
                port: doc.need(port, "containerPort")?,
                protocol,
                host_port: port
                    .get("hostPort")
                    .filter(|port| u16::from_node(port) != Ok(0))
                    .and_then(|port| doc.value(port)),
                host_ip: port.get("hostIP").and_then(Node::as_str).and_then(|ip| ip.parse().ok()),
            })
        })
        .collect();
    Container {
        name: doc.read(node, "name").unwrap_or_else(|| "".into()),
        image: doc.read(node, "image").unwrap_or_else(|| "".into()),
        arguments,
        environment: environment(node),
        probed: probed(node, &ports),
        readiness: readiness(node),
        configured: configured(node),
        reads: Vec::new(),
        called,
        ports,
    }
}

/// Returns the ports of probes. Probes do not affect flows, so invalid ones are ignored.
fn probed(container: &Node<'_>, ports: &[ContainerPort]) -> Vec<Port> {
    let probes = ["readinessProbe", "livenessProbe", "startupProbe"].into_iter();
    let asked = probes.filter_map(|probe| {
        let probe = container.get(probe)?;
        let ways = ["httpGet", "tcpSocket", "grpc"].into_iter();
        let port = ways.filter_map(|way| probe.get(way)?.get("port")).next()?;
        let named = || {
            let name = port.as_str()?;
            ports.iter().find(|port| port.name.as_deref() == Some(name)).map(|port| port.port)
        };
        u16::from_node(port).ok().and_then(Port::new).or_else(named)
    });
    let mut asked: Vec<Port> = asked.collect();
    asked.sort_unstable();
    asked.dedup();
    asked
}

/// Describes what a readiness probe asks. Returns `None` if the container has none.
fn readiness(container: &Node<'_>) -> Option<Text> {
    let probe = container.get("readinessProbe")?;
    let port = |way: &Node<'_>| {
        let port = way.get("port")?;
        port.as_str().map(str::to_owned).or_else(|| Some(u16::from_node(port).ok()?.to_string()))
    };
    let at = |way: &Node<'_>| port(way).map_or_else(String::new, |port| format!(" at {port}"));
    let words = if let Some(way) = probe.get("httpGet") {
        let path = way.get("path").and_then(Node::as_str).unwrap_or("/");
        format!("GET {path}{}", at(way))
    } else if let Some(way) = probe.get("tcpSocket") {
        format!("a connection{}", at(way))
    } else if let Some(way) = probe.get("grpc") {
        format!("a gRPC health check{}", at(way))
    } else if probe.get("exec").is_some() {
        "a command in the container".to_owned()
    } else {
        return None;
    };
    Some(words.into())
}

fn anti_affinity<'d>(doc: &Doc<'d>, spec: &'d Node<'d>) -> Vec<Selector> {
    let terms = doc
        .map(spec, "affinity")
        .and_then(|affinity| doc.map(affinity, "podAntiAffinity"))
        .map(|anti| doc.items(anti, "requiredDuringSchedulingIgnoredDuringExecution"));
    let by_host = |term: &&Node<'_>| is(term, "topologyKey", "kubernetes.io/hostname");
    let terms = terms.unwrap_or_default().iter().filter(by_host);
    terms.filter_map(|term| selector::read(doc, term, "labelSelector")).collect()
}
