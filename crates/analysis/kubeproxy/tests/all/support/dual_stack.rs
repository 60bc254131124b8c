//! A cluster's IPv4 side once more in IPv6: every address gets `fd00::` before it.

use std::net::{IpAddr, Ipv6Addr};

use uturn_model::proxy::{LocalDetector, NodePortAddresses};
use uturn_model::*;

pub(crate) fn dual_stack(mut cluster: Cluster) -> Cluster {
    for node in cluster.nodes.values_mut() {
        twice(&mut node.internal_ips, address);
        twice(&mut node.pod_cidrs, range);
    }
    for service in cluster.services.values_mut() {
        twice(&mut service.cluster_ips, address);
        twice(&mut service.external_ips, address);
        twice(&mut service.source_ranges, range);
        twice(&mut service.load_balancer, |mut ingress| {
            ingress.ip = ingress.ip.map(address);
            ingress
        });
    }
    for slices in cluster.endpoints.values_mut() {
        twice(slices, |mut slice| {
            slice.family = Family::V6;
            slice
                .endpoints
                .iter_mut()
                .for_each(|endpoint| endpoint.address = address(endpoint.address));
            slice
        });
    }
    if let LocalDetector::ClusterCidr(nets) = &mut cluster.proxy.detector.value {
        twice(nets, range);
    }
    if let NodePortAddresses::Ranges(nets) = &mut cluster.proxy.node_port_addresses {
        twice(nets, range);
    }
    cluster
}

fn twice<T: Clone>(list: &mut Vec<T>, in_v6: impl Fn(T) -> T) {
    let more: Vec<T> = list.iter().cloned().map(in_v6).collect();
    list.extend(more);
}

fn address(address: IpAddr) -> IpAddr {
    let IpAddr::V4(v4) = address else { return address };
    let v6 = u128::from(v4.to_bits()) | 0xfd00 << 112;
    IpAddr::V6(Ipv6Addr::from_bits(v6))
}

fn range(net: IpNet) -> IpNet {
    IpNet::new(address(net.addr()), net.prefix_len() + 96).unwrap()
}
