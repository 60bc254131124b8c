//! Random NetworkPolicies.

use serde_json::{Value, json};
use uturn_dice::Dice;

use super::NAMESPACES;

/// Returns some policies as a `List`.
pub(super) fn policies(dice: &mut Dice, namespace: &str) -> String {
    let policy = |dice: &mut Dice, number: usize| {
        let (end, _) = dice.choose(&NAMESPACES);
        let mut spec = json!({"podSelector": pod_selector(dice)});
        let types = dice.choose(&[&[][..], &["Ingress"], &["Egress"], &["Ingress", "Egress"]]);
        if !types.is_empty() {
            spec["policyTypes"] = json!(types);
        }
        for (field, peers) in [("ingress", "from"), ("egress", "to")] {
            let rules: Vec<Value> = (0..dice.below(3)).map(|_| rule(dice, peers)).collect();
            if !dice.once_in(4) {
                spec[field] = json!(rules);
            }
        }
        json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"namespace": format!("{namespace}{end}"), "name": format!("p{number}")},
            "spec": spec,
        })
    };
    let items: Vec<Value> = (1..=dice.between(1, 4)).map(|number| policy(dice, number)).collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

fn rule(dice: &mut Dice, peers: &str) -> Value {
    let mut rule = json!({});
    if !dice.once_in(5) {
        rule[peers] = (0..dice.between(1, 2)).map(|_| peer(dice)).collect();
    }
    if dice.once_in(2) {
        rule["ports"] = (0..dice.between(1, 2)).map(|_| port(dice)).collect();
    }
    rule
}

fn peer(dice: &mut Dice) -> Value {
    match dice.below(7) {
        0 | 1 => json!({"podSelector": pod_selector(dice)}),
        2 | 3 => json!({"namespaceSelector": namespace_selector(dice)}),
        4 | 5 => {
            json!({"namespaceSelector": namespace_selector(dice), "podSelector": pod_selector(dice)})
        }
        _ => match dice.below(3) {
            0 => json!({"ipBlock": {"cidr": "0.0.0.0/0"}}),
            1 => json!({"ipBlock": {"cidr": "192.0.2.0/24"}}),
            _ => json!({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.1.0/24"]}}),
        },
    }
}

fn pod_selector(dice: &mut Dice) -> Value {
    match dice.below(8) {
        0 | 1 => json!({}),
        2 => json!({"matchLabels": {"app": "web"}}),
        3 => json!({"matchLabels": {"app": "job"}}),
        4 => json!({"matchLabels": {"tier": "front"}}),
        5 => json!({"matchLabels": {"app": "web", "tier": "front"}}),
        6 => {
            let operator = dice.choose(&["In", "NotIn"]);
            json!({"matchExpressions": [{"key": "app", "operator": operator, "values": ["web", "api"]}]})
        }
        _ => {
            let operator = dice.choose(&["Exists", "DoesNotExist"]);
            json!({"matchExpressions": [{"key": "tier", "operator": operator}]})
        }
    }
}

fn namespace_selector(dice: &mut Dice) -> Value {
    match dice.below(5) {
        0 => json!({}),
        1 => json!({"matchLabels": {"team": "red"}}),
        2 => json!({"matchLabels": {"kubernetes.io/metadata.name": "policies-blue"}}),
        3 => json!({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}),
        _ => {
            let names = ["policies", "policies-green"];
            json!({"matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": names},
            ]})
        }
    }
}

fn port(dice: &mut Dice) -> Value {
    match dice.below(7) {
        0 | 1 => json!({"port": 8080}),
        2 => json!({"protocol": "TCP", "port": "http"}),
        3 => json!({"port": "admin"}),
        4 => json!({"protocol": "TCP", "port": 8000, "endPort": 8999}),
        5 => json!({"protocol": "UDP", "port": 8080}),
        _ => json!({"protocol": dice.choose(&["TCP", "UDP"])}),
    }
}
