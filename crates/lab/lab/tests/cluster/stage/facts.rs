//! What is stated of the cluster's network, and the health of targets that follows.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};
use uturn_cloud_api::clb::DescribeTargetHealthRequest;

use super::{Stage, Story};

impl Stage<'_> {
    /// Merges into the `spec` of the facts, and waits until they are in force. `null` removes what
    /// was stated.
    pub(crate) fn state(&self, spec: &Value) {
        let file = self.kubeconfig.with_file_name("facts.json");
        let mut facts: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        merge(&mut facts["spec"], spec);
        let text = facts.to_string();
        let new = self.kubeconfig.with_file_name("facts.json.new");
        fs::write(&new, &text).unwrap();
        fs::rename(new, &file).unwrap();
        let read = |name| fs::read_to_string(self.kubeconfig.with_file_name(name));
        self.until("the facts are in force", || {
            if read("facts-in-force.json").is_ok_and(|in_force| in_force == text) {
                Ok(())
            } else {
                Err(read("facts.log").unwrap_or_default())
            }
        });
    }

    /// The health of the targets of a load balancer by their addresses: `10.0.0.11:30080`, `Alive`.
    pub(crate) fn health(&self, address: &str) -> BTreeMap<String, String> {
        let balancer = self.load_balancer(address).unwrap();
        let request = DescribeTargetHealthRequest {
            load_balancer_ids: vec![balancer.load_balancer_id.unwrap()],
            ..DescribeTargetHealthRequest::default()
        };
        let answer = serde_json::to_value(self.call(&request)).unwrap();
        let mut health = BTreeMap::new();
        collect(&answer, &mut health);
        health
    }

    /// Waits until so many targets of a load balancer are alive, and so many dead.
    pub(crate) fn wait_for_health(&self, address: &str, alive: usize, dead: usize) {
        self.until(&format!("{alive} targets of {address} are alive, {dead} dead"), || {
            let health = self.health(address);
            let count = |wanted: &str| health.values().filter(|word| *word == wanted).count();
            if (count("Alive"), count("Dead"), health.len()) == (alive, dead, alive + dead) {
                Ok(())
            } else {
                Err(format!("{health:?}"))
            }
        });
    }
}

impl Story<'_> {
    /// The node of a pod.
    pub(crate) fn node_of(&self, pod: &str) -> String {
        self.kubectl(&["get", "pod", pod, "-o", "jsonpath={.spec.nodeName}"])
    }

    /// Drops health checks on every node, or lets them in again, and states so.
    pub(crate) fn drop_probes(&self, is_dropped: bool) {
        const RULE: &str = "PREROUTING -s 100.64.0.0/10 -j DROP";
        let change = if is_dropped { "-A" } else { "-D" };
        let nodes = self.stage.kubectl(&["get", "nodes", "-o", "name"], "");
        for node in nodes.lines() {
            let words = ["iptables", "-w", "-t", "raw", change];
            let words: Vec<&str> = words.into_iter().chain(RULE.split(' ')).collect();
            self.stage.exec(node, &words);
        }
        let rules = is_dropped.then(|| format!("*raw\n-A {RULE}\nCOMMIT\n"));
        self.stage.state(&json!({"nodes": {"*": {"iptables": rules}}}));
    }
}

/// RFC 7396.
fn merge(value: &mut Value, patch: &Value) {
    let Some(patch) = patch.as_object() else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    let fields = value.as_object_mut().unwrap();
    for (key, patch) in patch {
        if patch.is_null() {
            drop(fields.remove(key));
        } else {
            merge(fields.entry(key.clone()).or_insert(Value::Null), patch);
        }
    }
}

/// Finds targets at any depth: those of listeners, or of rules.
fn collect(value: &Value, health: &mut BTreeMap<String, String>) {
    if let (Some(ip), Some(word)) = (value["IP"].as_str(), value["HealthStatusDetail"].as_str()) {
        health.insert(format!("{ip}:{}", value["Port"]), word.to_owned());
    }
    match value {
        Value::Object(fields) => fields.values().for_each(|value| collect(value, health)),
        Value::Array(items) => items.iter().for_each(|value| collect(value, health)),
        _ => {}
    }
}
