//! The codes of a flow's failures, as a scan reports them.
//!
//! A walk says how a call fails. What is wrong in an object (a port name that no pod has, a backend
//! that does not exist) says why, and has a code of its own that replaces the walk's.

use std::cell::OnceCell;

use uturn_model::ingress::IngressRule;
use uturn_model::{
    Cluster, Destination, Evidence, Flow, NamespacedName, ObjectKind, ObjectRef, Verdict,
};
use uturn_path::Engine;

use crate::Code;
use crate::called::{aim, sent_to};
use crate::find::object_faults;
use crate::finding::Finding;

/// The codes that an object at fault may replace, so that other flows need not look for one.
const VAGUE: [Code; 4] =
    [Code::NoCandidate, Code::NoEndpoints, Code::WrongPort, Code::NoRuleForPath];

/// Returns the kind of object that a destination belongs to: an Ingress if one of its listeners
/// serves the destination.
fn kind_of(engine: &Engine<'_>, flow: &Flow) -> ObjectKind {
    match (&flow.to, engine.balancer_behind(&flow.to, flow.protocol)) {
        (Destination::Ingress { .. }, _) => ObjectKind::Ingress,
        (_, Some(rule)) => rule.owner.kind,
        _ => ObjectKind::Service,
    }
}

/// The codes of one flow's failures.
pub struct FlowCodes<'e, 'a> {
    engine: &'e Engine<'a>,
    flow: &'e Flow,
    kind: ObjectKind,
    faults: OnceCell<Vec<Finding>>,
}

impl<'e, 'a> FlowCodes<'e, 'a> {
    /// Creates the codes of a flow.
    pub fn new(engine: &'e Engine<'a>, flow: &'e Flow) -> Self {
        Self { engine, flow, kind: kind_of(engine, flow), faults: OnceCell::new() }
    }

    /// Returns the kind of object that the flow is meant for.
    pub fn kind(&self) -> ObjectKind {
        self.kind
    }

    /// Returns the codes of the failures in verdicts that have their steps, in the order of the
    /// codes.
    pub fn of(&self, verdicts: &[Verdict]) -> Vec<Code> {
        let mut codes: Vec<Code> =
            verdicts.iter().flat_map(|verdict| Code::of_verdict(verdict, self.kind)).collect();
        if codes.iter().any(|code| VAGUE.contains(code)) {
            let faults = self.faults.get_or_init(|| object_faults::that_replace(self.engine));
            let concerned = concerned(self.engine, self.flow, verdicts);
            for code in &mut codes {
                *code = specific(*code, faults, &concerned, self.engine.cluster());
            }
        }
        if self.is_misled() {
            codes.push(Code::NameElsewhere);
        }
        codes.sort_unstable();
        codes.dedup();
        codes
    }

    /// Returns whether the name that the flow calls leads elsewhere than to the object with this
    /// name.
    fn is_misled(&self) -> bool {
        self.engine.misled(self.flow).is_ok_and(|misled| misled.is_some())
    }
}

/// Returns the code of the fault in one of the objects that explains a walk's code, or else this.
fn specific(code: Code, faults: &[Finding], concerned: &[ObjectRef], cluster: &Cluster) -> Code {
    let explains = |fault: &&Finding| {
        fault.replaces_walked()
            && fault.code.replaces().contains(&code)
            && concerned.contains(&fault.subject)
    };
    if let Some(fault) = faults.iter().find(explains) {
        return fault.code;
    }
    let is_ignored = |object: &ObjectRef| {
        let ingress = object.namespaced_name().and_then(|name| cluster.ingresses.get(&name));
        object.kind == ObjectKind::Ingress
            && ingress.is_some_and(|ingress| {
                ingress.unserved.as_ref().is_some_and(|unserved| unserved.condition.is_none())
            })
    };
    match code {
        Code::NoRuleForPath if concerned.iter().any(is_ignored) => Code::IngressIgnored,
        _ => code,
    }
}

/// Returns the object that a scan's finding about a flow would name, or what may be it: the owner of
/// the listener or the Service that is called; else the Ingresses of the called host; else what the
/// steps show.
fn concerned(engine: &Engine<'_>, flow: &Flow, verdicts: &[Verdict]) -> Vec<ObjectRef> {
    let cluster = engine.cluster();
    let service = |name: NamespacedName| Some(cluster.services.get(&name)?.object());
    let owner = match &flow.to {
        Destination::Ingress { name, .. } => Some(cluster.ingresses.get(name).map_or_else(
            || ObjectRef::namespaced(ObjectKind::Ingress, name),
            |ingress| ingress.object(),
        )),
        _ => {
            let aim = aim(engine, flow, sent_to(verdicts));
            aim.owner.or_else(|| service(aim.service?))
        }
    };
    if let Some(owner) = owner {
        return vec![owner];
    }
    let host = match &flow.to {
        Destination::Url { host, .. } | Destination::Host(host, _) => Some(host),
        _ => None,
    };
    let lists_host = |own: &IngressRule| own.host.as_ref() == host;
    let ingresses = cluster.ingresses.values().filter(|_| host.is_some());
    let ingresses = ingresses.filter(|ingress| ingress.rules.iter().any(lists_host));
    let of_host: Vec<ObjectRef> = ingresses.map(|ingress| ingress.object()).collect();
    if !of_host.is_empty() {
        return of_host;
    }
    let routes = verdicts.iter().flat_map(|verdict| &verdict.routes);
    let steps = routes.flat_map(|route| &route.hops).flat_map(|hop| &hop.steps);
    let shown = steps.filter_map(|step| match &step.by {
        Evidence::Object { object, .. } => Some((**object).clone()),
        _ => None,
    });
    shown.collect()
}
