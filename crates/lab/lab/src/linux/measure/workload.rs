//! Workloads as clients: splits their flows into flows of their pods and adds up the results.

use std::collections::BTreeMap;
use std::ops::Range;

use uturn_model::{Client, Flow, ObjectRef};

use crate::{Evidence, Explanation, LabError, MeasuredFlow, Plan, Subject};

/// A plan's flows, with those of workloads split into flows of their pods.
pub(crate) struct Split {
    pub(crate) flows: Vec<Flow>,
    /// For each flow of the plan, the range of its flows.
    parts: Vec<Range<usize>>,
}

impl Split {
    pub(crate) fn of(plan: &Plan<'_>) -> Result<Self, LabError> {
        let mut split = Self { flows: Vec::new(), parts: Vec::new() };
        for flow in plan.flows {
            let begin = split.flows.len();
            match &flow.from {
                Client::Workload(kind, name) => {
                    let owner = Some(ObjectRef::namespaced((*kind).into(), name));
                    let pods = plan.cluster.pods.values();
                    let pods = pods.filter(|pod| pod.is_alive() && pod.owner == owner);
                    split.flows.extend(
                        pods.map(|pod| Flow {
                            from: Client::Pod(pod.name.clone()),
                            ..flow.clone()
                        }),
                    );
                    if split.flows.len() == begin {
                        return Err(LabError::Plan(format!("{} has no pod that runs", flow.from)));
                    }
                }
                _ => split.flows.push(flow.clone()),
            }
            split.parts.push(begin..split.flows.len());
        }
        Ok(split)
    }

    /// Converts an explanation of a part to one of the plan's flow.
    pub(crate) fn whole(&self, part: Explanation) -> Option<Explanation> {
        let Subject::Flow { flow, of } = &part.subject else { return Some(part) };
        let whole = self.parts.iter().position(|range| range.contains(of))?;
        Some(Explanation { subject: Subject::Flow { flow: flow.clone(), of: whole }, ..part })
    }

    /// Adds up the results of the parts.
    pub(crate) fn join(&self, plan: &Plan<'_>, parts: &[MeasuredFlow]) -> Vec<MeasuredFlow> {
        let join = |(flow, part): (&Flow, &Range<usize>)| match &parts[part.clone()] {
            [only] => MeasuredFlow { flow: flow.clone(), ..only.clone() },
            several => MeasuredFlow {
                flow: flow.clone(),
                counts: sum(several.iter().map(|flow| &flow.counts)),
                limit: several.iter().map(|flow| flow.limit).max().unwrap_or_default(),
                evidence: joined(several),
            },
        };
        plan.flows.iter().zip(&self.parts).map(join).collect()
    }
}

fn joined(parts: &[MeasuredFlow]) -> Evidence {
    let all = || parts.iter().map(|flow| &flow.evidence);
    Evidence {
        reached_load_balancer: all().map(|evidence| evidence.reached_load_balancer).sum(),
        picked: sum(all().map(|evidence| &evidence.picked)),
        timed_out: sum(all().map(|evidence| &evidence.timed_out)),
        health: all()
            .map(|evidence| &evidence.health)
            .max_by_key(|health| health.len())
            .cloned()
            .unwrap_or_default(),
        answered_by: sum(all().map(|evidence| &evidence.answered_by)),
        sources_seen: sum(all().map(|evidence| &evidence.sources_seen)),
        forwarded_for: sum(all().map(|evidence| &evidence.forwarded_for)),
    }
}

fn sum<'a, T: Clone + Ord + 'a>(lists: impl Iterator<Item = &'a Vec<(T, u64)>>) -> Vec<(T, u64)> {
    let mut counts = BTreeMap::new();
    for (what, count) in lists.flatten() {
        *counts.entry(what.clone()).or_insert(0) += count;
    }
    counts.into_iter().collect()
}
