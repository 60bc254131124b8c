//! Walks every client against every target, each flow in the whole cluster: slow, without classes,
//! and for comparison with the results of a scan by classes.

use std::sync::Arc;

use uturn_model::{Client, Flow, Pod, Verdict};
use uturn_path::{Detail, Engine, Individuals, Options, WalkError};

use crate::clients::{ClientClass, Pods, ScanResult, without_details};
use crate::inventory::Inventory;
use crate::inventory::interval_set::IntervalSet;
use crate::parallel::side_by_side;
use crate::partition::scope::Scope;
use crate::prepared::PreparedScan;
use crate::targets::ScanTarget;

/// Clients of a target whose calls end alike, by their places.
struct Group {
    places: Vec<u32>,
    is_host: bool,
    is_endpoint: bool,
    verdict: Verdict,
}

/// Walks every client against every target. Clients share a result if their calls end alike for the
/// same reasons.
///
/// # Errors
/// Returns an error if a target does not exist, or a flow towards it cannot be walked.
pub(crate) fn walk_all<'a>(
    engine: &Engine<'a>,
    prepared: &PreparedScan<'a>,
    targets: &[ScanTarget],
) -> Result<Vec<ScanResult>, WalkError> {
    let inventory: &Inventory<'a> = &prepared.classifier.inventory;
    let scopes: Vec<Scope<'a>> = targets
        .iter()
        .map(|target| prepared.scope(engine, target.called()))
        .collect::<Result<_, _>>()?;
    let walked = side_by_side(
        |walk| targets.iter().zip(&scopes).for_each(walk),
        |(target, scope)| walk_target(engine, inventory, target, scope),
    );
    let mut results = Vec::new();
    for (target, groups) in targets.iter().zip(walked) {
        let target = Arc::new(target.clone());
        for Group { places, is_host, is_endpoint, verdict } in groups? {
            let mut homes: Vec<u32> =
                places.iter().map(|at| inventory.homes[*at as usize]).collect();
            homes.sort_unstable();
            homes.dedup();
            let ranges = places.iter().map(|at| *at..at + 1).collect();
            let first = places[0] as usize;
            let clients = ClientClass {
                first: inventory.clients[first].name.clone(),
                at: first,
                pods: Pods::new(IntervalSet::new(ranges), &prepared.client_names),
                nodes: homes.len(),
                host_network: is_host,
                itself: is_endpoint,
            };
            let verdicts = [verdict].into();
            results.push(ScanResult { clients, target: Arc::clone(&target), verdicts });
        }
    }
    Ok(results)
}

/// Returns the clients of a target, in groups whose calls end alike.
fn walk_target<'a>(
    engine: &Engine<'a>,
    inventory: &Inventory<'a>,
    target: &ScanTarget,
    scope: &Scope<'a>,
) -> Result<Vec<Group>, WalkError> {
    let asked = scope.asked.target();
    let options = Options { detail: Detail::Brief, ..engine.options() };
    let walk = engine.walk(options, &Individuals);
    let mut groups: Vec<Group> = Vec::new();
    for (at, pod) in (0u32..).zip(&inventory.clients) {
        let flow = Flow {
            from: Client::Pod(pod.name.clone()),
            to: target.to.clone(),
            protocol: target.protocol,
        };
        let mut verdict = match walk.verdict_at(&flow, &asked) {
            // The client cannot call the target.
            Err(WalkError::NoAddress(..)) => continue,
            verdict => verdict?,
        };
        without_details(&mut verdict);
        let (is_host, is_endpoint) = (pod.spec.host_network, is_endpoint(scope, inventory, pod));
        let known = groups.iter_mut().find(|group| {
            (group.is_host, group.is_endpoint) == (is_host, is_endpoint) && group.verdict == verdict
        });
        match known {
            Some(group) => group.places.push(at),
            None => groups.push(Group { places: vec![at], is_host, is_endpoint, verdict }),
        }
    }
    Ok(groups)
}

/// Returns whether a pod is an endpoint of a Service whose rules packets towards the target can
/// meet.
fn is_endpoint(scope: &Scope<'_>, inventory: &Inventory<'_>, pod: &Pod) -> bool {
    let slices = scope.services.iter().flat_map(|service| inventory.cluster.slices(&service.name));
    let mut endpoints = slices.flat_map(|slice| &slice.endpoints);
    !pod.spec.host_network && endpoints.any(|endpoint| pod.ips.contains(&endpoint.address))
}
