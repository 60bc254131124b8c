//! Rules and settings: kube-proxy's on the nodes ([`node`]), the load balancers' and the VPC's in
//! the fabric and at its edge ([`balancers`]). All are loaded with the real programs.

mod balancers;
mod captured;
mod edge;
mod groups;
mod handed;
pub(crate) mod layer_4;
mod node;
mod unserved;

pub(crate) use balancers::Site;
pub(crate) use groups::let_in_probe;
#[cfg(feature = "cluster")]
pub(crate) use groups::{Hooks, of_nodes as groups_of_nodes};
pub(crate) use node::program_node;
pub(crate) use unserved::UNSERVED_PORTS;

use crate::linux::kernel::tables::{restore, restore_more};
