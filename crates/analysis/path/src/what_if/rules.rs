//! Rules that are not modelled: what becomes of a flow if one matches and if it does not, on every
//! node.

use uturn_model::{Assumption, Flow, Text, Verdict};
use uturn_netfilter::{Assumptions, Question, QuestionSubject};

use super::table::either;
use crate::add_missing::add_missing;
use crate::engine::Engine;
use crate::error::WalkError;

/// Both answers are tried for at most this many rules that are not modelled.
const MAX_QUESTIONS: usize = 3;

/// Where packets meet more such rules, or these split the call into more ways, both answers are tried for the
/// first only: more answers would hardly settle how the call ends, and each is a walk of all ways.
const MANY_QUESTIONS: usize = 32;
const MANY_WAYS: u64 = 300;

/// What walks of a call leave open.
#[derive(Default)]
pub(super) struct Open {
    /// The rules that packets reached, that are not modelled, and about which nothing is assumed.
    pub(super) questions: Vec<Question>,
    /// Into how many ways they split the call.
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

impl Engine<'_> {
    /// A verdict for each case of what rules do that are not modelled, of the cluster as it is
    /// supposed. Cases that come out alike are one.
    ///
    /// # Errors
    /// Returns an error if the flow cannot be walked in one of the cases.
    pub fn rule_cases(&self, flow: &Flow) -> Result<Vec<Verdict>, WalkError> {
        let walks = |assumed: &Assumptions| self.assuming(flow, assumed);
        split(&walks, &Assumptions::of_ordinary_call(), MAX_QUESTIONS)
    }

    /// The same, and for each case of how kube-proxy runs and where pods will run.
    pub(super) fn by_rules(&self, flow: &Flow) -> Result<Vec<Verdict>, WalkError> {
        let walks = |assumed: &Assumptions| self.by_cluster(flow, assumed);
        split(&walks, &Assumptions::of_ordinary_call(), MAX_QUESTIONS)
    }
}

/// Both answers are tried for so many more of the rules that nothing is assumed of.
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
