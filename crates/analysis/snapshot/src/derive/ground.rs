//! The ground of a cluster: what the given objects tell of it as a whole, before anything is made
//! up. Reads the objects and changes none.

pub(super) mod clouds;
pub(super) mod extent;
pub(super) mod kube_proxy;
pub(super) mod plugin;
pub(super) mod policies;
mod provider;
pub(super) mod proxy;
pub(super) mod seen_addresses;
pub(super) mod service_proxy;

use std::collections::BTreeSet;

use uturn_model::cluster::Provider;
use uturn_model::network::{NetworkMode, Plugin};
use uturn_model::pod::PodSpec;
use uturn_model::{Extent, Known, NamespacedName, ObjectRef, ProxySettings, WorkloadKind};

use super::Assumptions;
use crate::decode::objects::Objects;
use extent::Coming;

/// What the given objects tell of the cluster as a whole.
pub(super) struct Ground {
    /// The kinds of which all objects are given.
    pub(super) extent: Extent,
    /// What is still to be applied to a cluster that was listed.
    pub(super) coming: Coming,
    /// The Services that no cluster has given an address.
    pub(super) unapplied: BTreeSet<NamespacedName>,
    pub(super) provider: Known<Provider>,
    /// The Service proxy, as far as its settings do not depend on addresses.
    pub(super) proxy: ProxySettings,
    /// Whether the configuration of kube-proxy has nodes answer ARP requests for the addresses
    /// that IPVS binds.
    pub(super) answers_arp: bool,
    pub(super) plugin: Known<Plugin>,
    pub(super) mode: Known<NetworkMode>,
}

/// Recognises the cloud, the Service proxy and the pod network.
pub(super) fn derive(objects: &Objects, assumptions: &mut Assumptions) -> Ground {
    let provider = provider::derive(objects);
    let proxy = proxy::derive(objects, &provider, assumptions);
    let plugin = plugin::derive(objects, assumptions);
    Ground {
        extent: extent::of(objects),
        coming: extent::coming(objects),
        unapplied: extent::unapplied(objects),
        answers_arp: proxy::answers_arp(objects, &proxy),
        mode: plugin::mode(objects, &plugin),
        provider,
        proxy,
        plugin,
    }
}

/// Iterates over the given DaemonSets, and those that own given pods, each with the spec of a pod.
fn daemon_sets(objects: &Objects) -> impl Iterator<Item = (ObjectRef, &PodSpec)> {
    let given = objects.workloads.0.values().filter(|set| set.kind == WorkloadKind::DaemonSet);
    let given = given.map(|set| (set.object(), &*set.template));
    let owned = objects.pods.0.values().filter_map(|pod| {
        let owner =
            pod.owner.as_ref().filter(|owner| owner.kind == WorkloadKind::DaemonSet.into())?;
        Some((owner.clone(), &*pod.spec))
    });
    given.chain(owned)
}
