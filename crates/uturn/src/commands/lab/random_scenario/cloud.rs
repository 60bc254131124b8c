//! The cloud that drawn clusters are in: the first that is modelled.

use serde_json::{Value, json};
use uturn_lb::cloud::{self, CloudEntry, CloudModel, Setting, SettingOf};

/// The cloud's entry and its model.
pub(super) fn drawn() -> (&'static CloudEntry, &'static dyn CloudModel) {
    cloud::modelled().next().expect("a cloud is modelled")
}

/// Sets the annotation by which a Service or an Ingress asks for something, if the cloud has
/// one.
pub(super) fn annotate(
    annotations: &mut Value,
    of: SettingOf,
    setting: Setting,
    value: impl Into<Value>,
) {
    let (_, model) = drawn();
    if let Some(key) = model.annotation(setting, of) {
        annotations[key] = value.into();
    }
}

/// The object in which properties of an owner's listeners are set. Returns `None` if the cloud
/// has no such objects.
pub(super) fn overrides(owner: &str, balancer: &Value) -> Option<Value> {
    let (entry, _) = drawn();
    let object = entry.overrides.as_ref()?;
    Some(json!({
        "apiVersion": object.versions[0],
        "kind": object.kind,
        "metadata": { "name": format!("{owner}-lb"), "namespace": "shop" },
        "spec": { "loadBalancer": balancer },
    }))
}
