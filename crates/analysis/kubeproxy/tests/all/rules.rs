//! One kind of Service after the other, and the rules it leads to.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use crate::support::dual_stack::dual_stack;
use crate::support::every_kind::{
    everywhere, external_local, internal_local, load_balancer, node_port,
};
use crate::support::*;
use uturn_kubeproxy::compile;
use uturn_model::proxy::{LocalDetector, NodePortAddresses};
use uturn_model::service::{IpMode, ServiceKind};
use uturn_model::{Cluster, Endpoint, Family, Labels, Protocol, Service};

/// What a Service leads to on a node: `SVC`, `SVL` and the endpoints each leads to.
fn endpoints_of(cluster: &Cluster, node: &str, kind: &str) -> Vec<String> {
    let saved = Saved::parse(&program(cluster, node).iptables);
    let chains = saved.0["nat"].iter().filter(|(chain, _)| chain.starts_with(kind));
    let rules = chains.flat_map(|(_, rules)| rules);
    let ends = rules.filter_map(|rule| rule.split_once(" -> ")?.1.split_once(":8080\""));
    ends.map(|(address, _)| address.rsplit('.').take(2).collect::<Vec<_>>().join("@")).collect()
}

fn leaving(mut endpoints: Vec<Endpoint>) -> Vec<Endpoint> {
    for endpoint in &mut endpoints {
        (endpoint.ready, endpoint.terminating) = (false, true);
    }
    endpoints
}

#[test]
fn leaving_endpoints_serve_where_nothing_is_ready() {
    let all = cluster_with(service("s", "172.16.1.1"), leaving(everywhere()));
    assert_eq!(endpoints_of(&all, "n1", "KUBE-SVC"), ["10@1", "11@1", "10@2", "10@3"]);
    let mut some = leaving(everywhere());
    some[2].ready = true;
    let some = cluster_with(external_local(node_port("s", "172.16.1.1", 30000)), some);
    assert_eq!(endpoints_of(&some, "n1", "KUBE-SVC"), ["10@2"]);
    assert_eq!(endpoints_of(&some, "n1", "KUBE-SVL"), ["10@1", "11@1"]);
    assert_eq!(endpoints_of(&some, "n2", "KUBE-SVL"), ["10@2"]);
}

#[test]
fn hints_of_zones_count_if_all_have_some_and_one_names_ours() {
    let hinted = |zones: [&str; 4]| {
        let mut all = everywhere();
        for (endpoint, zone) in all.iter_mut().zip(zones) {
            endpoint.zone_hints.extend((!zone.is_empty()).then(|| zone.into()));
        }
        cluster_with(service("s", "172.16.1.1"), all)
    };
    let all = hinted(["z1", "z2", "z2", "z2"]);
    assert_eq!(endpoints_of(&all, "n1", "KUBE-SVC"), ["10@1"]);
    assert_eq!(endpoints_of(&all, "n2", "KUBE-SVC"), ["11@1", "10@2", "10@3"]);
    assert_eq!(endpoints_of(&all, "n3", "KUBE-SVC").len(), 4);
    let not_all = hinted(["z1", "z2", "z2", ""]);
    assert_eq!(endpoints_of(&not_all, "n1", "KUBE-SVC").len(), 4);
}

#[test]
fn hints_of_nodes_go_before_those_of_zones() {
    let mut all = everywhere();
    for (endpoint, node) in all.iter_mut().zip(["n1", "n2", "n2", "n2"]) {
        endpoint.node_hints.push(name(node));
        endpoint.zone_hints.extend(["z1", "z3"].map(Into::into));
    }
    let all = cluster_with(service("s", "172.16.1.1"), all);
    assert_eq!(endpoints_of(&all, "n1", "KUBE-SVC"), ["10@1"]);
    assert_eq!(endpoints_of(&all, "n3", "KUBE-SVC").len(), 4);
}

#[test]
fn what_others_serve_is_passed_over() {
    let plain = || service("s", "172.16.1.1");
    let labelled = |key: &str| Labels::from_iter([(key, "")]);
    let empty = program(&cluster(3), "n1");
    for passed_over in [
        Service { headless: true, cluster_ips: vec![], ..plain() },
        Service { cluster_ips: vec![], ..plain() },
        Service { cluster_ips: vec![ip("fd00::1")], ..plain() },
        Service { kind: ServiceKind::ExternalName("a.b".into()), ..plain() },
        Service { labels: labelled("service.kubernetes.io/service-proxy-name"), ..plain() },
        Service { labels: labelled("service.kubernetes.io/headless"), ..plain() },
    ] {
        assert_eq!(program(&cluster_with(passed_over.clone(), everywhere()), "n1"), empty);
    }
    assert_ne!(program(&cluster_with(plain(), everywhere()), "n1"), empty);
}

#[test]
fn nothing_to_serve_is_refused_in_both_families() {
    let all =
        dual_stack(cluster_with(load_balancer("s", "172.16.1.1", 30000, "203.0.113.1"), vec![]));
    for (family, reason) in
        [(Family::V4, "icmp-port-unreachable"), (Family::V6, "icmp6-port-unreachable")]
    {
        let program = compile(&all, &name("n1"), &all.proxy, family).unwrap();
        let saved = Saved::parse(&program.iptables);
        let rejects = |chain| saved.chain("filter", chain).iter().filter(|r| r.ends_with(reason));
        assert_eq!(rejects("KUBE-SERVICES").count(), 1);
        assert_eq!(rejects("KUBE-EXTERNAL-SERVICES").count(), 2);
        assert_eq!(saved.chain("nat", "KUBE-NODEPORTS").len(), 0);
        assert!(!program.iptables.contains("KUBE-SVC-"));
    }
}

#[test]
fn ranges_let_the_node_in_only_if_it_is_within() {
    let vip = "-s 203.0.113.1/32";
    let ranged = |ranges: &[&str]| {
        let source_ranges = ranges.iter().map(|net| net.parse().unwrap()).collect();
        let service = load_balancer("s", "172.16.1.1", 30000, "203.0.113.1");
        program(&cluster_with(Service { source_ranges, ..service }, everywhere()), "n1").iptables
    };
    let outside = ranged(&["198.51.100.7/24"]);
    assert!(outside.contains("-s 198.51.100.0/24 ") && !outside.contains(vip));
    assert!(ranged(&["198.51.100.0/24", "10.0.0.11/32"]).contains(vip));
    assert_eq!(ranged(&["198.51.100.0/24", "0.0.0.0/0"]), ranged(&[]));
    assert_eq!(ranged(&["fd00::/8"]), ranged(&[]));
}

#[test]
fn probes_are_let_in_for_load_balancers_with_policy_local() {
    let probed = |service: Service| {
        let service = Service { health_check_node_port: Some(port(32000)), ..service };
        let saved = Saved::parse(&program(&cluster_with(service, everywhere()), "n3").iptables);
        saved.chain("filter", "KUBE-NODEPORTS").len()
    };
    let balanced = || load_balancer("s", "172.16.1.1", 30000, "203.0.113.1");
    assert_eq!(probed(external_local(balanced())), 1);
    assert_eq!(probed(balanced()), 0);
    assert_eq!(probed(external_local(node_port("s", "172.16.1.1", 30000))), 0);
}

#[test]
fn a_cluster_ip_service_has_no_external_policy() {
    let mut left_over = external_local(service("s", "172.16.1.1"));
    left_over.load_balancer = vec![ingress("203.0.113.1", IpMode::Vip)];
    let rules = program(&cluster_with(left_over, everywhere()), "n1").iptables;
    assert!(rules.contains("masquerade traffic for shop/s external destinations"));
}

#[test]
fn remarks_go_when_endpoints_are_many() {
    let all = |count: u16| {
        let address = |number: u16| ip(&format!("10.1.{}.{}", number / 250, number % 250));
        let ends = (0..count).map(|number| Endpoint {
            address: address(number),
            ready: number < 2,
            serving: number < 2,
            ..endpoint("10.1.0.0", "n1")
        });
        program(&cluster_with(service("s", "172.16.1.1"), ends.collect()), "n1").iptables
    };
    assert!(all(1000).contains("--comment \"shop/s -> 10.1.0.0:8080\""));
    assert!(!all(1001).contains(" -> ") && all(1001).contains("--comment \"shop/s cluster IP\""));
}

#[test]
fn an_address_in_two_slices_is_one_endpoint() {
    let mut all = cluster_with(internal_local(service("s", "172.16.1.1")), everywhere());
    let slices = all.endpoints.values_mut().next().unwrap();
    let mut more = slices[0].clone();
    more.name.name = name("s-2");
    slices[0].endpoints.iter_mut().for_each(|endpoint| endpoint.node = None);
    slices.push(more);
    assert_eq!(endpoints_of(&all, "n1", "KUBE-SVL"), ["10@1", "11@1"]);
}

#[test]
fn a_port_takes_endpoints_of_its_name_and_protocol() {
    let mut two = service("s", "172.16.1.1");
    two.ports = vec![
        service_port(Some("dns"), Protocol::Udp, 53),
        service_port(Some("dns-tcp"), Protocol::Tcp, 53),
    ];
    let mut all = cluster_with(two, vec![endpoint("10.1.1.10", "n1")]);
    all.endpoints.values_mut().next().unwrap()[0].ports.remove(1);
    let program = program(&all, "n1").iptables;
    assert!(program.contains("-p udp -m comment --comment \"shop/s:dns\" -m udp -j DNAT"));
    assert!(program.contains("shop/s:dns-tcp has no endpoints"));
}

#[test]
fn localhost_takes_node_ports_only_where_it_may() {
    let at = |addresses: NodePortAddresses, allowed: bool| {
        let mut all = cluster_with(node_port("s", "172.16.1.1", 30000), everywhere());
        all.proxy.node_port_addresses = addresses;
        all.proxy.localhost_node_ports = allowed;
        let program = program(&all, "n1");
        let last = Saved::parse(&program.iptables).chain("nat", "KUBE-SERVICES").to_vec();
        let last = last.into_iter().filter(|rule| rule.ends_with("-j KUBE-NODEPORTS"));
        let to = last.map(|rule| rule.split_once(" -m comment").unwrap().0[16..].to_owned());
        let guarded = program.iptables.contains("block incoming localnet connections");
        let route = program.sysctls.iter().any(|(name, _)| name.ends_with("route_localnet"));
        assert_eq!(guarded, route);
        (to.collect::<Vec<_>>(), guarded)
    };
    let ranges = |all: &[&str]| {
        NodePortAddresses::Ranges(all.iter().map(|net| net.parse().unwrap()).collect())
    };
    let answers =
        |to: &[&str], guarded| (to.iter().map(|address| address.to_string()).collect(), guarded);
    assert_eq!(at(NodePortAddresses::All, true), answers(&[""], true));
    assert_eq!(at(NodePortAddresses::All, false), answers(&[" ! -d 127.0.0.0/8"], false));
    assert_eq!(at(NodePortAddresses::Primary, true), answers(&[" -d 10.0.0.11/32"], false));
    assert_eq!(at(ranges(&["127.0.0.0/8"]), true), answers(&[" -d 127.0.0.1/32"], true));
    assert_eq!(at(ranges(&["127.0.0.1/32"]), true), answers(&[" -d 127.0.0.1/32"], true));
    assert_eq!(at(ranges(&["127.0.0.0/8"]), false), answers(&[], false));
    assert_eq!(at(ranges(&["192.168.0.0/16"]), true), answers(&[], false));
    assert_eq!(at(ranges(&["fd00::/8"]), true), answers(&[""], true));
}

#[test]
fn text_of_an_object_cannot_leave_its_remark() {
    let mut odd = service("s", "172.16.1.1");
    odd.ports[0].name = Some("a\" -j ACCEPT\nCOMMIT\\".into());
    let program = program(&cluster_with(odd, everywhere()), "n1").iptables;
    assert!(program.contains("\"shop/s:a\\\" -j ACCEPT?COMMIT\\\\ cluster IP\""));
    assert_eq!(program.lines().filter(|line| line.starts_with("COMMIT")).count(), 3);
}

#[test]
fn errors_name_what_cannot_be_done() {
    let mut all = cluster(1);
    let message = |all: &Cluster, node: &str| {
        compile(all, &name(node), &all.proxy, Family::V4).unwrap_err().to_string()
    };
    assert_eq!(message(&all, "n9"), "the cluster has no node n9");
    all.proxy.detector = known(LocalDetector::BridgeInterface("cbr0 -j ACCEPT".into()));
    assert!(message(&all, "n1").contains("names the interface \"cbr0 -j ACCEPT\""));
    let prefix = "a-prefix-of-15-".into();
    all.proxy.detector = known(LocalDetector::InterfaceNamePrefix(prefix));
    assert!(message(&all, "n1").contains("expected 1 to 15 letters (a prefix: 14)"));
    all.proxy.detector = known(LocalDetector::None);
    all.proxy.masquerade_bit = 32;
    assert!(message(&all, "n1").contains("masqueradeBit is 32: expected a number from 0 to 31"));
}
