//! The state of IPVS that a walk keeps from hook to hook.

use std::rc::Rc;

use crate::connection::{Connection, Scheduled};

/// The progress of a packet through IPVS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct IpvsState {
    /// IPVS has handled the packet: no further IPVS hook considers it.
    pub(super) done: bool,
    /// The real server that this branch of the walk picks.
    pub(super) pick: Option<usize>,
    /// The scheduled request.
    pub(super) request: Option<Rc<Scheduled>>,
    /// The connection that only IPVS records, and conntrack does not.
    pub(super) untracked: Option<Rc<Connection>>,
}
