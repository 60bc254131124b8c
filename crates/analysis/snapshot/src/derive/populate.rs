//! Completes nodes and pods: those that others name or that workloads will create are added, and
//! all get places, addresses and ranges.

mod announcers;
mod called_names;
pub(super) mod corefile;
mod endpoint_pods;
mod families;
mod files;
mod labels;
mod links;
mod nodes;
pub(super) mod owners;
mod pod_ranges;
pub(super) mod pods;
mod proxy_names;
pub(super) mod ranges;

use std::collections::BTreeMap;
use std::ops::Deref;

use uturn_document::Fault;
use uturn_model::{EndpointSlice, Ingress, Name, NamespacedName, Node, Service};

use super::Assumptions;
use super::ground::Ground;
use super::ground::plugin::Transports;
use crate::decode::facts::Facts;
use crate::decode::objects::{Objects, OldEndpoints};
use ranges::Ranges;

/// The objects with all nodes and pods, which do not change any more. Only [`Self::serving`] gives
/// access to what may still change.
pub(super) struct Population {
    objects: Objects,
    pub(super) transports: Transports,
}

/// What serves calls, to be completed, beside the nodes.
pub(super) struct Serving<'p> {
    pub(super) services: &'p mut BTreeMap<NamespacedName, Service>,
    pub(super) ingresses: &'p mut BTreeMap<NamespacedName, Ingress>,
    pub(super) slices: &'p mut BTreeMap<NamespacedName, EndpointSlice>,
    pub(super) endpoints: &'p mut BTreeMap<NamespacedName, OldEndpoints>,
    pub(super) facts: &'p mut Facts,
    pub(super) leases: &'p BTreeMap<NamespacedName, Name>,
    pub(super) nodes: &'p BTreeMap<Name, Node>,
}

impl Population {
    /// Returns what serves calls.
    pub(super) fn serving(&mut self) -> Serving<'_> {
        Serving {
            services: &mut self.objects.services.0,
            ingresses: &mut self.objects.ingresses.0,
            slices: &mut self.objects.slices.0,
            endpoints: &mut self.objects.endpoints.0,
            facts: &mut self.objects.facts,
            leases: &self.objects.leases,
            nodes: &self.objects.nodes.0,
        }
    }

    /// Returns the objects, when everything is derived from them.
    pub(super) fn into_objects(self) -> Objects {
        self.objects
    }
}

impl Deref for Population {
    type Target = Objects;

    fn deref(&self) -> &Objects {
        &self.objects
    }
}

/// Completes the nodes and the pods, and returns the addresses that are still free.
///
/// # Errors
/// Returns a fault if more pods than the limit would have to be made up.
pub(super) fn complete(
    mut objects: Objects,
    ground: &Ground,
    assumptions: &mut Assumptions,
) -> Result<(Population, Ranges), Fault> {
    let (plugin, mode) = (&ground.plugin, ground.mode.value);
    owners::settle(&mut objects);
    let mut ranges = Ranges::new(&objects);
    nodes::complete(&mut objects, mode, &mut ranges, assumptions);
    proxy_names::complete(&mut objects, ground.proxy.version.value);
    links::add_hairpin(&mut objects, plugin.value, mode);
    endpoint_pods::add(&mut objects, ground.extent, assumptions);
    pods::complete(&mut objects, mode, &mut ranges, assumptions)?;
    families::complete(&mut objects, mode, &mut ranges, assumptions);
    files::complete(&mut objects);
    called_names::complete(&mut objects);
    corefile::complete(&mut objects);
    let transports = Transports::of(&objects, plugin);
    links::add_tunnel_ends(&mut objects, plugin.value, &transports);
    announcers::note_nodes_without(&mut objects, ground.provider.value.cloud(), ground.extent);
    Ok((Population { objects, transports }, ranges))
}
