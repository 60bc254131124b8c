//! The captured nodes of a cluster, and which of their captures are redundant.

use std::sync::Arc;

use uturn_model::{Name, Node};
use uturn_netfilter::hash::FastMap;
use uturn_path::{Engine, NodeRuntime, WalkError};

use super::redundant_capture::{Addresses, without_capture};

/// The captured nodes of a cluster.
pub(crate) struct CapturedNodes<'a> {
    /// The nodes that are not equal to any other, with their kernels.
    pub(crate) unlike: Vec<(&'a Name, Arc<NodeRuntime>)>,
    /// The nodes whose captures equal what is derived without them, without these captures.
    pub(crate) plain: FastMap<&'a Name, Node>,
}

impl<'a> CapturedNodes<'a> {
    /// Returns the captured nodes of an engine's cluster.
    ///
    /// # Errors
    /// Returns an error if the rules of a captured node cannot be read.
    pub(crate) fn of(engine: &Engine<'a>) -> Result<Self, WalkError> {
        let cluster = engine.cluster();
        let mut found = Self { unlike: Vec::new(), plain: FastMap::default() };
        if cluster.captures.is_empty() {
            return Ok(found);
        }
        let known = Addresses::of(cluster);
        let captured =
            cluster.nodes.iter().filter(|(name, _)| cluster.captures.contains_key(*name));
        for (name, node) in captured {
            let runtime = engine.runtime(name)?;
            match without_capture(cluster, node, &runtime, &known) {
                Some(node) => drop(found.plain.insert(name, node)),
                None => found.unlike.push((name, runtime)),
            }
        }
        Ok(found)
    }
}
