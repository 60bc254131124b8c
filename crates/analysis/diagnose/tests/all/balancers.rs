//! What the pages of loopback say of load balancers is what the program takes for true of them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use uturn_clouds::cloud::{self, PortPlan, Product};
use uturn_diagnose::pages;
use uturn_model::lb::{Delivery, Source};
use uturn_model::service::{ServiceKind, ServicePort, TargetPort};
use uturn_model::{Family, Origin, Port, Protocol, Service};

/// A Service with one port of TCP and these annotations.
fn service(notes: &[(&str, &str)]) -> Service {
    let mut service = Service::new("shop/web".parse().unwrap(), Origin::file("a.yaml"));
    service.kind = ServiceKind::LoadBalancer;
    service.annotations = notes.iter().copied().collect();
    let port = |number| Port::new(number).unwrap();
    service.ports.push(ServicePort {
        node_port: Some(port(30080)),
        ..ServicePort::new(Protocol::Tcp, port(80), TargetPort::Number(port(8080)))
    });
    service
}

/// What a product does at that port.
fn plan(product: &str, notes: &[(&str, &str)]) -> PortPlan {
    let mut products = cloud::ALL.into_iter().flat_map(|entry| entry.products);
    let product: &dyn Product = *products.find(|known| known.name() == product).unwrap();
    let service = service(notes);
    product.port(&service, &service.ports[0], Family::V4).unwrap()
}

const LOOPS: [(&str, &[(&str, &str)]); 2] = [
    ("AWS NLB", &[("service.beta.kubernetes.io/aws-load-balancer-type", "nlb")]),
    (
        "Azure Load Balancer",
        &[("service.beta.kubernetes.io/azure-disable-load-balancer-floating-ip", "true")],
    ),
];
const REPLACES: [&str; 5] = [
    "AWS Classic Load Balancer",
    "Hetzner Load Balancer",
    "Linode NodeBalancer",
    "Scaleway Load Balancer",
    "Vultr Load Balancer",
];
const KEEPS_ADDRESS: [&str; 4] =
    ["Azure Load Balancer", "Google Cloud passthrough load balancer", "MetalLB", "kube-vip"];

#[test]
fn what_the_page_of_service_loopback_says_is_so() {
    let page = pages::find("UT102").unwrap();
    for (product, notes) in LOOPS {
        assert!(page.contains(&format!("| {product}")), "{product} is not in the table");
        let profile = plan(product, notes).profile;
        assert_eq!(
            (profile.source, profile.delivery),
            (Source::Kept, Delivery::ToTarget),
            "{product}"
        );
    }
    for product in REPLACES {
        let maker = product.split(' ').next().unwrap();
        assert!(page.contains(maker), "{product} is not on the page");
        let profile = plan(product, &[]).profile;
        assert!(matches!(profile.source, Source::Replaced(_)), "{product}");
    }
    for product in KEEPS_ADDRESS {
        let maker = product.split(' ').next().unwrap();
        assert!(page.contains(maker), "{product} is not on the page");
        assert_eq!(plan(product, &[]).profile.delivery, Delivery::KeepsAddress, "{product}");
    }
}
