//! The cluster of `golden/objects.yaml`: Services of every kind, three nodes.

use uturn_model::service::{IpMode, Policy, ServiceKind, ServicePort};
use uturn_model::*;

use super::{add, endpoint, ingress, ip, port, service, service_port};

/// Its endpoints, unless a Service says otherwise: two on n1, one on n2, one on n3.
pub(crate) fn everywhere() -> Vec<Endpoint> {
    [("10.1.1.10", "n1"), ("10.1.1.11", "n1"), ("10.1.2.10", "n2"), ("10.1.3.10", "n3")]
        .map(|(address, node)| endpoint(address, node))
        .into()
}

pub(crate) fn cluster() -> Cluster {
    let mut cluster = super::cluster(3);
    let mut put = |service: Service, endpoints| add(&mut cluster, service, endpoints);
    let only = |node: usize| vec![everywhere()[node].clone()];

    put(service("clusterip", "172.16.1.1"), everywhere());
    let mut multi = service("multi", "172.16.1.2");
    multi.ports = vec![
        service_port(Some("http"), Protocol::Tcp, 80),
        service_port(Some("dns"), Protocol::Udp, 53),
    ];
    put(multi, everywhere());
    let headless = Service { headless: true, cluster_ips: vec![], ..service("headless", "::") };
    put(headless, everywhere());
    put(service("noep", "172.16.1.3"), vec![]);
    put(node_port("np", "172.16.1.4", 30080), everywhere());
    put(external_local(node_port("np-local", "172.16.1.5", 30081)), only(2));

    put(load_balancer("lb-cluster", "172.16.1.6", 30082, "203.0.113.10"), everywhere());
    let local = external_local(load_balancer("lb-local", "172.16.1.7", 30083, "203.0.113.11"));
    put(Service { health_check_node_port: Some(port(30999)), ..local }, everywhere());
    let remote = load_balancer("lb-local-remote", "172.16.1.8", 30084, "203.0.113.12");
    let remote = external_local(remote);
    put(Service { health_check_node_port: Some(port(30998)), ..remote }, only(2));
    let mut by_proxy = load_balancer("lb-proxy", "172.16.1.9", 30085, "203.0.113.13");
    by_proxy.load_balancer[0].mode = IpMode::Proxy;
    put(by_proxy, everywhere());
    let ranges = load_balancer("lb-ranges", "172.16.1.10", 30086, "203.0.113.14");
    let source_ranges = ["198.51.100.0/24", "10.0.0.0/16"].map(|net| net.parse().unwrap()).into();
    put(Service { source_ranges, ..ranges }, everywhere());
    put(load_balancer("lb-noep", "172.16.1.11", 30087, "203.0.113.15"), vec![]);

    let mut extip = service("extip", "172.16.1.12");
    extip.external_ips = vec![ip("192.0.2.7")];
    put(extip, everywhere());
    let mut extip = external_local(node_port("extip-local", "172.16.1.13", 30088));
    extip.external_ips = vec![ip("192.0.2.8")];
    put(extip, everywhere());

    let affinity = node_port("affinity", "172.16.1.14", 30089);
    put(Service { affinity_seconds: Some(600), ..affinity }, everywhere());
    put(internal_local(service("int-local", "172.16.1.15")), everywhere());
    put(internal_local(service("int-local-none", "172.16.1.16")), only(2));

    let term = external_local(load_balancer("term", "172.16.1.17", 30090, "203.0.113.16"));
    let mut ends = everywhere();
    ends.pop();
    for (endpoint, serving) in ends.iter_mut().zip([true, false]) {
        (endpoint.ready, endpoint.serving, endpoint.terminating) = (false, serving, true);
    }
    put(Service { health_check_node_port: Some(port(30997)), ..term }, ends);
    let mut ends = everywhere();
    (ends[0].ready, ends[0].serving) = (false, false);
    put(service("unready", "172.16.1.18"), ends);
    let dist = service("dist", "172.16.1.19");
    put(Service { traffic_distribution: Some("PreferClose".into()), ..dist }, everywhere());

    let mut udp = node_port("udp-np", "172.16.1.20", 30091);
    (udp.ports[0].protocol, udp.ports[0].port) = (Protocol::Udp, port(53));
    put(udp, everywhere());
    let mut two = load_balancer("lb-two-ports", "172.16.1.21", 30092, "203.0.113.17");
    two.ports[0].name = Some("http".into());
    let https = service_port(Some("https"), Protocol::Tcp, 443);
    two.ports.push(ServicePort { node_port: Some(port(30093)), ..https });
    put(two, everywhere());
    let mut bare = load_balancer("lb-nonp", "172.16.1.22", 1, "203.0.113.18");
    (bare.ports[0].node_port, bare.allocates_node_ports) = (None, false);
    put(bare, everywhere());
    let both = external_local(node_port("etp-local-itp-local", "172.16.1.23", 30094));
    put(internal_local(both), only(3));

    // Where the API server was, which every cluster has.
    let mut kubernetes = service("kubernetes", "172.16.0.1");
    kubernetes.name = NamespacedName::new("default", "kubernetes").unwrap();
    kubernetes.ports = vec![service_port(Some("https"), Protocol::Tcp, 443)];
    let away = Endpoint { node: None, ..endpoint("10.99.0.1", "n1") };
    put(kubernetes, vec![away]);

    // Where pods listen.
    for (service, number) in [("multi", 1), ("udp-np", 0)] {
        slice(&mut cluster, service).ports[number].port = port(5353);
    }
    slice(&mut cluster, "lb-two-ports").ports[1].port = port(8443);
    let kubernetes = NamespacedName::new("default", "kubernetes").unwrap();
    cluster.endpoints.get_mut(&kubernetes).unwrap()[0].ports[0].port = port(16443);
    cluster
}

fn slice<'c>(cluster: &'c mut Cluster, service: &str) -> &'c mut EndpointSlice {
    let name = NamespacedName::new("shop", service).unwrap();
    &mut cluster.endpoints.get_mut(&name).unwrap()[0]
}

pub(crate) fn node_port(text: &str, cluster_ip: &str, number: u16) -> Service {
    let mut service = service(text, cluster_ip);
    service.kind = ServiceKind::NodePort;
    service.ports[0].node_port = Some(port(number));
    service
}

pub(crate) fn load_balancer(text: &str, cluster_ip: &str, number: u16, vip: &str) -> Service {
    Service {
        kind: ServiceKind::LoadBalancer,
        load_balancer: vec![ingress(vip, IpMode::Vip)],
        ..node_port(text, cluster_ip, number)
    }
}

pub(crate) fn external_local(service: Service) -> Service {
    Service { external_policy: Policy::Local, ..service }
}

pub(crate) fn internal_local(service: Service) -> Service {
    Service { internal_policy: Policy::Local, ..service }
}
