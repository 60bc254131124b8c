//! Runs the stage in the small machine for IPVS mode: kube-proxy and packets on a kernel that has
//! ip_vs, with the API server on the host.
//!
//! The machine only opens outgoing connections, and the same code judges the results.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use uturn_machine::{Ended, Job, JobOutput, Machine};
use uturn_model::Version;

use crate::arguments::Arguments;
use crate::control_plane::ControlPlane;
use crate::fault::{During as _, Fault, Outcome};

/// The memory for kube-proxy, its files and the files that the stage writes, in MiB.
const MEMORY: u32 = 2048;

/// The limit for a run. It only ends a run that hangs.
const LIMIT: Duration = Duration::from_secs(3600);

/// Runs the stage in the machine. Returns whether uturn agrees with kube-proxy and the kernel
/// there.
pub(crate) fn run(arguments: &Arguments, control: &ControlPlane<'_>) -> Outcome<bool> {
    let machine = match Machine::find() {
        Ok(machine) => {
            let (namespace, device) = control.link()?;
            let machine = machine.with_memory(MEMORY).with_limit(LIMIT);
            machine.with_stop(control.workspace().stopped()).with_link(namespace, device)
        }
        Err(why) => {
            let other = "--modes iptables,nftables does without";
            return Err(Fault::new(format!("IPVS mode: {why}; {other}")));
        }
    };
    println!("\nIPVS mode, in {}", machine.kernel());
    let start = Instant::now();
    let ended = machine.run(&job(arguments)?, &mut |output| {
        // Output that cannot be written is lost; the exit status still shows the result.
        let _ = match output {
            JobOutput::Out(bytes) => io::stdout().write_all(bytes),
            JobOutput::Err(bytes) => io::stderr().write_all(bytes),
        };
    });
    println!("IPVS mode took {:.1} s", start.elapsed().as_secs_f64());
    match ended.map_err(|why| Fault::new(why.to_string()))? {
        Ended::Exit(0) => Ok(true),
        Ended::Exit(1) => Ok(false),
        other => Err(Fault::new(format!("the stage in the small machine ended by {other:?}"))),
    }
}

fn job(arguments: &Arguments) -> Outcome<Job> {
    let failed = arguments.work.join("failed");
    fs::create_dir_all(&failed).during(failed.display())?;
    let failed = failed.canonicalize().during(failed.display())?;
    let (seed, version) = (arguments.seed.to_string(), version(&arguments.versions)?.to_string());
    let own = ["--in-machine", "--seed", &seed, "--versions", &version].map(OsString::from);
    Ok(Job {
        program: env::current_exe().during("this very executable")?,
        arguments: env::args_os().skip(1).chain(own).collect(),
        environment: env::vars_os().collect(),
        folder: env::current_dir().during("the current folder")?,
        stdin: Vec::new(),
        shared: vec![failed],
    })
}

/// Returns the newest version before upstream deprecated the mode, because clusters in IPVS mode
/// run such versions. If there is none, returns the newest.
fn version(all: &[Version]) -> Outcome<Version> {
    let before = all.iter().filter(|version| (version.major, version.minor) < (1, 35)).max();
    let chosen = before.or_else(|| all.iter().max());
    chosen.copied().ok_or_else(|| Fault::new("no version of kube-proxy to try"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_before_it_was_deprecated_is_tried() {
        let [old, usual, new] =
            [Version::new(1, 30, 14), Version::new(1, 34, 4), Version::new(1, 36, 3)];
        assert_eq!(version(&[old, usual, new]).unwrap(), usual);
        assert_eq!(version(&[new]).unwrap(), new);
        assert!(version(&[]).is_err());
    }
}
