//! The state of load balancers that the API reports.

mod read;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::RangeInclusive;

use uturn_cloud_api::clb::{
    DescribeListenersRequest, DescribeLoadBalancersRequest, DescribeTargetsRequest, Filter,
};
use uturn_cloud_api::client::CallError;
use uturn_cloud_api::unserved::Unserved;
use uturn_cloud_api::wire::error::ErrorCode;
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

/// The existing load balancers, by their ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The load balancers.
    pub balancers: BTreeMap<String, Balancer>,
}

/// A load balancer.
#[derive(Clone, Debug, PartialEq)]
pub struct Balancer {
    /// The id.
    pub id: String,
    /// Whether the addresses are public.
    pub is_public: bool,
    /// The subnet of a private load balancer.
    pub subnet: Option<String>,
    /// The addresses.
    pub addresses: Vec<IpAddr>,
    /// The domain, if the load balancer has one in place of addresses.
    pub domain: Option<String>,
    /// The tags.
    pub tags: BTreeMap<String, String>,
    /// The settings.
    pub settings: BalancerSettings,
    /// The reason why the cloud does not serve the load balancer, or not as it is configured;
    /// `None` if it does.
    pub unserved: Option<Unserved>,
    /// Whether the cloud reports that it does not serve some of its listeners.
    pub has_unserved_listeners: bool,
    /// The controllers' listeners.
    pub listeners: BTreeMap<ListenerKey, Listener>,
    /// The user's listeners.
    pub foreign: Vec<Foreign>,
}

/// A listener of the controllers, with its ids.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// The id.
    pub id: String,
    /// The listener.
    pub listener: clb::Listener,
    /// The reason why the cloud does not serve the listener, or not all of it; `None` if it does.
    pub unserved: Option<Unserved>,
    /// The ids of its rules.
    pub rules: BTreeMap<RuleKey, String>,
    /// The redirections of its rules: ids of a listener and a rule.
    pub redirects: BTreeMap<RuleKey, (String, String)>,
}

/// A listener of the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// The id.
    pub id: String,
    /// The name.
    pub name: String,
    /// The ports.
    pub ports: RangeInclusive<u16>,
    /// The transport protocol.
    pub transport: Protocol,
}

impl Balancer {
    /// Returns whether the controllers made the load balancer.
    pub fn is_own(&self) -> bool {
        self.has(tags::CREATED_BY, tags::CREATED)
    }

    /// Returns whether the load balancer has a tag with this value.
    pub fn has(&self, key: &str, value: &str) -> bool {
        self.tags.get(key).is_some_and(|found| found == value)
    }

    /// Returns the user's listener that has a port.
    pub fn foreign_at(&self, key: ListenerKey) -> Option<&Foreign> {
        self.foreign
            .iter()
            .find(|foreign| foreign.transport == key.transport && foreign.ports.contains(&key.port))
    }
}

/// Reads the load balancers that the controllers made for this cluster, and those of the user's
/// that the cluster names, from the API.
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

/// Reads load balancers from the API by their ids. Those that do not exist are left out.
///
/// # Errors
///
/// Returns the failure of the first call that fails.
pub async fn look<A: Api>(api: &A, ids: &BTreeSet<String>) -> Result<Observed, CallError> {
    let heads = named_heads(api, ids).await?;
    complete_all(api, heads).await
}

/// Reads the listeners and targets of load balancers that were listed before. Load balancers that
/// no longer exist are left out.
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

/// Returns a load balancer with its current listeners and targets; `None` if it no longer exists.
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
    let targets = if listeners.is_empty() {
        Vec::new()
    } else {
        let request = DescribeTargetsRequest {
            load_balancer_id: balancer.id.clone(),
            ..DescribeTargetsRequest::default()
        };
        api.call(&request).await?.response.listeners.unwrap_or_default()
    };
    (balancer.listeners, balancer.foreign) = (BTreeMap::new(), Vec::new());
    read::fill(&mut balancer, &listeners, &targets);
    Ok(Some(balancer))
}

/// Reads load balancers by their ids, without their listeners.
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

/// Lists the load balancers that the controllers made for a cluster, without their listeners.
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
