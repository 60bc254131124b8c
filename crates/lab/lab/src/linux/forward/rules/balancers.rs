//! Configures the kernels of the fabric and the edge: the load balancers' addresses, the steering
//! of packets to the load balancer process, layer 4, security groups and public addresses.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

use uturn_lb::steer;
use uturn_model::lb::Scope;
use uturn_model::{Cluster, Family, LoadBalancer};

use super::{edge, groups, handed, layer_4, restore_more, unserved};
use crate::LabError;
use crate::linux::build::handover::{self, Nodes};
use crate::linux::build::links::everything;
use crate::linux::build::public;
use crate::linux::forward::call_counters::{self, Call};
use crate::linux::forward::health::TargetHealths;
use crate::linux::forward::layer_4::{Layer4, is_in_kernel};
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::netlink::{Index, Netlink};
use crate::linux::kernel::system::During;

/// A namespace with load balancers, and the configuration of its kernel.
#[derive(Debug)]
pub(crate) struct Site {
    scope: Scope,
    /// The load balancers in the namespace, with their source addresses.
    pub(crate) balancers: Vec<LoadBalancer>,
    /// The program that sets up layer 4.
    pub(crate) layer_4: Layer4,
    /// The calls that are counted in the namespace.
    pub(crate) calls: BTreeSet<Call>,
    /// The nodes that packets are forwarded to.
    pub(crate) nodes: Nodes,
}

impl Site {
    pub(crate) fn new(
        scope: Scope,
        all: &[LoadBalancer],
        calls: BTreeSet<Call>,
        nodes: Nodes,
        space: &Namespace,
    ) -> Result<Self, LabError> {
        let here = all.iter().filter(|lb| lb.scope == scope);
        let balancers: Vec<LoadBalancer> = here.map(public::with_own_sources).collect();
        let layer_4 = Layer4::of(space, &balancers)?;
        Ok(Self { scope, balancers, layer_4, calls, nodes })
    }

    pub(crate) fn scope(&self) -> Scope {
        self.scope
    }

    /// Binds the load balancers' addresses, steers their packets to the load balancer process, and
    /// loads all rules. `public` has the public load balancers if the VPC has an edge.
    pub(crate) fn program(
        &self,
        space: &Namespace,
        cluster: &Cluster,
        public: Option<&[LoadBalancer]>,
    ) -> Result<(), LabError> {
        let doing = "set up the load balancers";
        space.run(|| self.bind()).during(doing)?;
        let vips = self.balancers.iter().map(|lb| lb.vip);
        let nodes = cluster.nodes.values().flat_map(|node| &node.internal_ips).copied();
        let addresses: Vec<IpAddr> = vips.chain(nodes).collect();
        for family in Family::BOTH {
            let Some(address) = addresses.iter().find(|ip| Family::of(**ip) == family) else {
                continue;
            };
            let everything = everything(*address);
            space
                .run(|| {
                    let mut netlink = Netlink::open()?;
                    netlink.add_local_table(everything, steer::TABLE)?;
                    netlink.add_mark_rule(everything, steer::MARK, steer::TABLE)
                })
                .during(doing)?;
            let text = self.rules(cluster, family, public);
            restore_more(space, family, &text, doing)?;
        }
        Ok(())
    }

    /// Reloads the layer 4 rules for the current health of targets, if the lab's rules forward
    /// layer 4.
    pub(crate) fn program_layer_4(
        &self,
        space: &Namespace,
        healths: &TargetHealths,
    ) -> Result<(), LabError> {
        let doing = "set up layer 4";
        if self.layer_4 == Layer4::Process {
            return Ok(());
        }
        for family in Family::BOTH {
            let is_served = |lb: &LoadBalancer| {
                Family::of(lb.vip) == family && lb.listeners.iter().any(is_in_kernel)
            };
            if self.balancers.iter().any(is_served) {
                let text = self.layer_4(family, healths);
                restore_more(space, family, &text, doing)?;
            }
        }
        Ok(())
    }

    fn rules(&self, cluster: &Cluster, family: Family, public: Option<&[LoadBalancer]>) -> String {
        let mut text = steer::rules() + &call_counters::rules(&self.calls, family);
        text += "*mangle\n";
        if self.scope == Scope::Private {
            let of_nodes = groups::of_nodes(cluster, family, groups::Hooks::BUILT_IN);
            text += &of_nodes;
            text += &groups::let_in_replaced(cluster, &self.balancers, family, &of_nodes);
            if let Some(public) = public {
                text += &edge::way_back();
                text += &edge::bandwidth(cluster, &self.balancers, public, family);
            }
        }
        text += &groups::of_balancers(cluster, &self.balancers, family);
        text += &groups::of_allowed_sources(&self.balancers, family);
        text += &unserved::ports(cluster, &self.balancers, family);
        text += "COMMIT\n";
        if self.scope == Scope::Private {
            text += &handed::in_fabric(cluster, &self.balancers, public, family);
        }
        text += &match self.scope {
            Scope::Private if public.is_some() => edge::translation(cluster, family),
            Scope::Private | Scope::Public => String::new(),
        };
        if self.layer_4 == Layer4::Rules {
            text += layer_4::ENTRY;
            if handover::is_needed(&self.balancers, None) {
                text += &handed::entry();
            }
            text += &self.layer_4(family, &TargetHealths::default());
        }
        text
    }

    fn layer_4(&self, family: Family, healths: &TargetHealths) -> String {
        let callers = self.calls.iter().map(|(source, _)| *source).collect();
        layer_4::text(&self.balancers, family, healths, &callers, &self.nodes)
    }

    fn bind(&self) -> io::Result<()> {
        let vips = self.balancers.iter().map(|lb| lb.vip);
        let mut addresses: Vec<IpAddr> = vips.chain(edge::own_sources(&self.balancers)).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let mut netlink = Netlink::open()?;
        addresses.into_iter().try_for_each(|ip| netlink.add_address(Index::LOOPBACK, ip.into()))
    }
}
