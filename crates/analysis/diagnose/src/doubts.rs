//! What a scan warns of about what a flow calls, and what walks of the flow do not show: they suppose
//! that a condition does not hold, do not know what a host leads to, or find no address for it.

use uturn_model::{Client, Destination, Flow, Mechanism, ObjectKind, ObjectRef, Verdict};
use uturn_path::Engine;

use crate::called::{Called, of_host, sent_to};
use crate::clients::Clients;
use crate::find::unwalked;
use crate::finding::Finding;
use crate::{Code, Severity};

/// Returns the findings about what a flow calls that its verdicts, which have their steps, do not
/// show. There are none if a verdict shows that the flow can fail, other than by its name.
pub fn of_flow(engine: &Engine<'_>, flow: &Flow, verdicts: &[Verdict]) -> Vec<Finding> {
    let fails = |verdict: &&Verdict| verdict.can_fail();
    let is_by_name = |verdict: &Verdict| verdict.mechanisms == [Mechanism::NameUnresolved];
    if !verdicts.iter().filter(fails).all(is_by_name) {
        return Vec::new();
    }
    let is_known = verdicts.iter().all(Verdict::is_fine);
    let all = unwalked(engine).filter(|own| !is_known || !own.conditions.is_empty());
    let mut all: Vec<Finding> = all.filter(|finding| finding.severity > Severity::Info).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let called = Called::of(engine, flow, verdicts);
    let sent = sent_to(verdicts);
    let at = match &flow.to {
        Destination::Address(at) => Some(at.ip()),
        _ => sent.map(|sent| sent.ip()),
    };
    let sent = sent.map(|sent| sent.to_string());
    let service = called.service.as_ref();
    let service = service.map(|name| ObjectRef::namespaced(ObjectKind::Service, name));
    let port = called.port.map(|port| format!(":{port}"));
    let is_outside = matches!(flow.from, Client::Outside(_));
    // Where it is not known what answers, it is one of the host's own objects, if any serves it.
    let hosts = of_host(engine.cluster(), flow);
    let is_at_fault = |host: &ObjectRef| all.iter().any(|finding| finding.subject == *host);
    let are_at_fault = !is_known && hosts.iter().all(is_at_fault);
    all.retain(|finding| {
        let subject = &finding.subject;
        // A Service that waits for its address is called at its other ones.
        if finding.code == Code::Pending && subject.kind == ObjectKind::Service {
            let name = subject.namespaced_name();
            let own = name.and_then(|name| engine.cluster().services.get(&name));
            return at.is_some() && own.and_then(|own| own.asked_address) == at;
        }
        let is_called = called.objects.contains(subject)
            || service.as_ref() == Some(subject)
            || are_at_fault && hosts.contains(subject);
        let has = |target: &Option<String>| {
            target.as_ref().is_some_and(|target| finding.targets.contains(target))
        };
        let is_of_outside = finding.clients.others().contains(&Clients::SAME_NETWORK);
        is_called
            && (subject.kind != ObjectKind::Service || has(&port) || has(&sent))
            && (is_outside || !is_of_outside)
    });
    all
}
