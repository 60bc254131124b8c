//! Reads the settings of a listener that do not affect its decisions.

use std::time::Duration;

use uturn_document::Node;
use uturn_lb::client_address::canonical_range;
use uturn_lb::config::{
    CertificateFiles, ClientCertificates, ForwardedFor, Keepalive, Limits, ListenerSettings,
    ProxyVersion, Timeouts,
};
use uturn_model::Text;
use uturn_model::lb::{ListenerProtocol, Rule};

use crate::decode::FromNode;
use crate::decode::value::one_of;

use super::form::{Form, set};
use super::values::Size;

/// The fields of a listener that this module reads.
pub(super) const FIELDS: [&str; 11] = [
    "certificates",
    "clientCertificates",
    "proxyFrom",
    "proxyTo",
    "limits",
    "timeouts",
    "keepalive",
    "http2",
    "abortOnClose",
    "defaultHost",
    "forwardedFor",
];

const SHORTEST: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

/// Reads the settings of a listener, without those of its rules.
pub(super) fn read<'d>(
    form: &Form<'_, 'd>,
    node: &'d Node<'d>,
    protocol: Option<ListenerProtocol>,
) -> ListenerSettings {
    let mut settings = protocol.map(ListenerSettings::of).unwrap_or_default();
    settings.certificates =
        form.maps(node, "certificates").filter_map(|item| certificate(form, item)).collect();
    let clients = form.map(node, "clientCertificates");
    settings.client_certificates = clients.and_then(|map| client_certificates(form, map));
    settings.proxy_from = form.list(node, "proxyFrom").into_iter().map(canonical_range).collect();
    settings.proxy_to = form.read(node, "proxyTo");
    if let Some(map) = form.map(node, "limits") {
        limits(form, map, &mut settings.limits);
    }
    if let Some(map) = form.map(node, "timeouts") {
        timeouts(form, map, &mut settings.timeouts);
    }
    if let Some(map) = form.map(node, "keepalive") {
        keepalive(form, map, &mut settings.keepalive);
    }
    set(&mut settings.http2, form.read(node, "http2"));
    set(&mut settings.abort_on_close, form.read(node, "abortOnClose"));
    settings.default_host = form.read(node, "defaultHost");
    set(&mut settings.forwarded_for, form.read(node, "forwardedFor"));
    settings
}

fn certificate<'d>(form: &Form<'_, 'd>, node: &'d Node<'d>) -> Option<CertificateFiles> {
    form.only(node, &["certificate", "key"]);
    let path = |key| {
        form.need::<Text>(node, key)?;
        form.path(node, key)
    };
    let (certificate, key) = (path("certificate"), path("key"));
    Some(CertificateFiles { certificate: certificate?, key: key? })
}

fn client_certificates<'d>(form: &Form<'_, 'd>, node: &'d Node<'d>) -> Option<ClientCertificates> {
    form.only(node, &["authorities", "optional"]);
    form.need::<Text>(node, "authorities")?;
    let authorities = form.path(node, "authorities")?;
    Some(ClientCertificates {
        authorities,
        optional: form.read(node, "optional").unwrap_or_default(),
    })
}

fn limits<'d>(form: &Form<'_, 'd>, node: &'d Node<'d>, limits: &mut Limits) {
    form.only(
        node,
        &[
            "connections",
            "connectionsPerClient",
            "connectionsPerSecond",
            "requestsPerSecond",
            "headerBytes",
            "headers",
            "bodyBytes",
            "bodyBytesPerSecond",
        ],
    );
    let count = "a number from 1 to 10000000";
    let most = 10_000_000;
    limits.connections = form.within(node, "connections", 1..=most, count);
    limits.connections_per_client = form.within(node, "connectionsPerClient", 1..=most, count);
    let most = 10_000_000;
    limits.connections_per_second = form.within(node, "connectionsPerSecond", 1..=most, count);
    limits.requests_per_second = form.within(node, "requestsPerSecond", 1..=most, count);
    let bytes = Size(256)..=Size(1 << 20);
    if let Some(Size(bytes)) =
        form.within(node, "headerBytes", bytes, "a size from 256 to 1Mi bytes")
    {
        limits.header_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    }
    form.set_within(&mut limits.headers, node, "headers", 1..=1000, "a number from 1 to 1000");
    limits.body_bytes = form.read::<Size>(node, "bodyBytes").map(|size| size.0);
    let expected = "a number from 0 to 1073741824";
    let rate = &mut limits.body_bytes_per_second;
    form.set_within(rate, node, "bodyBytesPerSecond", 0..=1 << 30, expected);
}

fn timeouts<'d>(form: &Form<'_, 'd>, node: &'d Node<'d>, timeouts: &mut Timeouts) {
    form.only(node, &["header", "read", "idle", "tunnel"]);
    let expected = "a time from 1ms to 1h";
    form.set_within(&mut timeouts.header, node, "header", SHORTEST..=HOUR, expected);
    let expected = "a time from 1ms to 24h";
    form.set_within(&mut timeouts.read, node, "read", SHORTEST..=24 * HOUR, expected);
    form.set_within(&mut timeouts.idle, node, "idle", SHORTEST..=24 * HOUR, expected);
    form.set_within(&mut timeouts.tunnel, node, "tunnel", SHORTEST..=24 * HOUR, expected);
}

fn keepalive<'d>(form: &Form<'_, 'd>, node: &'d Node<'d>, keepalive: &mut Keepalive) {
    form.only(node, &["connections", "idle"]);
    let expected = "a number of connections from 0 to 10000";
    form.set_within(&mut keepalive.connections, node, "connections", 0..=10_000, expected);
    let expected = "a time from 1ms to 1h";
    form.set_within(&mut keepalive.idle, node, "idle", SHORTEST..=HOUR, expected);
}

/// Reports a default host that has no rules.
pub(super) fn check_default_host<'d>(
    form: &Form<'_, 'd>,
    node: &'d Node<'d>,
    settings: &ListenerSettings,
    rules: &[Rule],
) {
    let Some((wanted, node)) = settings.default_host.as_deref().zip(node.get("defaultHost")) else {
        return;
    };
    let hosts: Vec<&str> = rules.iter().filter_map(|rule| rule.host.as_deref()).collect();
    if !hosts.iter().any(|host| host.eq_ignore_ascii_case(wanted)) {
        let expected = match &hosts[..] {
            [] => "no rule has a host".to_owned(),
            hosts => format!("expected the host of a rule: {}", hosts.join(", ")),
        };
        form.wrong(node, format!("no rule is for {wanted}; {expected}"));
    }
}

impl FromNode for ProxyVersion {
    const EXPECTED: &'static str = "v1 or v2";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        one_of(node, &[("v1", Self::V1), ("v2", Self::V2)])
    }
}

impl FromNode for ForwardedFor {
    const EXPECTED: &'static str = "append or replace";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        one_of(node, &[("append", Self::Append), ("replace", Self::Replace)])
    }
}
