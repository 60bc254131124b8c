//! Rules that are not modelled, each of which adds to what is not known of a branch while branches part at
//! every one of them: what all branches hold is bounded, and the walk says where it was given up.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use crate::common::{from, small_state, tcp};
use uturn_model::{Share, StepKind};
use uturn_netfilter::{Assumptions, Budget, EndKind, Kernel, ipset, nft};

/// The rules of each kind.
const RULES: usize = 8_000;

/// More memory than this process needs for any of them, with what the kernel's text takes.
const ENOUGH: usize = 400 << 20;

fn iptables(rules: impl Iterator<Item = String>) -> Kernel {
    let mut text = "*mangle\n:FORWARD ACCEPT [0:0]\n".to_owned();
    text.extend(rules.map(|rule| format!("-A FORWARD {rule}\n")));
    let mut state = small_state(&format!("{text}COMMIT\n"));
    state.sets = ipset::parse("ipset.save", "create s hash:ip family inet\n").unwrap();
    Kernel::new(state).unwrap()
}

fn mark(at: usize) -> String {
    format!("-j MARK --xor-mark {:#x}", 1_u32 << (at % 32))
}

fn nftables(rule: impl Fn(usize) -> String) -> Kernel {
    let mut text = "table ip t {\nchain c {\ntype filter hook forward priority 0;\n".to_owned();
    (0..RULES).for_each(|at| text.push_str(&format!("{}\n", rule(at))));
    let mut state = small_state("");
    state.nft = nft::parse("nft.txt", &format!("{text}}}\n}}\n")).unwrap();
    Kernel::new(state).unwrap()
}

/// The most memory that this process has had.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

#[test]
fn what_all_branches_hold_is_bounded() {
    const HALF: &str = "-m statistic --mode random --probability 0.50000000000";
    let numbered = |rule: fn(usize) -> String| iptables((0..RULES).map(rule));
    let kernels = [
        (
            "texts in packets",
            numbered(|at| format!("-m string --string s{at} --algo bm {}", mark(at))),
        ),
        (
            "sets that packets change",
            iptables((0..RULES / 2).flat_map(|at| {
                [
                    format!("{HALF} -j SET --add-set s src"),
                    format!("-m set --match-set s src {}", mark(at)),
                ]
            })),
        ),
        (
            "limits of several kinds",
            numbered(|at| {
                let limit = match at % 3 {
                    0 => format!("-m recent --name r{at} --rcheck --seconds 60"),
                    1 => format!("-m limit --limit {}/min", 1 + at),
                    _ => format!("-m hashlimit --hashlimit-upto 5/sec --hashlimit-name h{at}"),
                };
                format!("{limit} {}", mark(at))
            }),
        ),
        (
            "lists that packets add to",
            numbered(|at| format!("{HALF} -m recent --name r{at} --set {}", mark(at))),
        ),
        (
            "bytes of packets",
            nftables(|at| {
                format!(
                    "@th,{},8 0x{:x} meta mark set meta mark ^ {at}",
                    160 + at % 64 * 8,
                    at % 256
                )
            }),
        ),
    ];
    for (name, kernel) in kernels {
        let budget = Budget::default();
        let packet = tcp("10.1.0.9:1000", "10.9.9.9:80");
        let ends =
            kernel.walk_within(&packet, &from("cbr0"), &[], &Assumptions::default(), &budget);
        assert!(Share::add_up_to_all(ends.iter().map(|end| end.share)), "{name}");
        for end in ends.iter().filter(|end| end.kind == EndKind::Unsettled) {
            assert_eq!(end.steps.last().unwrap().kind, StepKind::Unknown, "{name}");
        }
        assert!(peak() < ENOUGH, "{name}: {} MiB", peak() >> 20);
    }
}
