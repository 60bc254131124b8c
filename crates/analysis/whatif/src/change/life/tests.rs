use std::collections::BTreeSet;

use uturn_dice::Dice;
use uturn_model::node::Loss;
use uturn_model::{Cluster, NamespacedName};

use super::LifeChange;
use crate::random_cluster::{made, random};

/// The ready endpoints of each Service.
fn ready(cluster: &Cluster) -> BTreeSet<(NamespacedName, std::net::IpAddr)> {
    let of = |(service, slices): (&NamespacedName, &Vec<uturn_model::EndpointSlice>)| {
        let all = slices.iter().flat_map(|slice| &slice.endpoints);
        let ready = all.filter(|endpoint| endpoint.ready);
        ready.map(|endpoint| (service.clone(), endpoint.address)).collect::<Vec<_>>()
    };
    cluster.endpoints.iter().flat_map(of).collect()
}

/// A drained node has lost its pods and their endpoints, as if they had never been written.
#[test]
fn draining_a_node_is_deleting_its_pods_and_their_endpoints() {
    let mut evicted = 0;
    for seed in 0..60 {
        let documents = random(&mut Dice::new(seed));
        let whole = made(documents.concat());
        for node in whole.nodes.keys() {
            let drained = LifeChange::Drain(node.clone()).apply(&whole).unwrap().cluster;
            let is_left = |text: &&String| !text.contains(&format!("nodeName: {node},"));
            let left = made(documents.iter().filter(is_left).cloned().collect());
            assert!(drained.pods.keys().eq(left.pods.keys()), "seed {seed}, {node}");
            assert_eq!(ready(&drained), ready(&left), "seed {seed}, {node}");
            assert!(drained.nodes[node].unschedulable && drained.nodes[node].loss.is_none());
            evicted += whole.pods.len() - left.pods.len();
        }
    }
    assert!(evicted > 100, "{evicted} pods were evicted");
}

const WORKLOADS: &str = "
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 3, selector: \
{matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: c}]}}}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-abc, namespace: shop, ownerReferences: [{apiVersion: \
apps/v1, kind: Deployment, name: web, controller: true}]}, spec: {replicas: 3, selector: {matchLabels: {app: web}}, \
template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: c}]}}}}
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent, namespace: shop}, spec: {selector: {matchLabels: \
{app: agent}}, template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: c, image: c}]}}}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {clusterIP: 172.20.0.1, selector: {app: \
web}, ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: all, namespace: shop}, spec: {clusterIP: 172.20.0.2, selector: {app: \
web}, publishNotReadyAddresses: true, ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: agent, namespace: shop}, spec: {clusterIP: 172.20.0.3, selector: \
{app: agent}, ports: [{port: 80}]}}
";

fn workloads() -> Cluster {
    let mut text = WORKLOADS.to_owned();
    for node in 1..=2 {
        text += &format!(
            "---\n{{apiVersion: v1, kind: Node, metadata: {{name: n{node}, labels: {{topology.kubernetes.io/zone: \
             z{node}}}}}, spec: {{podCIDRs: [10.1.{node}.0/24]}}, status: {{conditions: [{{type: Ready, status: \
             'True'}}], addresses: [{{type: InternalIP, address: 10.0.0.{node}}}]}}}}\n"
        );
    }
    for (name, app, owner, node, last, ready) in [
        ("web-abc-1", "web", "ReplicaSet, name: web-abc", 1, 1, "True"),
        ("web-abc-2", "web", "ReplicaSet, name: web-abc", 1, 2, "True"),
        ("web-abc-3", "web", "ReplicaSet, name: web-abc", 2, 3, "True"),
        ("web-abc-4", "web", "ReplicaSet, name: web-abc", 1, 4, "False"),
        ("agent-1", "agent", "DaemonSet, name: agent", 1, 5, "True"),
    ] {
        text += &format!(
            "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: shop, labels: {{app: {app}, \
             pod-template-hash: abc}}, ownerReferences: [{{apiVersion: apps/v1, kind: {owner}, controller: true}}]}}, \
             spec: {{nodeName: n{node}, containers: [{{name: c, image: c}}]}}, status: {{phase: Running, podIP: \
             10.1.{node}.{last}, conditions: [{{type: Ready, status: '{ready}'}}]}}}}\n"
        );
    }
    made(text)
}

fn changed(cluster: &Cluster, change: &LifeChange) -> Cluster {
    change.apply(cluster).unwrap().cluster
}

fn addresses(cluster: &Cluster, service: &str) -> Vec<String> {
    let service: NamespacedName = service.parse().unwrap();
    let ready = ready(cluster).into_iter().filter(|(own, _)| *own == service);
    ready.map(|(_, address)| address.to_string()).collect()
}

#[test]
fn pods_of_daemon_sets_stay_on_a_drained_node() {
    let drained = changed(&workloads(), &LifeChange::drain("n1").unwrap());
    assert_eq!(addresses(&drained, "shop/agent"), ["10.1.1.5"]);
    assert_eq!(addresses(&drained, "shop/web"), ["10.1.2.3"]);
}

#[test]
fn pods_of_a_lost_node_are_not_ready_once_it_is_noticed() {
    let whole = workloads();
    let unnoticed = changed(&whole, &LifeChange::lose("n1=unnoticed").unwrap());
    assert_eq!(ready(&unnoticed), ready(&whole));
    assert_eq!(unnoticed.nodes["n1"].loss, Some(Loss::Unnoticed));
    for change in [LifeChange::lose("n1"), LifeChange::lose_zone("z1")] {
        let noticed = changed(&whole, &change.unwrap());
        assert_eq!(addresses(&noticed, "shop/web"), ["10.1.2.3"]);
        assert!(addresses(&noticed, "shop/agent").is_empty());
        assert_eq!(addresses(&noticed, "shop/all").len(), 4, "published although not ready");
        assert!(!noticed.nodes["n1"].ready && noticed.nodes["n2"].ready);
    }
}

/// Pods that are not ready go first, then those on the node with the most of them.
#[test]
fn a_deployment_that_shrinks_loses_pods_in_the_order_of_its_replica_set() {
    let whole = workloads();
    let left = |replicas: u32| {
        let change = LifeChange::scale(&format!("deploy/shop/web={replicas}"), None).unwrap();
        let changed = change.apply(&whole).unwrap();
        let web = changed.cluster.pods.keys().filter(|name| name.name.as_str().starts_with("web"));
        let names: Vec<String> = web.map(|name| name.name.to_string()).collect();
        (names.join(" "), changed.assumed)
    };
    assert_eq!(left(3), ("web-abc-1 web-abc-2 web-abc-3".into(), Vec::new()));
    assert_eq!(left(0), (String::new(), Vec::new()));
    let (names, assumed) = left(2);
    assert_eq!(names, "web-abc-1 web-abc-3");
    assert!(assumed[0].contains("their ages decide"), "{assumed:?}");
    let (names, assumed) = left(6);
    assert_eq!(names.split(' ').count(), 4);
    assert!(assumed[0].starts_with("2 new pods"), "{assumed:?}");
}

#[test]
fn a_pod_that_is_not_ready_leaves_the_endpoints_and_stays() {
    let whole = workloads();
    let change = LifeChange::unready("web-abc-1", Some("shop")).unwrap();
    let unready = changed(&whole, &change);
    assert_eq!(addresses(&unready, "shop/web"), ["10.1.1.2", "10.1.2.3"]);
    assert_eq!(unready.pods.len(), whole.pods.len());
}

#[test]
fn what_is_not_there_is_named_with_what_is() {
    let whole = workloads();
    let fault = |change: Result<LifeChange, super::LifeError>| {
        change.unwrap().apply(&whole).unwrap_err().to_string()
    };
    assert_eq!(fault(LifeChange::lose("n3")), "there is no node n3; there are n1, n2");
    let zone = fault(LifeChange::lose_zone("z9"));
    assert!(zone.ends_with("there are z1, z2"), "{zone}");
    let workload = fault(LifeChange::scale("deploy/shop/wbe=1", None));
    assert_eq!(workload, "there is no Deployment shop/wbe; there are shop/web");
    let daemons = fault(LifeChange::scale("ds/shop/agent=1", None));
    assert!(daemons.contains("cannot be scaled"), "{daemons}");
    let pod = fault(LifeChange::unready("pod/shop/web-abc-9", None));
    assert!(pod.starts_with("there is no pod shop/web-abc-9; there are shop/web-abc-"), "{pod}");
}
