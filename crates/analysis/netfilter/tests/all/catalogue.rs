//! Every match and target of the catalogue: its treatment is what a walk does, and what
//! `docs/rules.md` says.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use crate::common;

use crate::common::{ends, from, later, small, small_state, tcp};
use uturn_model::Family;
use uturn_netfilter::iptables::catalogue::{MATCHES, TARGETS, Treatment};
use uturn_netfilter::iptables::{self, TableKind};
use uturn_netfilter::{End, EndKind, Entry, Kernel, Packet, Transport, policy_rules, routes};

const OUT: &str = "1.000 10.1.0.9:1000 > 10.9.9.9:80 out eth0 via 10.0.0.1";

/// A rule for each match, whose answer is unknown if the catalogue says that it can be.
const MATCH_SAMPLES: &[(&str, &str)] = &[
    ("addrtype", "--dst-type UNICAST"),
    ("bpf", "--bytecode \"1,6 0 0 65535\""),
    ("cgroup", "--cgroup 1"),
    ("comment", "--comment \"two words\""),
    ("connbytes", "--connbytes 1000 --connbytes-mode bytes --connbytes-dir both"),
    ("connlabel", "--label 1"),
    ("connlimit", "--connlimit-upto 3 --connlimit-mask 32 --connlimit-saddr"),
    ("connmark", "--mark 0x0"),
    ("conntrack", "--ctproto 6 --ctorigdst 10.9.9.9 --ctorigdstport 80"),
    ("cpu", "--cpu 0"),
    ("devgroup", "--src-group 0x1"),
    ("dscp", "--dscp 0x08"),
    ("ecn", "--ecn-tcp-cwr"),
    (
        "hashlimit",
        "--hashlimit-upto 5/sec --hashlimit-burst 5 --hashlimit-mode srcip --hashlimit-name a",
    ),
    ("helper", "--helper ftp"),
    ("hl", "--hl-eq 3"),
    ("icmp", "--icmp-type 8"),
    ("icmp6", "--icmpv6-type 128"),
    ("iprange", "--src-range 10.1.0.1-10.1.0.20"),
    ("length", "--length 60:100"),
    ("limit", "--limit 5/min --limit-burst 7"),
    ("mac", "--mac-source 02:00:00:00:00:01"),
    ("mark", "--mark 0x0"),
    ("multiport", "--dports 80,443"),
    ("nfacct", "--nfacct-name  a"),
    ("owner", "--uid-owner 1000"),
    ("physdev", "--physdev-in veth0"),
    ("pkttype", "--pkt-type unicast"),
    ("policy", "--dir in --pol none"),
    ("quota", "--quota 1000"),
    ("realm", "--realm 0x1"),
    ("recent", "--set --name a --mask 255.255.255.255 --rsource"),
    ("rpfilter", "--loose"),
    ("sctp", "--dport 80"),
    ("socket", "--transparent"),
    ("state", "--state NEW"),
    ("statistic", "--mode random --probability 0.50000000000"),
    ("string", "--string \"a b\" --algo bm --to 65535"),
    ("tcp", "--dport 80"),
    ("tcpmss", "--mss 1000:1400"),
    ("time", "--timestart 10:00:00"),
    ("tos", "--tos 0x10/0xff"),
    ("ttl", "--ttl-eq 3"),
    ("u32", "--u32 \"0x0=0x1\""),
    ("udp", "--dport 80"),
];

const TARGET_SAMPLES: &[(&str, TableKind, &str)] = &[
    ("ACCEPT", TableKind::Filter, ""),
    ("AUDIT", TableKind::Filter, " --type accept"),
    ("CHECKSUM", TableKind::Mangle, " --checksum-fill"),
    ("CLASSIFY", TableKind::Mangle, " --set-class 0001:0010"),
    ("CLUSTERIP", TableKind::Filter, " --new --hashmode sourceip"),
    ("CONNMARK", TableKind::Mangle, " --set-xmark 0x1/0x3"),
    ("CONNSECMARK", TableKind::Mangle, " --save"),
    ("CT", TableKind::Raw, " --notrack"),
    ("DNAT", TableKind::Nat, " --to-destination 10.9.9.9"),
    ("DROP", TableKind::Filter, ""),
    ("DSCP", TableKind::Mangle, " --set-dscp 0x08"),
    ("ECN", TableKind::Mangle, " --ecn-tcp-remove"),
    ("HL", TableKind::Mangle, " --hl-set 3"),
    ("HMARK", TableKind::Mangle, " --hmark-tuple src --hmark-mod 3"),
    ("IDLETIMER", TableKind::Filter, " --timeout 3 --label a"),
    ("LED", TableKind::Filter, " --led-trigger-id a"),
    ("LOG", TableKind::Filter, " --log-prefix \"a b \""),
    ("MARK", TableKind::Mangle, " --set-xmark 0x1/0x3"),
    ("MASQUERADE", TableKind::Nat, ""),
    ("NETMAP", TableKind::Nat, " --to 10.9.9.0/24"),
    ("NFLOG", TableKind::Filter, " --nflog-prefix a"),
    ("NFQUEUE", TableKind::Filter, " --queue-num 1"),
    ("NOTRACK", TableKind::Raw, ""),
    ("QUEUE", TableKind::Filter, ""),
    ("RATEEST", TableKind::Mangle, " --rateest-name a --rateest-interval 250.0ms"),
    ("REDIRECT", TableKind::Nat, " --to-ports 8080"),
    ("REJECT", TableKind::Filter, " --reject-with icmp-host-prohibited"),
    ("RETURN", TableKind::Filter, ""),
    ("SECMARK", TableKind::Mangle, " --selctx a"),
    ("SNAT", TableKind::Nat, " --to-source 10.0.0.2"),
    ("SYNPROXY", TableKind::Filter, " --mss 1460"),
    ("TARPIT", TableKind::Filter, " --tarpit"),
    ("TCPMSS", TableKind::Mangle, " --clamp-mss-to-pmtu"),
    ("TCPOPTSTRIP", TableKind::Mangle, " --strip-options 2"),
    ("TEE", TableKind::Mangle, " --gateway 10.0.0.1"),
    ("TOS", TableKind::Mangle, " --set-tos 0x10/0xff"),
    ("TPROXY", TableKind::Mangle, " --on-port 15001 --on-ip 0.0.0.0 --tproxy-mark 0x1/0x1"),
    ("TRACE", TableKind::Raw, ""),
    ("TTL", TableKind::Mangle, " --ttl-set 3"),
    ("ULOG", TableKind::Filter, " --ulog-prefix a"),
];

/// The chain of a table that a packet from a pod to another host traverses.
fn chain(table: TableKind, target: &str) -> &'static str {
    match (table, target) {
        (TableKind::Filter, _) => "FORWARD",
        (_, "SNAT" | "MASQUERADE") => "POSTROUTING",
        _ => "PREROUTING",
    }
}

fn dump(table: TableKind, chain: &str, rule: &str) -> String {
    format!("*{table}\n:{chain} ACCEPT [0:0]\n-A {chain} {rule}\nCOMMIT\n")
}

fn walk(rules: &str, entry: &Entry) -> Vec<End> {
    small(rules).walk(&tcp("10.1.0.9:1000", "10.9.9.9:80"), entry, &[])
}

/// Whether some branches rest on something unknown.
fn is_open(ends: &[End]) -> bool {
    ends.iter().any(|end| !end.unknown.is_empty())
}

#[test]
fn every_match_of_the_catalogue_is_walked_as_it_says() {
    let named: Vec<&str> = MATCHES.iter().map(|(name, _)| *name).collect();
    assert!(named.is_sorted(), "they are found by halves");
    for (name, treatment) in MATCHES {
        let mut samples = MATCH_SAMPLES.iter().filter(|(sample, _)| sample == name);
        let Some((_, options)) = samples.next() else {
            // These depend on sets and virtual servers, which have tests of their own.
            assert!(matches!(*name, "set" | "ipvs"), "no sample of {name}");
            continue;
        };
        let protocol = match *name {
            "tcp" | "udp" | "sctp" | "icmp" => format!("-p {name} "),
            "icmp6" => "-p ipv6-icmp ".into(),
            "multiport" | "ecn" | "tcpmss" => "-p tcp ".into(),
            _ => String::new(),
        };
        let rule = format!("{protocol}-m {name} {options} -j DROP");
        let family = if *name == "icmp6" { Family::V6 } else { Family::V4 };
        let text = dump(TableKind::Filter, "FORWARD", &rule);
        assert_eq!(iptables::parse("a", &text, family).unwrap().to_string(), text);
        if family == Family::V6 {
            continue;
        }
        let all = walk(&text, &from("cbr0"));
        let from_here = walk(&text.replace("FORWARD", "OUTPUT"), &Entry::Local);
        let why = all.iter().chain(&from_here).flat_map(|end| &end.steps);
        let why: Vec<&str> = why.map(|step| &*step.why).collect();
        match treatment {
            Treatment::Modelled | Treatment::NoEffect => {
                assert!(!is_open(&all) && !is_open(&from_here), "{name}: {why:?}");
            }
            Treatment::BothWays(reason) => {
                for ends in [&all, &from_here] {
                    assert!(is_open(ends) && ends.len() == 2, "{name}: {ends:?}");
                    let rule = format!("-m {name} {options}");
                    assert!(ends.iter().all(|end| end.unknown[0].rule().contains(&rule)), "{name}");
                }
                assert!(why.iter().any(|why| why.contains(reason)), "{name}: {why:?}");
            }
            // The samples of these are certain for one of the packets, or for both.
            Treatment::Partly(reason) => {
                assert!(!is_open(&all) || !is_open(&from_here) || *name == "length", "{name}");
                let open = is_open(&all) || is_open(&from_here);
                assert_eq!(open, why.iter().any(|why| why.contains(reason)), "{name}: {why:?}");
            }
        }
    }
}

#[test]
fn every_target_of_the_catalogue_is_walked_as_it_says() {
    let named: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    assert!(named.is_sorted(), "they are found by halves");
    for (name, treatment) in TARGETS {
        let mut samples = TARGET_SAMPLES.iter().filter(|(sample, ..)| sample == name);
        let Some((_, table, options)) = samples.next() else {
            assert_eq!(*name, "SET", "no sample of {name}");
            continue;
        };
        let protocol = if *name == "REDIRECT" || *name == "TPROXY" { "-p tcp " } else { "" };
        let text = dump(*table, chain(*table, name), &format!("{protocol}-j {name}{options}"));
        assert_eq!(iptables::parse("a", &text, Family::V4).unwrap().to_string(), text);
        let all = walk(&text, &from("cbr0"));
        match treatment {
            Treatment::Modelled => assert!(!is_open(&all) && all.len() == 1, "{name}: {all:?}"),
            Treatment::NoEffect => {
                assert_eq!(common::show(&all[0]), OUT, "{name}");
                assert!(!is_open(&all) && all.len() == 1, "{name}: {all:?}");
            }
            Treatment::BothWays(reason) => {
                assert!(all.len() == 2 && all.iter().all(|end| end.unknown.len() == 1), "{name}");
                let gives_reason =
                    |end: &End| end.steps.iter().any(|step| step.why.contains(reason));
                assert!(all.iter().all(gives_reason), "{name}");
            }
            Treatment::Partly(_) => unreachable!("no target is modelled in part"),
        }
    }
}

#[test]
fn the_page_lists_what_the_catalogue_has() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/rules.md");
    let page = std::fs::read_to_string(path).unwrap();
    let shown = |treatment: &Treatment| match treatment {
        Treatment::Modelled => "modelled".to_owned(),
        Treatment::NoEffect => "no effect on the way".to_owned(),
        Treatment::Partly(why) => format!("modelled; both ways where {why}"),
        Treatment::BothWays(why) => format!("both ways: {why}"),
    };
    let mut expected: Vec<String> = Vec::new();
    for (name, treatment) in MATCHES {
        expected.push(format!("| `-m {name}` | {} |", shown(treatment)));
    }
    for (name, treatment) in TARGETS {
        expected.push(format!("| `-j {name}` | {} |", shown(treatment)));
    }
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `-")).collect();
    assert_eq!(rows.len(), expected.len());
    let tests = ["catalogue.rs", "semantics.rs", "fragments.rs", "sets.rs", "ipvs.rs", "golden.rs"]
        .map(|file| format!("{}/tests/all/{file}", env!("CARGO_MANIFEST_DIR")))
        .map(|path| std::fs::read_to_string(path).unwrap_or_default())
        .concat();
    for (row, expected) in rows.iter().zip(&expected) {
        let Some(test) = row.strip_prefix(expected.as_str()) else {
            panic!("found {row}, expected {expected} …");
        };
        for name in test.trim_matches(['|', ' ']).split(", ") {
            let name = name.trim_matches('`');
            assert!(tests.contains(&format!("fn {name}(")), "no test is called {name}: {row}");
        }
    }
}

/// Whether a packet from a pod passes a rule of FORWARD.
fn passes(rule: &str) -> bool {
    let text = format!("*filter\n:FORWARD DROP [0:0]\n-A FORWARD {rule} -j ACCEPT\nCOMMIT\n");
    ends(&small(&text), tcp("10.1.0.9:1000", "10.9.9.9:80"), &from("cbr0")) == [OUT]
}

#[test]
fn what_is_certain_of_a_packet_from_outside_is_no_question() {
    for (rule, yes) in [
        ("-m owner --uid-owner 0", false),
        ("-m owner ! --uid-owner 0", true),
        ("-m owner ! --uid-owner 0 --gid-owner 0", false),
        ("-m owner ! --socket-exists", true),
        ("-m cgroup --cgroup 1", false),
        ("-m cgroup ! --cgroup 1", false),
        ("-m length --length 0:39", false),
        ("-m length --length 40:120", true),
        ("-m length ! --length 121:65535", true),
        ("-m pkttype --pkt-type unicast", true),
        ("-m pkttype --pkt-type broadcast", false),
        ("-m pkttype ! --pkt-type multicast", true),
        ("-m policy --dir in --pol none", true),
        ("-m policy --dir in --pol ipsec", false),
        ("-p tcp -m udplite --dport 1", false),
    ] {
        assert_eq!(passes(rule), yes, "{rule}");
    }
}

#[test]
fn a_connections_own_addresses_are_asked() {
    let text = "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n\
                -A PREROUTING -p tcp -j DNAT --to-destination 10.9.9.9:80\n-A POSTROUTING -j MASQUERADE\nCOMMIT\n\
                *filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD RULE -j DROP\nCOMMIT\n";
    for (rule, yes) in [
        ("--ctorigsrc 10.1.0.0/24", true),
        ("! --ctorigsrc 10.1.0.0/24", false),
        ("--ctorigdst 10.5.5.5", true),
        ("--ctorigdst 10.9.9.9", false),
        ("--ctreplsrc 10.9.9.9", true),
        ("--ctrepldst 10.1.0.9", true),
        ("! --ctrepldst 10.1.0.9", false),
        ("--ctproto tcp", true),
        ("--ctproto 17", false),
        ("--ctorigsrcport 1000", true),
        ("--ctorigdstport 81", true),
        ("! --ctorigdstport 80:90", false),
        ("--ctreplsrcport 80", true),
        ("--ctrepldstport 1000:2000", true),
        ("--ctorigdst 10.5.5.5 --ctorigdstport 81 --ctdir ORIGINAL --ctstate NEW", true),
        ("--ctorigdst 10.5.5.5 --ctdir REPLY", false),
    ] {
        let kernel = small(&text.replace("RULE", &format!("-m conntrack {rule}")));
        let end = &kernel.walk(&tcp("10.1.0.9:1000", "10.5.5.5:81"), &from("cbr0"), &[])[0];
        assert_eq!(matches!(end.kind, EndKind::Drop(_)), yes, "{rule}");
    }
}

#[test]
fn the_way_back_to_the_source_is_asked() {
    let walked = |options: &str, src: &str, device: &str| {
        let text = dump(TableKind::Raw, "PREROUTING", &format!("-m rpfilter{options} -j DROP"));
        let mut state = small_state(&text);
        state.sysctls.set("net.ipv4.conf.all.accept_local", "1");
        let kernel = Kernel::new(state).unwrap();
        let end = &kernel.walk(&tcp(src, "10.9.9.9:80"), &from(device), &[])[0];
        matches!(&end.kind, EndKind::Drop(reason) if format!("{reason:?}").starts_with("Rule"))
    };
    assert!(walked("", "10.1.0.9:1", "cbr0"));
    assert!(!walked("", "10.1.0.9:1", "eth0"));
    assert!(walked(" --loose", "10.1.0.9:1", "eth0"));
    assert!(walked(" --invert", "10.1.0.9:1", "eth0"));
    assert!(walked("", "8.8.8.8:1", "eth0"));
    assert!(!walked("", "10.0.0.2:1", "eth0"), "the node's own");
    assert!(walked(" --accept-local --loose", "10.0.0.2:1", "eth0"));
    // Whether the mark is considered.
    let text = "*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j MARK --set-xmark 0x1/0x1\n\
                -A PREROUTING -m rpfilter OPTIONS--invert -j DROP\nCOMMIT\n";
    for (options, dropped) in [("", false), ("--validmark ", true)] {
        let mut state = small_state(&text.replace("OPTIONS", options));
        state.rules = policy_rules::parse(
            "rule",
            "0: from all lookup local\n10: from all to 10.1.0.9 fwmark 0x1 lookup 7\n32766: from all lookup main\n",
        )
        .unwrap();
        state.routes.extend(routes::parse("route", "default dev eth0 table 7\n").unwrap());
        let kernel = Kernel::new(state).unwrap();
        let end = &kernel.walk(&tcp("10.1.0.9:1", "10.9.9.9:80"), &from("cbr0"), &[])[0];
        assert_eq!(matches!(end.kind, EndKind::Drop(_)), dropped, "{options}");
    }
}

#[test]
fn a_list_of_recent_is_filled_and_asked_by_one_packet() {
    let walked = |rules: &str| {
        let rules: String =
            rules.split("; ").map(|rule| format!("-A FORWARD -m recent {rule}\n")).collect();
        ends(
            &small(&format!("*filter\n:FORWARD ACCEPT [0:0]\n{rules}COMMIT\n")),
            tcp("10.1.0.9:1000", "10.9.9.9:80"),
            &from("cbr0"),
        )[0]
        .contains("drop")
    };
    assert!(!walked("--rcheck --name a --rsource -j DROP"));
    assert!(walked("! --rcheck --name a --rsource -j DROP"));
    assert!(walked("--set --name a --rsource; --rcheck --name a --rsource -j DROP"));
    assert!(!walked("--set --name b --rsource; --rcheck --name a --rsource -j DROP"));
    assert!(!walked("--set --name a --rdest; --rcheck --name a --rsource -j DROP"));
    assert!(!walked("--set --name a --rsource; --rcheck --hitcount 2 --name a --rsource -j DROP"));
    assert!(walked(
        "--set --name a --rsource; --update --name a --rsource; --rcheck --hitcount 2 --name a --rsource -j DROP"
    ));
    assert!(!walked(
        "--set --name a --rsource; --remove --name a --rsource; --rcheck --name a --rsource -j DROP"
    ));
    assert!(!walked("--remove --name a --rsource -j DROP"));
    assert!(!walked("! --set --name a --rsource -j DROP"));
}

#[test]
fn kinds_of_icmp_have_names() {
    let echo = Packet {
        src: "10.1.0.9".parse().unwrap(),
        dst: "10.9.9.9".parse().unwrap(),
        transport: Transport::Icmp { kind: 8, code: 0 },
        mark: 0,
    };
    for (name, number) in
        [("echo-request", 8), ("ping", 8), ("destination-unreachable", 3), ("time-exceeded", 11)]
    {
        let rule = |word: &str| {
            dump(
                TableKind::Filter,
                "FORWARD",
                &format!("-p icmp -m icmp --icmp-type {word} -j DROP"),
            )
        };
        let read = iptables::parse("a", &rule(name), Family::V4).unwrap();
        assert_eq!(read.to_string(), rule(&number.to_string()));
        let end = &small(&rule(name)).walk(&echo, &from("cbr0"), &[])[0];
        assert_eq!(matches!(end.kind, EndKind::Drop(_)), number == 8, "{name}");
    }
}

#[test]
fn a_network_is_mapped_and_mapped_back() {
    let text = "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n\
                -A PREROUTING -d 10.5.5.0/24 -j NETMAP --to 10.9.9.0/24\n\
                -A POSTROUTING -s 10.1.0.0/24 -j NETMAP --to 10.77.0.0/16\nCOMMIT\n";
    let kernel = small(text);
    let end = &kernel.walk(&tcp("10.1.0.9:1000", "10.5.5.7:80"), &from("cbr0"), &[])[0];
    assert_eq!(
        common::show(end),
        "1.000 10.77.0.9:1000 > 10.9.9.7:80 out eth0 via 10.0.0.1",
        "the rest of an address is kept"
    );
    let known = [end.connection.clone().unwrap()];
    assert_eq!(
        later(&kernel, end.packet.reply(), &from("eth0"), &known),
        ["1.000 10.5.5.7:80 > 10.1.0.9:1000 out cbr0"]
    );
}

#[test]
fn a_transparent_proxy_gets_what_is_routed_to_it() {
    let text = dump(
        TableKind::Mangle,
        "PREROUTING",
        "-p tcp -j TPROXY --on-port 15001 --on-ip 127.0.0.1 --tproxy-mark 0x1/0x1",
    );
    let mut state = small_state(&text);
    state.rules = policy_rules::parse(
        "rule",
        "0: from all lookup local\n10: from all fwmark 0x1/0x1 lookup 100\n32766: from all lookup main\n",
    )
    .unwrap();
    state.routes.extend(routes::parse("route", "local default dev lo table 100\n").unwrap());
    let kernel = Kernel::new(state).unwrap();
    let all = kernel.walk(&tcp("10.1.0.9:1000", "10.9.9.9:80"), &from("cbr0"), &[]);
    assert_eq!(all.len(), 1);
    assert_eq!(common::show(&all[0]), "1.000 10.1.0.9:1000 > 10.9.9.9:80 local");
    assert!(all[0].steps[0].why.contains("port 15001"), "{:?}", all[0].steps);
    assert!(all[0].supposed[0].subject.to_string().contains("port 15001"));
    // Without the route, the mark alone delivers nothing, and a packet assigned to a socket is
    // not forwarded.
    assert_eq!(
        ends(&small(&text), tcp("10.1.0.9:1000", "10.9.9.9:80"), &from("cbr0")),
        ["1.000 10.1.0.9:1000 > 10.9.9.9:80 drop Invalid"]
    );
}

#[test]
fn a_zone_is_a_supposition() {
    let text = dump(TableKind::Raw, "PREROUTING", "-j CT --zone 7");
    let all = walk(&text, &from("cbr0"));
    assert_eq!(common::show(&all[0]), OUT);
    assert!(all[0].supposed[0].subject.to_string().contains("zones"));
    assert!(walk(&text.replace("--zone 7", "--helper ftp"), &from("cbr0"))[0].supposed.is_empty());
}
