//! Whether what was applied is there: workloads whose pods are ready.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::serde::de::DeserializeOwned;
use kube::api::{Api, ListParams};
use kube::{Client, Error, Resource};
use serde::Serialize;
use serde_json::Value;

use super::manifests::title;

/// How many pods are ready, and a line for each workload and pod that is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Readiness {
    pub(super) pods: usize,
    pub(super) missing: Vec<String>,
}

/// Asks the API server.
pub(super) async fn readiness(client: &Client) -> Result<Readiness, Error> {
    let mut workloads = list::<Deployment>(client).await?;
    workloads.extend(list::<StatefulSet>(client).await?);
    workloads.extend(list::<DaemonSet>(client).await?);
    Ok(judge(&workloads, &list::<Pod>(client).await?))
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
