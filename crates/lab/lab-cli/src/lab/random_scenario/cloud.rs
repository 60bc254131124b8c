//! The clouds that drawn clusters are in, and the settings that they request of a cloud's
//! controllers.

use serde_json::{Value, json};
use uturn_clouds::cloud::{self, CloudEntry, Setting, SettingOf};
use uturn_dice::Dice;

/// Draws a cloud: every second time one with a model, else one whose load balancers are described
/// by products.
pub(super) fn random(dice: &mut Dice) -> &'static CloudEntry {
    let modelled = dice.once_in(2);
    let is_wanted = |entry: &&CloudEntry| {
        if modelled {
            entry.model.is_some()
        } else {
            entry.model.is_none() && !entry.products.is_empty()
        }
    };
    let all: Vec<&'static CloudEntry> = cloud::ALL.into_iter().filter(is_wanted).collect();
    all[dice.below(all.len())]
}

/// Sets the annotation by which a Service or an Ingress requests a setting, if the cloud has one.
pub(super) fn annotate(
    cloud: &CloudEntry,
    annotations: &mut Value,
    of: SettingOf,
    setting: Setting,
    value: impl Into<Value>,
) {
    if let Some(key) = cloud.model.and_then(|model| model.annotation(setting, of)) {
        annotations[key] = value.into();
    }
}

/// Returns the annotations of a Service that gets a load balancer of a product, and its class.
pub(super) fn ask_for_product(dice: &mut Dice, cloud: &CloudEntry) -> (Value, Option<String>) {
    let mut annotations = json!({});
    let samples = cloud.samples;
    if let Some(sample) = samples.get(dice.below(samples.len() + 2)) {
        for (key, value) in *sample {
            annotations[*key] = (*value).into();
        }
    }
    // A class that ends with a slash is only the beginning of a class. If the product of a class is
    // not described, nothing can be predicted.
    let is_described = |name: &str| cloud.products.iter().any(|product| product.name() == name);
    let classes = cloud.markers.load_balancer_classes.iter();
    let classes: Vec<&str> = classes
        .filter(|(class, product)| !class.ends_with('/') && is_described(product))
        .map(|(class, _)| *class)
        .collect();
    let class = (!classes.is_empty() && dice.once_in(4)).then(|| dice.choose(&classes).to_owned());
    (annotations, class)
}

/// Returns the object in which properties of an owner's listeners are set. Returns `None` if the
/// cloud has no such objects.
pub(super) fn overrides(cloud: &CloudEntry, owner: &str, balancer: &Value) -> Option<Value> {
    let object = cloud.overrides.as_ref()?;
    Some(json!({
        "apiVersion": object.versions[0],
        "kind": object.kind,
        "metadata": { "name": format!("{owner}-lb"), "namespace": "shop" },
        "spec": { "loadBalancer": balancer },
    }))
}
