//! A cluster made by hand: N nodes, a client pod on each, one server on the last.

use std::net::IpAddr;

use uturn_clouds::cloud::tke::TKE;
use uturn_clouds::cloud::tke::profile::clb;
use uturn_clouds::cloud::usual_network;
use uturn_model::cluster::Provider;
use uturn_model::lb::{Layer, Listener, ListenerProtocol, Rule, Scope, Target, TargetKind};
use uturn_model::network::{Network, NetworkMode};
use uturn_model::pod::{Container, ContainerPort, Phase, PodSpec};
use uturn_model::proxy::LocalDetector;
use uturn_model::service::{IpMode, LbIngress, ServiceKind, ServicePort, TargetPort};
use uturn_model::{
    Cluster, Endpoint, EndpointPort, EndpointSlice, Family, IpNet, Known, LoadBalancer, Name,
    NamespacedName, Node, ObjectKind, ObjectRef, Origin, Pod, Port, Protocol, ProxyMode,
    ProxySettings, Service, Text, Version,
};

/// The cluster and its load balancers: an Ingress on 10.0.0.100, a Service on 10.0.0.200.
pub(crate) fn cluster(nodes: u8) -> (Cluster, Vec<LoadBalancer>) {
    cluster_of(nodes, Family::V4)
}

/// The same in IPv6: an Ingress on fd00::100, a Service on fd00::200.
pub(crate) fn cluster_v6(nodes: u8) -> (Cluster, Vec<LoadBalancer>) {
    cluster_of(nodes, Family::V6)
}

fn cluster_of(nodes: u8, family: Family) -> (Cluster, Vec<LoadBalancer>) {
    let of = |v4: String, v6: String| if family == Family::V4 { v4 } else { v6 };
    let node_ip = |i: u8| of(format!("10.0.0.{}", 10 + i), format!("fd00::{}", 10 + i));
    let pod_ip = |i: u8, n: u8| of(format!("10.1.{i}.{n}"), format!("fd01:{i}::{n}"));
    let mut cluster = empty();
    for i in 1..=nodes {
        let mut node = Node::new(name(&format!("n{i}")), here());
        node.internal_ips = vec![ip(&node_ip(i))];
        node.pod_cidrs = vec![net(&of(format!("10.1.{i}.0/24"), format!("fd01:{i}::/64")))];
        cluster.nodes.insert(node.name.clone(), node);
        add_pod(&mut cluster, &format!("web-{i}"), i, &pod_ip(i, 10), 8000, false);
        add_pod(&mut cluster, &format!("host-{i}"), i, &node_ip(i), 9000, true);
    }
    add_pod(&mut cluster, "front", nodes, &pod_ip(nodes, 20), 8080, false);
    let server = cluster.pods[&shop("front")].clone();
    let net = |n: u8| of(format!("172.16.0.{n}"), format!("fd02::{n}"));
    let vip = |n: u8| of(format!("10.0.0.{n}"), format!("fd00::{n}"));
    for (service, cluster_ip, node_port, vip) in
        [("front", net(10), 30080, None), ("api", net(20), 30090, Some(vip(200)))]
    {
        add_service(&mut cluster, service, &cluster_ip, node_port, vip.as_deref(), &server);
    }
    let load_balancers = vec![
        balancer("lb-front", &vip(100), Layer::L7, "front", 30080, &cluster),
        balancer("lb-api", &vip(200), Layer::L4, "api", 30090, &cluster),
    ];
    (cluster, load_balancers)
}

fn empty() -> Cluster {
    let known = |ranges: &[&str]| Known::stated(ranges.iter().map(|r| net(r)).collect(), here());
    let mut proxy = ProxySettings::new(
        Known::stated(ProxyMode::Iptables, here()),
        Known::stated(Version::new(1, 34, 4), here()),
    );
    proxy.detector = Known::stated(
        LocalDetector::ClusterCidr(vec![net("10.1.0.0/16"), net("fd01::/16")]),
        here(),
    );
    let network = Network {
        pod_cidrs: known(&["10.1.0.0/16", "fd01::/16"]),
        service_cidrs: known(&["172.16.0.0/16", "fd02::/64"]),
        vpc_cidrs: known(&["10.0.0.0/16", "fd00::/64"]),
        ..Network::new(
            Known::stated(usual_network(NetworkMode::GlobalRouter), here()),
            Known::stated(NetworkMode::GlobalRouter, here()),
        )
    };
    Cluster::new(Known::stated(Provider::Cloud(TKE), here()), network, proxy)
}

fn add_pod(cluster: &mut Cluster, pod: &str, node: u8, address: &str, port: u16, host: bool) {
    let port = ContainerPort {
        name: None,
        port: Port::new(port).unwrap(),
        protocol: Protocol::Tcp,
        host_port: None,
        host_ip: None,
    };
    let container = Container {
        name: "main".into(),
        image: "x".into(),
        arguments: Vec::new(),
        environment: Default::default(),
        ports: vec![port],
        probed: Vec::new(),
        readiness: None,
        configured: Vec::new(),
        reads: Vec::new(),
        called: Vec::new(),
    };
    let spec = PodSpec { host_network: host, containers: vec![container], ..PodSpec::default() };
    let pod = Pod {
        name: shop(pod),
        spec: spec.into(),
        node: Some(name(&format!("n{node}"))),
        ips: vec![ip(address)],
        phase: Phase::Running,
        ready: true,
        deciding_gates: Vec::new(),
        terminating: false,
        owner: None,
        supposed: false,
        origin: here(),
    };
    cluster.pods.insert(pod.name.clone(), pod);
}

fn add_service(
    cluster: &mut Cluster,
    service: &str,
    cluster_ip: &str,
    node_port: u16,
    vip: Option<&str>,
    server: &Pod,
) {
    let ingress = vip.map(|vip| LbIngress { ip: Some(ip(vip)), hostname: None, mode: IpMode::Vip });
    let made = Service {
        kind: if vip.is_some() { ServiceKind::LoadBalancer } else { ServiceKind::NodePort },
        cluster_ips: vec![ip(cluster_ip)],
        ports: vec![ServicePort {
            node_port: Port::new(node_port),
            ..ServicePort::new(
                Protocol::Tcp,
                Port::new(80).unwrap(),
                TargetPort::Number(Port::new(8080).unwrap()),
            )
        }],
        families: vec![Family::of(server.ips[0])],
        load_balancer: ingress.into_iter().collect(),
        ..Service::new(shop(service), here())
    };
    let slice = EndpointSlice {
        name: shop(service),
        service: shop(service),
        family: Family::of(server.ips[0]),
        ports: vec![EndpointPort {
            name: None,
            protocol: Protocol::Tcp,
            port: Port::new(8080).unwrap(),
        }],
        endpoints: vec![Endpoint {
            node: server.node.clone(),
            pod: Some(server.name.clone()),
            ..Endpoint::new(server.ips[0])
        }],
        derived: false,
        origin: here(),
    };
    cluster.endpoints.insert(made.name.clone(), vec![slice]);
    cluster.services.insert(made.name.clone(), made);
}

fn balancer(
    lb: &str,
    vip: &str,
    layer: Layer,
    service: &str,
    node_port: u16,
    cluster: &Cluster,
) -> LoadBalancer {
    let targets = cluster.nodes.values().map(|node| Target {
        address: (node.internal_ips[0], node_port).into(),
        weight: 10,
        kind: TargetKind::NodePort(node.name.clone()),
    });
    LoadBalancer {
        name: Text::from(lb),
        vip: ip(vip),
        scope: Scope::Private,
        zone: None,
        security_groups: Vec::new(),
        listeners: vec![Listener {
            port: Port::new(80).unwrap(),
            protocol: match layer {
                Layer::L4 => ListenerProtocol::Tcp,
                Layer::L7 => ListenerProtocol::Http,
            },
            profile: clb(layer),
            rules: vec![Rule {
                host: None,
                path: None,
                service: shop(service),
                owner: ObjectRef::namespaced(ObjectKind::Service, &shop(service)),
                targets: targets.collect(),
                redirect: None,
            }],
        }],
    }
}

fn here() -> Origin {
    Origin::file("cluster.rs")
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn shop(text: &str) -> NamespacedName {
    NamespacedName::new("shop", text).unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}
