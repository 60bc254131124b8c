//! Runs a program in a pod or on a node of a cluster that is up.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use rustix::mount::mount_bind;

use super::record::{self, Place, Recorded};
use crate::LabError;
use crate::linux::kernel::namespace::Handle;
use crate::linux::kernel::system::During;
use crate::linux::run::state::record_process;

/// The file that the C library reads.
const RESOLV_CONF: &str = "/etc/resolv.conf";

/// Replaces this process by a program that runs in a pod or on a node. Returns only if that fails.
pub(crate) fn enter(wanted: &str, program: &str, arguments: &[String]) -> LabError {
    match prepare(wanted, program, arguments) {
        Ok(mut command) => {
            let source = command.exec();
            LabError::System { doing: format!("run {program}"), source }
        }
        Err(error) => error,
    }
}

fn prepare(wanted: &str, program: &str, arguments: &[String]) -> Result<Command, LabError> {
    let all = record::all().during("look for a cluster")?;
    let Some(Recorded { folder, .. }) = all.into_iter().find(|cluster| cluster.is_alive) else {
        return Err(LabError::Cluster("no cluster is up: `uturn lab up` builds one".into()));
    };
    let places = record::places(&folder).during("read the cluster's record")?;
    let place = find(&places, wanted).ok_or_else(|| unknown(&places, wanted))?;
    let during = format!("enter {}", place.name);
    // `lab down` ends the processes that still run in a pod.
    record_process(&folder, std::process::id()).during(&during)?;
    Handle::open(&place.namespace).and_then(|space| space.enter()).during(&during)?;
    show_resolv_conf(&folder, place).during(&during)?;
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

/// Mounts the pod's `resolv.conf` over the machine's, for this process only.
fn show_resolv_conf(folder: &Path, place: &Place) -> io::Result<()> {
    let own = folder.join(format!("resolv-{}.conf", std::process::id()));
    fs::write(&own, &place.resolv_conf)?;
    // The path may be a link to a file that a program of the machine writes.
    let mounted = fs::canonicalize(RESOLV_CONF).and_then(|there| Ok(mount_bind(&own, there)?));
    // The mount keeps the file's contents.
    let removed = fs::remove_file(&own);
    mounted.and(removed)
}

/// Finds a place: `pod/NS/NAME`, `NS/NAME`, `NAME` (in `default`), `node/NAME` or `cloud`. The name
/// of a workload stands for the first of its pods.
fn find<'a>(places: &'a [Place], wanted: &str) -> Option<&'a Place> {
    let words: Vec<&str> = wanted.split('/').collect();
    let name = match words[..] {
        ["cloud"] => "cloud".to_owned(),
        ["node" | "nodes", name] => format!("node/{name}"),
        [name] => format!("pod/default/{name}"),
        [namespace, name] | [_, namespace, name] => format!("pod/{namespace}/{name}"),
        _ => return None,
    };
    let exact = places.iter().find(|place| place.name == name);
    let of_workload = || {
        let own = format!("{name}-");
        places.iter().find(|place| place.name.starts_with(&own))
    };
    exact.or_else(of_workload)
}

fn unknown(places: &[Place], wanted: &str) -> LabError {
    let names: Vec<&str> = places.iter().map(|place| place.name.as_str()).collect();
    LabError::Cluster(format!(
        "there is no pod and no node {wanted}; there are {}",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_and_nodes_are_found_by_their_names() {
        let names = ["node/n1", "pod/default/a", "pod/shop/web-5d8-x2", "pod/shop/web-5d8-z9"];
        let places = names.map(|name| Place {
            name: name.into(),
            namespace: String::new(),
            resolv_conf: String::new(),
        });
        let found = |wanted| find(&places, wanted).map(|place| place.name.as_str());
        assert_eq!(found("node/n1"), Some("node/n1"));
        assert_eq!(found("a"), Some("pod/default/a"));
        assert_eq!(found("shop/web-5d8-z9"), Some("pod/shop/web-5d8-z9"));
        assert_eq!(found("pod/shop/web-5d8-z9"), Some("pod/shop/web-5d8-z9"));
        assert_eq!(found("deploy/shop/web"), Some("pod/shop/web-5d8-x2"));
        assert_eq!(found("shop/we"), None);
        assert_eq!(found("n1"), None);
    }
}
