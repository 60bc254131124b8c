//! Lists of the inventory's resources. An open inventory cannot be listed: it only returns
//! resources that are asked for by name.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::net::IpAddr;

use super::{Instance, Inventory, Network, Subnet, open};

impl Inventory {
    /// Returns the instances with one of these ids or private addresses. If both are `None`,
    /// returns all that are stated.
    pub fn instances(
        &self,
        region: &str,
        ids: Option<&[String]>,
        addresses: Option<&[IpAddr]>,
    ) -> Vec<Cow<'_, Instance>> {
        let region = match self {
            Self::Stated(stated) => stated.region(region),
            Self::Open => {
                let by_id = ids.into_iter().flatten().filter_map(|id| open::instance(id));
                let addresses = addresses.filter(|_| ids.is_none());
                let by_address = addresses.into_iter().flatten();
                let by_address = by_address.filter_map(|address| open::instance_at(*address));
                return by_id.chain(by_address).map(Cow::Owned).collect();
            }
        };
        let stated = region.into_iter().flat_map(|region| &region.instances);
        let wanted = stated.filter(|instance| {
            let has = |address: &IpAddr| instance.private_addresses.contains(address);
            ids.is_none_or(|ids| ids.contains(&instance.id))
                && addresses.is_none_or(|addresses| addresses.iter().any(has))
        });
        wanted.map(Cow::Borrowed).collect()
    }

    /// Returns the networks with these ids, or all networks; for an open inventory only the default
    /// one.
    pub fn networks(&self, region: &str, ids: Option<&[String]>) -> Vec<Cow<'_, Network>> {
        let region = match self {
            Self::Stated(stated) => stated.region(region),
            Self::Open => {
                let default = [open::DEFAULT_NETWORK.to_owned()];
                let ids = ids.unwrap_or(&default).iter();
                return ids.filter_map(|id| open::network(id)).map(Cow::Owned).collect();
            }
        };
        let stated = region.into_iter().flat_map(|region| &region.networks);
        let wanted = stated.filter(|network| ids.is_none_or(|ids| ids.contains(&network.id)));
        wanted.map(Cow::Borrowed).collect()
    }

    /// Returns the subnets with these ids, or all subnets, each with the id of its network. In an
    /// open inventory, the network is `network` or the default one.
    pub fn subnets(
        &self,
        region: &str,
        ids: Option<&[String]>,
        network: Option<&str>,
    ) -> Vec<(String, Cow<'_, Subnet>)> {
        let stated = match self {
            Self::Stated(stated) => stated.region(region),
            Self::Open => {
                let network = network.unwrap_or(open::DEFAULT_NETWORK);
                let ids = ids.into_iter().flatten();
                let subnets = ids.filter_map(|id| open::subnet(id, region));
                return subnets.map(|found| (network.to_owned(), Cow::Owned(found))).collect();
            }
        };
        let subnets = stated.into_iter().flat_map(|region| region.subnets());
        let wanted = subnets.filter(|(_, subnet)| ids.is_none_or(|ids| ids.contains(&subnet.id)));
        wanted.map(|(network, subnet)| (network.id.clone(), Cow::Borrowed(subnet))).collect()
    }

    /// Returns the names of the regions that are stated; `None` in an open inventory.
    pub fn region_names(&self) -> Option<Vec<&str>> {
        let Self::Stated(stated) = self else { return None };
        Some(stated.regions.iter().map(|region| region.name.as_str()).collect())
    }

    /// Returns the zones of a region that are stated. A region of an open inventory has one zone.
    pub fn zones(&self, region: &str) -> BTreeSet<String> {
        let Self::Stated(stated) = self else { return BTreeSet::from([format!("{region}-1")]) };
        let Some(stated) = stated.region(region) else { return BTreeSet::new() };
        let subnets = stated.networks.iter().flat_map(|network| &network.subnets);
        let of_subnets = subnets.filter_map(|subnet| subnet.zone.clone());
        let of_instances = stated.instances.iter().filter_map(|known| known.zone.clone());
        of_subnets.chain(of_instances).collect()
    }

    /// Returns the security groups with these ids, or all that are stated.
    pub fn security_groups(&self, region: &str, ids: Option<&[String]>) -> Vec<String> {
        let stated = match self {
            Self::Stated(stated) => stated.region(region),
            Self::Open => {
                let ids = ids.into_iter().flatten();
                return ids.filter(|id| open::is_id(id, "sg")).cloned().collect();
            }
        };
        let groups = stated.into_iter().flat_map(|region| &region.security_groups);
        groups.filter(|id| ids.is_none_or(|ids| ids.contains(id))).cloned().collect()
    }

    /// Returns the id of the subnet that an instance's first address is part of; `None` if none is
    /// stated.
    pub fn subnet_of(&self, region: &str, instance: &Instance) -> Option<String> {
        let Self::Stated(stated) = self else { return None };
        let address = instance.private_addresses.first()?;
        let mut subnets = stated.region(region)?.subnets();
        let found = subnets.find(|(network, subnet)| {
            network.id == instance.network && subnet.addresses.contains(address)
        });
        found.map(|(_, subnet)| subnet.id.clone())
    }
}
