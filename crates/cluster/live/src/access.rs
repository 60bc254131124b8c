//! The cluster to read and the credentials for it, found as kubectl finds both.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::client::RustlsTlsError;

use crate::credentials::{NoClient, Source, client};
use crate::error::{LiveError, with_causes};
use crate::kubeconfig::{ACCOUNT, Found, Named, context, in_pod, read, usual};
use crate::proxy::proxy_before;
use crate::server::{PATIENCE, Server};

/// The cluster to read, and the credentials for it. Empty texts count as not given.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The only kubeconfig to use. Without one, those of the variable `KUBECONFIG` are used, or
    /// that of the home folder, or the account of the pod that this process runs in.
    pub kubeconfig: Option<PathBuf>,
    /// The context, instead of the current one.
    pub context: Option<String>,
    /// The longest silence of the API server.
    pub request_timeout: Option<Duration>,
}

impl Access {
    /// Returns the names of the kubeconfig's contexts. The list is empty if it cannot be read.
    pub fn contexts(&self) -> Vec<String> {
        let found = match self.named_kubeconfig() {
            Some(path) => read(path).ok(),
            None => usual().ok().and_then(|(found, _)| found),
        };
        let contexts = found.map(|kubeconfig| kubeconfig.contexts).unwrap_or_default();
        contexts.into_iter().map(|known| known.name).collect()
    }

    /// Returns a warning for the user before the cluster is used: that credentials are not sent,
    /// since the server has no TLS. Sends no request.
    pub fn remark(&self) -> Option<String> {
        let found = self.found().ok().filter(|found| found.is_unsent)?;
        let url = found.config.cluster_url.to_string();
        Some(format!(
            "the credentials of {} are not sent: {} has no TLS",
            found.user,
            url.trim_end_matches('/')
        ))
    }

    /// Makes a client. Runs the program that provides credentials if the kubeconfig names one.
    pub(crate) async fn connect(&self) -> Result<Server, LiveError> {
        self.connect_to(self.found()?).await
    }

    /// Makes a client, but forbids that program to ask the user for anything, or to print.
    pub(crate) async fn connect_quietly(&self) -> Result<Server, LiveError> {
        let mut found = self.found()?;
        if let Source::Program(program) = &mut found.source {
            program.may_talk = false;
        }
        self.connect_to(found).await
    }

    async fn connect_to(&self, found: Found) -> Result<Server, LiveError> {
        let Found { mut config, source, user, proxy, named, is_unsent: _ } = found;
        let variable = |name: &str| env::var(name).ok();
        config.proxy_url = proxy_before(&config.cluster_url, proxy.as_deref(), &variable)?;
        let patience = self.request_timeout.unwrap_or(PATIENCE);
        config.connect_timeout = Some(patience);
        config.read_timeout = Some(patience);
        config.write_timeout = Some(patience);
        config.reset_reader_on_write = true;
        // `list` decides which refused requests are tried again.
        config.default_retry = false;
        let url = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let proxy = config.proxy_url.clone();
        let namespace = config.default_namespace.clone();
        let is_file = matches!(source, Source::File(..));
        let client = client(config, source).await.map_err(|why| match why {
            NoClient::Credentials(why) if is_file => named.user(&why.to_string()),
            NoClient::Credentials(why) => {
                LiveError::Credentials { server: url.clone(), why: why.to_string() }
            }
            NoClient::Config(why) => unusable(&named, &why),
        })?;
        let server = Server::new(client, url, user, namespace);
        Ok(server.patient_for(patience).behind(proxy.as_ref()))
    }

    /// Reads the kubeconfig, or the account of a pod.
    fn found(&self) -> Result<Found, LiveError> {
        let (kubeconfig, looked_at) = match self.named_kubeconfig() {
            Some(path) => (Some(read(path)?), path.display().to_string()),
            None => usual()?,
        };
        let wanted = self.context.as_deref().filter(|context| !context.is_empty());
        match (kubeconfig, wanted) {
            (Some(kubeconfig), wanted) => context(kubeconfig, &looked_at, wanted),
            (None, Some(context)) => Err(LiveError::Kubeconfig(format!(
                "there is no kubeconfig ({looked_at}) with the context {context:?}"
            ))),
            (None, None) => {
                let none = |why: &str| {
                    LiveError::NoCluster(format!("there is no kubeconfig ({looked_at}), and {why}"))
                };
                let pod = in_pod(&|name| env::var(name).ok(), Path::new(ACCOUNT));
                pod.ok_or_else(|| none("this process does not run in a pod"))?
                    .map_err(|why| none(&why))
            }
        }
    }

    fn named_kubeconfig(&self) -> Option<&Path> {
        self.kubeconfig.as_deref().filter(|path| !path.as_os_str().is_empty())
    }
}

/// Returns the error for a client that cannot be made from the kubeconfig; nothing was sent yet.
fn unusable(named: &Named, why: &kube::Error) -> LiveError {
    let is_cluster = match why {
        kube::Error::RustlsTls(why) => matches!(
            why,
            RustlsTlsError::AddRootCertificate(_)
                | RustlsTlsError::NoValidNativeRootCA(_)
                | RustlsTlsError::InvalidServerName(_)
        ),
        kube::Error::ProxyProtocolUnsupported { .. } => true,
        _ => false,
    };
    let text = with_causes(why);
    if is_cluster { named.cluster(&text) } else { named.user(&text) }
}
