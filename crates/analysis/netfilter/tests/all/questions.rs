//! Unknown properties of a packet are decided once per branch: there are no contradictory
//! branches.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use crate::common::{from, small, small_state, tcp};
use uturn_model::Share;
use uturn_netfilter::{Assumptions, End, EndKind, Entry, FactSubject, Kernel, PacketFact, nft};

/// The ends with their answers, sorted: `the sender's user is 1337: drop`.
fn cases(kernel: &Kernel, entry: &Entry, assumed: &Assumptions) -> Vec<String> {
    let packet = match entry {
        Entry::Local => tcp("10.0.0.2:1000", "10.9.9.9:80"),
        Entry::Interface(_) => tcp("10.1.0.9:1000", "10.9.9.9:80"),
    };
    let ends = kernel.walk_assuming(&packet, entry, &[], assumed);
    assert!(Share::add_up_to_all(ends.iter().map(|end| end.share)), "{ends:?}");
    let mut all: Vec<String> = ends.iter().map(shown).collect();
    all.sort();
    all
}

fn shown(end: &End) -> String {
    let cases: Vec<String> =
        end.open_questions.iter().map(|(question, holds)| question.describe(*holds)).collect();
    let kind = match &end.kind {
        EndKind::Drop(_) => "drop",
        EndKind::Forward => "out",
        other => panic!("{other:?}"),
    };
    format!("{}: mark {} {kind}", cases.join(", "), end.packet.mark)
}

fn output(rules: &str) -> Kernel {
    let rules: String = rules.split("; ").map(|rule| format!("-A OUTPUT {rule}\n")).collect();
    small(&format!("*filter\n:OUTPUT ACCEPT [0:0]\n{rules}COMMIT\n"))
}

fn local(rules: &str) -> Vec<String> {
    cases(&output(rules), &Entry::Local, &Assumptions::default())
}

fn forwarded(rules: &str) -> Vec<String> {
    let rules: String = rules.split("; ").map(|rule| format!("-A FORWARD {rule}\n")).collect();
    let kernel = small(&format!("*filter\n:FORWARD ACCEPT [0:0]\n{rules}COMMIT\n"));
    cases(&kernel, &from("cbr0"), &Assumptions::default())
}

const MARKED: &str = "-j MARK --set-xmark";

#[test]
fn two_rules_that_ask_for_one_user_are_one_question() {
    // In one hook and in another, plain and negated.
    let text = format!(
        "*mangle\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n\
         -A OUTPUT -m owner --uid-owner 1337 {MARKED} 0x1/0x1\n\
         -A OUTPUT -m owner ! --uid-owner 1337 {MARKED} 0x2/0x2\n\
         -A POSTROUTING -m owner --uid-owner 1337 {MARKED} 0x4/0x4\nCOMMIT\n\
         *nat\n:OUTPUT ACCEPT [0:0]\n\
         -A OUTPUT -m owner --uid-owner 1337 -j DNAT --to-destination 10.9.9.8\nCOMMIT\n"
    );
    let kernel = small(&text);
    assert_eq!(
        cases(&kernel, &Entry::Local, &Assumptions::default()),
        ["the sender's user is 1337: mark 5 out", "the sender's user is not 1337: mark 2 out",]
    );
}

#[test]
fn users_and_groups_are_two_questions_and_ranges_of_one_hang_together() {
    assert_eq!(
        local("-m owner --uid-owner 1000-2000 -j ACCEPT; -m owner --uid-owner 1337 -j DROP"),
        [
            "the sender's user is not one from 1000 to 2000: mark 0 out",
            "the sender's user is one from 1000 to 2000: mark 0 out",
        ]
    );
    let rules = format!(
        "-m owner --uid-owner 5 {MARKED} 0x1/0x1; -m owner --uid-owner 0-9 {MARKED} 0x2/0x2; \
         -m owner --uid-owner 7 {MARKED} 0x4/0x4"
    );
    let text = format!(
        "*mangle\n:OUTPUT ACCEPT [0:0]\n-A OUTPUT {}\nCOMMIT\n",
        rules.replace("; ", "\n-A OUTPUT ")
    );
    let all = cases(&small(&text), &Entry::Local, &Assumptions::default());
    let marks: Vec<&str> = all.iter().map(|case| case.split(": mark ").nth(1).unwrap()).collect();
    assert_eq!(
        marks,
        ["3 out", "6 out", "2 out", "0 out"].map(str::to_owned).to_vec().as_slice(),
        "{all:?}"
    );
    assert_eq!(
        local("-m owner --uid-owner 1337 -j ACCEPT; -m owner --gid-owner 1337 -j DROP").len(),
        3
    );
}

#[test]
fn two_conditions_of_one_match_are_asked_one_by_one() {
    let rules = "-m owner --uid-owner 1 --gid-owner 2 -j DROP; -m owner --uid-owner 1 -j DROP";
    assert_eq!(
        local(rules),
        [
            "the sender's user is 1, the sender's group is 2: mark 0 drop",
            "the sender's user is 1, the sender's group is not 2: mark 0 drop",
            "the sender's user is not 1: mark 0 out",
        ]
    );
}

#[test]
fn what_is_stated_of_the_sender_is_no_question() {
    let kernel =
        output("-m owner --uid-owner 1337 -j ACCEPT; -m owner --gid-owner 1337 -j ACCEPT; -j DROP");
    let as_user =
        |user| Assumptions::default().with_fact(PacketFact::exactly(FactSubject::User, user), true);
    assert_eq!(cases(&kernel, &Entry::Local, &as_user(1337)), [": mark 0 out"]);
    let of = |group| as_user(0).with_fact(PacketFact::exactly(FactSubject::Group, group), true);
    assert_eq!(cases(&kernel, &Entry::Local, &of(1337)), [": mark 0 out"]);
    assert_eq!(cases(&kernel, &Entry::Local, &of(0)), [": mark 0 drop"]);
    assert_eq!(cases(&kernel, &Entry::Local, &as_user(0)).len(), 2, "the group is open");
}

#[test]
fn the_same_holds_for_what_else_is_not_known() {
    for (rules, ways) in [
        // The packet, its connection, its sender, the time: the same answer in each hook.
        ("-m string --string a --algo bm -j ACCEPT; -m string --string a --algo bm -j DROP", 2),
        ("-m string --string a --algo bm -j DROP; -m string ! --string a --algo bm -j DROP", 2),
        (
            "-m mac --mac-source 02:00:00:00:00:01 -j ACCEPT; -m mac ! --mac-source 02:00:00:00:00:01 -j DROP",
            2,
        ),
        ("-m helper --helper ftp -j ACCEPT; -m helper ! --helper ftp -j DROP", 2),
        ("-m physdev --physdev-in a -j ACCEPT; -m physdev ! --physdev-in a -j DROP", 2),
        ("-m u32 --u32 \"0=1\" -j ACCEPT; -m u32 ! --u32 \"0=1\" -j DROP", 2),
        ("-m ttl --ttl-lt 5 -j ACCEPT; -m ttl --ttl-eq 3 -j DROP", 2),
        ("-m ttl --ttl-gt 5 -j ACCEPT; -m ttl --ttl-eq 3 -j DROP", 3),
        ("-m dscp --dscp 0x08 -j ACCEPT; -m dscp ! --dscp 0x08 -j DROP", 2),
        ("-m length --length 60:100 -j ACCEPT; -m length --length 70 -j DROP", 2),
        ("-m cpu --cpu 0 -j ACCEPT; -m cpu --cpu 1 -j DROP", 3),
        ("-p tcp -m tcpmss --mss 1000:1400 -j ACCEPT; -p tcp -m tcpmss --mss 1200 -j DROP", 2),
        ("-m time --timestart 10:00:00 -j ACCEPT; -m time --timestart 10:00:00 -j DROP", 2),
        // Each of these has its own counter.
        ("-m limit --limit 5/min -j ACCEPT; -m limit --limit 5/min -j DROP", 3),
        ("-m string --string a --algo bm -j ACCEPT; -m string --string b --algo bm -j DROP", 3),
    ] {
        let all = forwarded(rules);
        assert_eq!(all.len(), ways, "{rules}: {all:?}");
    }
    // After forwarding, the TTL is one less.
    let text = "*mangle\n:PREROUTING ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n\
                -A PREROUTING -m ttl --ttl-eq 3 -j ACCEPT\n-A FORWARD -m ttl --ttl-eq 3 -j DROP\nCOMMIT\n";
    assert_eq!(cases(&small(text), &from("cbr0"), &Assumptions::default()).len(), 4);
    // A property that a rule has set no longer depends on the sender.
    let text = "*mangle\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m dscp --dscp 0x08 -j DROP\n\
                -A FORWARD -j DSCP --set-dscp 0x08\n-A FORWARD -m dscp --dscp 0x08 -j DROP\nCOMMIT\n";
    assert_eq!(cases(&small(text), &from("cbr0"), &Assumptions::default()).len(), 3);
}

#[test]
fn an_ordinary_call_reaches_no_limit() {
    let ordinary = |rules: &str| {
        let rules: String = rules.split("; ").map(|rule| format!("-A FORWARD {rule}\n")).collect();
        let kernel = small(&format!("*filter\n:FORWARD ACCEPT [0:0]\n{rules}COMMIT\n"));
        cases(&kernel, &from("cbr0"), &Assumptions::of_ordinary_call())
    };
    let hash = "--hashlimit-mode srcip --hashlimit-name a";
    for (rule, drops) in [
        ("-m limit --limit 5/min".to_owned(), true),
        (format!("-m hashlimit --hashlimit-above 9/sec {hash}"), false),
        (format!("-m hashlimit --hashlimit-upto 9/sec {hash}"), true),
        (
            "-m connlimit --connlimit-above 3 --connlimit-mask 32 --connlimit-saddr".to_owned(),
            false,
        ),
        ("-m connlimit --connlimit-upto 3 --connlimit-mask 32 --connlimit-saddr".to_owned(), true),
        ("-m connlimit --connlimit-above 0 --connlimit-mask 32 --connlimit-saddr".to_owned(), true),
        ("-m quota --quota 1000".to_owned(), true),
        ("-m socket --transparent".to_owned(), false),
    ] {
        let all = ordinary(&format!("{rule} -j DROP"));
        let expected = if drops { ": mark 0 drop" } else { ": mark 0 out" };
        assert_eq!(all, [expected], "{rule}");
        assert_eq!(forwarded(&format!("{rule} -j DROP")).len(), 2, "{rule}");
    }
    for (limit, drops) in [
        ("limit rate 9/second", true),
        ("limit rate over 9/second", false),
        ("quota 1 mbytes", true),
        ("quota over 1 mbytes", false),
        ("ct count over 3", false),
    ] {
        let mut state = small_state("*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n");
        let rules = format!(
            "table inet t {{\n chain o {{\n  type filter hook forward priority 10; policy accept;\n  \
             {limit} drop\n }}\n}}\n"
        );
        state.nft = nft::parse("nft", &rules).unwrap();
        let kernel = Kernel::new(state).unwrap();
        let all = cases(&kernel, &from("cbr0"), &Assumptions::of_ordinary_call());
        let expected = if drops { ": mark 0 drop" } else { ": mark 0 out" };
        assert_eq!(all, [expected], "{limit}");
    }
}

#[test]
fn nftables_asks_for_the_same_user() {
    let mut state = small_state(
        "*filter\n:OUTPUT ACCEPT [0:0]\n-A OUTPUT -m owner --uid-owner 1337 -j ACCEPT\n-A OUTPUT -j MARK --set-xmark 0x1/0x1\nCOMMIT\n",
    );
    let rules = "table inet t {\n chain o {\n  type filter hook output priority 10; policy accept;\n  \
                 meta skuid 1000-2000 accept\n  meta skuid != 1337 drop\n  meta skgid 7 drop\n }\n}\n";
    state.nft = nft::parse("nft", rules).unwrap();
    let kernel = Kernel::new(state).unwrap();
    assert_eq!(
        cases(&kernel, &Entry::Local, &Assumptions::default()),
        [
            "the sender's user is 1337: mark 0 out",
            "the sender's user is not 1337, the sender's user is not one from 1000 to 2000: mark 1 drop",
            "the sender's user is not 1337, the sender's user is one from 1000 to 2000: mark 1 out",
        ]
    );
    // No process sends an incoming packet.
    let mut state = small_state("");
    let rules = "table ip t {\n chain p {\n  type filter hook postrouting priority 0;\n  \
                 meta skuid != 1337 drop\n }\n}\n";
    state.nft = nft::parse("nft", rules).unwrap();
    let kernel = Kernel::new(state).unwrap();
    assert_eq!(cases(&kernel, &from("cbr0"), &Assumptions::default()), [": mark 0 out"]);
}
