//! Two load balancers as docs/lb-pair.md sets them up: a client, two machines with uturn and
//! keepalived, and two targets, in network namespaces. The active machine fails in each way that
//! the page lists; the figures that it gives are printed here.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test's helpers may fail as the test itself may")]
#![expect(clippy::print_stdout, reason = "the page's figures")]

mod bgp;
mod client;
mod machine;
mod pair;
mod space;
mod target;

use std::time::Instant;

use uturn_testing::{Requirement, in_a_namespace, skip};

use client::{Open, PATIENCE, SILENCE, TRY, Use, Watch, ask_anew};
use machine::{Daemon, await_that};
use pair::{CLIENT, HASHED, Pair, TURNS, WEB};

/// How many connections of each use are open when a machine fails.
const OPEN: usize = 10;

/// How the active machine fails.
#[derive(Clone, Copy, Debug)]
enum Failure {
    /// An administrator stops keepalived; uturn serves on.
    HandOver,
    /// uturn is told to stop.
    UturnStopped,
    UturnKilled,
    KeepalivedKilled,
    /// The link to the clients goes down.
    LinkDown,
    /// Packets are lost in both directions, on both sides, while the links stay up.
    Isolated,
}

const FAILURES: [Failure; 6] = [
    Failure::HandOver,
    Failure::UturnStopped,
    Failure::UturnKilled,
    Failure::KeepalivedKilled,
    Failure::LinkDown,
    Failure::Isolated,
];

/// Whether this machine has what a test needs.
fn can_run(what: &str, programs: &[Requirement]) -> bool {
    for requirement in [Requirement::Nft].iter().chain(programs).copied() {
        let script = match requirement {
            Requirement::Nft => "nft list tables",
            Requirement::Keepalived => "keepalived --version 2>&1; curl --version",
            Requirement::Conntrackd => "conntrackd -v",
            _ => "bird --version 2>&1; curl --version",
        };
        if let Err(why) = in_a_namespace(script, "") {
            skip(requirement, what, why);
            return false;
        }
    }
    true
}

#[test]
fn the_standby_takes_over() {
    if can_run("the pair of load balancers", &[Requirement::Keepalived]) {
        let mut pair = Pair::start("pair");
        for failure in FAILURES {
            fail_over(&mut pair, failure);
        }
    }
}

#[test]
fn connections_on_layer_4_survive_with_conntrackd() {
    let programs = [Requirement::Keepalived, Requirement::Conntrackd];
    if can_run("the pair of load balancers with conntrackd", &programs) {
        let mut pair = Pair::start_patient("pair-conntrackd", true);
        for failure in FAILURES {
            let broken = fail_over(&mut pair, failure);
            assert_eq!(broken, 0, "{failure:?}");
        }
    }
}

#[test]
fn another_process_takes_over_the_kernels_table() {
    if can_run("the pair of load balancers", &[Requirement::Keepalived]) {
        let mut pair = Pair::start_patient("pair-takeover", false);
        let active = pair.active();
        let uses = [(TURNS, Use::ClientSpeaks), (HASHED, Use::TargetSpeaks)];
        let open =
            uses.map(|(address, used)| Open::new(&pair.client, address, used, OPEN, PATIENCE));
        // A process that fails at the last step leaves everything to the first one.
        let machine = &pair.machines[active];
        let error = machine.fail_to_take_over();
        assert!(error.contains("nft"), "{error}");
        let goes_on = || machine.logged(Daemon::Uturn, "the other process did not take over") == 1;
        await_that("the first process goes on", goes_on, || pair.logs());
        machine.signal(Daemon::Uturn, "HUP");
        let has_reloaded = || machine.logged(Daemon::Uturn, r#""cause":"signal""#) == 1;
        await_that("it follows requests", has_reloaded, || pair.logs());
        for count in 1..=3 {
            pair.machines[active].take_over();
            let machine = &pair.machines[active];
            let has_taken = || machine.logged(Daemon::Uturn, "takeover") == count;
            await_that("the table is taken over", has_taken, || pair.logs());
            for address in [TURNS, HASHED] {
                let answer = pair.client.run(|| ask_anew(address, PATIENCE));
                assert!(answer.is_ok(), "{answer:?}\n{}", pair.logs());
            }
        }
        let table = pair.machines[active].space.sh("nft list tables");
        assert!(table.contains("uturn_lb"), "{table}");
        // keepalived asks for the health of the load balancer all the time, and heard nothing bad.
        let standby = &pair.machines[1 - active];
        let took_over = standby.logged(Daemon::Keepalived, "Entering MASTER STATE");
        assert_eq!(took_over, 0, "the standby took the VIP\n{}", pair.logs());
        for checked in open.map(|open| open.use_again(&pair.client)) {
            let (used, fates) = (checked.used, checked.fates());
            assert_eq!(fates.work, OPEN, "{used:?} {fates:?}");
        }
    }
}

/// Lets the active machine fail, and repairs it when the other one has taken over. Returns how many
/// connections on layer 4 broke.
fn fail_over(pair: &mut Pair, failure: Failure) -> usize {
    pair.gate.set(false);
    let uses = [
        (WEB, Use::Idle),
        (WEB, Use::Waiting),
        (TURNS, Use::ClientSpeaks),
        (TURNS, Use::TargetSpeaks),
        (HASHED, Use::ClientSpeaks),
        (HASHED, Use::TargetSpeaks),
    ];
    let open = uses.map(|(address, used)| {
        let works = address != WEB && pair.shares_connections;
        let silence = if works { PATIENCE } else { SILENCE };
        Open::new(&pair.client, address, used, OPEN, silence)
    });
    let watches = [WEB, TURNS].map(|address| Watch::start(&pair.client, address));
    pair.await_shared(4 * OPEN);

    let active = pair.active();
    let begin = Instant::now();
    match failure {
        Failure::HandOver => pair.machines[active].signal(Daemon::Keepalived, "TERM"),
        Failure::UturnStopped => pair.machines[active].signal(Daemon::Uturn, "TERM"),
        Failure::UturnKilled => pair.machines[active].signal(Daemon::Uturn, "KILL"),
        Failure::KeepalivedKilled => pair.machines[active].signal(Daemon::Keepalived, "KILL"),
        Failure::LinkDown => pair.set_links(active, "eth0", "down"),
        Failure::Isolated => {
            pair.set_links(active, "eth0", "state 0");
            pair.set_links(active, "eth1", "state 0");
        }
    }
    let standby = &pair.machines[1 - active];
    await_that("the standby has the VIP", || standby.is_active(), || pair.logs());
    for address in [WEB, TURNS, HASHED] {
        let mut answer = None;
        let answers = || {
            answer = pair.client.run(|| ask_anew(address, TRY)).ok();
            answer.is_some()
        };
        await_that("the standby answers", answers, || pair.logs());
        // The client's address is kept there too.
        let answer = answer.unwrap_or_default();
        assert!(answer.ends_with(CLIENT), "{address}: {answer}");
    }
    let [web, turns] = watches.map(|watch| watch.longest_gap(begin).as_millis());
    pair.gate.set(true);
    let mut shown =
        format!("{failure:?}: no answer for {web} ms on layer 7, for {turns} ms on layer 4\n");
    let mut broken = 0;
    for checked in open.map(|open| open.use_again(&pair.client)) {
        let (used, address) = (checked.used, checked.address);
        let fates = checked.fates();
        shown += &format!("  {used:?} {address}: {fates:?}\n");
        if address != WEB {
            broken += fates.reset + fates.silent;
        }
    }
    println!("{shown}");
    pair.repair(active, failure);
    broken
}
