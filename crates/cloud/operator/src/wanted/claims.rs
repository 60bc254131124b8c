//! The user's load balancers: decides which of the objects that name one may use it, and which
//! object owns each port and each rule.
//!
//! An object that owns a port keeps it. Among other objects the time of creation decides, then the
//! UID; names do not count, since the author of an object chooses its name.

use std::collections::{BTreeMap, BTreeSet};

use uturn_model::{Name, NamespacedName, ObjectKind, ObjectRef};

use super::{Balancer, Maker, OwnerNote, Place, Wish, balancer};
use crate::clb::{BalancerSettings, Listener, ListenerKey, RuleKey};
use crate::event::Event;
use crate::ledger::{Held, Holder, Record};

/// The code, of this project, for an object whose namespace may not use the load balancer that it
/// names.
pub const DENIED: &str = "E9002";

/// The wanted state of an object for a load balancer that it names.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The object.
    pub note: OwnerNote,
    /// The object's settings of the whole load balancer.
    pub settings: BalancerSettings,
    /// The object's listeners.
    pub listeners: BTreeMap<ListenerKey, Wish>,
    /// Whether the object is an Ingress that shares its listeners with others.
    pub is_grouped: bool,
}

impl Claim {
    /// Returns the object in the form of records.
    pub fn holder(&self) -> Holder {
        self.note.holder()
    }

    fn namespace(&self) -> &str {
        self.note.object.namespace.as_ref().map(Name::as_str).unwrap_or_default()
    }
}

impl Maker<'_> {
    /// Divides a load balancer among the objects that name it, which are ordered by age. Objects
    /// that may not use it are left as they are. Returns `None` if no object may use it.
    pub(super) fn divide(
        &mut self,
        id: &str,
        claims: &[Claim],
        untouched: &mut BTreeSet<String>,
    ) -> Option<Balancer> {
        let none = Record::default();
        let ledger = &self.environment.ledger;
        let record = ledger.of(id).unwrap_or(&none);
        let allowed = self.allowed(id, record, claims, untouched);
        let first = allowed.first()?;
        let owner = record.owner.as_ref();
        let recorded =
            owner.and_then(|owner| allowed.iter().find(|claim| claim.note.uid == owner.uid));
        let decides = match (recorded, owner) {
            (None, Some(owner)) if untouched.contains(&owner.uid) => None,
            (recorded, _) => Some(recorded.unwrap_or(first)),
        };
        let settings = decides.map(|claim| claim.settings.clone()).unwrap_or_default();
        let settings_of = decides.map(|claim| claim.holder());
        let is_left = |holder: &Holder| untouched.contains(&holder.uid);
        let keys: BTreeSet<ListenerKey> =
            allowed.iter().flat_map(|claim| claim.listeners.keys().copied()).collect();
        let mut listeners = BTreeMap::new();
        for key in keys {
            let held = record.listeners.get(&key);
            let mut wanting: Vec<&Claim> = allowed
                .iter()
                .copied()
                .filter(|claim| claim.listeners.contains_key(&key))
                .collect();
            let position = held.and_then(|held| {
                wanting.iter().position(|claim| claim.note.uid == held.holder.uid)
            });
            match (held, position) {
                (_, Some(position)) => {
                    let holder = wanting.remove(position);
                    wanting.insert(0, holder);
                }
                (Some(held), None) if is_left(&held.holder) => {
                    let wish = self.beside(key, held, &wanting);
                    listeners.extend(wish.map(|wish| (key, wish)));
                    continue;
                }
                _ => {}
            }
            listeners.extend(self.share(key, held, &wanting).map(|wish| (key, wish)));
        }
        let owners = allowed.iter().map(|claim| claim.note.clone()).collect();
        let place = Place::Existing(id.to_owned());
        Some(Balancer { owners, place, settings, settings_of, listeners })
    }

    /// Returns the objects that may use a load balancer: those of the namespaces that an entry
    /// allows or, without an entry, those of the namespace that uses it already.
    fn allowed<'c>(
        &mut self,
        id: &str,
        record: &Record,
        claims: &'c [Claim],
        untouched: &mut BTreeSet<String>,
    ) -> Vec<&'c Claim> {
        let is_here = |holder: &&Holder| {
            untouched.contains(&holder.uid)
                || claims.iter().any(|claim| claim.note.uid == holder.uid)
        };
        let of_listeners = record.listeners.values().map(|held| &held.holder);
        let user = record.owner.iter().chain(of_listeners).find(is_here);
        let home = match user {
            Some(holder) => holder.object.namespace.as_ref().map(Name::as_str),
            None => claims.first().map(Claim::namespace),
        };
        let home = home.unwrap_or_default().to_owned();
        let mut allowed = Vec::new();
        for claim in claims {
            let namespace = claim.namespace();
            let entry = self.environment.shares.allows(id, namespace);
            if entry.unwrap_or(namespace == home) {
                allowed.push(claim);
                continue;
            }
            let why = if entry.is_some() {
                "only other namespaces may use"
            } else {
                "objects of another namespace use"
            };
            let message = format!(
                "{why} {id}: nothing is changed; the operator's option \
                 --share-load-balancer {id}=NAMESPACE,... says who may use it"
            );
            self.events.push(Event::new(&claim.note.object, DENIED, message));
            untouched.insert(claim.note.uid.clone());
        }
        allowed
    }

    /// Returns a listener that several objects want. The first of them owns it; only Ingresses of a
    /// group share it.
    fn share(&mut self, key: ListenerKey, held: Option<&Held>, wanting: &[&Claim]) -> Option<Wish> {
        let (first, others) = wanting.split_first()?;
        let wish = first.listeners.get(&key)?;
        let owner = &first.note.object;
        let mut sharing = vec![*first];
        for other in others {
            let fault = match other.listeners.get(&key) {
                Some(more) if first.is_grouped && other.is_grouped => {
                    self.cannot_share(&wish.listener, more, owner)
                }
                _ => Some(format!("the port {key} is used by {owner}")),
            };
            match fault {
                None => sharing.push(*other),
                Some(message) => self.refuse(other, message),
            }
        }
        let mut wish = wish.clone();
        add_rules(&mut wish, key, held, &sharing);
        Some(wish)
    }

    /// Returns why an Ingress cannot add rules to another one's listener.
    fn cannot_share(&self, there: &Listener, more: &Wish, owner: &ObjectRef) -> Option<String> {
        if there.protocol != more.listener.protocol {
            return Some(format!("{owner} has a listener for {} there", there.protocol));
        }
        // Turning SNI on would change the certificates of the other Ingress's hosts.
        (more.listener.sni && !there.sni && owner.namespace != more.owner.namespace)
            .then(|| format!("the listener of {owner} has no certificates for single hosts"))
    }

    /// Returns the rules that Ingresses of the group add to a listener whose owner is left as it
    /// is.
    fn beside(&mut self, key: ListenerKey, held: &Held, wanting: &[&Claim]) -> Option<Wish> {
        let owner = &held.holder.object;
        let may_share = self.may_be_grouped(owner);
        let (sharing, others): (Vec<_>, Vec<_>) =
            wanting.iter().partition(|claim| claim.is_grouped && may_share);
        for other in others {
            self.refuse(other, format!("the port {key} is used by {owner}"));
        }
        let protocol = sharing.first()?.listeners.get(&key)?.listener.protocol;
        let mut wish = Wish {
            owner: owner.clone(),
            listener: Listener::new(protocol),
            is_blocked: true,
            is_kept: true,
            rules_of: BTreeMap::new(),
        };
        add_rules(&mut wish, key, Some(held), &sharing);
        Some(wish)
    }

    /// Returns whether an object may be an Ingress of a group. This is assumed of an Ingress that
    /// cannot be read.
    fn may_be_grouped(&self, object: &ObjectRef) -> bool {
        let name = object.namespaced_name();
        let ingress = name.and_then(|name: NamespacedName| self.cluster.ingresses.get(&name));
        object.kind == ObjectKind::Ingress && ingress.is_none_or(balancer::is_grouped)
    }

    fn refuse(&mut self, claim: &Claim, message: String) {
        let code = if claim.note.is_ingress { "E4101" } else { "E4014" };
        self.events.push(Event::new(&claim.note.object, code, message));
    }
}

/// Adds the rules of all objects that share a listener to it. The owner of a rule keeps it;
/// otherwise the first object gets it. The settings of a domain come from the first object that has
/// a rule for it.
fn add_rules(wish: &mut Wish, key: ListenerKey, held: Option<&Held>, sharing: &[&Claim]) {
    if sharing.is_empty() {
        return;
    }
    let of = |claim: &&Claim| claim.listeners.get(&key).map(|wish| wish.listener.clone());
    let all: Vec<(&Claim, Listener)> =
        sharing.iter().filter_map(|claim| Some((*claim, of(claim)?))).collect();
    let rules: BTreeSet<&RuleKey> =
        all.iter().flat_map(|(_, listener)| listener.rules.keys()).collect();
    let has = |rule: &RuleKey, uid: Option<&str>| {
        all.iter().position(|(claim, listener)| {
            listener.rules.contains_key(rule) && uid.is_none_or(|uid| claim.note.uid == uid)
        })
    };
    let mut merged = BTreeMap::new();
    // The object whose settings a domain gets: those that own one of its rules already come first.
    let mut domains: BTreeMap<String, (bool, usize)> = BTreeMap::new();
    for rule in rules {
        let recorded = held.and_then(|held| held.rules.get(rule));
        let recorded = recorded.and_then(|holder| has(rule, Some(&holder.uid)));
        let Some(position) = recorded.or_else(|| has(rule, None)) else { continue };
        let Some((claim, listener)) = all.get(position) else { continue };
        merged.extend(listener.rules.get(rule).map(|found| (rule.clone(), found.clone())));
        let is_holder = held.is_some_and(|held| held.holder.uid == claim.note.uid);
        let rank = (recorded.is_none() && !is_holder, position);
        let domain = domains.entry(rule.domain.clone()).or_insert(rank);
        *domain = rank.min(*domain);
        if claim.note.object != wish.owner {
            wish.rules_of.insert(rule.clone(), claim.note.object.clone());
        }
    }
    let settings = |(domain, rank): (String, (bool, usize))| {
        let (_, listener) = all.get(rank.1)?;
        Some((domain.clone(), rank, listener.domains.get(&domain)?.clone()))
    };
    let mut domains: Vec<_> = domains.into_iter().filter_map(settings).collect();
    // A listener has only one default domain.
    domains.sort_by_key(|(_, rank, _)| *rank);
    let mut has_default = wish.is_kept;
    for (_, _, settings) in &mut domains {
        settings.is_default = settings.is_default.filter(|_| !has_default);
        has_default |= settings.is_default.is_some();
    }
    wish.listener.rules = merged;
    wish.listener.domains =
        domains.into_iter().map(|(domain, _, settings)| (domain, settings)).collect();
    if !wish.is_kept {
        wish.listener.sni |= all.iter().any(|(_, listener)| listener.sni);
        let first = all.into_iter().find_map(|(_, listener)| listener.certificate);
        wish.listener.certificate = wish.listener.certificate.take().or(first);
    }
}
