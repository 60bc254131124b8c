//! What the API says is there.

mod read;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::RangeInclusive;

use uturn_cloud::api::clb::{
    DescribeListenersRequest, DescribeLoadBalancersRequest, DescribeTargetsRequest, Filter,
};
use uturn_cloud::client::CallError;
use uturn_cloud::unserved::Unserved;
use uturn_cloud::wire::error::ErrorCode;
use uturn_model::Protocol;

use crate::api::Api;
use crate::clb::{self, BalancerSettings, ListenerKey, RuleKey};
use crate::environment::Environment;
use crate::tags;
use crate::wanted::{Place, Wanted};

/// The most load balancers of an answer.
const PAGE: i64 = 100;
/// The most ids of a request.
const MAX_IDS: usize = 20;

/// The load balancers that are there, by their ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The load balancers.
    pub balancers: BTreeMap<String, Balancer>,
}

/// A load balancer.
#[derive(Clone, Debug, PartialEq)]
pub struct Balancer {
    /// Its id.
    pub id: String,
    /// Whether its addresses are public.
    pub is_public: bool,
    /// The subnet of a private one.
    pub subnet: Option<String>,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// Its domain, where it has one in place of addresses.
    pub domain: Option<String>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// How it behaves.
    pub settings: BalancerSettings,
    /// Why the cloud does not serve it, or not as it stands; `None` if it does.
    pub unserved: Option<Unserved>,
    /// Whether the cloud says that it does not serve some of its listeners.
    pub has_unserved_listeners: bool,
    /// The controllers' listeners.
    pub listeners: BTreeMap<ListenerKey, Listener>,
    /// The user's listeners.
    pub foreign: Vec<Foreign>,
}

/// A listener of the controllers, with its ids.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// Its id.
    pub id: String,
    /// The listener.
    pub listener: clb::Listener,
    /// Why the cloud does not serve it, or not all of it; `None` if it does.
    pub unserved: Option<Unserved>,
    /// The ids of its rules.
    pub rules: BTreeMap<RuleKey, String>,
    /// Where its rules redirect to: ids of a listener and a rule.
    pub redirects: BTreeMap<RuleKey, (String, String)>,
}

/// A listener of the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its ports.
    pub ports: RangeInclusive<u16>,
    /// The transport protocol.
    pub transport: Protocol,
}

impl Balancer {
    /// Whether the controllers made it.
    pub fn is_own(&self) -> bool {
        self.has(tags::CREATED_BY, tags::CREATED)
    }

    /// Whether it has a tag with this value.
    pub fn has(&self, key: &str, value: &str) -> bool {
        self.tags.get(key).is_some_and(|found| found == value)
    }

    /// The user's listener that has a port.
    pub fn foreign_at(&self, key: ListenerKey) -> Option<&Foreign> {
        self.foreign
            .iter()
            .find(|foreign| foreign.transport == key.transport && foreign.ports.contains(&key.port))
    }
}

/// Asks the API for the load balancers that the controllers made for this cluster, and for those
/// of the user's that the cluster names.
///
/// # Errors
///
/// Returns the failure of the first call that fails.
pub async fn observe<A: Api>(
    api: &A,
    environment: &Environment,
    wanted: &Wanted,
) -> Result<Observed, CallError> {
    let mut heads = list(api, &environment.cluster).await?;
    let known: BTreeSet<String> = heads.iter().map(|known| known.id.clone()).collect();
    let existing = wanted.balancers.iter().filter_map(|balancer| match &balancer.place {
        Place::Existing(id) => Some(id.clone()),
        Place::Own(_) => None,
    });
    let named = existing.chain(environment.ledger.ids().cloned()).filter(|id| !known.contains(id));
    heads.extend(named_heads(api, &named.collect()).await?);
    complete_all(api, heads).await
}

/// Asks the API for load balancers, by their ids. Those that do not exist are left out.
///
/// # Errors
///
/// Returns the failure of the first call that fails.
pub async fn look<A: Api>(api: &A, ids: &BTreeSet<String>) -> Result<Observed, CallError> {
    let heads = named_heads(api, ids).await?;
    complete_all(api, heads).await
}

/// Asks the API for the listeners and targets of load balancers that were listed before. Those
/// that do not exist any more are left out.
///
/// # Errors
///
/// Returns the failure of the first call that fails.
pub async fn complete_all<A: Api>(api: &A, heads: Vec<Balancer>) -> Result<Observed, CallError> {
    let mut observed = Observed::default();
    for head in heads {
        if let Some(balancer) = complete(api, head).await? {
            observed.balancers.insert(balancer.id.clone(), balancer);
        }
    }
    Ok(observed)
}

/// A load balancer with its listeners and targets in place of those that were known before.
async fn complete<A: Api>(api: &A, mut balancer: Balancer) -> Result<Option<Balancer>, CallError> {
    let request = DescribeListenersRequest {
        load_balancer_id: balancer.id.clone(),
        ..DescribeListenersRequest::default()
    };
    let listeners = match api.call(&request).await {
        Ok(answer) => answer.response.listeners.unwrap_or_default(),
        Err(error) if error.is(ErrorCode::LbIdNotFound) => return Ok(None),
        Err(error) => return Err(error),
    };
    let targets = match listeners.is_empty() {
        true => Vec::new(),
        false => {
            let request = DescribeTargetsRequest {
                load_balancer_id: balancer.id.clone(),
                ..DescribeTargetsRequest::default()
            };
            api.call(&request).await?.response.listeners.unwrap_or_default()
        }
    };
    (balancer.listeners, balancer.foreign) = (BTreeMap::new(), Vec::new());
    read::fill(&mut balancer, &listeners, &targets);
    Ok(Some(balancer))
}

/// Load balancers without their listeners, by their ids.
async fn named_heads<A: Api>(api: &A, ids: &BTreeSet<String>) -> Result<Vec<Balancer>, CallError> {
    let ids: Vec<&String> = ids.iter().collect();
    let mut heads = Vec::new();
    for ids in ids.chunks(MAX_IDS) {
        let request = DescribeLoadBalancersRequest {
            load_balancer_ids: Some(ids.iter().map(|id| (*id).clone()).collect()),
            ..DescribeLoadBalancersRequest::default()
        };
        let answer = api.call(&request).await?.response;
        heads.extend(answer.load_balancer_set.iter().flatten().map(read::head));
    }
    Ok(heads)
}

/// Asks the API for the load balancers that the controllers made for a cluster, without their
/// listeners.
///
/// # Errors
///
/// Returns the failure of the first call that fails.
pub async fn list<A: Api>(api: &A, cluster: &str) -> Result<Vec<Balancer>, CallError> {
    let filter = |tag: &str, value: &str| Filter {
        name: format!("tag:{tag}"),
        values: vec![value.to_owned()],
    };
    let mut found = Vec::new();
    loop {
        let request = DescribeLoadBalancersRequest {
            offset: i64::try_from(found.len()).ok(),
            limit: Some(PAGE),
            filters: Some(vec![
                filter(tags::CREATED_BY, tags::CREATED),
                filter(tags::CLUSTER, cluster),
            ]),
            ..DescribeLoadBalancersRequest::default()
        };
        let answer = api.call(&request).await?.response;
        let page = answer.load_balancer_set.unwrap_or_default();
        let is_last = page.is_empty();
        found.extend(page.iter().map(read::head));
        let total = answer.total_count.and_then(|total| usize::try_from(total).ok());
        if is_last || total.is_some_and(|total| found.len() >= total) {
            return Ok(found);
        }
    }
}
