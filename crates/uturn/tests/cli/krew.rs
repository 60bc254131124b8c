//! The manifest that krew installs the plugin from, by the rules that krew has for it.

use std::fs;

use serde_json::Value;
use uturn_snapshot::{Source, json_objects};

use super::common::root;

#[test]
fn the_manifest_has_the_form_that_krew_asks_for() {
    let text = fs::read_to_string(root().join("packaging/krew/uturn.yaml")).unwrap();
    let mut all = json_objects(&[Source { name: "uturn.yaml".into(), text }]).unwrap();
    let plugin = all.remove(0);
    assert!(all.is_empty());
    let fields = |value: &Value| -> Vec<String> {
        value.as_object().unwrap().keys().map(ToOwned::to_owned).collect()
    };
    assert_eq!(fields(&plugin), ["apiVersion", "kind", "metadata", "spec"]);
    assert_eq!(plugin["apiVersion"], "krew.googlecontainertools.github.com/v1alpha2");
    assert_eq!(plugin["kind"], "Plugin");
    // The name of the file, and what is typed behind kubectl.
    assert_eq!(plugin["metadata"], serde_json::json!({"name": "uturn"}));
    let spec = &plugin["spec"];
    let known = ["version", "homepage", "shortDescription", "description", "caveats", "platforms"];
    assert_eq!(fields(spec), known);
    assert_eq!(spec["version"], "v@VERSION@");
    let short = spec["shortDescription"].as_str().unwrap();
    // krew's own guide wants up to 50 characters, and no full stop.
    assert!(short.len() <= 50 && !short.contains('\n') && !short.ends_with('.'), "{short}");
    let platforms = spec["platforms"].as_array().unwrap();
    let mut archs = Vec::new();
    for platform in platforms {
        assert_eq!(fields(platform), ["selector", "uri", "sha256", "bin"]);
        assert_eq!(platform["bin"], "uturn");
        let labels = &platform["selector"]["matchLabels"];
        assert_eq!(fields(labels), ["os", "arch"]);
        assert_eq!(labels["os"], "linux");
        let arch = labels["arch"].as_str().unwrap();
        assert_eq!(platform["uri"], format!("@BASE_URL@/uturn-@VERSION@-linux-{arch}.tar.gz"),);
        assert_eq!(platform["sha256"], format!("@SHA256_{}@", arch.to_uppercase()));
        archs.push(arch);
    }
    // No two of them fit one machine.
    assert_eq!(archs, ["amd64", "arm64"]);
}
