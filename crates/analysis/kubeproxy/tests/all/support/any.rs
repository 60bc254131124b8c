//! Small clusters of all sorts.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use uturn_model::proxy::{LocalDetector, NodePortAddresses};
use uturn_model::service::{IpMode, Policy, ServiceKind};
use uturn_model::{Cluster, Endpoint, NamespacedName, Port, Protocol, Service};

use super::dual_stack::dual_stack;
use super::{add, endpoint, ingress, ip, known, name, port, service, service_port};

pub(crate) fn any_cluster() -> impl Strategy<Value = Cluster> {
    let services = vec((any_service(), vec(any_endpoint(), 0..6)), 0..5);
    let settings = (any_detector(), any_node_port_addresses());
    (services, settings, any::<[bool; 3]>()).prop_map(|(services, settings, flags)| {
        let mut cluster = super::cluster(2);
        for (number, (mut service, mut endpoints)) in (1..).zip(services) {
            service.name = NamespacedName::new("shop", &format!("s{number}")).unwrap();
            service.cluster_ips = vec![ip(&format!("172.16.1.{number}"))];
            for (number, endpoint) in (1..).zip(&mut endpoints) {
                endpoint.address = ip(&format!("10.1.0.{number}"));
            }
            add(&mut cluster, service, endpoints);
        }
        cluster.proxy.detector = known(settings.0);
        cluster.proxy.node_port_addresses = settings.1;
        cluster.proxy.masquerade_all = flags[0];
        cluster.proxy.localhost_node_ports = flags[1];
        if flags[2] { dual_stack(cluster) } else { cluster }
    })
}

fn any_node_port_addresses() -> impl Strategy<Value = NodePortAddresses> {
    let ranges = ["10.0.0.0/24", "192.168.0.0/16", "127.0.0.0/8", "0.0.0.0/0"];
    let ranges = vec(prop::sample::select(ranges.to_vec()), 1..3).prop_map(|ranges| {
        NodePortAddresses::Ranges(ranges.iter().map(|net| net.parse().unwrap()).collect())
    });
    prop_oneof![Just(NodePortAddresses::All), Just(NodePortAddresses::Primary), ranges]
}

fn any_detector() -> impl Strategy<Value = LocalDetector> {
    prop_oneof![
        Just(LocalDetector::None),
        Just(LocalDetector::NodeCidr),
        Just(LocalDetector::ClusterCidr(vec!["10.1.0.0/16".parse().unwrap()])),
        Just(LocalDetector::BridgeInterface("cbr0".into())),
        Just(LocalDetector::InterfaceNamePrefix("eni".into())),
    ]
}

fn any_service() -> impl Strategy<Value = Service> {
    let policy = || prop_oneof![Just(Policy::Cluster), Just(Policy::Local)];
    let kind = prop_oneof![
        Just(ServiceKind::ClusterIp),
        Just(ServiceKind::NodePort),
        Just(ServiceKind::LoadBalancer)
    ];
    let protocol = prop_oneof![Just(Protocol::Tcp), Just(Protocol::Udp), Just(Protocol::Sctp)];
    let mode = prop_oneof![Just(IpMode::Vip), Just(IpMode::Proxy)];
    let ranges = ["198.51.100.0/24", "10.0.0.0/16", "0.0.0.0/0"];
    (
        kind,
        (policy(), policy()),
        vec((protocol, option::of(30000..32768u16)), 1..3),
        vec(mode, 0..3),
        vec(prop::sample::select(ranges.to_vec()), 0..3),
        option::of(1..100_000u32),
        any::<bool>(),
    )
        .prop_map(|(kind, policies, ports, modes, ranges, affinity_seconds, external)| {
            let plain = service("s", "172.16.1.1");
            let ports = (1..).zip(ports).map(|(number, (protocol, node_port))| {
                let mut port = service_port(Some(&format!("p{number}")), protocol, number);
                port.node_port = node_port.and_then(Port::new);
                port
            });
            Service {
                ports: ports.collect(),
                external_policy: policies.0,
                internal_policy: policies.1,
                source_ranges: ranges.iter().map(|net| net.parse().unwrap()).collect(),
                affinity_seconds,
                external_ips: if external { vec![ip("192.0.2.7")] } else { vec![] },
                load_balancer: (1..)
                    .zip(modes)
                    .map(|(number, mode)| ingress(&format!("203.0.113.{number}"), mode))
                    .collect(),
                health_check_node_port: Some(port(32000)),
                kind,
                ..plain
            }
        })
}

fn any_endpoint() -> impl Strategy<Value = Endpoint> {
    let hints = || prop::sample::subsequence(vec![1, 2], 0..=2);
    (any::<[bool; 3]>(), 1..3u8, hints(), hints()).prop_map(|(flags, node, zones, nodes)| {
        Endpoint {
            ready: flags[0],
            serving: flags[0] || flags[1],
            terminating: !flags[0] && flags[2],
            zone_hints: zones.iter().map(|zone| format!("z{zone}").into()).collect(),
            node_hints: nodes.iter().map(|node| name(&format!("n{node}"))).collect(),
            ..endpoint("10.1.0.1", &format!("n{node}"))
        }
    })
}
