//! Derives a whole cluster from objects: every gap is filled, and every assumption is listed.
//!
//! A value that follows from something written is *derived* and carries its reason. A value that
//! nothing states is *supposed*, and listed in [`Cluster::supposed`] with what would settle it.
//! Values that no object needs are not supposed: without load balancers, no cloud is supposed.

mod gaps;
mod ground;
mod nets;
mod populate;
mod serve;
mod unjudged;
mod unused_facts;

use std::collections::BTreeMap;

use uturn_document::Fault;
use uturn_model::cluster::Unread;
use uturn_model::{Assumption, AssumptionSubject, Cluster, Text};

use crate::decode::objects::Objects;

/// Derives a cluster from the decoded objects, in phases. Each makes a value of those before it,
/// and changes nothing of theirs.
///
/// # Errors
/// Returns a fault if more pods or endpoints than the limit would have to be made up.
pub(crate) fn cluster(mut objects: Objects) -> Result<Cluster, Fault> {
    let mut assumptions = Assumptions::of_input(&mut objects);
    let ground = ground::derive(&objects, &mut assumptions);
    let network_policies = ground::policies::all(&objects, &ground, &mut assumptions).into();
    let (population, ranges) = populate::complete(objects, &ground, &mut assumptions)?;
    let served = serve::derive(population, ranges, &ground, &mut assumptions)?;
    unused_facts::list(&served, &mut assumptions);
    let found = gaps::find(&served, &ground);
    let gaps = served.gaps.with(found);
    let mut objects = served.population.into_objects();
    let unjudged = gaps.settle(&mut objects.services.0, &mut objects.ingresses.0);
    Ok(Cluster {
        provider: ground.provider,
        skipped: objects.skipped(),
        nodes: objects.nodes.0,
        pods: objects.pods.0,
        workloads: objects.workloads.0,
        services: objects.services.0,
        endpoints: served.endpoints,
        ingresses: objects.ingresses.0,
        ingress_classes: objects.ingress_classes.0,
        controllers: served.controllers,
        listener_overrides: objects.listener_overrides.0,
        load_balancers: objects.facts.load_balancers,
        network: served.network,
        security_groups: objects.facts.security_groups,
        dns: served.dns,
        proxy: served.proxy,
        controller_switches: objects.controller_switches,
        balancer_arguments: served.balancer_arguments,
        announcements: served.announcements,
        mesh_gateways: objects.mesh_gateways.0.into_values().collect(),
        mesh_routes: objects.mesh_routes.0.into_values().collect(),
        network_policies,
        api_server_calls: objects.api_server_calls.0.into_values().collect(),
        volume_servers: objects.volume_servers.0.into_values().collect(),
        captures: BTreeMap::new(),
        extent: ground.extent,
        awaited: ground.coming.namespaces,
        unjudged,
        unread: objects.listing.unread,
        read_at: objects.listing.read_at,
        supposed: assumptions.into_sorted(),
    })
}

/// The assumptions made so far.
#[derive(Default)]
struct Assumptions(Vec<Assumption>);

impl Assumptions {
    /// Returns those of the input itself: odd texts, and objects that could not be read.
    fn of_input(objects: &mut Objects) -> Self {
        let mut assumptions = Self::default();
        for note in std::mem::take(&mut objects.notes) {
            let about = format!("{}: {}", note.origin, note.message);
            let about = AssumptionSubject::Input(about.into());
            assumptions.assume(about, note.assumed, note.because, note.settle);
        }
        for unread in Unread::grouped(&objects.listing.unread) {
            let settle = if unread.is_forbidden() {
                "uturn collect --rbac prints the rights that are needed"
            } else {
                "see whether kubectl can read it"
            };
            let because = format!("could not be read: {}", unread.why);
            let about = AssumptionSubject::Input(unread.what);
            assumptions.assume(about, unread.known, because, settle);
        }
        assumptions
    }

    fn assume(
        &mut self,
        about: impl Into<AssumptionSubject>,
        taken: impl Into<Text>,
        because: impl Into<Text>,
        settle: impl Into<Text>,
    ) {
        self.0.push(Assumption {
            subject: about.into(),
            assumed: taken.into(),
            because: because.into(),
            settle: settle.into(),
        });
    }

    fn into_sorted(mut self) -> Vec<Assumption> {
        self.0.sort();
        self.0.dedup();
        self.0
    }
}

/// Joins values for a message.
fn joined<T: ToString>(all: &[T]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
