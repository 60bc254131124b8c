//! The first load balancers of a cloud, which its inventory states.

use jiff::Timestamp;
use uturn_cloud_api::clb::TagInfo;

use super::{Cloud, StorageError};
use crate::inventory::{FirstBalancer, Inventory, Region};
use crate::state::{
    Account, Accounts, Attributes, Batch, IpVersion, LoadBalancer, Place, Record, RecordKey,
    RecordKind,
};

/// The reason why the first load balancers cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum FirstError {
    /// The account of a load balancer is not stated, and there are several.
    #[error("the load balancer {0} of the inventory has to name its account: there are several")]
    Account(String),
    /// The load balancers cannot be stored.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Cloud {
    /// Creates the load balancers that the inventory states, if no resource was ever created.
    ///
    /// # Errors
    ///
    /// Returns why the load balancers cannot be created. Then none of them is.
    pub fn create_first(&self) -> Result<(), FirstError> {
        let Inventory::Stated(stated) = &self.inventory else { return Ok(()) };
        let now = Timestamp::now();
        self.accounts.change(None, &*self.storage, |accounts| {
            let mut batch = Batch::new();
            if has_any(accounts) {
                return Ok((batch, ()));
            }
            for region in &stated.regions {
                for first in &region.load_balancers {
                    let place = Place { account: self.owner(first)?, region: region.name.clone() };
                    let key = RecordKey { kind: RecordKind::LoadBalancer, id: first.id.clone() };
                    let record = Record::LoadBalancer(load_balancer(first, region, now));
                    batch.entry(place).or_default().insert(key, Some(record));
                }
            }
            Ok((batch, ()))
        })
    }

    /// Returns the account of a load balancer: the one that it names, or the only one.
    fn owner(&self, first: &FirstBalancer) -> Result<String, FirstError> {
        let accounts = self.credentials.accounts();
        let only = accounts.first().filter(|_| accounts.len() == 1).map(ToString::to_string);
        first.account.clone().or(only).ok_or_else(|| FirstError::Account(first.id.clone()))
    }
}

fn has_any(accounts: &Accounts) -> bool {
    accounts.values().any(|account| *account != Account::EMPTY)
}

fn load_balancer(first: &FirstBalancer, region: &Region, now: Timestamp) -> LoadBalancer {
    let network = |subnet: &String| {
        let mut subnets = region.subnets();
        subnets.find(|(_, known)| known.id == *subnet).map(|(network, _)| network)
    };
    let network = first.subnet.as_ref().and_then(network).or(region.networks.first());
    let is_public = first.subnet.is_none();
    let tag = |(key, value): (&String, &String)| TagInfo {
        tag_key: key.clone(),
        tag_value: value.clone(),
    };
    LoadBalancer {
        id: first.id.clone(),
        name: first.name.clone().unwrap_or_else(|| first.id.clone()),
        is_public,
        ip_version: if first.address.is_ipv6() { IpVersion::V6 } else { IpVersion::V4 },
        addresses: vec![first.address],
        vpc: network.map(|network| network.id.clone()).unwrap_or_default(),
        subnet: first.subnet.clone(),
        project: 0,
        created: now,
        status_changed: now,
        is_stopped: false,
        tags: first.tags.iter().map(tag).collect(),
        security_groups: Vec::new(),
        passes_to_target: false,
        snat_pro: false,
        snat_addresses: Vec::new(),
        is_delete_protected: false,
        zone: None,
        internet_charge_type: is_public.then(|| "TRAFFIC_POSTPAID_BY_HOUR".to_owned()),
        bandwidth: is_public.then_some(10),
        charge_type: "POSTPAID_BY_HOUR".to_owned(),
        vip_isp: is_public.then(|| "BGP".to_owned()),
        sla_type: None,
        custom_config: None,
        listeners: Vec::new(),
        attributes: Attributes::default(),
        last_task: String::new(),
    }
}
