//! Reads the arguments and environment with which a controller is started.

use uturn_model::pod::{Container, PodSpec};
use uturn_model::{Labels, Name, NamespacedName, Text, Version, image};

use super::candidate::Candidate;
use super::products::Ask;
use crate::decode::objects::Objects;

/// The arguments that name the namespaces of the Ingresses that a controller serves.
const NAMESPACES: [&str; 2] = ["watch-namespace", "providers.kubernetesingress.namespaces"];

/// The arguments that name the class of the Ingresses that a controller serves.
const BY_NAME: [&str; 4] = [
    "ingress-class",
    "ingress.class",
    "ingress-class-name",
    "providers.kubernetesingress.ingressclass",
];

/// The arguments of a controller: those of its pods, and those of the pods that control them from
/// another workload of the same namespace.
pub(super) struct Arguments<'a> {
    all: Vec<&'a Text>,
    environments: Vec<&'a Labels>,
    containers: Vec<&'a Container>,
    pub(super) namespace: &'a Name,
}

impl<'a> Arguments<'a> {
    pub(super) fn of(candidate: &'a Candidate<'_>, objects: &'a Objects) -> Self {
        let mut specs = vec![candidate.template];
        if let Some(is_it) = candidate.product.steered_by {
            let steers = |spec: &&PodSpec| spec.containers.iter().any(is_it);
            let is_beside = |name: &NamespacedName| name.namespace == candidate.namespace;
            let workloads = objects.workloads.0.values();
            let workloads = workloads.filter(|workload| is_beside(&workload.name));
            let pods = objects.pods.0.values().filter(|pod| is_beside(&pod.name));
            let templates = workloads.map(|workload| &*workload.template);
            let found = templates.chain(pods.map(|pod| &*pod.spec)).find(steers);
            specs.extend(found);
        }
        let containers = || specs.iter().copied().flat_map(|spec| &spec.containers);
        Self {
            all: containers().flat_map(|container| &container.arguments).collect(),
            environments: containers().map(|container| &container.environment).collect(),
            containers: containers().collect(),
            namespace: &candidate.namespace,
        }
    }

    /// Returns the value of an argument, in any case of its name: `--name=value` or `--name value`.
    /// The value of a switch without one is empty. One controller also takes arguments from its
    /// environment.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let variable = || format!("CONTROLLER_{}", name.to_ascii_uppercase().replace('-', "_"));
        value(self.all.iter().copied(), name).or_else(|| self.variable(&variable()))
    }

    /// Returns the value of an environment variable.
    pub(super) fn variable(&self, name: &str) -> Option<&'a str> {
        self.environments.iter().find_map(|environment| environment.get(name))
    }

    /// Returns whether a switch is on.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !value.eq_ignore_ascii_case("false"))
    }

    /// Returns whether an argument begins with this name, in any case.
    pub(super) fn has_below(&self, name: &str) -> bool {
        self.below(name).next().is_some()
    }

    /// Iterates over the rests of the arguments that begin with this name, in any case.
    pub(super) fn below<'n>(&'n self, name: &'n str) -> impl Iterator<Item = &'a str> + 'n {
        self.all.iter().filter_map(move |argument| {
            let bare = argument.trim_start_matches('-');
            let (begin, rest) = bare.split_at_checked(name.len())?;
            begin.eq_ignore_ascii_case(name).then_some(rest)
        })
    }

    /// Returns whether the arguments name the class of an Ingress, or the controller of the class.
    pub(super) fn name_class(&self, ask: &Ask<'_>) -> bool {
        let has = |name: &str, wanted: &str| {
            let own = self.get(name).unwrap_or_default();
            own.split(',').any(|own| own == wanted)
        };
        let controller = ask.class.map(|class| &*class.controller);
        controller.is_some_and(|controller| has("controller-class", controller))
            || ask.class_name().is_some_and(|name| BY_NAME.iter().any(|key| has(key, name)))
    }

    /// Returns the namespaces whose Ingresses the controller serves, separated by commas. Returns
    /// `None` for all namespaces.
    pub(super) fn namespaces(&self) -> Option<&'a str> {
        let mut named = NAMESPACES.iter().filter_map(|key| self.get(key));
        named.find(|names| !names.is_empty())
    }

    /// Returns the class that an argument names as the one to serve.
    pub(super) fn class_by_name(&self) -> Option<&'a str> {
        BY_NAME.iter().find_map(|key| self.get(key)).filter(|class| !class.is_empty())
    }

    /// Returns the release of the controller, by the tag of an image whose name fulfils a
    /// condition.
    pub(super) fn release_of(&self, is_it: impl Fn(&Container) -> bool) -> Option<(u16, u16)> {
        self.version_of(is_it).map(|version| (version.major, version.minor))
    }

    /// Returns the version of the controller, by the tag of an image whose name fulfils a condition.
    pub(super) fn version_of(&self, is_it: impl Fn(&Container) -> bool) -> Option<Version> {
        let container = self.containers.iter().find(|container| is_it(container))?;
        image::tag(&container.image)?.parse().ok()
    }

    /// Returns the object that an argument names as `namespace/name`. Without a namespace, or with
    /// a variable in its place, the object is in the namespace of the pods.
    pub(super) fn object(&self, name: &str) -> Option<NamespacedName> {
        let value = self.get(name)?;
        let (namespace, name) = value.split_once('/').unwrap_or(("$", value));
        let namespace =
            if namespace.starts_with('$') { self.namespace.as_str() } else { namespace };
        NamespacedName::new(namespace, name).ok()
    }
}

/// Returns the value of an argument of a program, as [`Arguments::get`] does.
pub(in crate::derive) fn value<'a>(
    all: impl IntoIterator<Item = &'a Text>,
    name: &str,
) -> Option<&'a str> {
    let mut all = all.into_iter().peekable();
    while let Some(argument) = all.next() {
        let bare = argument.trim_start_matches('-');
        if bare.len() == argument.len() {
            continue;
        }
        match bare.split_once('=') {
            Some((own, value)) if own.eq_ignore_ascii_case(name) => return Some(value),
            None if bare.eq_ignore_ascii_case(name) => {
                let next = all.peek().filter(|next| !next.starts_with('-'));
                return Some(next.map_or("", |next| &***next));
            }
            _ => {}
        }
    }
    None
}
