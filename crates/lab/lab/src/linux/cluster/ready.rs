//! Checks whether the applied workloads have ready pods.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::api::{Api, ListParams};
use kube::{Client, Error, Resource};
use serde::Serialize;
use serde_json::Value;

use super::manifests::title;
use super::shown::is_served;

/// The annotation with the conditions of an Ingress.
const CONDITIONS: &str = "ingress.cloud.tencent.com/status.conditions";

/// The number of ready pods, and a line for each workload, pod and load balancer that is not ready.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Readiness {
    pub(super) pods: usize,
    pub(super) missing: Vec<String>,
}

/// Reads the readiness from the API server.
pub(super) async fn readiness(client: &Client) -> Result<Readiness, Error> {
    let mut workloads = list::<Deployment>(client).await?;
    workloads.extend(list::<StatefulSet>(client).await?);
    workloads.extend(list::<DaemonSet>(client).await?);
    let mut readiness = judge(&workloads, &list::<Pod>(client).await?);
    let mut balanced = list::<Service>(client).await?;
    balanced.extend(list::<Ingress>(client).await?);
    readiness.missing.extend(balanced.iter().filter_map(without_balancer));
    Ok(readiness)
}

/// Returns a line for an object that should have a load balancer's address, but has none yet.
fn without_balancer(object: &Value) -> Option<String> {
    let addresses = object["status"]["loadBalancer"]["ingress"].as_array();
    if !is_served(object) || addresses.is_some_and(|addresses| !addresses.is_empty()) {
        return None;
    }
    let written = object["metadata"]["annotations"][CONDITIONS].as_str();
    let written: Option<Value> = written.and_then(|text| serde_json::from_str(text).ok());
    let conditions = written.unwrap_or_else(|| object["status"]["conditions"].clone());
    let mut conditions = conditions.as_array().into_iter().flatten();
    let why = conditions.find_map(|condition| condition["message"].as_str());
    let why = why.unwrap_or("the operator has not seen it");
    Some(format!("no load balancer: {}: {why}", title(object)))
}

async fn list<K>(client: &Client) -> Result<Vec<Value>, Error>
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    let all = Api::<K>::all(client.clone()).list(&ListParams::default()).await?;
    Ok(all.items.iter().filter_map(|object| serde_json::to_value(object).ok()).collect())
}

fn judge(workloads: &[Value], pods: &[Value]) -> Readiness {
    let mut readiness = Readiness::default();
    for workload in workloads {
        let number = |path: &str| workload.pointer(path).and_then(Value::as_i64);
        let (wanted, ready) = match workload["kind"].as_str() {
            Some("DaemonSet") => ("/status/desiredNumberScheduled", "/status/numberReady"),
            _ => ("/spec/replicas", "/status/readyReplicas"),
        };
        let wanted = number(wanted).unwrap_or_default();
        let ready = number(ready).unwrap_or_default();
        let is_seen = number("/status/observedGeneration") >= number("/metadata/generation");
        if !is_seen || ready < wanted {
            let title = title(workload);
            readiness.missing.push(format!("not ready: {title}: {ready} of {wanted} pods"));
        }
    }
    for pod in pods {
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        let mut ready = conditions.filter(|condition| condition["type"] == "Ready");
        if ready.any(|condition| condition["status"] == "True") {
            readiness.pods += 1;
            continue;
        }
        let state = &pod["status"]["containerStatuses"][0]["state"]["waiting"]["message"];
        let why = state.as_str().or_else(|| pod["status"]["conditions"][0]["message"].as_str());
        let why = why.unwrap_or("it is pending");
        readiness.missing.push(format!("not ready: {}: {why}", title(pod)));
    }
    readiness
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_without_a_load_balancer_says_why() {
        let mut service = json!({
            "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"type": "LoadBalancer"},
            "status": {"conditions": [{"type": "Ready", "message": "E4037: no subnet"}]},
        });
        let expected = "no load balancer: Service shop/web: E4037: no subnet";
        assert_eq!(without_balancer(&service).as_deref(), Some(expected));
        service["status"]["loadBalancer"] = json!({"ingress": [{"ip": "10.0.0.65"}]});
        assert_eq!(without_balancer(&service), None);
    }

    #[test]
    fn a_workload_is_ready_with_all_its_pods() {
        let mut deployment = json!({
            "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop", "generation": 1},
            "spec": {"replicas": 2}, "status": {"readyReplicas": 2, "observedGeneration": 1},
        });
        let pod = |ready: &str| {
            let conditions = json!([{"type": "Ready", "status": ready}]);
            json!({"kind": "Pod", "metadata": {"name": "a"}, "status": {"conditions": conditions}})
        };
        let found = judge(&[deployment.clone()], &[pod("True"), pod("True")]);
        assert_eq!(found, Readiness { pods: 2, missing: Vec::new() });
        deployment["metadata"]["generation"] = json!(2);
        let found = judge(&[deployment], &[pod("False")]);
        assert_eq!(found.pods, 0);
        let lines = ["Deployment shop/web: 2 of 2 pods", "Pod default/a: it is pending"];
        assert_eq!(found.missing, lines.map(|line| format!("not ready: {line}")));
    }
}
