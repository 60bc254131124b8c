//! Registers nodes, and keeps them alive with leases.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Error};
use serde_json::{Value, json};
use tokio::time::{Duration, interval};

use super::super::cloud::instance;
use super::super::manifests::name;
use super::status;

/// The field manager that registers nodes.
const MANAGER: &str = "uturn-lab-kubelet-stand-in";

/// The label of every node of a cluster in a box.
const LABEL: &str = "lab.uturn.dev/kubelet";

/// The namespace of leases.
const LEASES: &str = "kube-node-lease";

/// The duration of a lease, and the time between renewals: those of a kubelet.
const LEASE_SECONDS: u64 = 40;
const RENEWAL: Duration = Duration::from_secs(10);

/// Returns the node object that is registered.
pub(super) fn object(manifest: &Value) -> Value {
    let mut metadata = json!({
        "name": name(manifest),
        "labels": {
            "kubernetes.io/hostname": name(manifest), "kubernetes.io/os": "linux",
            "kubernetes.io/arch": status::architecture(), LABEL: "stand-in",
        },
    });
    for part in ["labels", "annotations"] {
        for (key, value) in manifest["metadata"][part].as_object().into_iter().flatten() {
            metadata[part][key] = value.clone();
        }
    }
    let mut spec = json!({});
    for key in ["podCIDR", "podCIDRs", "taints", "unschedulable", "providerID"] {
        if let Some(value) = manifest["spec"].get(key) {
            spec[key] = value.clone();
        }
    }
    let addresses = manifest["status"]["addresses"].as_array().into_iter().flatten();
    let mut own = addresses.filter(|address| address["type"] == "InternalIP");
    let address = own.find_map(|own| own["address"].as_str()?.parse().ok());
    if let Some(address) = address.filter(|_| spec.get("providerID").is_none()) {
        let zone = &metadata["labels"]["topology.kubernetes.io/zone"];
        let zone = zone.as_str().unwrap_or_default();
        spec["providerID"] = json!(format!("qcloud:///{zone}/{}", instance(address)));
    }
    json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec})
}

/// Registers nodes as ready.
pub(crate) async fn register(
    client: &Client,
    manifests: &[Value],
    kernel: &str,
    proxy: Option<&str>,
) -> Result<(), Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    let params = PatchParams::apply(MANAGER).force();
    for manifest in manifests {
        nodes.patch(name(manifest), &params, &Patch::Apply(object(manifest))).await?;
        let now = Timestamp::now().to_string();
        let patch = json!({"status": status::of_node(manifest, kernel, proxy, &now)});
        nodes
            .patch_status(name(manifest), &PatchParams::default(), &Patch::Strategic(patch))
            .await?;
    }
    Ok(())
}

/// Renews the leases of nodes for as long as the future is polled.
pub(crate) async fn renew(client: &Client, names: &[String]) {
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASES);
    let params = PatchParams::apply(MANAGER).force();
    let mut ticks = interval(RENEWAL);
    loop {
        ticks.tick().await;
        for node in names {
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": node},
                "spec": {
                    "holderIdentity": node, "leaseDurationSeconds": LEASE_SECONDS,
                    "renewTime": now_in_microseconds(),
                },
            });
            // If this fails, the next renewal comes before the lease is over.
            let _ = leases.patch(node, &params, &Patch::Apply(lease)).await;
        }
    }
}

/// Returns the time as a `MicroTime`, which has exactly six digits after the point.
fn now_in_microseconds() -> String {
    format!("{:.6}", Timestamp::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_keeps_its_labels_and_is_marked() {
        let manifest = json!({
            "metadata": {"name": "n1", "labels": {"zone": "z1"}, "uid": "x"},
            "spec": {"podCIDR": "10.1.1.0/24"}, "status": {"conditions": []},
        });
        let node = object(&manifest);
        assert_eq!(node["metadata"]["labels"]["zone"], "z1");
        assert_eq!(node["metadata"]["labels"][LABEL], "stand-in");
        assert_eq!(node["spec"], json!({"podCIDR": "10.1.1.0/24"}));
        assert_eq!(node["metadata"].get("uid"), None);
    }

    #[test]
    fn times_have_six_digits() {
        let now = now_in_microseconds();
        let (_, fraction) = now.split_once('.').unwrap();
        assert_eq!((fraction.len(), fraction.ends_with('Z')), (7, true), "{now}");
    }
}
