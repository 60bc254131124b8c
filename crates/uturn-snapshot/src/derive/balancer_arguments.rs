//! The arguments of programs that make load balancers, where they decide what those do.

use uturn_lb::cloud;
use uturn_model::Labels;
use uturn_model::pod::Container;

use super::controllers::argument_value;
use crate::decode::objects::Objects;

/// What the programs of clouds are told: by their workloads, else by their pods.
pub(super) fn derive(objects: &Objects) -> Labels {
    let workloads = objects.workloads.0.values().map(|workload| &workload.template);
    let pods = objects.pods.0.values().map(|pod| &pod.spec);
    let containers: Vec<&Container> =
        workloads.chain(pods).flat_map(|spec| &spec.containers).collect();
    let mut found = Vec::new();
    for entry in cloud::ALL {
        for argument in entry.arguments {
            let is_it = |container: &&&Container| argument.images.contains(&container.program());
            let value = containers
                .iter()
                .filter(is_it)
                .find_map(|container| argument_value(&container.arguments, argument.name));
            if let Some(value) = value {
                found.push((cloud::argument_key(entry.cloud, argument.name), value));
            }
        }
    }
    found.into_iter().collect()
}
