//! Finds who calls a node port on loopback: container runtimes that pull an image from
//! `localhost:PORT`, and pods in their node's network whose command line names it.

use uturn_model::pod::PodSpec;
use uturn_model::{Cluster, Evidence, ObjectRef, Origin};

use crate::Observation;

/// The hosts by which programs of a node call it on loopback.
const HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Returns the first object that calls this port of its node on loopback, as evidence.
pub(super) fn caller(cluster: &Cluster, port: u16) -> Option<Observation> {
    let pods = cluster.pods.values().filter(|pod| pod.is_alive());
    let workloads = cluster.workloads.values();
    let of_workloads =
        workloads.map(|workload| (&*workload.template, workload.object(), &workload.origin));
    let of_pods = pods.map(|pod| {
        let object = pod.owner.clone();
        (&*pod.spec, object.unwrap_or_else(|| pod.object()), &pod.origin)
    });
    of_workloads
        .chain(of_pods)
        .find_map(|(spec, object, origin)| of_spec(spec, &object, origin, port))
}

fn of_spec(spec: &PodSpec, object: &ObjectRef, origin: &Origin, port: u16) -> Option<Observation> {
    let addresses = HOSTS.map(|host| format!("{host}:{port}"));
    let names = |text: &str| addresses.iter().find(|address| contains(text, address)).cloned();
    spec.containers.iter().find_map(|container| {
        let pulled = addresses.iter().find(|address| {
            container.image.strip_prefix(&***address).is_some_and(|rest| rest.starts_with('/'))
        });
        let what = match pulled {
            Some(address) => {
                format!("the image of container {} is pulled from {address}", container.name)
            }
            None if spec.host_network => {
                let address = container.arguments.iter().find_map(|word| names(word))?;
                format!("the command line of container {} names {address}", container.name)
            }
            None => return None,
        };
        Some(Observation {
            place: None,
            what: format!("{object}: {what}").into(),
            by: Evidence::object(object.clone(), origin.clone()),
        })
    })
}

/// Returns whether a text contains an address that does not go on with a digit.
fn contains(text: &str, address: &str) -> bool {
    text.match_indices(address).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + address.len()..].chars().next();
        !after.is_some_and(|next| next.is_ascii_digit())
            && !before
                .is_some_and(|last| last.is_ascii_alphanumeric() || last == '.' || last == '-')
    })
}
