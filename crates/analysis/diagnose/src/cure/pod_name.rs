//! A cure of pods that have no name of their own: the cluster's DNS knows a pod below a headless
//! Service only by the pod's `hostname` and `subdomain`.

use std::sync::Arc;

use uturn_document::edit::{At, Change, Tree};
use uturn_model::{Destination, Mechanism, NamespacedName, Pod};

use super::template::Template;
use super::{Case, Proposal, endpoints};

/// Proposes the hostname and the subdomain with which a pod has the called name.
pub(super) fn propose(case: &Case<'_>) -> Option<Proposal> {
    let flow = case.walked().filter(|_| case.has(Mechanism::NameUnresolved))?;
    let host = match &flow.to {
        Destination::Host(host, _) | Destination::Url { host, .. } => &**host,
        _ => return None,
    };
    let mut labels = host.split('.');
    let (name, below) = (labels.next()?, labels.next()?);
    let namespace = labels.next().or(case.client_namespace().map(|own| own.as_str()))?;
    let cluster = case.cluster();
    let service = cluster.services.get(&NamespacedName::new(namespace, below).ok()?)?;
    let pod = cluster.pods.get(&NamespacedName::new(namespace, name).ok()?)?;
    let selected = cluster.selected(service);
    let is_there = selected.iter().any(|own| own.name == pod.name);
    // All pods of a workload would get the same name.
    if !service.headless || !is_there || pod.owner.is_some() {
        return None;
    }
    let template = Template::of_pod(case, pod)?;
    let title = format!("hostname {name} and subdomain {below} for {}", template.object);
    let mut made = Proposal::new("pod-name", 12, title).costs(template.cost()).trial();
    for (key, value) in [("hostname", name), ("subdomain", below)] {
        let path = ["spec", key].map(At::from);
        made = template.edit(case, made, &path, &Change::Set(Tree::text(value)))?;
    }
    let mut named = pod.clone();
    let spec = Arc::make_mut(&mut named.spec);
    spec.hostname = Some(name.into());
    spec.subdomain = Some(below.into());
    let after: Vec<&Pod> =
        selected.into_iter().map(|own| if own.name == pod.name { &named } else { own }).collect();
    Some(endpoints::follow(case, made, service, &after))
}
