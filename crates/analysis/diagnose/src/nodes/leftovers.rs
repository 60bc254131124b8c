//! Finds the kube-proxies that have left rules on a node: their modes, and the back end of
//! iptables.

use uturn_model::{CaptureFile, Evidence, Family, ProxyMode};
use uturn_netfilter::{NodeState, iptables as parser};

use super::difference::{Difference, Question};
use super::{Subject, iptables, ipvs, nftables};
use crate::Code;

/// The traces of kube-proxies on a node.
pub(super) struct Traces {
    /// The modes of which there are rules, each with a rule as evidence.
    pub(super) modes: Vec<(ProxyMode, Evidence)>,
    /// A rule of a kube-proxy in the other back end of iptables.
    other_back_end: Option<Evidence>,
}

impl Traces {
    pub(super) fn of(subject: &Subject<'_>) -> Self {
        let state = &subject.state;
        let saved = [&state.iptables, &state.ip6tables];
        let by = || saved.into_iter().find_map(iptables::trace);
        let mut modes = Vec::new();
        if let Some(by) = by() {
            if saved.into_iter().any(iptables::has_iptables_mode) {
                modes.push((ProxyMode::Iptables, by.clone()));
            }
            if saved.into_iter().any(iptables::has_ipvs_mode) {
                modes.push((ProxyMode::Ipvs, by));
            }
        }
        if modes.iter().all(|(mode, _)| *mode != ProxyMode::Ipvs)
            && let Some(by) = bound_server(state)
        {
            modes.push((ProxyMode::Ipvs, by));
        }
        if let Some(by) = nftables::trace(&state.nft) {
            modes.push((ProxyMode::Nftables, by));
        }
        Self { modes, other_back_end: other_back_end(subject) }
    }

    /// Returns the mode whose rules are compared: the configured one, if there are rules of it, or
    /// the only one found, if none is configured.
    pub(super) fn compared(&self, subject: &Subject<'_>) -> Option<ProxyMode> {
        let mode = &subject.cluster.proxy.mode;
        if self.modes.iter().any(|(found, _)| *found == mode.value) {
            return Some(mode.value);
        }
        match self.modes.as_slice() {
            [(only, _)] if mode.is_supposed() => Some(*only),
            _ => None,
        }
    }
}

/// Returns a virtual server whose address is bound to kube-proxy's device.
fn bound_server(state: &NodeState) -> Option<Evidence> {
    let bound: Vec<_> = Family::BOTH
        .into_iter()
        .filter_map(|family| ipvs::bound(state, family))
        .flatten()
        .collect();
    let is_bound = |server: &&uturn_netfilter::ipvs::VirtualServer| {
        let address = ipvs::address(server);
        address.is_some_and(|(ip, _)| bound.contains(&ip))
    };
    state.ipvs.0.iter().find(is_bound).map(|server| server.by())
}

/// Returns a rule of kube-proxy in the other back end of iptables.
fn other_back_end(subject: &Subject<'_>) -> Option<Evidence> {
    let files = [
        (CaptureFile::OtherIptables, Family::V4, &subject.state.iptables),
        (CaptureFile::OtherIp6tables, Family::V6, &subject.state.ip6tables),
    ];
    files.into_iter().find_map(|(file, family, main)| {
        let captured = subject.capture.files.get(&file)?;
        let other = parser::parse(captured.path.clone(), &captured.text, family).ok()?;
        let is_served =
            |rules| iptables::has_iptables_mode(rules) || iptables::has_ipvs_mode(rules);
        // A single kube-proxy uses only one back end.
        (is_served(&other) && is_served(main)).then(|| iptables::trace(&other))?
    })
}

pub(super) fn questions(subject: &Subject<'_>) -> Vec<Question> {
    let (is_configured, is_single) =
        ("kube-proxy runs in the mode that it is configured for", "one kube-proxy has left rules");
    let proxy = &subject.cluster.proxy;
    let has_rules = Family::BOTH.into_iter().any(|family| subject.capture.has_rules(family));
    if !has_rules {
        let why = "the capture has no rules";
        return vec![Question::unknown(is_configured, why), Question::unknown(is_single, why)];
    }
    if let Some(other) = proxy.replaced_by() {
        let why = format!("{other} serves Services, and its state is not read");
        return vec![Question::unknown(is_configured, why)];
    }
    let traces = Traces::of(subject);
    let mode = proxy.mode.value;
    let found: Vec<&str> = traces.modes.iter().map(|(mode, _)| mode.as_str()).collect();
    let other = traces.modes.iter().find(|(found, _)| *found != mode);
    let configured = match (traces.modes.as_slice(), other) {
        ([], _) => Question::unknown(is_configured, "there are no rules of a kube-proxy"),
        _ if proxy.mode.is_supposed() => {
            Question::unknown(is_configured, format!("not stated; found: {}", found.join(", ")))
        }
        (_, Some((other, by))) if !found.contains(&mode.as_str()) => {
            let what = format!(
                "configured: {mode} ({}); found: rules of {other} mode only",
                proxy.mode.basis
            );
            let difference = Difference::new(Code::OtherMode, what, by.clone());
            Question::of(is_configured, "", vec![difference])
        }
        _ => Question::of(is_configured, format!("{mode} ({})", proxy.mode.basis), Vec::new()),
    };
    let mut differences = Vec::new();
    if traces.modes.len() > 1 {
        let left =
            traces.modes.iter().filter(|(found, _)| proxy.mode.is_supposed() || *found != mode);
        differences.extend(left.map(|(left, by)| {
            let what = if proxy.mode.is_supposed() {
                format!("found: rules of {left} mode")
            } else {
                format!("expected: rules of {mode} mode; found: also rules of {left} mode")
            };
            Difference::new(Code::TwoKubeProxies, what, by.clone())
        }));
    }
    if let Some(by) = traces.other_back_end {
        let what = "found: rules of kube-proxy in both back ends of iptables, legacy and nf_tables";
        differences.push(Difference::new(Code::TwoKubeProxies, what, by));
    }
    let single = if traces.modes.is_empty() {
        Question::unknown(is_single, "there are no rules of a kube-proxy")
    } else {
        Question::of(is_single, found.join(", "), differences)
    };
    vec![configured, single]
}
