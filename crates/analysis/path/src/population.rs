//! How many objects a walked object represents: by default each node, pod and target only itself.
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

/// How many objects each object of the walked cluster represents, and what that cluster lacks.
pub trait Population {
    /// How many targets of a load balancer this target represents. A target that represents
    /// none is never asked.
    fn targets(&self, target: &Target) -> u32 {
        let _ = target;
        1
    }

    /// How many endpoints the endpoint at this address represents, where rules pick one of
    /// several. Returns `None` if it represents only itself.
    fn endpoints(&self, address: IpAddr) -> Option<f64> {
        let _ = address;
        None
    }

    /// How many endpoints the endpoint at this address represents for a program on a node that dials
    /// any of them as likely as any other.
    fn dialled(&self, from: Option<&Name>, address: IpAddr) -> f64 {
        let _ = (from, address);
        1.0
    }

    /// Whether everything that packets may reach is in the cluster.
    fn is_whole(&self) -> bool {
        true
    }

    /// Whether the cluster lacks something that has an address and port. Asked only where it
    /// is not whole.
    fn lacks_destination(&self, to: SocketAddr, known: KnownDestination) -> bool {
        let _ = (to, known);
        false
    }

    /// Whether an address is that of an endpoint which the cluster lacks. Asked only where it
    /// is not whole.
    fn lacks_endpoint(&self, address: IpAddr) -> bool {
        let _ = address;
        false
    }

    /// Whether the cluster lacks a process in a node's network that listens on a port. Asked
    /// only where it is not whole and no such process is known.
    fn lacks_process(&self, node: &Name, port: u16) -> bool {
        let _ = (node, port);
        false
    }

    /// How requests end that go from target to target. Returns `None` if each is followed from
    /// target to target.
    fn failover(&self) -> Option<&dyn Failover> {
        None
    }
}

/// What the cluster that is walked knows of an address.
#[derive(Clone, Copy, Debug)]
pub struct KnownDestination {
    /// Whether a node or a pod has it.
    pub is_host: bool,
    /// Whether a load balancer has it.
    pub is_balancer: bool,
}

/// Each node, pod and target represents only itself, and the cluster lacks none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Individuals;

impl Population for Individuals {}

/// How asking each target ended, by its place in the rule; empty for one that was not asked.
pub type Results = Rc<[Vec<Exchange>]>;

/// How requests end that a load balancer passes from target to target, where a target represents
/// many.
pub trait Failover {
    /// What asking each target gives, for a client and a listener as the load balancer sees
    /// them. `ask` asks them; where that was done before, it need not be called.
    ///
    /// # Errors
    /// Returns the error of `ask`.
    fn results(
        &self,
        seen: Leg,
        ask: &mut dyn FnMut() -> Result<Results, WalkError>,
    ) -> Result<Results, WalkError>;

    /// The ways in which a request ends after all its attempts.
    ///
    /// # Errors
    /// Returns [`WalkError::NeedsWhole`] if each target has to be asked.
    fn exchanges(
        &self,
        request: &FailoverRequest<'_>,
        tries: &dyn TriesTargets,
    ) -> Result<Vec<Exchange>, WalkError>;

    /// Takes note of how the answers reached the client, which sent this share of its requests
    /// here.
    fn note_answers(&self, sent: Share, answers: &[Exchange]);
}

/// A request that a load balancer takes from target to target.
pub struct FailoverRequest<'r> {
    /// The rule that it is served by.
    pub rule: &'r Rule,
    /// The targets that may be asked, by their places in the rule.
    pub candidates: &'r [usize],
    /// How asking each target ended.
    pub results: &'r [Vec<Exchange>],
    /// The request before any target was asked.
    pub start: Exchange,
    /// How long the client had waited already.
    pub begun: Duration,
    /// How long a target is waited for.
    pub timeout: Duration,
    /// Whether the next target is asked when one fails.
    pub next_target: bool,
    /// Which routes are recorded hop by hop.
    pub detail: Detail,
    /// Of ways that end alike, one that fails at this point is shown.
    pub shown: Option<&'r FailurePoint>,
}

/// Takes requests to one target after the other, step by step.
pub trait TriesTargets {
    /// Asks a target once: which requests still wait, and which have an answer.
    fn attempt(&self, waiting: Vec<Waiting>, target: usize) -> (Vec<Waiting>, Vec<Exchange>);

    /// The end of a request for which no target is left.
    fn give_up(&self, waiting: Waiting) -> Exchange;
}
