//! Rules that are not modelled: what becomes of a flow if one matches and if it does not, on every
//! node.

use uturn_model::{Assumption, Flow, Text, Verdict};
use uturn_netfilter::{Assumptions, Question, QuestionSubject};

use super::table::either;
use crate::assumed::add_assumptions;
use crate::engine::Engine;
use crate::error::WalkError;

/// Both answers are tried for at most this many rules that are not modelled.
const MAX_QUESTIONS: usize = 3;

impl Engine<'_> {
    /// A verdict for each case of what rules do that are not modelled.
    pub(super) fn by_rules(&self, flow: &Flow) -> Result<Vec<Verdict>, WalkError> {
        self.split(flow, &Assumptions::default(), MAX_QUESTIONS)
    }

    /// The same, with something taken for true of some of them; of so many more, both is tried.
    fn split(
        &self,
        flow: &Flow,
        assumed: &Assumptions,
        more: usize,
    ) -> Result<Vec<Verdict>, WalkError> {
        let (verdicts, open) = self.by_cluster(flow, assumed)?;
        let unasked = |question: &&Question| assumed.answer(question).is_none();
        let Some(question) = open.iter().find(unasked).filter(|_| more > 0) else {
            return Ok(verdicts);
        };
        let of = |holds| self.split(flow, &assumed.with_answer(question, holds), more - 1);
        Ok(either(&of(true)?, &of(false)?, |verdict, holds| {
            verdict.conditions.insert(0, holding(question, holds));
            add_assumptions(&mut verdict.supposed, [taken(question, holds)]);
        }))
    }
}

/// `rule -A KUBE-FIREWALL … (n1/iptables.save:12) matches`, `the sender's user is 1337`.
fn holding(question: &Question, holds: bool) -> Text {
    question.describe(holds).into()
}

fn taken(question: &Question, holds: bool) -> Assumption {
    let taken = match (question.about, holds) {
        (QuestionSubject::Sender(fact), _) => {
            return Assumption {
                subject: format!("the sender of packets that rule {} matches", question.by.rule())
                    .into(),
                assumed: fact.describe(holds).into(),
                because: "one case of several: no dump says which process sends a packet".into(),
                settle: "ps -eo user,group,args on the node".into(),
            };
        }
        (QuestionSubject::Match, true) => "it matches what meets it",
        (QuestionSubject::Match, false) => "it does not match what meets it",
        (QuestionSubject::Pass, true) => "it lets pass what it matches",
        (QuestionSubject::Pass, false) => "it keeps what it matches",
        (QuestionSubject::Own | QuestionSubject::Out, _) => {
            return Assumption {
                subject: question.by.rule(),
                assumed: question.describe(holds).into(),
                because: "one case of several: the capture does not say it".into(),
                settle: "capture addr and route of the node too".into(),
            };
        }
    };
    Assumption {
        subject: format!("rule {}", question.by.rule()).into(),
        assumed: taken.into(),
        because: "one case of several: uturn does not model it".into(),
        settle: "see whether its counter grows when the client calls".into(),
    }
}
