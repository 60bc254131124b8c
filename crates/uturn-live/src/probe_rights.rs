//! The rights that making calls in pods needs, beyond those of reading.

/// These rights as manifests: a ClusterRole, and its binding to the account of
/// [`rbac`](crate::rbac).
pub fn probe_rbac() -> &'static str {
    "---
# What uturn probe needs besides, in the namespaces of its clients. It runs commands in pods there:
# bind it with a RoleBinding in one namespace if that is enough.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: uturn-prober
rules:
- apiGroups: [\"\"]
  resources: [\"pods/exec\"]
  verbs: [\"get\", \"create\"]
# For --image alone: it adds a container to a pod.
- apiGroups: [\"\"]
  resources: [\"pods\"]
  verbs: [\"get\"]
- apiGroups: [\"\"]
  resources: [\"pods/ephemeralcontainers\"]
  verbs: [\"patch\"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: uturn-prober
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: uturn-prober
subjects:
- kind: ServiceAccount
  name: uturn-reader
  namespace: kube-system
"
}
