//! States in findings why a Service has no endpoint, and how severe that is.
//!
//! Without endpoints every call is refused. This is an error if the cluster was read in full and
//! something states that the Service is called, or if pods are there that fit but for a slip. It is
//! a warning otherwise: Services of leaders, of canaries and of jobs have no pods most of the time.
//! Where nothing states a call, and the workload is scaled to zero or its pods have ended, it is as
//! the objects ask for.

use std::collections::HashMap;

use uturn_model::ingress::Backend;
use uturn_model::service::Policy;
use uturn_model::{
    Cluster, Destination, Evidence, Flow, NamespacedName, ObjectKind, Service, Share,
};
use uturn_path::{Engine, places};

use super::scanned::service_behind;
use crate::clients::Example;
use crate::finding::Finding;
use crate::lack::{Lack, caller, has_endpoint};
use crate::{Code, Observation, Severity};

/// The namespace of Kubernetes' own programs.
const SYSTEM: &str = "kube-system";

/// The maximum number of pods and workloads that are looked at for all Services together.
const MAX_LOOKED_AT: usize = 5_000_000;

pub(super) fn explain(engine: &Engine<'_>, findings: &mut [Finding]) {
    let cluster = engine.cluster();
    let of_each = cluster.pods.len() + cluster.workloads.len();
    let mut left = MAX_LOOKED_AT;
    let mut known: HashMap<NamespacedName, Option<(Lack, Option<Severity>)>> = HashMap::new();
    for finding in findings {
        let is_walked = finding.code == Code::NoEndpoints && !finding.share_failing.is_none();
        let Some(service) = lacking(engine, finding).filter(|_| is_walked) else { continue };
        let of = || {
            // What is behind the first Services is mostly behind the others, too.
            let Some(rest) = left.checked_sub(of_each) else {
                return Some((Lack::unexamined(service, of_each), None));
            };
            left = rest;
            let lack = Lack::of(cluster, service)?;
            let severity = severity(cluster, service, &lack);
            Some((lack, severity))
        };
        let known = known.entry(service.name.clone()).or_insert_with(of);
        let Some((lack, severity)) = known else {
            finding.other_evidence.splice(0..0, local_lack(cluster, service, finding));
            continue;
        };
        finding.other_evidence.splice(0..0, lack.because.clone());
        let is_certain = finding.conditions.is_empty()
            && finding.share_failing.rounded() == Share::ALL.rounded();
        match severity {
            Some(Severity::Error) if !is_certain => {}
            Some(severity) => finding.severity = *severity,
            None => {}
        }
    }
}

/// Explains that policy Local leaves out the endpoints that a Service has: which kube-proxies take
/// themselves for others, and where the endpoints are.
fn local_lack(cluster: &Cluster, service: &Service, finding: &Finding) -> Vec<Observation> {
    let is_internal = matches!(
        &finding.example,
        Example::Scanned(met) if met.target.object.kind == ObjectKind::Service
            && met.target.is_cluster_ip()
    );
    let (policy, field) = if is_internal {
        (service.internal_policy, "internalTrafficPolicy")
    } else {
        (service.external_policy, "externalTrafficPolicy")
    };
    if policy != Policy::Local || !has_endpoint(cluster, service) {
        return Vec::new();
    }
    let slices = cluster.slices(&service.name).iter();
    let ready = slices.flat_map(|slice| &slice.endpoints).filter(|endpoint| endpoint.ready);
    let at = ready.filter_map(|endpoint| cluster.nodes.get(endpoint.node.as_ref()?));
    let mut misnamed =
        at.filter_map(|node| Some((node, node.proxy_name.as_ref()?, node.proxy_name_by.as_ref()?)));
    let misnamed = misnamed.next().map(|(node, name, (object, origin))| Observation {
        place: None,
        what: format!(
            "kube-proxy on {} takes itself for that of {name}: its own node's endpoints are not local \
             for it",
            node.name
        )
        .into(),
        by: Evidence::object(object.clone(), origin.clone()),
    });
    let places = Observation {
        place: None,
        what: format!("{field} is Local, and {}", places(cluster, service)).into(),
        by: Evidence::object(service.object(), service.origin.clone()),
    };
    misnamed.into_iter().chain([places]).collect()
}

/// Returns the Service that lacks endpoints.
fn lacking<'e>(engine: &'e Engine<'_>, finding: &Finding) -> Option<&'e Service> {
    match (finding.subject.kind, &finding.example) {
        (ObjectKind::Service, _) => {
            engine.cluster().services.get(&finding.subject.namespaced_name()?)
        }
        (_, Example::Scanned(met)) => {
            let (name, _) = service_behind(engine, &met.target)?;
            engine.cluster().services.get(name)
        }
        (_, Example::Flow(Flow { to: Destination::Ingress { name, .. }, .. })) => {
            only_backend(engine, name)
        }
        _ => None,
    }
}

/// Returns the Service of an Ingress that leads to no other.
fn only_backend<'e>(engine: &'e Engine<'_>, name: &NamespacedName) -> Option<&'e Service> {
    let ingress = engine.cluster().ingresses.get(name)?;
    let paths = ingress.rules.iter().flat_map(|rule| &rule.paths).map(|path| &path.backend);
    let mut names = paths.chain(&ingress.default_backend).map(|backend| match backend {
        Backend::Service { name, .. } if !backend.is_action() => Some(name),
        _ => None,
    });
    let first = names.next()??;
    if names.any(|other| other != Some(first)) {
        return None;
    }
    let name = NamespacedName { namespace: name.namespace.clone(), name: first.clone() };
    engine.cluster().services.get(&name)
}

/// Returns the severity of a lack, if it is not the usual one.
fn severity(cluster: &Cluster, service: &Service, lack: &Lack) -> Option<Severity> {
    let extent = &cluster.extent;
    let is_whole = extent.pods && extent.services && extent.endpoints;
    if lack.is_asked_for {
        return caller(cluster, service).is_none().then_some(Severity::Info);
    }
    let is_error = is_whole
        && !lack.may_be_intended
        && service.unjudged.is_empty()
        && service.name.namespace.as_str() != SYSTEM
        && (lack.has_slip || caller(cluster, service).is_some());
    is_error.then_some(Severity::Error)
}
