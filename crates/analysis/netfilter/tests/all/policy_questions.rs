//! Many policy rules of which it is not known whether they apply: a walk ends within its limits, and says
//! where it was given up.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use crate::common::{from, small_state, tcp};
use uturn_model::{Share, StepKind};
use uturn_netfilter::{Assumptions, Budget, End, EndKind, Entry, Kernel, ipset, nft, policy_rules};

/// More rules than two attempts at one walk need.
const ENOUGH: u64 = 4_100_000;

/// The ends of a call of the node, and the work that they took.
fn walked(rules: &str) -> (Vec<End>, u64) {
    let mut state = small_state("");
    let text = format!("0:\tfrom all lookup local\n{rules}32766:\tfrom all lookup main\n");
    state.rules = policy_rules::parse("rule", &text).unwrap();
    let kernel = Kernel::new(state).unwrap();
    let budget = Budget::of_rules(2 * ENOUGH);
    let packet = tcp("10.0.0.2:4000", "10.9.9.9:80");
    let ends = kernel.walk_within(&packet, &Entry::Local, &[], &Assumptions::default(), &budget);
    assert!(Share::add_up_to_all(ends.iter().map(|end| end.share)));
    (ends, 2 * ENOUGH - budget.left())
}

fn lookups(count: usize) -> String {
    let rule = |user: usize| {
        format!("{}:\tfrom all uidrange {user}-{user} lookup {}\n", 100 + user, 40_000 + user)
    };
    (0..count).map(rule).collect()
}

fn gotos(count: usize) -> String {
    let rule = |user: usize| {
        let at = 100 + 2 * user;
        format!(
            "{at}:\tfrom all uidrange {user}-{user} goto {}\n{}:\tfrom all lookup {}\n",
            at + 2,
            at + 1,
            40_000 + user
        )
    };
    (0..count).map(rule).collect::<String>() + &format!("{}:\tfrom all nop\n", 100 + 2 * count)
}

#[test]
fn few_rules_are_all_followed() {
    for rules in [lookups(200), gotos(200)] {
        let (ends, work) = walked(&rules);
        assert!(work < 2_000_000, "{work} rules");
        assert!(ends.iter().all(|end| end.kind == EndKind::Forward));
        assert!(ends.len() >= 201, "{} ends", ends.len());
    }
}

/// What a walk takes through rules that look up a route, or a list of sets, each time.
fn work_of(iptables: &str, nft: &str, sets: &str, policy: &str) -> u64 {
    let mut state = small_state(iptables);
    state.nft = nft::parse("nft.txt", nft).unwrap();
    state.sets = ipset::parse("ipset.save", sets).unwrap();
    let policy = format!("0:\tfrom all lookup local\n{policy}32766:\tfrom all lookup main\n");
    state.rules = policy_rules::parse("rule", &policy).unwrap();
    let kernel = Kernel::new(state).unwrap();
    let budget = Budget::of_rules(2 * ENOUGH);
    let packet = tcp("10.1.0.9:1000", "10.9.9.9:80");
    let ends = kernel.walk_within(&packet, &from("cbr0"), &[], &Assumptions::default(), &budget);
    assert!(Share::add_up_to_all(ends.iter().map(|end| end.share)));
    2 * ENOUGH - budget.left()
}

#[test]
fn lookups_that_rules_make_are_counted() {
    let marked = |count: usize| -> String {
        (0..count)
            .map(|at| format!("{}:\tfrom all fwmark {} lookup 77\n", 1 + at, 1 + at))
            .collect()
    };
    let nft = |count: usize| {
        let rules = "fib saddr . iif oif missing drop\n".repeat(count);
        format!("table ip t {{ chain c {{ type filter hook prerouting priority 0;\n{rules}}} }}")
    };
    let least = 500 * 1_000;
    assert!(work_of("", &nft(500), "", &marked(1_000)) > least);
    let rules = "-A FORWARD -m rpfilter --invert -j DROP\n".repeat(500);
    let iptables = format!("*mangle\n:FORWARD ACCEPT [0:0]\n{rules}COMMIT\n");
    let way_back = iptables.replace("FORWARD", "PREROUTING");
    assert!(work_of(&way_back, "", "", &marked(1_000)) > least);
    let members: String = (0..1_000)
        .map(|at| format!("create s{at} hash:ip family inet\n"))
        .chain(std::iter::once("create all list:set size 1000\n".to_owned()))
        .chain((0..1_000).map(|at| format!("add all s{at}\n")))
        .collect();
    let listed = iptables.replace("rpfilter --invert", "set --match-set all src");
    assert!(work_of(&listed, "", &members, "") > least / 8);
    // All of it is limited.
    assert!(work_of("", &nft(9_000), "", &marked(9_000)) < ENOUGH);
}

#[test]
fn what_many_rules_need_is_limited_and_the_rule_is_named() {
    for rules in [lookups(1_000), gotos(1_000), lookups(10_000), gotos(10_000)] {
        let (ends, work) = walked(&rules);
        assert!(work < ENOUGH, "{work} rules");
        let answers: usize = ends.iter().map(|end| end.open_questions.len()).sum();
        assert!(answers < 400_000, "{answers} answers");
        let unsettled: Vec<&End> =
            ends.iter().filter(|end| end.kind == EndKind::Unsettled).collect();
        let [end] = unsettled.as_slice() else { panic!("{} are unsettled", unsettled.len()) };
        let last = end.steps.last().unwrap();
        assert_eq!(last.kind, StepKind::Unknown);
        assert!(last.by.to_string().contains("uidrange"), "{}", last.by);
    }
}
