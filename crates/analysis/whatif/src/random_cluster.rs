//! Small random clusters for tests of losses.

use uturn_dice::Dice;
use uturn_model::Cluster;
use uturn_snapshot::{Source, read};

pub(crate) fn made(text: String) -> Cluster {
    read(vec![Source { name: "cluster.yaml".into(), text }]).unwrap().cluster
}

/// A random cluster of up to eight nodes in up to three zones. Pods of up to four workloads are on
/// some of them, and Services of all kinds lead to them. One text for each object.
pub(crate) fn random(dice: &mut Dice) -> Vec<String> {
    let nodes = 2 + dice.below(6);
    let mode = *dice.pick(&["iptables", "ipvs", "nftables"]);
    let network = *dice.pick(&["global-router", "routed", "vpc-cni"]);
    let facts = format!(
        "apiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec:\n  provider: none\n  network: {{mode: \
         {network}, podCIDRs: [10.1.0.0/16], vpcCIDRs: [10.0.0.0/16], serviceCIDRs: [172.20.0.0/16]}}\n  \
         kubeProxy: {{mode: {mode}, version: v1.31.0}}\n"
    );
    let mut documents = vec![facts];
    for node in 1..=nodes {
        let zone = dice.below(3);
        documents.push(format!(
            "---\n{{apiVersion: v1, kind: Node, metadata: {{name: n{node}, labels: {{kubernetes.io/hostname: \
             n{node}, topology.kubernetes.io/zone: z{zone}}}}}, spec: {{podCIDRs: [10.1.{node}.0/24]}}, status: \
             {{conditions: [{{type: Ready, status: 'True'}}], addresses: [{{type: InternalIP, address: \
             10.0.0.{node}}}]}}}}\n"
        ));
    }
    for workload in 0..1 + dice.below(4) {
        let kind = *dice.pick(&["ClusterIP", "NodePort", "LoadBalancer"]);
        let local = kind != "ClusterIP" && dice.once_in(2);
        let mut spec = format!("type: {kind}, clusterIP: 172.20.0.{}", workload + 1);
        if local {
            spec += ", externalTrafficPolicy: Local";
        }
        if dice.once_in(5) {
            spec += ", internalTrafficPolicy: Local";
        }
        if dice.once_in(5) {
            spec += ", trafficDistribution: PreferClose";
        }
        if dice.once_in(6) {
            spec += ", publishNotReadyAddresses: true";
        }
        let status = if kind == "LoadBalancer" {
            format!(", status: {{loadBalancer: {{ingress: [{{ip: 10.0.9.{}}}]}}}}", workload + 1)
        } else {
            String::new()
        };
        documents.push(format!(
            "---\n{{apiVersion: v1, kind: Service, metadata: {{name: s{workload}, namespace: shop}}, spec: \
             {{{spec}, selector: {{app: w{workload}}}, ports: [{{port: 80, targetPort: 8080{}}}]}}{status}}}\n",
            if kind == "ClusterIP" {
                String::new()
            } else {
                format!(", nodePort: {}", 30080 + workload)
            }
        ));
        for number in 0..dice.below(5) {
            let node = 1 + dice.below(nodes);
            let (last, ready) =
                (10 * (workload + 1) + number, if dice.once_in(8) { "False" } else { "True" });
            documents.push(format!(
                "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: w{workload}-{number}, namespace: shop, labels: \
                 {{app: w{workload}}}}}, spec: {{nodeName: n{node}, containers: [{{name: c, image: c, ports: \
                 [{{containerPort: 8080}}]}}]}}, status: {{phase: Running, podIP: 10.1.{node}.{last}, conditions: \
                 [{{type: Ready, status: '{ready}'}}]}}}}\n"
            ));
        }
    }
    documents
}
