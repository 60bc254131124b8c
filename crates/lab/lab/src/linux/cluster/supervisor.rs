//! The process that builds a cluster and keeps it until it is told to end.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures_util::future::{Either, join, select};
use kube::Client;
use rustix::process::{Signal, kill_process};
use uturn_model::Family;
use uturn_snapshot::Source;

use super::api_client::client;
use super::cloud::{self, Cloud, Site};
use super::control_plane::ControlPlane;
use super::credentials::{ADMIN, Credentials, KUBE_PROXY, KUBELET, PORT};
use super::kernel::needed;
use super::kubelet::exec::ExecServer;
use super::kubelet::{Kubelet, PodContext, node};
use super::layout::Layout;
use super::manifests::{self, Prepared};
use super::parts::Parts;
use super::programmed::Marker;
use super::proxies::{Proxies, is_filtered};
use super::record::{self, FACTS, KUBECONFIG, Place};
use super::relay::Relay;
use super::shown::Shown;
use super::stated::Stated;
use super::vendor_build::Filter;
use super::{apply, defaults, proxies, ready};
use crate::linux::build::availability::available;
use crate::linux::build::kernel_parts;
use crate::linux::build::lab_cluster::LabCluster;
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::netlink::{Index, Netlink};
use crate::linux::kernel::system::During;
use crate::linux::run::interrupt::Watch;
use crate::linux::run::state::{Run, processes, start_time};
use crate::linux::serve::names::outside::{self, Outside};
use crate::linux::sweep::sweep;
use crate::{ClusterRequest, ClusterUp, LabError, Plan};

/// The longest time to wait for the API server, and again for the pods after it.
const START: Duration = Duration::from_secs(300);

/// The factor by which the time limits are longer in a small machine.
const SLOWNESS: u32 = 4;

/// The path of the TkeServiceConfigs in the API server.
const CONFIGS: &str = "/apis/cloud.tencent.com/v1alpha1/tkeserviceconfigs";

/// The time between two checks.
const INTERVAL: Duration = Duration::from_millis(100);

/// A callback before each step. If it fails, the cluster is taken down.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(&str) -> Result<(), LabError>;

/// Builds a cluster, calls `on_ready` once it is up, and keeps it until a signal comes. Everything
/// is removed when this returns.
pub(crate) fn keep(
    request: &ClusterRequest,
    progress: Progress<'_>,
    on_ready: &mut dyn FnMut(&ClusterUp),
) -> Result<(), LabError> {
    let watch = Watch::new()?;
    available()?;
    sweep()?;
    record::refuse_second()?;
    if request.in_machine {
        // Nothing else has brought the loopback interface up there, and the relay listens on it.
        let up = || Netlink::open()?.up(Index::LOOPBACK);
        up().during("bring the loopback of the small machine up")?;
    }
    let parts = Parts::find(request.parts.as_deref(), request.kube_proxy.as_deref())?;
    let prepared = prepare(request)?;
    let layout = Layout::of(&prepared)?;
    let run = Run::new()?;
    let started = start_time(std::process::id()).unwrap_or_default();
    record::write(run.folder(), &started).during("record the cluster")?;
    kernel_parts::check(needed(request.mode).as_slice(), &run)?;
    let facts = layout.facts(request.mode, &parts).to_string();
    fs::write(run.file(FACTS), facts).during("write the facts of the cluster")?;
    let plan = Outline { request, parts, prepared, layout };
    let kept = plan.keep(&run, &watch, progress, on_ready);
    // Processes that users started in pods end now.
    for process in processes(run.folder()).unwrap_or_default() {
        // The process may have ended meanwhile.
        let _ = kill_process(process, Signal::KILL);
    }
    match kept {
        Err(LabError::Interrupted) => Ok(()),
        other => other,
    }
}

fn prepare(request: &ClusterRequest) -> Result<Prepared, LabError> {
    let sources: Vec<Source> = request
        .manifests
        .iter()
        .map(|(name, text)| Source { name: name.as_str().into(), text: text.clone() })
        .collect();
    let objects = uturn_snapshot::json_objects(&sources).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        LabError::Cluster(faults.join("\n"))
    })?;
    Ok(manifests::prepare(objects, request.nodes))
}

/// A cluster that is to be built.
struct Outline<'a> {
    request: &'a ClusterRequest,
    parts: Parts,
    prepared: Prepared,
    layout: Layout,
}

impl Outline<'_> {
    fn keep(
        &self,
        run: &Run,
        watch: &Watch,
        progress: Progress<'_>,
        on_ready: &mut dyn FnMut(&ClusterUp),
    ) -> Result<(), LabError> {
        progress("nodes")?;
        let lab_cluster = self.build(run)?;
        let outside = Outside::start(&lab_cluster.fabric, &self.layout.cluster)
            .during("start the DNS beyond the cluster")?;
        progress("etcd and kube-apiserver")?;
        let api = self.layout.api;
        let mut control = ControlPlane::connect(run, &lab_cluster.fabric, api)?;
        let addresses = [Ipv4Addr::LOCALHOST, api, first_address(&self.layout)];
        let nodes = self.layout.cluster.nodes.values();
        let nodes: Vec<IpAddr> = nodes.filter_map(|node| node.address(Family::V4)).collect();
        let credentials = Credentials::create(run.file("credentials"), &addresses, &nodes)
            .during("make the cluster's keys")?;
        control.start(run, &self.parts, &self.layout, &credentials)?;
        let relay = Relay::start(&control.space, SocketAddr::new(api.into(), PORT))
            .during("start the relay to the API server")?;
        let path = run.file(KUBECONFIG);
        let kubeconfig = credentials
            .write_kubeconfig(path, ADMIN, Ipv4Addr::LOCALHOST, relay.port)
            .during("write the kubeconfig")?;
        let own = credentials.kubeconfig(KUBELET, Ipv4Addr::LOCALHOST, relay.port).to_string();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.during("start the kubelet's stand-in")?;
        let keeping = Keeping {
            outline: self,
            run,
            watch,
            lab_cluster: &lab_cluster,
            outside: &outside,
            credentials: &credentials,
        };
        runtime.block_on(keeping.live(&mut control, &own, kubeconfig, progress, on_ready))
    }

    /// Builds the nodes, and records how to enter them.
    fn build(&self, run: &Run) -> Result<LabCluster, LabError> {
        let rules = BTreeMap::new();
        let plan = Plan {
            cluster: &self.layout.cluster,
            load_balancers: &[],
            flows: &[],
            connects: 0,
            paced: false,
            program: PathBuf::new(),
            rules: &rules,
            coredns: None,
        };
        let lab_cluster = LabCluster::build(run, &plan, |_| false)?;
        for (name, space) in &lab_cluster.nodes {
            let place = Place {
                name: format!("node/{name}"),
                namespace: space.name().to_owned(),
                resolv_conf: format!("nameserver {}\n", outside::address(&self.layout.cluster)),
            };
            place.write(run.folder()).during("record the nodes")?;
        }
        Ok(lab_cluster)
    }
}

/// Returns the address of the Service `kubernetes`.
fn first_address(layout: &Layout) -> Ipv4Addr {
    Ipv4Addr::from_bits(layout.services.network().to_bits() + 1)
}

/// A cluster that is being kept.
struct Keeping<'a> {
    outline: &'a Outline<'a>,
    run: &'a Run,
    watch: &'a Watch,
    lab_cluster: &'a LabCluster,
    outside: &'a Outside,
    credentials: &'a Credentials,
}

impl Keeping<'_> {
    async fn live(
        &self,
        control: &mut ControlPlane,
        own_kubeconfig: &str,
        kubeconfig: PathBuf,
        progress: Progress<'_>,
        on_ready: &mut dyn FnMut(&ClusterUp),
    ) -> Result<(), LabError> {
        let Outline { request, parts, prepared, layout } = self.outline;
        let (run, credentials, lab_cluster) = (self.run, self.credentials, self.lab_cluster);
        let client = client(own_kubeconfig).await?;
        self.wait_for_api(&client).await?;
        progress("nodes in the API, controllers, kube-proxies")?;
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let version = parts.kube_proxy_version.as_deref();
        node::register(&client, &prepared.nodes, kernel.trim(), version)
            .await
            .map_err(|error| refused("register the nodes", &error))?;
        control.start_controllers(run, parts, layout, credentials)?;
        let mut proxies =
            proxies::start(run, parts, layout, request.mode, lab_cluster, credentials)?;
        let _filter = self.start_filter(&control.space)?;
        let _exec = self.start_exec()?;
        let context = PodContext { run, lab_cluster, layout, parts, credentials };
        let mut kubelet = Kubelet::new(context, client.clone());
        let names: Vec<String> = layout.cluster.nodes.keys().map(ToString::to_string).collect();
        let serving = pin!(join(kubelet.serve(), node::renew(&client, &names)));
        let rest = pin!(async {
            let mut notes: Vec<String> = parts.stand_in().into_iter().collect();
            notes.extend(self.apply(&client, progress).await?);
            progress("cloud, load balancers, operator")?;
            let mut cloud = self.start_cloud(&client).await?;
            notes.extend(self.wait_for_rules(&mut proxies).await?);
            progress("pods, load balancers")?;
            let readiness = self.wait_until_ready(&client, &mut cloud).await?;
            notes.extend(self.wait_for_endpoints(&client).await?);
            notes.extend(readiness.missing);
            let pods = readiness.pods;
            on_ready(&ClusterUp { kubeconfig, nodes: names.clone(), pods, notes });
            let nodes = &prepared.nodes;
            let mut stated = Stated::new(run, layout, nodes, &lab_cluster.fabric, self.outside)?;
            loop {
                stated.refresh()?;
                self.pause().await?;
            }
        });
        match select(rest, serving).await {
            Either::Left((ended, _)) => ended,
            Either::Right(_) => Err(LabError::Program {
                doing: "keep the pods".into(),
                reason: "the watch of pods ended".into(),
            }),
        }
    }

    /// Starts the filter that shows kube-proxies the Services as the cloud's build sees them.
    fn start_filter(&self, space: &Namespace) -> Result<Option<Filter>, LabError> {
        let Outline { request, parts, layout, .. } = self.outline;
        let Some(build) = parts.vendor_build.filter(|_| is_filtered(parts, request.mode)) else {
            return Ok(None);
        };
        let kubeconfig = self.credentials.kubeconfig(KUBE_PROXY, Ipv4Addr::LOCALHOST, PORT);
        Filter::start(space, kubeconfig.to_string(), layout.api, build.binding).map(Some)
    }

    /// Starts the server that runs commands in pods for the API server.
    fn start_exec(&self) -> Result<ExecServer, LabError> {
        let Outline { request, layout, .. } = self.outline;
        let address = |name| layout.cluster.nodes.get(name)?.address(Family::V4);
        let nodes = self.lab_cluster.nodes.iter();
        let nodes = nodes.filter_map(|(name, space)| Some((address(name)?, space)));
        ExecServer::start(self.run.folder(), &request.programs.lab, self.credentials, nodes)
            .during("start the kubelet's stand-in")
    }

    async fn apply(
        &self,
        client: &Client,
        progress: Progress<'_>,
    ) -> Result<Vec<String>, LabError> {
        let Outline { request, prepared, layout, parts } = self.outline;
        progress("objects")?;
        let manifests = cloud::operator_manifests(&request.programs.operator)?;
        let mut refused =
            apply::apply(client, &cloud::objects("uturn operator manifests", manifests)?).await;
        self.wait_for_definitions(client).await?;
        let proxy = proxies::objects(layout, request.mode, parts);
        let defaults = defaults::objects(layout, &prepared.objects, proxy);
        refused.extend(apply::apply(client, &defaults).await);
        refused.extend(apply::apply(client, &prepared.objects).await);
        Ok(refused)
    }

    /// Starts the cloud with the load balancers that the applied objects show, and the operator.
    async fn start_cloud(&self, client: &Client) -> Result<Cloud, LabError> {
        let Outline { request, prepared, layout, .. } = self.outline;
        let mut shown: Vec<Shown> = prepared.shown.clone();
        for owner in shown.iter_mut().filter_map(|shown| shown.owner.as_mut()) {
            owner.uid = apply::uid(client, owner)
                .await
                .map_err(|error| refused("ask for the objects with load balancers", &error))?;
        }
        // A load balancer whose object was not applied belongs to nothing.
        shown.retain(|shown| shown.owner.as_ref().is_none_or(|owner| owner.uid.is_some()));
        let space = &self.lab_cluster.fabric;
        let site = Site { run: self.run, programs: &request.programs, layout, space };
        let mut cloud = Cloud::start(site, &shown)?;
        cloud.start_operator(site, self.credentials)?;
        Ok(cloud)
    }

    /// Waits until the API server serves the kinds that were just defined.
    async fn wait_for_definitions(&self, client: &Client) -> Result<(), LabError> {
        let end = self.limit();
        loop {
            let asked = client.request_text(request(CONFIGS)).await;
            let Err(error) = asked else { return Ok(()) };
            if Instant::now() > end {
                return Err(refused("define TkeServiceConfig", &error));
            }
            self.pause().await?;
        }
    }

    async fn wait_for_api(&self, client: &Client) -> Result<(), LabError> {
        let end = self.limit();
        loop {
            let asked = client.request_text(request("/readyz")).await;
            let Err(error) = asked else { return Ok(()) };
            if Instant::now() > end {
                return Err(refused("wait for kube-apiserver", &error));
            }
            self.pause().await?;
        }
    }

    /// Waits until kube-proxy has programmed every node. Returns a note if that takes too long.
    async fn wait_for_rules(&self, proxies: &mut Proxies) -> Result<Option<String>, LabError> {
        let end = self.limit();
        while !proxies::are_programmed(&self.outline.layout, self.lab_cluster) {
            proxies.check()?;
            if Instant::now() > end {
                let log = self.run.file("kube-proxy-NODE.log");
                return Ok(Some(format!("kube-proxy programs no rules: see {}", log.display())));
            }
            self.pause().await?;
        }
        Ok(None)
    }

    /// Waits until every node's rules lead to all current endpoints. Returns a note if that takes
    /// too long.
    async fn wait_for_endpoints(&self, client: &Client) -> Result<Option<String>, LabError> {
        let failed = |error| refused("see whether kube-proxy has programmed everything", &error);
        let marker = Marker::create(client, self.outline.layout.api).await.map_err(failed)?;
        let end = self.limit();
        let mut note = None;
        while !marker.is_programmed(self.lab_cluster) {
            if Instant::now() > end {
                let log = self.run.file("kube-proxy-NODE.log");
                note = Some(format!("kube-proxy does not keep up: see {}", log.display()));
                break;
            }
            self.pause().await?;
        }
        marker.remove().await.map_err(failed)?;
        Ok(note)
    }

    /// Waits until all pods and load balancers are ready. Returns the state that is reached when
    /// the time is over.
    async fn wait_until_ready(
        &self,
        client: &Client,
        cloud: &mut Cloud,
    ) -> Result<ready::Readiness, LabError> {
        let end = self.limit();
        loop {
            cloud.check()?;
            let readiness = ready::readiness(client)
                .await
                .map_err(|error| refused("ask for the objects", &error))?;
            if readiness.missing.is_empty() || Instant::now() > end {
                return Ok(readiness);
            }
            self.pause().await?;
        }
    }

    /// Returns the time when a step that begins now has taken too long.
    fn limit(&self) -> Instant {
        let slowness = if self.outline.request.in_machine { SLOWNESS } else { 1 };
        Instant::now() + START * slowness
    }

    /// Lets other tasks run for a moment. Fails once a signal has been received.
    async fn pause(&self) -> Result<(), LabError> {
        self.watch.check()?;
        tokio::time::sleep(INTERVAL).await;
        self.watch.check()
    }
}

fn request(path: &str) -> http::Request<Vec<u8>> {
    http::Request::get(path).body(Vec::new()).expect("the path is valid")
}

fn refused(doing: &str, error: &kube::Error) -> LabError {
    LabError::Program { doing: doing.into(), reason: error.to_string() }
}
