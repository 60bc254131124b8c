//! Finds names that the cluster's DNS does not resolve for pods, although its Corefile or an object
//! says that it should, and names that lead pods elsewhere than to their object.

use std::collections::BTreeSet;

use uturn_model::{
    Client, Cluster, Destination, Flow, Mechanism, Name, ObjectKind, ObjectRef, Outcome, Pod, Port,
    Protocol, Service, Share, Text,
};
use uturn_path::{Engine, Misled, RewrittenName, WalkError, has_musl_image};

use super::object_faults::about;
use crate::clients::{Clients, Example};
use crate::finding::Finding;
use crate::{Code, Observation, Severity};

/// The maximum number of nodes times Services of a cluster in which names are looked up.
const MAX_SIZE: usize = 20_000;

/// The maximum number of kinds of pods for which names are looked up.
const MAX_RESOLVERS: usize = 8;

/// The maximum number of nodes whose pods are asked before no pod is said to resolve a name.
const MAX_NODES: usize = 8;

/// The maximum number of hosts of Ingresses that are looked up for each kind of pods.
const MAX_HOSTS: usize = 8;

/// The maximum number of rules of a Corefile whose names are looked up.
const MAX_RULES: usize = 64;

pub(super) fn find(engine: &Engine<'_>) -> Result<Vec<Finding>, WalkError> {
    if let Some(finding) = refused(engine) {
        return Ok(vec![finding]);
    }
    let cluster = engine.cluster();
    let pods = one_of_each_resolver(cluster);
    let Some(pod) = pods.first().filter(|_| is_small(cluster)) else { return Ok(Vec::new()) };
    let service = cluster.services.values().find(|service| {
        !service.cluster_ips.is_empty()
            && service.ports.first().is_some_and(|port| port.protocol == Protocol::Tcp)
    });
    if let Some(service) = service
        && let Some(finding) = unresolved(engine, pod, service)?
    {
        return Ok(vec![finding]);
    }
    let mut all = rewritten(engine, &pods);
    for pod in pods {
        all.extend(misled(engine, pod, service));
    }
    Ok(all)
}

fn is_small(cluster: &Cluster) -> bool {
    cluster.nodes.len() * cluster.services.len() <= MAX_SIZE
}

fn config_map(engine: &Engine<'_>) -> ObjectRef {
    ObjectRef::namespaced(ObjectKind::ConfigMap, &engine.cluster().dns.config_map())
}

/// Finds a Corefile with which CoreDNS does not start.
fn refused(engine: &Engine<'_>) -> Option<Finding> {
    engine.cluster().dns.corefile.as_ref()?;
    let (release, origin, why) = engine.refused_corefile()?;
    let what = format!("CoreDNS {release} does not start with its Corefile: {why}");
    let mut finding = about(Code::NameNotFound, config_map(engine), origin, what);
    finding.clients = Clients::other(Clients::NAMES);
    finding.outcome = Outcome::NameNotFound;
    // A running CoreDNS continues with the Corefile with which it started.
    finding.conditions.push("CoreDNS starts with this Corefile".into());
    Some(finding)
}

/// Returns a pod for each way in which pods that ask the cluster's DNS make questions of a name.
pub(crate) fn one_of_each_resolver(cluster: &Cluster) -> Vec<&Pod> {
    let mut known: Vec<(&[Text], Option<u8>, bool)> = Vec::new();
    let mut pods = Vec::new();
    for pod in cluster.pods.values().filter(|pod| pod.is_alive() && !pod.ips.is_empty()) {
        let spec = &pod.spec;
        let resolver = (&*spec.dns_searches, spec.dns_ndots, has_musl_image(spec));
        if spec.asks_cluster_dns() && !known.contains(&resolver) && known.len() < MAX_RESOLVERS {
            known.push(resolver);
            pods.push(pod);
        }
    }
    pods
}

fn flow(pod: &Pod, host: &str, port: Port) -> Flow {
    Flow {
        from: Client::Pod(pod.name.clone()),
        to: Destination::Host(host.into(), port),
        protocol: Protocol::Tcp,
    }
}

/// The port that is called at hosts of Ingresses. Names are looked up alike for every port.
fn https() -> Port {
    Port::new(443).expect("not zero")
}

/// Returns a pod that asks the cluster's DNS on each of the first nodes.
fn one_of_each_node(cluster: &Cluster) -> Vec<&Pod> {
    let mut nodes: Vec<Option<&Name>> = Vec::new();
    let pods = cluster.pods.values().filter(|pod| {
        let asks = pod.is_alive() && !pod.ips.is_empty() && pod.spec.asks_cluster_dns();
        asks && !nodes.contains(&pod.node.as_ref()) && {
            nodes.push(pod.node.as_ref());
            true
        }
    });
    pods.take(MAX_NODES).collect()
}

/// Finds that pods resolve no name of a Service.
fn unresolved(
    engine: &Engine<'_>,
    pod: &Pod,
    service: &Service,
) -> Result<Option<Finding>, WalkError> {
    let cluster = engine.cluster();
    let Some(corefile) = &cluster.dns.corefile else { return Ok(None) };
    let host = cluster.dns.name_of(&service.name);
    let flow = flow(pod, &host, service.ports[0].port);
    let verdict = match engine.verdict(&flow) {
        // The pod has another family than the Service.
        Err(WalkError::NoAddress(..)) => return Ok(None),
        verdict => verdict?,
    };
    let is_lost = verdict.mechanisms.contains(&Mechanism::NameUnresolved);
    // Assumed values never produce findings.
    let mut supposed = verdict.supposed.iter();
    let is_open =
        !verdict.conditions.is_empty() || supposed.any(|own| !engine.supposed().contains(own));
    if !is_lost || is_open {
        return Ok(None);
    }
    // Where only the pods of some nodes get no answer, their calls to the name server tell it.
    for other in one_of_each_node(cluster).into_iter().filter(|other| other.name != pod.name) {
        let other = engine.verdict(&self::flow(other, &host, service.ports[0].port));
        if other.is_ok_and(|other| !other.mechanisms.contains(&Mechanism::NameUnresolved)) {
            return Ok(None);
        }
    }
    let what = format!("{host} has no address, as every name of a Service");
    let mut finding = about(Code::NameNotFound, config_map(engine), &corefile.origin, what);
    finding.targets = vec![host];
    Ok(Some(lost(finding, flow)))
}

/// Completes a finding about a name that no pod resolves.
fn lost(mut finding: Finding, flow: Flow) -> Finding {
    finding.clients = Clients::other(Clients::NAMES);
    finding.share_failing = Share::ALL;
    finding.outcome = Outcome::NameNotFound;
    finding.mechanism = Some(Mechanism::NameUnresolved);
    finding.example = Example::Flow(flow);
    finding
}

/// Finds names that the Corefile rewrites, and that have no address all the same.
fn rewritten(engine: &Engine<'_>, pods: &[&Pod]) -> Vec<Finding> {
    let cluster = engine.cluster();
    let Some(corefile) = &cluster.dns.corefile else { return Vec::new() };
    let hosts = hosts(cluster);
    let mut namespaces = BTreeSet::new();
    let services = cluster.services.values().filter(|service| {
        !service.cluster_ips.is_empty() && namespaces.insert(&service.name.namespace)
    });
    let services: Vec<String> =
        services.map(|service| cluster.dns.name_of(&service.name)).collect();
    let rules = engine.rewritten_names(&hosts, &services);
    let mut all: Vec<Finding> = Vec::new();
    for RewrittenName { name, becomes, by } in rules.into_iter().take(MAX_RULES) {
        if may_exist(cluster, &becomes) {
            continue;
        }
        let lost_by = |pod: &&Pod| {
            let flow = flow(pod, &name, https());
            let target = engine.resolve(&flow).ok()?;
            let (why, condition) = target.lost_name()?;
            Some((flow, why.to_owned(), condition))
        };
        // What fails with every library says more than what fails with one.
        let mut all_lost: Vec<_> = pods.iter().filter_map(lost_by).collect();
        all_lost.sort_by_key(|(_, _, condition)| condition.is_some());
        let Some((flow, why, condition)) = all_lost.into_iter().next() else { continue };
        let why = why.strip_prefix(&format!("{name} has no address: ")).unwrap_or(&why);
        let what = format!("{name} has no address in pods, though it becomes {becomes}: {why}");
        let mut finding = about(Code::NameNotFound, config_map(engine), &corefile.origin, what);
        finding.other_evidence.push(Observation { place: None, what: "this rule".into(), by });
        // Nobody may call what no object names.
        if !hosts.contains(&name) || condition.is_some() {
            finding.severity = Severity::Warning;
        }
        finding.conditions.extend(condition.map(Text::from));
        finding.targets = vec![name];
        all.push(lost(finding, flow));
    }
    all
}

/// Returns the hosts of Ingresses and the names that workloads call.
fn hosts(cluster: &Cluster) -> Vec<String> {
    let rules = cluster.ingresses.values().flat_map(|ingress| &ingress.rules);
    let of_ingresses = rules.filter_map(|rule| rule.host.as_deref());
    let containers = cluster.workloads.values().flat_map(|own| &own.template.containers);
    let called = containers.flat_map(|container| &container.called).map(|called| &*called.host);
    let all = of_ingresses.chain(called).filter(|host| host.contains('.') && !host.contains('*'));
    let all: BTreeSet<&str> = all.collect();
    all.into_iter().map(|host| host.trim_end_matches('.').to_owned()).collect()
}

/// Returns whether a name is that of a Service which is not given and may exist.
fn may_exist(cluster: &Cluster, name: &str) -> bool {
    let domain = format!(".svc.{}", cluster.dns.domain());
    let Some(own) = name.strip_suffix(&domain) else { return false };
    let mut labels = own.rsplit('.');
    let (Some(namespace), Some(service)) = (labels.next(), labels.next()) else { return false };
    let Ok(name) = format!("{namespace}/{service}").parse() else { return false };
    !cluster.services.contains_key(&name) && cluster.may_have_service(&name)
}

/// Finds names that lead pods elsewhere than to the object with this name.
fn misled(engine: &Engine<'_>, pod: &Pod, service: Option<&Service>) -> Vec<Finding> {
    let cluster = engine.cluster();
    let of_service = service.map(|service| {
        let port = service.ports[0].port;
        let (own, space) = (&service.name.name, &service.name.namespace);
        let names = [
            cluster.dns.name_of(&service.name),
            format!("{own}.{space}.svc"),
            format!("{own}.{space}"),
        ];
        names.map(|name| (name, port))
    });
    let rules = cluster.ingresses.values().flat_map(|ingress| &ingress.rules);
    let hosts = rules.filter_map(|rule| rule.host.as_deref()).filter(|host| !host.contains('*'));
    let hosts = hosts.take(MAX_HOSTS).map(|host| (host.to_owned(), https()));
    let names = of_service.into_iter().flatten().chain(hosts);
    names.filter_map(|(host, port)| elsewhere(engine, &flow(pod, &host, port), &host)).collect()
}

/// Returns a finding about a name that leads a flow elsewhere than to the object with this name.
pub(crate) fn elsewhere(engine: &Engine<'_>, flow: &Flow, host: &str) -> Option<Finding> {
    let misled = engine.misled(flow).ok()??;
    let Misled { object, addresses, below, what, by, supposed } = misled;
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    let addresses = addresses.join(", ");
    let below_too = below.as_ref().map_or_else(String::new, |name| {
        let domain = name.strip_prefix(&*format!("{}.", host.trim_end_matches('.')));
        let domain = domain.map_or_else(String::new, |domain| {
            format!(" (search domain {} comes first)", domain.trim_end_matches('.'))
        });
        format!(", as {name}{domain}")
    });
    let said = format!("{host} leads to {addresses}{below_too}, not to {object}");
    let origin = engine.origin_of(&object);
    let mut finding = about(Code::NameElsewhere, object, &origin, said);
    finding.other_evidence.push(Observation { place: None, what: what.into(), by });
    // A rule that replaces the name of a Service may be meant; a search domain hardly is.
    if below.is_none() || !supposed.is_empty() {
        finding.severity = Severity::Warning;
    }
    finding
        .conditions
        .extend(supposed.iter().map(|own| format!("{} is {}", own.subject, own.assumed).into()));
    finding.targets = vec![host.to_owned()];
    finding.clients = Clients::other(Clients::NAMES);
    finding.example = Example::Flow(flow.clone());
    Some(finding)
}
