//! Random clusters: the objects that CoreDNS watches.

use serde_json::{Value, json};
use uturn_dice::Dice;
use uturn_model::Cluster;
use uturn_snapshot::Source;

pub(crate) const NAMESPACES: [&str; 3] = ["shop", "default", "pay"];
pub(crate) const SERVICES: [&str; 7] = ["web", "api", "db", "ext", "none", "dual", "front"];
const EXTERNAL: [&str; 9] = [
    "web.shop.svc.cluster.local",
    "db.pay.svc.cluster.local.",
    "www.example.com",
    "ext.shop.svc.cluster.local",
    "ext.default.svc.cluster.local",
    "outside.test",
    "shop.example.com",
    "missing.shop.svc.cluster.local",
    "10.9.9.9",
];

const PORTS: [(&str, &str); 2] = [("http", "TCP"), ("dns", "UDP")];

pub(crate) fn objects(dice: &mut Dice) -> Vec<Value> {
    let mut objects = Vec::new();
    for (at, namespace) in NAMESPACES.iter().enumerate() {
        objects.push(json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": namespace, "uid": format!("n{at}"), "resourceVersion": "1"},
        }));
        // A namespace is also known by the objects in it.
        objects.push(service(namespace, "always", 200 + at, json!({"type": "ClusterIP"}), 1));
        for (number, name) in SERVICES.iter().enumerate() {
            if dice.once_in(4) {
                continue;
            }
            let spec = match dice.below(5) {
                0 => json!({"type": "ExternalName", "externalName": dice.choose(&EXTERNAL)}),
                1 | 2 => json!({"type": "ClusterIP", "clusterIP": "None", "clusterIPs": ["None"]}),
                3 => json!({"type": "LoadBalancer"}),
                _ => json!({"type": "ClusterIP"}),
            };
            let ports = dice.below(3);
            objects.push(service(namespace, name, at * 16 + number + 1, spec, ports));
            if !dice.once_in(4) {
                objects.extend(slices(dice, namespace, name, at * 16 + number + 1, ports));
            }
        }
        for number in 1..=3 {
            let ip = format!("10.1.{at}.{number}");
            let phase = dice.choose(&["Running", "Pending", "Running"]);
            objects.push(json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {
                    "name": format!("p{number}"), "namespace": namespace,
                    "uid": format!("p{at}{number}"), "resourceVersion": "1",
                },
                "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "c"}]},
                "status": {"phase": phase, "podIP": ip, "podIPs": [{"ip": ip}]},
            }));
        }
    }
    objects
}

fn service(namespace: &str, name: &str, number: usize, mut spec: Value, ports: usize) -> Value {
    let external = spec["type"] == "ExternalName";
    if spec.get("clusterIP").is_none() && !external {
        let mut ips = vec![format!("172.16.0.{number}")];
        if number.is_multiple_of(3) {
            ips.push(format!("fd00::{number:x}"));
        }
        spec["clusterIP"] = json!(ips[0]);
        spec["clusterIPs"] = json!(ips);
    }
    let named = |at: usize| {
        json!({
            "name": PORTS[at].0, "port": 80 + at, "protocol": PORTS[at].1,
            "targetPort": 8080 + at,
        })
    };
    let headless = spec["clusterIP"] == "None";
    // Only these need no port.
    let ports = if external || headless { ports } else { ports.max(1) };
    spec["ports"] = (0..ports).map(named).collect();
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": name, "namespace": namespace, "uid": format!("{namespace}{name}"),
            "resourceVersion": "1",
        },
        "spec": spec,
    })
}

fn slices(dice: &mut Dice, namespace: &str, name: &str, number: usize, ports: usize) -> Vec<Value> {
    let mut slices = Vec::new();
    for (family, kind) in ["IPv4", "IPv6"].iter().enumerate() {
        if family == 1 && !dice.once_in(3) {
            continue;
        }
        let endpoints: Vec<Value> = (0..dice.below(4))
            .map(|at| {
                let address = match family {
                    0 => format!("10.2.{number}.{at}"),
                    _ => format!("fd00:2::{number:x}:{at:x}"),
                };
                let mut endpoint = json!({
                    "addresses": [address],
                    "conditions": {"ready": !dice.once_in(4)},
                    "nodeName": "n1",
                });
                if dice.once_in(3) {
                    endpoint["hostname"] = json!(format!("host{at}"));
                }
                if dice.once_in(2) {
                    endpoint["targetRef"] =
                        json!({"kind": "Pod", "name": format!("p{at}"), "namespace": namespace});
                }
                endpoint
            })
            .collect();
        let ports: Vec<Value> = (0..ports)
            .map(|at| {
                json!({
                    "name": PORTS[at].0, "port": 8080 + at,
                    "protocol": PORTS[at].1,
                })
            })
            .collect();
        slices.push(json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "name": format!("{name}-{family}"), "namespace": namespace,
                "uid": format!("{namespace}{name}{family}"), "resourceVersion": "1",
                "labels": {"kubernetes.io/service-name": name},
            },
            "addressType": kind, "ports": ports, "endpoints": endpoints,
        }));
    }
    slices
}

/// The objects as a cluster.
pub(crate) fn cluster(objects: &[Value]) -> Cluster {
    let text: Vec<String> = objects.iter().map(Value::to_string).collect();
    let source = Source { name: "objects".into(), text: text.join("\n---\n") };
    uturn_snapshot::read(vec![source]).unwrap().cluster
}
