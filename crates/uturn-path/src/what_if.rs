//! What is not known and matters: a verdict for each case, merged where they come out equal.
//!
//! Two things are often missing and decide a lot: how kube-proxy runs (its mode, whether it is
//! the cloud's own build, and whether it knows the pods' ranges, without which it keeps pods
//! from a Service of policy Local), and where pods will run that do not exist yet. Each reading
//! of them is a separate cluster that the same engine walks. A third is what unmodelled rules do
//! (`rules`), a fourth what a name leads to (`names`). Readings with equal verdicts are merged
//! into one case, and a case names only what makes a difference.

mod names;
mod rules;

use std::collections::BTreeSet;
use std::net::IpAddr;

use uturn_lb::cloud;
use uturn_model::network::covering_each;
use uturn_model::proxy::{CLUSTER_CIDR, LocalDetector, Variant};
use uturn_model::service::Policy;
use uturn_model::{
    Client, Cluster, Family, Flow, Known, Name, NamespacedName, ProxyMode, Share, Supposition,
    Text, Verdict, Version,
};

use uturn_netfilter::{Assumptions, Question};

use crate::engine::Engine;
use crate::error::WalkError;
use crate::outline::outline_with;

/// What kube-proxy's mode is called where it is supposed.
const MODE: &str = "kube-proxy mode";
/// At most so many kinds of nodes are tried for pods that are on none yet.
const MOST_KINDS: usize = 6;
/// The first version with a mode nftables that is meant to be used.
const NFTABLES: Version = Version::new(1, 31, 0);

/// How kube-proxy may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Running {
    mode: ProxyMode,
    /// Whose build it is, where that makes a difference and is not known.
    build: Option<Variant>,
    /// Whether it knows the ranges of pods, where that makes a difference and is not known.
    tells_pods: Option<bool>,
}

/// A kind of node that pods may run on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ground {
    /// A node of that kind.
    node: Name,
    /// The Services with endpoints there.
    serves: BTreeSet<NamespacedName>,
}

/// The verdicts of one flow, by how kube-proxy runs and what kind of node the client is on.
struct Table {
    runnings: Vec<Running>,
    grounds: Vec<Ground>,
    /// A row for each of the first, a column for each of the second.
    verdicts: Vec<Vec<Verdict>>,
}

impl Engine<'_> {
    /// Walks a flow once for each case of what is not known and matters. Returns one verdict for
    /// each case.
    ///
    /// # Errors
    /// Returns an error if the flow cannot be walked in one of the cases.
    pub fn cases(&self, flow: &Flow) -> Result<Vec<Verdict>, WalkError> {
        let verdicts = self.by_rules(flow)?;
        match self.unresolved_name(flow)? {
            Some(doubt) => self.by_name(flow, &doubt, verdicts),
            None => Ok(verdicts),
        }
    }

    /// A verdict for each case of how kube-proxy runs and where pods will run, and the rules
    /// met that are not modelled.
    fn by_cluster(
        &self,
        flow: &Flow,
        assumed: &Assumptions,
    ) -> Result<(Vec<Verdict>, Vec<Question>), WalkError> {
        let cluster = self.cluster();
        let runnings = runnings(cluster);
        let movers = movers(cluster, &flow.from);
        let grounds = if movers.is_empty() { Vec::new() } else { grounds(cluster, &movers) };
        if runnings.len() < 2 && grounds.len() < 2 {
            return self.assuming(flow, assumed);
        }
        let mut table = Table { runnings, grounds, verdicts: Vec::new() };
        let mut open: Vec<Question> = Vec::new();
        for running in &table.runnings {
            let mut row = Vec::new();
            let read = as_running(cluster, *running);
            let mut try_one = |cluster: &Cluster| -> Result<(), WalkError> {
                let (verdict, met) = self.verdict_of(cluster, flow, assumed)?;
                row.push(verdict);
                let new =
                    met.into_iter().filter(|question| !open.contains(question)).collect::<Vec<_>>();
                open.extend(new);
                Ok(())
            };
            if table.grounds.len() < 2 {
                try_one(&read)?;
            } else {
                for ground in &table.grounds {
                    try_one(&on_ground(&read, &movers, &ground.node))?;
                }
            }
            table.verdicts.push(row);
        }
        if table.is_one() {
            return self.assuming(flow, assumed);
        }
        Ok((table.merged(), open))
    }

    /// The verdict where something is taken for true of rules that are not modelled, and those
    /// that were met and of which nothing is.
    fn assuming(
        &self,
        flow: &Flow,
        assumed: &Assumptions,
    ) -> Result<(Vec<Verdict>, Vec<Question>), WalkError> {
        let walk = self.walk_whole().assuming(assumed.clone());
        let verdict = walk.verdict(flow)?;
        Ok((vec![verdict], walk.open.into_inner()))
    }

    fn verdict_of(
        &self,
        cluster: &Cluster,
        flow: &Flow,
        assumed: &Assumptions,
    ) -> Result<(Verdict, Vec<Question>), WalkError> {
        let engine = Engine::new(cluster).map_err(|mut faults| faults.remove(0))?;
        let engine = engine.with_options(self.options());
        let (verdicts, open) = engine.assuming(flow, assumed)?;
        let none = || Verdict::of(vec![], vec![], vec![]);
        Ok((verdicts.into_iter().next().unwrap_or_else(none), open))
    }
}

/// More pods are not there several times, once for each reading of what is not known.
pub const MOST_PODS: usize = 20_000;

/// The cluster as it would be if kube-proxy ran otherwise than it is taken to, once for each
/// other way; none where that is known, or the cluster is too large for it.
pub fn others(cluster: &Cluster) -> Vec<Cluster> {
    if cluster.pods.len() > MOST_PODS {
        return Vec::new();
    }
    runnings(cluster).into_iter().skip(1).map(|running| as_running(cluster, running)).collect()
}

/// What has to hold for some of the readings of a cluster: 0 is what it is taken for, the rest
/// are [`others`] in their order. Nothing where it is all of them.
pub fn conditions(cluster: &Cluster, places: &[usize]) -> Vec<Text> {
    let all = runnings(cluster);
    let some: Vec<Running> = places.iter().filter_map(|at| all.get(*at).copied()).collect();
    if some.len() == all.len() { Vec::new() } else { vec![describe_running(&some, &all)] }
}

/// How kube-proxy may run, for what the input does not state. The first is the assumed one.
fn runnings(cluster: &Cluster) -> Vec<Running> {
    let proxy = &cluster.proxy;
    let is_captured = |name: &Name| cluster.captures.contains_key(name);
    let own = proxy.mode.value;
    if cluster.nodes.keys().all(is_captured) {
        return vec![Running { mode: own, build: None, tells_pods: None }];
    }
    let mut modes = vec![own];
    if proxy.mode.is_supposed() {
        modes.extend(ProxyMode::ALL.into_iter().filter(|mode| *mode != own));
    }
    // A build of the cloud's may lack a mode of upstream's.
    modes.retain(|mode| *mode != ProxyMode::Nftables || proxy.version.value >= NFTABLES);
    let tells = proxy.detector.value != LocalDetector::None;
    let may_tell = tells || !covering_each(&cluster.network.pod_cidrs.value).is_empty();
    let asks_for_pods = proxy.detector.is_supposed()
        && may_tell
        && cluster.services.values().any(|service| service.external_policy == Policy::Local);
    let mut runnings = Vec::new();
    for mode in modes {
        if mode == ProxyMode::Ipvs && proxy.variant.is_supposed() {
            let own = proxy.variant.value;
            let others = cloud::variants().filter(|variant| *variant != own);
            runnings.extend(std::iter::once(own).chain(others).map(|build| Running {
                mode,
                build: Some(build),
                tells_pods: None,
            }));
        } else if mode != ProxyMode::Ipvs && asks_for_pods {
            runnings.extend([tells, !tells].map(|tells| Running {
                mode,
                build: None,
                tells_pods: Some(tells),
            }));
        } else {
            runnings.push(Running { mode, build: None, tells_pods: None });
        }
    }
    let first = runnings[0];
    runnings.retain(|running| *running == first || is_possible(cluster, *running));
    runnings
}

/// Whether kube-proxy could run like this at all with the settings that are known.
fn is_possible(cluster: &Cluster, running: Running) -> bool {
    let Some(node) = cluster.nodes.values().next() else { return true };
    let outline = as_running(&outline_with(cluster, node), running);
    let compiled =
        |family| uturn_kubeproxy::compile(&outline, &node.name, &outline.proxy, family).is_ok();
    Family::BOTH.into_iter().filter(|family| node.address(*family).is_some()).all(compiled)
}

/// The cluster with a kube-proxy that runs like this.
fn as_running(cluster: &Cluster, running: Running) -> Cluster {
    let mut cluster = cluster.clone();
    let because = "one case of several";
    let mut add = |about: &str, taken: &str| {
        for supposition in
            cluster.supposed.iter_mut().filter(|supposition| *supposition.about == *about)
        {
            *supposition =
                Supposition { taken: taken.into(), because: because.into(), ..supposition.clone() };
        }
    };
    if cluster.proxy.mode.is_supposed() {
        add(MODE, &running.mode.to_string());
        cluster.proxy.mode = Known::supposed(running.mode, because);
    }
    if running.tells_pods == Some(true) && cluster.proxy.detector.value == LocalDetector::None {
        let ranges = covering_each(&cluster.network.pod_cidrs.value);
        add(CLUSTER_CIDR, "one that has all pods");
        cluster.proxy.detector = Known::supposed(LocalDetector::ClusterCidr(ranges), because);
    }
    if running.tells_pods == Some(false) {
        add(CLUSTER_CIDR, "none");
        cluster.proxy.detector = Known::supposed(LocalDetector::None, because);
    }
    if let Some(build) = running.build {
        cluster.proxy.variant = Known::supposed(build, because);
        cloud::set_address_binding(&mut cluster.proxy);
    }
    cluster
}

/// The pods of a client that are not placed yet, unless they serve a Service: then where
/// they are moves more than the client.
fn movers(cluster: &Cluster, client: &Client) -> Vec<NamespacedName> {
    let pods: Vec<&uturn_model::Pod> = match client {
        Client::Pod(name) => cluster.pods.get(name).into_iter().collect(),
        Client::Workload(kind, name) => {
            let workload = cluster.workloads.get(&(*kind, name.clone()));
            let own = |pod: &&uturn_model::Pod| {
                workload.is_some_and(|workload| {
                    pod.name.namespace == name.namespace
                        && workload.selector.matches(&pod.spec.labels)
                })
            };
            cluster.pods.values().filter(own).collect()
        }
        Client::Node(_) | Client::Outside(_) => Vec::new(),
    };
    let serves = |ip: &IpAddr| {
        let slices = cluster.endpoints.values().flatten();
        slices.flat_map(|slice| &slice.endpoints).any(|endpoint| endpoint.address == *ip)
    };
    let moves = |pod: &&uturn_model::Pod| {
        pod.supposed && !pod.spec.host_network && !pod.ips.iter().any(serves)
    };
    if pods.iter().all(moves) {
        pods.into_iter().map(|pod| pod.name.clone()).collect()
    } else {
        Vec::new()
    }
}

/// The kinds of nodes that pods may run on: distinguished by the Services that have endpoints
/// there. Those that a selector rules out are none.
fn grounds(cluster: &Cluster, movers: &[NamespacedName]) -> Vec<Ground> {
    let wanted = movers.first().and_then(|name| cluster.pods.get(name));
    let mut grounds: Vec<Ground> = Vec::new();
    for node in cluster.nodes.values() {
        let fits = wanted.is_none_or(|pod| node.labels.contains_all(&pod.spec.node_selector));
        if !fits {
            continue;
        }
        let has_endpoint = |slices: &[uturn_model::EndpointSlice]| {
            let mut all = slices.iter().flat_map(|slice| &slice.endpoints);
            all.any(|endpoint| endpoint.node.as_ref() == Some(&node.name))
        };
        let serves: BTreeSet<NamespacedName> = cluster
            .endpoints
            .iter()
            .filter(|(_, slices)| has_endpoint(slices))
            .map(|(name, _)| name.clone())
            .collect();
        if grounds.iter().all(|known| known.serves != serves) && grounds.len() < MOST_KINDS {
            grounds.push(Ground { node: node.name.clone(), serves });
        }
    }
    grounds
}

/// The cluster with these pods on a node.
fn on_ground(cluster: &Cluster, movers: &[NamespacedName], node: &Name) -> Cluster {
    let mut cluster = cluster.clone();
    let Some(ground) = cluster.nodes.get(node).cloned() else { return cluster };
    for name in movers {
        let taken: BTreeSet<IpAddr> =
            cluster.pods.values().flat_map(|pod| pod.ips.iter().copied()).collect();
        let Some(pod) = cluster.pods.get_mut(name) else { continue };
        if pod.node.as_ref() == Some(node) {
            continue;
        }
        pod.node = Some(node.clone());
        for ip in &mut pod.ips {
            let of_family =
                ground.pod_cidrs.iter().find(|net| net.addr().is_ipv4() == ip.is_ipv4());
            // The first address is the bridge's.
            let free = of_family
                .and_then(|net| net.hosts().skip(1).find(|address| !taken.contains(address)));
            *ip = free.unwrap_or(*ip);
        }
    }
    cluster
}

impl Table {
    fn is_one(&self) -> bool {
        let mut all = self.verdicts.iter().flatten();
        let Some(first) = all.next() else { return true };
        all.all(|verdict| is_same(first, verdict))
    }

    /// A verdict for each block of the table that has the same one all over.
    fn merged(&self) -> Vec<Verdict> {
        let mut found: Vec<(Vec<usize>, Vec<usize>, &Verdict)> = Vec::new();
        for (at, row) in self.verdicts.iter().enumerate() {
            let mut parts: Vec<(Vec<usize>, &Verdict)> = Vec::new();
            for (column, verdict) in row.iter().enumerate() {
                match parts.iter_mut().find(|(_, known)| is_same(known, verdict)) {
                    Some((columns, _)) => columns.push(column),
                    None => parts.push((vec![column], verdict)),
                }
            }
            for (columns, verdict) in parts {
                let same = |known: &&mut (Vec<usize>, Vec<usize>, &Verdict)| {
                    known.1 == columns && is_same(known.2, verdict)
                };
                match found.iter_mut().find(same) {
                    Some((rows, ..)) => rows.push(at),
                    None => found.push((vec![at], columns, verdict)),
                }
            }
        }
        let verdicts = found.into_iter().map(|(rows, columns, verdict)| {
            let mut verdict = verdict.clone();
            if rows.len() < self.runnings.len() {
                let some: Vec<Running> = rows.iter().map(|at| self.runnings[*at]).collect();
                verdict.conditions.push(describe_running(&some, &self.runnings));
            }
            if columns.len() < self.verdicts[0].len() {
                verdict.conditions.push(self.placed(&columns));
            }
            verdict
        });
        verdicts.collect()
    }

    /// `the client runs on a node with an endpoint of shop/web`.
    fn placed(&self, columns: &[usize]) -> Text {
        let within = |at: &usize| columns.contains(at);
        let (here, there): (Vec<usize>, Vec<usize>) =
            (0..self.grounds.len()).partition(|at| within(at));
        let all: BTreeSet<&NamespacedName> =
            self.grounds.iter().flat_map(|ground| &ground.serves).collect();
        for service in all {
            let serves = |at: &usize| self.grounds[*at].serves.contains(service);
            if here.iter().all(serves) && !there.iter().any(serves) {
                return format!("the client runs on a node with an endpoint of {service}").into();
            }
            if there.iter().all(serves) && !here.iter().any(serves) {
                return format!("the client runs on a node without an endpoint of {service}")
                    .into();
            }
        }
        let nodes: Vec<String> =
            here.iter().map(|at| format!("one like {}", self.grounds[*at].node)).collect();
        format!("the client's node is {}", listed(&nodes)).into()
    }
}

/// The verdicts of two cases: what comes out alike either way does not depend on it.
fn either(yes: &[Verdict], no: &[Verdict], mark: impl Fn(&mut Verdict, bool)) -> Vec<Verdict> {
    let alike = |verdict: &Verdict, other: &Verdict| {
        verdict.conditions == other.conditions && is_same(verdict, other)
    };
    let mut verdicts: Vec<Verdict> = Vec::new();
    for (holds, here, there) in [(true, yes, no), (false, no, yes)] {
        for verdict in here {
            let mut verdict = verdict.clone();
            if there.iter().any(|other| alike(&verdict, other)) {
                if holds {
                    verdicts.push(verdict);
                }
                continue;
            }
            mark(&mut verdict, holds);
            verdicts.push(verdict);
        }
    }
    verdicts
}

/// Whether two verdicts say the same, however their ways came about.
fn is_same(verdict: &Verdict, other: &Verdict) -> bool {
    let close = |(a, b): (&(uturn_model::Outcome, Share), &(uturn_model::Outcome, Share))| {
        a.0 == b.0 && a.1.is_about(b.1)
    };
    verdict.mechanisms == other.mechanisms
        && verdict.outcomes.len() == other.outcomes.len()
        && verdict.outcomes.iter().zip(&other.outcomes).all(close)
}

/// `kube-proxy mode is iptables, nftables or ipvs (upstream's build)`, `kube-proxy mode is
/// iptables or nftables, without a cluster CIDR`, `kube-proxy has no cluster CIDR`.
fn describe_running(some: &[Running], all: &[Running]) -> Text {
    let how = |running: &Running| {
        let ways =
            |list: &[Running]| list.iter().filter(|other| other.mode == running.mode).count();
        (ways(some) < ways(all)).then(|| running.how()).flatten()
    };
    if all.iter().all(|running| running.mode == all[0].mode && running.tells_pods.is_some()) {
        let has = if some[0].tells_pods == Some(true) { "a" } else { "no" };
        return format!("kube-proxy has {has} cluster CIDR").into();
    }
    let shared = some.first().and_then(how).filter(|first| {
        some.iter().all(|running| running.tells_pods.is_some() && how(running) == Some(first))
    });
    let mut words: Vec<String> = Vec::new();
    for running in some {
        let word = match how(running) {
            Some(how) if shared.is_none() => format!("{} ({how})", running.mode),
            _ => running.mode.to_string(),
        };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    let shared = shared.map_or_else(String::new, |how| format!(", {how}"));
    format!("{MODE} is {}{shared}", listed(&words)).into()
}

impl Running {
    /// What distinguishes it from the others of its mode.
    fn how(&self) -> Option<&'static str> {
        match (self.build, self.tells_pods) {
            (Some(build), _) => {
                Some(cloud::builds_of(build).map_or("upstream's build", |builds| builds.name))
            }
            (None, Some(true)) => Some("with a cluster CIDR"),
            (None, Some(false)) => Some("without a cluster CIDR"),
            (None, None) => None,
        }
    }
}

/// `a, b or c`.
fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
