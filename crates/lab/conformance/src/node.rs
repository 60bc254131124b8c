//! A node as a namespace, with its interfaces and a real kube-proxy.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use uturn_model::Version;

use crate::control_plane::{ControlPlane, KUBECONFIG};
use crate::dump::Dump;
use crate::fault::{During as _, Fault, Outcome};
use crate::flows::DEVICES;
use crate::mode::Mode;
use crate::net;
use crate::packets::ProbedNode;
use crate::wire::{Probe, ProbeResult, Wire};
use crate::workspace::{Namespace, Running, Workspace, run};

/// One node of the cluster with kube-proxy in one mode.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) number: u8,
    pub(crate) mode: Mode,
    wire: Wire,
    host: String,
    proxy: Running,
    namespace: Namespace,
}

impl Node {
    /// Creates the node and starts kube-proxy on it with this configuration.
    pub(crate) fn start(
        workspace: &Workspace,
        control: &ControlPlane<'_>,
        (number, mode): (u8, Mode),
        (version, config): (Version, &Value),
        rp_filter: u8,
    ) -> Outcome<Self> {
        let name = format!("n{number}");
        let what = format!("{mode}-{name}");
        let namespace = workspace.namespace(&what)?;
        let wire = Wire::open(workspace, &namespace, &DEVICES)?;
        let link = workspace.next_link();
        let host = net::link(link);
        set_up(&namespace, number, rp_filter)?;
        control.connect(&namespace, link, &host)?;
        let mut config = config.clone();
        mode.configure(version, &mut config);
        let config = write_config(workspace.folder(), &what, config, &host)?;
        let mut proxy = workspace.kube_proxy(&namespace, version);
        proxy.arg("--config").arg(config).args(["--hostname-override", &name]);
        let proxy = workspace.start(&mut proxy, &format!("kube-proxy-{what}"))?;
        Ok(Self { name, number, mode, wire, host, proxy, namespace })
    }

    /// Returns the address at which the API server's namespace reaches kube-proxy's metrics.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Dumps the node's kernel state.
    pub(crate) fn dump(&self) -> Outcome<Dump> {
        Dump::take(&self.namespace, self.mode)
    }

    /// Returns whether the node's kernel has both of these addresses of a Service.
    pub(crate) fn shows(&self, addresses: &[String; 2]) -> Outcome<bool> {
        self.mode.shows(&self.namespace, addresses)
    }

    /// Fails if kube-proxy has ended.
    pub(crate) fn check(&mut self) -> Outcome<()> {
        let named = format!("kube-proxy {} on {}", self.mode, self.name);
        self.proxy.check().map_err(|fault| Fault::new(format!("{named} {fault}")))
    }

    pub(crate) fn last_lines(&self) -> String {
        self.proxy.last_lines()
    }

    /// Runs a program in the node's namespace and returns its output.
    pub(crate) fn output(&self, words: &[&str]) -> Outcome<String> {
        self.namespace.output(words)
    }

    /// Stops the node's kube-proxy, which then changes nothing until [`Node::go_on`].
    pub(crate) fn stop(&self) -> Outcome<()> {
        self.signal("-STOP")
    }

    /// Lets the node's kube-proxy go on.
    pub(crate) fn go_on(&self) -> Outcome<()> {
        self.signal("-CONT")
    }

    fn signal(&self, signal: &str) -> Outcome<()> {
        let id = self.proxy.child.id().to_string();
        run(Command::new("kill").args([signal, &id]), "").map(|_| ())
    }
}

impl ProbedNode for Node {
    fn name(&self) -> &str {
        &self.name
    }

    fn send(&mut self, probe: &Probe) -> Outcome<ProbeResult> {
        self.wire.send(probe)
    }

    /// Clears session affinity: the wire clears `-m recent`, and this flushes the affinity sets of
    /// nftables.
    fn forget_clients(&mut self, dump: &Dump) -> Outcome<bool> {
        let commands = dump.forget();
        if !commands.is_empty() {
            let mut nft = self.namespace.command(Path::new("nft"));
            run(nft.args(["-f", "-"]), &commands)?;
        }
        Ok(self.mode.forgets())
    }
}

fn set_up(namespace: &Namespace, number: u8, rp_filter: u8) -> Outcome<()> {
    let [v4, v6] = net::node(number);
    let [pod4, pod6] = net::pod(number, 1);
    let mut lines = format!(
        "addr add {v4}/24 dev eth0\naddr add {v6}/64 dev eth0 nodad\n\
         addr add {pod4}/24 dev cbr0\naddr add {pod6}/64 dev cbr0 nodad\n\
         link set eth0 up\nlink set cbr0 up\n\
         route add default via 10.0.0.1 dev eth0\nroute add ::/0 via fd00:aa::1 dev eth0\n"
    );
    for other in (1..=net::NODES).filter(|other| *other != number) {
        for (pods, via) in net::pods(other).iter().zip(net::node(other)) {
            lines.push_str(&format!("route add {pods} via {via} dev eth0\n"));
        }
    }
    // Sysctls are set before the addresses, because enabling forwarding resets other sysctls.
    let switches = [
        "net.ipv4.ip_forward=1".to_owned(),
        "net.ipv6.conf.all.forwarding=1".to_owned(),
        format!("net.ipv4.conf.all.rp_filter={rp_filter}"),
        format!("net.ipv4.conf.eth0.rp_filter={rp_filter}"),
        format!("net.ipv4.conf.cbr0.rp_filter={rp_filter}"),
        // Turns off the rate limits of ICMP errors.
        "net.ipv4.icmp_ratelimit=0".to_owned(),
        "net.ipv6.icmp.ratelimit=0".to_owned(),
    ];
    let mut words = vec!["sysctl", "-qw"];
    words.extend(switches.iter().map(String::as_str));
    namespace.output(&words)?;
    // Some kernels also have a global limit of ICMP errors.
    let _ = namespace.output(&["sysctl", "-qw", "net.ipv4.icmp_msgs_per_sec=1000000"]);
    let _ = namespace.output(&["sysctl", "-qw", "net.ipv4.icmp_msgs_burst=1000000"]);
    namespace.ip(&lines)
}

/// Writes the cluster's configuration with the settings of this node.
fn write_config(
    folder: &Path,
    what: &str,
    mut config: Value,
    host: &str,
) -> Outcome<std::path::PathBuf> {
    config["clientConnection"] = json!({"kubeconfig": folder.join(KUBECONFIG)});
    config["metricsBindAddress"] = json!(format!("{host}:10249"));
    config["healthzBindAddress"] = json!(format!("{host}:10256"));
    config["conntrack"]["maxPerCore"] = json!(0);
    let path = folder.join(format!("{what}.json"));
    fs::write(&path, config.to_string()).during(path.display())?;
    Ok(path)
}
