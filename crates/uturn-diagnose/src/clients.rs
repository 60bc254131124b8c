//! Who is hurt, and by which example it is shown.

use std::net::SocketAddr;

use uturn_model::{Client, Destination, Flow, Name, NamespacedName, Protocol};
use uturn_scan::{Pods, ScanResult};

/// Who is hurt by something.
#[derive(Clone, Debug, Default)]
pub struct Clients {
    /// Pods, where they are among them.
    pods: Option<Pods>,
    /// Others, by what they are called.
    others: Vec<&'static str>,
}

impl Clients {
    /// Whoever is outside the cluster.
    pub const OUTSIDE: &'static str = "outside";
    /// Everybody but those who were met.
    pub const OTHERS: &'static str = "all other clients";
    /// Health checks of load balancers.
    pub const PROBES: &'static str = "health checks";
    /// Everybody whose names the cluster's DNS resolves.
    pub const NAMES: &'static str = "every pod that asks the cluster's DNS";

    /// These pods.
    pub fn pods(pods: Pods) -> Self {
        Self { pods: Some(pods), others: Vec::new() }
    }

    /// Somebody who is no pod.
    pub fn other(who: &'static str) -> Self {
        Self { pods: None, others: vec![who] }
    }

    /// How many pods there are, and one for each of the others.
    pub fn len(&self) -> usize {
        self.pods.as_ref().map_or(0, Pods::len) + self.others.len()
    }

    /// Whether there is nobody.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The names of pods.
    pub fn iter(&self) -> impl Iterator<Item = &NamespacedName> {
        self.pods.iter().flat_map(Pods::iter)
    }

    /// The nodes that pods are on.
    pub fn nodes(&self) -> Vec<&Name> {
        self.pods.as_ref().map(Pods::nodes).unwrap_or_default()
    }

    /// How many are pods.
    pub fn pod_count(&self) -> usize {
        self.pods.as_ref().map_or(0, Pods::len)
    }

    /// Those who are no pods.
    pub fn others(&self) -> &[&'static str] {
        &self.others
    }

    /// All clients of these sets, each once. The sets must come from the same scan.
    pub fn union<'c>(sets: impl IntoIterator<Item = &'c Self>) -> Self {
        let mut sets: Vec<Self> = sets.into_iter().cloned().collect();
        // In pairs: adding one set after the other would copy the growing sum each time.
        while sets.len() > 1 {
            let merge = |pair: &[Self]| match pair {
                [left, right] => left.and(right),
                rest => rest[0].clone(),
            };
            sets = sets.chunks(2).map(merge).collect();
        }
        sets.pop().unwrap_or_default()
    }

    /// These and those, of the same scan.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let pods = match (&self.pods, &other.pods) {
            (Some(one), Some(two)) => Some(one.and(two)),
            (one, two) => one.clone().or_else(|| two.clone()),
        };
        let mut others = self.others.clone();
        others.extend(other.others.iter().filter(|one| !self.others.contains(one)));
        Self { pods, others }
    }
}

/// What shows a finding.
#[derive(Clone, Debug)]
pub enum Example {
    /// A class of pods met a target.
    Scanned(Box<ScanResult>),
    /// A flow.
    Flow(Flow),
    /// Health checks of a listener.
    Probes(SocketAddr, Protocol),
    /// Nothing that moves: it is written so.
    Written,
}

impl Example {
    /// The flow that was walked; of health checks, one to the same listener.
    pub fn flow(&self) -> Option<Flow> {
        match self {
            Self::Scanned(met) => Some(met.flow()),
            Self::Flow(flow) => Some(flow.clone()),
            Self::Probes(listener, protocol) => Some(Flow {
                from: Client::Outside(None),
                to: Destination::Address(*listener),
                protocol: *protocol,
            }),
            Self::Written => None,
        }
    }
}
