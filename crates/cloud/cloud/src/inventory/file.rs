//! Reads an inventory from JSON.

use std::collections::BTreeSet;

use super::{FirstBalancer, Inventory, Region, Stated, open};

/// An error in an inventory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InventoryError(String);

impl Inventory {
    /// Parses an inventory.
    ///
    /// # Errors
    ///
    /// Returns the first error: JSON of another form, with its line and column; a duplicate id; an
    /// instance in an unknown network; a subnet outside its network.
    pub fn parse(text: &str) -> Result<Self, InventoryError> {
        let stated: Stated =
            serde_json::from_str(text).map_err(|error| InventoryError(error.to_string()))?;
        check(&stated)?;
        Ok(Self::Stated(stated))
    }
}

fn check(stated: &Stated) -> Result<(), InventoryError> {
    let (mut ids, mut addresses) = (BTreeSet::new(), BTreeSet::new());
    let mut once = |id: &str| {
        if ids.insert(id.to_owned()) {
            Ok(())
        } else {
            Err(InventoryError(format!("{id} is listed twice")))
        }
    };
    for region in &stated.regions {
        once(&region.name)?;
        for network in &region.networks {
            once(&network.id)?;
            for subnet in &network.subnets {
                once(&subnet.id)?;
                if !network.addresses.contains(&subnet.addresses) {
                    return Err(InventoryError(format!(
                        "the subnet {} ({}) is not part of {} ({})",
                        subnet.id, subnet.addresses, network.id, network.addresses
                    )));
                }
            }
        }
        for instance in &region.instances {
            once(&instance.id)?;
            if instance.private_addresses.is_empty() {
                let id = &instance.id;
                return Err(InventoryError(format!("the instance {id} has no private address")));
            }
            if !region.networks.iter().any(|network| network.id == instance.network) {
                return Err(InventoryError(format!(
                    "the instance {} is in the network {}, which {} does not have",
                    instance.id, instance.network, region.name
                )));
            }
        }
        for balancer in &region.load_balancers {
            once(&balancer.id)?;
            check_balancer(region, balancer)?;
            if !addresses.insert(balancer.address) {
                let address = balancer.address;
                return Err(InventoryError(format!("two load balancers have {address}")));
            }
        }
    }
    Ok(())
}

fn check_balancer(region: &Region, balancer: &FirstBalancer) -> Result<(), InventoryError> {
    let (id, name) = (&balancer.id, &region.name);
    if !open::is_id(id, "lb") {
        return Err(InventoryError(format!(
            "{id} is not the id of a load balancer: expected one such as lb-7m2k9x1q"
        )));
    }
    if region.networks.is_empty() {
        return Err(InventoryError(format!("{id} has no network: {name} has none")));
    }
    let is_there = |subnet: &String| region.subnets().any(|(_, known)| known.id == *subnet);
    match balancer.subnet.as_ref().filter(|subnet| !is_there(subnet)) {
        Some(subnet) => Err(InventoryError(format!(
            "the load balancer {id} is in the subnet {subnet}, which {name} does not have"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{ "regions": [{
        "name": "ap-test",
        "publicAddresses": ["198.51.100.0/30"],
        "networks": [{
            "id": "vpc-aaaaaaaa", "addresses": "10.0.0.0/16",
            "subnets": [{ "id": "subnet-aaaaaaaa", "addresses": "10.0.1.0/29" }]
        }],
        "instances": [{
            "id": "ins-aaaaaaaa", "privateAddresses": ["10.0.1.1"], "network": "vpc-aaaaaaaa"
        }]
    }]}"#;

    #[test]
    fn what_is_not_stated_does_not_exist() {
        let inventory = Inventory::parse(TEXT).unwrap();
        assert!(inventory.has_region("ap-test") && !inventory.has_region("ap-other"));
        assert_eq!(inventory.network("ap-test", None).as_deref(), Some("vpc-aaaaaaaa"));
        assert_eq!(inventory.network("ap-test", Some("vpc-bbbbbbbb")), None);
        let subnet = |id| inventory.network_of_subnet("ap-test", id, None);
        assert_eq!(subnet("subnet-aaaaaaaa").as_deref(), Some("vpc-aaaaaaaa"));
        assert_eq!(subnet("subnet-bbbbbbbb"), None);
        assert!(inventory.instance("ap-test", "ins-bbbbbbbb").is_none());
    }

    #[test]
    fn addresses_are_given_out_until_none_is_left() {
        let inventory = Inventory::parse(TEXT).unwrap();
        let mut used = Vec::new();
        while let Some(address) =
            inventory.public_address("ap-test", false, |address| used.contains(&address))
        {
            used.push(address);
        }
        assert_eq!(used.len(), 2, "{used:?}");
        let private =
            inventory.private_address("ap-test", "subnet-aaaaaaaa", false, |_| false).unwrap();
        assert_eq!(private.to_string(), "10.0.1.2", "the instance has 10.0.1.1");
        assert_eq!(inventory.public_address("ap-test", true, |_| false), None);
    }

    #[test]
    fn the_routers_address_is_not_given_out() {
        let text = TEXT.replace("10.0.0.0/16", "2001:db8::/56");
        let inventory = Inventory::parse(&text.replace("10.0.1.0/29", "2001:db8::/64")).unwrap();
        let mut used = Vec::new();
        for expected in ["2001:db8::1", "2001:db8::2"] {
            let is_used = |address| used.contains(&address);
            let address = inventory.private_address("ap-test", "subnet-aaaaaaaa", true, is_used);
            let address = address.unwrap();
            assert_eq!(address.to_string(), expected);
            used.push(address);
        }
    }

    #[test]
    fn faults_are_named() {
        let error = |from: &str, to: &str| {
            Inventory::parse(&TEXT.replacen(from, to, 1)).unwrap_err().to_string()
        };
        assert!(error("\"name\"", "\"nam\"").contains("line 2"));
        assert!(error("10.0.1.0/29", "10.1.1.0/29").contains("is not part of vpc-aaaaaaaa"));
        assert!(error("[\"10.0.1.1\"]", "[]").contains("no private address"));
        assert!(
            error("\"network\": \"vpc-aaaaaaaa\"", "\"network\": \"vpc-b\"")
                .contains("which ap-test does not have")
        );
        assert!(error("subnet-aaaaaaaa", "vpc-aaaaaaaa").contains("is listed twice"));
        let balancers = |list: &str| {
            error("\"networks\"", &format!("\"loadBalancers\": [{list}], \"networks\""))
        };
        let balancer = |id: &str, subnet: &str| {
            format!(r#"{{ "id": "{id}", "address": "10.0.1.5", "subnet": "{subnet}" }}"#)
        };
        assert!(
            balancers(&balancer("clb-1", "subnet-aaaaaaaa"))
                .contains("is not the id of a load balancer")
        );
        assert!(balancers(&balancer("lb-1", "subnet-b")).contains("which ap-test does not have"));
        let two = ["lb-1", "lb-2"].map(|id| balancer(id, "subnet-aaaaaaaa")).join(",");
        assert!(balancers(&two).contains("two load balancers have 10.0.1.5"));
    }
}
