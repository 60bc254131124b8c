//! The notes of a branch: the questions that rules asked, the answers that the branch gives, and the
//! entries that rules wrote down.
//!
//! Each branch has notes of its own, and a rule that is not modelled makes them longer. Most branches
//! have none: so all lists stand behind one pointer, and a branch without notes is copied, compared and
//! dropped without a look at each list.

use std::cell::Cell;
use std::net::IpAddr;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use uturn_model::route::Leg;
use uturn_model::{Assumption, Evidence, Text};

use super::compile::Hook;
use super::incomplete_capture::CaptureAssumptions;
use super::list_bytes::ListBytes;
use super::turns::{Counter, Turns};
use super::unknown_condition::{AnswerScope, ConditionId};
use crate::packet_facts::Facts;
use crate::question::Question;

/// The notes of a branch, which reads them as [`Lists`]. To change a list makes all of them.
#[derive(Debug, Default)]
pub(super) struct Notes(Option<Box<Counted>>);

/// The lists of the notes.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists {
    pub(super) unknown: Vec<Evidence>,
    pub(super) open_questions: Vec<(Question, bool)>,
    pub(super) supposed: Vec<Assumption>,
    /// Facts about the packet and its sender, known or assumed.
    pub(super) facts: Facts,
    /// Answers that this branch gives to unknown iptables conditions.
    pub(super) answers: Vec<(ConditionId, AnswerScope, bool)>,
    /// Answers that this branch gives to unknown nftables conditions and actions.
    pub(super) nft_answers: Vec<(u32, Leg, Hook, bool)>,
    /// Policy routing rules that are assumed to match or not, by index.
    pub(super) policy_answers: Vec<(usize, bool)>,
    /// Entries that `-m recent` has added to its lists.
    pub(super) recent_entries: Vec<(Text, IpAddr)>,
    /// Elements that nftables rules have added to sets during the walk.
    pub(super) added: Vec<(usize, Box<[u128]>)>,
    /// The numbers of counters by which rules take turns, as far as they are known.
    pub(super) turns: Turns,
    /// Assumptions about state that the capture lacks.
    pub(super) capture_assumptions: CaptureAssumptions,
}

/// Lists and their bytes.
#[derive(Debug, Default)]
struct Counted {
    lists: Lists,
    bytes: ListBytes,
}

/// The lists of a branch without notes.
static NONE: Lists = Lists {
    unknown: Vec::new(),
    open_questions: Vec::new(),
    supposed: Vec::new(),
    facts: Facts::NONE,
    answers: Vec::new(),
    nft_answers: Vec::new(),
    policy_answers: Vec::new(),
    recent_entries: Vec::new(),
    added: Vec::new(),
    turns: Turns::NONE,
    capture_assumptions: CaptureAssumptions::NONE,
};

impl Deref for Notes {
    type Target = Lists;

    #[inline]
    fn deref(&self) -> &Lists {
        self.0.as_deref().map_or(&NONE, |counted| &counted.lists)
    }
}

impl DerefMut for Notes {
    fn deref_mut(&mut self) -> &mut Lists {
        &mut self.0.get_or_insert_default().lists
    }
}

impl Notes {
    /// Notes that begin with some facts.
    pub(super) fn of_facts(facts: Facts) -> Self {
        let mut notes = Self::default();
        if facts.len() > 0 {
            notes.facts = facts;
        }
        notes
    }

    /// Whether there are none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The notes of a new branch, whose bytes are not counted yet.
    #[inline]
    pub(super) fn fork(&self) -> Self {
        let copy = |counted: &Counted| {
            Box::new(Counted { lists: counted.lists.clone(), bytes: ListBytes::default() })
        };
        Self(self.0.as_deref().map(copy))
    }

    /// A counter may have counted or not.
    pub(super) fn forget_turn(&mut self, counter: Counter) {
        if !self.turns.is_empty() {
            self.turns.forget(counter);
        }
    }

    /// Counts the bytes of the lists as they are now, as part of those of all branches.
    #[inline]
    pub(super) fn count(&mut self, of_all: &Rc<Cell<usize>>) {
        if let Some(counted) = &mut self.0 {
            let bytes = size_of::<Counted>() + counted.lists.bytes();
            counted.bytes.set(bytes, of_all);
        }
    }

    /// The lists that the end of the branch keeps: unknown rules, open questions and assumptions.
    pub(super) fn into_lists_of_end(
        self,
    ) -> (Vec<Evidence>, Vec<(Question, bool)>, Vec<Assumption>) {
        match self.0 {
            None => (Vec::new(), Vec::new(), Vec::new()),
            Some(counted) => {
                let Lists { unknown, open_questions, supposed, .. } = counted.lists;
                (unknown, open_questions, supposed)
            }
        }
    }

    /// Returns the bytes of the lists that the end of the branch keeps.
    #[inline]
    pub(super) fn bytes_of_end(&self) -> usize {
        self.0.as_ref().map_or(0, |counted| counted.lists.bytes_of_end())
    }

    /// Returns the number of entries that are looked through to see whether something new is among
    /// them.
    #[inline]
    pub(super) fn entries_looked_through(&self) -> usize {
        let Some(counted) = &self.0 else { return 0 };
        let Lists { unknown, answers, recent_entries, added, .. } = &counted.lists;
        unknown.len() + answers.len() + recent_entries.len() + added.len()
    }
}

impl Lists {
    fn bytes(&self) -> usize {
        self.bytes_of_end()
            + of(&self.answers)
            + of(&self.nft_answers)
            + of(&self.policy_answers)
            + of(&self.recent_entries)
            + of(&self.added)
            + self.facts.bytes()
    }

    fn bytes_of_end(&self) -> usize {
        of(&self.unknown) + of(&self.open_questions) + of(&self.supposed)
    }
}

fn of<T>(list: &Vec<T>) -> usize {
    list.capacity() * size_of::<T>()
}
