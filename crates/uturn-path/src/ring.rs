//! The targets of a load balancer as they stand in line, where a few were asked for all.
//!
//! What a small cluster's targets say is said of all that are like them: of those on other
//! nodes, and of those on the client's own, which are asked by themselves. So every target
//! in line has a kind, but for the few at the client's own place. Clients of which these few
//! and what surrounds them are the same end alike.

use std::collections::HashMap;
use std::rc::Rc;

use crate::odds::{Kind, NEGLIGIBLE, Odds, Run};

/// Nobody is asked there.
const NOBODY: u32 = u32::MAX;
/// Parts of what a client is told apart by.
const PART: u32 = u32::MAX - 1;

/// A target in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// The node that it is on, where that is known.
    pub(crate) place: Option<u32>,
    /// A number that those have in common who are alike.
    pub(crate) like: u32,
    /// Where it stands among the clients, if it can be one.
    pub(crate) client: Option<u32>,
}

/// A client: its node, and where it stands among all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) place: u32,
    pub(crate) at: u32,
}

impl Spot {
    fn is_near(&self, caller: Caller) -> bool {
        self.place == Some(caller.place)
    }

    fn is(&self, caller: Caller) -> bool {
        self.client == Some(caller.at)
    }
}

/// All targets in line, each with its kind as some class of clients meets it.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    pub(crate) kinds: Vec<Kind>,
    /// One that was asked of each kind, by its place in the rule.
    pub(crate) examples: Vec<usize>,
    spots: Rc<[Spot]>,
    /// The kind of each to clients elsewhere.
    usual: Vec<u32>,
    /// The kinds of those on the client's own node, by what they are like.
    near: HashMap<u32, u32>,
    /// The client's own kind as a target.
    itself: u32,
    /// The places of each node in line.
    on_node: HashMap<u32, Vec<u32>>,
}

/// Who was asked: one in line, its place in the rule, and how asking it ended; nothing if it
/// is not to be asked.
pub(crate) type Asked = (Spot, usize, Option<Kind>);

impl Ring {
    /// From what the client of a small cluster found of those who stand for all.
    pub(crate) fn new(spots: &Rc<[Spot]>, walked: Caller, asked: Vec<Asked>) -> Self {
        let (mut kinds, mut examples): (Vec<Kind>, Vec<usize>) = (Vec::new(), Vec::new());
        let (mut far, mut near, mut itself) = (HashMap::new(), HashMap::new(), NOBODY);
        for (spot, target, kind) in asked {
            let number = kind.map_or(NOBODY, |kind| {
                let known = kinds.iter().position(|one| one.is_like(&kind));
                let at = known.unwrap_or_else(|| {
                    kinds.push(kind);
                    examples.push(target);
                    kinds.len() - 1
                });
                at as u32
            });
            if spot.is(walked) {
                itself = number;
            } else if spot.is_near(walked) {
                near.entry(spot.like).or_insert(number);
            } else {
                far.entry(spot.like).or_insert(number);
            }
        }
        let kind = |spot: &Spot| far.get(&spot.like).copied().unwrap_or(NOBODY);
        let mut on_node: HashMap<u32, Vec<u32>> = HashMap::new();
        for (at, spot) in spots.iter().enumerate() {
            if let Some(place) = spot.place {
                on_node.entry(place).or_default().push(at as u32);
            }
        }
        let usual = spots.iter().map(kind).collect();
        Self { kinds, examples, spots: Rc::clone(spots), usual, near, itself, on_node }
    }

    /// The kind of a target on the client's own node.
    fn own(&self, spot: &Spot, caller: Caller) -> u32 {
        match spot.is(caller) {
            true => self.itself,
            false => self.near.get(&spot.like).copied().unwrap_or(NOBODY),
        }
    }

    /// The kinds in line, as a client meets them.
    pub(crate) fn line(&self, caller: Caller) -> Vec<usize> {
        let mut line = self.usual.clone();
        for at in self.on_node.get(&caller.place).into_iter().flatten() {
            line[*at as usize] = self.own(&self.spots[*at as usize], caller);
        }
        line.into_iter().filter(|kind| *kind != NOBODY).map(|kind| kind as usize).collect()
    }

    pub(crate) fn odds(&self, caller: Caller) -> Odds {
        let mut runs: Vec<Run> = Vec::new();
        for kind in self.line(caller) {
            match runs.last_mut() {
                Some(last) if last.kind == kind => last.length += 1,
                _ => runs.push(Run { kind, length: 1 }),
            }
        }
        Odds::new(&self.kinds, &runs)
    }

    /// Whether it makes no difference where in line a client's own targets are, nor how the
    /// others stand.
    pub(crate) fn is_even(&self) -> bool {
        let mut usual = self.usual.iter().filter(|kind| **kind != NOBODY);
        let first = usual.next();
        usual.all(|kind| Some(kind) == first)
            && (self.on_node.values().all(|spots| spots.len() == 1)
                || (self.near.values().chain([&self.itself]).all(|kind| Some(kind) == first)))
    }

    /// Adds all that sets a client apart from others of its class: its own targets that are
    /// not as usual, and whom requests meet shortly before and after them.
    pub(crate) fn tell_apart(&self, caller: Caller, told: &mut Vec<u32>) {
        told.push(PART);
        let here = self.on_node.get(&caller.place).into_iter().flatten();
        let unusual: Vec<(u32, u32)> = here
            .map(|at| (*at, self.own(&self.spots[*at as usize], caller)))
            .filter(|(at, own)| *own != self.usual[*at as usize])
            .collect();
        for (at, own) in &unusual {
            told.extend([PART, *own, self.usual[*at as usize]]);
            self.tell_side(*at, &unusual, -1, told);
            self.tell_side(*at, &unusual, 1, told);
        }
    }

    fn tell_side(&self, at: u32, unusual: &[(u32, u32)], step: i64, told: &mut Vec<u32>) {
        told.push(PART);
        let count = self.usual.len() as i64;
        let mut share = 1.0;
        for away in 1..count {
            let next = (i64::from(at) + step * away).rem_euclid(count) as u32;
            if unusual.iter().any(|(other, _)| *other == next) {
                told.push(PART);
                return;
            }
            let kind = self.usual[next as usize];
            if kind == NOBODY {
                continue;
            }
            let failing = self.kinds[kind as usize].fails();
            // Nobody comes from before one who answers for sure, and nobody goes on from it.
            if failing == 0.0 && step < 0 {
                return;
            }
            match told.as_mut_slice() {
                [.., last, many] if *last == kind && *many < PART => *many += 1,
                _ => told.extend([kind, 1]),
            }
            share *= failing;
            if share < NEGLIGIBLE {
                return;
            }
        }
    }
}
