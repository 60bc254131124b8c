//! A large cluster in a real API server: how long it takes to read it, in how much memory and how
//! many requests, beside programs that do less. By hand: `cargo xtask live --scale`.

mod client;
mod measure;
mod requests;
mod writer;

use std::path::{Path, PathBuf};
use std::time::Instant;

use client::Client;
use measure::{Measured, memory_of};
use requests::Requests;

use uturn_testing::variables;

use crate::control_plane::{ControlPlane, READER, Stage};
use crate::dies::{Ending, halfway};
use crate::{objects, program, same, shown};

/// kubectl does not get more pods than this into the memory of a usual machine.
const MAX_FOR_KUBECTL: usize = 30_000;

/// The file with the cluster, which `cargo xtask gen-cluster` wrote, if this is asked for.
pub(crate) fn wanted() -> Option<PathBuf> {
    variables::path(variables::SCALE_CLUSTER)
}

/// Writes the cluster into a server, reads it in every way, and prints what each took.
#[expect(clippy::print_stdout, reason = "what is measured is for people")]
pub(crate) fn measure(stage: &Stage, cluster: &Path) {
    let plane = stage.start_for_many("scale");
    same::give_rights(&plane, &["collect", "--rbac"]);
    let start = Instant::now();
    let written = writer::write(&plane, cluster);
    println!("{written} objects written in {:.0} s", start.elapsed().as_secs_f64());
    servers(&plane);
    let facts = objects::facts(&plane, cluster).map(|path| shown(&path)).unwrap_or_default();
    let mut requests = Requests::of(&plane);

    let start = Instant::now();
    let pods = Client::new(&plane, READER).discard("/api/v1/pods");
    let took = start.elapsed().as_secs_f64();
    let (count, bytes) = (pods.objects, pods.bytes / 1_000_000);
    println!("{:<34} {took:>7.1} s  {bytes:>6} MB", format!("{count} pods, read and dropped"));
    requests.since_last();

    let kubectl = |words: &[&str]| {
        let mut command = plane.kubectl_command(READER);
        command.args(words);
        Measured::of(command, "")
    };
    let mut line = |what: &str, measured: &Measured| {
        println!("{what:<34} {measured}  {}", requests.since_last());
    };
    if count <= MAX_FOR_KUBECTL {
        line("kubectl get pods -A -o json", &kubectl(&["get", "pods", "-A", "-o", "json"]));
        line("kubectl get pods -A", &kubectl(&["get", "pods", "-A"]));
    }

    let run = |words: &[&str]| Measured::of(program(&plane, words, READER), "read ");
    let bundle = plane.file("big.tar.gz");
    let collect = run(&["collect", "-o", &shown(&bundle)]);
    assert_eq!(collect.code, Some(0), "{}", collect.stderr);
    line("uturn collect -o x.tar.gz", &collect);
    println!("  the bundle: {} MB", bundle.metadata().unwrap().len() / 1_000_000);
    let live = run(&["scan", "--live", "-f", &facts, "-v"]);
    assert!(matches!(live.code, Some(0 | 1)), "{}", live.stderr);
    line("uturn scan", &live);
    let saved = run(&["scan", "--bundle", &shown(&bundle), "-f", &facts, "-v"]);
    line("uturn scan --bundle x.tar.gz", &saved);
    // Cures, notes and what is supposed are in it too. Commands to go on with name the input.
    let inputs =
        [format!(" -f {facts} --live"), format!(" -f {facts} --bundle {}", shown(&bundle))];
    let found = |scan: &Measured| {
        // Lines are wrapped, and where depends on them.
        let words = scan.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        inputs.iter().fold(words, |text, input| text.replace(input, ""))
    };
    let same = found(&live) == found(&saved);
    assert!(same, "the scans of the running cluster and of its bundle differ");
    assert!(live.stdout.contains("UT1"), "{}", live.stdout);
    servers(&plane);
    std::fs::remove_file(&bundle).unwrap();

    for ending in [Ending::Stops, Ending::Dies] {
        let start = Instant::now();
        let why = halfway(&plane, &["collect", "--request-timeout", "20s"], ending);
        println!(
            "{ending:?} halfway, after {:.0} s: {}",
            start.elapsed().as_secs_f64(),
            why.trim()
        );
    }
}

/// What the servers need themselves.
#[expect(clippy::print_stdout, reason = "what is measured is for people")]
fn servers(plane: &ControlPlane) {
    for (name, id) in plane.processes() {
        println!("  {name}: {} MB", memory_of(id, "VmRSS:").unwrap_or_default() >> 20);
    }
}
