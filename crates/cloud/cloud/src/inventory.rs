//! What the cloud has beside load balancers: networks, subnets, instances and addresses.
//!
//! Two kinds. A **stated** inventory is read from a file: what it lacks does not exist. An
//! **open** one has every network and subnet whose id is well-formed, and an instance for every
//! IPv4 address, so that a controller can be tried without writing anything down first.

mod file;
mod list;
mod open;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::Deserialize;

pub use self::file::InventoryError;

/// What the cloud has beside load balancers.
#[derive(Clone, Debug, PartialEq)]
pub enum Inventory {
    /// Whatever is asked for.
    Open,
    /// What a file states.
    Stated(Stated),
}

/// An inventory as a file states it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Stated {
    /// The regions.
    pub regions: Vec<Region>,
}

/// A region.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Region {
    /// Its name, such as `ap-guangzhou`.
    pub name: String,
    /// Public addresses that load balancers may have.
    #[serde(default)]
    pub public_addresses: Vec<IpNet>,
    /// The networks.
    #[serde(default)]
    pub networks: Vec<Network>,
    /// The instances.
    #[serde(default)]
    pub instances: Vec<Instance>,
    /// The ids of security groups.
    #[serde(default)]
    pub security_groups: Vec<String>,
    /// The load balancers that there are before anything was created.
    #[serde(default)]
    pub load_balancers: Vec<FirstBalancer>,
}

/// A load balancer that is there before anything was created. It has no listeners.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FirstBalancer {
    /// Its id, such as `lb-7m2k9x1q`.
    pub id: String,
    /// Its name; without one, its id.
    #[serde(default)]
    pub name: Option<String>,
    /// Its address.
    pub address: IpAddr,
    /// The subnet of a private one. One without a subnet is public.
    #[serde(default)]
    pub subnet: Option<String>,
    /// Its tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// Whose it is; it can be left out if there is one account.
    #[serde(default)]
    pub account: Option<String>,
}

impl Region {
    /// The network with this id, or the default one.
    fn network(&self, id: Option<&str>) -> Option<&Network> {
        match id {
            None => self.networks.first(),
            Some(id) => self.networks.iter().find(|network| network.id == id),
        }
    }

    /// The subnets, each with its network.
    pub(crate) fn subnets(&self) -> impl Iterator<Item = (&Network, &Subnet)> {
        let networks = self.networks.iter();
        networks.flat_map(|network| network.subnets.iter().map(move |subnet| (network, subnet)))
    }
}

/// A network (VPC). The first one of a region is its default.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Network {
    /// Its id, such as `vpc-3z1e9f2a`.
    pub id: String,
    /// Its addresses.
    pub addresses: IpNet,
    /// Its subnets.
    #[serde(default)]
    pub subnets: Vec<Subnet>,
}

/// A subnet, from which private load balancers get their addresses.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Subnet {
    /// Its id, such as `subnet-8g2k4m1c`.
    pub id: String,
    /// Its addresses.
    pub addresses: IpNet,
    /// Its zone, such as `ap-guangzhou-3`.
    #[serde(default)]
    pub zone: Option<String>,
}

/// An instance: a machine that can be a target.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Instance {
    /// Its id, such as `ins-5t8w2q0h`.
    pub id: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its private addresses.
    pub private_addresses: Vec<IpAddr>,
    /// Its public addresses.
    #[serde(default)]
    pub public_addresses: Vec<IpAddr>,
    /// Its network.
    pub network: String,
    /// Its zone.
    #[serde(default)]
    pub zone: Option<String>,
}

impl Inventory {
    /// Whether the region is there.
    pub fn has_region(&self, region: &str) -> bool {
        match self {
            Self::Open => open::is_region(region),
            Self::Stated(stated) => stated.region(region).is_some(),
        }
    }

    /// The id of this network, or of the region's default one; `None` if it does not exist.
    pub fn network(&self, region: &str, id: Option<&str>) -> Option<String> {
        match self {
            Self::Open => match id {
                None => Some(open::DEFAULT_NETWORK.to_owned()),
                Some(id) => open::is_id(id, "vpc").then(|| id.to_owned()),
            },
            Self::Stated(stated) => Some(stated.region(region)?.network(id)?.id.clone()),
        }
    }

    /// The id of the network that a subnet is part of; `None` for a subnet that does not exist.
    /// An open inventory has every subnet in every network, so it takes the one that is named.
    pub fn network_of_subnet(
        &self,
        region: &str,
        subnet: &str,
        network: Option<&str>,
    ) -> Option<String> {
        match self {
            Self::Open => {
                open::is_id(subnet, "subnet").then(|| self.network(region, network)).flatten()
            }
            Self::Stated(stated) => {
                let mut subnets = stated.region(region)?.subnets();
                let found = subnets.find(|(_, known)| known.id == subnet)?;
                Some(found.0.id.clone())
            }
        }
    }

    /// Whether the security group is there.
    pub fn has_security_group(&self, region: &str, id: &str) -> bool {
        match self {
            Self::Open => open::is_id(id, "sg"),
            Self::Stated(stated) => stated
                .region(region)
                .is_some_and(|region| region.security_groups.iter().any(|known| known == id)),
        }
    }

    /// A public address that is not in use; `None` if there is no more.
    pub fn public_address(
        &self,
        region: &str,
        is_v6: bool,
        in_use: impl Fn(IpAddr) -> bool,
    ) -> Option<IpAddr> {
        match self {
            Self::Open => free(&open::public_addresses(), is_v6, in_use),
            Self::Stated(stated) => free(&stated.region(region)?.public_addresses, is_v6, in_use),
        }
    }

    /// An address of a subnet that is not in use; `None` if there is no more.
    pub fn private_address(
        &self,
        region: &str,
        subnet: &str,
        is_v6: bool,
        in_use: impl Fn(IpAddr) -> bool,
    ) -> Option<IpAddr> {
        match self {
            Self::Open => free(&open::private_addresses(), is_v6, in_use),
            Self::Stated(stated) => {
                let region = stated.region(region)?;
                let (_, subnet) = region.subnets().find(|(_, known)| known.id == subnet)?;
                let instances = region.instances.iter();
                let taken: Vec<IpAddr> =
                    instances.flat_map(|known| known.private_addresses.iter().copied()).collect();
                let is_used = |address| in_use(address) || taken.contains(&address);
                free(&[subnet.addresses], is_v6, is_used)
            }
        }
    }

    /// Whether an address is part of a subnet, so that a load balancer may ask for it.
    pub fn subnet_has(&self, region: &str, subnet: &str, address: IpAddr) -> bool {
        match self {
            Self::Open => true,
            Self::Stated(stated) => stated.region(region).is_some_and(|region| {
                let mut subnets = region.subnets();
                subnets.any(|(_, known)| known.id == subnet && known.addresses.contains(&address))
            }),
        }
    }

    /// The instance with this id.
    pub fn instance(&self, region: &str, id: &str) -> Option<Cow<'_, Instance>> {
        match self {
            Self::Open => open::instance(id).map(Cow::Owned),
            Self::Stated(stated) => {
                let mut instances = stated.region(region)?.instances.iter();
                instances.find(|known| known.id == id).map(Cow::Borrowed)
            }
        }
    }

    /// The instance that has this private address.
    pub fn instance_at(&self, region: &str, address: IpAddr) -> Option<Cow<'_, Instance>> {
        match self {
            Self::Open => open::instance_at(address).map(Cow::Owned),
            Self::Stated(stated) => {
                let mut instances = stated.region(region)?.instances.iter();
                let found = instances.find(|known| known.private_addresses.contains(&address));
                found.map(Cow::Borrowed)
            }
        }
    }

    /// The region as it is stated; `None` in an open inventory, which nobody can list.
    pub fn stated_region(&self, region: &str) -> Option<&Region> {
        match self {
            Self::Open => None,
            Self::Stated(stated) => stated.region(region),
        }
    }
}

impl Stated {
    fn region(&self, name: &str) -> Option<&Region> {
        self.regions.iter().find(|region| region.name == name)
    }
}

/// The first address that is not in use. Of each range no more than its first 2^20 addresses are
/// tried.
fn free(ranges: &[IpNet], is_v6: bool, in_use: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
    const TRIED: usize = 1 << 20;
    let ranges = ranges.iter().filter(|range| matches!(range, IpNet::V6(_)) == is_v6);
    let mut addresses = ranges.flat_map(|range| hosts(*range).take(TRIED));
    addresses.find(|address| !in_use(*address))
}

/// The addresses of a range that hosts may have. Of IPv4 ranges the first and the last address
/// are left out, of IPv6 ranges the first one, which is every router's. Ranges of one or two
/// addresses have no such addresses.
fn hosts(range: IpNet) -> impl Iterator<Item = IpAddr> {
    let has_router = range.prefix_len() + 1 < range.max_prefix_len();
    range.hosts().filter(move |address| !has_router || *address != range.network())
}
