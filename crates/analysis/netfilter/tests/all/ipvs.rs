//! IPVS: what was measured on a real kernel.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use crate::common;

use crate::common::{ends, from, later, small_state, tcp};
use uturn_model::{Share, StepKind};
use uturn_netfilter::ipvs::{self, Forwarding};
use uturn_netfilter::{
    Connection, EndKind, Entry, Interface, Kernel, NodeState, Packet, Transport, routes,
};

const VIP: &str = "203.0.113.1";
const SERVER: &str = "-A -t 203.0.113.1:80 -s rr\n";

/// The small node with virtual servers, its VIP bound or not, and conntrack entries for IPVS
/// connections.
fn node(servers: &str, bound: bool, rules: &str) -> Kernel {
    Kernel::new(node_state(servers, bound, rules)).unwrap()
}

fn node_state(servers: &str, bound: bool, rules: &str) -> NodeState {
    let mut state = small_state(rules);
    state.ipvs = ipvs::parse("ipvs", servers).unwrap();
    state.sysctls.set("net.ipv4.vs.conntrack", "1");
    if bound {
        state.interfaces.push(Interface {
            name: "kube-ipvs0".into(),
            addresses: vec![(VIP.parse().unwrap(), 32)],
            up: false,
        });
    }
    state
}

fn real(address: &str, rest: &str) -> String {
    format!("-a -t 203.0.113.1:80 -r {address} {rest}\n")
}

fn one_backend() -> String {
    format!("{SERVER}{}", real("10.1.0.7:8080", "-m -w 1"))
}

#[test]
fn measured_vip_not_bound() {
    let kernel = node(&one_backend(), false, "");
    assert_eq!(
        ends(&kernel, tcp("0.0.0.0:1000", "203.0.113.1:80"), &Entry::Local),
        ["1.000 10.0.0.2:1000 > 10.1.0.7:8080 out cbr0"],
        "the host: scheduled on the node, the backend sees the node's address"
    );
    assert_eq!(
        ends(&kernel, tcp("10.1.0.9:1000", "203.0.113.1:80"), &from("cbr0")),
        ["1.000 10.1.0.9:1000 > 203.0.113.1:80 out eth0 via 10.0.0.1"],
        "a pod: leaves the node, forwarded packets are not scheduled"
    );
    let request = &kernel.walk(&tcp("0.0.0.0:1000", "203.0.113.1:80"), &Entry::Local, &[])[0];
    let known = [request.connection.clone().unwrap()];
    assert_eq!(
        later(&kernel, request.packet.reply(), &from("cbr0"), &known),
        ["1.000 203.0.113.1:80 > 10.0.0.2:1000 local"]
    );
}

#[test]
fn measured_vip_bound() {
    let kernel = node(&one_backend(), true, "");
    assert_eq!(
        ends(&kernel, tcp("10.1.0.9:1000", "203.0.113.1:80"), &from("cbr0")),
        ["1.000 10.1.0.9:1000 > 10.1.0.7:8080 out cbr0"],
        "a pod: scheduled on the node, the backend sees the pod"
    );
    let far = format!("{SERVER}{}", real("10.1.5.7:8080", "-m -w 1"));
    assert_eq!(
        ends(&node(&far, true, ""), tcp("0.0.0.0:1000", "203.0.113.1:80"), &Entry::Local),
        ["1.000 203.0.113.1:1000 > 10.1.5.7:8080 out eth0 via 10.0.0.1"],
        "the host: its source is the VIP itself, so a backend elsewhere answers to the VIP"
    );
    assert_eq!(
        ends(&kernel, tcp("203.0.113.1:1000", "203.0.113.1:80"), &from("eth0")),
        ["1.000 203.0.113.1:1000 > 203.0.113.1:80 drop LocalSource"],
        "a probe from the VIP"
    );
    assert_eq!(
        ends(&kernel, tcp("100.64.0.9:1000", "203.0.113.1:80"), &from("eth0")),
        ["1.000 100.64.0.9:1000 > 10.1.0.7:8080 out cbr0"],
        "a probe from elsewhere"
    );
}

#[test]
fn measured_a_backend_that_is_its_own_client() {
    let request = tcp("10.1.0.7:1000", "203.0.113.1:80");
    assert_eq!(
        ends(&node(&one_backend(), true, ""), request, &from("cbr0")),
        ["1.000 10.1.0.7:1000 > 10.1.0.7:8080 out cbr0"],
        "its own address comes back to it"
    );
    let rules = "*nat\n:POSTROUTING ACCEPT [0:0]\n\
                 -A POSTROUTING -m set --match-set LOOP dst,dst,src -j MASQUERADE\nCOMMIT\n";
    let mut state = node_state(&one_backend(), true, rules);
    let sets = "create LOOP hash:ip,port,ip\nadd LOOP 10.1.0.7,tcp:8080,10.1.0.7\n";
    state.sets = uturn_netfilter::ipset::parse("sets", sets).unwrap();
    assert_eq!(
        ends(&Kernel::new(state).unwrap(), request, &from("cbr0")),
        ["1.000 10.1.0.1:1000 > 10.1.0.7:8080 out cbr0"]
    );
}

#[test]
fn measured_nothing_to_answer() {
    let empty = node(SERVER, true, "");
    for (src, entry) in [("10.1.0.9:1", from("cbr0")), ("203.0.113.1:1", Entry::Local)] {
        let with = tcp(if entry == Entry::Local { "0.0.0.0:1" } else { src }, "203.0.113.1:80");
        assert_eq!(
            ends(&empty, with, &entry),
            [format!("1.000 {src} > 203.0.113.1:80 reject icmp-port-unreachable")]
        );
    }
    let weightless = format!("{SERVER}{}", real("10.1.0.7:8080", "-m -w 0"));
    let shown =
        ends(&node(&weightless, true, ""), tcp("10.1.0.9:1", "203.0.113.1:80"), &from("cbr0"));
    assert_eq!(shown, ["1.000 10.1.0.9:1 > 203.0.113.1:80 reject icmp-port-unreachable"]);
    assert_eq!(
        ends(&node(&one_backend(), true, ""), tcp("10.1.0.9:1", "203.0.113.1:81"), &from("cbr0")),
        ["1.000 10.1.0.9:1 > 203.0.113.1:81 local"],
        "no virtual server on that port: the node's own processes are asked"
    );
}

const MASQUERADE: &str = "*nat\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -m mark --mark 1 -j MASQUERADE\nCOMMIT\n\
     *mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j MARK --set-mark 1\nCOMMIT\n";

#[test]
fn without_connection_tracking_nothing_is_masqueraded() {
    let request = tcp("198.51.100.7:1000", "203.0.113.1:80");
    assert_eq!(
        ends(&node(&one_backend(), true, MASQUERADE), request, &from("eth0")),
        ["1.000 10.1.0.1:1000 > 10.1.0.7:8080 out cbr0"]
    );
    let mut state = node_state(&one_backend(), true, MASQUERADE);
    state.sysctls.set("net.ipv4.vs.conntrack", "0");
    let kernel = Kernel::new(state).unwrap();
    let end = &kernel.walk(&request, &from("eth0"), &[])[0];
    assert_eq!(common::show(end), "1.000 198.51.100.7:1000 > 10.1.0.7:8080 out cbr0");
    // IPVS still translates the reply, conntrack does not.
    let known = [end.connection.clone().unwrap()];
    assert!(!known[0].scheduled.as_ref().unwrap().tracked);
    assert_eq!(
        later(&kernel, end.packet.reply(), &from("cbr0"), &known),
        ["1.000 203.0.113.1:80 > 198.51.100.7:1000 out eth0 via 10.0.0.1"]
    );
    let rules = "*filter\n:FORWARD ACCEPT [0:0]\n\
                 -A FORWARD -m conntrack --ctstate INVALID -j DROP\nCOMMIT\n";
    let mut state = node_state(&one_backend(), true, rules);
    state.sysctls.set("net.ipv4.vs.conntrack", "0");
    assert_eq!(
        later(&Kernel::new(state).unwrap(), end.packet.reply(), &from("cbr0"), &known),
        ["1.000 10.1.0.7:8080 > 198.51.100.7:1000 drop Rule"],
        "an answer to nothing, for who tracks connections"
    );
}

#[test]
fn a_scheduled_packet_meets_input_before_and_output_after() {
    let filter = |chain: &str, rule: &str| {
        format!(
            "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n\
             -A {chain} {rule} -j DROP\nCOMMIT\n"
        )
    };
    let (came, goes) = ("-d 203.0.113.1/32", "-d 10.1.0.7/32");
    for (chain, rule, from_pod, from_host) in [
        ("INPUT", came, true, false),
        ("INPUT", goes, false, false),
        ("FORWARD", came, false, false),
        ("FORWARD", goes, false, false),
        ("OUTPUT", came, false, false),
        ("OUTPUT", goes, true, true),
        ("OUTPUT", "-o cbr0", true, true),
        ("OUTPUT", "-o lo", false, false),
        ("OUTPUT", "-m ipvs --ipvs", true, true),
        ("INPUT", "-m ipvs --ipvs", false, false),
        (
            "OUTPUT",
            "-m ipvs --vaddr 203.0.113.1 --vport 80 --vmethod MASQ --vdir ORIGINAL",
            true,
            true,
        ),
        ("OUTPUT", "-m ipvs --vaddr 203.0.113.2", false, false),
        ("OUTPUT", "-m ipvs ! --vaddr 203.0.113.2", true, true),
        ("OUTPUT", "-m ipvs --vmethod GATE", false, false),
        ("OUTPUT", "-m conntrack --ctstate DNAT", false, false),
        ("OUTPUT", "-m conntrack --ctstate NEW", true, true),
    ] {
        let kernel = node(&one_backend(), true, &filter(chain, rule));
        let drops = |packet, entry: &Entry| {
            matches!(kernel.walk(&packet, entry, &[])[0].kind, EndKind::Drop(_))
        };
        let pod = drops(tcp("10.1.0.9:1", "203.0.113.1:80"), &from("cbr0"));
        let host = drops(tcp("0.0.0.0:1", "203.0.113.1:80"), &Entry::Local);
        assert_eq!((pod, host), (from_pod, from_host), "{chain} {rule}");
    }
}

#[test]
fn shares_follow_the_scheduler() {
    let servers = |scheduler: &str| {
        format!(
            "-A -t 203.0.113.1:80 -s {scheduler}\n{}{}{}",
            real("10.1.0.7:8080", "-m -w 3"),
            real("10.1.0.8:8080", "-m -w 1"),
            real("10.1.0.9:8080", "-m -w 0"),
        )
    };
    for (scheduler, share, supposed) in [
        ("rr", 0.5, false),
        ("lc", 0.5, true),
        ("wrr", 0.75, false),
        ("wlc", 0.75, true),
        ("sed", 0.75, true),
        ("nq", 0.75, true),
        ("sh", 0.75, true),
        ("mh", 0.75, true),
        ("dh", 0.5, true),
        ("lblc", 0.75, true),
        ("lblcr", 0.75, true),
        ("fo", 1.0, false),
        ("ovf", 1.0, false),
        ("made-up", 0.5, false),
    ] {
        let kernel = node(&servers(scheduler), true, "");
        let all = kernel.walk(&tcp("10.1.0.20:1", "203.0.113.1:80"), &from("cbr0"), &[]);
        let first = all
            .iter()
            .find(|end| end.packet.dst == "10.1.0.7".parse::<std::net::IpAddr>().unwrap());
        let first = first.unwrap();
        assert!(first.share.is_about(Share::new(share)), "{scheduler}: {}", first.share);
        assert!(Share::add_up_to_all(all.iter().map(|end| end.share)));
        assert!(
            all.iter().all(|end| end.packet.dst != "10.1.0.9".parse::<std::net::IpAddr>().unwrap())
        );
        assert_eq!(!first.supposed.is_empty(), supposed, "{scheduler}");
        assert_eq!(!first.unknown.is_empty(), scheduler == "made-up", "{scheduler}");
        let balanced = first.steps.iter().any(|step| step.kind == StepKind::Balance);
        assert_eq!(balanced, share < 1.0, "{scheduler}");
    }
}

#[test]
fn a_persistent_client_keeps_its_real_server() {
    let servers = format!(
        "-A -t 203.0.113.1:80 -s rr -p 600 -M 255.255.255.0\n{}{}",
        real("10.1.0.7:8080", "-m -w 1"),
        real("10.1.0.8:8080", "-m -w 1"),
    );
    let kernel = node(&servers, true, "");
    let first = kernel.walk(&tcp("198.51.100.7:1", "203.0.113.1:80"), &from("eth0"), &[]);
    assert_eq!(first.len(), 2);
    assert!(
        first[0]
            .supposed
            .iter()
            .any(|assumption| assumption.subject.to_string().starts_with("persistence"))
    );
    for end in &first {
        let known = [end.connection.clone().unwrap()];
        let again = kernel.walk(&tcp("198.51.100.8:2", "203.0.113.1:80"), &from("eth0"), &known);
        assert_eq!(again.len(), 1, "the same prefix is the same client");
        assert_eq!(again[0].packet.dst, end.packet.dst);
        let other = kernel.walk(&tcp("198.51.101.8:2", "203.0.113.1:80"), &from("eth0"), &known);
        assert_eq!(other.len(), 2);
    }
}

#[test]
fn other_ways_to_a_real_server() {
    let request = tcp("198.51.100.7:1000", "203.0.113.1:80");
    let to =
        |address: &str, rest: &str| node(&format!("{SERVER}{}", real(address, rest)), true, "");
    assert_eq!(
        ends(&to("10.1.0.7:80", "-g"), request, &from("eth0")),
        ["1.000 198.51.100.7:1000 > 203.0.113.1:80 out cbr0 via 10.1.0.7"]
    );
    let kernel = to("10.1.0.7:80", "-i");
    let end = &kernel.walk(&request, &from("eth0"), &[])[0];
    assert_eq!(common::show(end), "1.000 198.51.100.7:1000 > 203.0.113.1:80 out cbr0 via 10.1.0.7");
    assert_eq!(end.supposed[0].subject, "the packet around one in a tunnel".into());
    assert_eq!(
        end.connection.as_ref().unwrap().scheduled.as_ref().unwrap().method,
        Forwarding::Tunnel
    );
    // A real server on the node itself.
    assert_eq!(
        ends(&to("10.0.0.2:8080", "-m"), request, &from("eth0")),
        ["1.000 198.51.100.7:1000 > 10.0.0.2:8080 local"]
    );
    let kernel = to("10.0.0.2:8080", "-m");
    assert_eq!(
        ends(&kernel, tcp("0.0.0.0:1000", "203.0.113.1:80"), &Entry::Local),
        ["1.000 203.0.113.1:1000 > 10.0.0.2:8080 local"]
    );
    let there = &kernel.walk(&request, &from("eth0"), &[])[0];
    let known = [there.connection.clone().unwrap()];
    assert_eq!(
        later(&kernel, there.packet.reply(), &Entry::Local, &known),
        ["1.000 203.0.113.1:80 > 198.51.100.7:1000 out eth0 via 10.0.0.1"]
    );
    // A packet from loopback may not leave.
    assert_eq!(
        ends(&to("10.1.0.7:8080", "-m"), tcp("127.0.0.1:1", "203.0.113.1:80"), &Entry::Local),
        ["1.000 127.0.0.1:1 > 10.1.0.7:8080 drop MartianSource"]
    );
    assert_eq!(
        ends(&to("10.200.0.7:8080", "-m"), request, &from("eth0")),
        ["1.000 198.51.100.7:1000 > 10.200.0.7:8080 out eth0 via 10.0.0.1"]
    );
}

#[test]
fn a_mark_calls_a_virtual_server() {
    let servers = "-A -f 7 -s rr\n-a -f 7 -r 10.1.0.7:0 -m\n";
    let rules =
        "*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p udp -j MARK --set-mark 7\nCOMMIT\n";
    let kernel = node(servers, true, rules);
    let udp = Packet::udp("198.51.100.7:5".parse().unwrap(), "203.0.113.1:53".parse().unwrap());
    assert_eq!(
        ends(&kernel, udp, &from("eth0")),
        ["1.000 198.51.100.7:5 > 10.1.0.7:53 out cbr0"],
        "with the packet's own port"
    );
    assert_eq!(
        ends(&kernel, tcp("198.51.100.7:5", "203.0.113.1:53"), &from("eth0")),
        ["1.000 198.51.100.7:5 > 203.0.113.1:53 local"]
    );
}

#[test]
fn only_the_first_packet_of_a_connection_is_scheduled() {
    let kernel = node(&one_backend(), true, "");
    let mut packet = tcp("10.1.0.9:1000", "203.0.113.1:80");
    packet.transport = Transport::Tcp { src_port: 1000, dst_port: 80, syn: false, ack: true };
    assert_eq!(
        ends(&kernel, packet, &from("cbr0")),
        ["1.000 10.1.0.9:1000 > 203.0.113.1:80 local"],
        "the middle of an unknown connection: the node answers with a reset"
    );
    let unrelated = Connection::untranslated(&tcp("10.1.0.9:9", "10.9.9.9:9"));
    assert_eq!(
        later(&kernel, tcp("10.1.0.9:1000", "203.0.113.1:80"), &from("cbr0"), &[unrelated]),
        ["1.000 10.1.0.9:1000 > 10.1.0.7:8080 out cbr0"]
    );
}

#[test]
fn a_rule_that_translates_to_a_virtual_address_comes_first() {
    let rules = "*nat\n:OUTPUT ACCEPT [0:0]\n\
                 -A OUTPUT -d 10.9.9.9/32 -p tcp -m tcp --dport 1 -j DNAT --to-destination 203.0.113.1:80\nCOMMIT\n";
    let kernel = node(&one_backend(), false, rules);
    let end = &kernel.walk(&tcp("10.0.0.2:1000", "10.9.9.9:1"), &Entry::Local, &[])[0];
    assert_eq!(common::show(end), "1.000 10.0.0.2:1000 > 10.1.0.7:8080 out cbr0");
    let known = [end.connection.clone().unwrap()];
    assert!(known[0].destination_translated());
    assert_eq!(
        later(&kernel, end.packet.reply(), &from("cbr0"), &known),
        ["1.000 10.9.9.9:1 > 10.0.0.2:1000 local"]
    );
}

#[test]
fn version_six_is_the_same() {
    let servers = "-A -t [fd00:9::1]:80 -s rr\n-a -t [fd00:9::1]:80 -r [fd00:1::7]:8080 -m\n";
    let mut state = node_state(servers, false, "");
    state.routes.extend(
        routes::parse(
            "route",
            "fd00:1::/64 dev cbr0 pref medium\ndefault via fe80::1 dev eth0 pref medium\n",
        )
        .unwrap(),
    );
    state.interfaces[1].addresses.push(("fd00::2".parse().unwrap(), 64));
    state.interfaces.push(Interface {
        name: "kube-ipvs0".into(),
        addresses: vec![("fd00:9::1".parse().unwrap(), 128)],
        up: false,
    });
    let kernel = Kernel::new(state).unwrap();
    assert_eq!(
        ends(&kernel, tcp("[fd00:1::9]:1", "[fd00:9::1]:80"), &from("cbr0")),
        ["1.000 [fd00:1::9]:1 > [fd00:1::7]:8080 out cbr0"]
    );
}

#[test]
fn connections_out_of_a_list_are_known_as_scheduled() {
    let list = "tcp 6 99 ESTABLISHED src=198.51.100.7 dst=203.0.113.1 sport=1000 dport=80 \
                src=10.1.0.7 dst=10.1.0.1 sport=8080 dport=1000 [ASSURED] mark=0 use=1\n";
    let mut known = uturn_netfilter::conntrack::parse("conntrack", list).unwrap();
    let kernel = node(&one_backend(), true, MASQUERADE);
    kernel.state().ipvs.recognize(&mut known);
    let request = tcp("198.51.100.7:1000", "203.0.113.1:80");
    let there = kernel.walk(&request, &from("eth0"), &[]);
    assert_eq!(
        Some(&known[0].scheduled),
        there[0].connection.as_ref().map(|connection| &connection.scheduled)
    );
    assert_eq!(
        later(&kernel, tcp("10.1.0.7:8080", "10.1.0.1:1000"), &from("cbr0"), &known),
        ["1.000 203.0.113.1:80 > 198.51.100.7:1000 out eth0 via 10.0.0.1"]
    );
}
