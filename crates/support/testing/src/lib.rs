//! Helpers that tests and benchmarks of several crates share.
//!
//! **Owns** how a test reports that it cannot run on this machine ([`skip`]), how it runs real
//! tools in a network namespace of its own ([`in_a_namespace`]), the environment variables of tests
//! ([`variables`]), the programs that tests of whole commands run ([`commands`]), the network and the nodes of small clusters ([`manifests`]), the work beside
//! which benchmarks print their figures ([`yardstick`]), and with the feature `tls` a client that
//! accepts every certificate (`tls`).
//! **Out of scope:** helpers that only one crate's tests need. This crate is a dev-dependency (but
//! not of `uturn-conformance` and `uturn-bench`, which contain nothing but tests, of `uturn-lab`,
//! whose clients are tests too, and of xtask, which runs tests).
//! **Start reading** below; `xtask/src/test.rs` has the other end.

#![expect(clippy::print_stdout, reason = "a test reports to the person who runs it")]

pub mod commands;
pub mod manifests;
pub mod node_faults;
#[cfg(feature = "tls")]
pub mod tls;
pub mod variables;

use std::fmt::{self, Display};
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};
use std::thread;

pub mod yardstick;

use variables::{REQUIRE, SKIPPED};

/// A requirement of tests that a machine may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// Linux, root, network namespaces and iptables.
    Kernel,
    /// nf_tables and the program nft.
    Nft,
    /// ipset, in the kernel and as a program.
    Ipset,
    /// IPVS in this kernel.
    Ipvs,
    /// A part that many kernels are built without: a kind of set, a kind of match, VXLAN.
    KernelModules,
    /// User Mode Linux and the programs that run in it.
    Machine,
    /// A CoreDNS binary.
    CoreDns,
    /// nginx.
    Nginx,
    /// keepalived, and curl, by which it checks the health of a load balancer.
    Keepalived,
    /// conntrackd.
    Conntrackd,
    /// BIRD.
    Bird,
    /// Chromium.
    Browser,
    /// The real programs of a cluster: etcd, kube-apiserver and the others.
    ClusterParts,
    /// A build folder that users other than root can read.
    Unprivileged,
    /// Programs by which pods may make calls: curl, wget, nc, python3, Node.js, bash, BusyBox.
    CallTools,
}

impl Requirement {
    const ALL: [Self; 15] = [
        Self::Kernel,
        Self::Nft,
        Self::Ipset,
        Self::Ipvs,
        Self::KernelModules,
        Self::Machine,
        Self::CoreDns,
        Self::Nginx,
        Self::Keepalived,
        Self::Conntrackd,
        Self::Bird,
        Self::Browser,
        Self::ClusterParts,
        Self::Unprivileged,
        Self::CallTools,
    ];

    /// Returns the name of the requirement in [`REQUIRE`].
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Nft => "nft",
            Self::Ipset => "ipset",
            Self::Ipvs => "ipvs",
            Self::KernelModules => "kernel-modules",
            Self::Machine => "machine",
            Self::CoreDns => "coredns",
            Self::Nginx => "nginx",
            Self::Keepalived => "keepalived",
            Self::Conntrackd => "conntrackd",
            Self::Bird => "bird",
            Self::Browser => "browser",
            Self::ClusterParts => "cluster-parts",
            Self::Unprivileged => "unprivileged",
            Self::CallTools => "call-tools",
        }
    }
}

impl Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Records that a test, or a part of one, cannot run on this machine, and why. The test then
/// returns: cargo counts it as passed, and `cargo xtask test` lists it as skipped.
///
/// # Panics
/// If [`REQUIRE`] lists the missing requirement, or a word that is no [`Requirement`], and if the
/// list of skipped tests cannot be written: a test must not pass in silence.
pub fn skip(missing: Requirement, what: &str, why: impl Display) {
    let line = line(what, &why.to_string());
    let required = std::env::var(REQUIRE).unwrap_or_default();
    let required = requirements(&required).unwrap_or_else(|fault| panic!("{REQUIRE}: {fault}"));
    assert!(!required.contains(&missing), "{REQUIRE} lists {missing:?} ({missing}), but {line}");
    println!("skipped: {line}");
    if let Some(list) = std::env::var_os(SKIPPED) {
        append(list.as_ref(), &line).expect("the list of skipped tests can be written");
    }
}

/// Reads a list of requirements.
fn requirements(list: &str) -> Result<Vec<Requirement>, String> {
    let mut required = Vec::new();
    for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        match Requirement::ALL.iter().find(|requirement| requirement.name() == name) {
            Some(requirement) => required.push(*requirement),
            None if name == "all" => required.extend(Requirement::ALL),
            None => {
                let known = Requirement::ALL.map(Requirement::name).join(", ");
                return Err(format!("{name:?} is not one of all, {known}"));
            }
        }
    }
    Ok(required)
}

/// Runs a shell script in a network namespace of its own, which is removed when the script ends.
/// Returns the output of the script.
///
/// # Errors
/// If the script fails: its output on stderr.
pub fn in_a_namespace(script: &str, input: &str) -> Result<String, String> {
    let mut child = Command::new("unshare")
        .args(["-n", "sh", "-ec", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|why| format!("unshare: {why}"))?;
    let stdin = child.stdin.take();
    let input = input.to_owned();
    let writer =
        thread::spawn(move || stdin.map_or(Ok(()), |mut stdin| stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().map_err(|why| why.to_string())?;
    // A tool that stops reading early reports the reason itself.
    let _ = writer.join();
    if output.status.success() {
        String::from_utf8(output.stdout).map_err(|why| why.to_string())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Formats a skipped test as one line, even if the reason has several.
fn line(what: &str, why: &str) -> String {
    let why: Vec<&str> = why.split_whitespace().collect();
    format!("{what}: {}", why.join(" "))
}

/// Appends a line in a single write, so that lines of tests that run at once do not mix.
fn append(list: &std::path::Path, line: &str) -> io::Result<()> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(list)?
        .write_all(format!("{line}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_many_lines_becomes_one_line() {
        assert_eq!(
            line("lab l7-loop", "no root:\n  run it\tas root\n"),
            "lab l7-loop: no root: run it as root"
        );
    }

    #[test]
    fn requirements_are_read_by_name() {
        assert_eq!(requirements(""), Ok(Vec::new()));
        assert_eq!(requirements("nft, kernel"), Ok(vec![Requirement::Nft, Requirement::Kernel]));
        assert_eq!(requirements("all"), Ok(Requirement::ALL.into()));
        assert!(requirements("kernal").unwrap_err().contains("\"kernal\" is not one of"));
    }

    /// The next test runs this one in a process of its own.
    #[test]
    #[ignore = "fails when UTURN_REQUIRE says so"]
    fn skips_for_lack_of_nft() {
        skip(Requirement::Nft, "a test", "no nft");
    }

    #[test]
    fn a_test_that_is_skipped_fails_where_what_it_lacks_is_required() {
        let passes = |required: &str| {
            let status = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "tests::skips_for_lack_of_nft", "--include-ignored"])
                .env(REQUIRE, required)
                .env_remove(SKIPPED)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            status.unwrap().success()
        };
        assert!(passes(""));
        assert!(passes("kernel,machine"));
        assert!(!passes("kernel,nft"));
        assert!(!passes("all"));
        assert!(!passes("nfft"), "a word that is no requirement is refused");
    }

    #[test]
    fn lines_are_added_to_what_is_there() {
        let list = std::env::temp_dir().join(format!("uturn-testing-{}", std::process::id()));
        append(&list, "a: b").unwrap();
        append(&list, "c: d").unwrap();
        let text = std::fs::read_to_string(&list).unwrap();
        std::fs::remove_file(&list).unwrap();
        assert_eq!(text, "a: b\nc: d\n");
    }
}
