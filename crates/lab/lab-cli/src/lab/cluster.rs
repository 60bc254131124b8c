//! `uturn lab up`, `exec` and `down`: a cluster in a box.
//!
//! `up` starts this program again as the supervisor, which outlives `up`. The supervisor reads the
//! request from its standard input, and writes a line of JSON for each step until the cluster is
//! up.
//!
//! If this kernel cannot run the cluster, that supervisor starts a small machine, in which this
//! program is the supervisor ([`machine`]). Both supervisors write the same events.

#[cfg(target_os = "linux")]
mod machine;
#[cfg(not(target_os = "linux"))]
mod no_machine;

use std::env;
use std::fs;
use std::io::{self, BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uturn_cli::{Failure, NotInstalled, Part, Printer, Status, faulty};
use uturn_lab::{ClusterRequest, ClusterUp, LabError, Programs, StandingCluster, Unavailable};
use uturn_machine::Machine;
use uturn_model::ProxyMode;
use uturn_report::words;
use uturn_snapshot::{Manifests, Source};

#[cfg(not(target_os = "linux"))]
use no_machine as machine;

use super::broken;
use crate::cli::{LabExec, LabUp};
use crate::examples;

/// The request, as the supervisor reads it.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
struct WireRequest {
    manifests: Vec<(String, String)>,
    mode: String,
    nodes: Option<usize>,
    kube_proxy: Option<String>,
    parts: Option<PathBuf>,
    place: Place,
}

/// The place of a cluster.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
enum Place {
    /// The cluster is on this kernel.
    Here,
    /// The cluster is in a small machine, which is to be started.
    Machine,
    /// The cluster is in the small machine in which this process runs.
    InMachine,
}

/// An event that the supervisor writes.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
enum WireEvent {
    Step(String),
    Up(Box<WireUp>),
    Failed(String),
}

/// A cluster that is up.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
struct WireUp {
    kubeconfig: PathBuf,
    nodes: Vec<String>,
    pods: usize,
    notes: Vec<String>,
    /// The access to the cluster, if it is in a small machine.
    access: Option<Access>,
}

/// The files of a cluster in a small machine that the user needs.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
struct Access {
    kubeconfig: Value,
    /// The certificate of the authority that the kubeconfig names.
    authority: String,
    /// The access to the cloud's API.
    cloud: Value,
    /// Facts that the cluster's objects do not state.
    facts: Value,
}

/// The files of a cluster beside its kubeconfig.
const CLOUD: &str = "cloud.json";
const FACTS: &str = "facts.json";

pub(super) fn up(args: &LabUp, printer: &Printer) -> Result<Status, Failure> {
    let mut request = request(args)?;
    request.place = place(args, printer)?;
    let mut supervisor = start_supervisor()?;
    let lost = |why: io::Error| Failure::unavailable(format!("the cluster's supervisor: {why}"));
    let text = serde_json::to_vec(&request).map_err(|why| lost(why.into()))?;
    let mut stdin = supervisor.stdin.take().expect("it is piped");
    // A supervisor that ends early reports the reason.
    let _ = stdin.write_all(&text);
    drop(stdin);
    let stdout = supervisor.stdout.take().expect("it is piped");
    for line in BufReader::new(stdout).lines() {
        match serde_json::from_str(&line.map_err(lost)?).map_err(|why| lost(why.into()))? {
            WireEvent::Step(step) => show_step(printer, &step),
            WireEvent::Up(up) => {
                let WireUp { kubeconfig, nodes, pods, notes, .. } = *up;
                printer.progress_done();
                notes.iter().for_each(|note| printer.note(note));
                printer.note(&format!(
                    "the cluster is up{}: {}, {}, kube-proxy in {} mode; the kubelet is a \
                     stand-in. Take it down with `uturn lab down`",
                    if request.place == Place::Machine { " in a small machine" } else { "" },
                    words::count(nodes.len(), "node"),
                    words::count(pods, "pod"),
                    request.mode,
                ));
                printer.result(&format!("{}\n", kubeconfig.display()));
                return Ok(Status::Clean);
            }
            WireEvent::Failed(why) => {
                printer.progress_done();
                let _ = supervisor.wait();
                return Err(Failure::unavailable(why));
            }
        }
    }
    printer.progress_done();
    let ended = supervisor.wait().map_err(lost)?;
    Err(Failure::unavailable(format!("the cluster's supervisor ended with {ended}")))
}

/// Shows what is waited for. On a terminal the next line overwrites this one, elsewhere each gets a
/// line of its own.
fn show_step(printer: &Printer, step: &str) {
    if io::stderr().is_terminal() {
        printer.progress(&format!("{step} …"));
    } else {
        printer.note(&format!("waiting for: {step}"));
    }
}

/// Decides where the cluster is built. Tells the user if that is not this kernel.
fn place(args: &LabUp, printer: &Printer) -> Result<Place, Failure> {
    let why = match uturn_lab::can_keep_cluster(args.mode) {
        Ok(()) if !args.vm => return Ok(Place::Here),
        Ok(()) => None,
        Err(LabError::Unavailable(Unavailable::NotLinux)) => {
            return Err(broken(&Unavailable::NotLinux.into()));
        }
        Err(why) => Some(why.to_string()),
    };
    let with_reason = |other: String| match &why {
        Some(why) => Failure::unavailable(format!("{why}; {other}")),
        None => Failure::unavailable(other),
    };
    if args.mode == ProxyMode::Nftables {
        let lacks = "the small machine's kernel has no nf_tables for IP: choose another --mode";
        return Err(with_reason(lacks.to_owned()));
    }
    let machine = Machine::find().map_err(|other| with_reason(other.to_string()))?;
    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
    printer.note(&format!(
        "the cluster runs in a small machine{why}: {}. That has one CPU and is slow: it is up in \
         one to three minutes, and takes 1 GB of memory",
        machine.kernel(),
    ));
    Ok(Place::Machine)
}

/// Builds the request from the options. Faults of manifests are found before anything is built.
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
        place: Place::Here,
    })
}

/// Starts this program as the supervisor, in a process group that Ctrl-C does not reach. If this
/// process ends before the cluster is up, the supervisor notices when it writes to its standard
/// output, and takes down what it has built.
fn start_supervisor() -> Result<Child, Failure> {
    let failed =
        |why: io::Error| Failure::unavailable(format!("cannot start the supervisor: {why}"));
    let mut command = Command::new(env::current_exe().map_err(failed)?);
    command.args(["lab", "keep-cluster"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn().map_err(failed)
}

/// Runs the supervisor: reads the request, and keeps the cluster.
pub(super) fn keep() -> Result<Status, Failure> {
    let kept = match serde_json::from_reader::<_, WireRequest>(io::stdin().lock()) {
        Ok(request) if request.place == Place::Machine => machine::keep(request),
        Ok(request) => keep_request(request),
        Err(why) => Err(format!("the request cannot be read: {why}")),
    };
    match kept {
        Ok(()) => Ok(Status::Clean),
        Err(why) => {
            // If nobody reads the event, nobody waits for it.
            let _ = write(&WireEvent::Failed(why.clone()));
            Err(Failure::unavailable(why))
        }
    }
}

fn keep_request(request: WireRequest) -> Result<(), String> {
    let WireRequest { manifests, mode, nodes, kube_proxy, parts, place } = request;
    let in_machine = place == Place::InMachine;
    let mode = mode.parse().map_err(|why| format!("mode {mode}: {why}"))?;
    let programs = programs()?;
    let request =
        ClusterRequest { programs, manifests, mode, nodes, kube_proxy, parts, in_machine };
    let is_up = Arc::new(AtomicBool::new(false));
    let was_up = Arc::clone(&is_up);
    uturn_lab::when_unread(move || {
        if !was_up.load(Ordering::SeqCst) {
            uturn_lab::give_cluster_up();
        }
    })
    .map_err(|why| why.to_string())?;
    let mut step = |step: &str| {
        // If nothing reads the steps, the user has given up.
        write(&WireEvent::Step(step.to_owned())).map_err(|_| LabError::Interrupted)
    };
    let mut on_ready = |up: &ClusterUp| {
        let ClusterUp { kubeconfig, nodes, pods, notes } = up.clone();
        let event = match in_machine.then(|| access(&kubeconfig)).transpose() {
            Ok(access) => {
                WireEvent::Up(Box::new(WireUp { kubeconfig, nodes, pods, notes, access }))
            }
            Err(why) => WireEvent::Failed(format!("the kubeconfig cannot be read: {why}")),
        };
        is_up.store(true, Ordering::SeqCst);
        let _ = write(&event);
    };
    uturn_lab::keep_cluster(&request, &mut step, &mut on_ready).map_err(|why| why.to_string())
}

/// Finds the programs of the cluster that come with this one.
fn programs() -> Result<Programs, String> {
    let found = |part: Part| part.find().map_err(|why: NotInstalled| why.to_string());
    Ok(Programs {
        lab: env::current_exe().map_err(|why| format!("cannot find this program: {why}"))?,
        load_balancer: found(Part::Lb)?,
        cloud: found(Part::Cloud)?,
        operator: found(Part::Operator)?,
    })
}

/// Reads a kubeconfig and the files beside it.
fn access(path: &Path) -> io::Result<Access> {
    let read = |path: &Path| -> io::Result<Value> {
        Ok(serde_json::from_str(&fs::read_to_string(path)?)?)
    };
    let kubeconfig = read(path)?;
    let authority = &kubeconfig["clusters"][0]["cluster"]["certificate-authority"];
    let authority = fs::read_to_string(authority.as_str().unwrap_or_default())?;
    let (cloud, facts) = (read(&path.with_file_name(CLOUD))?, read(&path.with_file_name(FACTS))?);
    Ok(Access { kubeconfig, authority, cloud, facts })
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
    let standing = uturn_lab::standing_cluster().map_err(|why| broken(&why))?;
    if let Some(StandingCluster { is_alive: true, machine: Some(machine), .. }) = standing {
        return machine::exec(&machine, args);
    }
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
            vm: false,
        };
        let request = request(&args).unwrap();
        assert_eq!((request.manifests.len(), request.nodes), (5, Some(2)));
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<WireRequest>(&text).unwrap(), request);
    }
}
