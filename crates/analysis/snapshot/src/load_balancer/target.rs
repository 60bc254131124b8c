//! Reads the targets of a rule.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use uturn_document::{Node, Value};
use uturn_lb::client_address::canonical;
use uturn_lb::special_address::Special;
use uturn_model::Family;
use uturn_model::lb::{Layer, ListenerProtocol, Source, Target, TargetKind};

use super::form::Form;
use super::listener::OfListener;

/// Reads the targets of a rule, or of a listener.
pub(super) fn read_all<'d>(
    form: &Form<'_, 'd>,
    parent: &'d Node<'d>,
    of_listener: &OfListener<'_>,
) -> Vec<Target> {
    let mut targets = Vec::new();
    let mut first: HashMap<SocketAddr, u32> = HashMap::new();
    for node in form.items(parent, "targets") {
        let Some(target) = read(form, node) else { continue };
        let place = node.get("address").unwrap_or(node);
        if target.address.port() == 0 {
            form.wrong(place, "expected a port from 1 to 65535, found 0");
        }
        if let Some(line) = first.get(&target.address) {
            let address = target.address;
            form.wrong(place, format!("{address} is listed twice, first at line {line}"));
        } else {
            first.insert(target.address, place.line);
        }
        form.add_target(target.address, place);
        if let Some(special) = Special::of(target.address.ip()).filter(|it| it.is_nobodys()) {
            let found = place.describe();
            form.wrong(
                place,
                format!("expected the address of a machine, found {found}, {special}"),
            );
        } else if Some(target.address) == of_listener.address() {
            form.wrong(place, "this is the listener's own address: it would call itself");
        } else if let Some(why) = wrong_family(target.address.ip(), of_listener) {
            form.wrong(place, why);
        }
        targets.push(target);
    }
    targets
}

fn read<'d>(form: &Form<'_, 'd>, node: &'d Node<'d>) -> Option<Target> {
    let pod = TargetKind::Pod { pod: None, node: None };
    if !matches!(node.value, Value::Map(_)) {
        let address = own_form(form, form.value(node)?);
        return Some(Target { address, weight: 10, kind: pod });
    }
    form.only(node, &["address", "weight", "nodePort", "pod", "node"]);
    let address = form.need::<SocketAddr>(node, "address");
    let weight = form.within(node, "weight", 0..=100, "a weight from 0 to 100");
    let kind = match node.get("nodePort") {
        Some(name) if node.get("pod").is_some() || node.get("node").is_some() => {
            form.fault(name, "a target is a nodePort or a pod, not both");
            return None;
        }
        Some(name) => TargetKind::NodePort(form.value(name)?),
        None => TargetKind::Pod { pod: form.read(node, "pod"), node: form.read(node, "node") },
    };
    Some(Target { address: own_form(form, address?), weight: weight.unwrap_or(10), kind })
}

/// Returns an address in its canonical form. In derived documents the address stays as it is.
fn own_form(form: &Form<'_, '_>, address: SocketAddr) -> SocketAddr {
    if form.is_derived() { address } else { canonical(address) }
}

/// Returns why a listener cannot reach or probe a target with this address. Returns `None` if it
/// can.
fn wrong_family(target: IpAddr, of_listener: &OfListener<'_>) -> Option<String> {
    let (vip, protocol) = (of_listener.around.vip?, of_listener.protocol?);
    let family = Family::of(target);
    let keeps_packets = matches!(protocol, ListenerProtocol::Tcp | ListenerProtocol::Udp);
    let (from, what) = match of_listener.profile.source {
        _ if keeps_packets => (vip, "layer 4 forwards packets as they are, and the VIP is"),
        Source::Kept => (vip, "the client's address is kept, and the VIP is"),
        Source::Replaced(range) => (range.addr(), "the source is"),
    };
    debug_assert!(!keeps_packets || protocol.layer() == Layer::L4, "UDP and TCP are layer 4");
    if Family::of(from) != family {
        let (target, from) = (name(family), name(Family::of(from)));
        return Some(format!("the target is {target}: {what} {from}"));
    }
    let check = of_listener.profile.health_check.as_ref()?;
    let prober = check.source.address(vip);
    (Family::of(prober) != family).then(|| {
        let (target, prober) = (name(family), name(Family::of(prober)));
        format!("the target is {target}: its health checks come from {prober}")
    })
}

fn name(family: Family) -> &'static str {
    match family {
        Family::V4 => "IPv4",
        Family::V6 => "IPv6",
    }
}
