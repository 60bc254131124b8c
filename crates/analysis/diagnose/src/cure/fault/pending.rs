//! Cures of Services whose load balancer has no address: to do without one, or what makes the
//! program give one.

use std::net::{IpAddr, SocketAddr};

use uturn_clouds::cloud::{self, Maker};
use uturn_clouds::targets;
use uturn_document::edit::{Change, Tree};
use uturn_model::service::Policy;
use uturn_model::shell::Advice;
use uturn_model::{Client, Cluster, Destination, Flow, Node, Port, Service};

use super::super::{Case, Proposal, way};
use super::{MAX_ADDRESSES, is_of_service, service_of};
use crate::Finding;

pub(super) fn propose(case: &Case<'_>, fault: &Finding) -> Vec<Proposal> {
    let Some(service) = service_of(case, fault) else { return Vec::new() };
    let mut all = Vec::new();
    all.extend(call_node(case, service));
    all.extend(policy(case, service));
    all.extend(other_ports(case, service));
    all.extend(any_address(case, service));
    all.extend(node_port(case, service));
    all
}

/// Proposes to call the Service's port of a node.
fn call_node(case: &Case<'_>, service: &Service) -> Option<Proposal> {
    // A number that is not written is a stand-in.
    let mut ports = service.ports.iter().enumerate();
    let (_, port) = ports.find(|(at, _)| is_written(case, service, *at))?;
    let number = port.node_port?;
    let leads = |node: &&Node| {
        service.external_policy == Policy::Cluster
            || targets::has_ready_pod(case.cluster(), service, &node.name)
    };
    let mut nodes = case.cluster().nodes.values().filter(|node| node.ready && !node.supposed);
    let node = nodes.find(leads)?;
    let ip = *node.external_ips.first().or(node.internal_ips.first())?;
    let to = Destination::Address(SocketAddr::new(ip, number.number()));
    let which = match service.external_policy {
        Policy::Cluster => "any node",
        Policy::Local => "a node with an endpoint",
    };
    let title = format!("call node port {number} of {which}, as {to}, for port {}", port.port);
    let mut made = Proposal::new("call-node", 10, title)
        .types(Advice::sentence(&format!("in the caller's configuration: {to}")))
        .costs("only this caller changes; each other one has to change too");
    made.then = Some(Flow { from: Client::Outside(None), to, protocol: port.protocol });
    Some(made)
}

/// Returns whether the manifests state the node port of a port.
fn is_written(case: &Case<'_>, service: &Service, at: usize) -> bool {
    let path = way!["spec", "ports", at, "nodePort"];
    case.manifests.text_at(&service.object(), &path).is_some()
}

/// Proposes a Service of node ports only.
fn node_port(case: &Case<'_>, service: &Service) -> Option<Proposal> {
    if service.ports.iter().all(|port| port.node_port.is_none()) {
        return None;
    }
    let ports = service.ports.iter().enumerate();
    let written = ports.filter(|(at, _)| is_written(case, service, *at));
    let written: Vec<String> =
        written.filter_map(|(_, port)| Some(port.node_port?.to_string())).collect();
    let which = match written.as_slice() {
        [] => "at the ports that it has on every node".to_owned(),
        some => format!("at {}", some.join(", ")),
    };
    let object = service.object();
    let title = format!("type NodePort for svc/{}", service.name);
    let mut made = Proposal::new("node-port", 30, title)
        .edit(object.clone(), way!["spec", "type"], Change::Set(Tree::text("NodePort")))
        .costs(format!("nothing gives it an address any more: clients call nodes {which}"));
    // The API server takes these fields for Services of the other type only.
    for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
        let path = way!["spec", field];
        if case.manifests.text_at(&object, &path).is_some() {
            made = made.edit(object.clone(), path, Change::Remove);
        }
    }
    Some(made)
}

/// Proposes that endpoints of other nodes serve too, where only their nodes may have the address.
fn policy(case: &Case<'_>, service: &Service) -> Option<Proposal> {
    if service.external_policy != Policy::Local {
        return None;
    }
    let after = Service { external_policy: Policy::Cluster, ..service.clone() };
    let title = format!("policy Cluster for svc/{}", service.name);
    let path = way!["spec", "externalTrafficPolicy"];
    let made = Proposal::new("policy-cluster", 15, title)
        .edit(service.object(), path, Change::Set(Tree::text("Cluster")))
        .costs("servers see an address of a node in place of the client's");
    gets_one(case, made, service, &after)
}

/// Proposes other ports where those of the nodes are taken.
fn other_ports(case: &Case<'_>, service: &Service) -> Option<Proposal> {
    let cluster = case.cluster();
    let Maker::Product(product, _) = cloud::maker_of(service, &cluster.provider) else {
        return None;
    };
    if !product.is_on_nodes() {
        return None;
    }
    (0..service.ports.len()).find_map(|at| {
        let old = service.ports[at].port;
        let new =
            Port::new(old.number().checked_add(if old.number() < 1000 { 8000 } else { 1 })?)?;
        let mut after = service.clone();
        after.ports[at].port = new;
        let title = format!("port {new} instead of {old} for svc/{}", service.name);
        let made = Proposal::new("other-port", 20, title)
            .edit(
                service.object(),
                way!["spec", "ports", at, "port"],
                Change::Set(Tree::number(new.number())),
            )
            .costs(format!("clients have to call port {new}, by the cluster IP too"));
        gets_one(case, made, service, &after)
    })
}

/// Proposes that the Service asks for no address of its own.
fn any_address(case: &Case<'_>, service: &Service) -> Option<Proposal> {
    let path = way!["spec", "loadBalancerIP"];
    case.manifests.text_at(&service.object(), &path)?;
    let after = Service { asked_address: None, ..service.clone() };
    let title = format!("no loadBalancerIP for svc/{}", service.name);
    let made = Proposal::new("any-address", 15, title)
        .edit(service.object(), path, Change::Remove)
        .costs("it gets any free address: names in front of it have to lead there");
    gets_one(case, made, service, &after)
}

/// Adds the address that an edited Service then gets. Returns `None` if objects show that it still
/// gets none, or did not show why it got none.
fn gets_one(
    case: &Case<'_>,
    made: Proposal,
    before: &Service,
    after: &Service,
) -> Option<Proposal> {
    let cluster = case.cluster();
    let Maker::Product(product, _) = cloud::maker_of(before, &cluster.provider) else {
        return None;
    };
    product.no_address(cluster, before)?;
    if product.no_address(cluster, after).is_some() {
        return None;
    }
    let addresses: Vec<IpAddr> = match after.asked_address {
        Some(address) => vec![address],
        None if product.is_on_nodes() => {
            cluster.nodes.values().filter_map(|node| node.internal_ips.first().copied()).collect()
        }
        None => free_address(cluster).into_iter().collect(),
    };
    if addresses.is_empty() {
        return None;
    }
    let entry = |ip: &IpAddr| Tree::map([("ip", Tree::text(ip.to_string()))]);
    let path = way!["status", "loadBalancer", "ingress"];
    let entries = Tree::List(addresses.iter().map(entry).collect());
    Some(made.follow(after.object(), path, Change::Set(entries)))
}

/// Returns an address of a pool that no Service and no node has.
fn free_address(cluster: &Cluster) -> Option<IpAddr> {
    let is_free = |ip: &IpAddr| {
        !is_of_service(cluster, *ip) && !cluster.nodes.values().any(|node| node.has_address(*ip))
    };
    let mut ranges = cluster.announcements.pools.iter().flat_map(|pool| &pool.ranges);
    ranges.find_map(|range| range.hosts().take(MAX_ADDRESSES).find(is_free))
}

#[cfg(test)]
mod tests {
    use uturn_snapshot::{Source, read};

    use super::free_address;

    /// Whatever the order of the Services is, what one of them has is not free.
    #[test]
    fn an_address_of_a_service_is_not_free() {
        let service = |name: &str, address: &str| {
            format!(
                "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: shop}}\n\
                 spec: {{type: LoadBalancer, ports: [{{port: 80}}]}}\n\
                 status: {{loadBalancer: {{ingress: [{{ip: {address}}}]}}}}\n"
            )
        };
        let pool = "apiVersion: metallb.io/v1beta1\nkind: IPAddressPool\n\
                    metadata: {name: first, namespace: metallb-system}\n\
                    spec: {addresses: [10.0.9.8-10.0.9.15]}\n";
        let text = [pool, &service("a", "10.0.9.10"), &service("b", "10.0.9.9")].concat();
        let source = Source { name: "made.yaml".into(), text };
        let cluster = read(vec![source]).unwrap().cluster;
        let free = free_address(&cluster).map(|ip| ip.to_string());
        assert_eq!(free.as_deref(), Some("10.0.9.11"));
    }
}
