//! The table of kinds that are read, with their decoders.

use uturn_clouds::cloud;
use uturn_model::{WorkloadKind, misspelt};

use crate::decode::objects::Objects;
use crate::decode::{self, Doc, custom};
use crate::documents::OURS;

type Decoder = fn(&Doc<'_>, &mut Objects);

/// A kind that is read: its groups, the supported versions, and the decoder.
struct Known {
    kind: &'static str,
    /// The groups of the kind; the empty one is Kubernetes' core.
    groups: &'static [&'static str],
    supported: &'static [&'static str],
    decode: Decoder,
}

const fn core(kind: &'static str, decode: Decoder) -> Known {
    Known { kind, groups: &[""], supported: &["v1"], decode }
}

/// The group of uturn's own documents.
const OURS_GROUP: &str = "uturn.dev";
const APPS: &[&str] = &["apps", "extensions"];
/// The versions that clusters had before v1.16, and that manifests still have.
const OLD_APPS: &[&str] = &["apps/v1", "apps/v1beta2", "apps/v1beta1", "extensions/v1beta1"];
const INGRESS: &[&str] =
    &["networking.k8s.io/v1", "networking.k8s.io/v1beta1", "extensions/v1beta1"];
const GATEWAY: &str = "gateway.networking.k8s.io";
const GATEWAY_V1: &[&str] = &[
    "gateway.networking.k8s.io/v1",
    "gateway.networking.k8s.io/v1beta1",
    "gateway.networking.k8s.io/v1alpha2",
];
const MESH_V1: &[&str] =
    &["networking.istio.io/v1", "networking.istio.io/v1beta1", "networking.istio.io/v1alpha3"];
const ADMISSION: &str = "admissionregistration.k8s.io";
const ADMISSION_VERSIONS: &[&str] =
    &["admissionregistration.k8s.io/v1", "admissionregistration.k8s.io/v1beta1"];
const NETWORKING: &[&str] = &["networking.k8s.io", "extensions"];

const KNOWN: &[Known] = &[
    core("Node", decode::node::read),
    core("Pod", decode::pod::read),
    core("Service", decode::service::read),
    core("Endpoints", decode::endpoints::read_endpoints),
    core("ConfigMap", decode::config_map::read),
    core("PersistentVolume", decode::volume::read),
    core("Namespace", decode::network_policy::read_namespace),
    Known {
        kind: "EndpointSlice",
        groups: &["discovery.k8s.io"],
        supported: &["discovery.k8s.io/v1", "discovery.k8s.io/v1beta1"],
        decode: decode::endpoints::read_slice,
    },
    Known {
        kind: "Lease",
        groups: &["coordination.k8s.io"],
        supported: &["coordination.k8s.io/v1", "coordination.k8s.io/v1beta1"],
        decode: decode::lease::read,
    },
    Known {
        kind: "Ingress",
        groups: NETWORKING,
        supported: INGRESS,
        decode: decode::ingress::read,
    },
    Known {
        kind: "IngressClass",
        groups: NETWORKING,
        supported: INGRESS,
        decode: decode::ingress::read_class,
    },
    Known {
        kind: "GatewayClass",
        groups: &[GATEWAY],
        supported: GATEWAY_V1,
        decode: decode::gateway::read_class,
    },
    Known {
        kind: "Gateway",
        groups: &[GATEWAY],
        supported: GATEWAY_V1,
        decode: decode::gateway::read_gateway,
    },
    Known {
        kind: "HTTPRoute",
        groups: &[GATEWAY],
        supported: GATEWAY_V1,
        decode: decode::gateway_route::read_http,
    },
    Known {
        kind: "GRPCRoute",
        groups: &[GATEWAY],
        supported: &["gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1alpha2"],
        decode: decode::gateway_route::read_grpc,
    },
    Known {
        kind: "TCPRoute",
        groups: &[GATEWAY],
        supported: &["gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1alpha2"],
        decode: decode::gateway_route::read_tcp,
    },
    Known {
        kind: "TLSRoute",
        groups: &[GATEWAY],
        supported: &[
            "gateway.networking.k8s.io/v1",
            "gateway.networking.k8s.io/v1alpha3",
            "gateway.networking.k8s.io/v1alpha2",
        ],
        decode: decode::gateway_route::read_tls,
    },
    Known {
        kind: "ReferenceGrant",
        groups: &[GATEWAY],
        supported: &[
            "gateway.networking.k8s.io/v1",
            "gateway.networking.k8s.io/v1beta1",
            "gateway.networking.k8s.io/v1alpha2",
        ],
        decode: decode::gateway::read_grant,
    },
    Known {
        kind: "ClientTrafficPolicy",
        groups: &["gateway.envoyproxy.io"],
        supported: &["gateway.envoyproxy.io/v1alpha1"],
        decode: decode::client_traffic::read,
    },
    Known {
        kind: "NginxProxy",
        groups: &["gateway.nginx.org"],
        supported: &["gateway.nginx.org/v1alpha2", "gateway.nginx.org/v1alpha1"],
        decode: decode::nginx_proxy::read,
    },
    Known {
        kind: "NetworkPolicy",
        groups: NETWORKING,
        supported: &["networking.k8s.io/v1", "extensions/v1beta1"],
        decode: decode::network_policy::read,
    },
    Known {
        kind: "ValidatingWebhookConfiguration",
        groups: &[ADMISSION],
        supported: ADMISSION_VERSIONS,
        decode: decode::api_server::read_webhooks,
    },
    Known {
        kind: "MutatingWebhookConfiguration",
        groups: &[ADMISSION],
        supported: ADMISSION_VERSIONS,
        decode: decode::api_server::read_webhooks,
    },
    Known {
        kind: "APIService",
        groups: &["apiregistration.k8s.io"],
        supported: &["apiregistration.k8s.io/v1", "apiregistration.k8s.io/v1beta1"],
        decode: decode::api_server::read_api_service,
    },
    Known {
        kind: "FelixConfiguration",
        groups: &["crd.projectcalico.org", "projectcalico.org"],
        supported: &["crd.projectcalico.org/v1", "projectcalico.org/v3"],
        decode: decode::calico::read_felix,
    },
    Known {
        kind: "Gateway",
        groups: &["networking.istio.io"],
        supported: MESH_V1,
        decode: decode::istio::read_gateway,
    },
    Known {
        kind: "EnvoyFilter",
        groups: &["networking.istio.io"],
        supported: &["networking.istio.io/v1alpha3"],
        decode: decode::istio::read_filter,
    },
    Known {
        kind: "Facts",
        groups: &["uturn.dev"],
        supported: &["uturn.dev/v1alpha1"],
        decode: |doc, objects| decode::facts::read(doc, &mut objects.facts),
    },
    Known {
        kind: "Deployment",
        groups: APPS,
        supported: OLD_APPS,
        decode: |doc, objects| decode::workload::read(doc, objects, WorkloadKind::Deployment),
    },
    Known {
        kind: "StatefulSet",
        groups: APPS,
        supported: OLD_APPS,
        decode: |doc, objects| decode::workload::read(doc, objects, WorkloadKind::StatefulSet),
    },
    Known {
        kind: "DaemonSet",
        groups: APPS,
        supported: OLD_APPS,
        decode: |doc, objects| decode::workload::read(doc, objects, WorkloadKind::DaemonSet),
    },
    Known {
        kind: "ReplicaSet",
        groups: APPS,
        supported: OLD_APPS,
        decode: |doc, objects| decode::workload::read(doc, objects, WorkloadKind::ReplicaSet),
    },
    Known {
        kind: "Job",
        groups: &["batch"],
        supported: &["batch/v1"],
        decode: |doc, objects| decode::workload::read(doc, objects, WorkloadKind::Job),
    },
    Known {
        kind: "CronJob",
        groups: &["batch"],
        supported: &["batch/v1", "batch/v1beta1", "batch/v2alpha1"],
        decode: |doc, objects| decode::workload::read(doc, objects, WorkloadKind::CronJob),
    },
    core("ReplicationController", |doc, objects| {
        decode::workload::read(doc, objects, WorkloadKind::ReplicationController);
    }),
    Known {
        kind: "HorizontalPodAutoscaler",
        groups: &["autoscaling"],
        supported: &[
            "autoscaling/v2",
            "autoscaling/v1",
            "autoscaling/v2beta2",
            "autoscaling/v2beta1",
        ],
        decode: decode::workload::read_autoscaler,
    },
    Known {
        kind: "ScaledObject",
        groups: &["keda.sh"],
        supported: &["keda.sh/v1alpha1"],
        decode: decode::workload::read_scaled_object,
    },
];

/// A kind of Kubernetes objects that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadKind {
    /// The name of the kind: `Service`.
    pub kind: &'static str,
    /// The values of `apiVersion` that are read, the preferred one first.
    pub api_versions: &'static [&'static str],
}

/// Returns the kinds of Kubernetes objects that are read, those of clouds last.
pub fn kinds() -> Vec<ReadKind> {
    let own = KNOWN.iter().filter(|known| !known.groups.contains(&OURS_GROUP));
    let own = own.map(|known| ReadKind { kind: known.kind, api_versions: known.supported });
    let of_clouds = cloud::ALL.into_iter().filter_map(|entry| entry.overrides.as_ref());
    let of_clouds =
        of_clouds.map(|object| ReadKind { kind: object.kind, api_versions: object.versions });
    let parameters = cloud::ALL.into_iter().filter_map(|entry| entry.class_parameters.as_ref());
    let parameters =
        parameters.map(|object| ReadKind { kind: object.kind, api_versions: object.versions });
    let announcements = cloud::ALL.into_iter().filter_map(|entry| entry.announcements.as_ref());
    let announcements = announcements.flat_map(|objects| {
        objects.kinds().map(|kind| ReadKind { kind, api_versions: objects.versions })
    });
    own.chain(of_clouds).chain(parameters).chain(announcements).collect()
}

/// Iterates over the ConfigMaps that are read, by namespace and name. Others are only read if they
/// are the configuration of an nginx.
pub fn config_maps() -> impl Iterator<Item = (&'static str, &'static str)> {
    decode::config_map::names()
}

/// Returns whether an entry of a ConfigMap is a configuration of CNI plugins that create a bridge.
/// Such entries are read in any ConfigMap.
pub fn is_bridge_configuration(key: &str, text: &str) -> bool {
    decode::cni::is_of_bridge(key, text)
}

/// Returns the keys that are read in ConfigMaps with the settings of an Ingress controller.
pub fn controller_settings() -> &'static [&'static str] {
    &decode::config_map::CONTROLLER_SETTINGS
}

/// Passes an object to the decoder of its kind.
pub(crate) fn take(doc: &Doc<'_>, version: &str, kind: &str, objects: &mut Objects) {
    let group = version.rsplit_once('/').map_or("", |(group, _)| group);
    let is_it = |known: &&Known| known.kind == kind && known.groups.contains(&group);
    let Some((supported, decode)) = KNOWN
        .iter()
        .find(is_it)
        .map(|known| (known.supported, known.decode))
        .or_else(|| of_clouds(group, kind))
    else {
        if group == OURS_GROUP {
            return unknown_of_ours(doc, version, kind);
        }
        if let Some(meant) = misspelt(version, kind).filter(|_| doc.is_written()) {
            let at = doc.root.get("kind").unwrap_or(doc.root);
            let message = format!("{version} {kind} is unknown");
            return doc.fault_with_hint(at, message, decode::did_you_mean(&meant));
        }
        if decode::workload::read_other(doc, kind, objects) {
            return objects.see(&format!("{version}/{kind}"));
        }
        if decode::api_server::read_conversion(doc, group, kind, objects) {
            return objects.see(kind);
        }
        // Only the hosts are read: what becomes of a request is not.
        if (group, kind) == ("networking.istio.io", "VirtualService") {
            decode::istio::read_route(doc, objects);
        }
        if custom::is_custom(group) && doc.is_written() {
            objects.awaited.extend(custom::namespace(doc));
        }
        return objects.skip(&format!("{version}/{kind}"));
    };
    if !supported.contains(&version) {
        let message = format!("{version} {kind} is not supported");
        let hint = format!("supported: {}", supported.join(", "));
        return doc.fault_with_hint(doc.root.get("apiVersion").unwrap_or(doc.root), message, hint);
    }
    objects.see(kind);
    decode(doc, objects);
}

/// The API groups that every API server has. Other groups have kinds that are not read and whose
/// names are similar to those of kinds that are (UDPRoute).
const BUILT_IN: [&str; 7] =
    ["", "apps", "autoscaling", "batch", "discovery.k8s.io", "extensions", "networking.k8s.io"];

/// Returns the built-in kind that was probably meant, if its name or group is misspelt.
fn misspelt(version: &str, kind: &str) -> Option<String> {
    let (group, number) = version.rsplit_once('/').unwrap_or(("", version));
    let own = || KNOWN.iter().filter(|known| BUILT_IN.contains(&known.groups[0]));
    let by_group = own().filter(|known| known.kind == kind).find_map(|known| {
        let close = |own: &&&str| !own.is_empty() && misspelt::is_misspelt(group, own);
        known.groups.iter().find(close).map(|own| format!("{own}/{number} {kind}"))
    });
    let by_kind = || {
        let of_group = own().filter(|known| known.groups.contains(&group));
        let mut close = of_group.filter(|known| misspelt::is_misspelt(kind, known.kind));
        close.next().map(|known| format!("{version} {}", known.kind))
    };
    by_group.or_else(by_kind)
}

/// Returns the supported versions of a kind that a cloud defines, and its decoder.
fn of_clouds(group: &str, kind: &str) -> Option<(&'static [&'static str], Decoder)> {
    if let Some(object) = cloud::class_parameters(kind) {
        let mut groups = object.versions.iter().map(|version| version.split('/').next());
        let is_its = groups.any(|known| known == Some(group));
        return is_its.then_some((object.versions, decode::class_parameters::read));
    }
    if let Some(objects) = cloud::announcement_objects(kind) {
        let is_its = |version: &&str| version.split('/').next() == Some(group);
        return objects
            .versions
            .iter()
            .any(is_its)
            .then_some((objects.versions, decode::announcement::read));
    }
    let mut overrides = cloud::ALL.into_iter().filter_map(|entry| entry.overrides.as_ref());
    let found = overrides.find(|object| object.kind == kind && object.group == group)?;
    Some((found.versions, decode::listener_overrides::read))
}

fn unknown_of_ours(doc: &Doc<'_>, version: &str, kind: &str) {
    let (kinds, at) = (["Facts", "Scenario", "LoadBalancer", "DataPlane"], doc.root.get("kind"));
    let hint = match kind {
        "Scenario" if version == OURS => "a Scenario cannot contain another".to_owned(),
        "Facts" | "Scenario" => format!("supported: {OURS}"),
        "LoadBalancer" | "DataPlane" => format!("a {kind} document is for `uturn lb`"),
        _ => match misspelt::closest(kind, kinds) {
            Some(close) => decode::did_you_mean(close),
            None => format!("{OURS} has {}", kinds.join(", ")),
        },
    };
    let message = format!("{version} {kind} is not supported");
    doc.fault_with_hint(at.unwrap_or(doc.root), message, hint);
}
