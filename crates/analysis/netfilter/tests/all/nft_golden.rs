//! Real nodes with nftables, walked: results worked out by hand from the rules, and the same
//! results as the node with iptables.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use crate::common::{ends, from, kernel, later, nft_state, read, rules_of, tcp};
use uturn_model::StepKind;
use uturn_netfilter::nft::{self, Expr, TableFamily};
use uturn_netfilter::{EndKind, Entry, Kernel, NodeState, Packet, Transport};

fn nft_kernel(n: u8) -> Kernel {
    Kernel::new(nft_state(n, "nft.txt")).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

#[test]
fn a_cluster_ip_is_spread_over_its_endpoints() {
    let kernel = nft_kernel(2);
    let request = tcp("10.1.2.20:40000", "172.16.1.1:80");
    assert_eq!(
        ends(&kernel, request, &from("cbr0")),
        [
            "0.250 10.1.2.20:40000 > 10.1.1.10:8080 out eth0 via 10.99.0.1",
            "0.250 10.1.2.20:40000 > 10.1.1.11:8080 out eth0 via 10.99.0.1",
            "0.250 10.1.2.20:40000 > 10.1.2.10:8080 out cbr0",
            "0.250 10.1.2.20:40000 > 10.1.3.10:8080 out eth0 via 10.99.0.1",
        ]
    );
    let ends = kernel.walk(&request, &from("cbr0"), &[]);
    let local = ends.iter().find(|end| end.out.as_deref() == Some("cbr0")).unwrap();
    assert_eq!(rules_of(local, StepKind::Translate), ["meta l4proto tcp dnat to 10.1.2.10:8080"]);
    let steps = |kind| local.steps.iter().find(|step| step.kind == kind).unwrap();
    assert_eq!(
        &*steps(StepKind::Balance).why,
        "service-EKJBYN4T-shop/clusterip/tcp/: picked one time in 4"
    );
    let text = read("nftables-n2", "nft.txt");
    for step in &local.steps {
        if step.by.origin().path() == Some("nft.txt") {
            let line = text.lines().nth(step.by.origin().line() as usize - 1).unwrap();
            assert_eq!(line.trim(), &*step.by.rule(), "the origin names the rule's line");
        }
    }
    assert!(local.unknown.is_empty() && local.supposed.is_empty());
}

#[test]
fn a_client_that_is_its_own_endpoint_is_masqueraded() {
    assert_eq!(
        ends(&nft_kernel(2), tcp("10.1.2.10:40000", "172.16.1.5:80"), &from("cbr0")),
        ["1.000 10.1.2.1:40000 > 10.1.2.10:8080 out cbr0"]
    );
}

#[test]
fn a_node_port_from_outside_is_masqueraded_and_the_answer_finds_back() {
    let kernel = nft_kernel(2);
    let request = tcp("198.51.100.7:40000", "10.0.0.12:30080");
    assert_eq!(
        ends(&kernel, request, &from("eth0")),
        [
            "0.250 10.1.2.1:40000 > 10.1.2.10:8080 out cbr0",
            "0.250 10.99.0.107:40000 > 10.1.1.10:8080 out eth0 via 10.99.0.1",
            "0.250 10.99.0.107:40000 > 10.1.1.11:8080 out eth0 via 10.99.0.1",
            "0.250 10.99.0.107:40000 > 10.1.3.10:8080 out eth0 via 10.99.0.1",
        ]
    );
    for there in kernel.walk(&request, &from("eth0"), &[]) {
        let known = [there.connection.clone().unwrap()];
        let device = from(there.out.as_deref().unwrap());
        assert_eq!(
            later(&kernel, there.packet.reply(), &device, &known),
            ["1.000 10.0.0.12:30080 > 198.51.100.7:40000 out eth0 via 10.99.0.1"]
        );
        let mut next = request;
        if let Transport::Tcp { syn, ack, .. } = &mut next.transport {
            (*syn, *ack) = (false, true);
        }
        let again = kernel.walk(&next, &from("eth0"), &known);
        assert_eq!((again.len(), again[0].packet.leg()), (1, there.packet.leg()));
    }
}

#[test]
fn policies_checks_and_ranges() {
    let (first, two) = (nft_kernel(1), nft_kernel(2));
    let outside =
        |kernel: &Kernel, to: &str| ends(kernel, tcp("198.51.100.7:40000", to), &from("eth0"));
    // Policy Local: keeps the source if there is a local endpoint, drops otherwise.
    assert_eq!(
        outside(&two, "10.0.0.12:30081"),
        ["1.000 198.51.100.7:40000 > 10.1.2.10:8080 out cbr0"]
    );
    assert_eq!(
        outside(&first, "10.0.0.11:30081"),
        ["1.000 198.51.100.7:40000 > 10.0.0.11:30081 drop Rule"]
    );
    // For a pod of the cluster, the policy does not apply.
    assert_eq!(
        ends(&first, tcp("10.1.1.20:40000", "10.0.0.11:30081"), &from("cbr0")),
        ["1.000 10.1.1.20:40000 > 10.1.2.10:8080 out eth0 via 10.99.0.1"]
    );
    // No endpoints.
    let refused = " reject icmp-port-unreachable";
    for (packet, entry) in [
        (tcp("10.1.2.20:40000", "172.16.1.3:80"), from("cbr0")),
        (tcp("0.0.0.0:40000", "172.16.1.3:80"), Entry::Local),
        (tcp("198.51.100.7:40000", "10.0.0.12:30087"), from("eth0")),
        // A port of a ClusterIP that no Service has.
        (tcp("10.1.2.20:40000", "172.16.1.1:81"), from("cbr0")),
        (tcp("0.0.0.0:40000", "172.16.1.1:81"), Entry::Local),
    ] {
        let ends = ends(&two, packet, &entry);
        assert!(ends.len() == 1 && ends[0].ends_with(refused), "{ends:?}");
    }
    // An address of the ClusterIPs' range that no Service has.
    let unallocated = two.walk(&tcp("10.1.2.20:40000", "172.16.200.1:80"), &from("cbr0"), &[]);
    assert!(matches!(unallocated[0].kind, EndKind::Drop(_)));
    assert_eq!(
        &*unallocated[0].steps.last().unwrap().why,
        "Drop traffic to unallocated ClusterIPs"
    );
    // Source ranges.
    let outsider = two.walk(&tcp("192.0.2.50:40000", "203.0.113.14:80"), &from("eth0"), &[]);
    assert_eq!(
        rules_of(&outsider[0], StepKind::Drop),
        ["ip saddr != { 10.0.0.0/16, 198.51.100.0/24, 203.0.113.14 } drop"]
    );
    assert_eq!(outside(&two, "203.0.113.14:80").len(), 4);
    // The element's comment says which Service a reject is about.
    let gone = two.walk(&tcp("10.1.2.20:40000", "172.16.1.3:80"), &from("cbr0"), &[]);
    assert_eq!(&*gone[0].steps.last().unwrap().why, "shop/noep");
}

#[test]
fn a_load_balancer_address_never_leaves_the_node() {
    let kernel = nft_kernel(2);
    let ends = |to: &str| ends(&kernel, tcp("10.1.2.20:40000", to), &from("cbr0"));
    assert_eq!(ends("203.0.113.10:80").len(), 4);
    let local = ends("203.0.113.11:80");
    assert_eq!(local.len(), 4);
    assert!(local.iter().all(|end| end.contains(" 10.1.2.20:40000 > ")), "{local:?}");
    assert_eq!(
        ends("203.0.113.13:80"),
        ["1.000 10.1.2.20:40000 > 203.0.113.13:80 out eth0 via 10.99.0.1"]
    );
}

#[test]
fn affinity_says_what_it_takes_for_true_and_follows_what_is_there() {
    let request = tcp("10.1.2.20:40000", "172.16.1.14:80");
    let fresh = nft_kernel(2).walk(&request, &from("cbr0"), &[]);
    assert_eq!(fresh.len(), 4);
    assert!(fresh.iter().all(|end| !end.supposed.is_empty() && end.unknown.is_empty()));
    // The client is known: its element is in the dump.
    let mut state = nft_state(2, "nft.txt");
    let table = state.nft.tables.iter_mut().find(|table| table.family == TableFamily::Ip).unwrap();
    let set = table.sets.iter_mut().find(|set| set.name.ends_with("__10.1.3.10/8080")).unwrap();
    set.elements.push(nft::Element::new(Expr::Address("10.1.2.20".parse().unwrap())));
    let kernel = Kernel::new(state).unwrap();
    assert_eq!(
        ends(&kernel, request, &from("cbr0")),
        ["1.000 10.1.2.20:40000 > 10.1.3.10:8080 out eth0 via 10.99.0.1"]
    );
}

#[test]
fn text_and_json_walk_alike() {
    for n in 1..=3 {
        let text = nft_kernel(n);
        let json = Kernel::new(nft_state(n, "nft.json")).unwrap();
        for packet in requests() {
            for entry in [from("cbr0"), from("eth0"), Entry::Local] {
                assert_eq!(ends(&text, packet, &entry), ends(&json, packet, &entry), "{packet:?}");
            }
        }
    }
}

#[test]
fn iptables_and_nftables_of_one_cluster_agree() {
    let mut seen = 0;
    for n in 1..=3 {
        let (iptables, nftables) = (kernel(n), nft_kernel(n));
        for mut packet in requests() {
            for entry in [from("cbr0"), from("eth0"), Entry::Local] {
                if entry == Entry::Local {
                    packet.src = "0.0.0.0".parse().unwrap();
                    // In iptables mode, OUTPUT does not reject packets to external addresses
                    // without endpoints.
                    if ["203.0.113.12", "203.0.113.15"].contains(&&*packet.dst.to_string()) {
                        continue;
                    }
                }
                let ends_of = |kernel: &Kernel| -> Vec<String> {
                    let own = own_address(kernel);
                    let all = ends(kernel, packet, &entry);
                    all.iter().map(|end| end.replace(&own, "own")).collect()
                };
                assert_eq!(ends_of(&nftables), ends_of(&iptables), "n{n} {entry:?} {packet:?}");
                seen += 1;
            }
        }
    }
    assert!(seen > 300, "{seen}");
}

fn own_address(kernel: &Kernel) -> String {
    let eth0 =
        kernel.state().interfaces.iter().find(|interface| &*interface.name == "eth0").unwrap();
    eth0.addresses[0].0.to_string()
}

/// Requests to all ports of the cluster's Services, from a pod, a node and outside.
fn requests() -> Vec<Packet> {
    let ruleset = nft::parse("nft.txt", &read("nftables-n2", "nft.txt")).unwrap();
    let table = ruleset.table(TableFamily::Ip, "kube-proxy").unwrap();
    let mut all = Vec::new();
    for name in ["service-ips", "service-nodeports", "no-endpoint-services"] {
        for element in &table.set(name).unwrap().elements {
            let Expr::Concat(parts) = &element.key else { panic!("{element:?}") };
            let (ip, port) = match parts.as_slice() {
                [Expr::Address(ip), _, Expr::Number(port)] => (*ip, *port),
                [_, Expr::Number(port)] => ("10.0.0.12".parse().unwrap(), *port),
                other => panic!("{other:?}"),
            };
            let udp = parts.contains(&Expr::Word("udp".into()));
            for src in ["10.1.2.20:40000", "198.51.100.7:40000", "10.1.2.10:40000"] {
                let (src, dst) = (src.parse().unwrap(), (ip, port as u16).into());
                all.push(if udp { Packet::udp(src, dst) } else { Packet::tcp(src, dst) });
            }
        }
    }
    all
}

#[test]
fn older_and_newer_versions_are_understood() {
    for version in ["v1.30.14", "v1.33.13", "v1.36.3"] {
        let text = read(&format!("nftables-{version}"), "nft.txt");
        let ruleset = nft::parse("nft.txt", &text).unwrap_or_else(|errors| panic!("{errors:#?}"));
        assert_eq!(ruleset.to_string(), text, "{version}");
        let state = NodeState { nft: ruleset, ..nft_state(2, "nft.txt") };
        let kernel = Kernel::new(state).unwrap_or_else(|errors| panic!("{errors:#?}"));
        let table = kernel.state().nft.table(TableFamily::Ip, "kube-proxy").unwrap();
        let mut seen = 0;
        for element in &table.set("service-ips").unwrap().elements {
            let Expr::Concat(parts) = &element.key else { panic!("{element:?}") };
            let [Expr::Address(ip), Expr::Word(protocol), Expr::Number(port)] = &parts[..] else {
                panic!("{element:?}")
            };
            if &**protocol != "tcp" {
                continue;
            }
            let packet = tcp("10.1.2.20:40000", &format!("{ip}:{port}"));
            let ends = kernel.walk(&packet, &from("cbr0"), &[]);
            assert!(!ends.is_empty());
            for end in ends {
                assert!(end.unknown.is_empty(), "{version}: {:?}", end.unknown);
                let translated = !rules_of(&end, StepKind::Translate).is_empty();
                let refused = !matches!(end.kind, EndKind::Forward | EndKind::Local);
                assert!(translated || refused, "{version} {ip}: {end:?}");
                seen += 1;
            }
        }
        assert!(seen > 20, "{version}: {seen}");
    }
}
