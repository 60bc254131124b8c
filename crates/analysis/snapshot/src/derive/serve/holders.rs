//! Determines the nodes that announce the addresses of load balancers, if something states them.

use uturn_clouds::cloud::{Maker, maker_of};
use uturn_model::Known;
use uturn_model::cluster::Provider;
use uturn_model::service::ServiceKind;

use crate::decode::objects::Objects;

/// Sets the holder of each Service. A holder that is no longer a node announces nothing.
pub(in crate::derive) fn derive(objects: &mut Objects, provider: &Known<Provider>) {
    for service in objects.services.0.values_mut() {
        if service.kind != ServiceKind::LoadBalancer {
            continue;
        }
        if let Maker::Product(product, _) = maker_of(service, provider) {
            let holder = product.holder(service, &objects.leases);
            service.holder = holder.filter(|name| objects.nodes.0.contains_key(name));
        }
    }
}
