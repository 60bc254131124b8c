//! The table of fields that decoders ask for, by name: only these fields of JSON objects are kept.
//!
//! A name applies to every field of that name at any place; fields within unwanted ones are never
//! reached. uturn's own documents do not use this table.

/// Returns whether a decoder of Kubernetes objects asks for fields of this name.
pub(crate) fn is_wanted(key: &str) -> bool {
    let mut at = slot(key.as_bytes());
    while let Some(name) = NAMES.get(TABLE[at] as usize) {
        if *name == key {
            return true;
        }
        at = (at + 1) % SLOTS;
    }
    false
}

/// Returns whether the keys of this field are not names of fields, so that all are kept.
pub(crate) fn is_open(key: &str) -> bool {
    let open =
        ["labels", "annotations", "selector", "matchLabels", "nodeSelector", "data", "topology"];
    open.contains(&key)
}

/// The names of all wanted fields.
const NAMES: &[&str] = &[
    "@type",
    "PrefixListsIDs",
    "address",
    "addressType",
    "addresses",
    "affinity",
    "allocateLoadBalancerNodePorts",
    "allowRequestsWithoutProxyProtocol",
    "allow_requests_without_proxy_protocol",
    "allowedRoutes",
    "ancestors",
    "annotations",
    "apiVersion",
    "appProtocol",
    "applyTo",
    "args",
    "backend",
    "backendRefs",
    "bpfEnabled",
    "certificateARNs",
    "certificateArn",
    "checkPort",
    "checkType",
    "clientIP",
    "clusterIP",
    "clusterIPs",
    "command",
    "completionMode",
    "conditionType",
    "conditions",
    "configMap",
    "configPatches",
    "containerPort",
    "containers",
    "context",
    "controller",
    "controllerName",
    "creationTimestamp",
    "data",
    "defaultBackend",
    "defaultServer",
    "deletionTimestamp",
    "deregisterTargetRst",
    "dnsConfig",
    "dnsPolicy",
    "domain",
    "domains",
    "effect",
    "enable",
    "enableProxyProtocol",
    "endpoints",
    "env",
    "externalIPs",
    "externalName",
    "externalTrafficPolicy",
    "filters",
    "forNodes",
    "forZones",
    "forwardType",
    "from",
    "gatewayClassName",
    "generateName",
    "group",
    "grpc",
    "headers",
    "healthCheck",
    "healthCheckNodePort",
    "healthNum",
    "hints",
    "holderIdentity",
    "host",
    "hostAliases",
    "hostIP",
    "hostIPs",
    "hostNetwork",
    "hostPort",
    "hostname",
    "hostnames",
    "hosts",
    "http",
    "http2",
    "httpCheckDomain",
    "httpCheckMethod",
    "httpCheckPath",
    "httpCode",
    "httpGet",
    "image",
    "inboundCIDRs",
    "infrastructure",
    "ingress",
    "ingressClassName",
    "initContainers",
    "interfaces",
    "internalTrafficPolicy",
    "intervalTime",
    "ip",
    "ipAddressPoolSelectors",
    "ipAddressPools",
    "ipFamilies",
    "ipMode",
    "items",
    "jobTemplate",
    "keepaliveEnable",
    "kernelVersion",
    "key",
    "kind",
    "kinds",
    "kubeProxyVersion",
    "l4Listeners",
    "l7Listeners",
    "labelSelector",
    "labels",
    "listener",
    "listenerFilters",
    "listener_filters",
    "listeners",
    "livenessProbe",
    "loadBalancer",
    "loadBalancerClass",
    "loadBalancerSourceRanges",
    "match",
    "matchExpressions",
    "matchFields",
    "matchLabels",
    "matches",
    "metadata",
    "method",
    "minReplicaCount",
    "minReplicas",
    "mode",
    "mountPath",
    "name",
    "nameservers",
    "namespace",
    "namespaces",
    "nodeAffinity",
    "nodeInfo",
    "nodeName",
    "nodePort",
    "nodeSelector",
    "nodeSelectorTerms",
    "nodeSelectors",
    "notReadyAddresses",
    "number",
    "operatingSystem",
    "operation",
    "operator",
    "optional",
    "options",
    "ordinals",
    "ownerReferences",
    "parallelism",
    "parameters",
    "parametersRef",
    "parentRef",
    "parentRefs",
    "parents",
    "patch",
    "path",
    "pathType",
    "paths",
    "phase",
    "podAntiAffinity",
    "podCIDR",
    "podCIDRs",
    "podIP",
    "podIPs",
    "podSelector",
    "port",
    "portNumber",
    "ports",
    "preference",
    "preferredNodeSelectors",
    "prefixListsIDs",
    "protocol",
    "providerID",
    "proxy",
    "proxyProtocol",
    "publishNotReadyAddresses",
    "queryParams",
    "readinessGates",
    "readinessProbe",
    "ready",
    "replicas",
    "requestRedirect",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "resource",
    "resourceVersion",
    "restartPolicy",
    "rewriteClientIP",
    "rules",
    "scaleTargetRef",
    "scheduler",
    "scheme",
    "searches",
    "secretName",
    "sectionName",
    "selector",
    "service",
    "serviceName",
    "servicePort",
    "serviceSelectors",
    "serving",
    "session",
    "sessionAffinity",
    "sessionAffinityConfig",
    "sessionExpireTime",
    "snatEnable",
    "sourceIpType",
    "spec",
    "sslRedirectPort",
    "start",
    "startupProbe",
    "status",
    "statusCode",
    "subPath",
    "subdomain",
    "subsets",
    "taints",
    "targetPort",
    "targetRef",
    "targetRefs",
    "targetSelectors",
    "targetType",
    "tcpSocket",
    "template",
    "terminating",
    "timeout",
    "timeoutSeconds",
    "tls",
    "to",
    "tolerations",
    "topology",
    "topologyKey",
    "trafficDistribution",
    "type",
    "typedConfig",
    "typed_config",
    "unHealthNum",
    "unschedulable",
    "url",
    "value",
    "values",
    "volumeMounts",
    "volumes",
    "weight",
    "workloadRef",
    "workloadSelector",
    "zone",
];

const SLOTS: usize = 1024;

/// The indices of names in [`NAMES`]: at the slot of the name, or at the next free slot after it.
static TABLE: [u8; SLOTS] = table();

const fn table() -> [u8; SLOTS] {
    assert!(NAMES.len() < 255, "255 stands for nothing");
    let mut table = [255; SLOTS];
    let mut name = 0;
    while name < NAMES.len() {
        let mut at = slot(NAMES[name].as_bytes());
        while table[at] != 255 {
            at = (at + 1) % SLOTS;
        }
        table[at] = name as u8;
        name += 1;
    }
    table
}

/// Returns the slot of a key. Its length and three of its letters distinguish most names.
const fn slot(key: &[u8]) -> usize {
    if key.is_empty() {
        return 0;
    }
    let letters = [key[0], key[key.len() / 2], key[key.len() - 1]];
    let mut hash = key.len();
    let mut at = 0;
    while at < letters.len() {
        hash = hash.wrapping_mul(37) ^ letters[at] as usize;
        at += 1;
    }
    (hash ^ (hash >> 10)) % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The decoders of Kubernetes objects.
    const DECODERS: [&str; 20] = [
        include_str!("../collect.rs"),
        include_str!("../decode/announcement.rs"),
        include_str!("../decode/calico.rs"),
        include_str!("../decode/class_parameters.rs"),
        include_str!("../decode/client_traffic.rs"),
        include_str!("../decode/config_map.rs"),
        include_str!("../decode/endpoints.rs"),
        include_str!("../decode/gateway.rs"),
        include_str!("../decode/ingress.rs"),
        include_str!("../decode/istio.rs"),
        include_str!("../decode/listener_overrides.rs"),
        include_str!("../decode/meta.rs"),
        include_str!("../decode/network_policy.rs"),
        include_str!("../decode/nginx_proxy.rs"),
        include_str!("../decode/node.rs"),
        include_str!("../decode/pod.rs"),
        include_str!("../decode/scheduling.rs"),
        include_str!("../decode/selector.rs"),
        include_str!("../decode/service.rs"),
        include_str!("../decode/workload.rs"),
    ];

    /// Quoted words in the decoders that are not fields.
    const NO_FIELDS: [&str; 23] = [
        "apps",
        "autoscaling",
        "batch",
        "clusterDNS",
        "config",
        "coredns",
        "default",
        "defaultConfig",
        "deploymentconfig",
        "extensions",
        "gatewayTopology",
        "haproxy",
        "https",
        "istio",
        "kubelet",
        "mesh",
        "ndots",
        "nginx",
        "nodelocaldns",
        "nonMasqueradeCIDRs",
        "true",
        "v1",
        "windows",
    ];

    /// A field that decoders ask for and this table lacks would be missing in JSON and present in
    /// YAML.
    #[test]
    fn what_decoders_ask_for_is_wanted() {
        let mut asked = 0;
        for word in DECODERS.iter().flat_map(|text| text.split('"')) {
            let begins = word.starts_with(|c: char| c.is_ascii_lowercase());
            if begins
                && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
                && !NO_FIELDS.contains(&word)
            {
                assert!(is_wanted(word), "{word}");
                asked += 1;
            }
        }
        assert!(asked >= NAMES.len(), "{asked}");
    }

    #[test]
    fn others_are_not() {
        for other in ["", "managedFields", "uid", "envFrom", "priority", "Name", "names", "nam"] {
            assert!(!is_wanted(other), "{other}");
        }
    }
}
