//! The baseline: the same rules, evaluated from top to bottom.

use std::collections::HashMap;

use uturn_netfilter::iptables::{
    Addresses, Chain, Match, Not, PortRange, Rule, Ruleset, TableKind, Target,
};
use uturn_netfilter::{IpProtocol, Packet};

/// The chains of PREROUTING of `nat` and of FORWARD of `filter`, by index. Looking up a chain by
/// name is not part of the comparison, so it is done with numbers.
pub(crate) struct Linear<'r> {
    /// The chains, and which of them belongs to the hook.
    tables: Vec<(Vec<&'r Chain>, usize)>,
    /// The jump target of each rule of each chain.
    jumps: Vec<Vec<Vec<usize>>>,
}

impl<'r> Linear<'r> {
    pub(crate) fn new(ruleset: &'r Ruleset) -> Self {
        let mut all = Self { tables: Vec::new(), jumps: Vec::new() };
        for (kind, base) in [(TableKind::Nat, "PREROUTING"), (TableKind::Filter, "FORWARD")] {
            let Some(table) = ruleset.table(kind) else { continue };
            let chains: Vec<&Chain> = table.chains.iter().collect();
            let names: HashMap<&str, usize> =
                chains.iter().enumerate().map(|(at, chain)| (&*chain.name, at)).collect();
            let to = |rule: &Rule| match &rule.target {
                Some(Target::Jump(to)) => names[&**to],
                _ => usize::MAX,
            };
            all.jumps
                .push(chains.iter().map(|chain| chain.rules.iter().map(to).collect()).collect());
            let base = names[base];
            all.tables.push((chains, base));
        }
        all
    }

    /// The number of rules evaluated for a packet without an index: the cheapest possible walk,
    /// since it records nothing and follows one branch only.
    pub(crate) fn asked(&self, packet: &Packet) -> u32 {
        let mut asked = 0;
        for ((chains, base), jumps) in self.tables.iter().zip(&self.jumps) {
            let mut way = vec![(*base, 0)];
            while let Some((chain, at)) = way.last_mut() {
                let Some(rule) = chains[*chain].rules.get(*at) else {
                    way.pop();
                    continue;
                };
                let to = jumps[*chain][*at];
                *at += 1;
                asked += 1;
                let within = |wanted: &Option<Not<Addresses>>, ip| {
                    wanted.is_none_or(|Not { not, value }| match value {
                        Addresses::Net(net) => net.contains(&ip) != not,
                        Addresses::Masked { .. } => not,
                    })
                };
                let protocol = packet.protocol();
                let fits = within(&rule.dst, packet.dst)
                    && within(&rule.src, packet.src)
                    && rule.protocol.is_none_or(|wanted| (wanted.value == protocol) != wanted.not)
                    && rule.matches.iter().all(|item| matches(item, packet));
                match &rule.target {
                    Some(Target::Jump(_)) if fits => way.push((to, 0)),
                    Some(Target::Accept | Target::Drop | Target::Reject(_) | Target::Dnat(_))
                        if fits =>
                    {
                        break;
                    }
                    _ => {}
                }
            }
        }
        asked
    }
}

fn matches(item: &Match, packet: &Packet) -> bool {
    let ports = packet.leg().dst.port();
    let within = |wanted: &Option<Not<PortRange>>| {
        wanted.is_none_or(|Not { not, value }| (value.first..=value.last).contains(&ports) != not)
    };
    match item {
        Match::Tcp(tcp) => packet.protocol() == IpProtocol::TCP && within(&tcp.dport),
        Match::Udp(udp) => packet.protocol() == IpProtocol::UDP && within(&udp.dport),
        Match::AddrType(_) | Match::Recent(_) => false,
        _ => true,
    }
}
