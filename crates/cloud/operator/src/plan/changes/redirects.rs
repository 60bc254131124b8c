//! Redirects between rules.

use std::collections::BTreeMap;

use super::{Scene, Slot, Sorted};
use crate::clb::{ListenerKey, Redirect, RuleKey};
use crate::observed;
use crate::plan::call::{Call, NewRedirect};

/// Removes redirects that are not wanted, and those from and to deleted rules.
pub(super) fn removed(scene: &Scene<'_>, sorted: &Sorted<'_>) -> Vec<Call> {
    let mut removed = BTreeMap::new();
    for (key, found) in scene.found.iter().flat_map(|found| &found.listeners) {
        let slot = sorted.slots.get(key);
        if slot.is_none() && !sorted.doomed.contains_key(key) {
            continue;
        }
        let slot = slot.filter(|slot| slot.found.is_some());
        for (rule, (listener, location)) in &found.redirects {
            let stays =
                slot.is_some_and(|slot| slot.keeps(rule) || stays(sorted, slot, found, rule));
            let Some(id) = found.rules.get(rule).filter(|_| !stays) else { continue };
            let pair = (found.id.clone(), listener.clone());
            let rules: &mut Vec<_> = removed.entry(pair).or_default();
            rules.push((rule.clone(), id.clone(), location.clone()));
        }
    }
    let removed = removed.into_iter();
    removed.map(|((from, to), rules)| Call::RemoveRedirects { from, to, rules }).collect()
}

/// Returns whether an existing redirect is wanted, and both of its rules stay.
fn stays(sorted: &Sorted<'_>, slot: &Slot<'_>, found: &observed::Listener, rule: &RuleKey) -> bool {
    let there = found.listener.rules.get(rule).and_then(|rule| rule.redirect.as_ref());
    let wanted = wanted(slot, rule);
    let target_stays = wanted.is_some_and(|redirect| {
        let target = sorted.slots.get(&redirect.to.listener);
        target.is_some_and(|target| {
            target.wish.listener.rules.contains_key(&redirect.to.rule)
                && target.found.is_some_and(|found| found.rules.contains_key(&redirect.to.rule))
        })
    });
    wanted.is_some() && wanted == there && target_stays
}

fn wanted<'s>(slot: &'s Slot<'_>, rule: &RuleKey) -> Option<&'s Redirect> {
    slot.wish.listener.rules.get(rule)?.redirect.as_ref()
}

/// Creates the redirects that do not exist yet.
pub(super) fn created(sorted: &Sorted<'_>) -> Vec<Call> {
    let mut created: BTreeMap<(ListenerKey, ListenerKey, _), Vec<NewRedirect>> = BTreeMap::new();
    for slot in sorted.slots.values() {
        for (key, rule) in &slot.wish.listener.rules {
            let Some(redirect) = &rule.redirect else { continue };
            if slot.found.is_some_and(|found| stays(sorted, slot, found, key)) {
                continue;
            }
            let Some(target) = sorted.slots.get(&redirect.to.listener) else { continue };
            let namespace = slot.wish.namespace_of(Some(key));
            created.entry((slot.key, target.key, namespace)).or_default().push(NewRedirect {
                from: slot.rule(key),
                to: target.rule(&redirect.to.rule),
                code: redirect.code,
                keeps_url: redirect.keeps_url,
            });
        }
    }
    let listener = |key| sorted.slots.get(&key).map(Slot::listener);
    let calls = created.into_iter().filter_map(|((from, to, _), rules)| {
        Some(Call::Redirect { from: listener(from)?, to: listener(to)?, rules })
    });
    calls.collect()
}
