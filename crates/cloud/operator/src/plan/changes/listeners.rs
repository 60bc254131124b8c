//! The calls for listeners, domains and rules.

use std::collections::{BTreeMap, BTreeSet};

use super::{MAX_DELETED, MAX_RULES, Scene, Slot, Sorted};
use crate::clb::{DomainSettings, Rule, RuleKey};
use crate::observed;
use crate::plan::call::{Call, NewRule};

/// Deletes listeners, and rules of listeners that stay.
pub(super) fn deleted(sorted: &Sorted<'_>) -> Vec<Call> {
    let listeners: Vec<_> =
        sorted.doomed.iter().map(|(key, found)| (*key, found.id.clone())).collect();
    let listeners = listeners.chunks(MAX_DELETED).map(|some| Call::DeleteListeners(some.to_vec()));
    let mut calls: Vec<Call> = listeners.collect();
    for slot in sorted.slots.values() {
        let Some(found) = slot.found else { continue };
        let rules = found.rules.iter();
        let rules: Vec<_> = rules
            .filter(|(key, _)| !slot.wish.listener.rules.contains_key(key) && !slot.keeps(key))
            .map(|(key, id)| (key.clone(), id.clone()))
            .collect();
        calls.extend(
            rules
                .chunks(MAX_RULES)
                .map(|some| Call::DeleteRules { listener: found.id.clone(), rules: some.to_vec() }),
        );
    }
    calls
}

/// Changes a listener that stays, its domains and its rules.
pub(super) fn changed(scene: &Scene<'_>, slot: &Slot<'_>) -> Vec<Call> {
    let Some(found) = slot.found else { return Vec::new() };
    let (wanted, there) = (&slot.wish.listener, &found.listener);
    let mut calls = Vec::new();
    let settings = wanted.settings.difference(&there.settings);
    let turns_sni_on = wanted.sni && !there.sni;
    let certificate = wanted
        .certificate
        .clone()
        .filter(|_| !slot.has_sni() && wanted.certificate != there.certificate);
    if !settings.is_empty() || certificate.is_some() || turns_sni_on {
        calls.push(Call::ModifyListener {
            id: found.id.clone(),
            key: slot.key,
            settings: Box::new(settings),
            certificate,
            turns_sni_on,
        });
    }
    calls.extend(changed_domains(scene, slot, found));
    for (key, rule) in &wanted.rules {
        let (Some(id), Some(there)) = (found.rules.get(key), there.rules.get(key)) else {
            continue;
        };
        let settings = rule.settings.difference(&there.settings);
        if !settings.is_empty() {
            calls.push(Call::ModifyRule {
                listener: found.id.clone(),
                id: id.clone(),
                key: key.clone(),
                settings: Box::new(settings),
            });
        }
    }
    calls
}

/// Changes the domains that have a rule that stays. Domains of new rules are set when the rule is
/// created.
fn changed_domains(scene: &Scene<'_>, slot: &Slot<'_>, found: &observed::Listener) -> Vec<Call> {
    let (wanted, there) = (&slot.wish.listener, &found.listener);
    let stays: BTreeSet<&str> = wanted
        .rules
        .keys()
        .filter(|key| found.rules.contains_key(key))
        .map(|key| key.domain.as_str())
        .collect();
    let mut calls = Vec::new();
    for (domain, settings) in
        wanted.domains.iter().filter(|(domain, _)| stays.contains(domain.as_str()))
    {
        let mut now = there.domains.get(domain).cloned().unwrap_or_default();
        if !there.sni {
            // When SNI is turned on, every domain gets this certificate.
            now.certificate.clone_from(&there.certificate);
        }
        let settings = settings.difference(&now, slot.has_sni());
        if !settings.is_empty() {
            let address = || {
                let balancer = scene.found?;
                let address = balancer.addresses.first().map(ToString::to_string);
                address.or_else(|| balancer.domain.clone())
            };
            let domain =
                if domain.is_empty() { address().unwrap_or_default() } else { domain.clone() };
            calls.push(Call::ModifyDomain { listener: found.id.clone(), domain, settings });
        }
    }
    calls
}

/// Creates a listener unless it exists, and its missing rules.
pub(super) fn created(slot: &Slot<'_>) -> Vec<Call> {
    let wanted = &slot.wish.listener;
    let mut calls = Vec::new();
    if slot.found.is_none() {
        calls.push(Call::CreateListener {
            key: slot.key,
            protocol: wanted.protocol,
            settings: Box::new(wanted.settings.clone()),
            certificate: wanted.certificate.clone().filter(|_| !wanted.sni),
            sni: wanted.sni,
        });
    }
    let is_new = |key: &RuleKey| slot.found.is_none_or(|found| !found.rules.contains_key(key));
    let mut of_namespaces: BTreeMap<_, Vec<NewRule>> = BTreeMap::new();
    for (key, rule) in wanted.rules.iter().filter(|(key, _)| is_new(key)) {
        let own = of_namespaces.entry(slot.wish.namespace_of(Some(key))).or_default();
        own.push(new_rule(slot, key, rule));
    }
    for rules in of_namespaces.into_values() {
        calls.extend(
            rules
                .chunks(MAX_RULES)
                .map(|some| Call::CreateRules { listener: slot.listener(), rules: some.to_vec() }),
        );
    }
    calls
}

fn new_rule(slot: &Slot<'_>, key: &RuleKey, rule: &Rule) -> NewRule {
    let domain = slot.wish.listener.domains.get(&key.domain).cloned().unwrap_or_default();
    let certificate = domain.certificate.filter(|_| slot.has_sni());
    NewRule {
        key: key.clone(),
        settings: rule.settings.clone(),
        domain: DomainSettings { certificate, ..domain },
    }
}
