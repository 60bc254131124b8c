//! Finds the pods that a Service was probably meant to select, if it selects none.
//!
//! Labels that differ prove nothing: a leader gets its label while it runs, and a canary or the
//! other colour has no pods most of the time. A difference is a *slip* only if a text is repeated
//! where it does not belong: the same value under another key, a selected value that is the name of
//! the workload, a value that pods have and that is the name of the Service, or one that is spelt
//! like the other.

use std::collections::BTreeSet;
use std::fmt;

use uturn_model::pod::PodSpec;
use uturn_model::service::TargetPort;
use uturn_model::{
    Cluster, Labels, Name, NamespacedName, ObjectRef, Pod, Selector, Service, Workload,
    WorkloadKind,
};

use crate::typos::{are_names_alike, are_spelt_alike};

/// A workload or a pod whose labels almost fit the selector of a Service.
#[derive(Clone, Debug)]
pub(crate) struct NearMiss<'a> {
    /// The workload or the pod.
    pub(crate) maker: Maker<'a>,
    /// The labels that are selected and that it lacks.
    pub(crate) differences: Vec<Difference>,
    /// Whether all differences are slips, so that it is probably meant.
    pub(crate) is_slip: bool,
}

/// An object that states the labels of pods.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Maker<'a> {
    /// A workload, in the template of its pods.
    Workload(&'a Workload),
    /// A pod that no given workload makes.
    Pod(&'a Pod),
}

impl<'a> Maker<'a> {
    pub(crate) fn object(self) -> ObjectRef {
        match self {
            Self::Workload(workload) => workload.object(),
            Self::Pod(pod) => pod.object(),
        }
    }

    pub(crate) fn spec(self) -> &'a PodSpec {
        match self {
            Self::Workload(workload) => &workload.template,
            Self::Pod(pod) => &pod.spec,
        }
    }

    pub(crate) fn name(self) -> &'a NamespacedName {
        match self {
            Self::Workload(workload) => &workload.name,
            Self::Pod(pod) => &pod.name,
        }
    }

    /// Returns whether it makes, or is, a pod.
    pub(crate) fn makes(self, pod: &Pod) -> bool {
        match self {
            Self::Workload(workload) => pod.owner.as_ref() == Some(&workload.object()),
            Self::Pod(own) => own.name == pod.name,
        }
    }
}

/// A label that a Service selects and that pods do not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    /// The label has another value.
    Value { key: String, wanted: String, has: String },
    /// A label with another key has the value.
    Key { key: String, value: String, other: String },
    /// There is no such label.
    Missing { key: String, value: String },
}

impl Difference {
    /// Returns the key and the value that are selected.
    pub(crate) fn wanted(&self) -> (&str, &str) {
        match self {
            Self::Value { key, wanted, .. } => (key, wanted),
            Self::Key { key, value, .. } | Self::Missing { key, value } => (key, value),
        }
    }
}

impl fmt::Display for Difference {
    /// Formats what is selected and what is there: `component: controller (it has role: controller)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value { key, wanted, has } => write!(f, "{key}: {wanted} (it has {key}: {has})"),
            Self::Key { key, value, other } => {
                write!(f, "{key}: {value} (it has {other}: {value})")
            }
            Self::Missing { key, value } => write!(f, "{key}: {value} (it has no label {key})"),
        }
    }
}

/// Returns the workloads and pods of a Service's namespace that almost fit its selector, the most
/// similar first. Empty if one fits.
pub(crate) fn near_misses<'a>(cluster: &'a Cluster, service: &Service) -> Vec<NearMiss<'a>> {
    let Some(selector) = service.selector.as_ref().filter(|selector| !selector.labels.is_empty())
    else {
        return Vec::new();
    };
    let makers = makers(cluster, service);
    if makers.iter().any(|maker| selector.matches(&maker.spec().labels)) {
        return Vec::new();
    }
    let mut all: Vec<(usize, NearMiss<'a>)> = Vec::new();
    for maker in makers {
        let differences = differences(selector, &maker.spec().labels);
        let is_slip = is_slip(cluster, service, selector, maker, &differences);
        let fits = selector.labels.len() - differences.len();
        // A component of the same application shares most labels, and so says little.
        if !is_slip && (differences.len() > 1 || fits == 0 || ports(service, maker) != Ports::Fit) {
            continue;
        }
        all.push((differences.len(), NearMiss { maker, differences, is_slip }));
    }
    all.sort_by_key(|(count, miss)| (!miss.is_slip, *count));
    all.into_iter().map(|(_, miss)| miss).collect()
}

/// Returns the objects of a Service's namespace that state the labels of pods: workloads, and pods
/// of which no workload is given.
pub(crate) fn makers<'a>(cluster: &'a Cluster, service: &Service) -> Vec<Maker<'a>> {
    let home = &service.name.namespace;
    let at_home = cluster.workloads.values().filter(|workload| workload.name.namespace == *home);
    // A ReplicaSet of a Deployment says the same as the Deployment.
    let is_own = |workload: &&Workload| {
        let is_copy = workload.kind == WorkloadKind::ReplicaSet
            && workload.template.labels.get("pod-template-hash").is_some();
        !is_copy && !workload.kind.ends()
    };
    let workloads: Vec<&Workload> = at_home.filter(is_own).collect();
    let known: BTreeSet<ObjectRef> = workloads.iter().map(|workload| workload.object()).collect();
    let mut all: Vec<Maker<'a>> = workloads.iter().copied().map(Maker::Workload).collect();
    let mut owners: BTreeSet<&ObjectRef> = BTreeSet::new();
    for pod in pods_of(cluster, home).filter(|pod| pod.is_alive()) {
        let is_new = match &pod.owner {
            None => true,
            Some(owner) => !known.contains(owner) && owners.insert(owner),
        };
        if is_new {
            all.push(Maker::Pod(pod));
        }
    }
    all
}

/// Iterates over the pods of a namespace.
pub(crate) fn pods_of<'a>(cluster: &'a Cluster, home: &Name) -> impl Iterator<Item = &'a Pod> {
    let name = Name::new("0").expect("a constant name, before all others");
    let first = NamespacedName { namespace: home.clone(), name };
    let pods = cluster.pods.range(first..).map(|(_, pod)| pod);
    let home = home.clone();
    pods.take_while(move |pod| pod.name.namespace == home)
}

fn differences(selector: &Selector, labels: &Labels) -> Vec<Difference> {
    let missing = selector.labels.iter().filter(|(key, value)| !labels.is(key, value));
    missing
        .map(|(key, value)| {
            let (key, value) = (key.to_owned(), value.to_owned());
            let other = labels
                .iter()
                .find(|(other, has)| *has == value && selector.labels.get(other).is_none())
                .map(|(other, _)| other.to_owned())
                .filter(|_| says_something(&value));
            match (other, labels.get(&key)) {
                (Some(other), _) => Difference::Key { key, value, other },
                (None, Some(has)) => Difference::Value { has: has.to_owned(), key, wanted: value },
                (None, None) => Difference::Missing { key, value },
            }
        })
        .collect()
}

/// Returns whether a value is a name rather than a switch or a number.
fn says_something(value: &str) -> bool {
    value.len() > 1
        && !matches!(value, "true" | "false" | "yes" | "no" | "enabled" | "disabled")
        && !value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

fn is_slip(
    cluster: &Cluster,
    service: &Service,
    selector: &Selector,
    maker: Maker<'_>,
    differences: &[Difference],
) -> bool {
    let names = [service.name.name.as_str(), maker.name().name.as_str()];
    // That a Service selects its own name, or that pods have that of their workload, says nothing.
    let of_each = |difference: &Difference| match difference {
        Difference::Key { .. } => true,
        Difference::Value { wanted, has, .. } => {
            are_names_alike(wanted, has) || wanted == names[1] || has == names[0]
        }
        Difference::Missing { value, .. } => value == names[1],
    };
    let ports = ports(service, maker);
    let is_likely = match differences.len() {
        1 => ports != Ports::Differ,
        // With several differences, the ports have to fit as well.
        _ => ports == Ports::Fit && (names[0] == names[1] || are_names_alike(names[0], names[1])),
    };
    if !is_likely || !differences.iter().all(of_each) {
        return false;
    }
    // Another Service leads to these pods already, so that this one may be meant for others.
    let is_spelling = |difference: &Difference| match difference {
        Difference::Key { .. } => true,
        Difference::Value { wanted, has, .. } => are_spelt_alike(wanted, has),
        Difference::Missing { .. } => false,
    };
    differences.iter().all(is_spelling) || !is_served(cluster, selector, maker)
}

/// Returns whether another Service of the namespace selects these pods.
fn is_served(cluster: &Cluster, selector: &Selector, maker: Maker<'_>) -> bool {
    let labels = &maker.spec().labels;
    cluster.services.values().any(|other| {
        other.name.namespace == maker.name().namespace
            && other.selector.as_ref().is_some_and(|own| own != selector && own.matches(labels))
    })
}

/// How the ports that a Service targets compare with those that containers declare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ports {
    Fit,
    /// The containers declare none, or too few to tell.
    Open,
    Differ,
}

fn ports(service: &Service, maker: Maker<'_>) -> Ports {
    let spec = maker.spec();
    let declares = spec.ports().next().is_some();
    let mut all = Ports::Fit;
    for port in &service.ports {
        let has = match &port.target {
            TargetPort::Name(name) => spec.named_port(name, port.protocol).is_some(),
            TargetPort::Number(number) => {
                spec.ports().any(|own| own.port == *number)
                    || spec.is_probed(*number)
                    || spec.containers.iter().any(|container| container.mentions(*number))
            }
        };
        match (has, declares) {
            (true, _) => {}
            (false, true) => return Ports::Differ,
            (false, false) => all = Ports::Open,
        }
    }
    if service.ports.is_empty() { Ports::Open } else { all }
}
