//! nftables rules as evidence and in words.

use uturn_model::{Evidence, Text};

use super::super::Kernel;
use super::super::walk::Walk;
use crate::nft::{Chain, Rule, Table};

impl Kernel {
    pub(super) fn nft_chain(&self, chain: usize) -> (&Table, &Chain) {
        let compiled = &self.nft.chains[chain];
        let table = &self.state.nft.tables[compiled.table];
        (table, &table.chains[compiled.at])
    }

    pub(super) fn nft_rule(&self, (chain, rule): (usize, usize)) -> &Rule {
        &self.nft_chain(chain).1.rules[rule]
    }

    /// A rule as evidence.
    pub(super) fn nft_by(&self, chain: usize, rule: usize) -> Evidence {
        let (table, _) = self.nft_chain(chain);
        let compiled = &self.nft.chains[chain].rules[rule];
        compiled.texts.by.get_or_init(|| self.nft_rule((chain, rule)).by(table.family)).clone()
    }

    /// The rule's own comment, else the comment of the element or rule that led to its chain,
    /// else its action and chain.
    pub(super) fn nft_why(&self, at: (usize, usize), walk: &Walk, otherwise: &'static str) -> Text {
        let callers = walk.frames.iter().rev().filter_map(|frame| frame.caller);
        let own = self.nft_rule(at).comment.as_ref();
        let comment = own
            .or(walk.nft.label.as_ref())
            .or_else(|| callers.filter_map(|at| self.nft_rule(at).comment.as_ref()).next());
        if let Some(comment) = comment {
            return comment.clone();
        }
        let describe =
            || Text::from(format!("{otherwise} by chain {}", self.nft_chain(at.0).1.name));
        let done = &self.nft.chains[at.0].rules[at.1].texts.done;
        let (known, text) = done.get_or_init(|| (otherwise, describe()));
        if *known == otherwise { text.clone() } else { describe() }
    }

    pub(super) fn comment_of(&self, at: (usize, usize)) -> String {
        match &self.nft_rule(at).comment {
            Some(comment) => format!("{comment}: "),
            None => format!("{}: ", self.nft_chain(at.0).1.name),
        }
    }
}
