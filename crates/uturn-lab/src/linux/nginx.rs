//! Pods that are an nginx: an annotation has its configuration.
//!
//! ```yaml
//! annotations:
//!   lab.uturn.dev/nginx: |
//!     server {
//!       listen 80;
//!       location / { proxy_pass http://172.16.0.10; }
//!     }
//! ```
//! What stands there is what a file below `/etc/nginx/conf.d` would have. nginx resolves no
//! names here: upstreams are addresses, such as Services' cluster IPs.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use uturn_model::{Cluster, Pod};

use super::build::Twin;
use super::program::Program;
use super::state::Run;
use super::system::{During, find};
use crate::LabError;

const ANNOTATION: &str = "lab.uturn.dev/nginx";

/// What it says once it listens.
const LISTENS: &str = "getrlimit(RLIMIT_NOFILE)";

/// Whether a pod is an nginx.
pub(crate) fn is_one(pod: &Pod) -> bool {
    pod.spec.annotations.get(ANNOTATION).is_some()
}

/// Starts nginx in every pod that is one.
pub(crate) fn start(run: &Run, cluster: &Cluster, twin: &Twin) -> Result<Vec<Program>, LabError> {
    let mut all = Vec::new();
    for pod in cluster.pods.values().filter(|pod| pod.is_alive()) {
        let Some(text) = pod.spec.annotations.get(ANNOTATION) else { continue };
        let Some(space) = twin.of_pod(pod) else { continue };
        let program = find("nginx").ok_or_else(|| {
            let name = &pod.name;
            LabError::Plan(format!("pod {name} is an nginx, and there is none in the search path"))
        })?;
        let during = format!("start nginx in pod {}", pod.name);
        let folder = run.file(&format!("nginx-{}", all.len()));
        write(&folder, text).during(&during)?;
        let mut command = Command::new(program);
        command.arg("-p").arg(&folder).arg("-c").arg(folder.join("nginx.conf"));
        // Until it has read its configuration, it speaks elsewhere.
        command.args(["-e", "stderr"]);
        all.push(Program::start(run, space, command, &folder.join("log"), LISTENS, &during)?);
    }
    Ok(all)
}

/// One process only: none is left when it is killed.
fn write(folder: &Path, text: &str) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|what| format!("  {what}_temp_path {what};\n"))
        .concat();
    let whole = format!(
        "daemon off;\nmaster_process off;\npid pid;\nerror_log stderr notice;\nevents {{}}\n\
         http {{\n  access_log off;\n{temporary}{text}\n}}\n"
    );
    fs::write(folder.join("nginx.conf"), whole)
}
