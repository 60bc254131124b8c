//! The cluster's DNS, which real CoreDNS serves, and which is queried as pods do.
//!
//! CoreDNS runs in the pods behind the cluster's DNS Service, and pods query that Service. If the
//! cluster has no such pod, CoreDNS runs in the fabric, and pods query it there. Names that no
//! server of the cluster knows are queried from a server in the fabric, which knows the names that
//! Facts state.

mod api;
pub(crate) mod coredns;
pub(crate) mod outside;
pub(crate) mod resolver;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use uturn_model::dns::Corefile;
use uturn_model::{Client, Cluster, Destination, Family, NamespacedName, Pod, Service, Text};

use crate::linux::build::lab_cluster::LabCluster;
use crate::linux::kernel::netlink::{Index, Netlink};
use crate::linux::kernel::system::{During, find};
use crate::linux::run::state::Run;
use crate::{LabError, Plan};
use api::Lists;
use coredns::CoreDns;
use outside::Outside;
use resolver::{Resolver, Settings};

/// The last part of the address of a CoreDNS that runs in the fabric.
const STAND_IN: u8 = 10;

/// The addresses of names, as each client resolved them; empty for a name without an address.
pub(crate) type Found = BTreeMap<(Client, Text), Vec<IpAddr>>;

/// The cluster's DNS. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Names {
    _servers: Vec<CoreDns>,
    _outside: Outside,
}

/// Returns the clients and the names that they call, if real servers resolve names.
pub(crate) fn asked(plan: &Plan<'_>) -> Vec<(Client, Text)> {
    if plan.cluster.dns.corefile.is_none() {
        return Vec::new();
    }
    let name = |to: &Destination| match to {
        Destination::Url { host, .. } | Destination::Host(host, _) => {
            host.parse::<IpAddr>().is_err().then(|| host.clone())
        }
        _ => None,
    };
    let flows = plan.flows.iter().filter(|flow| !matches!(flow.from, Client::Outside(_)));
    let mut asked: Vec<(Client, Text)> =
        flows.filter_map(|flow| Some((flow.from.clone(), name(&flow.to)?))).collect();
    asked.sort_unstable();
    asked.dedup();
    asked
}

/// Returns the path of CoreDNS, if names have to be resolved.
pub(crate) fn program(plan: &Plan<'_>) -> Result<Option<PathBuf>, LabError> {
    if asked(plan).is_empty() {
        return Ok(None);
    }
    plan.coredns.clone().or_else(|| find("coredns")).map(Some).ok_or_else(|| {
        LabError::Plan(
            "names are resolved by real CoreDNS, and there is none in the search path: \
             say where it is (--coredns)"
                .into(),
        )
    })
}

/// Returns whether the cluster has no pod that serves its DNS: no endpoint, and none that may
/// become one.
fn is_bare(cluster: &Cluster) -> bool {
    let Some((name, service)) = dns_service(cluster) else { return true };
    let selects = |pod: &Pod| {
        let selector = service.selector.as_ref();
        pod.name.namespace == name.namespace
            && selector.is_some_and(|selector| selector.matches(&pod.spec.labels))
    };
    let mut slices = cluster.slices(name).iter();
    slices.all(|slice| slice.endpoints.is_empty()) && !cluster.pods.values().any(selects)
}

/// Returns whether CoreDNS runs in a pod.
pub(crate) fn serves(cluster: &Cluster, pod: &Pod) -> bool {
    let Some((name, _)) = dns_service(cluster) else { return false };
    let slices = cluster.slices(name);
    slices
        .iter()
        .flat_map(|slice| &slice.endpoints)
        .any(|endpoint| pod.ips.contains(&endpoint.address))
}

impl Names {
    /// Starts the servers.
    pub(crate) fn start(
        run: &Run,
        plan: &Plan<'_>,
        lab_cluster: &LabCluster,
        program: &Path,
    ) -> Result<Self, LabError> {
        let cluster = plan.cluster;
        let Some(corefile) = &cluster.dns.corefile else {
            return Err(LabError::Plan("the cluster has no Corefile".into()));
        };
        let outside = Outside::start(&lab_cluster.fabric, cluster)
            .during("start the DNS beyond the cluster")?;
        let lists = Arc::new(Lists::of(cluster));
        let mut servers = Vec::new();
        for pod in cluster.pods.values().filter(|pod| pod.is_alive() && serves(cluster, pod)) {
            let Some(space) = lab_cluster.of_pod(pod) else { continue };
            let name = format!("coredns-{}", servers.len());
            servers.push(CoreDns::start(run, program, &name, cluster, corefile, space, &lists)?);
        }
        if is_bare(cluster) {
            servers.push(in_fabric(run, cluster, corefile, lab_cluster, program, &lists)?);
        }
        Ok(Self { _servers: servers, _outside: outside })
    }

    /// Resolves every name that a client of the plan needs, all at once.
    pub(crate) fn resolve(
        &self,
        plan: &Plan<'_>,
        lab_cluster: &LabCluster,
    ) -> Result<Found, LabError> {
        let cluster = plan.cluster;
        let settings = Settings {
            cluster: cluster_address(cluster),
            node: outside::address(cluster),
            domain: cluster.dns.domain(),
        };
        let ask = |(client, name): (Client, Text)| {
            let during = format!("resolve {name} for {client}");
            let space = lab_cluster.of_client(cluster, &client);
            let space = space.ok_or_else(|| LabError::Plan(format!("{client} does not run")))?;
            let (resolver, families) = match &client {
                Client::Pod(pod) => {
                    let pod = &cluster.pods[pod];
                    (Resolver::of_pod(&settings, pod), families(&pod.ips))
                }
                Client::Node(node) => {
                    (Resolver::of_node(&settings), families(&cluster.nodes[node].internal_ips))
                }
                Client::Workload(..) | Client::Outside(_) => {
                    return Err(LabError::Plan(format!("{client} does not ask the cluster's DNS")));
                }
            };
            let found = space.run(|| resolver.resolve(&name, &families)).during(&during)?;
            Ok(((client, name), found))
        };
        thread::scope(|scope| {
            let all: Vec<_> =
                asked(plan).into_iter().map(|question| scope.spawn(|| ask(question))).collect();
            all.into_iter()
                .map(|thread| {
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect()
        })
    }
}

fn in_fabric(
    run: &Run,
    cluster: &Cluster,
    corefile: &Corefile,
    lab_cluster: &LabCluster,
    program: &Path,
    lists: &Arc<Lists>,
) -> Result<CoreDns, LabError> {
    let address = cluster_address(cluster);
    let bind = || Netlink::open()?.add_address(Index::LOOPBACK, address.into());
    lab_cluster.fabric.run(bind).during("give the cluster's DNS its address")?;
    CoreDns::start(run, program, "coredns", cluster, corefile, &lab_cluster.fabric, lists)
}

fn dns_service(cluster: &Cluster) -> Option<(&NamespacedName, &Service)> {
    cluster.services.get_key_value(cluster.dns.service.as_ref()?)
}

/// Returns the address that pods query.
fn cluster_address(cluster: &Cluster) -> IpAddr {
    let stand_in = outside::for_documents(cluster, STAND_IN);
    let own = dns_service(cluster).filter(|_| !is_bare(cluster));
    own.and_then(|(_, service)| service.cluster_ips.first().copied()).unwrap_or(stand_in)
}

fn families(addresses: &[IpAddr]) -> Vec<Family> {
    let mut all: Vec<Family> = Vec::new();
    for family in addresses.iter().map(|ip| Family::of(*ip)) {
        if !all.contains(&family) {
            all.push(family);
        }
    }
    all
}
