//! Cases of what is not known and matters: a verdict for each case, merged where they are equal.
//!
//! Two things are often missing and decide a lot: how kube-proxy runs (its mode, whether it is
//! the cloud's own build, and whether it knows the pods' ranges, without which it keeps pods
//! from a Service of policy Local), and where pods will run that do not exist yet. Each reading
//! of them is a separate cluster that the same engine walks. A third is what unmodelled rules do
//! (`rules`), a fourth what a name leads to (`names`), a fifth where the network brings packets for an
//! address that no interface is known to have (`brought`). Readings with equal verdicts are merged
//! into one case, and a case names only what makes a difference.

mod api_server;
mod brought;
mod kube_proxy;
mod names;
mod placement;
mod rules;
mod table;

use uturn_model::{Client, Cluster, Destination, Flow, Verdict};
use uturn_netfilter::Assumptions;

pub use self::kube_proxy::{Configurations, MAX_PODS, each_other, has_others, others};
use self::kube_proxy::{as_running, runnings_of_one_call};
use self::placement::{movers, node_kinds, on_node_kind};
use self::rules::Open;
pub(crate) use self::rules::rule_cases;
use self::table::Table;
use crate::engine::Engine;
use crate::error::WalkError;
use crate::verdict;

/// Walks a flow once for each case of what is not known and matters. Returns one verdict for each
/// case.
///
/// # Errors
/// Returns an error if the flow cannot be walked in one of the cases.
pub(crate) fn cases(engine: &Engine<'_>, flow: &Flow) -> Result<Vec<Verdict>, WalkError> {
    if let Some(direct) = api_server::dialled(engine, flow) {
        return cases(engine, &direct);
    }
    let verdicts = rules::by_rules(engine, flow)?;
    let verdicts = brought::by_place(engine, flow, verdicts)?;
    match names::unresolved_name(engine, flow)? {
        Some(doubt) => names::by_name(engine, flow, &doubt, verdicts),
        None => Ok(verdicts),
    }
}

/// Returns whether a pod's call of an address, Service or Ingress has a single case, so that
/// [`Engine::cases`] is the verdict of a walk alone.
pub fn has_one_case(cluster: &Cluster, flow: &Flow) -> bool {
    let is_of_pod = matches!(flow.from, Client::Pod(_));
    let is_name = !matches!(
        flow.to,
        Destination::Address(_) | Destination::Service(..) | Destination::Ingress { .. }
    );
    // Rules of captured nodes may be unmodelled.
    is_of_pod
        && !is_name
        && cluster.captures.is_empty()
        && runnings_of_one_call(cluster).len() < 2
        && movers(cluster, &flow.from).is_empty()
}

/// Returns a verdict for each case of how kube-proxy runs and where pods will run, and the open
/// questions: rules that packets reached and that are not modelled.
fn by_cluster(
    engine: &Engine<'_>,
    flow: &Flow,
    assumed: &Assumptions,
) -> Result<(Vec<Verdict>, Open), WalkError> {
    let cluster = engine.cluster();
    let runnings = runnings_of_one_call(cluster);
    let movers = movers(cluster, &flow.from);
    let node_kinds = if movers.is_empty() { Vec::new() } else { node_kinds(cluster, &movers) };
    if runnings.len() < 2 && node_kinds.len() < 2 {
        let (verdict, open) = assuming(engine, flow, assumed)?;
        return Ok((vec![verdict], open));
    }
    let mut table = Table { runnings, node_kinds, verdicts: Vec::new() };
    let mut open = Open::default();
    for running in &table.runnings {
        let mut row = Vec::new();
        let read = as_running(cluster, *running);
        let mut try_one = |cluster: &Cluster| -> Result<(), WalkError> {
            let (verdict, met) = verdict_of(engine, cluster, flow, assumed)?;
            row.push(verdict);
            open.add(met);
            Ok(())
        };
        if table.node_kinds.len() < 2 {
            try_one(&read)?;
        } else {
            for node_kind in &table.node_kinds {
                try_one(&on_node_kind(&read, &movers, &node_kind.node))?;
            }
        }
        table.verdicts.push(row);
    }
    if table.is_one() {
        let (verdict, open) = assuming(engine, flow, assumed)?;
        return Ok((vec![verdict], open));
    }
    Ok((table.merged(), open))
}

/// Returns the verdict under assumptions about rules that are not modelled, and the rules that
/// packets reached without an assumption.
fn assuming(
    engine: &Engine<'_>,
    flow: &Flow,
    assumed: &Assumptions,
) -> Result<(Verdict, Open), WalkError> {
    let walk = engine.walk_whole().assuming(assumed.clone());
    let verdict = verdict::of_flow(&walk, flow)?;
    let ways = walk.work.open_ways();
    Ok((verdict, Open { questions: walk.into_open(), ways }))
}

fn verdict_of(
    engine: &Engine<'_>,
    cluster: &Cluster,
    flow: &Flow,
    assumed: &Assumptions,
) -> Result<(Verdict, Open), WalkError> {
    let other = Engine::new(cluster).map_err(|mut faults| faults.remove(0))?;
    let other = other.with_options(engine.options());
    let other = if engine.has_met_services() { other.with_met_services() } else { other };
    let found = assuming(&other, flow, assumed);
    engine.work.count_done(other.work.done());
    found
}

/// Joins words: `a, b or c`.
fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
