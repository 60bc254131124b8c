//! The fields that objects have in the Kubernetes API, those that uturn does not read too: what is
//! none of them and looks like one is misspelt.

/// `metadata` of any object.
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

/// `spec` of a Service.
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

/// A port of a Service.
pub(crate) const SERVICE_PORT: &[&str] =
    &["appProtocol", "name", "nodePort", "port", "protocol", "targetPort"];

/// `spec` of an Ingress, of any version.
pub(crate) const INGRESS: &[&str] =
    &["backend", "defaultBackend", "ingressClassName", "rules", "tls"];

/// A rule of an Ingress.
pub(crate) const INGRESS_RULE: &[&str] = &["host", "http"];

/// The paths of an Ingress's rule.
pub(crate) const INGRESS_PATHS: &[&str] = &["paths"];

/// A path of an Ingress.
pub(crate) const INGRESS_PATH: &[&str] = &["backend", "path", "pathType"];

/// `spec` of a workload of Kubernetes' own kinds.
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

/// The template of a workload's pods.
pub(crate) const TEMPLATE: &[&str] = &["metadata", "spec"];

/// `spec` of a pod.
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

/// A container of a pod.
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

/// A port of a container.
pub(crate) const CONTAINER_PORT: &[&str] =
    &["containerPort", "hostIP", "hostPort", "name", "protocol"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::is_misspelt;

    #[test]
    fn lists_are_in_order_and_without_doubles() {
        let objects = [METADATA, SERVICE, SERVICE_PORT, INGRESS, INGRESS_RULE, INGRESS_PATH];
        let all = objects.into_iter().chain([WORKLOAD, POD, CONTAINER, CONTAINER_PORT]);
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
