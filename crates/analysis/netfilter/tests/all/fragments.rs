//! Partial dumps, and historic spellings.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use uturn_model::Family;
use uturn_netfilter::iptables::{self, Ruleset, parse_fragment};

fn onto(base: &str, text: &str) -> Result<String, Vec<String>> {
    let base = iptables::parse("base", base, Family::V4).unwrap();
    match parse_fragment(base, "part", text, Family::V4) {
        Ok(ruleset) => Ok(ruleset.to_string()),
        Err(errors) => Err(errors.iter().map(ToString::to_string).collect()),
    }
}

const BASE: &str = "*nat\n:PREROUTING ACCEPT [0:0]\n:A - [0:0]\n:B - [0:0]\n\
                    -A PREROUTING -j A\n-A A -j B\n-A B -j RETURN\nCOMMIT\n";

#[test]
fn a_fragment_is_loaded_onto_what_is_there() {
    // As kube-proxy does: declared chains are rewritten, others stay.
    let text =
        "*nat\n:B - [0:0]\n:C - [0:0]\n-A B -p tcp -j C\n-A C -j ACCEPT\n-A A -j C\nCOMMIT\n";
    assert_eq!(
        onto(BASE, text).unwrap(),
        "*nat\n:PREROUTING ACCEPT [0:0]\n:A - [0:0]\n:B - [0:0]\n:C - [0:0]\n\
         -A PREROUTING -j A\n-A A -j B\n-A A -j C\n-A B -p tcp -j C\n-A C -j ACCEPT\nCOMMIT\n"
    );
    let delete = "*nat\n-F A\n-F B\n-X B\n-N D\nCOMMIT\n*raw\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n";
    assert_eq!(
        onto(BASE, delete).unwrap(),
        "*nat\n:PREROUTING ACCEPT [0:0]\n:A - [0:0]\n:D - [0:0]\n-A PREROUTING -j A\nCOMMIT\n\
         *raw\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n"
    );
    assert_eq!(
        onto(BASE, "*nat\n-X GONE\n-N A\n-F\n-X A B\nCOMMIT\n").unwrap_err(),
        [
            "part:2:4: chain GONE is not in this table",
            "part:3:4: chain A is there already",
            "part:5:1: found \"-X A B\", expected -X CHAIN",
        ]
    );
}

#[test]
fn a_few_chains_of_a_dump_are_read_alone() {
    let text =
        "*nat\n-A PREROUTING -j KUBE-SERVICES\n-A KUBE-SERVICES -d 10.0.0.1/32 -j KUBE-SVC\n";
    let read = parse_fragment(Ruleset::default(), "part", text, Family::V4).unwrap();
    assert_eq!(
        read.to_string(),
        "*nat\n:PREROUTING ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\n\
         -A PREROUTING -j KUBE-SERVICES\n-A KUBE-SERVICES -d 10.0.0.1/32 -j KUBE-SVC\nCOMMIT\n"
    );
    assert!(iptables::parse("part", text, Family::V4).is_err(), "as a whole dump it is cut");
    let twice = "*nat\n-A A -j ACCEPT\nCOMMIT\n*nat\n-A A -j DROP\nCOMMIT\n";
    assert_eq!(
        parse_fragment(Ruleset::default(), "part", twice, Family::V4).unwrap().to_string(),
        "*nat\n:A - [0:0]\n-A A -j ACCEPT\n-A A -j DROP\nCOMMIT\n"
    );
    let bad = "*nat\n-A A -s 1.2.3.4.5\n*strange\n-A A -j DROP\n";
    let errors = parse_fragment(Ruleset::default(), "part", bad, Family::V4).unwrap_err();
    let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "part:2:9: found \"1.2.3.4.5\", expected an IPv4 address or network",
            "part:3:2: found table \"strange\", expected raw, mangle, nat, filter or security",
        ]
    );
}

#[test]
fn old_spellings_are_understood() {
    for (old, new) in [
        ("-s ! 10.0.0.0/8 -j X", "! -s 10.0.0.0/8 -j X"),
        ("-p ! tcp -i ! eth0 -j X", "! -i eth0 ! -p tcp -j X"),
        ("-p tcp --dport ! 80 -j X", "-p tcp -m tcp ! --dport 80 -j X"),
        ("-p tcp -m tcp --tcp-flags ! SYN,RST SYN", "-p tcp -m tcp ! --tcp-flags SYN,RST SYN"),
        ("-p tcp --syn ! --dport 80", "-p tcp -m tcp ! --dport 80 --tcp-flags FIN,SYN,RST,ACK SYN"),
        ("-m conntrack --ctstate ! NEW -j X", "-m conntrack ! --ctstate NEW -j X"),
        ("-m state --state ESTABLISHED,NEW -j X", "-m state --state NEW,ESTABLISHED -j X"),
        ("-m mark --mark ! 1 -j X", "-m mark ! --mark 0x1 -j X"),
        ("-p tcp --destination-port 80 -j X", "-p tcp -m tcp --dport 80 -j X"),
        ("--src 10.0.0.1 --proto udp --jump X", "-s 10.0.0.1/32 -p udp -j X"),
        ("-p icmp --icmp-type echo-request", "-p icmp -m icmp --icmp-type 8"),
        ("-p tcp --dport https -j X", "-p tcp -m tcp --dport 443 -j X"),
        ("-p tcp -m multiport --dports ssh,www -j X", "-p tcp -m multiport --dports 22,80 -j X"),
        ("-p ipv6 -j X", "-p ipv6 -j X"),
        ("-p 41 -j X", "-p ipv6 -j X"),
        (
            "-p all -j REJECT --reject-with port-unreach",
            "-j REJECT --reject-with icmp-port-unreachable",
        ),
        ("-m comment --comment ! -j X", "-m comment --comment \"!\" -j X"),
    ] {
        let text = format!("*filter\n:C - [0:0]\n:X - [0:0]\n-A C {old}\nCOMMIT\n");
        let read = iptables::parse("old", &text, Family::V4).unwrap_or_else(|e| panic!("{e:?}"));
        assert_eq!(read.to_string(), text.replace(old, new), "{old}");
    }
}

#[test]
fn counters_stand_before_a_rule_or_in_it() {
    let written = "*filter\n:C - [0:0]\n-A C -s 1.2.3.4 -c 12 345 -j DROP\n[1:2] -A C -j DROP\n\
                   -A C -m what --ever 1 -c 3 4 -j DROP\nCOMMIT\n";
    let printed = "*filter\n:C - [0:0]\n[12:345] -A C -s 1.2.3.4/32 -j DROP\n[1:2] -A C -j DROP\n\
                   [3:4] -A C -m what --ever 1 -j DROP\nCOMMIT\n";
    assert_eq!(iptables::parse("a", written, Family::V4).unwrap().to_string(), printed);
    let bad = written.replace("-c 12 345", "-c 12 many");
    let errors = iptables::parse("a", &bad, Family::V4).unwrap_err();
    assert_eq!(errors[0].to_string(), "a:3:23: found \"many\", expected a number");
}

#[test]
fn a_dump_says_that_it_is_not_all() {
    let text = "# Generated by iptables-save v1.8.9 (nf_tables)\n*filter\n:C - [0:0]\nCOMMIT\n\
                # Warning: iptables-legacy tables present, use iptables-legacy-save to see them\n";
    assert!(iptables::parse("a", text, Family::V4).is_ok());
    let shown: Vec<String> =
        iptables::warnings("a", text).iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "a:5:1: \"Warning: iptables-legacy tables present, use iptables-legacy-save to see them\": these rules are not in this dump, capture them too"
        ]
    );
}

/// A text of a few kilobytes could else move or make billions of rules.
#[test]
fn the_work_of_one_text_is_bounded() {
    let errors = |text: &str| {
        let read = parse_fragment(Ruleset::default(), "part", text, Family::V4);
        read.unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let text =
        format!("*nat\n-N A\n{}-A A -j NOTHING --of=it\nCOMMIT\n", "-I A -j B\n".repeat(100_000));
    assert_eq!(
        errors(&text),
        [
            "part:4475:1: the commands of this text move or compare more than 10000000 rules: nothing \
          from here on was read, write the rules in their final order with -A"
        ]
    );
    let addresses = vec!["10.0.0.1"; 5_000].join(",");
    let text = format!("*nat\n-A A -s {addresses} -d {addresses} -j B\nCOMMIT\n");
    assert_eq!(
        errors(&text),
        ["part:2:45012: lists of addresses stand for more than 10000 rules in this text: nothing \
          from here on was read, use a network or an ipset"]
    );
    let text = format!("*nat\n-A A -s {addresses} -j B\nCOMMIT\n");
    let read = parse_fragment(Ruleset::default(), "part", &text, Family::V4).unwrap();
    assert_eq!(read.tables[0].chains[0].rules.len(), 5_000);
}
