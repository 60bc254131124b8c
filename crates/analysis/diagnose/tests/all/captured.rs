//! Captures of nodes on which real kube-proxies ran, as they are and with faults put into them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use uturn_diagnose::check::{Check, State, Topic, check};
use uturn_diagnose::diagnose;
use uturn_model::capture::CapturedText;
use uturn_model::cluster::ReadTime;
use uturn_model::network::NetworkMode;
use uturn_model::proxy::{LocalDetector, NodePortAddresses};
use uturn_model::{Capture, CaptureFile, Cluster, Extent, Known, Name, ProxyMode, Version};
use uturn_path::Engine;
use uturn_scan::Scanner;

const MODES: [(ProxyMode, u8); 3] =
    [(ProxyMode::Iptables, 3), (ProxyMode::Nftables, 3), (ProxyMode::Ipvs, 2)];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A node's files, by name.
type Files = BTreeMap<CaptureFile, String>;

/// What a real kube-proxy v1.34.4 left on a node.
fn files(mode: ProxyMode, node: u8) -> Files {
    let folder = crates().join("analysis/netfilter/tests/golden").join(format!("{mode}-n{node}"));
    let read = |file: CaptureFile| {
        let text = fs::read_to_string(folder.join(file.file_name())).ok()?;
        Some((file, text))
    };
    let mut files: Files = CaptureFile::ALL.into_iter().filter_map(read).collect();
    if mode == ProxyMode::Ipvs {
        // The dumps have the addresses of kube-ipvs0 only.
        let own = "2: eth0: <BROADCAST,UP>\n    inet 10.0.0.11/24 scope global eth0\n    \
            inet 10.0.2.15/24 scope global eth0\n";
        edit(&mut files, CaptureFile::Addresses, |text| format!("{own}{text}"));
    }
    // The namespaces that stood for nodes were dumped while forwarding was off.
    set(&mut files, "net.ipv4.ip_forward", "1");
    files
}

/// The cluster that those kube-proxies were given.
fn cluster(mode: ProxyMode) -> Cluster {
    let golden = crates().join("analysis/kubeproxy/tests/golden");
    let paths = [golden.join("objects.yaml"), golden.join("beside.yaml")];
    let mut cluster = uturn_snapshot::load(&paths).unwrap().cluster;
    for (node, number) in cluster.nodes.values_mut().zip(11..) {
        node.internal_ips = vec![[10, 0, 0, number].into()];
        node.supposed = false;
    }
    cluster.extent = Extent::OBJECTS;
    cluster.network.service_cidrs =
        Known::derived(vec!["172.16.0.0/16".parse().unwrap()], "a test");
    let proxy = &mut cluster.proxy;
    proxy.mode = Known::derived(mode, "a test");
    proxy.version = Known::derived(Version::new(1, 34, 4), "a test");
    let pods = vec!["10.1.0.0/16".parse().unwrap()];
    proxy.detector = Known::derived(LocalDetector::ClusterCidr(pods), "a test");
    proxy.node_port_addresses = match mode {
        ProxyMode::Ipvs => NodePortAddresses::All,
        ProxyMode::Iptables | ProxyMode::Nftables => NodePortAddresses::Primary,
    };
    cluster
}

fn capture(node: u8, files: &Files) -> (Name, Capture) {
    let name: Name = format!("n{node}").parse().unwrap();
    let text = |(file, text): (&CaptureFile, &String)| {
        let path = format!("n{node}/{}", file.file_name());
        (*file, CapturedText { path: path.into(), text: text.as_str().into() })
    };
    let capture = Capture { node: name.clone(), files: files.iter().map(text).collect() };
    (name, capture)
}

/// The lines of a node's list.
fn lines(cluster: &Cluster, node: u8, files: &Files) -> Vec<Check> {
    let mut cluster = cluster.clone();
    let (name, capture) = capture(node, files);
    cluster.captures.insert(name.clone(), capture);
    let engine = Engine::new(&cluster).unwrap();
    let subject = format!("node/{name}");
    let lists = check(&engine, Topic::Nodes, |_| true);
    lists.into_iter().find(|list| list.subject == subject).unwrap().checks
}

/// The codes that a node's list leads to, and what they rest on.
fn failed(cluster: &Cluster, node: u8, files: &Files) -> Vec<String> {
    let lines = lines(cluster, node, files);
    let failed = lines.iter().filter(|line| line.state == State::Failed);
    failed
        .map(|line| {
            let next = line.next.as_deref().unwrap_or_default();
            next.trim_start_matches("uturn explain ").to_owned()
        })
        .collect()
}

#[test]
fn nothing_is_found_on_healthy_nodes() {
    for (mode, nodes) in MODES {
        let cluster = cluster(mode);
        for node in 1..=nodes {
            let all = lines(&cluster, node, &files(mode, node));
            let wrong: Vec<&Check> =
                all.iter().filter(|line| line.state == State::Failed).collect();
            assert!(wrong.is_empty(), "{mode} n{node}: {wrong:#?}");
            let compared = all.iter().find(|line| line.what.starts_with("kube-proxy's rules are"));
            let compared = compared.unwrap();
            assert_eq!(compared.state, State::Ok, "{mode} n{node}: {compared:#?}");
        }
    }
}

/// What others leave beside kube-proxy: pod networks, Docker, fail2ban, kubelet.
const BESIDE: &str = "*filter\n:DOCKER - [0:0]\n:DOCKER-USER - [0:0]\n:f2b-sshd - [0:0]\n\
    :cali-FORWARD - [0:0]\n:cali-from-wl-dispatch - [0:0]\n:FLANNEL-FWD - [0:0]\n\
    :KUBE-FIREWALL - [0:0]\n:KUBE-KUBELET-CANARY - [0:0]\n:KUBE-ROUTER-FORWARD - [0:0]\n\
    :KUBE-POD-FW-ABCDEFGHIJKLMNOP - [0:0]\n\
    -A INPUT -p tcp -m multiport --dports 22 -j f2b-sshd\n\
    -A INPUT -j KUBE-FIREWALL\n\
    -A FORWARD -m comment --comment \"cali:x\" -j cali-FORWARD\n\
    -A FORWARD -j DOCKER-USER\n-A FORWARD -o docker0 -j DOCKER\n-A FORWARD -j FLANNEL-FWD\n\
    -A DOCKER-USER -j RETURN\n-A DOCKER ! -i docker0 -o docker0 -j DROP\n\
    -A f2b-sshd -s 198.51.100.77/32 -j REJECT --reject-with icmp-port-unreachable\n\
    -A f2b-sshd -j RETURN\n\
    -A cali-FORWARD -i cali+ -j cali-from-wl-dispatch\n\
    -A cali-from-wl-dispatch -m comment --comment \"Unknown interface\" -j DROP\n\
    -A FLANNEL-FWD -s 10.1.0.0/16 -j ACCEPT\n-A FLANNEL-FWD -d 10.1.0.0/16 -j ACCEPT\n\
    -A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP\n\
    -A KUBE-ROUTER-FORWARD -d 10.1.1.99/32 -j KUBE-POD-FW-ABCDEFGHIJKLMNOP\n\
    -A KUBE-POD-FW-ABCDEFGHIJKLMNOP -j REJECT --reject-with icmp-port-unreachable\nCOMMIT\n\
    *nat\n:CNI-HOSTPORT-DNAT - [0:0]\n:CNI-DN-0123456789abcdef - [0:0]\n:IP-MASQ-AGENT - [0:0]\n\
    :KUBE-MARK-DROP - [0:0]\n:KUBE-KUBELET-CANARY - [0:0]\n\
    -A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT\n\
    -A CNI-HOSTPORT-DNAT -p tcp -m multiport --dports 8099 -j CNI-DN-0123456789abcdef\n\
    -A CNI-DN-0123456789abcdef -p tcp -m tcp --dport 8099 -j DNAT --to-destination 10.1.1.77:80\n\
    -A POSTROUTING -j IP-MASQ-AGENT\n-A IP-MASQ-AGENT -d 10.0.0.0/8 -j RETURN\n\
    -A IP-MASQ-AGENT -j MASQUERADE\n-A KUBE-MARK-DROP -j MARK --set-xmark 0x8000/0x8000\nCOMMIT\n";

#[test]
fn rules_of_others_are_not_accused() {
    for (mode, nodes) in MODES {
        let cluster = cluster(mode);
        for node in 1..=nodes {
            let mut files = files(mode, node);
            let own = files.remove(&CaptureFile::Iptables).unwrap_or_default();
            files.insert(CaptureFile::Iptables, with_rules(&own, BESIDE));
            assert_eq!(failed(&cluster, node, &files), [""; 0], "{mode} n{node}");
        }
    }
}

/// Rules with more rules, as `iptables-restore --noflush` would load them.
fn with_rules(own: &str, more: &str) -> String {
    use uturn_model::Family;
    use uturn_netfilter::iptables;
    let own = iptables::parse("own", own, Family::V4).unwrap();
    iptables::parse_fragment(own, "more", more, Family::V4).unwrap().to_string()
}

/// A way to spoil a node's files.
type Fault = fn(&mut Files);

fn edit(files: &mut Files, file: CaptureFile, change: impl Fn(&str) -> String) {
    let text = files.entry(file).or_default();
    let changed = change(text);
    assert_ne!(*text, changed, "the fault changes nothing");
    *text = changed;
}

/// Without the lines that contain all of these.
fn without(files: &mut Files, file: CaptureFile, parts: &[&str]) {
    edit(files, file, |text| {
        let is_kept = |line: &&str| !parts.iter().all(|part| line.contains(part));
        text.lines().filter(is_kept).flat_map(|line| [line, "\n"]).collect()
    });
}

fn set(files: &mut Files, switch: &str, value: &str) {
    let text = files.entry(CaptureFile::Sysctls).or_default();
    let others = text.lines().filter(|line| !line.starts_with(&format!("{switch} =")));
    let others: String = others.flat_map(|line| [line, "\n"]).collect();
    *text = format!("{others}{switch} = {value}\n");
}

/// The chain of the Service shop/clusterip and protocol TCP, which has four endpoints.
fn chain_of_clusterip(text: &str) -> String {
    let line = text.lines().find(|line| {
        line.starts_with("-A KUBE-SERVICES") && line.contains("\"shop/clusterip cluster IP\"")
    });
    line.unwrap().rsplit(' ').next().unwrap().to_owned()
}

const IPTABLES: &[(&str, Fault, &str)] = &[
    (
        "the chain of a Service is flushed",
        |files| {
            let chain = chain_of_clusterip(&files[&CaptureFile::Iptables]);
            without(files, CaptureFile::Iptables, &[&format!("-A {chain} ")]);
        },
        "UT602",
    ),
    (
        "an endpoint is removed",
        |files| {
            let chain = chain_of_clusterip(&files[&CaptureFile::Iptables]);
            let last = format!("-A {chain} ");
            without(files, CaptureFile::Iptables, &[&last, "0.33333333349"]);
        },
        "UT605",
    ),
    (
        "an endpoint has another address",
        |files| {
            edit(files, CaptureFile::Iptables, |text| {
                let is_endpoint = |line: &str| line.contains("\"shop/clusterip\"");
                let moved = |line: &str| line.replace("10.1.2.10:8080", "10.1.2.99:8080");
                let lines = text.lines();
                lines
                    .map(|line| if is_endpoint(line) { moved(line) } else { line.into() } + "\n")
                    .collect()
            });
        },
        "UT605",
    ),
    (
        "a Service that is gone has rules",
        |files| {
            let more = "*nat\n:KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]\n:KUBE-SEP-AAAAAAAAAAAAAAAA - [0:0]\n\
                -A KUBE-SERVICES -d 172.16.9.9/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-AAAAAAAAAAAAAAAA\n\
                -A KUBE-SVC-AAAAAAAAAAAAAAAA -j KUBE-SEP-AAAAAAAAAAAAAAAA\n\
                -A KUBE-SEP-AAAAAAAAAAAAAAAA -p tcp -m tcp -j DNAT --to-destination 10.1.1.10:8080\nCOMMIT\n";
            edit(files, CaptureFile::Iptables, |text| with_rules(text, more));
        },
        "UT606",
    ),
    (
        "nothing leads to kube-proxy's chains",
        |files| without(files, CaptureFile::Iptables, &["-A PREROUTING", "-j KUBE-SERVICES"]),
        "UT602",
    ),
    (
        "all rules are flushed",
        |files| {
            for file in [CaptureFile::Iptables, CaptureFile::Ip6tables] {
                files.insert(file, "*nat\n:PREROUTING ACCEPT [0:0]\nCOMMIT\n".into());
            }
        },
        "UT602",
    ),
    (
        "a rule of another program drops what goes to pods",
        |files| {
            edit(files, CaptureFile::Iptables, |text| {
                text.replacen(
                    "-A OUTPUT ",
                    "-A OUTPUT -d 10.1.0.0/16 -p tcp -j DROP\n-A OUTPUT ",
                    1,
                )
            });
        },
        "UT601",
    ),
    (
        "nftables mode has left its table",
        |files| {
            let other = self::files(ProxyMode::Nftables, 1).remove(&CaptureFile::Nft).unwrap();
            files.insert(CaptureFile::Nft, other);
        },
        "UT607",
    ),
    (
        "both back ends have rules",
        |files| {
            let own = files[&CaptureFile::Iptables].clone();
            files.insert(CaptureFile::OtherIptables, own);
        },
        "UT607",
    ),
    ("it does not forward", |files| set(files, "net.ipv4.ip_forward", "0"), "UT604"),
    (
        "rules do not see what the bridge passes",
        |files| {
            let route = "10.1.1.0/24 dev cbr0 proto kernel scope link src 10.1.1.1\n";
            edit(files, CaptureFile::Routes, |text| format!("{text}{route}"));
            set(files, "net.bridge.bridge-nf-call-iptables", "0");
        },
        "UT603",
    ),
    (
        "connection tracking is full",
        |files| {
            set(files, "net.netfilter.nf_conntrack_max", "1000");
            set(files, "net.netfilter.nf_conntrack_count", "999");
        },
        "UT611",
    ),
];

const NFTABLES: &[(&str, Fault, &str)] = &[
    (
        "the chain of a Service is flushed",
        |files| {
            edit(files, CaptureFile::Nft, |text| {
                let start = text.find("chain service-EKJBYN4T-shop/clusterip/tcp/ {\n").unwrap();
                let body = start + text[start..].find('\n').unwrap() + 1;
                let end = body + text[body..].find("\t}").unwrap();
                text[..body].to_owned() + &text[end..]
            });
        },
        "UT602",
    ),
    (
        "an endpoint is removed",
        |files| {
            edit(files, CaptureFile::Nft, |text| {
                let last = ", 3 : goto endpoint-WRI6WE7T-shop/clusterip/tcp/__10.1.3.10/8080";
                text.replacen(last, "", 1).replacen(
                    "numgen random mod 4 vmap { 0 : goto endpoint-HA5WYSFP",
                    "numgen random mod 3 vmap { 0 : goto endpoint-HA5WYSFP",
                    1,
                )
            });
        },
        "UT605",
    ),
    (
        "an endpoint has another address",
        |files| {
            edit(files, CaptureFile::Nft, |text| {
                let at = text.find("chain endpoint-J2HU3W3O-shop/clusterip/tcp/").unwrap();
                text[..at].to_owned()
                    + &text[at..].replacen("dnat to 10.1.2.10:", "dnat to 10.1.2.99:", 1)
            });
        },
        "UT605",
    ),
    (
        "the address of a Service is not in the map",
        |files| {
            edit(files, CaptureFile::Nft, |text| {
                text.replacen(
                    "172.16.1.1 . tcp . 80 : goto service-EKJBYN4T-shop/clusterip/tcp/,\n",
                    "\n",
                    1,
                )
            });
        },
        "UT602",
    ),
    (
        "a Service that is gone is in the map",
        |files| {
            edit(files, CaptureFile::Nft, |text| {
                let own = "172.16.1.1 . tcp . 80 : goto service-EKJBYN4T-shop/clusterip/tcp/,";
                let old = "172.16.9.9 . tcp . 80 : goto service-EKJBYN4T-shop/clusterip/tcp/,";
                text.replacen(own, &format!("{own}\n{old}"), 1)
            });
        },
        "UT606",
    ),
    (
        "iptables mode has left its rules",
        |files| {
            let other = self::files(ProxyMode::Iptables, 1).remove(&CaptureFile::Iptables).unwrap();
            files.insert(CaptureFile::Iptables, other);
        },
        "UT607",
    ),
    (
        "a table of another program drops what goes to pods",
        |files| {
            edit(files, CaptureFile::Nft, |text| {
                format!(
                    "{text}table inet hardening {{\n\tchain out {{\n\t\ttype filter hook output \
                     priority filter; policy accept;\n\t\tip daddr 10.1.0.0/16 tcp dport 8080 drop\n\t}}\n}}\n"
                )
            });
        },
        "UT601",
    ),
];

const IPVS: &[(&str, Fault, &str)] = &[
    (
        "kube-proxy's own sysctl is switched back",
        |files| set(files, "net.ipv4.vs.conntrack", "0"),
        "UT610",
    ),
    (
        "an address is not bound",
        |files| without(files, CaptureFile::Addresses, &["172.16.1.1/32"]),
        "UT609",
    ),
    (
        "an address is bound that no Service has",
        |files| {
            edit(files, CaptureFile::Addresses, |text| {
                let own = "    inet 172.16.1.1/32 scope global kube-ipvs0\n";
                assert!(text.contains(own), "{text}");
                text.replacen(own, &format!("{own}{}", own.replace("1.1/", "9.9/")), 1)
            });
        },
        "UT609",
    ),
    (
        "a real server is removed",
        |files| without(files, CaptureFile::Ipvs, &["-a -t 172.16.1.1:80 -r 10.1.2.10:8080"]),
        "UT605",
    ),
    (
        "a real server has another address",
        |files| {
            edit(files, CaptureFile::Ipvs, |text| {
                let own = "-a -t 172.16.1.1:80 -r 10.1.2.10:8080";
                text.replacen(own, &own.replace("2.10", "2.99"), 1)
            });
        },
        "UT605",
    ),
    (
        "a virtual server is removed",
        |files| without(files, CaptureFile::Ipvs, &["-t 172.16.1.1:80 "]),
        "UT602",
    ),
    (
        "an entry of a set is removed",
        |files| without(files, CaptureFile::Ipset, &["add KUBE-CLUSTER-IP 172.16.1.1,tcp:80"]),
        "UT602",
    ),
    (
        "a Service that is gone has a virtual server",
        |files| {
            edit(files, CaptureFile::Ipvs, |text| format!("{text}-A -t 172.16.9.9:80 -s rr\n"));
            edit(files, CaptureFile::Addresses, |text| {
                let own = "    inet 172.16.1.1/32 scope global kube-ipvs0\n";
                text.replacen(own, &format!("{own}{}", own.replace("1.1/", "9.9/")), 1)
            });
        },
        "UT606",
    ),
];

#[test]
fn each_fault_has_its_finding_and_no_other() {
    let all =
        [(ProxyMode::Iptables, IPTABLES), (ProxyMode::Nftables, NFTABLES), (ProxyMode::Ipvs, IPVS)];
    let mut wrong = Vec::new();
    for (mode, faults) in all {
        let cluster = cluster(mode);
        for (name, fault, code) in faults {
            let mut files = files(mode, 1);
            fault(&mut files);
            let found = failed(&cluster, 1, &files);
            if found != [*code] {
                let lines = lines(&cluster, 1, &files);
                let shown: Vec<&Check> =
                    lines.iter().filter(|line| line.state == State::Failed).collect();
                wrong.push(format!("{mode}: {name}: expected {code}, found {found:?}: {shown:#?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn another_mode_than_the_configured_one_is_said_once() {
    for (configured, real) in [
        (ProxyMode::Nftables, ProxyMode::Iptables),
        (ProxyMode::Ipvs, ProxyMode::Iptables),
        (ProxyMode::Iptables, ProxyMode::Ipvs),
        (ProxyMode::Iptables, ProxyMode::Nftables),
    ] {
        let found = failed(&cluster(configured), 1, &files(real, 1));
        assert_eq!(found, ["UT608"], "{configured}, but {real}");
    }
}

#[test]
fn a_strict_filter_of_sources_is_wrong_only_where_pods_have_addresses_of_the_vpc() {
    let mut cluster = cluster(ProxyMode::Iptables);
    let mut files = files(ProxyMode::Iptables, 1);
    set(&mut files, "net.ipv4.conf.all.rp_filter", "1");
    assert_eq!(failed(&cluster, 1, &files), [""; 0]);
    cluster.network.mode = Known::derived(NetworkMode::VpcCni, "a test");
    assert_eq!(failed(&cluster, 1, &files), ["UT105"]);
}

#[test]
fn an_agent_that_masquerades_otherwise_is_found_where_facts_state_it() {
    let mut cluster = cluster(ProxyMode::Iptables);
    let mut files = files(ProxyMode::Iptables, 1);
    edit(&mut files, CaptureFile::Iptables, |text| with_rules(text, BESIDE));
    for (stated, expected) in [("10.0.0.0/8", &[][..]), ("10.0.0.0/16", &["UT612"])] {
        let ranges = vec![stated.parse().unwrap()];
        cluster.network.non_masquerade_cidrs = Known::derived(ranges, "a test");
        assert_eq!(failed(&cluster, 1, &files), expected, "{stated}");
    }
}

/// The state of the line that compares rules.
fn compared(cluster: &Cluster, files: &Files) -> State {
    let lines = lines(cluster, 1, files);
    let failed = lines.iter().filter(|line| line.state == State::Failed).count();
    assert_eq!(failed, 0, "{lines:#?}");
    lines.iter().find(|line| line.what.starts_with("kube-proxy's rules are")).unwrap().state
}

#[test]
fn what_is_not_known_is_not_accused() {
    let mode = ProxyMode::Iptables;
    let spoiled = || {
        let mut files = files(mode, 1);
        (IPTABLES[0].1)(&mut files);
        files
    };
    // Which version wrote the rules is not known.
    let mut guessed = cluster(mode);
    guessed.proxy.version = Known::supposed(Version::new(1, 34, 4), "a test");
    assert_eq!(compared(&guessed, &spoiled()), State::Unknown);
    assert_eq!(compared(&guessed, &files(mode, 1)), State::Ok);
    // A version that came after the last one that is known.
    let mut newer = cluster(mode);
    newer.proxy.version = Known::derived(Version::new(1, 99, 0), "a test");
    assert_eq!(compared(&newer, &spoiled()), State::Unknown);
    // The objects state another version than the one that wrote the rules.
    let mut other = cluster(mode);
    other.proxy.version = Known::derived(Version::new(1, 24, 0), "a test");
    assert_eq!(compared(&other, &files(mode, 1)), State::Unknown);
    // Services that the input lacks may exist, and endpoints may be others.
    for extent in [
        Extent { services: false, ..Extent::OBJECTS },
        Extent { endpoints: false, ..Extent::OBJECTS },
    ] {
        let partial = Cluster { extent, ..cluster(mode) };
        assert_eq!(compared(&partial, &spoiled()), State::Unknown);
    }
    let mut derived = cluster(mode);
    derived.endpoints.values_mut().flatten().for_each(|slice| slice.derived = true);
    assert_eq!(compared(&derived, &spoiled()), State::Unknown);
    // Rules that changed all the time.
    let mut restless = spoiled();
    let manifest = r#"{"format": 1, "node": "n1", "takenAt": "2026-01-01T00:00:00Z",
        "uturn": "0.1.0", "settled": false, "parts": []}"#;
    restless.insert(CaptureFile::Manifest, manifest.into());
    assert_eq!(compared(&cluster(mode), &restless), State::Unknown);
    // No rules at all, and no sets where rules need them.
    let mut without_rules = files(mode, 1);
    without_rules.retain(|file, _| {
        ![CaptureFile::Iptables, CaptureFile::Ip6tables, CaptureFile::Nft].contains(file)
    });
    assert_eq!(compared(&cluster(mode), &without_rules), State::Unknown);
    let mut without_sets = files(ProxyMode::Ipvs, 1);
    without_sets.remove(&CaptureFile::Ipset);
    assert_eq!(compared(&cluster(ProxyMode::Ipvs), &without_sets), State::Unknown);
}

#[test]
fn objects_of_another_time_accuse_no_node() {
    let mut files = files(ProxyMode::Iptables, 1);
    let chain = chain_of_clusterip(&files[&CaptureFile::Iptables]);
    without(&mut files, CaptureFile::Iptables, &[&format!("-A {chain} "), "0.33333333349"]);
    set(&mut files, "net.ipv4.ip_forward", "0");
    let manifest = r#"{"format": 1, "node": "n1", "takenAt": "2026-01-01T12:00:00Z",
        "uturn": "0.1.0", "settled": true, "parts": []}"#;
    files.insert(CaptureFile::Manifest, manifest.into());
    let read = |begun: &str, ended: &str| {
        let read_at = Some(ReadTime { begun: begun.into(), ended: ended.into() });
        Cluster { read_at, ..cluster(ProxyMode::Iptables) }
    };
    for (begun, ended) in [
        ("2026-01-01T11:59:00Z", "2026-01-01T12:01:00Z"),
        ("2026-01-01T12:04:59Z", "2026-01-01T12:05:00Z"),
        ("2026-01-01T11:50:00Z", "2026-01-01T11:55:01Z"),
        ("", ""),
    ] {
        assert_eq!(failed(&read(begun, ended), 1, &files), ["UT605", "UT604"], "{begun}");
    }
    for (begun, ended, why) in [
        ("2026-01-01T14:00:00Z", "2026-01-01T14:01:00Z", "120 minutes before the objects"),
        ("2026-01-01T11:00:00Z", "2026-01-01T11:30:00Z", "30 minutes after the objects"),
    ] {
        let cluster = read(begun, ended);
        // What does not follow from objects that come and go is found nevertheless.
        assert_eq!(failed(&cluster, 1, &files), ["UT604"]);
        let lines = lines(&cluster, 1, &files);
        let shown: Vec<&Check> =
            lines.iter().filter(|line| format!("{line:?}").contains(why)).collect();
        assert_eq!(shown.len(), 1, "{lines:#?}");
        assert_eq!(shown[0].state, State::Unknown);
    }
}

#[test]
fn a_scan_has_the_same_findings() {
    let found = |files: &Files| -> Vec<String> {
        let mut cluster = cluster(ProxyMode::Iptables);
        let (name, capture) = capture(1, files);
        cluster.captures.insert(name, capture);
        let engine = Engine::new(&cluster).unwrap();
        let scanner = Scanner::new(&engine);
        let found = diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap();
        // The capture has no routes to pods: calls fail too, which is another matter.
        let of_node = found.iter().filter(|finding| {
            finding.subject.to_string().contains("n1") && !finding.other_evidence.is_empty()
        });
        of_node
            .map(|finding| format!("{} {}", finding.code, finding.other_evidence[0].what))
            .collect()
    };
    let mut files = files(ProxyMode::Iptables, 1);
    assert_eq!(found(&files), [""; 0]);
    set(&mut files, "net.netfilter.nf_conntrack_max", "1000");
    set(&mut files, "net.netfilter.nf_conntrack_count", "999");
    assert_eq!(found(&files), ["UT611 999 of 1000 connections"]);
}
