//! Load balancers of every cloud, as annotations ask for them: a redacted bundle gives the same
//! verdicts, and nothing that an annotation names is in it.

use std::collections::BTreeMap;

use super::common::{assert_same_without_edits, redacted};
use super::seeds;
use serde_json::{Value, json};
use uturn_clouds::cloud::{ALL, Annotation, CloudEntry, ValueKind};
use uturn_dice::Dice;
use uturn_snapshot::{Manifests, Source};

/// What begins every name here that must not be left.
const MARK: &str = "acme";

/// Values that name something.
const NAMES: [&str; 6] = [
    "acme-subnet-a,acme-subnet-b",
    "acme/rack=acmebasement, acmerole=edge",
    "arn:acme:acm:acme-west-9:812345678901:certificate/acme-0deadbeef",
    "198.51.100.77",
    "81.82.83.0/24",
    "web.acme-corp.example",
];

/// A text in which each letter may be large.
fn spelled(dice: &mut Dice, word: &str) -> String {
    match dice.below(4) {
        0 => word.to_uppercase(),
        _ => word.to_owned(),
    }
}

/// A value that an annotation may have: what its controller reads, and what it does not.
fn value(dice: &mut Dice, holds: &ValueKind) -> String {
    let word = |dice: &mut Dice| match holds.words() {
        [] => NAMES[dice.below(NAMES.len())].to_owned(),
        words => {
            let word = words[dice.below(words.len())];
            spelled(dice, word)
        }
    };
    match (holds, dice.below(8)) {
        (_, 0) => NAMES[dice.below(NAMES.len())].to_owned(),
        (ValueKind::Ports, 1..=4) => {
            ["80", "443", "80,443", "*", "acmeport"][dice.below(5)].to_owned()
        }
        (ValueKind::Document { fields, .. }, 1..=6) => {
            let mut members = BTreeMap::from([("acmemember".to_owned(), json!("acmevalue"))]);
            for field in *fields {
                let of = match dice.below(4) {
                    0 => json!(80),
                    1 => json!(true),
                    2 => json!([word(dice)]),
                    _ => json!(word(dice)),
                };
                members.insert((*field).to_owned(), of);
            }
            match dice.below(3) {
                0 => json!([members]).to_string(),
                1 => json!({"80": members}).to_string(),
                _ => json!(members).to_string(),
            }
        }
        (ValueKind::Words(words), 1) => {
            let own = words[dice.below(words.len())];
            format!("acmefield.enabled=true, {own}=true,{own}:443")
        }
        (ValueKind::Words(words), 2) => {
            let [own, other] = [0, 1].map(|_| words[dice.below(words.len())]);
            format!("{own}=true,{other}=false,acme.bucket=acmelogs")
        }
        _ => word(dice),
    }
}

/// Annotations of an object: what samples ask for, and some that are drawn.
fn annotations(dice: &mut Dice, entry: &CloudEntry) -> BTreeMap<String, String> {
    let mut drawn = BTreeMap::new();
    if !entry.samples.is_empty() && dice.below(2) == 0 {
        let sample = entry.samples[dice.below(entry.samples.len())];
        drawn.extend(sample.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    }
    let all: Vec<&Annotation> = entry.annotations.iter().copied().flatten().collect();
    for _ in 0..dice.below(6).min(all.len()) {
        let annotation = all[dice.below(all.len())];
        let own = ["80", "443", "acmeaction"][dice.below(3)];
        drawn.insert(annotation.key(own), value(dice, &annotation.holds));
    }
    drawn
}

/// A cluster of a cloud with load balancers of its own.
fn cluster(dice: &mut Dice, entry: &CloudEntry) -> String {
    let mut objects = vec![json!({
        "apiVersion": "uturn.dev/v1alpha1", "kind": "Facts",
        "spec": {"provider": entry.cloud.word(), "kubeProxy": {"version": "v1.34.4"}},
    })];
    for node in 1..=3 {
        objects.push(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": format!("acme-node-{node}"), "labels": {
                "topology.kubernetes.io/zone": format!("acmezone-{}", node % 2),
                "acmerole": if node == 1 { "edge" } else { "acmecore" },
            }},
            "spec": {"podCIDR": format!("10.1.{node}.0/24")},
            "status": {"addresses": [{"type": "InternalIP", "address": format!("10.0.0.1{node}")}]},
        }));
        objects.push(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("acmeweb-{node}"), "namespace": "acmeshop", "labels": {"app": "acmeweb"}},
            "spec": {"nodeName": format!("acme-node-{node}"), "containers": [{"name": "c", "image": "i",
                "ports": [{"name": "http", "containerPort": 8080}]}]},
            "status": {"phase": "Running", "podIP": format!("10.1.{node}.20"),
                "conditions": [{"type": "Ready", "status": "True"}]},
        }));
    }
    for number in 0..2 {
        let names = entry.markers.host_names;
        let status = match dice.below(3) {
            0 if !names.is_empty() => {
                let (ends, _) = names[dice.below(names.len())];
                let form = ["acme-0a1b.elb.acme-west-9", "acme-0a1b.acme-west-9.elb"];
                json!([{"hostname": format!("{}{ends}", form[dice.below(2)])}])
            }
            1 => json!([{"ip": "10.0.0.200"}]),
            _ => json!([{"ip": format!("203.0.113.{}", 101 + number)}]),
        };
        let policy = ["Cluster", "Local"][dice.below(2)];
        let classes = entry.markers.load_balancer_classes;
        let mut spec = json!({
            "type": "LoadBalancer", "clusterIP": format!("172.16.0.{}", 10 + number),
            "selector": {"app": "acmeweb"},
            "externalTrafficPolicy": policy,
            "ports": [
                {"name": "acmeport", "port": 80, "targetPort": "http", "nodePort": 30080 + number},
                {"name": "https", "port": 443, "targetPort": "http", "nodePort": 30443 + number},
            ],
        });
        if !classes.is_empty() && dice.below(3) == 0 {
            let (class, _) = classes[dice.below(classes.len())];
            let ends = if class.ends_with('/') { "acmeclass" } else { "" };
            spec["loadBalancerClass"] = format!("{class}{ends}").into();
        }
        objects.push(json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": format!("acmeweb-{number}"), "namespace": "acmeshop",
                "annotations": annotations(dice, entry)},
            "spec": spec, "status": {"loadBalancer": {"ingress": status}},
        }));
    }
    let classes = entry.markers.ingress_classes;
    let backend = json!({"service": {"name": "acmeweb-0", "port": {"number": 80}}});
    let action = json!({"service": {"name": "acmeaction", "port": {"name": "use-annotation"}}});
    let other = if dice.below(2) == 0 { &action } else { &backend };
    let mut spec = json!({"rules": [{"host": "web.acme-corp.example", "http": {"paths": [
        {"path": "/acmepath", "pathType": "Prefix", "backend": backend},
        {"path": "/", "pathType": "Prefix", "backend": other},
    ]}}]});
    if !classes.is_empty() {
        let (class, _) = classes[dice.below(classes.len())];
        spec["ingressClassName"] = class.into();
    }
    objects.push(json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": "acmefront", "namespace": "acmeshop", "annotations": annotations(dice, entry)},
        "spec": spec, "status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.120"}]}},
    }));
    objects.iter().map(|object: &Value| format!("---\n{object}\n")).collect()
}

fn manifests(text: &str) -> Manifests {
    Manifests::of(vec![Source { name: "all.yaml".into(), text: text.to_owned() }])
}

#[test]
fn load_balancers_of_every_cloud() {
    for (at, entry) in ALL.iter().enumerate() {
        for seed in seeds::of(at as u64, 1) {
            let text = cluster(&mut Dice::new(seed), entry);
            let what = format!("{} seed {seed}\n{text}", entry.cloud.word());
            let redacted = assert_same_without_edits(&manifests(&text), seed as u8, &what);
            let all: String = redacted.files.values().map(String::as_str).collect();
            let gone = [
                "198.51.100.77",
                "81.82.83.",
                "812345678901",
                "0deadbeef",
                "\"203.0.113.120\"",
                MARK,
            ];
            for gone in gone {
                assert!(!all.to_lowercase().contains(gone), "{gone}: {what}\n{all}");
            }
        }
    }
}

/// Every key in the folders of the clouds is one of which it is declared what it holds: a word that
/// decides is left in it.
#[test]
fn what_each_annotation_holds_is_declared() {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../analysis/clouds/src/cloud");
    let mut keys = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(&path).unwrap() {
            let file = file.unwrap().path();
            let text = std::fs::read_to_string(&file).unwrap();
            let text = text.split("#[cfg(test)]").next().unwrap();
            keys.extend(keys_of(text).into_iter().map(|key| (file.clone(), key)));
        }
    }
    assert!(keys.len() > 100, "{}", keys.len());
    let annotations: BTreeMap<&str, &str> = keys.iter().map(|(_, key)| (&**key, "true")).collect();
    let object = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "annotations": annotations}, "spec": {"ports": [{"port": 80}]},
    });
    let (redacted, _) = redacted(&manifests(&object.to_string()), 1);
    let kept: Value = serde_json::from_str(&redacted.files["objects/service.json"]).unwrap();
    let kept = &kept["items"][0]["metadata"]["annotations"];
    let lost: Vec<_> = keys.iter().filter(|(_, key)| kept[key.as_str()] != "true").collect();
    assert!(lost.is_empty(), "it is not declared what these hold: {lost:#?}");
}

/// The keys that a source file names: whole, or as what follows the beginning that it names.
fn keys_of(text: &str) -> Vec<String> {
    let markers: Vec<&str> = ALL
        .iter()
        .flat_map(|entry| {
            let markers = &entry.markers;
            let lists = [
                markers.load_balancer_classes,
                markers.ingress_controllers,
                markers.ingress_classes,
                markers.gateway_classes,
            ];
            lists.into_iter().flatten().map(|(name, _)| *name)
        })
        .collect();
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: String = code.map(|line| format!("{line}\n")).collect();
    let literals: Vec<&str> = code.split('"').skip(1).step_by(2).collect();
    let is_domain = |text: &str| {
        text.contains('.')
            && text
                .bytes()
                .all(|own| own.is_ascii_lowercase() || own.is_ascii_digit() || b".-".contains(&own))
    };
    // Of an API, as `v1beta1` is.
    let is_version = |name: &str| {
        let number = name.strip_prefix('v').unwrap_or_default();
        number.starts_with(|own: char| own.is_ascii_digit())
    };
    let is_key = |literal: &&&str| {
        literal.split_once('/').is_some_and(|(domain, name)| is_domain(domain) && !name.is_empty())
            && literal.ends_with(char::is_alphanumeric)
            && !literal.contains(['{', ' '])
            && !literal.starts_with(|own: char| own.is_ascii_digit())
            && !markers.contains(literal)
            && !literal.split_once('/').is_some_and(|(_, name)| is_version(name))
    };
    let mut keys: Vec<String> =
        literals.iter().filter(is_key).map(|key| (*key).to_owned()).collect();
    // What follows a beginning is a constant of its own, or an argument of the function that reads it.
    let begins =
        code.lines().filter_map(|line| line.split_once("PREFIX: &str = \"")?.1.split('"').next());
    for begins in begins {
        for before in ["&str = \"", "get(service, \"", "get(ingress, \"", "{PREFIX}"] {
            let found = code.split(before).skip(1);
            let names = found.map(|rest| rest.split(['"', '{']).next().unwrap());
            let is_name = |name: &&str| {
                !name.is_empty()
                    && !name.contains(['/', ' ', '_'])
                    && name.bytes().all(|own| !own.is_ascii_uppercase())
            };
            keys.extend(names.filter(is_name).map(|name| {
                if name.ends_with('.') {
                    format!("{begins}{name}web")
                } else {
                    format!("{begins}{name}")
                }
            }));
        }
    }
    keys
}

#[test]
fn nothing_of_a_document_is_left_that_is_not_read() {
    let text = r#"{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "annotations": {
        "service.beta.kubernetes.io/linode-loadbalancer-port-443":
            "{\"protocol\": \"HTTPS\", \"tls-secret-name\": \"acmesecret\", \"id\": 812345678901}"}},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 443}]}}"#;
    let (redacted, _) = redacted(&manifests(text), 1);
    let all: String = redacted.files.values().map(String::as_str).collect();
    assert!(all.contains(r#"linode-loadbalancer-port-443":"{"#), "{all}");
    assert!(all.contains(r#"\"protocol\":\"HTTPS\""#), "{all}");
    assert!(!all.contains(MARK) && !all.contains("8123"), "{all}");
}
