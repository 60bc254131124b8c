//! Finds objects on which Services and Ingresses depend and that are not in the input: they are
//! assumed to be elsewhere, unless it is stated that the input is complete.

use std::cell::LazyCell;

use uturn_clouds::controller;
use uturn_model::ingress::Backend;
use uturn_model::pod::Phase;
use uturn_model::service::ServiceKind;
use uturn_model::{
    Ingress, Labels, Name, NamespacedName, ObjectRef, Pod, Selector, Service, Unknown, Workload,
    WorkloadKind,
};

use crate::decode::objects::Objects;
use crate::derive::ground::Ground;
use crate::derive::populate::pods::ByLabel;
use crate::derive::serve::endpoints::{Slices, could_serve};
use crate::derive::unjudged::Gaps;

const GIVE_PODS: &str =
    "give the EndpointSlices, or what makes the pods, or pass --complete if this is all";
const NOBODY_MAKES_THEM: &str = "nothing here makes pods with the labels that are selected";
const AN_OPERATOR_MAY: &str =
    "nothing here makes pods with the labels that are selected, and an operator may";
const GIVE_ENDPOINTS: &str = "give the EndpointSlices, or pass --complete if this is all";
const GIVE_SERVICES: &str = "give the Services they lead to, or pass --complete if this is all";
const USED: &str = "scan only the files that are applied together";
const TRACE_SERVICES: &str = "trace to the Services that the annotation names";

/// Records at Services and Ingresses which of their dependencies are missing.
pub(super) fn find(objects: &Objects, slices: &Slices, ground: &Ground, gaps: &mut Gaps) {
    let (extent, coming) = (ground.extent, &ground.coming);
    find_versions(objects, gaps);
    let by_label = LazyCell::new(|| ByLabel::new(&objects.pods.0));
    for service in objects.services.0.values() {
        let is_awaited = coming.namespaces.contains(&service.name.namespace);
        let is_listed = !is_awaited && !coming.services.contains(&service.name);
        let is_stated = extent.endpoints && is_listed
            || slices.contains_key(&service.name)
            || objects.listing.without_endpoints.contains(&service.name)
            || matches!(service.kind, ServiceKind::ExternalName(_));
        if is_stated {
            continue;
        }
        let (because, settle) = match &service.selector {
            None => ("without a selector, and no EndpointSlice is given", GIVE_ENDPOINTS),
            Some(selector) if extent.pods && is_listed => {
                // If it is only derived that all pods are given, they may lack labels that
                // something adds later.
                let is_stated = objects.complete || objects.listing.extent.is_some();
                let is_made = || makers(objects, service, selector).next().is_some();
                let pods = by_label.selected(&service.name.namespace, selector);
                if is_stated || !pods.is_empty() || is_made() {
                    continue;
                }
                (NOBODY_MAKES_THEM, GIVE_PODS)
            }
            Some(selector) => {
                let pods = by_label.selected(&service.name.namespace, selector);
                match why_without_pods(objects, service, selector, &pods) {
                    Some(NOBODY_MAKES_THEM) if is_awaited => (AN_OPERATOR_MAY, GIVE_PODS),
                    Some(because) => (because, GIVE_PODS),
                    None => continue,
                }
            }
        };
        gaps.add(service.object(), Unknown::Endpoints, because.into(), settle.into());
    }
    for ingress in objects.ingresses.0.values().filter(|ingress| has_unread_action(ingress)) {
        let because = "an annotation says where a path leads, and uturn does not read it";
        let (because, settle) = (because.into(), TRACE_SERVICES.into());
        gaps.add(ingress.object(), Unknown::Backends, because, settle);
    }
    let is_missing = |name: &NamespacedName| {
        let may_be_there = !extent.services || coming.namespaces.contains(&name.namespace);
        may_be_there && !objects.services.0.contains_key(name)
    };
    for ingress in objects.ingresses.0.values() {
        if backends(ingress).any(|name| is_missing(&name)) {
            let because = "a Service that is led to is not in the input";
            let (because, settle) = (because.into(), GIVE_SERVICES.into());
            gaps.add(ingress.object(), Unknown::Backends, because, settle);
        }
    }
}

/// Records which Services and Ingresses are defined in several versions, and which Services select
/// pods of such a workload: nothing states which version is in use, and a mixture of them may never
/// have been applied.
fn find_versions(objects: &Objects, gaps: &mut Gaps) {
    let makers = objects.workloads.1.iter().filter_map(|key| objects.workloads.0.get(key));
    let makers: Vec<_> = makers.collect();
    let pods = objects.pods.1.iter().filter_map(|name| objects.pods.0.get(name));
    let pods: Vec<&Pod> = pods.collect();
    let mut add = |object: ObjectRef| {
        let because =
            "the object or its workload is defined more than once, with different contents";
        gaps.add(object, Unknown::Versions, because.into(), USED.into());
    };
    for service in objects.services.0.values() {
        let selects = |namespace: &Name, labels: &Labels| {
            *namespace == service.name.namespace
                && service.selector.as_ref().is_some_and(|selector| selector.matches(labels))
        };
        let has_versions = objects.services.1.contains(&service.name)
            || makers.iter().any(|maker| selects(&maker.name.namespace, &maker.template.labels))
            || pods.iter().any(|pod| selects(&pod.name.namespace, &pod.spec.labels));
        if has_versions {
            add(service.object());
        }
    }
    let ingresses = objects.ingresses.1.iter().filter_map(|name| objects.ingresses.0.get(name));
    ingresses.for_each(|ingress| add(ingress.object()));
}

/// Returns why the endpoints of a Service without slices are not known. Returns `None` if the input
/// shows that the Service has none.
fn why_without_pods(
    objects: &Objects,
    service: &Service,
    selector: &Selector,
    pods: &[&Pod],
) -> Option<&'static str> {
    // Finished pods give no evidence about others.
    let is_over = |pod: &Pod| matches!(pod.phase, Phase::Succeeded | Phase::Failed);
    let pods: Vec<&Pod> = pods.iter().copied().filter(|pod| !is_over(pod)).collect();
    // A listing may leave out the nodes of running pods.
    let is_conclusive = |pod: &Pod| {
        let is_read = !pod.supposed && !objects.written_pods.contains(&pod.name);
        is_read && (pod.node.is_some() || pod.phase != Phase::Running)
    };
    // Pods that run without serving, or that lack a port of that name, show that there are no
    // endpoints.
    if pods.iter().any(|pod| is_conclusive(pod) || could_serve(service, pod)) {
        return None;
    }
    if !pods.is_empty() {
        return Some("nothing says where the pods that are selected run");
    }
    let mut makers = makers(objects, service, selector).peekable();
    if makers.peek().is_none() {
        return Some(NOBODY_MAKES_THEM);
    }
    let makes_none =
        makers.all(|maker| maker.replicas == 0 && maker.kind != WorkloadKind::DaemonSet);
    (!makes_none).then_some("nothing says where the pods that are selected run")
}

/// Iterates over the workloads that create pods which a Service selects.
fn makers<'o>(
    objects: &'o Objects,
    service: &'o Service,
    selector: &'o Selector,
) -> impl Iterator<Item = &'o Workload> {
    let at_home = objects.workloads.0.values();
    at_home
        .filter(|maker| maker.name.namespace == service.name.namespace)
        .filter(|maker| selector.matches(&maker.template.labels))
}

fn all_backends(ingress: &Ingress) -> impl Iterator<Item = &Backend> {
    let paths = ingress.rules.iter().flat_map(|rule| &rule.paths).map(|path| &path.backend);
    paths.chain(&ingress.default_backend)
}

/// Returns whether an Ingress leads to an action that an annotation describes and that is not read.
fn has_unread_action(ingress: &Ingress) -> bool {
    let product = controller::product_of(ingress);
    let is_read = |backend: &Backend| match (product, backend) {
        (Some(product), Backend::Service { name, .. }) => {
            product.reads_action(ingress, name.as_str())
        }
        _ => false,
    };
    all_backends(ingress).any(|backend| backend.is_action() && !is_read(backend))
}

/// Iterates over the Services to which an Ingress leads.
fn backends(ingress: &Ingress) -> impl Iterator<Item = NamespacedName> {
    let own = &ingress.name.namespace;
    let named = all_backends(ingress).filter(|backend| !backend.is_action());
    named.flat_map(move |backend| match backend {
        Backend::Service { name, .. } => {
            vec![NamespacedName { namespace: own.clone(), name: name.clone() }]
        }
        Backend::Services(all) => all.iter().map(|behind| behind.service.clone()).collect(),
        Backend::Resource(_) | Backend::Redirect(_) => Vec::new(),
    })
}
