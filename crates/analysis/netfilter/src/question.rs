//! Questions that a walk cannot answer, and the answers that a caller lets it assume.

use std::rc::Rc;

use uturn_model::{Evidence, Text};

use crate::packet_facts::{Facts, PacketFact};

/// A yes-or-no question that a walk could not answer and branched on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The rule that asks; if several rules ask the same about the sender, the first of them.
    pub by: Evidence,
    /// The subject of the question.
    pub about: QuestionSubject,
}

impl Question {
    /// Returns a key that is equal for questions that ask the same, so that an answer to one
    /// answers the other.
    pub fn key(&self) -> QuestionKey {
        match self.about {
            QuestionSubject::Sender(fact) => QuestionKey::Sender(fact),
            _ => QuestionKey::Rule(self.by.rule()),
        }
    }

    /// The assumed answer in words: `the sender's user is 1337`, `rule -A … matches`.
    pub fn describe(&self, holds: bool) -> String {
        let does = match (self.about, holds) {
            (QuestionSubject::Sender(fact), _) => return fact.describe(holds),
            (QuestionSubject::Match, true) => "matches",
            (QuestionSubject::Match, false) => "does not match",
            (QuestionSubject::Pass, true) => "lets it pass",
            (QuestionSubject::Pass, false) => "keeps it",
            (QuestionSubject::Own, true) => {
                return format!("{} is one of this node", self.by.rule());
            }
            (QuestionSubject::Own, false) => {
                return format!("{} is none of this node", self.by.rule());
            }
            (QuestionSubject::Out, true) => return format!("it leaves through {}", self.by.rule()),
            (QuestionSubject::Out, false) => {
                return format!("it does not leave through {}", self.by.rule());
            }
        };
        format!("rule {} {does}", self.by)
    }
}

/// Tells questions apart: see [`Question::key`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum QuestionKey {
    /// A fact about the sender.
    Sender(PacketFact),
    /// A rule, by its text.
    Rule(Text),
}

/// The subject of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionSubject {
    /// Whether the rule matches.
    Match,
    /// Whether the rule's target lets the packet pass or keeps it.
    Pass,
    /// Whether a fact about the sender holds.
    Sender(PacketFact),
    /// Whether an address belongs to the node, if the capture has no addresses.
    Own,
    /// Whether the packet leaves through an interface, if the capture has no routes.
    Out,
}

/// Assumptions given to a walk: for rules that are not modelled, by their text, whether they
/// match or let packets pass; and facts about the sender.
#[derive(Clone, Debug, Default)]
pub struct Assumptions {
    /// The answers; most walks have none. Each branch of a walk has a copy.
    given: Option<Rc<Given>>,
    is_ordinary: bool,
}

/// Answers that a walk assumes.
#[derive(Clone, Debug, Default)]
struct Given {
    rules: Vec<(Text, bool)>,
    facts: Facts,
}

impl Assumptions {
    /// Assumes that a packet is one of an ordinary call: it reaches no limit on rates, connections
    /// or amounts, and no proxy on the node takes it over. A walk states where that decides.
    #[must_use]
    pub fn of_ordinary_call() -> Self {
        Self { is_ordinary: true, ..Self::default() }
    }

    pub(crate) fn is_ordinary(&self) -> bool {
        self.is_ordinary
    }

    /// The answer assumed for a rule.
    pub fn of_rule(&self, by: &Evidence) -> Option<bool> {
        let rules = self.given.as_ref().map(|given| &given.rules).filter(|all| !all.is_empty())?;
        let asked = by.rule();
        rules.iter().find(|(rule, _)| *rule == asked).map(|(_, holds)| *holds)
    }

    /// The answer assumed for a question.
    pub fn answer(&self, question: &Question) -> Option<bool> {
        match question.about {
            QuestionSubject::Sender(fact) => self.facts().answer(fact),
            _ => self.of_rule(&question.by),
        }
    }

    /// Adds the answer to a question.
    #[must_use]
    pub fn with_answer(&self, question: &Question, holds: bool) -> Self {
        if let QuestionSubject::Sender(fact) = question.about {
            return self.with_fact(fact, holds);
        }
        self.with(|given| given.rules.push((question.by.rule(), holds)))
    }

    /// Adds a fact about the sender.
    #[must_use]
    pub fn with_fact(&self, fact: PacketFact, holds: bool) -> Self {
        self.with(|given| given.facts.add(fact, holds))
    }

    fn with(&self, add: impl FnOnce(&mut Given)) -> Self {
        let mut given = self.given.as_deref().cloned().unwrap_or_default();
        add(&mut given);
        Self { given: Some(Rc::new(given)), ..*self }
    }

    pub(crate) fn facts(&self) -> &Facts {
        static NONE: Facts = Facts::NONE;
        self.given.as_ref().map_or(&NONE, |given| &given.facts)
    }
}
