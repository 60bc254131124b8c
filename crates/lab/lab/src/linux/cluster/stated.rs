//! Applies the facts that users state about the network of a running cluster: the nodes' security
//! groups, and the names outside. Users edit the file, and a change is in force at once.

use std::fs;
use std::io;

use serde_json::{Value, json};
use uturn_model::{Cluster, Family};
use uturn_snapshot::{Fault, Source};

use super::layout::Layout;
use super::record::{FACTS, FACTS_IN_FORCE, FACTS_LOG};
use crate::LabError;
use crate::linux::forward::rules::{Hooks, groups_of_nodes};
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::system::During;
use crate::linux::kernel::tables::restore_more;
use crate::linux::run::state::Run;
use crate::linux::serve::names::outside::Outside;

/// The chains of the groups.
const HOOKS: Hooks = Hooks { inbound: "SG-TO-NODES", outbound: "SG-FROM-NODES" };

/// Keeps the fabric in line with the file.
pub(super) struct Stated<'a> {
    run: &'a Run,
    layout: &'a Layout,
    nodes: &'a [Value],
    fabric: &'a Namespace,
    outside: &'a Outside,
    /// The text that was read last.
    last: String,
}

impl<'a> Stated<'a> {
    /// Prepares the fabric. `nodes` has the objects of the nodes.
    pub(super) fn new(
        run: &'a Run,
        layout: &'a Layout,
        nodes: &'a [Value],
        fabric: &'a Namespace,
        outside: &'a Outside,
    ) -> Result<Self, LabError> {
        let Hooks { inbound, outbound } = HOOKS;
        let text = format!(
            "*mangle\n:{inbound} - [0:0]\n:{outbound} - [0:0]\n\
             -A POSTROUTING -j {inbound}\n-A PREROUTING -j {outbound}\nCOMMIT\n"
        );
        restore_more(fabric, Family::V4, &text, "prepare security groups")?;
        Ok(Self { run, layout, nodes, fabric, outside, last: String::new() })
    }

    /// Reads the file if it has changed. If it has errors, they are written beside it, and the
    /// previous facts stay in force.
    pub(super) fn refresh(&mut self) -> Result<(), LabError> {
        // A file that is being replaced may be missing or empty.
        let text = fs::read_to_string(self.run.file(FACTS)).unwrap_or_default();
        if text.is_empty() || text == self.last {
            return Ok(());
        }
        self.last = text;
        let during = "write down the facts that apply";
        match stated(self.layout, self.nodes, &self.last) {
            Ok(cluster) => {
                restore_more(self.fabric, Family::V4, &rules(&cluster), "set security groups")?;
                self.outside.set(cluster.dns.outside);
                self.say(FACTS_LOG, "").during(during)?;
                self.say(FACTS_IN_FORCE, &self.last).during(during)
            }
            Err(faults) => {
                let lines: Vec<String> = faults.iter().map(|fault| format!("{fault}\n")).collect();
                self.say(FACTS_LOG, &lines.concat()).during(during)
            }
        }
    }

    /// Replaces a file.
    fn say(&self, name: &str, text: &str) -> io::Result<()> {
        let new = self.run.file(&format!("{name}.new"));
        fs::write(&new, text)?;
        fs::rename(new, self.run.file(name))
    }
}

/// Returns the cluster that was built, with the facts about its network.
fn stated(layout: &Layout, nodes: &[Value], facts: &str) -> Result<Cluster, Vec<Fault>> {
    let nodes = json!({"apiVersion": "v1", "kind": "List", "items": nodes}).to_string();
    let loaded = uturn_snapshot::read(vec![
        Source { name: "nodes".into(), text: nodes },
        Source { name: FACTS.into(), text: facts.to_owned() },
    ])?;
    let mut cluster = layout.cluster.clone();
    for (name, node) in &mut cluster.nodes {
        let stated = loaded.cluster.nodes.get(name);
        node.security_groups = stated.and_then(|stated| stated.security_groups.clone());
    }
    cluster.provider = loaded.cluster.provider;
    cluster.security_groups = loaded.cluster.security_groups;
    cluster.dns.outside = loaded.cluster.dns.outside;
    Ok(cluster)
}

/// Returns the rules of the nodes' groups, which replace the previous ones.
fn rules(cluster: &Cluster) -> String {
    let Hooks { inbound, outbound } = HOOKS;
    let groups = groups_of_nodes(cluster, Family::V4, HOOKS);
    format!("*mangle\n:{inbound} - [0:0]\n:{outbound} - [0:0]\n{groups}COMMIT\n")
}

#[cfg(test)]
mod tests {
    use super::super::manifests::prepare;
    use super::*;

    #[test]
    fn facts_state_groups_and_names_of_the_nodes_that_are_built() {
        let prepared = prepare(Vec::new(), Some(2));
        let layout = Layout::of(&prepared).unwrap();
        let facts = json!({
            "apiVersion": "uturn.dev/v1alpha1", "kind": "Facts",
            "spec": {
                "provider": "tke",
                "nodes": {"n2": {"securityGroups": ["sg"]}},
                "securityGroups": {"sg": {"inbound": [
                    {"action": "accept", "protocol": "all", "ports": "all", "peer": "10.0.0.0/8"},
                ]}},
                "dns": {"outside": {"shop.example.com": "10.0.0.65"}},
            },
        });
        let cluster = stated(&layout, &prepared.nodes, &facts.to_string()).unwrap();
        assert_eq!(
            rules(&cluster),
            "*mangle\n:SG-TO-NODES - [0:0]\n:SG-FROM-NODES - [0:0]\n:SG-IN-1 - [0:0]\n\
             -A SG-TO-NODES -o n1 -m conntrack --ctstate NEW,UNTRACKED -j SG-IN-1\n\
             -A SG-IN-1 -s 100.64.0.1 -j RETURN\n-A SG-IN-1 -s 100.64.0.2 -j RETURN\n\
             -A SG-IN-1 -s 10.0.0.0/8 -j RETURN\n\
             -A SG-IN-1 -s 168.63.129.16 -j RETURN\n-A SG-IN-1 -s 168.63.129.17 -j RETURN\n\
             -A SG-IN-1 -s 35.191.0.1 -j RETURN\n-A SG-IN-1 -s 35.191.0.2 -j RETURN\n\
             -A SG-IN-1 -j DROP\nCOMMIT\n"
        );
        assert_eq!(cluster.dns.outside.len(), 1);
        assert!(stated(&layout, &prepared.nodes, "{\"kind\": ").is_err());
    }
}
