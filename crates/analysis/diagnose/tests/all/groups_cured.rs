//! Rules of security groups as cures: exactly the port and the direction that a group lacks, for the
//! source of the packet that it dropped.

use uturn_testing::manifests::{ReadyNode, RunningPod};

use super::more_cures::{CLIENT, IPTABLES, client, cures, offered, pod, service, web};

/// Groups of all nodes with these inbound rules.
fn groups(inbound: &str) -> String {
    format!(
        "nodes: {{\"*\": {{securityGroups: [nodes]}}}}
  securityGroups: {{nodes: {{inbound: [{inbound}]}}}}"
    )
}

/// As an API server calls a webhook: the pod's address, and nothing translates its port.
#[test]
fn a_call_of_a_pods_address_gets_its_port() {
    let near = groups("{action: accept, protocol: tcp, ports: \"443\", peer: 10.0.99.0/24}");
    let far = groups("{action: accept, protocol: tcp, ports: \"443\", peer: 10.9.0.0/24}");
    let server = pod("web-1", 1, ", labels: {app: web}", "");
    for (groups, first) in [
        // A range that the group names for that client already.
        (&near, "let TCP 8080 from 10.0.99.0/24 in, in nodes"),
        (&far, "let TCP 8080 from 10.0.0.0/16 in, in nodes"),
    ] {
        let cures = cures(&[IPTABLES, groups], &server, "outside/10.0.99.9", "10.1.1.15:8080");
        let all = offered(&cures);
        assert_eq!(all[0], ("security-group", first));
        assert!(all.contains(&("security-group", "let TCP 8080 from 10.0.99.9/32 in, in nodes")));
        let said = cures[0].commands[0].to_string();
        assert!(said.contains("security group nodes, inbound: let TCP 8080 from"), "{said}");
    }
}

/// A client outside that nobody names is any client.
#[test]
fn a_call_from_anywhere_gets_a_rule_for_everybody() {
    let ports = "ports: [{port: 80, targetPort: 8080, nodePort: 30080}]";
    let service = service(&format!("type: NodePort, clusterIP: 172.16.0.10, {ports}"));
    let objects = [service, web(1)].concat();
    // Nodes reach each other's pods.
    let groups = groups("{action: accept, protocol: all, peer: 10.0.0.0/15}");
    let stated = [IPTABLES, &*groups];
    for (from, peer) in [("outside", "anywhere"), ("outside/192.0.2.7", "192.0.2.7/32")] {
        let cures = cures(&stated, &objects, from, "10.0.0.11:30080");
        let title = format!("let TCP 30080 from {peer} in, in nodes");
        assert_eq!(offered(&cures)[0], ("security-group", &*title));
    }
}

/// Only what is called is let in first, from where it is called.
#[test]
fn a_rule_for_everything_is_not_the_first() {
    let groups = groups("{action: accept, protocol: tcp, ports: \"443\", peer: 10.0.0.0/16}");
    let objects = [web(1), client(2)].concat();
    let cures = cures(&[IPTABLES, &groups], &objects, CLIENT, "pod/shop/web-1:8080");
    let titles: Vec<&str> = offered(&cures).into_iter().map(|(_, title)| title).collect();
    assert_eq!(titles[0], "let TCP 8080 from 10.1.0.0/16 in, in nodes");
    assert!(titles[1..].contains(&"let everything from 10.1.0.0/16 in, in nodes"), "{titles:?}");
}

/// Nodes that arrive with public addresses are let in by them, not by the range of the network.
#[test]
fn nodes_are_let_in_by_the_addresses_with_which_they_arrive() {
    let nodes: String = [1, 2, 3]
        .map(|number| {
            ReadyNode {
                number: number + 2,
                address: &format!("10.0.0.2{number}"),
                more_addresses: &format!(", {{type: ExternalIP, address: 203.0.113.{number}}}"),
                ..ReadyNode::default()
            }
            .to_string()
        })
        .concat();
    let server = RunningPod {
        node: 4,
        address: "10.0.0.22",
        host_network: true,
        ports: "{containerPort: 6443}",
        ..RunningPod::default()
    };
    let objects = nodes + &server.to_string();
    let groups = groups("{action: accept, protocol: tcp, ports: \"443\", peer: 10.0.0.0/16}");
    let cures = cures(&[IPTABLES, &groups], &objects, "node/n3", "203.0.113.2:6443");
    let peers = "203.0.113.1/32, 203.0.113.2/32, 203.0.113.3/32";
    let title = format!("let TCP 6443 from the nodes ({peers}) in, in nodes");
    assert_eq!(offered(&cures)[0], ("security-group", &*title));
}
