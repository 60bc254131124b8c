//! Adds the pods that workloads will create, and places pods on nodes.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use uturn_document::Fault;
use uturn_model::network::NetworkMode;
use uturn_model::pod::{Phase, PodSpec};
use uturn_model::wording::{count, some_of};
use uturn_model::{
    Name, NamespacedName, Node, ObjectKind, ObjectRef, Pod, Selector, Workload, WorkloadKind,
};

use super::ranges::Ranges;
use super::{labels, owners};
use crate::decode::objects::Objects;
use crate::derive::Assumptions;
use crate::derive::ground::proxy;

/// The maximum number of pods that are made up for one workload, unless there are more nodes.
/// Further pods would be like these.
pub(super) const MAX_OF_ONE: u32 = 1_000;

/// The maximum number of pods that are made up for all workloads: more than the largest clusters
/// have.
const MAX_OF_ALL: usize = 200_000;

/// Places pods, makes up missing ones, and gives addresses to those without.
///
/// # Errors
/// Returns a fault if more pods than [`MAX_OF_ALL`] would have to be made up.
pub(super) fn complete(
    objects: &mut Objects,
    mode: NetworkMode,
    ranges: &mut Ranges,
    assumptions: &mut Assumptions,
) -> Result<(), Fault> {
    let is_written = |name: &NamespacedName| objects.written_pods.contains(name);
    let collected = objects.pods.0.keys().any(|name| !is_written(name));
    place_written(objects, assumptions);
    suppose(objects, collected, assumptions)?;
    labels::add_hashes(objects, assumptions);
    leave_ending_out(objects, assumptions);
    let pool = match mode {
        NetworkMode::GlobalRouter => None,
        NetworkMode::VpcCni => Some(Pool { net: ranges.vpc(objects), is_supposed: false }),
        NetworkMode::Routed => pool(objects, ranges),
    };
    add_addresses(objects, pool, ranges, assumptions);
    Ok(())
}

/// Places the pods that were written by hand, which are not yet on a node.
fn place_written(objects: &mut Objects, assumptions: &mut Assumptions) {
    let mut spread = Spread::over(objects);
    let mut placed = Vec::new();
    for name in objects.written_pods.clone() {
        let Some(pod) = objects.pods.0.get_mut(&name).filter(|pod| pod.node.is_none()) else {
            continue;
        };
        // Helm runs a hook at some moment of an installation, and its pod is gone afterwards.
        if pod.spec.annotations.get("helm.sh/hook").is_some() {
            pod.phase = Phase::Succeeded;
            continue;
        }
        pod.node = spread.next_for(&pod.spec);
        if pod.node.is_some() {
            (pod.phase, pod.ready) = (Phase::Running, true);
            placed.push(name);
        }
    }
    if !placed.is_empty() {
        assumptions.assume(
            format!("{} without a node: {}", count(placed.len(), "pod"), some_of(&placed)),
            "spread over the nodes",
            "no spec.nodeName is given",
            "give the running Pod objects",
        );
    }
}

/// Makes up the pods of all workloads that have none.
fn suppose(
    objects: &mut Objects,
    collected: bool,
    assumptions: &mut Assumptions,
) -> Result<(), Fault> {
    let owners: HashSet<&ObjectRef> =
        objects.pods.0.values().filter_map(|pod| pod.owner.as_ref()).collect();
    let by_label = LazyCell::new(|| ByLabel::new(&objects.pods.0));
    let has_pods = |workload: &Workload| {
        owners.contains(&workload.object()) || has_selected(objects, &by_label, workload)
    };
    let lacking: Vec<Workload> = objects
        .workloads
        .0
        .values()
        .filter(|workload| {
            // A Job without pods is finished, if the pods of the cluster were given.
            let finished = workload.kind.ends() && collected;
            let made = owners::is_made_by_another(objects, workload.kind, &workload.name);
            let wants = workload.replicas > 0 || workload.kind == WorkloadKind::DaemonSet;
            wants && !(finished || made || has_pods(workload))
        })
        .cloned()
        .collect();
    let mut spread = Spread::over(objects);
    let max = most_of_one(objects);
    let mut made = Vec::new();
    let mut wanted = 0;
    for workload in &lacking {
        wanted += match workload.kind {
            WorkloadKind::DaemonSet => spread.places(&workload.template).len(),
            _ => workload.replicas.min(max) as usize,
        };
        if wanted > MAX_OF_ALL {
            return Err(too_many(workload));
        }
    }
    let mut pods = 0;
    for workload in &lacking {
        let places = spread.places(&workload.template);
        let before = objects.pods.0.len();
        if workload.kind == WorkloadKind::DaemonSet {
            one_a_node(objects, workload, &spread, &places);
        } else {
            replicas(objects, workload, max, &mut spread, &places);
        }
        let new = objects.pods.0.len() - before;
        pods += new;
        if new > 0 {
            made.push(workload.object());
        }
        if workload.replicas > max {
            assumptions.assume(
                format!("pods of {}", workload.object()),
                format!("the first {max} of {}", workload.replicas),
                "no more are assumed",
                "give the Pod objects",
            );
        }
    }
    if pods > 0 {
        assumptions.assume(
            format!("placement of {} of {}", count(pods, "pod"), some_of(&made)),
            "spread over the nodes",
            "there are no Pod objects of theirs",
            "give the Pod objects",
        );
    }
    Ok(())
}

/// Returns the maximum number of pods that are made up for one workload.
fn most_of_one(objects: &Objects) -> u32 {
    MAX_OF_ONE.max(u32::try_from(objects.nodes.0.len()).unwrap_or(u32::MAX))
}

/// Returns the fault that with this workload's pods, more than [`MAX_OF_ALL`] would be made up.
fn too_many(workload: &Workload) -> Fault {
    let object = workload.object();
    let message = format!(
        "with the pods of {object}, workloads would have more than {MAX_OF_ALL} pods, of which no Pod \
         object is given"
    );
    let fault = Fault::new(workload.origin.clone(), message);
    Fault { object: Some(object.to_string().into()), ..fault }
        .hint("give the Pod objects, or a part of the workloads")
}

/// Marks made-up pods of Jobs as not ready where a Service that selects them also selects pods that
/// stay, so that they are none of its endpoints: pods of Jobs come and go, and it is not known how
/// often one is there.
fn leave_ending_out(objects: &mut Objects, assumptions: &mut Assumptions) {
    let ends = |pod: &Pod| {
        let owner = pod.owner.as_ref().map(|owner| owner.kind);
        pod.supposed && matches!(owner, Some(ObjectKind::Workload(kind)) if kind.ends())
    };
    if !objects.pods.0.values().any(ends) {
        return;
    }
    let by_label = ByLabel::new(&objects.pods.0);
    let (mut left_out, mut services) = (BTreeSet::new(), Vec::new());
    for service in objects.services.0.values() {
        let Some(selector) = &service.selector else { continue };
        let selected = by_label.selected(&service.name.namespace, selector);
        let ending: Vec<_> = selected.iter().filter(|pod| ends(pod)).collect();
        if !ending.is_empty() && ending.len() < selected.len() {
            left_out.extend(ending.into_iter().map(|pod| pod.name.clone()));
            services.push(service.name.clone());
        }
    }
    for name in &left_out {
        if let Some(pod) = objects.pods.0.get_mut(name) {
            pod.ready = false;
        }
    }
    if !services.is_empty() {
        assumptions.assume(
            format!("pods of Jobs that Services select beside others: {}", some_of(&services)),
            "no endpoints",
            "they come and go",
            "give the labels that tell them apart to the Services",
        );
    }
}

/// Returns whether the workload selects running pods that name no owner.
fn has_selected(objects: &Objects, pods: &ByLabel<'_>, workload: &Workload) -> bool {
    let selected = pods.selected(&workload.name.namespace, &workload.selector);
    selected.iter().any(|pod| pod.owner.is_none() && !objects.written_pods.contains(&pod.name))
}

/// An index of pods by namespace and label: a cluster has thousands of selectors, each of which
/// fits a few pods.
pub(in crate::derive) struct ByLabel<'o> {
    pods: &'o BTreeMap<NamespacedName, Pod>,
    labelled: HashMap<(&'o Name, &'o str, &'o str), Vec<&'o Pod>>,
}

impl<'o> ByLabel<'o> {
    pub(in crate::derive) fn new(pods: &'o BTreeMap<NamespacedName, Pod>) -> Self {
        let mut labelled: HashMap<_, Vec<&'o Pod>> = HashMap::new();
        for pod in pods.values() {
            for (key, value) in pod.spec.labels.iter() {
                labelled.entry((&pod.name.namespace, key, value)).or_default().push(pod);
            }
        }
        Self { pods, labelled }
    }

    /// Returns the pods of a namespace with the rarest label of a selector. `None` if the selector
    /// has no labels.
    fn with_label<'s>(
        &'s self,
        namespace: &'s Name,
        selector: &'s Selector,
    ) -> Option<&'s [&'o Pod]> {
        let labelled = |(key, value)| {
            self.labelled.get(&(namespace, key, value)).map_or(&[][..], Vec::as_slice)
        };
        selector.labels.iter().map(labelled).min_by_key(|pods| pods.len())
    }

    /// Returns the number of pods that are compared with a selector to find those that it fits.
    pub(in crate::derive) fn compared(&self, namespace: &Name, selector: &Selector) -> usize {
        self.with_label(namespace, selector).map_or(self.pods.len(), <[_]>::len)
    }

    /// Returns the pods of a namespace that a selector fits, by name.
    pub(in crate::derive) fn selected(
        &self,
        namespace: &Name,
        selector: &Selector,
    ) -> Vec<&'o Pod> {
        let fits = |pod: &&'o Pod| selector.matches(&pod.spec.labels);
        match self.with_label(namespace, selector) {
            Some(pods) => pods.iter().copied().filter(fits).collect(),
            None => of_namespace(self.pods, namespace).filter(fits).collect(),
        }
    }
}

/// Iterates over the pods of a namespace.
fn of_namespace<'o>(
    pods: &'o BTreeMap<NamespacedName, Pod>,
    namespace: &Name,
) -> impl Iterator<Item = &'o Pod> {
    let first = NamespacedName {
        namespace: namespace.clone(),
        name: Name::new("0").expect("a constant name"),
    };
    // "-" sorts before "0", but no name begins with it.
    let from = pods.range(first..);
    from.map(|(_, pod)| pod).take_while(move |pod| pod.name.namespace == *namespace)
}

fn one_a_node(objects: &mut Objects, workload: &Workload, spread: &Spread, places: &[usize]) {
    for at in places {
        let node = &spread.nodes[*at].name;
        let name = format!("{}-{node}", workload.name.name);
        add(objects, workload, &name, 0, Some(node.clone()));
    }
}

fn replicas(
    objects: &mut Objects,
    workload: &Workload,
    max: u32,
    spread: &mut Spread,
    places: &[usize],
) {
    let template = &workload.template;
    let alone = template.anti_affinity.iter().any(|affinity| affinity.matches(&template.labels));
    let room = if alone { places.len() } else { 0 };
    let first = match workload.kind {
        WorkloadKind::StatefulSet => {
            objects.first_numbers.get(&workload.name).copied().unwrap_or_default()
        }
        _ => 1,
    };
    for number in 0..workload.replicas.min(max) {
        let fits = !alone || (number as usize) < room;
        let node = if fits { spread.next(places) } else { None };
        let number = number.saturating_add(first);
        let name = format!("{}-{number}", workload.name.name);
        add(objects, workload, &name, number, node);
    }
}

fn add(objects: &mut Objects, workload: &Workload, name: &str, number: u32, node: Option<Name>) {
    let Ok(name) = Name::new(name) else { return };
    let name = NamespacedName { namespace: workload.name.namespace.clone(), name };
    let running = node.is_some();
    let labels = labels::of_pod(objects, workload, &name, number);
    objects.pods.0.entry(name.clone()).or_insert_with(|| {
        let mut pod = Pod {
            name,
            spec: Arc::clone(&workload.template),
            node,
            ips: Vec::new(),
            phase: if running { Phase::Running } else { Phase::Pending },
            ready: running,
            deciding_gates: Vec::new(),
            terminating: false,
            owner: Some(workload.object()),
            supposed: true,
            origin: workload.origin.clone(),
        };
        labels::add(&mut pod, labels);
        if workload.kind == WorkloadKind::StatefulSet {
            Arc::make_mut(&mut pod.spec).hostname = Some(pod.name.name.as_str().into());
        }
        pod
    });
}

/// Distributes pods over the nodes that are ready and schedulable, in turn.
struct Spread {
    nodes: Vec<Node>,
    at: usize,
}

impl Spread {
    fn over(objects: &Objects) -> Self {
        let usable = objects.nodes.0.values().filter(|node| node.ready && !node.unschedulable);
        Self { nodes: usable.cloned().collect(), at: 0 }
    }

    /// Returns the indices of the nodes on which a pod may run.
    fn places(&self, pod: &PodSpec) -> Vec<usize> {
        let nodes = self.nodes.iter().enumerate();
        nodes.filter(|(_, node)| pod.may_run_on(node)).map(|(at, _)| at).collect()
    }

    /// Returns the next node on which a pod may run.
    fn next_for(&mut self, pod: &PodSpec) -> Option<Name> {
        let count = self.nodes.len();
        let mut places = (0..count).map(|step| (self.at + step) % count);
        let at = places.find(|at| pod.may_run_on(&self.nodes[*at]))?;
        self.next(&[at])
    }

    /// Returns the next of the nodes at these indices.
    fn next(&mut self, places: &[usize]) -> Option<Name> {
        let behind = places.partition_point(|at| *at < self.at);
        let at = *places.get(behind).or(places.first())?;
        self.at = at + 1;
        Some(self.nodes[at].name.clone())
    }
}

/// A range from which all pods get their addresses.
#[derive(Clone, Copy)]
struct Pool {
    net: IpNet,
    /// Whether the range is assumed rather than stated.
    is_supposed: bool,
}

/// Returns the range for the addresses of pods that have none, if a node has no range of its own.
fn pool(objects: &Objects, ranges: &mut Ranges) -> Option<Pool> {
    if objects.nodes.0.values().all(|node| !node.pod_cidrs.is_empty()) {
        return None;
    }
    let stated = objects.facts.pod_cidrs.clone().or_else(|| proxy::cluster_cidrs(objects));
    let first = stated.and_then(|(nets, _)| nets.into_iter().next());
    Some(match first {
        Some(net) => Pool { net, is_supposed: false },
        None => Pool { net: ranges.for_pods(objects.nodes.0.len()), is_supposed: true },
    })
}

fn add_addresses(
    objects: &mut Objects,
    pool: Option<Pool>,
    ranges: &mut Ranges,
    assumptions: &mut Assumptions,
) {
    let nodes = &objects.nodes.0;
    let mut without: BTreeSet<&Name> = BTreeSet::new();
    let is_range_supposed = pool.is_some_and(|pool| pool.is_supposed);
    let mut given = 0;
    for pod in objects.pods.0.values_mut() {
        let Some(node) = pod.node.as_ref().and_then(|name| nodes.get(name)) else { continue };
        if !pod.ips.is_empty() || !matches!(pod.phase, Phase::Running | Phase::Pending) {
            continue;
        }
        if pod.spec.host_network {
            pod.ips.clone_from(&node.internal_ips);
            continue;
        }
        if pod.phase != Phase::Running {
            continue;
        }
        let nets = match pool {
            Some(pool) => vec![pool.net],
            None => node.pod_cidrs.clone(),
        };
        let ips: Vec<IpAddr> = nets.iter().filter_map(|net| ranges.address(*net, 10)).collect();
        match ips.is_empty() {
            true => drop(without.insert(&node.name)),
            // The assumption about the nodes' ranges is recorded elsewhere.
            false if pod.supposed && !is_range_supposed => {}
            false => given += 1,
        }
        pod.ips = ips;
    }
    if given > 0 {
        assumptions.assume(
            format!("addresses of {}", count(given, "pod")),
            match pool {
                Some(pool) => format!("unused addresses of {}", pool.net),
                None => "unused addresses of their node's range".to_owned(),
            },
            "no status.podIPs is given",
            "give the running Pod objects",
        );
    }
    if !without.is_empty() {
        let nodes: Vec<&Name> = without.into_iter().collect();
        assumptions.assume(
            format!("pods on {}", some_of(&nodes)),
            "some pods get no address",
            "the node's pod range is used up",
            "give the running Pod objects",
        );
    }
}
