//! Random clusters with every annotation that the controllers know, beside load balancers of the
//! user's, some of which the cluster uses.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use uturn_model::ingress::Tls;
use uturn_model::service::ServiceKind;
use uturn_model::{Cluster, Labels};
use uturn_operator::clb::{Certificate, LISTENER_NAME};
use uturn_operator::environment::{CertificateSecret, Environment};
use uturn_operator::event::Event;
use uturn_operator::shares::Share;
use uturn_operator::tags;
use uturn_operator::wanted::{self, AFFINITY_NOTE, Place, Wanted};

use crate::dice::{self, Dice};
use crate::one_decision::{check, with_subnets};
use crate::stage::{Stage, cluster, environment};
use crate::targets;

const SERVICE: &str = "service.cloud.tencent.com";
const INGRESS: &str = "ingress.cloud.tencent.com";

/// Load balancers that were made by hand, with listeners of the user's and targets.
struct Users {
    /// Those that the cluster may use, and one that it does not name.
    ids: Vec<String>,
    certificate: String,
}

impl Users {
    fn make(stage: &Stage) -> Self {
        let certificate = stage.certificate();
        let make = |number: usize| {
            let answer = stage.by_hand(
                "CreateLoadBalancer",
                json!({ "LoadBalancerType": "OPEN", "LoadBalancerName": format!("user-{number}") }),
            );
            let id = answer["LoadBalancerIds"][0].as_str().unwrap().to_owned();
            // A port that the cluster may want, and one that it never wants.
            let ports = if number == 1 { vec![8080, 9000] } else { vec![9000] };
            let names = vec!["mine"; ports.len()];
            let answer = stage.by_hand(
                "CreateListener",
                json!({ "LoadBalancerId": id, "Ports": ports, "Protocol": "TCP",
                    "ListenerNames": names }),
            );
            let listener = answer["ListenerIds"][0].as_str().unwrap().to_owned();
            stage.by_hand(
                "RegisterTargets",
                json!({ "LoadBalancerId": id, "ListenerId": listener,
                    "Targets": [{ "Port": 7, "EniIp": "10.1.1.7" }] }),
            );
            id
        };
        Self { ids: (0..4).map(make).collect(), certificate }
    }

    /// All that is the user's.
    fn seen(&self, stage: &Stage) -> Vec<Value> {
        let accounts = stage.accounts();
        let balancers = accounts.values().flat_map(|account| account.load_balancers.values());
        let own = balancers.filter(|balancer| self.ids.contains(&balancer.id));
        let seen = own.map(|balancer| {
            let listeners = balancer.listeners.iter();
            let mine: Vec<_> =
                listeners.filter(|listener| listener.name != LISTENER_NAME).collect();
            json!({ "id": balancer.id, "name": balancer.name, "tags": balancer.tags,
                "listeners": mine })
        });
        seen.collect()
    }
}

fn annotate(annotations: &mut Labels, more: Vec<(String, String)>) {
    let mut all: BTreeMap<String, String> =
        annotations.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    all.extend(more);
    *annotations = all.into_iter().collect();
}

/// What a Service and an Ingress may have alike.
fn alike(dice: &mut Dice, prefix: &str) -> Vec<(String, String)> {
    let mut more = Vec::new();
    if dice.once_in(5) {
        more.push((format!("{prefix}/pass-to-target"), dice.one_of(&["true", "false"]).to_owned()));
    }
    if dice.once_in(5) {
        let groups = dice.one_of(&["sg-aaaaaaaa", "sg-bbbbbbbb, sg-aaaaaaaa", ""]);
        more.push((format!("{prefix}/security-groups"), groups.to_owned()));
    }
    if dice.once_in(12) {
        more.push((format!("{prefix}/mode"), "skip".to_owned()));
    }
    if dice.once_in(6) {
        let subnets = dice.one_of(&[&["subnet-aaaaaaaa"][..], &["subnet-aaaaaaaa"; 2]]);
        let subnets: Vec<Value> = subnets.iter().map(|id| json!({ "subnetId": id })).collect();
        more.push((format!("{prefix}/snat-pro-info"), json!({ "snatIps": subnets }).to_string()));
    }
    if dice.once_in(15) {
        let key = dice.one_of(&["hybrid-type", "modification-protection", "cross-region-id"]);
        more.push((format!("{prefix}/{key}"), "true".to_owned()));
    }
    more
}

/// What is set on listeners of layer 4.
fn config(dice: &mut Dice, service: &str) -> String {
    let scheduler = dice.one_of(&["", "scheduler: WRR, ", "scheduler: LEAST_CONN, "]);
    let session = dice.one_of(&[
        "",
        "session: {enable: false}, ",
        "session: {enable: true, sessionExpireTime: 300}, ",
    ]);
    let check = dice.one_of(&[
        "{enable: true, intervalTime: 9, timeout: 4, sourceIpType: 1}",
        "{enable: false}",
        "{enable: true, healthNum: 2, unHealthNum: 5, sourceIpType: 0}",
    ]);
    let listener = |port: u16, protocol: &str| {
        format!(
            "    - {{protocol: {protocol}, port: {port}, {scheduler}{session}healthCheck: {check}}}\n"
        )
    };
    let listeners = [listener(80, "TCP"), listener(80, "UDP"), listener(8080, "TCP")].concat();
    format!(
        "---
apiVersion: cloud.tencent.com/v1alpha1
kind: TkeServiceConfig
metadata: {{name: {service}-auto-service-config, namespace: shop}}
spec:
  loadBalancer:
    l4Listeners:
{listeners}"
    )
}

fn random(seed: u64, users: &Users) -> Cluster {
    let dice = &mut Dice::new(seed);
    let mut text = dice::cluster(dice);
    for number in 0..4 {
        text.push_str(&config(dice, &format!("s{number}")));
    }
    let mut cluster = with_subnets(cluster(&text));
    targets::vary(&mut cluster, dice);
    for service in cluster.services.values_mut() {
        if service.kind != ServiceKind::LoadBalancer {
            continue;
        }
        let mut more = alike(dice, SERVICE);
        if dice.once_in(3) {
            let id = users.ids[dice.below(3)].clone();
            more.push(("service.kubernetes.io/tke-existed-lbid".to_owned(), id));
        }
        if dice.once_in(3) {
            more.push((format!("{SERVICE}/tke-service-config-auto"), "true".to_owned()));
        }
        if dice.once_in(3) {
            let protocol = dice.one_of(&["TCP_SSL", "HTTP", "HTTPS"]);
            let tls = dice.one_of(&["cert", "cert", "cert", "missing"]);
            let all = [80, 8080]
                .map(|port| (port.to_string(), json!({ "protocol": [protocol], "tls": tls })));
            let value = Value::Object(all.into_iter().collect());
            more.push((format!("{SERVICE}/specify-protocol"), value.to_string()));
        }
        if dice.once_in(3) {
            more.push((format!("{SERVICE}/local-svc-weighted-balance"), "true".to_owned()));
        }
        if service.affinity_seconds.is_none() && dice.once_in(4) {
            more.push((AFFINITY_NOTE.to_owned(), "ClientIP".to_owned()));
        }
        annotate(&mut service.annotations, more);
    }
    for ingress in cluster.ingresses.values_mut() {
        let mut more = alike(dice, INGRESS);
        if dice.once_in(4) {
            let id = users.ids[dice.below(3)].clone();
            more.push(("kubernetes.io/ingress.existLbId".to_owned(), id));
            if dice.once_in(2) {
                more.push((format!("{INGRESS}/enable-group"), "true".to_owned()));
            }
        }
        if dice.once_in(2) {
            let secret = dice.one_of(&["cert", "cert", "cert", "missing", "empty"]);
            let hosts = match dice.below(3) {
                0 => vec!["h0.example.com".into()],
                _ => Vec::new(),
            };
            ingress.tls.push(Tls { hosts, secret: Some(secret.into()) });
        }
        for (key, value) in [
            ("ingress.cloud.tencent.com/auto-rewrite", "true"),
            ("kubernetes.io/ingress.rule-mix-both", "true"),
            ("ingress.cloud.tencent.com/listen-ports", r#"[{"HTTP":8081},{"HTTPS":8443}]"#),
        ] {
            if dice.once_in(4) {
                more.push((key.to_owned(), value.to_owned()));
            }
        }
        annotate(&mut ingress.annotations, more);
    }
    cluster
}

/// What the controllers know. All namespaces may use the load balancers of the user's.
fn known(cluster: &Cluster, users: &Users) -> Environment {
    let mut environment = environment(cluster);
    let certificate = Certificate { server: users.certificate.clone(), authority: None };
    let secrets = [
        ("shop/cert", CertificateSecret::Certificate(certificate)),
        ("shop/empty", CertificateSecret::WithoutId),
    ];
    environment.secrets =
        secrets.into_iter().map(|(name, secret)| (name.parse().unwrap(), secret)).collect();
    environment.shares =
        users.ids.iter().map(|id| format!("{id}=*").parse::<Share>().unwrap()).collect();
    environment
}

/// Checks that no load balancer is there twice, and none that nothing wants.
fn check_balancers(stage: &Stage, wanted: &Wanted, what: &str) {
    let accounts = stage.accounts();
    let balancers = accounts.values().flat_map(|account| account.load_balancers.values());
    let mut seen = BTreeSet::new();
    for balancer in balancers {
        let uid = balancer
            .tags
            .iter()
            .find(|tag| [tags::SERVICE_UID, tags::INGRESS_UID].contains(&&*tag.tag_key));
        let Some(uid) = uid else { continue };
        assert!(seen.insert(uid.tag_value.clone()), "{what}: two for {}", uid.tag_value);
    }
    let own = wanted.balancers.iter().filter(|balancer| matches!(balancer.place, Place::Own(_)));
    for balancer in own {
        let uid = &balancer.owners[0].uid;
        assert!(seen.contains(uid), "{what}: none for {uid}");
    }
}

fn settle(stage: &Stage, cluster: &Cluster, environment: &Environment, what: &str) -> Vec<Event> {
    let events = stage.settle(cluster, environment);
    stage.take_log();
    let environment = &Environment { ledger: stage.ledger(), ..environment.clone() };
    let wanted = wanted::wanted(cluster, environment).unwrap();
    stage.settle_wanted(&wanted, environment);
    assert_eq!(stage.take_log(), Vec::<String>::new(), "{what}: at rest there is no write");
    check_balancers(stage, &wanted, what);
    events
}

/// More listeners than these are compared.
const COMPARED: usize = 60;

#[test]
fn a_varied_cluster_settles_and_leaves_what_is_the_users() {
    let (mut compared, mut with_events, mut shared) = (0, 0, 0);
    // Most clusters have a fault, or use what is the user's: how many do is up to the dice, so it
    // is gone on until enough is compared. About one in five has neither.
    for seed in 1..=400 {
        if seed > 150 && compared > COMPARED {
            break;
        }
        let what = format!("seed {seed}");
        let stage = Stage::new();
        let users = Users::make(&stage);
        let before = users.seen(&stage);
        let cluster = random(seed, &users);
        let environment = known(&cluster, &users);
        let events = settle(&stage, &cluster, &environment, &what);
        assert_eq!(users.seen(&stage), before, "{what}");
        let wanted = wanted::wanted(&cluster, &environment).unwrap();
        let is_existing =
            |balancer: &wanted::Balancer| matches!(balancer.place, Place::Existing(_));
        let uses_existing = wanted.balancers.iter().any(is_existing);
        shared += usize::from(uses_existing);
        with_events += usize::from(!events.is_empty());
        // The prediction knows neither what faults prevent nor what is the user's.
        if events.is_empty() && !uses_existing && wanted.untouched.is_empty() {
            // Without what is the user's, only the cluster's is compared.
            for id in &users.ids {
                stage.by_hand(
                    "DeleteLoadBalancer",
                    json!({ "LoadBalancerIds": [id], "ForceDelete": true }),
                );
            }
            compared += check(&stage, &cluster, &environment, &what);
        }
        let mut empty = cluster.clone();
        empty.services.clear();
        empty.ingresses.clear();
        settle(&stage, &empty, &environment, &what);
    }
    assert!(compared > COMPARED, "only {compared} listeners were compared");
    assert!(with_events > 30, "only {with_events} clusters had events");
    assert!(shared > 30, "only {shared} clusters used what is the user's");
}
