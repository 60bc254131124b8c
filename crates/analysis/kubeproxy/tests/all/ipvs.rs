//! IPVS mode: which virtual servers there are, what is bound, and which clients may connect.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::support::any::any_cluster;
use crate::support::dual_stack::dual_stack;
use crate::support::every_kind::{
    everywhere, external_local, internal_local, load_balancer, node_port,
};
use crate::support::*;
use proptest::prelude::*;
use uturn_clouds::cloud::{self, tke};
use uturn_kubeproxy::{Options, Program, UnboundVip, Unsupported, compile, compile_with};
use uturn_model::proxy::{NodePortAddresses, Variant};
use uturn_model::{Cluster, Endpoint, Family, Protocol, ProxyMode, Service, Version};

const VIP: &str = "203.0.113.10";

#[test]
fn affinity_and_schedulers() {
    let plain = service("s", "172.16.1.1");
    let servers = |scheduler: &str, minor, affinity_seconds| {
        let mut cluster = cluster_with(Service { affinity_seconds, ..plain.clone() }, vec![]);
        cluster.proxy.ipvs_scheduler = scheduler.into();
        cluster.proxy.version = known(Version::new(1, minor, 0));
        program(&cluster, "n1").ipvs
    };
    assert_eq!(servers("", 34, None), "-A -t 172.16.1.1:80 -s rr\n");
    assert_eq!(servers("sh", 34, Some(600)), "-A -t 172.16.1.1:80 -s sh -p 600\n");
    assert_eq!(servers("mh", 34, None), "-A -t 172.16.1.1:80 -s mh -b mh-port\n");
    assert_eq!(servers("mh", 27, Some(5)), "-A -t 172.16.1.1:80 -s mh -p 5 -b mh-port\n");
    assert_eq!(servers("mh", 26, None), "-A -t 172.16.1.1:80 -s mh\n");
}

#[test]
fn endpoints_come_by_number() {
    let endpoints = ["10.1.1.9", "10.1.1.10", "10.1.1.2"].map(|ip| endpoint(ip, "n1"));
    let cluster = cluster_with(service("s", "172.16.1.1"), endpoints.into());
    let ours = servers(&program(&cluster, "n1"));
    let expected = ["10.1.1.2:8080", "10.1.1.9:8080", "10.1.1.10:8080"];
    assert_eq!(ours["-t 172.16.1.1:80"], expected);
}

#[test]
fn six_has_brackets_and_sctp_its_own_option() {
    let mut both = node_port("s", "172.16.1.1", 30000);
    both.ports[0].protocol = Protocol::Sctp;
    let cluster = dual_stack(cluster_with(both, vec![endpoint("10.1.1.10", "n1")]));
    let program = compile(&cluster, &name("n1"), &cluster.proxy, Family::V6).unwrap();
    let (sets, bound) = (&program.ipset, &program.bound);
    let ip = bound[0];
    assert!(program.ipvs.contains(&format!("-A --sctp-service [{ip}]:80 -s rr\n")));
    assert!(sets.contains(&format!("add KUBE-6-CLUSTER-IP {ip},sctp:80\n")), "{sets}");
    assert!(sets.contains("create KUBE-6-NODE-PORT-LOCAL-SCTP-HAS hash:ip,port family inet6 "));
    assert!(sets.contains("add KUBE-6-NODE-PORT-SCTP-HASH fd00::"), "{sets}");
    assert!(program.iptables.contains("-j REJECT --reject-with icmp6-port-unreachable"));
}

#[test]
fn policy_local_falls_back_to_other_nodes() {
    let there = vec![endpoint("10.1.2.10", "n2")];
    let vip = format!("-t {VIP}:80");
    let local = external_local(load_balancer("s", "172.16.1.1", 30000, VIP));
    let mut cluster = cluster_with(local, there.clone());
    assert_eq!(servers(&program(&cluster, "n1"))[&vip], ["10.1.2.10:8080"]);
    cluster.proxy.version = known(Version::new(1, 23, 0));
    assert!(servers(&program(&cluster, "n1"))[&vip].is_empty());
    assert_eq!(servers(&program(&cluster, "n2"))[&vip], ["10.1.2.10:8080"]);
    // Nothing of it is reached from outside, so nothing serves the whole cluster.
    let cluster = cluster_with(internal_local(service("s", "172.16.1.1")), there);
    assert!(servers(&program(&cluster, "n1"))["-t 172.16.1.1:80"].is_empty());
}

#[test]
fn early_releases_send_from_a_local_node_port_to_every_endpoint() {
    let both = vec![endpoint("10.1.1.10", "n1"), endpoint("10.1.2.10", "n2")];
    let local = external_local(node_port("s", "172.16.1.1", 30000));
    let mut cluster = cluster_with(local, both);
    let mut counted = |minor, patch| {
        cluster.proxy.version = known(Version::new(1, minor, patch));
        let all = servers(&program(&cluster, "n1"));
        let own = all.iter().filter(|(at, _)| at.ends_with(":30000"));
        own.map(|(_, endpoints)| endpoints.len()).collect::<BTreeSet<usize>>()
    };
    for (minor, patch) in [(10, 9), (11, 4), (12, 0), (23, 0)] {
        assert_eq!(counted(minor, patch), BTreeSet::from([1]), "1.{minor}.{patch}");
    }
    for patch in [0, 3] {
        assert_eq!(counted(11, patch), BTreeSet::from([2]), "1.11.{patch}");
    }
}

#[test]
fn hairpins_are_known_whatever_the_endpoint_is_up_to() {
    let mut endpoints = everywhere();
    endpoints[1].ready = false;
    let cluster = cluster_with(service("s", "172.16.1.1"), endpoints);
    let hairpins = |node| members(&program(&cluster, node), "KUBE-LOOP-BACK");
    assert_eq!(hairpins("n1"), ["10.1.1.10,tcp:8080,10.1.1.10", "10.1.1.11,tcp:8080,10.1.1.11"]);
    assert_eq!(hairpins("n2"), ["10.1.2.10,tcp:8080,10.1.2.10"]);
}

#[test]
fn source_ranges_with_the_node_and_without() {
    let with = |ranges: &[&str]| {
        let ranges = ranges.iter().map(|range| range.parse().unwrap()).collect();
        let plain = load_balancer("s", "172.16.1.1", 30000, VIP);
        cluster_with(Service { source_ranges: ranges, ..plain }, everywhere())
    };
    let own = "203.0.113.10,tcp:80,203.0.113.10";
    let fence = "-A KUBE-IPVS-OUT-FILTER -s 203.0.113.10/32 -m ipvs --vproto 6 \
                 --vaddr 203.0.113.10 --vport 80 -j DROP";
    let within = program(&with(&["10.0.0.0/16", "198.51.100.7/32"]), "n1");
    assert_eq!(members(&within, "KUBE-LOAD-BALANCER-SOURCE-IP"), [own]);
    assert!(!within.iptables.contains(fence));
    let ranges = ["203.0.113.10,tcp:80,10.0.0.0/16", "203.0.113.10,tcp:80,198.51.100.7"];
    assert_eq!(members(&within, "KUBE-LOAD-BALANCER-SOURCE-CIDR"), ranges);
    let mut cluster = with(&["198.51.100.0/24"]);
    assert!(members(&program(&cluster, "n1"), "KUBE-LOAD-BALANCER-SOURCE-IP").is_empty());
    assert!(program(&cluster, "n1").iptables.contains(fence));
    cluster.proxy.version = known(Version::new(1, 28, 0));
    assert!(!program(&cluster, "n1").iptables.contains("KUBE-IPVS-OUT-FILTER"));
    // The kernel takes no range of all addresses; what is asked finds nothing then.
    cluster = with(&["0.0.0.0/0"]);
    assert!(members(&program(&cluster, "n1"), "KUBE-LOAD-BALANCER-FW").is_empty());
    cluster.proxy.version = known(Version::new(1, 33, 0));
    let old = program(&cluster, "n1");
    assert_eq!(members(&old, "KUBE-LOAD-BALANCER-FW").len(), 1);
    assert!(members(&old, "KUBE-LOAD-BALANCER-SOURCE-CIDR").is_empty());
    assert!(old.iptables.contains("KUBE-LOAD-BALANCER-SOURCE-CIDR dst,dst,src -j RETURN"));
}

#[test]
fn the_nodes_own_address_is_not_bound_again() {
    let own = Service { external_ips: vec![ip("10.0.0.11")], ..service("s", "172.16.1.1") };
    let mut cluster = cluster_with(own, everywhere());
    let cluster_ip = ip("172.16.1.1");
    assert_eq!(program(&cluster, "n1").bound, [cluster_ip]);
    assert_eq!(program(&cluster, "n2").bound, [ip("10.0.0.11"), cluster_ip]);
    assert!(servers(&program(&cluster, "n1")).contains_key("-t 10.0.0.11:80"));
    for old in [Version::new(1, 26, 0), Version::new(1, 27, 1)] {
        cluster.proxy.version = known(old);
        assert_eq!(program(&cluster, "n1").bound, [ip("10.0.0.11"), cluster_ip]);
    }
    cluster.proxy.version = known(Version::new(1, 27, 2));
    assert_eq!(program(&cluster, "n1").bound, [cluster_ip]);
}

/// v1.30 lets in external IPs under policy Local, and so do later patches of v1.28 and v1.29.
#[test]
fn the_guard_of_bound_addresses_knows_policy_local_by_patch() {
    let knows = [
        ((1, 26, 15), false),
        ((1, 27, 16), false),
        ((1, 28, 5), false),
        ((1, 28, 6), true),
        ((1, 29, 0), false),
        ((1, 29, 1), true),
        ((1, 30, 0), true),
    ];
    for ((major, minor, patch), is_let_in) in knows {
        let mut local = external_local(load_balancer("s", "172.16.1.1", 30000, "203.0.113.10"));
        local.external_ips = vec![ip("192.0.2.7")];
        let mut cluster = cluster_with(local, everywhere());
        let version = Version::new(major, minor, patch);
        cluster.proxy.version = known(version);
        let rules = program(&cluster, "n1").iptables;
        let guard =
            "-A KUBE-IPVS-FILTER -m set --match-set KUBE-EXTERNAL-IP-LOCAL dst,dst -j RETURN";
        assert_eq!(rules.contains(guard), is_let_in, "{version}");
    }
}

/// From v1.23 to v1.27.1, what was bound in the round before is left out of the node's addresses.
#[test]
fn a_bound_address_of_the_node_takes_no_node_ports() {
    let versions = [
        (22, 0, true),
        (23, 0, false),
        (26, 0, false),
        (27, 0, false),
        (27, 1, false),
        (27, 2, true),
    ];
    for (minor, patch, takes) in versions {
        let own = load_balancer("s", "172.16.1.1", 30000, "10.0.0.11");
        let mut cluster = cluster_with(own, everywhere());
        cluster.proxy.version = known(Version::new(1, minor, patch));
        cluster.proxy.node_port_addresses = NodePortAddresses::All;
        let found = servers(&program(&cluster, "n1"));
        assert_eq!(found.contains_key("-t 10.0.0.11:30000"), takes, "v1.{minor}: {found:?}");
        assert!(found.contains_key("-t 10.0.0.11:80"), "v1.{minor}: {found:?}");
    }
}

#[test]
fn node_ports_are_on_the_nodes_addresses_but_not_on_localhost() {
    let mut cluster = cluster_with(node_port("s", "172.16.1.1", 30000), everywhere());
    let ranges = ["10.0.0.0/24", "127.0.0.0/8"].map(|net| net.parse().unwrap());
    for addresses in [NodePortAddresses::All, NodePortAddresses::Ranges(ranges.into())] {
        cluster.proxy.node_port_addresses = addresses;
        let names: Vec<_> = servers(&program(&cluster, "n1")).into_keys().collect();
        assert_eq!(names, ["-t 10.0.0.11:30000", "-t 172.16.1.1:80"]);
    }
    cluster.proxy.node_port_addresses =
        NodePortAddresses::Ranges(vec!["192.168.0.0/16".parse().unwrap()]);
    let nowhere = program(&cluster, "n1");
    assert!(!nowhere.ipvs.contains(":30000"));
    assert!(members(&nowhere, "KUBE-NODE-PORT-TCP").is_empty());
}

#[test]
fn bound_addresses_in_the_stated_ranges_take_node_ports_too() {
    let mut service = node_port("s", "172.16.1.1", 30000);
    service.external_ips = ["10.0.0.99", "10.0.1.99"].map(|ip| ip.parse().unwrap()).into();
    let mut cluster = cluster_with(service, everywhere());
    let taken = |cluster: &Cluster| -> Vec<String> {
        let all = servers(&program(cluster, "n1")).into_keys();
        all.filter(|name| name.ends_with(":30000")).collect()
    };
    cluster.proxy.node_port_addresses = NodePortAddresses::All;
    assert_eq!(taken(&cluster), ["-t 10.0.0.11:30000"]);
    let range = "10.0.0.0/24".parse().unwrap();
    cluster.proxy.node_port_addresses = NodePortAddresses::Ranges(vec![range]);
    assert_eq!(taken(&cluster), ["-t 10.0.0.11:30000", "-t 10.0.0.99:30000"]);
}

#[test]
fn kernel_settings() {
    let mut cluster = cluster_with(service("s", "172.16.1.1"), vec![]);
    let names = |cluster: &Cluster| -> Vec<String> {
        let all = program(cluster, "n1").sysctls.into_iter();
        all.map(|(name, value)| format!("{name}={value}")).collect()
    };
    let plain = [
        "net.ipv4.vs.conntrack=1",
        "net.ipv4.vs.expire_nodest_conn=1",
        "net.ipv4.vs.expire_quiescent_template=1",
        "net.ipv4.ip_forward=1",
    ];
    assert_eq!(names(&cluster), plain);
    cluster.proxy.strict_arp = true;
    assert_eq!(
        names(&cluster)[4..],
        ["net.ipv4.conf.all.arp_ignore=1", "net.ipv4.conf.all.arp_announce=2"]
    );
    for (kernel, expected) in
        [("3.10.0-1160", false), ("4.14.105-19", true), ("5.4.119-19-0009", true), ("5.9.0", false)]
    {
        cluster.nodes.get_mut(&name("n1")).unwrap().kernel = Some(kernel.into());
        let found = names(&cluster).contains(&"net.ipv4.vs.conn_reuse_mode=0".to_owned());
        assert_eq!(found, expected, "{kernel}");
    }
}

#[test]
fn an_invalid_scheduler_name_is_refused() {
    let mut cluster = cluster_with(service("s", "172.16.1.1"), vec![]);
    for bad in ["rr -p 5", "RR", "a-name-that-is-too-long", "rr\n-C"] {
        cluster.proxy.ipvs_scheduler = bad.into();
        let error = compile(&cluster, &name("n1"), &cluster.proxy, Family::V4).unwrap_err();
        assert_eq!(error, Unsupported::NoScheduler(bad.into()));
        assert!(error.to_string().contains(&format!("{bad:?}")), "{error}");
    }
}

#[test]
fn tke_binds_what_asks_for_it() {
    let binds = |version: &str, asks: bool, variant| {
        let mut service = load_balancer("s", "172.16.1.1", 30000, VIP);
        if asks {
            service.annotations =
                [(tke::annotations::PREVENT_LOOPBACK, "true".to_owned())].into_iter().collect();
        }
        let mut cluster = cluster_with(service, everywhere());
        cluster.proxy.variant = known(variant);
        cluster.proxy.version = known(version.parse().unwrap());
        cloud::set_address_binding(&mut cluster.proxy);
        let program = program(&cluster, "n1");
        // Bound or not, it is served.
        assert_eq!(members(&program, "KUBE-LOAD-BALANCER"), ["203.0.113.10,tcp:80"]);
        assert_eq!(servers(&program)[&format!("-t {VIP}:80")].len(), 4);
        program.bound.contains(&ip(VIP))
    };
    for (version, asks, expected) in [
        ("v1.22.5-tke.0", false, true),
        ("v1.22.5-tke.12", true, false),
        ("v1.22.5-tke.13", true, true),
        ("v1.22.5-tke.13", false, false),
        ("v1.28.3-tke.2", true, false),
        ("v1.28.3-tke.3", true, true),
        ("v1.30.0-tke.1", true, true),
        ("v1.30.0-tke.1", false, false),
    ] {
        assert_eq!(binds(version, asks, Variant::Cloud(tke::TKE)), expected, "{version} {asks}");
        assert!(binds(version, asks, Variant::Upstream));
    }
}

#[test]
fn what_is_not_bound_may_be_absent_altogether() {
    let mut cluster = cluster_with(load_balancer("s", "172.16.1.1", 30000, VIP), everywhere());
    cluster.proxy.variant = known(Variant::Cloud(tke::TKE));
    cloud::set_address_binding(&mut cluster.proxy);
    let options = Options { unbound_vip: UnboundVip::Absent, ..Options::default() };
    let settings = &cluster.proxy;
    let absent = compile_with(&cluster, &name("n1"), settings, Family::V4, options).unwrap();
    assert!(!absent.ipvs.contains(VIP) && !absent.ipset.contains(VIP));
    assert_eq!(absent.bound, [ip("172.16.1.1")]);
    assert!(absent.ipvs.contains("-A -t 10.0.0.11:30000 "));
}

proptest! {
    #[test]
    fn rules_look_into_sets_that_exist(cluster in any_cluster(), minor in 22..37u16) {
        for_each_program(cluster, minor, |_, _, program| {
            let sets: BTreeSet<&str> = created(&program.ipset).collect();
            for rule in program.iptables.lines().filter(|line| line.contains("--match-set")) {
                let (_, rest) = rule.split_once("--match-set ").unwrap();
                assert!(sets.contains(rest.split(' ').next().unwrap()), "{rule}");
            }
            for chains in Saved::parse(&program.iptables).0.values() {
                for rule in chains.values().flatten() {
                    let target = rule.split_once(" -j ").unwrap().1.split(' ').next().unwrap();
                    let ends = ["ACCEPT", "DROP", "REJECT", "RETURN", "MARK", "MASQUERADE"];
                    assert!(ends.contains(&target) || chains.contains_key(target), "{rule}");
                }
            }
            assert!(sets.iter().all(|name| name.len() <= 31));
        });
    }

    #[test]
    fn bound_addresses_are_those_served_but_the_nodes_own(cluster in any_cluster(), minor in 28..37u16) {
        for_each_program(cluster, minor, |cluster, node, program| {
            let own = &cluster.nodes[&name(node)].internal_ips;
            let served: BTreeSet<IpAddr> = servers(program)
                .keys()
                .map(|server| server.rsplit_once(' ').unwrap().1)
                .map(|text| text.parse::<std::net::SocketAddr>().unwrap().ip())
                .filter(|ip| !own.contains(ip))
                .collect();
            assert_eq!(served.into_iter().collect::<Vec<_>>(), program.bound);
            let bound: Vec<String> = program.bound.iter().map(IpAddr::to_string).collect();
            let set = if program.ipset.contains("KUBE-6-") { "KUBE-6-IPVS-IPS" } else { "KUBE-IPVS-IPS" };
            assert_eq!(members(program, set), bound);
        });
    }

    #[test]
    fn nothing_leads_to_an_endpoint_that_does_not_answer(cluster in any_cluster(), minor in 22..37u16) {
        for_each_program(cluster, minor, |cluster, _, program| {
            let all = cluster.endpoints.values().flatten().flat_map(|slice| &slice.endpoints);
            let answers = |endpoint: &Endpoint| endpoint.ready || (endpoint.serving && endpoint.terminating);
            // Endpoints of different Services may have the same address.
            let answering: BTreeSet<IpAddr> =
                all.filter(|endpoint| answers(endpoint)).map(|endpoint| endpoint.address).collect();
            for real in servers(program).into_values().flatten() {
                let address = real.parse::<std::net::SocketAddr>().unwrap().ip();
                assert!(answering.contains(&address), "{real}");
            }
        });
    }

    #[test]
    fn the_order_of_what_is_known_changes_nothing(cluster in any_cluster(), minor in 22..37u16) {
        let mut turned = cluster.clone();
        for slices in turned.endpoints.values_mut() {
            slices.reverse();
            slices.iter_mut().for_each(|slice| slice.endpoints.reverse());
        }
        let mut programs = Vec::new();
        for_each_program(cluster, minor, |_, _, program| programs.push(program.clone()));
        let mut programs = programs.into_iter();
        for_each_program(turned, minor, |_, _, program| {
            assert_eq!(programs.next().as_ref(), Some(program));
        });
    }
}

fn for_each_program(
    mut cluster: Cluster,
    minor: u16,
    mut check: impl FnMut(&Cluster, &str, &Program),
) {
    cluster.proxy.mode = known(ProxyMode::Ipvs);
    cluster.proxy.version = known(Version::new(1, minor, 0));
    for node in cluster.nodes.keys() {
        for family in Family::BOTH {
            let program = compile(&cluster, node, &cluster.proxy, family).unwrap();
            check(&cluster, node.as_str(), &program);
        }
    }
}

fn cluster_with(service: Service, endpoints: Vec<Endpoint>) -> Cluster {
    let mut cluster = cluster(3);
    cluster.proxy.mode = known(ProxyMode::Ipvs);
    add(&mut cluster, service, endpoints);
    cluster
}

/// Virtual servers, each with what stands behind it.
fn servers(program: &Program) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in program.ipvs.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let server = format!("{} {}", words[1], words[2]);
        match words[0] {
            "-A" => assert!(all.insert(server, Vec::new()).is_none(), "twice: {line}"),
            _ => {
                assert_eq!((words[0], &words[5..]), ("-a", &["-m", "-w", "1"][..]));
                all.get_mut(&server).unwrap().push(words[4].to_owned());
            }
        }
    }
    all
}

fn created(ipset: &str) -> impl Iterator<Item = &str> {
    let names = ipset.lines().filter_map(|line| line.strip_prefix("create "));
    names.map(|line| line.split(' ').next().unwrap())
}

fn members(program: &Program, set: &str) -> Vec<String> {
    assert!(created(&program.ipset).any(|name| name == set), "no set {set}");
    let add = format!("add {set} ");
    let members = program.ipset.lines().filter_map(|line| line.strip_prefix(&add));
    members.map(str::to_owned).collect()
}
