//! The kernel's own tools parse what is printed, and print the same again.
//!
//! Needs root and `iptables-restore`; if either is missing, the test says so and ends.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]
#![allow(clippy::print_stderr, reason = "what is skipped is said")]
#![cfg(target_os = "linux")]

use crate::common::read;
use uturn_model::Family;
use uturn_netfilter::iptables::{self, Match, Ruleset};

/// Loads rules in a new network namespace and returns what `iptables-save` prints.
fn through_the_kernel(tool: &str, text: &str) -> Result<String, String> {
    uturn_testing::in_a_namespace(&format!("{tool}-restore && {tool}-save"), text)
}

fn can_load() -> bool {
    match through_the_kernel("iptables", "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n") {
        Ok(_) => true,
        Err(why) => {
            uturn_testing::skip(
                uturn_testing::Requirement::Kernel,
                "loading rules into a kernel",
                why,
            );
            false
        }
    }
}

/// Removes nfacct matches, whose objects would have to be created with another tool first.
fn without_accounting(mut ruleset: Ruleset) -> Ruleset {
    for table in &mut ruleset.tables {
        for chain in &mut table.chains {
            for rule in &mut chain.rules {
                rule.matches.retain(|item| !matches!(item, Match::Nfacct(_)));
            }
        }
    }
    ruleset
}

fn rules(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().filter(|line| line.starts_with("-A")).collect();
    // The order of tables may differ.
    lines.sort_unstable();
    lines
}

#[test]
fn golden_dumps_load_and_come_back() {
    if !can_load() {
        return;
    }
    for node in ["iptables-n1", "iptables-n2", "iptables-n3"] {
        for (tool, family) in [("iptables", Family::V4), ("ip6tables", Family::V6)] {
            let text = read(node, &format!("{tool}.save"));
            let ruleset = without_accounting(iptables::parse(node, &text, family).unwrap());
            let printed = ruleset.to_string();
            let saved = through_the_kernel(tool, &printed)
                .unwrap_or_else(|why| panic!("{node} {tool}: {why}"));
            assert_eq!(rules(&saved), rules(&printed), "{node} {tool}");
        }
    }
}

#[test]
fn each_rule_is_printed_as_the_tool_prints_it() {
    if !can_load() {
        return;
    }
    let v4 = [
        "! -s 10.0.0.0/8 -d 10.1.2.3 -i eth+ ! -o lo -p tcp -j ACCEPT",
        "-s 10.0.0.9/255.0.0.255 -j RETURN",
        "! -f -j RETURN",
        "-p tcp -m tcp ! --sport 1:2 --dport 80 --tcp-flags ALL SYN,ACK -j DROP",
        "-p udp -m udp --dport 53 -j X",
        "-p sctp -m sctp --dport 53 -g X",
        "-p ipv6 -j X",
        "-p 94 -j X",
        "-p eigrp -j X",
        "-p 103 -j X",
        "-p icmp -m icmp --icmp-type 8 -j X",
        "-p icmp -m icmp --icmp-type any -j X",
        "-p icmp -m icmp --icmp-type 3/4 -j X",
        "-p tcp -m multiport ! --dports 80,443,1000:2000 -j X",
        "-p tcp -m multiport --ports 80 -j X",
        "-m conntrack ! --ctstate ESTABLISHED,RELATED,SNAT --ctstatus CONFIRMED,SEEN_REPLY --ctdir REPLY -j X",
        "-m conntrack --ctstatus NONE -j X",
        "-m conntrack --ctproto 6 --ctorigdst 10.0.0.1 -j X",
        "-m state ! --state NEW,INVALID -j X",
        "-m addrtype ! --src-type LOCAL,UNICAST --dst-type BROADCAST --limit-iface-in -j X",
        "-m mark ! --mark 0x1/0xff -j X",
        "-m connmark --mark 7 -j X",
        "-m statistic --mode random ! --probability 0.3333333333 -j X",
        "-m statistic --mode nth ! --every 3 --packet 1 -j X",
        "-m recent --rcheck --seconds 10800 --reap --name A --mask 255.255.255.255 --rsource -j X",
        "-m recent ! --update --hitcount 3 --rttl --name A --mask 255.255.255.0 --rdest -j X",
        "-m iprange ! --src-range 10.0.0.1-10.0.0.9 --dst-range 10.0.0.1-10.0.0.2 -j X",
        "-m conntrack ! --ctorigsrc 10.0.0.0/8 --ctreplsrc 10.0.0.1 ! --ctrepldst 10.0.0.0/24 -j X",
        "-m conntrack --ctproto 17 --ctorigsrcport 1:2 ! --ctorigdstport 53 --ctreplsrcport 53 --ctrepldstport 9 --ctstatus ASSURED -j X",
        "-m conntrack --ctexpire 1:30 -j X",
        "-p icmp -m icmp --icmp-type ping -j X",
        "-p icmp -m icmp --icmp-type TOS-host-redirect -j X",
        "-m bpf --bytecode \"1,6 0 0 65535\" -j X",
        "-m cgroup --cgroup 1 -j X",
        "-m connlimit --connlimit-upto 3 --connlimit-mask 32 --connlimit-saddr -j X",
        "-m connbytes --connbytes 1000 --connbytes-mode bytes --connbytes-dir both -j X",
        "-m cpu --cpu 0 -j X",
        "-m devgroup --src-group 0x1 -j X",
        "-m dscp --dscp 0x0a -j X",
        "-m hashlimit --hashlimit-upto 5/sec --hashlimit-burst 5 --hashlimit-mode srcip --hashlimit-name a -j X",
        "-m helper --helper ftp -j X",
        "-m length ! --length 60:100 -j X",
        "-m mac ! --mac-source 02:00:00:00:00:01 -j X",
        "-m pkttype --pkt-type broadcast -j X",
        "-m policy --dir in --pol none -j X",
        "-m quota --quota 1000 -j X",
        "-m socket --transparent --nowildcard -j X",
        "-m string --string \"a b\" --algo bm -j X",
        "-m time --timestart 10:00:00 --timestop 11:00:00 --datestop 2038-01-19T03:14:07 -j X",
        "-m tos --tos 0x10/0xff -j X",
        "-m ttl --ttl-gt 3 -j X",
        "-m u32 --u32 \"0x0&0xff=0x1\" -j X",
        "-p tcp -m tcpmss --mss 1000:1400 -j X",
        "-j NFQUEUE --queue-num 1 --queue-bypass",
        "-j NFLOG --nflog-prefix \"a b\"",
        "-j AUDIT --type accept",
        "-m comment --comment \"it's \\\"so\\\"\" -j X",
        "-m limit --limit 5/min --limit-burst 7 -j X",
        "-m owner --uid-owner 1000 -j X",
        "-m physdev ! --physdev-is-in -j X",
        "-j REJECT",
        "-p tcp -j REJECT --reject-with tcp-reset",
        "-j MARK --or-mark 0x4000",
        "-j MARK --set-mark 0x1/0x3",
        "-j MARK --and-mark 0x3",
        "-j CONNMARK --save-mark",
        "-j CONNMARK --restore-mark --mask 0xff",
        "-j CONNMARK --set-mark 0x1/0x3",
        "-j LOG --log-prefix \"a b \"",
    ];
    let nat = [
        "-p tcp -j DNAT --to-destination 10.0.0.1:80",
        "-p tcp -j DNAT --to-destination 10.0.0.1-10.0.0.9:80-90 --random --persistent",
        "-p tcp -j DNAT --to-destination :81",
        "-p tcp -j REDIRECT --to-ports 8080-8090 --random",
        "-j DNAT --to-destination 10.0.0.1",
        "-p tcp -j DNAT --to-destination 10.0.0.1:80-90/8080",
        "-j NETMAP --to 10.0.0.0/24",
        "-j NETMAP --to 10.0.0.1",
    ];
    let mangle = [
        "-m rpfilter --loose --validmark --accept-local --invert -j X",
        "-m rpfilter -j X",
        "-p tcp -j TPROXY --on-port 15001",
        "-p udp -j TPROXY --on-port 15001 --on-ip 127.0.0.1 --tproxy-mark 0x1/0x3",
        "-p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu",
        "-j DSCP --set-dscp 0x08",
        "-j TOS --set-tos 0x10/0xff",
        "-j TTL --ttl-set 3",
        "-j CLASSIFY --set-class 1:10",
        "-j CHECKSUM --checksum-fill",
        "-j CONNMARK --set-mark 0x1",
        "-j CONNMARK --and-mark 0x1",
        "-j CONNMARK --or-mark 0x1",
        "-j CONNMARK --xor-mark 0x1",
        "-j CONNMARK --save-mark --nfmask 0xf --ctmask 0xff",
        "-j TEE --gateway 10.0.0.1",
        "-j HMARK --hmark-src-prefix 32 --hmark-dst-prefix 32 --hmark-rnd 0x00000001 --hmark-mod 3",
    ];
    let raw = ["-j CT --notrack", "-j CT --zone 7", "-j CT --helper ftp", "-j NOTRACK", "-j TRACE"];
    let source = [
        "-j MASQUERADE --random-fully",
        "-p tcp -j MASQUERADE --to-ports 1024-65535 --random",
        "-p tcp -j SNAT --to-source 10.0.0.1-10.0.0.9:80-90 --random-fully",
    ];
    let v6 = [
        "-m conntrack --ctorigdst fd00::1 ! --ctreplsrc fd00::/64 -j X",
        "-p icmpv6 -m icmp6 --icmpv6-type neighbour-solicitation -j X",
        "-m hl --hl-lt 3 -j X",
        "-d fd00::1 -p icmpv6 -m icmp6 --icmpv6-type 128 -j X",
        "-s fd00::/64 -j REJECT --reject-with icmp6-adm-prohibited",
        "-m recent --set --name A --mask ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff --rsource -j X",
    ];
    let nat6 = [
        "-p tcp -j DNAT --to-destination [fd00::1]:80",
        "-p tcp -j DNAT --to-destination [fd00::1-fd00::9]:80-90",
        "-j DNAT --to-destination fd00::1",
    ];
    let (mut seen, mut differ) = (0, Vec::new());
    for (tool, family, table, chain, all) in [
        ("iptables", Family::V4, "filter", "INPUT", v4.as_slice()),
        ("iptables", Family::V4, "nat", "PREROUTING", &nat),
        ("iptables", Family::V4, "nat", "POSTROUTING", &source),
        ("iptables", Family::V4, "mangle", "PREROUTING", &mangle),
        ("iptables", Family::V4, "raw", "PREROUTING", &raw),
        ("ip6tables", Family::V6, "filter", "INPUT", &v6),
        ("ip6tables", Family::V6, "nat", "PREROUTING", &nat6),
    ] {
        for rule in all {
            let rule = if chain == "INPUT" {
                format!("-A Y {rule}")
            } else {
                format!("-A {chain} {rule}")
            };
            let base = if table == "nat" { "" } else { ":Y - [0:0]\n" };
            let text =
                format!("*{table}\n:{chain} ACCEPT [0:0]\n:X - [0:0]\n{base}{rule}\nCOMMIT\n");
            let ours = iptables::parse("rules", &text, family)
                .unwrap_or_else(|errors| panic!("{errors:#?}"));
            let mine = ours.to_string();
            match through_the_kernel(tool, &text) {
                Ok(saved) if rules(&mine) == rules(&saved) => {}
                Ok(saved) => {
                    differ.push(format!(
                        "{tool}\n  ours   {:?}\n  theirs {:?}",
                        rules(&mine),
                        rules(&saved)
                    ));
                }
                // A kernel without that module.
                Err(why) => {
                    eprintln!("skipped {rule}: {}", why.trim());
                    continue;
                }
            }
            through_the_kernel(tool, &mine)
                .unwrap_or_else(|why| panic!("{tool} does not load {mine}: {why}"));
            seen += 1;
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    assert!(seen > 20, "only {seen} rules could be loaded");
}
