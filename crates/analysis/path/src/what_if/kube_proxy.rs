//! The possible configurations of kube-proxy (its mode, whose build it is, and whether it knows the
//! pod ranges), and what else of the cluster as a whole is open.

use std::sync::Arc;

use uturn_clouds::cloud;
use uturn_model::network::{FLANNEL_MASQUERADE, covering_each};
use uturn_model::network_policy::{ENFORCEMENT, Enforcement};
use uturn_model::proxy::{CLUSTER_CIDR, LocalDetector, Variant};
use uturn_model::service::Policy;
use uturn_model::{
    Assumption, Cluster, Family, Known, Name, Node, ProxyMode, Service, Text, Version,
};

use super::listed;
use crate::journey::security_groups;
use crate::outline::outline_with;

/// The subject of the assumption about kube-proxy's mode.
const MODE: &str = "kube-proxy mode";

/// The first version whose nftables mode is considered ready for use.
const NFTABLES: Version = Version::new(1, 31, 0);

/// A possible configuration of kube-proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Running {
    mode: ProxyMode,
    /// The build of kube-proxy, if that makes a difference and is not known.
    build: Option<Variant>,
    /// Whether kube-proxy knows the pod ranges, if that makes a difference and is not known.
    tells_pods: Option<bool>,
    /// Whether kube-proxy takes its host's name for the node's, where these seem to differ.
    by_host: Option<bool>,
    /// Whether the nodes' security groups let in no load balancer by rules that are not given.
    is_shut: bool,
    /// Whether the network enforces NetworkPolicies, where that is not known.
    is_policed: bool,
    /// Whether flannel masquerades nothing, where its arguments are not given.
    keeps_sources: bool,
}

/// The largest number of pods for which the cluster is copied for each possible configuration.
pub const MAX_PODS: usize = 20_000;

/// The largest number of rules to one Service's endpoints for which the cluster is copied.
const MAX_RULES: usize = 200_000;

/// The largest number of rules to one Service's endpoints for which a single call is walked in
/// other configurations than the assumed one.
const MAX_RULES_OF_ONE_CALL: usize = 1_000_000;

/// Returns the cluster once for each other configuration that kube-proxy may have. Returns none if
/// the configuration is known or the cluster is too large to be copied.
pub fn others(cluster: &Cluster) -> Vec<Cluster> {
    each_other(cluster).collect()
}

/// Returns the clusters of [`others`] one after the other: each takes as much memory as the
/// cluster.
pub fn each_other(cluster: &Cluster) -> impl Iterator<Item = Cluster> + '_ {
    let all = runnings_of_copies(cluster).into_iter();
    all.skip(1).map(|running| as_running(cluster, running))
}

/// Returns whether [`others`] returns any cluster.
pub fn has_others(cluster: &Cluster) -> bool {
    runnings_of_copies(cluster).len() > 1
}

/// Returns the configurations for which the cluster is copied. Returns none if it is too large.
fn runnings_of_copies(cluster: &Cluster) -> Vec<Running> {
    let is_small = cluster.pods.len() <= MAX_PODS && has_few_rules(cluster, MAX_RULES);
    if is_small { runnings(cluster) } else { Vec::new() }
}

/// Returns whether at most `most` rules lead to the endpoints of each Service.
fn has_few_rules(cluster: &Cluster, most: usize) -> bool {
    cluster.endpoints.keys().all(|service| cluster.rules_to(service) <= most)
}

/// Returns the configurations in which one call is walked.
pub(super) fn runnings_of_one_call(cluster: &Cluster) -> Vec<Running> {
    let mut all = runnings(cluster);
    if !has_few_rules(cluster, MAX_RULES_OF_ONE_CALL) {
        all.truncate(1);
    }
    all
}

/// The configurations that the input leaves open. The first is the assumed one, the rest are
/// [`others`] in their order.
#[derive(Debug)]
pub struct Configurations(Vec<Running>);

impl Configurations {
    /// Returns those of a cluster, for which all its nodes and Services are visited.
    pub fn of(cluster: &Cluster) -> Self {
        Self(runnings(cluster))
    }

    /// Returns the conditions under which a result holds that the configurations at these places
    /// share. Returns none if these are all configurations.
    pub fn conditions(&self, places: &[usize]) -> Vec<Text> {
        let Self(all) = self;
        let some: Vec<Running> = places.iter().filter_map(|at| all.get(*at).copied()).collect();
        // What fails as is assumed is not told of only because groups may stop it before.
        let of_proxy = |list: &[Running]| list.iter().filter(|own| own.is_of_proxy()).count();
        let is_in_each = of_proxy(&some) == of_proxy(all) && of_proxy(all) > 0;
        if is_in_each { Vec::new() } else { vec![describe_running(&some, all)] }
    }
}

/// Returns the configurations that the input leaves open. The first is the assumed one. The last may
/// be that with security groups which let in no load balancer.
fn runnings(cluster: &Cluster) -> Vec<Running> {
    let mut all = of_proxy(cluster);
    if security_groups::are_open_to_balancers(cluster) {
        all.push(Running { is_shut: true, ..all[0] });
    }
    if cluster.network_policies.are_in_doubt() {
        all.push(Running { is_policed: true, ..all[0] });
    }
    if cluster.supposed.iter().any(|known| known.subject == FLANNEL_MASQUERADE.into()) {
        all.push(Running { keeps_sources: true, ..all[0] });
    }
    all
}

/// Returns the configurations of kube-proxy that the input leaves open.
fn of_proxy(cluster: &Cluster) -> Vec<Running> {
    let proxy = &cluster.proxy;
    let is_captured = |name: &Name| cluster.captures.contains_key(name);
    let own = proxy.mode.value;
    if cluster.nodes.keys().all(is_captured) {
        return vec![Running::of(own)];
    }
    let mut modes = vec![own];
    if proxy.mode.is_supposed() {
        modes.extend(ProxyMode::ALL.into_iter().filter(|mode| *mode != own));
    }
    let has_nftables = proxy.version.value >= NFTABLES;
    modes.retain(|mode| *mode == own || *mode != ProxyMode::Nftables || has_nftables);
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
            runnings.extend(
                std::iter::once(own)
                    .chain(others)
                    .map(|build| Running { build: Some(build), ..Running::of(mode) }),
            );
        } else if mode != ProxyMode::Ipvs && asks_for_pods {
            runnings.extend(
                [tells, !tells]
                    .map(|tells| Running { tells_pods: Some(tells), ..Running::of(mode) }),
            );
        } else {
            runnings.push(Running::of(mode));
        }
    }
    // If something else is open too, kube-proxy is assumed to know its node.
    if runnings.len() == 1 && may_be_named_by_host(cluster) {
        runnings =
            [false, true].map(|by_host| Running { by_host: Some(by_host), ..runnings[0] }).into();
    }
    let first = runnings[0];
    runnings.retain(|running| *running == first || is_possible(cluster, *running));
    runnings
}

/// Returns whether results depend on which name kube-proxy takes for its node's.
fn may_be_named_by_host(cluster: &Cluster) -> bool {
    let is_local = |service: &Service| {
        service.external_policy == Policy::Local || service.internal_policy == Policy::Local
    };
    // In IPVS mode, kube-proxy masquerades calls that return to their pod by its own node's
    // endpoints.
    (cluster.proxy.mode.value == ProxyMode::Ipvs || cluster.services.values().any(is_local))
        && cluster.nodes.values().any(|node| other_name(node).is_some())
}

/// Returns the host's name, if kube-proxy may take it for the node's.
fn other_name(node: &Node) -> Option<&Name> {
    node.host_name.as_ref().filter(|_| node.proxy_name.is_none())
}

/// Returns whether kube-proxy can run in this configuration with the settings that are known.
fn is_possible(cluster: &Cluster, running: Running) -> bool {
    let Some(node) = cluster.nodes.values().next() else { return true };
    let outline = as_running(&outline_with(cluster, node), running);
    let compiled =
        |family| uturn_kubeproxy::compile(&outline, &node.name, &outline.proxy, family).is_ok();
    Family::BOTH.into_iter().filter(|family| node.address(*family).is_some()).all(compiled)
}

/// Returns the cluster with kube-proxy in this configuration.
pub(super) fn as_running(cluster: &Cluster, running: Running) -> Cluster {
    let mut cluster = cluster.clone();
    if running.is_shut {
        security_groups::shut_to_balancers(&mut cluster);
        return cluster;
    }
    if running.is_policed {
        let policies = Arc::make_mut(&mut cluster.network_policies);
        policies.enforcement = Known::supposed(Enforcement::Drops, "one case of several");
        cluster.supposed.retain(|known| known.subject != ENFORCEMENT.into());
        return cluster;
    }
    if running.keeps_sources {
        cluster.network.masquerades_to_pods = Known::supposed(false, "one case of several");
        cluster.supposed.retain(|known| known.subject != FLANNEL_MASQUERADE.into());
        return cluster;
    }
    let because = "one case of several";
    let mut add = |about: &str, taken: &str| {
        for assumption in
            cluster.supposed.iter_mut().filter(|assumption| assumption.subject == about.into())
        {
            *assumption =
                Assumption { assumed: taken.into(), because: because.into(), ..assumption.clone() };
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
    if running.by_host == Some(true) {
        for node in cluster.nodes.values_mut() {
            node.proxy_name = node.proxy_name.take().or_else(|| node.host_name.clone());
        }
    }
    cluster
}

/// Describes configurations: `kube-proxy mode is iptables, nftables or ipvs (upstream's build)`,
/// `kube-proxy mode is iptables or nftables, without a cluster CIDR`, `kube-proxy has no cluster
/// CIDR`.
pub(super) fn describe_running(some: &[Running], all: &[Running]) -> Text {
    if let Some(words) = ASIDE.iter().find_map(|aside| aside.describe(some, all)) {
        return words.into();
    }
    let is_aside = |running: &Running| ASIDE.iter().any(|aside| (aside.is_it)(running));
    let (some, all): (Vec<Running>, Vec<Running>) = (
        some.iter().copied().filter(|own| !is_aside(own)).collect(),
        all.iter().copied().filter(|own| !is_aside(own)).collect(),
    );
    let (some, all) = (&some[..], &all[..]);
    let (shut, rest): (Vec<Running>, Vec<Running>) =
        some.iter().copied().partition(|running| running.is_shut);
    let of_proxy: Vec<Running> = all.iter().copied().filter(|own| !own.is_shut).collect();
    match (shut.is_empty(), rest.len()) {
        (false, 0) => {
            return "no rule of the nodes' security groups lets the load balancer in".into();
        }
        (true, of_rest) if of_rest == of_proxy.len() => {
            return "the nodes' security groups let the load balancer in".into();
        }
        _ => {}
    }
    let (some, all) = (&rest[..], &of_proxy[..]);
    if let Some(by_host) = some.first().and_then(|running| running.by_host) {
        let whose = if by_host { "its host's name for the node's" } else { "the node's own name" };
        return format!("kube-proxy takes {whose}").into();
    }
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

/// Something besides kube-proxy that one configuration has otherwise than the assumed one.
struct Aside {
    is_it: fn(&Running) -> bool,
    /// The condition under which it is so, and the one under which it is not.
    words: [&'static str; 2],
}

const ASIDE: [Aside; 2] = [
    Aside {
        is_it: |running| running.is_policed,
        words: [
            "the network enforces NetworkPolicies",
            "the network does not enforce NetworkPolicies",
        ],
    },
    Aside {
        is_it: |running| running.keeps_sources,
        words: ["flanneld runs without --ip-masq", "flanneld runs with --ip-masq"],
    },
];

impl Aside {
    /// Describes configurations that are all so, or all that are not so.
    fn describe(&self, some: &[Running], all: &[Running]) -> Option<&'static str> {
        let count = |list: &[Running]| list.iter().filter(|own| (self.is_it)(own)).count();
        let [yes, no] = self.words;
        match count(some) {
            0 if count(all) > 0 && some.len() + count(all) == all.len() => Some(no),
            so if so > 0 && so == some.len() => Some(yes),
            _ => None,
        }
    }
}

impl Running {
    /// Makes a configuration of a mode, with nothing else in doubt.
    fn of(mode: ProxyMode) -> Self {
        Self {
            mode,
            build: None,
            tells_pods: None,
            by_host: None,
            is_shut: false,
            is_policed: false,
            keeps_sources: false,
        }
    }

    /// Returns whether the configuration differs from others by kube-proxy.
    fn is_of_proxy(&self) -> bool {
        !self.is_shut && !self.is_policed && !self.keeps_sources
    }

    /// Describes what distinguishes the configuration from others of its mode.
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
