//! The annotations that TKE's controllers and its kube-proxy read.

use crate::cloud::{Annotation, Setting, SettingOf, ValueKind};

/// On a Service: kube-proxy binds its load-balancer addresses.
pub const PREVENT_LOOPBACK: &str = "service.cloud.tencent.com/prevent-loopback";
/// On a Service: pods are the targets.
pub const DIRECT_ACCESS: &str = "service.cloud.tencent.com/direct-access";
/// On an Ingress: pods are the targets.
pub const INGRESS_DIRECT_ACCESS: &str = "ingress.cloud.tencent.com/direct-access";
/// On a Service with policy Local: only nodes with a ready pod are targets.
pub const ONLY_NODES_WITH_PODS: &str = "service.kubernetes.io/local-svc-only-bind-node-with-pod";
/// On a Service for which only nodes with a ready pod are targets: each node's weight is its number
/// of ready pods.
pub const WEIGHT_BY_PODS: &str = "service.cloud.tencent.com/local-svc-weighted-balance";
/// On a Service: only nodes with these labels are targets.
pub const BACKENDS_LABEL: &str = "service.kubernetes.io/qcloud-loadbalancer-backends-label";
/// On a Service: the listeners' protocols, as JSON.
pub const SPECIFY_PROTOCOL: &str = "service.cloud.tencent.com/specify-protocol";
/// On a Service: the id of an existing CLB.
pub const EXISTING: &str = "service.kubernetes.io/tke-existed-lbid";
/// On an Ingress: the id of an existing CLB.
pub const INGRESS_EXISTING: &str = "kubernetes.io/ingress.existLbId";
/// On a Service: the subnet of a private CLB.
pub const SUBNET: &str = "service.kubernetes.io/qcloud-loadbalancer-internal-subnetid";
/// On an Ingress: the subnet of a private CLB.
pub const INGRESS_SUBNET: &str = "kubernetes.io/ingress.subnetId";
/// On a Service: the name of its TkeServiceConfig.
pub const CONFIG: &str = "service.cloud.tencent.com/tke-service-config";
/// On a Service: the controller makes its TkeServiceConfig.
pub const CONFIG_AUTO: &str = "service.cloud.tencent.com/tke-service-config-auto";
/// On an Ingress: the name of its TkeServiceConfig.
pub const INGRESS_CONFIG: &str = "ingress.cloud.tencent.com/tke-service-config";
/// On an Ingress: the controller makes its TkeServiceConfig.
pub const INGRESS_CONFIG_AUTO: &str = "ingress.cloud.tencent.com/tke-service-config-auto";
/// On an Ingress: each rule is served with the protocols whose lists of rules name it.
pub const MIXED: &str = "kubernetes.io/ingress.rule-mix";
/// On an Ingress: each rule is served with HTTP and with HTTPS.
pub const BOTH: &str = "kubernetes.io/ingress.rule-mix-both";
/// On an Ingress: the rules served with HTTP, as JSON.
pub const HTTP_RULES: &str = "kubernetes.io/ingress.http-rules";
/// On an Ingress: the rules served with HTTPS, as JSON.
pub const HTTPS_RULES: &str = "kubernetes.io/ingress.https-rules";
/// On an Ingress: HTTP redirects to HTTPS for all rules that are served with HTTPS.
pub const AUTO_REWRITE: &str = "ingress.cloud.tencent.com/auto-rewrite";
/// On an Ingress: the status of those redirects, as JSON.
pub const AUTO_REWRITE_CODE: &str = "ingress.cloud.tencent.com/auto-rewrite-code";
/// On an Ingress: whether redirects are made at all.
pub const REWRITE_SUPPORT: &str = "ingress.cloud.tencent.com/rewrite-support";
/// On an Ingress: the ports of its listeners, as JSON.
pub const LISTEN_PORTS: &str = "ingress.cloud.tencent.com/listen-ports";
/// On a Service: the security groups of its CLB, by id.
pub const SECURITY_GROUPS: &str = "service.cloud.tencent.com/security-groups";
/// On an Ingress: the security groups of its CLB, by id.
pub const INGRESS_SECURITY_GROUPS: &str = "ingress.cloud.tencent.com/security-groups";
/// On a Service: targets accept the packets that its CLB accepted.
pub const PASS_TO_TARGET: &str = "service.cloud.tencent.com/pass-to-target";
/// On an Ingress: targets accept the packets that its CLB accepted.
pub const INGRESS_PASS_TO_TARGET: &str = "ingress.cloud.tencent.com/pass-to-target";
/// On a Service: `skip` stops its controller.
pub const MODE: &str = "service.cloud.tencent.com/mode";
/// On an Ingress: `skip` stops its controller.
pub const INGRESS_MODE: &str = "ingress.cloud.tencent.com/mode";
/// On a Service: fields of the request that creates its CLB, as JSON.
pub const PARAMETERS: &str = "service.kubernetes.io/service.extensiveParameters";
/// On an Ingress: fields of the request that creates its CLB, as JSON.
pub const INGRESS_PARAMETERS: &str = "kubernetes.io/ingress.extensiveParameters";
/// On a Service: the id of its CLB, which its controller writes.
pub const CURRENT: &str = "service.kubernetes.io/loadbalance-id";
/// On an Ingress: the id of its CLB, which its controller writes.
pub const INGRESS_CURRENT: &str = "kubernetes.io/ingress.qcloud-loadbalance-id";
/// On an Ingress: it shares an existing CLB with other Ingresses.
pub const GROUP: &str = "ingress.cloud.tencent.com/enable-group";
/// On a Service with pods as targets: pods that are not ready stay targets with weight 0.
pub const GRACE_SHUTDOWN: &str = "service.cloud.tencent.com/enable-grace-shutdown-tkex";
/// On an Ingress with pods as targets: pods that are not ready stay targets with weight 0.
pub const INGRESS_GRACE_SHUTDOWN: &str = "ingress.cloud.tencent.com/enable-grace-shutdown-tkex";
/// On a Service with pods as targets: their weights, as JSON.
pub const POD_WEIGHTS: &str = "service.cloud.tencent.com/lb-rs-weight";
/// On an Ingress with pods as targets: their weights, as JSON.
pub const INGRESS_POD_WEIGHTS: &str = "ingress.cloud.tencent.com/lb-rs-weight";
/// On a Service: the addresses of its CLB that replace clients' addresses, as JSON.
pub const SNAT_ADDRESSES: &str = "service.cloud.tencent.com/snat-pro-info";
/// On an Ingress: the addresses of its CLB that replace clients' addresses, as JSON.
pub const INGRESS_SNAT_ADDRESSES: &str = "ingress.cloud.tencent.com/snat-pro-info";
/// The readiness gate of pods that are targets.
pub const READINESS_GATE: &str = "cloud.tencent.com/load-balancer-backendgroup-ready";
/// On a pod: its network cards.
pub const NETWORKS: &str = "tke.cloud.tencent.com/networks";

/// Returns whether only this cloud's components read or write a key.
pub(super) fn is_own(key: &str) -> bool {
    key.contains("tencent") || key.contains("qcloud") || key == INGRESS_SUBNET
}

/// Returns the key of the annotation for a setting.
pub(super) fn key(setting: Setting, of: SettingOf) -> Option<&'static str> {
    use SettingOf::{Ingress, Service};
    Some(match (setting, of) {
        (Setting::AddressBinding, Service) => PREVENT_LOOPBACK,
        (Setting::PodTargets, Service) => DIRECT_ACCESS,
        (Setting::PodTargets, Ingress) => INGRESS_DIRECT_ACCESS,
        (Setting::NodesWithPods, Service) => ONLY_NODES_WITH_PODS,
        (Setting::NodeLabels, Service) => BACKENDS_LABEL,
        (Setting::Protocols, Service) => SPECIFY_PROTOCOL,
        (Setting::Overrides, Service) => CONFIG,
        (Setting::Overrides, Ingress) => INGRESS_CONFIG,
        (Setting::RedirectToHttps, Ingress) => AUTO_REWRITE,
        (Setting::Redirects, Ingress) => REWRITE_SUPPORT,
        (Setting::BothProtocols, Ingress) => BOTH,
        (Setting::MixedProtocols, Ingress) => MIXED,
        (Setting::HttpRules, Ingress) => HTTP_RULES,
        (Setting::HttpsRules, Ingress) => HTTPS_RULES,
        _ => return None,
    })
}

/// The annotations that are read, with the kinds of their values.
pub(super) const READ: &[Annotation] = &[
    Annotation::new(PREVENT_LOOPBACK, ValueKind::Switch),
    Annotation::new(DIRECT_ACCESS, ValueKind::Switch),
    Annotation::new(INGRESS_DIRECT_ACCESS, ValueKind::Switch),
    Annotation::new(ONLY_NODES_WITH_PODS, ValueKind::Switch),
    Annotation::new(WEIGHT_BY_PODS, ValueKind::Switch),
    Annotation::new(BACKENDS_LABEL, ValueKind::Names),
    Annotation::new(SPECIFY_PROTOCOL, PROTOCOLS),
    Annotation::new(EXISTING, ValueKind::Names),
    Annotation::new(INGRESS_EXISTING, ValueKind::Names),
    Annotation::new(SUBNET, ValueKind::Names),
    Annotation::new(INGRESS_SUBNET, ValueKind::Names),
    Annotation::new(CONFIG, ValueKind::Names),
    Annotation::new(CONFIG_AUTO, ValueKind::Switch),
    Annotation::new(INGRESS_CONFIG, ValueKind::Names),
    Annotation::new(INGRESS_CONFIG_AUTO, ValueKind::Switch),
    Annotation::new(MIXED, ValueKind::Switch),
    Annotation::new(BOTH, ValueKind::Switch),
    Annotation::new(HTTP_RULES, RULES),
    Annotation::new(HTTPS_RULES, RULES),
    Annotation::new(AUTO_REWRITE, ValueKind::Switch),
    Annotation::new(
        AUTO_REWRITE_CODE,
        ValueKind::Document { fields: &["defaultRewriteCode"], words: &[] },
    ),
    Annotation::new(REWRITE_SUPPORT, ValueKind::Switch),
    Annotation::new(LISTEN_PORTS, ValueKind::Document { fields: &["HTTP", "HTTPS"], words: &[] }),
    Annotation::new(SECURITY_GROUPS, ValueKind::Names),
    Annotation::new(INGRESS_SECURITY_GROUPS, ValueKind::Names),
    Annotation::new(PASS_TO_TARGET, ValueKind::Switch),
    Annotation::new(INGRESS_PASS_TO_TARGET, ValueKind::Switch),
    Annotation::new(MODE, ValueKind::Words(&["skip"])),
    Annotation::new(INGRESS_MODE, ValueKind::Words(&["skip"])),
    Annotation::new(PARAMETERS, REQUEST),
    Annotation::new(INGRESS_PARAMETERS, REQUEST),
    Annotation::new(CURRENT, ValueKind::Names),
    Annotation::new(INGRESS_CURRENT, ValueKind::Names),
    Annotation::new(GROUP, ValueKind::Switch),
    Annotation::new(GRACE_SHUTDOWN, ValueKind::Switch),
    Annotation::new(INGRESS_GRACE_SHUTDOWN, ValueKind::Switch),
    Annotation::new(POD_WEIGHTS, WEIGHTS),
    Annotation::new(INGRESS_POD_WEIGHTS, WEIGHTS),
    Annotation::new(SNAT_ADDRESSES, ADDRESSES),
    Annotation::new(INGRESS_SNAT_ADDRESSES, ADDRESSES),
    Annotation::new(NETWORKS, ValueKind::Words(&["tke-route-eni", "tke-direct-eni", "tke-bridge"])),
];

const PROTOCOLS: ValueKind = ValueKind::Document {
    fields: &["protocol", "tls", "hosts"],
    words: &["TCP", "UDP", "TCP_SSL", "HTTP", "HTTPS", "QUIC"],
};
const RULES: ValueKind = ValueKind::Document {
    fields: &["host", "path", "backend", "serviceName", "servicePort", "rewrite", "port"],
    words: &[],
};
/// The fields of the request that creates a CLB. The field with fixed words is read; ids and names
/// in the request are the user's.
const REQUEST: ValueKind =
    ValueKind::Document { fields: &["LoadBalancerType"], words: &["OPEN", "INTERNAL"] };
const WEIGHTS: ValueKind = ValueKind::Document {
    fields: &[
        "defaultWeight",
        "groups",
        "key",
        "proto",
        "port",
        "host",
        "path",
        "statefulSets",
        "name",
        "weights",
        "weight",
        "podIndexes",
    ],
    words: &["TCP", "UDP", "TCP_SSL", "HTTP", "HTTPS", "QUIC"],
};
const ADDRESSES: ValueKind =
    ValueKind::Document { fields: &["snatIps", "subnetId", "ip"], words: &[] };
