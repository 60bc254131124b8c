//! The cloud of a stage, and whether kube-proxies and load balancers have taken in all that was
//! written.

use std::fs;
use std::path::Path;

use serde_json::Value;
use uturn_cloud_api::Action;
use uturn_cloud_api::SecretKey;
use uturn_cloud_api::clb::{
    DescribeListenersRequest, DescribeLoadBalancersRequest, Listener, LoadBalancer,
};
use uturn_cloud_api::client::{Client, ClientSettings, Retries};

use super::{Stage, Story};

/// The cloud's API as `uturn lab up` says where it is.
pub(super) struct Cloud {
    client: Client,
}

impl Cloud {
    pub(super) fn of(kubeconfig: &Path) -> Self {
        let facts = fs::read_to_string(kubeconfig.with_file_name("cloud.json")).unwrap();
        let facts: Value = serde_json::from_str(&facts).unwrap();
        let field = |key: &str| facts[key].as_str().unwrap().to_owned();
        let client = Client::new(ClientSettings {
            endpoint: field("endpoint").parse().unwrap(),
            secret_id: field("secretId"),
            secret_key: SecretKey::from(field("secretKey")),
            region: field("region"),
            retries: Retries::default(),
            rate: None,
        });
        Self { client: client.unwrap() }
    }
}

impl Stage<'_> {
    /// Calls the cloud's API, as its user.
    pub(crate) fn call<A: Action>(&self, request: &A) -> A::Response {
        self.runtime.block_on(self.cloud.client.call(request)).unwrap().response
    }

    /// The load balancer with an address; `None` if there is none.
    pub(crate) fn load_balancer(&self, address: &str) -> Option<LoadBalancer> {
        let request = DescribeLoadBalancersRequest {
            load_balancer_vips: Some(vec![address.to_owned()]),
            ..DescribeLoadBalancersRequest::default()
        };
        self.call(&request).load_balancer_set.unwrap_or_default().into_iter().next()
    }

    /// The listeners of the load balancer with an address.
    pub(crate) fn listeners(&self, address: &str) -> Vec<Listener> {
        let Some(balancer) = self.load_balancer(address) else { return Vec::new() };
        let request = DescribeListenersRequest {
            load_balancer_id: balancer.load_balancer_id.unwrap(),
            ..DescribeListenersRequest::default()
        };
        self.call(&request).listeners.unwrap_or_default()
    }

    /// Waits until a listener is as it should be, and returns it.
    pub(crate) fn listener(
        &self,
        address: &str,
        port: i64,
        is_right: impl Fn(&Listener) -> bool,
    ) -> Listener {
        self.until(&format!("the listener {address}:{port}"), || {
            let all = self.listeners(address);
            let found = all.into_iter().find(|listener| listener.port == Some(port));
            match found {
                Some(listener) if is_right(&listener) => Ok(listener),
                found => Err(format!("{found:?}")),
            }
        })
    }

    /// What an address of the cloud's own answers over HTTP.
    pub(crate) fn page(&self, url: &str) -> String {
        self.exec("cloud", &["curl", "-sS", "--max-time", "60", url])
    }

    /// How many calls of the operator have changed something so far.
    pub(crate) fn operator_calls(&self) -> u64 {
        let page = self.page("http://127.0.0.1:9902/metrics");
        let line = page.lines().find_map(|line| line.strip_prefix("uturn_operator_calls_total "));
        line.unwrap_or_else(|| panic!("no count of calls: {page}")).parse().unwrap()
    }

    /// Waits until the operator has made so many calls since there were `before`, and shows that
    /// there are no more.
    #[track_caller]
    pub(crate) fn assert_operator_calls(&self, before: u64, count: u64) {
        // It counts them at the end of a round.
        let made = self.until(&format!("{count} calls of the operator"), || {
            let made = self.operator_calls() - before;
            if made >= count { Ok(made) } else { Err(format!("{made} calls")) }
        });
        assert_eq!(made, count);
    }

    /// Waits until the load balancers serve the latest change, have decided the health of their
    /// targets, and leave none of them alone.
    pub(crate) fn settle_load_balancers(&self) {
        self.until("the load balancers serve the latest change", || {
            let status: Value =
                serde_json::from_str(&self.page("http://127.0.0.1:9901/status")).unwrap();
            let machine = &status["data_planes"][0];
            if machine["is_reached"] == true && machine["change"] == status["change"] {
                Ok(())
            } else {
                Err(status.to_string())
            }
        });
        self.until("the targets are known", || {
            let page: Value =
                serde_json::from_str(&self.page("http://127.0.0.1:9900/targets")).unwrap();
            let targets = page["targets"].as_array().unwrap();
            let is_open =
                |target: &&Value| target["decided"] == false || !target["resting_until"].is_null();
            match targets.iter().find(is_open) {
                None => Ok(()),
                Some(target) => Err(target.to_string()),
            }
        });
    }
}

/// A Service that leads to the API server, as a sign that kube-proxy has come so far.
const MARKER: &str = r#"
apiVersion: v1
kind: Service
metadata: {name: marker}
spec: {ports: [{name: api, port: 443, targetPort: 6443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: marker, labels: {kubernetes.io/service-name: marker}}
addressType: IPv4
ports: [{name: api, port: 6443, protocol: TCP}]
endpoints: [{addresses: [API], conditions: {ready: true}}]
"#;

impl Story<'_> {
    /// Waits until kube-proxies and load balancers have taken in all that was written before.
    pub(crate) fn settle(&self) {
        self.settle_proxies();
        self.stage.settle_load_balancers();
    }

    /// Waits until every kube-proxy has programmed all Services and endpoints that are there now:
    /// it hears of changes in their order, and here of one more.
    pub(crate) fn settle_proxies(&self) {
        let words = ["get", "endpointslice", "kubernetes", "-n", "default", "-o"];
        let path = "jsonpath={.endpoints[0].addresses[0]}";
        let api = self.stage.kubectl(&[&words[..], &[path]].concat(), "");
        self.apply(&MARKER.replace("API", &api));
        let ip = self.kubectl(&["get", "service", "marker", "-o", "jsonpath={.spec.clusterIP}"]);
        let nodes = self.stage.kubectl(&["get", "nodes", "-o", "name"], "");
        for node in nodes.lines() {
            self.stage.until(&format!("kube-proxy on {node} knows the marker"), || {
                let url = format!("https://{ip}/healthz");
                let words = ["curl", "-sk", "--max-time", "5", "-o", "/dev/null", &url];
                if self.stage.installed.in_pod(node, &words).status.success() {
                    Ok(())
                } else {
                    Err(format!("{url} is not reached"))
                }
            });
        }
        self.kubectl(&["delete", "service/marker", "endpointslice/marker", "--ignore-not-found"]);
    }
}
