//! Sets the contents of files that ConfigMaps mount into pods. ConfigMaps that no pod mounts are
//! dropped.

use std::collections::BTreeSet;
use std::sync::Arc;

use uturn_model::NamespacedName;
use uturn_model::pod::ConfigFile;

use crate::decode::objects::Objects;

/// Sets the texts of the pods' files.
pub(super) fn complete(objects: &mut Objects) {
    let maps = std::mem::take(&mut objects.configurations);
    let mut used = BTreeSet::new();
    let pods = objects.pods.0.values_mut().filter(|pod| !pod.spec.files.is_empty());
    for pod in pods {
        let mut files = Vec::new();
        let spec = Arc::make_mut(&mut pod.spec);
        for file in std::mem::take(&mut spec.files) {
            let name = NamespacedName::new(pod.name.namespace.as_str(), &file.config_map).ok();
            let Some((name, texts)) = name.and_then(|name| maps.get_key_value(&name)) else {
                files.push(file);
                continue;
            };
            used.insert(name);
            match &file.key {
                Some(key) => {
                    let found = texts.iter().find(|(name, _)| name == key);
                    let text = found.map(|(_, text)| text.clone());
                    files.push(ConfigFile { text, ..file });
                }
                None => files.extend(texts.iter().map(|(key, text)| ConfigFile {
                    path: format!("{}/{key}", file.path.trim_end_matches('/')).into(),
                    key: Some(key.clone()),
                    text: Some(text.clone()),
                    ..file.clone()
                })),
            }
        }
        spec.files = files;
    }
    let unused = maps.keys().filter(|name| !used.contains(name)).count();
    (0..unused).for_each(|_| objects.skip("v1/ConfigMap"));
}
