//! Which calls break when a node or a zone is lost: at once, while nothing has noticed it, and after
//! health checks and endpoints have followed.
//!
//! A zone is lost as a whole. Of nodes, each is lost by itself, but for a target only one or two are
//! walked of each class of nodes that its calls cannot tell apart (`cover`). Two, because the clients
//! on the node that is lost are lost too: what becomes of theirs shows on the other.

mod cover;
mod end;
mod outside;
mod result;
mod walk;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use uturn_model::{Cluster, Name, Text};
use uturn_path::{Engine, WalkError};
use uturn_scan::{ScanTarget, Scanner};

use crate::change::life::{nodes_of_zone, zones};
use cover::Cover;
pub use end::{End, Ends};
pub use result::{Break, LossClass, Survival};
use walk::{Base, Broken};

/// What is lost at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A node.
    Node,
    /// All nodes of a zone.
    Zone,
}

impl Unit {
    /// Returns the word of the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Zone => "zone",
        }
    }
}

/// Walks every single loss. `namespace` is the only one whose objects are called.
///
/// # Errors
/// Returns an error if the rules of a node cannot be made, or a call cannot be walked.
pub fn survive(
    cluster: &Cluster,
    unit: Unit,
    namespace: Option<&str>,
) -> Result<Survival, Vec<WalkError>> {
    let engine = Engine::new(cluster)?;
    let scanner = Scanner::new(&engine);
    let mut targets = scanner.targets();
    targets.retain(|target| is_in(target, namespace));
    let base = Base::new(&scanner, targets).map_err(one)?;
    match unit {
        Unit::Node => of_nodes(&base, &scanner),
        Unit::Zone => of_zones(&base),
    }
}

fn is_in(target: &ScanTarget, namespace: Option<&str>) -> bool {
    let of = target.object.namespace.as_ref();
    namespace.is_none_or(|wanted| of.is_some_and(|name| name.as_str() == wanted))
}

fn one(why: WalkError) -> Vec<WalkError> {
    vec![why]
}

fn of_zones(base: &Base<'_, '_>) -> Result<Survival, Vec<WalkError>> {
    let all: Vec<Text> = zones(base.cluster).into_iter().collect();
    let mut losses = Vec::new();
    let targets: Vec<usize> = (0..base.targets.len()).collect();
    for zone in &all {
        let nodes = nodes_of_zone(base.cluster, zone);
        let broken = walk::loss(base, &nodes, &targets, all.len())?;
        losses.push((Some(zone.clone()), nodes.into_iter().collect(), broken));
    }
    Ok(result::of(base, Unit::Zone, all.len(), losses))
}

fn of_nodes<'a>(
    base: &Base<'a, '_>,
    scanner: &Scanner<'_, 'a>,
) -> Result<Survival, Vec<WalkError>> {
    let losses = NodeLosses::walk(base, scanner)?;
    // Nodes whose losses break the same calls in the same ways are one class.
    let mut classes: Vec<(Vec<Name>, Vec<Broken>)> = Vec::new();
    let mut known: HashMap<Vec<(usize, bool, Ends)>, usize> = HashMap::new();
    let mut count = 0;
    for (place, name) in losses.names.iter().enumerate() {
        if !is_given(base.cluster, name) {
            continue;
        }
        count += 1;
        let broken = losses.of(base, place);
        let key = broken.iter().map(|own| (own.target, own.outside, own.ends.clone())).collect();
        let at = *known.entry(key).or_insert(classes.len());
        match classes.get_mut(at) {
            Some((nodes, _)) => nodes.push((*name).clone()),
            None => classes.push((vec![(*name).clone()], broken)),
        }
    }
    let classes = classes.into_iter().map(|(nodes, broken)| (None, nodes, broken));
    Ok(result::of(base, Unit::Node, count, classes.collect()))
}

/// Returns whether a node is given, or a pod that is given is on it. Others are only supposed, so that
/// nobody can lose them.
fn is_given(cluster: &Cluster, name: &Name) -> bool {
    let is_supposed = cluster.nodes.get(name).is_none_or(|node| node.supposed);
    !is_supposed || cluster.pods_on(name).any(|pod| !pod.supposed)
}

/// The losses of single nodes that were walked.
struct NodeLosses<'a> {
    names: Vec<&'a Name>,
    cover: Cover,
    /// What breaks, by the place of the node that was walked and the target.
    walked: BTreeMap<(usize, usize), Vec<Broken>>,
}

impl<'a> NodeLosses<'a> {
    fn walk(base: &Base<'a, '_>, scanner: &Scanner<'_, 'a>) -> Result<Self, Vec<WalkError>> {
        let names: Vec<&Name> = base.cluster.nodes.keys().collect();
        let alike = scanner.alike_nodes(&base.targets).map_err(one)?;
        let cover = Cover::of(names.len(), &alike);
        let mut walked: BTreeMap<(usize, usize), Vec<Broken>> = BTreeMap::new();
        for (place, targets) in &cover.chosen {
            let lost = BTreeSet::from([names[*place].clone()]);
            for broken in walk::loss(base, &lost, targets, cover.chosen.len())? {
                walked.entry((*place, broken.target)).or_default().push(broken);
            }
        }
        Ok(Self { names, cover, walked })
    }

    /// Returns what breaks when the node at a place is lost.
    fn of(&self, base: &Base<'_, '_>, place: usize) -> Vec<Broken> {
        let mut all = Vec::new();
        for target in 0..base.targets.len() {
            let representatives = self.cover.representatives(target, place);
            let Some((first, second)) = representatives else { continue };
            let of = |walked: usize| self.walked.get(&(walked, target)).into_iter().flatten();
            if walked_itself(place, first, second) {
                all.extend(of(place).cloned());
                continue;
            }
            // Clients on the node that was walked first are lost there: the second shows theirs.
            let (lost, here) = (self.names[first], self.names[place]);
            let others = of(first).map(|broken| broken.only(base, &|on| on != Some(here)));
            let there = second.into_iter().flat_map(of);
            let there = there.map(|broken| broken.only(base, &|on| on == Some(lost)).inside());
            walk::add_alike(&mut all, others.chain(there));
        }
        all
    }
}

/// Returns whether the loss of a node was walked itself.
fn walked_itself(place: usize, first: usize, second: Option<usize>) -> bool {
    place == first || Some(place) == second
}

#[cfg(test)]
mod tests;
