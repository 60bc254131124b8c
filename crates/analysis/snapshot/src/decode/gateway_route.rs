//! Reads routes of the Gateway API.

use uturn_document::Node;
use uturn_model::ingress::PathKind;
use uturn_model::{Labels, Name, NamespacedName, ObjectKind, Origin, Port, Text};

use super::gateway::{GROUP, hostname};
use super::objects::Objects;
use super::value::one_of;
use super::{Doc, FromNode, meta};

/// An HTTPRoute, a GRPCRoute, a TCPRoute or a TLSRoute.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Route {
    pub(crate) kind: ObjectKind,
    pub(crate) name: NamespacedName,
    pub(crate) annotations: Labels,
    pub(crate) parents: Vec<Parent>,
    pub(crate) hostnames: Vec<Text>,
    pub(crate) rules: Vec<RouteRule>,
    pub(crate) statuses: Vec<ParentStatus>,
    /// `metadata.creationTimestamp`, in UTC.
    pub(crate) created: Option<Text>,
    pub(crate) origin: Origin,
}

/// The `parentRefs[]` of a route: the Gateways to which it attaches. References to other kinds are
/// left out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parent {
    pub(crate) gateway: NamespacedName,
    pub(crate) section: Option<Text>,
    pub(crate) port: Option<Port>,
}

/// The `status.parents[]` of a route: the conditions that its controller set.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ParentStatus {
    pub(crate) parent: Parent,
    pub(crate) accepted: Option<bool>,
    /// The reason why it was not accepted.
    pub(crate) refusal: Option<Text>,
    pub(crate) resolved: Option<bool>,
}

/// The `rules[]` of a route.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RouteRule {
    /// The conditions on requests. Without any, all requests match.
    pub(crate) matches: Vec<RouteMatch>,
    pub(crate) backends: Vec<RouteBackend>,
    pub(crate) redirect: Option<RouteRedirect>,
    /// The type of a filter that affects where a request goes and that is not supported.
    pub(crate) unread: Option<Text>,
}

/// The `matches[]` of a rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RouteMatch {
    pub(crate) path: Option<(Text, PathMatch)>,
    /// Whether the match requires headers, query parameters, or another method than GET.
    pub(crate) asks_more: bool,
}

/// The `path.type` of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathMatch {
    Is(PathKind),
    RegularExpression,
}

/// The `backendRefs[]` of a rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RouteBackend {
    /// The Service; `None` for a backend of another kind.
    pub(crate) service: Option<NamespacedName>,
    pub(crate) port: Option<Port>,
    pub(crate) weight: u32,
}

/// A filter that redirects. A part that is `None` stays as in the request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RouteRedirect {
    pub(crate) tls: Option<bool>,
    pub(crate) host: Option<Text>,
    pub(crate) port: Option<Port>,
    /// Whether the redirect changes the path.
    pub(crate) changes_path: bool,
    pub(crate) code: u16,
}

/// Reads an HTTPRoute.
pub(crate) fn read_http(doc: &Doc<'_>, objects: &mut Objects) {
    read_route(doc, objects, ObjectKind::HttpRoute);
}

/// Reads a GRPCRoute, whose methods are matched as paths.
pub(crate) fn read_grpc(doc: &Doc<'_>, objects: &mut Objects) {
    read_route(doc, objects, ObjectKind::GrpcRoute);
}

/// Reads a TCPRoute.
pub(crate) fn read_tcp(doc: &Doc<'_>, objects: &mut Objects) {
    read_route(doc, objects, ObjectKind::TcpRoute);
}

/// Reads a TLSRoute.
pub(crate) fn read_tls(doc: &Doc<'_>, objects: &mut Objects) {
    read_route(doc, objects, ObjectKind::TlsRoute);
}

fn read_route(doc: &Doc<'_>, objects: &mut Objects, kind: ObjectKind) {
    let meta = meta::read(doc);
    let Some(spec) = doc.need_map(doc.root, "spec") else { return };
    let own = meta.as_ref().map(|meta| meta.name.namespace.clone());
    let Some(own) = own else { return };
    let parents = doc.maps(spec, "parentRefs").filter_map(|item| parent(doc, item, &own));
    let parents = parents.collect();
    let statuses = match doc.map(doc.root, "status") {
        Some(status) => {
            doc.maps(status, "parents").filter_map(|item| parent_status(doc, item, &own)).collect()
        }
        None => Vec::new(),
    };
    let mut rules: Vec<RouteRule> =
        doc.maps(spec, "rules").map(|item| rule(doc, item, kind, &own)).collect();
    if rules.is_empty() && kind == ObjectKind::HttpRoute {
        // The API's default is one rule for all requests.
        rules.push(RouteRule::default());
    }
    let hostnames = doc.list::<Text>(spec, "hostnames");
    let Some(meta) = meta else { return };
    let route = Route {
        kind,
        name: meta.name,
        annotations: meta.annotations,
        parents,
        hostnames,
        rules,
        statuses,
        created: created(doc),
        origin: meta.origin,
    };
    objects.routes.add(doc, (kind, route.name.clone()), route);
}

/// Returns an object's creation time as the API server writes it: to the second, in UTC.
fn created(doc: &Doc<'_>) -> Option<Text> {
    let written = doc.root.get("metadata")?.get("creationTimestamp")?.as_str()?;
    let is_usual = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        10 => byte == b'T',
        13 | 16 => byte == b':',
        19 => byte == b'Z',
        _ => byte.is_ascii_digit(),
    };
    let is_read = written.len() == 20 && written.bytes().enumerate().all(is_usual);
    is_read.then(|| written.into())
}

/// Reads a reference to a Gateway. Returns `None` for a reference to another kind.
fn parent<'d>(doc: &Doc<'d>, node: &'d Node<'d>, own: &Name) -> Option<Parent> {
    let is = |key, usual: &str| {
        let text = doc.read::<Text>(node, key);
        text.is_none_or(|text| *text == *usual)
    };
    if !is("kind", "Gateway") || !is("group", GROUP) {
        return None;
    }
    let namespace = doc.read::<Name>(node, "namespace").unwrap_or_else(|| own.clone());
    Some(Parent {
        gateway: NamespacedName { namespace, name: doc.need(node, "name")? },
        section: hostname(doc, node, "sectionName"),
        port: doc.read(node, "port"),
    })
}

fn parent_status<'d>(doc: &Doc<'d>, node: &'d Node<'d>, own: &Name) -> Option<ParentStatus> {
    let reference = doc.need_map(node, "parentRef")?;
    Some(ParentStatus {
        parent: parent(doc, reference, own)?,
        accepted: condition(doc, node, "Accepted"),
        refusal: refusal(doc, node),
        resolved: condition(doc, node, "ResolvedRefs"),
    })
}

/// Returns the value of a condition, if it is known.
fn condition<'d>(doc: &Doc<'d>, node: &'d Node<'d>, wanted: &str) -> Option<bool> {
    match found(doc, node, wanted)?.get("status").and_then(Node::as_str) {
        Some("True") => Some(true),
        Some("False") => Some(false),
        _ => None,
    }
}

/// Returns the reason why something with conditions was not accepted.
pub(super) fn refusal<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Option<Text> {
    if condition(doc, node, "Accepted") != Some(false) {
        return None;
    }
    let reason = found(doc, node, "Accepted")?.get("reason").and_then(Node::as_str);
    Some(reason.unwrap_or("its status gives no reason").into())
}

fn found<'d>(doc: &Doc<'d>, node: &'d Node<'d>, wanted: &str) -> Option<&'d Node<'d>> {
    let is_it = |item: &&Node<'_>| item.get("type").and_then(Node::as_str) == Some(wanted);
    doc.maps(node, "conditions").find(is_it)
}

fn rule<'d>(doc: &Doc<'d>, node: &'d Node<'d>, kind: ObjectKind, own: &Name) -> RouteRule {
    let matches = doc.maps(node, "matches").filter_map(|item| match kind {
        ObjectKind::GrpcRoute => Some(grpc_match(doc, item)),
        _ => route_match(doc, item),
    });
    let matches = matches.collect();
    let backends = doc.maps(node, "backendRefs").filter_map(|item| backend(doc, item, own));
    let mut rule = RouteRule { matches, backends: backends.collect(), ..RouteRule::default() };
    for filter in doc.maps(node, "filters") {
        let Some(kind) = doc.need::<Text>(filter, "type") else { continue };
        match &*kind {
            "RequestRedirect" => rule.redirect = redirect(doc, filter),
            // These filters change a request but not its destination.
            "RequestHeaderModifier" | "ResponseHeaderModifier" | "RequestMirror" | "CORS" => {}
            // The rewritten host or path only applies to the request to the backend.
            "URLRewrite" => {}
            _ => rule.unread = Some(kind),
        }
    }
    rule
}

fn route_match<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Option<RouteMatch> {
    let path = match doc.map(node, "path") {
        None => None,
        Some(path) => {
            let kind = doc.read::<PathMatch>(path, "type");
            let kind = kind.unwrap_or(PathMatch::Is(PathKind::Prefix));
            let value = match path.get("value") {
                Some(value) => doc.value::<Text>(value)?,
                None => "/".into(),
            };
            Some((value, kind))
        }
    };
    let method = doc.read::<Text>(node, "method");
    let asks_more = !doc.items(node, "headers").is_empty()
        || !doc.items(node, "queryParams").is_empty()
        || method.is_some_and(|method| *method != *"GET");
    Some(RouteMatch { path, asks_more })
}

/// Reads a match of a method: a call of the method is a request for the path `/SERVICE/METHOD`.
fn grpc_match<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> RouteMatch {
    let method = doc.map(node, "method").map(|method| {
        let kind = doc.read::<MethodMatch>(method, "type").unwrap_or(MethodMatch::Exact);
        let part = |key| doc.read::<Text>(method, key);
        (kind, part("service"), part("method"))
    });
    let path = match method {
        None | Some((_, None, None)) => None,
        Some((MethodMatch::Exact, Some(service), Some(method))) => {
            Some((format!("/{service}/{method}").into(), PathMatch::Is(PathKind::Exact)))
        }
        Some((MethodMatch::Exact, Some(service), None)) => {
            Some((format!("/{service}").into(), PathMatch::Is(PathKind::Prefix)))
        }
        Some((kind, service, method)) => {
            let any: Text = "[^/]+".into();
            let literal = |text: Text| match kind {
                MethodMatch::Exact => text.replace('.', "\\.").into(),
                MethodMatch::RegularExpression => text,
            };
            let [service, method] = [service, method].map(|part| part.map_or(any.clone(), literal));
            Some((format!("/{service}/{method}").into(), PathMatch::RegularExpression))
        }
    };
    RouteMatch { path, asks_more: !doc.items(node, "headers").is_empty() }
}

fn backend<'d>(doc: &Doc<'d>, node: &'d Node<'d>, own: &Name) -> Option<RouteBackend> {
    // Backends of other kinds may have names such as `*`.
    let name = doc.need::<Text>(node, "name");
    let kind = doc.read::<Text>(node, "kind");
    let group = doc.read::<Text>(node, "group");
    let is_service =
        kind.is_none_or(|kind| *kind == *"Service") && group.is_none_or(|group| group.is_empty());
    let namespace = doc.read::<Name>(node, "namespace").unwrap_or_else(|| own.clone());
    let port =
        if is_service { doc.need::<Port>(node, "port") } else { doc.read::<Port>(node, "port") };
    let service = Name::new(name?).ok().map(|name| NamespacedName { namespace, name });
    Some(RouteBackend {
        service: service.filter(|_| is_service),
        port,
        weight: doc.read(node, "weight").unwrap_or(1),
    })
}

fn redirect<'d>(doc: &Doc<'d>, filter: &'d Node<'d>) -> Option<RouteRedirect> {
    let node = doc.need_map(filter, "requestRedirect")?;
    let scheme = doc.read::<Text>(node, "scheme");
    Some(RouteRedirect {
        tls: scheme.map(|scheme| scheme.eq_ignore_ascii_case("https")),
        host: hostname(doc, node, "hostname"),
        port: doc.read(node, "port"),
        changes_path: doc.map(node, "path").is_some(),
        code: doc.read(node, "statusCode").unwrap_or(302),
    })
}

/// The `method.type` of a GRPCRoute's match.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MethodMatch {
    Exact,
    RegularExpression,
}

impl FromNode for MethodMatch {
    const EXPECTED: &'static str = "Exact or RegularExpression";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        one_of(node, &[("Exact", Self::Exact), ("RegularExpression", Self::RegularExpression)])
    }
}

impl FromNode for PathMatch {
    const EXPECTED: &'static str = "Exact, PathPrefix or RegularExpression";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        let words = [
            ("Exact", Self::Is(PathKind::Exact)),
            ("PathPrefix", Self::Is(PathKind::Prefix)),
            ("RegularExpression", Self::RegularExpression),
        ];
        one_of(node, &words)
    }
}
