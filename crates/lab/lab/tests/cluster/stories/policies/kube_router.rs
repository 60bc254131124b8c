//! A kube-router on every node, which does nothing but enforce policies.

use std::fs;
use std::process::Child;

use serde_json::{Value, json};

use crate::stage::Story;

/// The namespace of the pods whose policy shows how far the programs have come.
const MARKERS: &str = "policies-markers";

/// What routers and Service proxies do is left to others.
const FLAGS: [&str; 6] = [
    "--run-router=false",
    "--run-service-proxy=false",
    "--run-firewall=true",
    "--enable-cni=false",
    "--service-cluster-ip-range=172.16.0.0/16",
    "--health-port=0",
];

/// The programs, which end with this value.
pub(super) struct KubeRouters {
    programs: Vec<Child>,
    nodes: Vec<String>,
    marks: usize,
}

impl KubeRouters {
    /// Starts one on each node, and states that the network rejects what policies do not allow.
    pub(super) fn start(story: &Story<'_>, nodes: &[String]) -> Self {
        let stage = story.stage;
        stage.kubectl(&["create", "namespace", MARKERS], "");
        let markers: String = nodes.iter().map(|node| marker_pod(node)).collect();
        stage.kubectl(&["apply", "-f", "-"], &markers);
        let words = ["wait", "pods", "--all", "--for=condition=Ready", "--timeout=900s"];
        stage.kubectl(&[&["--namespace", MARKERS][..], &words].concat(), "");

        // The kubeconfig of users leads to a port of this machine's loopback.
        let path = "jsonpath={.endpoints[0].addresses[0]}";
        let words = ["get", "endpointslice", "kubernetes", "--namespace", "default", "-o", path];
        let api = stage.kubectl(&words, "");
        let text = fs::read_to_string(stage.kubeconfig()).unwrap();
        let mut kubeconfig: Value = serde_json::from_str(&text).unwrap();
        kubeconfig["clusters"][0]["cluster"]["server"] = format!("https://{api}:6443").into();
        let file = stage.kubeconfig().with_file_name("kube-router.kubeconfig");
        fs::write(&file, kubeconfig.to_string()).unwrap();

        let program = stage.part("kube-router");
        let start = |node: &String| {
            let name = node.trim_start_matches("node/");
            let log = stage.kubeconfig().with_file_name(format!("kube-router-{name}.log"));
            let mut words = vec![program.clone(), format!("--kubeconfig={}", file.display())];
            words.push(format!("--hostname-override={name}"));
            words.extend(FLAGS.map(str::to_owned));
            stage.start(node, &words, &log)
        };
        let programs = nodes.iter().map(start).collect();
        stage.state(&json!({"network": {"policies": "reject"}}));
        Self { programs, nodes: nodes.to_vec(), marks: 0 }
    }

    /// Waits until each has programmed all policies that are there now: it hears of them in their
    /// order, and here of one more, which it writes with all others.
    pub(super) fn settle(&mut self, story: &Story<'_>) {
        self.marks += 1;
        let name = format!("mark-{}", self.marks);
        let policy = json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"namespace": MARKERS, "name": name},
            "spec": {"podSelector": {}, "ingress": [{}]},
        });
        story.stage.kubectl(&["apply", "-f", "-"], &policy.to_string());
        for node in &self.nodes {
            story.stage.until(&format!("kube-router on {node} knows {name}"), || {
                let rules = story.stage.exec(node, &["iptables-save", "-t", "filter"]);
                let is_there = rules.contains(&format!("nw policy {name}\""));
                if is_there { Ok(()) } else { Err("its rules do not name it".to_owned()) }
            });
        }
        let words = ["delete", "networkpolicy", &name, "--namespace", MARKERS];
        story.stage.kubectl(&words, "");
    }
}

impl Drop for KubeRouters {
    fn drop(&mut self) {
        for program in &mut self.programs {
            // One that is gone already needs no end.
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

fn marker_pod(node: &str) -> String {
    let name = node.trim_start_matches("node/");
    format!(
        "---\n{{apiVersion: v1, kind: Pod, metadata: {{namespace: {MARKERS}, name: {name}}}, spec: {{nodeName: \
         {name}, containers: [{{name: mark, image: mark, ports: [{{containerPort: 8080}}]}}]}}}}\n"
    )
}
