//! Dumps of real nodes: parsed, printed back unchanged, and walked, with results worked out by
//! hand from the rules.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use crate::common::{ends, from, kernel, later, read, rules_of, state, tcp};
use uturn_model::{Family, StepKind};
use uturn_netfilter::{EndKind, Entry, Kernel, Packet, Transport, iptables};

const NODES: [&str; 3] = ["iptables-n1", "iptables-n2", "iptables-n3"];

#[test]
fn rules_print_back_to_the_letter() {
    for node in NODES {
        for (file, family) in [("iptables.save", Family::V4), ("ip6tables.save", Family::V6)] {
            let text = read(node, file);
            let ruleset = iptables::parse(file, &text, family)
                .unwrap_or_else(|errors| panic!("{node}: {errors:#?}"));
            let printed = ruleset.to_string();
            let without_remarks: Vec<&str> =
                text.lines().filter(|line| !line.starts_with('#')).collect();
            assert_eq!(printed.lines().collect::<Vec<_>>(), without_remarks, "{node}/{file}");
            assert_eq!(iptables::parse("printed", &printed, family).unwrap(), ruleset);
        }
    }
}

#[test]
fn a_cluster_ip_is_spread_over_its_endpoints() {
    let kernel = kernel(2);
    assert_eq!(
        ends(&kernel, tcp("10.1.2.20:40000", "172.16.1.1:80"), &from("cbr0")),
        [
            "0.250 10.1.2.20:40000 > 10.1.1.10:8080 out eth0 via 10.99.0.1",
            "0.250 10.1.2.20:40000 > 10.1.1.11:8080 out eth0 via 10.99.0.1",
            "0.250 10.1.2.20:40000 > 10.1.2.10:8080 out cbr0",
            "0.250 10.1.2.20:40000 > 10.1.3.10:8080 out eth0 via 10.99.0.1",
        ]
    );
    let ends = kernel.walk(&tcp("10.1.2.20:40000", "172.16.1.1:80"), &from("cbr0"), &[]);
    let local = ends.iter().find(|end| end.out.as_deref() == Some("cbr0")).unwrap();
    assert_eq!(
        rules_of(local, StepKind::Translate),
        [
            "-A KUBE-SEP-RGPRWSUSUCR5VW7S -p tcp -m comment --comment \"shop/clusterip\" -m tcp -j DNAT --to-destination 10.1.2.10:8080"
        ]
    );
    let balance = local.steps.iter().find(|step| step.kind == StepKind::Balance).unwrap();
    assert_eq!(&*balance.why, "shop/clusterip -> 10.1.2.10:8080: picked one time in 4");
    let source =
        &local.steps.iter().find(|step| step.kind == StepKind::Translate).unwrap().by.origin();
    let text = read("iptables-n2", "iptables.save");
    let line = text.lines().nth(source.line() as usize - 1).unwrap();
    assert_eq!(line, rules_of(local, StepKind::Translate)[0], "the origin names the rule's line");
}

#[test]
fn a_client_that_is_its_own_endpoint_is_masqueraded() {
    let kernel = kernel(2);
    assert_eq!(
        ends(&kernel, tcp("10.1.2.10:40000", "172.16.1.5:80"), &from("cbr0")),
        ["1.000 10.1.2.1:40000 > 10.1.2.10:8080 out cbr0"]
    );
}

#[test]
fn a_node_port_from_outside_is_masqueraded_and_the_answer_finds_back() {
    let kernel = kernel(2);
    let request = tcp("198.51.100.7:40000", "10.0.0.12:30080");
    assert_eq!(
        ends(&kernel, request, &from("eth0")),
        [
            "0.250 10.1.2.1:40000 > 10.1.2.10:8080 out cbr0",
            "0.250 10.99.0.27:40000 > 10.1.1.10:8080 out eth0 via 10.99.0.1",
            "0.250 10.99.0.27:40000 > 10.1.1.11:8080 out eth0 via 10.99.0.1",
            "0.250 10.99.0.27:40000 > 10.1.3.10:8080 out eth0 via 10.99.0.1",
        ]
    );
    for (end, device) in [("10.1.2.10:8080", "cbr0"), ("10.1.3.10:8080", "eth0")] {
        let ends = kernel.walk(&request, &from("eth0"), &[]);
        let there = ends.iter().find(|seen| seen.packet.leg().dst == end.parse().unwrap()).unwrap();
        let known = [there.connection.clone().unwrap()];
        assert_eq!(
            later(&kernel, there.packet.reply(), &from(device), &known),
            ["1.000 10.0.0.12:30080 > 198.51.100.7:40000 out eth0 via 10.99.0.1"]
        );
        let back = &kernel.walk(&there.packet.reply(), &from(device), &known)[0];
        assert_eq!(rules_of(back, StepKind::Untranslate).len(), 2, "destination, then source");
        assert!(rules_of(back, StepKind::Translate).is_empty());
    }
}

#[test]
fn later_packets_of_a_connection_meet_no_nat_rule() {
    let kernel = kernel(2);
    let request = tcp("10.1.2.20:40000", "172.16.1.1:80");
    for end in kernel.walk(&request, &from("cbr0"), &[]) {
        let mut next = request;
        if let Transport::Tcp { syn, ack, .. } = &mut next.transport {
            (*syn, *ack) = (false, true);
        }
        let again = kernel.walk(&next, &from("cbr0"), &[end.connection.clone().unwrap()]);
        assert_eq!(again.len(), 1);
        assert_eq!(again[0].packet.leg(), end.packet.leg());
        assert_eq!(again[0].connection, end.connection);
    }
}

#[test]
fn a_local_policy_keeps_the_source_or_drops() {
    let request = tcp("198.51.100.7:40000", "10.0.0.12:30081");
    assert_eq!(
        ends(&kernel(2), request, &from("eth0")),
        ["1.000 198.51.100.7:40000 > 10.1.2.10:8080 out cbr0"]
    );
    let request = tcp("198.51.100.7:40000", "10.0.0.11:30081");
    assert_eq!(
        ends(&kernel(1), request, &from("eth0")),
        ["1.000 198.51.100.7:40000 > 10.0.0.11:30081 drop Rule"]
    );
    // For a pod of the cluster, the policy does not apply.
    assert_eq!(
        ends(&kernel(1), tcp("10.1.1.20:40000", "10.0.0.11:30081"), &from("cbr0")),
        ["1.000 10.1.1.20:40000 > 10.1.2.10:8080 out eth0 via 10.99.0.1"]
    );
}

#[test]
fn without_endpoints_it_is_refused() {
    let kernel = kernel(2);
    for (packet, entry) in [
        (tcp("10.1.2.20:40000", "172.16.1.3:80"), from("cbr0")),
        (tcp("0.0.0.0:40000", "172.16.1.3:80"), Entry::Local),
        (tcp("198.51.100.7:40000", "10.0.0.12:30087"), from("eth0")),
    ] {
        let ends = kernel.walk(&packet, &entry, &[]);
        assert_eq!(ends.len(), 1);
        assert!(
            matches!(ends[0].kind, EndKind::Reject(with) if with.as_str() == "icmp-port-unreachable")
        );
        assert!(rules_of(&ends[0], StepKind::Reject)[0].contains("has no endpoints"));
        let known = ends[0].connection.as_ref().map(|connection| connection.original.dst);
        assert_eq!(known, Some(packet.leg().dst), "an answer could be translated back");
    }
}

#[test]
fn a_load_balancer_address_never_leaves_the_node() {
    let kernel = kernel(2);
    assert_eq!(
        ends(&kernel, tcp("10.1.2.20:40000", "203.0.113.10:80"), &from("cbr0")),
        [
            "0.250 10.1.2.1:40000 > 10.1.2.10:8080 out cbr0",
            "0.250 10.99.0.27:40000 > 10.1.1.10:8080 out eth0 via 10.99.0.1",
            "0.250 10.99.0.27:40000 > 10.1.1.11:8080 out eth0 via 10.99.0.1",
            "0.250 10.99.0.27:40000 > 10.1.3.10:8080 out eth0 via 10.99.0.1",
        ]
    );
    // Policy Local: a pod is served as by the ClusterIP, with its own address.
    let local = ends(&kernel, tcp("10.1.2.20:40000", "203.0.113.11:80"), &from("cbr0"));
    assert_eq!(local.len(), 4);
    assert!(local.iter().all(|end| end.contains(" 10.1.2.20:40000 > ")), "{local:?}");
    // ipMode Proxy: no node has the address, so the packet leaves unchanged.
    assert_eq!(
        ends(&kernel, tcp("10.1.2.20:40000", "203.0.113.13:80"), &from("cbr0")),
        ["1.000 10.1.2.20:40000 > 203.0.113.13:80 out eth0 via 10.99.0.1"]
    );
}

#[test]
fn source_ranges_let_only_theirs_in() {
    let kernel = kernel(2);
    let outsider = kernel.walk(&tcp("192.0.2.50:40000", "203.0.113.14:80"), &from("eth0"), &[]);
    assert_eq!(outsider.len(), 1);
    assert!(matches!(outsider[0].kind, EndKind::Drop(_)));
    assert!(rules_of(&outsider[0], StepKind::Drop)[0].starts_with("-A KUBE-PROXY-FIREWALL "));
    let friend = ends(&kernel, tcp("198.51.100.9:40000", "203.0.113.14:80"), &from("eth0"));
    assert_eq!(friend.len(), 4);
    assert!(friend.iter().all(|end| end.contains(":8080 out ")), "{friend:?}");
}

#[test]
fn a_process_of_the_node_gets_the_address_of_its_way() {
    let kernel = kernel(2);
    // Sent with the uplink's address; masqueraded for the interface it finally uses.
    assert_eq!(
        ends(&kernel, tcp("0.0.0.0:40000", "172.16.1.5:80"), &Entry::Local),
        ["1.000 10.1.2.1:40000 > 10.1.2.10:8080 out cbr0"]
    );
    let end = &kernel.walk(&tcp("0.0.0.0:40000", "172.16.1.5:80"), &Entry::Local, &[])[0];
    assert_eq!(end.connection.as_ref().unwrap().original.src, "10.99.0.27:40000".parse().unwrap());
    let known = [end.connection.clone().unwrap()];
    assert_eq!(
        later(&kernel, end.packet.reply(), &from("cbr0"), &known),
        ["1.000 172.16.1.5:80 > 10.99.0.27:40000 local"]
    );
}

#[test]
fn an_answer_to_nothing_is_invalid() {
    let kernel = kernel(2);
    let answer = tcp("10.1.2.20:40000", "10.1.3.10:8080").reply();
    let ends = kernel.walk(&answer, &from("eth0"), &[]);
    assert!(rules_of(&ends[0], StepKind::Drop)[0].contains("--ctstate INVALID"));
}

#[test]
fn the_own_address_as_a_source_is_dropped() {
    let packet = tcp("10.0.0.12:40000", "10.0.0.12:30080");
    assert_eq!(
        ends(&kernel(2), packet, &from("eth0")),
        [
            "0.250 10.0.0.12:40000 > 10.1.1.10:8080 drop LocalSource",
            "0.250 10.0.0.12:40000 > 10.1.1.11:8080 drop LocalSource",
            "0.250 10.0.0.12:40000 > 10.1.2.10:8080 drop LocalSource",
            "0.250 10.0.0.12:40000 > 10.1.3.10:8080 drop LocalSource",
        ]
    );
    let mut state = state(2);
    state.sysctls.set("net.ipv4.conf.eth0.accept_local", "1");
    let kernel = Kernel::new(state).unwrap();
    let let_in = ends(&kernel, packet, &from("eth0"));
    assert!(let_in.iter().all(|end| !end.contains("drop")), "{let_in:?}");
}

#[test]
fn a_pod_that_comes_back_from_outside_meets_the_reverse_path_filter() {
    let packet = tcp("10.1.2.20:40000", "10.0.0.12:30081");
    for (setting, dropped) in [("0", false), ("1", true), ("2", false)] {
        let mut state = state(2);
        state.sysctls.set("net.ipv4.conf.eth0.rp_filter", setting);
        let kernel = Kernel::new(state).unwrap();
        for end in ends(&kernel, packet, &from("eth0")) {
            assert_eq!(
                end.contains("drop ReversePathFilter"),
                dropped,
                "rp_filter={setting}: {end}"
            );
        }
    }
}

#[test]
fn affinity_says_what_it_takes_for_true() {
    let kernel = kernel(2);
    let text = read("iptables-n2", "iptables.save");
    let line = text.lines().find(|line| line.contains("shop/affinity cluster IP")).unwrap();
    let ip = line.split(" -d ").nth(1).unwrap().split('/').next().unwrap();
    let ends = kernel.walk(&tcp("10.1.2.20:40000", &format!("{ip}:80")), &from("cbr0"), &[]);
    assert!(ends.len() > 1);
    assert!(ends.iter().all(|end| !end.supposed.is_empty() && end.unknown.is_empty()));
}

#[test]
fn udp_is_spread_too() {
    let kernel = kernel(2);
    let packet = Packet::udp("10.1.2.20:40000".parse().unwrap(), "172.16.1.2:53".parse().unwrap());
    assert_eq!(ends(&kernel, packet, &from("cbr0")).len(), 4);
}

#[test]
fn a_node_that_does_not_forward_says_so() {
    let mut state = state(2);
    state.sysctls.set("net.ipv4.ip_forward", "0");
    let kernel = Kernel::new(state).unwrap();
    assert_eq!(
        ends(&kernel, tcp("10.1.2.20:40000", "10.1.3.10:8080"), &from("cbr0")),
        ["1.000 10.1.2.20:40000 > 10.1.3.10:8080 drop NotForwarding"]
    );
}
