use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use uturn_model::capture::CapturedText;
use uturn_model::proxy::{LocalDetector, NodePortAddresses};
use uturn_model::{Capture, Name, ProxyMode};
use uturn_snapshot::Source;

use super::*;

/// The rules that a real kube-proxy left equal the derived ones, in all its modes. (The second node
/// with IPVS had the first one's address too.)
#[test]
fn what_kube_proxy_left_says_nothing_new() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kubeproxy/tests/golden");
    let objects = [golden.join("objects.yaml"), golden.join("beside.yaml")];
    for (mode, nodes) in [(ProxyMode::Iptables, 3), (ProxyMode::Nftables, 3), (ProxyMode::Ipvs, 1)]
    {
        let facts = format!(
            "apiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec:\n  \
             kubeProxy: {{mode: {mode}, version: v1.34.4, variant: upstream}}\n  \
             network: {{mode: global-router, podCIDRs: [10.1.0.0/16], serviceCIDRs: [172.16.0.0/16]}}\n"
        );
        let mut sources = vec![Source { name: "facts".into(), text: facts }];
        for path in &objects {
            let name = path.display().to_string().into();
            sources.push(Source { name, text: fs::read_to_string(path).unwrap() });
        }
        let mut cluster = uturn_snapshot::read(sources).unwrap().cluster;
        for (node, number) in cluster.nodes.values_mut().zip(11..) {
            node.internal_ips = vec![[10, 0, 0, number].into()];
        }
        let pods = vec!["10.1.0.0/16".parse().unwrap()];
        cluster.proxy.detector.value = LocalDetector::ClusterCidr(pods);
        cluster.proxy.node_port_addresses = match mode {
            ProxyMode::Ipvs => NodePortAddresses::All,
            ProxyMode::Iptables | ProxyMode::Nftables => NodePortAddresses::Primary,
        };
        for number in 1..=nodes {
            let node: Name = format!("n{number}").parse().unwrap();
            let folder = golden.join(format!("{mode}-{node}"));
            let mut files = BTreeMap::new();
            for file in CaptureFile::ALL {
                if let Ok(text) = fs::read_to_string(folder.join(file.file_name())) {
                    let path = file.file_name().into();
                    files.insert(file, CapturedText { path, text: text.into() });
                }
            }
            assert!(!files.is_empty(), "{}", folder.display());
            cluster.captures.insert(node.clone(), Capture { node, files });
        }
        let known = Addresses::of(&cluster);
        for name in cluster.captures.keys() {
            let node = &cluster.nodes[name];
            let captured = NodeRuntime::new(&cluster, node).unwrap();
            let plain = without_capture(&cluster, node, &captured, &known);
            assert!(plain.is_some(), "{mode} {name}");
        }
    }
}
