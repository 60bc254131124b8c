//! Semantics of nftables rules, one feature at a time.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use crate::common::{ends, from, rules_of, small_state, tcp};
use uturn_model::StepKind;
use uturn_netfilter::{EndKind, Entry, Kernel, NodeState, Packet, nft};

fn with(text: &str) -> NodeState {
    with_both("", text)
}

fn with_both(iptables: &str, text: &str) -> NodeState {
    let nft = nft::parse("nft", text).unwrap_or_else(|errors| panic!("{errors:#?}"));
    NodeState { nft, ..small_state(iptables) }
}

fn kernel(text: &str) -> Kernel {
    Kernel::new(with(text)).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

/// A table with these chains, each given by its head and its rules.
fn table(chains: &[(&str, &str)]) -> String {
    let mut text = "table inet t {\n".to_owned();
    for (at, (head, rules)) in chains.iter().enumerate() {
        let (name, head) = match head.split_once(' ') {
            Some(_) => (format!("c{at}"), format!("type {head}; policy accept;")),
            None => ((*head).to_owned(), String::new()),
        };
        text.push_str(&format!("chain {name} {{\n{head}\n{rules}\n}}\n"));
    }
    text + "}\n"
}

fn out(packet: &Packet, text: &str) -> Vec<String> {
    ends(&kernel(text), *packet, &from("cbr0"))
}

fn request() -> Packet {
    tcp("10.1.0.9:40000", "192.0.2.1:80")
}

const GOES: &str = "1.000 10.1.0.9:40000 > 192.0.2.1:80 out eth0 via 10.0.0.1";
const DROPPED: &str = "1.000 10.1.0.9:40000 > 192.0.2.1:80 drop Rule";

#[test]
fn accept_ends_a_base_chain_and_drop_ends_all() {
    let forward = |first: &str, second: &str| {
        table(&[
            ("filter hook forward priority 0", first),
            ("filter hook forward priority 10", second),
        ])
    };
    assert_eq!(out(&request(), &forward("accept\ndrop", "counter")), [GOES]);
    assert_eq!(out(&request(), &forward("accept", "drop")), [DROPPED]);
    assert_eq!(out(&request(), &forward("drop", "accept")), [DROPPED]);
}

#[test]
fn priorities_decide_the_order_and_of_equals_the_last_made_is_first() {
    let seen = |earlier: i32, other: i32| {
        let text = table(&[
            (&format!("filter hook forward priority {earlier}"), "meta mark 0x0 meta mark set 0x1"),
            (&format!("filter hook forward priority {other}"), "meta mark 0x0 meta mark set 0x2"),
        ]);
        let end = kernel(&text).walk(&request(), &from("cbr0"), &[]).remove(0);
        end.packet.mark
    };
    assert_eq!((seen(-10, 10), seen(10, -10), seen(0, 0)), (1, 2, 2));
}

#[test]
fn jump_comes_back_and_goto_does_not() {
    let text = |rules: &str| {
        table(&[
            ("empty", ""),
            ("back", "return\ndrop"),
            ("two", "goto empty\ndrop"),
            ("filter hook forward priority 0", rules),
        ])
    };
    assert_eq!(out(&request(), &text("jump empty\ndrop")), [DROPPED]);
    assert_eq!(out(&request(), &text("jump back\ndrop")), [DROPPED]);
    assert_eq!(out(&request(), &text("jump two\ndrop")), [DROPPED]);
    assert_eq!(out(&request(), &text("goto empty\ndrop")), [GOES]);
    assert_eq!(out(&request(), &text("return\ndrop")), [GOES]);
    assert_eq!(out(&request(), &text("tcp dport vmap { 80 : continue } drop")), [DROPPED]);
}

#[test]
fn sets_and_maps_of_every_shape() {
    let holds = |rule: &str| {
        let text = format!(
            "table inet t {{\nset i {{\ntype ipv4_addr\nflags interval\nelements = {{ 10.0.0.0/8, 172.16.0.0-172.16.0.9 }}\n}}\n\
             set n {{\ntype ifname\nelements = {{ \"cbr*\", \"lo\" }}\nflags interval\n}}\n\
             map m {{\ntype ipv4_addr . inet_service : verdict\nflags interval\nelements = {{ 192.0.2.0/24 . 80-90 : drop, * : accept }}\n}}\n\
             set k {{\ntypeof ip daddr . tcp dport\nelements = {{ 192.0.2.1 . 80 }}\n}}\n\
             chain c {{\ntype filter hook forward priority 0; policy accept;\n{rule}\n}}\n}}\n"
        );
        match out(&request(), &text).as_slice() {
            [fate] if fate == DROPPED => true,
            [fate] if fate == GOES => false,
            other => panic!("{rule}: {other:?}"),
        }
    };
    for rule in [
        "ip saddr @i drop",
        "ip daddr != @i drop",
        "iifname @n drop",
        "iifname \"cbr*\" oifname { \"eth0\", \"eth1\" } drop",
        "ip daddr . tcp dport vmap @m",
        "ip daddr . tcp dport @k drop",
        "tcp dport { 22, 80-90 } drop",
        "ip saddr . ip daddr { 10.1.0.0/24 . 192.0.2.0/24, 1.2.3.4 . 1.2.3.4 } drop",
        "meta l4proto . th dport { tcp . 80 } drop",
        "tcp flags syn / fin,syn,rst,ack drop",
        "tcp flags syn drop",
        "tcp flags != ack drop",
        "ct state ! established,related drop",
        "ct state { new, untracked } drop",
        "ct state == new drop",
        "meta mark set 0xff0 meta mark & 0x0ff == 0xf0 drop",
        "meta mark set 0x1 meta mark set meta mark << 4 meta mark 0x10 drop",
        "meta mark set tcp dport map { 80 : 0x5, 90 : 0x6 } meta mark 0x5 drop",
        "ct mark set 0x7 meta mark set ct mark & 0x3 meta mark 0x3 drop",
        "fib saddr . iif oif exists drop",
        "fib daddr type unicast drop",
        "ct original ip daddr 192.0.2.1 ct direction original drop",
        "tcp dport > 79 tcp dport <= 80 drop",
        "ip saddr 10.1.0.1-10.1.0.200 drop",
        "ip saddr & 255.0.0.255 == 10.0.0.9 drop",
        "numgen random mod 1 vmap { 0 : drop }",
        "meta nfproto ipv4 meta protocol ip drop",
    ] {
        assert!(holds(rule), "{rule}");
    }
    for rule in [
        "ip daddr @i drop",
        "ip6 daddr != ::1 drop",
        "udp dport != 53 drop",
        "iifname != @n drop",
        "ip daddr . tcp dport { 192.0.2.1 . 81 } drop",
        "ct state invalid drop",
        "ct status dnat drop",
        "icmp type echo-request drop",
        "fib daddr type local drop",
        "fib saddr . iif oif missing drop",
        "tcp dport vmap { 81 : drop }",
        "meta mark set udp dport map { 80 : 0x5 } drop",
        "ct reply ip6 saddr ::1 drop",
    ] {
        assert!(!holds(rule), "{rule}");
    }
}

#[test]
fn numbers_by_chance_are_shares() {
    let nat = |rule: &str| out(&request(), &table(&[("nat hook prerouting priority -100", rule)]));
    let thirds =
        nat("dnat ip to numgen random mod 3 map { 0 : 10.0.0.7, 1 : 10.0.0.8, 2 : 10.0.0.9 }");
    assert_eq!(thirds.len(), 3);
    assert!(thirds.iter().all(|end| end.starts_with("0.333 ")), "{thirds:?}");
    // A map without some of the numbers.
    assert_eq!(
        nat("dnat ip to numgen inc mod 10 map { 0-3 : 10.0.0.7, 4 : 10.0.0.8 }"),
        [
            "0.100 10.1.0.9:40000 > 10.0.0.8:80 out eth0",
            "0.400 10.1.0.9:40000 > 10.0.0.7:80 out eth0",
            "0.500 10.1.0.9:40000 > 192.0.2.1:80 out eth0 via 10.0.0.1",
        ]
    );
    let filter = |rule: &str| table(&[("filter hook forward priority 0", rule)]);
    assert_eq!(
        out(&request(), &filter("numgen random mod 100 < 25 drop")),
        [
            "0.250 10.1.0.9:40000 > 192.0.2.1:80 drop Rule",
            "0.750 10.1.0.9:40000 > 192.0.2.1:80 out eth0 via 10.0.0.1",
        ]
    );
    let hashed = kernel(&filter("jhash ip saddr . tcp sport mod 2 vmap { 0 : drop, 1 : accept }"));
    let ends = hashed.walk(&request(), &from("cbr0"), &[]);
    assert_eq!(ends.len(), 2);
    assert!(ends.iter().all(|end| end.supposed.len() == 1 && end.unknown.is_empty()));
}

#[test]
fn what_nobody_models_goes_both_ways() {
    let filter = |rule: &str| table(&[("filter hook forward priority 0", rule)]);
    for rule in [
        "limit rate 10/second drop",
        "meta cpu 1 drop",
        "socket transparent 1 drop",
        "ip dscp cs1 drop",
        "xt match \"statistic\" drop",
        "ip daddr 192.0.2.1 # match-set foo dst counter packets 3 bytes 4 drop",
        "quota over 10 mbytes drop",
        "ct count over 10 drop",
        "xt target \"IDONTKNOW\"",
        "queue to 1",
        "synproxy mss 1460",
    ] {
        let ends = kernel(&filter(rule)).walk(&request(), &from("cbr0"), &[]);
        let kinds: Vec<bool> =
            ends.iter().map(|end| matches!(end.kind, EndKind::Drop(_))).collect();
        assert!(kinds.contains(&true) && kinds.contains(&false), "{rule}: {kinds:?}");
        assert!(ends.iter().all(|end| end.unknown.len() == 1), "{rule}");
        assert!(ends.iter().all(|end| !rules_of(end, StepKind::Unknown).is_empty()));
    }
    // Not if another condition decides, nor if nothing depends on it.
    for rule in ["meta skuid 1000 udp dport 53 drop", "ip dscp cs1 counter packets 0 bytes 0"] {
        assert_eq!(out(&request(), &filter(rule)), [GOES], "{rule}");
    }
    // The second evaluation has the same answer.
    let twice = filter("ip dscp cs1 accept\nip dscp cs1 drop");
    assert_eq!(out(&request(), &twice).len(), 2);
}

#[test]
fn what_other_releases_print_decides_as_theirs_does() {
    let filter = |rule: &str| out(&request(), &table(&[("filter hook forward priority 0", rule)]));
    let dropped = filter("drop");
    for (rule, is_dropped) in [
        // A service name, as releases before 0.9.1 print ports.
        ("tcp dport http drop", true),
        ("tcp dport { https, http-alt } drop", false),
        ("tcp dport ssh-domain drop", false),
        ("tcp dport 80 jump {\nip saddr 192.0.2.1 accept\ndrop\n}", true),
        ("tcp dport 80 jump {\nreturn\n}\naccept", false),
        ("tcp flags & (fin | syn | rst | ack) == syn drop", true),
        ("tcp flags & (syn | ack) == syn | ack drop", false),
        ("tcp flags & (syn | ack) == { syn, syn | ack } drop", true),
    ] {
        let ends = filter(rule);
        if rule.contains("ssh-domain") {
            // Unknown: branches.
            assert_eq!(ends.len(), 2, "{rule}: {ends:?}");
        } else {
            assert_eq!(ends == dropped, is_dropped, "{rule}: {ends:?}");
        }
    }
    // A rule that nft could not print in full is not a comment.
    let rule = "# match-set blocked src counter packets 0 bytes 0 drop";
    assert_eq!(filter(rule).len(), 2);
    // The inner packet is another packet.
    assert_eq!(filter("vxlan ip saddr 192.0.2.1 drop").len(), 2);
}

#[test]
fn loops_and_what_is_not_there_are_errors_with_names() {
    let message = |text: &str| Kernel::new(with(text)).unwrap_err()[0].to_string();
    assert_eq!(
        message(
            "table ip t {\nchain a {\njump b\n}\nchain b {\ntcp dport vmap { 80 : goto c }\n}\nchain c {\ncounter\njump a\n}\n}\n"
        ),
        "nft:10: a loop of chains in table ip t: a → b → c → a"
    );
    assert_eq!(
        message(
            "table ip t {\nmap m {\ntype ipv4_addr : verdict\nelements = { 10.0.0.1 : jump a }\n}\nchain a {\nip saddr vmap @m\n}\n}\n"
        ),
        "nft:7: a loop of chains in table ip t: a → a"
    );
    assert_eq!(
        message("table ip t {\nchain a {\njump b\n}\n}\n"),
        "nft:3: chain a of table ip t leads to b, and there is no such chain"
    );
    assert_eq!(
        message("table ip t {\nchain a {\nip saddr @s drop\n}\n}\n"),
        "nft:3: chain a of table ip t asks the set s, and there is no such set"
    );
}

#[test]
fn the_first_translation_wins_whoever_makes_it() {
    let iptables = "*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p tcp -j DNAT --to-destination 10.0.0.7\nCOMMIT\n";
    for (priority, to) in [(-101, "10.0.0.8"), (-99, "10.0.0.7")] {
        let head = format!("nat hook prerouting priority {priority}");
        let text = table(&[(&head, "dnat ip to 10.0.0.8")]);
        let kernel = Kernel::new(with_both(iptables, &text)).unwrap();
        assert_eq!(
            ends(&kernel, request(), &from("cbr0")),
            [format!("1.000 10.1.0.9:40000 > {to}:80 out eth0")]
        );
    }
}

#[test]
fn what_iptables_keeps_in_nftables_counts_once() {
    let iptables = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -m statistic --mode random --probability 0.5 -j DROP\nCOMMIT\n";
    let kept = "table ip filter {\nchain FORWARD {\ntype filter hook forward priority filter; policy accept;\nxt match \"statistic\" drop\n}\n}\n";
    let both = Kernel::new(with_both(iptables, kept)).unwrap();
    assert_eq!(ends(&both, request(), &from("cbr0")).len(), 2);
    let end = &both.walk(&request(), &from("cbr0"), &[])[0];
    assert!(end.unknown.is_empty());
    let alone = Kernel::new(with(kept)).unwrap();
    assert!(!alone.walk(&request(), &from("cbr0"), &[])[0].unknown.is_empty());
}

#[test]
fn only_a_chain_that_routes_makes_a_mark_count_for_the_route() {
    let ends_of = |kind: &str| {
        let mut state =
            with(&table(&[(&format!("{kind} hook output priority -150"), "meta mark set 0x1")]));
        let more = "default via 10.1.0.9 dev cbr0 table 100\n";
        state.routes.extend(uturn_netfilter::routes::parse("r", more).unwrap());
        let rules = "0: from all lookup local\n100: from all fwmark 0x1 lookup 100\n32766: from all lookup main\n";
        state.rules = uturn_netfilter::policy_rules::parse("u", rules).unwrap();
        let kernel = Kernel::new(state).unwrap();
        ends(&kernel, tcp("0.0.0.0:40000", "192.0.2.1:80"), &Entry::Local)
    };
    assert_eq!(ends_of("filter"), ["1.000 10.0.0.2:40000 > 192.0.2.1:80 out eth0 via 10.0.0.1"]);
    assert_eq!(ends_of("route"), ["1.000 10.0.0.2:40000 > 192.0.2.1:80 out cbr0 via 10.1.0.9"]);
}

#[test]
fn a_device_sees_packets_before_all_hooks() {
    let text = |device: &str| {
        format!(
            "table netdev n {{\nchain c {{\ntype filter hook ingress device \"{device}\" priority 0; policy accept;\ntcp dport 80 drop\n}}\n}}\n"
        )
    };
    assert_eq!(out(&request(), &text("cbr0")), [DROPPED]);
    assert_eq!(out(&request(), &text("eth0")), [GOES]);
}

#[test]
fn a_network_is_mapped_and_sets_are_seen_by_later_rules() {
    let nat = |rule: &str| out(&request(), &table(&[("nat hook prerouting priority -100", rule)]));
    assert_eq!(
        nat("dnat ip prefix to ip daddr map { 192.0.2.0/24 : 10.0.0.0/24 }"),
        ["1.000 10.1.0.9:40000 > 10.0.0.1:80 out eth0"]
    );
    let text = "table ip t {\nset seen {\ntype ipv4_addr\nflags dynamic,timeout\n}\nchain c {\ntype filter hook forward priority 0; policy accept;\nadd @seen { ip saddr timeout 10m }\nip saddr @seen drop\n}\n}\n";
    assert_eq!(out(&request(), text), [DROPPED]);
}

#[test]
fn the_other_family_has_rules_of_its_own() {
    let text = "table ip6 t {\nset s {\ntype ipv6_addr\nflags interval\nelements = { fd00:1::/64 }\n}\n\
                chain n {\ntype nat hook prerouting priority dstnat; policy accept;\nip6 daddr fd00:9::1 meta l4proto tcp dnat to [fd00:2::7]:8080\n}\n\
                chain f {\ntype filter hook forward priority filter; policy accept;\nip6 saddr @s ct status dnat accept\nreject\n}\n}\n\
                table inet u {\nchain f {\ntype filter hook forward priority 1; policy accept;\nip daddr != 1.2.3.4 drop\nip6 nexthdr tcp fib daddr type unicast accept\n}\n}\n";
    let mut state = with(text);
    state.routes.extend(
        uturn_netfilter::routes::parse("r", "fd00:2::/64 dev eth0 metric 256\nfd00:9::/64 dev eth0 metric 256\nfd00:1::/64 dev cbr0 metric 256\n")
            .unwrap(),
    );
    state.sysctls.set("net.ipv6.conf.all.forwarding", "1");
    let kernel = Kernel::new(state).unwrap();
    let ends_at = |to: &str| ends(&kernel, tcp("[fd00:1::9]:40000", to), &from("cbr0"));
    assert_eq!(ends_at("[fd00:9::1]:80"), ["1.000 [fd00:1::9]:40000 > [fd00:2::7]:8080 out eth0"]);
    assert_eq!(
        ends_at("[fd00:9::2]:80"),
        ["1.000 [fd00:1::9]:40000 > [fd00:9::2]:80 reject icmp6-port-unreachable"]
    );
}

#[test]
fn a_dormant_table_does_nothing() {
    let text = table(&[("filter hook forward priority 0", "drop")]);
    let dormant = text.replacen("{\n", "{\nflags dormant\n", 1);
    assert_eq!(out(&request(), &text), [DROPPED]);
    assert_eq!(out(&request(), &dormant), [GOES]);
}

#[test]
fn a_long_map_costs_a_walk_no_more_than_a_short_one() {
    // 50,000 elements: a linear scan would visit them all.
    let elements: Vec<String> = (0..50_000u32)
        .map(|n| format!("10.{}.{}.{} . {} : drop", n >> 16, (n >> 8) & 255, n & 255, n % 60_000))
        .collect();
    let text = format!(
        "table ip t {{\nmap m {{\ntype ipv4_addr . inet_service : verdict\nelements = {{ {} }}\n}}\nchain c {{\ntype filter hook forward priority 0; policy accept;\nip daddr . tcp dport vmap @m\n}}\n}}\n",
        elements.join(",\n")
    );
    let kernel = kernel(&text);
    for _ in 0..2000 {
        assert_eq!(ends(&kernel, request(), &from("cbr0")), [GOES]);
    }
}
