//! What the cloud holds and what the prediction says, in a form in which they are compared.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};

use uturn_cloud::inventory::Inventory;
use uturn_cloud::plane;
use uturn_cloud::state::{Account, Place};
use uturn_lb::pattern::from_wildcard;
use uturn_model::LoadBalancer;
use uturn_model::ingress::PathKind;
use uturn_model::lb::{Layer, ListenerProtocol, PathNormalization, Profile, Rule};
use uturn_operator::clb::ListenerKey;
use uturn_operator::wanted::key_of;

/// A listener in the form in which it is compared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Held {
    protocol: ListenerProtocol,
    /// The behaviour; none where there is nothing to behave.
    profile: Option<Profile>,
    rules: BTreeMap<String, HeldRule>,
}

#[derive(Clone, Debug, PartialEq)]
struct HeldRule {
    targets: BTreeSet<(SocketAddr, u32)>,
    redirect: Option<(u16, String)>,
}

/// Listeners by the address of the load balancer and their key.
pub(crate) type All = BTreeMap<(IpAddr, ListenerKey), Held>;

/// What the data plane serves for the accounts.
pub(crate) fn served(accounts: &HashMap<Place, Account>) -> All {
    let context = plane::PlanContext {
        inventory: &Inventory::Open,
        snat_range: None,
        // As the prediction has the cloud.
        path_normalization: PathNormalization::Off,
    };
    let plan = plane::plan(accounts, context);
    let balancers = plan.config.load_balancers.into_iter().map(|served| served.load_balancer);
    of(&balancers.collect::<Vec<_>>())
}

/// Load balancers in the form in which they are compared.
pub(crate) fn of(balancers: &[LoadBalancer]) -> All {
    let mut all = All::new();
    for balancer in balancers {
        for listener in &balancer.listeners {
            let key = ListenerKey::new(listener.port.number(), listener.protocol);
            let mut rules = BTreeMap::new();
            for rule in &listener.rules {
                let (name, rule) = held(rule, balancer.vip, listener.protocol);
                rules.entry(name).or_insert(rule);
            }
            let has_profile = listener.protocol.layer() == Layer::L4 || !rules.is_empty();
            let held = Held {
                protocol: listener.protocol,
                profile: has_profile.then(|| listener.profile.clone()),
                rules,
            };
            all.insert((balancer.vip, key), held);
        }
    }
    all
}

fn held(rule: &Rule, vip: IpAddr, protocol: ListenerProtocol) -> (String, HeldRule) {
    let targets = rule.targets.iter().map(|target| (target.address, target.weight)).collect();
    if protocol.layer() == Layer::L4 {
        return (String::new(), HeldRule { targets, redirect: None });
    }
    let mut key = key_of(rule);
    if key.domain.is_empty() {
        key.domain = vip.to_string();
    }
    // What is served states a domain with a star as a pattern.
    if let Some(pattern) = from_wildcard(&key.domain) {
        key.domain = pattern;
    }
    // The cloud names the host of the rule that it redirects to.
    let path = rule.path.as_ref().map_or("/", |(path, _)| path);
    let redirect = rule.redirect.as_ref().map(|to| (to.code, to.location(&key.domain, path)));
    assert!(
        rule.path.as_ref().is_none_or(|(_, kind)| *kind != PathKind::Exact)
            || key.url.starts_with('=')
    );
    (key.to_string(), HeldRule { targets, redirect })
}
