//! What a node sends to say that it refuses a packet, and which rules it meets. Each was measured on a
//! real kernel.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::common::{from, show, small, small_state, tcp};
use uturn_model::{Capture, Family, Protocol};
use uturn_netfilter::ipvs;
use uturn_netfilter::{
    Connection, End, EndKind, Entry, Interface, IpProtocol, Kernel, NodeState, Packet, RejectWith,
    Transport, iptables, nft, routes,
};

const POD: &str = "10.1.0.9:1000";

fn udp(src: &str, dst: &str) -> Packet {
    Packet::new(Protocol::Udp, src.parse().unwrap(), dst.parse().unwrap())
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Of a packet that a rule rejects, what the node sends, and the entry that it belongs to.
fn refused(kernel: &Kernel, packet: Packet, entry: &Entry) -> (Packet, Connection) {
    let end = kernel.walk(&packet, entry, &[]).remove(0);
    let EndKind::Reject(with) = end.kind else { panic!("{}", show(&end)) };
    (end.packet.refusal(with, end.is_for_node), end.connection.unwrap())
}

/// How what the node sends ends there, with these entries.
fn sent(kernel: &Kernel, packet: &Packet, known: &[Connection]) -> End {
    kernel.walk(packet, &Entry::Local, known).remove(0)
}

/// How a pod learns that it was refused by these rules of the table `filter`.
fn told(rules: &str, packet: Packet) -> String {
    let kernel = small(&format!("*filter\n{rules}COMMIT\n"));
    let (packet, known) = refused(&kernel, packet, &from("cbr0"));
    let end = sent(&kernel, &packet, &[known]);
    format!("from {}: {}", end.packet.src, show(&end))
}

#[test]
fn what_a_rule_sends_is_related_on_its_node() {
    let refuse = "-A INPUT -p tcp -m tcp --dport 80 -j REJECT --reject-with tcp-reset\n\
                  -A INPUT -p udp -m udp --dport 80 -j REJECT\n";
    let rules = |state: &str| format!("{refuse}-A OUTPUT -m conntrack --ctstate {state} -j DROP\n");
    let (reset, error) = (tcp(POD, "10.0.0.2:80"), udp(POD, "10.0.0.2:80"));
    for packet in [reset, error] {
        assert!(told(&rules("RELATED"), packet).ends_with("drop Rule"));
        assert!(told(&rules("ESTABLISHED"), packet).ends_with("out cbr0"));
        assert!(told(&rules("NEW,INVALID,UNTRACKED"), packet).ends_with("out cbr0"));
    }
    let flags = format!("{refuse}-A OUTPUT -p tcp -m tcp --tcp-flags RST,ACK RST,ACK -j DROP\n");
    assert!(told(&flags, reset).ends_with("drop Rule"));
    assert!(told(&flags, error).ends_with("out cbr0"));
    let errors = format!("{refuse}-A OUTPUT -p icmp -m icmp --icmp-type 3/3 -j DROP\n");
    assert!(told(&errors, reset).ends_with("out cbr0"));
    assert!(told(&errors, error).ends_with("drop Rule"));
}

#[test]
fn nftables_sees_the_same_state() {
    let text = "table inet t {\n\
                chain in { type filter hook input priority 0; policy accept;\n\
                tcp dport 80 reject with tcp reset\nudp dport 80 reject\n}\n\
                chain out { type filter hook output priority 0; policy accept;\nct state STATE drop\n}\n}\n";
    for (state, is_dropped) in [("related", true), ("established", false), ("new", false)] {
        let nft = nft::parse("nft", &text.replace("STATE", state)).unwrap();
        let kernel = Kernel::new(NodeState { nft, ..small_state("") }).unwrap();
        for packet in [tcp(POD, "10.0.0.2:80"), udp(POD, "10.0.0.2:80")] {
            let (packet, known) = refused(&kernel, packet, &from("cbr0"));
            let kind = sent(&kernel, &packet, &[known]).kind;
            assert_eq!(matches!(kind, EndKind::Drop(_)), is_dropped, "{state}: {kind:?}");
        }
    }
}

#[test]
fn of_a_closed_port_a_reset_is_an_answer_and_an_error_is_related() {
    for (state, stopped) in [("RELATED", [false, true]), ("ESTABLISHED", [true, false])] {
        let kernel =
            small(&format!("*filter\n-A OUTPUT -m conntrack --ctstate {state} -j DROP\nCOMMIT\n"));
        for (packet, is_stopped) in
            [tcp(POD, "10.0.0.2:81"), udp(POD, "10.0.0.2:81")].into_iter().zip(stopped)
        {
            let end = kernel.walk(&packet, &from("cbr0"), &[]).remove(0);
            assert_eq!(end.kind, EndKind::Local);
            let back = end.packet.refusal_of_port();
            let kind = sent(&kernel, &back, &[end.connection.unwrap()]).kind;
            assert_eq!(matches!(kind, EndKind::Drop(_)), is_stopped, "{state}: {back:?}");
        }
    }
    let closed = udp(POD, "10.0.0.2:81").refusal_of_port();
    assert_eq!(closed.protocol(), IpProtocol::ICMP);
    assert_eq!(closed.connection_protocol(), IpProtocol::UDP);
    assert_eq!(closed.transport.ports(), (0, 0));
}

#[test]
fn no_process_sends_a_refusal() {
    // Whether they stop the reset of a rule, and the error of a rule.
    for (rule, stops) in [
        ("-m owner --uid-owner 0", [false, false]),
        ("-m owner ! --uid-owner 0", [true, true]),
        ("-m owner ! --gid-owner 7", [true, true]),
        ("-m owner --socket-exists", [false, true]),
        ("-m owner ! --socket-exists", [true, false]),
    ] {
        let rules = format!(
            "-A INPUT -p tcp -j REJECT --reject-with tcp-reset\n-A INPUT -p udp -j REJECT\n\
             -A OUTPUT {rule} -j DROP\n"
        );
        let packets = [tcp(POD, "10.0.0.2:80"), udp(POD, "10.0.0.2:80")];
        for (packet, is_stopped) in packets.into_iter().zip(stops) {
            let how = told(&rules, packet);
            assert_eq!(how.ends_with("drop Rule"), is_stopped, "{rule}: {how}");
            assert!(how.contains("1.000"), "{how}");
        }
    }
}

#[test]
fn a_rule_for_all_of_tcp_keeps_back_its_own_reset() {
    let call = tcp("10.0.0.2:1000", "10.0.0.2:80");
    for (rule, how) in [
        ("-p tcp -j REJECT --reject-with tcp-reset", "reject tcp-reset"),
        ("-p tcp -m tcp --dport 80 -j REJECT --reject-with tcp-reset", "local"),
        ("-p tcp -j REJECT", "local"),
        ("-j REJECT", "reject icmp-port-unreachable"),
    ] {
        let kernel = small(&format!("*filter\n-A INPUT {rule}\nCOMMIT\n"));
        let (packet, known) = refused(&kernel, call, &Entry::Local);
        let end = sent(&kernel, &packet, &[known]);
        assert!(show(&end).ends_with(how), "{rule}: {}", show(&end));
    }
}

#[test]
fn an_error_has_the_address_that_was_called_if_that_is_the_nodes() {
    assert_eq!(
        told("-A INPUT -j REJECT\n", tcp(POD, "10.0.0.2:80")),
        "from 10.0.0.2: 1.000 10.0.0.2:80 > 10.1.0.9:1000 out cbr0"
    );
}

#[test]
fn an_error_about_what_would_be_forwarded_has_the_nodes_address_towards_the_sender() {
    let rules = "-A FORWARD -j REJECT\n";
    assert_eq!(
        told(rules, tcp(POD, "192.0.2.1:80")),
        "from 10.1.0.1: 1.000 192.0.2.1:80 > 10.1.0.9:1000 out cbr0"
    );
    let kernel = small(&format!("*filter\n{rules}COMMIT\n"));
    let (packet, known) = refused(&kernel, tcp("192.0.2.9:1", "10.1.0.9:80"), &from("eth0"));
    assert_eq!(sent(&kernel, &packet, &[known]).packet.src, ip("10.0.0.2"));
    let reset = "-A FORWARD -p tcp -j REJECT --reject-with tcp-reset\n";
    assert_eq!(
        told(reset, tcp(POD, "192.0.2.1:80")),
        "from 192.0.2.1: 1.000 192.0.2.1:80 > 10.1.0.9:1000 out cbr0"
    );
}

#[test]
fn a_node_tells_its_own_process_from_the_processs_address() {
    let kernel = small("*filter\n-A OUTPUT -p tcp -j REJECT\nCOMMIT\n");
    let (packet, known) = refused(&kernel, tcp("10.0.0.2:1000", "192.0.2.1:80"), &Entry::Local);
    let end = sent(&kernel, &packet, &[known]);
    assert_eq!(end.kind, EndKind::Local);
    assert_eq!((end.packet.src, end.packet.dst), (ip("10.0.0.2"), ip("10.0.0.2")));
    assert_eq!(show(&end), "1.000 192.0.2.1:80 > 10.0.0.2:1000 local");
}

/// A pod calls 10.96.0.1, which means a pod elsewhere; the node refuses to forward it.
fn translated(rules: &str) -> (Kernel, Packet, Connection) {
    let kernel = small(&format!(
        "*nat\n-A PREROUTING -d 10.96.0.1/32 -p tcp -j DNAT --to-destination 10.9.9.9:8080\nCOMMIT\n\
         *filter\n-A FORWARD -p tcp -j REJECT\n{rules}COMMIT\n"
    ));
    let (packet, known) = refused(&kernel, tcp(POD, "10.96.0.1:80"), &from("cbr0"));
    (kernel, packet, known)
}

#[test]
fn undoing_the_translation_gives_an_error_the_address_that_was_called() {
    let (kernel, packet, known) = translated("");
    let end = sent(&kernel, &packet, std::slice::from_ref(&known));
    assert_eq!(end.packet.src, ip("10.96.0.1"));
    assert_eq!(show(&end), "1.000 10.96.0.1:80 > 10.1.0.9:1000 out cbr0");
    // Rules see the address of the node before that.
    for (source, is_dropped) in [("10.1.0.1", true), ("10.96.0.1", false), ("10.9.9.9", false)] {
        let (kernel, packet, known) = translated(&format!("-A OUTPUT -s {source}/32 -j DROP\n"));
        let kind = sent(&kernel, &packet, &[known]).kind;
        assert_eq!(matches!(kind, EndKind::Drop(_)), is_dropped, "{source}: {kind:?}");
    }
}

/// An answer is refused when its destination is translated back, and its source is not yet.
#[test]
fn a_refused_answer_is_told_with_all_translations() {
    let kernel = small(
        "*nat\n-A PREROUTING -d 10.96.0.1/32 -p tcp -j DNAT --to-destination 10.9.9.9:8080\n\
         -A POSTROUTING -o eth0 -j MASQUERADE\nCOMMIT\n\
         *filter\n-A FORWARD -i eth0 -p tcp -j REJECT --reject-with tcp-reset\nCOMMIT\n",
    );
    let out = kernel.walk(&tcp(POD, "10.96.0.1:80"), &from("cbr0"), &[]).remove(0);
    assert_eq!(show(&out), "1.000 10.0.0.2:1000 > 10.9.9.9:8080 out eth0 via 10.0.0.1");
    let known = [out.connection.clone().unwrap()];
    let back = kernel.walk(&out.packet.reply(), &from("eth0"), &known).remove(0);
    assert_eq!(show(&back), "1.000 10.9.9.9:8080 > 10.1.0.9:1000 reject tcp-reset");
    for with in [RejectWith::TcpReset, RejectWith::IcmpHostProhibited] {
        let end = sent(&kernel, &back.packet.refusal(with, back.is_for_node), &known);
        assert_eq!(show(&end), show(&out), "{with}");
        assert_eq!(end.packet.src, ip("10.0.0.2"));
    }
}

#[test]
fn on_the_way_an_error_is_related_and_a_reset_is_an_answer() {
    let translate = "*nat\n-A PREROUTING -d 10.96.0.1/32 -p tcp -j DNAT --to-destination 10.9.9.9:8080\n\
                     -A POSTROUTING -o eth0 -j MASQUERADE\nCOMMIT\n";
    let way = |rule: &str, with: RejectWith| {
        let kernel = small(&format!("{translate}*filter\n{rule}COMMIT\n"));
        let out = kernel.walk(&tcp(POD, "10.96.0.1:80"), &from("cbr0"), &[]).remove(0);
        // Another node, 10.0.0.3, refuses it.
        let mut back = out.packet.refusal(with, false);
        if with != RejectWith::TcpReset {
            assert!(back.src.is_unspecified());
            back.src = ip("10.0.0.3");
        }
        let known = [out.connection.unwrap()];
        let end = kernel.walk(&back, &from("eth0"), &known).remove(0);
        format!("from {}: {}", end.packet.src, show(&end))
    };
    let home = "1.000 10.96.0.1:80 > 10.1.0.9:1000 out cbr0";
    let (error, reset) = (RejectWith::IcmpPortUnreachable, RejectWith::TcpReset);
    for with in [error, reset] {
        assert_eq!(way("", with), format!("from 10.96.0.1: {home}"));
    }
    for (rule, stops) in [
        ("-m conntrack --ctstate RELATED", [true, false]),
        ("-m conntrack --ctstate ESTABLISHED", [false, true]),
        ("-s 10.0.0.3/32", [true, false]),
        ("-s 10.9.9.9/32", [false, true]),
        ("-p tcp -m tcp --sport 8080", [false, true]),
        ("-m conntrack --ctdir REPLY", [true, true]),
    ] {
        for (with, is_stopped) in [error, reset].into_iter().zip(stops) {
            let how = way(&format!("-A FORWARD -i eth0 {rule} -j DROP\n"), with);
            assert_eq!(how.ends_with("drop Rule"), is_stopped, "{rule} {with}: {how}");
        }
    }
}

#[test]
fn an_error_about_no_known_connection_is_invalid() {
    let kernel = small("*filter\n-A FORWARD -m conntrack --ctstate INVALID -j DROP\nCOMMIT\n");
    let back = tcp(POD, "192.0.2.1:80").refusal(RejectWith::IcmpHostProhibited, false);
    let back = Packet { src: ip("192.0.2.7"), ..back };
    assert!(matches!(back.transport, Transport::IcmpError { kind: 3, code: 10, .. }));
    assert!(matches!(kernel.walk(&back, &from("eth0"), &[])[0].kind, EndKind::Drop(_)));
}

#[test]
fn ipvs_gives_an_error_of_a_real_server_the_virtual_address() {
    let mut state = small_state("");
    state.ipvs = ipvs::parse(
        "ipvs",
        "-A -u 203.0.113.1:53 -s rr\n-a -u 203.0.113.1:53 -r 10.1.0.7:5353 -m -w 1\n",
    )
    .unwrap();
    state.interfaces.push(Interface {
        name: "kube-ipvs0".into(),
        addresses: vec![(ip("203.0.113.1"), 32)],
        up: false,
    });
    let kernel = Kernel::new(state).unwrap();
    let out = kernel.walk(&udp("192.0.2.9:1", "203.0.113.1:53"), &from("eth0"), &[]).remove(0);
    assert_eq!(out.packet.dst, ip("10.1.0.7"));
    let back = out.packet.refusal_of_port();
    assert_eq!(back.src, ip("10.1.0.7"));
    let end = kernel.walk(&back, &from("cbr0"), &[out.connection.unwrap()]).remove(0);
    assert_eq!(end.packet.src, ip("203.0.113.1"));
    assert_eq!(show(&end), "1.000 203.0.113.1:53 > 192.0.2.9:1 out eth0 via 10.0.0.1");
}

#[test]
fn an_error_of_ipv6_has_the_address_nearest_to_the_sender() {
    let rules = "*filter\n-A FORWARD -j REJECT\nCOMMIT\n";
    let interface = |name: &str, address: &str| Interface {
        name: name.into(),
        addresses: vec![(ip(address), 64)],
        up: true,
    };
    let mut state = NodeState {
        ip6tables: iptables::parse("rules", rules, Family::V6).unwrap(),
        interfaces: vec![interface("eth0", "fd00:2::5"), interface("cbr0", "fd00:1::1")],
        routes: routes::parse("route", "fd00:1::/64 dev cbr0\ndefault via fe80::99 dev eth0\n")
            .unwrap(),
        ..NodeState::default()
    };
    state.sysctls.set("net.ipv6.conf.all.forwarding", "1");
    let kernel = Kernel::new(state).unwrap();
    let call = tcp("[fd00:1::9]:1000", "[2001:db8::1]:80");
    let (packet, known) = refused(&kernel, call, &from("cbr0"));
    assert_eq!(packet.protocol(), IpProtocol::ICMPV6);
    let end = sent(&kernel, &packet, &[known]);
    assert_eq!((end.packet.src, end.kind), (ip("fd00:1::1"), EndKind::Forward));
}

#[test]
fn a_node_of_unknown_addresses_says_that_it_supposes_the_source() {
    let text = "*filter\n-A FORWARD -j REJECT\nCOMMIT\n";
    let mut state = small_state(text);
    state.interfaces.clear();
    state.routes.clear();
    state.fill_capture_gaps(&Capture { node: "n1".parse().unwrap(), files: BTreeMap::new() });
    let kernel = Kernel::new(state).unwrap();
    let back = tcp(POD, "192.0.2.1:80").refusal(RejectWith::IcmpPortUnreachable, false);
    let ends = kernel.walk(&back, &Entry::Local, &[]);
    let supposes = |end: &End| {
        end.supposed
            .iter()
            .any(|supposed| supposed.subject == "the address that an ICMP error comes from".into())
    };
    assert!(ends.iter().any(supposes), "{ends:#?}");
}
