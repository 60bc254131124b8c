//! Every class of client against every target.
//!
//! A target is drawn in outline (`target_classes`): clients that it cannot tell apart are one class,
//! and so are nodes and endpoints. What the outline says is made into a small cluster
//! (`reduced_cluster`) and walked, one client of each class; numbers of equals come in as shares.
//! Targets whose outlines are the same but for names are walked once.
//!
//! A load balancer that tries one target after the other asks them in an order. Where they
//! are of several kinds, clients of a class are told apart by who stands in line around
//! their own node (`retry_ring`), and arithmetic says what becomes of each (`failover_probability`).
//!
//! Where a verdict depends on more than classes can say (a load balancer that picks by the
//! client's address, rules of a capture), nodes or pods are taken one by one for that target.

use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

use uturn_lb::controller;
use uturn_model::network::NetworkMode;
use uturn_model::service::ServiceKind;
use uturn_model::{
    Client, Destination, Flow, Name, NamespacedName, ObjectRef, Protocol, ProxyMode, Text, Verdict,
};
use uturn_netfilter::IpProtocol;

use crate::discriminators::{Discriminators, is_even};
use crate::engine::{Engine, WalkError};
use crate::interval_set::IntervalSet;
use crate::inventory::Inventory;
use crate::journey::Peer;
use crate::parallel::side_by_side;
use crate::reduced_cluster::{mini, outline_of_listeners};
use crate::retry_ring::Caller;
use crate::scope::{Asked, Listeners, Scope};
use crate::target_classes::{Care, Classifier};

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
    crowd: IntervalSet,
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
pub struct ScanResult {
    /// The clients.
    pub clients: ClientClass,
    /// The target.
    pub target: Arc<ScanTarget>,
    /// What became of it. Routes have no hops: those are [`Engine::explain`]'s.
    pub verdicts: Arc<[Verdict]>,
}

impl ScanResult {
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
    pub(crate) sketcher: Classifier<'a>,
    listeners: Listeners,
    everyone: Arc<Everyone>,
}

impl<'a> Engine<'a> {
    /// Walks every class of client against every target.
    pub fn scan(&self, targets: &[ScanTarget]) -> Result<Vec<ScanResult>, WalkError> {
        let mut atlas = self.atlas()?.borrow_mut();
        let targets: Vec<Arc<ScanTarget>> = targets.iter().cloned().map(Arc::new).collect();
        let answers = self.answers(&mut atlas, &targets)?;
        let homes = &atlas.sketcher.census.homes;
        let mut met = Vec::with_capacity(answers.iter().map(Vec::len).sum());
        for (target, mut here) in targets.into_iter().zip(answers) {
            here.sort_by_key(|(one, _)| {
                (homes[one.at as usize], one.pod.spec.host_network, one.itself)
            });
            met.extend(here.into_iter().map(|(one, verdicts)| ScanResult {
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
    pub fn explain(&self, met: &ScanResult) -> Result<Vec<Verdict>, WalkError> {
        self.explained(met, false)
    }

    /// The same where only the likeliest ways that fail are asked for: of many ways, the
    /// others are not told step by step.
    pub fn explain_worst(&self, met: &ScanResult) -> Result<Vec<Verdict>, WalkError> {
        self.explained(met, true)
    }

    fn explained(&self, met: &ScanResult, tells_worst: bool) -> Result<Vec<Verdict>, WalkError> {
        let flow = met.flow();
        if !self.is_large() {
            return self.verdicts(&flow);
        }
        let mut atlas = self.atlas()?.borrow_mut();
        let scope = self.scope(&atlas, &met.target)?;
        let care = self.care(&atlas, &scope);
        if self.walks_whole(&atlas, &scope, care) {
            return self.verdicts(&flow);
        }
        let sketch = atlas.sketcher.sketch(scope, care, Some(met.clients.at as u32));
        let (cluster, weights) = mini(&atlas.sketcher.census, &sketch);
        let mut engine = Engine::of(&cluster, (care == Care::Classes).then_some(weights));
        engine.keeps_every_way = self.keeps_every_way;
        engine.adopt(&atlas.sketcher.census);
        engine.tells_worst = tells_worst;
        if let Some(line) = engine.weights.as_ref().and_then(|weights| weights.line.as_ref()) {
            let at = met.clients.at as u32;
            line.begin(Caller { place: atlas.sketcher.census.homes[at as usize], at });
        }
        let mut verdict = match engine.verdict_at(&flow, &sketch.scope.asked.target()) {
            Err(WalkError::NeedsWhole) => return self.verdicts(&flow),
            verdict => verdict?,
        };
        verdict.supposed.splice(0..0, self.supposed().iter().cloned());
        let hops = verdict.routes.iter_mut().flat_map(|route| &mut route.hops);
        for step in hops.flat_map(|hop| &mut hop.steps) {
            // Which line it is depends on all the rules.
            step.by.clear_generated_line();
        }
        Ok(vec![verdict])
    }

    /// Whether the rules of its nodes are too much to be written in full for a single flow.
    pub fn is_large(&self) -> bool {
        self.cluster.nodes.len() * self.cluster.services.len() > SMALL
    }

    fn atlas(&self) -> Result<&std::cell::RefCell<Atlas<'a>>, WalkError> {
        if let Some(known) = self.atlas.get() {
            return Ok(known);
        }
        let (captured, plain) = self.captured()?;
        Ok(self.atlas.get_or_init(|| {
            let mut marks = Discriminators::new(self.cluster, &captured, &plain);
            let mut census = None;
            let listeners = side_by_side(
                |hand_out| {
                    hand_out(self.cluster);
                    census = Some(Inventory::new(self.cluster, captured, plain, &mut marks));
                },
                |cluster| Listeners::new(&outline_of_listeners(cluster)),
            );
            let listeners = listeners.into_iter().next().expect("handed out above");
            let census = census.expect("made while it was handed out");
            let everyone = Arc::new(Everyone::of(&census));
            let sketcher = Classifier::new(census, marks);
            std::cell::RefCell::new(Atlas { sketcher, listeners, everyone })
        }))
    }

    pub(crate) fn scope(
        &self,
        atlas: &Atlas<'a>,
        target: &ScanTarget,
    ) -> Result<Scope<'a>, WalkError> {
        let aim = self.aim(Peer::Outside, &target.to)?;
        let Some(to) = aim.addresses.first().copied() else {
            return Err(WalkError::Later(format!("{} has no address", target.to)));
        };
        let protocol = IpProtocol::from(target.protocol);
        let asked = Asked { to, protocol, request: aim.request };
        Ok(Scope::new(&atlas.sketcher.census, &atlas.listeners, asked))
    }

    /// How closely a target has to be looked at, as far as it can be told beforehand.
    pub(crate) fn care(&self, atlas: &Atlas<'a>, scope: &Scope<'a>) -> Care {
        let proxy = &self.cluster.proxy;
        let scheduler = &*proxy.ipvs_scheduler;
        let is_even =
            proxy.mode.value != ProxyMode::Ipvs || scheduler.is_empty() || is_even(scheduler);
        let is_told_apart = atlas.sketcher.marks.are_blind
            || scope.is_tangled
            || atlas.sketcher.marks.are_uneven
            || !is_even
            || self.takes_any_source(scope.asked.to.ip());
        if scope.picks_by_client() || (is_told_apart && atlas.sketcher.census.has_captures()) {
            // Captured rules may lead to endpoints of any Service: who is one is not known.
            Care::EveryPod
        } else if is_told_apart {
            Care::EveryNode
        } else {
            Care::Classes
        }
    }

    /// Whether packets that a node sends under its own address may get that of any Service:
    /// where the card they leave by has none, IPv6 takes the one nearest to where they go,
    /// and IPVS binds all Services' addresses.
    pub(crate) fn takes_any_source(&self, to: IpAddr) -> bool {
        to.is_ipv6()
            && self.cluster.proxy.mode.value == ProxyMode::Ipvs
            && self.cluster.network.mode.value == NetworkMode::VpcCni
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
            let mut push = |host: Option<Text>, path: Option<Text>| {
                let (port, _) = controller::ingress_serves(ingress, host.as_ref(), path.as_ref());
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

impl Everyone {
    fn of(census: &Inventory<'_>) -> Self {
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
