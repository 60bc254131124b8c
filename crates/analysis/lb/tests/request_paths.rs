//! The prediction and the data plane find the same rule for a path, and forward the same one.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail like the test")]

#[path = "../src/test_profile.rs"]
mod test_profile;

use proptest::prelude::*;
use uturn_lb::request_path::{RefusedPath, route};
use uturn_lb::rules::{Router, find, routed};
use uturn_model::ingress::PathKind;
use uturn_model::lb::{Layer, Listener, ListenerProtocol, PathNormalization, Rule};
use uturn_model::{NamespacedName, ObjectKind, ObjectRef, Port};

fn listener(how: PathNormalization, paths: &[(&str, PathKind)]) -> Listener {
    let name = NamespacedName::new("shop", "front").unwrap();
    let rule = |(path, kind): &(&str, PathKind)| Rule {
        host: None,
        path: Some(((*path).into(), *kind)),
        service: name.clone(),
        owner: ObjectRef::namespaced(ObjectKind::Ingress, &name),
        targets: Vec::new(),
        redirect: None,
    };
    let mut profile = test_profile::profile(Layer::L7);
    profile.path_normalization = how;
    Listener {
        port: Port::new(80).unwrap(),
        protocol: ListenerProtocol::Http,
        profile,
        rules: paths.iter().map(rule).collect(),
    }
}

#[test]
fn a_listener_decides_as_its_profile_says() {
    use PathNormalization::{Merge, Off, Reject};
    let rules = [("/admin", PathKind::Prefix), ("/", PathKind::Prefix)];
    let place = |how, path| {
        let listener = listener(how, &rules);
        let found = find(&listener, "a", path)?;
        listener.rules.iter().position(|rule| rule == found)
    };
    assert_eq!(place(Off, "//admin"), Some(1));
    assert_eq!(place(Merge, "//admin"), Some(0));
    assert_eq!(place(Reject, "//admin"), None);
    assert_eq!(routed(&listener(Reject, &rules), "a", "//admin"), Err(RefusedPath::NotNormal));
    assert_eq!(
        test_profile::profile(Layer::L7).path_normalization,
        Off,
        "nothing is known of what it does"
    );
}

fn path() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "/", "//", ".", "..", "%2e", "%2f", "%252F", "\\", ";", "%61", "a", "b", ".php", "?", "%",
    ]);
    prop::collection::vec(part, 0..8).prop_map(|parts| format!("/{}", parts.concat()))
}

proptest! {
    #[test]
    fn the_prediction_and_the_data_plane_decide_alike(sent in path(), how in 0usize..3) {
        use PathNormalization::{Merge, Off, Reject};
        let how = [Off, Merge, Reject][how];
        let rules = [
            ("/a", PathKind::Prefix),
            ("/a/b", PathKind::Exact),
            ("~ \\.php$", PathKind::ImplementationSpecific),
            ("/", PathKind::Prefix),
        ];
        let listener = listener(how, &rules);
        let router = Router::new(&listener.rules);
        prop_assert_eq!(
            routed(&listener, "a", &sent),
            route(how, &sent, |path| router.position("a", path))
        );
    }
}
