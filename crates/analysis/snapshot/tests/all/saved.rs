//! Bundles of what an API server gave: an object that is not understood is not known, as it is when
//! the cluster is read itself.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::path::PathBuf;
use std::{env, fs, process};

use uturn_model::Extent;
use uturn_snapshot::bundle::{BundleManifest, BundleWriter, MANIFEST, ObjectsManifest};
use uturn_snapshot::{Fault, Manifests};

const FAULTY: &str = r#"{"apiVersion": "v1", "kind": "List", "items": [
{"apiVersion": "cloud.tencent.com/v1alpha1", "kind": "TkeServiceConfig", "metadata": {"name": "web-config", "namespace": "shop"}, "spec": {"loadBalancer": {"l7Listeners": [{"protocol": "HTTP", "port": "80"}]}}},
{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"clusterIP": "10.96.0.9", "ports": [{"port": 80}]}}
]}
"#;

/// Loads a bundle with one file, written by `collect` or put together by hand.
fn loaded(
    name: &str,
    text: &str,
    is_collected: bool,
) -> Result<uturn_snapshot::Loaded, Vec<Fault>> {
    let path: PathBuf = env::temp_dir().join(format!("uturn-saved-{}-{name}", process::id()));
    let mut bundle = BundleWriter::create(&path).unwrap();
    bundle.add("objects/services.json", text.as_bytes()).unwrap();
    if is_collected {
        let mut manifest = BundleManifest::new();
        let mut objects = ObjectsManifest::default();
        objects.set_listing(Extent::OBJECTS, &[]);
        manifest.objects = Some(objects);
        bundle.add(MANIFEST, manifest.text().as_bytes()).unwrap();
    }
    bundle.finish().unwrap();
    let (manifests, faults) = Manifests::gather(&[], std::slice::from_ref(&path));
    assert!(faults.is_empty(), "{faults:?}");
    fs::remove_dir_all(&path).unwrap();
    manifests.load()
}

#[test]
fn an_object_that_is_not_understood() {
    let cluster = loaded("collected", FAULTY, true).unwrap().cluster;
    assert_eq!(cluster.services.len(), 1);
    let [unread] = &cluster.unread[..] else { panic!("{:?}", cluster.unread) };
    let what = "spec.loadBalancer.l7Listeners[0].port of TkeServiceConfig shop/web-config";
    assert!(unread.what.ends_with(what), "{unread:?}");
    assert!(!unread.is_forbidden());
    let note = cluster.supposed.iter().find(|one| one.subject.to_string().ends_with(what)).unwrap();
    assert!(!note.to_string().contains("rights"), "{note}");
    // What people put together is theirs to cure.
    assert!(loaded("by-hand", FAULTY, false).is_err());
    // What is no JSON is no object.
    assert!(loaded("broken", "{\"apiVersion\": ", true).is_err());
}
