//! The cloud of a cluster in a box: its API, the load balancers that the API drives, and the
//! controllers that call the API. All three are this program, in the namespace of the fabric.
//!
//! ```text
//!   operator ── 127.0.0.1:8443 ── cloud ── 127.0.0.1:9900 ── load balancers
//!      │                                                          │
//!   kube-apiserver [control]                              VIPs, 100.64.0.1, 100.127.0.1
//! ```

mod fabric;
mod forwarding;
mod inventory;

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::credentials::{Credentials, OPERATOR, PORT, token, write};
use super::layout::Layout;
use super::record::{CLOUD, Place};
use super::relay::Relay;
use super::shown::Shown;
use crate::linux::forward::layer_4::Layer4;
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::system::During;
use crate::linux::run::program::Program;
use crate::linux::run::state::Run;
use crate::{LabError, Programs};

use forwarding::{Followed, Forwarding};

pub(super) use inventory::instance;

/// The id of the cluster, which tags its load balancers.
const CLUSTER_ID: &str = "cls-uturnlab";
/// The id of the network.
const NETWORK: &str = "vpc-00000001";
/// The region.
const REGION: &str = "ap-guangzhou";

/// The admin address of the data plane.
const PLANE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9900);
/// The name of the data plane in messages and logs.
const PLANE_NAME: &str = "load-balancer";
/// The file with the token for the data plane.
const PLANE_TOKEN: &str = "data-plane-token";
/// The address of the API.
const API: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8443);
/// The address of the cloud's status.
const STATUS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9901);
/// The address of the controllers' metrics.
const METRICS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9902);

/// The id of the credential.
const SECRET_ID: &str = "AKIDuturnlab";

/// The name of the load balancers as a place of `lab exec`.
const PLACE: &str = "cloud";

/// The surroundings that the programs of the cloud are started in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site<'a> {
    pub(super) run: &'a Run,
    pub(super) programs: &'a Programs,
    pub(super) layout: &'a Layout,
    pub(super) space: &'a Namespace,
}

/// The running programs; they end when this is dropped.
#[derive(Debug)]
pub(super) struct Cloud {
    // The order matters: a client ends before its server.
    programs: Vec<Running>,
    _forwarding: Option<Forwarding>,
    _relay: Relay,
}

#[derive(Debug)]
struct Running {
    name: &'static str,
    log: PathBuf,
    program: Program,
}

impl Cloud {
    /// Starts the data plane and the API. The load balancers of `shown` are there from the start.
    pub(super) fn start(site: Site<'_>, shown: &[Shown]) -> Result<Self, LabError> {
        let Site { run, layout, space, .. } = site;
        let during = "prepare the cloud";
        fabric::prepare(layout, space, shown)?;
        let key = token().during(during)?;
        write(&run.file("cloud-credentials"), &format!("{SECRET_ID} {key}\n")).during(during)?;
        write(&run.file(PLANE_TOKEN), &token().during(during)?).during(during)?;
        let document = json!({
            "apiVersion": "uturn.dev/v1alpha1", "kind": "DataPlane",
            "spec": {
                "admin": {
                    "address": PLANE.to_string(),
                    "tokenFile": run.file(PLANE_TOKEN),
                },
                "accessLog": run.file("access.log"),
            },
        });
        fs::write(run.file("data-plane.json"), document.to_string()).during(during)?;
        let inventory = inventory::inventory(layout, shown).to_string();
        fs::write(run.file("inventory.json"), inventory).during(during)?;
        let place = Place {
            name: PLACE.to_owned(),
            namespace: space.name().to_owned(),
            resolv_conf: String::new(),
        };
        place.write(run.folder()).during(during)?;
        let layer_4 = Layer4::here(space)?;
        let plane = start_plane(site, layer_4)?;
        let programs = vec![start_api(site)?, plane];
        let forwarding = match layer_4 {
            Layer4::Process => None,
            Layer4::Rules => Some(Forwarding::start(space, followed(run).during(during)?)?),
        };
        let relay = Relay::start(space, API).during("start the relay to the cloud's API")?;
        let endpoint = format!("http://{}:{}", Ipv4Addr::LOCALHOST, relay.port);
        let facts = json!({
            "endpoint": endpoint, "region": REGION, "clusterId": CLUSTER_ID,
            "network": NETWORK, "subnets": inventory::subnets(shown),
            "secretId": SECRET_ID, "secretKey": key,
        });
        write(&run.file(CLOUD), &facts.to_string()).during(during)?;
        Ok(Self { programs, _forwarding: forwarding, _relay: relay })
    }

    /// Starts the controllers.
    pub(super) fn start_operator(
        &mut self,
        site: Site<'_>,
        credentials: &Credentials,
    ) -> Result<(), LabError> {
        let kubeconfig = credentials.file("operator.kubeconfig");
        let kubeconfig = credentials
            .write_kubeconfig(kubeconfig, OPERATOR, site.layout.api, PORT)
            .during("write the operator's kubeconfig")?;
        let mut operator = Command::new(&site.programs.operator);
        operator.args(["operator", "run", "--cluster-id", CLUSTER_ID, "--network", NETWORK]);
        operator.args(["--region", REGION, "--endpoint", &format!("http://{API}")]);
        operator.arg("--credentials").arg(site.run.file("cloud-credentials"));
        operator.arg("--kubeconfig").arg(kubeconfig);
        operator.args(["--listen", &METRICS.to_string()]);
        // There is no other operator, and a machine that is busy for a while must not end this one.
        operator.arg("--without-lease");
        // The objects show what its rounds did.
        let running = begin(site, operator, "operator", "")?;
        self.programs.insert(0, running);
        Ok(())
    }

    /// Fails if one of the programs has ended.
    pub(super) fn check(&mut self) -> Result<(), LabError> {
        self.programs.iter_mut().try_for_each(|Running { name, log, program }| {
            program.check(log, &format!("run the {name}"))
        })
    }
}

/// Returns the manifests that are applied before the operator runs.
pub(super) fn operator_manifests(program: &Path) -> Result<String, LabError> {
    let during = "print the operator's manifests";
    let output = Command::new(program).args(["operator", "manifests"]).output().during(during)?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(LabError::Program {
            doing: during.into(),
            reason: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

/// Returns the files and the address that the stand-in for layer 4 follows.
fn followed(run: &Run) -> io::Result<Followed> {
    Ok(Followed {
        admin: PLANE,
        token: fs::read_to_string(run.file(PLANE_TOKEN))?.trim().to_owned(),
        events: run.file(&format!("{PLANE_NAME}.log")),
        log: run.file("layer-4.log"),
    })
}

fn start_plane(site: Site<'_>, layer_4: Layer4) -> Result<Running, LabError> {
    let mut plane = Command::new(&site.programs.load_balancer);
    plane.args(["lb", "run", "-f"]).arg(site.run.file("data-plane.json"));
    plane.arg("--certificates").arg(site.run.file("certificates"));
    plane.args((layer_4 == Layer4::Rules).then_some("--no-layer-4"));
    begin(site, plane, PLANE_NAME, "\"ready\"")
}

fn start_api(site: Site<'_>) -> Result<Running, LabError> {
    let mut cloud = Command::new(&site.programs.cloud);
    cloud.args(["cloud", "serve", "--listen", &API.to_string(), "--admin", &STATUS.to_string()]);
    cloud.arg("--state").arg(site.run.file("cloud"));
    cloud.arg("--credentials").arg(site.run.file("cloud-credentials"));
    cloud.arg("--inventory").arg(site.run.file("inventory.json"));
    let token = site.run.file(PLANE_TOKEN);
    cloud.args(["--data-plane", &format!("http://{PLANE}={}", token.display())]);
    begin(site, cloud, "cloud", "serving the CLB API")
}

fn begin(
    site: Site<'_>,
    command: Command,
    name: &'static str,
    ready: &'static str,
) -> Result<Running, LabError> {
    let log = site.run.file(&format!("{name}.log"));
    let during = format!("start the {name}");
    let program = Program::start(site.run, site.space, command, &log, ready, &during)?;
    Ok(Running { name, log, program })
}

/// Reads manifests as objects.
pub(super) fn objects(name: &str, text: String) -> Result<Vec<Value>, LabError> {
    let source = uturn_snapshot::Source { name: name.into(), text };
    uturn_snapshot::json_objects(&[source]).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        LabError::Cluster(faults.join("\n"))
    })
}
