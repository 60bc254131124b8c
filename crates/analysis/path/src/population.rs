//! Weights of walked objects: by default each node, pod and target represents only itself.
//!
//! A walk asks its [`Population`] how many objects a target or an endpoint represents, and
//! whether the cluster has everything that a packet may reach. A reduced cluster answers
//! differently from a whole one; this module does not know how it was reduced.

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use uturn_model::lb::{Rule, Target};
use uturn_model::route::Leg;
use uturn_model::{FailurePoint, Name, Share};

use crate::error::WalkError;
use crate::options::Detail;
use crate::packet::{Exchange, Waiting};

/// The number of objects that each object of the walked cluster represents, and what that cluster
/// lacks.
pub trait Population {
    /// Returns how many targets of a load balancer this target represents. Targets for which the
    /// answer is 0 are removed before a walk and never asked.
    fn targets(&self, target: &Target) -> u32 {
        let _ = target;
        1
    }

    /// Returns how many endpoints the endpoint at this address represents, where rules pick one of
    /// several. Returns `None` if it represents only itself.
    fn endpoints(&self, address: IpAddr) -> Option<f64> {
        let _ = address;
        None
    }

    /// Returns how many endpoints the endpoint at this address represents for a program on a node
    /// that dials each endpoint with equal probability.
    fn dialled(&self, from: Option<&Name>, address: IpAddr) -> f64 {
        let _ = (from, address);
        1.0
    }

    /// Returns whether the cluster contains everything that packets may reach.
    fn is_whole(&self) -> bool {
        true
    }

    /// Returns whether the cluster lacks an object that has this address and port. Called only if
    /// the cluster is not whole.
    fn lacks_destination(&self, to: SocketAddr, known: KnownDestination) -> bool {
        let _ = (to, known);
        false
    }

    /// Returns whether the address belongs to an endpoint that the cluster lacks. Called only if
    /// the cluster is not whole.
    fn lacks_endpoint(&self, address: IpAddr) -> bool {
        let _ = address;
        false
    }

    /// Returns whether the cluster lacks a process in a node's network that listens on the port.
    /// Called only if the cluster is not whole and no such process is known.
    fn lacks_process(&self, node: &Name, port: u16) -> bool {
        let _ = (node, port);
        false
    }

    /// Returns the failover model for requests that a load balancer retries on other targets.
    /// Returns `None` if each request is walked from target to target.
    fn failover(&self) -> Option<&dyn Failover> {
        None
    }
}

/// The kinds of walked objects that have an address.
#[derive(Clone, Copy, Debug)]
pub struct KnownDestination {
    /// Whether a node or a pod has it.
    pub is_host: bool,
    /// Whether a load balancer has it.
    pub is_balancer: bool,
}

/// The population in which each node, pod and target represents only itself, and the cluster lacks
/// none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Individuals;

impl Population for Individuals {}

/// The exchanges with each target, by the target's place in the rule; empty for a target that was
/// not asked.
pub type Results = Rc<[Vec<Exchange>]>;

/// A model of failover: how requests end that a load balancer passes from target to target, where
/// one target may represent many.
pub trait Failover {
    /// Returns the results of asking each target, for a client and a listener as the load balancer
    /// sees them. Calls `ask` unless the results are known already.
    ///
    /// # Errors
    /// Returns the error of `ask`.
    fn results(
        &self,
        seen: Leg,
        ask: &mut dyn FnMut() -> Result<Results, WalkError>,
    ) -> Result<Results, WalkError>;

    /// Returns the ways in which a request ends after all its attempts.
    ///
    /// # Errors
    /// Returns [`WalkError::NeedsWhole`] if each target has to be asked.
    fn exchanges(
        &self,
        request: &FailoverRequest<'_>,
        tries: &dyn TriesTargets,
    ) -> Result<Vec<Exchange>, WalkError>;

    /// Records how the answers reached the client, which sent this share of its requests to the
    /// load balancer.
    fn note_answers(&self, sent: Share, answers: &[Exchange]);
}

/// A request that a load balancer passes from target to target.
pub struct FailoverRequest<'r> {
    /// The rule that serves the request.
    pub rule: &'r Rule,
    /// The targets that may be asked, by their places in the rule.
    pub candidates: &'r [usize],
    /// The exchanges with each target.
    pub results: &'r [Vec<Exchange>],
    /// The request before any target was asked.
    pub start: Exchange,
    /// The time for which the client had waited already.
    pub begun: Duration,
    /// The time after which the load balancer gives up on a target.
    pub timeout: Duration,
    /// Whether the load balancer asks another target when one fails.
    pub next_target: bool,
    /// The routes that are recorded hop by hop.
    pub detail: Detail,
    /// The failure point by which one of several ways with the same end is chosen for display.
    pub shown: Option<&'r FailurePoint>,
}

/// Sends requests to one target after the other, step by step.
pub trait TriesTargets {
    /// Asks a target once. Returns the requests that still wait and those that have an answer.
    fn attempt(&self, waiting: Vec<Waiting>, target: usize) -> (Vec<Waiting>, Vec<Exchange>);

    /// Returns the end of a request for which no target is left.
    fn give_up(&self, waiting: Waiting) -> Exchange;
}
