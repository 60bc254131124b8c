//! Finds the ConfigMaps that a container reads: as files of a volume, or as variables.

use uturn_document::Node;
use uturn_model::Text;
use uturn_model::pod::ConfigSource;

use super::lenient::{items, text};

/// Returns the ConfigMaps that a container reads, each once. What is written wrong is left out: it
/// is reported where files of servers are read, or by the API server.
pub(super) fn read(spec: &Node<'_>, container: &Node<'_>) -> Vec<ConfigSource> {
    let mut all: Vec<ConfigSource> = Vec::new();
    for source in items(container, "envFrom") {
        all.extend(source.get("configMapRef").and_then(|map| of(map, None)));
    }
    for variable in items(container, "env") {
        let from = variable.get("valueFrom").and_then(|from| from.get("configMapKeyRef"));
        all.extend(from.and_then(|map| of(map, Some(text(map, "key")?))));
    }
    for mount in items(container, "volumeMounts") {
        let name = text(mount, "name");
        let volume = items(spec, "volumes").iter().find(|volume| text(volume, "name") == name);
        let Some(volume) = volume else { continue };
        if let Some(map) = volume.get("configMap") {
            of_volume(map, mount, &mut all);
        }
        let projected = volume.get("projected");
        for source in projected.into_iter().flat_map(|node| items(node, "sources")) {
            if let Some(map) = source.get("configMap") {
                of_volume(map, mount, &mut all);
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Adds what a mount shows of a ConfigMap: all keys, those that become files, or one of them.
fn of_volume(map: &Node<'_>, mount: &Node<'_>, all: &mut Vec<ConfigSource>) {
    let files: Vec<(&str, &str)> = items(map, "items")
        .iter()
        .filter_map(|item| Some((text(item, "key")?, text(item, "path")?)))
        .collect();
    match (text(mount, "subPath"), files.is_empty()) {
        (Some(sub), _) => {
            let item = files.iter().find(|(_, path)| *path == sub);
            all.extend(of(map, Some(item.map_or(sub, |(key, _)| key))));
        }
        (None, true) => all.extend(of(map, None)),
        (None, false) => all.extend(files.iter().filter_map(|(key, _)| of(map, Some(key)))),
    }
}

fn of(map: &Node<'_>, key: Option<&str>) -> Option<ConfigSource> {
    Some(ConfigSource { config_map: text(map, "name")?.into(), key: key.map(Text::from) })
}
