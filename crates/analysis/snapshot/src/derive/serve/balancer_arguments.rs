//! Collects the arguments of programs that make load balancers, if they affect the load balancers.

use std::collections::HashSet;

use uturn_clouds::cloud::{self, CloudEntry, cilium};
use uturn_model::pod::Container;
use uturn_model::{Extent, Labels, Text};

use super::controllers::argument_value;
use crate::decode::objects::Objects;
use crate::derive::ground::kube_proxy;

/// Returns the arguments and versions of clouds' programs: from their workloads, or else from their
/// pods.
pub(super) fn derive(objects: &Objects, extent: Extent) -> Labels {
    let workloads = objects.workloads.0.values().map(|workload| &workload.template);
    let pods = objects.pods.0.values().map(|pod| &pod.spec);
    let programs: HashSet<&str> = cloud::ALL.into_iter().flat_map(programs_of).copied().collect();
    // A large cluster has few containers of these programs among very many.
    let containers = workloads.chain(pods).flat_map(|spec| &spec.containers);
    let containers: Vec<(&str, &Container)> = containers
        .map(|container| (container.program(), container))
        .filter(|(program, _)| programs.contains(program))
        .collect();
    let of = |programs: &'static [&'static str]| {
        let own = containers.iter().filter(move |(program, _)| programs.contains(program));
        own.map(|(_, container)| *container)
    };
    let mut found: Vec<(String, Text)> = Vec::new();
    for entry in cloud::ALL {
        let mut own = of(entry.versions_of);
        if let Some(version) = own.find_map(|container| kube_proxy::tag(&container.image)) {
            found.push((
                cloud::argument_key(entry.cloud, cloud::VERSION),
                version.to_string().into(),
            ));
        }
        for argument in entry.arguments {
            let value = of(argument.images).find_map(|container| {
                let stated = argument_value(&container.arguments, argument.name);
                let variable = || container.environment.get(argument.name).map(str::to_owned);
                stated.map(|value| value.to_string()).or_else(variable)
            });
            if let Some(value) = value {
                found.push((cloud::argument_key(entry.cloud, argument.name), value.into()));
            }
        }
    }
    // A ConfigMap that was written for a part of a cluster need not have every switch.
    let is_whole = extent.pods && extent.services;
    if let Some((config, _)) = objects.cilium_config.as_ref().filter(|_| is_whole) {
        let of_config = cilium::SWITCHES.iter().map(|key| {
            let value = config.get(key).unwrap_or("false");
            (cloud::argument_key(cilium::ENTRY.cloud, key), value.into())
        });
        found.extend(of_config);
    }
    found.into_iter().collect()
}

/// Iterates over the names of the programs of a cloud that affect its load balancers.
fn programs_of(entry: &CloudEntry) -> impl Iterator<Item = &'static &'static str> {
    let of_arguments = entry.arguments.iter().flat_map(|argument| argument.images);
    entry.versions_of.iter().chain(of_arguments)
}
