//! Reads the probes of health checks: for a listener, and for rules that have a probe of their own.

use uturn_document::{Node, Value};
use uturn_lb::config::{HttpMethod, Probe};
use uturn_model::Text;
use uturn_model::lb::ListenerProtocol;

use crate::decode::FromNode;

use super::form::{Form, set};
use super::values::{Bytes, CodeClass, check_path, has_controls};

/// The probe of a listener's health checks, for rules that state none.
pub(super) struct Probes {
    is_udp: Option<bool>,
    usual: Option<Probe>,
    /// Whether the listener has no health checks.
    pub(super) is_off: bool,
}

impl Probes {
    pub(super) fn of(protocol: Option<ListenerProtocol>) -> Self {
        let is_udp = protocol.map(|protocol| protocol == ListenerProtocol::Udp);
        Self { is_udp, usual: None, is_off: false }
    }

    /// Reads the `probe` of a listener's health check.
    pub(super) fn read<'d>(&mut self, form: &Form<'_, 'd>, node: &'d Node<'d>) {
        let stated = self.stated(form, node);
        set(&mut self.usual, stated);
    }

    /// Returns the probe of rules that state none.
    pub(super) fn usual(&self) -> Option<Probe> {
        self.usual.clone()
    }

    /// Reads the probe of a rule. Without one, the rule has the probe of its listener.
    pub(super) fn of_rule<'d>(&self, form: &Form<'_, 'd>, rule: &'d Node<'d>) -> Option<Probe> {
        let stated = self.stated(form, rule);
        if let (Some(node), true) = (rule.get("probe"), self.is_off) {
            form.wrong(node, "the listener has no health checks: its healthCheck is none");
        }
        stated.unwrap_or_else(|| self.usual())
    }

    /// Reads a stated probe. The inner `None` means the probe that is usual for the transport.
    #[expect(clippy::option_option, reason = "stated or not, and the usual one or not")]
    fn stated<'d>(&self, form: &Form<'_, 'd>, parent: &'d Node<'d>) -> Option<Option<Probe>> {
        const EXPECTED: &str = "tcp, udp, {http: …} or {exchange: …}";
        let node = parent.get("probe")?;
        let is_udp = self.is_udp;
        if let Some(word) = node.as_str() {
            match (word, is_udp) {
                ("tcp", Some(true)) => form.wrong(
                    node,
                    "the targets of a UDP listener take no connections: expected udp or {exchange: …}",
                ),
                ("udp", Some(false)) => form.wrong(
                    node,
                    "the targets of this listener speak TCP: expected tcp, {http: …} or {exchange: …}",
                ),
                ("tcp" | "udp", _) => {}
                _ => form.fault(node, format!("expected {EXPECTED}, found {}", node.describe())),
            }
            return Some(None);
        }
        if !matches!(node.value, Value::Map(_)) {
            form.fault(node, format!("expected {EXPECTED}, found {}", node.describe()));
            return None;
        }
        form.only(node, &["http", "exchange"]);
        match (form.map(node, "http"), form.map(node, "exchange")) {
            (Some(_), Some(exchange)) => {
                form.fault(exchange, "a probe is http or an exchange, not both");
                None
            }
            (Some(http), None) => {
                if is_udp == Some(true) {
                    form.wrong(http, "the targets of a UDP listener speak no HTTP");
                }
                read_http(form, http).map(Some)
            }
            (None, Some(exchange)) => Some(Some(read_exchange(form, exchange, is_udp))),
            (None, None) => {
                if node.get("http").is_none() && node.get("exchange").is_none() {
                    form.fault(node, format!("expected {EXPECTED}, found neither"));
                }
                None
            }
        }
    }
}

fn read_http<'d>(form: &Form<'_, 'd>, node: &'d Node<'d>) -> Option<Probe> {
    form.only(node, &["method", "path", "host", "codes"]);
    let method = form.read(node, "method").unwrap_or_default();
    let path = form.read::<Text>(node, "path");
    if let Some((path, node)) = path.as_ref().zip(node.get("path"))
        && !has_controls(form, node, path)
    {
        check_path(form, node, path, true);
    }
    let host = form.read::<Text>(node, "host");
    if let Some((host, node)) = host.as_ref().zip(node.get("host"))
        && !has_controls(form, node, host)
        && (host.is_empty() || host.bytes().any(|byte| byte <= b' ' || byte == 0x7f))
    {
        form.wrong(node, format!("expected a host, found {}", node.describe()));
    }
    let mut classes: Vec<u8> = form.list::<CodeClass>(node, "codes").iter().map(|c| c.0).collect();
    if classes.is_empty() {
        if let Some(Node { value: Value::Seq(codes), .. }) = node.get("codes")
            && let ([], Some(node)) = (&codes[..], node.get("codes"))
        {
            form.wrong(node, "expected at least one class of status codes, such as 2");
        }
        classes = vec![2, 3];
    }
    let path = path.unwrap_or_else(|| "/".into());
    Some(Probe::Http { method, path, host, classes })
}

fn read_exchange<'d>(form: &Form<'_, 'd>, node: &'d Node<'d>, is_udp: Option<bool>) -> Probe {
    form.only(node, &["send", "expect"]);
    let bytes = |key| form.read::<Bytes>(node, key).map(|bytes| bytes.0).unwrap_or_default();
    let (send, expect) = (bytes("send"), bytes("expect"));
    if is_udp == Some(true) && expect.is_empty() {
        form.lacks(node, "expect", "the answer of a target, since UDP has no connections");
    } else if send.is_empty() && expect.is_empty() {
        form.wrong(node, "nothing is sent and nothing expected: expected tcp, or an exchange");
    }
    Probe::Exchange { send, expect }
}

impl FromNode for HttpMethod {
    const EXPECTED: &'static str = "HEAD or GET";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        match node.as_str() {
            Some("HEAD") => Ok(Self::Head),
            Some("GET") => Ok(Self::Get),
            _ => Err(String::new()),
        }
    }
}
