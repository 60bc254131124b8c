//! Rules that are not modelled: the verdicts of a flow if such a rule matches and if it does not,
//! on every node.

use uturn_model::{Assumption, Flow, Text, Verdict};
use uturn_netfilter::{Assumptions, Question, QuestionSubject};

use super::table::either;
use super::{assuming, by_cluster};
use crate::add_missing::add_missing;
use crate::engine::Engine;
use crate::error::WalkError;

/// The number of rules that are not modelled for which both answers are tried.
const MAX_QUESTIONS: usize = 3;

/// The numbers of such rules, and of ways into which they split the call, beyond which both answers
/// are tried for the first rule only: more answers would hardly settle how the call ends, and each
/// is a walk of all ways.
const MANY_QUESTIONS: usize = 32;
const MANY_WAYS: u64 = 300;

/// The open questions of a call's walks.
#[derive(Default)]
pub(super) struct Open {
    /// The questions of rules that packets reached, that are not modelled and have no assumption.
    pub(super) questions: Vec<Question>,
    /// The number of ways into which these rules split the call.
    pub(super) ways: u64,
}

impl Open {
    pub(super) fn add(&mut self, other: Self) {
        add_missing(&mut self.questions, other.questions);
        self.ways += other.ways;
    }

    fn is_large(&self) -> bool {
        self.questions.len() > MANY_QUESTIONS || self.ways > MANY_WAYS
    }
}

/// Walks a flow under assumptions.
type Walks<'w> = dyn Fn(&Assumptions) -> Result<(Vec<Verdict>, Open), WalkError> + 'w;

/// Returns a verdict for each case of what rules that are not modelled do, for the cluster as it is
/// assumed. Cases with equal results are merged.
///
/// # Errors
/// Returns an error if the flow cannot be walked in one of the cases.
pub(crate) fn rule_cases(engine: &Engine<'_>, flow: &Flow) -> Result<Vec<Verdict>, WalkError> {
    let walks = |assumed: &Assumptions| {
        let (verdict, open) = assuming(engine, flow, assumed)?;
        Ok((vec![verdict], open))
    };
    split(&walks, &Assumptions::of_ordinary_call(), MAX_QUESTIONS)
}

/// Returns the same for each case of how kube-proxy runs and where pods will run.
pub(super) fn by_rules(engine: &Engine<'_>, flow: &Flow) -> Result<Vec<Verdict>, WalkError> {
    let walks = |assumed: &Assumptions| by_cluster(engine, flow, assumed);
    split(&walks, &Assumptions::of_ordinary_call(), MAX_QUESTIONS)
}

/// Tries both answers for at most `more` rules without an assumption.
fn split(walks: &Walks<'_>, assumed: &Assumptions, more: usize) -> Result<Vec<Verdict>, WalkError> {
    let (verdicts, open) = walks(assumed)?;
    let unasked = |question: &&Question| assumed.answer(question).is_none();
    let Some(question) = open.questions.iter().find(unasked).filter(|_| more > 0) else {
        return Ok(verdicts);
    };
    let left = if open.is_large() { 0 } else { more - 1 };
    let of = |holds| split(walks, &assumed.with_answer(question, holds), left);
    Ok(either(&of(true)?, &of(false)?, |verdict, holds| {
        verdict.conditions.insert(0, holding(question, holds));
        add_missing(&mut verdict.supposed, [taken(question, holds)]);
    }))
}

/// Describes an answer: `rule -A KUBE-FIREWALL … (n1/iptables.save:12) matches`, `the sender's user
/// is 1337`.
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
                subject: question.by.rule().into(),
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
