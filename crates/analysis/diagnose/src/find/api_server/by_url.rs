//! Finds webhooks whose URL has the name of a Service, which the API server cannot resolve: it asks
//! the name servers of its machine.

use uturn_model::{Client, Destination, Flow, Mechanism, Name, Outcome, Protocol, Share, UrlCall};
use uturn_path::Engine;

use super::super::object_faults::about;
use super::super::service_reference::ServiceReference;
use super::walked::{Callers, callers, server_pods};
use super::{effect, severity};
use crate::clients::{Clients, Example};
use crate::finding::Finding;
use crate::{Code, Severity};

pub(super) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    let default = Name::new("default").expect("a constant name");
    let mut all = Vec::new();
    for calls in &cluster.api_server_calls {
        for call in &calls.by_url {
            let named = ServiceReference::of(cluster, &default, &call.host);
            let Some(named) = named.filter(|named| named.is_qualified) else { continue };
            let Some(from) = server(engine, call) else { continue };
            let UrlCall { called, reason, host, port } = call;
            let what = format!(
                "the API server asks the name servers of its machine for {host}, and they know no \
                 Services: clientConfig.service would name {} in place of https://{host}:{port}. {}",
                named.service.object(),
                effect(called, reason)
            );
            let mut finding = about(Code::ApiServerCallFails, calls.object(), &calls.origin, what);
            finding.severity = severity(reason);
            finding.targets = vec![format!("{host}:{port}")];
            finding.clients = Clients::other(Clients::API_SERVER);
            finding.share_failing = Share::ALL;
            finding.outcome = Outcome::NameNotFound;
            finding.mechanism = Some(Mechanism::NameUnresolved);
            match from {
                Server::Here(flow) => finding.example = Example::Flow(flow),
                Server::Elsewhere => {
                    let condition = "the API server does not ask the cluster's name servers";
                    finding.conditions.push(condition.into());
                    finding.severity = finding.severity.min(Severity::Warning);
                }
            }
            all.push(finding);
        }
    }
    all
}

/// An API server that does not resolve a name.
enum Server {
    /// It runs on a node.
    Here(Flow),
    /// It is outside the cluster.
    Elsewhere,
}

/// Returns an API server that does not resolve the host of a URL.
fn server(engine: &Engine<'_>, call: &UrlCall) -> Option<Server> {
    let cluster = engine.cluster();
    let flow = |from: Client| {
        let to = Destination::Host(call.host.clone(), call.port);
        Flow { from, to, protocol: Protocol::Tcp }
    };
    let pods: Vec<Client> = server_pods(cluster).map(|pod| Client::Pod(pod.name.clone())).collect();
    let from = match callers(cluster) {
        _ if !pods.is_empty() => pods,
        Callers::Nodes(nodes) => nodes.into_iter().map(Client::Node).collect(),
        Callers::Outside(known) => return (!known.is_empty()).then_some(Server::Elsewhere),
    };
    let is_lost = |flow: &Flow| engine.resolve(flow).is_ok_and(|target| target.is_name_lost());
    from.into_iter().map(flow).find(is_lost).map(Server::Here)
}
