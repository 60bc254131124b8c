//! The processes, the objects, and what is asked of them.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uturn_cloud_api::clb;

use super::super::clients::{Target, web};
use super::super::processes::Site;
use super::server::Server;
use super::server::listen::kubeconfig;
use crate::site::free_address;
use uturn_testing::commands::uturn;

/// Only what hangs takes longer.
const LIMIT: Duration = Duration::from_secs(600);
/// How long nothing is asked between two looks: no event tells that a process sees it so.
const PAUSE: Duration = Duration::from_millis(50);

/// An API server, the controllers, a cloud, a data plane, and a target.
pub(super) struct Chain {
    pub(super) site: Site,
    pub(super) server: Server,
    target: Target,
    operator: Option<Child>,
    health: SocketAddr,
}

/// An Ingress with one rule for `shop.example.com`.
#[derive(Clone)]
pub(super) struct Front {
    /// Its namespace and name.
    pub(super) at: String,
    pub(super) port: u16,
    /// Whether its listener has TLS, with the certificate that the Secret `cert` names.
    pub(super) is_secure: bool,
    /// The user's load balancer that it names.
    pub(super) existing: Option<String>,
}

impl Front {
    pub(super) fn new(chain: &Chain, at: &str) -> Self {
        let (at, port) = (at.to_owned(), chain.site.port());
        Self { at, port, is_secure: false, existing: None }
    }

    fn namespace(&self) -> &str {
        self.at.split_once('/').unwrap().0
    }

    fn name(&self) -> &str {
        self.at.split_once('/').unwrap().1
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        if let Some(operator) = &mut self.operator {
            let _ = operator.kill();
            let _ = operator.wait();
        }
    }
}

impl Chain {
    /// Everything runs. There is a node at which the target listens.
    pub(super) fn start(name: &str, keeps_certificates: bool) -> Self {
        let mut chain = Self::without_operator(name, keeps_certificates);
        chain.start_operator(&[]);
        chain
    }

    /// Everything but the operator runs.
    pub(super) fn without_operator(name: &str, keeps_certificates: bool) -> Self {
        let mut site = Site::new(name);
        site.keeps_certificates = keeps_certificates;
        site.start_data_plane();
        site.start_cloud();
        site.wait_for_status(|plane| plane["is_reached"] == true);
        let target = Target::start("served");
        let server = Server::new();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let listening = server.clone();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                listening.listen(tokio::net::TcpListener::from_std(listener).unwrap()).await
            })
        });
        site.folder.file("kubeconfig", &kubeconfig(address));
        server.apply(
            "nodes",
            json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" },
                "spec": { "podCIDR": "10.1.1.0/24" },
                "status": {
                    "addresses": [
                        { "type": "InternalIP", "address": target.address.ip().to_string() }],
                    "conditions": [{ "type": "Ready", "status": "True" }] } }),
        );
        Self { site, server, target, operator: None, health: free_address() }
    }

    pub(super) fn start_operator(&mut self, more: &[&str]) {
        let (endpoint, listen) = (format!("http://{}", self.site.api()), self.health.to_string());
        let mut command = uturn(&["operator", "run", "--cluster-id", "cls-aaaaaaaa"]);
        command
            .args(["--network", "vpc-aaaaaaaa", "--region", "ap-test", "--endpoint", &endpoint])
            .args(["--credentials", "credentials", "--kubeconfig", "kubeconfig"])
            .args(["--without-lease", "--listen", &listen])
            .args(more)
            .current_dir(&self.site.folder.0)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.operator = Some(command.spawn().unwrap());
        while TcpStream::connect(self.health).is_err() {
            thread::sleep(PAUSE);
        }
    }

    /// Creates or replaces an Ingress, with the Service that it is for.
    pub(super) fn create(&self, front: &Front) {
        let (namespace, name) = (front.namespace(), front.name());
        self.server.apply(
            "services",
            json!({ "apiVersion": "v1", "kind": "Service",
                "metadata": { "name": "web", "namespace": namespace },
                "spec": { "type": "NodePort", "clusterIP": "172.16.0.10",
                    "ports": [{ "name": "web", "port": 80, "protocol": "TCP", "targetPort": 8080,
                        "nodePort": self.target.address.port() }] } }),
        );
        let protocol = if front.is_secure { "HTTPS" } else { "HTTP" };
        let mut annotations = json!({
            "ingress.cloud.tencent.com/listen-ports": json!([{ protocol: front.port }]).to_string(),
            "ingress.cloud.tencent.com/tke-service-config": name,
        });
        if let Some(lb) = &front.existing {
            annotations["kubernetes.io/ingress.existLbId"] = lb.as_str().into();
        }
        let mut spec = json!({ "rules": [{ "host": "shop.example.com", "http": { "paths": [
            { "path": "/", "pathType": "Prefix",
              "backend": { "service": { "name": "web", "port": { "number": 80 } } } }] } }] });
        if front.is_secure {
            spec["tls"] = json!([{ "secretName": "cert" }]);
        }
        let uid = format!("uid-{}", front.at);
        let mut ingress = json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
            "metadata": { "name": name, "namespace": namespace, "uid": uid,
                "annotations": annotations },
            "spec": spec });
        if let Some(there) = self.server.object_in("ingresses", namespace, name) {
            // What the controllers wrote stays.
            ingress["metadata"]["finalizers"] = there["metadata"]["finalizers"].clone();
            ingress["status"] = there["status"].clone();
            let before = there["metadata"]["annotations"].as_object().unwrap();
            for (key, value) in before {
                let annotations = ingress["metadata"]["annotations"].as_object_mut().unwrap();
                annotations.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        self.server.apply("ingresses", ingress);
    }

    /// Creates or replaces its TkeServiceConfig: where health checks come from, and that the
    /// load balancer's own address replaces clients'.
    pub(super) fn config(&self, front: &Front, source: u8) {
        let protocol = if front.is_secure { "HTTPS" } else { "HTTP" };
        let check = json!({ "enable": true, "intervalTime": 3, "timeout": 2, "healthNum": 2,
            "unHealthNum": 2, "sourceIpType": source, "httpCheckPath": "/" });
        let rule = json!({ "url": "/", "healthCheck": check });
        self.server.apply(
            "tkeserviceconfigs",
            json!({ "apiVersion": "cloud.tencent.com/v1alpha1", "kind": "TkeServiceConfig",
                "metadata": { "name": front.name(), "namespace": front.namespace() },
                "spec": { "loadBalancer": { "l7Listeners": [{
                    "protocol": protocol, "port": front.port, "keepaliveEnable": 1,
                    "domains": [{ "domain": "shop.example.com", "rules": [rule] }],
                }] } } }),
        );
    }

    /// Creates or replaces the Secret with the id of a certificate.
    pub(super) fn secret(&self, namespace: &str, certificate: &str) {
        self.server.apply_certificate(namespace, "cert", certificate);
    }

    /// Waits until this is so.
    pub(super) fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let since = Instant::now();
        while !is_so() {
            let state = || {
                let ingresses = self.server.objects("ingresses");
                let said = (self.readiness(), self.site.readiness(), self.events());
                format!("{said:?} {} {ingresses:?}", self.site.status())
            };
            assert!(since.elapsed() < LIMIT, "{what} is waited for: {}", state());
            thread::sleep(PAUSE);
        }
    }

    /// Waits until an Ingress has this condition: its status and its reason.
    pub(super) fn wait_for(&self, front: &Front, expected: (&str, &str)) {
        self.until(&format!("{expected:?} of {}", front.at), || {
            let ingress = self.server.object_in("ingresses", front.namespace(), front.name());
            let ingress = ingress.unwrap();
            let text =
                &ingress["metadata"]["annotations"]["ingress.cloud.tencent.com/status.conditions"];
            let conditions: Value =
                text.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
            (&conditions[0]["status"], &conditions[0]["reason"])
                == (&json!(expected.0), &json!(expected.1))
        });
    }

    /// The objects of events, and what they say.
    pub(super) fn events(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let told = self.server.objects("events").into_iter().map(|event| {
            let object = &event["involvedObject"];
            let at = format!("{}/{}", text(&object["namespace"]), text(&object["name"]));
            (at, text(&event["message"]))
        });
        told.collect()
    }

    /// Whether an Ingress has an event that says this.
    pub(super) fn told(&self, front: &Front, part: &str) -> bool {
        self.events().iter().any(|(at, message)| *at == front.at && message.contains(part))
    }

    /// `/readyz` of the operator.
    pub(super) fn readiness(&self) -> (u16, String) {
        self.site.page(self.health, "GET", "/readyz", "")
    }

    /// A metric of the operator.
    pub(super) fn metric(&self, name: &str) -> u64 {
        let (_, text) = self.site.page(self.health, "GET", "/metrics", "");
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("{name}: {text}")).parse().unwrap()
    }

    /// The address of the load balancer of an Ingress.
    pub(super) fn address(&self, front: &Front) -> IpAddr {
        let all = self.site.ok::<clb::DescribeLoadBalancersRequest>(json!({}));
        let ingress = self.server.object_in("ingresses", front.namespace(), front.name()).unwrap();
        let stated =
            &ingress["metadata"]["annotations"]["kubernetes.io/ingress.qcloud-loadbalance-id"];
        let mut all = all.load_balancer_set.unwrap().into_iter();
        let own = all.find(|found| json!(found.load_balancer_id) == *stated);
        own.unwrap().load_balancer_vips.unwrap()[0].parse().unwrap()
    }

    /// What a client gets at the listener of an Ingress.
    pub(super) fn web(&self, front: &Front) -> Option<String> {
        web((self.address(front), front.port), "shop.example.com")
    }
}
