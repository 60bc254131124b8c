//! The load balancers of a cluster. Each rule has all its targets, which in a large cluster take
//! gigabytes together, so a load balancer is made in full when it is first asked for.

use std::net::IpAddr;
use std::sync::OnceLock;

use uturn_clouds::controller;
use uturn_model::{Cluster, LoadBalancer};

use crate::outline::outline_of_listeners;

/// All load balancers without targets, and for each a place for the whole one.
type Outlines = (Vec<LoadBalancer>, Vec<OnceLock<Option<LoadBalancer>>>);

/// The load balancers of a cluster, in the order of their addresses.
#[derive(Default)]
pub(super) struct Balancers {
    outlines: OnceLock<Outlines>,
    all: OnceLock<Vec<LoadBalancer>>,
}

impl Balancers {
    /// Keeps load balancers that are made already.
    pub(super) fn of(all: Vec<LoadBalancer>) -> Self {
        Self { outlines: OnceLock::new(), all: OnceLock::from(all) }
    }

    /// Returns all load balancers in full.
    pub(super) fn all(&self, cluster: &Cluster) -> &[LoadBalancer] {
        self.all.get_or_init(|| controller::load_balancers(cluster))
    }

    /// Returns all load balancers, whose targets may be missing.
    pub(super) fn listeners(&self, cluster: &Cluster) -> &[LoadBalancer] {
        match self.all.get() {
            Some(all) => all,
            None => &self.outlines(cluster).0,
        }
    }

    /// Returns the load balancer at an address.
    pub(super) fn at(&self, cluster: &Cluster, vip: IpAddr) -> Option<&LoadBalancer> {
        let place = |all: &[LoadBalancer]| all.binary_search_by_key(&vip, |own| own.vip).ok();
        if let Some(all) = self.all.get() {
            return all.get(place(all)?);
        }
        let (listeners, whole) = self.outlines(cluster);
        let whole = whole.get(place(listeners)?)?;
        whole.get_or_init(|| controller::load_balancer(cluster, vip)).as_ref()
    }

    fn outlines(&self, cluster: &Cluster) -> &Outlines {
        self.outlines.get_or_init(|| {
            let all = controller::listeners(cluster, &outline_of_listeners(cluster));
            let whole = all.iter().map(|_| OnceLock::new()).collect();
            (all, whole)
        })
    }
}
