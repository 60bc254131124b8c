//! A long indexed chain behaves like the same rules in chains too short for an index.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use std::fmt::Write as _;

use crate::common::{ends, from, small};
use proptest::prelude::*;
use uturn_model::Protocol;
use uturn_netfilter::{EndKind, Entry, Packet};

const ADDRESSES: [&str; 4] = ["10.9.9.9", "10.9.8.1", "172.16.0.1", "10.1.0.9"];
const PORTS: [u16; 4] = [80, 81, 443, 30080];

/// The condition and the action of a rule; marks record which rules matched.
fn rule() -> impl Strategy<Value = (String, String)> {
    let words = |words: &'static [&'static str]| prop::sample::select(words.to_vec());
    let ends = words(&[
        "-d 10.9.9.9/32",
        "-d 10.9.8.1/32",
        "-d 172.16.0.1/32",
        "-d 10.9.0.0/16",
        "-d 10.9.9.0/24",
        "! -d 10.9.9.9/32",
        "-d 10.0.0.0/255.0.0.255",
        "-d 0.0.0.0/1",
        "-s 10.1.0.9/32",
        "-s 10.1.0.0/16",
        "-s 10.2.0.0/16 -d 10.9.9.9/32",
        "! -s 10.2.0.0/16",
        "",
        "",
        "",
    ]);
    let ports = words(&[
        "-p tcp -m tcp --dport 80",
        "-p udp -m udp --dport 80",
        "-p tcp -m tcp --dport 80:90",
        "-p tcp -m tcp --dport 1:60000",
        "-p tcp -m tcp ! --dport 80",
        "-p tcp -m multiport --dports 80,443,30000:30010",
        "-p udp -m multiport --dports 80,80,79:81",
        "-p tcp -m multiport ! --dports 80,443",
        "-p tcp -m multiport --sports 80",
        "-p tcp -m multiport --ports 80,30080",
        "-p sctp -m sctp --dport 443",
        "! -p tcp",
        "",
    ]);
    let target = words(&[
        "-j MARK --set-xmark 0x1/0x0",
        "-j MARK --set-xmark 0x2/0x0",
        "-j MARK --set-xmark 0x4/0x0",
        "-m mark --mark 0x3/0x3 -j DROP",
        "-m mark --mark 0x5/0x7 -j REJECT",
        "-m recent --set --name a --mask 255.255.255.255 --rsource",
        "-m recent --rcheck --name a --mask 255.255.255.255 --rsource -j MARK --set-xmark 0x8/0x0",
        "-j LOG",
        "-m statistic --mode random --probability 0.5 -m mark --mark 0x7/0xf -j ACCEPT",
    ]);
    (ends, ports, target)
        .prop_map(|(ends, ports, target)| (format!("{ends} {ports}"), target.to_owned()))
}

fn rules(all: &[(String, String)], piece: usize) -> String {
    let mut text = "*mangle\n:FORWARD ACCEPT [0:0]\n".to_owned();
    let pieces: Vec<_> = all.chunks(piece).collect();
    for at in 0..pieces.len() {
        writeln!(text, ":C{at} - [0:0]").unwrap();
    }
    for (at, piece) in pieces.iter().enumerate() {
        writeln!(text, "-A FORWARD -j C{at}").unwrap();
        for (asks, does) in *piece {
            writeln!(text, "-A C{at} {asks} {does}").unwrap();
        }
    }
    // Makes a mark visible in where the packet goes.
    text + "COMMIT\n*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m mark --mark 0x1/0x1 -j DROP\nCOMMIT\n"
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_index_changes_no_way(
        all in prop::collection::vec(rule(), 20..60),
        src in prop::sample::select(vec!["10.1.0.9:1000", "10.1.0.8:80"]),
    ) {
        // ACCEPT leaves all chains of a hook at once, so splitting makes no difference to it.
        let (long, short) = (small(&rules(&all, all.len())), small(&rules(&all, 5)));
        for dst in ADDRESSES {
            for port in PORTS {
                for protocol in [Protocol::Tcp, Protocol::Udp, Protocol::Sctp] {
                    let dst = format!("{dst}:{port}").parse().unwrap();
                    let packet = Packet::new(protocol, src.parse().unwrap(), dst);
                    let met = |kernel| {
                        let mut marks: Vec<String> = walk(kernel, packet);
                        marks.extend(ends(kernel, packet, &from("cbr0")));
                        marks
                    };
                    prop_assert_eq!(met(&long), met(&short), "{}", packet.leg());
                }
            }
        }
    }
}

/// The marks at the ends of a packet's branches.
fn walk(kernel: &uturn_netfilter::Kernel, packet: Packet) -> Vec<String> {
    let entry: Entry = from("cbr0");
    let mut marks: Vec<String> = kernel
        .walk(&packet, &entry, &[])
        .iter()
        .map(|end| format!("{:#x} {}", end.packet.mark, matches!(end.kind, EndKind::Forward)))
        .collect();
    marks.sort();
    marks
}
