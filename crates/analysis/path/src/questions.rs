//! The questions that an engine answers, each by the module that is about it.

use std::net::SocketAddr;

use uturn_clouds::cloud::PageCheck;
use uturn_dns::RewrittenName;
use uturn_model::lb::{Listener, Rule};
use uturn_model::service::ServicePort;
use uturn_model::{Destination, FailurePoint, Flow, Port, Protocol, Service, Verdict};

use crate::engine::Engine;
use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::exchange::health::{self, Health};
use crate::exchange::{uncertain_behaviour, undeclared};
use crate::resolve::misled::{self, Misled};
use crate::resolve::{self, ResolvedTarget};
use crate::{unjudged, verdict, what_if};

impl<'a> Engine<'a> {
    /// Returns the verdict of a flow under the assumptions about what is not known.
    ///
    /// # Errors
    /// Returns an error if the flow cannot be walked.
    pub fn verdict(&self, flow: &Flow) -> Result<Verdict, WalkError> {
        self.verdict_showing(flow, None)
    }

    /// Returns the same verdict. Of ways with the same end, one that fails at this point is shown.
    ///
    /// # Errors
    /// Returns an error if the flow cannot be walked.
    pub fn verdict_showing(
        &self,
        flow: &Flow,
        point: Option<&FailurePoint>,
    ) -> Result<Verdict, WalkError> {
        verdict::of_flow(&self.walk_whole().showing(point), flow)
    }

    /// Walks a flow once for each case of what is not known and matters. Returns one verdict for
    /// each case.
    ///
    /// # Errors
    /// Returns an error if the flow cannot be walked in one of the cases.
    pub fn cases(&self, flow: &Flow) -> Result<Vec<Verdict>, WalkError> {
        what_if::cases(self, flow)
    }

    /// Returns a verdict for each case of what rules that are not modelled do, for the cluster as
    /// it is assumed. Cases with equal results are merged.
    ///
    /// # Errors
    /// Returns an error if the flow cannot be walked in one of the cases.
    pub fn rule_cases(&self, flow: &Flow) -> Result<Vec<Verdict>, WalkError> {
        what_if::rule_cases(self, flow)
    }

    /// Resolves the destination of a flow for its client; of a workload, for its first pod.
    ///
    /// # Errors
    /// Returns an error if there is no such client or destination, or if it has no address.
    pub fn resolve(&self, flow: &Flow) -> Result<ResolvedTarget, WalkError> {
        resolve::of_flow(self, flow)
    }

    /// Returns what the name that a flow calls leads to, if that is not the object with this name.
    ///
    /// # Errors
    /// Returns an error if there is no such client.
    pub fn misled(&self, flow: &Flow) -> Result<Option<Misled>, WalkError> {
        misled::of_flow(self, flow)
    }

    /// Returns names that CoreDNS's Corefile rewrites, as far as it is given: for each rule the name
    /// that it is for, one of these hosts, or a name that it makes the name of a Service of.
    pub fn rewritten_names(&self, hosts: &[String], services: &[String]) -> Vec<RewrittenName> {
        self.names().rewritten(hosts, services)
    }

    /// Resolves a destination for a client outside the cluster.
    ///
    /// # Errors
    /// Returns an error if there is no such destination, or if it has no address.
    pub fn resolve_outside(&self, to: &Destination) -> Result<ResolvedTarget, WalkError> {
        resolve::from_outside(self, to)
    }

    /// Returns the results of a listener's health checks, target by target. Returns `None` if no
    /// load balancer listens there.
    ///
    /// # Errors
    /// Returns an error if a probe reaches a node whose rules cannot be walked.
    pub fn health(
        &self,
        listener: SocketAddr,
        protocol: Protocol,
    ) -> Result<Option<Vec<Health>>, WalkError> {
        health::at_listener(&self.walk_whole(), listener, protocol)
    }

    /// Returns whether calls that a load balancer's rule serves can be judged.
    pub fn is_judged(&self, rule: &Rule) -> bool {
        unjudged::behind(self.cluster, rule).is_none()
    }

    /// Returns the page that health checks of a listener ask for, if the Service does not name it.
    pub fn page_check(&self, listener: &Listener) -> Option<PageCheck> {
        uncertain_behaviour::page_check(self.cluster, listener)
    }

    /// Returns the ports of a headless Service at which no pod listens, each with the port where
    /// its pods listen.
    pub fn dead_ports(&self, service: &'a Service) -> Vec<(&'a ServicePort, Port)> {
        undeclared::dead_ports(self, service)
    }
}

impl Walk<'_, '_> {
    /// Returns the verdict of a flow whose destination is resolved already.
    ///
    /// # Errors
    /// Returns an error if the flow cannot be walked, and [`WalkError::NeedsWhole`] if the
    /// population does not know enough to walk it.
    pub fn verdict_at(&self, flow: &Flow, target: &ResolvedTarget) -> Result<Verdict, WalkError> {
        verdict::of_target(self, flow, target)
    }
}
