//! Assigns the calls of a plan to objects. On a load balancer that several objects use, a failed
//! call stops only the calls for the same object.

use std::collections::{BTreeMap, BTreeSet};

use uturn_model::ObjectRef;

use super::call::{Binding, Call};
use crate::clb::{ListenerKey, RuleKey};
use crate::observed;
use crate::wanted::{self, Wish};

/// Returns the objects that each call is for; an empty list if all are for a single object. A call
/// that removes parts that no object wants any more is for none.
pub(super) fn of(
    calls: &[Call],
    wanted: &wanted::Balancer,
    found: Option<&observed::Balancer>,
) -> Vec<BTreeSet<ObjectRef>> {
    if wanted.owners.len() < 2 {
        return Vec::new();
    }
    let there = found.into_iter().flat_map(|found| &found.listeners);
    let keys = there.map(|(key, there)| (there.id.as_str(), *key)).collect();
    let holders = Holders { wanted, keys };
    calls.iter().map(|call| holders.of(call)).collect()
}

/// The owners of the parts of a load balancer.
struct Holders<'w> {
    wanted: &'w wanted::Balancer,
    /// The keys of the existing listeners, by their ids.
    keys: BTreeMap<&'w str, ListenerKey>,
}

impl<'w> Holders<'w> {
    fn of(&self, call: &Call) -> BTreeSet<ObjectRef> {
        match call {
            Call::CreateBalancer(_) | Call::DeleteBalancer => {
                self.wanted.owners.iter().map(|owner| owner.object.clone()).collect()
            }
            Call::ModifyBalancer(_) | Call::SetSecurityGroups(_) | Call::CreateSnatAddresses(_) => {
                self.wanted.settings_of.iter().map(|holder| holder.object.clone()).collect()
            }
            // Without the listener none of its rules can be created, so that the call is for all
            // owners.
            Call::CreateListener { key, .. } => {
                let wish = self.wish(*key).into_iter();
                let all = wish
                    .flat_map(|wish| std::iter::once(&wish.owner).chain(wish.rules_of.values()));
                all.cloned().collect()
            }
            Call::ModifyListener { key, .. } => {
                self.wish(*key).map(|wish| wish.owner.clone()).into_iter().collect()
            }
            Call::DeleteListeners(listeners) => {
                let wishes = listeners.iter().filter_map(|(key, _)| self.wish(*key));
                wishes.map(|wish| wish.owner.clone()).collect()
            }
            Call::CreateRules { listener, rules } => {
                self.of_rules(listener.key, rules.iter().map(|rule| &rule.key))
            }
            Call::ModifyRule { listener, key, .. } => self.of_rules_of(listener, [key].into_iter()),
            Call::ModifyDomain { listener, domain, .. } => self.of_domain(listener, domain),
            Call::DeleteRules { listener, rules } => {
                self.of_rules_of(listener, rules.iter().map(|(rule, _)| rule))
            }
            Call::Redirect { from, rules, .. } => {
                self.of_rules(from.key, rules.iter().map(|rule| &rule.from.key))
            }
            Call::RemoveRedirects { from, rules, .. } => {
                self.of_rules_of(from, rules.iter().map(|(rule, ..)| rule))
            }
            Call::Register(bindings) | Call::Weigh(bindings) | Call::Deregister(bindings) => {
                bindings.iter().filter_map(|binding| self.of_binding(binding)).cloned().collect()
            }
        }
    }

    fn wish(&self, key: ListenerKey) -> Option<&'w Wish> {
        self.wanted.listeners.get(&key)
    }

    fn of_binding(&self, binding: &Binding) -> Option<&'w ObjectRef> {
        let wish = self.wish(binding.listener.key)?;
        Some(binding.rule.as_ref().map_or(&wish.owner, |rule| wish.owner_of(&rule.key)))
    }

    /// Returns the objects that own rules of a listener, among the wanted ones.
    fn of_rules<'r>(
        &self,
        listener: ListenerKey,
        rules: impl Iterator<Item = &'r RuleKey>,
    ) -> BTreeSet<ObjectRef> {
        let Some(wish) = self.wish(listener) else { return BTreeSet::new() };
        let wanted = rules.filter(|rule| wish.listener.rules.contains_key(rule));
        wanted.map(|rule| wish.owner_of(rule).clone()).collect()
    }

    /// Returns the same as [`Self::of_rules`], for the listener with an id.
    fn of_rules_of<'r>(
        &self,
        listener: &str,
        rules: impl Iterator<Item = &'r RuleKey>,
    ) -> BTreeSet<ObjectRef> {
        self.keys.get(listener).map(|key| self.of_rules(*key, rules)).unwrap_or_default()
    }

    /// Returns the objects that own rules of a domain. For the empty domain, the API has an
    /// address.
    fn of_domain(&self, listener: &str, domain: &str) -> BTreeSet<ObjectRef> {
        let Some(key) = self.keys.get(listener) else { return BTreeSet::new() };
        let Some(wish) = self.wish(*key) else { return BTreeSet::new() };
        let is_named = wish.listener.domains.contains_key(domain);
        let domain = if is_named { domain } else { "" };
        self.of_rules(*key, wish.listener.rules.keys().filter(|rule| rule.domain == domain))
    }
}
