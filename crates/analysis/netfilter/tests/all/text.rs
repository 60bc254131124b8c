//! Rules as text: what is printed parses back, and errors are reported.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use uturn_model::{Family, IpNet, Origin, Protocol, Share, Text};
use uturn_netfilter::iptables::{
    self, AddrKind, AddrType, Addresses, Chain, ConnmarkOp, Conntrack, Counters, CtDirection,
    CtState, CtStatus, Extension, Icmp, Iprange, LimitInterface, MarkMatch, Match, Multiport,
    NatPorts, NatTo, Not, Policy, PortRange, PortSide, Probability, Recent, RecentAction, Rule,
    Ruleset, Statistic, Table, TableKind, Target, Tcp, Udp,
};
use uturn_netfilter::{EndKind, Entry, IpProtocol, Kernel, NodeState, Packet, RejectWith, routes};

fn errors(text: &str) -> Vec<String> {
    let errors = iptables::parse("rules", text, Family::V4).unwrap_err();
    errors.iter().map(ToString::to_string).collect()
}

/// The rule as printed in a chain of the table `nat` that also has the chain `X`.
fn printed(rule: &str, family: Family) -> String {
    let text = format!("*nat\n:C - [0:0]\n:X - [0:0]\n-A C {rule}\nCOMMIT\n");
    let ruleset =
        iptables::parse("rules", &text, family).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let printed = ruleset.to_string();
    printed.lines().nth(3).unwrap().strip_prefix("-A C ").unwrap_or_default().to_owned()
}

#[test]
fn rules_are_put_into_the_words_of_iptables_save() {
    for (written, saved) in [
        ("-s 10.1.2.3 -j ACCEPT", "-s 10.1.2.3/32 -j ACCEPT"),
        ("-s 10.1.2.3/255.255.0.0 -j X", "-s 10.1.0.0/16 -j X"),
        ("-s 10.1.2.3/255.0.255.0 -g X", "-s 10.0.2.0/255.0.255.0 -g X"),
        ("-s 0.0.0.0/0 -j X", "-j X"),
        (
            "-m tcp -p tcp -d 10.0.0.1 --dport 80 -j X",
            "-d 10.0.0.1/32 -p tcp -m tcp --dport 80 -j X",
        ),
        ("-p tcp --dport 80:90", "-p tcp -m tcp --dport 80:90"),
        ("-p tcp --syn", "-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN"),
        ("-j MARK --or-mark 0x4000", "-j MARK --set-xmark 0x4000/0x4000"),
        ("-j MARK --xor-mark 0x4000", "-j MARK --set-xmark 0x4000/0x0"),
        ("-j REJECT", "-j REJECT --reject-with icmp-port-unreachable"),
        ("-m comment --comment one", "-m comment --comment one"),
        ("-m comment --comment \"a \\\"b\\\" c\"", "-m comment --comment \"a \\\"b\\\" c\""),
        ("-m comment --comment \"shop/x\"", "-m comment --comment \"shop/x\""),
        (
            "-m statistic --mode random --probability 0.3333333333",
            "-m statistic --mode random --probability 0.33333333349",
        ),
        ("-m statistic --mode nth --every 3", "-m statistic --mode nth --every 3 --packet 0"),
        (
            "-m conntrack --ctstate ESTABLISHED,RELATED",
            "-m conntrack --ctstate RELATED,ESTABLISHED",
        ),
        (
            "-m set --match-set KUBE-CLUSTER-IP dst,dst -m tcp ! --dport 1",
            "-m set --match-set KUBE-CLUSTER-IP dst,dst -m tcp ! --dport 1",
        ),
        ("-m set ! --match-set A src ! -p tcp -j X", "! -p tcp -m set ! --match-set A src -j X"),
        ("-m conntrack --ctorigdst 10.0.0.1 -j X", "-m conntrack --ctorigdst 10.0.0.1 -j X"),
        ("-m physdev ! --physdev-is-in -j X", "-m physdev ! --physdev-is-in -j X"),
        (
            "-j TPROXY --on-port 1 --on-ip 0.0.0.0 --tproxy-mark 0x1/0x1",
            "-j TPROXY --on-port 1 --on-ip 0.0.0.0 --tproxy-mark 0x1/0x1",
        ),
        ("-j DNAT --to-destination 10.0.0.1:80/8", "-j DNAT --to-destination 10.0.0.1:80/8"),
        (
            "-j DNAT --to-destination 10.0.0.1-10.0.0.3:80-90 --random --persistent",
            "-j DNAT --to-destination 10.0.0.1-10.0.0.3:80-90 --random --persistent",
        ),
        ("-j MASQUERADE --random-fully", "-j MASQUERADE --random-fully"),
        ("-j CT --notrack", "-j CT --notrack"),
        ("-j CT --zone 1", "-j CT --zone 1"),
        (
            "-j LOG --log-prefix \"a b \" --log-level 4",
            "-j LOG --log-prefix \"a b \" --log-level 4",
        ),
        ("! -i lo -o cali+ ! -f -j RETURN", "! -i lo -o cali+ ! -f -j RETURN"),
    ] {
        assert_eq!(printed(written, Family::V4), saved, "{written}");
    }
    for (written, saved) in [
        (
            "-d fd00::1 -p icmpv6 --icmpv6-type 128",
            "-d fd00::1/128 -p ipv6-icmp -m icmp6 --icmpv6-type 128",
        ),
        ("-j DNAT --to-destination [fd00::1]:80", "-j DNAT --to-destination [fd00::1]:80"),
        ("-j DNAT --to-destination fd00::1", "-j DNAT --to-destination fd00::1"),
        (
            "-j SNAT --to-source [fd00::1-fd00::9]:80-90",
            "-j SNAT --to-source [fd00::1-fd00::9]:80-90",
        ),
        ("-j REJECT", "-j REJECT --reject-with icmp6-port-unreachable"),
    ] {
        assert_eq!(printed(written, Family::V6), saved, "{written}");
    }
}

#[test]
fn every_fault_is_named_with_its_place() {
    let text = "*filter\n:INPUT ACCEPT [0:0]\n:INPUT DROP\n:X MAYBE [0:0]\n\
                -A INPUT -p tcp --dport 99999\n-A GONE -j ACCEPT\n-A INPUT -s 10.0.0.0/33 -j DROP\n\
                -A INPUT -m comment --comment \"open\n-I INPUT -j DROP\nnonsense\n[1:x] -A INPUT\n\
                -A INPUT -s fd00::1\n-A INPUT -j MARK\n-A INPUT -m tcp -s 1.2.3.4 -s 1.2.3.5\n\
                -A INPUT --what 1\n-A INPUT !\nCOMMIT\nCOMMIT\n*strange\n:A - [0:0]\nCOMMIT\n*filter\nCOMMIT\n";
    assert_eq!(
        errors(text),
        [
            "rules:3:2: chain INPUT a second time, the first is on line 2",
            "rules:4:4: found policy \"MAYBE\", expected ACCEPT, DROP or -",
            "rules:5:25: found \"99999\", expected a port or a range of ports",
            "rules:6:4: chain GONE is not declared in this table",
            "rules:7:13: found \"10.0.0.0/33\", expected an IPv4 address or network",
            "rules:8:31: found a quote without its end",
            "rules:9:1: found \"-I\", expected -A CHAIN",
            "rules:10:1: found \"nonsense\", expected a table, a chain, a rule or COMMIT",
            "rules:11:1: found \"[1:x]\", expected counters: [0:0]",
            "rules:12:13: found \"fd00::1\", expected an IPv4 address or network",
            "rules:13:10: found a target without --set-xmark",
            "rules:14:28: \"-s\": found an option twice, expected it once",
            "rules:15:10: found --what, expected an option of iptables",
            "rules:16:10: \"!\": found `!`, expected an option after it",
            "rules:18:1: found COMMIT, expected a table before it",
            "rules:19:2: found table \"strange\", expected raw, mangle, nat, filter or security",
            "rules:22:2: table filter a second time, the first is on line 1: are these two dumps in one file?",
        ]
    );
}

#[test]
fn a_dump_that_is_cut_says_so() {
    let whole = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j ACCEPT\nCOMMIT\n";
    assert_eq!(
        errors("*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j ACCEPT\n"),
        [
            "rules:3:1: the text ends here, expected COMMIT for table filter of line 1: the dump is cut"
        ]
    );
    for at in 1..whole.len() - 1 {
        assert!(iptables::parse("rules", &whole[..at], Family::V4).is_err(), "{:?}", &whole[..at]);
    }
    assert_eq!(
        errors("# Table `nat' is incompatible, use 'nft' tool.\n"),
        [
            "rules:1:1: \"Table `nat' is incompatible, use 'nft' tool.\": iptables-save could not print this table; capture `nft list ruleset` too"
        ]
    );
}

#[test]
fn a_golden_dump_cut_anywhere_is_read_or_refused() {
    let path = format!("{}/tests/golden/iptables-n1/iptables.save", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    // The first table and the start of the second, at every byte.
    for at in 0..4000 {
        let cut = &text[..at];
        let inside = cut.lines().filter(|line| *line == "COMMIT").count()
            < cut.lines().filter(|line| line.starts_with('*')).count();
        assert_eq!(iptables::parse("cut", cut, Family::V4).is_err(), inside, "at byte {at}");
    }
}

fn not<T: std::fmt::Debug>(value: impl Strategy<Value = T>) -> impl Strategy<Value = Not<T>> {
    (any::<bool>(), value).prop_map(|(not, value)| Not { not, value })
}

fn maybe<T: std::fmt::Debug>(value: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    prop::option::of(value)
}

fn ip(family: Family) -> BoxedStrategy<IpAddr> {
    match family {
        Family::V4 => any::<u32>().prop_map(|bits| Ipv4Addr::from_bits(bits).into()).boxed(),
        Family::V6 => any::<u128>().prop_map(|bits| Ipv6Addr::from_bits(bits).into()).boxed(),
    }
}

fn ip_range(family: Family) -> impl Strategy<Value = (IpAddr, IpAddr)> {
    (ip(family), ip(family)).prop_map(|(a, b)| (a.min(b), a.max(b)))
}

fn net(family: Family) -> impl Strategy<Value = Addresses> {
    (ip(family), 1..=family.bits())
        .prop_map(|(ip, length)| Addresses::Net(IpNet::new(ip, length).unwrap().trunc()))
}

fn port_range() -> impl Strategy<Value = PortRange> {
    (any::<u16>(), any::<u16>()).prop_map(|(a, b)| PortRange { first: a.min(b), last: a.max(b) })
}

fn text() -> impl Strategy<Value = Text> {
    // Also quotes, blanks, backslashes, options and the empty string.
    prop_oneof!["[ -~]{0,20}", "[a-zé\"'\\\\ !-]{0,8}", Just("!".to_owned()), Just("-j".to_owned())]
        .prop_map(Into::into)
}

fn name() -> impl Strategy<Value = Text> {
    "[a-zA-Z0-9_.-]{1,12}"
        .prop_filter("a name", |name| !name.starts_with(['-', '.']))
        .prop_map(Into::into)
}

fn some_of<T: Copy + Ord + std::fmt::Debug + 'static>(
    all: &[(T, &str)],
) -> impl Strategy<Value = Vec<T>> + use<T> {
    let all: Vec<T> = all.iter().map(|(value, _)| *value).collect();
    let count = all.len();
    prop::sample::subsequence(all, 1..=count).prop_map(|mut some| {
        some.sort_unstable();
        some
    })
}

fn extension() -> impl Strategy<Value = Extension> {
    let word = prop_oneof!["--[a-z]{2,8}".prop_map(Text::from), text()];
    ("[a-z]{4}x", prop::collection::vec(word, 0..4)).prop_map(|(name, words)| {
        let words: Vec<Text> = std::iter::once("--opt".into()).chain(words).collect();
        // A `!` comes before an option, never at the end.
        let last = words.iter().rposition(|word| &**word != "!").map_or(0, |at| at + 1);
        let words = words[..last].to_vec();
        Extension { name: name.into(), words }
    })
}

fn one_match(family: Family) -> impl Strategy<Value = Match> {
    let mark = || {
        (any::<bool>(), any::<u32>(), any::<u32>()).prop_map(|(not, value, mask)| MarkMatch {
            not,
            value,
            mask,
        })
    };
    let udp = || {
        (maybe(not(port_range())), maybe(not(port_range())))
            .prop_map(|(sport, dport)| Udp { sport, dport })
    };
    let flags = maybe(not((0u8..64, 0u8..64)));
    let tcp = (maybe(not(port_range())), maybe(not(port_range())), flags)
        .prop_map(|(sport, dport, flags)| Match::Tcp(Tcp { sport, dport, flags }));
    let v6 = family == Family::V6;
    let sides =
        prop::sample::select(vec![PortSide::Source, PortSide::Destination, PortSide::Either]);
    let direction = maybe(prop::sample::select(vec![CtDirection::Original, CtDirection::Reply]));
    let status = prop_oneof![Just(Vec::new()), some_of(&CtStatus::ALL)];
    let limit = maybe(prop::sample::select(vec![LimitInterface::In, LimitInterface::Out]));
    let action = prop::sample::select(vec![
        RecentAction::Set,
        RecentAction::Check,
        RecentAction::Update,
        RecentAction::Remove,
    ]);
    let random = not((0u32..=1 << 31)
        .prop_map(|p| Probability::new(f64::from(p) / f64::from(1u32 << 31)).unwrap()));
    prop_oneof![
        text().prop_map(Match::Comment),
        tcp,
        udp().prop_map(Match::Udp),
        udp().prop_map(Match::Sctp),
        maybe(not((any::<u8>(), maybe(any::<u8>()))))
            .prop_map(move |kind| Match::Icmp(Icmp { v6, kind })),
        (sides, not(prop::collection::vec(port_range(), 1..4)))
            .prop_map(|(side, ports)| Match::Multiport(Box::new(Multiport { side, ports }))),
        (not(some_of(&CtState::ALL)), maybe(not(status)), direction).prop_map(
            |(states, status, direction)| {
                let states = Some(states);
                let rest = Conntrack::default();
                Match::Conntrack(Box::new(Conntrack { states, status, direction, ..rest }))
            }
        ),
        not(some_of(&CtState::ALL[..5])).prop_map(|states| Match::State(Box::new(states))),
        (maybe(not(some_of(&AddrKind::ALL))), not(some_of(&AddrKind::ALL)), limit).prop_map(
            |(src, dst, limit)| {
                Match::AddrType(Box::new(AddrType { src, dst: Some(dst), limit }))
            }
        ),
        mark().prop_map(Match::Mark),
        mark().prop_map(Match::Connmark),
        random.prop_map(|odds| Match::Statistic(Statistic::Random(odds))),
        (any::<bool>(), 1u32..9, 0u32..9).prop_map(|(not, every, packet)| Match::Statistic(
            Statistic::Nth { not, every, packet: packet % every }
        )),
        (
            not(action),
            maybe(any::<u32>()),
            any::<bool>(),
            maybe(any::<u32>()),
            any::<bool>(),
            name(),
            maybe(ip(family)),
            any::<bool>()
        )
            .prop_map(|(action, seconds, reap, hitcount, rttl, name, mask, rdest)| {
                Match::Recent(Box::new(Recent {
                    action,
                    seconds,
                    reap,
                    hitcount,
                    rttl,
                    name,
                    mask,
                    rdest,
                }))
            }),
        text().prop_map(Match::Nfacct),
        (not(ip_range(family)), maybe(not(ip_range(family))))
            .prop_map(|(src, dst)| Match::Iprange(Box::new(Iprange { src: Some(src), dst }))),
        extension().prop_map(|extension| Match::Other(Box::new(extension))),
    ]
}

fn target(family: Family) -> impl Strategy<Value = Target> {
    let masks = || (any::<u32>(), any::<u32>());
    let to = move || {
        (maybe(ip_range(family)), maybe(port_range()), any::<bool>(), any::<bool>(), any::<bool>())
            .prop_filter("some target", |(addresses, ports, ..)| {
                addresses.is_some() || ports.is_some()
            })
            .prop_map(|(addresses, ports, random, random_fully, persistent)| NatTo {
                addresses,
                ports,
                random,
                random_fully,
                persistent,
            })
    };
    let ports = || {
        (maybe(port_range()), any::<bool>()).prop_map(|(ports, random)| NatPorts {
            ports,
            random,
            random_fully: false,
        })
    };
    let fits = move |with: &RejectWith| {
        with.as_str() == "tcp-reset" || with.as_str().starts_with("icmp6") == (family == Family::V6)
    };
    let rejects: Vec<RejectWith> = RejectWith::ALL.into_iter().filter(fits).collect();
    prop_oneof![
        Just(Target::Accept),
        Just(Target::Drop),
        Just(Target::Return),
        Just(Target::Trace),
        prop::sample::select(rejects).prop_map(Target::Reject),
        Just(Target::Jump("X".into())),
        Just(Target::Goto("X".into())),
        masks().prop_map(|(value, mask)| Target::Mark { value, mask }),
        masks().prop_map(|(value, mask)| Target::Connmark(ConnmarkOp::Set { value, mask })),
        masks().prop_map(|(nfmask, ctmask)| Target::Connmark(ConnmarkOp::Save { nfmask, ctmask })),
        masks()
            .prop_map(|(nfmask, ctmask)| Target::Connmark(ConnmarkOp::Restore { nfmask, ctmask })),
        to().prop_map(Target::Dnat),
        to().prop_map(Target::Snat),
        ports().prop_map(Target::Masquerade),
        ports().prop_map(Target::Redirect),
        any::<bool>().prop_map(|ct| Target::Notrack { ct }),
        extension()
            .prop_map(|extension| Target::Log(Extension { name: "LOG".into(), ..extension })),
        extension()
            .prop_map(|extension| Target::Other(Extension { name: "TPROXY".into(), ..extension })),
    ]
}

fn rule(family: Family) -> impl Strategy<Value = Rule> {
    let counters = maybe(
        (any::<u64>(), any::<u64>())
            .prop_map(|(packets, bytes)| Box::new(Counters { packets, bytes })),
    );
    let interface = || maybe(not("[a-z0-9@.]{1,14}[+]?".prop_map(Text::from)).prop_map(Box::new));
    let protocol = maybe(not((1u8..=255).prop_map(IpProtocol)));
    let fragment = maybe(any::<bool>()).prop_map(move |some| some.filter(|_| family == Family::V4));
    let head = (
        maybe(not(net(family))),
        maybe(not(net(family))),
        interface(),
        interface(),
        protocol,
        fragment,
    );
    (counters, head, prop::collection::vec(one_match(family), 0..4), maybe(target(family)))
        .prop_map(
            |(
                counters,
                (src, dst, in_interface, out_interface, protocol, fragment),
                matches,
                target,
            )| Rule {
                counters,
                src,
                dst,
                in_interface,
                out_interface,
                protocol,
                fragment,
                matches: matches.into(),
                target,
                origin: Origin::file("made up"),
            },
        )
}

fn ruleset(family: Family) -> impl Strategy<Value = Ruleset> {
    let chain = |name: &'static str, policy, rules| Chain {
        name: name.into(),
        policy,
        counters: Counters::default(),
        rules,
        origin: Origin::file("made up"),
    };
    (
        prop::collection::vec(rule(family), 0..5),
        prop::collection::vec(rule(family), 0..2),
        any::<bool>(),
    )
        .prop_map(move |(first, second, drop)| {
            let policy = if drop { Policy::Drop } else { Policy::Accept };
            let chains = vec![chain("OUTPUT", Some(policy), first), chain("X", None, second)];
            let table = |kind, chains| Table { kind, chains, origin: Origin::file("made up") };
            Ruleset {
                tables: vec![table(TableKind::Nat, chains), table(TableKind::Raw, Vec::new())],
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_printed_is_read_back(
        (family, ruleset) in prop::sample::select(Family::BOTH.to_vec())
            .prop_flat_map(|family| (Just(family), ruleset(family))),
    ) {
        let text = ruleset.to_string();
        let again = iptables::parse("printed", &text, family);
        prop_assert_eq!(again, Ok(ruleset), "{}", text);
    }

    #[test]
    fn whatever_loads_can_be_walked(
        ruleset in ruleset(Family::V4),
        src in ip(Family::V4),
        dst in ip(Family::V4),
        ports in (any::<u16>(), any::<u16>()),
        protocol in prop::sample::select(vec![Protocol::Tcp, Protocol::Udp, Protocol::Sctp]),
        local in any::<bool>(),
    ) {
        let mut state = NodeState { iptables: ruleset, ..NodeState::default() };
        state.routes = routes::parse("route", "default dev eth0\n10.0.0.0/8 dev eth1\n").unwrap();
        state.sysctls.set("net.ipv4.ip_forward", "1");
        let packet = Packet::new(protocol, (src, ports.0).into(), (dst, ports.1).into());
        let entry = if local { Entry::Local } else { Entry::Interface("eth0".into()) };
        if let Ok(kernel) = Kernel::new(state) {
            let ends = kernel.walk(&packet, &entry, &[]);
            let shares = ends.iter().map(|end| end.share);
            prop_assert!(Share::add_up_to_all(shares), "{:?}", ends);
            for end in ends {
                // A later packet of the same connection goes where the first one went.
                let Some(connection) = end.connection else { continue };
                for again in kernel.walk(&packet, &entry, &[connection]) {
                    let settled = matches!(again.kind, EndKind::Local | EndKind::Forward);
                    prop_assert!(!settled || again.packet.leg() == end.packet.leg());
                }
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[*:#A-Za-z0-9 \"\\\\!\\[\\]\\-\n./,]{0,200}") {
        let _ = iptables::parse("any", &text, Family::V4);
    }

    #[test]
    fn a_changed_dump_is_read_or_refused(at in 0usize..30_000, with in "[ -~\n]{0,4}", skip in 0usize..30) {
        let path = format!("{}/tests/golden/iptables-n1/iptables.save", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let at = at % (text.len() - skip);
        let changed = format!("{}{with}{}", &text[..at], &text[at + skip..]);
        if let Ok(ruleset) = iptables::parse("changed", &changed, Family::V4) {
            prop_assert_eq!(iptables::parse("again", &ruleset.to_string(), Family::V4), Ok(ruleset));
        }
    }
}
