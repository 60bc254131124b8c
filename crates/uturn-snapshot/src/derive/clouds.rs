//! Whose load balancer it is: told by what clouds and controllers leave on nodes, Services and
//! Ingresses. A cloud that gets a profile needs no other place.

mod traces;

use uturn_model::cluster::Provider;
use uturn_model::{Basis, Cloud, Ingress, Known, Labels, Service, WorkloadKind};

use super::balancers;
use crate::objects::Objects;
use traces::{
    CLASSES, CLOUD_CONTROLLERS, CONTROLLERS, HOST_NAMES, INGRESS_KEYS, NODE_KEYS, PROVIDER_IDS,
    SERVICE_KEYS, USUAL_CLASSES,
};

/// Who makes a load balancer, as far as something tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Maker {
    /// Tencent's: the only one that is judged.
    Judged,
    /// A cloud or a program; the product where that is told too.
    Other {
        /// As the vendor spells it.
        name: String,
        /// What tells it.
        trace: String,
    },
    /// A controller in the cluster serves an Ingress: its pods do, behind a Service of theirs.
    Controller {
        /// What it is called.
        name: String,
        /// What tells it.
        trace: String,
    },
    /// Nothing tells it.
    Unknown,
}

impl Maker {
    fn other(name: impl Into<String>, trace: String) -> Self {
        Self::Other { name: name.into(), trace }
    }
}

/// Another cloud that the cluster is in, or what makes load balancers in place of one, and what
/// it left behind.
pub(super) fn elsewhere(objects: &Objects) -> Option<(Cloud, String)> {
    let traces = [by_provider_id, by_node_key, by_service_key, by_program, by_k3s];
    traces.iter().find_map(|find| find(objects))
}

fn by_provider_id(objects: &Objects) -> Option<(Cloud, String)> {
    objects.nodes.0.values().find_map(|node| {
        let id = node.provider_id.as_deref()?;
        let (shown, cloud) = cloud_of_id(id)?;
        Some((cloud, format!("providerID {shown} of Node {}", node.name)))
    })
}

/// The cloud that a providerID is of, and the part of it that says so.
fn cloud_of_id(id: &str) -> Option<(&str, Cloud)> {
    if let Some((begins, cloud)) = PROVIDER_IDS.iter().find(|(begins, _)| id.starts_with(begins)) {
        return Some((begins, *cloud));
    }
    // Alibaba's have no scheme: `cn-hangzhou.i-bp1…`.
    let (region, instance) = id.split_once('.')?;
    let is_region = region.contains('-')
        && region.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    (is_region && instance.starts_with("i-")).then_some((region, Cloud::Alibaba))
}

fn by_node_key(objects: &Objects) -> Option<(Cloud, String)> {
    objects.nodes.0.values().find_map(|node| {
        let keys = [&node.labels, &node.annotations];
        let (key, cloud) = keys.iter().find_map(|labels| known_key(labels, NODE_KEYS))?;
        Some((cloud, format!("{key} of Node {}", node.name)))
    })
}

fn by_service_key(objects: &Objects) -> Option<(Cloud, String)> {
    objects.services.0.values().find_map(|service| {
        let (key, cloud) = known_key(&service.annotations, SERVICE_KEYS)?;
        Some((cloud, format!("{key} of {}", service.object())))
    })
}

fn known_key<'l>(labels: &'l Labels, known: &[(&str, Cloud)]) -> Option<(&'l str, Cloud)> {
    labels.iter().find_map(|(key, _)| {
        let (_, cloud) = known.iter().find(|(begins, _)| key.starts_with(begins))?;
        Some((key, *cloud))
    })
}

/// Programs that announce addresses from within the cluster, by their namespace, workload or
/// their own objects.
fn by_program(objects: &Objects) -> Option<(Cloud, String)> {
    const KINDS: &[(&str, Cloud)] = &[
        ("metallb.io/", Cloud::MetalLb),
        ("cilium.io/v2alpha1/CiliumLoadBalancerIPPool", Cloud::CiliumLbIpam),
        ("cilium.io/v2/CiliumLoadBalancerIPPool", Cloud::CiliumLbIpam),
    ];
    let by_workload = objects.workloads.0.values().find_map(|one| {
        let (namespace, name) = (one.name.namespace.as_str(), one.name.name.as_str());
        let cloud = match (namespace, name) {
            ("metallb-system", _) => Cloud::MetalLb,
            (_, "metallb-speaker") => Cloud::MetalLb,
            (_, name) if name.starts_with("kube-vip") => Cloud::KubeVip,
            _ => return None,
        };
        Some((cloud, one.object().to_string()))
    });
    let by_pod = || {
        objects.pods.0.values().find_map(|pod| {
            let cloud = match pod.name.namespace.as_str() {
                "metallb-system" => Cloud::MetalLb,
                _ if pod.name.name.as_str().starts_with("kube-vip") => Cloud::KubeVip,
                _ => return None,
            };
            Some((cloud, format!("Pod {}", pod.name)))
        })
    };
    let by_kind = || {
        objects.skipped().into_iter().find_map(|one| {
            let (_, cloud) = KINDS.iter().find(|(begins, _)| one.kind.starts_with(begins))?;
            Some((*cloud, format!("an object of {}", one.kind)))
        })
    };
    let by_config = || {
        const SWITCHES: [&str; 2] = ["enable-l2-announcements", "enable-bgp-control-plane"];
        let (config, origin) = objects.cilium_config.as_ref()?;
        let switch = SWITCHES.iter().find(|switch| config.is(switch, "true"))?;
        Some((Cloud::CiliumLbIpam, format!("{switch} of cilium-config at {origin}")))
    };
    by_workload.or_else(by_pod).or_else(by_kind).or_else(by_config)
}

/// The load balancer that k3s brings: a DaemonSet for each Service.
fn by_k3s(objects: &Objects) -> Option<(Cloud, String)> {
    let sets = objects.workloads.0.values();
    let mut sets = sets.filter(|one| one.kind == WorkloadKind::DaemonSet);
    let by_set = sets.find(|one| one.name.name.as_str().starts_with("svclb-"));
    let by_node = || {
        let mut nodes = objects.nodes.0.values();
        let node = nodes
            .find(|node| node.provider_id.as_deref().is_some_and(|id| id.starts_with("k3s://")))?;
        Some(format!("providerID k3s:// of Node {}", node.name))
    };
    let trace = by_set.map(|set| set.object().to_string()).or_else(by_node)?;
    Some((Cloud::K3s, trace))
}

/// Whose load balancer a Service has: `loadBalancerClass` decides, then what Facts state, then
/// annotations, the status, and the cloud of the cluster.
pub(super) fn of_service(service: &Service, provider: &Known<Provider>) -> Maker {
    let object = service.object();
    if let Some(class) = service.load_balancer_class.as_deref() {
        let known = CLASSES.iter().find(|(begins, _)| begins_with(class, begins));
        let name = known.map_or_else(|| format!("class {class}"), |(_, name)| (*name).to_owned());
        return Maker::other(name, format!("loadBalancerClass {class} of {object}"));
    }
    let is_stated = matches!(provider.basis, Basis::Stated(_));
    if is_stated && provider.value == Provider::Tke {
        return Maker::Judged;
    }
    if !(provider.value == Provider::Tke && has_own_key(&service.annotations)) {
        if let Some((key, cloud)) = known_key(&service.annotations, SERVICE_KEYS) {
            let kind = service.annotations.get("service.beta.kubernetes.io/aws-load-balancer-type");
            let name = match kind {
                Some("nlb" | "nlb-ip" | "external") => "AWS NLB",
                _ => cloud.name(),
            };
            return Maker::other(name, format!("{key} of {object}"));
        }
        if let Some((name, trace)) = by_host_name(&service.load_balancer) {
            return Maker::other(name, format!("{trace}, of {object}"));
        }
    }
    of_cluster(provider)
}

/// Whose load balancer serves an Ingress: the controller of its class, or of the cluster's
/// default class, then annotations, the status, and the cloud of the cluster.
pub(super) fn of_ingress(
    ingress: &Ingress,
    objects: &Objects,
    provider: &Known<Provider>,
) -> Maker {
    let object = ingress.object();
    if provider.value == Provider::Tke && balancers::is_of_cloud(ingress, objects) {
        return Maker::Judged;
    }
    let classes = &objects.ingress_classes.0;
    let class = match ingress.class.as_deref() {
        Some(class) => classes.get(class),
        None => classes.values().find(|one| one.is_default),
    };
    if let Some(class) = class {
        let trace = format!("controller {} of IngressClass {}", class.controller, class.name);
        return of_controller(&class.controller, &trace)
            .unwrap_or(Maker::Controller { name: class.controller.to_string(), trace });
    }
    if let Some(class) = ingress.class.as_deref() {
        let trace = format!("class {class} of {object}");
        let usual = USUAL_CLASSES.iter().find(|(name, _)| *name == class);
        if class == "cce" {
            return Maker::other(Cloud::Huawei.name(), trace);
        }
        let known = usual.and_then(|(_, controller)| of_controller(controller, &trace));
        let name = format!("the controller of class {class}");
        return known.unwrap_or(Maker::Controller { name, trace });
    }
    let by_key = ingress.annotations.iter().find_map(|(key, _)| {
        let (_, controller) = INGRESS_KEYS.iter().find(|(begins, _)| key.starts_with(begins))?;
        of_controller(controller, &format!("{key} of {object}"))
    });
    if let Some(maker) = by_key {
        return maker;
    }
    if let Some((name, trace)) = by_host_name(&ingress.load_balancer) {
        return Maker::other(name, format!("{trace}, of {object}"));
    }
    match provider.value {
        // These only announce addresses of Services.
        Provider::Other(
            Cloud::MetalLb | Cloud::KubeVip | Cloud::K3s | Cloud::CiliumLbIpam | Cloud::F5,
        ) => Maker::Unknown,
        _ => of_cluster(provider),
    }
}

fn of_cluster(provider: &Known<Provider>) -> Maker {
    match provider.value {
        Provider::Tke => Maker::Judged,
        Provider::Other(cloud) => {
            let trace = match &provider.basis {
                Basis::Derived(from) => from.to_string(),
                basis => format!("{} at {basis}", cloud.word()),
            };
            Maker::other(cloud.name(), trace)
        }
        Provider::Unknown | Provider::None => Maker::Unknown,
    }
}

fn of_controller(controller: &str, trace: &str) -> Option<Maker> {
    let of = |known: &[(&'static str, &'static str)]| {
        let (_, name) = known.iter().find(|(begins, _)| controller.starts_with(begins))?;
        Some((*name).to_owned())
    };
    if let Some(name) = of(CLOUD_CONTROLLERS) {
        return Some(Maker::Other { name, trace: trace.to_owned() });
    }
    Some(Maker::Controller { name: of(CONTROLLERS)?, trace: trace.to_owned() })
}

fn by_host_name(status: &[uturn_model::service::LbIngress]) -> Option<(&'static str, String)> {
    status.iter().find_map(|entry| {
        let host = entry.hostname.as_deref()?.trim_end_matches('.');
        let (_, name) = HOST_NAMES.iter().find(|(ends, _)| host.ends_with(ends))?;
        Some((*name, format!("host name {host}")))
    })
}

/// Whether a class is this one, or one of those that begin so.
fn begins_with(class: &str, known: &str) -> bool {
    class == known || (known.ends_with('/') && class.starts_with(known))
}

/// Whether Tencent's controllers read one of these.
pub(super) fn has_own_key(labels: &Labels) -> bool {
    own_key(labels).is_some()
}

/// The key that Tencent's controllers read.
pub(super) fn own_key(labels: &Labels) -> Option<&str> {
    let is_own = |key: &&str| {
        key.contains("tencent")
            || key.contains("qcloud")
            || *key == "kubernetes.io/ingress.subnetId"
    };
    labels.iter().map(|(key, _)| key).find(is_own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provider_ids_with_and_without_a_scheme() {
        let of = |id| cloud_of_id(id).map(|(_, cloud)| cloud);
        assert_eq!(of("aws:///eu-west-1a/i-0123"), Some(Cloud::Aws));
        assert_eq!(of("cn-hangzhou.i-bp1d4k"), Some(Cloud::Alibaba));
        assert_eq!(of("alicloud://cn-hangzhou.i-bp1d4k"), Some(Cloud::Alibaba));
        assert_eq!(of("ocid1.instance.oc1.iad.anuwc"), Some(Cloud::Oracle));
        assert_eq!(of("hcloud://bm-17"), Some(Cloud::Hetzner));
        for none in ["kind://docker/kind/kind-worker", "rke2://n1", "3f2c8e1a-0000-4b1c-9d7e", ""] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
