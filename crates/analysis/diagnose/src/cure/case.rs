//! The failure to be cured: a flow, health checks or a fault of an object, with the Service and load
//! balancer concerned.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use uturn_model::lb::{Listener, LoadBalancer};
use uturn_model::route::{Leg, Route, Step, StepKind};
use uturn_model::{
    Client, Cluster, Destination, Evidence, Flow, Known, Mechanism, Name, ObjectKind, ObjectRef,
    Place, Port, Protocol, Service, Share, Text, Verdict,
};
use uturn_path::{Engine, Health, WalkError, add_missing};
use uturn_scan::FewCalls;
use uturn_snapshot::Manifests;

use super::CaseState;
use crate::called::{Aim, Called, MetController, aim, sent_to};
use crate::find::policies::policy_of;
use crate::flow_codes::FlowCodes;
use crate::{Code, Finding};

/// The maximum number of other clients whose calls are walked for each cure.
const MAX_OTHERS: usize = 4;

/// The flow or health checks that fail, or the object at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A flow.
    Flow(Flow),
    /// The health checks of a listener.
    Probes(SocketAddr, Protocol),
    /// An object with a finding of this code, which no call shows.
    Object(Code, ObjectRef),
}

/// A failure to be cured.
pub struct Case<'a> {
    /// The texts of the cluster.
    pub manifests: &'a Manifests,
    /// The engine over the cluster.
    pub engine: &'a Engine<'a>,
    /// The flow or health checks that fail, or the object at fault.
    pub subject: Subject,
    /// The state before any edit.
    pub before: CaseState,
    /// The mechanisms of the failure.
    pub mechanisms: Vec<Mechanism>,
    /// The finding that the failure shows, if the case is that of a finding: its code and object.
    pub found: Option<(Code, ObjectRef)>,
    /// The same call by clients of other kinds that the finding is about. It fails, too.
    also: Vec<OtherClient>,
    pub(crate) aim: Aim,
    /// What the flow calls.
    pub(super) called: Called,
    /// The verdicts on the flow, with their steps.
    verdicts: Vec<Verdict>,
    /// The nodes at which calls fail.
    pub(super) stopped_at: BTreeSet<Name>,
    /// Whether replies bypass the load balancer because a bridge hides them from rules.
    pub(super) is_reply_unseen: bool,
    /// The controller that received calls that fail.
    pub(super) met: MetController,
    /// The packets that security groups dropped.
    pub(super) dropped: Vec<DroppedPacket>,
}

/// The call of a case by a client of another kind.
pub(super) struct OtherClient {
    /// The client, as it is printed.
    pub(super) name: String,
    /// The call.
    pub(super) flow: Flow,
    /// The state before any edit.
    pub(super) before: CaseState,
}

/// A packet that security groups dropped, as a walk shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DroppedPacket {
    /// The groups.
    pub(super) groups: Vec<Text>,
    /// The packet's addresses.
    pub(super) leg: Leg,
    /// The packet's protocol.
    pub(super) protocol: Protocol,
    /// Whether it is a health check.
    pub(super) is_probe: bool,
}

impl<'a> Case<'a> {
    /// Walks a flow and makes a case of it.
    ///
    /// # Errors
    /// Returns an error if the flow cannot be walked.
    pub fn flow(
        manifests: &'a Manifests,
        calls: &FewCalls<'a, 'a>,
        flow: Flow,
    ) -> Result<Self, WalkError> {
        let engine = calls.engine();
        let verdicts = calls.cases(&flow)?;
        let mut mechanisms: Vec<Mechanism> =
            verdicts.iter().flat_map(|verdict| verdict.mechanisms.clone()).collect();
        mechanisms.sort_unstable();
        mechanisms.dedup();
        let before = case_state(engine, &flow, &verdicts);
        let aim = aim(engine, &flow, sent_to(&verdicts));
        let protocol = flow.protocol;
        let is_reply_unseen = verdicts.iter().any(Code::is_reply_unseen);
        let mut stopped_at = stopped_at(&verdicts);
        let met = MetController::of(engine.cluster(), &verdicts);
        let mut dropped = dropped(&verdicts, protocol);
        // What stops the question for the name is what has to change.
        if let Some(question) = question(&flow, &verdicts)
            && let Ok(asked) = calls.cases(&question)
        {
            let on_the_way = |mechanism: &Mechanism| ON_THE_WAY.contains(mechanism);
            let stops = asked.iter().flat_map(|verdict| &verdict.mechanisms).copied();
            add_missing(&mut mechanisms, stops.filter(on_the_way));
            stopped_at.extend(self::stopped_at(&asked));
            dropped = self::dropped(&asked, question.protocol);
        }
        // A load balancer without a healthy target may be at fault for its health checks.
        if let Some(vip) = aim.vip.filter(|_| mechanisms.contains(&Mechanism::NoCandidate)) {
            let health = calls.health(vip, protocol)?.unwrap_or_default();
            add_missing(&mut dropped, dropped_probes(&health, protocol));
        }
        let called = Called::new(engine.cluster(), (&flow, &verdicts), &aim, &met);
        Ok(Self {
            manifests,
            engine,
            subject: Subject::Flow(flow),
            before,
            mechanisms,
            found: None,
            also: Vec::new(),
            aim,
            called,
            verdicts,
            stopped_at,
            is_reply_unseen,
            met,
            dropped,
        })
    }

    /// Walks the health checks of a listener and makes a case of them.
    ///
    /// # Errors
    /// Returns an error if a health check cannot be walked.
    pub fn probes(
        manifests: &'a Manifests,
        calls: &FewCalls<'a, 'a>,
        listener: SocketAddr,
        protocol: Protocol,
    ) -> Result<Self, WalkError> {
        let engine = calls.engine();
        let health = calls.health(listener, protocol)?.unwrap_or_default();
        let mut mechanisms: Vec<Mechanism> =
            health.iter().flat_map(|target| target.mechanisms.clone()).collect();
        mechanisms.sort_unstable();
        mechanisms.dedup();
        let alive = health.iter().filter(|target| target.alive).count();
        let before = CaseState::Probes { listener, protocol, alive, of: health.len() };
        let flow =
            Flow { from: Client::Outside(None), to: Destination::Address(listener), protocol };
        let aim = aim(engine, &flow, None);
        let subject = Subject::Probes(listener, protocol);
        Ok(Self {
            manifests,
            engine,
            subject,
            before,
            mechanisms,
            found: None,
            also: Vec::new(),
            aim,
            called: Called::default(),
            verdicts: Vec::new(),
            stopped_at: BTreeSet::new(),
            is_reply_unseen: false,
            met: MetController::default(),
            dropped: dropped_probes(&health, protocol),
        })
    }

    /// Makes a case of a finding that objects show without a call.
    pub fn object(manifests: &'a Manifests, engine: &'a Engine<'a>, finding: &Finding) -> Self {
        let (code, object) = (finding.code, finding.subject.clone());
        let is_called = matches!(object.kind, ObjectKind::Service | ObjectKind::Ingress);
        let aim = Aim {
            owner: is_called.then(|| object.clone()),
            service: object.namespaced_name().filter(|_| object.kind == ObjectKind::Service),
            ..Aim::default()
        };
        Self {
            manifests,
            engine,
            before: CaseState::of_findings(code, &object, [finding]),
            mechanisms: Vec::new(),
            found: Some((code, object.clone())),
            subject: Subject::Object(code, object),
            also: Vec::new(),
            aim,
            called: Called::default(),
            verdicts: Vec::new(),
            stopped_at: BTreeSet::new(),
            is_reply_unseen: false,
            met: MetController::default(),
            dropped: Vec::new(),
        }
    }

    /// Adds the same call by other clients, each with its name, as far as it fails.
    #[must_use]
    pub(crate) fn with_others(
        mut self,
        calls: &FewCalls<'_, '_>,
        all: impl IntoIterator<Item = (String, Flow)>,
    ) -> Self {
        let failing = all.into_iter().filter_map(|(name, flow)| {
            let before = case_state(calls.engine(), &flow, &calls.cases(&flow).ok()?);
            before.fails().then_some(OtherClient { name, flow, before })
        });
        self.also = failing.take(MAX_OTHERS).collect();
        self
    }

    /// Returns the packets that NetworkPolicies stopped, each once.
    pub(super) fn denied(&self) -> Vec<Leg> {
        let routes = self.verdicts.iter().flat_map(|verdict| &verdict.routes);
        let steps = routes.flat_map(|route| &route.hops).flat_map(|hop| &hop.steps);
        let stopped =
            steps.filter(|step| step.kind.stops_packet() && policy_of(&step.by).is_some());
        let mut all = Vec::new();
        add_missing(&mut all, stopped.filter_map(|step| step.after));
        all
    }

    /// Returns the same call by clients of other kinds.
    pub(super) fn also(&self) -> &[OtherClient] {
        &self.also
    }

    /// Returns whether the case is that of this finding.
    pub(super) fn is_of(&self, finding: &Finding) -> bool {
        let found = self.found.as_ref();
        found.is_some_and(|(code, object)| *code == finding.code && *object == finding.subject)
    }

    /// Returns the codes of the failure. Those of a flow are the codes that a trace has for it.
    pub fn codes(&self) -> BTreeSet<Code> {
        let mut codes = match &self.subject {
            Subject::Flow(flow) => {
                FlowCodes::new(self.engine, flow).of(&self.verdicts).into_iter().collect()
            }
            // Failing health checks are one finding, whatever stops them.
            Subject::Probes(..) if !self.before.is_fine() => {
                BTreeSet::from([Code::of_checks(&self.mechanisms)])
            }
            Subject::Probes(..) | Subject::Object(..) => BTreeSet::new(),
        };
        // What objects show is more specific than what stops a call.
        let found = self.found.as_ref().map(|(code, _)| *code);
        let more = found.filter(|found| {
            codes.is_empty() || found.replaces().iter().any(|less| codes.contains(less))
        });
        if let Some(more) = more {
            codes.retain(|code| !more.replaces().contains(code));
            codes.insert(more);
        }
        codes
    }

    /// Returns the object for which the load balancer on the way was made.
    pub fn owner(&self) -> Option<&ObjectRef> {
        self.aim.owner.as_ref()
    }

    /// Returns the kind of the object for which the load balancer on the way was made.
    pub fn owner_kind(&self) -> Option<ObjectKind> {
        self.aim.owner.as_ref().map(|owner| owner.kind)
    }

    pub(crate) fn cluster(&self) -> &'a Cluster {
        self.engine.cluster()
    }

    pub(crate) fn has(&self, mechanism: Mechanism) -> bool {
        // What helps a Service without endpoints may help a load balancer without targets.
        self.mechanisms.contains(&mechanism)
            || mechanism == Mechanism::NoEndpoint && self.mechanisms.contains(&Mechanism::NoTarget)
    }

    /// Returns the flow. Returns `None` if the case is about something else.
    pub(crate) fn walked(&self) -> Option<&Flow> {
        match &self.subject {
            Subject::Flow(flow) => Some(flow),
            Subject::Probes(..) | Subject::Object(..) => None,
        }
    }

    /// Returns the Service behind the destination.
    pub(crate) fn service(&self) -> Option<&'a Service> {
        self.cluster().services.get(self.aim.service.as_ref()?)
    }

    /// Returns the load balancer and listener on the way.
    pub(crate) fn listener(&self) -> Option<(&LoadBalancer, &Listener)> {
        let vip = self.aim.vip?;
        let protocol = match &self.subject {
            Subject::Flow(flow) => flow.protocol,
            Subject::Probes(_, protocol) => *protocol,
            Subject::Object(..) => return None,
        };
        let balancer = self.engine.balancer_at(vip.ip())?;
        let listener = balancer.listeners.iter().find(|listener| {
            listener.port.number() == vip.port() && listener.protocol.transport() == protocol
        })?;
        Some((balancer, listener))
    }

    /// Returns the ports of pods to which the called port leads.
    pub(crate) fn called_ports(&self) -> Vec<Port> {
        if let Some(Destination::Pod(_, port)) = self.walked().map(|flow| &flow.to) {
            return vec![*port];
        }
        let (Some(service), Some(port)) = (self.service(), &self.aim.port) else {
            // Nothing translates the port of a call to a pod's or a node's plain address.
            let is_plain = self.aim.service.is_none() && self.aim.vip.is_none();
            return self.aim.called.filter(|_| is_plain).into_iter().collect();
        };
        let slices = self.cluster().slices(&service.name).iter().flat_map(|slice| &slice.ports);
        let mut all: Vec<Port> =
            slices.filter(|own| own.name == port.name).map(|own| own.port).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Returns the node of the client.
    pub(crate) fn client_node(&self) -> Option<&'a Name> {
        let cluster = self.cluster();
        match &self.walked()?.from {
            Client::Pod(name) => cluster.pods.get(name)?.node.as_ref(),
            Client::Node(name) => cluster.nodes.get_key_value(name).map(|(name, _)| name),
            Client::Workload(..) | Client::Outside(_) => None,
        }
    }

    /// Returns the namespace of the client.
    pub(crate) fn client_namespace(&self) -> Option<&Name> {
        match &self.walked()?.from {
            Client::Pod(name) | Client::Workload(_, name) => Some(&name.namespace),
            Client::Node(_) | Client::Outside(_) => None,
        }
    }

    /// Returns whether the client is in the cluster.
    pub(crate) fn is_from_inside(&self) -> bool {
        self.walked().is_some_and(|flow| !matches!(flow.from, Client::Outside(_)))
    }

    /// Returns whether the client speaks TLS.
    pub(crate) fn is_tls(&self) -> bool {
        match self.walked().map(|flow| &flow.to) {
            Some(Destination::Url { tls, .. }) => {
                *tls || (self.aim.is_redirected && self.ends_tls())
            }
            Some(Destination::Ingress { .. }) => self.ends_tls(),
            _ => false,
        }
    }

    /// Returns whether the load balancer on the way ends TLS.
    pub(crate) fn ends_tls(&self) -> bool {
        self.listener().is_some_and(|(_, listener)| listener.protocol.ends_tls())
    }

    /// Returns the Services and Ingresses that share the load balancer.
    pub(crate) fn sharers(&self, vip: IpAddr) -> Vec<ObjectRef> {
        let cluster = self.cluster();
        let has = |list: &[uturn_model::service::LbIngress]| {
            list.iter().any(|address| address.ip == Some(vip))
        };
        let services = cluster
            .services
            .values()
            .filter(|service| has(&service.load_balancer))
            .map(Service::object);
        let ingresses = cluster.ingresses.values();
        let ingresses =
            ingresses.filter(|ingress| has(&ingress.load_balancer)).map(|ingress| ingress.object());
        services.chain(ingresses).collect()
    }
}

impl CaseState {
    /// Returns the state of an object with these findings, of which only those of the code and the
    /// object count.
    pub(super) fn of_findings<'f>(
        code: Code,
        object: &ObjectRef,
        findings: impl IntoIterator<Item = &'f Finding>,
    ) -> Self {
        let (mut faults, mut conditions) = (Vec::new(), Vec::new());
        let is_it = |finding: &&Finding| finding.code == code && finding.subject == *object;
        for finding in findings.into_iter().filter(is_it) {
            for observed in &finding.other_evidence {
                add_missing(&mut faults, [observed.what.clone()]);
            }
            for condition in &finding.conditions {
                add_missing(&mut conditions, [condition.clone()]);
            }
        }
        Self::Object { code, object: object.clone(), faults, conditions }
    }
}

/// The mechanisms that stop the question for a name on its way.
const ON_THE_WAY: [Mechanism; 5] = [
    Mechanism::Firewall,
    Mechanism::SecurityGroup,
    Mechanism::NoRoute,
    Mechanism::CrossNode,
    Mechanism::ReversePathFilter,
];

/// Returns the question for the called name, if it gets no answer.
fn question(flow: &Flow, verdicts: &[Verdict]) -> Option<Flow> {
    let is_lost = |route: &&Route| {
        route.mechanisms == [Mechanism::NameUnresolved] && !route.failures.is_empty()
    };
    let route = verdicts.iter().flat_map(|verdict| &verdict.routes).find(is_lost)?;
    let mut steps = route.hops.iter().flat_map(|hop| &hop.steps);
    let server = steps.find(|step| step.kind == StepKind::Send)?.after?.dst;
    let to = Destination::Address(server);
    Some(Flow { from: flow.from.clone(), to, protocol: Protocol::Udp })
}

/// Returns the state of a flow: its worst verdict.
pub fn case_state(engine: &Engine<'_>, flow: &Flow, verdicts: &[Verdict]) -> CaseState {
    let cluster = engine.cluster();
    let worst = verdicts.iter().max_by(|a, b| a.share_failing().exact_cmp(&b.share_failing()));
    CaseState::Flow {
        flow: flow.clone(),
        outcomes: worst.map(|verdict| verdict.outcomes.clone()).unwrap_or_default(),
        mechanisms: worst.map(|verdict| verdict.mechanisms.clone()).unwrap_or_default(),
        conditions: worst.map(|verdict| verdict.conditions.clone()).unwrap_or_default(),
        arrived: worst.map(|verdict| arrived(cluster, verdict)).unwrap_or_default(),
        is_misled: engine.misled(flow).is_ok_and(|misled| misled.is_some()),
    }
}

/// Returns the share of calls that a controller in the cluster receives and that are not known to
/// end there in one way or another.
fn arrived(cluster: &Cluster, verdict: &Verdict) -> Share {
    let is_received = |route: &&Route| {
        let last = route.hops.last().filter(|_| route.outcome.is_unknown());
        last.is_some_and(|hop| match &hop.place {
            Place::Pod(name) => {
                let pod = cluster.pods.get(name);
                pod.is_some_and(|pod| cluster.controller_of(pod).is_some())
                    && hop.steps.last().is_some_and(|step| step.kind == StepKind::Unknown)
            }
            _ => false,
        })
    };
    verdict.routes.iter().filter(is_received).map(|route| route.share).sum()
}

/// Returns the basis of a fact, in words.
pub(crate) fn basis_of<T>(known: &Known<T>) -> String {
    known.basis.to_string()
}

/// Returns the nodes at which calls fail.
fn stopped_at(verdicts: &[Verdict]) -> BTreeSet<Name> {
    let routes = verdicts.iter().flat_map(|verdict| &verdict.routes);
    let nodes = routes.flat_map(|route| &route.failures).filter_map(|point| match &point.place {
        Place::Node(node) => Some(node.clone()),
        _ => None,
    });
    nodes.collect()
}

/// Returns the packets that security groups drop.
fn dropped(verdicts: &[Verdict], protocol: Protocol) -> Vec<DroppedPacket> {
    let routes = verdicts.iter().flat_map(|verdict| &verdict.routes);
    let steps = routes.flat_map(|route| &route.hops).flat_map(|hop| &hop.steps);
    let mut all: Vec<DroppedPacket> = Vec::new();
    add_missing(&mut all, steps.filter_map(|step| dropped_at(step, protocol)));
    all
}

/// Returns the packet that security groups drop at a step.
fn dropped_at(step: &Step, protocol: Protocol) -> Option<DroppedPacket> {
    let Evidence::SecurityGroups { names, .. } = &step.by else { return None };
    let leg = step.after.filter(|_| step.kind == StepKind::Drop)?;
    Some(DroppedPacket { groups: names.to_vec(), leg, protocol, is_probe: false })
}

/// Returns the health checks that security groups drop. Nodes' kube-proxies are asked by TCP.
fn dropped_probes(health: &[Health], protocol: Protocol) -> Vec<DroppedPacket> {
    let mut all = Vec::new();
    for target in health.iter().filter(|target| !target.alive) {
        let is_of_proxy = target.asked != target.target;
        let protocol = if is_of_proxy { Protocol::Tcp } else { protocol };
        let dropped = target.stop.as_ref().and_then(|step| dropped_at(step, protocol));
        // Echo requests have no port that a rule could name.
        let dropped = dropped.filter(|packet| packet.leg.dst.port() != 0);
        add_missing(&mut all, dropped.map(|packet| DroppedPacket { is_probe: true, ..packet }));
    }
    all
}
