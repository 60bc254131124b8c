//! The codes of a flow's failures, as a scan reports them, and their reason.
//!
//! A walk says how a call fails. What is wrong in an object (a port name that no pod has, a backend
//! that does not exist) says why, and has a code of its own that replaces the walk's.

use std::cell::OnceCell;
use std::slice;

use uturn_lb::rules;
use uturn_model::{Destination, Flow, Ingress, ObjectKind, ObjectRef, Text, Verdict};
use uturn_path::Engine;

use crate::called::Called;
use crate::doubts::{FlowCase, FlowCases};
use crate::evidence::worst;
use crate::find::{cluster_names, mesh_gateways, object_faults, stated_checks};
use crate::finding::Finding;
use crate::{Code, Severity, reason};

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
            let called = Called::of(self.engine, self.flow, verdicts);
            for code in &mut codes {
                *code = self.specific(*code, &called.objects);
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

    /// Returns whether the called name leads elsewhere than to the object with this name, and nobody
    /// can have meant that.
    pub fn is_at_fault(&self) -> bool {
        self.misleading().is_some_and(|finding| finding.severity == Severity::Error)
    }

    /// Returns the finding that the called name leads elsewhere than to the object with this name.
    fn misleading(&self) -> Option<Finding> {
        cluster_names::elsewhere(self.engine, self.flow, self.flow.to.host()?)
    }

    /// Returns the reason why the flow can fail, from a verdict that has its steps: what is wrong in
    /// an object, or else what the walk shows.
    pub fn because(&self, verdict: &Verdict) -> Option<Text> {
        let mechanism = worst(verdict)?.mechanisms.first().copied()?;
        let code = Code::of(mechanism, self.kind);
        let of_object = || {
            let called = Called::of(self.engine, self.flow, slice::from_ref(verdict));
            let service = called.service.as_ref();
            let service = service.map(|name| ObjectRef::namespaced(ObjectKind::Service, name));
            let objects: Vec<ObjectRef> = called.objects.into_iter().chain(service).collect();
            if let Some(fault) = self.fault(code, &objects) {
                return Some(reason::of_object(fault.other_evidence.first()?));
            }
            let ingress = self.ignored(code, &objects)?;
            let why = &ingress.unserved.as_ref()?.because;
            Some(format!("no controller serves {}: {why}", ingress.object()).into())
        };
        let found = if VAGUE.contains(&code) { of_object() } else { None };
        found.or_else(|| reason::of_verdict(self.engine, self.flow, verdict))
    }

    /// Returns the codes of the failures in all cases, in their order.
    pub fn of_cases(&self, cases: &FlowCases) -> Vec<Code> {
        let decided = cases.all.iter().filter_map(|case| Some(case.doubt.as_ref()?.code));
        let mut all: Vec<Code> = self.of(&cases.walked()).into_iter().chain(decided).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Returns the codes of one case, and the reason why calls fail in it.
    pub fn of_case(&self, case: &FlowCase) -> (Vec<Code>, Option<Text>) {
        match &case.doubt {
            Some(doubt) => {
                let why = doubt.other_evidence.first().map(reason::of_object);
                (vec![doubt.code], why)
            }
            None => {
                let misleading =
                    || self.misleading()?.other_evidence.first().map(reason::of_object);
                let why = self.because(&case.verdict).or_else(misleading);
                (self.of(slice::from_ref(&case.verdict)), why)
            }
        }
    }

    /// Returns the code of the fault in one of the objects that explains a walk's code, or else
    /// this.
    fn specific(&self, code: Code, objects: &[ObjectRef]) -> Code {
        match (self.fault(code, objects), self.ignored(code, objects)) {
            (Some(fault), _) => fault.code,
            (None, Some(_)) => Code::IngressIgnored,
            (None, None) => code,
        }
    }

    /// Returns the fault in one of the objects that explains a walk's code.
    fn fault(&self, code: Code, objects: &[ObjectRef]) -> Option<&Finding> {
        let faults = self.faults.get_or_init(|| that_replace(self.engine));
        let host = self.flow.to.host();
        faults.iter().find(|fault| {
            // The gateway that receives calls of the host is not the object at fault.
            let is_of_host = || host.is_some_and(|host| names_host(fault, host));
            let is_of_gateway = fault.code == Code::GatewayOpensNothing;
            let is_it = if is_of_gateway {
                code == Code::NoRuleForPath && is_of_host()
            } else {
                fault.code.replaces().contains(&code) && objects.contains(&fault.subject)
            };
            fault.replaces_walked() && is_it
        })
    }

    /// Returns the one of the objects that nothing serves, if that explains a walk's code.
    fn ignored(&self, code: Code, objects: &[ObjectRef]) -> Option<&'e Ingress> {
        let ingresses = &self.engine.cluster().ingresses;
        let named = objects.iter().filter(|object| object.kind == ObjectKind::Ingress);
        let mut own = named.filter_map(|object| ingresses.get(&object.namespaced_name()?));
        own.find(|ingress| ingress.is_unserved()).filter(|_| code == Code::NoRuleForPath)
    }
}

/// Finds the faults of objects that replace what walks find.
fn that_replace(engine: &Engine<'_>) -> Vec<Finding> {
    let mut all = object_faults::that_replace(engine);
    all.extend(stated_checks::find(engine).into_iter().filter(stated_checks::fails_calls));
    all.extend(mesh_gateways::find(engine));
    all
}

/// Returns whether a host is among the targets of a finding.
pub(crate) fn names_host(finding: &Finding, host: &str) -> bool {
    finding.targets.iter().any(|target| rules::is_for_host(target, host))
}
