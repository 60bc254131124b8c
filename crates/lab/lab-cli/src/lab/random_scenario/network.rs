//! The network that connects pods.

use uturn_dice::Dice;

use serde_json::{Value, json};

/// The range of all pods.
const PODS: &str = "10.1.0.0/16";

/// A pod network.
pub(super) struct Network {
    /// The mode, as a shape names it.
    pub(super) mode: &'static str,
    /// Whether packets to other nodes' pods are encapsulated.
    is_tunnel: bool,
    /// Destinations for which pods are not masqueraded, if they are masqueraded otherwise.
    kept: Option<&'static [&'static str]>,
}

impl Network {
    pub(super) fn random(dice: &mut Dice) -> Self {
        let modes = ["vpc-cni", "vpc-cni", "routed", "routed", "routed"];
        let mode = modes.get(dice.below(9)).copied().unwrap_or("global-router");
        let is_tunnel = mode != "vpc-cni" && dice.once_in(3);
        let kept: Option<&[&str]> = match dice.below(6) {
            _ if mode == "vpc-cni" => None,
            // The fabric has no routes to pods, so unmasqueraded packets would get no replies.
            _ if is_tunnel => Some(&[PODS]),
            0 => Some(&[PODS]),
            1 => Some(&[PODS, "10.0.0.0/16"]),
            _ => None,
        };
        Self { mode, is_tunnel, kept }
    }

    /// Returns the address of a pod of this node.
    pub(super) fn address(&self, dice: &mut Dice, node: usize, number: usize) -> String {
        match self.mode {
            "vpc-cni" => format!("10.0.{node}.{number}"),
            // The address belongs to no node's range, or to that of any node.
            "routed" if dice.once_in(2) => format!("10.1.{}.{number}", node + 100),
            "routed" => format!("10.1.{}.{number}", dice.between(1, 4)),
            _ => format!("10.1.{node}.{number}"),
        }
    }

    /// Returns the Facts about the network, if they are more than its mode.
    pub(super) fn facts(&self) -> Option<Value> {
        let kept = self.kept?;
        let mut facts = json!({ "masquerade": true, "nonMasqueradeCIDRs": kept });
        if self.is_tunnel {
            facts["transport"] = "tunnel".into();
            // Both plugins encapsulate in one way only. For an unknown plugin, any way that passes
            // would be enough.
            let plugin = if self.mode == "routed" { "canal" } else { "flannel" };
            facts["plugin"] = plugin.into();
        }
        Some(facts)
    }
}
