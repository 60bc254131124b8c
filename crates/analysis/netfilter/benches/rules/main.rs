//! How fast rules are parsed and walked, beside work that never changes (`uturn_testing::yardstick`)
//! and compared with a linear evaluation, and how much memory they need.
//!
//! `cargo bench -p uturn-netfilter` prints it. The rules are those that kube-proxy would write
//! for a number of Services and endpoints, in each of its modes. Each figure is the best of
//! several runs, since machines have other things to do; ratios are of the same run. A number
//! after `--` sets the number of runs, any other word selects cases by name.
//!
//! Each case runs in its own process, which receives the rules as text: so its memory is that of
//! the rules and nothing else.
#![allow(clippy::print_stdout, reason = "its figures are what it is for")]
#![allow(clippy::unwrap_used, reason = "what is wrong here ends it")]

mod case;
mod linear;
mod machine;
mod made;

use std::io::Write;
use std::process::{Command, Stdio};

use uturn_kubeproxy::Program;
use uturn_model::ProxyMode;

/// The argument that tells a process to run one case.
const ONE: &str = "one-case";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [ONE, services, runs] = words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        return case::run(services.parse().unwrap(), runs.parse().unwrap());
    }
    // `cargo bench` passes `--bench`.
    let runs = words.iter().find_map(|word| word.parse().ok()).unwrap_or(9);
    let picked = words.iter().find(|word| !word.starts_with('-') && word.parse::<u32>().is_err());
    let case = |name: String, services, program: &dyn Fn() -> Program| {
        if picked.is_none_or(|picked| name.contains(picked.as_str())) {
            println!("{name}");
            in_its_own_process(&program(), services, runs);
        }
    };
    for (services, endpoints) in [(2_500, 4), (10_000, 10), (3, 1_000)] {
        for mode in ProxyMode::ALL {
            case(
                format!("{mode}: {services} Services × {endpoints} endpoints"),
                services,
                &|| made::rules(mode, services, endpoints),
            );
        }
    }
    let list = 10_000;
    case(format!("iptables: a list of {list} rules"), list, &|| made::list(list).0);
    case(format!("nftables: a list of {list} rules"), list, &|| made::list(list).1);
}

fn in_its_own_process(program: &Program, services: u32, runs: u32) {
    let bound: Vec<String> = program.bound.iter().map(ToString::to_string).collect();
    let bound = bound.join(" ");
    let texts = [&program.iptables, &program.nft, &program.ipset, &program.ipvs, &bound];
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([ONE, &services.to_string(), &runs.to_string()])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    for text in texts {
        pipe.write_all(text.as_bytes()).unwrap();
        pipe.write_all(b"\0").unwrap();
    }
    drop(pipe);
    assert!(child.wait().unwrap().success(), "the case ended badly");
}
