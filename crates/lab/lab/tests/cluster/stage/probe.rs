//! What `uturn probe` measures: real calls, by commands that go through the API server to the
//! stand-in of the kubelet.

use std::process::Command;

use serde_json::{Value, json};

use super::Story;
use crate::installed::text;

impl Story<'_> {
    /// Shows that a probe of a pod's calls to a URL makes as many calls as do not have the load
    /// balancer leave a target alone, that they end so, and that the prediction agrees.
    #[track_caller]
    pub(crate) fn assert_probed(&self, pod: &str, url: &str, ends: &Value, codes: &[&str]) {
        self.stage.settle_load_balancers();
        let facts = self.stage.kubeconfig.with_file_name("facts.json");
        let mut command = Command::new(self.stage.installed.program());
        command.args(["probe", "--live", "-f"]).arg(facts).arg("--kubeconfig");
        command.arg(&self.stage.kubeconfig).args(["--to", url, "--yes", "-o", "json", "--from"]);
        let output = command.arg(format!("pod/{}/{pod}", self.namespace)).output().unwrap();
        let errors = text(&output.stderr);
        let probe: Value = serde_json::from_slice(&output.stdout).expect(&errors);
        println!("{pod} to {url}: {probe}");
        let mut measured = probe["measured"].clone();
        for end in measured.as_array_mut().unwrap() {
            let times = end.as_object_mut().unwrap();
            times.retain(|field, _| !field.ends_with("least_ms") && !field.ends_with("most_ms"));
        }
        assert_eq!(measured, *ends, "{probe:#}");
        assert_eq!(probe["agrees"], true, "{probe:#}");
        assert_eq!(probe["findings"], json!(codes), "{probe:#}");
        let cases = probe["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 1, "everything is known: {probe:#}");
        // No other client calls: the load balancer's turns give exact counts.
        assert_eq!(cases[0]["in_turns"], ends.as_array().unwrap().len() > 1, "{probe:#}");
        let status = if codes.is_empty() { 0 } else { 1 };
        assert_eq!(output.status.code(), Some(status), "{probe:#}\n{errors}");
    }
}
