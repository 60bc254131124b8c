//! A real kube-proxy on each node.

use std::fs;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net};
use serde_json::{Value, json};
use uturn_model::proxy::LocalDetector;
use uturn_model::{Family, ProxyMode};

use super::credentials::{self, Credentials, KUBE_PROXY, PORT};
use super::layout::Layout;
use super::parts::Parts;
use super::vendor_build;
use crate::LabError;
use crate::linux::build::lab_cluster::LabCluster;
use crate::linux::kernel::system::During;
use crate::linux::run::program::Program;
use crate::linux::run::state::Run;

/// The longest time for a connection for which rules may still have to be written.
const CONNECT: Duration = Duration::from_millis(300);

/// The kube-proxies of all nodes. They end when this is dropped.
#[derive(Debug)]
pub(super) struct Proxies(Vec<Proxy>);

#[derive(Debug)]
struct Proxy {
    node: String,
    log: PathBuf,
    program: Program,
}

impl Proxies {
    /// Fails if one of them has ended.
    pub(super) fn check(&mut self) -> Result<(), LabError> {
        self.0.iter_mut().try_for_each(|Proxy { node, log, program }| {
            program.check(log, &format!("run kube-proxy on {node}"))
        })
    }
}

/// Returns whether kube-proxies stand in for a cloud's build that treats some Services differently.
pub(super) fn is_filtered(parts: &Parts, mode: ProxyMode) -> bool {
    parts.vendor_build.is_some() && mode == ProxyMode::Ipvs
}

/// Starts a kube-proxy in each node's namespace.
pub(super) fn start(
    run: &Run,
    parts: &Parts,
    layout: &Layout,
    mode: ProxyMode,
    lab_cluster: &LabCluster,
    credentials: &Credentials,
) -> Result<Proxies, LabError> {
    let during = "write the configuration of kube-proxy";
    let file = credentials.file("kube-proxy.kubeconfig");
    let is_filtered = is_filtered(parts, mode);
    let kubeconfig = if is_filtered {
        let mut kubeconfig = credentials.kubeconfig(KUBE_PROXY, layout.api, vendor_build::PORT);
        let server = format!("http://{}:{}", layout.api, vendor_build::PORT);
        kubeconfig["clusters"][0]["cluster"] = json!({"server": server});
        credentials::write(&file, &kubeconfig.to_string()).during(during)?;
        file
    } else {
        credentials.write_kubeconfig(file, KUBE_PROXY, layout.api, PORT).during(during)?
    };
    let mut proxies = Vec::new();
    for (name, space) in &lab_cluster.nodes {
        let node = &layout.cluster.nodes[name];
        let mut config = configuration(layout, mode);
        config["bindAddress"] = json!(node.address(Family::V4));
        config["clientConnection"] = json!({"kubeconfig": kubeconfig});
        if is_filtered {
            config["clientConnection"]["contentType"] = json!("application/json");
            config["clientConnection"]["acceptContentTypes"] = json!("application/json");
        }
        let file = run.file(&format!("kube-proxy-{name}.json"));
        fs::write(&file, config.to_string()).during(during)?;
        let mut proxy = Command::new(&parts.kube_proxy);
        proxy.arg("--config").arg(file).args(["--hostname-override", name.as_str()]);
        let log = run.file(&format!("kube-proxy-{name}.log"));
        let during = format!("start kube-proxy on {name}");
        // kube-proxy serves once it has seen its Node, which is waited for elsewhere.
        let program = Program::start(run, space, proxy, &log, "", &during)?;
        proxies.push(Proxy { node: name.to_string(), log, program });
    }
    Ok(Proxies(proxies))
}

/// Returns whether every node's rules lead to the API server by its Service.
pub(super) fn are_programmed(layout: &Layout, lab_cluster: &LabCluster) -> bool {
    let first = u32::from(layout.services.network()) + 1;
    let service = SocketAddr::new(IpAddr::V4(first.into()), 443);
    let connects = || TcpStream::connect_timeout(&service, CONNECT).map(drop);
    lab_cluster.nodes.values().all(|space| space.run(connects).is_ok())
}

/// Returns the objects of kube-proxy as a cluster has them. Their pods only represent the programs
/// that run on the nodes anyway.
pub(super) fn objects(layout: &Layout, mode: ProxyMode, parts: &Parts) -> Vec<Value> {
    const NAME: &str = "kube-proxy";
    let labels = json!({"k8s-app": NAME});
    let version = parts.kube_proxy_version.as_deref().map(|version| format!(":{version}"));
    let image = format!("registry.k8s.io/{NAME}{}", version.unwrap_or_default());
    let mut config = configuration(layout, mode);
    config["bindAddress"] = json!("0.0.0.0");
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "kube-system", "name": NAME, "labels": labels},
        "data": {"config.conf": config.to_string()},
    });
    let set = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"namespace": "kube-system", "name": NAME, "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {
                "hostNetwork": true, "priorityClassName": "system-node-critical",
                "tolerations": [{"operator": "Exists"}],
                "containers": [{
                    "name": NAME, "image": image, "securityContext": {"privileged": true},
                    "command": ["/usr/local/bin/kube-proxy",
                                "--config=/var/lib/kube-proxy/config.conf"],
                }],
            },
        }},
    });
    vec![map, set]
}

/// Returns the pod range of the kube-proxy configuration in the manifests, or else that of all
/// nodes.
fn cluster_cidr(layout: &Layout) -> Ipv4Net {
    let stated: &[IpNet] = match &layout.cluster.proxy.detector.value {
        LocalDetector::ClusterCidr(nets) => nets,
        _ => &[],
    };
    let has_all = |net: &IpNet| match net {
        IpNet::V4(net) => net.contains(&layout.pods).then_some(*net),
        IpNet::V6(_) => None,
    };
    stated.iter().find_map(has_all).unwrap_or(layout.pods)
}

fn configuration(layout: &Layout, mode: ProxyMode) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
        "mode": mode.as_str(),
        "clusterCIDR": cluster_cidr(layout).to_string(),
        "detectLocalMode": "ClusterCIDR",
        // The machine's limit of conntrack entries must not be changed by the lab.
        "conntrack": {"maxPerCore": 0},
    })
}
