//! The sysctls of a node that show a bridge's frames to rules.

use uturn_model::{Evidence, Family};

/// The sysctls that show a bridge's frames to rules, of each family.
pub(crate) const BRIDGE_RULES: [&str; 2] =
    ["net.bridge.bridge-nf-call-iptables", "net.bridge.bridge-nf-call-ip6tables"];

/// Returns the sysctl that shows a bridge's frames to rules.
pub(crate) fn shows_rules(family: Family) -> &'static str {
    let [v4, v6] = BRIDGE_RULES;
    match family {
        Family::V4 => v4,
        Family::V6 => v6,
    }
}

/// Returns whether the evidence is that the node's bridge does not show packets to the rules.
pub fn is_unseen(by: &Evidence) -> bool {
    matches!(by, Evidence::Sysctl { name, .. } if BRIDGE_RULES.contains(&&**name))
}
