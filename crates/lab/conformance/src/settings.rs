//! Random nodes and random settings of kube-proxy, as objects.

use serde_json::{Value, json};
use uturn_dice::Dice;
use uturn_model::Version;

use crate::net;

/// Returns Nodes, kube-proxy's ConfigMap and the Facts that belong to them.
pub(crate) fn around(dice: &mut Dice, version: Version, dual: bool) -> Vec<Value> {
    let zones = !dice.once_in(4);
    let mut items: Vec<Value> = (1..=net::NODES).map(|number| node(number, zones, dual)).collect();
    items.push(config_map(&proxy_config(dice, version, dual)));
    items.push(facts(version));
    items
}

pub(crate) fn facts(version: Version) -> Value {
    json!({
        "apiVersion": "uturn.dev/v1alpha1", "kind": "Facts",
        "spec": {
            "provider": "none",
            "network": {"serviceCIDRs": net::SERVICES},
            "kubeProxy": {"version": version.to_string()},
        },
    })
}

pub(crate) fn node(number: u8, zones: bool, dual: bool) -> Value {
    let families = if dual { 2 } else { 1 };
    let name = format!("n{number}");
    let addresses: Vec<Value> = net::node(number)[..families]
        .iter()
        .map(|address| json!({"type": "InternalIP", "address": address}))
        .collect();
    // Two of the nodes share a zone.
    let zone = format!("z{}", number.min(2));
    let labels = if zones { json!({"topology.kubernetes.io/zone": zone}) } else { json!({}) };
    let pods = net::pods(number);
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"podCIDR": pods[0], "podCIDRs": pods[..families]},
        "status": {"addresses": addresses},
    })
}

pub(crate) fn config_map(config: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "kube-system", "name": "kube-proxy"},
        "data": {"config.conf": config.to_string()},
    })
}

fn proxy_config(dice: &mut Dice, version: Version, dual: bool) -> Value {
    let mut config = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
    });
    // Some configurations are empty.
    if dice.once_in(10) {
        return config;
    }
    let families = if dual { 2 } else { 1 };
    let masquerade_all = dice.once_in(6);
    let bit = *dice.pick(&[14, 14, 14, 0, 5, 31]);
    config["iptables"] = json!({
        "masqueradeAll": masquerade_all, "masqueradeBit": bit,
        "localhostNodePorts": !dice.once_in(3),
    });
    config["nftables"] = json!({"masqueradeAll": masquerade_all, "masqueradeBit": bit});
    if dice.once_in(6) {
        config["conntrack"] = json!({"tcpBeLiberal": true});
    }
    match dice.below(6) {
        0 => {
            config["detectLocalMode"] = json!("BridgeInterface");
            config["detectLocal"] = json!({"bridgeInterface": "cbr0"});
        }
        1 => {
            config["detectLocalMode"] = json!("InterfaceNamePrefix");
            config["detectLocal"] = json!({"interfaceNamePrefix": "cbr"});
        }
        2 => config["detectLocalMode"] = json!("NodeCIDR"),
        3 => {}
        _ => config["clusterCIDR"] = json!(net::PODS[..families].join(",")),
    }
    match dice.below(8) {
        0 => config["nodePortAddresses"] = json!(["10.0.0.0/24"]),
        1 if dual => config["nodePortAddresses"] = json!(["10.0.0.0/24", "fd00:aa::/64"]),
        // Unknown before v1.31.
        2 if (version.major, version.minor) >= (1, 31) => {
            config["nodePortAddresses"] = json!(["primary"]);
        }
        3 => config["nodePortAddresses"] = json!(["127.0.0.0/8", "10.0.0.0/16"]),
        4 => config["nodePortAddresses"] = json!(["0.0.0.0/0"]),
        _ => {}
    }
    config
}
