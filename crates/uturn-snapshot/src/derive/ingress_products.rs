//! Which kind of load balancer a cloud's controller makes for an Ingress, and what the Ingress's paths
//! mean to it.

use uturn_lb::cloud;
use uturn_model::cluster::Provider;
use uturn_model::{Known, Text};

use super::clouds::{self, Maker};
use crate::decode::objects::Objects;

/// Notes at each Ingress the product that serves it, where that is described.
pub(super) fn derive(objects: &mut Objects, provider: &Known<Provider>) {
    let product = |ingress| match clouds::of_ingress(ingress, objects, provider) {
        Maker::Other { name, .. } => cloud::ingress_product(&name),
        _ => None,
    };
    let found = objects.ingresses.0.iter();
    let found = found.filter_map(|(name, ingress)| Some((name.clone(), product(ingress)?)));
    let found: Vec<_> = found.collect();
    for (name, product) in found {
        let Some(ingress) = objects.ingresses.0.get_mut(&name) else { continue };
        ingress.product = Some(Text::from(product.name()));
        if ingress.route.is_some() {
            continue;
        }
        for path in ingress.rules.iter_mut().flat_map(|rule| &mut rule.paths) {
            (path.path, path.kind) = product.path(path);
        }
    }
}
