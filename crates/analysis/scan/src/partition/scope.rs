//! The objects that a packet towards a target can meet: a few Services of ten thousand.
//!
//! A rule of kube-proxy belongs to one Service and matches an address or a node port of it. So only
//! the rules of Services matter that have the called address, own a node port that is called on the
//! way, or are behind the load balancer's rule for the request.

mod kept;
mod listeners;
mod met;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;

use uturn_clouds::controller;
use uturn_model::lb::{Layer, Listener, LoadBalancer, LoadBalancerFact, Rule};
use uturn_model::{Ingress, ObjectKind, ObjectRef, Service};
use uturn_netfilter::IpProtocol;
use uturn_path::{Request, ResolvedTarget};

use self::kept::{with_only, with_places};
pub(crate) use self::listeners::Listeners;
pub(crate) use self::met::{KnownMet, Met};
use crate::inventory::Inventory;

/// The request to a target.
#[derive(Clone, Debug)]
pub(crate) struct TargetRequest {
    pub(crate) to: SocketAddr,
    pub(crate) protocol: IpProtocol,
    pub(crate) request: Request,
}

impl TargetRequest {
    /// Returns the request as a destination that is resolved already.
    pub(crate) fn target(&self) -> ResolvedTarget {
        ResolvedTarget::at(self.to, self.request.clone())
    }
}

/// The objects that a target's packets can meet.
#[derive(Clone)]
pub(crate) struct Scope<'a> {
    pub(crate) asked: TargetRequest,
    /// The part that several targets share, mostly the ports of a Service.
    pub(crate) met: Arc<Met<'a>>,
    /// The load balancer at the called address.
    pub(crate) balancer: Option<Arc<LoadBalancer>>,
    /// The load balancer's place among those that Facts state, if no Service owns the called
    /// listener.
    pub(crate) stated: Option<usize>,
    /// The places of the called listener, and of the rule for the request.
    listener: Option<(usize, Option<usize>)>,
    /// The Ingresses that own this listener, with no rule but the one for the request.
    pub(crate) ingresses: Vec<Ingress>,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(
        inventory: &Inventory<'a>,
        listeners: &Listeners,
        known: &KnownMet<'a>,
        asked: TargetRequest,
    ) -> Self {
        let balancer = listeners.balancers.get(&asked.to.ip()).cloned();
        let listener = balancer.as_ref().and_then(|balancer| {
            let place = balancer.listeners.iter().position(|listener| {
                listener.port.number() == asked.to.port()
                    && IpProtocol::from(listener.protocol.transport()) == asked.protocol
            })?;
            Some((place, listeners.rule_for(balancer, place, &asked)))
        });
        let is_stated = |fact: &LoadBalancerFact| {
            fact.vip == asked.to.ip()
                && fact.own_listeners().any(|(own, _)| own.port.number() == asked.to.port())
        };
        let stated = inventory.cluster.load_balancers.iter().position(is_stated);
        let (met, ingresses) = (Arc::default(), Vec::new());
        let mut scope = Self { asked, met, balancer, stated, listener, ingresses };
        scope.met = scope.find_met(inventory, listeners, known);
        scope.find_ingresses(inventory, listeners);
        scope
    }

    /// Returns whether a load balancer that no Service owns tries one target after the other.
    pub(crate) fn tries_nodes_again(&self) -> bool {
        let asked = self.listener().filter(|_| self.stated.is_some());
        asked.is_some_and(|(listener, _)| listener.protocol.layer() == Layer::L7)
    }

    /// Returns the Service behind a load balancer that tries one target after the other.
    pub(crate) fn tries_again(&self) -> Option<&'a Service> {
        let (listener, rule) = self.listener()?;
        let name = &rule?.service;
        let is_tried = listener.protocol.layer() == Layer::L7;
        self.services.iter().copied().find(|service| is_tried && service.name == *name)
    }

    /// Returns the called listener, and the rule for the request.
    fn listener(&self) -> Option<(&Listener, Option<&Rule>)> {
        let (listener, rule) = self.listener?;
        let listener = self.balancer.as_ref()?.listeners.get(listener)?;
        Some((listener, rule.and_then(|rule| listener.rules.get(rule))))
    }

    /// Returns the rule for the request; if it is a redirect, all rules of the load balancer.
    fn rules_met(&self) -> impl Iterator<Item = &Rule> {
        let rule = self.listener().and_then(|(_, rule)| rule);
        let is_redirected = rule.is_some_and(|rule| rule.redirect.is_some());
        let balancer = self.balancer.as_ref().filter(|_| is_redirected);
        let others = balancer.into_iter().flat_map(|balancer| &balancer.listeners);
        rule.into_iter().chain(others.flat_map(|listener| &listener.rules))
    }

    /// Finds the Ingresses that matter: the first with the address decides which clients reach the
    /// load balancer, the first that listens there decides how, and another may own the rule.
    fn find_ingresses(&mut self, inventory: &Inventory<'a>, listeners: &Listeners) {
        let at = inventory.ingresses_at.get(&self.asked.to.ip());
        let served =
            |ingress: &&&Ingress| controller::is_served_by_cloud(inventory.cluster, ingress);
        let listens = |ingress: &&&Ingress| listeners.listens(&ingress.name, self.asked.to.port());
        let all = || at.into_iter().flatten().filter(served);
        // A load balancer that is not judged prevents all calls of the address from being judged.
        let open = at.into_iter().flatten().find(|ingress| ingress.is_open());
        let rule = self.listener().and_then(|(_, rule)| rule);
        let owns = |ingress: &Ingress| rule.is_some_and(|rule| rule.owner == ingress.object());
        let owner = all().find(|ingress| owns(ingress));
        let mut wanted: Vec<&Ingress> = Vec::new();
        let redirected = all().filter(|_| rule.is_some_and(|rule| rule.redirect.is_some()));
        let usual = all().next().into_iter().chain(all().find(listens)).chain(owner);
        // An address of a node may be the source of packets that the node masquerades: answers go
        // there.
        let taken = &inventory.ingresses_everywhere;
        for ingress in usual.chain(redirected).chain(open).chain(taken) {
            if wanted.iter().all(|known| known.name != ingress.name) {
                wanted.push(ingress);
            }
        }
        wanted.sort_by(|a, b| a.name.cmp(&b.name));
        let stripped = wanted.into_iter().map(|ingress| match rule {
            // Any rule may be for the destination of a redirect.
            Some(rule) if rule.redirect.is_some() => ingress.clone(),
            rule => with_only(ingress, rule.filter(|_| owns(ingress))),
        });
        self.ingresses = stripped.collect();
        let mut met: BTreeMap<&ObjectRef, BTreeSet<Option<(usize, usize)>>> = BTreeMap::new();
        for ((owner, place), ..) in &self.met.controller_rules {
            met.entry(owner).or_default().insert(*place);
        }
        for (owner, places) in met {
            let name = owner.namespaced_name().filter(|_| owner.kind == ObjectKind::Ingress);
            if let Some(name) = name {
                let ingress = inventory.cluster.ingresses.get(&name);
                self.ingresses.extend(ingress.map(|ingress| with_places(ingress, &places)));
                continue;
            }
            // A route is represented by one Ingress for each of its Gateways, with the same rules.
            let own = inventory.routes.get(owner).into_iter().flatten();
            self.ingresses.extend(own.map(|ingress| with_places(ingress, &places)));
        }
    }
}

impl<'a> Deref for Scope<'a> {
    type Target = Met<'a>;

    fn deref(&self) -> &Met<'a> {
        &self.met
    }
}

impl Scope<'_> {
    /// Returns whether the load balancer serves only targets of one zone at the called address.
    pub(crate) fn has_zone(&self) -> bool {
        self.balancer.as_ref().is_some_and(|balancer| balancer.zone.is_some())
    }
}
