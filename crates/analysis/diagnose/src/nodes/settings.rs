//! Checks the sysctls on which Services depend.

use uturn_model::network::NetworkMode;
use uturn_model::{CaptureFile, Evidence, Family, IpNet, Text};
use uturn_netfilter::RouteKind;

use super::Subject;
use super::difference::{Difference, Question};
use crate::{Code, Severity};

pub(super) fn questions(subject: &Subject<'_>) -> Vec<Question> {
    vec![forwarding(subject), rp_filter(subject), bridge(subject), conntrack(subject)]
}

/// Answers whether the node forwards packets of the families that it serves.
fn forwarding(subject: &Subject<'_>) -> Question {
    let what = "it forwards packets";
    let sysctls = &subject.state.sysctls;
    let mut families = Family::BOTH.into_iter().filter(|family| subject.serves(*family));
    if !families.clone().any(|family| sysctls.states_forwarding(family)) {
        return Question::unknown(what, "the capture does not say net.ipv4.ip_forward");
    }
    let is_off =
        |family: &Family| sysctls.states_forwarding(*family) && !sysctls.ip_forward(*family);
    let switch = |family| match family {
        Family::V4 => "net.ipv4.ip_forward",
        Family::V6 => "net.ipv6.conf.all.forwarding",
    };
    let off = families.by_ref().filter(is_off).map(|family| {
        let name = switch(family);
        let by = Evidence::Sysctl { name: name.into(), value: "0".into() };
        Difference::new(Code::NotForwarding, format!("{name}: expected: 1; found: 0"), by)
    });
    Question::of(what, "net.ipv4.ip_forward is 1", off.collect())
}

/// Answers whether strict reverse-path filtering drops packets to pods that have addresses of their
/// own network cards.
fn rp_filter(subject: &Subject<'_>) -> Question {
    let what = "rp_filter does not drop packets that come back another way";
    let state = &subject.state;
    let devices: Vec<&Text> = state
        .routes
        .iter()
        .filter(|route| route.dst.prefix_len() == 0 && route.kind == RouteKind::Unicast)
        .filter_map(|route| route.dev.as_ref())
        .collect();
    if !state.sysctls.states_rp_filter() || devices.is_empty() {
        return Question::unknown(what, "the capture does not say it of the default routes");
    }
    let value = |device: &Text| state.sysctls.rp_filter(device);
    let strict = devices.iter().find(|device| value(device) == 1);
    let network = &subject.cluster.network.mode;
    match strict {
        Some(device) if network.value == NetworkMode::VpcCni => {
            if network.is_supposed() {
                return Question::unknown(
                    what,
                    format!("{device}: 1; the pod network is supposed"),
                );
            }
            let name = format!("net.ipv4.conf.{device}.rp_filter");
            let text =
                format!("{name}: expected: 0 or 2, since pods have addresses of the VPC; found: 1");
            let by = Evidence::Sysctl { name: name.into(), value: "1".into() };
            Question::of(what, "", vec![Difference::new(Code::ReversePathFilter, text, by)])
        }
        Some(device) => {
            Question::of(what, format!("{device}: 1: strict; fine with these routes"), Vec::new())
        }
        None => Question::of(what, "0 or 2", Vec::new()),
    }
}

/// Answers whether rules see the packets that a bridge with pods passes.
fn bridge(subject: &Subject<'_>) -> Question {
    const SWITCH: &str = "net.bridge.bridge-nf-call-iptables";
    let what = "rules see what its bridge passes";
    if !subject.capture.files.contains_key(&CaptureFile::Routes) {
        return Question::unknown(what, "the capture has no routes");
    }
    let Some(bridge) = bridge_of_pods(subject) else {
        return Question::of(what, "its pods share no bridge", Vec::new());
    };
    match subject.state.sysctls.get(SWITCH) {
        None => Question::unknown(what, format!("the capture does not say {SWITCH}")),
        Some("0") => {
            let text = format!("{SWITCH}: expected: 1, since pods share {bridge}; found: 0");
            let by = Evidence::Sysctl { name: SWITCH.into(), value: "0".into() };
            Question::of(what, "", vec![Difference::new(Code::ReplyUnseen, text, by)])
        }
        Some(value) => Question::of(what, format!("{SWITCH} is {value}"), Vec::new()),
    }
}

/// Returns the interface through which the node reaches a whole range of its own pods without a
/// gateway.
fn bridge_of_pods<'a>(subject: &'a Subject<'_>) -> Option<&'a Text> {
    // Such networks have another kind of gateway, such as Open vSwitch.
    let mode = &subject.cluster.network.mode;
    let has_links = mode.value == NetworkMode::Routed && !mode.is_supposed();
    if has_links || subject.cluster.proxy.replaced_by().is_some() {
        return None;
    }
    let node = subject.node;
    let routes = || {
        let all = subject.state.routes.iter();
        all.filter(|route| route.kind == RouteKind::Unicast && route.dst.prefix_len() > 0)
    };
    let is_shared = |net: &IpNet| net.addr().is_ipv4() && net.prefix_len() < net.max_prefix_len();
    let is_of_node = |net: &IpNet| node.pod_cidrs.iter().any(|pods| pods.contains(net));
    let pods = subject.cluster.pods_on(&node.name).filter(|pod| !pod.spec.host_network);
    // Pods that have a route each share no interface.
    let to_known = pods.flat_map(|pod| &pod.ips).filter_map(|ip| {
        let towards = routes().filter(|route| route.dst.contains(ip));
        towards.max_by_key(|route| route.dst.prefix_len())
    });
    let to_range = routes().filter(|route| is_of_node(&route.dst));
    let to_pods =
        to_known.chain(to_range).find(|route| route.via.is_none() && is_shared(&route.dst))?;
    // If pods share the node's own network card, there is no bridge.
    let device = to_pods.dev.as_ref()?;
    let defaults = subject.state.routes.iter().filter(|route| route.dst.prefix_len() == 0);
    let is_uplink = defaults.filter_map(|route| route.dev.as_ref()).any(|own| own == device);
    (!is_uplink).then_some(device)
}

/// The percentages from which the table is nearly full, and full.
const NEARLY: u64 = 90;
const FULL: u64 = 98;

/// Answers whether connection tracking has room for more connections.
fn conntrack(subject: &Subject<'_>) -> Question {
    const COUNT: &str = "net.netfilter.nf_conntrack_count";
    const MAX: &str = "net.netfilter.nf_conntrack_max";
    let what = "connection tracking has room";
    let number = |name: &str| subject.state.sysctls.get(name)?.parse::<u64>().ok();
    let (Some(count), Some(max)) = (number(COUNT), number(MAX)) else {
        return Question::unknown(what, format!("the capture does not say {COUNT} and {MAX}"));
    };
    let found = format!("{count} of {max} connections");
    // A maximum of 0 means no limit.
    if max == 0 || count.saturating_mul(100) < max.saturating_mul(NEARLY) {
        return Question::of(what, found, Vec::new());
    }
    let by = Evidence::Sysctl { name: COUNT.into(), value: count.to_string().as_str().into() };
    let mut difference = Difference::new(Code::ConntrackFull, found, by);
    if count.saturating_mul(100) >= max.saturating_mul(FULL) {
        difference.severity = Severity::Error;
    }
    Question::of(what, "", vec![difference])
}
