//! Watches clusters of a server in memory: what happens, watches that break, versions that are
//! forgotten, rights that are missing, and a server that goes away.

use std::time::Duration;

use super::mock::Mock;
use serde_json::{Value, json};
use uturn_live::{NotCurrent, Purpose, Reading, Settings, WatchedCluster, follow, read_from};
use uturn_snapshot::Manifests;

const PODS: &str = "/api/v1/pods";
const SERVICES: &str = "/api/v1/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/endpointslices";

fn settings() -> Settings {
    Settings { page: 3, ..Settings::new(Purpose::Analysis) }
}

fn texts(reading: Reading) -> Vec<(String, String)> {
    let unread = reading.unread().iter().map(|unread| ("unread".to_owned(), unread.to_string()));
    let unread: Vec<(String, String)> = unread.collect();
    let manifests = reading.manifests(Manifests::default());
    let pair = |source: &uturn_snapshot::Source| (source.name.to_string(), source.text.clone());
    unread.into_iter().chain(manifests.sources().iter().map(pair)).collect()
}

/// Follows the cluster of a server while something happens.
async fn watched(mock: &Mock, happens: impl AsyncFnOnce(&WatchedCluster)) {
    let cluster = WatchedCluster::new(Purpose::Analysis);
    let (server, settings) = (mock.server(), settings());
    let followed = follow(&server, &settings, &cluster, &|_, _| {});
    tokio::select! {
        error = followed => panic!("{error}"),
        () = happens(&cluster) => {}
    }
}

/// Waits until something is so. Time passes at once here.
async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    for _ in 0..2000 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("never so: {what}");
}

/// Waits until what is known is what reading the cluster anew gives.
async fn until_known(mock: &Mock, cluster: &WatchedCluster) {
    until("what is known is what there is", async || {
        let fresh = read_from(&mock.server(), &settings(), &|_, _| {}).await.unwrap();
        texts(cluster.reading().0) == texts(fresh)
    })
    .await;
}

fn not_current(cluster: &WatchedCluster) -> Vec<NotCurrent> {
    cluster.not_current()
}

fn pod(name: &str, ip: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "shop", "labels": {"app": "web"}},
        "spec": {"nodeName": "n1", "containers": [{"name": "web", "image": "web"}]},
        "status": {"podIP": ip, "phase": "Running"},
    })
}

#[tokio::test(start_paused = true)]
async fn what_happens_is_known() {
    let mock = Mock::shop();
    watched(&mock, async |cluster| {
        until_known(&mock, cluster).await;
        let (_, first, versions) = cluster.reading();
        assert!(versions.contains_key("Pods"), "{versions:?}");
        mock.happen(PODS, "web-9", Some(pod("web-9", "10.1.1.99")));
        mock.happen(PODS, "a-pod", Some(pod("a-pod", "10.1.1.98")));
        mock.happen(PODS, "web-3", None);
        mock.happen(SERVICES, "web", None);
        until_known(&mock, cluster).await;
        let (_, second, _) = cluster.reading();
        assert_eq!(second.changes, first.changes + 4);
        // A version that comes again is no change.
        let again = mock.state().lists[PODS][0].clone();
        mock.state().events.push((50, PODS.to_owned(), "MODIFIED", again));
        mock.happen(PODS, "web-9", None);
        until_known(&mock, cluster).await;
        assert_eq!(cluster.reading().1.changes, second.changes + 1);
        assert_eq!(not_current(cluster), []);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_breaks_or_is_forgotten_misses_nothing() {
    let mock = Mock::shop();
    watched(&mock, async |cluster| {
        until_known(&mock, cluster).await;
        for number in 0..6 {
            mock.state().broken = number % 3;
            mock.state().forgotten = number;
            mock.happen(PODS, "web-9", Some(pod("web-9", &format!("10.1.1.{}", 90 + number))));
            mock.happen(PODS, &format!("web-{number}"), None);
            until_known(&mock, cluster).await;
        }
        assert_eq!(not_current(cluster), []);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_away_makes_all_stale_until_it_is_back() {
    let mock = Mock::shop();
    watched(&mock, async |cluster| {
        until_known(&mock, cluster).await;
        let before = texts(cluster.reading().0);
        mock.state().is_gone = true;
        let pods = |known: &NotCurrent| known.what == "Pods";
        until("pods are stale", async || not_current(cluster).iter().any(pods)).await;
        let stale = not_current(cluster).into_iter().find(pods).unwrap();
        assert!(!stale.is_read_again && stale.why.contains("reset by the test"), "{stale:?}");
        assert_eq!(texts(cluster.reading().0), before);
        mock.happen(PODS, "web-2", None);
        mock.state().is_gone = false;
        until_known(&mock, cluster).await;
        until("all is current", async || not_current(cluster).is_empty()).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_watched_is_read_again() {
    let mock = Mock::shop();
    mock.state().unwatched.insert(PODS.to_owned());
    watched(&mock, async |cluster| {
        until_known(&mock, cluster).await;
        until("it is said", async || not_current(cluster).len() == 1).await;
        let known = not_current(cluster).remove(0);
        assert!(known.is_read_again && known.what == "Pods", "{known:?}");
        assert!(known.why.contains("watch is forbidden"), "{known:?}");
        mock.happen(PODS, "web-4", None);
        until_known(&mock, cluster).await;
        assert_eq!(not_current(cluster).len(), 1);
        mock.state().unwatched.clear();
        until("it is watched", async || not_current(cluster).is_empty()).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_kind_is_known_once_it_may_be_read() {
    let mock = Mock::shop();
    mock.refuse(SLICES, 403, "forbidden by the test");
    mock.refuse(SERVICES, 403, "forbidden by the test");
    let own = mock.state().lists[SERVICES].clone();
    mock.put("/api/v1/namespaces/shop/services", own);
    watched(&mock, async |cluster| {
        until_known(&mock, cluster).await;
        let unread = cluster.reading().0.unread().to_vec();
        assert_eq!(&*unread[0].what, "Services");
        assert!(unread.iter().any(|unread| &*unread.what == "EndpointSlices"), "{unread:?}");
        mock.happen("/api/v1/namespaces/shop/services", "web", None);
        until_known(&mock, cluster).await;
        mock.state().refused.clear();
        until_known(&mock, cluster).await;
        assert_eq!(cluster.reading().0.unread(), []);
        // A kind that the server gets later.
        let configs = "/apis/cloud.tencent.com/v1alpha1/tkeserviceconfigs";
        let config = json!({"metadata": {"name": "a", "namespace": "shop"}, "spec": {}});
        mock.happen(configs, "a", Some(config));
        until_known(&mock, cluster).await;
        assert!(texts(cluster.reading().0).iter().any(|(name, _)| name.contains("tke")));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn config_maps_are_watched_by_name() {
    let mock = Mock::shop();
    let folder = "/api/v1/namespaces/kube-system/configmaps";
    let path = format!("{folder}/coredns");
    let map = |zone: &str| {
        json!({"kind": "ConfigMap", "metadata": {"name": "coredns", "namespace": "kube-system"},
               "data": {"Corefile": format!(".:53 {{\n kubernetes {zone}\n}}\n")}})
    };
    watched(&mock, async |cluster| {
        until_known(&mock, cluster).await;
        for object in [Some(map("cluster.local")), Some(map("other.local")), None] {
            match &object {
                Some(object) => drop(mock.state().objects.insert(path.clone(), object.clone())),
                None => drop(mock.state().objects.remove(&path)),
            }
            until_known(&mock, cluster).await;
        }
        let state = mock.state();
        let of_maps = |path: &&String| path.contains("configmaps");
        assert!(state.asked.iter().filter(of_maps).all(|path| path.starts_with(folder)));
        assert!(!state.asked.iter().any(|path| path.contains("secrets")));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_cannot_be_read_at_all_is_not_watched() {
    let mock = Mock::shop();
    mock.state().is_gone = true;
    let cluster = WatchedCluster::new(Purpose::Analysis);
    let error = follow(&mock.server(), &settings(), &cluster, &|_, _| {}).await;
    assert!(error.to_string().starts_with("https://mock cannot be reached: "), "{error}");
}
