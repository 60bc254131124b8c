//! Weighs findings whose only callers are the cluster's own pods.
//!
//! A scan walks the calls of every pod, and kube-proxy's pods hardly ever call an application. If
//! only they fail where applications run, too, that is a warning.

use uturn_model::Cluster;

use crate::callers::is_of_system;
use crate::clients::Example;
use crate::finding::Finding;
use crate::{Code, Severity};

/// Lowers errors that only the cluster's own pods meet, at objects of applications.
pub(super) fn weigh(cluster: &Cluster, findings: &mut [Finding]) {
    let mut pods = cluster.pods.values();
    if !pods.any(|pod| pod.is_alive() && !pod.ips.is_empty() && !is_of_system(pod)) {
        return;
    }
    for finding in findings.iter_mut().filter(|finding| finding.severity == Severity::Error) {
        if is_of_application(finding) && has_system_callers_only(cluster, finding) {
            finding.severity = Severity::Warning;
        }
    }
}

/// Returns whether an application's object was called and did not answer. The API server's Service
/// is called by the cluster's own pods above all.
fn is_of_application(finding: &Finding) -> bool {
    let subject = &finding.subject;
    let is_api_server = *subject.name == *"kubernetes";
    let is_own = |name: &uturn_model::Name| !name.as_str().starts_with("kube-");
    matches!(finding.example, Example::Scanned(_))
        && finding.code != Code::NoEndpoints
        && !is_api_server
        && subject.namespace.as_ref().is_some_and(is_own)
}

fn has_system_callers_only(cluster: &Cluster, finding: &Finding) -> bool {
    let clients = &finding.clients;
    let is_system = |name| cluster.pods.get(name).is_some_and(is_of_system);
    clients.others().is_empty() && clients.pod_count() > 0 && clients.iter().all(is_system)
}
