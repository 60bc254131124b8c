//! Collects the arguments of programs that make load balancers, if they affect the load balancers.

use uturn_clouds::cloud;
use uturn_model::pod::Container;
use uturn_model::{Labels, Text};

use super::controllers::argument_value;
use crate::decode::objects::Objects;
use crate::derive::ground::kube_proxy;

/// Returns the arguments and versions of clouds' programs: from their workloads, or else from their
/// pods.
pub(super) fn derive(objects: &Objects) -> Labels {
    let workloads = objects.workloads.0.values().map(|workload| &workload.template);
    let pods = objects.pods.0.values().map(|pod| &pod.spec);
    let containers: Vec<&Container> =
        workloads.chain(pods).flat_map(|spec| &spec.containers).collect();
    let mut found: Vec<(String, Text)> = Vec::new();
    for entry in cloud::ALL {
        let is_it = |container: &&&Container| entry.versions_of.contains(&container.program());
        let mut own = containers.iter().filter(is_it);
        if let Some(version) = own.find_map(|container| kube_proxy::tag(&container.image)) {
            found.push((
                cloud::argument_key(entry.cloud, cloud::VERSION),
                version.to_string().into(),
            ));
        }
        for argument in entry.arguments {
            let is_it = |container: &&&Container| argument.images.contains(&container.program());
            let value = containers.iter().filter(is_it).find_map(|container| {
                let stated = argument_value(&container.arguments, argument.name);
                let variable = || container.environment.get(argument.name).map(str::to_owned);
                stated.map(|value| value.to_string()).or_else(variable)
            });
            if let Some(value) = value {
                found.push((cloud::argument_key(entry.cloud, argument.name), value.into()));
            }
        }
    }
    found.into_iter().collect()
}
