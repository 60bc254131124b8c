//! Properties of this machine, and the installation of packages that tests need on a Debian-like
//! system.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{self, Failure};

/// A program that tests call, and the Debian package it comes in.
struct Needed {
    program: &'static str,
    package: &'static str,
}

/// The programs that the lab, the small machine and the tests that load rules call. Without them
/// those tests are skipped and reported as skipped.
const NEEDED: [Needed; 18] = [
    Needed { program: "ip", package: "iproute2" },
    Needed { program: "iptables-restore", package: "iptables" },
    Needed { program: "ipset", package: "ipset" },
    Needed { program: "nft", package: "nftables" },
    Needed { program: "nginx", package: "nginx-light" },
    Needed { program: "haproxy", package: "haproxy" },
    Needed { program: "linux.uml", package: "user-mode-linux" },
    Needed { program: "modprobe", package: "kmod" },
    Needed { program: "ipvsadm", package: "ipvsadm" },
    Needed { program: "keepalived", package: "keepalived" },
    Needed { program: "curl", package: "curl" },
    Needed { program: "conntrackd", package: "conntrackd" },
    Needed { program: "bird", package: "bird2" },
    Needed { program: "wget", package: "wget" },
    Needed { program: "nc", package: "netcat-openbsd" },
    Needed { program: "busybox", package: "busybox" },
    Needed { program: "python3", package: "python3" },
    Needed { program: "node", package: "nodejs" },
];

/// The programs that the conformance stage calls besides.
const NEEDED_BY_CONFORMANCE: [Needed; 5] = [
    Needed { program: "ip", package: "iproute2" },
    Needed { program: "iptables-save", package: "iptables" },
    Needed { program: "nft", package: "nftables" },
    Needed { program: "sysctl", package: "procps" },
    Needed { program: "setpriv", package: "util-linux" },
];

/// The programs that the conformance stage calls for IPVS mode.
const NEEDED_BY_IPVS: [Needed; 4] = [
    Needed { program: "linux.uml", package: "user-mode-linux" },
    Needed { program: "modprobe", package: "kmod" },
    Needed { program: "ipset", package: "ipset" },
    Needed { program: "ipvsadm", package: "ipvsadm" },
];

/// The programs that the comparison of load balancers calls: the peers, and the tools that start
/// and isolate them.
const NEEDED_BY_BENCH: [Needed; 10] = [
    Needed { program: "ip", package: "iproute2" },
    Needed { program: "nft", package: "nftables" },
    Needed { program: "unshare", package: "util-linux" },
    Needed { program: "nsenter", package: "util-linux" },
    Needed { program: "nginx", package: "nginx-light" },
    Needed { program: "haproxy", package: "haproxy" },
    Needed { program: "openssl", package: "openssl" },
    Needed { program: "sysctl", package: "procps" },
    Needed { program: "setpriv", package: "util-linux" },
    Needed { program: "taskset", package: "util-linux" },
];

/// The runtimes and package managers of the clients of the cloud's API, except Go.
const NEEDED_BY_CLIENTS: [Needed; 4] = [
    Needed { program: "python3", package: "python3" },
    Needed { program: "pip3", package: "python3-pip" },
    Needed { program: "node", package: "nodejs" },
    Needed { program: "npm", package: "npm" },
];

/// The program that installs the spell checker.
const NEEDED_BY_LINT: [Needed; 1] = [Needed { program: "pip3", package: "python3-pip" }];

/// Installs the missing packages as root on a Debian-like system. Otherwise, or when that fails,
/// returns the reason why the lab has to do without them.
pub(crate) fn install_packages() -> Result<(), String> {
    install(&NEEDED)
}

/// Installs the missing packages of the conformance stage, as [`install_packages`] does.
pub(crate) fn install_for_conformance() -> Result<(), String> {
    install(&NEEDED_BY_CONFORMANCE)
}

/// Installs the missing packages of its IPVS mode, as [`install_packages`] does.
pub(crate) fn install_for_ipvs() -> Result<(), String> {
    install(&NEEDED_BY_IPVS)
}

/// Installs the missing packages of the comparison of load balancers, as [`install_packages`] does.
pub(crate) fn install_for_bench() -> Result<(), String> {
    install(&NEEDED_BY_BENCH)
}

/// Installs the missing packages of the clients of the cloud's API, as [`install_packages`] does.
pub(crate) fn install_for_clients() -> Result<(), String> {
    install(&NEEDED_BY_CLIENTS)
}

/// Installs the missing packages of the checks of the source, as [`install_packages`] does.
pub(crate) fn install_for_lint() -> Result<(), String> {
    install(&NEEDED_BY_LINT)
}

fn install(needed: &[Needed]) -> Result<(), String> {
    let missing: Vec<&Needed> =
        needed.iter().filter(|needed| find(needed.program).is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !cfg!(target_os = "linux") {
        return Err("the lab needs Linux".to_owned());
    }
    let packages: Vec<&str> = missing.iter().map(|needed| needed.package).collect();
    let programs: Vec<&str> = missing.iter().map(|needed| needed.program).collect();
    let programs = programs.join(", ");
    if find("apt-get").is_none() {
        return Err(format!("{programs} not found; install them as your system does it"));
    }
    let line = format!("apt-get install --no-install-recommends {}", packages.join(" "));
    if !is_root() {
        return Err(format!("{programs} not found; to have them, run: sudo {line}"));
    }
    apt_get(&["update"])
        .and_then(|()| {
            apt_get(&[&["install", "--yes", "--no-install-recommends"], &packages[..]].concat())
        })
        .map_err(|failure| format!("{programs} not found, and {failure}"))
}

/// Returns the path of a program. Debian keeps some of the needed ones out of an ordinary user's
/// search path.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let beside = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    env::split_paths(&path)
        .chain(beside)
        .map(|folder| folder.join(program).with_extension(env::consts::EXE_EXTENSION))
        .find(|file| file.is_file())
}

/// Returns the path of a program that was installed under `target/tools`, or else the one on the
/// search path.
pub(crate) fn find_tool(tools: &Path, program: &str) -> Option<PathBuf> {
    let ours = tools.join("bin").join(program).with_extension(env::consts::EXE_EXTENSION);
    if ours.is_file() { Some(ours) } else { find(program) }
}

pub(crate) fn is_root() -> bool {
    shell::output(Command::new("id").arg("-u")).is_some_and(|id| id.trim() == "0")
}

fn apt_get(words: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new("apt-get");
    shell::run(command.args(words).env("DEBIAN_FRONTEND", "noninteractive"))
}
