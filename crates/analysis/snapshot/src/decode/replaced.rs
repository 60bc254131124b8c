//! Replaces what single documents contributed to the objects, so that an edit of a few documents
//! decodes no others.

use std::collections::{BTreeMap, BTreeSet};

use super::objects::{Objects, Table};

impl Objects {
    /// Replaces what documents contributed by what they contribute after an edit; `old` and `new`
    /// are decoded from these documents alone. Returns `None` if other documents may have
    /// contributed to the same, so that all have to be read.
    pub(crate) fn replaced(mut self, old: Self, new: Self) -> Option<Self> {
        // A new field belongs to one of the groups below.
        let Self {
            nodes: _,
            pods: _,
            specs: _,
            written_pods: _,
            host_addresses: _,
            workloads: _,
            unscaled: _,
            autoscaled: _,
            indexed: _,
            first_numbers: _,
            references: _,
            services: _,
            written_services: _,
            awaited: _,
            slices: _,
            endpoints: _,
            ingresses: _,
            ingress_classes: _,
            class_parameters: _,
            leases: _,
            pools: _,
            announcements: _,
            gateway_classes: _,
            gateways: _,
            routes: _,
            reference_grants: _,
            client_traffic_policies: _,
            nginx_proxies: _,
            listener_overrides: _,
            network_policies: _,
            namespaces: _,
            api_server_calls: _,
            volume_servers: _,
            config_maps: _,
            configurations: _,
            controller_settings: _,
            other_config_maps: _,
            called_in_maps: _,
            corefiles: _,
            corefile: _,
            mounted_corefile: _,
            corefile_custom: _,
            node_local: _,
            kubelet_dns: _,
            proxy_config: _,
            bridges: _,
            flannel_backend: _,
            cilium_config: _,
            calico_ebpf: _,
            mesh_gateways: _,
            mesh_routes: _,
            proxy_filters: _,
            gateways_expect_header: _,
            non_masquerade: _,
            controller_switches: _,
            policy_switch: _,
            facts: _,
            notes: _,
            complete: _,
            listing: _,
            skipped: _,
            left_out: _,
            seen: _,
        } = &old;
        macro_rules! each {
            ($how:ident: $($field:ident),* $(,)?) => {
                $($how(&mut self.$field, old.$field, new.$field)?;)*
            };
        }
        if [&old.seen, &new.seen].iter().any(|seen| seen.contains_key("Facts")) {
            return None;
        }
        each!(table:
            nodes, pods, workloads, services, slices, endpoints, ingresses, ingress_classes, pools,
            announcements, gateway_classes, gateways, routes, reference_grants,
            client_traffic_policies, nginx_proxies, listener_overrides, network_policies,
            namespaces, api_server_calls, volume_servers, config_maps, mesh_gateways, mesh_routes,
        );
        each!(map:
            autoscaled, first_numbers, class_parameters, leases, configurations,
            controller_settings, called_in_maps, corefiles, kubelet_dns,
        );
        each!(set: unscaled, indexed, written_services, other_config_maps);
        each!(count: seen, skipped);
        each!(last: corefile, mounted_corefile, node_local, proxy_config, cilium_config);
        macro_rules! are_unchanged {
            ($($field:ident),* $(,)?) => {
                $(old.$field == new.$field)&&*
            };
        }
        let are_unchanged = are_unchanged!(
            written_pods,
            host_addresses,
            references,
            awaited,
            corefile_custom,
            bridges,
            calico_ebpf,
            proxy_filters,
            gateways_expect_header,
            non_masquerade,
            controller_switches,
            left_out,
            flannel_backend,
            policy_switch,
        );
        // Others are of all documents together (`facts`, `notes`, `complete`, `listing`) or are
        // used while these are read (`specs`).
        are_unchanged.then_some(self)
    }
}

/// Replaces objects of one kind. Each has a document of its own.
fn table<K: Ord + Clone, V: PartialEq>(
    all: &mut Table<K, V>,
    old: Table<K, V>,
    new: Table<K, V>,
) -> Option<()> {
    let is_repeated = |key: &K| all.1.contains(key);
    let are_repeated = old.0.keys().chain(new.0.keys()).any(is_repeated);
    (!are_repeated && new.1.is_empty()).then_some(())?;
    map(&mut all.0, old.0, new.0)
}

fn map<K: Ord, V: PartialEq>(
    all: &mut BTreeMap<K, V>,
    old: BTreeMap<K, V>,
    new: BTreeMap<K, V>,
) -> Option<()> {
    for (key, value) in old {
        (all.remove(&key)? == value).then_some(())?;
    }
    for (key, value) in new {
        all.insert(key, value).is_none().then_some(())?;
    }
    Some(())
}

fn set<K: Ord>(all: &mut BTreeSet<K>, old: BTreeSet<K>, new: BTreeSet<K>) -> Option<()> {
    for key in old {
        all.remove(&key).then_some(())?;
    }
    for key in new {
        all.insert(key).then_some(())?;
    }
    Some(())
}

fn count<K: Ord>(
    all: &mut BTreeMap<K, usize>,
    old: BTreeMap<K, usize>,
    new: BTreeMap<K, usize>,
) -> Option<()> {
    for (key, count) in new {
        *all.entry(key).or_default() += count;
    }
    for (key, count) in old {
        let left = all.get_mut(&key)?;
        *left = left.checked_sub(count)?;
        if *left == 0 {
            all.remove(&key);
        }
    }
    Some(())
}

/// Replaces what the last document with it decides. What an edit removes, an earlier document may
/// have.
fn last<V: PartialEq>(all: &mut Option<V>, old: Option<V>, new: Option<V>) -> Option<()> {
    match (old, new) {
        (None, None) => {}
        (Some(_), None) => return None,
        (old, new) => {
            (*all == old).then_some(())?;
            *all = new;
        }
    }
    Some(())
}
