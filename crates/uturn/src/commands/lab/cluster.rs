//! `uturn lab up`, `exec` and `down`: a cluster in a box.
//!
//! `up` starts this program again as the keeper, which outlives it. The keeper reads the request
//! from its standard input, and writes a line of JSON for each step until the cluster is up.

use std::env;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};
use uturn_lab::{ClusterRequest, ClusterUp, LabError};
use uturn_report::words;
use uturn_snapshot::{Manifests, Source};

use super::broken;
use crate::cli::{LabExec, LabUp};
use crate::examples;
use crate::input::faulty;
use crate::printer::Printer;
use crate::status::{Failure, Status};

/// The request as the keeper reads it.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
struct WireRequest {
    manifests: Vec<(String, String)>,
    mode: String,
    nodes: Option<usize>,
    kube_proxy: Option<String>,
    parts: Option<PathBuf>,
}

/// What the keeper writes.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
enum WireEvent {
    Step(String),
    Up { kubeconfig: PathBuf, nodes: Vec<String>, pods: usize, notes: Vec<String> },
    Failed(String),
}

pub(super) fn up(args: &LabUp, printer: &Printer) -> Result<Status, Failure> {
    let request = request(args)?;
    let mut keeper = start_keeper()?;
    let lost = |why: io::Error| Failure::not_here(format!("the cluster's keeper: {why}"));
    let text = serde_json::to_vec(&request).map_err(|why| lost(why.into()))?;
    let mut stdin = keeper.stdin.take().expect("it is piped");
    // A keeper that ends early says why.
    let _ = stdin.write_all(&text);
    drop(stdin);
    let stdout = keeper.stdout.take().expect("it is piped");
    for line in BufReader::new(stdout).lines() {
        match serde_json::from_str(&line.map_err(lost)?).map_err(|why| lost(why.into()))? {
            WireEvent::Step(step) => printer.progress(&format!("{step} …")),
            WireEvent::Up { kubeconfig, nodes, pods, notes } => {
                printer.progress_done();
                notes.iter().for_each(|note| printer.note(note));
                printer.note(&format!(
                    "the cluster is up: {}, {}, kube-proxy in {} mode; the kubelet is a stand-in. \
                     Take it down with `uturn lab down`",
                    words::count(nodes.len(), "node"),
                    words::count(pods, "pod"),
                    request.mode,
                ));
                printer.result(&format!("{}\n", kubeconfig.display()));
                return Ok(Status::Clean);
            }
            WireEvent::Failed(why) => {
                printer.progress_done();
                let _ = keeper.wait();
                return Err(Failure::not_here(why));
            }
        }
    }
    printer.progress_done();
    let ended = keeper.wait().map_err(lost)?;
    Err(Failure::not_here(format!("the cluster's keeper ended with {ended}")))
}

/// The request that the options make. Faults of manifests are found before anything is built.
fn request(args: &LabUp) -> Result<WireRequest, Failure> {
    let (manifests, faults) = match &args.example {
        Some(name) => (Manifests::of(examples::manifests(name)), Vec::new()),
        None => Manifests::gather(&args.files, &[]),
    };
    if !faults.is_empty() {
        return Err(faulty(&faults));
    }
    let sources: Vec<Source> = manifests.sources().to_vec();
    if !sources.is_empty() {
        manifests.into_loaded().map_err(|faults| faulty(&faults))?;
    }
    let parts = args.parts.as_ref().map(|folder| {
        folder
            .canonicalize()
            .map_err(|why| Failure::usage(format!("--parts {}: {why}", folder.display())))
    });
    Ok(WireRequest {
        manifests: sources
            .into_iter()
            .map(|source| (source.name.to_string(), source.text))
            .collect(),
        mode: args.mode.to_string(),
        nodes: args.nodes.map(usize::from),
        kube_proxy: args.kube_proxy.clone(),
        parts: parts.transpose()?,
    })
}

/// Starts this program as the keeper, in a process group that Ctrl-C does not reach.
fn start_keeper() -> Result<Child, Failure> {
    let failed = |why: io::Error| Failure::not_here(format!("cannot start the keeper: {why}"));
    let mut command = Command::new(env::current_exe().map_err(failed)?);
    command.args(["lab", "keep-cluster"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn().map_err(failed)
}

/// The keeper's side.
pub(super) fn keep() -> Result<Status, Failure> {
    let kept = match serde_json::from_reader::<_, WireRequest>(io::stdin().lock()) {
        Ok(request) => keep_request(request),
        Err(why) => Err(format!("the request is none: {why}")),
    };
    match kept {
        Ok(()) => Ok(Status::Clean),
        Err(why) => {
            // If nobody reads it, nobody waits.
            let _ = write(&WireEvent::Failed(why.clone()));
            Err(Failure::not_here(why))
        }
    }
}

fn keep_request(request: WireRequest) -> Result<(), String> {
    let WireRequest { manifests, mode, nodes, kube_proxy, parts } = request;
    let mode = mode.parse().map_err(|why| format!("mode {mode}: {why}"))?;
    let program = env::current_exe().map_err(|why| format!("where this program is: {why}"))?;
    let request = ClusterRequest { program, manifests, mode, nodes, kube_proxy, parts };
    let mut step = |step: &str| {
        // Without a reader, the user has given up.
        write(&WireEvent::Step(step.to_owned())).map_err(|_| LabError::Interrupted)
    };
    let mut on_ready = |up: &ClusterUp| {
        let ClusterUp { kubeconfig, nodes, pods, notes } = up.clone();
        let _ = write(&WireEvent::Up { kubeconfig, nodes, pods, notes });
    };
    uturn_lab::keep_cluster(&request, &mut step, &mut on_ready).map_err(|why| why.to_string())
}

fn write(event: &WireEvent) -> io::Result<()> {
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line)?;
    stdout.flush()
}

pub(super) fn exec(args: &LabExec) -> Result<Status, Failure> {
    let Some((program, arguments)) = args.command.split_first() else {
        return Err(Failure::usage("name a program after --"));
    };
    Err(broken(&uturn_lab::enter_cluster(&args.place, program, arguments)))
}

pub(super) fn down(printer: &Printer) -> Result<Status, Failure> {
    let (count, left) = uturn_lab::take_cluster_down().map_err(|why| broken(&why))?;
    for thing in &left {
        printer.detail(&format!("taken down: {thing}"));
    }
    printer.note(match count {
        0 => "no cluster is up",
        _ => "the cluster is taken down",
    });
    Ok(Status::Clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_example_is_a_valid_request() {
        let args = LabUp {
            files: Vec::new(),
            example: Some("shop".into()),
            mode: "nftables".parse().unwrap(),
            kube_proxy: None,
            nodes: Some(2),
            parts: None,
        };
        let request = request(&args).unwrap();
        assert_eq!((request.manifests.len(), request.nodes), (5, Some(2)));
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<WireRequest>(&text).unwrap(), request);
    }
}
