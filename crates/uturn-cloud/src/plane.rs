//! The data plane's configuration: what `uturn lb run` has to serve so that the load balancers of
//! all accounts work.

mod certificates;
mod listener;
mod probe;
mod rule;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use uturn_lb::config::{Config, Served};
use uturn_model::lb::Scope;
use uturn_model::{LoadBalancer as ServedBalancer, Text};

pub use self::certificates::CertificateFile;
use crate::inventory::Inventory;
use crate::state::{Account, Certificate, LoadBalancer, Place};

/// What the data plane has to serve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The load balancers.
    pub config: Config,
    /// The certificates that the configuration names.
    pub certificates: Vec<CertificateFile>,
    /// What cannot be served, and why.
    pub left_out: Vec<LeftOut>,
}

/// Something that the data plane does not serve, or not as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The id of the load balancer.
    pub load_balancer: String,
    /// The id of the listener.
    pub listener: String,
    /// Why.
    pub reason: String,
}

/// What a plan is made from, beside the accounts.
#[derive(Clone, Debug)]
pub struct Ground<'a> {
    /// Says where instances are.
    pub inventory: &'a Inventory,
    /// The folder that certificates are written to.
    pub certificates: PathBuf,
}

/// What the data plane has to serve for these accounts.
pub fn plan(accounts: &HashMap<Place, Account>, ground: &Ground<'_>) -> Plan {
    let mut places: Vec<(&Place, &Account)> = accounts.iter().collect();
    places.sort_by_key(|(place, _)| *place);
    let mut plan = Plan::default();
    for (place, account) in places {
        let shared = Place { account: place.account.clone(), region: String::new() };
        let certificates = accounts.get(&shared).map(|shared| &shared.certificates);
        let planner = Planner { place, certificates, ground };
        for load_balancer in account.load_balancers.values() {
            if !load_balancer.is_stopped {
                add(&mut plan, load_balancer, &planner);
            }
        }
    }
    plan.certificates.sort();
    plan.certificates.dedup();
    plan
}

/// What the listeners of one account are planned with.
#[derive(Clone, Copy, Debug)]
struct Planner<'a> {
    place: &'a Place,
    certificates: Option<&'a BTreeMap<String, Certificate>>,
    ground: &'a Ground<'a>,
}

fn add(plan: &mut Plan, load_balancer: &LoadBalancer, planner: &Planner<'_>) {
    for address in &load_balancer.addresses {
        let mut served = Served {
            load_balancer: ServedBalancer {
                name: Text::from(load_balancer.id.as_str()),
                vip: *address,
                scope: match load_balancer.is_public {
                    true => Scope::Public,
                    false => Scope::Private,
                },
                // The API knows groups by their ids alone; their rules belong to the network.
                security_groups: Vec::new(),
                listeners: Vec::new(),
            },
            listeners: Vec::new(),
            derived: true,
        };
        for listener in load_balancer.listeners.iter().filter(|listener| !listener.is_stopped) {
            let mut notes = Vec::new();
            let ports = listener.port..=listener.end_port.unwrap_or(listener.port);
            for port in ports {
                if let Some((model, settings)) =
                    planner.listener(load_balancer, listener, port, *address, &mut notes)
                {
                    plan.certificates.extend(planner.files_of(listener));
                    served.load_balancer.listeners.push(model);
                    served.listeners.push(settings);
                }
            }
            notes.sort();
            notes.dedup();
            plan.left_out.extend(notes.into_iter().map(|reason| LeftOut {
                load_balancer: load_balancer.id.clone(),
                listener: listener.id.clone(),
                reason,
            }));
        }
        plan.config.load_balancers.push(served);
    }
}
