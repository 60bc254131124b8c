//! The questions that the walks of a call leave open.

use uturn_netfilter::hash::FastSet;
use uturn_netfilter::{Question, QuestionKey};

/// Open questions without duplicates, in the order in which they came up.
#[derive(Debug, Default)]
pub(crate) struct OpenQuestions {
    all: Vec<Question>,
    known: FastSet<QuestionKey>,
}

impl OpenQuestions {
    /// Adds a question unless it is known.
    pub(crate) fn add(&mut self, question: &Question) {
        if self.known.insert(question.key()) {
            self.all.push(question.clone());
        }
    }

    pub(crate) fn into_all(self) -> Vec<Question> {
        self.all
    }
}
