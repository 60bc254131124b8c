//! Layer 4: the listeners that the kernel forwards, the program that sets this up, and the targets
//! that the kernel picks.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;

use uturn_lb::decide::Choice;
use uturn_model::lb::Listener;
use uturn_model::{LoadBalancer, Protocol};

use crate::LabError;
use crate::linux::build::handover;
use crate::linux::kernel::conntrack;
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::reports::Reports;
use crate::linux::kernel::system::{During, find, run};

/// The program that sets up the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer4 {
    /// The load balancer process, as outside the lab.
    Process,
    /// Rules for iptables that the lab makes ([`super::rules`]): this kernel has no nf_tables, such
    /// as the small machine's, `nft` is not installed, or packets keep the address that was called.
    Rules,
}

/// A table with the kernel features that the process needs.
const TABLE: &str = "table inet uturn-lab {\n\
    chain nat { type nat hook prerouting priority dstnat; }\n\
    }\n";

impl Layer4 {
    /// Decides which program sets up the kernel of these load balancers.
    pub(crate) fn of(space: &Namespace, balancers: &[LoadBalancer]) -> Result<Self, LabError> {
        // The process translates addresses, and cannot forward packets unchanged.
        if handover::is_needed(balancers, None) {
            return Ok(Self::Rules);
        }
        if balancers.iter().flat_map(|lb| &lb.listeners).any(is_in_kernel) {
            Self::here(space)
        } else {
            Ok(Self::Process)
        }
    }

    /// Decides which program can set up this kernel.
    pub(crate) fn here(space: &Namespace) -> Result<Self, LabError> {
        static HAS_NF_TABLES: OnceLock<bool> = OnceLock::new();
        let has_nf_tables = match HAS_NF_TABLES.get() {
            Some(known) => *known,
            None => {
                let try_out = || Ok(run("nft", &["--check", "-f", "-"], TABLE)?.is_ok());
                let has = find("nft").is_some() && space.run(try_out).during("try nf_tables")?;
                *HAS_NF_TABLES.get_or_init(|| has)
            }
        };
        Ok(if has_nf_tables { Self::Process } else { Self::Rules })
    }
}

/// Returns whether the kernel forwards a listener's packets: the load balancer then makes no
/// connection of its own.
pub(crate) fn is_in_kernel(listener: &Listener) -> bool {
    !listener.makes_connections()
}

/// Returns the smallest number of connections after which every target has been picked exactly as
/// often as its share predicts.
pub(crate) fn turns(choice: &Choice<'_>) -> u64 {
    let shares = choice.shares();
    let is_whole = |turns: &u64| shares.iter().all(|(_, share)| share.is_whole_number_of(*turns));
    // Weights are at most a few hundred each; no share needs more turns than their sum.
    (1..100_000).find(is_whole).unwrap_or(1)
}

/// A listener's address and transport protocol.
pub(crate) type ListenerKey = (SocketAddr, Protocol);

/// Returns the listeners of load balancers that the kernel forwards.
pub(crate) fn listeners(balancers: &[LoadBalancer]) -> BTreeSet<ListenerKey> {
    in_kernel(balancers).map(|(key, _)| key).collect()
}

fn in_kernel(balancers: &[LoadBalancer]) -> impl Iterator<Item = (ListenerKey, &Listener)> {
    let of = |lb: &LoadBalancer, listener: &Listener| {
        let address = SocketAddr::new(lb.vip, listener.port.number());
        (address, listener.protocol.transport())
    };
    balancers.iter().flat_map(move |lb| {
        let here = lb.listeners.iter().filter(|listener| is_in_kernel(listener));
        here.map(move |listener| (of(lb, listener), listener))
    })
}

/// The kernel's reports of new connections to listeners that it forwards.
pub(crate) struct Picks {
    reports: Reports,
    listeners: BTreeSet<ListenerKey>,
    /// The targets that listeners forward packets to unchanged, by the marks of their nodes.
    handed: BTreeMap<(ListenerKey, u32), SocketAddr>,
}

impl std::fmt::Debug for Picks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Picks").field("listeners", &self.listeners).finish_non_exhaustive()
    }
}

impl Picks {
    /// Reports connections in a namespace from now on. Returns `None` if the kernel forwards no
    /// listener there.
    pub(crate) fn start(
        space: &Namespace,
        balancers: &[LoadBalancer],
        nodes: &handover::Nodes,
    ) -> Result<Option<Self>, LabError> {
        let listeners = listeners(balancers);
        if listeners.is_empty() {
            return Ok(None);
        }
        let handing = in_kernel(balancers).filter(|(_, listener)| handover::is_handed(listener));
        let targets = handing.flat_map(|(key, listener)| {
            let targets = listener.rules.first().into_iter().flat_map(|rule| &rule.targets);
            targets.map(move |target| (key, target))
        });
        let handed = targets.filter_map(|(key, target)| {
            let mark = handover::mark_of(nodes.number(target)?);
            Some(((key, mark), target.address))
        });
        let handed = handed.collect();
        let open = || Reports::open(conntrack::NEW_CONNECTIONS, None);
        let reports = space.run(open).during("watch the kernel's connections")?;
        Ok(Some(Self { reports, listeners, handed }))
    }

    /// Returns the targets of new connections since the last call.
    pub(crate) fn take(&self) -> Result<Vec<SocketAddr>, LabError> {
        let mut picked = Vec::new();
        let read = |bytes: &[u8]| {
            for connection in conntrack::connections(bytes) {
                let listener = (connection.called, connection.protocol);
                if self.listeners.contains(&listener) {
                    let node = (listener, connection.mark & handover::MASK);
                    let handed = self.handed.get(&node).copied();
                    picked.push(handed.unwrap_or(connection.answers_from));
                }
            }
        };
        self.reports.take(read).during("watch the kernel's connections")?;
        Ok(picked)
    }
}

impl AsFd for Picks {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reports.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use uturn_clouds::cloud::tke::profile::clb;
    use uturn_model::lb::{Layer, Target, TargetKind};

    use super::*;

    #[test]
    fn a_round_is_as_long_as_the_shares_say() {
        for (weights, expected) in
            [(&[10, 10, 10][..], 3), (&[20, 10], 3), (&[7, 3], 10), (&[10, 0], 1), (&[], 1)]
        {
            let target = |(i, weight): (usize, &u32)| Target {
                address: format!("10.0.0.{}:30090", 11 + i).parse().unwrap(),
                weight: *weight,
                kind: TargetKind::NodePort("n1".parse().unwrap()),
            };
            let targets: Vec<Target> = weights.iter().enumerate().map(target).collect();
            let (profile, alive) = (clb(Layer::L4), vec![true; targets.len()]);
            let client = "10.1.1.10".parse().unwrap();
            let choice = Choice::new(&profile, &targets, &alive, client);
            assert_eq!(turns(&choice), expected, "{weights:?}");
        }
    }
}
