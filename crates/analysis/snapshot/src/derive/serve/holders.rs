//! Determines the nodes that announce the addresses of load balancers, if something states them.

use uturn_clouds::cloud::{Maker, maker_of};
use uturn_model::Known;
use uturn_model::cluster::Provider;
use uturn_model::service::ServiceKind;

use crate::derive::populate::{Population, Serving};

/// Sets the holder of each Service. A holder that is no longer a node announces nothing.
pub(super) fn derive(population: &mut Population, provider: &Known<Provider>) {
    let Serving { services, leases, nodes, .. } = population.serving();
    for service in services.values_mut() {
        if service.kind != ServiceKind::LoadBalancer {
            continue;
        }
        if let Maker::Product(product, _) = maker_of(service, provider) {
            let holder = product.holder(service, leases);
            service.holder = holder.filter(|name| nodes.contains_key(name));
        }
    }
}
