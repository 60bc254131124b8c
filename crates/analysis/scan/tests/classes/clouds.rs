//! Load balancers of several clouds in one cluster: each Service says by its class, its annotations
//! and the form of its status whose it has.

use uturn_clouds::cloud::{Maker, is_left_to_balancer, maker_of};
use uturn_model::cluster::Provider;
use uturn_model::lb::NamedAddress;
use uturn_model::service::{IpMode, LbIngress, ServiceKind};
use uturn_model::{Cluster, Family, IpNet, Known, Service, Text};

use crate::dice::Dice;
use crate::products::judge_all;

/// A cloud's load balancers.
struct Row {
    class: Option<&'static str>,
    /// Annotations, each with the values that it may have; nothing where it is left out.
    notes: &'static [(&'static str, &'static [&'static str])],
    /// How names of its load balancers end, where they have some.
    name: Option<&'static str>,
}

const ROWS: &[Row] = &[
    Row {
        class: None,
        notes: &[
            ("service.beta.kubernetes.io/alibaba-cloud-loadbalancer-address-type", &["intranet"]),
            ("service.beta.kubernetes.io/backend-type", &["", "", "eni", "ecs"]),
            ("service.beta.kubernetes.io/alicloud-loadbalancer-proxy-protocol", &["", "", "on"]),
            (
                "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-protocol-port",
                &["", "", "http:80", "https:80,http:443"],
            ),
        ],
        name: Some("example.com"),
    },
    Row {
        class: Some("alibabacloud.com/nlb"),
        notes: &[
            ("service.beta.kubernetes.io/backend-type", &["", "eni"]),
            (
                "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-preserve-client-ip",
                &["", "on", "off"],
            ),
            (
                "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-cross-zone-enabled",
                &["", "off"],
            ),
        ],
        name: Some("nlb.aliyuncs.com"),
    },
    Row {
        class: None,
        notes: &[
            ("kubernetes.io/elb.id", &["1"]),
            ("kubernetes.io/elb.class", &["union", "shared", "performance", "dedicated"]),
            ("kubernetes.io/elb.pass-through", &["", "true", "onlyLocal", "false"]),
            ("kubernetes.io/elb.enable-transparent-client-ip", &["", "", "true"]),
            ("kubernetes.io/elb.protocol-port", &["", "", "https:80"]),
        ],
        name: None,
    },
    Row {
        class: None,
        notes: &[
            ("oci.oraclecloud.com/load-balancer-type", &["lb", "nlb"]),
            ("oci-network-load-balancer.oraclecloud.com/is-preserve-source", &["", "", "false"]),
            ("oci-network-load-balancer.oraclecloud.com/is-ppv2-enabled", &["", "", "true"]),
            (
                "service.beta.kubernetes.io/oci-load-balancer-connection-proxy-protocol-version",
                &["", "", "2"],
            ),
            ("service.beta.kubernetes.io/oci-load-balancer-ssl-ports", &["", "", "80,443"]),
        ],
        name: None,
    },
    Row {
        class: None,
        notes: &[
            ("service.kubernetes.io/ibm-load-balancer-cloud-provider-ip-type", &["private"]),
            (
                "service.kubernetes.io/ibm-load-balancer-cloud-provider-enable-features",
                &["", "", "nlb", "ipvs", "proxy-protocol"],
            ),
        ],
        name: Some("lb.appdomain.cloud"),
    },
];

/// Makes the Services of type LoadBalancer ask for load balancers of clouds.
pub(crate) fn ask(cluster: &mut Cluster, dice: &mut Dice) {
    judge_all(cluster);
    // No product serves Ingresses.
    cluster.ingresses.clear();
    for node in cluster.nodes.values_mut() {
        node.ready = !dice.once_in(12);
    }
    if dice.once_in(4) {
        let around = ["10.0.0.0/8", "fd00::/8"].map(|net| net.parse::<IpNet>().expect("a range"));
        cluster.network.vpc_cidrs.value.extend(around);
    }
    for (number, service) in (0u8..).zip(cluster.services.values_mut()) {
        if service.kind != ServiceKind::LoadBalancer || service.load_balancer.is_empty() {
            continue;
        }
        let row = &ROWS[dice.below(ROWS.len())];
        let notes = row.notes.iter().map(|(key, values)| (*key, dice.one_of(values)));
        let notes: Vec<(&str, &str)> = notes.filter(|(_, value)| !value.is_empty()).collect();
        service.annotations = notes.into_iter().collect();
        service.load_balancer_class = row.class.map(Text::from);
        let name = row.name.filter(|_| !dice.once_in(3));
        if let Some(ends) = name {
            let host: Text = format!("s{number}.{ends}").into();
            let has_address = dice.once_in(3);
            let own = service.load_balancer[0].clone();
            let ip = own.ip.filter(|_| has_address);
            service.load_balancer = vec![LbIngress { ip, hostname: Some(host.clone()), ..own }];
            if !has_address {
                let addresses = addresses(service, &cluster.provider, number);
                if dice.once_in(2) {
                    let stated = addresses.iter().map(|at| (host.clone(), at.address));
                    cluster.dns.outside.extend(stated);
                }
                cluster.dns.balancers.insert(host, addresses);
            }
        }
        if is_left_to_balancer(service, &cluster.provider) {
            for entry in &mut service.load_balancer {
                if entry.mode == IpMode::Vip {
                    entry.mode = IpMode::LeftToBalancer;
                }
            }
        }
    }
}

/// The addresses behind a name: one, or one for each zone.
fn addresses(service: &Service, provider: &Known<Provider>, number: u8) -> Vec<NamedAddress> {
    let is_zoned = match maker_of(service, provider) {
        Maker::Product(product, _) => product.serves_by_zone(service),
        _ => false,
    };
    let zones: &[Option<&str>] = if is_zoned { &[Some("a"), Some("b")] } else { &[None] };
    let is_v6 = service.cluster_ips.first().is_some_and(|ip| Family::of(*ip) == Family::V6);
    let address = |(at, zone): (u16, &Option<&str>)| {
        let host = 180 + 5 * u16::from(number) + at;
        let text = if is_v6 { format!("fd00::{host}") } else { format!("10.0.0.{host}") };
        NamedAddress { address: text.parse().expect("an address"), zone: zone.map(Text::from) }
    };
    (1..).zip(zones).map(address).collect()
}
