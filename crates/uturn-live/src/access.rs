//! The kubeconfig, as kubectl reads it.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::config::{ExecInteractiveMode, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use crate::error::{LiveError, with_causes};
use crate::proxy::proxy_before;
use crate::server::{PATIENCE, Server};

/// Which cluster is read, and as whom.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The only kubeconfig that counts. Without one, those of the variable `KUBECONFIG` count, or
    /// that of the home folder, or the account of the pod that this runs in.
    pub kubeconfig: Option<PathBuf>,
    /// The context, instead of the current one.
    pub context: Option<String>,
    /// How long the API server may be silent.
    pub request_timeout: Option<Duration>,
}

impl Access {
    /// The names of the contexts of the kubeconfig. Returns none if it cannot be read.
    pub fn contexts(&self) -> Vec<String> {
        let found = match &self.kubeconfig {
            Some(path) => read(path).ok(),
            None => usual().ok().and_then(|(found, _)| found),
        };
        let contexts = found.map(|kubeconfig| kubeconfig.contexts).unwrap_or_default();
        contexts.into_iter().map(|known| known.name).collect()
    }

    /// Makes a client. Runs the program that gives credentials if the kubeconfig names one.
    pub(crate) async fn connect(&self) -> Result<Server, LiveError> {
        self.connect_with(|_| {}).await
    }

    /// The same, but that program may not ask the user for anything, or print.
    pub(crate) async fn connect_quietly(&self) -> Result<Server, LiveError> {
        let never = |kubeconfig: &mut Kubeconfig| {
            let users = kubeconfig.auth_infos.iter_mut().filter_map(|user| user.auth_info.as_mut());
            for exec in users.filter_map(|user| user.exec.as_mut()) {
                exec.interactive_mode = Some(ExecInteractiveMode::Never);
            }
        };
        self.connect_with(never).await
    }

    async fn connect_with(&self, edit: impl FnOnce(&mut Kubeconfig)) -> Result<Server, LiveError> {
        let (mut config, user, stated) = self.config(edit).await?;
        let variable = |name: &str| env::var(name).ok();
        config.proxy_url = proxy_before(&config.cluster_url, stated.as_deref(), &variable)?;
        let patience = self.request_timeout.unwrap_or(PATIENCE);
        config.connect_timeout = Some(patience);
        config.read_timeout = Some(patience);
        config.write_timeout = Some(patience);
        config.reset_reader_on_write = true;
        // Which refusals are tried again, the lists decide.
        config.default_retry = false;
        let url = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let namespace = config.default_namespace.clone();
        let client = Client::try_from(config).map_err(|error| match error {
            kube::Error::Auth(why) => {
                LiveError::Credentials { server: url.clone(), why: with_causes(&why) }
            }
            other => LiveError::Unreachable { server: url.clone(), why: with_causes(&other) },
        })?;
        Ok(Server::new(client, url, user, namespace).patient_for(patience))
    }

    /// The configuration of a client, whose credentials it has, and the proxy that is stated.
    async fn config(
        &self,
        edit: impl FnOnce(&mut Kubeconfig),
    ) -> Result<(Config, String, Option<String>), LiveError> {
        let (found, looked_at) = match &self.kubeconfig {
            Some(path) => (Some(read(path)?), path.display().to_string()),
            None => usual()?,
        };
        let Some(mut kubeconfig) = found else {
            if let Some(context) = &self.context {
                let why =
                    format!("there is no kubeconfig ({looked_at}) with the context {context:?}");
                return Err(LiveError::Kubeconfig(why));
            }
            let config = Config::incluster().map_err(|_| {
                let why = format!("there is no kubeconfig ({looked_at}), and this is no pod");
                LiveError::NoCluster(why)
            })?;
            return Ok((config, "the pod's account".to_owned(), None));
        };
        edit(&mut kubeconfig);
        let context = self.context.clone().or_else(|| kubeconfig.current_context.clone());
        let context = context.filter(|name| !name.is_empty());
        let names: Vec<&str> = kubeconfig.contexts.iter().map(|known| &*known.name).collect();
        let there_are = match names.as_slice() {
            [] => "it has none".to_owned(),
            names => format!("it has {}", names.join(", ")),
        };
        let Some(context) = context else {
            let why = format!("{looked_at} names no current context; {there_are}: use --context");
            return Err(LiveError::Kubeconfig(why));
        };
        let Some(known) = kubeconfig.contexts.iter().find(|known| known.name == context) else {
            let why = format!("{looked_at} has no context {context:?}; {there_are}");
            return Err(LiveError::Kubeconfig(why));
        };
        let cluster = known.context.as_ref().map(|context| context.cluster.clone());
        let mut clusters = kubeconfig.clusters.iter();
        let cluster = clusters.find(|known| cluster.as_ref() == Some(&known.name));
        let proxy = cluster.and_then(|known| known.cluster.as_ref()?.proxy_url.clone());
        let user = known.context.as_ref().and_then(|context| context.user.clone());
        let user = match user {
            Some(user) => format!("user {user:?} of context {context:?}"),
            None => format!("context {context:?}"),
        };
        let options = KubeConfigOptions { context: Some(context), ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let config = config.map_err(|error| {
            LiveError::Kubeconfig(format!("{looked_at}: {}", with_causes(&error)))
        })?;
        Ok((config, user, proxy))
    }
}

fn read(path: &Path) -> Result<Kubeconfig, LiveError> {
    Kubeconfig::read_from(path).map_err(|error| {
        let why = match &error {
            // Its own message names the file once more.
            KubeconfigError::ReadConfig(why, _) => why.to_string(),
            other => with_causes(other),
        };
        LiveError::Kubeconfig(format!("{}: {why}", path.display()))
    })
}

/// The kubeconfig that is found without being named, and where it was looked for.
fn usual() -> Result<(Option<Kubeconfig>, String), LiveError> {
    let stated = env::var_os("KUBECONFIG").unwrap_or_default();
    let stated: Vec<PathBuf> =
        env::split_paths(&stated).filter(|path| !path.as_os_str().is_empty()).collect();
    let paths = match stated.is_empty() {
        true => env::home_dir().map(|home| home.join(".kube").join("config")).into_iter().collect(),
        false => stated,
    };
    Ok((merged(&paths)?, shown(&paths)))
}

/// Several kubeconfigs as one: what the first states counts. Files that are not there are left
/// out, as kubectl does. Returns `None` if nothing is left.
fn merged(paths: &[PathBuf]) -> Result<Option<Kubeconfig>, LiveError> {
    let mut all: Option<Kubeconfig> = None;
    for path in paths.iter().filter(|path| path.exists()) {
        let next = read(path)?;
        all = Some(match all {
            None => next,
            Some(first) => first.merge(next).map_err(|error| {
                LiveError::Kubeconfig(format!("{}: {}", path.display(), with_causes(&error)))
            })?,
        });
    }
    Ok(all.filter(|config| !config.clusters.is_empty() || !config.contexts.is_empty()))
}

fn shown(paths: &[PathBuf]) -> String {
    let shown: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    match shown.is_empty() {
        true => "no home folder".to_owned(),
        false => shown.join(", "),
    }
}
