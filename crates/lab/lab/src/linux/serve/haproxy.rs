//! Pods that run HAProxy: if a ConfigMap mounts a `haproxy.cfg`, the installed HAProxy runs in the
//! pod's namespace with it.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use uturn_model::{Cluster, Family, Pod, Protocol};

use crate::LabError;
use crate::linux::build::lab_cluster::LabCluster;
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::system::{During, find};
use crate::linux::kernel::wait::{QUIET_PERIOD, wait};
use crate::linux::run::program::{Program, START};
use crate::linux::run::state::Run;

/// The name of the configuration file, wherever the image has it.
const FILE: &str = "haproxy.cfg";

/// The message that HAProxy prints before it listens.
const BEGINS: &str = "polling mechanism";

/// Returns the configuration of a pod that runs HAProxy, or `None` if the pod runs something else.
fn config(pod: &Pod) -> Option<&str> {
    let named = |path: &str| Path::new(path).file_name().is_some_and(|name| name == FILE);
    pod.spec.files.iter().find(|file| named(&file.path))?.text.as_deref()
}

/// Returns whether a pod runs HAProxy with a known configuration.
pub(crate) fn is_one(pod: &Pod) -> bool {
    config(pod).is_some()
}

/// Starts HAProxy in every pod that runs it.
pub(crate) fn start(
    run: &Run,
    cluster: &Cluster,
    lab_cluster: &LabCluster,
) -> Result<Vec<Program>, LabError> {
    let mut all = Vec::new();
    for pod in cluster.pods.values().filter(|pod| pod.is_alive()) {
        let Some((config, space)) = config(pod).zip(lab_cluster.of_pod(pod)) else { continue };
        let name = &pod.name;
        let program = find("haproxy").ok_or_else(|| {
            LabError::Plan(format!("pod {name} runs HAProxy, and there is none in the search path"))
        })?;
        let during = format!("start HAProxy in pod {name}");
        let file = run.file(&format!("haproxy-{}.cfg", all.len()));
        let log = run.file(&format!("haproxy-{}.log", all.len()));
        fs::write(&file, config).during(&during)?;
        let mut command = Command::new(program);
        // The options keep HAProxy in the foreground, and make it print messages.
        command.args(["-db", "-V", "-f"]).arg(&file);
        let mut started = Program::start(run, space, command, &log, BEGINS, &during)?;
        await_ports(pod, space, &mut started, &log, &during)?;
        all.push(started);
    }
    Ok(all)
}

/// Waits until a pod's TCP ports accept connections.
fn await_ports(
    pod: &Pod,
    space: &Namespace,
    program: &mut Program,
    log: &Path,
    during: &str,
) -> Result<(), LabError> {
    let limit = Instant::now() + START;
    let ports = pod.spec.ports().filter(|port| port.protocol == Protocol::Tcp);
    let address = Family::BOTH.into_iter().find_map(|family| pod.address(family));
    for port in ports {
        let Some(ip) = address else { continue };
        let at = SocketAddr::new(ip, port.port.number());
        let is_open =
            || space.run(|| Ok(TcpStream::connect_timeout(&at, Duration::from_secs(1)).is_ok()));
        while !is_open().during(during)? {
            program.check(log, during)?;
            if Instant::now() > limit {
                let reason = format!("it does not listen on port {}", port.port);
                return Err(LabError::Program { doing: during.into(), reason });
            }
            wait(&mut [], Instant::now() + QUIET_PERIOD)?;
        }
    }
    Ok(())
}
