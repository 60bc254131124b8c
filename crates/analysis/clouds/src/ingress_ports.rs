//! An index of an Ingress's listeners by host and path, built once for all of its paths.

use std::collections::HashMap;

use uturn_model::lb::ListenerProtocol;
use uturn_model::{Cluster, Ingress, Port, Text};

use crate::cloud;
use crate::controller::wanted;

/// A port and its protocol.
type At = (Port, ListenerProtocol);

/// The listeners that an Ingress asks the cloud's controller for, by the hosts and paths that they
/// serve.
#[derive(Clone, Debug)]
pub struct IngressPorts {
    of_hosts: HashMap<Option<Text>, OfHost>,
    /// The first listener that serves anything.
    first: At,
    all: Vec<Port>,
}

/// The first listener for a host, and that for each of its paths.
#[derive(Clone, Debug)]
struct OfHost {
    first: At,
    paths: HashMap<Text, At>,
}

impl IngressPorts {
    /// Indexes the listeners of an Ingress that no controller in the cluster serves.
    pub fn of(cluster: &Cluster, ingress: &Ingress) -> Self {
        let listeners = wanted(cluster, ingress);
        let mut of_hosts: HashMap<Option<Text>, OfHost> = HashMap::new();
        let mut first = None;
        for listener in &listeners {
            let at = (listener.port, listener.protocol);
            for rule in listener.rules.iter().filter(|rule| rule.action.is_served()) {
                first.get_or_insert(at);
                let host = of_hosts.entry(rule.host.clone());
                let host = host.or_insert_with(|| OfHost { first: at, paths: HashMap::new() });
                if let Some((path, _)) = &rule.path {
                    host.paths.entry(path.clone()).or_insert(at);
                }
            }
        }
        let any = listeners.first().map(|any| (any.port, any.protocol));
        let first = first.or(any).unwrap_or((cloud::HTTP, ListenerProtocol::Http));
        Self { of_hosts, first, all: listeners.iter().map(|listener| listener.port).collect() }
    }

    /// Returns the port and the protocol of the first listener that serves a host and a path, or of
    /// the first that serves anything.
    pub fn serving(&self, host: Option<&Text>, path: Option<&Text>) -> At {
        let of_host = self.of_hosts.get(&host.cloned());
        let found = of_host.and_then(|of_host| match path {
            Some(path) => of_host.paths.get(path).copied(),
            None => Some(of_host.first),
        });
        found.unwrap_or(self.first)
    }

    /// Returns the port and the protocol of the first listener that serves anything.
    pub fn serving_anything(&self) -> At {
        self.first
    }

    /// Returns the ports of all listeners.
    pub fn all(&self) -> &[Port] {
        &self.all
    }
}
