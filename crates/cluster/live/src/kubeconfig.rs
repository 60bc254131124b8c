//! Finds the kubeconfig, and reads a context of it.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use http::Uri;
use k8s_openapi::ByteString;
use kube::Config;
use kube::config::{AuthInfo, Cluster, Kubeconfig, KubeconfigError};
use serde_json::Value;
use uturn_document::whole_file;

use crate::credential::bearer;
use crate::credentials::Source;
use crate::error::{LiveError, with_causes};
use crate::program::Program;

#[cfg(test)]
mod tests;

/// The folder in which a pod finds the credentials for the API server.
pub(crate) const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The settings of a kubeconfig's context, or of a pod's account.
pub(crate) struct Found {
    pub(crate) config: Config,
    pub(crate) source: Source,
    /// The user or account that the credentials belong to.
    pub(crate) user: String,
    /// The proxy that the kubeconfig states.
    pub(crate) proxy: Option<String>,
    /// The names for errors in the credentials, and in what leads to the server.
    pub(crate) named: Named,
    /// Whether credentials are left out, since the server has no TLS.
    pub(crate) is_unsent: bool,
}

/// The names that errors use for the parts of a kubeconfig.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) files: String,
    pub(crate) user: String,
    pub(crate) cluster: String,
}

impl Named {
    pub(crate) fn user(&self, why: &str) -> LiveError {
        LiveError::Kubeconfig(format!("{}: {}: {why}", self.files, self.user))
    }

    pub(crate) fn cluster(&self, why: &str) -> LiveError {
        LiveError::Kubeconfig(format!("{}: {}: {why}", self.files, self.cluster))
    }
}

/// Reads a context: the current one, unless one is named.
pub(crate) fn context(
    mut kubeconfig: Kubeconfig,
    files: &str,
    context: Option<&str>,
) -> Result<Found, LiveError> {
    let wanted = context.map(str::to_owned).or_else(|| kubeconfig.current_context.clone());
    let names: Vec<&str> = kubeconfig.contexts.iter().map(|known| &*known.name).collect();
    let there_are = match names.as_slice() {
        [] => "it has none".to_owned(),
        names => format!("it has {}", names.join(", ")),
    };
    let Some(context) = wanted.filter(|name| !name.is_empty()) else {
        let why = format!("{files} names no current context; {there_are}: use --context");
        return Err(LiveError::Kubeconfig(why));
    };
    let Some(known) = kubeconfig.contexts.iter().find(|known| known.name == context) else {
        let why = format!("{files} has no context {context:?}; {there_are}");
        return Err(LiveError::Kubeconfig(why));
    };
    let known = known.context.clone().unwrap_or_default();
    let user = known.user.filter(|user| !user.is_empty());
    let named = Named {
        files: files.to_owned(),
        user: match &user {
            Some(user) => format!("user {user:?}"),
            None => format!("context {context:?}"),
        },
        cluster: format!("cluster {:?}", known.cluster),
    };
    let mut proxy = None;
    let mut clusters = kubeconfig.clusters.iter_mut();
    if let Some(cluster) = clusters.find(|cluster| cluster.name == known.cluster)
        && let Some(cluster) = &mut cluster.cluster
    {
        drop_empty(cluster);
        check_server(cluster).map_err(|why| named.cluster(&why))?;
        proxy.clone_from(&cluster.proxy_url);
    }
    kubeconfig.current_context = Some(context.clone());
    let config = Config::try_from(kubeconfig);
    let mut config = config.map_err(|why| named.cluster(&with_causes(&why)))?;
    if config.root_cert.as_ref().is_some_and(Vec::is_empty) {
        return Err(named.cluster("certificate-authority has no certificate in PEM"));
    }
    let user = match user {
        Some(user) => format!("user {user:?} of context {context:?}"),
        None => format!("context {context:?}"),
    };
    check_impersonation(&config.auth_info).map_err(|why| named.user(&why))?;
    let is_safe = config.cluster_url.scheme_str() == Some("https");
    let is_unsent = !is_safe && leave_out(&mut config.auth_info);
    let source = source(&mut config.auth_info).map_err(|why| named.user(&why))?;
    check_identity(&config.auth_info).map_err(|why| named.user(&why))?;
    Ok(Found { config, source, user, proxy, named, is_unsent })
}

/// Removes empty fields, which count as not given.
fn drop_empty(cluster: &mut Cluster) {
    let Cluster { certificate_authority, certificate_authority_data, tls_server_name, .. } =
        cluster;
    for field in [certificate_authority, certificate_authority_data, tls_server_name] {
        field.take_if(|text| text.is_empty());
    }
}

/// Checks the server's URL. kube would turn an incomplete URL into requests that it cannot send.
fn check_server(cluster: &Cluster) -> Result<(), String> {
    let Some(server) = &cluster.server else { return Err("it has no server".to_owned()) };
    let wrong = |why: &str| {
        Err(format!("server {server:?} {why}: a URL is expected, such as https://10.0.0.1:6443"))
    };
    let Ok(url) = server.parse::<Uri>() else { return wrong("cannot be read") };
    match (url.scheme_str(), url.host()) {
        (Some("https" | "http"), Some(host)) if !host.is_empty() => Ok(()),
        (None, _) => wrong("does not begin with https://"),
        (Some(_), _) => wrong("is not the address of an API server"),
    }
}

/// Removes what may only be sent over TLS, as kubectl does. Returns whether there was something.
fn leave_out(user: &mut AuthInfo) -> bool {
    let AuthInfo {
        impersonate, impersonate_uid, impersonate_groups, impersonate_user_extra, ..
    } = user.clone();
    let kept = AuthInfo {
        impersonate,
        impersonate_uid,
        impersonate_groups,
        impersonate_user_extra,
        ..AuthInfo::default()
    };
    let left_out = std::mem::replace(user, kept);
    let AuthInfo { username, token, token_file, client_certificate, .. } = &left_out;
    let AuthInfo { client_certificate_data, auth_provider, exec, .. } = &left_out;
    let is_stated = [username, token_file, client_certificate, client_certificate_data];
    is_stated.iter().any(|field| field.is_some())
        || token.is_some()
        || auth_provider.is_some()
        || exec.is_some()
}

/// Takes the source of the credentials that are sent in a header out of `user`.
fn source(user: &mut AuthInfo) -> Result<Source, String> {
    let fields = serde_json::to_value(&*user).unwrap_or_default();
    let stated = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let (token, file) = (stated(&fields["token"]), stated(&fields["tokenFile"]));
    (user.token, user.token_file) = (None, None);
    // Empty fields count as not given.
    for field in
        [&mut user.client_certificate, &mut user.client_certificate_data, &mut user.client_key]
    {
        field.take_if(|text| text.is_empty());
    }
    user.client_key_data.take_if(|_| stated(&fields["client-key-data"]).is_none());
    let exec = user.exec.take();
    if let Some(provider) = user.auth_provider.take() {
        return match (&*provider.name, provider.config.get("id-token")) {
            ("oidc", Some(token)) => {
                bearer(token).map(Source::Token).map_err(|why| format!("its id-token {why}"))
            }
            (name, _) => Err(format!(
                "the auth-provider {name:?} is not known any more: a program can give the \
                 credentials (exec)"
            )),
        };
    }
    let token = token.map(|token| bearer(&token).map_err(|why| format!("its token {why}")));
    let token = token.transpose()?;
    // A file that can be read takes precedence over a token, as with kubectl.
    match (file, token, exec) {
        (Some(file), token, _) => Ok(Source::File(PathBuf::from(file), token)),
        (None, Some(token), _) => Ok(Source::Token(token)),
        (None, None, Some(exec)) => Ok(Source::Program(Box::new(Program { exec, may_talk: true }))),
        (None, None, None) => Ok(Source::Nothing),
    }
}

/// Fails if groups and other attributes to impersonate are given without a user.
fn check_impersonation(user: &AuthInfo) -> Result<(), String> {
    let AuthInfo { impersonate_uid, impersonate_groups, impersonate_user_extra, .. } = user;
    let has_groups = impersonate_groups.as_ref().is_some_and(|groups| !groups.is_empty());
    let has_extra = impersonate_user_extra.as_ref().is_some_and(|extra| !extra.is_empty());
    let is_named = user.impersonate.as_ref().is_some_and(|name| !name.is_empty());
    if (impersonate_uid.is_some() || has_groups || has_extra) && !is_named {
        Err("as-uid, as-groups and as-user-extra need as".to_owned())
    } else {
        Ok(())
    }
}

/// Fails if there is a client certificate without its key, or a key without its certificate.
fn check_identity(user: &AuthInfo) -> Result<(), String> {
    let fields = serde_json::to_value(user).unwrap_or_default();
    let certificate = pem(&fields, "client-certificate", "CERTIFICATE-----", "certificate")?;
    let key = pem(&fields, "client-key", "PRIVATE KEY-----", "private key")?;
    match (certificate, key) {
        (true, false) => Err("client-certificate is there without client-key".to_owned()),
        (false, true) => Err("client-key is there without client-certificate".to_owned()),
        _ => Ok(()),
    }
}

/// Returns whether a field has a value in PEM, as base64 or as the name of a file.
fn pem(fields: &Value, name: &str, mark: &str, what: &str) -> Result<bool, String> {
    let stated = |name: &str| fields[name].as_str().filter(|text| !text.is_empty());
    let data = format!("{name}-data");
    let (text, place) = match (stated(&data), stated(name)) {
        (Some(text), _) => match serde_json::from_value(Value::String(text.to_owned())) {
            Ok(ByteString(bytes)) => (bytes, data),
            Err(_) => return Err(format!("{data} is not valid base64")),
        },
        (None, Some(path)) => match whole_file::bytes_of(Path::new(path), whole_file::SETTINGS) {
            Ok(bytes) => (bytes, format!("{name} {path}")),
            Err(why) => return Err(format!("{name} {path}: {why}")),
        },
        (None, None) => return Ok(false),
    };
    if String::from_utf8_lossy(&text).contains(mark) {
        Ok(true)
    } else {
        Err(format!("{place} has no {what} in PEM"))
    }
}

/// Returns the account of the pod that this process runs in. Returns `None` if this process does
/// not run in a pod, and a reason if the pod lacks something.
pub(crate) fn in_pod(
    variable: &dyn Fn(&str) -> Option<String>,
    folder: &Path,
) -> Option<Result<Found, String>> {
    let host = variable("KUBERNETES_SERVICE_HOST").filter(|host| !host.is_empty())?;
    let port = variable("KUBERNETES_SERVICE_PORT").filter(|port| !port.is_empty())?;
    Some(account(&host, &port, folder))
}

fn account(host: &str, port: &str, folder: &Path) -> Result<Found, String> {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let url = format!("https://{host}:{port}");
    let parsed: Option<Uri> = url.parse().ok().filter(|url: &Uri| url.port_u16().is_some());
    let url =
        parsed.ok_or_else(|| format!("KUBERNETES_SERVICE_HOST and _PORT make no URL: {url}"))?;
    let [token, ca, namespace] = ["token", "ca.crt", "namespace"].map(|name| folder.join(name));
    for file in [&token, &ca] {
        let lacks = |why: io::Error| format!("the pod's account lacks {}: {why}", file.display());
        fs::File::open(file).map_err(lacks)?;
    }
    let mut config = Config::new(url);
    // The system's certificates are not asked for then, as a pod may have none.
    config.root_cert = Some(Vec::new());
    config.root_cert_file = Some(ca);
    if let Some(namespace) = whole_file::text_of(&namespace, whole_file::SETTINGS)
        .ok()
        .filter(|text| !text.trim().is_empty())
    {
        namespace.trim().clone_into(&mut config.default_namespace);
    }
    let user = "the pod's account".to_owned();
    let named = Named {
        files: user.clone(),
        user: "its token".to_owned(),
        cluster: "its certificate authority".to_owned(),
    };
    let source = Source::File(token, None);
    Ok(Found { config, source, user, proxy: None, named, is_unsent: false })
}

/// The size limit of a kubeconfig. A larger one is refused.
const MAX_BYTES: u64 = 16 << 20;

/// Reads a kubeconfig.
pub(crate) fn read(path: &Path) -> Result<Kubeconfig, LiveError> {
    let wrong = |why: String| LiveError::Kubeconfig(format!("{}: {why}", path.display()));
    if fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() > MAX_BYTES) {
        return Err(wrong(format!("larger than {} MiB", MAX_BYTES >> 20)));
    }
    let read = Kubeconfig::read_from(path).map_err(|error| {
        wrong(match &error {
            // The error's own message names the file once more.
            KubeconfigError::ReadConfig(why, _) => why.to_string(),
            other => with_causes(other),
        })
    })?;
    match read.kind.as_deref() {
        None | Some("" | "Config") => Ok(read),
        Some(other) => Err(wrong(format!("expected a kubeconfig (kind: Config), found a {other}"))),
    }
}

/// Returns the kubeconfig that is used if none is named, and where it was searched.
pub(crate) fn usual() -> Result<(Option<Kubeconfig>, String), LiveError> {
    let stated = env::var_os("KUBECONFIG").unwrap_or_default();
    let stated: Vec<PathBuf> =
        env::split_paths(&stated).filter(|path| !path.as_os_str().is_empty()).collect();
    let paths = if stated.is_empty() {
        env::home_dir().map(|home| home.join(".kube").join("config")).into_iter().collect()
    } else {
        stated
    };
    Ok((merged(&paths)?, shown(&paths)))
}

/// Merges several kubeconfigs, of which the first that states something takes precedence. Files
/// that do not exist are left out, as kubectl does; a file whose existence cannot be determined is
/// an error. Returns `None` if nothing is left.
fn merged(paths: &[PathBuf]) -> Result<Option<Kubeconfig>, LiveError> {
    let mut all: Option<Kubeconfig> = None;
    for path in paths {
        let wrong = |why: String| LiveError::Kubeconfig(format!("{}: {why}", path.display()));
        if !path.try_exists().map_err(|why| wrong(why.to_string()))? {
            continue;
        }
        let next = read(path)?;
        all = Some(match all {
            None => next,
            Some(first) => first.merge(next).map_err(|error| wrong(with_causes(&error)))?,
        });
    }
    Ok(all.filter(|config| !config.clusters.is_empty() || !config.contexts.is_empty()))
}

fn shown(paths: &[PathBuf]) -> String {
    let shown: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    if shown.is_empty() { "no home folder".to_owned() } else { shown.join(", ") }
}
