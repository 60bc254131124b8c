//! Flows that depend on a load balancer which is not modelled.

use std::net::{IpAddr, SocketAddr};

use uturn_clouds::controller::{self, BalancerCall};
use uturn_lb::rules::is_for_host;
use uturn_model::{Destination, Evidence, Flow, Ingress};

use super::UnjudgedReason;
use crate::engine::Engine;
use crate::packet::Request;
use crate::unmodelled::{Unmodelled, unmodelled};

impl<'a> Engine<'a> {
    /// Returns why calls of this address cannot be judged, if an unmodelled load balancer has it.
    /// Returns `None` for the address of a node: the node's rules decide there.
    pub(crate) fn unjudged_balancer(&self, at: IpAddr) -> Option<UnjudgedReason> {
        if self.node_at(at).is_some() {
            return None;
        }
        let by_name = || {
            let names = self.cluster.dns.outside.iter().filter(|(_, ip)| *ip == at);
            names.map(|(name, _)| name).find_map(|name| self.unjudged_host(name))
        };
        self.find_balancer(|balancer| balancer.entries.iter().any(|entry| entry.ip == Some(at)))
            .or_else(by_name)
    }

    /// Returns the unmodelled controller that may listen on a node's own address, if no process is
    /// known to: one whose Ingresses have that address.
    pub(crate) fn unjudged_on_node(&self, at: SocketAddr) -> Option<UnjudgedReason> {
        let is_web = matches!(at.port(), 80 | 443);
        self.find_balancer(|balancer| {
            let has_it = balancer.entries.iter().any(|entry| entry.ip == Some(at.ip()));
            is_web && balancer.service.is_none() && has_it
        })
    }

    /// Returns why a flow whose destination has no address to call cannot be judged.
    pub(crate) fn unjudged_call(&self, flow: &Flow) -> Option<UnjudgedReason> {
        if let Some(BalancerCall::WithoutAddress(service)) =
            BalancerCall::of(self.cluster, &flow.from, &flow.to)
        {
            let unknown = service.unjudged.iter().find(|unknown| unknown.is_of_balancer())?;
            return Some(UnjudgedReason::of(&service.object(), &service.origin, unknown));
        }
        match &flow.to {
            Destination::Url { host, .. } | Destination::Host(host, _) => {
                self.find_balancer(|balancer| balancer.is_called(host))
            }
            Destination::Ingress { name, .. } => {
                let ingress = self.cluster.ingresses.get(name)?;
                let unknown = ingress.unjudged.iter().find(|unknown| unknown.is_of_balancer())?;
                Some(UnjudgedReason::of(&ingress.object(), &ingress.origin, unknown))
            }
            Destination::Service(..) | Destination::Address(_) | Destination::Pod(..) => None,
        }
    }

    /// Returns the load balancer behind a host if it is not modelled and has no known address: the
    /// host is its own name, or that of an object that it serves.
    pub(crate) fn unjudged_host(&self, host: &str) -> Option<UnjudgedReason> {
        self.find_balancer(|balancer| balancer.is_called(host) || balancer.serves_by_name(host))
    }

    /// Returns why a call cannot be judged that leaves the cluster for the address of a name which
    /// an Ingress of the cluster serves: the host there may lead back.
    pub(crate) fn unjudged_outside(&self, request: &Request, to: IpAddr) -> Option<UnjudgedReason> {
        let (host, _) = request.named.as_ref().filter(|(_, address)| *address == to)?;
        let serves = |ingress: &&Ingress| {
            let mut hosts = ingress.rules.iter().filter_map(|rule| rule.host.as_deref());
            hosts.any(|own| is_for_host(own, host))
        };
        let ingress = self.cluster.ingresses.values().find(serves)?;
        // A cloud's load balancer that has only a name may have this address: it serves the host
        // with connections of its own.
        let is_named = ingress.load_balancer.iter().all(|entry| entry.ip.is_none());
        if is_named && controller::is_served_by_cloud(self.cluster, ingress) {
            return None;
        }
        let why = format!(
            "{} serves {host}, and what has the address {to} is not given",
            ingress.object()
        );
        Some(UnjudgedReason::not_given(
            why,
            Evidence::object(ingress.object(), ingress.origin.clone()),
        ))
    }

    /// Returns the first load balancer that is not modelled and for which `is_it` holds.
    fn find_balancer(&self, is_it: impl Fn(&Unmodelled<'a>) -> bool) -> Option<UnjudgedReason> {
        let found = unmodelled(self.cluster).find(|balancer| is_it(balancer))?;
        Some(UnjudgedReason::of(&found.object, found.origin, found.unknown))
    }
}
