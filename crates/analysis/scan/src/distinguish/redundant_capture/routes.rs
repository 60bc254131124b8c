//! Decides whether two kernels route packets alike.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use uturn_model::{Family, Text};
use uturn_netfilter::hash::{FastMap, FastSet};
use uturn_netfilter::{NodeState, PolicyRule, RouteEntry, RouteKind};
use uturn_path::NodeRuntime;

use super::addresses::Addresses;
use super::kernel::policy;

/// Returns whether packets from and to all these addresses are routed alike.
pub(super) fn leads_alike(runtime: &NodeRuntime, other: &NodeRuntime, known: &Addresses) -> bool {
    let usual: Vec<String> = PolicyRule::defaults().iter().map(policy).collect();
    let is_usual = |rule: &PolicyRule| usual.contains(&policy(rule));
    let (own, worked_out) = (runtime.kernel.state(), other.kernel.state());
    if !own.rules.iter().all(is_usual) {
        return false;
    }
    let next_hops = NextHops::of(own);
    let others = NextHops::of(worked_out);
    known.all.iter().all(|ip| {
        let found = next_hops.find(*ip);
        found.is_some() && found == others.find(*ip)
    })
}

/// The next hop of a route, and the source that the route gives.
type NextHop<'s> = (RouteKind, Option<&'s str>, Option<IpAddr>);

/// Routes by family and in the order of table look-ups; then by prefix length, the longest first,
/// and network.
struct NextHops<'s> {
    state: &'s NodeState,
    /// The addresses of the kernel's interfaces, of which there may be thousands.
    own: FastSet<IpAddr>,
    tables: BTreeMap<(Family, u8), Lengths<'s>>,
}

type Lengths<'s> = BTreeMap<std::cmp::Reverse<u8>, FastMap<IpAddr, Vec<&'s RouteEntry>>>;

impl<'s> NextHops<'s> {
    fn of(state: &'s NodeState) -> Self {
        use uturn_netfilter::{TABLE_DEFAULT, TABLE_LOCAL, TABLE_MAIN};
        let mut tables: BTreeMap<(Family, u8), Lengths<'s>> = BTreeMap::new();
        for route in &state.routes {
            let rank = match route.table {
                TABLE_LOCAL => 0,
                TABLE_MAIN => 1,
                TABLE_DEFAULT => 2,
                _ => continue,
            };
            let table = tables.entry((Family::of(route.dst.addr()), rank)).or_default();
            let lengths = table.entry(std::cmp::Reverse(route.dst.prefix_len())).or_default();
            lengths.entry(route.dst.network()).or_default().push(route);
        }
        let own =
            state.interfaces.iter().flat_map(|interface| &interface.addresses).map(|(ip, _)| *ip);
        Self { state, own: own.collect(), tables }
    }

    /// Returns the next hop to an address. Returns `None` if several are of one rank.
    fn find(&self, ip: IpAddr) -> Option<NextHop<'s>> {
        if self.own.contains(&ip) {
            return Some((RouteKind::Local, None, None));
        }
        let family = Family::of(ip);
        for rank in 0..3 {
            for (length, nets) in self.tables.get(&(family, rank)).into_iter().flatten() {
                let network = IpNet::new(ip, length.0).ok()?.network();
                let Some(routes) = nets.get(&network) else { continue };
                let best = routes.iter().min_by_key(|route| route.metric)?;
                if routes.iter().filter(|route| route.metric == best.metric).count() > 1 {
                    return None;
                }
                return Some(match best.kind {
                    RouteKind::Throw => break,
                    RouteKind::Unicast => {
                        (best.kind, best.dev.as_deref(), best.src.or_else(|| self.source(best)))
                    }
                    other => (other, None, None),
                });
            }
        }
        Some((RouteKind::Unreachable, None, None))
    }

    /// Returns the source address of a packet that leaves by a route.
    fn source(&self, route: &RouteEntry) -> Option<IpAddr> {
        let family = Family::of(route.dst.addr());
        let dev: &Text = route.dev.as_ref()?;
        let link = self.state.interfaces.iter().find(|interface| interface.name == *dev)?;
        let mut all = link.addresses.iter().map(|(ip, _)| *ip);
        all.find(|ip| Family::of(*ip) == family)
    }
}
