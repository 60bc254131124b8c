//! Applies objects as `kubectl apply --server-side` does.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::Ingress;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiResource, Scope, pinned_kind};
use kube::{Client, Error};
use serde_json::{Value, json};

use super::manifests::{kind, name, namespace, title};
use super::shown::Owner;

/// The field manager of the applied fields.
const MANAGER: &str = "uturn-lab";

/// Applies objects in order. Returns a line for each that the API server refuses.
pub(super) async fn apply(client: &Client, objects: &[Value]) -> Vec<String> {
    let mut resources = BTreeMap::new();
    let mut refused = Vec::new();
    for object in objects {
        if let Err(error) = apply_object(client, object, &mut resources).await {
            refused.push(format!("not applied: {}: {error}", title(object)));
        }
    }
    refused
}

/// Returns the UID of an object with a load balancer, or `None` if the object does not exist.
pub(super) async fn uid(client: &Client, owner: &Owner) -> Result<Option<String>, Error> {
    let name = &owner.name;
    let uid = if owner.is_ingress {
        let api = Api::<Ingress>::namespaced(client.clone(), &owner.namespace);
        api.get_opt(name).await?.and_then(|found| found.metadata.uid)
    } else {
        let api = Api::<Service>::namespaced(client.clone(), &owner.namespace);
        api.get_opt(name).await?.and_then(|found| found.metadata.uid)
    };
    Ok(uid)
}

/// The resource of a kind, and whether its objects are in namespaces.
type Resources = BTreeMap<(String, String), (ApiResource, bool)>;

async fn apply_object(
    client: &Client,
    object: &Value,
    resources: &mut Resources,
) -> Result<(), Error> {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let key = (version.to_owned(), kind(object).to_owned());
    let (resource, is_namespaced) = match resources.get(&key) {
        Some(found) => found.clone(),
        None => {
            let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
            let kind = GroupVersionKind::gvk(group, version, kind(object));
            let (resource, capabilities) = pinned_kind(client, &kind).await?;
            let found = (resource, capabilities.scope == Scope::Namespaced);
            resources.insert(key, found.clone());
            found
        }
    };
    let api: Api<DynamicObject> = if is_namespaced {
        Api::namespaced_with(client.clone(), namespace(object), &resource)
    } else {
        Api::all_with(client.clone(), &resource)
    };
    let mut spec = object.clone();
    let status = spec.as_object_mut().and_then(|fields| fields.remove("status"));
    let params = PatchParams::apply(MANAGER).force();
    api.patch(name(object), &params, &Patch::Apply(spec)).await?;
    if let Some(status) = status {
        let patch = Patch::Merge(json!({"status": status}));
        api.patch_status(name(object), &PatchParams::default(), &patch).await?;
    }
    Ok(())
}
