//! Reads the objects because of which the API server calls Services: configurations of admission
//! webhooks, APIServices, and CustomResourceDefinitions with a conversion webhook.
//!
//! The rest of these objects is never looked at, and a call that is not fully stated is left out:
//! templates fill in names later.

use uturn_document::Node;
use uturn_model::api_server::{ApiServerCall, ApiServerCalls, CallReason, FailurePolicy, UrlCall};
use uturn_model::{Destination, Name, NamespacedName, ObjectKind, Port, Text};

use super::lenient::{items, text};
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
    let mut all = Calls::default();
    for hook in items(doc.root, "webhooks") {
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
            continue;
        }
        let reason = CallReason::Admission { policy, resources };
        if let (Some(config), Some(name)) = (hook.get("clientConfig"), text(hook, "name")) {
            all.add(config, name, reason);
        }
    }
    add(doc, objects, kind, all);
}

/// Reads an APIService. One without a Service is served by the API server itself.
pub(crate) fn read_api_service(doc: &Doc<'_>, objects: &mut Objects) {
    let name = doc.root.get("metadata").and_then(|meta| text(meta, "name"));
    let mut all = Calls::default();
    if let (Some(spec), Some(name)) = (doc.root.get("spec"), name) {
        all.add(spec, name, CallReason::Api);
    }
    add(doc, objects, ObjectKind::ApiService, all);
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
    let config = || {
        let conversion = doc.root.get("spec")?.get("conversion")?;
        let config = match conversion.get("webhook") {
            Some(webhook) => webhook.get("clientConfig")?,
            None => conversion.get("webhookClientConfig")?,
        };
        Some((config, text(doc.root.get("metadata")?, "name")?))
    };
    let mut all = Calls::default();
    if let Some((config, name)) = config() {
        all.add(config, name, CallReason::Conversion);
    }
    add(doc, objects, ObjectKind::CustomResourceDefinition, all)
}

/// The calls that an object asks for.
#[derive(Default)]
struct Calls {
    of_services: Vec<ApiServerCall>,
    by_url: Vec<UrlCall>,
}

impl Calls {
    /// Adds the call that a client's configuration states.
    fn add(&mut self, config: &Node<'_>, called: &str, reason: CallReason) {
        let called = Text::from(called);
        if let Some((service, port)) = service(config) {
            self.of_services.push(ApiServerCall { called, reason, service, port });
            return;
        }
        let url = text(config, "url").and_then(|url| url.parse().ok());
        if let Some(Destination::Url { host, port, .. }) = url {
            self.by_url.push(UrlCall { called, reason, host, port });
        }
    }
}

/// Adds the calls of an object. Returns whether it has any.
fn add(doc: &Doc<'_>, objects: &mut Objects, kind: ObjectKind, all: Calls) -> bool {
    let Calls { of_services: calls, by_url } = all;
    // An API server has dozens of APIServices of its own.
    if calls.is_empty() && by_url.is_empty() {
        return false;
    }
    if let Some(meta) = meta::read(doc) {
        let (name, origin) = (meta.name.name, meta.origin);
        let key = (kind, name.clone());
        let calls = ApiServerCalls { kind, name, calls, by_url, origin };
        objects.api_server_calls.add(doc, key, calls);
    }
    true
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
