//! The data plane's view of targets, and of the parts that it does not serve.

use std::fmt::Debug;
use std::net::SocketAddr;

use uturn_cloud_api::unserved::Unserved;

/// The result of a target's health check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetState {
    /// The target passes its health check.
    Alive,
    /// The target fails its health check.
    Dead,
    /// Not known yet.
    Unknown,
    /// The health check is off.
    NotProbed,
}

impl TargetState {
    /// Returns the API's name of the state.
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
    /// The address at which the target listens.
    pub address: SocketAddr,
}

/// Source of the health of targets.
pub trait HealthView: Debug + Send + Sync {
    /// Returns the state of a target.
    fn state(&self, target: &HealthOf<'_>) -> TargetState;

    /// Returns why a load balancer is not served; `None` if it is, or if that is not known.
    fn unserved(&self, load_balancer: &str) -> Option<Unserved> {
        let _ = load_balancer;
        None
    }

    /// Returns why a listener of a load balancer is not served, or not as a whole; `None` as for
    /// [`Self::unserved`].
    fn unserved_listener(&self, load_balancer: &str, listener: &str) -> Option<Unserved> {
        let _ = (load_balancer, listener);
        None
    }

    /// Returns whether any listener of a load balancer is not served.
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
