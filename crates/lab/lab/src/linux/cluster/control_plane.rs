//! The control plane: etcd, kube-apiserver, kube-controller-manager and kube-scheduler in a
//! namespace that is a host of the fabric.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;

use uturn_model::Family;

use super::credentials::{
    AUTHORITY, CALLER_CERTIFICATE, CALLER_KEY, CONTROLLERS, Credentials, PORT, SCHEDULER,
};
use super::layout::Layout;
use super::parts::Parts;
use crate::LabError;
use crate::linux::build::links::{ROUTER, Wire, everything, mac, namespace};
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::netlink::{Index, Netlink, Via};
use crate::linux::kernel::settings::disable_address_detection;
use crate::linux::kernel::system::During;
use crate::linux::run::program::Program;
use crate::linux::run::state::Run;

/// The purposes of the two ends of the control plane's link, as [`mac`] numbers them.
const FABRIC_END: u8 = 20;
const OWN_END: u8 = 21;

/// The message of Kubernetes's own programs once they serve.
const SERVES: &str = "Serving securely";

/// The allowed delay of a node's lease. The stand-in for the kubelet renews all nodes' leases, late
/// on a busy machine, and ends with the cluster: so no node is ever lost.
const NODE_GRACE: &str = "10m";

/// The running programs. They end when this is dropped.
#[derive(Debug)]
pub(super) struct ControlPlane {
    // The order matters: a client ends before its server.
    programs: Vec<Program>,
    pub(super) space: Namespace,
}

impl ControlPlane {
    /// Makes the namespace and connects it to the fabric.
    pub(super) fn connect(run: &Run, fabric: &Namespace, api: Ipv4Addr) -> Result<Self, LabError> {
        let space = namespace(run, "control")?;
        let during = "connect the control plane";
        let wire = Wire { here: "control".into(), there: "eth0", mac: mac(OWN_END, 0) };
        space.run(disable_address_detection).during(during)?;
        fabric
            .run(|| {
                let mut netlink = Netlink::open()?;
                let link = wire.lay(&mut netlink, mac(FABRIC_END, 0), &space)?;
                netlink.add_neighbour(link, api.into(), wire.mac)?;
                netlink.add_route(IpAddr::from(api).into(), Via::Link(link))
            })
            .during(during)?;
        space.run(|| configure(api)).during(during)?;
        Ok(Self { programs: Vec::new(), space })
    }

    /// Starts the programs.
    pub(super) fn start(
        &mut self,
        run: &Run,
        parts: &Parts,
        layout: &Layout,
        credentials: &Credentials,
    ) -> Result<(), LabError> {
        let begin = |command: Command, name: &str, ready: &'static str| {
            let log = run.file(&format!("{name}.log"));
            Program::start(run, &self.space, command, &log, ready, &format!("start {name}"))
        };
        let etcd = begin(etcd(run, parts), "etcd", "ready to serve client requests")?;
        self.programs.insert(0, etcd);
        let server = api_server(parts, layout, credentials);
        let server = begin(server, "kube-apiserver", SERVES)?;
        self.programs.insert(0, server);
        Ok(())
    }

    /// Starts the controllers and the scheduler. The API server must be ready.
    pub(super) fn start_controllers(
        &mut self,
        run: &Run,
        parts: &Parts,
        layout: &Layout,
        credentials: &Credentials,
    ) -> Result<(), LabError> {
        let during = "write the kubeconfigs of the control plane";
        let kubeconfig = |user: &str, name: &str| {
            let path = credentials.file(&format!("{name}.kubeconfig"));
            credentials.write_kubeconfig(path, user, layout.api, PORT).during(during)
        };
        let config = kubeconfig(CONTROLLERS, "kube-controller-manager")?;
        let mut controllers = Command::new(&parts.controllers);
        controllers.arg("--kubeconfig").arg(&config);
        controllers.args(["--bind-address", "127.0.0.1", "--leader-elect=false"]);
        controllers.args(["--use-service-account-credentials", "--node-monitor-period=1s"]);
        controllers.arg(format!("--node-monitor-grace-period={NODE_GRACE}"));
        controllers.arg("--root-ca-file").arg(credentials.file(AUTHORITY));
        let key = credentials.file("accounts.key");
        controllers.arg("--service-account-private-key-file").arg(key);

        let config = kubeconfig(SCHEDULER, "kube-scheduler")?;
        let mut scheduler = Command::new(&parts.scheduler);
        scheduler.arg("--kubeconfig").arg(&config);
        scheduler.args(["--bind-address", "127.0.0.1", "--leader-elect=false"]);
        for (command, name) in
            [(controllers, "kube-controller-manager"), (scheduler, "kube-scheduler")]
        {
            let log = run.file(&format!("{name}.log"));
            let during = format!("start {name}");
            let program = Program::start(run, &self.space, command, &log, SERVES, &during)?;
            self.programs.insert(0, program);
        }
        Ok(())
    }
}

/// Configures the calling thread's namespace: its address, and routes through the fabric.
fn configure(api: Ipv4Addr) -> io::Result<()> {
    let mut netlink = Netlink::open()?;
    netlink.up(Index::LOOPBACK)?;
    let link = netlink.index("eth0")?;
    netlink.up(link)?;
    netlink.add_address(link, IpAddr::from(api).into())?;
    let router = ROUTER.into_iter().find(|router| Family::of(*router) == Family::V4);
    let router = router.expect("there is a router of each family");
    netlink.add_neighbour(link, router, mac(FABRIC_END, 0))?;
    netlink.add_route(everything(router), Via::Router(router, link))
}

fn etcd(run: &Run, parts: &Parts) -> Command {
    let mut etcd = Command::new(&parts.etcd);
    etcd.arg("--data-dir").arg(run.file("etcd"));
    etcd.args(["--unsafe-no-fsync", "--log-level", "info"]);
    etcd.args(["--listen-client-urls", "http://127.0.0.1:2379"]);
    etcd.args(["--advertise-client-urls", "http://127.0.0.1:2379"]);
    etcd.args(["--listen-peer-urls", "http://127.0.0.1:2380"]);
    etcd
}

fn api_server(parts: &Parts, layout: &Layout, credentials: &Credentials) -> Command {
    let mut server = Command::new(&parts.api_server);
    server.args(["--etcd-servers", "http://127.0.0.1:2379"]);
    server.args(["--secure-port", &PORT.to_string()]);
    server.args(["--bind-address", "0.0.0.0", "--advertise-address", &layout.api.to_string()]);
    server.args(["--service-cluster-ip-range", &layout.services.to_string()]);
    server.args(["--service-account-issuer", "https://kubernetes.default.svc"]);
    // Tokens are used only in volumes, which the stand-in for the kubelet does not mount.
    server.args(["--disable-admission-plugins", "ServiceAccount"]);
    server.args(["--authorization-mode", "RBAC", "--allow-privileged=true"]);
    // The API server forwards WebSocket to nodes, as the stand-in for the kubelet does not speak
    // SPDY.
    server.args(["--feature-gates", "TranslateStreamCloseWebsocketRequests=false"]);
    server.args(["--kubelet-preferred-address-types", "InternalIP"]);
    let files = [
        ("--kubelet-certificate-authority", AUTHORITY),
        ("--kubelet-client-certificate", CALLER_CERTIFICATE),
        ("--kubelet-client-key", CALLER_KEY),
        ("--tls-cert-file", "server.crt"),
        ("--tls-private-key-file", "server.key"),
        ("--token-auth-file", "tokens.csv"),
        ("--service-account-key-file", "accounts.pub"),
        ("--service-account-signing-key-file", "accounts.key"),
    ];
    for (flag, file) in files {
        server.arg(flag).arg(credentials.file(file));
    }
    server
}
