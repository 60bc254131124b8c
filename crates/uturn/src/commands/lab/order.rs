//! What goes into the small machine and what comes out of it, as JSON.
//!
//! In: the scenarios of the user's files and the names of the cases to measure, one
//! document. Out: a line for each case, once it is measured.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde_json::{Value, json};
use uturn_lab::{Evidence, MeasuredFlow, ProbeEnd, TargetHealth, Watched};
use uturn_model::{Flow, Outcome};
use uturn_report::json;
use uturn_snapshot::Source;

use super::how::How;
use super::told;

/// What is asked of the machine.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Order {
    /// The user's own files.
    pub(super) sources: Vec<Source>,
    /// Scenario and case.
    pub(super) cases: Vec<(String, String)>,
    /// How to measure them.
    pub(super) how: How,
}

/// What became of the case that is next in the order.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// It was measured.
    Measured {
        /// Its flows in the order of the case's.
        watched: Watched,
        /// How long it took.
        seconds: f64,
    },
    /// It cannot be built.
    NotRun(String),
    /// The lab broke, and nothing comes after this.
    Failed(String),
}

impl Order {
    pub(super) fn write(&self) -> String {
        let sources: Vec<Value> = self
            .sources
            .iter()
            .map(|one| json!({ "name": &*one.name, "text": one.text }))
            .collect();
        json!({ "sources": sources, "cases": self.cases, "how": self.how.to_json() }).to_string()
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        let order: Value = serde_json::from_str(text).ok()?;
        let source = |one: &Value| {
            let text = |field: &str| one[field].as_str().map(String::from);
            Some(Source { name: text("name")?.into(), text: text("text")? })
        };
        let case = |one: &Value| Some((one[0].as_str()?.to_owned(), one[1].as_str()?.to_owned()));
        Some(Self {
            sources: list(&order["sources"], source)?,
            cases: list(&order["cases"], case)?,
            how: How::from_json(&order["how"])?,
        })
    }
}

impl Answer {
    pub(super) fn write(&self) -> String {
        match self {
            Self::Measured { watched: Watched { flows, explanations }, seconds } => json!({
                "seconds": seconds,
                "flows": flows.iter().map(of_flow).collect::<Vec<_>>(),
                "explained": explanations.iter().map(told::to_json).collect::<Vec<_>>(),
            }),
            Self::NotRun(why) => json!({ "not_run": why }),
            Self::Failed(why) => json!({ "failed": why }),
        }
        .to_string()
    }

    /// `flows` are those of the case.
    pub(super) fn read(line: &str, flows: &[Flow]) -> Option<Self> {
        let answer: Value = serde_json::from_str(line).ok()?;
        if let Some(why) = answer["not_run"].as_str() {
            return Some(Self::NotRun(why.to_owned()));
        }
        if let Some(why) = answer["failed"].as_str() {
            return Some(Self::Failed(why.to_owned()));
        }
        let measured = answer["flows"].as_array().filter(|all| all.len() == flows.len())?;
        let measured = measured.iter().zip(flows).map(|(one, flow)| to_flow(one, flow));
        let watched = Watched {
            flows: measured.collect::<Option<_>>()?,
            explanations: list(&answer["explained"], |one| told::from_json(one, flows))?,
        };
        Some(Self::Measured { watched, seconds: answer["seconds"].as_f64()? })
    }
}

fn of_flow(one: &MeasuredFlow) -> Value {
    let seen = &one.evidence;
    let health =
        |one: &TargetHealth| json!([one.target.to_string(), one.alive, word_of_probe(one.latest)]);
    json!({
        "counts": one.counts.iter().map(|(outcome, count)| {
            json!([json::outcome(*outcome), count])
        }).collect::<Vec<_>>(),
        "limit": one.limit.as_secs_f64(),
        "reached": seen.reached_load_balancer,
        "picked": counts(&seen.picked),
        "timed_out": counts(&seen.timed_out),
        "health": seen.health.iter().map(health).collect::<Vec<_>>(),
        "answered_by": counts(&seen.answered_by),
        "sources": counts(&seen.sources_seen),
        "forwarded_for": counts(&seen.forwarded_for),
    })
}

fn to_flow(one: &Value, flow: &Flow) -> Option<MeasuredFlow> {
    let address = |value: &Value| value.as_str()?.parse::<SocketAddr>().ok();
    let text = |value: &Value| value.as_str().map(Into::into);
    let health = |value: &Value| {
        Some(TargetHealth {
            target: address(&value[0])?,
            alive: value[1].as_bool()?,
            latest: PROBES.into_iter().find(|one| value[2] == word_of_probe(*one))?,
        })
    };
    Some(MeasuredFlow {
        flow: flow.clone(),
        counts: pairs(&one["counts"], outcome)?,
        limit: Duration::try_from_secs_f64(one["limit"].as_f64()?).ok()?,
        evidence: Evidence {
            reached_load_balancer: one["reached"].as_u64()?,
            picked: pairs(&one["picked"], address)?,
            timed_out: pairs(&one["timed_out"], address)?,
            health: list(&one["health"], health)?,
            answered_by: pairs(&one["answered_by"], text)?,
            sources_seen: pairs(&one["sources"], |ip| ip.as_str()?.parse::<IpAddr>().ok())?,
            forwarded_for: pairs(&one["forwarded_for"], text)?,
        },
    })
}

pub(super) fn outcome(value: &Value) -> Option<Outcome> {
    let after = Duration::from_millis(value["after_ms"].as_u64().unwrap_or_default());
    let code = value["status"].as_u64().unwrap_or_default().try_into().ok()?;
    let all = [
        Outcome::Answered { after },
        Outcome::Status { code, after },
        Outcome::Refused,
        Outcome::Reset,
        Outcome::TlsError,
        Outcome::Unreachable,
        Outcome::Hangs,
        Outcome::NameNotFound,
    ];
    all.into_iter().find(|one| value["outcome"] == one.word())
}

const PROBES: [ProbeEnd; 4] =
    [ProbeEnd::Answered, ProbeEnd::TimedOut, ProbeEnd::Refused, ProbeEnd::Unreachable];

fn word_of_probe(end: ProbeEnd) -> &'static str {
    match end {
        ProbeEnd::Answered => "answered",
        ProbeEnd::TimedOut => "timed-out",
        ProbeEnd::Refused => "refused",
        ProbeEnd::Unreachable => "unreachable",
    }
}

fn counts<T: ToString>(all: &[(T, u64)]) -> Vec<Value> {
    all.iter().map(|(what, count)| json!([what.to_string(), count])).collect()
}

fn pairs<T>(value: &Value, read: impl Fn(&Value) -> Option<T>) -> Option<Vec<(T, u64)>> {
    list(value, |one| Some((read(&one[0])?, one[1].as_u64()?)))
}

pub(super) fn list<T>(value: &Value, read: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    value.as_array()?.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_comes_back() {
        let source = Source { name: "a b.yaml".into(), text: "kind: \"x\"\n".into() };
        let order = Order {
            sources: vec![source],
            cases: vec![("l7-loop".into(), "3 nodes".into())],
            how: How {
                rules: Some("/a b".into()),
                pcap: Some("/c".into()),
                explain: true,
                ..How::plain(20)
            },
        };
        assert_eq!(Order::read(&order.write()), Some(order));
        assert_eq!(Order::read("{}"), None);
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
        let line = Answer::Measured { watched, seconds: 1.5 }.write();
        let Some(Answer::Measured { watched: Watched { flows, .. }, seconds }) =
            Answer::read(&line, &[flow])
        else {
            panic!("{line}")
        };
        assert_eq!((flows[0].counts.clone(), seconds), (measured.counts, 1.5));
        assert_eq!(flows[0].evidence, measured.evidence);
        assert!(Answer::read(&line, &[]).is_none());
    }
}
