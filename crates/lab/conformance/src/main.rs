//! Compares uturn with the real thing: kube-proxy with a real API server, and the kernel.
//!
//! **Owns** the conformance stage: it makes clusters ([`case`], [`generate`]), gives them to a real
//! API server ([`control_plane`]), runs kube-proxy as each node of them ([`node`]), and judges
//! twice: the rules that kube-proxy left in the kernel against those that `uturn_kubeproxy` writes
//! ([`rules`]), and the ends of packets and of their answers in that kernel against
//! `uturn_netfilter`'s walk over the same dump ([`packets`]). Then `uturn check nodes` judges
//! captures of the node by `uturn collect --here`, without and with faults ([`nodes`]). [`mode`]
//! has the differences between modes of kube-proxy; IPVS mode runs on a kernel that has it
//! ([`in_machine`]).
//!
//! **Out of scope:** the stage is not shipped, and it does not build the real programs: `cargo
//! xtask conformance` does that, from the Go modules in `conformance/`, and then calls this
//! program.
//!
//! **Start reading** at [`judge`], then [`trial`].

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to people")]

mod arguments;
mod blocks;
mod case;
mod control_plane;
mod dump;
mod fault;
mod flows;
mod generate;
mod in_machine;
mod ipvs;
mod judge;
mod mode;
mod net;
mod node;
mod nodes;
mod packet_end;
mod packets;
mod rules;
mod services;
mod settings;
mod summary;
mod trial;
mod wire;
mod workspace;

use std::process::ExitCode;

use arguments::Arguments;
use clap::Parser as _;
use control_plane::ControlPlane;
use workspace::Workspace;

fn main() -> ExitCode {
    if uturn_machine::is_inside() {
        return uturn_machine::inside();
    }
    let arguments = Arguments::parse();
    match both(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(fault) => {
            eprintln!("error: {fault}");
            ExitCode::from(3)
        }
    }
}

/// Runs the stage on this kernel, then in the small machine, even if the first found a
/// difference.
fn both(arguments: &Arguments) -> fault::Outcome<bool> {
    let workspace = Workspace::new(&arguments.programs, &arguments.work)?;
    if arguments.in_machine {
        return judge::run(arguments, &workspace, &ControlPlane::join(&workspace)?);
    }
    let control = ControlPlane::start(&workspace)?;
    let mut agree = true;
    if arguments.modes.iter().any(|mode| !mode.in_machine()) {
        agree &= judge::run(arguments, &workspace, &control)?;
    }
    if arguments.modes.iter().any(|mode| mode.in_machine()) {
        agree &= in_machine::run(arguments, &control)?;
    }
    Ok(agree)
}
