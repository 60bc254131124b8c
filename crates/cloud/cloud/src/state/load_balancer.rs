//! Load balancers.

use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uturn_cloud_api::clb::{AvailableZoneAffinityInfo, LBChargePrepaid, TagInfo, TargetRegionInfo};

use super::{Listener, Target};

/// A load balancer with everything on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadBalancer {
    /// The id, `lb-` and eight letters and digits.
    pub id: String,
    /// The name.
    pub name: String,
    /// Whether the addresses are public.
    pub is_public: bool,
    /// The IP version of the addresses.
    pub ip_version: IpVersion,
    /// The addresses.
    pub addresses: Vec<IpAddr>,
    /// The network of the targets.
    pub vpc: String,
    /// The subnet of a private load balancer.
    pub subnet: Option<String>,
    /// The project.
    pub project: u64,
    /// The time of its creation.
    pub created: Timestamp,
    /// The time of its last change of status.
    pub status_changed: Timestamp,
    /// Whether the load balancer was stopped.
    pub is_stopped: bool,
    /// The tags.
    pub tags: Vec<TagInfo>,
    /// Ids of the security groups that clients have to pass.
    pub security_groups: Vec<String>,
    /// Whether targets accept traffic that the load balancer's security groups accepted.
    pub passes_to_target: bool,
    /// Whether the load balancer may replace clients' addresses with [`Self::snat_addresses`].
    pub snat_pro: bool,
    /// The addresses that replace clients' addresses.
    pub snat_addresses: Vec<SnatAddress>,
    /// Whether the load balancer is protected from deletion.
    pub is_delete_protected: bool,
    /// The zone, such as `ap-guangzhou-3`.
    pub zone: Option<String>,
    /// The way in which traffic is paid for, such as `TRAFFIC_POSTPAID_BY_HOUR`.
    pub internet_charge_type: Option<String>,
    /// The bandwidth towards clients in Mbps.
    pub bandwidth: Option<i64>,
    /// `POSTPAID_BY_HOUR` or `PREPAID`.
    pub charge_type: String,
    /// The internet provider, such as `BGP`.
    pub vip_isp: Option<String>,
    /// The class of its capacity.
    pub sla_type: Option<String>,
    /// The custom configuration that is bound to the load balancer.
    pub custom_config: Option<String>,
    /// The listeners in the order in which they were created.
    pub listeners: Vec<Listener>,
    /// The attributes that only appear in answers.
    #[serde(default)]
    pub attributes: Attributes,
    /// The id of the request whose task changes the load balancer or changed it last.
    pub last_task: String,
}

impl LoadBalancer {
    /// Returns the listener with this id.
    pub fn listener(&self, id: &str) -> Option<&Listener> {
        self.listeners.iter().find(|listener| listener.id == id)
    }

    /// Returns whether both load balancers have the same addresses, scope, state and custom
    /// configuration, so that their equal listeners are served alike.
    pub fn is_served_as(&self, other: &Self) -> bool {
        self.addresses == other.addresses
            && self.is_public == other.is_public
            && self.is_stopped == other.is_stopped
            && self.custom_config == other.custom_config
    }

    /// Returns every target of the listeners and of their rules.
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        self.listeners.iter().flat_map(|listener| {
            let groups = listener.groups().into_iter();
            groups.flat_map(|group| group.targets)
        })
    }

    /// Returns the listener with this id, to be changed.
    pub fn listener_mut(&mut self, id: &str) -> Option<&mut Listener> {
        self.listeners.iter_mut().find(|listener| listener.id == id)
    }
}

/// Attributes of a load balancer that only appear in answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attributes {
    /// Whether clients reach the load balancer by a domain instead of its addresses.
    pub has_domain: bool,
    /// The period that was paid for in advance.
    pub prepaid: Option<LBChargePrepaid>,
    /// The kind of its bandwidth package.
    pub bandwidth_package: Option<String>,
    /// The zone that takes over when [`LoadBalancer::zone`] fails.
    pub backup_zone: Option<String>,
    /// The network egress.
    pub egress: Option<String>,
    /// The associated endpoint.
    pub endpoint: Option<String>,
    /// The region and network of targets in another region.
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
    /// The subnet of the address.
    pub subnet: String,
    /// The address.
    pub ip: IpAddr,
}
