//! Cures of a selector that selects nothing: the Service's selector, or the labels of pods.

use uturn_document::edit::{At, Change, Tree};
use uturn_model::service::TargetPort;
use uturn_model::{Labels, ObjectKind, Pod, Selector, Service};

use crate::cure::template::Template;
use crate::cure::{Case, Proposal, endpoints, way};
use crate::near_miss::{Difference, Maker, NearMiss, near_misses, pods_of};

/// The maximum number of workloads that are proposed as meant.
const MAX: usize = 2;

pub(super) fn propose(case: &Case<'_>, service: &Service) -> Vec<Proposal> {
    let Some(old) = &service.selector else { return Vec::new() };
    if !case.cluster().selected(service).is_empty() || has_workload(case, service, old) {
        return Vec::new();
    }
    let near = near_misses(case.cluster(), service);
    let slips = near.iter().filter(|miss| miss.is_slip).take(MAX);
    let all: Vec<Proposal> = slips
        .flat_map(|miss| {
            let select = select(case, service, old, miss);
            select.into_iter().chain(label(case, service, miss))
        })
        .collect();
    if all.is_empty() { by_ports(case, service, old) } else { all }
}

/// Proposes a selector with the labels that the pods have.
fn select(
    case: &Case<'_>,
    service: &Service,
    old: &Selector,
    miss: &NearMiss<'_>,
) -> Option<Proposal> {
    let mut labels: Vec<(String, String)> = Vec::new();
    for (key, value) in old.labels.iter() {
        let own = miss.differences.iter().find(|difference| difference.wanted().0 == key);
        let (key, value) = match own {
            None => (key, value),
            Some(Difference::Value { has, .. }) => (key, has.as_str()),
            Some(Difference::Key { other, value, .. }) => (other.as_str(), value.as_str()),
            Some(Difference::Missing { .. }) => continue,
        };
        if !labels.iter().any(|(known, _)| known == key) {
            labels.push((key.to_owned(), value.to_owned()));
        }
    }
    if labels.is_empty() {
        return None;
    }
    let is_same_keys = miss.differences.iter().all(|own| matches!(own, Difference::Value { .. }));
    let made = proposal(service, &labels, is_same_keys.then_some(miss.differences.as_slice()))
        .costs(format!("every caller of the Service gets the pods of {}", miss.maker.object()));
    Some(following(case, service, made, &labels))
}

/// Returns the proposal of a selector: only of the values that change if the keys stay.
fn proposal(
    service: &Service,
    labels: &[(String, String)],
    values: Option<&[Difference]>,
) -> Proposal {
    let selected: Vec<String> =
        labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let title = format!("select {} for svc/{}", selected.join(","), service.name);
    let made = Proposal::new("selector", 11, title).trial();
    let object = service.object();
    let Some(values) = values else {
        let pairs = labels.iter().map(|(key, value)| (key.clone(), Tree::text(&**value)));
        let tree = Tree::Map(pairs.collect());
        return made.edit(object, way!["spec", "selector"], Change::Set(tree));
    };
    values.iter().fold(made, |made, difference| match difference {
        Difference::Value { key, has, .. } => {
            let change = Change::Set(Tree::text(&**has));
            made.edit(object.clone(), way!["spec", "selector", key.as_str()], change)
        }
        Difference::Key { .. } | Difference::Missing { .. } => made,
    })
}

/// Adds the endpoints of a Service with another selector.
fn following(
    case: &Case<'_>,
    service: &Service,
    made: Proposal,
    labels: &[(String, String)],
) -> Proposal {
    let labels: Labels = labels.iter().map(|(key, value)| (&**key, &**value)).collect();
    let after = Service { selector: Some(Selector::labels(labels)), ..service.clone() };
    endpoints::follow(case, made, &after, &case.cluster().selected(&after))
}

/// Proposes the labels that the Service selects, for pods that lack them.
fn label(case: &Case<'_>, service: &Service, miss: &NearMiss<'_>) -> Option<Proposal> {
    // The labels by which a workload finds its pods cannot be changed.
    let is_own = |difference: &Difference| match miss.maker {
        Maker::Workload(workload) => {
            let own = workload.selector.labels.get(difference.wanted().0);
            own.is_some_and(|own| own != difference.wanted().1)
        }
        Maker::Pod(pod) => pod.owner.is_some(),
    };
    if miss.differences.iter().any(is_own) {
        return None;
    }
    let template = Template::of_object(miss.maker.object())
        .filter(|template| case.manifests.has(&template.object))?;
    let wanted: Vec<String> = miss
        .differences
        .iter()
        .map(|difference| {
            let (key, value) = difference.wanted();
            format!("{key}: {value}")
        })
        .collect();
    let title = format!("label the pods of {} with {}", template.object, wanted.join(", "));
    let mut made = Proposal::new("pod-labels", 13, title).trial();
    for difference in &miss.differences {
        let (key, value) = difference.wanted();
        let change = Change::Set(Tree::text(value));
        made = template.edit(case, made, &["metadata", "labels", key].map(At::from), &change)?;
    }
    made = if template.object.kind == ObjectKind::Pod {
        made.costs("none that is known: labels of a pod change while it runs")
    } else {
        made.costs(template.cost())
    };
    let pods = pods_of(case.cluster(), &service.name.namespace);
    let pods: Vec<&Pod> = pods.filter(|pod| pod.is_alive() && miss.maker.makes(pod)).collect();
    Some(endpoints::follow(case, made, service, &pods))
}

/// Proposes other values of the selector, if the only pods with its keys have the ports.
fn by_ports(case: &Case<'_>, service: &Service, old: &Selector) -> Vec<Proposal> {
    let fits = |pod: &&Pod| {
        pod.name.namespace == service.name.namespace
            && pod.is_alive()
            && pod.ready
            && service.ports.iter().all(|port| match &port.target {
                TargetPort::Number(number) => {
                    pod.spec.ports().any(|container_port| container_port.port == *number)
                }
                TargetPort::Name(name) => pod.spec.named_port(name, port.protocol).is_some(),
            })
    };
    let mut found: Vec<Vec<(String, String)>> = Vec::new();
    for pod in case.cluster().pods.values().filter(fits) {
        let wanted: Option<Vec<(String, String)>> = old
            .labels
            .iter()
            .map(|(key, _)| Some((key.to_owned(), pod.spec.labels.get(key)?.to_owned())))
            .collect();
        if let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty())
            && !found.contains(&wanted)
        {
            found.push(wanted);
        }
    }
    // With several candidates, it is not known which one is meant.
    let [labels] = found.as_slice() else { return Vec::new() };
    let made = proposal(service, labels, None)
        .costs("these are the only pods of the namespace that have those labels' keys and the ports: make sure that they are meant");
    vec![following(case, service, made, labels)]
}

/// Returns whether a workload creates pods that a Service selects, even if it has none now: then
/// the selector is as intended.
fn has_workload(case: &Case<'_>, service: &Service, selector: &Selector) -> bool {
    let mut workloads = case.cluster().workloads.values();
    workloads.any(|workload| {
        workload.name.namespace == service.name.namespace
            && selector.matches(&workload.template.labels)
    })
}
