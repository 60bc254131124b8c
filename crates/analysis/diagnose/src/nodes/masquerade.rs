//! Compares ip-masq-agent's rules with what Facts state about masquerading.

use std::collections::BTreeSet;

use uturn_model::{Family, IpNet};
use uturn_netfilter::iptables::{Addresses, Chain, TableKind, Target};

use super::Subject;
use super::difference::{Difference, Question};
use crate::Code;

/// The names of the chain in the agent's versions.
const CHAINS: [&str; 2] = ["IP-MASQ-AGENT", "IP-MASQ"];

/// Answers whether the agent leaves those destinations alone that Facts state. Returns `None` if
/// there is no agent, or nothing is stated.
pub(super) fn question(subject: &Subject<'_>) -> Option<Question> {
    let what = "pods are masqueraded as Facts state it";
    let network = &subject.cluster.network;
    let rules = subject.state.iptables.table(TableKind::Nat)?;
    let chain = CHAINS.iter().find_map(|name| rules.chain(name))?;
    if network.non_masquerade_cidrs.is_supposed() {
        return Some(Question::unknown(what, "nothing states which destinations are left alone"));
    }
    let is_v4 = |net: &&IpNet| Family::of(net.addr()) == Family::V4 && !is_of_link(net);
    let stated: BTreeSet<IpNet> =
        network.non_masquerade_cidrs.value.iter().filter(is_v4).map(IpNet::trunc).collect();
    let found = left_alone(chain)?;
    let by = || {
        let rule = chain.rules.first();
        rule.map(|rule| rule.by(&chain.name))
    };
    let mut differences = Vec::new();
    let mut add = |net: &IpNet, text: &str| {
        let what = format!("nat {}: {net}: {text}", chain.name);
        differences.extend(by().map(|by| Difference::new(Code::MasqueradeDiffers, what, by)));
    };
    for net in stated.difference(&found) {
        add(net, "expected: left alone; found: masqueraded");
    }
    for net in found.difference(&stated) {
        add(net, "expected: masqueraded; found: left alone");
    }
    Some(Question::of(what, format!("{} has the same ranges", chain.name), differences))
}

/// Returns the ranges for which the agent's chain returns. Returns `None` if the chain has other
/// rules.
fn left_alone(chain: &Chain) -> Option<BTreeSet<IpNet>> {
    let mut nets = BTreeSet::new();
    for rule in &chain.rules {
        match (&rule.target, rule.dst) {
            (Some(Target::Return), Some(to)) if !to.not => match to.value {
                Addresses::Net(net) if is_of_link(&net) => {}
                Addresses::Net(net) => drop(nets.insert(net.trunc())),
                Addresses::Masked { .. } => return None,
            },
            (Some(Target::Masquerade(_)), None) => {}
            _ => return None,
        }
    }
    Some(nets)
}

/// Returns whether a range is in 169.254.0.0/16, which the agent leaves alone by default.
fn is_of_link(net: &IpNet) -> bool {
    matches!(net, IpNet::V4(net) if net.addr().is_link_local())
}
