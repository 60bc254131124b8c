//! `h2spec`: checks the load balancer against RFC 9113 and RFC 7541 with an independent program.
//!
//! Builds h2spec (`conformance/h2spec/go.mod` has its version), runs it against `uturn lb run` on
//! the loopback interface, in the clear and under TLS, and compares the tests that do not pass with
//! `conformance/h2spec/explained.txt`.

mod report;
mod server;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::shell::{self, Failure};
use crate::{Outcome, go, machine};
use report::{Explained, Report};
use server::{Balancer, Target};

/// The program in the Go module.
const PROGRAM: &str = "github.com/summerwind/h2spec/cmd/h2spec";

/// The number of tests of this version including the strict ones, so that none is left out in
/// silence.
const TESTS: usize = 146;

/// Runs all tests of h2spec against both kinds of listener.
pub(crate) fn run() -> Result<Outcome, Failure> {
    if !cfg!(target_os = "linux") {
        return Ok(Outcome::Skipped("it needs Linux: the load balancer does".to_owned()));
    }
    if machine::find("go").is_none() {
        return Ok(Outcome::Skipped(
            "go not found; it builds h2spec (Go 1.26 or later)".to_owned(),
        ));
    }
    let module = shell::root().join("conformance").join("h2spec");
    let programs = go::folder().join("bin");
    go::build(&module, &programs, &[PROGRAM])?;
    shell::build(&["uturn-lb"])?;

    let list = read(&module.join("explained.txt"))?;
    let explained = Explained::parse(&list).map_err(Failure)?;
    let work = go::folder().join("h2spec");
    fs::create_dir_all(&work).map_err(|error| named(&work, &error))?;
    let target = Target::start()?;
    let balancer = Balancer::start(&work, target.address)?;
    let mut faults = Vec::new();
    for (protocol, port, words) in
        [("HTTP", balancer.http, &[][..]), ("HTTPS", balancer.https, &["--tls", "--insecure"])]
    {
        let file = work.join(format!("{protocol}.xml"));
        let mut h2spec = Command::new(programs.join("h2spec"));
        h2spec.args(["--strict", "--host", "127.0.0.1", "--port", &port.to_string()]);
        h2spec.arg("--junit-report");
        h2spec.arg(&file).args(words);
        let report = report_of(&mut h2spec, &file)?;
        println!("h2spec on {protocol}: {report}");
        faults.extend(explained.faults(protocol, &report));
    }
    if faults.is_empty() { Ok(Outcome::Complete) } else { Err(Failure(faults.join("\n"))) }
}

fn report_of(h2spec: &mut Command, file: &Path) -> Result<Report, Failure> {
    // h2spec prints the content of the report as well, and fails if a test does.
    let status = h2spec.stdin(Stdio::null()).stdout(Stdio::null()).status();
    status.map_err(|error| Failure(format!("h2spec could not be started: {error}")))?;
    let report = Report::parse(&read(file)?).map_err(Failure)?;
    match report.passed + report.failed.len() {
        TESTS => Ok(report),
        count => Err(Failure(format!("h2spec ran {count} tests; expected {TESTS}"))),
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file).map_err(|error| named(file, &error))
}

fn named(path: &Path, error: &std::io::Error) -> Failure {
    Failure(format!("{}: {error}", path.display()))
}
