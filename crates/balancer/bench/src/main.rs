//! Measures the load balancer beside others, and under attack: `cargo xtask bench lb` and
//! `cargo xtask bench hostile`.
//!
//! **Owns** the comparison of `uturn lb run` with nginx, HAProxy and plain routing, which starts
//! all of them on the same cores of the same machine ([`contestant`]), loads them in turns
//! ([`comparison`], [`stage`]), and prints the speed and the CPU time of each ([`table`]) and the
//! goals that were reached ([`goal`]); the client that makes the load ([`load`]) and the layer 4
//! target ([`target`]), which run as processes of their own; and the run in which honest clients
//! are served beside hostile ones ([`hostile`], [`attack`]).
//!
//! **Out of scope:** the program is not shipped, knows none of uturn's own types, and sends no
//! packet that leaves the network namespaces that it makes ([`network`]).
//!
//! **Start reading** at [`comparison`], then [`row`]; for attacks at [`hostile`].

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to people")]

#[cfg(target_os = "linux")]
mod arguments;
#[cfg(target_os = "linux")]
mod attack;
#[cfg(target_os = "linux")]
mod clients;
#[cfg(target_os = "linux")]
mod comparison;
#[cfg(target_os = "linux")]
mod contestant;
#[cfg(target_os = "linux")]
mod cost;
#[cfg(target_os = "linux")]
mod failure;
#[cfg(target_os = "linux")]
mod folder;
#[cfg(target_os = "linux")]
mod goal;
#[cfg(target_os = "linux")]
mod hostile;
#[cfg(target_os = "linux")]
mod http_target;
#[cfg(target_os = "linux")]
mod load;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod ports;
mod process;
#[cfg(target_os = "linux")]
mod result;
#[cfg(target_os = "linux")]
mod row;
#[cfg(target_os = "linux")]
mod servers;
#[cfg(target_os = "linux")]
mod signals;
#[cfg(target_os = "linux")]
mod socket;
#[cfg(target_os = "linux")]
mod stage;
#[cfg(target_os = "linux")]
mod statistics;
#[cfg(target_os = "linux")]
mod table;
#[cfg(target_os = "linux")]
mod target;
#[cfg(target_os = "linux")]
mod wire;

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    use arguments::Arguments;
    use clap::Parser as _;

    let ended = match Arguments::parse() {
        Arguments::Lb(arguments) => comparison::run(&arguments),
        Arguments::Hostile(arguments) => hostile::run(&arguments),
        Arguments::Attack(arguments) => attack::run(&arguments),
        Arguments::HttpTarget(arguments) => http_target::run(&arguments),
        Arguments::Load(arguments) => load::run(&arguments),
        Arguments::Target(arguments) => target::run(&arguments),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("error: the comparison needs Linux: it makes network namespaces");
    ExitCode::FAILURE
}
