//! The nodes that announce an address of a Service, from the objects that state it and from the
//! nodes on which the announcing program runs.

use std::net::IpAddr;

use uturn_model::announcement::{AnnouncedBy, Announcement};
use uturn_model::lb::{BehaviourAssumption, Target};
use uturn_model::{Announcements, Cluster, Node, Service};

/// The nodes that announce an address.
pub(crate) struct Announcers<'c> {
    given: &'c Announcements,
    /// The announcements of the address. `None` if nothing states which nodes announce it.
    chosen: Option<Vec<&'c Announcement>>,
    /// The assumption on which the choice of nodes rests, if it is not certain.
    pub(crate) assumption: Option<BehaviourAssumption>,
}

/// Returns the nodes that announce an address of a Service.
pub(crate) fn of<'c>(cluster: &'c Cluster, service: &Service, address: IpAddr) -> Announcers<'c> {
    let given = &cluster.announcements;
    let chosen = places_of(cluster, service, address);
    let chosen =
        chosen.map(|places| places.into_iter().map(|place| &given.all[place]).collect::<Vec<_>>());
    let doubt = || match (given.pool_of(address), &chosen) {
        (Some(_), Some(chosen)) => other_interfaces(chosen),
        (None, Some(chosen)) => {
            let is_certain =
                given.pools.is_empty() && chosen.iter().all(|own| own.is_for_every_pool());
            if is_certain {
                other_interfaces(chosen)
            } else {
                Some(BehaviourAssumption {
                    assumed: format!("{address} is announced as {} says", named(chosen)).into(),
                    because: "no pool that is given has it".into(),
                    settle: "look for the pool with the address, and for what announces that"
                        .into(),
                })
            }
        }
        (Some(pool), None) => Some(BehaviourAssumption {
            assumed: format!("every node may announce {address}").into(),
            because: format!(
                "it is of {}, and nothing that is given says who announces addresses of a pool",
                pool.object
            )
            .into(),
            settle: "give all objects of the program that announces, or state --complete".into(),
        }),
        (None, None) => None,
    };
    let doubt = labels_of_nodes(given, chosen.as_deref().unwrap_or_default()).or_else(doubt);
    Announcers { given, chosen, assumption: doubt }
}

/// Returns the announcements of an address of a Service, as indices into all announcements. Returns
/// `None` if nothing states which nodes announce the address.
pub fn places_of(cluster: &Cluster, service: &Service, address: IpAddr) -> Option<Vec<usize>> {
    let given = &cluster.announcements;
    let of_service = given.all.iter().enumerate().filter(|(_, own)| own.has_service(service));
    let Some(pool) = given.pool_of(address) else {
        // The pool of the address is not known.
        let all: Vec<usize> = of_service.map(|(place, _)| place).collect();
        return (!all.is_empty()).then_some(all);
    };
    let is_known = !given.all.is_empty() || given.are_complete;
    let of_pool = of_service.filter(|(_, own)| own.has_pool(pool)).map(|(place, _)| place);
    is_known.then(|| of_pool.collect())
}

/// Returns the assumption that nodes whose labels are not known have the labels that announcements
/// ask for.
fn labels_of_nodes(given: &Announcements, chosen: &[&Announcement]) -> Option<BehaviourAssumption> {
    let asking: Vec<&Announcement> =
        chosen.iter().filter(|own| !own.nodes.is_empty()).copied().collect();
    (given.lacks_labels && !asking.is_empty()).then(|| BehaviourAssumption {
        assumed: format!("nodes have the labels that {} asks for", named(&asking)).into(),
        because: "the labels of some are not given".into(),
        settle: "kubectl get nodes -o yaml, among the files".into(),
    })
}

/// Returns the assumption that clients are on a segment of the interfaces to which announcements
/// are limited.
fn other_interfaces(chosen: &[&Announcement]) -> Option<BehaviourAssumption> {
    if chosen.is_empty() || chosen.iter().any(|own| own.interfaces.is_empty()) {
        return None;
    }
    let names: Vec<&str> =
        chosen.iter().flat_map(|own| &own.interfaces).map(|name| &**name).collect();
    Some(BehaviourAssumption {
        assumed: format!("clients are on the segment of {}", names.join(", ")).into(),
        because: format!("{} announces on these interfaces alone", named(chosen)).into(),
        settle: "ip addr on the nodes that announce".into(),
    })
}

fn named(chosen: &[&Announcement]) -> String {
    let names: Vec<&str> = chosen.iter().map(|own| &*own.object).collect();
    names.join(", ")
}

impl Announcers<'_> {
    /// Returns whether a node is one of the announcers.
    pub(crate) fn has_node(&self, node: &Node) -> bool {
        let is_chosen =
            |chosen: &Vec<&Announcement>| chosen.iter().any(|own| self.given.may_choose(own, node));
        !node.lacks_announcer && self.chosen.as_ref().is_none_or(is_chosen)
    }

    /// Retains only the preferred nodes if one node announces for all. Announcements by routes have
    /// no preference, so all nodes are retained.
    pub(crate) fn retain_preferred(&self, cluster: &Cluster, targets: &mut Vec<Target>) {
        let chosen = self.chosen.as_deref().unwrap_or_default();
        if chosen.iter().any(|own| own.by == AnnouncedBy::Routes) {
            return;
        }
        let weight = |target: &Target| {
            let node = target.kind.node().and_then(|name| cluster.nodes.get(name))?;
            let own = chosen.iter().filter(|own| self.given.may_choose(own, node));
            Some(own.fold(0u32, |all, own| all.saturating_add(own.weight_of(node))))
        };
        let most = targets.iter().map(weight).max().flatten();
        targets.retain(|target| weight(target) == most);
    }
}

/// Returns, for each announcement, whether a node announces and how much the node is preferred.
pub fn seen_of(cluster: &Cluster, node: &Node) -> Vec<(bool, u32)> {
    let all = cluster.announcements.all.iter();
    all.map(|own| (cluster.announcements.may_choose(own, node), own.weight_of(node))).collect()
}
