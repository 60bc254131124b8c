//! The state that decides how a branch of a walk goes on.

use std::hash::{Hash, Hasher};

use super::merge::add_missing;
use super::notes::Lists;
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
            lookups: _,
            assumed: _,
            reroutes,
            notes,
        } = self;
        let Lists {
            unknown: _,
            open_questions,
            supposed: _,
            facts,
            answers,
            nft_answers,
            policy_answers,
            recent_entries,
            added,
            turns,
            capture_assumptions,
        } = &**notes;
        let place = (hook, entered, stage, from_here, unrouted, iif, oif, route);
        let packets = (packet, before, tracking, ipvs, proxied, randomized, reroutes);
        let known = (facts, answers, nft_answers, policy_answers, recent_entries);
        // The label, and a frame's odds and caller, only explain what is picked and why.
        let NftPosition { at, generated, label: _ } = nft;
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
                    &other.notes.facts,
                    &other.notes.answers,
                    &other.notes.nft_answers,
                    &other.notes.policy_answers,
                    &other.notes.recent_entries,
                )
            && (at, generated, added) == (&other.nft.at, &other.nft.generated, &other.notes.added)
            && *turns == other.notes.turns
            && *capture_assumptions == other.notes.capture_assumptions
            && *open_questions == other.notes.open_questions
    }

    /// Hashes what is mostly different where branches are.
    pub(super) fn hash_state(&self, hasher: &mut impl Hasher) {
        (self.packet, &self.tracking, &self.route, &self.ipvs).hash(hasher);
        let Lists { facts, answers, nft_answers, policy_answers, recent_entries, turns, .. } =
            &*self.notes;
        (facts, answers, nft_answers, policy_answers).hash(hasher);
        (recent_entries, turns, self.randomized, self.nft.generated).hash(hasher);
    }

    /// Becomes the branch of both, where they are in the same state. Its steps stay its own. Returns how many
    /// entries were compared.
    pub(super) fn absorb(&mut self, other: Self) -> usize {
        self.share += other.share;
        let (unknown, _, supposed) = other.notes.into_lists_of_end();
        if unknown.is_empty() && supposed.is_empty() {
            return 0;
        }
        add_missing(&mut self.notes.unknown, unknown)
            + add_missing(&mut self.notes.supposed, supposed)
    }
}
