//! Real CoreDNS in a pod, with the Corefile of its ConfigMap.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::Api;
use serde_json::Value;
use uturn_model::Pod;

use super::super::credentials::{CORE_DNS, PORT};
use super::PodContext;
use crate::LabError;
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::system::During;
use crate::linux::run::program::Program;
use crate::linux::serve::names::coredns::{SERVES, adapt};
use crate::linux::serve::names::outside;

/// The image whose program really runs, without registry and tag.
const IMAGE: &str = "coredns";

/// The ConfigMap of a pod whose volumes name none.
const CONFIG_MAP: &str = "coredns";

/// Images that only represent programs that run on the node anyway.
const COMPONENTS: [&str; 1] = ["kube-proxy"];

/// The files of a ConfigMap, with its namespace and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Files {
    namespace: String,
    config_map: String,
    files: BTreeMap<String, String>,
}

/// A running CoreDNS. It ends when this is dropped.
pub(super) struct CoreDns {
    _program: Program,
    folder: PathBuf,
    namespace: String,
    config_map: String,
}

/// Returns whether CoreDNS runs in a pod.
pub(super) fn runs_in(pod: &Pod) -> bool {
    pod.spec.containers.iter().any(|container| container.program() == IMAGE)
}

/// Returns whether a pod represents a program that runs on its node without the pod.
pub(super) fn is_component(pod: &Pod) -> bool {
    pod.spec.containers.iter().all(|container| COMPONENTS.contains(&container.program()))
}

/// Reads the files of a pod's ConfigMap. The result is empty if the pod does not run CoreDNS.
pub(super) async fn files(client: &Client, pod: &Value) -> Files {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    let mut mounted = volumes.filter_map(|volume| volume["configMap"]["name"].as_str());
    let config_map = mounted.next().unwrap_or(CONFIG_MAP).to_owned();
    let namespace = text(&pod["metadata"]["namespace"]);
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    let mut images = containers.filter_map(|container| container["image"].as_str());
    if !images.any(|image| image.contains(IMAGE)) {
        return Files::default();
    }
    let files = read(client, &namespace, &config_map).await;
    Files { namespace, config_map, files }
}

async fn read(client: &Client, namespace: &str, name: &str) -> BTreeMap<String, String> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    maps.get(name).await.ok().and_then(|map| map.data).unwrap_or_default()
}

impl CoreDns {
    pub(super) fn start(
        context: PodContext<'_>,
        pod: &Pod,
        space: &Namespace,
        files: &Files,
    ) -> Result<Self, LabError> {
        let during = format!("start CoreDNS of pod {}", pod.name);
        if !files.files.contains_key("Corefile") {
            let why = format!("ConfigMap {} has no Corefile", files.config_map);
            return Err(LabError::Program { doing: during, reason: why });
        }
        let folder = context.run.file(&format!("coredns-{}", pod.name.name));
        fs::create_dir_all(&folder).during(&during)?;
        let node = outside::address(&context.layout.cluster);
        fs::write(folder.join("resolv.conf"), format!("nameserver {node}\n")).during(&during)?;
        write(context, &folder, &files.files).during(&during)?;
        let mut command = Command::new(&context.parts.core_dns);
        command.arg("-conf").arg(folder.join("Corefile")).current_dir(&folder);
        let log = folder.join("log");
        let program = Program::start(context.run, space, command, &log, SERVES, &during)?;
        let Files { namespace, config_map, .. } = files.clone();
        Ok(Self { _program: program, folder, namespace, config_map })
    }

    /// Writes the files again if the ConfigMap has changed; the Corefile's `reload` reads them.
    pub(super) async fn refresh(&self, context: PodContext<'_>, client: &Client) {
        let files = read(client, &self.namespace, &self.config_map).await;
        if files.contains_key("Corefile") {
            // If this fails, the next refresh tries again.
            let _ = write(context, &self.folder, &files);
        }
    }
}

impl Drop for CoreDns {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Writes the files that differ.
fn write(
    context: PodContext<'_>,
    folder: &Path,
    files: &BTreeMap<String, String>,
) -> io::Result<()> {
    // CoreDNS calls the API server by its address rather than by the Service, so that names are
    // known before kube-proxy has programmed the first rule.
    let (credentials, api) = (context.credentials, context.layout.api);
    let kubeconfig = credentials.file("coredns.kubeconfig");
    credentials.write_kubeconfig(kubeconfig.clone(), CORE_DNS, api, PORT)?;
    let api = format!("kubeconfig {}", kubeconfig.display());
    for (name, text) in files {
        let text = adapt(text, &folder.to_string_lossy(), &api);
        let path = folder.join(name);
        if fs::read_to_string(&path).is_ok_and(|own| own == text) {
            continue;
        }
        fs::write(path, text)?;
    }
    Ok(())
}
