//! `fuzz`: the targets of `fuzz/` under libFuzzer. Who has no nightly toolchain or no
//! cargo-fuzz loses little: `cargo xtask test` runs the same functions over the same seeds
//! and a fixed count of mutants (crates/uturn-fuzz).

use std::fs;
use std::process::Command;

use crate::shell::{self, Failure};
use crate::{Done, machine};

/// Inputs a target when nothing else is asked for.
pub(crate) const USUAL_COUNT: u32 = 20_000;

pub(crate) fn run(count: u32) -> Result<Done, Failure> {
    let tools = shell::root().join("target").join("tools");
    let Some(program) = machine::find_tool(&tools, "cargo-fuzz").filter(|_| have_nightly()) else {
        return Ok(Done::LeftOut(
            "cargo-fuzz or a nightly toolchain is missing; to have them: \
             rustup toolchain install nightly && cargo install cargo-fuzz"
                .to_owned(),
        ));
    };
    let cargo_fuzz = || {
        let mut command = nightly();
        command.arg(&program);
        command
    };
    let Some(list) = shell::output(cargo_fuzz().arg("list")) else {
        return Err(Failure("`cargo fuzz list` failed".to_owned()));
    };
    let targets: Vec<&str> = list.lines().map(str::trim).filter(|name| !name.is_empty()).collect();
    let commands = targets
        .iter()
        .map(|name| campaign(cargo_fuzz(), name, count))
        .collect::<Result<Vec<_>, _>>()?;
    shell::run_each(commands)?;
    Ok(Done::Whole)
}

/// What is found goes beside the seeds, not among them.
fn campaign(mut command: Command, target: &str, count: u32) -> Result<Command, Failure> {
    let fuzz = shell::root().join("fuzz");
    let found = fuzz.join("corpus-found").join(target);
    fs::create_dir_all(&found)
        .map_err(|error| Failure(format!("{} cannot be made: {error}", found.display())))?;
    command.args(["run", target]).arg(found).arg(fuzz.join("corpus").join(target));
    command.args(["--", &format!("-runs={count}")]);
    Ok(command)
}

fn have_nightly() -> bool {
    shell::output(nightly().args(["rustc", "--version"])).is_some()
}

/// A program run with the nightly toolchain, to which its arguments belong.
fn nightly() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly"]).current_dir(shell::root());
    // Set by the pinned toolchain that runs this program.
    for variable in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(variable);
    }
    command
}
