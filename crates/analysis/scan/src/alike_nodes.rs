//! The nodes that calls of a target cannot tell apart: losing one of them does to the calls what losing
//! another does.

use std::sync::Arc;

use uturn_netfilter::hash::FastMap;
use uturn_path::{Engine, WalkError};

use crate::partition::target_classes::Granularity;
use crate::prepared::PreparedScan;
use crate::targets::ScanTarget;

/// Nodes in classes.
#[derive(Debug, PartialEq, Eq)]
pub struct AlikeNodes {
    /// The class of each node, in the order of the nodes' names.
    pub class_of: Vec<u32>,
    /// The number of classes.
    pub count: usize,
}

/// Returns the classes of nodes for each target. Targets whose packets meet the same Services share
/// theirs.
///
/// # Errors
/// Returns an error if a target does not exist.
pub(crate) fn of<'a>(
    engine: &Engine<'a>,
    prepared: &mut PreparedScan<'a>,
    targets: &[ScanTarget],
) -> Result<Vec<Arc<AlikeNodes>>, WalkError> {
    let mut known: FastMap<Vec<u32>, Arc<AlikeNodes>> = FastMap::default();
    let mut all = Vec::with_capacity(targets.len());
    for target in targets {
        let scope = prepared.scope(engine, target.called())?;
        let classes = prepared.classifier.classify(scope, Granularity::Classes, None);
        let (partition, inventory) = (&classes.partition, &prepared.classifier.inventory);
        let mut numbers: FastMap<u32, u32> = FastMap::default();
        let of_node = |(place, node): (u32, &crate::inventory::Counted<'_>)| {
            let touched = partition.touched.get(&place);
            let class = touched.or_else(|| partition.untouched.get(&node.class[partition.of]));
            // A node that is in no class is like no other.
            let class = class.copied().unwrap_or(u32::MAX - place);
            let next = numbers.len() as u32;
            *numbers.entry(class).or_insert(next)
        };
        let class_of: Vec<u32> = (0u32..).zip(&inventory.nodes).map(of_node).collect();
        let count = numbers.len();
        let new = || Arc::new(AlikeNodes { class_of: class_of.clone(), count });
        all.push(Arc::clone(known.entry(class_of.clone()).or_insert_with(new)));
    }
    Ok(all)
}
