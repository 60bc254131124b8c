//! The state that decides how a branch of a walk goes on.

use std::hash::{Hash, Hasher};

use super::merge::add_missing;
use super::walk::{NftPosition, Walk};

impl Walk {
    /// Whether two branches go on in the same way, with the same answers to what was open. What they
    /// came by, their steps and what was assumed for them may differ.
    pub(super) fn is_in_state_of(&self, other: &Self) -> bool {
        let Self {
            share: _,
            packet,
            hook,
            entered,
            stage,
            from_here,
            unrouted,
            iif,
            oif,
            route,
            tracking,
            ipvs,
            nft,
            before,
            frames,
            proxied,
            randomized,
            log: _,
            list_bytes: _,
            lookups: _,
            unknown: _,
            open_questions,
            assumed: _,
            supposed: _,
            facts,
            answers,
            nft_answers,
            policy_answers,
            reroutes,
            recent_entries,
            turns,
            capture_assumptions,
        } = self;
        let place = (hook, entered, stage, from_here, unrouted, iif, oif, route);
        let packets = (packet, before, tracking, ipvs, proxied, randomized, reroutes);
        let known = (facts, answers, nft_answers, policy_answers, recent_entries);
        // The label, and a frame's odds and caller, only explain what is picked and why.
        let NftPosition { at, generated, label: _, added } = nft;
        let mut frames = frames.iter().zip(&other.frames);
        packets
            == (
                &other.packet,
                &other.before,
                &other.tracking,
                &other.ipvs,
                &other.proxied,
                &other.randomized,
                &other.reroutes,
            )
            && place
                == (
                    &other.hook,
                    &other.entered,
                    &other.stage,
                    &other.from_here,
                    &other.unrouted,
                    &other.iif,
                    &other.oif,
                    &other.route,
                )
            && self.frames.len() == other.frames.len()
            && frames.all(|(own, other)| (own.chain, own.rule) == (other.chain, other.rule))
            && known
                == (
                    &other.facts,
                    &other.answers,
                    &other.nft_answers,
                    &other.policy_answers,
                    &other.recent_entries,
                )
            && (at, generated, added) == (&other.nft.at, &other.nft.generated, &other.nft.added)
            && *turns == other.turns
            && *capture_assumptions == other.capture_assumptions
            && *open_questions == other.open_questions
    }

    /// Hashes what is mostly different where branches are.
    pub(super) fn hash_state(&self, hasher: &mut impl Hasher) {
        (self.packet, &self.tracking, &self.route, &self.ipvs).hash(hasher);
        (&self.facts, &self.answers, &self.nft_answers, &self.policy_answers).hash(hasher);
        (&self.recent_entries, &self.turns, self.randomized, self.nft.generated).hash(hasher);
    }

    /// Becomes the branch of both, where they are in the same state. Its steps stay its own. Returns how many
    /// entries were compared.
    pub(super) fn absorb(&mut self, other: Self) -> usize {
        self.share += other.share;
        let compared = add_missing(&mut self.unknown, other.unknown)
            + add_missing(&mut self.supposed, other.supposed);
        self.count_lists();
        compared
    }
}
