//! The fields of objects in the Kubernetes API, including those that uturn does not read. A field
//! that is similar to one of them is a misspelling.

/// The fields of `metadata` of any object.
pub(crate) const METADATA: &[&str] = &[
    "annotations",
    "clusterName",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The fields of a Service's `spec`.
pub(crate) const SERVICE: &[&str] = &[
    "allocateLoadBalancerNodePorts",
    "clusterIP",
    "clusterIPs",
    "externalIPs",
    "externalName",
    "externalTrafficPolicy",
    "healthCheckNodePort",
    "internalTrafficPolicy",
    "ipFamilies",
    "ipFamily",
    "ipFamilyPolicy",
    "loadBalancerClass",
    "loadBalancerIP",
    "loadBalancerSourceRanges",
    "ports",
    "publishNotReadyAddresses",
    "selector",
    "sessionAffinity",
    "sessionAffinityConfig",
    "topologyKeys",
    "trafficDistribution",
    "type",
];

/// The fields of a Service's port.
pub(crate) const SERVICE_PORT: &[&str] =
    &["appProtocol", "name", "nodePort", "port", "protocol", "targetPort"];

/// The fields of an Ingress's `spec`, in any version.
pub(crate) const INGRESS: &[&str] =
    &["backend", "defaultBackend", "ingressClassName", "rules", "tls"];

/// The fields of an Ingress's rule.
pub(crate) const INGRESS_RULE: &[&str] = &["host", "http"];

/// The fields of `http` in an Ingress's rule.
pub(crate) const INGRESS_PATHS: &[&str] = &["paths"];

/// The fields of an Ingress's path.
pub(crate) const INGRESS_PATH: &[&str] = &["backend", "path", "pathType"];

/// The fields of a NetworkPolicy's `spec`.
pub(crate) const NETWORK_POLICY: &[&str] = &["egress", "ingress", "podSelector", "policyTypes"];

/// The fields of the `spec` of Kubernetes' own workloads.
pub(crate) const WORKLOAD: &[&str] = &[
    "activeDeadlineSeconds",
    "backoffLimit",
    "backoffLimitPerIndex",
    "completionMode",
    "completions",
    "managedBy",
    "manualSelector",
    "maxFailedIndexes",
    "minReadySeconds",
    "ordinals",
    "parallelism",
    "paused",
    "persistentVolumeClaimRetentionPolicy",
    "podFailurePolicy",
    "podManagementPolicy",
    "podReplacementPolicy",
    "progressDeadlineSeconds",
    "replicas",
    "revisionHistoryLimit",
    "rollbackTo",
    "selector",
    "serviceName",
    "strategy",
    "successPolicy",
    "suspend",
    "template",
    "templateGeneration",
    "ttlSecondsAfterFinished",
    "updateStrategy",
    "volumeClaimTemplates",
];

/// The fields of a workload's pod template.
pub(crate) const TEMPLATE: &[&str] = &["metadata", "spec"];

/// The fields of a pod's `spec`.
pub(crate) const POD: &[&str] = &[
    "activeDeadlineSeconds",
    "affinity",
    "automountServiceAccountToken",
    "containers",
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "ephemeralContainers",
    "hostAliases",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostUsers",
    "hostname",
    "hostnameOverride",
    "imagePullSecrets",
    "initContainers",
    "nodeName",
    "nodeSelector",
    "os",
    "overhead",
    "preemptionPolicy",
    "priority",
    "priorityClassName",
    "readinessGates",
    "resourceClaims",
    "resources",
    "restartPolicy",
    "runtimeClassName",
    "schedulerName",
    "schedulingGates",
    "securityContext",
    "serviceAccount",
    "serviceAccountName",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "subdomain",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
    "volumes",
    "workloadRef",
];

/// The fields of a pod's container.
pub(crate) const CONTAINER: &[&str] = &[
    "args",
    "command",
    "env",
    "envFrom",
    "image",
    "imagePullPolicy",
    "lifecycle",
    "livenessProbe",
    "name",
    "ports",
    "readinessProbe",
    "resizePolicy",
    "resources",
    "restartPolicy",
    "restartPolicyRules",
    "securityContext",
    "startupProbe",
    "stdin",
    "stdinOnce",
    "targetContainerName",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "tty",
    "volumeDevices",
    "volumeMounts",
    "workingDir",
];

/// The fields of a container's port.
pub(crate) const CONTAINER_PORT: &[&str] =
    &["containerPort", "hostIP", "hostPort", "name", "protocol"];

/// The fields of an object of one of Kubernetes' own kinds.
const OBJECT: &[&str] = &["apiVersion", "kind", "metadata", "spec", "status"];

/// The fields of a ConfigMap.
const CONFIG_MAP: &[&str] = &["apiVersion", "binaryData", "data", "immutable", "kind", "metadata"];

/// Returns the fields that an object of a kind may have at a path of keys; items of lists add no key.
/// Returns `None` where keys are free, or not known.
pub fn fields_of(kind: &str, path: &[&str]) -> Option<&'static [&'static str]> {
    let workloads = ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"];
    let is_workload = workloads.contains(&kind);
    let is_known = is_workload
        || ["Service", "Ingress", "NetworkPolicy", "Pod", "ConfigMap", "Node"].contains(&kind);
    match (kind, path) {
        ("ConfigMap", []) => Some(CONFIG_MAP),
        (_, []) if is_known => Some(OBJECT),
        (_, ["metadata"]) => Some(METADATA),
        ("Service", ["spec"]) => Some(SERVICE),
        ("Service", ["spec", "ports"]) => Some(SERVICE_PORT),
        ("Ingress", ["spec"]) => Some(INGRESS),
        ("Ingress", ["spec", "rules"]) => Some(INGRESS_RULE),
        ("Ingress", ["spec", "rules", "http"]) => Some(INGRESS_PATHS),
        ("Ingress", ["spec", "rules", "http", "paths"]) => Some(INGRESS_PATH),
        ("NetworkPolicy", ["spec"]) => Some(NETWORK_POLICY),
        ("Pod", ["spec", rest @ ..]) => of_pod(rest),
        (_, ["spec"]) if is_workload => Some(WORKLOAD),
        (_, ["spec", "template"]) if is_workload => Some(TEMPLATE),
        (_, ["spec", "template", "metadata"]) if is_workload => Some(METADATA),
        (_, ["spec", "template", "spec", rest @ ..]) if is_workload => of_pod(rest),
        _ => None,
    }
}

fn of_pod(path: &[&str]) -> Option<&'static [&'static str]> {
    match path {
        [] => Some(POD),
        ["containers" | "initContainers"] => Some(CONTAINER),
        ["containers" | "initContainers", "ports"] => Some(CONTAINER_PORT),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uturn_model::misspelt::is_misspelt;

    #[test]
    fn lists_are_in_order_and_without_doubles() {
        let objects = [METADATA, SERVICE, SERVICE_PORT, INGRESS, INGRESS_RULE, INGRESS_PATH];
        let others = [NETWORK_POLICY, WORKLOAD, POD, CONTAINER, CONTAINER_PORT];
        let all = objects.into_iter().chain(others);
        for list in all {
            assert!(list.windows(2).all(|pair| pair[0] < pair[1]), "{list:?}");
        }
    }

    #[test]
    fn slips() {
        for (word, known) in [
            ("sellector", "selector"),
            ("annotaions", "annotations"),
            ("lables", "labels"),
            ("targetport", "targetPort"),
            ("hostnetwork", "hostNetwork"),
            ("label", "labels"),
            ("hsot", "host"),
            ("pahts", "paths"),
        ] {
            assert!(is_misspelt(word, known), "{word}");
        }
        for (word, known) in [("kind", "name"), ("hostname", "hostNetwork"), ("tier", "type")] {
            assert!(!is_misspelt(word, known), "{word}");
        }
    }
}
