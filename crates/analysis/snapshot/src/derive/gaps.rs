//! Finds what decides about flows and is not known.

mod balancers;
mod missing;
mod service_proxies;

use uturn_model::{Text, Unknown};

use super::ground::Ground;
use super::serve::Served;
use super::unjudged::Gaps;
use crate::decode::objects::Objects;

/// Returns the gaps of a cluster, besides those that were found while it was completed.
pub(super) fn find(served: &Served, ground: &Ground) -> Gaps {
    let population = &served.population;
    let mut all = Gaps::default();
    let gaps = &mut all;
    service_proxies::find_placeholders(population, &served.endpoints, gaps);
    service_proxies::find_left_to_others(population, gaps);
    missing::find(population, &served.endpoints, ground, gaps);
    balancers::find(population, &ground.provider, &served.open, &served.dns, gaps);
    service_proxies::find_unmodelled(population, &served.proxy.served_by, gaps);
    find_windows(population, gaps);
    all
}

/// Lists the nodes that run Windows, because their network and the rules of their kube-proxy differ
/// from those of Linux.
fn find_windows(objects: &Objects, gaps: &mut Gaps) {
    for node in objects.nodes.0.values().filter(|node| node.is_windows) {
        let because = "its label kubernetes.io/os or its operatingSystem says so";
        gaps.add(node.object(), Unknown::Windows, because.into(), Text::default());
    }
}
