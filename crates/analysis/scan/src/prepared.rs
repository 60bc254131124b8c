//! State that is computed once for all targets of a scan.

use std::net::IpAddr;
use std::sync::Arc;

use uturn_model::network::NetworkMode;
use uturn_model::{Destination, Protocol, ProxyMode};
use uturn_netfilter::IpProtocol;
use uturn_path::{Engine, WalkError, outline_of_listeners};

use crate::clients::ClientNames;
use crate::distinguish::captured_nodes::CapturedNodes;
use crate::distinguish::discriminators::{Discriminators, is_even};
use crate::inventory::Inventory;
use crate::parallel::side_by_side;
use crate::partition::scope::{KnownMet, Listeners, Scope, TargetRequest};
use crate::partition::target_classes::{Classifier, Granularity};

/// State that is computed once for all targets of a scan.
pub(crate) struct PreparedScan<'a> {
    pub(crate) classifier: Classifier<'a>,
    listeners: Listeners,
    /// The Services that packets towards targets can meet, cached for targets that share them.
    met: KnownMet<'a>,
    pub(crate) client_names: Arc<ClientNames>,
}

impl<'a> PreparedScan<'a> {
    /// Prepares a scan of an engine's cluster.
    ///
    /// # Errors
    /// Returns an error if the rules of a captured node cannot be read.
    pub(crate) fn new(engine: &Engine<'a>) -> Result<Self, WalkError> {
        let cluster = engine.cluster();
        let CapturedNodes { unlike, plain } = CapturedNodes::of(engine)?;
        let mut discriminators = Discriminators::new(cluster, &unlike, &plain);
        let mut inventory = None;
        let listeners = side_by_side(
            |hand_out| {
                hand_out(cluster);
                inventory = Some(Inventory::new(cluster, unlike, plain, &mut discriminators));
            },
            |cluster| Listeners::new(cluster, &outline_of_listeners(cluster)),
        );
        let listeners = listeners.into_iter().next().expect("handed out above");
        let inventory = inventory.expect("made while it was handed out");
        let client_names = Arc::new(ClientNames::of(&inventory));
        let classifier = Classifier::new(inventory, discriminators);
        Ok(Self { classifier, listeners, met: KnownMet::default(), client_names })
    }

    /// Returns the scope of a target: what packets towards it can meet.
    ///
    /// # Errors
    /// Returns an error if the target does not exist or has no address.
    pub(crate) fn scope(
        &self,
        engine: &Engine<'a>,
        (to, protocol): (&Destination, Protocol),
    ) -> Result<Scope<'a>, WalkError> {
        let resolved = engine.resolve_outside(to)?;
        let Some(to) = resolved.addresses().first().copied() else {
            return Err(WalkError::Later(format!("{to} has no address")));
        };
        let protocol = IpProtocol::from(protocol);
        let asked = TargetRequest { to, protocol, request: resolved.request().clone() };
        Ok(Scope::new(&self.classifier.inventory, &self.listeners, &self.met, asked))
    }

    /// Drops the caches that targets share, except what distinguishes each target.
    pub(crate) fn forget(&mut self) {
        self.classifier.forget();
        self.met.forget();
    }

    /// Returns the granularity that a target needs, as far as that is known beforehand.
    pub(crate) fn granularity(&self, scope: &Scope<'a>) -> Granularity {
        let (inventory, discriminators) =
            (&self.classifier.inventory, &self.classifier.discriminators);
        let proxy = &inventory.cluster.proxy;
        let scheduler = &*proxy.ipvs_scheduler;
        let is_even =
            proxy.mode.value != ProxyMode::Ipvs || scheduler.is_empty() || is_even(scheduler);
        let are_distinguished = discriminators.are_blind
            || scope.is_tangled
            || scope.meets_controller
            || scope.tries_nodes_again()
            || discriminators.are_uneven
            || !is_even
            || self.takes_any_source(scope.asked.to.ip());
        // A pod to which a port of its node leads is not equal to any other on the node.
        let forwarded = &inventory.forwarded;
        let is_forwarded = scope.ports.iter().any(|port| forwarded.contains_key(port));
        if is_forwarded || (are_distinguished && inventory.has_captures()) {
            // Captured rules may lead to endpoints of any Service: which pods are endpoints is not
            // known.
            Granularity::EveryPod
        } else if are_distinguished {
            Granularity::EveryNode
        } else {
            Granularity::Classes
        }
    }

    /// Returns whether the whole cluster has to be walked instead of a reduced one.
    pub(crate) fn walks_whole(&self, scope: &Scope<'a>, granularity: Granularity) -> bool {
        let are_distinguished = granularity != Granularity::Classes;
        (are_distinguished && self.classifier.inventory.has_captures())
            || self.takes_any_source(scope.asked.to.ip())
    }

    /// Returns whether packets that a node sends under its own address may get that of any Service:
    /// if the interface by which they leave has no address, IPv6 uses the one nearest to the
    /// destination, and IPVS binds all Services' addresses.
    fn takes_any_source(&self, to: IpAddr) -> bool {
        let cluster = self.classifier.inventory.cluster;
        to.is_ipv6()
            && cluster.proxy.mode.value == ProxyMode::Ipvs
            && cluster.network.mode.value == NetworkMode::VpcCni
    }
}
