//! The manifests that are applied to a cluster before the controllers run in it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use uturn_model::Name;

/// The definition of TkeServiceConfig, with a schema of this project's own.
pub const CONFIG_DEFINITION: &str = include_str!("../manifests/tkeserviceconfigs.yaml");

/// The account of the controllers and its rights.
pub const RIGHTS: &str = include_str!("../manifests/rights.yaml");

/// The rule in [`RIGHTS`] by which Secrets of all namespaces can be read.
const SECRETS: &str = "# Certificates' ids, of the Secrets that an object names for TLS. Without \
the verb list, Secrets
# cannot be looked through.
- apiGroups: [\"\"]
  resources: [secrets]
  verbs: [get]
";

/// Returns the account of the controllers and its rights, with Secrets only of these namespaces.
pub fn rights_with_secrets_of(namespaces: &BTreeSet<Name>) -> String {
    let mut text = RIGHTS.replacen(SECRETS, "", 1);
    for namespace in namespaces {
        let _ = write!(
            text,
            "---
# Certificates' ids, of the Secrets that an object of {namespace} names for TLS.
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: uturn-operator-secrets, namespace: {namespace}}}
rules:
- apiGroups: [\"\"]
  resources: [secrets]
  verbs: [get]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: uturn-operator-secrets, namespace: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: uturn-operator-secrets}}
subjects:
- {{kind: ServiceAccount, name: uturn-operator, namespace: kube-system}}
"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_read_where_a_role_says_so_and_nowhere_else() {
        let count = |text: &str, word: &str| text.matches(word).count();
        assert_eq!(count(RIGHTS, SECRETS), 1);
        let namespaces = ["prod", "shop"].map(|name| Name::new(name).unwrap());
        for number in 0..=2 {
            let some = namespaces[..number].iter().cloned().collect();
            let text = rights_with_secrets_of(&some);
            assert_eq!(count(&text, "resources: [secrets]"), number, "{text}");
            assert_eq!(count(&text, "kind: Role\n"), 1 + number);
            assert_eq!(count(&text, "kind: RoleBinding\n"), 1 + number);
            for name in &some {
                let place = format!("name: uturn-operator-secrets, namespace: {name}}}");
                assert_eq!(count(&text, &place), 2);
            }
        }
    }
}
