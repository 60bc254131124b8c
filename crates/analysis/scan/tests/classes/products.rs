//! Load balancers that products describe: names instead of addresses, zones, nodes or pods as
//! targets, PROXY headers; and those of Ingresses, with redirects and what is not judged.

use std::net::IpAddr;

use uturn_clouds::cloud::{ALL, Maker, maker_of};
use uturn_model::cluster::Provider;
use uturn_model::ingress::{Backend, BackendPort, Tls};
use uturn_model::lb::NamedAddress;
use uturn_model::service::{IpMode, LbIngress, ServiceKind};
use uturn_model::{Cluster, Family, Known, Labels, Name, Service, Text, Unknown};

use crate::dice::Dice;

/// What Facts have to say for products to be asked.
pub(crate) const PROVIDER: &str = "provider: aws";

const PREFIX: &str = "service.beta.kubernetes.io/aws-load-balancer-";

/// Makes the Services of type LoadBalancer ask for products.
pub(crate) fn ask(cluster: &mut Cluster, dice: &mut Dice) {
    judge_all(cluster);
    for (number, node) in (1..).zip(cluster.nodes.values_mut()) {
        node.provider_id = Some(format!("aws:///zone/i-{number}").into());
        node.ready = !dice.once_in(12);
    }
    let told = [("metallb/ignore-exclude-lb", "true"), ("aws/default-target-type", "ip")];
    let arguments = told.into_iter().filter(|_| dice.once_in(2));
    cluster.balancer_arguments = arguments.collect();
    let nodes: Vec<IpAddr> =
        cluster.nodes.values().flat_map(|node| node.internal_ips.iter().copied()).collect();
    let names: Vec<Name> = cluster.nodes.keys().cloned().collect();
    for (number, service) in (0u8..).zip(cluster.services.values_mut()) {
        if service.kind != ServiceKind::LoadBalancer {
            continue;
        }
        // Load balancers of several clouds share no address.
        let own = address(service, number.is_multiple_of(2), 10 * number + 3);
        if dice.once_in(3) {
            service.load_balancer[0].ip = Some(own);
            ask_another(service, &nodes, dice);
            service.holder = dice.once_in(2).then(|| names[dice.below(names.len())].clone());
            continue;
        }
        service.annotations = annotations(dice);
        let class = dice.one_of(&["service.k8s.aws/nlb", "eks.amazonaws.com/nlb"]);
        service.load_balancer_class = dice.once_in(3).then(|| Text::from(class));
        // Now and then kube-proxy has a rule for the address.
        if dice.once_in(6) {
            service.load_balancer[0].ip = Some(own);
            continue;
        }
        let form = dice.one_of(&["lb.elb.one", "lb.elb.one", "lb.one.elb"]);
        let host: Text = format!("s{number}-{form}.amazonaws.com").into();
        service.load_balancer = vec![LbIngress {
            ip: None,
            hostname: Some(host.clone()),
            ..service.load_balancer[0].clone()
        }];
        let zoned = match maker_of(service, &cluster.provider) {
            Maker::Product(product, _) => product.serves_by_zone(service),
            _ => false,
        };
        let zones: &[Option<&str>] = if zoned { &[Some("a"), Some("b")] } else { &[None] };
        let address = |(at, zone): (u8, &Option<&str>)| NamedAddress {
            address: address(service, number.is_multiple_of(2), 10 * number + at),
            zone: zone.map(Text::from),
        };
        let addresses = (1..).zip(zones).map(address).collect();
        cluster.dns.balancers.insert(host, addresses);
    }
    ask_for_ingresses(cluster, dice);
    if dice.once_in(3) {
        share_endpoints(cluster);
    }
}

/// Leaves it to each Service whose load balancer it has: in one cloud's cluster annotations of
/// others say nothing.
pub(crate) fn judge_all(cluster: &mut Cluster) {
    cluster.provider = Known::derived(Provider::Unknown, "load balancers of several clouds");
    for service in cluster.services.values_mut() {
        service.unjudged.retain(|unknown| !matches!(unknown, Unknown::LoadBalancers(_)));
    }
}

/// Makes the Ingresses ask for products of any cloud. Now and then one is not judged, and it may
/// share the address of a Service.
fn ask_for_ingresses(cluster: &mut Cluster, dice: &mut Dice) {
    let all: Vec<&str> =
        ALL.iter().flat_map(|entry| entry.ingress_products).map(|product| product.name()).collect();
    let of_services: Vec<LbIngress> =
        cluster.services.values().flat_map(|service| service.load_balancer.clone()).collect();
    let mut first: Option<&str> = None;
    for (number, ingress) in (0u8..).zip(cluster.ingresses.values_mut()) {
        if ingress.controller.is_some() {
            continue;
        }
        // Load balancers of several products do not share an address.
        let name = *first.get_or_insert_with(|| dice.one_of(&all));
        ingress.product = Some(name.into());
        ingress.unjudged.clear();
        let notes: Vec<(&str, &str)> = INGRESS_NOTES
            .iter()
            .filter_map(|choices| Some(dice.one_of(choices)).filter(|(key, _)| !key.is_empty()))
            .collect();
        ingress.annotations = notes.into_iter().collect();
        if dice.once_in(4) {
            let hosts = vec!["h0.example.com".into()];
            ingress.tls = vec![Tls { hosts, secret: None }];
        }
        if dice.once_in(4)
            && let Some(path) = ingress.rules.iter_mut().flat_map(|rule| &mut rule.paths).next()
        {
            let name = Name::new("sent").expect("a name");
            path.backend =
                Backend::Service { name, port: BackendPort::Name("use-annotation".into()) };
        }
        if dice.once_in(4) {
            ingress.unjudged.push(Unknown::LoadBalancers(name.into()));
        }
        match dice.below(6) {
            0 if !of_services.is_empty() => {
                let shared = of_services[dice.below(of_services.len())].clone();
                ingress.load_balancer = vec![shared];
            }
            1..=3 => {
                let host: Text = format!("i{number}.lb.example").into();
                let is_v6 = matches!(ingress.load_balancer[0].ip, Some(IpAddr::V6(_)));
                let text = if is_v6 { "fd00::250" } else { "10.0.0.250" };
                let address = text.parse().expect("an address");
                ingress.load_balancer = vec![LbIngress {
                    ip: None,
                    hostname: Some(host.clone()),
                    ..ingress.load_balancer[0].clone()
                }];
                cluster.dns.balancers.insert(host, vec![NamedAddress { address, zone: None }]);
            }
            _ => {}
        }
    }
    for service in cluster.services.values_mut() {
        let (key, value) = dice.one_of(&SERVICE_NOTES);
        if !key.is_empty() {
            service.annotations = service.annotations.iter().chain([(key, value)]).collect();
        }
    }
}

/// Annotations of Ingresses: one of each list is drawn.
const INGRESS_NOTES: [&[(&str, &str)]; 5] = [
    &[
        ("", ""),
        ("alb.ingress.kubernetes.io/scheme", "internet-facing"),
        ("appgw.ingress.kubernetes.io/use-private-ip", "true"),
    ],
    &[
        ("", ""),
        ("alb.ingress.kubernetes.io/listen-ports", r#"[{"HTTP": 80}, {"HTTPS": 443}]"#),
        ("alb.ingress.kubernetes.io/listen-ports", r#"[{"HTTPS": 8443}]"#),
    ],
    &[
        ("", ""),
        ("alb.ingress.kubernetes.io/ssl-redirect", "443"),
        ("appgw.ingress.kubernetes.io/ssl-redirect", "true"),
    ],
    &[("", ""), ("", ""), ("alb.ingress.kubernetes.io/target-type", "ip")],
    &[
        (
            "alb.ingress.kubernetes.io/actions.sent",
            r#"{"type": "redirect", "redirectConfig": {"protocol": "HTTPS", "port": "443"}}"#,
        ),
        (
            "alb.ingress.kubernetes.io/actions.sent",
            r#"{"type": "fixed-response", "fixedResponseConfig": {"statusCode": "200"}}"#,
        ),
    ],
];

const SERVICE_NOTES: [(&str, &str); 5] = [
    ("", ""),
    ("", ""),
    ("alb.ingress.kubernetes.io/target-type", "ip"),
    ("cloud.google.com/neg", r#"{"ingress": true}"#),
    ("cloud.google.com/neg", r#"{"ingress": false}"#),
];

/// Annotations by which Services ask for what other clouds make: proxies, what keeps the source and
/// what keeps the address, with probes and without.
const OTHERS: &[&[(&str, &str)]] = &[
    &[("loadbalancer.openstack.org/enable-health-monitor", "true")],
    &[("loadbalancer.openstack.org/enable-health-monitor", "false")],
    &[("loadbalancer.openstack.org/proxy-protocol", "true")],
    &[("loadbalancer.openstack.org/x-forwarded-for", "true")],
    &[("loadbalancer.openstack.org/lb-method", "SOURCE_IP_PORT")],
    &[
        ("loadbalancer.openstack.org/lb-method", "SOURCE_IP_PORT"),
        ("loadbalancer.openstack.org/enable-health-monitor", "true"),
    ],
    &[("loadbalancer.ovhcloud.com/class", "octavia")],
    &[("service.beta.kubernetes.io/ovh-loadbalancer-proxy-protocol", "v2")],
    &[("service.beta.kubernetes.io/exoscale-loadbalancer-name", "web")],
    &[("cis.f5.com/ip", "192.0.2.1")],
    &[("cis.f5.com/ip", "192.0.2.1"), ("cis.f5.com/health", "{}")],
    &[("service.beta.kubernetes.io/do-loadbalancer-type", "REGIONAL_NETWORK")],
    &[("service.beta.kubernetes.io/linode-loadbalancer-default-protocol", "http")],
    &[("load-balancer.hetzner.cloud/uses-proxyprotocol", "true")],
    &[("metallb.io/address-pool", "a")],
    &[("metallb.io/address-pool", "a")],
    &[("kube-vip.io/loadbalancerIPs", "192.0.2.1")],
    &[("kube-vip.io/loadbalancerIPs", "192.0.2.1")],
    &[("io.cilium/lb-ipam-ips", "192.0.2.1")],
];
/// Asks for pods on nodes, whose addresses are the status.
const ON_NODES: &[(&str, &str)] = &[("svccontroller.k3s.cattle.io/lbpool", "a")];

/// Makes a Service ask for a product of another cloud, at an address with or without a rule.
fn ask_another(service: &mut Service, nodes: &[IpAddr], dice: &mut Dice) {
    if dice.once_in(6) {
        service.annotations = ON_NODES.iter().copied().collect();
        let usual = service.load_balancer[0].clone();
        let family = usual.ip.map(Family::of);
        let of_family = nodes.iter().filter(|ip| Some(Family::of(**ip)) == family);
        let listed = of_family.filter(|_| !dice.once_in(3)).map(|ip| LbIngress {
            ip: Some(*ip),
            mode: IpMode::Vip,
            ..usual.clone()
        });
        let listed: Vec<LbIngress> = listed.collect();
        if !listed.is_empty() {
            service.load_balancer = listed;
        }
        return;
    }
    service.annotations = dice.one_of(OTHERS).iter().copied().collect();
    if dice.once_in(2) {
        service.load_balancer[0].mode = IpMode::Proxy;
    }
}

fn address(service: &Service, is_private: bool, host: u8) -> IpAddr {
    let is_v6 = service.cluster_ips.first().is_some_and(|ip| Family::of(*ip) == Family::V6);
    let text = match (is_v6, is_private) {
        (false, true) => format!("10.0.0.{}", 210 + host),
        (false, false) => format!("198.18.0.{}", 210 + host),
        (true, true) => format!("fd00::{}", 210 + u16::from(host)),
        (true, false) => format!("2001:db8::{}", 210 + u16::from(host)),
    };
    text.parse().expect("an address")
}

fn annotations(dice: &mut Dice) -> Labels {
    let mut notes: Vec<(&str, &str)> = Vec::new();
    let kind = dice.one_of(&["", "nlb", "nlb", "nlb-ip", "external", "external"]);
    if !kind.is_empty() {
        notes.push(("type", kind));
    }
    if dice.once_in(2) {
        notes.push(("nlb-target-type", dice.one_of(&["ip", "instance"])));
    }
    match dice.below(4) {
        0 => notes.push(("internal", "true")),
        1 => notes.push(("scheme", "internal")),
        2 => notes.push(("scheme", "internet-facing")),
        _ => {}
    }
    if dice.once_in(2) {
        notes.push(("attributes", "load_balancing.cross_zone.enabled=true"));
    }
    let group = dice.one_of(&[
        "",
        "",
        "preserve_client_ip.enabled=true",
        "preserve_client_ip.enabled=false",
        "preserve_client_ip.enabled=true,proxy_protocol_v2.enabled=true",
    ]);
    if !group.is_empty() {
        notes.push(("target-group-attributes", group));
    }
    if dice.once_in(4) {
        notes.push(("proxy-protocol", "*"));
    }
    if dice.once_in(8) {
        notes.push(("ssl-cert", "certificate"));
    }
    let keys: Vec<(String, &str)> =
        notes.into_iter().map(|(key, value)| (format!("{PREFIX}{key}"), value)).collect();
    keys.iter().map(|(key, value)| (key.as_str(), *value)).collect()
}

/// The endpoints of the first Service are also those of the second.
fn share_endpoints(cluster: &mut Cluster) {
    let names: Vec<_> = cluster.services.keys().take(2).cloned().collect();
    let [first, second] = names.as_slice() else { return };
    let slices = cluster.slices(first).to_vec();
    let own = |mut slice: uturn_model::EndpointSlice| {
        slice.service = second.clone();
        slice.name = second.clone();
        slice
    };
    cluster.endpoints.insert(second.clone(), slices.into_iter().map(own).collect());
}
