//! Reads clusters of a server in memory that answers as an API server does: pages, refusals, lists
//! that expire, and silence.

use super::mock::Mock;
use serde_json::json;
use uturn_live::{LiveError, Purpose, Reading, Settings, read_from};
use uturn_model::Extent;
use uturn_snapshot::{Loaded, Manifests};

async fn read(mock: &Mock, settings: &Settings) -> Result<Reading, LiveError> {
    read_from(&mock.server(), settings, &|_, _| {}).await
}

fn analysis(page: usize) -> Settings {
    Settings { page, ..Settings::new(Purpose::Analysis) }
}

fn loaded(reading: Reading) -> Loaded {
    reading.manifests(Manifests::default()).into_loaded().unwrap()
}

fn texts(reading: Reading) -> Vec<(String, String)> {
    let manifests = reading.manifests(Manifests::default());
    let pair = |source: &uturn_snapshot::Source| (source.name.to_string(), source.text.clone());
    manifests.sources().iter().map(pair).collect()
}

#[tokio::test]
async fn what_is_read_is_a_cluster() {
    let reading = read(&Mock::shop(), &analysis(500)).await.unwrap();
    assert!(reading.unread().is_empty(), "{:?}", reading.unread());
    let cluster = loaded(reading).cluster;
    assert_eq!(cluster.extent, Extent::OBJECTS);
    assert_eq!(cluster.pods.len(), 7);
    let origins: Vec<String> = cluster.pods.values().map(|pod| pod.origin.to_string()).collect();
    assert_eq!(origins[0], "resourceVersion 100");
    let service = cluster.services.values().next().unwrap();
    assert_eq!(service.origin.to_string(), "resourceVersion 7");
    assert_eq!(cluster.endpoints.len(), 1);
}

#[tokio::test]
async fn small_pages_are_one_page() {
    let mock = Mock::shop();
    let whole = texts(read(&mock, &analysis(500)).await.unwrap());
    for limit in [1, 2, 3, 7] {
        assert_eq!(texts(read(&mock, &analysis(limit)).await.unwrap()), whole, "{limit}");
    }
}

#[tokio::test]
async fn a_list_that_expires_goes_on_or_begins_anew() {
    for (times, goes_on) in [(1, true), (3, true), (1, false), (3, false)] {
        let mock = Mock::shop();
        let whole = texts(read(&mock, &analysis(500)).await.unwrap());
        mock.state().expire = (times, goes_on);
        let reading = read(&mock, &analysis(2)).await.unwrap();
        assert_eq!(texts(reading), whole, "{times} {goes_on}");
    }
    let mock = Mock::shop();
    mock.state().expire = (usize::MAX, false);
    let reading = read(&mock, &analysis(2)).await.unwrap();
    assert_eq!(&*reading.unread()[0].what, "Pods");
    assert!(reading.unread()[0].why.contains("changed too often"), "{:?}", reading.unread());
}

#[tokio::test]
async fn a_refusal_is_noted_and_nothing_is_concluded_from_it() {
    let no_extent = Extent::default();
    for (path, what, extent) in [
        ("/api/v1/pods", "Pods", Extent { pods: false, ..Extent::OBJECTS }),
        ("/api/v1/nodes", "Nodes", Extent { pods: false, ..Extent::OBJECTS }),
        ("/api/v1/services", "Services", Extent { services: false, ..Extent::OBJECTS }),
        (
            "/apis/networking.k8s.io/v1/ingresses",
            "Ingresses",
            Extent { services: false, ..Extent::OBJECTS },
        ),
        ("/apis/apps/v1/deployments", "Deployments", Extent::OBJECTS),
    ] {
        let mock = Mock::shop();
        mock.refuse(path, 403, "forbidden by the test");
        let reading = read(&mock, &analysis(500)).await.unwrap();
        let unread: Vec<&str> = reading.unread().iter().map(|unread| &*unread.what).collect();
        assert_eq!(unread, [what]);
        let cluster = loaded(reading).cluster;
        assert_eq!(cluster.extent, extent, "{path}");
        assert_eq!(cluster.unread.len(), 1);
        let is_it = |supposed: &&uturn_model::Assumption| supposed.subject.to_string() == what;
        let supposed = cluster.supposed.iter().find(is_it).unwrap().to_string();
        assert!(supposed.contains("could not be read: forbidden by the test"), "{supposed}");
    }
    // Where there are no slices, the objects before them say the same.
    let mock = Mock::shop();
    mock.refuse("/apis/discovery.k8s.io/v1/endpointslices", 403, "forbidden by the test");
    assert!(loaded(read(&mock, &analysis(9)).await.unwrap()).cluster.extent.endpoints);
    mock.refuse("/api/v1/endpoints", 403, "forbidden by the test");
    let cluster = loaded(read(&mock, &analysis(9)).await.unwrap()).cluster;
    assert_eq!(cluster.extent, Extent { endpoints: false, ..Extent::OBJECTS });
    // All of it refused is still a reading.
    let paths: Vec<String> = mock.state().lists.keys().cloned().collect();
    for path in paths {
        mock.refuse(&path, 403, "forbidden by the test");
    }
    mock.refuse("/version", 403, "forbidden by the test");
    mock.refuse("/apis", 403, "forbidden by the test");
    let reading = read(&mock, &analysis(9)).await.unwrap();
    assert!(reading.is_empty());
    let why = reading.nothing_read().unwrap();
    assert!(why.starts_with("Nodes, Pods, Services and "), "{why}");
    assert!(why.ends_with(" more: forbidden by the test"), "{why}");
    assert!(reading.lacks_rights() && reading.lacks_namespaces());
    assert_eq!(loaded(reading).cluster.extent, no_extent);
}

/// What can be done about it is said only of what a right is missing for.
#[tokio::test]
async fn what_is_missing_is_a_right_or_not() {
    for (path, code, expected) in [
        ("/api/v1/services", 403, (true, true)),
        ("/api/v1/nodes", 403, (true, false)),
        ("/api/v1/namespaces/kube-system/configmaps/coredns", 403, (true, false)),
        ("/api/v1/services", 500, (false, false)),
        ("/api/v1/namespaces/kube-system/configmaps/coredns", 500, (false, false)),
    ] {
        let mock = Mock::shop();
        mock.refuse(path, code, "refused by the test");
        let reading = read(&mock, &analysis(9)).await.unwrap();
        let found = (reading.lacks_rights(), reading.lacks_namespaces());
        assert_eq!(found, expected, "{path} {code}");
        assert_eq!((reading.nothing_read(), reading.unread().len()), (None, 1));
    }
    // Something else than an API server.
    let mock = Mock::default();
    let reading = read(&mock, &analysis(9)).await.unwrap();
    assert!(reading.nothing_read().unwrap().contains("(404)"));
}

#[tokio::test]
async fn a_namespace_is_read_where_the_cluster_may_not_be() {
    let mock = Mock::shop();
    mock.refuse("/api/v1/services", 403, "forbidden by the test");
    let own = mock.state().lists["/api/v1/services"].clone();
    mock.put("/api/v1/namespaces/shop/services", own);
    let reading = read(&mock, &analysis(500)).await.unwrap();
    assert_eq!(&*reading.unread()[0].known, "only those of namespace shop are known");
    let cluster = loaded(reading).cluster;
    assert_eq!(cluster.services.len(), 1);
    assert!(!cluster.extent.services);
}

/// A right is what a namespace may be read without; a server that fails is not asked for one.
#[tokio::test]
async fn a_failure_is_no_missing_right() {
    let mock = Mock::shop();
    mock.refuse("/api/v1/services", 500, "etcdserver: request timed out");
    let own = mock.state().lists["/api/v1/services"].clone();
    mock.put("/api/v1/namespaces/shop/services", own);
    let reading = read(&mock, &analysis(500)).await.unwrap();
    assert_eq!(&*reading.unread()[0].known, "none are known");
    assert!(loaded(reading).cluster.services.is_empty());
    assert!(!mock.state().asked.iter().any(|path| path.contains("namespaces/shop")));
}

/// A proxy before the API server that asks a person to sign in, and the like.
#[tokio::test]
async fn what_is_not_what_was_asked_for_is_not_read() {
    let status = r#"{"kind":"Status","apiVersion":"v1","status":"Success","message":"sign in"}"#;
    for (answer, expected) in [
        ((200, "", "{}"), "the server answered with {}, which is not a list"),
        ((200, "", status), "the server answered with Status (sign in), which is not a list"),
        ((200, "", "<html>sign in</html>"), "the server answered with <html>sign in</html>, which"),
        ((302, "https://login", status), "the server redirects to https://login (302), which is"),
        ((502, "", "<html>Bad Gateway</html>"), "<html>Bad Gateway</html>"),
    ] {
        let mock = Mock::shop();
        mock.state().instead = Some(answer);
        let reading = read(&mock, &analysis(500)).await.unwrap();
        assert!(reading.is_empty(), "{expected}");
        for unread in reading.unread() {
            let is_map = unread.what.starts_with("ConfigMaps ");
            let expected =
                expected.replace("is not a list", if is_map { "is not" } else { "is not a" });
            assert!(unread.why.starts_with(&expected), "{unread} {expected}");
        }
        assert_eq!(loaded(reading).cluster.extent, Extent::default(), "{expected}");
    }
}

/// An answer is not read further than it may be long.
#[tokio::test]
async fn an_answer_without_end_is_refused() {
    let mock = Mock::shop();
    let long = "x".repeat((1 << 20) + 1).leak();
    mock.state().instead = Some((200, "", long));
    let server = mock.server().with_answers_of(1 << 20);
    let reading = read_from(&server, &analysis(500), &|_, _| {}).await.unwrap();
    assert!(reading.is_empty() && !reading.unread().is_empty());
    for unread in reading.unread() {
        assert_eq!(&*unread.why, "the answer has more than 1 MiB", "{unread}");
    }
}

/// A ConfigMap of another name is not taken for the one that was asked for.
#[tokio::test]
async fn a_single_object_is_the_one_that_was_asked_for() {
    let mock = Mock::shop();
    let path = "/api/v1/namespaces/kube-system/configmaps/coredns";
    let map = |name: &str| json!({"kind": "ConfigMap", "metadata": {"name": name}});
    for (object, count) in [(map("coredns"), 1), (map("other"), 0), (json!({}), 0)] {
        mock.state().objects.insert(path.to_owned(), object);
        let reading = read(&mock, &analysis(500)).await.unwrap();
        assert_eq!(reading.unread().len(), 1 - count, "{:?}", reading.unread());
        let texts = texts(reading);
        assert_eq!(texts.iter().filter(|(name, _)| name.starts_with("configmap")).count(), count);
    }
}

#[tokio::test]
async fn no_config_map_is_listed_and_no_secret_asked_for() {
    let mock = Mock::shop();
    mock.refuse("/api/v1/namespaces/kube-system/configmaps/coredns", 403, "forbidden by the test");
    let reading = read(&mock, &analysis(500)).await.unwrap();
    assert_eq!(&*reading.unread()[0].what, "ConfigMaps kube-system/coredns");
    let state = mock.state();
    assert!(!state.asked.iter().any(|path| path.contains("secrets")));
    let config_maps: Vec<&String> =
        state.asked.iter().filter(|path| path.contains("configmaps")).collect();
    assert!(config_maps.len() >= 8);
    assert!(config_maps.iter().all(|path| path.contains("/namespaces/kube-system/configmaps/")));
}

#[tokio::test]
async fn values_of_environments_are_in_no_bundle() {
    let settings = Settings::new(Purpose::Bundle);
    let all = texts(read(&Mock::shop(), &settings).await.unwrap());
    assert!(all.iter().all(|(_, text)| !text.contains("hidden")), "{all:?}");
    assert!(all.iter().any(|(name, _)| name == "deployments"));
    // What is analysed at once has them where an edited object is applied again.
    let all = texts(read(&Mock::shop(), &analysis(500)).await.unwrap());
    let with: Vec<&String> =
        all.iter().filter(|(_, text)| text.contains("hidden")).map(|(name, _)| name).collect();
    assert_eq!(with, ["deployment/shop/web"]);
}

#[tokio::test]
async fn an_object_with_a_fault_is_noted() {
    let mock = Mock::shop();
    let mut service = mock.state().lists["/api/v1/services"][0].clone();
    service["spec"]["externalIPs"] = json!(["no address"]);
    mock.put("/api/v1/services", vec![service]);
    let cluster = loaded(read(&mock, &analysis(500)).await.unwrap()).cluster;
    assert_eq!(cluster.services.len(), 1);
    let unread = cluster.unread[0].to_string();
    assert!(unread.starts_with("spec.externalIPs[0] of Service shop/web could not"), "{unread}");
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_asked_again() {
    let mock = Mock::shop();
    let whole = texts(read(&mock, &analysis(500)).await.unwrap());
    mock.state().busy = 3;
    assert_eq!(texts(read(&mock, &analysis(500)).await.unwrap()), whole);
    mock.state().busy = usize::MAX;
    let reading = read(&mock, &analysis(500)).await.unwrap();
    assert!(reading.is_empty());
    assert!(reading.unread().iter().all(|unread| &*unread.why == "come later"));
}

#[tokio::test]
async fn silence_and_bad_credentials_end_it() {
    let mock = Mock::shop();
    mock.state().silent_after = Some(0);
    let error = read(&mock, &analysis(1)).await.unwrap_err().to_string();
    assert!(error.starts_with("https://mock cannot be reached: "), "{error}");
    let mut asked = 0;
    for after in 2.. {
        let mock = Mock::shop();
        mock.state().silent_after = Some(after);
        match read(&mock, &analysis(1)).await {
            Ok(_) => break,
            Err(error) => {
                let error = error.to_string();
                assert!(error.contains("does not answer any more while reading"), "{error}");
                assert!(error.contains("connection reset by the test"), "{error}");
                asked += 1;
            }
        }
    }
    assert!(asked > 20, "{asked}");
    let mock = Mock::shop();
    mock.refuse("/version", 401, "Unauthorized");
    let error = read(&mock, &analysis(1)).await.unwrap_err().to_string();
    assert_eq!(error, "https://mock does not accept the credentials of user \"me\": Unauthorized");
}
