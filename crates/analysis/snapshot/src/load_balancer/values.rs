//! Parses single values of the data plane's documents.

use std::path::{Path, PathBuf};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use uturn_clouds::cloud;
use uturn_document::{Node, Value, integer};
use uturn_lb::pattern::{Pattern, is_pattern};
use uturn_model::lb::{ProbeRanges, ProbeSource, Source};
use uturn_model::{ObjectKind, WorkloadKind};

use crate::decode::FromNode;
use crate::decode::value::parsed;

use super::form::Form;

impl FromNode for Source {
    const EXPECTED: &'static str = "kept, or a range such as 100.127.0.0/16";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        match node.as_str() {
            Some("kept") => Ok(Self::Kept),
            // The range is not truncated to its network, so that it reads back as written.
            Some(text) => text.parse::<IpNet>().map(Self::Replaced).map_err(|_| String::new()),
            None => Err(String::new()),
        }
    }
}

/// Reads the source of probes: a word, a range, or a range for each family.
pub(super) fn probe_source<'d>(form: &Form<'_, 'd>, node: &'d Node<'d>) -> Option<ProbeSource> {
    if matches!(node.value, Value::Map(_)) {
        form.only(node, &["v4", "v6"]);
        let (v4, v6) = (form.need(node, "v4"), form.need(node, "v6"));
        return Some(ProbeSource::Reserved(ProbeRanges { v4: v4?, v6: v6? }));
    }
    form.value::<ProbeFrom>(node).map(|from| from.0)
}

struct ProbeFrom(ProbeSource);

impl FromNode for ProbeFrom {
    const EXPECTED: &'static str = "vip, reserved, or a range such as 100.64.0.0/10";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        let usual = cloud::USUAL_PROBE_RANGES;
        let text = node.as_str().ok_or_else(String::new)?;
        let ranges = match (text, text.parse()) {
            ("vip", _) => return Ok(Self(ProbeSource::Vip)),
            ("reserved", _) => usual,
            (_, Ok(IpNet::V4(v4))) => ProbeRanges { v4, ..usual },
            (_, Ok(IpNet::V6(v6))) => ProbeRanges { v6, ..usual },
            (_, Err(_)) => return Err(String::new()),
        };
        Ok(Self(ProbeSource::Reserved(ranges)))
    }
}

parsed!(
    Ipv4Net: false "a range such as 100.64.0.0/10",
    Ipv6Net: false "a range such as fd00:64::/64"
);

/// A number of bytes: `65536`, or `64Ki`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(super) struct Size(pub(super) u64);

impl FromNode for Size {
    const EXPECTED: &'static str = "a size such as 65536 or 64Ki";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        let bytes = match &node.value {
            Value::Number(text) => integer(text).and_then(|number| u64::try_from(number).ok()),
            Value::String(text) => {
                let units = [("Ki", 10), ("Mi", 20), ("Gi", 30)];
                units.into_iter().find_map(|(unit, shift)| {
                    let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
                    number.checked_mul(1 << shift)
                })
            }
            _ => None,
        };
        bytes.map(Self).ok_or_else(String::new)
    }
}

/// A class of status codes: `2` or `2xx`.
pub(super) struct CodeClass(pub(super) u8);

impl FromNode for CodeClass {
    const EXPECTED: &'static str = "a class of status codes from 1 to 5";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        let class = match &node.value {
            Value::Number(text) => integer(text).and_then(|number| u8::try_from(number).ok()),
            Value::String(text) => text.strip_suffix("xx").and_then(|class| class.parse().ok()),
            _ => None,
        };
        class.filter(|class| (1..=5).contains(class)).map(Self).ok_or_else(String::new)
    }
}

/// Bytes: a text, or `{hex: 00ff}`.
pub(super) struct Bytes(pub(super) Vec<u8>);

impl FromNode for Bytes {
    const EXPECTED: &'static str = "a text, or {hex: …} with an even number of digits";
    const IS_TEXT: bool = true;

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        match &node.value {
            Value::String(text) => Ok(Self(text.as_bytes().to_vec())),
            Value::Map(entries) if entries.len() == 1 => {
                let digits = match node.get("hex").map(|node| &node.value) {
                    Some(Value::String(digits) | Value::Number(digits)) => digits,
                    _ => return Err(String::new()),
                };
                from_hex(digits).map(Self).ok_or_else(String::new)
            }
            _ => Err(String::new()),
        }
    }
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
    let pairs = digits.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    });
    pairs.collect()
}

/// Returns a path on this machine. A relative path starts at the folder of the file that names it.
pub(super) fn beside(file: &str, path: &Path) -> PathBuf {
    match Path::new(file).parent() {
        Some(folder) => folder.join(path),
        None => path.to_owned(),
    }
}

/// Reports control characters, and returns whether there are any: a line break would end more than
/// the line. They are refused in derived documents too.
pub(super) fn has_controls(form: &Form<'_, '_>, node: &Node<'_>, text: &str) -> bool {
    let has_controls = text.chars().any(char::is_control);
    if has_controls {
        let found = node.describe();
        form.fault(node, format!("expected no control characters, found {found}"));
    }
    has_controls
}

/// Reports a path that no request can have. `has_query` states whether the path may have a query.
pub(super) fn check_path(form: &Form<'_, '_>, node: &Node<'_>, path: &str, has_query: bool) {
    let found = node.describe();
    if !path.starts_with('/') {
        form.wrong(node, format!("expected a path that begins with /, found {found}"));
    } else if path.bytes().any(|byte| byte <= b' ' || byte >= 0x7f) {
        form.wrong(node, format!("expected a path with other characters as %XX, found {found}"));
    } else if path.contains('#') || (path.contains('?') && !has_query) {
        form.wrong(node, format!("expected a path alone, without ? and #, found {found}"));
    }
}

/// Reports a text that is not the name of a machine.
pub(super) fn check_name(form: &Form<'_, '_>, node: &Node<'_>, name: &str) {
    if !is_name(name) {
        let found = node.describe();
        form.fault(node, format!("expected a name such as lb-1.example.com, found {found}"));
    }
}

fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// Reports a host that no client can ask for.
pub(super) fn check_host(form: &Form<'_, '_>, node: &Node<'_>, host: &str) {
    if is_pattern(host) {
        if let Err(why) = Pattern::host(host) {
            form.wrong(node, why.to_string());
        }
        return;
    }
    let is_name = host.len() <= 253 && is_name(host.strip_prefix("*.").unwrap_or(host));
    let bracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_ipv6 = bracketed.is_some_and(|ip| ip.parse::<std::net::Ipv6Addr>().is_ok());
    if !is_name && !is_ipv6 {
        let found = node.describe();
        let expected = "a host such as shop.example.com or *.example.com, without a port";
        form.wrong(node, format!("expected {expected}, found {found}"));
    }
}

impl FromNode for ObjectKind {
    const EXPECTED: &'static str = "the kind of an object";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        let kinds = [
            Self::Node,
            Self::Pod,
            Self::Service,
            Self::EndpointSlice,
            Self::Endpoints,
            Self::Ingress,
            Self::IngressClass,
            Self::ConfigMap,
            Self::NetworkPolicy,
            Self::Facts,
            Self::LoadBalancer,
            Self::SecurityGroup,
        ];
        let workloads = [
            WorkloadKind::Deployment,
            WorkloadKind::StatefulSet,
            WorkloadKind::DaemonSet,
            WorkloadKind::ReplicaSet,
            WorkloadKind::Job,
            WorkloadKind::CronJob,
        ];
        let of_clouds = cloud::ALL.into_iter().filter_map(|entry| entry.overrides.as_ref());
        let of_clouds = of_clouds.map(|object| Self::CloudObject(object.kind));
        let text = node.as_str().ok_or_else(String::new)?;
        kinds
            .into_iter()
            .chain(workloads.map(Self::Workload))
            .chain(of_clouds)
            .find(|kind| kind.as_str() == text)
            .ok_or_else(String::new)
    }
}
