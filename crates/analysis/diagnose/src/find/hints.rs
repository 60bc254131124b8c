//! Finds possible typos, which are faults only if a condition holds: hints, each with its
//! condition.

use uturn_model::ingress::Backend;
use uturn_model::pod::ContainerPort;
use uturn_model::service::{ServicePort, TargetPort};
use uturn_model::{Cluster, Name, NamespacedName, ObjectRef, Origin, Pod, Port, Service, Unknown};
use uturn_path::Engine;

use super::object_faults::{PodsByNamespace, about};
use crate::finding::Finding;
use crate::near_miss::{Difference, near_misses};
use crate::typos::{are_names_alike, are_ports_alike, are_spelt_alike, is_raised};
use crate::{Code, Severity};

pub(crate) fn find(engine: &Engine<'_>, pods: &PodsByNamespace<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    let mut all = Vec::new();
    for service in cluster.services.values() {
        if !cluster.extent.listeners {
            all.extend(other_port(service, pods));
        }
        if service.unjudged.contains(&Unknown::Endpoints) {
            all.extend(other_labels(cluster, service));
        }
    }
    all.extend(other_backend(cluster));
    all
}

/// Creates a finding that matters only if its condition holds.
fn hint(code: Code, subject: ObjectRef, origin: &Origin, what: String) -> Finding {
    Finding { severity: Severity::Info, ..about(code, subject, origin, what) }
}

/// Returns a hint at a target port that no container declares, if a similar port is declared.
fn other_port(service: &Service, pods: &PodsByNamespace<'_>) -> Option<Finding> {
    let selected = pods.selected(service);
    // A container that declares no ports may listen on any, such as a proxy beside a server.
    let tells_all =
        |pod: &&Pod| pod.spec.containers.iter().all(|container| !container.ports.is_empty());
    if selected.is_empty() || !selected.iter().all(tells_all) {
        return None;
    }
    service.ports.iter().find_map(|port| {
        let TargetPort::Number(wanted) = port.target else { return None };
        // The kubelet probes the port, or the container is configured with the number, so the
        // container listens.
        let is_told = |pod: &&Pod| pod.spec.containers.iter().any(|own| own.mentions(wanted));
        let is_known = |pod: &&Pod| {
            is_declared(pod, wanted, port) || pod.spec.is_probed(wanted) || is_told(pod)
        };
        if selected.iter().any(is_known) {
            return None;
        }
        let mut declared = selected.iter().flat_map(|pod| pod.spec.ports());
        let is_like = |name: Option<&str>, number: Port| {
            name.is_some() && name == port.name.as_deref() || are_ports_alike(number, wanted)
        };
        let is_called = |known: &ContainerPort| {
            service.ports.iter().any(|other| match &other.target {
                TargetPort::Number(number) => *number == known.port,
                TargetPort::Name(name) => known.name.as_ref() == Some(name),
            })
        };
        // 8080 in place of 80 is not a typo: a program without privileges listens there.
        let is_candidate = |known: &&ContainerPort| {
            known.protocol == port.protocol && !is_called(known) && !is_raised(known.port, wanted)
        };
        let like = declared
            .find(|known| is_candidate(known) && is_like(known.name.as_deref(), known.port))?;
        let named = like.name.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
        let what = format!(
            "targetPort {wanted} is declared by no container of the pods it selects, and {}{named} \
             is: is that what is meant?",
            like.port
        );
        let mut finding = hint(Code::WrongPort, service.object(), &service.origin, what);
        finding.conditions.push(format!("nothing listens on {wanted}").into());
        Some(finding)
    })
}

fn is_declared(pod: &Pod, wanted: Port, port: &ServicePort) -> bool {
    pod.spec.ports().any(|known| known.port == wanted && known.protocol == port.protocol)
}

/// Returns a hint at a selector that no pod here fits, if a workload of the namespace almost does.
fn other_labels(cluster: &Cluster, service: &Service) -> Option<Finding> {
    // In a part of a cluster, a label that is missing may be set while pods run, and a value that
    // goes on with another word is that of another one of several.
    let is_close = |difference: &Difference| match difference {
        Difference::Value { wanted, has, .. } => are_spelt_alike(wanted, has),
        Difference::Key { .. } => true,
        Difference::Missing { .. } => false,
    };
    let mut slips = near_misses(cluster, service).into_iter().filter(|miss| miss.is_slip);
    let almost = slips.find(|miss| miss.differences.iter().all(is_close))?;
    let wanted = almost.differences.iter().map(|difference| {
        let (key, value) = difference.wanted();
        format!("{key}: {value}")
    });
    let has = almost.differences.iter().map(|difference| match difference {
        Difference::Value { key, has, .. } => format!("{key}: {has}"),
        Difference::Key { value, other, .. } => format!("{other}: {value}"),
        Difference::Missing { key, .. } => format!("no label {key}"),
    });
    let what = format!(
        "nothing here makes pods with {}, and those of {} have {}: are they meant?",
        wanted.collect::<Vec<_>>().join(" and "),
        almost.maker.object(),
        has.collect::<Vec<_>>().join(" and ")
    );
    let mut finding = hint(Code::NoEndpoints, service.object(), &service.origin, what);
    finding.conditions.push("nothing else makes pods with its labels".into());
    Some(finding)
}

/// Returns hints at backends of Ingresses that are not here, if a Service with a similar name is.
fn other_backend(cluster: &Cluster) -> Vec<Finding> {
    let mut all = Vec::new();
    for ingress in cluster.ingresses.values() {
        if cluster.extent.services {
            break;
        }
        let home = &ingress.name.namespace;
        let paths = ingress.rules.iter().flat_map(|rule| &rule.paths).map(|path| &path.backend);
        let mut known: Vec<&Name> = Vec::new();
        for backend in paths.chain(&ingress.default_backend) {
            let Backend::Service { name, .. } = backend else { continue };
            if backend.is_action() {
                continue;
            }
            let full = NamespacedName { namespace: home.clone(), name: name.clone() };
            if known.contains(&name) || cluster.services.contains_key(&full) {
                continue;
            }
            known.push(name);
            let at_home = cluster.services.keys().filter(|name| name.namespace == *home);
            let like: Vec<&str> = at_home
                .map(|name| name.name.as_str())
                .filter(|known| are_names_alike(known, name.as_str()))
                .take(3)
                .collect();
            if like.is_empty() {
                continue;
            }
            let what = format!(
                "it leads to Service {full}, which is not in the input; the input has {}: is that \
                 what is meant?",
                like.join(", ")
            );
            let mut finding = hint(Code::BackendMissing, ingress.object(), &ingress.origin, what);
            finding.conditions.push(format!("Service {full} does not exist").into());
            all.push(finding);
        }
    }
    all
}
