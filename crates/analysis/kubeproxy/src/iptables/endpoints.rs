//! The chains that choose an endpoint of a Service port, and the chains of endpoints.

use uturn_model::Family;

use super::MARK_MASQ;
use super::port::{Chains, PortWriter};
use crate::kubelet::MARK_DROP;
use crate::names::PortHash;
use crate::plan::{Backend, PortPlan};
use crate::text::{Chain, Rule, Rules, Table};

/// An endpoint and its chain.
pub(super) type EndpointChain<'b> = (&'b Backend, Chain);

impl PortWriter<'_> {
    /// Writes the chains that choose an endpoint, and one chain for each endpoint.
    pub(super) fn endpoints(
        &self,
        port: &PortPlan<'_>,
        chains: &Chains,
        hash: &PortHash,
        nat: &mut Table,
    ) {
        let endpoint_chains = endpoint_chains(port, hash);
        let internal = if port.internal_local { chains.local } else { chains.cluster };
        for (chain, takes) in [
            (chains.cluster, Backend::serves_cluster as fn(&Backend) -> bool),
            (chains.local, Backend::serves_local),
        ] {
            let chosen: Vec<&EndpointChain<'_>> =
                endpoint_chains.iter().filter(|(backend, _)| takes(backend)).collect();
            let is_dead_end =
                chosen.is_empty() && chain == chains.local && self.leads_nowhere(port);
            if chosen.is_empty() && !is_dead_end {
                continue;
            }
            nat.chain(chain, |rules| {
                if chain == internal {
                    self.masquerade_from_outside(port, rules);
                }
                if is_dead_end {
                    rules.add().comment(&[&port.name, " has no local endpoints"]).jump(MARK_DROP);
                }
                self.choose(port, &chosen, rules);
            });
        }
        self.open(port, &endpoint_chains, nat);
    }

    /// Returns whether the port has a chain of local endpoints although the node has none.
    fn leads_nowhere(&self, port: &PortPlan<'_>) -> bool {
        self.drops_later(port) && port.uses_local()
    }

    /// Writes rules that choose one of some endpoints: the client's previous one, or one by chance.
    pub(super) fn choose(
        &self,
        port: &PortPlan<'_>,
        chosen: &[&EndpointChain<'_>],
        rules: &mut Rules<'_>,
    ) {
        for (backend, chain) in chosen {
            let Some(seconds) = port.affinity_seconds else { break };
            let rule = self.choice(rules, port, backend);
            self.remembered(rule, seconds, *chain).jump(*chain);
        }
        for (place, (backend, chain)) in chosen.iter().enumerate() {
            let rule = self.choice(rules, port, backend);
            match self.probabilities.one_in(chosen.len() - place) {
                Some(probability) => rule.words(probability).jump(*chain),
                None => rule.jump(*chain),
            }
        }
    }

    /// Adds a match for clients that this endpoint has served within this many seconds.
    pub(super) fn remembered<'t>(&self, rule: Rule<'t>, seconds: u32, chain: Chain) -> Rule<'t> {
        rule.display(" -m recent --rcheck --seconds ", seconds)
            .words("--reap")
            .display(" --name ", chain.as_str())
            .words(self.by_source())
    }

    /// Writes the chains of the endpoints.
    pub(super) fn open(
        &self,
        port: &PortPlan<'_>,
        endpoint_chains: &[EndpointChain<'_>],
        nat: &mut Table,
    ) {
        for (backend, chain) in endpoint_chains {
            nat.chain(*chain, |rules| self.endpoint(port, backend, *chain, rules));
        }
    }

    /// Begins a rule that leads to an endpoint.
    fn choice<'t>(
        &self,
        rules: &'t mut Rules<'_>,
        port: &PortPlan<'_>,
        backend: &Backend,
    ) -> Rule<'t> {
        match (self.remarks, self.features.remarks_name_endpoints) {
            (true, true) => rules.add().comment(&[&port.name, " -> ", &backend.text]),
            (true, false) => rules.add().comment(&[&port.name]),
            (false, _) => rules.add(),
        }
    }

    /// Writes the rules of one endpoint's chain.
    fn endpoint(
        &self,
        port: &PortPlan<'_>,
        backend: &Backend,
        chain: Chain,
        rules: &mut Rules<'_>,
    ) {
        let rule = rules.add().source(backend.address());
        self.remark(rule, port).jump(MARK_MASQ);
        let mut rule = self.remark(rules.add().protocol(port.protocol), port);
        if port.affinity_seconds.is_some() {
            rule = rule.display(" -m recent --set --name ", chain.as_str()).words(self.by_source());
        }
        rule.with_protocol(port.protocol)
            .words("-j DNAT --to-destination")
            .words(&backend.text)
            .finish();
    }

    fn remark<'t>(&self, rule: Rule<'t>, port: &PortPlan<'_>) -> Rule<'t> {
        if self.remarks { rule.comment(&[&port.name]) } else { rule }
    }

    /// Returns the options by which `recent` identifies clients.
    pub(super) fn by_source(&self) -> &'static str {
        match self.family {
            Family::V4 => "--mask 255.255.255.255 --rsource",
            Family::V6 => "--mask ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff --rsource",
        }
    }
}

/// Returns every endpoint of a port with its chain.
pub(super) fn endpoint_chains<'b>(
    port: &'b PortPlan<'_>,
    hash: &PortHash,
) -> Vec<EndpointChain<'b>> {
    let chain =
        |backend: &'b Backend| (backend, Chain::hashed("KUBE-SEP-", hash.endpoint(&backend.text)));
    port.backends.all.iter().map(chain).collect()
}
