//! A long indexed nftables chain behaves like the same rules in chains too short for an index.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use crate::common;

use std::fmt::Write as _;
use std::net::SocketAddr;

use crate::common::{from, small_state};
use proptest::prelude::*;
use uturn_model::Protocol;
use uturn_netfilter::{Kernel, NodeState, Packet, nft, routes};

type Words = &'static [&'static str];

const ADDRESSES: Words =
    &["10.9.9.9", "10.9.8.1", "172.16.0.1", "10.1.0.9", "fd00:9::9", "fd00:9::1:1", "fd00:1::9"];
const PORTS: [u16; 6] = [80, 81, 90, 443, 30080, 60001];

/// Conditions that an index can use as a key.
const TELLS: Words = &[
    "ip daddr 10.9.9.9",
    "ip daddr 10.9.8.1",
    "ip daddr 172.16.0.1",
    "ip daddr 10.9.0.0/16",
    "ip daddr 10.9.9.0/24",
    "ip daddr 10.9.8.1-10.9.9.9",
    "ip daddr != 10.9.9.9",
    "ip daddr 0.0.0.0/1",
    "ip daddr & 255.0.0.255 == 10.0.0.9",
    "ip daddr { 10.9.9.9, 172.16.0.0/12 }",
    "ip daddr . tcp dport { 10.9.9.9 . 80 }",
    "ip saddr 10.1.0.9",
    "ip saddr 10.1.0.0/16",
    "ip saddr != 10.2.0.0/16",
    "ip6 daddr fd00:9::9",
    "ip6 daddr fd00:9::/64",
    "ip6 saddr fd00:1::/32",
    "ip6 daddr != fd00:9::9",
    "tcp dport 80",
    "udp dport 80",
    "tcp dport 80-90",
    "tcp dport 1-60000",
    "tcp dport != 80",
    "tcp dport { 80, 443 }",
    "tcp sport 80",
    "th dport 443",
    "sctp dport 443",
    "meta l4proto tcp",
    "meta nfproto ipv6",
    "ct state new",
    "iifname \"cbr0\"",
    "fib daddr type unicast",
    "meta mark & 0x1 == 0x1",
];

/// Statements with side effects, verdicts, branches, or changes to the packet.
const DOES: Words = &[
    "meta mark set meta mark | 0x1",
    "meta mark set meta mark | 0x2",
    "meta mark set meta mark ^ 0x4",
    "meta mark 0x3 drop",
    "meta mark 0x5 reject",
    "meta mark set meta mark | 0x8 ip daddr 10.9.9.9 meta mark set meta mark | 0x10",
    "counter",
    "log prefix \"seen\"",
    "jump marks",
    "numgen random mod 2 0 meta mark set meta mark | 0x20",
    "numgen random mod 2 vmap { 0 : accept, 1 : continue }",
    "add @seen { ip saddr }",
    "ip saddr @seen meta mark set meta mark | 0x40",
    "rt nexthop 10.0.0.1 meta mark set meta mark | 0x80",
    "ip daddr set 10.9.8.1",
    "tcp dport set 81",
    "accept",
];

fn rule() -> impl Strategy<Value = String> {
    let words = |words: Words| prop::sample::select(words.to_vec());
    (prop::collection::vec(words(TELLS), 0..3), words(DOES))
        .prop_map(|(matches, does)| format!("{} {does}", matches.join(" ")))
}

/// The rules, split into chains that run one after the other. No rule returns, and `accept`
/// leaves all chains of a hook at once, so splitting makes no difference.
fn kernel(all: &[String], piece: usize) -> Kernel {
    let mut text = "table inet t {\n\
                    \tset seen {\n\t\ttype ipv4_addr\n\t\tflags dynamic\n\t}\n\
                    \tchain marks {\n\t\tmeta mark set meta mark | 0x100\n\t}\n"
        .to_owned();
    let mut base = "\tchain forward {\n\t\ttype filter hook forward priority filter;\n".to_owned();
    for (at, piece) in all.chunks(piece).enumerate() {
        writeln!(base, "\t\tjump c{at}").unwrap();
        writeln!(text, "\tchain c{at} {{\n\t\t{}\n\t}}", piece.join("\n\t\t")).unwrap();
    }
    text = format!("{text}{base}\t}}\n}}\n");
    let mut state = NodeState {
        nft: nft::parse("nft", &text).unwrap_or_else(|errors| panic!("{errors:#?}")),
        ..small_state("")
    };
    let more = "default via fd00::1 dev eth0\nfd00:1::/64 dev cbr0\n";
    state.routes.extend(routes::parse("route", more).unwrap());
    state.sysctls.set("net.ipv6.conf.all.forwarding", "1");
    Kernel::new(state).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

/// All ends of a packet, and the rules that took part.
fn ways(kernel: &Kernel, packet: &Packet) -> Vec<String> {
    let ends = kernel.walk(packet, &from("cbr0"), &[]);
    let way = |end: &uturn_netfilter::End| {
        let rules: Vec<_> = end.steps.iter().map(|step| step.by.rule().to_string()).collect();
        let ended = common::show(end);
        format!("{ended} mark {:#x}: {} {:?}", end.packet.mark, rules.join("; "), end.unknown.len())
    };
    ends.iter().map(way).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_index_changes_no_way(
        all in prop::collection::vec(rule(), 20..60),
        packets in prop::collection::vec(
            (
                prop::sample::select(ADDRESSES.to_vec()),
                prop::sample::select(ADDRESSES.to_vec()),
                prop::sample::select(PORTS.to_vec()),
                prop::sample::select(PORTS.to_vec()),
                prop::sample::select(vec![Protocol::Tcp, Protocol::Udp, Protocol::Sctp]),
            ),
            40,
        ),
    ) {
        let (long, short) = (kernel(&all, all.len()), kernel(&all, 5));
        for (src, dst, from_port, port, protocol) in packets {
            let end = |ip: &str, port| SocketAddr::new(ip.parse().unwrap(), port);
            let (src, dst) = (end(src, from_port), end(dst, port));
            if src.is_ipv4() == dst.is_ipv4() {
                let packet = Packet::new(protocol, src, dst);
                prop_assert_eq!(
                    ways(&long, &packet), ways(&short, &packet), "{} in\n{}", packet.leg(), all.join("\n")
                );
            }
        }
    }
}
