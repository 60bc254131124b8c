//! Finds the Corefile that the cluster's name servers read: in the ConfigMap that their pods mount,
//! at the path that their arguments name. If the pods do not tell, the customary ConfigMap is taken.

use std::collections::BTreeSet;
use std::iter;

use uturn_model::dns::{Corefile, CorefileFile};
use uturn_model::pod::{ConfigFile, Container};
use uturn_model::{NamespacedName, Pod, Service, Text};

use crate::decode::objects::{ConfigEntry, Objects};

/// The key that the Corefile customarily has.
const USUAL_KEY: &str = "Corefile";

/// The path of the Corefile that the cache on each node makes its own of.
const OF_CACHE: &str = "/etc/coredns/Corefile.base";

/// Sets the Corefiles of the name servers and of the cache on each node.
pub(super) fn complete(objects: &mut Objects) {
    let own = service(objects).and_then(|name| {
        let service = objects.services.0.get(&name)?;
        let mut pods = behind(objects, service);
        pods.find_map(|pod| Mount::of(objects, pod, |container| !container.is_node_cache()))
    });
    let mut all = objects.pods.0.values();
    let cache = all.find_map(|pod| Mount::of(objects, pod, Container::is_node_cache));
    let mut mounted = BTreeSet::new();
    if let Some(own) = own {
        objects.corefile = own.corefile(objects, &mut mounted);
        objects.mounted_corefile = Some((own.config_map, own.key));
    }
    if let Some(cache) = cache
        && let Some(corefile) = cache.corefile(objects, &mut mounted)
    {
        objects.node_local = Some(corefile);
    }
    let is_read = |name: &&NamespacedName| {
        mounted.contains(*name) || objects.config_maps.0.contains_key(*name)
    };
    let unused = objects.corefiles.keys().filter(|name| !is_read(name)).count();
    (0..unused).for_each(|_| objects.skip("v1/ConfigMap"));
}

/// Finds the Service of the cluster's name servers: in kube-system by its name, or else the first
/// with the label; elsewhere the one whose address kubelets give to pods, one with the label, or one
/// whose pods run CoreDNS for the cluster. The upstream Service of the cache on nodes has the label too.
pub(in crate::derive) fn service(objects: &Objects) -> Option<NamespacedName> {
    let in_system = |service: &&Service| service.name.namespace.as_str() == "kube-system";
    let all = || objects.services.0.values();
    let is_named =
        |service: &&Service| matches!(service.name.name.as_str(), "kube-dns" | "coredns");
    let is_labelled = |service: &&Service| service.labels.is("k8s-app", "kube-dns");
    let is_usual = |service: &&Service| {
        !service.headless && !service.name.name.as_str().ends_with("-upstream")
    };
    let is_told = |service: &&Service| {
        let mut told = objects.kubelet_dns.values().flatten();
        told.any(|ip| service.cluster_ips.contains(ip))
    };
    let service = all()
        .filter(in_system)
        .find(is_named)
        .or_else(|| all().filter(in_system).filter(is_labelled).find(is_usual))
        .or_else(|| all().filter(in_system).find(is_labelled))
        .or_else(|| all().find(is_told))
        .or_else(|| all().filter(is_labelled).find(is_usual))
        .or_else(|| all().filter(is_usual).find(|service| runs_coredns(objects, service)));
    service.map(|service| service.name.clone())
}

/// Returns whether a Service leads to port 53 of pods that run CoreDNS. A CoreDNS whose Corefile is
/// given and has no `kubernetes` answers for something else.
fn runs_coredns(objects: &Objects, service: &Service) -> bool {
    let is_dns = |container: &Container| container.runs_coredns() && !container.is_node_cache();
    let serves_cluster = |pod: &Pod| {
        let mount = Mount::of(objects, pod, is_dns);
        let corefile = mount.and_then(|own| own.corefile(objects, &mut BTreeSet::new()));
        corefile.is_none_or(|own| has_cluster(&own))
    };
    service.ports.iter().any(|port| port.port.number() == 53)
        && behind(objects, service)
            .any(|pod| pod.spec.containers.iter().any(is_dns) && serves_cluster(pod))
}

/// Returns whether a Corefile, or a file beside it, uses the plugin that serves a cluster's names.
fn has_cluster(corefile: &Corefile) -> bool {
    let mut texts = iter::once(&corefile.text).chain(corefile.beside.iter().map(|file| &file.text));
    texts.any(|text| text.split_whitespace().any(|word| word == "kubernetes"))
}

/// Returns the pods that a Service selects.
fn behind<'o>(objects: &'o Objects, service: &'o Service) -> impl Iterator<Item = &'o Pod> {
    let pods = objects.pods.0.values();
    pods.filter(|pod| {
        pod.name.namespace == service.name.namespace
            && service.selector.as_ref().is_some_and(|all| all.matches(&pod.spec.labels))
    })
}

/// The Corefile of a pod, as a key of a ConfigMap that the pod mounts.
struct Mount {
    config_map: NamespacedName,
    key: Text,
    /// All files that the pod's containers mount.
    files: Vec<(NamespacedName, ConfigFile)>,
}

impl Mount {
    /// Returns the Corefile of the container that `is_it`, if the pod mounts it.
    fn of(objects: &Objects, pod: &Pod, is_it: impl Fn(&Container) -> bool) -> Option<Self> {
        let is_it = |container: &&Container| container.runs_coredns() && is_it(container);
        let container = pod.spec.containers.iter().find(is_it)?;
        let named = |file: &ConfigFile| {
            let name = NamespacedName::new(pod.name.namespace.as_str(), &file.config_map).ok()?;
            Some((name, file.clone()))
        };
        let files: Vec<_> = pod.spec.files.iter().filter_map(named).collect();
        let base = container.argument("basecorefile").unwrap_or(OF_CACHE);
        let base = container.is_node_cache().then_some(base);
        let mut paths = base.into_iter().chain(container.argument("conf"));
        let at = |path: &str| {
            files.iter().find_map(|(name, file)| Some((name.clone(), key_at(file, path)?)))
        };
        // Without an argument, a key that is called so is the one that is meant.
        let usual = || {
            let (name, _) = files.iter().find(|(name, file)| match &file.key {
                Some(key) => **key == *USUAL_KEY,
                None => {
                    let mut entries = objects.corefiles.get(name).into_iter().flatten();
                    entries.any(|entry| *entry.key == *USUAL_KEY)
                }
            })?;
            Some((name.clone(), USUAL_KEY.into()))
        };
        let (config_map, key) = paths.find_map(at).or_else(usual)?;
        Some(Self { config_map, key, files })
    }

    /// Returns the Corefile, if its ConfigMap is given, and adds the ConfigMaps that it is read from.
    fn corefile(
        &self,
        objects: &Objects,
        mounted: &mut BTreeSet<NamespacedName>,
    ) -> Option<Corefile> {
        let entries = objects.corefiles.get(&self.config_map)?;
        let own = entries.iter().find(|entry| entry.key == self.key)?;
        mounted.insert(self.config_map.clone());
        let mut beside = Vec::new();
        for (name, file) in &self.files {
            let Some(entries) = objects.corefiles.get(name) else { continue };
            let is_own = |entry: &&ConfigEntry| *name == self.config_map && entry.key == self.key;
            for entry in entries.iter().filter(|entry| !is_own(entry)) {
                let Some(path) = path_of(file, &entry.key) else { continue };
                mounted.insert(name.clone());
                let (text, origin) = (entry.text.clone(), entry.origin.clone());
                beside.push(CorefileFile { path, text, origin });
            }
        }
        Some(Corefile { text: own.text.clone(), origin: own.origin.clone(), beside, release: None })
    }
}

/// Returns the key that is mounted at a path.
fn key_at(file: &ConfigFile, path: &str) -> Option<Text> {
    match &file.key {
        Some(key) => (*file.path == *path).then(|| key.clone()),
        None => {
            let key = path.strip_prefix(file.path.trim_end_matches('/'))?.strip_prefix('/')?;
            (!key.contains('/')).then(|| key.into())
        }
    }
}

/// Returns the path at which a key is mounted.
fn path_of(file: &ConfigFile, key: &Text) -> Option<Text> {
    match &file.key {
        Some(own) => (own == key).then(|| file.path.clone()),
        None => Some(format!("{}/{key}", file.path.trim_end_matches('/')).into()),
    }
}
