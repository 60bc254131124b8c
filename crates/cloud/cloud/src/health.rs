//! What the data plane knows about targets, and what it does not serve.

use std::fmt::Debug;
use std::net::SocketAddr;

use crate::unserved::Unserved;

/// The state of a target as a health check found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetState {
    /// It answers.
    Alive,
    /// It does not.
    Dead,
    /// Nothing is known yet.
    Unknown,
    /// Its health check is off.
    NotProbed,
}

impl TargetState {
    /// The state as the API has it.
    pub fn detail(self) -> &'static str {
        match self {
            Self::Alive => "Alive",
            Self::Dead => "Dead",
            Self::Unknown => "Unknown",
            Self::NotProbed => "Close",
        }
    }
}

/// A target of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HealthOf<'a> {
    /// The id of the load balancer.
    pub load_balancer: &'a str,
    /// The id of the listener.
    pub listener: &'a str,
    /// The id of the rule; `None` on layer 4.
    pub rule: Option<&'a str>,
    /// Where the target listens.
    pub address: SocketAddr,
}

/// Says how targets are.
pub trait HealthView: Debug + Send + Sync {
    /// The state of a target.
    fn state(&self, target: &HealthOf<'_>) -> TargetState;

    /// Why a load balancer is not served; `None` if it is, or if that is not known.
    fn unserved(&self, load_balancer: &str) -> Option<Unserved> {
        let _ = load_balancer;
        None
    }

    /// Why a listener of a load balancer is not served, or not as a whole; `None` as for
    /// [`Self::unserved`].
    fn unserved_listener(&self, load_balancer: &str, listener: &str) -> Option<Unserved> {
        let _ = (load_balancer, listener);
        None
    }

    /// Whether a listener of a load balancer is not served.
    fn has_unserved_listeners(&self, load_balancer: &str) -> bool {
        let _ = load_balancer;
        false
    }
}

/// The view without a data plane: nothing is known.
#[derive(Clone, Copy, Debug)]
pub struct NoDataPlane;

impl HealthView for NoDataPlane {
    fn state(&self, _: &HealthOf<'_>) -> TargetState {
        TargetState::Unknown
    }
}
