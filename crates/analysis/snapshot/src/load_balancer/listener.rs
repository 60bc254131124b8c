//! Reads listeners.

use std::net::SocketAddr;

use uturn_document::{Node, Value};
use uturn_lb::config::ListenerSettings;
use uturn_model::Port;
use uturn_model::lb::{Layer, Listener, ListenerProtocol};

use super::across::Across;
use super::balancer::Around;
use super::form::Form;
use super::probe::Probes;
use super::rule::{self, RuleNodes};
use super::{profile, settings};

/// The properties of a listener against which its rules are checked.
pub(super) struct OfListener<'t> {
    pub(super) around: &'t Around<'t>,
    pub(super) port: Option<Port>,
    pub(super) protocol: Option<ListenerProtocol>,
    pub(super) profile: &'t uturn_model::lb::Profile,
    pub(super) probes: &'t Probes,
}

impl OfListener<'_> {
    pub(super) fn is_layer_4(&self) -> bool {
        self.protocol.is_some_and(|protocol| protocol.layer() == Layer::L4)
    }

    /// Returns the address and port of the listener, if they are known.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.around.vip?, self.port?.number()))
    }
}

/// Reads a listener.
pub(super) fn read<'d>(
    form: &Form<'_, 'd>,
    node: &'d Node<'d>,
    around: &Around<'_>,
    across: &mut Across,
) -> Option<(Listener, ListenerSettings)> {
    let known = ["port", "protocol", "profile", "rules", "targets"];
    form.only(node, &[&known[..], &profile::FIELDS, &settings::FIELDS].concat());
    let port = form.need::<Port>(node, "port");
    let protocol = form.need::<ListenerProtocol>(node, "protocol");
    if let Some(((vip, port), protocol)) = around.vip.zip(port).zip(protocol) {
        let address = SocketAddr::new(vip, port.number());
        across.listener(form, node, address, protocol.transport());
    }
    let (profile, probes) = profile::read(form, node, protocol);
    if let Some(protocol) = protocol {
        refuse_what_others_have(form, node, protocol, profile.ends_connections);
    }
    let mut settings = settings::read(form, node, protocol);
    let of_listener = OfListener { around, port, protocol, profile: &profile, probes: &probes };
    let nodes = RuleNodes::of(form, node, &of_listener);
    let read = nodes.each(|node| {
        if nodes.is_listener() {
            Some(rule::only(form, node, &of_listener))
        } else {
            rule::read(form, node, &of_listener)
        }
    });
    let (rules, rule_settings): (Vec<_>, Vec<_>) = read.into_iter().flatten().unzip();
    if rules.len() == nodes.len() {
        rule::check_all(form, &nodes, &rules, &of_listener);
        settings::check_default_host(form, node, &settings, &rules);
    }
    settings.rules = rule_settings;
    let listener = Listener { port: port?, protocol: protocol?, profile, rules };
    Some((listener, settings))
}

/// Reports fields that only listeners of other protocols have.
fn refuse_what_others_have<'d>(
    form: &Form<'_, 'd>,
    node: &'d Node<'d>,
    protocol: ListenerProtocol,
    ends_connections: bool,
) {
    if protocol.layer() == Layer::L4 {
        let only = "only HTTP and HTTPS listeners have it";
        let fields = [
            "http2",
            "abortOnClose",
            "defaultHost",
            "forwardedFor",
            "keepalive",
            PATH_NORMALIZATION,
        ];
        form.not_here(node, &fields, only, protocol);
        in_map(form, node, "profile", &[PATH_NORMALIZATION], only, protocol);
        let limits =
            ["requestsPerSecond", "headerBytes", "headers", "bodyBytes", "bodyBytesPerSecond"];
        in_map(form, node, "limits", &limits, only, protocol);
        in_map(form, node, "timeouts", &["header", "read", "tunnel"], only, protocol);
    }
    if !protocol.ends_tls() {
        let only = "only TCP_SSL and HTTPS listeners end TLS";
        form.not_here(node, &["certificates", "clientCertificates"], only, protocol);
    }
    if protocol != ListenerProtocol::Tcp {
        let only =
            "only TCP listeners have it: UDP has no connections, others end them in any case";
        form.not_here(node, &[ENDS_CONNECTIONS], only, protocol);
        in_map(form, node, "profile", &[ENDS_CONNECTIONS], only, protocol);
    }
    let is_forwarded = match protocol {
        ListenerProtocol::Tcp => !ends_connections,
        ListenerProtocol::Udp => true,
        ListenerProtocol::TcpSsl | ListenerProtocol::Http | ListenerProtocol::Https => false,
    };
    if is_forwarded {
        let only = "only TCP_SSL, HTTP and HTTPS listeners, and TCP with endsConnections, connect to \
                    targets themselves";
        let keys = ["connectTimeout", "nextTarget", "passiveCheck"];
        form.not_here(node, &keys, only, protocol);
        in_map(form, node, "profile", &keys, only, protocol);
    }
    if protocol == ListenerProtocol::Udp {
        let only = "UDP has no connection that a PROXY header could begin";
        form.not_here(node, &["proxyFrom", "proxyTo"], only, protocol);
    }
}

const ENDS_CONNECTIONS: &str = "endsConnections";
const PATH_NORMALIZATION: &str = "pathNormalization";

fn in_map<'d>(
    form: &Form<'_, 'd>,
    node: &'d Node<'d>,
    map: &str,
    keys: &[&str],
    only: &str,
    protocol: ListenerProtocol,
) {
    if let Some(map) = node.get(map).filter(|map| matches!(map.value, Value::Map(_))) {
        form.not_here(map, keys, only, protocol);
    }
}
