//! IP sets: parsed, printed back, loaded by the kernel's own tool, and matched by rules.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use std::fmt::Write as _;

use crate::common::{ends, from, read, small_state, tcp};
use uturn_model::{Family, StepKind};
use uturn_netfilter::ipset::{self, SetKind};
use uturn_netfilter::{EndKind, Entry, Kernel, Packet, Transport, iptables};
use uturn_testing::in_a_namespace;

const SAVED: &str = "\
create ip hash:ip family inet hashsize 1024 maxelem 65536 bucketsize 12 initval 0x35104bf5
add ip 10.1.0.9
create wide hash:ip family inet hashsize 1024 maxelem 65536 netmask 24 bucketsize 12 initval 0xb6252c9d
add wide 10.1.0.0
create gap hash:ip family inet hashsize 1024 maxelem 65536 bitmask 255.0.255.0
add gap 10.0.9.0
create port hash:ip,port family inet hashsize 1024 maxelem 65536
add port 10.9.9.9,tcp:80
add port 10.9.9.9,icmp:echo-request
add port 10.9.9.9,icmp:host-unreachable
add port 10.9.9.9,vrrp:0
add port 10.9.9.8,tcp:80-89
create loop hash:ip,port,ip family inet hashsize 1024 maxelem 65536
add loop 10.9.9.9,tcp:80,10.1.0.9
create range hash:ip,port,net family inet hashsize 1024 maxelem 65536
add range 10.9.9.9,tcp:80,10.1.0.0/16
add range 10.9.9.9,tcp:80,10.1.0.0/24 nomatch
add range 10.9.9.9,tcp:80,10.1.0.9
create net hash:net family inet hashsize 1024 maxelem 65536
add net 10.0.0.0/8
add net 10.1.0.0/16 nomatch
add net 10.1.7.0/24
create netport hash:net,port family inet hashsize 1024 maxelem 65536
add netport 10.1.0.0/24,tcp:80
create netnet hash:net,net family inet hashsize 1024 maxelem 65536
add netnet 10.1.0.0/24,10.9.0.0/16
create iface hash:net,iface family inet hashsize 1024 maxelem 65536
add iface 10.1.0.0/16,cbr0
add iface 10.2.0.0/16,eth wildcard
add iface 10.3.0.0/16,physdev:veth1
create mac hash:mac hashsize 1024 maxelem 65536
add mac 02:00:00:00:00:01
create mark hash:ip,mark family inet markmask 0x000000ff hashsize 1024 maxelem 65536
add mark 10.1.0.9,0x00000001
create ports bitmap:port range 0-65535
add ports 80
create block bitmap:ip range 10.1.0.0-10.1.0.255
add block 10.1.0.9
create v6 hash:ip family inet6 hashsize 1024 maxelem 65536 timeout 300 counters comment skbinfo
add v6 fd00::1 timeout 0 packets 0 bytes 0 comment \"one, two\" skbmark 0x1/0xff skbprio 1:2 skbqueue 3
create odd hash:secret family inet
add odd whatever,it:is with 3 words
create list list:set size 8
add list v6
add list net
add list ip
";

#[test]
fn what_was_read_prints_back_to_the_letter() {
    let sets = ipset::parse("ipset.save", SAVED).unwrap();
    assert_eq!(sets.to_string(), SAVED);
    assert_eq!(sets.0.len(), 17);
    assert_eq!(sets.set("odd").unwrap().kind, SetKind::Other("hash:secret".into()));
    assert_eq!(sets.set("v6").unwrap().family(), Some(Family::V6));
    assert_eq!(sets.set("v6").unwrap().option("timeout"), Some("300"));
    for node in ["ipvs-n1", "ipvs-n2"] {
        let text = read(node, "ipset.save");
        let sets = ipset::parse("ipset.save", &text).unwrap();
        assert_eq!(sets.to_string(), text, "{node}");
        assert!(sets.0.iter().all(|set| !matches!(set.kind, SetKind::Other(_))));
    }
}

#[test]
fn lists_come_behind_what_they_name() {
    let text = "create l list:set\ncreate a hash:ip\nadd l a\n";
    let sets = ipset::parse("s", text).unwrap();
    assert_eq!(sets.to_string(), "create a hash:ip\ncreate l list:set\nadd l a\n");
    let errors = ipset::parse("s", "create l list:set\ncreate m list:set\nadd l m\n").unwrap_err();
    assert_eq!(errors[0].to_string(), "s:3:7: set m is a list, expected no list in a list");
}

#[test]
fn every_bad_line_is_named() {
    let text = "destroy X\ncreate A hash:ip family inet9\ncreate B hash:ip,port\ncreate B hash:ip\n\
                add B 10.0.0.1\nadd B 10.0.0.1,tcp:http\nadd B fd00::1,80\nadd C 10.0.0.1\n\
                create D list:set\nadd D E\nadd B 10.0.0.1,80 timeout x\nadd B 10.0.0.2,80 \"a\nadd B 10.0.";
    let shown: Vec<String> =
        ipset::parse("s", text).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            r#"s:1:1: found "destroy", expected create or add"#,
            r#"s:2:25: found "inet9", expected inet or inet6"#,
            "s:4:8: set B a second time, the first is on line 3",
            r#"s:5:7: found "10.0.0.1", expected 2 parts with commas"#,
            r#"s:6:16: found "tcp:http", expected a port: `tcp:80` or `80-90`"#,
            r#"s:7:7: found "fd00::1", expected an IPv4 address, a network or a range"#,
            "s:8:5: set C is not created before this line",
            "s:10:7: set E is not created before this line",
            r#"s:11:27: found "x", expected a number"#,
            "s:12:19: found a quote without its end",
            r#"s:13:7: found "10.0.", expected an IPv4 address, a network or a range"#,
            "s:13:1: the text ends within this line, expected a line break: the dump is cut",
        ]
    );
}

/// Whether a rule with this match drops a packet from a pod: yes, no, or both.
fn dropped(rule: &str, packet: Packet, entry: &Entry) -> &'static str {
    let text = format!(
        "*filter\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n-A FORWARD {rule} -j DROP\n\
         -A OUTPUT {rule} -j DROP\nCOMMIT\n"
    );
    let mut state = small_state(&text);
    state.sets = ipset::parse("ipset.save", SAVED).unwrap();
    let kernel = Kernel::new(state).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let ends = kernel.walk(&packet, entry, &[]);
    let drops = ends.iter().filter(|end| matches!(end.kind, EndKind::Drop(_))).count();
    match (drops, ends.len()) {
        (0, 1) => "no",
        (1, 1) => "yes",
        _ => "both",
    }
}

#[test]
fn rules_look_at_the_ends_that_they_name() {
    let packet = tcp("10.1.0.9:1000", "10.9.9.9:80");
    for (options, expected) in [
        ("--match-set ip src", "yes"),
        ("--match-set ip dst", "no"),
        ("! --match-set ip src", "no"),
        ("! --match-set ip dst", "yes"),
        ("--match-set wide src", "yes"),
        ("--match-set wide dst", "no"),
        ("--match-set gap dst", "yes"),
        ("--match-set gap src", "no"),
        ("--match-set port dst,dst", "yes"),
        ("--match-set port dst,src", "no"),
        ("--match-set port src,dst", "no"),
        ("--match-set port dst", "no"),
        ("! --match-set port dst", "yes"),
        ("--match-set port dst,dst,dst", "yes"),
        ("--match-set loop dst,dst,src", "yes"),
        ("--match-set loop dst,dst,dst", "no"),
        ("--match-set range dst,dst,src", "yes"),
        ("--match-set net dst", "yes"),
        ("--match-set net src", "no"),
        ("! --match-set net src", "yes"),
        ("--match-set net src --return-nomatch", "yes"),
        ("--match-set net dst --return-nomatch", "no"),
        ("--match-set netport src,dst", "yes"),
        ("--match-set netport src,src", "no"),
        ("--match-set netnet src,dst", "yes"),
        ("--match-set netnet dst,src", "no"),
        ("--match-set iface src,src", "yes"),
        ("--match-set iface src,dst", "no"),
        ("--match-set mac src", "both"),
        ("--match-set mark src,src", "no"),
        ("--match-set ports dst", "yes"),
        ("--match-set ports src", "no"),
        ("--match-set block src", "yes"),
        ("--match-set v6 src", "no"),
        ("! --match-set v6 src", "yes"),
        ("--match-set odd src", "both"),
        ("--match-set list src", "yes"),
        ("--match-set list dst", "yes"),
        ("--match-set ip src --packets-gt 7", "both"),
        ("--match-set ip src ! --update-counters", "yes"),
    ] {
        let rule = format!("-m set {options}");
        assert_eq!(dropped(&rule, packet, &from("cbr0")), expected, "{options}");
    }
}

#[test]
fn other_packets_and_other_interfaces() {
    let within = |address: &str| tcp(&format!("{address}:1000"), "10.9.9.9:80");
    for (set, packet, expected) in [
        ("net src", within("10.1.7.9"), "yes"),
        ("net src", within("10.2.7.9"), "yes"),
        ("range dst,dst,src", within("10.1.0.8"), "no"),
        ("range dst,dst,src", within("10.1.1.8"), "yes"),
        ("iface src,dst", within("10.2.0.1"), "yes"),
        ("iface src,src", within("10.2.0.1"), "no"),
        ("iface src,src", within("10.3.0.1"), "both"),
        ("port dst,dst", tcp("10.1.0.9:1", "10.9.9.8:85"), "yes"),
        ("port dst,dst", tcp("10.1.0.9:1", "10.9.9.8:90"), "no"),
    ] {
        let rule = format!("-m set --match-set {set}");
        assert_eq!(dropped(&rule, packet, &from("cbr0")), expected, "{set} {}", packet.leg());
    }
    // A locally generated packet has neither a source hardware address nor an incoming interface.
    assert_eq!(dropped("-m set --match-set mac src", within("10.0.0.2"), &Entry::Local), "no");
    let made_here = tcp("10.1.0.1:1", "10.9.9.9:80");
    assert_eq!(dropped("-m set --match-set iface src,src", made_here, &Entry::Local), "no");
    let mut ping = tcp("10.1.0.9:1", "10.9.9.9:1");
    ping.transport = Transport::Icmp { kind: 8, code: 0 };
    assert_eq!(dropped("-m set --match-set port dst,dst", ping, &from("cbr0")), "yes");
    ping.transport = Transport::Icmp { kind: 3, code: 1 };
    assert_eq!(dropped("-m set --match-set port dst,dst", ping, &from("cbr0")), "both");
    assert_eq!(dropped("-m set --match-set ports dst", ping, &from("cbr0")), "no");
    let marked = "*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j MARK --set-mark 0x101\nCOMMIT\n\
                  *filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m set --match-set mark src,src -j DROP\nCOMMIT\n";
    let mut state = small_state(marked);
    state.sets = ipset::parse("ipset.save", SAVED).unwrap();
    let ends = ends(&Kernel::new(state).unwrap(), within("10.1.0.9"), &from("cbr0"));
    assert_eq!(ends, ["1.000 10.1.0.9:1000 > 10.9.9.9:80 drop Rule"]);
}

#[test]
fn a_rule_that_names_a_missing_set_is_not_loaded() {
    let text = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m set --match-set GONE src -j DROP\n\
                -A FORWARD -m set --match-set GONE dst -j DROP\n\
                -A FORWARD -j SET --add-set LOST src\nCOMMIT\n";
    let errors = Kernel::new(small_state(text)).unwrap_err();
    let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "rules:3:1: this rule names the set GONE (so does one more rule), and there is no such set: is `ipset save` of the same node missing?",
            "rules:5:1: this rule names the set LOST, and there is no such set: is `ipset save` of the same node missing?",
        ]
        .map(|line| line.replace(":1: ", ": "))
    );
}

#[test]
fn a_rule_that_changes_a_set_is_walked_on_and_reported() {
    let text =
        "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -j SET --add-set ip src --exist\nCOMMIT\n";
    let mut state = small_state(text);
    state.sets = ipset::parse("ipset.save", SAVED).unwrap();
    let kernel = Kernel::new(state).unwrap();
    let ends = kernel.walk(&tcp("10.1.0.9:1000", "10.9.9.9:80"), &from("cbr0"), &[]);
    assert_eq!(ends.len(), 1);
    assert_eq!(ends[0].kind, EndKind::Forward);
    assert_eq!(ends[0].supposed[0].subject, "the set ip, which -j SET changes".into());
}

#[test]
fn matches_print_as_they_were_written() {
    for rule in [
        "-m set --match-set A src -j DROP",
        "-m set ! --match-set A src,dst,dst --return-nomatch ! --update-counters ! --update-subcounters -j DROP",
        "-m set --match-set A src --packets-gt 7 -j DROP",
        "-m ipvs ! --ipvs -j DROP",
        "-m ipvs --vproto 6 ! --vaddr 10.0.0.0/8 --vport 80 --vdir ORIGINAL ! --vmethod GATE --vportctl 21 -j DROP",
    ] {
        let text = format!("*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD {rule}\nCOMMIT\n");
        assert_eq!(iptables::parse("rules", &text, Family::V4).unwrap().to_string(), text);
    }
}

#[test]
fn a_dump_cut_anywhere_is_refused_or_ends_with_a_line() {
    for end in 0..SAVED.len() {
        let cut = &SAVED[..end];
        match ipset::parse("s", cut) {
            Ok(sets) => assert_eq!(sets.to_string(), cut, "what is taken is taken whole"),
            Err(errors) => assert!(errors.iter().all(|error| error.origin.line() > 0)),
        }
    }
}

fn can_load() -> bool {
    match in_a_namespace("ipset restore && ipset save", "create a hash:ip\n") {
        Ok(_) => true,
        Err(why) => {
            uturn_testing::skip(
                uturn_testing::Requirement::Ipset,
                "loading sets into a kernel",
                why,
            );
            false
        }
    }
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn golden_sets_load_and_come_back() {
    if !can_load() {
        return;
    }
    for node in ["ipvs-n1", "ipvs-n2"] {
        let printed = ipset::parse(node, &read(node, "ipset.save")).unwrap().to_string();
        let saved = in_a_namespace("ipset restore && ipset save", &printed).unwrap();
        assert_eq!(sorted(&saved), sorted(&printed), "{node}");
        let again = ipset::parse(node, &saved).unwrap();
        assert_eq!(sorted(&again.to_string()), sorted(&printed));
    }
}

/// Compares the kernel's answers for many addresses with those of a rule.
#[test]
fn the_kernel_finds_the_same() {
    if !can_load() {
        return;
    }
    let mut seed = 7u32;
    let mut random = |below: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 16) % below
    };
    let ip = |random: &mut dyn FnMut(u32) -> u32| {
        format!("10.{}.{}.{}", random(2), random(2), random(8))
    };
    let mut text = String::from(
        "create n hash:net\ncreate i hash:ip\ncreate w hash:ip netmask 30\n\
         create p hash:ip,port,net\ncreate b bitmap:ip range 10.0.0.0/16\n",
    );
    for _ in 0..24 {
        let nomatch = if random(3) == 0 { " nomatch" } else { "" };
        writeln!(text, "add n {}/{}{nomatch} -exist", ip(&mut random), 15 + random(18)).unwrap();
        writeln!(text, "add i {}/{} -exist", ip(&mut random), 29 + random(4)).unwrap();
        writeln!(text, "add w {} -exist", ip(&mut random)).unwrap();
        writeln!(
            text,
            "add p {},tcp:{}-82,{}/{}{nomatch} -exist",
            ip(&mut random),
            80 + random(3),
            ip(&mut random),
            15 + random(18)
        )
        .unwrap();
        let first = random(100);
        writeln!(text, "add b 10.0.0.{first}-10.0.0.{} -exist", first + random(9)).unwrap();
    }
    let sets = ipset::parse("made", &text).unwrap();
    let mut questions = Vec::new();
    for _ in 0..80 {
        let (a, b) = (ip(&mut random), ip(&mut random));
        let port = 79 + random(5);
        questions.push(("n src", format!("n {a}"), a.clone(), b.clone(), port));
        questions.push(("i src", format!("i {a}"), a.clone(), b.clone(), port));
        questions.push(("w src", format!("w {a}"), a.clone(), b.clone(), port));
        questions.push(("p dst,dst,src", format!("p {b},tcp:{port},{a}"), a.clone(), b, port));
        let near = format!("10.0.0.{}", random(110));
        questions.push(("b src", format!("b {near}"), near, a, port));
    }
    let mut script = String::from("ipset restore\n");
    for (_, question, ..) in &questions {
        writeln!(script, "ipset -q test {question} && echo yes || echo no").unwrap();
    }
    let answers = in_a_namespace(&script, &text).unwrap();
    let answers: Vec<&str> = answers.lines().collect();
    assert_eq!(answers.len(), questions.len());
    let mut yes = 0;
    for ((set, question, src, dst, port), answer) in questions.iter().zip(&answers) {
        let rules = format!(
            "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -m set --match-set {set} -j DROP\nCOMMIT\n"
        );
        let mut state = small_state(&rules);
        state.sets = sets.clone();
        let kernel = Kernel::new(state).unwrap();
        let packet = tcp(&format!("{src}:1"), &format!("{dst}:{port}"));
        let ends = kernel.walk(&packet, &from("eth0"), &[]);
        let dropped = ends[0].steps.iter().any(|step| step.by.rule().contains("--match-set"));
        assert_eq!(dropped, *answer == "yes", "{question}\n{text}");
        yes += usize::from(dropped);
    }
    assert!(yes > 40 && yes + 40 < questions.len(), "{yes} of {}", questions.len());
}

/// Rules that use sets load together with them, and `iptables-save` prints them as this crate
/// does.
#[test]
fn golden_rules_and_sets_load_together() {
    if !can_load() {
        return;
    }
    let lines = |text: &str| {
        let mut lines: Vec<String> =
            text.lines().filter(|line| line.starts_with("-A")).map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    for node in ["ipvs-n1", "ipvs-n2"] {
        let sets = ipset::parse(node, &read(node, "ipset.save")).unwrap().to_string();
        let rules = iptables::parse(node, &read(node, "iptables.save"), Family::V4).unwrap();
        let printed = rules.to_string();
        let script =
            format!("ipset restore <<'SETS'\n{sets}SETS\niptables-restore\niptables-save\n");
        match in_a_namespace(&script, &printed) {
            Ok(saved) => assert_eq!(lines(&saved), lines(&printed), "{node}"),
            Err(why) => uturn_testing::skip(
                uturn_testing::Requirement::Ipset,
                "loading rules that ask sets",
                why,
            ),
        }
    }
    let all = "-A FORWARD -m set ! --match-set A src,dst,dst --return-nomatch ! --update-counters \
               ! --update-subcounters -j DROP\n-A FORWARD -m set --match-set A src --packets-gt 7 -j DROP\n\
               -A FORWARD -j SET --add-set A src --exist --timeout 7\n";
    let text = format!("*filter\n:FORWARD ACCEPT [0:0]\n{all}COMMIT\n");
    let printed = iptables::parse("rules", &text, Family::V4).unwrap().to_string();
    let script =
        "ipset create A hash:net,net || ipset create A hash:net; iptables-restore; iptables-save";
    match in_a_namespace(script, &printed) {
        Ok(saved) => assert_eq!(lines(&saved), lines(&printed)),
        Err(why) => uturn_testing::skip(
            uturn_testing::Requirement::Ipset,
            "loading rules that ask sets",
            why,
        ),
    }
}

#[test]
fn what_ipset_list_prints_is_read_as_what_ipset_save_prints() {
    let list = "Name: A\nType: hash:ip,port,ip\nRevision: 5\nHeader: family inet hashsize 1024 \
                maxelem 65536\nSize in memory: 200\nReferences: 1\nNumber of entries: 2\nMembers:\n\
                10.1.2.20,tcp:8080,10.1.2.20\n10.1.2.21,udp:53,10.1.2.21 timeout 7\n\n\
                Name: B\nType: hash:net\nRevision: 6\nHeader: family inet hashsize 1024 maxelem \
                65536 comment\nSize in memory: 200\nReferences: 1\nNumber of entries: 1\nMembers:\n\
                10.0.0.0/8 comment \"two words\"\n\nName: C\nType: list:set\nHeader: size 8\n\
                Number of entries: 1\nMembers:\nA\n";
    let save = "create A hash:ip,port,ip family inet hashsize 1024 maxelem 65536\n\
                create B hash:net family inet hashsize 1024 maxelem 65536 comment\n\
                create C list:set size 8\n\
                add A 10.1.2.20,tcp:8080,10.1.2.20\nadd A 10.1.2.21,udp:53,10.1.2.21 timeout 7\n\
                add B 10.0.0.0/8 comment \"two words\"\nadd C A\n";
    let read = |text: &str| ipset::parse("a", text).unwrap_or_else(|e| panic!("{e:#?}"));
    assert_eq!(read(list).to_string(), read(save).to_string());
    for (text, expected) in [
        (
            "Name: A\nType: hash:ip\nHeader: family inet\nNumber of entries: 2\n",
            "a:1: set A is listed without its members (`ipset list -t`?): run `ipset save`",
        ),
        (
            "Name: A\nType: hash:ip\nHeader: family inet\nNumber of entries: 2\nMembers:\n10.0.0.1\n",
            "a:1: set A has 2 entries, found 1: the list is cut",
        ),
        (
            "Name: A\nType: hash:ip\nHeader: family inet\nMembers:\n10.0.0.1.5\n",
            "a:5:1: found \"10.0.0.1.5\", expected an IPv4 address, a network or a range",
        ),
        ("Name: A\nMembers:\n", "a:2:1: found no header of set A, expected one before this"),
        (
            "Name: A\"B\nType: hash:ip\nHeader: family inet\nMembers:\n",
            "a:1:7: found \"A\\\"B\", expected no quote within it",
        ),
        (
            "Name: A\nType: hash:ip\"\nHeader: family inet\nMembers:\n",
            "a:2:7: found \"hash:ip\\\"\", expected no quote within it",
        ),
    ] {
        assert_eq!(ipset::parse("a", text).unwrap_err()[0].to_string(), expected);
    }
}

/// Ranges on three sides of an entry are as many prefixes as the product of theirs: a set that would need too
/// many is not known, and the others are.
#[test]
fn ranges_that_take_too_much_room_are_not_known() {
    let mut text =
        "create wide hash:ip,port,ip family inet hashsize 1024 maxelem 65536\n".to_owned();
    for number in 0..200 {
        let entry =
            format!("10.{number}.0.1-10.{number}.255.254,tcp:1-65534,10.0.0.1-10.255.255.254");
        writeln!(text, "add wide {entry}").unwrap();
    }
    text.push_str("create few hash:ip,port family inet hashsize 1024 maxelem 65536\n");
    text.push_str("add few 10.1.0.1-10.1.0.200,tcp:1-65534\n");
    for (rule, expected) in [("few src,dst", 1), ("wide src,dst,dst", 2)] {
        let mut state = small_state(&format!(
            "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m set --match-set {rule} -j DROP\nCOMMIT\n"
        ));
        state.sets = ipset::parse("sets", &text).unwrap();
        let kernel = Kernel::new(state).unwrap();
        let ends = kernel.walk(&tcp("10.1.0.9:1000", "10.9.9.9:80"), &from("cbr0"), &[]);
        assert_eq!(ends.len(), expected, "{rule}: {ends:?}");
        let is_open = ends.iter().all(|end| end.open_questions.len() == expected - 1);
        assert!(is_open, "{rule}: {ends:?}");
        let why = ends[0].steps.iter().find(|step| step.kind == StepKind::Unknown);
        let names_entry = |why: &str| {
            // The entries before it fit.
            why.starts_with("with the entry 10.")
                && why.contains(",tcp:1-65534,10.0.0.1-10.255.255.254 of set wide (sets:")
                && why.contains(" take more than 500000 prefixes")
        };
        assert_eq!(
            why.is_some_and(|step| names_entry(&step.why)),
            expected == 2,
            "{rule}: {why:?}"
        );
    }
}
