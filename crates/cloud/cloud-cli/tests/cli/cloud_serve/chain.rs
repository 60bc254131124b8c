//! `uturn operator run`, `uturn cloud serve` and `uturn lb run` as processes, beside an API server in
//! memory. Each step between an object and a served packet is broken in turn: the API's task, the
//! object's condition, an event, both `/readyz` and both `/metrics` say so, and after it was mended
//! all is fine again by itself.

#[path = "../../../../kube/tests/kube/server/mod.rs"]
#[expect(dead_code, reason = "the controllers' own tests use the rest")]
mod server;
mod world;

use std::net::{IpAddr, TcpListener};
use std::thread;

use serde_json::json;
use uturn_cloud_api::ssl::UploadCertificateRequest;

use self::world::{Chain, Front};
use super::clients::{certificate, shown_certificate};

/// The condition of an object that is served.
const SUCCESS: (&str, &str) = ("True", "Success");
/// That of one that the cloud has and does not serve.
const UNSERVED: (&str, &str) = ("False", "E5003");

/// All of them at once: most of the time is spent waiting for the next attempt.
#[test]
fn each_step_may_break_and_is_mended() {
    let steps: [fn(); 7] = [
        no_source_of_health_checks,
        a_port_is_taken,
        the_data_plane_is_gone,
        the_data_plane_keeps_no_certificates,
        the_certificate_does_not_exist,
        objects_may_not_be_written,
        one_listener_of_two_tenants,
    ];
    thread::scope(|scope| {
        for step in steps {
            scope.spawn(step);
        }
    });
}

/// The host has no route for 100.64.0.0/10, from which health checks come unless a
/// TkeServiceConfig says otherwise.
fn no_source_of_health_checks() {
    let chain = Chain::start("chain-source", true);
    let front = Front::new(&chain, "shop/front");
    chain.config(&front, 1);
    chain.create(&front);
    let words = "the data plane does not have the address that its health checks come from";
    chain.is_unserved(&front, words, "NoProbeSource");
    assert!(chain.site.readiness().1.contains("cannot send the health checks"));
    chain.task_failed();
    assert_ne!(chain.web(&front), Some("served".to_owned()));

    chain.config(&front, 0);
    chain.is_served(&front);
}

/// Another program has the port, so that the task of the listener fails.
fn a_port_is_taken() {
    let chain = Chain::start("chain-port", true);
    let front = Front::new(&chain, "shop/front");
    let taken: Vec<TcpListener> = chain
        .addresses()
        .into_iter()
        .map(|address| TcpListener::bind((address, front.port)).unwrap())
        .collect();
    chain.config(&front, 0);
    chain.create(&front);
    chain.is_unserved(
        &front,
        "another program has one of its ports on the data plane",
        "PortInUse",
    );
    chain.task_failed();

    drop(taken);
    chain.is_served(&front);
}

/// The process of the data plane ends, although nobody changed anything.
fn the_data_plane_is_gone() {
    let mut chain = Chain::start("chain-gone", true);
    let front = Front::new(&chain, "shop/front");
    chain.config(&front, 0);
    chain.create(&front);
    chain.is_served(&front);
    chain.site.kill_data_plane();
    chain.is_away(&front);
    assert_eq!(chain.web(&front), None);

    chain.site.start_data_plane();
    chain.is_served(&front);
}

/// The data plane was started without `--certificates`.
fn the_data_plane_keeps_no_certificates() {
    let mut chain = Chain::start("chain-keys", false);
    let front = Front { is_secure: true, ..Front::new(&chain, "shop/front") };
    let (content, key, der) = certificate("shop.example.com");
    let upload = json!({ "CertificatePublicKey": content, "CertificatePrivateKey": key });
    let made = chain.site.ok::<UploadCertificateRequest>(upload);
    chain.secret("shop", &made.certificate_id.unwrap());
    chain.config(&front, 0);
    chain.create(&front);
    chain.is_unserved(&front, "the data plane keeps no certificates", "NoCertificates");
    chain.task_failed();

    chain.site.kill_data_plane();
    chain.site.keeps_certificates = true;
    chain.site.start_data_plane();
    chain.is_fine(&front);
    let shown = shown_certificate((chain.address(&front), front.port), "shop.example.com");
    assert_eq!(shown, (der, "served".to_owned()));
}

/// A Secret names a certificate that the cloud does not have: its owner's to mend.
fn the_certificate_does_not_exist() {
    let chain = Chain::start("chain-secret", true);
    let front = Front { is_secure: true, ..Front::new(&chain, "shop/front") };
    chain.secret("shop", "Abcd1234");
    chain.config(&front, 0);
    chain.create(&front);
    chain.wait_for(&front, UNSERVED);
    chain.until("an event", || chain.told(&front, "Abcd1234"));
    assert_eq!(chain.readiness(), (200, "ok\n".to_owned()));
    assert!(chain.metric("uturn_operator_failed_calls_total") > 0);

    let (content, key, _) = certificate("shop.example.com");
    let upload = json!({ "CertificatePublicKey": content, "CertificatePrivateKey": key });
    let made = chain.site.ok::<UploadCertificateRequest>(upload);
    chain.secret("shop", &made.certificate_id.unwrap());
    chain.is_fine(&front);
}

/// The controllers lack a right.
fn objects_may_not_be_written() {
    let chain = Chain::start("chain-rights", true);
    let front = Front::new(&chain, "shop/front");
    chain.server.forbid("patch", "ingresses");
    chain.config(&front, 0);
    chain.create(&front);
    chain.until("an event", || chain.told(&front, "cannot patch resource"));
    let (status, body) = chain.readiness();
    assert_eq!(status, 503);
    assert!(body.contains("cannot patch ingresses: "), "{body}");
    chain.until("the metric", || chain.metric("uturn_operator_waiting") > 0);

    chain.server.allow_all();
    chain.is_served(&front);
}

/// Of a load balancer that two tenants use, one listener is refused.
fn one_listener_of_two_tenants() {
    let mut chain = Chain::without_operator("chain-tenants", true);
    let (lb, address) = chain.site.load_balancer();
    chain.start_operator(&["--share-load-balancer", &format!("{lb}=aaa,prod")]);
    let of = |at: &str| Front { existing: Some(lb.clone()), ..Front::new(&chain, at) };
    let (taken, other) = (of("aaa/front"), of("prod/front"));
    let port = TcpListener::bind((address, taken.port)).unwrap();
    for front in [&taken, &other] {
        chain.config(front, 0);
        chain.create(front);
    }
    let words = "another program has one of its ports on the data plane";
    chain.is_unserved(&taken, words, "PortInUse");
    chain.wait_for(&other, SUCCESS);
    chain.until("the other one's page", || chain.web(&other) == Some("served".to_owned()));
    assert!(!chain.told(&other, ""), "{:?}", chain.events());
    assert_eq!(chain.metric("uturn_operator_unserved_objects"), 1);
    // What the other one's tenant changes is done at once, however long the first one waits.
    let moved = Front { port: chain.site.port(), ..other };
    chain.config(&moved, 0);
    chain.create(&moved);
    chain.until("the new port", || chain.web(&moved) == Some("served".to_owned()));
    chain.wait_for(&moved, SUCCESS);
    chain.wait_for(&taken, UNSERVED);

    drop(port);
    chain.is_served(&taken);
    chain.wait_for(&moved, SUCCESS);
}

impl Chain {
    /// Waits until all say that an object is not served, and why.
    fn is_unserved(&self, front: &Front, words: &str, reason: &str) {
        self.wait_for(front, UNSERVED);
        self.until("an event", || self.told(front, words));
        let line = format!("Ingress {} is not served: {words}\n", front.at);
        self.until("the operator's /readyz", || self.readiness() == (503, line.clone()));
        assert_eq!(self.metric("uturn_operator_unserved_objects"), 1);
        assert_eq!(self.site.readiness().0, 503);
        let metrics = self.site.metrics();
        let expected = format!("uturn_cloud_unserved{{reason=\"{reason}\"}} 1\n");
        assert!(metrics.contains(&expected), "{metrics}");
    }

    /// The same of a data plane that is away.
    fn is_away(&self, front: &Front) {
        let words = "no data plane can be reached";
        self.wait_for(front, UNSERVED);
        self.until("an event", || self.told(front, words));
        let line = format!("Ingress {} is not served: {words}\n", front.at);
        self.until("the operator's /readyz", || self.readiness() == (503, line.clone()));
        assert_eq!(self.metric("uturn_operator_unserved_objects"), 1);
        let (status, body) = self.site.readiness();
        assert!(status == 503 && body.contains(" is not driven: "), "{body}");
        assert!(self.site.metrics().contains("uturn_cloud_data_plane_reached{"));
    }

    /// A task failed because what it asked for is not served.
    fn task_failed(&self) {
        let metrics = self.site.metrics();
        let line =
            metrics.lines().find_map(|line| line.strip_prefix("uturn_cloud_failed_tasks_total "));
        assert!(line.unwrap().parse::<u64>().unwrap() > 0, "{metrics}");
    }

    /// Waits until an object is ready, and both programs.
    fn is_fine(&self, front: &Front) {
        self.wait_for(front, SUCCESS);
        let fine = (200, "ok\n".to_owned());
        self.until("the operator's /readyz", || self.readiness() == fine);
        self.until("the cloud's /readyz", || self.site.readiness() == fine);
        assert_eq!(self.metric("uturn_operator_unserved_objects"), 0);
        self.until("the metric of the cloud", || {
            !self.site.metrics().contains("uturn_cloud_unserved{")
        });
    }

    /// The same, and its page is served.
    fn is_served(&self, front: &Front) {
        self.is_fine(front);
        self.until("the page", || self.web(front) == Some("served".to_owned()));
    }

    /// The addresses that load balancers get.
    fn addresses(&self) -> [IpAddr; 2] {
        let IpAddr::V4(own) = self.site.api().ip() else { panic!("it is IPv4") };
        let [first, second, third, fourth] = own.octets();
        [IpAddr::V4(own), [first, second | 128, third, fourth].into()]
    }
}
