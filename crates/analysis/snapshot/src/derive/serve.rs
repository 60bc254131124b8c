//! Completes what serves calls: Services and their endpoints, load balancers, controllers, and the
//! names and addresses by which they are called.

mod announcers;
mod balancer_arguments;
mod balancer_names;
pub(super) mod controllers;
mod dns;
pub(super) mod endpoints;
mod gateways;
mod holders;
mod ingress_products;
mod mesh;
mod name_server;
mod network;
mod pending_balancers;
mod proxy;
mod services;
mod stated_balancers;

use std::collections::BTreeMap;

use uturn_document::Fault;
use uturn_model::dns::Dns;
use uturn_model::network::Network;
use uturn_model::{Announcements, IngressController, Labels, NamespacedName, ProxySettings};

use super::Assumptions;
use super::ground::Ground;
use super::populate::Population;
use super::populate::ranges::Ranges;
use super::unjudged::Gaps;
use controllers::Open;
use endpoints::Slices;

/// The population with everything that serves its calls.
pub(super) struct Served {
    pub(super) population: Population,
    pub(super) proxy: ProxySettings,
    pub(super) network: Network,
    pub(super) endpoints: Slices,
    pub(super) dns: Dns,
    pub(super) controllers: Vec<IngressController>,
    /// The Ingresses whose controller in the cluster is not known, with the reason.
    pub(super) open: BTreeMap<NamespacedName, Open>,
    pub(super) balancer_arguments: Labels,
    pub(super) announcements: Announcements,
    /// The gaps that were found on the way: routes that are not judged.
    pub(super) gaps: Gaps,
}

/// Completes what serves calls.
///
/// # Errors
/// Returns a fault if more endpoints than the limit would have to be made up.
pub(super) fn derive(
    mut population: Population,
    mut ranges: Ranges,
    ground: &Ground,
    assumptions: &mut Assumptions,
) -> Result<Served, Fault> {
    let provider = &ground.provider;
    let mut gaps = Gaps::default();
    services::complete(&mut population, &mut ranges, assumptions);
    gateways::complete(&mut population, &mut gaps, assumptions);
    ingress_products::derive(&mut population, provider, assumptions);
    stated_balancers::complete(&mut population, provider, &mut ranges, assumptions);
    pending_balancers::complete(&mut population, ground, &mut ranges, assumptions);
    stated_balancers::leave_to_balancers(&mut population, provider);
    holders::derive(&mut population, provider);
    let network = network::derive(&population, ground, &ranges, assumptions);
    let proxy = proxy::complete(ground, &population, &network, assumptions);
    let endpoints = endpoints::derive(&mut population)?;
    let names = balancer_names::derive(&population, &endpoints, provider, &mut ranges, assumptions);
    let dns = dns::derive(&population, names, assumptions);
    let found = controllers::derive(&mut population, ground, assumptions);
    mesh::suppose_none(&population, assumptions);
    Ok(Served {
        proxy,
        network,
        endpoints,
        dns,
        controllers: found.controllers,
        open: found.open,
        balancer_arguments: balancer_arguments::derive(&population, ground.extent),
        announcements: announcers::derive(&population),
        gaps,
        population,
    })
}
