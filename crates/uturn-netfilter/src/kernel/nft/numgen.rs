//! Numbers that change from packet to packet: every one is followed, with its share.

use uturn_model::{StepKind, Supposition};

use super::super::Kernel;
use super::super::walk::{OpenWays, Walk};
use super::super::xtables::one_in;
use super::Way;
use super::value::{Nat, NatAddress, Op, Test, Turn, Value};

/// Numbers that are followed one by one; of more, only ranges with one meaning are.
const MOST_NUMBERS: u64 = 256;

impl Kernel {
    /// Sends copies of a walk the ways of the other numbers, and the walk that of the
    /// first. Whether that could be done.
    pub(super) fn spread_turn(
        &self,
        turn: Turn,
        op: &Op,
        (at, step): ((usize, usize), usize),
        walk: &mut Walk,
        open: &mut OpenWays,
        crowded: bool,
    ) -> bool {
        let said = &self.nft.chains[at.0].rules[at.1].said.ways;
        let known = said.get().filter(|(known, _)| *known == step);
        let made;
        let ways = match known {
            Some((_, ways)) => ways,
            None => {
                let Some(ways) = self.ways(turn, op, at) else {
                    walk.meet_unknown("too many numbers to follow", self.nft_by(at.0, at.1));
                    return false;
                };
                made = ways.into_boxed_slice();
                // Of a rule with several such steps, the first is kept.
                said.get_or_init(|| (step, made.clone()));
                &made
            }
        };
        if crowded && ways.len() > 1 {
            return false;
        }
        if turn.hashed && ways.len() > 1 {
            walk.suppose(Supposition {
                about: "the numbers that rules work out of a packet (jhash, symhash)".into(),
                taken: "each is as likely as any other".into(),
                because: "nobody works out the kernel's hash here".into(),
                settle: "a capture on the node".into(),
            });
        }
        let take = |one: &mut Walk, way: &Way| {
            one.share *= way.share;
            one.nft.turn = Some(way.number);
            // A hash falls alike for each packet of a connection.
            one.thrown |= !turn.hashed && way.share < 1.0;
            if way.share < 1.0 {
                one.note(StepKind::Balance, way.why.clone(), self.nft_by(at.0, at.1));
            }
        };
        for way in &ways[1..] {
            let mut other = walk.fork();
            take(&mut other, way);
            other.nft.at = step;
            if let Some(frame) = other.frames.last_mut() {
                frame.rule = at.1;
            }
            open.push(other);
        }
        take(walk, &ways[0]);
        true
    }

    /// The numbers that mean different things to a step, with their shares; none if there
    /// are too many.
    fn ways(&self, turn: Turn, op: &Op, at: (usize, usize)) -> Option<Vec<Way>> {
        let (first, end) =
            (u128::from(turn.offset), u128::from(turn.offset) + u128::from(turn.modulus));
        let is_turn = |key: &[Value]| matches!(key, [Value::Turn(_)]);
        let borders = match op {
            Op::Vmap { key, map, .. } if is_turn(key) => Some(self.nft.lookups[*map].borders()),
            Op::Mark(Value::Map { key, map })
            | Op::CtMark(Value::Map { key, map })
            | Op::Nat(Nat { address: NatAddress::Map { key, map }, .. })
                if is_turn(key) =>
            {
                Some(self.nft.lookups[*map].borders())
            }
            Op::Test { left, test, .. } if is_turn(left) => match test {
                Test::Within { first, last, .. } => Some(vec![*first, last.saturating_add(1)]),
                Test::In { set, .. } => Some(self.nft.lookups[*set].borders()),
                Test::Bits { .. } => None,
            },
            _ => None,
        };
        let mut starts = match borders {
            Some(borders) => borders,
            None if turn.modulus <= MOST_NUMBERS => (first..end).collect(),
            None => return None,
        };
        starts.push(first);
        starts.retain(|one| (first..end).contains(one));
        starts.sort_unstable();
        starts.dedup();
        let ends = starts[1..].iter().copied().chain([end]);
        let comment = self.comment_of(at);
        let way = |(start, end): (&u128, u128)| {
            let share = (end - start) as f64 / turn.modulus as f64;
            let why = format!("{comment}picked one time in {}", one_in(share)).into();
            Way { share, number: *start, why }
        };
        Some(starts.iter().zip(ends).map(way).collect())
    }
}
