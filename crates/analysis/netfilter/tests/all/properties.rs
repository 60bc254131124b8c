//! Properties of all sets and virtual servers, and of all inputs.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::common::{from, read, small_state, tcp};
use proptest::prelude::*;
use uturn_model::{Family, Share};
use uturn_netfilter::{EndKind, Kernel, addr, conntrack, ipset, ipvs, policy_rules, routes};

fn ip(family: Family) -> BoxedStrategy<String> {
    match family {
        Family::V4 => any::<u32>().prop_map(|bits| Ipv4Addr::from_bits(bits).to_string()).boxed(),
        Family::V6 => any::<u128>().prop_map(|bits| Ipv6Addr::from_bits(bits).to_string()).boxed(),
    }
}

fn part(word: &str, family: Family) -> BoxedStrategy<String> {
    let bits = family.bits();
    match word {
        "ip" => prop_oneof![
            4 => ip(family),
            1 => (ip(family), 0..=bits).prop_map(|(ip, length)| format!("{ip}/{length}")),
            1 => (any::<u32>(), 0u32..300).prop_map(move |(first, more)| {
                let last = first.saturating_add(more);
                match family {
                    Family::V4 => {
                        format!("{}-{}", Ipv4Addr::from_bits(first), Ipv4Addr::from_bits(last))
                    }
                    Family::V6 => Ipv6Addr::from_bits(u128::from(first)).to_string(),
                }
            }),
        ]
        .boxed(),
        "net" => (ip(family), 0..=bits).prop_map(|(ip, length)| format!("{ip}/{length}")).boxed(),
        "port" => (
            prop::sample::select(vec!["tcp", "udp", "sctp", "vrrp", "odd"]),
            any::<u16>(),
            0u16..40,
        )
            .prop_map(|(protocol, first, more)| match first.checked_add(more) {
                Some(last) if more > 0 && protocol != "odd" => format!("{protocol}:{first}-{last}"),
                _ => format!("{protocol}:{first}"),
            })
            .boxed(),
        "iface" => "(physdev:)?[a-z]{1,8}".boxed(),
        "mac" => "([0-9A-F]{2}:){5}[0-9A-F]{2}".boxed(),
        "mark" => any::<u32>().prop_map(|mark| format!("{mark:#x}")).boxed(),
        other => panic!("{other}"),
    }
}

const KINDS: [&str; 15] = [
    "hash:ip",
    "hash:mac",
    "hash:ip,mac",
    "hash:net",
    "hash:net,net",
    "hash:ip,port",
    "hash:net,port",
    "hash:ip,port,ip",
    "hash:ip,port,net",
    "hash:net,port,net",
    "hash:net,iface",
    "hash:ip,mark",
    "bitmap:ip",
    "bitmap:port",
    "hash:unheard",
];

fn set(at: usize) -> impl Strategy<Value = String> {
    let kind = (prop::sample::select(KINDS.to_vec()), prop::sample::select(Family::BOTH.to_vec()));
    kind.prop_flat_map(move |(kind, family)| {
        let family = if kind.starts_with("bitmap") { Family::V4 } else { family };
        let words = kind.split_once(':').unwrap().1;
        let entry = if kind == "hash:unheard" {
            "[a-z0-9,:]{1,12}".boxed()
        } else if kind == "bitmap:port" {
            any::<u16>().prop_map(|port| port.to_string()).boxed()
        } else {
            let parts: Vec<_> = words.split(',').map(|word| part(word, family)).collect();
            parts.prop_map(|parts| parts.join(",")).boxed()
        };
        let options = prop::sample::select(vec![
            "",
            " nomatch",
            " timeout 30",
            " packets 1 bytes 2 comment \"a, b\"",
            " comment \"\" nomatch",
        ]);
        let head = match (kind, family) {
            ("bitmap:ip", _) => " range 0.0.0.0-255.255.255.255",
            ("bitmap:port", _) => " range 0-65535",
            (_, Family::V4) => " family inet hashsize 1024 maxelem 65536 counters comment",
            (_, Family::V6) => " family inet6 timeout 300",
        };
        prop::collection::vec((entry, options), 0..12).prop_map(move |entries| {
            let mut text = format!("create S{at} {kind}{head}\n");
            for (entry, options) in entries {
                text.push_str(&format!("add S{at} {entry}{options}\n"));
            }
            text
        })
    })
}

fn servers() -> impl Strategy<Value = String> {
    let host = |family| {
        (ip(family), any::<u16>()).prop_map(move |(ip, port)| match family {
            Family::V4 => format!("{ip}:{port}"),
            Family::V6 => format!("[{ip}]:{port}"),
        })
    };
    let entries = prop::sample::select(Family::BOTH.to_vec()).prop_flat_map(move |family| {
        let at = prop_oneof![
            (prop::sample::select(vec!["-t", "-u", "--sctp-service"]), host(family))
                .prop_map(|(option, host)| format!("{option} {host}")),
            any::<u32>().prop_map(move |mark| match family {
                Family::V4 => format!("-f {mark}"),
                Family::V6 => format!("-f {mark} -6"),
            }),
        ];
        let scheduler = prop::sample::select(vec!["rr", "wrr", "lc", "sh", "fo", "unheard"]);
        let options =
            prop::sample::select(vec!["", " -p 600", " -o", " -b sh-port", " -p 9 -o --pe sip"]);
        let method = prop::sample::select(vec!["-m", "-g", "-i"]);
        let real = (host(family), method, 0u32..5)
            .prop_map(|(host, method, weight)| format!("-r {host} {method} -w {weight}"));
        (at, scheduler, options, prop::collection::vec(real, 0..4)).prop_map(
            |(at, scheduler, options, reals)| {
                let mut text = format!("-A {at} -s {scheduler}{options}\n");
                for real in reals {
                    text.push_str(&format!("-a {at} {real}\n"));
                }
                text
            },
        )
    });
    prop::collection::vec(entries, 0..6).prop_map(|all| all.concat())
}

fn inputs() -> Vec<String> {
    let mut all = vec![read("ipvs-n1", "ipset.save"), read("ipvs-n1", "ipvs.save")];
    all.extend([read("ipvs-n1", "addr"), read("ipvs-n1", "route"), read("iptables-n1", "rule")]);
    all.push("[{\"dst\":\"default\",\"gateway\":\"10.0.0.1\",\"dev\":\"a\",\"flags\":[]}]".into());
    all.push("IP Virtual Server version 1.2.1\nTCP  CB007101:0050 rr persistent 5 FFFFFF00\n  -> 0A010007:1F90 Masq 1 0 0\nFWM  00000007 rr\n".into());
    all.push("ipv4 2 tcp 6 1 X src=10.0.0.1 dst=10.0.0.2 sport=1 dport=2 src=10.0.0.2 dst=10.0.0.1 sport=2 dport=1 mark=0 zone=0\n".into());
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sets_are_read_back_as_printed(a in set(1), b in set(2), c in set(3)) {
        let text = format!("{a}{b}{c}create L list:set size 8\nadd L S1\nadd L S3\n");
        let sets = ipset::parse("made", &text).unwrap_or_else(|errors| panic!("{errors:#?}\n{text}"));
        prop_assert_eq!(sets.to_string(), text);
        prop_assert_eq!(ipset::parse("printed", &sets.to_string()), Ok(sets.clone()));
        // Whatever the sets contain, a rule that matches against them has a result.
        for rule in ["S1 src", "S2 dst,dst,src", "S3 src,dst", "L src,src,src"] {
            let rules = format!("*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m set --match-set {rule} -j DROP\nCOMMIT\n");
            let mut state = small_state(&rules);
            state.sets = sets.clone();
            let ends = Kernel::new(state).unwrap().walk(&tcp("10.1.0.9:1", "10.9.9.9:80"), &from("cbr0"), &[]);
            prop_assert!(Share::add_up_to_all(ends.iter().map(|end| end.share)));
        }
    }

    /// Each address of a set is found, and whatever is found is in some entry.
    #[test]
    fn what_is_in_a_set_is_found(
        nets in prop::collection::vec((any::<u32>(), 8u8..=32), 1..20),
        asked in prop::collection::vec(any::<(prop::sample::Index, u32, bool)>(), 20),
    ) {
        let mut text = "create N hash:net\n".to_owned();
        for (bits, length) in &nets {
            text.push_str(&format!("add N {}/{length}\n", Ipv4Addr::from_bits(*bits)));
        }
        let mut state = small_state("*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -m set --match-set N dst -j DROP\nCOMMIT\n");
        state.sets = ipset::parse("made", &text).unwrap();
        let kernel = Kernel::new(state).unwrap();
        let mask = |length: u8| u32::MAX << (32 - u32::from(length));
        for (at, bits, near) in asked {
            let (net, length) = nets[at.index(nets.len())];
            let bits = if near { net & mask(length) | bits & !mask(length) } else { bits };
            let inside = nets.iter().any(|(net, length)| net & mask(*length) == bits & mask(*length));
            let dst = format!("{}:80", Ipv4Addr::from_bits(bits));
            let end = &kernel.walk(&tcp("10.1.0.9:1", &dst), &from("cbr0"), &[])[0];
            let dropped = matches!(&end.kind, EndKind::Drop(_)) && end.steps.iter().any(|step| step.by.rule().contains("--match-set"));
            prop_assert_eq!(dropped, inside, "{} in {}", dst, text);
        }
    }

    #[test]
    fn virtual_servers_are_read_back_as_printed(text in servers()) {
        match ipvs::parse("made", &text) {
            Ok(servers) => {
                prop_assert_eq!(servers.to_string(), text);
            }
            // A duplicate address is the only possible error.
            Err(errors) => prop_assert!(errors.iter().all(|error| error.message.contains("a second time"))),
        }
    }

    /// The shares of every scheduler sum to 1, whatever the real servers.
    #[test]
    fn whatever_is_scheduled_adds_up(text in servers(), bound in any::<bool>()) {
        let Ok(servers) = ipvs::parse("made", &text) else { return Ok(()) };
        let mut state = small_state("");
        let vip = servers.0.first().and_then(|server| match server.at {
            ipvs::VirtualAddress::Address { address, .. } if address.is_ipv4() => Some(address),
            _ => None,
        });
        let Some(vip) = vip else { return Ok(()) };
        let odd = matches!(vip.ip(), IpAddr::V4(ip) if ip.octets()[0] == 0 || ip.is_multicast() || ip.is_broadcast());
        prop_assume!(!odd);
        state.ipvs = servers;
        if bound {
            state.interfaces[0].addresses.push((vip.ip(), 32));
        }
        let kernel = Kernel::new(state).unwrap();
        for (src, entry) in [("10.1.0.9:1", from("cbr0")), ("0.0.0.0:1", uturn_netfilter::Entry::Local)] {
            for end in kernel.walk(&tcp(src, &vip.to_string()), &entry, &[]) {
                prop_assert!(end.share > Share::NONE);
                let Some(connection) = end.connection.clone() else { continue };
                let back = kernel.walk(&end.packet.reply(), &from("eth0"), &[connection]);
                prop_assert!(Share::add_up_to_all(back.iter().map(|end| end.share)));
            }
            let ends = kernel.walk(&tcp(src, &vip.to_string()), &entry, &[]);
            prop_assert!(Share::add_up_to_all(ends.iter().map(|end| end.share)));
        }
    }

    #[test]
    fn no_input_makes_a_parser_panic(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), "[ -~é\n\t]{0,3}", 0usize..4), 1..6),
        junk in "\\PC{0,60}",
    ) {
        let inputs = inputs();
        let mut text: Vec<char> = inputs[which.index(inputs.len())].chars().collect();
        for (at, put, cut) in changes {
            let at = at.index(text.len() + 1);
            let end = (at + cut).min(text.len());
            text.splice(at..end, put.chars());
        }
        let text: String = text.into_iter().collect();
        for text in [text, junk] {
            let faults = [
                ipset::parse("f", &text).err(),
                ipvs::parse("f", &text).err(),
                ipvs::parse("f", &format!("IP Virtual Server version\n{text}")).err(),
                addr::parse("f", &text).err(),
                routes::parse("f", &text).err(),
                policy_rules::parse("f", &text).err(),
                conntrack::parse("f", &text).err(),
            ];
            for error in faults.into_iter().flatten().flatten() {
                prop_assert!(error.origin.line() > 0 && !error.message.is_empty());
            }
        }
    }
}
