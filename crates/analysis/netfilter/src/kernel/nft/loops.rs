//! Finds chains that jump back to themselves.

use super::lookup::Lookup;
use super::value::{Op, Verdict};
use super::{Chain, Rules};
use crate::LoadError;
use crate::nft::Ruleset;

#[derive(Clone, Copy, PartialEq)]
enum Seen {
    Not,
    OnTheWay,
    Done,
}

/// A jump: the node that it leads to, and the rule that contains it. Nodes are chains first, then
/// sets.
type Link = (usize, usize);

/// Reports every loop with the names of its chains.
pub(super) fn find_loops(rules: &Rules, ruleset: &Ruleset, errors: &mut Vec<LoadError>) {
    let chains = rules.chains.len();
    let links = all_links(rules);
    let mut seen = vec![Seen::Not; links.len()];
    for start in 0..chains {
        if seen[start] != Seen::Not {
            continue;
        }
        let mut way: Vec<(usize, usize)> = vec![(start, 0)];
        seen[start] = Seen::OnTheWay;
        while let Some((node, next)) = way.last_mut() {
            let Some((to, _)) = links[*node].get(*next).copied() else {
                seen[*node] = Seen::Done;
                way.pop();
                continue;
            };
            *next += 1;
            match seen[to] {
                Seen::Not => {
                    seen[to] = Seen::OnTheWay;
                    way.push((to, 0));
                }
                Seen::OnTheWay => errors.push(found(rules, ruleset, &links, &way, to)),
                Seen::Done => {}
            }
        }
    }
}

/// The chains and sets that each chain leads to, and then the chains that each set does.
pub(super) fn linked(rules: &Rules) -> Vec<Vec<usize>> {
    let to = |links: Vec<Link>| links.into_iter().map(|(to, _)| to).collect();
    all_links(rules).into_iter().map(to).collect()
}

fn all_links(rules: &Rules) -> Vec<Vec<Link>> {
    let chains = rules.chains.iter().map(|chain| links_of(chain, rules.chains.len()));
    let of_set = |lookup: &Lookup| lookup.jump_targets().map(|to| (to, 0)).collect();
    chains.chain(rules.lookups.iter().map(of_set)).collect()
}

fn links_of(chain: &Chain, chains: usize) -> Vec<Link> {
    let mut links = Vec::new();
    for (at, rule) in chain.rules.iter().enumerate() {
        links.extend(rule.ops.iter().filter_map(|op| match op {
            Op::Verdict(Verdict::Jump(to) | Verdict::Goto(to)) => Some((*to, at)),
            Op::Vmap { map, .. } => Some((chains + map, at)),
            _ => None,
        }));
    }
    links
}

fn found(
    rules: &Rules,
    ruleset: &Ruleset,
    links: &[Vec<Link>],
    way: &[(usize, usize)],
    to: usize,
) -> LoadError {
    let chain_of = |at: usize| {
        let chain = &rules.chains[at];
        let table = &ruleset.tables[chain.table];
        (table, &table.chains[chain.at])
    };
    let from = way.iter().position(|(node, _)| *node == to).unwrap_or(0);
    let round = &way[from..];
    let is_chain = |node: &usize| *node < rules.chains.len();
    let mut names: Vec<&str> = round
        .iter()
        .map(|(node, _)| *node)
        .filter(is_chain)
        .map(|at| &*chain_of(at).1.name)
        .collect();
    names.extend(names.first().copied());
    // The last chain on the path contains the rule that closes the loop.
    let last = round.iter().rev().find(|(node, _)| is_chain(node)).copied().unwrap_or((to, 1));
    let (table, chain) = chain_of(last.0);
    let rule = links[last.0].get(last.1.saturating_sub(1)).map_or(0, |(_, rule)| *rule);
    let origin = chain.rules.get(rule).map_or(&chain.origin, |rule| &rule.origin);
    let message =
        format!("a loop of chains in table {} {}: {}", table.family, table.name, names.join(" → "));
    LoadError::at(origin.clone(), message)
}
