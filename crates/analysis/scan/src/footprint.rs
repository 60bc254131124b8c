//! The objects that calls of a target can meet, by which two states of a cluster are compared: a
//! target that meets the same objects in both, none of them changed, has the same verdicts in both.

use std::collections::{BTreeMap, BTreeSet};

use uturn_model::{Cluster, NamespacedName};
use uturn_path::WalkError;

use crate::scan::Scanner;
use crate::targets::ScanTarget;

/// The objects that calls of a target can meet, besides nodes and pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footprint {
    services: Vec<NamespacedName>,
    ingresses: Vec<NamespacedName>,
}

/// The objects that differ between two states of a cluster. All else is the same in both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Services that differ, or whose endpoints do.
    services: BTreeSet<NamespacedName>,
    ingresses: BTreeSet<NamespacedName>,
}

impl Changes {
    /// Compares two states of a cluster. Returns `None` if something differs that any call may
    /// meet: a node, a pod, a setting.
    pub fn between(before: &Cluster, after: &Cluster) -> Option<Self> {
        let Cluster {
            provider,
            nodes,
            pods,
            workloads,
            services,
            endpoints,
            ingresses,
            ingress_classes,
            controllers,
            listener_overrides,
            load_balancers,
            network,
            security_groups,
            dns,
            proxy,
            controller_switches,
            balancer_arguments,
            announcements,
            mesh_gateways,
            mesh_routes,
            network_policies,
            captures,
            extent,
            awaited,
            // No walk depends on these.
            api_server_calls: _,
            volume_servers: _,
            unjudged: _,
            supposed: _,
            skipped: _,
            unread: _,
            read_at: _,
        } = before;
        let are_same = (provider, ingress_classes, controllers)
            == (&after.provider, &after.ingress_classes, &after.controllers)
            && (network, security_groups, dns, proxy)
                == (&after.network, &after.security_groups, &after.dns, &after.proxy)
            && (load_balancers, controller_switches, balancer_arguments)
                == (&after.load_balancers, &after.controller_switches, &after.balancer_arguments)
            && (announcements, mesh_gateways, mesh_routes)
                == (&after.announcements, &after.mesh_gateways, &after.mesh_routes)
            && (network_policies, extent, awaited)
                == (&after.network_policies, &after.extent, &after.awaited)
            && (captures, workloads) == (&after.captures, &after.workloads)
            && (nodes, pods) == (&after.nodes, &after.pods);
        if !are_same {
            return None;
        }
        let mut changes = Self {
            services: differing(services, &after.services).collect(),
            ingresses: differing(ingresses, &after.ingresses).collect(),
        };
        changes.services.extend(differing(endpoints, &after.endpoints));
        // Settings of listeners are meant for objects of their namespace.
        for settings in differing(listener_overrides, &after.listener_overrides) {
            let is_near = |name: &&NamespacedName| name.namespace == settings.namespace;
            changes.services.extend(after.services.keys().filter(is_near).cloned());
            changes.ingresses.extend(after.ingresses.keys().filter(is_near).cloned());
        }
        Some(changes)
    }
}

/// Returns the keys whose values differ, or that only one of two maps has.
fn differing<'m, K: Ord + Clone, V: PartialEq>(
    before: &'m BTreeMap<K, V>,
    after: &'m BTreeMap<K, V>,
) -> impl Iterator<Item = K> + 'm {
    let of_before = before.iter().filter(|(key, value)| after.get(*key) != Some(*value));
    let new = after.keys().filter(|key| !before.contains_key(*key));
    of_before.map(|(key, _)| key).chain(new).cloned()
}

impl Footprint {
    /// Returns whether calls can meet something that changed.
    pub fn meets(&self, changes: &Changes) -> bool {
        self.services.iter().any(|name| changes.services.contains(name))
            || self.ingresses.iter().any(|name| changes.ingresses.contains(name))
    }
}

impl Scanner<'_, '_> {
    /// Returns the objects that calls of a target can meet.
    ///
    /// # Errors
    /// Returns an error if the target does not exist or has no address.
    pub fn footprint(&self, target: &ScanTarget) -> Result<Footprint, WalkError> {
        let prepared = self.prepared()?.borrow();
        let scope = prepared.scope(self.engine(), target.called())?;
        Ok(Footprint {
            services: scope.services.iter().map(|service| service.name.clone()).collect(),
            ingresses: scope.ingresses.iter().map(|ingress| ingress.name.clone()).collect(),
        })
    }
}
