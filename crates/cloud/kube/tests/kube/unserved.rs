//! What the cloud has and does not serve: objects are not ready, their users are told why, and so is
//! who runs the controllers.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::advance;
use uturn_cloud_api::unserved::Unserved;
use uturn_kube::health::readiness;
use uturn_kube::metrics::Metrics;
use uturn_kube::sync::{Controllers, Settings};

use crate::stage::Stage;
use crate::world::{World, ready};

/// The condition of an Ingress: its status and its reason.
fn ingress_ready(world: &World) -> (String, String) {
    let ingress = world.server.objects("ingresses").remove(0);
    let key = "ingress.cloud.tencent.com/status.conditions";
    let text = ingress["metadata"]["annotations"][key].as_str().unwrap().to_owned();
    let conditions: serde_json::Value = serde_json::from_str(&text).unwrap();
    let text = |key: &str| conditions[0][key].as_str().unwrap().to_owned();
    (text("status"), text("reason"))
}

fn service_ready(world: &World) -> (String, String) {
    let services = world.server.objects("services");
    ready(services.iter().find(|service| service["metadata"]["name"] == "web").unwrap())
}

/// The id of the load balancer with a listener at a port, and that listener's.
fn ids_at(world: &World, port: u16) -> (String, String) {
    let accounts = world.cloud.accounts();
    let mut balancers = accounts.values().flat_map(|account| account.load_balancers.values());
    let found = balancers.find_map(|balancer| {
        let listener = balancer.listeners.iter().find(|listener| listener.port == port)?;
        let is_service = listener.protocol.as_str() == "TCP";
        is_service.then(|| (balancer.id.clone(), listener.id.clone()))
    });
    found.unwrap()
}

fn id_of_ingress(world: &World) -> String {
    let accounts = world.cloud.accounts();
    let mut balancers = accounts.values().flat_map(|account| account.load_balancers.values());
    let is_ingress = |listener: &uturn_cloud::state::Listener| listener.protocol.as_str() == "HTTP";
    balancers.find(|balancer| balancer.listeners.iter().any(is_ingress)).unwrap().id.clone()
}

struct Run {
    world: World,
    metrics: Arc<Metrics>,
    controllers: Controllers<Arc<Stage>>,
}

impl Run {
    async fn settled() -> Self {
        let world = World::new();
        world.service("web", json!({}));
        world.ingress("front", "web", json!({}));
        let metrics = Arc::new(Metrics::default());
        let settings = Settings {
            cluster: "cls-aaaaaaaa".to_owned(),
            network: "vpc-aaaaaaaa".to_owned(),
            ..Settings::default()
        };
        let (client, cloud) = (world.server.client(), Arc::clone(&world.cloud));
        let shared = world.shared.clone();
        let mut controllers =
            Controllers::new(client, cloud, settings, shared, Arc::clone(&metrics));
        world.settle(&mut controllers).await;
        Self { world, metrics, controllers }
    }

    /// A round in which everything is due: what failed before has waited for long enough.
    async fn round(&mut self) {
        advance(Duration::from_secs(3600)).await;
        self.world.round(&mut self.controllers).await.unwrap();
    }

    fn readiness(&self) -> (&'static str, String) {
        readiness(&self.metrics, &self.world.shared)
    }

    fn told(&self, part: &str) -> usize {
        let events = self.world.events();
        let found = events.iter().filter(|(message, _)| message.contains(part));
        found.map(|(_, count)| count).sum()
    }
}

fn success() -> (String, String) {
    ("True".to_owned(), "Success".to_owned())
}

fn failed() -> (String, String) {
    ("False".to_owned(), "E5003".to_owned())
}

#[tokio::test(start_paused = true)]
async fn what_is_not_served_is_not_ready() {
    let mut run = Run::settled().await;
    assert_eq!((service_ready(&run.world), ingress_ready(&run.world)), (success(), success()));
    assert_eq!(run.readiness().0, "200 OK");

    for why in [
        Unserved::PortInUse,
        Unserved::NoAddress,
        Unserved::NoProbeSource,
        Unserved::NoCertificates,
        Unserved::NoLayer4,
        Unserved::Refused,
        Unserved::Unreachable,
    ] {
        let (lb, _) = ids_at(&run.world, 80);
        run.world.cloud.set_unserved(&[(&lb, why)]);
        run.round().await;
        assert_eq!(service_ready(&run.world), failed(), "{why:?}");
        assert_eq!(ingress_ready(&run.world), success(), "it has another load balancer");
        assert_eq!(run.told(why.words()), 1, "{why:?}");
        let expected = format!("Service shop/web is not served: {}\n", why.words());
        assert_eq!(run.readiness(), ("503 Service Unavailable", expected));
        assert!(run.metrics.text().contains("\nuturn_operator_unserved_objects 1\n"));

        // It stays so, and is told once.
        run.round().await;
        assert_eq!((service_ready(&run.world), run.told(why.words())), (failed(), 1));

        run.world.cloud.set_unserved(&[]);
        run.round().await;
        assert_eq!(service_ready(&run.world), success(), "{why:?}");
        assert_eq!(run.readiness().0, "200 OK");
        assert!(run.metrics.text().contains("\nuturn_operator_unserved_objects 0\n"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_ingress_that_is_not_served_has_an_event() {
    let mut run = Run::settled().await;
    let lb = id_of_ingress(&run.world);
    run.world.cloud.set_unserved(&[(&lb, Unserved::NoProbeSource)]);
    run.round().await;
    assert_eq!((ingress_ready(&run.world), service_ready(&run.world)), (failed(), success()));
    assert_eq!(run.told(Unserved::NoProbeSource.words()), 1);
    let event = run.world.server.objects("events").pop().unwrap();
    assert_eq!(event["involvedObject"]["kind"], "Ingress");

    // An object that is gone is not missed.
    run.world.server.delete("ingresses", "front");
    run.round().await;
    run.round().await;
    assert_eq!(run.readiness(), ("200 OK", "ok\n".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_is_there_and_not_served_is_not_taken_for_one_that_is() {
    let mut run = Run::settled().await;
    let (_, listener) = ids_at(&run.world, 80);
    run.world.cloud.set_unserved(&[(&listener, Unserved::LeftOut)]);
    run.round().await;
    assert_eq!(service_ready(&run.world), failed());
    assert_eq!(run.told("the listener 80/TCP of lb-"), 1);
    // A new process, which did not see how it came to this, says the same.
    let mut controllers = run.world.controllers();
    run.world.round(&mut controllers).await.unwrap();
    assert_eq!(service_ready(&run.world), failed());
    // Its owner asked for it, so that the controllers are ready.
    assert_eq!(run.readiness(), ("200 OK", "ok\n".to_owned()));
}
