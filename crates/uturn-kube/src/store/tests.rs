use serde_json::json;

use super::*;
use crate::kinds::NODE;

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

fn node(heartbeat: &str, ready: &str) -> DynamicObject {
    object(json!({ "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": "n1", "resourceVersion": heartbeat },
        "status": { "images": [heartbeat], "conditions": [
            { "type": "Ready", "status": ready, "lastHeartbeatTime": heartbeat }] } }))
}

fn slice(service: &str, address: &str) -> DynamicObject {
    object(json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": { "name": "s1", "namespace": "shop",
            "labels": { "kubernetes.io/service-name": service } },
        "endpoints": [{ "addresses": [address] }] }))
}

fn change(kind: &'static str, namespace: &str, name: &str) -> Change {
    Change { kind, key: (namespace.to_owned(), name.to_owned()) }
}

#[test]
fn signs_of_life_are_no_changes() {
    let mut store = Store::default();
    store.apply(&NODE, node("1", "True"));
    assert_eq!(store.take_changes(), [change("Node", "", "n1")].into());
    store.apply(&NODE, node("2", "True"));
    store.list(&NODE, vec![node("3", "True")]);
    assert_eq!(store.take_changes(), [].into());
    store.apply(&NODE, node("4", "Unknown"));
    assert_eq!(store.take_changes(), [change("Node", "", "n1")].into());
    store.list(&NODE, Vec::new());
    assert_eq!(store.take_changes(), [change("Node", "", "n1")].into());
}

#[test]
fn what_was_written_is_kept_until_the_watch_has_caught_up() {
    let service = |uid: &str, version: &str, port: u16| {
        object(json!({ "apiVersion": "v1", "kind": "Service",
            "metadata": { "name": "web", "namespace": "shop", "uid": uid,
                "resourceVersion": version },
            "spec": { "ports": [{ "port": port }] } }))
    };
    let json = |object: &DynamicObject| serde_json::to_value(object).unwrap();
    let key = ("shop".to_owned(), "web".to_owned());
    let port = |store: &Store| {
        store.object(&SERVICE, &key).map(|found| found["spec"]["ports"][0]["port"].clone())
    };
    let mut store = Store::default();
    // Of an object that is gone nothing is kept.
    store.wrote(&SERVICE, json(&service("a", "9", 9)));
    assert_eq!(port(&store), None);
    store.apply(&SERVICE, service("a", "9", 9));
    store.wrote(&SERVICE, json(&service("a", "11", 11)));
    assert!(!store.apply(&SERVICE, service("a", "10", 10)));
    assert_eq!(port(&store), Some(json!(11)));
    store.wrote(&SERVICE, json(&service("a", "10", 10)));
    assert_eq!(port(&store), Some(json!(11)));
    // Another object of that name, and an API server with an older revision.
    store.apply(&SERVICE, service("b", "8", 8));
    store.wrote(&SERVICE, json(&service("a", "12", 12)));
    assert_eq!(port(&store), Some(json!(8)));
    store.list(&SERVICE, vec![service("b", "5", 5)]);
    assert_eq!(port(&store), Some(json!(5)));
}

#[test]
fn a_change_of_an_endpoint_slice_is_one_of_its_service() {
    let mut store = Store::default();
    store.apply(&SLICE, slice("web", "10.1.1.1"));
    let web = ("shop".to_owned(), "web".to_owned());
    assert_eq!(store.take_changes(), [change("Service", "shop", "web")].into());
    assert_eq!(store.slices_of(&web).count(), 1);
    store.apply(&SLICE, slice("api", "10.1.1.1"));
    let both = [change("Service", "shop", "web"), change("Service", "shop", "api")];
    assert_eq!(store.take_changes(), both.into());
    assert_eq!(store.slices_of(&web).count(), 0);
    store.delete(&SLICE, &slice("api", "10.1.1.1"));
    assert_eq!(store.take_changes(), [change("Service", "shop", "api")].into());
}
