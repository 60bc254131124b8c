//! Findings that need no walk: objects that cannot do what they are written for, or that will fail
//! in a situation that has not occurred yet.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use uturn_clouds::cloud::{self, Maker, Targets};
use uturn_clouds::targets;
use uturn_model::ingress::{Backend, BackendPort};
use uturn_model::lb::{HealthQuestion, Listener, Scope, TargetKind};
use uturn_model::node::EXCLUDE_FROM_LOAD_BALANCERS;
use uturn_model::service::{Policy, ServiceKind, ServicePort, TargetPort};
use uturn_model::{
    Cluster, Evidence, Family, Name, NamespacedName, Node, ObjectRef, Origin, Outcome, Pod,
    Protocol, ProxyMode, Service, Share, Text, Unknown, WorkloadKind,
};
use uturn_path::Engine;

use super::{MAX_PAIRS, hints};
use crate::clients::{Clients, Example};
use crate::finding::Finding;
use crate::typos::are_names_alike;
use crate::{Code, Observation, Severity};

pub(crate) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let mut all = Vec::new();
    all.extend(request_ignored(engine));
    if is_small(engine.cluster()) {
        all.extend(all_registered(engine));
    }
    all.extend(two_owners(engine));
    let pods = PodsByNamespace::of(engine.cluster());
    all.extend(replacing(engine, &pods));
    all.extend(hints::find(engine, &pods));
    all
}

/// Finds the faults that replace a less specific finding about the same object.
pub(crate) fn that_replace(engine: &Engine<'_>) -> Vec<Finding> {
    replacing(engine, &PodsByNamespace::of(engine.cluster()))
}

fn replacing(engine: &Engine<'_>, pods: &PodsByNamespace<'_>) -> Vec<Finding> {
    let mut all = backends(engine);
    if is_small(engine.cluster()) {
        // A missing backend implies missing targets, so the latter are not reported.
        let is_known = |new: &Finding| all.iter().any(|other| other.subject == new.subject);
        let targets: Vec<Finding> =
            without_targets(engine).into_iter().filter(|new| !is_known(new)).collect();
        all.extend(targets);
    }
    all.extend(named_port(engine, pods));
    all
}

/// Returns whether the targets of all load balancers are looked at.
fn is_small(cluster: &Cluster) -> bool {
    cluster.nodes.len() * cluster.services.len() <= MAX_PAIRS
}

/// Creates a finding about the text of an object.
pub(crate) fn about(code: Code, subject: ObjectRef, origin: &Origin, what: String) -> Finding {
    let by = Evidence::object(subject.clone(), origin.clone());
    Finding {
        code,
        severity: code.severity(),
        subject,
        targets: Vec::new(),
        clients: Clients::default(),
        share_failing: Share::NONE,
        outcome: Outcome::AT_ONCE,
        mechanism: None,
        example: Example::Manifests,
        failure: None,
        other_evidence: vec![Observation { place: None, what: what.into(), by }],
        cures: Vec::new(),
        untried: None,
        conditions: Vec::new(),
    }
}

/// Finds Services that request their addresses to be bound, if kube-proxy does not know the
/// request.
fn request_ignored(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    let proxy = &cluster.proxy;
    let Some(builds) = cloud::builds_of(proxy.variant.value) else { return Vec::new() };
    if proxy.mode.value != ProxyMode::Ipvs || proxy.address_binding.honours_request() {
        return Vec::new();
    }
    let asking = cluster.services.values().filter(|service| {
        service.kind == ServiceKind::LoadBalancer && service.annotations.is(builds.request, "true")
    });
    let fixed = (builds.first_honouring)(proxy.version.value).map(|version| version.to_string());
    let finding = |service: &Service| {
        let what = format!(
            "kube-proxy {} ({}) does not know {}; {} is the first that does",
            proxy.version.value,
            proxy.version.basis,
            builds.request,
            fixed.as_deref().unwrap_or("a newer line")
        );
        let mut finding = about(Code::RequestUnheard, service.object(), &service.origin, what);
        if proxy.version.is_supposed() {
            finding.conditions.push(format!("kube-proxy is {}", proxy.version.value).into());
        }
        finding
    };
    asking.map(finding).collect()
}

/// Finds listeners that have no targets.
fn without_targets(engine: &Engine<'_>) -> Vec<Finding> {
    let mut all: Vec<Finding> = Vec::new();
    let listeners = engine.balancers().iter().flat_map(|balancer| {
        balancer.listeners.iter().map(move |listener| (balancer.vip, listener))
    });
    for (vip, listener) in listeners {
        for rule in
            listener.rules.iter().filter(|rule| rule.targets.is_empty() && rule.redirect.is_none())
        {
            let Some(service) = engine.cluster().services.get(&rule.service) else { continue };
            if !engine.is_judged(rule) {
                continue;
            }
            let label =
                cloud::model(engine.cluster()).and_then(|model| model.target_label(service));
            let why = match label {
                Some(_) if engine.cluster().nodes.values().any(|node| node.supposed) => continue,
                Some(label) if !engine.cluster().nodes.is_empty() => {
                    format!("no node has the label {label} that {} asks for", service.object())
                }
                _ if service.ports.iter().all(|port| port.node_port.is_none()) => {
                    format!("{} has no NodePort, and its pods are no targets", service.object())
                }
                _ => match silence(engine.cluster(), service, vip)
                    .or_else(|| excluded_nodes(engine.cluster(), service))
                {
                    Some(why) => why,
                    // The finding that the Service has no endpoints is more specific.
                    None if !targets::has_endpoint(engine.cluster(), service) => continue,
                    None => {
                        let object = service.object();
                        format!("{object} has neither pods nor nodes that could be targets")
                    }
                },
            };
            let origin = engine.origin_of(&rule.owner);
            let mut finding = about(Code::NoTargets, rule.owner.clone(), &origin, why);
            if let Some(condition) = placement(engine.cluster(), service) {
                finding.severity = Severity::Warning;
                finding.conditions.push(condition);
            }
            if all.iter().all(|known| known.subject != finding.subject) {
                all.push(finding);
            }
        }
    }
    all
}

/// Returns the reason if nothing announces an address.
fn silence(cluster: &Cluster, service: &Service, address: IpAddr) -> Option<String> {
    let Maker::Product(product, _) = cloud::maker_of(service, &cluster.provider) else {
        return None;
    };
    let why = product.nothing_announces(cluster, service, address)?;
    why.condition.is_none().then_some(why.because)
}

/// Returns the reason if a label excludes all nodes that could be targets: under policy Local,
/// those with a ready endpoint.
fn excluded_nodes(cluster: &Cluster, service: &Service) -> Option<String> {
    let Maker::Product(product, _) = cloud::maker_of(service, &cluster.provider) else {
        return None;
    };
    // The label does not affect pods as targets.
    let has_nodes = |port: &ServicePort| {
        let plan = product.port(service, port, Family::V4);
        plan.is_some_and(|plan| plan.targets != Targets::Pods)
    };
    let is_read = product.reads_exclusion(cluster) && service.ports.iter().any(has_nodes);
    let has_pod = |node: &&Node| {
        service.external_policy == Policy::Cluster
            || targets::has_ready_pod(cluster, service, &node.name)
    };
    let nodes: Vec<&Node> =
        cluster.nodes.values().filter(|node| node.ready).filter(has_pod).collect();
    let is_excluded = nodes.iter().all(|node| node.excluded_from_load_balancers());
    let first = nodes.first().filter(|_| is_read && is_excluded)?;
    let others = match nodes.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let first = &first.name;
    Some(format!(
        "the label {EXCLUDE_FROM_LOAD_BALANCERS} keeps node {first}{others} from being a target"
    ))
}

/// Returns the condition under which a finding is true, if a load balancer's targets depend on the
/// nodes of pods, and these are only assumed.
fn placement(cluster: &Cluster, service: &Service) -> Option<Text> {
    if service.external_policy != Policy::Local {
        return None;
    }
    let slices = cluster.slices(&service.name).iter();
    let endpoints = slices.flat_map(|slice| &slice.endpoints);
    let mut pods = endpoints.filter_map(|endpoint| cluster.pods.get(endpoint.pod.as_ref()?));
    let is_everywhere = |pod: &Pod| {
        pod.owner.as_ref().is_some_and(|owner| owner.kind == WorkloadKind::DaemonSet.into())
    };
    let pod = pods.find(|pod| pod.supposed && !is_everywhere(pod))?;
    let (owner, node) = (pod.owner.as_ref()?, pod.node.as_ref()?);
    Some(format!("the pods of {owner} run where they are supposed to, as on node {node}").into())
}

/// Finds Services of policy Local with targets on nodes that run none of their pods.
fn all_registered(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    let mut all: BTreeMap<NamespacedName, Finding> = BTreeMap::new();
    let private = engine.balancers().iter().filter(|balancer| balancer.scope == Scope::Private);
    // If health checks ask a node for its own endpoints, the node fails them itself. Without health
    // checks these nodes get traffic already, which is walked.
    let asks_target = |listener: &&Listener| {
        let check = listener.profile.health_check.as_ref();
        check.is_some_and(|check| check.question == HealthQuestion::Target)
    };
    let listeners = private.flat_map(|balancer| &balancer.listeners).filter(asks_target);
    for rule in listeners.flat_map(|own| &own.rules) {
        let Some(service) = cluster.services.get(&rule.service) else { continue };
        if service.external_policy != Policy::Local || all.contains_key(&service.name) {
            continue;
        }
        let slices = cluster.slices(&service.name);
        let homes: Vec<_> = slices
            .iter()
            .flat_map(|slice| &slice.endpoints)
            .filter(|endpoint| endpoint.ready)
            .filter_map(|endpoint| endpoint.node.as_ref())
            .collect();
        // It is not known where future pods will run.
        let is_placed =
            |pod: &NamespacedName| cluster.pods.get(pod).is_none_or(|pod| !pod.supposed);
        let mut pods =
            slices.iter().flat_map(|slice| &slice.endpoints).filter_map(|own| own.pod.as_ref());
        if !pods.all(is_placed) {
            continue;
        }
        let nodes = rule.targets.iter().filter_map(|target| match &target.kind {
            TargetKind::NodePort(node) => Some(node),
            TargetKind::Pod { .. } => None,
        });
        let empty = nodes.filter(|node| !homes.contains(node)).count();
        if empty == 0 || homes.is_empty() {
            continue;
        }
        let what = format!(
            "{empty} of {} targets run no pod of {}: only health checks keep traffic from them, and when all checks fail they get it again",
            rule.targets.len(),
            service.object()
        );
        let finding = about(Code::AllNodesRegistered, service.object(), &service.origin, what);
        all.insert(service.name.clone(), finding);
    }
    all.into_values().collect()
}

/// Finds Services that claim the same address and port.
fn two_owners(engine: &Engine<'_>) -> Vec<Finding> {
    let mut owners: BTreeMap<_, Vec<&Service>> = BTreeMap::new();
    for service in engine.cluster().services.values() {
        if service.kind != ServiceKind::LoadBalancer {
            continue;
        }
        for ip in service.load_balancer.iter().filter_map(|entry| entry.ip) {
            for port in &service.ports {
                owners.entry((ip, port.port, port.protocol)).or_default().push(service);
            }
        }
    }
    let several = owners.into_iter().filter(|(_, all)| all.len() > 1);
    several
        .map(|((ip, port, protocol), all)| {
            let names: Vec<String> =
                all[1..].iter().map(|other| other.object().to_string()).collect();
            let what = format!(
                "{protocol} {ip}:{port} is {}'s and also wanted by {}: one of them gets the \
                 traffic, and it is chance which",
                all[0].object(),
                names.join(", ")
            );
            about(Code::TwoOwners, all[0].object(), &all[0].origin, what)
        })
        .collect()
}

/// The running pods, by namespace.
pub(crate) struct PodsByNamespace<'a>(HashMap<&'a Name, Vec<&'a Pod>>);

impl<'a> PodsByNamespace<'a> {
    pub(crate) fn of(cluster: &'a Cluster) -> Self {
        let mut all: HashMap<&Name, Vec<&Pod>> = HashMap::new();
        for pod in cluster.pods.values().filter(|pod| pod.is_alive()) {
            all.entry(&pod.name.namespace).or_default().push(pod);
        }
        Self(all)
    }

    /// Returns the pods that a Service selects.
    pub(crate) fn selected(&self, service: &Service) -> Vec<&'a Pod> {
        let Some(selector) = &service.selector else { return Vec::new() };
        let at_home = self.0.get(&service.name.namespace).map_or(&[][..], Vec::as_slice);
        at_home.iter().copied().filter(|pod| selector.matches(&pod.spec.labels)).collect()
    }
}

/// Finds target ports with a name that no pod has.
fn named_port(engine: &Engine<'_>, pods: &PodsByNamespace<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    let mut all = Vec::new();
    for service in cluster.services.values() {
        let names = service.ports.iter().filter_map(|port| match &port.target {
            TargetPort::Name(name) => Some((name, port.protocol)),
            TargetPort::Number(_) => None,
        });
        let names: Vec<_> = names.collect();
        let slices = cluster.slices(&service.name);
        let has_slice =
            slices.iter().any(|slice| !slice.endpoints.is_empty() && !slice.ports.is_empty());
        if names.is_empty() || has_slice || service.unjudged.contains(&Unknown::Versions) {
            continue;
        }
        let pods = pods.selected(service);
        let lacks = |(name, protocol): &&(&Text, Protocol)| {
            pods.iter().all(|pod| pod.spec.named_port(name, *protocol).is_none())
        };
        let Some((name, protocol)) = names.iter().find(lacks).filter(|_| !pods.is_empty()) else {
            continue;
        };
        let mut known: Vec<&str> = pods
            .iter()
            .flat_map(|pod| pod.spec.ports())
            .filter_map(|port| port.name.as_deref())
            .collect();
        known.sort_unstable();
        known.dedup();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let mut all_ports = pods.iter().flat_map(|pod| pod.spec.ports());
        let what = match all_ports.find(|port| port.name.as_ref() == Some(*name)) {
            Some(other) => format!(
                "targetPort {name:?} is a port for {} of the pods it selects, and the Service's is \
                 for {protocol}: protocol: {} is meant?",
                other.protocol, other.protocol
            ),
            None => {
                format!(
                    "targetPort {name:?} is not a port of the pods it selects; they have: {known}"
                )
            }
        };
        let mut finding = about(Code::NamedPortMissing, service.object(), &service.origin, what);
        // Another workload that is still to run, or an injected container, may have the port.
        if !cluster.extent.pods && pods.iter().all(|pod| pod.supposed) {
            finding.severity = Severity::Warning;
            finding.conditions.push(
                format!("no other pod that it selects, and no injected container, has port {name}")
                    .into(),
            );
        }
        all.push(finding);
    }
    all
}

/// Finds backends of Ingresses that do not exist.
fn backends(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    let mut all: Vec<Finding> = Vec::new();
    for ingress in cluster.ingresses.values() {
        let paths = ingress.rules.iter().flat_map(|rule| &rule.paths);
        let listed = paths.map(|path| (&*path.path, &path.backend));
        let default = ingress.default_backend.iter().map(|backend| ("the default", backend));
        for (path, backend) in listed.chain(default) {
            let Backend::Service { name, port } = backend else { continue };
            if backend.is_action() || ingress.unjudged.contains(&Unknown::Versions) {
                continue;
            }
            let full =
                NamespacedName { namespace: ingress.name.namespace.clone(), name: name.clone() };
            let what = match cluster.services.get(&full) {
                // The Service may exist elsewhere.
                None if cluster.may_have_service(&full) => continue,
                None => {
                    let like = alike(cluster, &full)
                        .map_or_else(String::new, |own| format!("; {} does", own.object()));
                    format!("Service {full} does not exist{like} ({path} leads there)")
                }
                Some(service) if service.unjudged.contains(&Unknown::Versions) => continue,
                // A name outside the cluster has the ports of its server.
                Some(Service { kind: ServiceKind::ExternalName(_), ports, .. })
                    if ports.is_empty() && matches!(port, BackendPort::Number(_)) =>
                {
                    continue;
                }
                Some(service) => {
                    if service.port_named(port).is_some() {
                        continue;
                    }
                    format!("{} ({path} leads to {port})", service.lacks_port(port))
                }
            };
            all.push(about(Code::BackendMissing, ingress.object(), &ingress.origin, what));
        }
    }
    all
}

/// Returns the Service of the same namespace whose name is most like one that does not exist.
fn alike<'c>(cluster: &'c Cluster, missing: &NamespacedName) -> Option<&'c Service> {
    let at_home = cluster.services.values().filter(|own| own.name.namespace == missing.namespace);
    let mut like =
        at_home.filter(|own| are_names_alike(own.name.name.as_str(), missing.name.as_str()));
    like.next().filter(|_| like.next().is_none())
}
