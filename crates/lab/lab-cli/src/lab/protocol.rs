//! The input and the output of the small machine, as JSON.
//!
//! Input: one document with the scenarios of the user's files and the names of the cases to
//! measure. Output: a line for each case, once it is measured.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uturn_lab::{Evidence, MeasuredFlow, ProbeEnd, TargetHealth, Watched};
use uturn_model::{Flow, Text};
use uturn_report::schema::Outcome;
use uturn_report::schema::lab::Explanation;
use uturn_snapshot::Source;

use super::explanation;
use super::options::MeasureOptions;

/// The request to the machine.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MachineRequest {
    /// The user's own files.
    pub(super) sources: Vec<Source>,
    /// The names of the scenario and the case.
    pub(super) cases: Vec<(String, String)>,
    /// The options of the measurement.
    pub(super) options: MeasureOptions,
}

/// The result of the next case of the request.
#[derive(Clone, Debug)]
pub(super) enum MachineAnswer {
    /// The case was measured.
    Measured {
        /// The flows, in the order of those of the case.
        watched: Watched,
        /// The duration of the measurement.
        seconds: f64,
    },
    /// The case cannot be built.
    NotRun(String),
    /// The lab failed, and no answer follows this one.
    Failed(String),
}

impl MachineRequest {
    pub(super) fn write(&self) -> Result<String, serde_json::Error> {
        let source = |source: &Source| SourceFile {
            name: source.name.to_string(),
            text: source.text.clone(),
        };
        serde_json::to_string(&RequestDocument {
            sources: self.sources.iter().map(source).collect(),
            cases: self.cases.clone(),
            options: self.options.clone(),
        })
    }

    pub(super) fn read(text: &str) -> Result<Self, serde_json::Error> {
        let RequestDocument { sources, cases, options } = serde_json::from_str(text)?;
        let source = |file: SourceFile| Source { name: file.name.into(), text: file.text };
        Ok(Self { sources: sources.into_iter().map(source).collect(), cases, options })
    }
}

/// A request as JSON.
#[derive(Serialize, Deserialize)]
struct RequestDocument {
    sources: Vec<SourceFile>,
    cases: Vec<(String, String)>,
    options: MeasureOptions,
}

#[derive(Serialize, Deserialize)]
struct SourceFile {
    name: String,
    text: String,
}

impl MachineAnswer {
    pub(super) fn write(&self) -> String {
        let line = match self {
            Self::Measured { watched: Watched { flows, explanations }, seconds } => {
                AnswerDocument::Measured {
                    seconds: *seconds,
                    flows: flows.iter().map(FlowLine::new).collect(),
                    explained: explanations.iter().map(explanation::to_output).collect(),
                }
            }
            Self::NotRun(why) => AnswerDocument::NotRun(why.clone()),
            Self::Failed(why) => AnswerDocument::Failed(why.clone()),
        };
        serde_json::to_string(&line).expect("an answer has no paths and no keys but text")
    }

    /// Reads a line about a case with these flows. Returns `None` if the line does not fit them.
    pub(super) fn read(line: &str, flows: &[Flow]) -> Option<Self> {
        Some(match serde_json::from_str(line).ok()? {
            AnswerDocument::NotRun(why) => Self::NotRun(why),
            AnswerDocument::Failed(why) => Self::Failed(why),
            AnswerDocument::Measured { flows: measured, .. } if measured.len() != flows.len() => {
                return None;
            }
            AnswerDocument::Measured { seconds, flows: measured, explained } => {
                let measured = measured.into_iter().zip(flows);
                let explained = explained.into_iter();
                let watched = Watched {
                    flows: measured.map(|(line, flow)| line.of(flow)).collect::<Option<_>>()?,
                    explanations: explained
                        .map(|explanation| explanation::from_output(explanation, flows))
                        .collect::<Option<_>>()?,
                };
                Self::Measured { watched, seconds }
            }
        })
    }
}

/// An answer as JSON.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AnswerDocument {
    Measured { seconds: f64, flows: Vec<FlowLine>, explained: Vec<Explanation> },
    NotRun(String),
    Failed(String),
}

/// The measurement of a flow.
#[derive(Serialize, Deserialize)]
struct FlowLine {
    counts: Vec<(Outcome, u64)>,
    limit: Duration,
    reached: u64,
    picked: Vec<(SocketAddr, u64)>,
    timed_out: Vec<(SocketAddr, u64)>,
    health: Vec<HealthLine>,
    answered_by: Vec<(String, u64)>,
    sources: Vec<(IpAddr, u64)>,
    forwarded_for: Vec<(String, u64)>,
}

impl FlowLine {
    fn new(measured: &MeasuredFlow) -> Self {
        let evidence = &measured.evidence;
        let counts = measured.counts.iter();
        let health = |health: &TargetHealth| HealthLine {
            target: health.target,
            alive: health.alive,
            latest: health.latest,
        };
        Self {
            counts: counts.map(|(outcome, count)| ((*outcome).into(), *count)).collect(),
            limit: measured.limit,
            reached: evidence.reached_load_balancer,
            picked: evidence.picked.clone(),
            timed_out: evidence.timed_out.clone(),
            health: evidence.health.iter().map(health).collect(),
            answered_by: strings(&evidence.answered_by),
            sources: evidence.sources_seen.clone(),
            forwarded_for: strings(&evidence.forwarded_for),
        }
    }

    /// Converts the line. Returns `None` if one of its outcomes is invalid.
    fn of(self, flow: &Flow) -> Option<MeasuredFlow> {
        let counts = self.counts.into_iter();
        let health = |HealthLine { target, alive, latest }| TargetHealth { target, alive, latest };
        Some(MeasuredFlow {
            flow: flow.clone(),
            counts: counts
                .map(|(outcome, count)| Some((outcome.try_into().ok()?, count)))
                .collect::<Option<_>>()?,
            limit: self.limit,
            evidence: Evidence {
                reached_load_balancer: self.reached,
                picked: self.picked,
                timed_out: self.timed_out,
                health: self.health.into_iter().map(health).collect(),
                answered_by: texts(self.answered_by),
                sources_seen: self.sources,
                forwarded_for: texts(self.forwarded_for),
            },
        })
    }
}

fn strings(counts: &[(Text, u64)]) -> Vec<(String, u64)> {
    counts.iter().map(|(text, count)| (text.to_string(), *count)).collect()
}

fn texts(counts: Vec<(String, u64)>) -> Vec<(Text, u64)> {
    counts.into_iter().map(|(text, count)| (text.into(), count)).collect()
}

/// The health of a target according to health checks.
#[derive(Serialize, Deserialize)]
struct HealthLine {
    target: SocketAddr,
    alive: bool,
    #[serde(with = "ProbeEndWord")]
    latest: ProbeEnd,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ProbeEnd", rename_all = "kebab-case")]
enum ProbeEndWord {
    Answered,
    TimedOut,
    Refused,
    Unreachable,
}

#[cfg(test)]
mod tests {
    use uturn_model::Outcome;

    use super::*;

    const PROBES: [ProbeEnd; 4] =
        [ProbeEnd::Answered, ProbeEnd::TimedOut, ProbeEnd::Refused, ProbeEnd::Unreachable];

    #[test]
    fn a_request_comes_back() {
        let source = Source { name: "a b.yaml".into(), text: "kind: \"x\"\n".into() };
        let request = MachineRequest {
            sources: vec![source],
            cases: vec![("l7-loop".into(), "3 nodes".into())],
            options: MeasureOptions {
                rules: Some("/a b".into()),
                pcap: Some("/c".into()),
                explain: true,
                ..MeasureOptions::plain(20)
            },
        };
        assert_eq!(MachineRequest::read(&request.write().unwrap()).unwrap(), request);
        let missing = MachineRequest::read("{}").unwrap_err().to_string();
        assert!(missing.contains("sources"), "{missing}");
    }

    #[cfg(unix)]
    #[test]
    fn a_path_that_is_no_text_is_refused() {
        use std::os::unix::ffi::OsStringExt;
        let rules = std::ffi::OsString::from_vec(vec![b'/', 0xff]);
        let options = MeasureOptions { rules: Some(rules.into()), ..MeasureOptions::plain(1) };
        let request = MachineRequest { sources: Vec::new(), cases: Vec::new(), options };
        assert!(request.write().unwrap_err().to_string().contains("UTF-8"));
    }

    #[test]
    fn an_answer_comes_back() {
        let after = Duration::from_secs(4);
        let flow = Flow {
            from: "outside".parse().unwrap(),
            to: "10.0.0.1:80".parse().unwrap(),
            protocol: Default::default(),
        };
        let target = "[fd00::1]:80".parse().unwrap();
        let outcomes = [
            Outcome::AT_ONCE,
            Outcome::Answered { after },
            Outcome::Status { code: 504, after },
            Outcome::Refused,
            Outcome::Reset,
            Outcome::EmptyReply,
            Outcome::TlsError,
            Outcome::Unreachable,
            Outcome::Hangs,
            Outcome::NameNotFound,
        ];
        let measured = MeasuredFlow {
            flow: flow.clone(),
            counts: outcomes.into_iter().zip(1..).collect(),
            limit: Duration::from_millis(2500),
            evidence: Evidence {
                reached_load_balancer: 7,
                picked: vec![(target, 1)],
                timed_out: vec![(target, 2)],
                health: PROBES.map(|latest| TargetHealth { target, alive: true, latest }).to_vec(),
                answered_by: vec![("pod shop/a".into(), 3)],
                sources_seen: vec![("10.0.0.1".parse().unwrap(), 4)],
                forwarded_for: vec![("x".into(), 5)],
            },
        };
        let watched = Watched { flows: vec![measured.clone()], explanations: Vec::new() };
        let line = MachineAnswer::Measured { watched, seconds: 1.5 }.write();
        let Some(MachineAnswer::Measured { watched: Watched { flows, .. }, seconds }) =
            MachineAnswer::read(&line, &[flow])
        else {
            panic!("{line}")
        };
        assert_eq!((flows[0].counts.clone(), seconds), (measured.counts, 1.5));
        assert_eq!(flows[0].evidence, measured.evidence);
        assert!(MachineAnswer::read(&line, &[]).is_none());
    }
}
