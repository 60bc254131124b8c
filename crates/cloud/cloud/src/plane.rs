//! The data plane's configuration: the documents that `uturn lb run` serves for the load balancers
//! of all accounts.

mod certificates;
mod custom_config;
mod listener;
mod probe;
mod rule;

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use serde::Serialize;
use uturn_cloud_api::unserved::Unserved;
use uturn_lb::change::{BalancerKey, ListenerKey};
use uturn_lb::config::{BalancerConfig, Config};
use uturn_model::lb::{self, PathNormalization, Scope};
use uturn_model::{IpNet, LoadBalancer as ServedBalancer, Text};

pub use self::certificates::CertificateFile;
use crate::inventory::Inventory;
use crate::state::{Account, Certificate, Listener, LoadBalancer, Place};

/// A load balancer (`None`) or one of its listeners, by their ids.
pub type Part = (String, Option<String>);

/// The configuration of the data plane, and the parts of load balancers that are missing in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The configuration; its load balancers are ordered by age, the oldest first. A rule's Service
    /// has the id of its listener, and its owner has the id of the rule, or on layer 4 of the
    /// listener.
    pub config: Config,
    /// The certificates that the configuration names.
    pub certificates: Vec<CertificateFile>,
    /// Everything that cannot be served, and why.
    pub left_out: Vec<LeftOut>,
    /// Listeners whose port an older load balancer already has at the same address, with a message
    /// on it.
    pub conflicts: BTreeMap<Part, String>,
    /// Load balancers and listeners that are not served, or not with every rule.
    pub unserved: BTreeMap<Part, Unserved>,
    /// The ids of the listeners.
    pub listeners: BTreeMap<ListenerKey, String>,
}

/// Something that the data plane does not serve, or not as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LeftOut {
    /// The id of the load balancer.
    pub load_balancer: String,
    /// The id of the listener; `None` for the load balancer as a whole.
    pub listener: Option<String>,
    /// The reason.
    pub reason: String,
}

/// The input of a plan, beside the accounts.
#[derive(Clone, Copy, Debug)]
pub struct PlanContext<'a> {
    /// The inventory, which gives the addresses of instances.
    pub inventory: &'a Inventory,
    /// The range whose first address replaces clients' addresses; `None` for the cloud's own.
    pub snat_range: Option<IpNet>,
    /// The treatment of paths that have several forms.
    pub path_normalization: PathNormalization,
}

/// Returns the data plane's configuration for these accounts.
pub fn plan(accounts: &HashMap<Place, Account>, context: PlanContext<'_>) -> Plan {
    let mut all: Vec<(Planner<'_>, &LoadBalancer)> = Vec::new();
    for (place, account) in accounts {
        let shared = Place { account: place.account.clone(), region: String::new() };
        let certificates = accounts.get(&shared).map(|shared| &shared.certificates);
        let planner = Planner { place, account, certificates, context };
        let running = account.load_balancers.values().filter(|balancer| !balancer.is_stopped);
        all.extend(running.map(|balancer| (planner, balancer)));
    }
    all.sort_by_key(|(planner, balancer)| (balancer.created, planner.place, &balancer.id));
    let mut plan = Plan::default();
    let mut taken = HashMap::new();
    for (planner, load_balancer) in all {
        add(&mut plan, &mut taken, load_balancer, &planner);
    }
    plan.certificates.sort();
    plan.certificates.dedup();
    plan
}

/// The input for planning the listeners of one account.
#[derive(Clone, Copy, Debug)]
struct Planner<'a> {
    place: &'a Place,
    account: &'a Account,
    certificates: Option<&'a BTreeMap<String, Certificate>>,
    context: PlanContext<'a>,
}

/// The socket addresses that listeners have, each with a flag for UDP, and the load balancers that
/// have them.
type Taken<'a> = HashMap<(SocketAddr, bool), &'a str>;

fn add<'a>(
    plan: &mut Plan,
    taken: &mut Taken<'a>,
    load_balancer: &'a LoadBalancer,
    planner: &Planner<'_>,
) {
    let reasons = ignored(load_balancer).into_iter();
    plan.left_out.extend(reasons.map(|reason| LeftOut {
        load_balancer: load_balancer.id.clone(),
        listener: None,
        reason: reason.to_owned(),
    }));
    if load_balancer.addresses.is_empty() {
        plan.unserved.insert((load_balancer.id.clone(), None), Unserved::NoAddress);
    }
    for address in &load_balancer.addresses {
        let mut served = BalancerConfig {
            load_balancer: ServedBalancer {
                name: Text::from(load_balancer.id.as_str()),
                vip: *address,
                scope: if load_balancer.is_public { Scope::Public } else { Scope::Private },
                // The API only knows the ids of security groups; their rules belong to the network.
                zone: None,
                security_groups: Vec::new(),
                listeners: Vec::new(),
            },
            listeners: Vec::new(),
            derived: true,
        };
        for listener in load_balancer.listeners.iter().filter(|listener| !listener.is_stopped) {
            let mut notes = Vec::new();
            let ports = listener.port..=listener.end_port.unwrap_or(listener.port);
            let mut unserved = None;
            for port in ports {
                let address = SocketAddr::new(*address, port);
                let owner = *taken
                    .entry((address, listener.protocol.is_over_udp()))
                    .or_insert(&load_balancer.id);
                if owner != load_balancer.id {
                    let message = format!("{address} is another load balancer's already");
                    notes.push(message.clone());
                    let part = (load_balancer.id.clone(), Some(listener.id.clone()));
                    plan.conflicts.insert(part, message);
                    unserved = Some(Unserved::Conflict);
                    continue;
                }
                let planned = planner.listener(load_balancer, listener, address, &mut notes);
                unserved =
                    unserved.or(left_out(listener, planned.as_ref().map(|(model, _)| model)));
                if let Some((model, settings)) = planned {
                    plan.certificates.extend(planner.certificates(listener, &mut notes));
                    let authority = planner.authority(listener).ok().flatten();
                    plan.certificates.extend(authority.map(|(file, _)| file));
                    let key = ListenerKey {
                        balancer: BalancerKey::of(&served.load_balancer),
                        port: model.port,
                        transport: model.protocol.transport(),
                    };
                    plan.listeners.insert(key, listener.id.clone());
                    served.load_balancer.listeners.push(model);
                    served.listeners.push(settings);
                }
            }
            if let Some(why) = unserved {
                let key = (load_balancer.id.clone(), Some(listener.id.clone()));
                plan.unserved.insert(key, why);
            }
            notes.sort();
            notes.dedup();
            plan.left_out.extend(notes.into_iter().map(|reason| LeftOut {
                load_balancer: load_balancer.id.clone(),
                listener: Some(listener.id.clone()),
                reason,
            }));
        }
        if !served.listeners.is_empty() {
            plan.config.load_balancers.push(served);
        }
    }
}

/// Returns why a listener is not served, or not with all rules for all their domains.
fn left_out(listener: &Listener, planned: Option<&lb::Listener>) -> Option<Unserved> {
    let Some(planned) = planned else { return Some(Unserved::LeftOut) };
    let wanted: usize = listener.rules.iter().map(|rule| rule.domains.len()).sum();
    let is_whole = !listener.protocol.is_layer_7() || planned.rules.len() >= wanted;
    (!is_whole).then_some(Unserved::RuleLeftOut)
}

/// Returns the settings of a load balancer as a whole that the data plane does not apply, as
/// reasons.
fn ignored(load_balancer: &LoadBalancer) -> Vec<&'static str> {
    let mut reasons = Vec::new();
    if !load_balancer.security_groups.is_empty() {
        reasons.push("its security groups are not applied: only their ids are known");
    }
    if load_balancer.addresses.is_empty() {
        reasons.push("it has no address");
    }
    if !load_balancer.snat_addresses.is_empty() {
        reasons.push("its SNAT addresses are not used");
    }
    reasons
}
