//! Checks whether the machine can run here: looks for its parts, and tries what the host must
//! allow.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{StatVfsMountFlags, statvfs};

use super::{preload, processor};
use crate::Unavailable;

/// The folder in which Debian keeps the modules of its User Mode Linux.
pub(super) const MODULES: &str = "/usr/lib/uml/modules";

/// Programs that the machine uses inside, besides its kernel, and their packages.
const INSIDE: [(&str, &str); 3] =
    [("modprobe", "kmod"), ("xtables-legacy-multi", "iptables"), ("ipset", "ipset")];

/// The parts of a machine.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    /// The kernel, which is a program.
    pub(super) kernel: PathBuf,
    /// The kernel's release: `6.1.176`.
    pub(super) release: String,
    /// The command that starts the kernel as the first process of a PID namespace, so that all
    /// processes of the machine end with the kernel, and the kernel with this process.
    pub(super) launcher: Vec<String>,
    /// The folder for the machine's memory, which is an unlinked file.
    pub(super) memory: PathBuf,
    /// This executable, which is the machine's first process.
    pub(super) init: PathBuf,
}

/// Looks for all parts of a machine with `mib` MiB of memory.
///
/// # Errors
/// If a program or the kernel's modules are missing, if the kernel cannot run on this processor, or if
/// the host does not allow namespaces.
pub(super) fn parts(mib: u32) -> Result<Parts, Unavailable> {
    let kernel = need("linux.uml", "user-mode-linux")?;
    for (program, package) in INSIDE {
        need(program, package)?;
    }
    let release = output(Command::new(&kernel).arg("--version"))
        .map_err(|reason| host("asking User Mode Linux for its version", reason))?;
    let folder = Path::new(MODULES).join(&release);
    if !folder.is_dir() {
        return Err(Unavailable::NoModules { folder });
    }
    if let Some(state) = processor::too_large(&release)
        && !preload::is_there()
    {
        return Err(Unavailable::Processor { state, kept: processor::KEPT, release });
    }
    let init = env::current_exe()
        .and_then(fs::canonicalize)
        .map_err(|why| host("finding this very executable", why.to_string()))?;
    // The kernel splits its command line at blanks and quotes.
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\'' | '\\');
    if !init.to_str().is_some_and(|path| path.chars().all(is_plain)) {
        let reason = format!("no blanks, quotes or letters beyond ASCII in {}", init.display());
        return Err(host("naming this very executable on the command line of a kernel", reason));
    }
    Ok(Parts { kernel, release, launcher: launcher()?, memory: memory(mib)?, init })
}

/// Looks for a program in the search path and in the `sbin` folders.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Returns the command that starts the kernel in a PID namespace. Without the namespace, killing
/// the kernel would leave the host processes that represent the machine's processes running.
fn launcher() -> Result<Vec<String>, Unavailable> {
    let [bind, unshare] = [need("setpriv", "util-linux")?, need("unshare", "util-linux")?];
    let root = ["--pid", "--fork", "--kill-child"];
    let user = ["--user", "--map-current-user", "--pid", "--fork", "--kill-child"];
    let mut reason = String::new();
    for flags in [&root[..], &user[..]] {
        match output(Command::new(&unshare).args(flags).arg("true")) {
            Ok(_) => {
                let mut words = vec![bind.display().to_string()];
                words.extend(["--pdeathsig", "KILL"].map(String::from));
                words.push(unshare.display().to_string());
                words.extend(flags.iter().map(|&flag| flag.to_owned()));
                return Ok(words);
            }
            Err(why) => reason = why,
        }
    }
    Err(host("making a process namespace, with and without a user namespace", reason))
}

/// Returns a folder with room for `mib` MiB that is not mounted `noexec`.
fn memory(mib: u32) -> Result<PathBuf, Unavailable> {
    let fits = |place: &PathBuf| {
        statvfs(place).is_ok_and(|at| {
            at.f_bavail.saturating_mul(at.f_frsize) >= u64::from(mib) << 20
                && !at.f_flag.intersects(StatVfsMountFlags::NOEXEC | StatVfsMountFlags::RDONLY)
        })
    };
    let places = [PathBuf::from("/dev/shm"), env::temp_dir(), "/var/tmp".into()];
    let all: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    places.into_iter().find(fits).ok_or_else(|| {
        let reason = format!("not in {}", all.join(", "));
        host(&format!("finding room for {mib} MiB of memory"), reason)
    })
}

fn need(program: &'static str, package: &'static str) -> Result<PathBuf, Unavailable> {
    find(program).ok_or(Unavailable::Missing { program, package })
}

fn host(tried: &str, reason: String) -> Unavailable {
    Unavailable::Host { tried: tried.into(), reason }
}

/// Returns a program's trimmed standard output, or its status and standard error if it fails.
fn output(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|why| why.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(format!("{}: {}", output.status, text(&output.stderr)))
    }
}
