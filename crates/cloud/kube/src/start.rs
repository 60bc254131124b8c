//! Starts a process of the controllers.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::net::TcpListener;
use uturn_cloud_api::client::{CallError, Client as CloudClient, ClientSettings};

use crate::controller::Process;
use crate::health;
use crate::lease::{LeaseSettings, Lost};
use crate::metrics::Metrics;
use crate::sync::{Settings, SyncError, Synced};
use crate::watch::Shared;

/// The settings of a process.
#[derive(Clone, Debug)]
pub struct Start {
    /// The kubeconfig file of the API server. Without one, the usual places are tried: the variable
    /// `KUBECONFIG`, the home folder, and the account of a pod.
    pub kubeconfig: Option<PathBuf>,
    /// The credential and the endpoint of the cloud's API.
    pub cloud: ClientSettings,
    /// The settings of the controllers in the cluster.
    pub settings: Settings,
    /// The lease, if there may be several processes.
    pub lease: Option<LeaseSettings>,
    /// The address at which `/healthz`, `/readyz` and `/metrics` are served.
    pub listen: Option<SocketAddr>,
}

/// The reason why a process ended.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The async runtime cannot be set up.
    #[error("cannot start the async runtime: {0}")]
    Runtime(io::Error),
    /// The address of the API server is not known.
    #[error("cannot find the API server: {0}")]
    Kubeconfig(String),
    /// The API server cannot be used.
    #[error("the API server cannot be used: {0}")]
    Kubernetes(#[from] kube::Error),
    /// The client of the cloud cannot be set up.
    #[error("the cloud's API cannot be used: {0}")]
    Cloud(#[from] CallError),
    /// The address cannot be listened on.
    #[error("{0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// The lease was lost, so that another process may work.
    #[error(transparent)]
    Lost(#[from] Lost),
}

/// Runs until the lease is lost. Passes the result of each round to `report`.
///
/// # Errors
///
/// Returns why the process cannot start, or why it ended.
pub fn run(
    start: Start,
    report: impl FnMut(&Result<Synced, SyncError>),
) -> Result<Infallible, StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(StartError::Runtime)?.block_on(process(start, report))
}

async fn process(
    start: Start,
    report: impl FnMut(&Result<Synced, SyncError>),
) -> Result<Infallible, StartError> {
    let client = Client::try_from(config(start.kubeconfig).await?)?;
    let (metrics, shared) = (Arc::new(Metrics::default()), Shared::default());
    if let Some(address) = start.listen {
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| StartError::Listen(address, error))?;
        tokio::spawn(health::serve(listener, Arc::clone(&metrics), shared.clone()));
    }
    let process = Process {
        client,
        api: CloudClient::new(start.cloud)?,
        settings: start.settings,
        lease: start.lease,
        metrics,
        shared,
    };
    Ok(process.run(report).await?)
}

async fn config(file: Option<PathBuf>) -> Result<Config, StartError> {
    let unknown = |error: &dyn std::error::Error| StartError::Kubeconfig(error.to_string());
    let Some(file) = file else {
        return Config::infer().await.map_err(|error| unknown(&error));
    };
    let read = Kubeconfig::read_from(file).map_err(|error| unknown(&error))?;
    let options = KubeConfigOptions::default();
    Config::from_custom_kubeconfig(read, &options).await.map_err(|error| unknown(&error))
}
