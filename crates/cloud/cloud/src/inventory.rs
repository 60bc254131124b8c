//! The cloud's resources beside load balancers: networks, subnets, instances and addresses.
//!
//! There are two kinds of inventory. A **stated** one is read from a file: resources that the file
//! lacks do not exist. An **open** one has every network and subnet whose id is well-formed, and an
//! instance for every IPv4 address, so that a controller can be tried without writing a file first.

mod file;
mod list;
mod open;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::Deserialize;

pub use self::file::InventoryError;

/// The cloud's resources beside load balancers.
#[derive(Clone, Debug, PartialEq)]
pub enum Inventory {
    /// An inventory that has every resource with a well-formed id.
    Open,
    /// An inventory with the resources that a file states.
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
    /// The name, such as `ap-guangzhou`.
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
    /// The load balancers that exist before any was created.
    #[serde(default)]
    pub load_balancers: Vec<FirstBalancer>,
}

/// A load balancer that exists before any was created. It has no listeners.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FirstBalancer {
    /// The id, such as `lb-7m2k9x1q`.
    pub id: String,
    /// The name; without one, the id is used.
    #[serde(default)]
    pub name: Option<String>,
    /// The address.
    pub address: IpAddr,
    /// The subnet of a private load balancer. A load balancer without a subnet is public.
    #[serde(default)]
    pub subnet: Option<String>,
    /// The tags.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// The account that owns the load balancer; optional if there is only one account.
    #[serde(default)]
    pub account: Option<String>,
}

impl Region {
    /// Returns the network with this id, or the default one.
    fn network(&self, id: Option<&str>) -> Option<&Network> {
        match id {
            None => self.networks.first(),
            Some(id) => self.networks.iter().find(|network| network.id == id),
        }
    }

    /// Returns the subnets, each with its network.
    pub(crate) fn subnets(&self) -> impl Iterator<Item = (&Network, &Subnet)> {
        let networks = self.networks.iter();
        networks.flat_map(|network| network.subnets.iter().map(move |subnet| (network, subnet)))
    }
}

/// A network (VPC). The first one of a region is its default.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Network {
    /// The id, such as `vpc-3z1e9f2a`.
    pub id: String,
    /// The range of addresses.
    pub addresses: IpNet,
    /// The subnets.
    #[serde(default)]
    pub subnets: Vec<Subnet>,
}

/// A subnet, from which private load balancers get their addresses.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Subnet {
    /// The id, such as `subnet-8g2k4m1c`.
    pub id: String,
    /// The range of addresses.
    pub addresses: IpNet,
    /// The zone, such as `ap-guangzhou-3`.
    #[serde(default)]
    pub zone: Option<String>,
}

/// An instance: a machine that can be a target.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Instance {
    /// The id, such as `ins-5t8w2q0h`.
    pub id: String,
    /// The name.
    #[serde(default)]
    pub name: String,
    /// The private addresses.
    pub private_addresses: Vec<IpAddr>,
    /// The public addresses.
    #[serde(default)]
    pub public_addresses: Vec<IpAddr>,
    /// The id of the network.
    pub network: String,
    /// The zone.
    #[serde(default)]
    pub zone: Option<String>,
}

impl Inventory {
    /// Returns whether the region exists.
    pub fn has_region(&self, region: &str) -> bool {
        match self {
            Self::Open => open::is_region(region),
            Self::Stated(stated) => stated.region(region).is_some(),
        }
    }

    /// Returns the id of this network, or of the region's default one; `None` if it does not exist.
    pub fn network(&self, region: &str, id: Option<&str>) -> Option<String> {
        match self {
            Self::Open => match id {
                None => Some(open::DEFAULT_NETWORK.to_owned()),
                Some(id) => open::is_id(id, "vpc").then(|| id.to_owned()),
            },
            Self::Stated(stated) => Some(stated.region(region)?.network(id)?.id.clone()),
        }
    }

    /// Returns the id of the network that a subnet is part of; `None` for a subnet that does not
    /// exist. In an open inventory every subnet is in every network, so that `network` is returned,
    /// or the default one.
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

    /// Returns whether the security group exists.
    pub fn has_security_group(&self, region: &str, id: &str) -> bool {
        match self {
            Self::Open => open::is_id(id, "sg"),
            Self::Stated(stated) => stated
                .region(region)
                .is_some_and(|region| region.security_groups.iter().any(|known| known == id)),
        }
    }

    /// Returns a public address that is not in use; `None` if there is none left.
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

    /// Returns an address of a subnet that is not in use; `None` if there is none left.
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

    /// Returns whether an address is part of a subnet, so that a load balancer may ask for it.
    pub fn subnet_has(&self, region: &str, subnet: &str, address: IpAddr) -> bool {
        match self {
            Self::Open => true,
            Self::Stated(stated) => stated.region(region).is_some_and(|region| {
                let mut subnets = region.subnets();
                subnets.any(|(_, known)| known.id == subnet && known.addresses.contains(&address))
            }),
        }
    }

    /// Returns the instance with this id.
    pub fn instance(&self, region: &str, id: &str) -> Option<Cow<'_, Instance>> {
        match self {
            Self::Open => open::instance(id).map(Cow::Owned),
            Self::Stated(stated) => {
                let mut instances = stated.region(region)?.instances.iter();
                instances.find(|known| known.id == id).map(Cow::Borrowed)
            }
        }
    }

    /// Returns the instance that has this private address.
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

    /// Returns the region as the file states it; `None` in an open inventory, which cannot be
    /// listed.
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

/// Returns the first address that is not in use. Tries only the first 2^20 addresses of each range.
fn free(ranges: &[IpNet], is_v6: bool, in_use: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
    const TRIED: usize = 1 << 20;
    let ranges = ranges.iter().filter(|range| matches!(range, IpNet::V6(_)) == is_v6);
    let mut addresses = ranges.flat_map(|range| hosts(*range).take(TRIED));
    addresses.find(|address| !in_use(*address))
}

/// Returns the addresses of a range that hosts may have: an IPv4 range without its first and last
/// address, an IPv6 range without its first one, the subnet-router anycast address. A range of only
/// one or two addresses has them all.
fn hosts(range: IpNet) -> impl Iterator<Item = IpAddr> {
    let has_router = range.prefix_len() + 1 < range.max_prefix_len();
    range.hosts().filter(move |address| !has_router || *address != range.network())
}
