//! Semantics of rules, on a small node with a pod bridge and an uplink.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use crate::common::{ends, from, later, rules_of, show, small, small_state, tcp};
use uturn_model::{Family, Share, StepKind};
use uturn_netfilter::{
    EndKind, Entry, Kernel, NodeState, Packet, Transport, addr, iptables, policy_rules, routes,
};

const OUT: &str = "1.000 10.1.0.9:1000 > 10.9.9.9:80 out eth0 via 10.0.0.1";

/// The ends of a packet from a pod to another host, under these rules of the table `filter`.
fn forwarded(rules: &str) -> Vec<String> {
    let text = format!(
        "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n{rules}COMMIT\n"
    );
    ends(&small(&text), tcp("10.1.0.9:1000", "10.9.9.9:80"), &from("cbr0"))
}

fn passes(rule: &str) -> bool {
    forwarded(&format!("-A FORWARD {rule} -j ACCEPT\n-A FORWARD -j DROP\n")) == [OUT]
}

#[test]
fn a_nested_call_returns_to_its_caller() {
    let chains = ":A - [0:0]\n:B - [0:0]\n";
    let rules = "-A FORWARD -j A\n-A FORWARD -j REJECT\n-A A -j B\n-A A -j ACCEPT\n-A B -j RETURN\n-A B -j DROP\n";
    assert_eq!(forwarded(&format!("{chains}{rules}")), [OUT]);
}

#[test]
fn a_goto_does_not_come_back_to_its_chain() {
    let chains = ":A - [0:0]\n:B - [0:0]\n";
    let rules =
        "-A FORWARD -j A\n-A FORWARD -j ACCEPT\n-A A -g B\n-A A -j DROP\n-A B -p udp -j DROP\n";
    assert_eq!(forwarded(&format!("{chains}{rules}")), [OUT]);
    let from_base = ":B - [0:0]\n-A FORWARD -g B\n-A FORWARD -j DROP\n-A B -p udp -j DROP\n";
    assert_eq!(forwarded(from_base), [OUT], "a goto from a built-in chain ends at its policy");
}

#[test]
fn a_mark_does_not_end_the_way_through_a_table() {
    let rules = "-A FORWARD -j MARK --set-xmark 0x4000/0x4000\n-A FORWARD -m mark --mark 0x4000/0x4000 -j DROP\n";
    assert_eq!(forwarded(rules), ["1.000 10.1.0.9:1000 > 10.9.9.9:80 drop Rule"]);
}

#[test]
fn marks_are_set_as_the_kernel_does() {
    for (options, mark) in [
        ("--set-xmark 0x0f/0xff", 0x120f),
        ("--set-mark 0x1", 0x1),
        ("--and-mark 0xff", 0x34),
        ("--or-mark 0x8001", 0x9235),
        ("--xor-mark 0x4000", 0x5234),
    ] {
        let text = format!(
            "*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j MARK --set-xmark 0x1234/0xffffffff\n\
             -A PREROUTING -j MARK {options}\nCOMMIT\n"
        );
        let end = &small(&text).walk(&tcp("10.1.0.9:1", "10.9.9.9:80"), &from("cbr0"), &[])[0];
        assert_eq!(end.packet.mark, mark, "{options}");
    }
}

#[test]
fn a_policy_decides_at_the_end() {
    let text = "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -p udp -j ACCEPT\nCOMMIT\n";
    let end = &small(text).walk(&tcp("10.1.0.9:1000", "10.9.9.9:80"), &from("cbr0"), &[])[0];
    assert_eq!(show(end), "1.000 10.1.0.9:1000 > 10.9.9.9:80 drop Policy");
    assert_eq!(rules_of(end, StepKind::Drop), [":FORWARD DROP"]);
}

#[test]
fn matches_and_their_opposites() {
    for yes in [
        "-s 10.1.0.0/16",
        "! -s 10.2.0.0/16",
        "-d 10.9.9.9",
        "-s 10.0.0.9/255.0.0.255",
        "-i cbr0",
        "-i cbr+",
        "-i +",
        "! -i eth+",
        "-o eth0",
        "! -o cbr0",
        "-p tcp",
        "! -p udp",
        "! -f",
        "-p tcp -m tcp --dport 80",
        "-p tcp -m tcp --dport 80:90",
        "-p tcp -m tcp ! --dport 81",
        "-p tcp -m tcp --sport 1000",
        "-p tcp --dport 80",
        "-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN",
        "-p tcp -m tcp --syn",
        "-p tcp -m multiport --dports 79,80,100:200",
        "-p tcp -m multiport ! --dports 81,82",
        "-p tcp -m multiport --ports 1000",
        "-m conntrack --ctstate NEW",
        "-m conntrack --ctstate NEW,INVALID",
        "-m conntrack ! --ctstate RELATED,ESTABLISHED",
        "-m conntrack ! --ctstate DNAT",
        "-m conntrack --ctdir ORIGINAL",
        "-m conntrack ! --ctstatus CONFIRMED",
        "-m conntrack ! --ctstatus NONE",
        "-m state --state NEW",
        "-m addrtype --dst-type UNICAST",
        "-m addrtype ! --dst-type LOCAL",
        "-m addrtype ! --src-type LOCAL",
        "-m mark --mark 0x0/0x4000",
        "-m mark ! --mark 0x4000/0x4000",
        "-m connmark --mark 0x0",
        "-m iprange --src-range 10.1.0.5-10.1.0.20",
        "-m iprange ! --dst-range 10.1.0.5-10.1.0.20",
        "-m recent --set --name x --mask 255.255.255.255 --rsource",
        "-m recent ! --rcheck --name x --mask 255.255.255.255 --rsource",
        "-m nfacct --nfacct-name x",
        "-m comment --comment \"a word or two\"",
        "-m statistic --mode random --probability 1",
    ] {
        assert!(passes(yes), "{yes}");
    }
    for no in [
        "! -s 10.1.0.0/16",
        "! -d 10.9.9.9",
        "-i eth0",
        "-i cbr",
        "! -o eth+",
        "-p udp",
        "-f",
        "-p tcp -m tcp --dport 81",
        "-p tcp -m tcp ! --dport 80",
        "-p tcp -m tcp ! --tcp-flags FIN,SYN,RST,ACK SYN",
        "-p tcp -m multiport --sports 80",
        "-m conntrack --ctstate INVALID",
        "-m conntrack --ctstate RELATED,ESTABLISHED",
        "-m conntrack --ctstate DNAT,SNAT",
        "-m conntrack --ctdir REPLY",
        "-m conntrack --ctstatus CONFIRMED,SEEN_REPLY",
        "-m conntrack --ctstatus NONE",
        "-m state --state INVALID",
        "-m addrtype --dst-type LOCAL",
        "-m addrtype ! --dst-type UNICAST",
        "-m mark --mark 0x4000/0x4000",
        "-m recent --rcheck --seconds 10800 --reap --name x --mask 255.255.255.255 --rsource",
        "-m statistic --mode random --probability 0",
        "-p icmp -m icmp --icmp-type 8",
    ] {
        assert!(!passes(no), "{no}");
    }
}

#[test]
fn the_first_packet_of_a_translated_connection_shows_it() {
    let text = "*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p tcp -j DNAT --to-destination 10.9.9.9:80\nCOMMIT\n\
                *filter\n:FORWARD DROP [0:0]\n-A FORWARD -m conntrack --ctstate DNAT -j ACCEPT\nCOMMIT\n";
    assert_eq!(ends(&small(text), tcp("10.1.0.9:1000", "10.5.5.5:81"), &from("cbr0")), [OUT]);
}

#[test]
fn odds_split_and_add_up() {
    let rules = "-A FORWARD -m statistic --mode random --probability 0.25 -j DROP\n\
                 -A FORWARD -m statistic --mode nth --every 3 --packet 0 -j REJECT\n";
    assert_eq!(
        forwarded(rules),
        [
            "0.250 10.1.0.9:1000 > 10.9.9.9:80 drop Rule",
            "0.250 10.1.0.9:1000 > 10.9.9.9:80 reject icmp-port-unreachable",
            "0.500 10.1.0.9:1000 > 10.9.9.9:80 out eth0 via 10.0.0.1",
        ]
    );
}

#[test]
fn what_nobody_models_is_walked_both_ways_and_named() {
    let text = "*filter\n:FORWARD ACCEPT [0:0]\n\
                -A FORWARD -m osf --genre BAD --ttl 1 -m tcp --dport 80 -j DROP\n\
                -A FORWARD -m osf --genre BAD --ttl 1 -j REJECT\nCOMMIT\n";
    let kernel = small(text);
    let all = kernel.walk(&tcp("10.1.0.9:1000", "10.9.9.9:80"), &from("cbr0"), &[]);
    let mut shown: Vec<String> = all.iter().map(show).collect();
    shown.sort();
    assert_eq!(
        shown,
        [
            "0.500 10.1.0.9:1000 > 10.9.9.9:80 drop Rule",
            "0.500 10.1.0.9:1000 > 10.9.9.9:80 out eth0 via 10.0.0.1",
        ],
        "what was taken for true of a match holds for its twin"
    );
    for end in &all {
        assert_eq!(end.unknown.len(), 1);
        assert_eq!(rules_of(end, StepKind::Unknown)[0], end.unknown[0].rule().to_string());
        assert!(end.unknown[0].rule().contains("--genre BAD"), "{:?}", end.unknown);
    }
    // If another match does not agree, nothing is unknown.
    let udp = Packet::udp("10.1.0.9:1000".parse().unwrap(), "10.9.9.9:80".parse().unwrap());
    let text = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -m osf --genre BAD --ttl 1 -j DROP\nCOMMIT\n";
    assert!(small(text).walk(&udp, &from("cbr0"), &[])[0].unknown.is_empty());
}

#[test]
fn a_target_that_is_not_modelled_is_walked_both_ways() {
    let shown = forwarded("-A FORWARD -j NFQUEUE --queue-num 1\n");
    assert_eq!(
        shown,
        [
            "0.500 10.1.0.9:1000 > 10.9.9.9:80 drop Rule",
            "0.500 10.1.0.9:1000 > 10.9.9.9:80 out eth0 via 10.0.0.1",
        ]
    );
    assert_eq!(forwarded("-A FORWARD -j TCPMSS --clamp-mss-to-pmtu\n"), [OUT]);
    assert_eq!(
        forwarded("-A FORWARD -j LOG --log-prefix \"seen: \"\n-A FORWARD -j TRACE\n"),
        [OUT]
    );
}

#[test]
fn too_many_open_questions_end_unsettled() {
    let mut rules = String::new();
    for i in 0..20 {
        rules.push_str(&format!(
            "-A FORWARD -m osf --genre S{i} --ttl 1 -j MARK --set-xmark {i:#x}/0xff\n"
        ));
    }
    let text = format!("*filter\n:FORWARD ACCEPT [0:0]\n{rules}COMMIT\n");
    let all = small(&text).walk(&tcp("10.1.0.9:1000", "10.9.9.9:80"), &from("cbr0"), &[]);
    assert!(all.len() < 10_000);
    assert!(all.iter().any(|end| end.kind == EndKind::Unsettled));
    assert!(Share::add_up_to_all(all.iter().map(|end| end.share)));
}

#[test]
fn a_maze_of_chains_is_given_up() {
    let mut text = "*filter\n:FORWARD ACCEPT [0:0]\n".to_owned();
    for i in 0..=40 {
        text.push_str(&format!(":C{i} - [0:0]\n"));
    }
    text.push_str("-A FORWARD -j C0\n");
    for i in 0..40 {
        text.push_str(&format!("-A C{i} -j C{next}\n-A C{i} -j C{next}\n", next = i + 1));
    }
    text.push_str("COMMIT\n");
    let end = &small(&text).walk(&tcp("10.1.0.9:1000", "10.9.9.9:80"), &from("cbr0"), &[])[0];
    assert_eq!(end.kind, EndKind::Unsettled);
    assert_eq!(end.unknown.len(), 1);
}

#[test]
fn an_index_finds_what_a_list_would() {
    let mut rules = String::new();
    for i in 0..40 {
        rules.push_str(&format!("-A FORWARD -d 10.8.0.{i}/32 -p tcp -m tcp --dport 80 -j DROP\n"));
        rules.push_str(&format!("-A FORWARD -p tcp -m tcp --dport {} -j REJECT\n", 8000 + i));
    }
    rules.push_str("-A FORWARD -d 10.9.9.9/32 -j MARK --set-xmark 0x1/0x1\n");
    rules.push_str("-A FORWARD -p tcp -m tcp --dport 80 -m mark --mark 0x1/0x1 -j RETURN\n");
    rules.push_str("-A FORWARD -s 10.1.0.0/16 -j DROP\n");
    assert_eq!(forwarded(&rules), [OUT]);
    let text = format!("*filter\n:FORWARD ACCEPT [0:0]\n{rules}COMMIT\n");
    let kernel = small(&text);
    let shown = |dst| ends(&kernel, tcp("10.1.0.9:1000", dst), &from("cbr0"))[0].clone();
    assert!(shown("10.8.0.39:80").ends_with("drop Rule"));
    assert!(shown("10.7.7.7:8039").contains("reject"));
    assert!(shown("10.7.7.7:81").ends_with("drop Rule"));
}

#[test]
fn a_loop_or_a_missing_chain_is_an_error_that_names_them() {
    let load = |text: &str| {
        let errors = Kernel::new(small_state_of(text)).unwrap_err();
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        load(
            "*filter\n:FORWARD ACCEPT [0:0]\n:A - [0:0]\n:B - [0:0]\n-A FORWARD -j A\n-A A -j B\n-A B -j A\nCOMMIT\n"
        ),
        ["rules:7: a loop of chains in table filter: A → B → A"]
    );
    assert_eq!(
        load("*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j GONE\nCOMMIT\n"),
        ["rules:3: chain PREROUTING of table nat leads to GONE, and there is no such chain"]
    );
    assert_eq!(
        load("*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -j MASQUERADE\nCOMMIT\n"),
        ["rules:3: table filter cannot translate addresses, only table nat can"]
    );
}

fn small_state_of(text: &str) -> NodeState {
    NodeState {
        iptables: iptables::parse("rules", text, Family::V4).unwrap(),
        ..NodeState::default()
    }
}

#[test]
fn a_packet_to_the_node_itself_goes_through_the_loopback() {
    let text = "*nat\n:PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n\
                -A PREROUTING -j DNAT --to-destination 10.9.9.9\n\
                -A OUTPUT -d 10.5.5.5/32 -p tcp -j DNAT --to-destination 10.0.0.2:8080\nCOMMIT\n\
                *filter\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n\
                -A INPUT ! -i lo -j DROP\n-A OUTPUT -o lo -m mark --mark 0x7 -j DROP\nCOMMIT\n";
    let kernel = small(text);
    // When it is looped back in, the connection exists.
    let confirmed = "*filter\n:INPUT DROP [0:0]\n-A INPUT -m conntrack --ctstate NEW --ctstatus CONFIRMED -j ACCEPT\nCOMMIT\n";
    assert_eq!(
        ends(&small(confirmed), tcp("0.0.0.0:1000", "127.0.0.1:80"), &Entry::Local),
        ["1.000 127.0.0.1:1000 > 127.0.0.1:80 local"]
    );
    // The rule in PREROUTING is not evaluated again when the packet is looped back in.
    assert_eq!(
        ends(&kernel, tcp("0.0.0.0:1000", "10.5.5.5:80"), &Entry::Local),
        ["1.000 10.0.0.2:1000 > 10.0.0.2:8080 local"]
    );
    assert_eq!(
        ends(&kernel, tcp("0.0.0.0:1000", "127.0.0.1:80"), &Entry::Local),
        ["1.000 127.0.0.1:1000 > 127.0.0.1:80 local"]
    );
}

#[test]
fn rules_of_output_see_the_first_interface_and_postrouting_the_last() {
    let text = "*nat\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n\
                -A OUTPUT -p tcp -j DNAT --to-destination 10.1.0.9:8080\n\
                -A POSTROUTING -o cbr0 -j MASQUERADE\nCOMMIT\n\
                *filter\n:OUTPUT DROP [0:0]\n-A OUTPUT -d 10.1.0.9/32 -o eth0 -j ACCEPT\nCOMMIT\n";
    assert_eq!(
        ends(&small(text), tcp("0.0.0.0:1000", "10.5.5.5:80"), &Entry::Local),
        ["1.000 10.1.0.1:1000 > 10.1.0.9:8080 out cbr0"]
    );
}

#[test]
fn a_loopback_source_leaves_only_with_route_localnet() {
    let text = "*nat\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n\
                -A OUTPUT -d 127.0.0.1/32 -p tcp -m tcp --dport 30080 -j DNAT --to-destination 10.1.0.9:8080\n\
                -A POSTROUTING -o cbr0 -j MASQUERADE\nCOMMIT\n";
    let packet = tcp("0.0.0.0:1000", "127.0.0.1:30080");
    assert_eq!(
        ends(&small(text), packet, &Entry::Local),
        ["1.000 127.0.0.1:1000 > 10.1.0.9:8080 drop MartianSource"]
    );
    let mut state = small_state(text);
    state.sysctls.set("net.ipv4.conf.all.route_localnet", "1");
    assert_eq!(
        ends(&Kernel::new(state).unwrap(), packet, &Entry::Local),
        ["1.000 10.1.0.1:1000 > 10.1.0.9:8080 out cbr0"]
    );
}

#[test]
fn redirect_leads_to_the_node() {
    let text = "*nat\n:PREROUTING ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n\
                -A PREROUTING -p tcp -m tcp --dport 80 -j REDIRECT --to-ports 8080\n\
                -A OUTPUT -p tcp -m tcp --dport 80 -j REDIRECT --to-ports 8080\nCOMMIT\n";
    let kernel = small(text);
    assert_eq!(
        ends(&kernel, tcp("10.1.0.9:1000", "10.9.9.9:80"), &from("cbr0")),
        ["1.000 10.1.0.9:1000 > 10.1.0.1:8080 local"]
    );
    assert_eq!(
        ends(&kernel, tcp("0.0.0.0:1000", "10.9.9.9:80"), &Entry::Local),
        ["1.000 10.0.0.2:1000 > 127.0.0.1:8080 local"]
    );
}

#[test]
fn untracked_packets_meet_no_translation() {
    let text = "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p tcp -j CT --notrack\nCOMMIT\n\
                *nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j DNAT --to-destination 10.1.0.9\nCOMMIT\n\
                *filter\n:FORWARD DROP [0:0]\n-A FORWARD -m conntrack --ctstate UNTRACKED -j ACCEPT\nCOMMIT\n";
    let end = &small(text).walk(&tcp("10.1.0.9:1000", "10.9.9.9:80"), &from("cbr0"), &[])[0];
    assert_eq!((show(end), &end.connection), (OUT.to_owned(), &None));
}

#[test]
fn a_connection_keeps_its_mark() {
    let text = "*mangle\n:PREROUTING ACCEPT [0:0]\n\
                -A PREROUTING -m conntrack --ctstate NEW -j CONNMARK --set-xmark 0x80/0x80\n\
                -A PREROUTING -j CONNMARK --restore-mark --nfmask 0x80 --ctmask 0x80\nCOMMIT\n";
    let mut state = small_state(text);
    state.rules = policy_rules::parse(
        "rule",
        "0: from all lookup local\n10: from all fwmark 0x80/0x80 iif eth0 lookup 7\n32766: from all lookup main\n",
    )
    .unwrap();
    state.routes.extend(routes::parse("route", "blackhole default table 7\n").unwrap());
    let kernel = Kernel::new(state).unwrap();
    let request = tcp("10.1.0.9:1000", "10.9.9.9:80");
    let end = &kernel.walk(&request, &from("cbr0"), &[])[0];
    assert_eq!(show(end), OUT);
    let known = [end.connection.clone().unwrap()];
    assert_eq!(
        later(&kernel, end.packet.reply(), &from("eth0"), &known),
        ["1.000 10.9.9.9:80 > 10.1.0.9:1000 drop Blackhole"]
    );
}

#[test]
fn several_next_hops_share_the_packets() {
    let mut state = small_state("");
    state.routes.retain(|route| route.via.is_none());
    let text = "default\n\tnexthop via 10.0.0.1 dev eth0 weight 1\n\tnexthop via 10.0.0.3 dev eth0 weight 1\n";
    state.routes.extend(routes::parse("route", text).unwrap());
    assert_eq!(
        ends(&Kernel::new(state).unwrap(), tcp("10.1.0.9:1000", "10.9.9.9:80"), &from("cbr0")),
        [
            "0.500 10.1.0.9:1000 > 10.9.9.9:80 out eth0 via 10.0.0.1",
            "0.500 10.1.0.9:1000 > 10.9.9.9:80 out eth0 via 10.0.0.3",
        ]
    );
}

#[test]
fn martians_do_not_come_in() {
    let kernel = small("");
    let shown = |src: &str, dst: &str| ends(&kernel, tcp(src, dst), &from("eth0"))[0].clone();
    assert!(shown("127.0.0.1:1", "10.0.0.2:80").ends_with("drop MartianSource"));
    assert!(shown("10.9.9.9:1", "127.0.0.1:80").ends_with("drop MartianDestination"));
    assert!(shown("10.0.0.2:1", "10.0.0.2:80").ends_with("drop LocalSource"));
}

#[test]
fn ipv6_is_walked_with_its_own_rules() {
    let text = "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n\
                -A PREROUTING -d fd00:10::1/128 -p tcp -m tcp --dport 80 -j DNAT --to-destination [fd00:1::9]:8080\n\
                -A POSTROUTING -o eth0 -j MASQUERADE\nCOMMIT\n";
    let mut state = NodeState {
        ip6tables: iptables::parse("rules", text, Family::V6).unwrap(),
        interfaces: addr::parse(
            "addr",
            "1: lo: <LOOPBACK,UP> mtu 1\n    inet6 ::1/128 scope host\n2: eth0: <UP> mtu 1\n    \
             inet6 fe80::1/64 scope link\n    inet6 fd00:2::5/64 scope global\n3: cbr0: <UP> mtu 1\n    inet6 fd00:1::1/64 scope global\n",
        )
        .unwrap(),
        routes: routes::parse("route", "fd00:1::/64 dev cbr0 metric 256 pref medium\ndefault via fe80::99 dev eth0 metric 1024 pref medium\n").unwrap(),
        ..NodeState::default()
    };
    state.sysctls.set("net.ipv6.conf.all.forwarding", "1");
    let kernel = Kernel::new(state).unwrap();
    assert_eq!(
        ends(&kernel, tcp("[fd00:1::20]:1000", "[fd00:10::1]:80"), &from("cbr0")),
        ["1.000 [fd00:1::20]:1000 > [fd00:1::9]:8080 out cbr0"]
    );
    assert_eq!(
        ends(&kernel, tcp("[fd00:1::20]:1000", "[2001:db8::1]:443"), &from("cbr0")),
        ["1.000 [fd00:2::5]:1000 > [2001:db8::1]:443 out eth0 via fe80::99"]
    );
    // The kernel has no reverse path filter for IPv6.
    assert_eq!(
        ends(&kernel, tcp("[fd00:2::5]:1000", "[fd00:1::9]:80"), &from("eth0")),
        ["1.000 [fd00:2::5]:1000 > [fd00:1::9]:80 out cbr0"]
    );
}

#[test]
fn icmp_is_matched_and_tracked() {
    let text = "*filter\n:FORWARD DROP [0:0]\n\
                -A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT\n\
                -A FORWARD -p icmp -m icmp --icmp-type 8 -j ACCEPT\nCOMMIT\n";
    let kernel = small(text);
    let ping = Packet {
        src: "10.1.0.9".parse().unwrap(),
        dst: "10.9.9.9".parse().unwrap(),
        transport: Transport::Icmp { kind: 8, code: 0 },
        mark: 0,
    };
    let end = &kernel.walk(&ping, &from("cbr0"), &[])[0];
    assert_eq!(end.kind, EndKind::Forward);
    let known = [end.connection.clone().unwrap()];
    assert_eq!(kernel.walk(&ping.reply(), &from("eth0"), &known)[0].kind, EndKind::Forward);
    assert!(matches!(kernel.walk(&ping.reply(), &from("eth0"), &[])[0].kind, EndKind::Drop(_)));
}

#[test]
fn before_routing_a_packet_of_a_bridge_is_known_by_its_port() {
    // What comes by the uplink and what comes by the bridge of the pods.
    let marked = |bridges: Option<&[&str]>, shown: Option<&str>, entry: &str| {
        let text = "*mangle\n:PREROUTING ACCEPT [0:0]\n\
                    -A PREROUTING -m physdev ! --physdev-is-in -j MARK --set-mark 0x1\n\
                    -A PREROUTING -m physdev --physdev-is-in -j MARK --set-mark 0x2\nCOMMIT\n";
        let mut state = small_state(text);
        state.bridges = bridges.map(|names| names.iter().map(|name| (*name).into()).collect());
        if let Some(value) = shown {
            state.sysctls.set("net.bridge.bridge-nf-call-iptables", value);
        }
        let kernel = Kernel::new(state).unwrap();
        let src = if entry == "cbr0" { "10.1.0.9:1000" } else { "10.0.0.9:1000" };
        let ends = kernel.walk(&tcp(src, "10.0.0.2:80"), &from(entry), &[]);
        ends.iter().map(|end| end.packet.mark).collect::<Vec<u32>>()
    };
    let bridges: Option<&[&str]> = Some(&["cbr0"]);
    assert_eq!(marked(bridges, None, "cbr0"), [2]);
    assert_eq!(marked(bridges, Some("1"), "cbr0"), [2]);
    assert_eq!(marked(bridges, Some("0"), "cbr0"), [1]);
    assert_eq!(marked(bridges, Some("1"), "eth0"), [1]);
    // Where nothing says which interface is a bridge, both are possible.
    assert!(marked(None, None, "cbr0").len() > 1);
}
