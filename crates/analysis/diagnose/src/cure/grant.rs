//! A cure of routes that lead to a Service of another namespace without being allowed to: a
//! ReferenceGrant.

use uturn_clouds::ingress_controller::BackendRef;
use uturn_document::edit::Tree;
use uturn_model::{Mechanism, Name, ObjectKind, ObjectRef};

use super::{Case, Proposal, controller};

/// The API group of routes and grants.
const GROUP: &str = "gateway.networking.k8s.io";

/// Proposes that routes of this kind and namespace may lead to the Service.
pub(super) fn propose(case: &Case<'_>) -> Option<Proposal> {
    if !case.has(Mechanism::NoEndpoint) {
        return None;
    }
    let (route, service) = controller::with_rule(case, |_, rule| {
        rule.backends.iter().find_map(|backend| match &backend.to {
            BackendRef::NotGranted(service) => Some((rule.owner.clone(), service.clone())),
            _ => None,
        })
    })?;
    let from = route.namespace.as_ref().filter(|_| route.kind.is_route())?;
    let name = Name::new(format!("{}-from-{from}", service.name)).ok()?;
    let kind = route.kind.as_str();
    let object = ObjectRef {
        kind: ObjectKind::CloudObject("ReferenceGrant"),
        namespace: Some(service.namespace.clone()),
        name: name.as_str().into(),
    };
    let title = format!("{object}: {kind}s of namespace {from} may lead to svc/{service}");
    let of = Tree::map([
        ("group", Tree::text(GROUP)),
        ("kind", Tree::text(kind)),
        ("namespace", Tree::text(from.as_str())),
    ]);
    let to = Tree::map([
        ("group", Tree::text("")),
        ("kind", Tree::text("Service")),
        ("name", Tree::text(service.name.as_str())),
    ]);
    let spec = Tree::map([("from", Tree::List(vec![of])), ("to", Tree::List(vec![to]))]);
    let metadata = Tree::map([
        ("name", Tree::text(name.as_str())),
        ("namespace", Tree::text(service.namespace.as_str())),
    ]);
    let tree = Tree::map([
        ("apiVersion", Tree::text(format!("{GROUP}/v1beta1"))),
        ("kind", Tree::text("ReferenceGrant")),
        ("metadata", metadata),
        ("spec", spec),
    ]);
    let mut made = Proposal::new("reference-grant", 10, title).costs(format!(
        "every {kind} of namespace {from} may lead there: who may write one publishes the Service"
    ));
    made.objects = vec![("referencegrant.yaml".to_owned(), object, tree)];
    Some(made)
}
