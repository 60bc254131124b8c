//! Cures of addresses that nothing announces: what makes nodes announce them, and nodes that a
//! label excludes.

use uturn_clouds::cloud::{self, Announcing, Maker, NewObject, NewValue};
use uturn_document::edit::{At, Change, Tree};
use uturn_model::node::EXCLUDE_FROM_LOAD_BALANCERS;
use uturn_model::shell::{Advice, Command};
use uturn_model::{Node, ObjectKind, ObjectRef, Service};

use super::super::{Case, Proposal, way};
use super::service_of;
use crate::Finding;

/// The maximum number of nodes whose label is taken off.
const MAX_NODES: usize = 20;

/// The maximum number of endpoints that get a node.
const MAX_ENDPOINTS: usize = 20;

pub(super) fn propose(case: &Case<'_>, fault: &Finding) -> Vec<Proposal> {
    let Some(service) = service_of(case, fault) else { return Vec::new() };
    let cluster = case.cluster();
    let Maker::Product(product, _) = cloud::maker_of(service, &cluster.provider) else {
        return Vec::new();
    };
    let mut addresses = service.load_balancer.iter().filter_map(|entry| entry.ip);
    let silent =
        addresses.find(|address| product.nothing_announces(cluster, service, *address).is_some());
    let mut all: Vec<Proposal> = match silent {
        Some(address) => product.announcing(cluster, address).into_iter().map(announced).collect(),
        None => Vec::new(),
    };
    if silent.is_some() {
        all.extend(named_nodes(case, service));
    }
    if product.reads_exclusion(cluster) {
        all.extend(included_nodes(case));
    }
    all
}

/// Proposes that the endpoints that somebody wrote for a Service name a node.
fn named_nodes(case: &Case<'_>, service: &Service) -> Option<Proposal> {
    let cluster = case.cluster();
    let slices = cluster.slices(&service.name).iter();
    let mut endpoints = slices.flat_map(|slice| &slice.endpoints);
    if service.selector.is_some() || endpoints.any(|endpoint| endpoint.node.is_some()) {
        return None;
    }
    let mut nodes = cluster.nodes.values().filter(|node| node.ready && !node.supposed);
    let first = nodes.clone().next()?;
    let node = &nodes.find(|node| node.taints.is_empty()).unwrap_or(first).name;
    let old = ObjectRef::namespaced(ObjectKind::Endpoints, &service.name);
    let written =
        |object: &ObjectRef, path: Vec<At>| case.manifests.text_at(object, &path).is_some();
    let title = |object: &ObjectRef| format!("nodeName: {node} for the endpoints in {object}");
    let set = || Change::Set(Tree::text(node.as_str()));
    let mut made = if case.manifests.has(&old) {
        let address = |at: usize, field: &str| way!["subsets", 0, "addresses", at, field];
        let count = (0..MAX_ENDPOINTS).take_while(|at| written(&old, address(*at, "ip"))).count();
        let edit = |made: Proposal, at| made.edit(old.clone(), address(at, "nodeName"), set());
        (0..count).fold(Proposal::new("named-nodes", 15, title(&old)), edit)
    } else {
        let slice = cluster.slices(&service.name).iter().find(|slice| !slice.derived)?;
        let object = ObjectRef::namespaced(ObjectKind::EndpointSlice, &slice.name);
        let endpoint = |at: usize| way!["endpoints", at, "nodeName"];
        let edit = |made: Proposal, at| made.edit(object.clone(), endpoint(at), set());
        let count = slice.endpoints.len().min(MAX_ENDPOINTS);
        (0..count).fold(Proposal::new("named-nodes", 15, title(&object)), edit)
    };
    if made.edits.is_empty() {
        return None;
    }
    made = made.costs("that node answers for the address; without it nobody does");
    Some(made)
}

fn announced(how: Announcing) -> Proposal {
    let mut made = Proposal::new("announce", 15, how.title);
    for need in how.needs {
        made = match need.holds {
            Some(holds) => made.when(need.what, holds, need.because),
            None => made.ask(need.what, need.because),
        };
    }
    for cost in how.costs {
        made = made.costs(cost);
    }
    for (map, key, value) in how.settings {
        let object = ObjectRef::namespaced(ObjectKind::ConfigMap, &map);
        made = made.edit(object, way!["data", key], Change::Set(Tree::text(value)));
    }
    made.objects = how.objects.into_iter().map(new_object).collect();
    match how.command {
        Some(command) => made.types(Command::new(command)),
        None => made,
    }
}

/// Returns a new object with the file in which it is created.
pub(super) fn new_object(new: NewObject) -> (String, ObjectRef, Tree) {
    let object = ObjectRef {
        kind: ObjectKind::CloudObject(new.kind),
        namespace: new.namespace.clone(),
        name: new.name.as_str().into(),
    };
    let mut meta = vec![("name".to_owned(), Tree::text(new.name))];
    if let Some(namespace) = &new.namespace {
        meta.push(("namespace".to_owned(), Tree::text(namespace.as_str())));
    }
    let tree = Tree::map([
        ("apiVersion", Tree::text(new.version)),
        ("kind", Tree::text(new.kind)),
        ("metadata", Tree::Map(meta)),
        ("spec", tree_of(NewValue::Fields(new.spec))),
    ]);
    let file = format!("{}.yaml", new.kind.to_ascii_lowercase());
    (file, object, tree)
}

fn tree_of(value: NewValue) -> Tree {
    match value {
        NewValue::On => Tree::bare("true"),
        NewValue::Text(text) => Tree::Text(text),
        NewValue::Texts(texts) => Tree::List(texts.into_iter().map(Tree::Text).collect()),
        NewValue::Fields(fields) => {
            let fields = fields.into_iter().map(|(key, value)| (key.to_owned(), tree_of(value)));
            Tree::Map(fields.collect())
        }
    }
}

/// Proposes that no label excludes nodes from load balancers.
fn included_nodes(case: &Case<'_>) -> Option<Proposal> {
    let nodes = case.cluster().nodes.values();
    let nodes: Vec<&Node> =
        nodes.filter(|node| node.ready && node.excluded_from_load_balancers()).collect();
    let first = nodes.first().filter(|_| nodes.len() <= MAX_NODES)?;
    let others = match nodes.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let title = format!("no label {EXCLUDE_FROM_LOAD_BALANCERS} on node {}{others}", first.name);
    let mut made = Proposal::new("include-nodes", 15, title)
        .costs("load balancers and announcements of other Services may use these nodes too");
    for node in nodes {
        let path = way!["metadata", "labels", EXCLUDE_FROM_LOAD_BALANCERS];
        let command = Command::new("kubectl label node")
            .value(&node.name)
            .value(format!("{EXCLUDE_FROM_LOAD_BALANCERS}-"));
        made = made.edit(node.object(), path, Change::Remove).types(Advice::from(command));
    }
    Some(made)
}
