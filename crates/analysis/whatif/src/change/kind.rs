//! Kinds and names of objects, as they are typed: `svc/shop/front`, `node/n1`.

use uturn_model::{Name, NamespacedName, ObjectKind, ObjectRef, WorkloadKind, misspelt};

/// The kinds that are not clients or targets of calls, with kubectl's short forms.
const OTHERS: [(ObjectKind, &[&str]); 14] = [
    (ObjectKind::ConfigMap, &["cm"]),
    (ObjectKind::EndpointSlice, &[]),
    (ObjectKind::Endpoints, &["ep"]),
    (ObjectKind::IngressClass, &[]),
    (ObjectKind::Gateway, &["gtw"]),
    (ObjectKind::NetworkPolicy, &["netpol"]),
    (ObjectKind::ValidatingWebhookConfiguration, &[]),
    (ObjectKind::MutatingWebhookConfiguration, &[]),
    (ObjectKind::ApiService, &[]),
    (ObjectKind::CustomResourceDefinition, &["crd"]),
    (ObjectKind::PersistentVolume, &["pv"]),
    (ObjectKind::CloudObject("Namespace"), &["ns"]),
    (ObjectKind::CloudObject("GatewayClass"), &["gc"]),
    (ObjectKind::CloudObject("HorizontalPodAutoscaler"), &["hpa"]),
];

/// The kinds whose objects have no namespace.
const GLOBAL: [&str; 10] = [
    "Node",
    "IngressClass",
    "GatewayClass",
    "Namespace",
    "PersistentVolume",
    "APIService",
    "CustomResourceDefinition",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "FelixConfiguration",
];

/// Words of kinds that a misspelt one may mean.
const WORDS: [&str; 20] = [
    "svc",
    "service",
    "ingress",
    "ing",
    "pod",
    "node",
    "deploy",
    "deployment",
    "sts",
    "statefulset",
    "ds",
    "daemonset",
    "cm",
    "configmap",
    "netpol",
    "networkpolicy",
    "gateway",
    "httproute",
    "endpointslice",
    "endpoints",
];

/// Returns whether objects of a kind have no namespace.
pub fn is_global(kind: ObjectKind) -> bool {
    GLOBAL.contains(&kind.as_str())
}

/// Returns the kind of a manifest. Returns `None` if uturn does not read it.
pub fn of_manifest(kind: &str) -> Option<ObjectKind> {
    let known = uturn_snapshot::kinds().into_iter().find(|known| known.kind == kind);
    let named = |kind: &str| {
        let word = kind.to_ascii_lowercase();
        let other = || OTHERS.iter().find(|(own, _)| own.as_str() == kind).map(|(own, _)| *own);
        let workload = || WorkloadKind::ALL.into_iter().find(|own| own.as_str() == kind);
        ObjectKind::from_word(&word).or_else(|| workload().map(Into::into)).or_else(other)
    };
    named(kind).or_else(|| known.map(|known| ObjectKind::CloudObject(known.kind)))
}

/// Returns the kind that a word names, in any form that kubectl accepts.
///
/// # Errors
/// Returns an error if uturn reads no such kind.
pub fn of_word(word: &str) -> Result<ObjectKind, String> {
    let lower = word.to_ascii_lowercase();
    let is_named = |kind: &str| {
        let kind = kind.to_ascii_lowercase();
        let plural = match kind.strip_suffix('y') {
            Some(stem) => format!("{stem}ies"),
            None if kind.ends_with('s') => format!("{kind}es"),
            None => format!("{kind}s"),
        };
        lower == kind || lower == plural
    };
    let of_others = || {
        let is_it = |(kind, short): &&(ObjectKind, &[&str])| {
            short.contains(&&*lower) || is_named(kind.as_str())
        };
        OTHERS.iter().find(is_it).map(|(kind, _)| *kind)
    };
    let of_read = || {
        let known = uturn_snapshot::kinds().into_iter().find(|known| is_named(known.kind))?;
        of_manifest(known.kind)
    };
    ObjectKind::from_word(&lower)
        .or_else(|| WorkloadKind::from_word(&lower).map(Into::into))
        .or_else(of_others)
        .or_else(of_read)
        .ok_or_else(|| {
            let hint = misspelt::hint(&lower, WORDS);
            format!("{word:?} is no kind of object that uturn reads{hint}")
        })
}

/// Parses `KIND/NAMESPACE/NAME`, or `KIND/NAME` in the given namespace or of a kind without one.
///
/// # Errors
/// Returns an error if the text has another form, the kind is unknown, or a name is none.
pub fn object(text: &str, namespace: Option<&str>) -> Result<ObjectRef, String> {
    let parts: Vec<&str> = text.split('/').collect();
    let (word, rest) = parts.split_first().ok_or_else(|| form(text))?;
    if rest.is_empty() || word.is_empty() {
        return Err(form(text));
    }
    let kind = of_word(word)?;
    let bad = |part: &str| format!("{part:?} is not the name of a Kubernetes object");
    let (namespace, name) = match (rest, is_global(kind)) {
        ([name], true) => {
            Name::new(*name).map_err(|_| bad(name))?;
            return Ok(ObjectRef::global(kind, *name));
        }
        ([_, _], true) => return Err(format!("a {kind} has no namespace: write {word}/NAME")),
        ([name], false) => match namespace {
            Some(namespace) => (namespace, *name),
            None => {
                return Err(format!(
                    "write {word}/NAMESPACE/{name}, or give the namespace with -n"
                ));
            }
        },
        ([namespace, name], false) => (*namespace, *name),
        _ => return Err(form(text)),
    };
    Name::new(namespace).map_err(|_| bad(namespace))?;
    let name = NamespacedName::new(namespace, name).map_err(|_| bad(name))?;
    Ok(ObjectRef::namespaced(kind, &name))
}

fn form(text: &str) -> String {
    format!("{text:?} is not an object: expected KIND/NAMESPACE/NAME, such as svc/shop/front")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_named_as_kubectl_names_them() {
        let shown =
            |text: &str, namespace| object(text, namespace).map(|object| object.to_string());
        for word in ["svc", "service", "services", "Service"] {
            let text = format!("{word}/shop/front");
            assert_eq!(shown(&text, None).as_deref(), Ok("Service shop/front"));
        }
        assert_eq!(shown("deploy/shop/web", None).as_deref(), Ok("Deployment shop/web"));
        assert_eq!(shown("deploy/web", Some("shop")).as_deref(), Ok("Deployment shop/web"));
        assert_eq!(shown("no/n1", None).as_deref(), Ok("Node n1"));
        assert_eq!(shown("netpol/shop/only", None).as_deref(), Ok("NetworkPolicy shop/only"));
        assert_eq!(
            shown("networkpolicies/shop/only", None).as_deref(),
            Ok("NetworkPolicy shop/only")
        );
        assert_eq!(shown("ingressclasses/nginx", None).as_deref(), Ok("IngressClass nginx"));
        assert_eq!(shown("gatewayclass/eg", None).as_deref(), Ok("GatewayClass eg"));
        let wrong = |text: &str| object(text, None).unwrap_err();
        assert!(wrong("svc/front").contains("-n"));
        assert!(wrong("scv/shop/front").ends_with("did you mean svc?"));
        assert!(wrong("front").contains("KIND/NAMESPACE/NAME"));
        assert!(wrong("node/shop/n1").contains("no namespace"));
        assert!(wrong("svc/shop/Front").contains("\"Front\" is not the name"));
    }

    #[test]
    fn each_kind_that_is_read_can_be_named() {
        for read in uturn_snapshot::kinds() {
            let kind = of_word(read.kind).unwrap();
            assert_eq!(kind.as_str(), read.kind);
            assert_eq!(of_manifest(read.kind).map(ObjectKind::as_str), Some(read.kind));
        }
    }
}
