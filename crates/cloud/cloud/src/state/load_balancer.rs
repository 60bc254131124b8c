//! Load balancers.

use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Listener, Target};
use crate::api::clb::{AvailableZoneAffinityInfo, LBChargePrepaid, TagInfo, TargetRegionInfo};

/// A load balancer with everything on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadBalancer {
    /// Its id, `lb-` and eight letters and digits.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Whether its addresses are public.
    pub is_public: bool,
    /// The version of its addresses.
    pub ip_version: IpVersion,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// The network that its targets are in.
    pub vpc: String,
    /// The subnet of a private one.
    pub subnet: Option<String>,
    /// The project.
    pub project: u64,
    /// When it was created.
    pub created: Timestamp,
    /// When its status changed.
    pub status_changed: Timestamp,
    /// Whether it was stopped.
    pub is_stopped: bool,
    /// Tags.
    pub tags: Vec<TagInfo>,
    /// Ids of the security groups that clients have to pass.
    pub security_groups: Vec<String>,
    /// Whether targets let in what the load balancer let in.
    pub passes_to_target: bool,
    /// Whether it may replace clients' addresses with [`Self::snat_addresses`].
    pub snat_pro: bool,
    /// The addresses that replace clients' addresses.
    pub snat_addresses: Vec<SnatAddress>,
    /// Whether it cannot be deleted.
    pub is_delete_protected: bool,
    /// The zone, such as `ap-guangzhou-3`.
    pub zone: Option<String>,
    /// How traffic is paid for, such as `TRAFFIC_POSTPAID_BY_HOUR`.
    pub internet_charge_type: Option<String>,
    /// The bandwidth towards clients in Mbps.
    pub bandwidth: Option<i64>,
    /// `POSTPAID_BY_HOUR` or `PREPAID`.
    pub charge_type: String,
    /// The internet provider, such as `BGP`.
    pub vip_isp: Option<String>,
    /// The class of its capacity.
    pub sla_type: Option<String>,
    /// The custom configuration that is bound to it.
    pub custom_config: Option<String>,
    /// Its listeners in the order in which they were created.
    pub listeners: Vec<Listener>,
    /// What is kept for answers only.
    #[serde(default)]
    pub attributes: Attributes,
    /// The request whose task changes it or changed it last.
    pub last_task: String,
}

impl LoadBalancer {
    /// The listener with this id.
    pub fn listener(&self, id: &str) -> Option<&Listener> {
        self.listeners.iter().find(|listener| listener.id == id)
    }

    /// Whether all of its listeners are served as those of another one, as far as they are the same.
    pub fn is_served_as(&self, other: &Self) -> bool {
        self.addresses == other.addresses
            && self.is_public == other.is_public
            && self.is_stopped == other.is_stopped
            && self.custom_config == other.custom_config
    }

    /// Every target: those of its listeners and of their rules.
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        self.listeners.iter().flat_map(|listener| {
            let groups = listener.groups().into_iter();
            groups.flat_map(|group| group.targets)
        })
    }

    /// The listener with this id, to be changed.
    pub fn listener_mut(&mut self, id: &str) -> Option<&mut Listener> {
        self.listeners.iter_mut().find(|listener| listener.id == id)
    }
}

/// Attributes of a load balancer that answers repeat and nothing else depends on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attributes {
    /// Whether clients find it by a domain instead of its addresses.
    pub has_domain: bool,
    /// How long it was paid for in advance.
    pub prepaid: Option<LBChargePrepaid>,
    /// The kind of its bandwidth package.
    pub bandwidth_package: Option<String>,
    /// The zone that takes over when [`LoadBalancer::zone`] fails.
    pub backup_zone: Option<String>,
    /// The network's exit.
    pub egress: Option<String>,
    /// The endpoint that it is associated with.
    pub endpoint: Option<String>,
    /// The region and network of targets elsewhere.
    pub target_region: Option<TargetRegionInfo>,
    /// Whether targets of the same zone are preferred.
    pub zone_affinity: Option<AvailableZoneAffinityInfo>,
}

/// The version of a load balancer's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6 for clients, IPv4 for targets.
    V6Translated,
    /// IPv6 for both.
    V6,
}

/// An address that replaces clients' addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnatAddress {
    /// Its subnet.
    pub subnet: String,
    /// The address.
    pub ip: IpAddr,
}
