//! NetworkPolicies in random clusters.

use std::fmt::Write as _;

use crate::dice::Dice;

/// Returns a cluster of [`crate::dice`] with labels of its pods, NetworkPolicies for some of them, and
/// what becomes of what these do not allow.
pub(crate) fn policed(dice: &mut Dice, text: &str) -> String {
    let mut all = String::new();
    let mut is_pod = false;
    for line in text.lines() {
        if let Some(kind) = line.strip_prefix("kind: ") {
            is_pod = kind == "Pod";
        }
        let kind = dice.one_of(&["a", "a", "b"]);
        let is_bare = is_pod && line.starts_with("metadata: {name: ") && !line.contains("labels: ");
        match line.strip_suffix('}').filter(|_| is_bare) {
            Some(meta) => {
                let _ = writeln!(all, "{meta}, labels: {{kind: {kind}}}}}");
            }
            None => {
                let _ = writeln!(all, "{line}");
            }
        }
    }
    let does = dice.one_of(&["drop", "drop", "reject"]);
    let _ = writeln!(
        all,
        "---
{{apiVersion: uturn.dev/v1alpha1, kind: Facts, spec: {{network: {{policies: {does}}}}}}}"
    );
    for number in 0..1 + dice.below(2) {
        let pods = dice.one_of(&["{}", "{matchLabels: {kind: a}}", "{matchLabels: {kind: b}}"]);
        let peer = dice.one_of(&[
            "{podSelector: {matchLabels: {kind: a}}}",
            "{podSelector: {}}",
            "{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}}",
            "{ipBlock: {cidr: 10.1.1.0/24}}",
            "{ipBlock: {cidr: 0.0.0.0/0, except: [10.1.0.0/16]}}",
        ]);
        let port = dice.one_of(&["", "{port: 8080}", "{port: 80, endPort: 9000}", "{port: web}"]);
        let (way, peers) = dice.one_of(&[("ingress", "from"), ("egress", "to")]);
        let rule = match dice.below(4) {
            0 => String::new(),
            _ => format!("{{{peers}: [{peer}], ports: [{port}]}}"),
        };
        let ways = if way == "egress" { "Egress" } else { "Ingress" };
        let _ = writeln!(
            all,
            "---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{name: p{number}, namespace: shop}}
spec: {{podSelector: {pods}, policyTypes: [{ways}], {way}: [{rule}]}}"
        );
    }
    all
}
