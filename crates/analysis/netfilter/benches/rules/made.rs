//! Rules as kube-proxy writes them, for a cluster of any size.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use uturn_kubeproxy::{Program, compile};
use uturn_model::cluster::Provider;
use uturn_model::network::{Network, NetworkMode, Plugin};
use uturn_model::proxy::{LocalDetector, NodePortAddresses};
use uturn_model::service::{ServiceKind, ServicePort, TargetPort};
use uturn_model::{
    Cluster, Endpoint, EndpointPort, EndpointSlice, Family, Known, Name, NamespacedName, Node,
    Origin, Port, Protocol, ProxyMode, ProxySettings, Service, Version,
};
use uturn_netfilter::{Interface, NodeState, Packet, routes};

const NODE: &str = "n1";

/// Rules for Services of which every tenth has a NodePort.
pub(crate) fn rules(mode: ProxyMode, services: u32, endpoints: u32) -> Program {
    let settings = settings(mode);
    let mut cluster = cluster(settings.clone());
    for number in 0..services {
        add(&mut cluster, number, endpoints);
    }
    compile(&cluster, &Name::new(NODE).unwrap(), &settings, Family::V4).unwrap()
}

/// A long chain that no map shortens: one rule per server, for iptables and for nftables.
pub(crate) fn list(servers: u32) -> (Program, Program) {
    let mut iptables = "*filter\n:FORWARD DROP [0:0]\n".to_owned();
    let mut nft = "table ip plain {\n\tchain forward {\n\
                   \t\ttype filter hook forward priority filter; policy drop;\n"
        .to_owned();
    for number in 0..servers {
        let (ip, port) = (cluster_ip(number), 80 + number % 2);
        iptables
            .push_str(&format!("-A FORWARD -d {ip}/32 -p tcp -m tcp --dport {port} -j ACCEPT\n"));
        nft.push_str(&format!("\t\tip daddr {ip} tcp dport {port} accept\n"));
    }
    iptables.push_str("COMMIT\n");
    nft.push_str("\t}\n}\n");
    (Program { iptables, ..Program::default() }, Program { nft, ..Program::default() })
}

/// A node without any rules yet.
pub(crate) fn state(bound: &[IpAddr]) -> NodeState {
    let interface = |name: &str, ip: [u8; 4], length| Interface {
        name: name.into(),
        addresses: vec![(ip.into(), length)],
        up: true,
    };
    let mut state = NodeState {
        interfaces: vec![
            interface("lo", [127, 0, 0, 1], 8),
            interface("eth0", [10, 0, 0, 11], 24),
            interface("cbr0", [10, 1, 1, 1], 24),
        ],
        routes: routes::parse(
            "routes",
            "default via 10.0.0.1 dev eth0\n10.0.0.0/24 dev eth0 scope link src 10.0.0.11\n\
             10.1.1.0/24 dev cbr0 scope link src 10.1.1.1\n",
        )
        .unwrap(),
        ..NodeState::default()
    };
    if !bound.is_empty() {
        state.interfaces.push(Interface {
            name: "kube-ipvs0".into(),
            addresses: bound.iter().map(|ip| (*ip, 32)).collect(),
            up: false,
        });
        state.sysctls.set("net.ipv4.vs.conntrack", "1");
    }
    state.sysctls.set("net.ipv4.ip_forward", "1");
    state
}

/// The packets to walk, by name.
pub(crate) fn packets(services: u32) -> [(&'static str, Packet); 4] {
    let last = services - 1;
    let to = |ip: IpAddr, port| {
        Packet::tcp(SocketAddr::from(([10, 1, 1, 9], 40_000)), SocketAddr::new(ip, port))
    };
    [
        ("to no Service", to([192, 0, 2, 7].into(), 443)),
        ("to a Service", to(cluster_ip(last), 80)),
        ("a closed port", to(cluster_ip(last), 81)),
        ("to a NodePort", to([10, 0, 0, 11].into(), 30_000 + (last / 10) as u16)),
    ]
}

fn cluster_ip(number: u32) -> IpAddr {
    Ipv4Addr::from_bits(u32::from_be_bytes([172, 16, 0, 1]) + number).into()
}

fn known<T>(value: T) -> Known<T> {
    Known::supposed(value, "a benchmark")
}

fn settings(mode: ProxyMode) -> ProxySettings {
    ProxySettings {
        detector: known(LocalDetector::ClusterCidr(vec!["10.1.0.0/16".parse().unwrap()])),
        node_port_addresses: NodePortAddresses::Primary,
        ..ProxySettings::new(known(mode), known(Version::new(1, 34, 4)))
    }
}

fn cluster(proxy: ProxySettings) -> Cluster {
    let node = Node {
        internal_ips: vec![[10, 0, 0, 11].into()],
        pod_cidrs: vec!["10.1.1.0/24".parse().unwrap()],
        ..Node::new(Name::new(NODE).unwrap(), Origin::file("made"))
    };
    let network = Network::new(known(Plugin::Kubenet), known(NetworkMode::GlobalRouter));
    Cluster {
        nodes: [(node.name.clone(), node)].into(),
        ..Cluster::new(known(Provider::None), network, proxy)
    }
}

fn add(cluster: &mut Cluster, number: u32, endpoints: u32) {
    let origin = || Origin::file("made");
    let name = NamespacedName::new("shop", &format!("service-{number}")).unwrap();
    let port = |number| Port::new(number).unwrap();
    let node_port = number.is_multiple_of(10).then(|| port(30_000 + (number / 10) as u16));
    let service = Service {
        kind: if node_port.is_some() { ServiceKind::NodePort } else { ServiceKind::ClusterIp },
        cluster_ips: vec![cluster_ip(number)],
        ports: vec![ServicePort {
            node_port,
            ..ServicePort::new(Protocol::Tcp, port(80), TargetPort::Number(port(8080)))
        }],
        ..Service::new(name.clone(), origin())
    };
    let endpoint = |at: u32| {
        let first = u32::from_be_bytes([10, 1, 2, 1]);
        Endpoint::new(Ipv4Addr::from_bits(first + (number * endpoints + at) % 60_000).into())
    };
    let slice = EndpointSlice {
        name: name.clone(),
        service: name.clone(),
        family: Family::V4,
        ports: vec![EndpointPort { name: None, protocol: Protocol::Tcp, port: port(8080) }],
        endpoints: (0..endpoints).map(endpoint).collect(),
        derived: false,
        origin: origin(),
    };
    cluster.endpoints.insert(name.clone(), vec![slice]);
    cluster.services.insert(name, service);
}
