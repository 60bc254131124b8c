//! A cluster in a small machine: the process that starts the machine and keeps it, and the access
//! of other processes to it.
//!
//! The cluster's supervisor is the machine's job. kubectl comes in through a port of the host's
//! loopback, `uturn lab exec` through the machine's control socket, which is in the folder of the
//! cluster's record.

use std::env;
use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};
use uturn_cli::{Failure, Status};
use uturn_lab::{ClusterRecord, LabError};
use uturn_machine::{Ended, Job, JobOutput, Machine, MachineClient, MachineError};

use super::super::machine::Lines;
use super::{Access, CLOUD, FACTS, Place, WireEvent, WireRequest, WireUp, write};
use crate::cli::LabExec;

/// The machine's memory, in MiB. The host only provides what the machine uses.
const MEMORY: u32 = 2048;

/// The files of the record that kubectl reads.
const KUBECONFIG: &str = "kubeconfig";
const AUTHORITY: &str = "ca.crt";

/// The number that a shell adds to the number of the signal that ended a program.
const SIGNALLED: i32 = 128;

/// Starts a machine with a cluster and keeps it. Returns only if the cluster has ended, at a
/// signal, or if the user has gone before the cluster is up.
pub(super) fn keep(request: WireRequest) -> Result<(), String> {
    let stop = Arc::new(AtomicBool::new(false));
    let is_up = Arc::new(AtomicBool::new(false));
    stop_with_user(&stop, &is_up).map_err(|why| why.to_string())?;
    let record = ClusterRecord::create().map_err(|why| why.to_string())?;
    let socket = record.machine();
    let control = listen(&socket).map_err(|why| format!("{}: {why}", socket.display()))?;
    let machine = Machine::find().map_err(|why| why.to_string())?;
    let machine = machine.with_memory(MEMORY).with_control(control).with_stop(Arc::clone(&stop));
    let request = WireRequest { place: Place::InMachine, ..request };
    let stdin = serde_json::to_vec(&request).map_err(|why| why.to_string())?;
    let job = job(&["lab", "keep-cluster"], "/".into(), stdin).map_err(|why| why.to_string())?;
    let mut keeping = Keeping { record: &record, socket, is_up, failed: None };
    // If nobody reads the event, the machine is stopped.
    let _ = write(&WireEvent::Step(format!("the small machine ({})", machine.kernel())));
    let (mut lines, mut complaints) = (Lines::default(), Vec::new());
    let ended = machine.run(&job, &mut |output| match output {
        JobOutput::Out(bytes) => lines.add(bytes, &mut |line| {
            if let Err(why) = keeping.hear(line) {
                keeping.failed.get_or_insert(why);
                stop.store(true, Ordering::SeqCst);
            }
        }),
        JobOutput::Err(bytes) => complaints.extend(bytes),
    });
    if let Some(why) = keeping.failed {
        return Err(why);
    }
    let complaints = String::from_utf8_lossy(&complaints);
    match ended {
        Ok(Ended::Exit(0)) | Err(MachineError::Stopped) => Ok(()),
        Ok(ended) => {
            Err(format!("the supervisor in the small machine ended ({ended:?}): {complaints}"))
        }
        Err(why) => Err(why.to_string()),
    }
}

/// Sets `stop` at a signal, or when the user has gone before the cluster is up.
fn stop_with_user(stop: &Arc<AtomicBool>, is_up: &Arc<AtomicBool>) -> Result<(), LabError> {
    uturn_lab::stop_at_signals(stop)?;
    let (stop, is_up) = (Arc::clone(stop), Arc::clone(is_up));
    uturn_lab::when_unread(move || {
        if !is_up.load(Ordering::SeqCst) {
            stop.store(true, Ordering::SeqCst);
        }
    })
}

/// Creates the machine's socket. Only this user may connect to it.
fn listen(socket: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(socket)?;
    fs::set_permissions(socket, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Returns a job that runs this program in the machine.
fn job(arguments: &[&str], folder: PathBuf, stdin: Vec<u8>) -> io::Result<Job> {
    Ok(Job {
        program: env::current_exe()?,
        arguments: arguments.iter().map(Into::into).collect(),
        environment: env::vars_os().collect(),
        folder,
        stdin,
        shared: Vec::new(),
    })
}

/// The state of the cluster in the machine, as this process learns it.
struct Keeping<'a> {
    record: &'a ClusterRecord,
    socket: PathBuf,
    is_up: Arc<AtomicBool>,
    failed: Option<String>,
}

impl Keeping<'_> {
    /// Passes on an event of the supervisor in the machine. Fails once the machine is not needed
    /// any more.
    fn hear(&self, line: &str) -> Result<(), String> {
        let event = serde_json::from_str(line).map_err(|why| format!("{line}: {why}"))?;
        match event {
            WireEvent::Step(_) => {
                write(&event).map_err(|_| "the user does not wait any more".to_owned())
            }
            WireEvent::Up(up) => {
                let up = self.relay(*up)?;
                // The cluster is kept, whether the user still waits for it or not.
                self.is_up.store(true, Ordering::SeqCst);
                let _ = write(&WireEvent::Up(Box::new(up)));
                Ok(())
            }
            WireEvent::Failed(why) => Err(why),
        }
    }

    /// Makes the API server and the cloud reachable from the host.
    fn relay(&self, up: WireUp) -> Result<WireUp, String> {
        let Some(access) = up.access else {
            return Err("the supervisor in the small machine does not say how to reach it".into());
        };
        let Access { mut kubeconfig, authority, mut cloud, facts } = access;
        let write =
            |name: &str, text: &str| self.record.write(name, text).map_err(|why| why.to_string());
        let cluster = &mut kubeconfig["clusters"][0]["cluster"];
        cluster["server"] = self.relay_to(&cluster["server"])?.into();
        cluster["certificate-authority"] = json!(write(AUTHORITY, &authority)?);
        cloud["endpoint"] = self.relay_to(&cloud["endpoint"])?.into();
        write(CLOUD, &cloud.to_string())?;
        write(FACTS, &facts.to_string())?;
        let kubeconfig = write(KUBECONFIG, &kubeconfig.to_string())?;
        Ok(WireUp { kubeconfig, access: None, ..up })
    }

    /// Starts a relay to an address of the machine's loopback. Returns the URL of the relay on the
    /// host.
    fn relay_to(&self, url: &Value) -> Result<String, String> {
        let parts = url.as_str().and_then(|url| {
            let (host, port) = url.rsplit_once(':')?;
            Some((host, port.parse().ok()?))
        });
        let (host, inside) = parts.ok_or_else(|| format!("the address {url} has no port"))?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let bound = listener.and_then(|listener| Ok((listener.local_addr()?.port(), listener)));
        let (port, listener) = bound.map_err(|why| format!("cannot listen for {url}: {why}"))?;
        let client = MachineClient::of(&self.socket);
        thread::Builder::new()
            .name("relay".into())
            .spawn(move || serve(&listener, inside, &client))
            .map_err(|why| format!("cannot start the relay: {why}"))?;
        Ok(format!("{host}:{port}"))
    }
}

/// Relays connections to a port of the machine's loopback.
fn serve(listener: &TcpListener, port: u16, client: &MachineClient) {
    for connection in listener.incoming() {
        // A connection that cannot be relayed is closed.
        let Ok(connection) = connection else { continue };
        let client = client.clone();
        let relay = move || client.connect(port, &connection);
        let _ = thread::Builder::new().name("relay".into()).spawn(relay);
    }
}

/// Runs a program in a pod or on a node of the cluster in a machine. Ends this process in the same
/// way as the program ended.
pub(super) fn exec(socket: &Path, args: &LabExec) -> Result<Status, Failure> {
    let failed = |why: String| Failure::unavailable(why);
    let mut arguments = vec!["lab", "exec", &args.place, "--"];
    arguments.extend(args.command.iter().map(String::as_str));
    let folder = env::current_dir().unwrap_or_else(|_| "/".into());
    let job = job(&arguments, folder, Vec::new()).map_err(|why| failed(why.to_string()))?;
    let (mut stdout, mut stderr) = (io::stdout().lock(), io::stderr().lock());
    let mut is_unread = false;
    let ended = MachineClient::of(socket).run(&job, Some(Box::new(io::stdin())), &mut |output| {
        let written = match output {
            JobOutput::Out(bytes) => stdout.write_all(bytes).and_then(|()| stdout.flush()),
            JobOutput::Err(bytes) => stderr.write_all(bytes),
        };
        is_unread |= written.is_err();
    });
    match ended.map_err(|why| failed(why.to_string()))? {
        Ended::Exit(0) if is_unread => Err(failed("the output cannot be written".into())),
        Ended::Exit(code) => process::exit(code),
        Ended::Signal(signal) => process::exit(SIGNALLED + signal),
    }
}
