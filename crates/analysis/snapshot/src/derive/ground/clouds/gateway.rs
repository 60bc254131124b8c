//! Determines the program that serves the Gateways of a class.

use uturn_clouds::cloud;
use uturn_model::Ingress;

use super::Maker;
use crate::decode::objects::Objects;

/// The prefixes of the controllers of GatewayClasses whose proxies are pods of the cluster, and the
/// names of the products.
const CONTROLLERS: &[(&str, &str)] = &[
    ("gateway.envoyproxy.io/", "Envoy Gateway"),
    ("istio.io/", "Istio"),
    ("projectcontour.io/", "Contour"),
    ("traefik.io/", "Traefik"),
    ("gateway.nginx.org/", "NGINX Gateway Fabric"),
    ("konghq.com/", "Kong"),
    ("io.cilium/", "Cilium Gateway"),
    ("haproxy-ingress.github.io/", "HAProxy Ingress"),
];

/// The usual names of classes and their controllers, for Gateways whose GatewayClass is not given.
const USUAL: &[(&str, &str)] = &[
    ("eg", "gateway.envoyproxy.io/"),
    ("envoy-gateway", "gateway.envoyproxy.io/"),
    ("istio", "istio.io/"),
    ("contour", "projectcontour.io/"),
    ("traefik", "traefik.io/"),
    ("nginx", "gateway.nginx.org/"),
    ("kong", "konghq.com/"),
    ("cilium", "io.cilium/"),
];

/// Returns the maker of an Ingress that stands for a route, by the class of its Gateway.
pub(super) fn maker_of(ingress: &Ingress, objects: &Objects) -> Maker {
    let name = ingress.class.as_deref().unwrap_or_default();
    let class = objects.gateway_classes.0.get(name);
    let trace = match class {
        Some(class) => format!("controller {} of GatewayClass {}", class.controller, class.name),
        None => format!("class {name} of {}", ingress.object()),
    };
    if let Some(product) = cloud::by_gateway_class(name, class.map(|class| &*class.controller)) {
        return Maker::Other { name: product.to_owned(), trace };
    }
    let usual = USUAL.iter().find(|(known, _)| *known == name).map(|(_, controller)| *controller);
    let controller = class.map(|class| &*class.controller).or(usual);
    let known = controller.and_then(|controller| {
        CONTROLLERS.iter().find(|(begins, _)| controller.starts_with(begins))
    });
    let name = match (known, class) {
        (Some((_, product)), _) => (*product).to_owned(),
        (None, Some(class)) => class.controller.to_string(),
        (None, None) => format!("the controller of class {name}"),
    };
    Maker::Controller { name, trace }
}
