//! Determines the kind of load balancer that a cloud's controller makes for an Ingress, and what
//! the Ingress's paths mean to it.

use uturn_clouds::cloud;
use uturn_model::cluster::Provider;
use uturn_model::gateway::AttachedRoute;
use uturn_model::{Ingress, Known, Labels, NamespacedName, Text};

use crate::decode::objects::Objects;
use crate::derive::Assumptions;
use crate::derive::ground::clouds::{self, Maker};
use crate::derive::populate::Population;

/// Sets on each Ingress the product that serves it, if the product is described.
pub(super) fn derive(
    population: &mut Population,
    provider: &Known<Provider>,
    assumptions: &mut Assumptions,
) {
    let product = |ingress: &Ingress| match clouds::of_ingress(ingress, population, provider) {
        // The products are described for requests only.
        _ if ingress.route.as_ref().is_some_and(AttachedRoute::is_of_connections) => None,
        Maker::Other { name, .. } => cloud::ingress_product(&name),
        _ => None,
    };
    let found = population.ingresses.0.iter();
    let found = found.filter_map(|(name, ingress)| Some((name.clone(), product(ingress)?)));
    let found: Vec<_> = found.collect();
    for (name, product) in found {
        let settings = class_settings(population, &name, assumptions);
        let Some(ingress) = population.serving().ingresses.get_mut(&name) else { continue };
        ingress.class_settings = settings;
        ingress.product = Some(Text::from(product.name()));
        if ingress.route.is_some() {
            continue;
        }
        for path in ingress.rules.iter_mut().flat_map(|rule| &mut rule.paths) {
            (path.path, path.kind) = product.path(path);
        }
    }
}

/// Returns the settings in the parameters of an Ingress's class.
fn class_settings(
    objects: &Objects,
    name: &NamespacedName,
    assumptions: &mut Assumptions,
) -> Labels {
    let Some(ingress) = objects.ingresses.0.get(name).filter(|ingress| ingress.route.is_none())
    else {
        return Labels::new();
    };
    let classes = &objects.ingress_classes.0;
    let class = match ingress.class.as_deref() {
        Some(class) => classes.get(class),
        None => classes.values().find(|class| class.is_default),
    };
    let named = class.and_then(|class| Some((class, class.parameters.as_ref()?)));
    let Some((class, (kind, parameters))) = named else { return Labels::new() };
    let Some(known) = cloud::class_parameters(kind) else { return Labels::new() };
    let found = objects.class_parameters.get(&(known.kind, parameters.clone()));
    found.cloned().unwrap_or_else(|| {
        assumptions.assume(
            format!("settings of IngressClass {}", class.name),
            "what annotations say",
            format!("it names {kind} {parameters}, which is not given"),
            format!("give {kind} {parameters}"),
        );
        Labels::new()
    })
}
