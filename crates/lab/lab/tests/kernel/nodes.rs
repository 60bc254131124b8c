//! Rows about the node side: each mode of kube-proxy, families, datagrams, TLS.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use uturn_kubeproxy::compile;
use uturn_lab::{Evidence, KernelPart, LabError, Plan, Unavailable};
use uturn_model::capture::CapturedText;
use uturn_model::dns::{Corefile, CorefileFile};
use uturn_model::node::Firewall;
use uturn_model::pod::{ConfigFile, Container, ContainerPort};
use uturn_model::service::{ServiceKind, TargetPort};
use uturn_model::{
    Capture, CaptureFile, Client, Cluster, Family, Known, LoadBalancer, ObjectRef, Origin, Outcome,
    Pod, Port, Protocol, ProxyMode,
};
use uturn_testing::variables;

use crate::cluster::{cluster, cluster_v6};
use crate::rows::{clients, flow, measure, plan, quick, quick_set};

type Set = (Cluster, Vec<LoadBalancer>);

pub(crate) const ROWS: [(&str, fn()); 10] = [
    ("nftables", nftables),
    ("ipvs", ipvs),
    ("modes-v6", modes_v6),
    ("udp", udp),
    ("tls", tls),
    ("own-rules", own_rules),
    ("names", names),
    ("workload", workload),
    ("captured", captured),
    ("nginx", nginx),
];

/// The modes that this kernel supports. Those that it does not are distinguished from other
/// errors.
fn modes() -> Vec<ProxyMode> {
    let mut all = ProxyMode::ALL.to_vec();
    all.retain(|mode| {
        let (mut cluster, load_balancers) = cluster(1);
        cluster.proxy.mode = stated(*mode);
        let flows = [flow("node/n1", "svc/shop/front")];
        let plan = plan(&cluster, &load_balancers, &flows);
        let part = match mode {
            ProxyMode::Iptables => None,
            ProxyMode::Ipvs => Some(KernelPart::IpVs),
            ProxyMode::Nftables => Some(KernelPart::NfTables),
        };
        assert_eq!(plan.needs(), Vec::from_iter(part));
        match uturn_lab::measure(&plan, &mut |_| {}) {
            Ok(_) => true,
            Err(LabError::Unavailable(Unavailable::Part(lacking))) => {
                assert_eq!(Some(lacking), part);
                let requirement = match lacking {
                    KernelPart::IpVs => uturn_testing::Requirement::Ipvs,
                    KernelPart::NfTables => uturn_testing::Requirement::Nft,
                    KernelPart::Vxlan => uturn_testing::Requirement::KernelModules,
                };
                uturn_testing::skip(
                    requirement,
                    "rows in one of kube-proxy's modes",
                    Unavailable::Part(lacking),
                );
                false
            }
            Err(error) => panic!("{mode}: {error}"),
        }
    });
    assert!(all.contains(&ProxyMode::Iptables));
    all
}

fn stated<T>(value: T) -> Known<T> {
    Known::stated(value, Origin::file("nodes.rs"))
}

fn in_mode(mode: ProxyMode, mut set: Set) -> Set {
    set.0.proxy.mode = stated(mode);
    set
}

fn nftables() {
    if modes().contains(&ProxyMode::Nftables) {
        everything(ProxyMode::Nftables);
    }
}

fn ipvs() {
    if modes().contains(&ProxyMode::Ipvs) {
        everything(ProxyMode::Ipvs);
    }
}

/// What holds in every mode: cluster IPs, node ports, and the load balancer's address.
fn everything(mode: ProxyMode) {
    let set = || in_mode(mode, quick(2));
    let from = ["pod/shop/web-1", "pod/shop/web-2", "pod/shop/front", "node/n1"].map(String::from);
    let seen = ["10.1.1.10", "10.1.2.10", "10.1.2.1", "10.0.0.11"];
    for (measured, source) in measure(&mut set(), &from, "svc/shop/front").iter().zip(seen) {
        assert_eq!(measured.counts, [(Outcome::AT_ONCE, 12)], "{}", measured.flow.from);
        assert_eq!(measured.evidence.sources_seen, [(source.parse().unwrap(), 12)]);
    }
    for measured in measure(&mut set(), &clients(2), "10.0.0.11:30080") {
        assert_eq!(measured.counts, [(Outcome::AT_ONCE, 12)], "{}", measured.flow.from);
    }
    for measured in measure(&mut set(), &clients(2), "http://10.0.0.200/") {
        assert_eq!(measured.counts, [(Outcome::AT_ONCE, 12)], "{}", measured.flow.from);
        assert_eq!(measured.evidence.reached_load_balancer, 0, "{}", measured.flow.from);
    }
    let mut empty = set();
    for slice in empty.0.endpoints.values_mut().flatten() {
        slice.endpoints.clear();
    }
    for measured in
        measure(&mut empty, &["pod/shop/web-1".into(), "node/n1".into()], "svc/shop/front")
    {
        assert_eq!(measured.counts, [(Outcome::Refused, 12)], "{}", measured.flow.from);
    }
}

fn modes_v6() {
    let from = ["pod/shop/web-1", "pod/shop/web-2", "node/n1"].map(String::from);
    for mode in modes() {
        let mut set = in_mode(mode, quick_set(cluster_v6(2)));
        for to in ["svc/shop/front", "http://[fd00::200]/", "[fd00::11]:30080"] {
            for measured in measure(&mut set, &from, to) {
                assert_eq!(
                    measured.counts,
                    [(Outcome::AT_ONCE, 12)],
                    "{mode}: {} → {to}",
                    measured.flow.from
                );
            }
        }
    }
}

/// A question is answered, refused, or lost.
fn udp() {
    for mode in modes() {
        let (mut cluster, load_balancers) = in_mode(mode, quick(2));
        serve(&mut cluster, 5353, Protocol::Udp, None);
        for service in cluster.services.values_mut() {
            service.ports[0].protocol = Protocol::Udp;
            service.ports[0].target = TargetPort::Number(Port::new(5353).unwrap());
        }
        for slice in cluster.endpoints.values_mut().flatten() {
            slice.ports[0].protocol = Protocol::Udp;
            slice.ports[0].port = Port::new(5353).unwrap();
        }
        let asked = |from: &str, to: &str| {
            let mut flow = flow(from, to);
            flow.protocol = Protocol::Udp;
            let flows = [flow];
            let plan = plan(&cluster, &load_balancers, &flows);
            uturn_lab::measure(&plan, &mut |_| {}).unwrap().remove(0)
        };
        for (from, source) in [("pod/shop/web-1", "10.1.1.10"), ("node/n1", "10.0.0.11")] {
            let measured = asked(from, "svc/shop/front");
            assert_eq!(measured.counts, [(Outcome::AT_ONCE, 12)], "{mode}: {from}");
            assert_eq!(measured.evidence.sources_seen, [(source.parse().unwrap(), 12)], "{mode}");
            assert_eq!(measured.evidence.answered_by, [("pod shop/front".into(), 12)], "{mode}");
        }
        let measured = asked("pod/shop/web-1", "pod/shop/front:5354");
        assert_eq!(measured.counts, [(Outcome::Refused, 12)], "{mode}");
        let measured = asked("pod/shop/web-1", "10.0.0.77:53");
        assert!(
            matches!(measured.counts[..], [(Outcome::Unreachable | Outcome::Hangs, 12)]),
            "{measured:?}"
        );
    }
}

/// TLS where it is spoken; a greeting that is answered in the clear; the other way round.
fn tls() {
    let mut set = quick(2);
    serve(&mut set.0, 8443, Protocol::Tcp, None);
    serve(&mut set.0, 9999, Protocol::Tcp, Some("web-https"));
    let from = ["pod/shop/web-1".to_owned()];
    let bad_request = Outcome::Status { code: 400, after: Duration::ZERO };
    for (to, outcome) in [
        ("https://10.1.2.20:8443/", Outcome::AT_ONCE),
        ("https://10.1.2.20:9999/", Outcome::AT_ONCE),
        ("https://10.1.2.20:8080/", Outcome::TlsError),
        ("http://10.1.2.20:8443/", bad_request),
        ("10.1.2.20:8443", Outcome::AT_ONCE),
        ("https://10.1.2.20:81/", Outcome::Refused),
    ] {
        let measured = measure(&mut set, &from, to).remove(0);
        assert_eq!(measured.counts, [(outcome, 12)], "{to}");
        let by = measured.evidence.answered_by.len();
        assert_eq!(by, usize::from(outcome == Outcome::AT_ONCE), "{to}");
    }
}

/// What a node has beside kube-proxy's rules, and what its kube-proxy has left out.
fn own_rules() {
    let mut set = quick(2);
    let node = set.0.nodes.values_mut().next().unwrap();
    let text = "*filter\n-A FORWARD -s 10.1.1.10/32 -p tcp -m tcp --dport 8080 -j DROP\nCOMMIT\n";
    node.firewall = Some(Firewall { text: text.into(), origin: Origin::file("nodes.rs") });
    let from = ["pod/shop/web-1", "pod/shop/web-2"].map(String::from);
    let both = measure(&mut set, &from, "svc/shop/front");
    assert_eq!(both[0].counts, [(Outcome::Hangs, 12)]);
    assert_eq!(both[1].counts, [(Outcome::AT_ONCE, 12)]);
    let mut set = quick(2);
    set.0.nodes.values_mut().next().unwrap().unprogrammed = vec!["shop/front".parse().unwrap()];
    let both = measure(&mut set, &from, "svc/shop/front");
    assert_ne!(both[0].counts, [(Outcome::AT_ONCE, 12)]);
    assert_eq!(both[0].evidence, Evidence::default());
    assert_eq!(both[1].counts, [(Outcome::AT_ONCE, 12)]);
}

const COREFILE: &str = "\
.:53 {
    errors
    rewrite name shop.example.com front.shop.svc.cluster.local
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }
    hosts /etc/coredns/own {
        fallthrough
    }
    forward . /etc/resolv.conf
    cache 30
    loadbalance
}
";

/// Names, asked of real CoreDNS through the rules of the client's node.
fn names() {
    let Some(program) = variables::program(variables::COREDNS, "coredns") else {
        uturn_testing::skip(
            uturn_testing::Requirement::CoreDns,
            "names in the lab",
            "there is no coredns in the search path, and UTURN_COREDNS names none",
        );
        return;
    };
    for has_pod in [true, false] {
        let (mut cluster, load_balancers) = quick(2);
        let origin = Origin::file("nodes.rs");
        cluster.dns.corefile = Some(Corefile {
            text: COREFILE.into(),
            origin: origin.clone(),
            beside: vec![CorefileFile {
                path: "/etc/coredns/own".into(),
                text: "10.0.0.200 own.example.com\n".into(),
                origin,
            }],
            release: None,
        });
        cluster.dns.outside = vec![("api.example.com".into(), "10.0.0.100".parse().unwrap())];
        add_peers(&mut cluster);
        if has_pod {
            add_dns(&mut cluster);
        }
        let all = |text: &str| (text.to_owned(), Outcome::AT_ONCE);
        for (to, outcome) in [
            all("http://front/"),
            all("http://front.shop/"),
            all("http://front.shop.svc.cluster.local/"),
            all("http://front.shop.svc.cluster.local./"),
            all("http://shop.example.com/"),
            all("http://own.example.com/"),
            all("http://peers:8080/"),
            all("http://abroad:30080/"),
            ("http://nothing.example.com/".to_owned(), Outcome::NameNotFound),
            ("http://front.other/".to_owned(), Outcome::NameNotFound),
        ] {
            let flows = [flow("pod/shop/web-1", &to), flow("node/n1", "http://front/")];
            let coredns = Some(program.clone());
            let plan = Plan { coredns, ..plan(&cluster, &load_balancers, &flows) };
            let measured = uturn_lab::measure(&plan, &mut |_| {}).unwrap();
            assert_eq!(measured[0].counts, [(outcome, 12)], "{to}, {has_pod}");
            // A node does not ask the cluster's DNS.
            assert_eq!(measured[1].counts, [(Outcome::NameNotFound, 12)], "{has_pod}");
        }
        let flows = [flow("pod/shop/web-1", "http://api.example.com/")];
        let coredns = Some(program.clone());
        let plan = Plan { coredns, ..plan(&cluster, &load_balancers, &flows) };
        let measured = uturn_lab::measure(&plan, &mut |_| {}).unwrap();
        assert!(measured[0].evidence.reached_load_balancer >= 12, "{measured:?}");
    }
}

/// A headless Service, and one of type ExternalName.
fn add_peers(cluster: &mut Cluster) {
    let front = "shop/front".parse().unwrap();
    let mut peers = cluster.services[&front].clone();
    peers.name = "shop/peers".parse().unwrap();
    peers.kind = ServiceKind::ClusterIp;
    peers.cluster_ips.clear();
    peers.headless = true;
    let mut slice = cluster.endpoints[&front][0].clone();
    slice.name = peers.name.clone();
    slice.service = peers.name.clone();
    let mut abroad = peers.clone();
    abroad.name = "shop/abroad".parse().unwrap();
    abroad.kind = ServiceKind::ExternalName("node.example.com".into());
    abroad.headless = false;
    cluster.dns.outside.push(("node.example.com".into(), "10.0.0.11".parse().unwrap()));
    cluster.endpoints.insert(peers.name.clone(), vec![slice]);
    cluster.services.insert(peers.name.clone(), peers);
    cluster.services.insert(abroad.name.clone(), abroad);
}

/// The Service of the cluster's DNS, and a pod of it on the second node.
fn add_dns(cluster: &mut Cluster) {
    let (service, pod) = ("shop/front".parse().unwrap(), "shop/web-2".parse().unwrap());
    let mut pod: Pod = cluster.pods[&pod].clone();
    pod.name = "kube-system/coredns".parse().unwrap();
    pod.ips = vec!["10.1.2.53".parse().unwrap()];
    let mut slice = cluster.endpoints[&service][0].clone();
    let mut service = cluster.services[&service].clone();
    service.name = "kube-system/kube-dns".parse().unwrap();
    service.cluster_ips = vec!["172.16.0.53".parse().unwrap()];
    service.kind = ServiceKind::ClusterIp;
    service.ports[0].protocol = Protocol::Udp;
    service.ports[0].port = Port::new(53).unwrap();
    service.ports[0].node_port = None;
    slice.name = service.name.clone();
    slice.service = service.name.clone();
    slice.ports[0].protocol = Protocol::Udp;
    slice.ports[0].port = Port::new(53).unwrap();
    slice.endpoints[0].address = pod.ips[0];
    slice.endpoints[0].pod = Some(pod.name.clone());
    cluster.dns.service = Some(service.name.clone());
    cluster.pods.insert(pod.name.clone(), pod);
    cluster.endpoints.insert(service.name.clone(), vec![slice]);
    cluster.services.insert(service.name.clone(), service);
}

/// A workload calls with each of its pods.
fn workload() {
    let (mut cluster, load_balancers) = quick(2);
    let owner = Some("deploy/shop/web".parse::<Client>().unwrap());
    for name in ["shop/web-1", "shop/web-2"] {
        let pod = cluster.pods.get_mut(&name.parse().unwrap()).unwrap();
        let Some(Client::Workload(kind, name)) = &owner else { panic!("{owner:?}") };
        pod.owner = Some(ObjectRef::namespaced((*kind).into(), name));
    }
    let from = ["deploy/shop/web".to_owned()];
    let measured = measure(&mut (cluster, load_balancers), &from, "svc/shop/front").remove(0);
    assert_eq!(measured.flow.from.to_string(), "deploy/shop/web");
    assert_eq!(measured.counts, [(Outcome::AT_ONCE, 24)]);
    let seen = ["10.1.1.10", "10.1.2.10"].map(|ip| (ip.parse().unwrap(), 12));
    assert_eq!(measured.evidence.sources_seen, seen);
}

/// What was captured of a node is loaded there, whatever kube-proxy would program.
fn captured() {
    for mode in modes() {
        let (cluster, load_balancers) = in_mode(mode, quick(2));
        let mut poorer = cluster.clone();
        poorer.services.remove(&"shop/api".parse().unwrap());
        let mut rules = BTreeMap::new();
        for node in cluster.nodes.keys() {
            let program = compile(&poorer, node, &poorer.proxy, Family::V4).unwrap();
            let bound: String = program
                .bound
                .iter()
                .map(|ip| format!("    inet {ip}/32 scope global kube-ipvs0\n"))
                .collect();
            let device = format!("4: kube-ipvs0: <BROADCAST,NOARP> mtu 1500 state DOWN\n{bound}");
            let sysctls: String =
                program.sysctls.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
            let files = [
                (CaptureFile::Iptables, program.iptables),
                (CaptureFile::Nft, program.nft),
                (CaptureFile::Ipset, program.ipset),
                (CaptureFile::Ipvs, program.ipvs),
                (CaptureFile::Addresses, if bound.is_empty() { bound } else { device }),
                (CaptureFile::Sysctls, sysctls),
            ];
            let files =
                files.into_iter().filter(|(_, text)| !text.is_empty()).map(|(file, text)| {
                    (file, CapturedText { path: file.file_name().into(), text: text.into() })
                });
            let capture = Capture { node: node.clone(), files: files.collect() };
            rules.insert(node.clone(), capture);
        }
        let flows = ["svc/shop/front", "svc/shop/api"].map(|to| flow("pod/shop/web-1", to));
        let plan = Plan { rules: &rules, ..plan(&cluster, &load_balancers, &flows) };
        let measured = uturn_lab::measure(&plan, &mut |_| {}).unwrap();
        assert_eq!(measured[0].counts, [(Outcome::AT_ONCE, 12)], "{mode}");
        assert_ne!(measured[1].counts, [(Outcome::AT_ONCE, 12)], "{mode}");
    }
}

/// A pod that is a real nginx routes by host.
fn nginx() {
    let (mut cluster, load_balancers) = quick(2);
    let there = ["/usr/sbin/nginx", "/usr/bin/nginx"].iter().any(|path| Path::new(path).exists());
    if !there {
        uturn_testing::skip(
            uturn_testing::Requirement::Nginx,
            "an nginx of a cluster's own",
            "nginx is not installed",
        );
        return;
    }
    let pod = cluster.pods.get_mut(&"shop/web-2".parse().unwrap()).unwrap();
    let text = "server { listen 8000; return 404; }\n\
                server { listen 8000; server_name shop.example.com;\n\
                location / { proxy_pass http://172.16.0.10; } }";
    std::sync::Arc::make_mut(&mut pod.spec).files = vec![ConfigFile {
        path: "/etc/nginx/conf.d/shop.conf".into(),
        config_map: "routes".into(),
        key: Some("shop.conf".into()),
        alone: true,
        text: Some(text.into()),
    }];
    let flows = ["http://10.1.2.10:8000/", "http://shop.example.com:8000/"]
        .map(|to| flow("pod/shop/web-1", to));
    cluster.dns.outside = vec![("shop.example.com".into(), "10.1.2.10".parse().unwrap())];
    let plan = plan(&cluster, &load_balancers, &flows);
    let measured = uturn_lab::measure(&plan, &mut |_| {}).unwrap();
    let not_found = Outcome::Status { code: 404, after: Duration::ZERO };
    assert_eq!(measured[0].counts, [(not_found, 12)]);
    assert_eq!(measured[1].counts, [(Outcome::AT_ONCE, 12)]);
    // The rule of the client's node leaves its own pods' addresses alone.
    assert_eq!(measured[1].evidence.sources_seen, [("10.1.2.10".parse().unwrap(), 12)]);
    assert_eq!(measured[1].evidence.answered_by, [("pod shop/front".into(), 12)]);
}

/// Gives the server another port.
pub(crate) fn serve(cluster: &mut Cluster, number: u16, protocol: Protocol, port: Option<&str>) {
    let server = cluster.pods.get_mut(&"shop/front".parse().unwrap()).unwrap();
    let port = ContainerPort {
        name: port.map(Into::into),
        port: Port::new(number).unwrap(),
        protocol,
        host_port: None,
        host_ip: None,
    };
    let name = format!("serves-{number}").into();
    let container = Container {
        name,
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
    std::sync::Arc::make_mut(&mut server.spec).containers.push(container);
}
