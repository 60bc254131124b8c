//! Reads flows and their expected outcomes.

use std::net::SocketAddr;
use std::time::Duration;

use uturn_document::{Node, Value};
use uturn_model::{
    Client, Destination, Flow, Mechanism, Name, Outcome, Protocol, ProxyMode, Share,
};

use super::{Alive, ExpectedFlow, ExpectedProbes, share};
use crate::decode::{Doc, FromNode};

/// Reads the flows of a case. Faults that all cases share are reported to `doc`, faults of one case
/// to `each`.
pub(super) fn flows<'d>(
    doc: &Doc<'d>,
    each: &Doc<'d>,
    spec: &'d Node<'d>,
    size: Size,
    clients: &[Client],
) -> Vec<ExpectedFlow> {
    let mut flows = Vec::new();
    for node in doc.maps(spec, "flows") {
        doc.only(node, &["from", "to", "protocol", "expect"]);
        let from = from(doc, node, clients);
        let to = to(doc, node);
        let protocol = doc.read::<Protocol>(node, "protocol").unwrap_or_default();
        let expected = expected(doc, each, node, size);
        let (Some(from), Some(to), Some((outcomes, mechanisms))) = (from, to, expected) else {
            continue;
        };
        flows.extend(from.into_iter().map(|from| ExpectedFlow {
            flow: Flow { from, to: to.clone(), protocol },
            outcomes: outcomes.clone(),
            mechanisms: mechanisms.clone(),
            origin: doc.origin(node),
        }));
    }
    flows
}

fn from<'d>(doc: &Doc<'d>, node: &'d Node<'d>, clients: &[Client]) -> Option<Vec<Client>> {
    let text = doc.need::<uturn_model::Text>(node, "from")?;
    if &*text == "clients" {
        if clients.is_empty() {
            doc.fault(node.get("from")?, "the shape has no clients");
        }
        return Some(clients.to_vec());
    }
    match text.parse() {
        Ok(client) => Some(vec![client]),
        Err(error) => {
            doc.fault(
                node.get("from")?,
                format!("{error}; or `clients`, which means all clients of the shape"),
            );
            None
        }
    }
}

fn to<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Option<Destination> {
    let text = doc.need::<uturn_model::Text>(node, "to")?;
    match text.parse() {
        Ok(target) => Some(target),
        Err(error) => {
            doc.fault(node.get("to")?, format!("{error}"));
            None
        }
    }
}

type Expected = (Vec<(Outcome, Share)>, Option<Vec<Mechanism>>);

/// Returns the first expectation that applies. All of them are read so that their faults are
/// reported.
fn expected<'d>(doc: &Doc<'d>, each: &Doc<'d>, node: &'d Node<'d>, size: Size) -> Option<Expected> {
    let mut first: Option<Option<Expected>> = None;
    for item in doc.maps(node, "expect") {
        doc.only(item, &["when", "outcomes", "mechanisms"]);
        let fits = size.fits(doc, item) && first.is_none();
        let outcomes = outcomes(doc, each, item, fits.then_some(size.nodes));
        let mechanisms = mechanisms(doc, item);
        if fits {
            first = Some(outcomes.map(|outcomes| (outcomes, mechanisms)));
        }
    }
    match first {
        Some(expected) => expected,
        None if node.get("expect").is_none() => Some((Vec::new(), None)),
        None => {
            each.fault(node.get("expect")?, size.fits_none(doc, node));
            None
        }
    }
}

/// The size and mode that distinguish the cases.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) nodes: usize,
    pub(super) mode: ProxyMode,
}

impl Size {
    /// Returns whether an expectation's `when` applies to this case.
    fn fits<'d>(self, doc: &Doc<'d>, node: &'d Node<'d>) -> bool {
        let Some(when) = doc.map(node, "when") else { return true };
        doc.only(when, &["nodes", "mode"]);
        one_of_these(doc, when, "nodes", self.nodes) && one_of_these(doc, when, "mode", self.mode)
    }
}

impl Size {
    /// Returns the message that no expectation applies to this case. It names the mode if an
    /// expectation depends on it.
    fn fits_none<'d>(self, doc: &Doc<'d>, node: &'d Node<'d>) -> String {
        let modes_matter = doc
            .maps(node, "expect")
            .filter_map(|item| item.get("when"))
            .any(|when| when.get("mode").is_some());
        let mode = if modes_matter { format!(" in mode {}", self.mode) } else { String::new() };
        format!("no entry applies to the case of {} nodes{mode}", self.nodes)
    }
}

/// Returns whether a field is left out, has this value, or is a list that contains it.
fn one_of_these<'d, T: FromNode + PartialEq>(
    doc: &Doc<'d>,
    when: &'d Node<'d>,
    key: &str,
    value: T,
) -> bool {
    match when.get(key).map(|node| &node.value) {
        None => true,
        Some(Value::Seq(_)) => doc.list::<T>(when, key).contains(&value),
        Some(_) => doc.read::<T>(when, key) == Some(value),
    }
}

/// Reads the expected results of health checks, for each listener.
pub(super) fn probes<'d>(
    doc: &Doc<'d>,
    each: &Doc<'d>,
    spec: &'d Node<'d>,
    size: Size,
) -> Vec<ExpectedProbes> {
    let mut probes = Vec::new();
    for node in doc.maps(spec, "probes") {
        doc.only(node, &["listener", "protocol", "expect"]);
        let listener = doc.need::<SocketAddr>(node, "listener");
        let protocol = doc.read::<Protocol>(node, "protocol").unwrap_or_default();
        if node.get("expect").is_none() {
            doc.missing(node, "expect", "the targets that are found alive");
        }
        let mut found = None;
        for item in doc.maps(node, "expect") {
            doc.only(item, &["when", "alive", "mechanisms"]);
            let alive = doc.need::<Alive>(item, "alive");
            let mechanisms = mechanisms(doc, item);
            if size.fits(doc, item) && found.is_none() {
                found = Some((alive, mechanisms));
            }
        }
        match (listener, found) {
            (Some(listener), Some((Some(alive), mechanisms))) => {
                let origin = doc.origin(node);
                probes.push(ExpectedProbes { listener, protocol, alive, mechanisms, origin });
            }
            (Some(_), None) if node.get("expect").is_some() => {
                each.fault(node.get("expect").unwrap_or(node), size.fits_none(doc, node));
            }
            _ => {}
        }
    }
    probes
}

impl FromNode for Alive {
    const EXPECTED: &'static str = "all, none, or a list of nodes";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        match (node.as_str(), &node.value) {
            (Some("all"), _) => Ok(Self::All),
            (Some("none"), _) => Ok(Self::None),
            (_, Value::Seq(items)) => {
                let names = items.iter().map(|item| Name::from_node(item));
                names.collect::<Result<_, _>>().map(Self::Only)
            }
            _ => Err(String::new()),
        }
    }
}

fn mechanisms<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Option<Vec<Mechanism>> {
    node.get("mechanisms").map(|_| {
        let mut mechanisms = doc.list::<Mechanism>(node, "mechanisms");
        mechanisms.sort_unstable();
        mechanisms
    })
}

fn outcomes<'d>(
    doc: &Doc<'d>,
    each: &Doc<'d>,
    node: &'d Node<'d>,
    nodes: Option<usize>,
) -> Option<Vec<(Outcome, Share)>> {
    let items: Vec<_> = doc.maps(node, "outcomes").collect();
    if items.is_empty() {
        doc.missing(node, "outcomes", "at least one outcome");
        return None;
    }
    let read: Vec<_> = items.iter().map(|item| outcome(doc, item)).collect();
    let shares: Vec<_> = match (items.as_slice(), nodes) {
        (_, None) => return None,
        ([only], Some(_)) if only.get("share").is_none() => vec![StatedShare::Of(Share::ALL)],
        (_, Some(nodes)) => {
            items.iter().map(|item| share(each, item, nodes)).collect::<Option<_>>()?
        }
    };
    let stated = shares.iter().map(|share| match share {
        StatedShare::Of(share) => share.get(),
        StatedShare::Rest => 0.0,
    });
    let stated: f64 = stated.sum();
    let rests = shares.iter().filter(|share| matches!(share, StatedShare::Rest)).count();
    let list = node.get("outcomes").unwrap_or(node);
    if rests > 1 {
        doc.fault(list, "only one outcome can have the rest");
        return None;
    }
    let adds_up = match rests {
        1 => stated < 1.0 + Share::ROUNDING,
        _ => (stated - 1.0).abs() < Share::ROUNDING,
    };
    if !adds_up {
        each.fault(list, format!("the shares add up to {stated}, not to 1"));
        return None;
    }
    let shares = shares.into_iter().map(|share| match share {
        StatedShare::Of(share) => share,
        StatedShare::Rest => Share::new(1.0 - stated),
    });
    let all = read.into_iter().zip(shares).map(|(outcome, share)| Some((outcome?, share)));
    let all: Vec<(Outcome, Share)> = all.collect::<Option<_>>()?;
    Some(all.into_iter().filter(|(_, share)| share.get() > Share::ROUNDING).collect())
}

fn outcome<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Option<Outcome> {
    doc.only(node, &["outcome", "status", "after", "share"]);
    let after = doc.read::<Duration>(node, "after");
    let status = doc.read::<u16>(node, "status");
    let word = match (node.get("outcome"), node.get("status")) {
        (Some(word), _) => doc.value::<uturn_model::Text>(word)?,
        (None, Some(_)) => "status".into(),
        (None, None) => {
            doc.missing(
                node,
                "outcome",
                "answered, status, hangs, refused, reset, tls-error, unreachable or name-not-found",
            );
            return None;
        }
    };
    let late = after.unwrap_or_default();
    let outcome = match &*word {
        "answered" => Outcome::Answered { after: late },
        "status" => match status {
            Some(code) => Outcome::Status { code, after: late },
            None => {
                if node.get("status").is_none() {
                    doc.missing(node, "status", "the HTTP status");
                }
                return None;
            }
        },
        "hangs" => Outcome::Hangs,
        "refused" => Outcome::Refused,
        "reset" => Outcome::Reset,
        "empty-reply" => Outcome::EmptyReply,
        "tls-error" => Outcome::TlsError,
        "unreachable" => Outcome::Unreachable,
        "name-not-found" => Outcome::NameNotFound,
        other => {
            let known = "answered, status, hangs, refused, reset, empty-reply, tls-error, \
                         unreachable or name-not-found";
            doc.fault(node.get("outcome")?, format!("expected {known}, found {other:?}"));
            return None;
        }
    };
    let timeless = !matches!(outcome, Outcome::Answered { .. } | Outcome::Status { .. });
    if timeless && let Some(after) = node.get("after") {
        doc.fault(after, format!("{word} has no `after`: only answers come late"));
    }
    Some(outcome)
}

/// A share as a scenario states it.
enum StatedShare {
    Of(Share),
    Rest,
}

fn share<'d>(doc: &Doc<'d>, node: &'d Node<'d>, nodes: usize) -> Option<StatedShare> {
    let Some(written) = node.get("share") else {
        doc.missing(node, "share", "a number, a formula such as 1/N, or rest");
        return None;
    };
    let value = match &written.value {
        Value::String(text) if text == "rest" => return Some(StatedShare::Rest),
        Value::String(text) => share::value(text, nodes),
        Value::Number(_) => f64::from_node(written).ok(),
        _ => None,
    };
    match value {
        Some(value) if (-Share::ROUNDING..=1.0 + Share::ROUNDING).contains(&value) => {
            Some(StatedShare::Of(Share::new(value)))
        }
        Some(value) => {
            doc.fault(written, format!("{value} with {nodes} nodes: a share is from 0 to 1"));
            None
        }
        None => {
            let found = written.describe();
            doc.fault(
                written,
                format!("expected a number, a formula such as 1/N, or rest, found {found}"),
            );
            None
        }
    }
}
