//! The endpoints of a Service with their nodes, and what rules and load balancers see of each.

use std::net::IpAddr;
use std::rc::Rc;

use uturn_model::{EndpointPort, Family, Name, Pod, Port, Protocol, Service, Text};
use uturn_path::tls_of;

use crate::partition::target_classes::Classifier;

/// An endpoint and its node.
pub(crate) struct Located {
    pub(crate) ip: IpAddr,
    pub(crate) place: Option<u32>,
    pub(crate) client: Option<u32>,
    /// Everything that rules and load balancers see of the endpoint.
    pub(crate) look: [u64; 4],
    /// The nodes that differ from all others because of the endpoint.
    pub(crate) odd: Vec<u32>,
    pub(crate) has_zones: bool,
}

/// The part of an EndpointSlice that rules see.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct SliceKey<'a> {
    family: Family,
    ports: Vec<(Option<&'a Text>, Protocol, Port)>,
}

/// An endpoint without equals, because its object and its address disagree.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct UnlikeKey<'a> {
    ip: IpAddr,
    node: Option<&'a Name>,
    hints: &'a [Name],
}

impl<'a> Classifier<'a> {
    /// Returns the endpoints of a Service with their nodes.
    pub(crate) fn locate(&mut self, service: &'a Service) -> Rc<[Located]> {
        if let Some(known) = self.located.get(&service.name) {
            return Rc::clone(known);
        }
        let mut found = Vec::new();
        let mut slices: Vec<_> = self.inventory.cluster.slices(&service.name).iter().collect();
        slices.sort_by(|a, b| a.name.cmp(&b.name));
        for slice in slices {
            let ports = slice.ports.iter().map(|port| {
                let EndpointPort { name, protocol, port } = port;
                (name.as_ref(), *protocol, *port)
            });
            let key = SliceKey { family: slice.family, ports: ports.collect() };
            let slice_look = u64::from(self.slices.of(key));
            for endpoint in &slice.endpoints {
                let inventory = &self.inventory;
                let ip = endpoint.address;
                let owners = inventory.owners_of(ip);
                let (place, pod, client) = (owners.towards, owners.pod, owners.client);
                // The object mostly names the same node as the address.
                let is_there =
                    |place: &u32, name: &Name| inventory.nodes[*place as usize].node.name == *name;
                let written = endpoint.node.as_ref().map(|name| {
                    place.filter(|at| is_there(at, name)).or_else(|| inventory.place_of(name))
                });
                let names: Vec<u32> = endpoint
                    .node_hints
                    .iter()
                    .filter_map(|name| inventory.place_of(name))
                    .collect();
                let is_plain = (owners.is_plain || owners.is_node)
                    && written.is_none_or(|written| written == place)
                    && endpoint.node_hints.len() == names.len()
                    && names.iter().all(|hint| Some(*hint) == place)
                    && Family::of(ip) == slice.family;
                let mut odd = Vec::new();
                if !is_plain {
                    odd = inventory.related_nodes(ip);
                    odd.extend(written.flatten());
                    odd.extend(&names);
                }
                let alone = if is_plain {
                    0
                } else {
                    let key =
                        UnlikeKey { ip, node: endpoint.node.as_ref(), hints: &endpoint.node_hints };
                    1 + u64::from(self.unlike.of(key))
                };
                let flags =
                    [endpoint.ready, endpoint.serving, endpoint.terminating, written.is_some()]
                        .into_iter()
                        .chain([!names.is_empty(), owners.is_node])
                        .chain([inventory.is_of_missing_pod(ip)])
                        .fold(0, |flags, flag| flags << 1 | u64::from(flag));
                let mark = u64::from(self.discriminators.of(ip));
                let zones = if endpoint.zone_hints.is_empty() {
                    0
                } else {
                    1 + u64::from(self.zones.of(&endpoint.zone_hints))
                };
                let marks =
                    endpoint.pod.as_ref().map_or_else(Vec::new, |name| self.pod_marks.of(name));
                let profile = match pod {
                    None if marks.is_empty() => 0,
                    _ => {
                        let mut seen = pod.map(profile).unwrap_or_default();
                        // As a client, the pod may call from another of its addresses.
                        let all = pod.into_iter().flat_map(|pod| &pod.ips);
                        let others = all.filter(|other| **other != ip);
                        seen.extend(others.map(|other| u64::from(self.discriminators.of(*other))));
                        seen.extend(marks);
                        1 + u64::from(self.profiles.of(seen))
                    }
                };
                found.push(Located {
                    ip,
                    place,
                    client,
                    look: [slice_look << 8 | flags, mark << 32 | zones, profile, alone],
                    odd,
                    has_zones: !endpoint.zone_hints.is_empty(),
                });
            }
        }
        let found: Rc<[Located]> = found.into();
        self.located.insert(&service.name, Rc::clone(&found));
        found
    }
}

/// Returns the ports on which a pod listens, with whether they speak TLS.
pub(crate) fn profile(pod: &Pod) -> Vec<u64> {
    let mut ports: Vec<u64> = pod
        .spec
        .ports()
        .map(|port| {
            let tls = tls_of(port.name.as_deref(), port.port.number());
            u64::from(port.port.number()) << 8 | (port.protocol as u64) << 2 | tls as u64
        })
        .collect();
    let families = pod.ips.iter().fold(1, |all, ip| all << 1 | u64::from(ip.is_ipv6()));
    ports.push(families << 32 | u64::from(pod.spec.host_network));
    ports
}
