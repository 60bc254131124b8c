//! Reads the objects because of which the API server calls Services: configurations of admission
//! webhooks, APIServices, and CustomResourceDefinitions with a conversion webhook.
//!
//! The rest of these objects is never looked at, and a call that is not fully stated is left out:
//! templates fill in names later.

use uturn_document::{Node, Value};
use uturn_model::api_server::{ApiServerCall, ApiServerCalls, CallReason, FailurePolicy};
use uturn_model::{Name, NamespacedName, ObjectKind, Port, Text};

use super::objects::Objects;
use super::{Doc, FromNode, meta};

/// The port that is called if none is stated.
const HTTPS: Port = Port::new(443).expect("not zero");

/// Reads a ValidatingWebhookConfiguration or a MutatingWebhookConfiguration.
pub(crate) fn read_webhooks(doc: &Doc<'_>, objects: &mut Objects) {
    let kind = match text(doc.root, "kind") {
        Some("ValidatingWebhookConfiguration") => ObjectKind::ValidatingWebhookConfiguration,
        _ => ObjectKind::MutatingWebhookConfiguration,
    };
    // The first version took a webhook that does not answer for one that has no objection.
    let usual = match text(doc.root, "apiVersion") {
        Some("admissionregistration.k8s.io/v1beta1") => FailurePolicy::Ignore,
        _ => FailurePolicy::Fail,
    };
    let calls = items(doc.root, "webhooks").iter().filter_map(|hook| {
        let policy = match text(hook, "failurePolicy") {
            Some("Ignore") => FailurePolicy::Ignore,
            Some("Fail") => FailurePolicy::Fail,
            _ => usual,
        };
        let rules = items(hook, "rules");
        let resources = rules.iter().flat_map(|rule| items(rule, "resources"));
        let mut resources: Vec<Text> =
            resources.filter_map(|resource| Some(resource.as_str()?.into())).collect();
        resources.sort_unstable();
        resources.dedup();
        // A webhook whose rules match nothing is never called.
        if resources.is_empty() {
            return None;
        }
        let (service, port) = service(hook.get("clientConfig")?)?;
        let reason = CallReason::Admission { policy, resources };
        Some(ApiServerCall { called: text(hook, "name")?.into(), reason, service, port })
    });
    add(doc, objects, kind, calls.collect());
}

/// Reads an APIService. One without a Service is served by the API server itself.
pub(crate) fn read_api_service(doc: &Doc<'_>, objects: &mut Objects) {
    let call = || {
        let (service, port) = service(doc.root.get("spec")?)?;
        let called = text(doc.root.get("metadata")?, "name")?.into();
        Some(ApiServerCall { called, reason: CallReason::Api, service, port })
    };
    add(doc, objects, ObjectKind::ApiService, call().into_iter().collect());
}

/// Reads the conversion webhook of a CustomResourceDefinition. Returns whether it has one.
pub(crate) fn read_conversion(
    doc: &Doc<'_>,
    group: &str,
    kind: &str,
    objects: &mut Objects,
) -> bool {
    if group != "apiextensions.k8s.io" || kind != "CustomResourceDefinition" {
        return false;
    }
    let call = || {
        let conversion = doc.root.get("spec")?.get("conversion")?;
        let config = match conversion.get("webhook") {
            Some(webhook) => webhook.get("clientConfig")?,
            None => conversion.get("webhookClientConfig")?,
        };
        let (service, port) = service(config)?;
        let called = text(doc.root.get("metadata")?, "name")?.into();
        Some(ApiServerCall { called, reason: CallReason::Conversion, service, port })
    };
    let Some(call) = call() else { return false };
    add(doc, objects, ObjectKind::CustomResourceDefinition, vec![call]);
    true
}

fn add(doc: &Doc<'_>, objects: &mut Objects, kind: ObjectKind, calls: Vec<ApiServerCall>) {
    // An API server has dozens of APIServices of its own.
    if calls.is_empty() {
        return;
    }
    let Some(meta) = meta::read(doc) else { return };
    let (name, origin) = (meta.name.name, meta.origin);
    let key = (kind, name.clone());
    objects.api_server_calls.add(doc, key, ApiServerCalls { kind, name, calls, origin });
}

/// Returns the Service of a client's configuration, and the port. A configuration may have a URL
/// instead.
fn service(config: &Node<'_>) -> Option<(NamespacedName, Port)> {
    let service = config.get("service")?;
    let name = |key: &str| Name::new(text(service, key)?).ok();
    let port = match service.get("port") {
        Some(port) => u16::from_node(port).ok().and_then(Port::new)?,
        None => HTTPS,
    };
    Some((NamespacedName { namespace: name("namespace")?, name: name("name")? }, port))
}

fn text<'n>(node: &'n Node<'_>, key: &str) -> Option<&'n str> {
    node.get(key).and_then(Node::as_str)
}

fn items<'n, 'd>(node: &'n Node<'d>, key: &str) -> &'n [Node<'d>] {
    match node.get(key).map(|items| &items.value) {
        Some(Value::Seq(items)) => items,
        _ => &[],
    }
}
