//! A Service whose own pods call it by its load balancer, in IPVS mode of TKE's kube-proxy, which
//! leaves the address unbound: under policy Local one call in two hangs, until the Service asks for
//! prevent-loopback and kube-proxy knows that.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use serde_json::Value;
use uturn_cloud_api::clb::{HealthCheck, ModifyListenerRequest};

use crate::stage::{Call, Prediction, Story, servers};

/// Their Service, with a load balancer on layer 4.
const SERVICE: &str = r#"
apiVersion: v1
kind: Service
metadata:
  name: web
  annotations: {service.kubernetes.io/qcloud-loadbalancer-internal-subnetid: subnet-00000001}
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}]
"#;

/// The annotation, set.
const PREVENT_LOOPBACK: &str = "service.cloud.tencent.com/prevent-loopback=true";

/// The nodes.
const NODES: [&str; 2] = ["node/n1", "node/n2"];

/// How many calls a pod makes: a multiple of the number of targets.
const CALLS: usize = 4;

/// After how many seconds a client gives a call up that hangs: longer than any other call takes on
/// a machine that is busy.
const LIMIT: &str = "20";

/// The exit status of curl for a call that was given up.
const GIVEN_UP: u8 = 28;

/// With a kube-proxy that knows the annotation.
pub(crate) fn cured(story: &Story<'_>) {
    let web = Web::apply(story);
    web.assert_unbound();
    web.assert_half_hang("UT102");
    web.prevent_loopback();
    for node in NODES {
        story.stage.until(&format!("{node} binds {}", web.address), || {
            let bound = bound(story, node);
            if bound.contains(&web.address) { Ok(()) } else { Err(format!("{bound:?}")) }
        });
    }
    let earlier = NODES.map(|node| web.probes(node));
    web.settle();
    web.assert_probed_from("100.64.0.0/10", is_of_the_cloud);
    let prediction = story.stage.predict();
    web.assert_hanging(&prediction, 0);
    let codes = prediction.codes(story, "Service/web");
    assert!(!codes.iter().any(|code| ["UT102", "UT202"].contains(&code.as_str())), "{codes:?}");
    for (node, earlier) in NODES.into_iter().zip(earlier) {
        let mut probes = web.probes(node);
        probes.retain(|probe| !earlier.contains(probe));
        assert!(probes.iter().all(|probe| is_of_the_cloud(probe.ip())), "{node}: {probes:?}");
    }
}

/// With one that is too old for it: the health checks move, the addresses stay unbound, and the
/// loop stays.
pub(crate) fn too_old(story: &Story<'_>) {
    let web = Web::apply(story);
    web.prevent_loopback();
    web.settle();
    web.assert_probed_from("100.64.0.0/10", is_of_the_cloud);
    web.assert_unbound();
    web.assert_half_hang("UT202");
    web.assert_unbound();
}

/// The Service in a cluster.
struct Web<'s> {
    story: &'s Story<'s>,
    /// Its load balancer's address.
    address: IpAddr,
    node_port: u16,
    pods: Vec<String>,
}

impl<'s> Web<'s> {
    /// Makes the Service, and waits until it is served.
    fn apply(story: &'s Story<'s>) -> Self {
        story.apply_all(&[&servers(NODES.len()), SERVICE]);
        let address = story.service_address("web");
        let listener = story.stage.listener(&address, 80, |_| true);
        assert_eq!(listener.protocol.as_deref(), Some("TCP"));
        let pods = story.pods_of("web");
        assert_eq!(pods.len(), NODES.len());
        let path = "jsonpath={.spec.ports[0].nodePort}";
        let node_port = story.kubectl(&["get", "service", "web", "-o", path]);
        let (address, node_port) = (address.parse().unwrap(), node_port.parse().unwrap());
        let web = Self { story, address, node_port, pods };
        web.probe_from_address();
        web.settle();
        web.assert_probed_from("the load balancer's address", |ip| ip == web.address);
        web
    }

    /// Has health checks come from the load balancer's address, as in accounts from before
    /// 2023-02-24. The operator leaves alone what no object states.
    fn probe_from_address(&self) {
        let (stage, address) = (self.story.stage, self.address.to_string());
        let listener = stage.listener(&address, 80, |_| true);
        let balancer = stage.load_balancer(&address).unwrap();
        stage.call(&ModifyListenerRequest {
            load_balancer_id: balancer.load_balancer_id.unwrap(),
            listener_id: listener.listener_id.unwrap(),
            health_check: Some(HealthCheck { source_ip_type: Some(0), ..HealthCheck::default() }),
            ..ModifyListenerRequest::default()
        });
    }

    /// Waits until nodes and load balancers have taken in all that was written, and the health
    /// checks of both targets are answered.
    fn settle(&self) {
        self.story.settle();
        self.story.stage.until("both targets are well", || {
            let page = self.story.stage.page("http://127.0.0.1:9900/targets");
            let known: Value = serde_json::from_str(&page).unwrap();
            let targets = known["targets"].as_array().unwrap();
            let well = targets.iter().filter(|target| target["alive"] == true).count();
            if (targets.len(), well) == (2, 2) { Ok(()) } else { Err(page) }
        });
    }

    /// Sets the annotation, and waits until the operator has changed the health check.
    fn prevent_loopback(&self) {
        self.story.annotate("service/web", PREVENT_LOOPBACK);
        self.story.stage.listener(&self.address.to_string(), 80, |listener| {
            let check = listener.health_check.as_ref();
            check.is_some_and(|check| check.source_ip_type == Some(1))
        });
    }

    /// The health checks that a node has got of late, by where they came from: connections with
    /// the Service's port of the node that no pod has made.
    fn probes(&self, node: &str) -> BTreeSet<SocketAddr> {
        let printed = self.story.stage.exec(node, &["ipvsadm", "-L", "-n", "-c"]);
        let connections = printed.lines().filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [_, _, _, source, service, _] = words[..] else { return None };
            Some((source.parse().ok()?, service.parse().ok()?))
        });
        let of_node_port = connections
            .filter(|(_, service): &(SocketAddr, SocketAddr)| service.port() == self.node_port);
        let sources = of_node_port.map(|(source, _)| source);
        sources
            .filter(|source| source.ip() == self.address || is_of_the_cloud(source.ip()))
            .collect()
    }

    /// Waits until the health checks of both nodes come from there.
    fn assert_probed_from(&self, name: &str, is_there: impl Fn(IpAddr) -> bool) {
        for node in NODES {
            let seen = self.story.stage.until(&format!("{node} is probed from {name}"), || {
                let probes = self.probes(node);
                let found = probes.iter().find(|probe| is_there(probe.ip()));
                found.copied().ok_or_else(|| format!("{probes:?}"))
            });
            println!("{node} is probed from {}", seen.ip());
        }
    }

    /// The nodes leave the address unbound.
    fn assert_unbound(&self) {
        for node in NODES {
            let bound = bound(self.story, node);
            assert!(!bound.is_empty(), "{node} binds the addresses of Services");
            assert!(!bound.contains(&self.address), "{node}: {bound:?}");
        }
    }

    /// The calls hang that the load balancer sends to the pod's own node, as the scan says with
    /// this code.
    fn assert_half_hang(&self, code: &str) {
        let prediction = self.story.stage.predict();
        self.assert_hanging(&prediction, CALLS / 2);
        let codes = prediction.codes(self.story, "Service/web");
        assert!(codes.iter().any(|known| known == code), "{codes:?}");
    }

    /// From each pod so many calls hang, as the scan says, and all others are answered.
    fn assert_hanging(&self, prediction: &Prediction, expected: usize) {
        let url = format!("http://{}/", self.address);
        for pod in &self.pods {
            let calls = self.story.calls_within(pod, &url, CALLS, LIMIT);
            let hanging = calls.count(|call| call.failure == GIVEN_UP);
            let predicted = prediction.share_failing(self.story, "Service/web", pod);
            println!("{pod}: {hanging} of {CALLS} calls hang, {predicted:.3} predicted");
            assert_eq!(hanging, expected, "{calls:#?}");
            assert_eq!(calls.count(Call::is_answered), CALLS - expected, "{calls:#?}");
            assert_eq!(predicted, hanging as f64 / CALLS as f64);
        }
    }
}

/// The addresses that IPVS has bound on a node.
fn bound(story: &Story<'_>, node: &str) -> BTreeSet<IpAddr> {
    let printed = story.stage.exec(node, &["ip", "-brief", "address", "show", "kube-ipvs0"]);
    let ranges = printed.split_whitespace().filter_map(|word| word.split_once('/'));
    ranges.map(|(address, _)| address.parse().unwrap()).collect()
}

/// Whether it is an address of the cloud's own: 100.64.0.0/10.
fn is_of_the_cloud(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V4(ip) if ip.octets()[0] == 100 && ip.octets()[1] & 0xc0 == 64)
}
