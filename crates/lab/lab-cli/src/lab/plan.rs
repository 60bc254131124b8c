//! The plan by which the lab builds and measures a case.

use uturn_cli::{Failure, Part};
use uturn_lab::Plan;
use uturn_model::Flow;
use uturn_snapshot::scenario::Case;

use super::options::MeasureOptions;

/// Calls `work` with the plan of a case.
pub(super) fn with_plan<T>(
    case: &Case,
    options: &MeasureOptions,
    work: impl FnOnce(&Plan<'_>) -> T,
) -> Result<T, Failure> {
    let mut rules = case.cluster.captures.clone();
    rules.extend(options.captures()?);
    let engine = super::engine(&case.cluster)?;
    let flows: Vec<Flow> = case.flows.iter().map(|flow| flow.flow.clone()).collect();
    let program = Part::Lb.find().map_err(|why| Failure::unavailable(why.to_string()))?;
    let plan = Plan {
        cluster: &case.cluster,
        load_balancers: engine.balancers(),
        flows: &flows,
        connects: options.connects as usize,
        paced: options.paced,
        program,
        rules: &rules,
        coredns: options.coredns.clone(),
    };
    Ok(work(&plan))
}
