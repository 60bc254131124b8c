//! The record of a cluster in its run's folder, for `lab exec` and `lab down`.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::credentials;
use crate::linux::kernel::system::During;
use crate::linux::run::state::{Run, existing_folder, is_dead, start_time};
use crate::linux::sweep::sweep;
use crate::{LabError, StandingCluster};

/// The file that marks a run as a cluster.
const FILE: &str = "cluster.json";

/// The folder with a file for each pod and node that can be entered.
pub(super) const PLACES: &str = "places";

/// The kubeconfig of users, in the run's folder.
pub(super) const KUBECONFIG: &str = "kubeconfig";

/// The socket of the small machine that a cluster is in.
const MACHINE: &str = "machine.sock";

/// The key of the supervisor in the record, which clusters of earlier releases have too.
const SUPERVISOR: &str = "keeper";

/// The address of the cloud's API and its credentials, in the run's folder.
pub(super) const CLOUD: &str = "cloud.json";

/// The facts about the cluster that its objects do not state, in the run's folder.
pub(super) const FACTS: &str = "facts.json";

/// A copy of the facts that are in force.
pub(super) const FACTS_IN_FORCE: &str = "facts-in-force.json";

/// The errors in facts that are not in force.
pub(super) const FACTS_LOG: &str = "facts.log";

/// A namespace that can be entered, and the settings of its programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The name of the place: `pod/shop/web-0`, `node/n1`.
    pub(super) name: String,
    /// The network namespace.
    pub(super) namespace: String,
    /// The contents of `resolv.conf`.
    pub(super) resolv_conf: String,
}

/// A cluster on record.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    /// The run's folder.
    pub(super) folder: PathBuf,
    /// The process that keeps the cluster, and its start time.
    pub(super) supervisor: (u32, String),
    pub(super) is_alive: bool,
}

/// Records that this process keeps a cluster.
pub(super) fn write(folder: &Path, start_time: &str) -> io::Result<()> {
    fs::create_dir_all(folder.join(PLACES))?;
    let text = json!({SUPERVISOR: std::process::id(), "started": start_time}).to_string();
    fs::write(folder.join(FILE), text)
}

/// Returns the clusters of this machine.
pub(super) fn all() -> io::Result<Vec<Recorded>> {
    let Some(runs) = existing_folder()? else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for entry in fs::read_dir(runs)? {
        let folder = entry?.path();
        let Ok(text) = fs::read_to_string(folder.join(FILE)) else { continue };
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        let supervisor = value[SUPERVISOR].as_u64().and_then(|id| u32::try_from(id).ok());
        let started = value["started"].as_str().unwrap_or_default().to_owned();
        let is_alive = !is_dead(&folder)?;
        all.push(Recorded {
            folder,
            supervisor: (supervisor.unwrap_or_default(), started),
            is_alive,
        });
    }
    Ok(all)
}

/// Returns the cluster of this machine, if there is one. A live cluster comes first.
pub(crate) fn standing() -> Result<Option<StandingCluster>, LabError> {
    let mut all = all().during("look for a cluster")?;
    all.sort_by_key(|cluster| !cluster.is_alive);
    Ok(all.into_iter().next().map(|cluster| StandingCluster {
        kubeconfig: cluster.folder.join(KUBECONFIG),
        is_alive: cluster.is_alive,
        machine: Some(cluster.folder.join(MACHINE)).filter(|socket| socket.exists()),
    }))
}

/// Fails if this machine has a cluster.
pub(super) fn refuse_second() -> Result<(), LabError> {
    let why = "a cluster is up already: `uturn lab down` takes it down";
    match standing()? {
        Some(_) => Err(LabError::Cluster(why.into())),
        None => Ok(()),
    }
}

/// The record of a cluster that this process keeps in a small machine. Dropping it removes the
/// record; if the process is killed, `down` removes the record.
#[derive(Debug)]
pub struct ClusterRecord {
    run: Run,
    /// An inherited lock, which keeps the cluster alive until the machine has ended too.
    _inherited: OwnedFd,
}

impl ClusterRecord {
    /// Records a cluster.
    ///
    /// # Errors
    /// If there is a cluster already, or if the record cannot be written.
    pub fn create() -> Result<Self, LabError> {
        let during = "record the cluster";
        sweep()?;
        refuse_second()?;
        let run = Run::new()?;
        let started = start_time(std::process::id()).unwrap_or_default();
        write(run.folder(), &started).during(during)?;
        Ok(Self { _inherited: run.inherited_lock().during(during)?, run })
    }

    /// Returns the path for the machine's socket, through which others reach the cluster.
    pub fn machine(&self) -> PathBuf {
        self.run.file(MACHINE)
    }

    /// Writes a file of the cluster that only this user may read. Returns its path.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, LabError> {
        let file = self.run.file(name);
        credentials::write(&file, text).during(&format!("write {}", file.display()))?;
        Ok(file)
    }
}

impl Place {
    pub(super) fn write(&self, folder: &Path) -> io::Result<()> {
        let value = json!({
            "name": self.name, "namespace": self.namespace, "resolvConf": self.resolv_conf,
        });
        fs::write(self.file(folder), value.to_string())
    }

    pub(super) fn remove(&self, folder: &Path) {
        // A file that stays does no harm: entering the place then fails.
        let _ = fs::remove_file(self.file(folder));
    }

    fn file(&self, folder: &Path) -> PathBuf {
        folder.join(PLACES).join(self.name.replace('/', "+"))
    }
}

/// Returns the places of a cluster, sorted by name.
pub(super) fn places(folder: &Path) -> io::Result<Vec<Place>> {
    let mut places = Vec::new();
    for entry in fs::read_dir(folder.join(PLACES))? {
        // A pod may end meanwhile.
        let Ok(text) = fs::read_to_string(entry?.path()) else { continue };
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        let field = |key: &str| value[key].as_str().map(str::to_owned);
        if let (Some(name), Some(namespace), Some(resolv_conf)) =
            (field("name"), field("namespace"), field("resolvConf"))
        {
            places.push(Place { name, namespace, resolv_conf });
        }
    }
    places.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(places)
}
