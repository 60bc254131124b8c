//! The codes of a flow's failures, as a scan reports them, and their reason.
//!
//! A walk says how a call fails. What is wrong in an object (a port name that no pod has, a backend
//! that does not exist) says why, and has a code of its own that replaces the walk's.

use std::cell::OnceCell;
use std::slice;

use uturn_model::{Destination, Flow, Ingress, ObjectKind, ObjectRef, Text, Verdict};
use uturn_path::Engine;

use crate::called::Called;
use crate::evidence::worst;
use crate::find::{object_faults, stated_checks};
use crate::finding::Finding;
use crate::{Code, reason};

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
        faults.iter().find(|fault| {
            fault.replaces_walked()
                && fault.code.replaces().contains(&code)
                && objects.contains(&fault.subject)
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
    all
}
