//! Random clusters, as an API server lists them: everything on which it depends what an object
//! wants of the cloud occurs now and then.

use kube::core::DynamicObject;
use serde_json::{Map, Value, json};
use uturn_dice::Dice;
use uturn_kube::kinds::{CONFIG, INGRESS, NODE, POD, SERVICE, SLICE, WATCHED, WatchedKind};
use uturn_kube::store::Store;

const NAMESPACES: [&str; 2] = ["shop", "bank"];
/// Load balancers of the user's.
const EXISTING: [&str; 3] = ["lb-aaaaaaa1", "lb-aaaaaaa2", "lb-aaaaaaa3"];
const SERVICES: usize = 4;
const INGRESSES: usize = 3;
const GATE: &str = "cloud.tencent.com/load-balancer-backendgroup-ready";
/// The kinds of which single objects change, and how often each is drawn.
const DRAWN: [(&WatchedKind, usize); 6] =
    [(&SERVICE, 6), (&INGRESS, 6), (&SLICE, 4), (&CONFIG, 3), (&POD, 3), (&NODE, 2)];

/// A cluster.
pub(crate) fn store(dice: &mut Dice) -> Store {
    let mut store = Store::default();
    for kind in WATCHED {
        store.list(kind, Vec::new());
    }
    for number in 1..=dice.between(1, 5) {
        apply(&mut store, &NODE, node(dice, number));
    }
    if dice.once_in(3) {
        apply(&mut store, class(), ingress_class(dice));
    }
    for _ in 0..40 {
        let (kind, _) = dice.pick(&DRAWN[..5]);
        apply(&mut store, kind, object(dice, kind));
    }
    for namespace in NAMESPACES {
        for number in 0..SERVICES {
            if !dice.once_in(4) {
                apply(&mut store, &SERVICE, service(dice, namespace, number));
                apply(&mut store, &SLICE, slice(dice, namespace, number, 0));
            }
        }
    }
    store.take_changes();
    store
}

/// Changes, adds or removes an object. Returns its kind and its name.
pub(crate) fn change(dice: &mut Dice, store: &mut Store) -> String {
    let all: usize = DRAWN.iter().map(|(_, weight)| weight).sum();
    let mut rolled = dice.below(all);
    let (kind, _) = DRAWN
        .iter()
        .find(|(_, weight)| {
            let is_it = rolled < *weight;
            rolled = rolled.saturating_sub(*weight);
            is_it
        })
        .unwrap();
    let drawn = object(dice, kind);
    let name = format!("{} {}/{}", kind.kind, text(&drawn, "namespace"), text(&drawn, "name"));
    if dice.once_in(3) {
        store.delete(kind, &serde_json::from_value(drawn).unwrap());
    } else {
        apply(store, kind, drawn);
    }
    name
}

fn text<'v>(object: &'v Value, member: &str) -> &'v str {
    object["metadata"][member].as_str().unwrap_or_default()
}

fn class() -> &'static WatchedKind {
    WATCHED.into_iter().find(|kind| kind.kind == "IngressClass").unwrap()
}

fn apply(store: &mut Store, kind: &'static WatchedKind, object: Value) {
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    store.apply(kind, object);
}

fn object(dice: &mut Dice, kind: &WatchedKind) -> Value {
    let namespace = dice.choose(&NAMESPACES);
    match kind {
        kind if *kind == SERVICE => {
            let number = dice.below(SERVICES);
            service(dice, namespace, number)
        }
        kind if *kind == INGRESS => ingress(dice, namespace),
        kind if *kind == SLICE => {
            let (service, number) = (dice.below(SERVICES), dice.below(2));
            slice(dice, namespace, service, number)
        }
        kind if *kind == CONFIG => config(dice, namespace),
        kind if *kind == POD => pod(dice, namespace),
        _ => {
            let number = dice.between(1, 5);
            node(dice, number)
        }
    }
}

fn node(dice: &mut Dice, number: usize) -> Value {
    let mut labels = json!({ "pool": dice.choose(&["web", "web", "batch"]) });
    if dice.once_in(10) {
        labels["node.kubernetes.io/exclude-from-external-load-balancers"] = "".into();
    }
    let ready = if dice.once_in(10) { "False" } else { "True" };
    let mut spec = json!({ "podCIDR": format!("10.1.{number}.0/24") });
    if dice.once_in(10) {
        spec["unschedulable"] = true.into();
    }
    if dice.once_in(2) {
        spec["providerID"] = format!("qcloud:///100001/ins-aaaaaaa{number}").into();
    }
    let address = format!("10.0.0.{}", 10 + number);
    let kind = if dice.once_in(12) { "Hostname" } else { "InternalIP" };
    json!({ "metadata": { "name": format!("n{number}"), "labels": labels }, "spec": spec,
        "status": { "addresses": [{ "type": kind, "address": address }],
            "conditions": [{ "type": "Ready", "status": ready }] } })
}

fn ingress_class(dice: &mut Dice) -> Value {
    let controller = dice.choose(&["k8s.io/ingress-nginx", "ingress.cloud.tencent.com/qcloud"]);
    let is_default = dice.choose(&["true", "false"]);
    json!({ "metadata": { "name": "web", "annotations": {
            "ingressclass.kubernetes.io/is-default-class": is_default } },
        "spec": { "controller": controller } })
}

/// What Services and Ingresses have alike.
fn metadata(
    dice: &mut Dice,
    namespace: &str,
    name: &str,
    annotations: &Map<String, Value>,
) -> Value {
    let uid = format!("uid-{namespace}-{name}");
    let mut metadata = json!({ "name": name, "namespace": namespace, "uid": uid,
        "annotations": annotations });
    if dice.once_in(2) {
        metadata["finalizers"] = json!([uturn_kube::cluster::FINALIZER]);
        if dice.once_in(8) {
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
    }
    metadata
}

/// Sometimes one of these values.
fn maybe(
    dice: &mut Dice,
    annotations: &mut Map<String, Value>,
    times: usize,
    key: &str,
    values: &[&str],
) {
    if dice.once_in(times) {
        annotations.insert(key.to_owned(), dice.choose(values).into());
    }
}

fn service(dice: &mut Dice, namespace: &str, number: usize) -> Value {
    let mut annotations = Map::new();
    let cloud = "service.cloud.tencent.com";
    let weights = r#"{"groups":[{"key":{"proto":"TCP","port":80},"statefulSets":
        [{"name":"s0","weights":[{"weight":0,"podIndexes":[0,1]}]}]}]}"#;
    let protocols = r#"{"80":{"protocol":["HTTPS"],"tls":"cert"}}"#;
    let own = format!("s{number}-auto-service-config");
    for (times, key, values) in [
        (3, format!("{cloud}/direct-access"), &["true"][..]),
        (3, "service.kubernetes.io/tke-existed-lbid".to_owned(), &EXISTING),
        (5, "service.kubernetes.io/loadbalance-id".to_owned(), &EXISTING),
        (3, format!("{cloud}/tke-service-config"), &["tuned", "missing", &own]),
        (3, format!("{cloud}/tke-service-config-auto"), &["true"]),
        (4, "service.kubernetes.io/qcloud-loadbalancer-backends-label".to_owned(), &["pool=web"]),
        (3, "service.kubernetes.io/local-svc-only-bind-node-with-pod".to_owned(), &["true"]),
        (4, format!("{cloud}/local-svc-weighted-balance"), &["true"]),
        (4, format!("{cloud}/prevent-loopback"), &["true"]),
        (6, format!("{cloud}/specify-protocol"), &[protocols]),
        (6, format!("{cloud}/lb-rs-weight"), &[weights]),
        (6, format!("{cloud}/enable-grace-shutdown-tkex"), &["true"]),
        (9, format!("{cloud}/mode"), &["skip"]),
        (9, format!("{cloud}/hybrid-type"), &["true"]),
        (9, format!("{cloud}/pass-to-target"), &["true", "false"]),
    ] {
        maybe(dice, &mut annotations, times, &key, values);
    }
    let kind = dice.choose(&["ClusterIP", "NodePort", "LoadBalancer", "LoadBalancer"]);
    let port = |dice: &mut Dice, name: &str, port: u16, position: usize| {
        let mut port = json!({ "name": name, "port": port, "targetPort": 8080,
            "protocol": dice.choose(&["TCP", "TCP", "UDP"]) });
        if kind != "ClusterIP" {
            port["nodePort"] = (30_000 + 10 * number + position).into();
        }
        port
    };
    let mut ports = vec![port(dice, "web", 80, 0)];
    if dice.once_in(3) {
        ports.push(port(dice, "more", 8080, 1));
    }
    let position = 10 + number + if namespace == "shop" { 0 } else { 100 };
    let mut spec = json!({ "type": kind, "clusterIP": format!("172.16.0.{position}"),
        "ports": ports });
    if kind != "ClusterIP" {
        spec["externalTrafficPolicy"] = dice.choose(&["Cluster", "Local"]).into();
    }
    if !dice.once_in(5) {
        spec["selector"] = json!({ "app": format!("s{number}") });
    }
    if dice.once_in(6) {
        spec["sessionAffinity"] = "ClientIP".into();
    }
    if kind == "LoadBalancer" && dice.once_in(15) {
        spec["loadBalancerClass"] = "example.com/other".into();
    }
    let name = format!("s{number}");
    json!({ "metadata": metadata(dice, namespace, &name, &annotations), "spec": spec })
}

fn slice(dice: &mut Dice, namespace: &str, service: usize, number: usize) -> Value {
    let endpoint = |dice: &mut Dice, pod: usize| {
        let node = dice.between(1, 5);
        let is_ready = !dice.once_in(4);
        let mut endpoint = json!({ "addresses": [format!("10.1.{node}.{}", 10 + pod)],
            "nodeName": format!("n{node}"),
            "conditions": { "ready": is_ready, "serving": is_ready,
                "terminating": !is_ready && dice.once_in(2) } });
        if !dice.once_in(6) {
            endpoint["targetRef"] = json!({ "kind": "Pod", "namespace": namespace,
                "name": format!("s{service}-{pod}") });
        }
        endpoint
    };
    let endpoints: Vec<Value> = (0..dice.below(4)).map(|pod| endpoint(dice, pod)).collect();
    json!({ "metadata": { "name": format!("s{service}-x{number}"), "namespace": namespace,
            "labels": { "kubernetes.io/service-name": format!("s{service}") } },
        "addressType": "IPv4", "endpoints": endpoints,
        "ports": [{ "name": "web", "port": 8080, "protocol": "TCP" }] })
}

fn pod(dice: &mut Dice, namespace: &str) -> Value {
    let (service, number, node) = (dice.below(SERVICES), dice.below(4), dice.between(1, 5));
    let status = |dice: &mut Dice| dice.choose(&["True", "False"]);
    let conditions = json!([
        { "type": "ContainersReady", "status": status(dice) },
        { "type": "Ready", "status": "False" },
        { "type": GATE, "status": status(dice) },
    ]);
    let gates = if dice.once_in(5) { json!([]) } else { json!([{ "conditionType": GATE }]) };
    json!({ "metadata": { "name": format!("s{service}-{number}"), "namespace": namespace },
        "spec": { "nodeName": format!("n{node}"), "readinessGates": gates,
            "containers": [{ "name": "main", "image": "x" }] },
        "status": { "phase": "Running", "conditions": conditions,
            "podIPs": [{ "ip": format!("10.1.{node}.{}", 10 + number) }] } })
}

fn ingress(dice: &mut Dice, namespace: &str) -> Value {
    let number = dice.below(INGRESSES);
    let mut annotations = Map::new();
    let cloud = "ingress.cloud.tencent.com";
    let rules = r#"[{"host":"b.example.com","path":"/b",
        "backend":{"serviceName":"s1","servicePort":"80"}}]"#;
    let own = format!("i{number}-auto-ingress-config");
    for (times, key, values) in [
        (4, format!("{cloud}/direct-access"), &["true", "true", "perhaps"][..]),
        (3, "kubernetes.io/ingress.existLbId".to_owned(), &EXISTING),
        (3, format!("{cloud}/enable-group"), &["true"]),
        (5, "kubernetes.io/ingress.qcloud-loadbalance-id".to_owned(), &EXISTING),
        (3, format!("{cloud}/tke-service-config"), &["tuned", "missing", &own]),
        (3, format!("{cloud}/tke-service-config-auto"), &["true"]),
        (4, "kubernetes.io/ingress.rule-mix".to_owned(), &["true"]),
        (4, "kubernetes.io/ingress.http-rules".to_owned(), &[rules, "no list"]),
        (4, "kubernetes.io/ingress.https-rules".to_owned(), &[rules]),
        (6, format!("{cloud}/auto-rewrite"), &["true"]),
        (9, format!("{cloud}/mode"), &["skip"]),
    ] {
        maybe(dice, &mut annotations, times, &key, values);
    }
    let backend = |dice: &mut Dice| {
        let port = match dice.below(6) {
            0 => json!({ "number": 81 }),
            1 | 2 => json!({ "number": 80 }),
            _ => json!({ "name": "web" }),
        };
        json!({ "service": { "name": format!("s{}", dice.below(SERVICES)), "port": port } })
    };
    let paths = |dice: &mut Dice| {
        json!([{ "path": "/", "pathType": "Prefix", "backend": backend(dice) },
            { "path": "/a", "pathType": "Exact", "backend": backend(dice) }])
    };
    let hosts = ["a.example.com", "b.example.com", "*.example.com"];
    let rules: Vec<Value> = (0..dice.below(3))
        .map(|_| json!({ "host": dice.choose(&hosts), "http": { "paths": paths(dice) } }))
        .collect();
    let rules_are_none = rules.is_empty();
    let mut spec = json!({ "rules": rules });
    if rules_are_none || dice.once_in(3) {
        spec["defaultBackend"] = backend(dice);
    }
    if dice.once_in(3) {
        let secret = dice.choose(&["cert", "missing"]);
        spec["tls"] = json!([{ "hosts": ["a.example.com"], "secretName": secret }]);
    }
    if dice.once_in(4) {
        spec["ingressClassName"] = dice.choose(&["web", "qcloud", "nginx"]).into();
    }
    let name = format!("i{number}");
    json!({ "metadata": metadata(dice, namespace, &name, &annotations), "spec": spec })
}

fn config(dice: &mut Dice, namespace: &str) -> Value {
    let name = match dice.below(4) {
        0 => format!("s{}-auto-service-config", dice.below(SERVICES)),
        1 => format!("i{}-auto-ingress-config", dice.below(INGRESSES)),
        _ => "tuned".to_owned(),
    };
    let interval = dice.choose(&[6, 9, 12]);
    let check = json!({ "enable": true, "intervalTime": interval, "timeout": 4,
        "sourceIpType": dice.choose(&[0, 1]) });
    let keepalive = dice.choose(&[0, 1]);
    json!({ "metadata": { "name": name, "namespace": namespace },
        "spec": { "loadBalancer": {
            "l4Listeners": [{ "protocol": "TCP", "port": 80, "healthCheck": check }],
            "l7Listeners": [{ "protocol": "HTTP", "port": 80, "keepaliveEnable": keepalive,
                "domains": [{ "domain": "*", "rules": [{ "url": "/", "healthCheck": check }] }] }],
        } } })
}
