//! What the controllers make of a cluster in the cloud is what `uturn-lb` predicts for it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use uturn_clouds::controller;
use uturn_model::lb::{ListenerOverride, StatedProbeSource};
use uturn_model::service::{IpMode, LbIngress, ServiceKind};
use uturn_model::{Cluster, Family, Ingress, ObjectRef};
use uturn_operator::environment::{CertificateSecret, Environment};
use uturn_operator::{clb::Certificate, tags, wanted};

use crate::dice::{self, Dice};
use crate::held;
use crate::rich;
use crate::stage::{Stage, cluster, environment, uid};
use crate::targets;

/// The addresses of the load balancers that were made for an object.
fn status(stage: &Stage, environment: &Environment, object: &ObjectRef) -> Vec<LbIngress> {
    let uid = uid(environment, object);
    let accounts = stage.accounts();
    let balancers = accounts.values().flat_map(|account| account.load_balancers.values());
    let is_own = |balancer: &&uturn_cloud::state::LoadBalancer| {
        balancer.tags.iter().any(|tag| {
            [tags::SERVICE_UID, tags::INGRESS_UID].contains(&&*tag.tag_key) && tag.tag_value == uid
        })
    };
    let addresses = balancers.filter(is_own).flat_map(|balancer| balancer.addresses.clone());
    addresses.map(|ip| LbIngress { ip: Some(ip), hostname: None, mode: IpMode::Vip }).collect()
}

/// The cluster with the addresses that its load balancers have in the cloud, and without what
/// Facts say of others.
fn with_addresses(stage: &Stage, cluster: &Cluster, environment: &Environment) -> Cluster {
    let mut cluster = cluster.clone();
    cluster.load_balancers.clear();
    for service in cluster.services.values_mut() {
        service.load_balancer = status(stage, environment, &service.object());
    }
    for ingress in cluster.ingresses.values_mut() {
        ingress.load_balancer = status(stage, environment, &ingress.object());
    }
    cluster
}

pub(crate) fn check(
    stage: &Stage,
    cluster: &Cluster,
    environment: &Environment,
    what: &str,
) -> usize {
    let cluster = with_addresses(stage, cluster, environment);
    let predicted = held::of(&controller::load_balancers(&cluster));
    let served = held::served(&stage.accounts());
    assert_eq!(served, predicted, "{what}");
    served.len()
}

pub(crate) fn random(seed: u64) -> Cluster {
    let dice = &mut Dice::new(seed);
    let mut cluster = with_subnets(cluster(&dice::cluster(dice)));
    targets::vary(&mut cluster, dice);
    cluster
}

/// What is known of a random cluster. A Service that becomes private, or speaks another family, is
/// another one, and so is an Ingress of which something else is configured: what nothing states
/// any more stays as it was, which no prediction knows.
pub(crate) fn random_environment(cluster: &Cluster) -> Environment {
    let mut environment = environment(cluster);
    for (object, fixed) in objects(cluster) {
        let text = format!("{}-{fixed}", object.short());
        environment.uids.insert(object, text);
    }
    environment
}

/// Each object, with what cannot be changed of its load balancer.
fn objects(cluster: &Cluster) -> Vec<(ObjectRef, String)> {
    let is_private = |annotations: &uturn_model::Labels| {
        annotations.iter().any(|(key, _)| key.ends_with("subnetid") || key.ends_with("subnetId"))
    };
    let services = cluster.services.values();
    let services = services.map(|service| {
        let is_v6 = service.families.contains(&Family::V6);
        (service.object(), format!("{}-{is_v6}", is_private(&service.annotations)))
    });
    let ingresses = cluster.ingresses.values();
    let ingresses = ingresses.map(|ingress| {
        let is_private = is_private(&ingress.annotations);
        (ingress.object(), format!("{is_private}-{}", configured(cluster, ingress)))
    });
    services.chain(ingresses).collect()
}

/// What is configured of an Ingress, as a short text.
fn configured(cluster: &Cluster, ingress: &Ingress) -> String {
    let is_auto =
        ingress.annotations.is("ingress.cloud.tencent.com/tke-service-config-auto", "true");
    let name = format!("shop/{}-auto-ingress-config", ingress.name.name).parse().unwrap();
    let overrides = cluster.listener_overrides.get(&name).filter(|_| is_auto);
    let listeners = overrides.iter().flat_map(|overrides| &overrides.listeners);
    let short = |listener: &ListenerOverride| {
        let ListenerOverride { keepalive, health_check, probe_source, .. } = listener;
        let source = probe_source.map(|source| source == StatedProbeSource::Vip);
        [keepalive, health_check, &source].map(|set| set.map_or(2, u8::from).to_string()).concat()
    };
    listeners.map(short).collect()
}

#[test]
fn random_clusters_are_served_as_predicted() {
    let mut listeners = 0;
    for seed in 1..=80 {
        let cluster = random(seed);
        let environment = random_environment(&cluster);
        let stage = Stage::new();
        stage.settle(&cluster, &environment);
        listeners += check(&stage, &cluster, &environment, &format!("seed {seed}"));
        stage.take_log();
        stage.settle(&cluster, &environment);
        assert_eq!(
            stage.take_log(),
            Vec::<String>::new(),
            "seed {seed}: at rest there is no write"
        );
    }
    assert!(listeners > 60, "only {listeners} listeners were compared");
}

#[test]
fn a_cluster_becomes_another_one() {
    let stage = Stage::new();
    let mut compared = 0;
    for seed in 1..=60 {
        let cluster = random(seed);
        let environment = random_environment(&cluster);
        stage.settle(&cluster, &environment);
        compared += check(&stage, &cluster, &environment, &format!("seed {seed}"));
    }
    assert!(compared > 45, "only {compared} listeners were compared");
}

#[test]
fn the_shop_is_served_as_predicted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/shop");
    let loaded = uturn_snapshot::load(&[folder]).unwrap_or_else(|faults| panic!("{faults:?}"));
    let cluster = loaded.cluster;
    let environment = environment(&cluster);
    let stage = Stage::new();
    let events = stage.settle(&cluster, &environment);
    assert_eq!(events, []);
    assert_eq!(check(&stage, &cluster, &environment, "the shop"), 2);
}

#[test]
fn every_feature_is_served_as_predicted() {
    let stage = Stage::new();
    let (cluster, environment) = rich::cluster_and_environment(&stage);
    let events = stage.settle(&cluster, &environment);
    assert_eq!(events, []);
    assert_eq!(check(&stage, &cluster, &environment, "every feature"), 10);
    let named: BTreeSet<String> =
        wanted::secrets(&cluster).iter().map(ToString::to_string).collect();
    let known: BTreeSet<String> = environment.secrets.keys().map(ToString::to_string).collect();
    assert_eq!(named, known, "the Secrets that are read are those that are named");
}

#[test]
fn scenarios_are_served_as_predicted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios");
    let mut compared = 0;
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "yaml")) {
        let text = fs::read_to_string(file).unwrap();
        let source = uturn_snapshot::Source { name: "scenario.yaml".into(), text };
        let Ok(cluster) = uturn_snapshot::Manifests::of(vec![source]).cluster() else {
            continue;
        };
        let cluster = with_subnets(cluster);
        let stage = Stage::new();
        let mut environment = environment(&cluster);
        let id = stage.certificate();
        for name in wanted::secrets(&cluster) {
            let certificate = Certificate { server: id.clone(), authority: None };
            environment.secrets.insert(name, CertificateSecret::Certificate(certificate));
        }
        let has_any =
            cluster.services.values().any(|service| service.kind == ServiceKind::LoadBalancer)
                || !cluster.ingresses.is_empty();
        // Some play in other clouds.
        if wanted::wanted(&cluster, &environment).is_err() {
            continue;
        }
        let events = stage.settle(&cluster, &environment);
        if has_any && events.is_empty() {
            compared += check(&stage, &cluster, &environment, &file.display().to_string());
        }
    }
    assert!(compared > 20, "only {compared} listeners were compared");
}

/// Subnets of manifests have any name; the cloud's have a form.
pub(crate) fn with_subnets(mut cluster: Cluster) -> Cluster {
    for service in cluster.services.values_mut() {
        service.annotations = with_subnet(&service.annotations);
    }
    for ingress in cluster.ingresses.values_mut() {
        ingress.annotations = with_subnet(&ingress.annotations);
    }
    cluster
}

fn with_subnet(annotations: &uturn_model::Labels) -> uturn_model::Labels {
    let written = annotations.iter().map(|(key, value)| {
        let is_subnet = key.ends_with("subnetid") || key.ends_with("subnetId");
        (key, if is_subnet { "subnet-aaaaaaaa" } else { value })
    });
    written.collect()
}
