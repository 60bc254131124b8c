//! A real API server with a real etcd, in their own namespace. The small machine uses the host's
//! API server over a link.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::fault::{During as _, Fault, Outcome};
use crate::net;
use crate::workspace::{Namespace, Running, Workspace, run};

const TOKEN: &str = "conformance";
const PORT: u16 = 6443;

/// The kubeconfig of kube-proxy, in the run's folder.
pub(crate) const KUBECONFIG: &str = "kubeconfig.json";

/// The machine's end of its link to the host, and the host's.
const MACHINE_LINK: &str = "vec0";
const HOST_LINK: &str = "machine0";

/// The running API server and etcd, or the route to those of the host.
#[derive(Debug)]
pub(crate) struct ControlPlane<'w> {
    workspace: &'w Workspace,
    // Dropped in this order: the server before etcd.
    running: Vec<Running>,
    namespace: Namespace,
    /// The gateway between nodes and the server.
    gateway: &'static str,
}

impl<'w> ControlPlane<'w> {
    pub(crate) fn start(workspace: &'w Workspace) -> Outcome<Self> {
        let namespace = workspace.namespace("api")?;
        namespace.ip(&format!("addr add {}/32 dev lo\n", net::API))?;
        let folder = workspace.folder();

        let mut etcd = workspace.program(&namespace, "etcd");
        etcd.arg("--data-dir").arg(folder.join("etcd"));
        etcd.args(["--unsafe-no-fsync", "--log-level", "error"]);
        etcd.args(["--listen-client-urls", "http://127.0.0.1:2379"]);
        etcd.args(["--advertise-client-urls", "http://127.0.0.1:2379"]);
        etcd.args(["--listen-peer-urls", "http://127.0.0.1:2380"]);
        let etcd = workspace.start(&mut etcd, "etcd")?;

        let key = folder.join("key.pem");
        let made = run(workspace.program(&namespace, "objects").arg("key"), "")?;
        fs::write(&key, made).during(key.display())?;
        let tokens = folder.join("tokens.csv");
        let line = format!("{TOKEN},conformance,1,system:masters\n");
        fs::write(&tokens, line).during(tokens.display())?;

        write_kubeconfig(workspace)?;
        let mut server = workspace.program(&namespace, "kube-apiserver");
        server.args(["--etcd-servers", "http://127.0.0.1:2379"]);
        server.args(["--secure-port", &PORT.to_string(), "--advertise-address", net::API]);
        server.arg("--cert-dir").arg(folder.join("certificates"));
        server.arg("--token-auth-file").arg(&tokens);
        server.arg("--service-account-key-file").arg(&key);
        server.arg("--service-account-signing-key-file").arg(&key);
        server.args(["--service-account-issuer", "https://conformance"]);
        server.args(["--service-cluster-ip-range", &net::SERVICES.join(",")]);
        server.args(["--authorization-mode", "AlwaysAllow"]);
        server.args(["--disable-admission-plugins", "ServiceAccount"]);
        let server = workspace.start(&mut server, "kube-apiserver")?;

        let mut control =
            Self { workspace, running: vec![server, etcd], namespace, gateway: net::API };
        control.ask(&["ready"], "").map_err(|fault| {
            let why = control.running[0].check().err().map_or(String::new(), |end| end.to_string());
            Fault::new(format!("{fault}\nkube-apiserver {why}"))
        })?;
        Ok(control)
    }

    /// Connects to the host's server, from inside the machine.
    pub(crate) fn join(workspace: &'w Workspace) -> Outcome<Self> {
        let namespace = workspace.namespace("api")?;
        let (server, gateway, inner) = (net::API, net::GATEWAY, namespace.name());
        run(Command::new("ip").args(["link", "set", MACHINE_LINK, "netns", inner]), "")?;
        namespace.ip(&format!(
            "addr add {gateway} peer {server} dev {MACHINE_LINK}\nlink set {MACHINE_LINK} up\n"
        ))?;
        namespace.output(&["sysctl", "-qw", "net.ipv4.ip_forward=1"])?;
        write_kubeconfig(workspace)?;
        let control = Self { workspace, running: Vec::new(), namespace, gateway };
        control.ask(&["ready"], "")?;
        Ok(control)
    }

    pub(crate) fn workspace(&self) -> &'w Workspace {
        self.workspace
    }

    /// Creates the host's end of the machine's link. Returns its namespace and device.
    pub(crate) fn link(&self) -> Outcome<(&str, &'static str)> {
        let (server, gateway, nodes) = (net::API, net::GATEWAY, net::LINKS);
        self.namespace.ip(&format!(
            "tuntap add dev {HOST_LINK} mode tap\n\
             addr add {server} peer {gateway} dev {HOST_LINK}\nlink set {HOST_LINK} up\n\
             route add {nodes} via {gateway} dev {HOST_LINK}\n"
        ))?;
        Ok((self.namespace.name(), HOST_LINK))
    }

    /// Connects a node's namespace to the server with a link that test packets do not use. The
    /// node has the address `host` on it.
    pub(crate) fn connect(&self, node: &Namespace, link: u16, host: &str) -> Outcome<()> {
        let (server, gateway, other) = (net::API, self.gateway, self.namespace.name());
        node.ip(&format!(
            "link add api0 type veth peer name node{link} netns {other}\n\
             addr add {host} peer {gateway} dev api0\nlink set api0 up\n"
        ))?;
        if gateway != server {
            node.ip(&format!("route add {server} via {gateway} dev api0\n"))?;
        }
        self.namespace
            .ip(&format!("addr add {gateway} peer {host} dev node{link}\nlink set node{link} up\n"))
    }

    /// Replaces all objects with these. Returns the server's own objects.
    pub(crate) fn replace(&self, items: &[Value]) -> Outcome<Vec<Value>> {
        let own = self.ask(&["replace"], &list(items).to_string())?;
        let mut own: Value = serde_json::from_str(&own).during("what the API server has")?;
        match own["items"].take() {
            Value::Array(items) => Ok(items),
            other => Err(Fault::new(format!("the API server's own objects are {other}"))),
        }
    }

    /// Adds objects.
    pub(crate) fn add(&self, items: &[Value]) -> Outcome<()> {
        self.ask(&["add"], &list(items).to_string()).map(|_| ())
    }

    /// Sets the labels of nodes.
    pub(crate) fn relabel(&self, items: &[Value]) -> Outcome<()> {
        self.ask(&["relabel"], &list(items).to_string()).map(|_| ())
    }

    /// Waits until each of these kube-proxies has programmed all objects that it has seen.
    pub(crate) fn synced<'a>(&self, hosts: impl Iterator<Item = &'a str>) -> Outcome<()> {
        let urls: Vec<String> = hosts.map(|host| format!("http://{host}:10249/metrics")).collect();
        let words: Vec<&str> =
            ["synced"].into_iter().chain(urls.iter().map(|url| &**url)).collect();
        self.ask(&words, "").map(|_| ())
    }

    fn ask(&self, words: &[&str], input: &str) -> Outcome<String> {
        self.workspace.check()?;
        let mut objects: Command = self.workspace.program(&self.namespace, "objects");
        run(objects.args(words).env("SERVER", server()).env("TOKEN", TOKEN), input)
    }
}

fn write_kubeconfig(workspace: &Workspace) -> Outcome<()> {
    let path = workspace.folder().join(KUBECONFIG);
    fs::write(&path, kubeconfig().to_string()).during(path.display())
}

/// Returns the content of the kubeconfig.
fn kubeconfig() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "one",
        "clusters": [{"name": "one", "cluster": {
            "server": server(), "insecure-skip-tls-verify": true}}],
        "users": [{"name": "one", "user": {"token": TOKEN}}],
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}],
    })
}

fn server() -> String {
    format!("https://{}:{PORT}", net::API)
}

/// Returns a List as kubectl prints one.
pub(crate) fn list(items: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}
