//! Pods and Services without Node objects: what the pods' status says of their nodes counts.

use super::common::Folder;

/// Pods of three nodes, each beside the address of its node, and a Service.
fn listing(test: &str, address: impl Fn(u8) -> String) -> Folder {
    let pods = (1..4).map(|node| {
        let (pod, host) = (address(node), format!("10.0.0.1{node}"));
        format!(
            "---
apiVersion: v1
kind: Pod
metadata: {{name: web-{node}, namespace: t, labels: {{app: web}}}}
spec: {{nodeName: n{node}, containers: [{{name: c, image: c, ports: [{{containerPort: 80}}]}}]}}
status: {{phase: Running, podIP: {pod}, hostIP: {host}, conditions: [{{type: Ready, status: \"True\"}}]}}
"
        )
    });
    let service = "---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: t}
spec: {clusterIP: 10.96.0.20, selector: {app: web}, ports: [{port: 80}]}
";
    let folder = Folder::new(&format!("without-nodes-{test}"));
    folder.file("all.yaml", &(pods.collect::<String>() + service));
    folder
}

#[test]
fn pods_with_addresses_beside_their_nodes_are_on_no_bridge() {
    // In the network of the nodes, and next to each other in one of their own.
    for (test, net) in [("own", "10.0.0"), ("shared", "10.0.9")] {
        let printed = listing(test, |node| format!("{net}.4{node}")).run(&["scan", "-f", "."]);
        assert!(printed.starts_with("exit 0\n"), "{printed}");
        assert!(printed.contains("nothing found; 3 of 3 calls fine"), "{printed}");
    }
}

#[test]
fn a_node_has_the_address_that_its_pods_state() {
    let folder = listing("host", |node| format!("10.244.{node}.5"));
    let to = ["trace", "-f", ".", "--from", "node/n2", "--to", "10.244.1.5:80"];
    let printed = folder.run(&to);
    assert!(printed.contains("10.0.0.12:40000 → 10.244.1.5:80"), "{printed}");
}

/// An address of a pod that has ended tells nothing of its node's range.
#[test]
fn pods_that_have_ended_left_their_address() {
    let folder = listing("ended", |node| format!("10.244.{node}.5"));
    let text = std::fs::read_to_string(folder.0.join("all.yaml")).unwrap();
    let (ended, _) = text[4..].split_once("---").unwrap();
    let ended = ended
        .replace("web-1", "a-job")
        .replace("{app: web}", "{app: job}")
        .replace("10.244.1.5", "10.244.77.5")
        .replace("Running", "Succeeded");
    folder.file("all.yaml", &format!("---\n{ended}{text}"));
    let printed = folder.run(&["scan", "-f", "."]);
    assert!(printed.starts_with("exit 0\n"), "{printed}");
    assert!(printed.contains("nothing found; 3 of 3 calls fine"), "{printed}");
}

/// Pods have addresses of both families, and nothing is said of their nodes' ranges.
#[test]
fn ranges_of_both_families_are_around_the_pods() {
    let folder = listing("dual", |node| format!("10.244.{node}.5"));
    let mut text = std::fs::read_to_string(folder.0.join("all.yaml")).unwrap();
    for node in 1..4 {
        let own = format!("podIP: 10.244.{node}.5");
        let both = format!("podIPs: [{{ip: 10.244.{node}.5}}, {{ip: \"fd00:10:244:{node}::5\"}}]");
        text = text.replace(&own, &both);
    }
    let both = "clusterIPs: [10.96.0.20, \"fd00:10:96::20\"], ipFamilies: [IPv4, IPv6]";
    text = text.replace("clusterIP: 10.96.0.20", both);
    folder.file("all.yaml", &text);
    let printed = folder.run(&["scan", "-f", "."]);
    assert!(printed.starts_with("exit 0\n"), "{printed}");
    assert!(printed.contains("nothing found; "), "{printed}");
    let to = ["trace", "-f", ".", "--from", "pod/t/web-1", "--to", "[fd00:10:96::20]:80"];
    assert!(folder.run(&to).starts_with("exit 0\n--- stdout\nanswered at once"));
}
