//! Connects to the API server.

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::LabError;

/// Returns a client with this kubeconfig.
pub(super) async fn client(kubeconfig: &str) -> Result<Client, LabError> {
    let doing = "connect to kube-apiserver";
    let failed = |reason: String| LabError::Program { doing: doing.into(), reason };
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig).map_err(|why| failed(why.to_string()))?;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let config = config.map_err(|why| failed(why.to_string()))?;
    Client::try_from(config).map_err(|why| failed(why.to_string()))
}
