//! Walks the calls of a class of clients hop by hop. A scan keeps only how calls end, so the client
//! of the class is walked again, in a reduced cluster that contains this client.
//!
//! Results whose targets lead to the same Services are walked one after the other: their reduced
//! clusters often have the same rules and the same targets of load balancers, and then they share
//! the kernels of nodes and the results of probes.

use std::net::IpAddr;
use std::ptr;
use std::sync::Arc;

use uturn_model::{Cluster, FailurePoint, Flow, LoadBalancer, Name, Verdict};
use uturn_netfilter::hash::FastMap;
use uturn_path::{Detail, Engine, NodeRuntime, Options, ProbeCache, WalkError};

use crate::clients::ScanResult;
use crate::inventory::{Caller, Inventory};
use crate::parallel::side_by_side;
use crate::partition::scope::Scope;
use crate::partition::target_classes::{Granularity, TargetClasses};
use crate::prepared::PreparedScan;
use crate::reduced::reduced_cluster::reduced_cluster;
use crate::reduced::representatives::Representatives;

/// The number of classes of clients that are prepared before they are walked.
const READY: usize = 1024;

/// A result that has to be explained.
#[derive(Clone, Copy, Debug)]
pub struct ToExplain<'r> {
    /// The result.
    pub result: &'r ScanResult,
    /// The failure point by which one of several ways with the same end is chosen for display.
    pub shown: Option<&'r FailurePoint>,
}

impl<'r> From<&'r ScanResult> for ToExplain<'r> {
    fn from(result: &'r ScanResult) -> Self {
        Self { result, shown: None }
    }
}

/// A client and its target's classes, ready to be walked in a reduced cluster.
pub(crate) struct HopJob<'a> {
    flow: Flow,
    /// The place of the client among all clients.
    client: u32,
    target_classes: TargetClasses<'a>,
    granularity: Granularity,
    /// The failure point by which one of several ways with the same end is chosen for display.
    shown: Option<FailurePoint>,
}

impl<'a> HopJob<'a> {
    /// Classifies a target for the client of a result. Returns `None` if the whole cluster has to
    /// be walked.
    pub(crate) fn new(
        prepared: &mut PreparedScan<'a>,
        scope: Scope<'a>,
        ToExplain { result, shown }: ToExplain<'_>,
    ) -> Option<Self> {
        let job = Self::of_flow(prepared, scope, result.flow(), result.clients.at as u32)?;
        Some(Self { shown: shown.cloned(), ..job })
    }

    /// Classifies a target for the client of a flow, which has this place among all clients.
    /// Returns `None` if the whole cluster has to be walked.
    pub(crate) fn of_flow(
        prepared: &mut PreparedScan<'a>,
        scope: Scope<'a>,
        flow: Flow,
        client: u32,
    ) -> Option<Self> {
        let granularity = prepared.granularity(&scope);
        if prepared.walks_whole(&scope, granularity) {
            return None;
        }
        let target_classes = prepared.classifier.classify(scope, granularity, Some(client));
        Some(Self { flow, client, target_classes, granularity, shown: None })
    }
}

/// Walks the jobs of one list, one after the other.
pub(crate) struct HopWalker<'e, 'a> {
    engine: &'e Engine<'a>,
    inventory: &'e Inventory<'a>,
    options: Options,
    /// The number of clients that are walked in all.
    among: usize,
    last: Option<LastWalk>,
}

/// The state of the last walk that the next may reuse.
struct LastWalk {
    cluster: Cluster,
    /// The number of endpoints that each endpoint of the cluster represents.
    endpoints: Option<FastMap<IpAddr, f64>>,
    runtimes: Vec<(Name, Arc<NodeRuntime>)>,
    probers: Vec<LoadBalancer>,
    probes: ProbeCache,
}

impl<'e, 'a> HopWalker<'e, 'a> {
    pub(crate) fn new(
        engine: &'e Engine<'a>,
        inventory: &'e Inventory<'a>,
        detail: Detail,
        among: usize,
    ) -> Self {
        let options = Options { detail, ..engine.options() };
        Self { engine, inventory, options, among, last: None }
    }

    /// Returns the verdict of a client's calls.
    ///
    /// # Errors
    /// Returns an error if the flow cannot be walked, [`WalkError::NeedsWhole`] if the reduced
    /// cluster is not enough.
    pub(crate) fn walk(&mut self, job: &HopJob<'a>) -> Result<Verdict, WalkError> {
        let (cluster, weights) = reduced_cluster(self.inventory, &job.target_classes);
        let weights = (job.granularity == Granularity::Classes).then_some(weights);
        let endpoints = weights.as_ref().map(|weights| weights.endpoints.clone());
        let (verdict, left) = {
            let representatives = Representatives::new(self.inventory, &cluster, weights);
            let mut engine = representatives.engine(1, self.among);
            if let Some(last) = &self.last {
                last.leave_to(&mut engine, endpoints.as_ref());
            }
            if let Some(list) = representatives.list() {
                let place = self.inventory.homes[job.client as usize];
                list.begin(Caller { place, at: job.client });
            }
            let walk = engine.walk(self.options, &representatives).showing(job.shown.as_ref());
            let verdict = walk.verdict_at(&job.flow, &job.target_classes.scope.asked.target());
            let runtimes = engine.runtimes().into_iter();
            let runtimes = runtimes.map(|(name, runtime)| (name.clone(), runtime)).collect();
            (verdict, (runtimes, probers(&engine), engine.probes()))
        };
        let (runtimes, probers, probes) = left;
        // Captured rules may lead to any pod, and each cluster has other pods.
        self.last = (!self.inventory.has_captures()).then_some(LastWalk {
            cluster,
            endpoints,
            runtimes,
            probers,
            probes,
        });
        let mut verdict = verdict?;
        verdict.supposed.splice(0..0, self.engine.supposed().iter().cloned());
        let hops = verdict.routes.iter_mut().flat_map(|route| &mut route.hops);
        for step in hops.flat_map(|hop| &mut hop.steps) {
            // The line of a generated rule depends on all the rules.
            step.by.clear_generated_line();
        }
        Ok(verdict)
    }
}

impl LastWalk {
    /// Gives an engine of another reduced cluster the kernels that are the same in both, and the
    /// results of probes if they are the same in both.
    fn leave_to(&self, engine: &mut Engine<'_>, endpoints: Option<&FastMap<IpAddr, f64>>) {
        let (known, new) = (&self.cluster, engine.cluster());
        if !NodeRuntime::have_same_rules(known, new) {
            return;
        }
        for (name, runtime) in &self.runtimes {
            if new.nodes.contains_key(name) && NodeRuntime::has_same_links(name, known, new) {
                engine.adopt(name, runtime);
            }
        }
        // Clients, and nodes without endpoints, do not affect how another node answers probes.
        if self.endpoints.as_ref() == endpoints && self.probers == probers(engine) {
            engine.adopt_probes(&self.probes);
        }
    }
}

/// Returns the load balancers of an engine without rules, on which their probes do not depend.
fn probers(engine: &Engine<'_>) -> Vec<LoadBalancer> {
    let mut balancers = engine.balancers().to_vec();
    let listeners = balancers.iter_mut().flat_map(|balancer| &mut balancer.listeners);
    listeners.for_each(|listener| listener.rules.clear());
    balancers
}

/// Walks the clients of all results on all processors. Returns the value of `of` for the verdicts
/// of each result, in the order of the results.
pub(crate) fn walk_all<'a, T: Send>(
    engine: &Engine<'a>,
    prepared: &mut PreparedScan<'a>,
    results: &[ToExplain<'_>],
    detail: Detail,
    of: impl Fn(usize, &[Verdict]) -> T + Sync,
) -> Vec<Result<T, WalkError>> {
    let mut walked: Vec<Option<Result<T, WalkError>>> = results.iter().map(|_| None).collect();
    let scopes = Scopes::of(engine, prepared, results);
    let inventory = Arc::clone(&prepared.classifier.inventory);
    let walk_list = |jobs: Vec<(usize, HopJob<'a>)>| {
        let mut walker = HopWalker::new(engine, &inventory, detail, results.len());
        let walk = |(at, job): (usize, HopJob<'a>)| {
            (at, walker.walk(&job).map(|verdict| of(at, &[verdict])))
        };
        jobs.into_iter().map(walk).collect::<Vec<_>>()
    };
    let mut lists = scopes.lists.iter().peekable();
    while lists.peek().is_some() {
        let make_ready = |hand_out: &mut dyn FnMut(Vec<(usize, HopJob<'a>)>)| {
            let mut ready = 0;
            while ready < READY
                && let Some(list) = lists.next()
            {
                let mut jobs = Vec::with_capacity(list.len());
                for (number, at) in list {
                    match &scopes.scopes[*number] {
                        Ok(scope) => {
                            let job = HopJob::new(prepared, scope.clone(), results[*at]);
                            jobs.extend(job.map(|job| (*at, job)));
                        }
                        Err(why) => walked[*at] = Some(Err(why.clone())),
                    }
                }
                ready += jobs.len();
                hand_out(jobs);
            }
        };
        for (at, found) in side_by_side(make_ready, walk_list).into_iter().flatten() {
            walked[at] = Some(found);
        }
    }
    let whole = |at: usize| {
        let ToExplain { result, shown } = results[at];
        let verdict = engine.verdict_showing(&result.flow(), shown)?;
        Ok(of(at, &[verdict]))
    };
    let walked = walked.into_iter().enumerate();
    let walked = walked.map(|(at, found)| match found {
        None | Some(Err(WalkError::NeedsWhole)) => whole(at),
        Some(found) => found,
    });
    walked.collect()
}

/// The scopes of results' targets.
struct Scopes<'a> {
    scopes: Vec<Result<Scope<'a>, WalkError>>,
    /// Lists of results whose targets can meet the same Services: the number of the scope and the
    /// place of each result, those of one scope together.
    lists: Vec<Vec<(usize, usize)>>,
}

impl<'a> Scopes<'a> {
    fn of(engine: &Engine<'a>, prepared: &PreparedScan<'a>, results: &[ToExplain<'_>]) -> Self {
        let mut scopes: Vec<Result<Scope<'a>, WalkError>> = Vec::new();
        let mut lists: Vec<Vec<(usize, usize)>> = Vec::new();
        // By the places in memory of targets and of Services.
        let mut by_target: FastMap<usize, (usize, usize)> = FastMap::default();
        let mut by_services: FastMap<Vec<usize>, usize> = FastMap::default();
        for (at, ToExplain { result, .. }) in results.iter().enumerate() {
            let target = Arc::as_ptr(&result.target).addr();
            let (number, list) = *by_target.entry(target).or_insert_with(|| {
                let scope = prepared.scope(engine, result.target.called());
                let services = scope.iter().flat_map(|scope| &scope.services);
                let services = services.map(|service| ptr::from_ref(*service).addr()).collect();
                let list = *by_services.entry(services).or_insert(lists.len());
                if list == lists.len() {
                    lists.push(Vec::new());
                }
                scopes.push(scope);
                (scopes.len() - 1, list)
            });
            lists[list].push((number, at));
        }
        lists.iter_mut().for_each(|list| list.sort_unstable());
        Self { scopes, lists }
    }
}

#[cfg(test)]
mod tests {
    use uturn_snapshot::{Source, read};

    use super::*;
    use crate::Scanner;

    /// Makes a cluster of this many nodes, each with a pod of one Service, which an Ingress leads
    /// to.
    fn cluster(nodes: usize) -> Cluster {
        let mut text = "apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  provider: tke
  kubeProxy: {mode: iptables, version: v1.34.4}
  network: {mode: global-router, podCIDRs: [10.1.0.0/16], vpcCIDRs: [10.0.0.0/16], serviceCIDRs: [172.16.0.0/16]}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {type: NodePort, clusterIP: 172.16.0.10, selector: {app: web}, ports: [{port: 80, targetPort: 8080, nodePort: 30080}]}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, namespace: shop, annotations: {kubernetes.io/ingress.subnetId: subnet}}
spec: {rules: [{http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}
status: {loadBalancer: {ingress: [{ip: 10.0.0.100}]}}
"
        .to_owned();
        for node in 1..=nodes {
            text.push_str(&format!(
                "---
{{apiVersion: v1, kind: Node, metadata: {{name: n{node}}}, spec: {{podCIDR: 10.1.{node}.0/24}}, status: {{addresses: [{{type: InternalIP, address: 10.0.0.{node}}}]}}}}
---
{{apiVersion: v1, kind: Pod, metadata: {{name: web-{node}, namespace: shop, labels: {{app: web}}}}, spec: {{nodeName: n{node}, containers: [{{name: c, image: c}}]}}, status: {{phase: Running, podIP: 10.1.{node}.10, conditions: [{{type: Ready, status: \"True\"}}]}}}}
"
            ));
        }
        let source = Source { name: "made.yaml".into(), text };
        read(vec![source]).expect("manifests").cluster
    }

    /// Reduced clusters of clients on different nodes have different endpoints: the results of one
    /// must not be used in the other.
    #[test]
    fn each_client_of_a_class_is_explained_as_if_it_were_alone() {
        let cluster = cluster(7);
        let engine = Engine::new(&cluster).unwrap();
        let scanner = Scanner::new(&engine);
        let scanned = scanner.scan(&scanner.targets()).unwrap();
        let of_each_client = scanned.iter().flat_map(|result| {
            let clients = result.clients.pods.places().zip(result.clients.pods.iter());
            clients.map(|(at, name)| {
                let mut result = result.clone();
                (result.clients.at, result.clients.first) = (at, name.clone());
                result
            })
        });
        let results: Vec<ScanResult> = of_each_client.collect();
        assert!(results.len() > scanned.len());
        let explain = |results: &[ToExplain<'_>]| -> Vec<Vec<Verdict>> {
            let explained = scanner.explain_each_worst(results, |_, verdicts| verdicts.to_vec());
            explained.into_iter().map(|verdicts| verdicts.unwrap()).collect()
        };
        let all: Vec<ToExplain<'_>> = results.iter().map(ToExplain::from).collect();
        for (one, explained) in all.iter().zip(explain(&all)) {
            assert_eq!(explained, explain(&[*one])[0], "{:?}", one.result.flow());
        }
    }
}
