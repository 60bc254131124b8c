//! The order of chains by jumps: each chain comes after those that lead to it.

/// The rank of each node of a graph without loops: every link leads to a higher one.
pub(super) fn ranks(links: &[Vec<usize>]) -> Box<[u32]> {
    let mut left: Vec<usize> = Vec::with_capacity(links.len());
    let mut seen = vec![false; links.len()];
    for start in 0..links.len() {
        if seen[start] {
            continue;
        }
        seen[start] = true;
        // The path from `start`: each node with the number of its next link.
        let mut way = vec![(start, 0)];
        while let Some((node, next)) = way.last_mut() {
            let Some(to) = links[*node].get(*next).copied() else {
                left.push(*node);
                way.pop();
                continue;
            };
            *next += 1;
            if !seen[to] {
                seen[to] = true;
                way.push((to, 0));
            }
        }
    }
    let mut ranks = vec![0; links.len()];
    for (rank, node) in left.into_iter().rev().enumerate() {
        ranks[node] = rank as u32;
    }
    ranks.into()
}

/// Whether there is more than one way to a node of a graph without loops, by its ranks: a packet may come by
/// such a chain more than once.
pub(super) fn more_than_one_way(links: &[Vec<usize>], ranks: &[u32]) -> Box<[bool]> {
    let mut nodes: Vec<usize> = (0..links.len()).collect();
    nodes.sort_by_key(|node| ranks[*node]);
    let mut ways = vec![0_u8; links.len()];
    for node in nodes {
        // A packet enters at a node to which no link leads.
        let own = ways[node].clamp(1, 2);
        for to in &links[node] {
            ways[*to] = (ways[*to] + own).min(2);
        }
    }
    ways.into_iter().map(|ways| ways > 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_counted() {
        // 0 leads to 1 twice and to 2; 1 to 3; 2 to 4.
        let links = [vec![1, 1, 2], vec![3], vec![4], vec![], vec![]];
        let more = more_than_one_way(&links, &ranks(&links));
        assert_eq!(*more, [false, true, false, true, false]);
    }

    #[test]
    fn a_chain_ranks_after_all_that_lead_to_it() {
        for seed in 0..200 {
            let mut dice = uturn_dice::Dice::new(seed);
            let count = 1 + dice.below(12);
            // Links lead from a node to one with a lower number, so that there is no loop.
            let links: Vec<Vec<usize>> = (0..count)
                .map(|node| {
                    (0..dice.below(4))
                        .filter(|_| node > 0)
                        .map(|_| dice.below(node.max(1)))
                        .collect()
                })
                .collect();
            let ranks = ranks(&links);
            for (node, to) in links
                .iter()
                .enumerate()
                .flat_map(|(node, all)| all.iter().map(move |to| (node, to)))
            {
                assert!(ranks[node] < ranks[*to], "seed {seed}: {links:?} {ranks:?}");
            }
        }
    }
}
