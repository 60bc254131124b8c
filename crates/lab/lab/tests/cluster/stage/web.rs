//! A web server and its Ingress, with which most stories begin, and the Ingress's configuration.

use serde_json::{Value, json};

use super::Story;

/// As many pods of a web server, each on another node.
pub(crate) fn servers(count: usize) -> String {
    SERVERS.replace("COUNT", &count.to_string())
}

const SERVERS: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: COUNT
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {matchLabels: {app: web}}
      containers:
      - {name: web, image: web, ports: [{containerPort: 8080}]}
"#;

/// The servers' Service, with a port of every node.
pub(crate) const NODE_PORT: &str = r#"
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: NodePort
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}]
"#;

/// An Ingress of that Service, with an address of its own.
pub(crate) fn ingress(host: Option<&str>, annotations: &[(&str, &str)]) -> String {
    let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
    let path = json!({"path": "/", "pathType": "ImplementationSpecific", "backend": backend});
    let mut ingress = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "web", "annotations": {
            "kubernetes.io/ingress.class": "qcloud",
            "kubernetes.io/ingress.subnetId": "subnet-00000001",
        }},
        "spec": {"rules": [{"http": {"paths": [path]}}]},
    });
    if let Some(host) = host {
        ingress["spec"]["rules"][0]["host"] = host.into();
    }
    for (key, value) in annotations {
        ingress["metadata"]["annotations"][key] = (*value).into();
    }
    ingress.to_string()
}

/// The annotation by which the operator makes a configuration of an Ingress.
pub(crate) const AUTO_CONFIG: &str = "ingress.cloud.tencent.com/tke-service-config-auto";

/// The configuration that it makes.
const CONFIG: &str = "web-auto-ingress-config";
const CONFIG_KIND: &str = "cloud.tencent.com/v1alpha1/TkeServiceConfig";

impl Story<'_> {
    /// Applies several manifests at once.
    pub(crate) fn apply_all(&self, manifests: &[&str]) {
        self.apply(&manifests.join("\n---\n"));
    }

    /// Waits for the configuration that the operator makes of the Ingress.
    pub(crate) fn wait_for_config(&self) -> Value {
        self.wait(CONFIG_KIND, CONFIG, |config| {
            config["spec"]["loadBalancer"]["l7Listeners"][0]["port"] == 80
        })
    }

    /// Edits it as a user does, and waits until the cloud has it.
    pub(crate) fn set_keepalive(&self, address: &str, enable: i64) {
        let path = "/spec/loadBalancer/l7Listeners/0/keepaliveEnable";
        let patch = json!([{"op": "add", "path": path, "value": enable}]);
        self.patch(&format!("tkeserviceconfig/{CONFIG}"), &patch);
        self.stage.listener(address, 80, |listener| listener.keepalive_enable == Some(enable));
    }
}
