//! Cures by `externalTrafficPolicy`.

use uturn_clouds::cloud::{Setting, SettingOf};
use uturn_document::edit::{Change, Tree};
use uturn_model::lb::TargetKind;
use uturn_model::service::Policy;
use uturn_model::{Family, ObjectRef, Service};

use super::annotation;
use crate::cure::{Case, Proposal, way};

/// Proposes that only nodes with a server are targets, and that no client runs on them.
pub(super) fn policy_local(case: &Case<'_>) -> Option<Proposal> {
    let service = case.service()?;
    let (_, listener) = case.listener()?;
    let targets = listener.rules.iter().flat_map(|rule| &rule.targets);
    if !targets.clone().any(|target| matches!(target.kind, TargetKind::NodePort(_))) {
        return None;
    }
    let model = uturn_clouds::cloud::model(case.cluster())?;
    let only_with_pods = model.annotation(Setting::NodesWithPods, SettingOf::Service)?;
    let is_whole =
        service.external_policy == Policy::Local && service.annotations.is(only_with_pods, "true");
    if is_whole {
        return None;
    }
    let home = case.client_node();
    let slices = case.cluster().slices(&service.name);
    let endpoints =
        slices.iter().flat_map(|slice| &slice.endpoints).filter(|endpoint| endpoint.ready);
    let beside = endpoints
        .clone()
        .find(|endpoint| endpoint.node.is_some() && endpoint.node.as_ref() == home);
    let title = format!(
        "policy Local for svc/{}, only nodes with its pods, clients on others",
        service.name
    );
    let mut made = Proposal::new("policy-local", 70, title)
        .when(
            "the client's node has no pod of the Service",
            beside.is_none(),
            match (beside, home) {
                (Some(endpoint), Some(node)) => format!(
                    "{} on {node} is one: with policy Local that node stays a target, and the call still comes back to it; move one of them first",
                    endpoint
                        .pod
                        .as_ref()
                        .map_or_else(|| endpoint.address.to_string(), ToString::to_string)
                ),
                (_, Some(node)) => format!("none on {node}"),
                _ => "no client on a node".to_owned(),
            },
        )
        .edit(service.object(), way!["spec", "externalTrafficPolicy"], Change::Set(Tree::text("Local")))
        .edit(service.object(), annotation(only_with_pods), Change::Set(Tree::text("true")))
        .costs("load is shared by node, not by pod: nodes with fewer pods give each more")
        .costs("clients and servers have to stay on different nodes from now on: anti-affinity, or it loops again")
        .costs("a call to the NodePort of a node without a pod gets no answer");
    made = made.costs("the Service's own pods, and processes on their nodes, cannot call it through its load balancer any more");
    made.gives_up = Some(service.name.clone());
    if let Some((workload, term)) = apart(case, service) {
        let way = way![
            "spec",
            "template",
            "spec",
            "affinity",
            "podAntiAffinity",
            "requiredDuringSchedulingIgnoredDuringExecution"
        ];
        made = made.edit(workload, way, Change::Append(term));
    }
    Some(made)
}

/// Returns anti-affinity of the servers' workload to the client's labels.
fn apart(case: &Case<'_>, service: &Service) -> Option<(ObjectRef, Tree)> {
    let cluster = case.cluster();
    let slices = cluster.slices(&service.name);
    let pod = slices
        .iter()
        .flat_map(|slice| &slice.endpoints)
        .find_map(|endpoint| endpoint.pod.as_ref())?;
    let owner = cluster.pods.get(pod)?.owner.clone()?;
    if !case.manifests.has(&owner) {
        return None;
    }
    let uturn_model::Client::Pod(client) = &case.walked()?.from else { return None };
    let client = cluster.pods.get(client)?;
    let labels = match &client.owner {
        Some(owner) => {
            let of = cluster.workloads.values().find(|workload| workload.object() == *owner)?;
            of.template.labels.clone()
        }
        None => client.spec.labels.clone(),
    };
    let own = &cluster.pods.get(pod)?.spec.labels;
    let labels: Vec<(String, Tree)> = labels
        .iter()
        .filter(|(key, value)| own.get(key) != Some(value))
        .map(|(key, value)| (key.to_owned(), Tree::text(value)))
        .collect();
    if labels.is_empty() {
        return None;
    }
    let term = Tree::map([
        ("labelSelector", Tree::map([("matchLabels", Tree::Map(labels))])),
        ("topologyKey", Tree::text("kubernetes.io/hostname")),
    ]);
    Some((owner, term))
}

pub(super) fn policy_cluster(case: &Case<'_>) -> Option<Proposal> {
    let service = case.service()?;
    let is_from_outside = case.aim.vip.is_some() || case.aim.is_external;
    if service.external_policy != Policy::Local || !is_from_outside {
        return None;
    }
    let nodes = case.cluster().nodes.values();
    let nodes =
        nodes.filter(|node| node.address(Family::V4).or(node.address(Family::V6)).is_some());
    let many = nodes.count();
    Some(
        Proposal::new("policy-cluster", 80, format!("policy Cluster for svc/{}", service.name))
            .when("there is a node beside the client's", many > 1, format!("{many} in all"))
            .edit(
                service.object(),
                way!["spec", "externalTrafficPolicy"],
                Change::Set(Tree::text("Cluster")),
            )
            .costs("servers see a node's address instead of the client's")
            .costs("a call may take a second hop, to a pod on another node"),
    )
}
