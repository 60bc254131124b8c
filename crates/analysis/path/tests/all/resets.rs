//! Resets that rules send to pods on a bridge, and the packets that pods then send again.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use std::time::Duration;

use uturn_model::{Flow, Outcome, Protocol};
use uturn_path::Engine;
use uturn_snapshot::Source;
use uturn_testing::manifests::{facts, node};

fn pod(name: &str, labels: &str, spec: &str, ip: &str) -> String {
    format!(
        "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: shop, labels: \
         {{{labels}}}}}, spec: {{nodeName: n1, {spec}}}, status: {{phase: Running, podIP: {ip}, \
         podIPs: [{{ip: {ip}}}], conditions: [{{type: Ready, status: 'True'}}]}}}}\n"
    )
}

/// A client on n1, and a Service with a pod that a rule of FORWARD resets and a process of the host's
/// network.
fn shares(mode: &str) -> Vec<(Outcome, f64)> {
    let container = "containers: [{name: c, image: c, ports: [{containerPort: 9000, name: http}]}]";
    let rule = "*filter\\n-A FORWARD -p tcp -j REJECT --reject-with tcp-reset\\nCOMMIT\\n";
    let facts = facts(&[
        &format!("kubeProxy: {{mode: {mode}, version: v1.34.4}}"),
        &format!("nodes: {{n1: {{iptables: \"{rule}\"}}}}"),
    ]);
    let text = [
        facts,
        node(1),
        pod("client", "app: client", "containers: [{name: c, image: c}]", "10.1.1.9"),
        pod("web", "app: web", container, "10.1.1.10"),
        pod("host", "app: web", &format!("hostNetwork: true, {container}"), "10.0.0.11"),
        "---\n{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: \
         {clusterIP: 172.16.0.10, selector: {app: web}, ports: [{port: 80, targetPort: http}]}}\n"
            .to_owned(),
    ]
    .concat();
    let cluster =
        uturn_snapshot::read(vec![Source { name: "a.yaml".into(), text }]).unwrap().cluster;
    let engine = Engine::new(&cluster).unwrap();
    let flow = Flow {
        from: "pod/shop/client".parse().unwrap(),
        to: "svc/shop/web:80".parse().unwrap(),
        protocol: Protocol::Tcp,
    };
    let verdict = engine.verdict(&flow).unwrap();
    verdict.outcomes.iter().map(|(end, share)| (*end, share.get())).collect()
}

/// The pod ignores a reset from an address that it did not call, and nothing remembers the endpoint:
/// its next packet may go to the other one.
#[test]
fn after_a_reset_in_vain_another_endpoint_may_be_picked() {
    for mode in ["iptables", "nftables"] {
        let shares = shares(mode);
        let late = Outcome::Answered { after: Duration::from_secs(1) };
        assert_eq!(shares[..2], [(Outcome::AT_ONCE, 0.5), (late, 0.25)], "{mode}: {shares:?}");
        let (last, share) = shares.last().unwrap();
        assert!(*last == Outcome::Hangs && *share < 0.01, "{mode}: {shares:?}");
    }
}
