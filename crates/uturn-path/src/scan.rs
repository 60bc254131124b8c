//! Every class of client against every target.
//!
//! A target is drawn in outline (`sketch`): clients that it cannot tell apart are one class,
//! and so are nodes and endpoints. What the outline says is made into a small cluster
//! (`mini`) and walked, one client of each class; numbers of equals come in as shares.
//! Targets whose outlines are the same but for names are walked once.
//!
//! A load balancer that tries one target after the other asks them in an order. Where they
//! are of several kinds, clients of a class are told apart by who stands in line around
//! their own node (`ring`), and arithmetic says what becomes of each (`odds`).
//!
//! Where a verdict depends on more than classes can say (a load balancer that picks by the
//! client's address, rules of a capture), nodes or pods are taken one by one for that target.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use uturn_lb::controller;
use uturn_model::route::Route;
use uturn_model::service::ServiceKind;
use uturn_model::{
    Client, Destination, Flow, Name, NamespacedName, ObjectRef, Outcome, Protocol, ProxyMode, Text,
    Verdict,
};
use uturn_netfilter::IpProtocol;

use crate::census::Census;
use crate::crowd::Crowd;
use crate::engine::{Cannot, Engine, Fault};
use crate::mini::{mini, outline_of_listeners};
use crate::ring::Caller;
use crate::scope::{Asked, Listeners, Scope};
use crate::sketch::{Callers, Care, Sketch, Sketcher};
use crate::travel::Party;

/// Something that clients of the cluster call.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanTarget {
    /// The object it belongs to.
    pub object: ObjectRef,
    /// How it is called.
    pub to: Destination,
    /// By which protocol.
    pub protocol: Protocol,
    /// For a reader: `:80`, `:80 shop.example.com/`.
    pub label: String,
}

/// Pods of a cluster, as few or as many as there are.
#[derive(Clone, Debug)]
pub struct Pods {
    crowd: Crowd,
    everyone: Arc<Everyone>,
}

/// All pods that can be clients.
#[derive(Debug)]
struct Everyone {
    pods: Vec<NamespacedName>,
    /// Pods of one node that stand together: where, and on which.
    runs: Vec<(Range<u32>, u32)>,
    nodes: Vec<Name>,
}

/// Clients that a target cannot tell apart.
#[derive(Clone, Debug)]
pub struct ClientClass {
    /// Who was walked for all.
    pub first: NamespacedName,
    /// Where that one stands among everyone.
    at: usize,
    /// All of them.
    pub pods: Pods,
    /// How many nodes they are on.
    pub nodes: usize,
    /// Whether they share their node's network.
    pub host_network: bool,
    /// Whether they are endpoints of the target themselves.
    pub itself: bool,
}

/// A class of clients met a target.
#[derive(Clone, Debug)]
pub struct Met {
    /// The clients.
    pub clients: ClientClass,
    /// The target.
    pub target: Arc<ScanTarget>,
    /// What became of it. Routes have no hops: those are [`Engine::explain`]'s.
    pub verdicts: Arc<[Verdict]>,
}

impl Met {
    /// The flow that was walked for all of the class.
    pub fn flow(&self) -> Flow {
        Flow {
            from: Client::Pod(self.clients.first.clone()),
            to: self.target.to.clone(),
            protocol: self.target.protocol,
        }
    }

    /// How many flows it speaks for, the pods of one node being one unless they are
    /// endpoints themselves.
    pub fn flows(&self) -> usize {
        if self.clients.itself { self.clients.pods.len() } else { self.clients.nodes }
    }
}

impl Pods {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.crowd.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.crowd.is_empty()
    }

    /// Their names.
    pub fn iter(&self) -> impl Iterator<Item = &NamespacedName> {
        self.crowd.iter().map(|at| &self.everyone.pods[at])
    }

    /// The nodes that they are on.
    pub fn nodes(&self) -> Vec<&Name> {
        let mut on = vec![false; self.everyone.nodes.len()];
        for range in self.crowd.ranges() {
            let runs = &self.everyone.runs;
            let first = runs.partition_point(|(run, _)| run.end <= range.start);
            for (_, node) in runs[first..].iter().take_while(|(run, _)| run.start < range.end) {
                on[*node as usize] = true;
            }
        }
        let names = self.everyone.nodes.iter().zip(on);
        names.filter_map(|(name, is_on)| is_on.then_some(name)).collect()
    }

    /// These and those, of the same scan.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self { crowd: self.crowd.and(&other.crowd), everyone: Arc::clone(&self.everyone) }
    }

    /// Whether the one who was walked for a class is among them.
    pub fn has(&self, class: &ClientClass) -> bool {
        self.crowd.contains(class.at)
    }
}

/// All that is worked out once for all targets.
pub(crate) struct Atlas<'a> {
    sketcher: Sketcher<'a>,
    listeners: Listeners,
    everyone: Arc<Everyone>,
}

/// The verdicts of each class of clients of a sketch, in its order.
type Answers = Arc<[Arc<[Verdict]>]>;

/// Classes of clients, each with its verdicts.
type Answered<'a> = Vec<(Callers<'a>, Arc<[Verdict]>)>;

/// What came of walking a sketch.
struct Walked<'a> {
    answered: Answered<'a>,
    /// Whether every target of the same shape and sizes has the same verdicts.
    is_common: bool,
}

/// What is known of a shape.
enum Shape {
    /// Numbers of equals make no difference.
    Always(Answers),
    /// They do: what is known of some.
    Sized(HashMap<Vec<u64>, Answers>),
    /// It takes everybody to know.
    NeedsAll,
}

impl<'a> Engine<'a> {
    /// Walks every class of client against every target.
    pub fn scan(&self, targets: &[ScanTarget]) -> Result<Vec<Met>, Cannot> {
        let mut atlas = self.atlas().borrow_mut();
        let mut shapes: HashMap<Vec<u64>, Shape> = HashMap::new();
        let mut met = Vec::new();
        for target in targets {
            let target = Arc::new(target.clone());
            let mut here = self.answers(&mut atlas, &mut shapes, &target)?;
            here.sort_by_key(|(one, _)| (&one.pod.node, one.pod.spec.host_network, one.itself));
            met.extend(here.into_iter().map(|(one, verdicts)| Met {
                clients: ClientClass {
                    first: one.pod.name.clone(),
                    at: one.at as usize,
                    pods: Pods { crowd: one.crowd, everyone: Arc::clone(&atlas.everyone) },
                    nodes: one.nodes,
                    host_network: one.pod.spec.host_network,
                    itself: one.itself,
                },
                target: Arc::clone(&target),
                verdicts,
            }));
        }
        Ok(met)
    }

    /// What a class of clients met, hop by hop.
    pub fn explain(&self, met: &Met) -> Result<Vec<Verdict>, Cannot> {
        let flow = met.flow();
        // Rules of a large cluster are not written in full for a single flow.
        let size = self.cluster.nodes.len() * self.cluster.services.len();
        if size <= SMALL || !self.cluster.captures.is_empty() {
            return self.verdicts(&flow);
        }
        let mut atlas = self.atlas().borrow_mut();
        let scope = self.scope(&atlas, &met.target)?;
        let care = self.care(&atlas, &scope);
        let sketch = atlas.sketcher.sketch(scope, care, Some(met.clients.at as u32));
        let (cluster, weights) = mini(&atlas.sketcher.census, &sketch);
        let mut engine = Engine::of(&cluster, (care == Care::Classes).then_some(weights));
        engine.keeps_every_way = self.keeps_every_way;
        if let Some(line) = engine.weights.as_ref().and_then(|weights| weights.line.as_ref()) {
            let at = met.clients.at as u32;
            line.begin(Caller { place: atlas.sketcher.census.homes[at as usize], at });
        }
        let mut verdict = engine.verdict_at(&flow, &sketch.scope.asked.target())?;
        verdict.supposed.splice(0..0, self.supposed().iter().cloned());
        let hops = verdict.routes.iter_mut().flat_map(|route| &mut route.hops);
        for step in hops.flat_map(|hop| &mut hop.steps) {
            // Which line it is depends on all the rules.
            if step.by.source.file.starts_with("rules/") {
                step.by.source.line = 0;
            }
        }
        Ok(vec![verdict])
    }

    fn atlas(&self) -> &std::cell::RefCell<Atlas<'a>> {
        self.atlas.get_or_init(|| {
            let census = Census::new(self.cluster);
            let everyone = Arc::new(Everyone::of(&census));
            let listeners = Listeners::new(&outline_of_listeners(self.cluster));
            let sketcher = Sketcher::new(census);
            std::cell::RefCell::new(Atlas { sketcher, listeners, everyone })
        })
    }

    fn scope(&self, atlas: &Atlas<'a>, target: &ScanTarget) -> Result<Scope<'a>, Cannot> {
        let aim = self.aim(Party::Outside, &target.to)?;
        let Some(to) = aim.addresses.first().copied() else {
            return Err(Cannot::Later(format!("{} has no address", target.to)));
        };
        let protocol = IpProtocol::from(target.protocol);
        let asked = Asked { to, protocol, request: aim.request };
        Ok(Scope::new(&atlas.sketcher.census, &atlas.listeners, asked))
    }

    /// How closely a target has to be looked at, as far as it can be told beforehand.
    fn care(&self, atlas: &Atlas<'a>, scope: &Scope<'a>) -> Care {
        let proxy = &self.cluster.proxy;
        let scheduler = &*proxy.ipvs_scheduler;
        let is_even = proxy.mode.value != ProxyMode::Ipvs
            || matches!(scheduler, "" | "rr" | "wrr" | "lc" | "wlc");
        if scope.picks_by_client() {
            Care::EveryPod
        } else if atlas.sketcher.census.marks.are_blind || scope.is_tangled || !is_even {
            Care::EveryNode
        } else {
            Care::Classes
        }
    }

    fn answers(
        &self,
        atlas: &mut Atlas<'a>,
        shapes: &mut HashMap<Vec<u64>, Shape>,
        target: &ScanTarget,
    ) -> Result<Answered<'a>, Cannot> {
        let scope = self.scope(atlas, target)?;
        let mut care = self.care(atlas, &scope);
        let mut sketch = atlas.sketcher.sketch(scope, care, None);
        if care == Care::Classes {
            let known = match shapes.get(&sketch.shape) {
                Some(Shape::Always(known)) => Some(Arc::clone(known)),
                Some(Shape::Sized(sizes)) => sizes.get(&sketch.sizes).cloned(),
                Some(Shape::NeedsAll) | None => None,
            };
            if let Some(known) = known {
                return Ok(sketch.callers.into_iter().zip(known.iter().cloned()).collect());
            }
            if !matches!(shapes.get(&sketch.shape), Some(Shape::NeedsAll)) {
                if let Some(walked) = self.walk(atlas, &sketch, target, care)? {
                    if walked.is_common {
                        let all = walked.answered.iter().map(|(_, one)| Arc::clone(one));
                        remember(shapes, &sketch, &all.collect());
                    }
                    return Ok(walked.answered);
                }
                shapes.insert(sketch.shape, Shape::NeedsAll);
            }
            care = Care::EveryNode;
            sketch = atlas.sketcher.sketch(sketch.scope, care, None);
        }
        let walked = self.walk(atlas, &sketch, target, care)?;
        Ok(walked.map(|walked| walked.answered).unwrap_or_default())
    }

    /// Walks a client of each class; nothing where that does not settle it.
    fn walk(
        &self,
        atlas: &Atlas<'a>,
        sketch: &Sketch<'a>,
        target: &ScanTarget,
        care: Care,
    ) -> Result<Option<Walked<'a>>, Cannot> {
        let census = &atlas.sketcher.census;
        if !self.cluster.captures.is_empty() {
            return self.walk_all(self, census, sketch, target);
        }
        let (cluster, weights) = mini(census, sketch);
        let mut engine = Engine::of(&cluster, (care == Care::Classes).then_some(weights));
        engine.keeps_every_way = self.keeps_every_way;
        engine.is_brief = true;
        self.walk_all(&engine, census, sketch, target)
    }

    fn walk_all(
        &self,
        engine: &Engine<'_>,
        census: &Census<'a>,
        sketch: &Sketch<'a>,
        target: &ScanTarget,
    ) -> Result<Option<Walked<'a>>, Cannot> {
        let asked = sketch.scope.asked.target();
        let line = engine.weights.as_ref().and_then(|weights| weights.line.as_ref());
        let mut answered = Vec::with_capacity(sketch.callers.len());
        let mut is_common = true;
        for callers in &sketch.callers {
            let flow = Flow {
                from: Client::Pod(callers.pod.name.clone()),
                to: target.to.clone(),
                protocol: target.protocol,
            };
            let walk = || -> Result<Option<Arc<[Verdict]>>, Cannot> {
                let mut verdict = engine.verdict_at(&flow, &asked)?;
                match engine.fault.take() {
                    Some(Fault::Cannot(why)) => return Err(why),
                    Some(Fault::NeedsAll) => return Ok(None),
                    None => {}
                }
                verdict.supposed = Vec::new();
                verdict.routes.iter_mut().for_each(|route| route.hops = Vec::new());
                Ok(Some([verdict].into()))
            };
            if let Some(line) = line {
                line.begin(callers.caller(census));
            }
            let Some(verdicts) = walk()? else { return Ok(None) };
            let rounds = line.map(|line| line.met.take()).unwrap_or_default();
            let Some(line) = line.filter(|_| !rounds.iter().all(|one| one.ring.is_even())) else {
                answered.push((callers.clone(), verdicts));
                continue;
            };
            is_common = false;
            let mut parts = Vec::new();
            for (first, part) in callers.told_apart(census, &rounds) {
                let verdicts = match rounds.as_slice() {
                    _ if first == line.walked.get() => Arc::clone(&verdicts),
                    [round] if round.is_all.get() => [round.verdict(first)].into(),
                    _ => {
                        line.speaks_for.set(first);
                        let Some(verdicts) = walk()? else { return Ok(None) };
                        verdicts
                    }
                };
                parts.push((part, verdicts));
            }
            answered.extend(together(census, parts));
        }
        Ok(Some(Walked { answered, is_common }))
    }

    /// All that clients of the cluster can call.
    pub fn targets(&self) -> Vec<ScanTarget> {
        let mut targets = Vec::new();
        for service in self.cluster.services.values() {
            let object = service.object();
            let mut push = |to: Destination, protocol, label: String| {
                targets.push(ScanTarget { object: object.clone(), to, protocol, label });
            };
            for port in &service.ports {
                if !service.cluster_ips.is_empty() {
                    let to = Destination::Service(
                        service.name.clone(),
                        Some(port.port.to_string().into()),
                    );
                    push(to, port.protocol, format!(":{}", port.port));
                }
                if service.kind == ServiceKind::LoadBalancer {
                    for vip in service.load_balancer.iter().filter_map(|one| one.ip) {
                        let to = Destination::Address((vip, port.port.number()).into());
                        push(to, port.protocol, format!("{vip}:{}", port.port));
                    }
                }
                for ip in &service.external_ips {
                    let to = Destination::Address((*ip, port.port.number()).into());
                    push(to, port.protocol, format!("{ip}:{}", port.port));
                }
            }
        }
        for ingress in self.cluster.ingresses.values() {
            if !controller::is_served_by_cloud(self.cluster, ingress)
                || ingress.load_balancer.iter().all(|one| one.ip.is_none())
            {
                continue;
            }
            let (port, _) = controller::ingress_listens(ingress);
            let mut push = |host: Option<Text>, path: Option<Text>| {
                let label = format!(
                    ":{port} {}{}",
                    host.as_deref().unwrap_or("*"),
                    path.as_deref().unwrap_or("/")
                );
                targets.push(ScanTarget {
                    object: ingress.object(),
                    to: Destination::Ingress { name: ingress.name.clone(), host, path },
                    protocol: Protocol::Tcp,
                    label,
                });
            };
            for rule in &ingress.rules {
                for path in &rule.paths {
                    push(rule.host.clone(), Some(path.path.clone()));
                }
            }
            if ingress.rules.is_empty() && ingress.default_backend.is_some() {
                push(None, Some("/".into()));
            }
        }
        targets
    }
}

/// Nodes times Services: up to so many, every node's rules are written in full to explain a
/// flow, so that evidence can name lines.
const SMALL: usize = 20_000;

fn remember(shapes: &mut HashMap<Vec<u64>, Shape>, sketch: &Sketch<'_>, answers: &Answers) {
    let is_always = answers.iter().flat_map(|one| one.iter()).all(regardless_of_numbers);
    match shapes.get_mut(&sketch.shape) {
        Some(Shape::Sized(sizes)) => drop(sizes.insert(sketch.sizes.clone(), answers.clone())),
        Some(Shape::Always(_) | Shape::NeedsAll) => {}
        None => {
            let known = match is_always {
                true => Shape::Always(answers.clone()),
                false => Shape::Sized(HashMap::from([(sketch.sizes.clone(), answers.clone())])),
            };
            shapes.insert(sketch.shape.clone(), known);
        }
    }
}

/// Clients with equal verdicts are one class, wherever they stand in line.
fn together<'a>(census: &Census<'a>, parts: Answered<'a>) -> Answered<'a> {
    let mut places: HashMap<_, usize> = HashMap::new();
    let mut kept: Vec<(Vec<Callers<'a>>, Arc<[Verdict]>)> = Vec::new();
    for (part, verdicts) in parts {
        let all = verdicts.iter().map(|one| {
            let rounded = |(end, share): &(Outcome, f64)| (*end, (share * 1e10).round() as u64);
            let mut outcomes: Vec<_> = one.outcomes.iter().map(rounded).collect();
            outcomes.sort_unstable();
            (outcomes, one.mechanisms.clone())
        });
        let at = *places.entry(all.collect::<Vec<_>>()).or_insert(kept.len());
        match kept.get_mut(at) {
            Some((known, _)) => known.push(part),
            None => kept.push((vec![part], verdicts)),
        }
    }
    let all = kept.into_iter();
    all.filter_map(|(parts, verdicts)| Some((Callers::together(census, parts)?, verdicts)))
        .collect()
}

/// Whether a verdict is the same however many equals there are: all its ways end alike, and
/// at once.
fn regardless_of_numbers(verdict: &Verdict) -> bool {
    let [(outcome, _)] = verdict.outcomes.as_slice() else { return false };
    let same = |route: &Route| route.mechanisms == verdict.mechanisms;
    outcome.after().is_none_or(|after| after.is_zero()) && verdict.routes.iter().all(same)
}

impl Everyone {
    fn of(census: &Census<'_>) -> Self {
        let mut runs: Vec<(Range<u32>, u32)> = census
            .nodes
            .iter()
            .enumerate()
            .flat_map(|(place, node)| {
                node.kinds.iter().map(move |(_, range)| (range.clone(), place as u32))
            })
            .collect();
        runs.sort_unstable_by_key(|(run, _)| run.start);
        Self {
            pods: census.clients.iter().map(|pod| pod.name.clone()).collect(),
            runs,
            nodes: census.nodes.iter().map(|one| one.node.name.clone()).collect(),
        }
    }
}
