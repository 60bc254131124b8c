//! Runs the real nginx in pods whose ConfigMaps mount an nginx configuration.
//!
//! nginx has its files below `/etc/nginx`, as in the image. It writes to private mounts of `/var`
//! and `/run`, which disappear when it ends. It resolves the names of Services through
//! `/etc/hosts`, with the addresses that the cluster's DNS would return.

mod config;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::mount::mount_bind;
use uturn_model::{Cluster, Pod};

use crate::LabError;
use crate::linux::build::lab_cluster::LabCluster;
use crate::linux::kernel::system::{During, find};
use crate::linux::run::program::Program;
use crate::linux::run::state::Run;
use config::File;

/// The configuration folder of the image.
const FOLDER: &str = "/etc/nginx";

/// The file with the addresses of Services.
const HOSTS: &str = "/etc/hosts";

/// Folders that nginx may write to, mounted privately.
const OWN: [&str; 4] = ["/var/log", "/var/lib", "/var/cache", "/run"];

/// Folders that nginx expects and does not create.
const MADE: [&str; 3] = ["/var/log/nginx", "/var/lib/nginx", "/var/cache/nginx"];

/// The text in the log once nginx listens.
const LISTENS: &str = "getrlimit(RLIMIT_NOFILE)";

/// Directives that run nginx as a single process, so that no worker survives when it is killed.
const PROCESS: &str = "daemon off; master_process off; error_log stderr notice;";

/// Returns whether a pod runs nginx with a known configuration.
pub(crate) fn is_one(pod: &Pod) -> bool {
    let mut files = pod.spec.files.iter();
    files.any(|file| file.text.is_some() && is_config(&file.path) && file.path.ends_with(".conf"))
}

fn is_config(path: &str) -> bool {
    path.strip_prefix(FOLDER).is_some_and(|rest| rest.starts_with('/'))
}

/// Starts nginx in every pod that runs it.
pub(crate) fn start(
    run: &Run,
    cluster: &Cluster,
    lab_cluster: &LabCluster,
) -> Result<Vec<Program>, LabError> {
    let mut all = Vec::new();
    for pod in cluster.pods.values().filter(|pod| pod.is_alive() && is_one(pod)) {
        let Some(space) = lab_cluster.of_pod(pod) else { continue };
        let program = find("nginx").ok_or_else(|| {
            let name = &pod.name;
            LabError::Plan(format!("pod {name} is an nginx, and there is none in the search path"))
        })?;
        let during = format!("start nginx in pod {}", pod.name);
        let folder = run.file(&format!("nginx-{}", all.len()));
        let root = Root { folder: folder.clone() };
        root.fill(cluster, pod)?.during(&during)?;
        let mut command = Command::new(program);
        command.args(["-g", PROCESS, "-e", "stderr"]);
        let log = folder.join("log");
        let start = |command: &mut Command| {
            space.run_with_own_mounts(|| {
                root.mount()?;
                command.spawn()
            })
        };
        all.push(Program::start_by(run, start, command, &log, LISTENS, &during)?);
    }
    Ok(all)
}

/// The files that nginx sees in place of the host's.
struct Root {
    folder: PathBuf,
}

impl Root {
    /// Writes the files.
    fn fill(&self, cluster: &Cluster, pod: &Pod) -> Result<io::Result<()>, LabError> {
        let mut files = Vec::new();
        for file in pod.spec.files.iter().filter(|file| is_config(&file.path)) {
            let Some(text) = &file.text else {
                let key = file.key.as_deref().map(|key| format!(" {key:?} of")).unwrap_or_default();
                return Err(LabError::Plan(format!(
                    "pod {} is an nginx that mounts{key} ConfigMap {}/{} at {}, and its content is \
                     not given",
                    pod.name, pod.name.namespace, file.config_map, file.path
                )));
            };
            files.push(File { path: &file.path, text, alone: file.alone });
        }
        let write = || -> io::Result<()> {
            for own in OWN.iter().chain([&FOLDER]) {
                fs::create_dir_all(self.inside(own))?;
            }
            MADE.iter().try_for_each(|folder| fs::create_dir_all(self.inside(folder)))?;
            // The MIME types are those of the installed nginx.
            let kinds = fs::read_to_string(Path::new(FOLDER).join("mime.types"));
            let kinds = kinds.unwrap_or_else(|_| "types {}\n".into());
            self.write("/etc/nginx/mime.types", &kinds)?;
            for (path, text) in config::whole(&files) {
                self.write(&path, &text)?;
            }
            self.write(HOSTS, &config::hosts(cluster, pod))
        };
        Ok(write())
    }

    /// Mounts the files over the host's. Must be called in a private mount namespace.
    fn mount(&self) -> io::Result<()> {
        let put = |from: &Path, place: &str| {
            mount_bind(from, place).map_err(|why| {
                let why = io::Error::from(why);
                io::Error::new(why.kind(), format!("{}: at {place}: {why}", from.display()))
            })
        };
        // The files' folder may be below one of those that are covered.
        let own = Path::new("/mnt");
        put(&self.folder, "/mnt")?;
        let places = OWN.into_iter().chain([FOLDER, HOSTS]);
        let mut there = places.filter(|place| Path::new(place).exists());
        there.try_for_each(|place| put(&own.join(place.trim_start_matches('/')), place))
    }

    fn inside(&self, path: &str) -> PathBuf {
        self.folder.join(path.trim_start_matches('/'))
    }

    fn write(&self, path: &str, text: &str) -> io::Result<()> {
        let file = self.inside(path);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(file, text)
    }
}
