//! The inventory of the cloud: a network with the nodes, subnets for load balancers, and the load
//! balancers that manifests show.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use serde_json::{Value, json};
use uturn_model::Family;

use super::{CLUSTER_ID, NETWORK, REGION};
use crate::linux::cluster::layout::{Layout, PUBLIC};
use crate::linux::cluster::shown::Shown;

/// The subnet that exists in any case.
const SUBNET: &str = "subnet-00000001";

/// Returns the inventory of `uturn cloud serve`.
pub(super) fn inventory(layout: &Layout, shown: &[Shown]) -> Value {
    let subnet = |id: &String| json!({"id": id, "addresses": layout.balancers});
    let instance = |(name, ip): (&str, Ipv4Addr)| json!({"id": instance(ip), "name": name, "network": NETWORK, "privateAddresses": [ip]});
    let nodes = layout.cluster.nodes.values().filter_map(|node| match node.address(Family::V4) {
        Some(IpAddr::V4(ip)) => Some((node.name.as_str(), ip)),
        _ => None,
    });
    json!({"regions": [{
        "name": REGION,
        "publicAddresses": [PUBLIC],
        "networks": [{
            "id": NETWORK, "addresses": layout.network(),
            "subnets": subnets(shown).iter().map(subnet).collect::<Vec<_>>(),
        }],
        "instances": nodes.map(instance).collect::<Vec<_>>(),
        "loadBalancers": load_balancers(layout, shown),
    }]})
}

/// Returns the subnets: a fixed one, and those that manifests name.
pub(super) fn subnets(shown: &[Shown]) -> Vec<String> {
    let named = shown.iter().filter_map(|shown| shown.subnet.clone());
    let all: BTreeSet<String> = named.chain([SUBNET.to_owned()]).collect();
    all.into_iter().collect()
}

/// Returns the load balancers that manifests show. A user's own one without an address gets a free
/// one of the subnets.
fn load_balancers(layout: &Layout, shown: &[Shown]) -> Vec<Value> {
    let mut taken: BTreeSet<Ipv4Addr> = shown.iter().filter_map(|shown| shown.address).collect();
    let mut all = Vec::new();
    for shown in shown {
        let free = || layout.balancers.hosts().skip(1).find(|ip| !taken.contains(ip));
        let Some(address) = shown.address.or_else(free) else { continue };
        taken.insert(address);
        let mut balancer = json!({"id": shown.id, "address": address});
        let is_public = shown.subnet.is_none() && !layout.is_private(address);
        if !is_public {
            balancer["subnet"] = json!(shown.subnet.as_deref().unwrap_or(SUBNET));
        }
        if let Some(owner) = &shown.owner {
            let uid_key =
                if owner.is_ingress { "tke-lb-ingress-uuid" } else { "tke-lb-serviceuuid" };
            let uid = owner.uid.as_deref().unwrap_or_default();
            balancer["name"] = json!(format!("{CLUSTER_ID}_{}_{}", owner.namespace, owner.name));
            balancer["tags"] = json!({
                "tke-createdBy-flag": "yes", "tke-clusterId": CLUSTER_ID, uid_key: uid,
            });
        }
        all.push(balancer);
    }
    all
}

/// Returns the id of the instance of a node: its address in base 36, as for an inventory that
/// states none.
pub(in super::super) fn instance(ip: Ipv4Addr) -> String {
    let mut number = ip.to_bits();
    let mut digits = [b'0'; 8];
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789abcdefghijklmnopqrstuvwxyz"[(number % 36) as usize];
        number /= 36;
    }
    format!("ins-{}", String::from_utf8_lossy(&digits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::cluster::manifests::prepare;
    use crate::linux::cluster::shown::Owner;

    #[test]
    fn the_inventory_has_nodes_and_shown_load_balancers() {
        let layout = Layout::of(&prepare(Vec::new(), Some(1))).unwrap();
        let owner = Owner {
            is_ingress: true,
            namespace: "shop".into(),
            name: "front".into(),
            uid: Some("u-1".into()),
        };
        let shown = [
            Shown {
                id: "lb-own".into(),
                address: Some(Ipv4Addr::new(10, 0, 0, 66)),
                subnet: Some("subnet-a".into()),
                owner: Some(owner),
            },
            Shown { id: "lb-user".into(), address: None, subnet: None, owner: None },
        ];
        let inventory = inventory(&layout, &shown);
        let region = &inventory["regions"][0];
        assert_eq!(region["instances"][0]["id"], instance(Ipv4Addr::new(10, 0, 0, 11)));
        assert_eq!(region["networks"][0]["subnets"][1]["id"], "subnet-a");
        let balancers = &region["loadBalancers"];
        assert_eq!(balancers[0]["tags"]["tke-lb-ingress-uuid"], "u-1");
        assert_eq!(balancers[1]["address"], "10.0.0.67");
        assert_eq!(balancers[1]["subnet"], SUBNET);
        assert_eq!(balancers[1].get("tags"), None);
    }
}
