//! What a scan warns of about what a flow calls, and what walks of the flow do not show: they suppose
//! that a condition does not hold, do not know what a host leads to, or find no address for it. It
//! decides the verdict on the flow.

use std::net::IpAddr;
use std::time::Duration;

use uturn_model::route::{Direction, Hop, Place, Route, Step, StepKind};
use uturn_model::{
    Client, Cluster, Destination, Evidence, Flow, Mechanism, ObjectKind, ObjectRef, Outcome, Share,
    Text, Verdict,
};
use uturn_path::{Engine, WalkError};
use uturn_scan::FewCalls;

use crate::called::{Called, of_host, sent_to};
use crate::clients::{Clients, Example};
use crate::find::api_server::without_route;
use crate::find::object_faults::about;
use crate::find::unwalked;
use crate::finding::Finding;
use crate::{Code, Severity};

/// The verdicts on a flow, one for each case of what is not known.
#[derive(Clone, Debug)]
pub struct FlowCases {
    /// The cases.
    pub all: Vec<FlowCase>,
    /// What a scan warns of about what the flow calls, as far as walks do not show it.
    pub doubts: Vec<Finding>,
}

/// The verdict on a flow in one case.
#[derive(Clone, Debug)]
pub struct FlowCase {
    /// The verdict.
    pub verdict: Verdict,
    /// The finding that decides it in place of a walk.
    pub doubt: Option<Finding>,
}

impl FlowCases {
    /// Returns the verdicts of all cases.
    pub fn verdicts(&self) -> Vec<Verdict> {
        self.all.iter().map(|case| case.verdict.clone()).collect()
    }

    /// Returns the verdicts that walks make.
    pub fn walked(&self) -> Vec<Verdict> {
        let walked = self.all.iter().filter(|case| case.doubt.is_none());
        walked.map(|case| case.verdict.clone()).collect()
    }
}

/// Returns the verdicts on a flow. What a scan warns of under a condition is a case of its own; what
/// it says without one decides where walks do not know how calls end.
///
/// # Errors
/// Returns an error if the flow cannot be walked, and no finding says why.
pub fn cases(engine: &Engine<'_>, flow: &Flow) -> Result<FlowCases, WalkError> {
    judged(engine, flow, engine.cases(flow))
}

/// Returns the same verdicts, of walks in a reduced cluster where that is enough.
///
/// # Errors
/// Returns an error if the flow cannot be walked, and no finding says why.
pub fn cases_of_few(calls: &FewCalls<'_, '_>, flow: &Flow) -> Result<FlowCases, WalkError> {
    judged(calls.met(), flow, calls.cases(flow))
}

fn judged(
    engine: &Engine<'_>,
    flow: &Flow,
    walked: Result<Vec<Verdict>, WalkError>,
) -> Result<FlowCases, WalkError> {
    let (walked, why) = match walked {
        Ok(verdicts) => (verdicts, None),
        Err(why) => match without_address(engine, flow, &why) {
            Some(verdict) => (vec![verdict], Some(why)),
            None => return Err(why),
        },
    };
    let mut doubts = of_flow(engine, flow, &walked);
    if doubts.is_empty() {
        doubts.extend(hidden_pod(engine, flow, &walked));
    }
    match why.filter(|_| doubts.is_empty()) {
        Some(why) => Err(why),
        None => Ok(FlowCases { all: decided(walked, &doubts), doubts }),
    }
}

/// Returns the verdict on a flow to an Ingress that has no address: how it ends is not known.
fn without_address(engine: &Engine<'_>, flow: &Flow, why: &WalkError) -> Option<Verdict> {
    let (Destination::Ingress { name, .. }, WalkError::Later(why)) = (&flow.to, why) else {
        return None;
    };
    let ingress = engine.cluster().ingresses.get(name)?;
    let by = Evidence::object(ingress.object(), ingress.origin.clone());
    let place = match &flow.from {
        Client::Pod(name) => Place::Pod(name.clone()),
        Client::Node(name) => Place::Node(name.clone()),
        Client::Workload(..) | Client::Outside(_) => Place::Outside,
    };
    let steps = vec![Step::new(StepKind::Unknown, why.clone(), by)];
    let hops = vec![Hop { place, direction: Direction::Out, steps }];
    let route = route(hops, Outcome::Unknown, Some(Mechanism::NotGiven));
    Some(Verdict::of(vec![route], Vec::new(), engine.supposed().to_vec()))
}

fn route(hops: Vec<Hop>, outcome: Outcome, mechanism: Option<Mechanism>) -> Route {
    Route {
        share: Share::ALL,
        outcome,
        late: Duration::ZERO,
        mechanisms: mechanism.into_iter().collect(),
        chance: false,
        has_others: false,
        failures: Vec::new(),
        hops,
    }
}

/// Puts findings among the verdicts of walks.
fn decided(walked: Vec<Verdict>, doubts: &[Finding]) -> Vec<FlowCase> {
    let case = |verdict| FlowCase { verdict, doubt: None };
    if doubts.is_empty() {
        return walked.into_iter().map(case).collect();
    }
    let (failing, others): (Vec<Verdict>, Vec<Verdict>) =
        walked.into_iter().partition(Verdict::can_fail);
    // What walks show in several cases ends alike in all of them.
    let under: Vec<(&Verdict, &[Text])> = match (&*failing, &*others) {
        ([], [first, ..]) => vec![(first, &[][..])],
        _ => others.iter().map(|verdict| (verdict, &*verdict.conditions)).collect(),
    };
    let certain = doubts.iter().find(|doubt| doubt.conditions.is_empty());
    let deciding: Vec<&Finding> = match certain {
        Some(certain) => vec![certain],
        None => {
            let says = |doubt: &&Finding| (doubt.outcome, doubt.conditions.clone());
            let mut all: Vec<&Finding> = Vec::new();
            for doubt in doubts {
                if !all.iter().any(|known| says(known) == says(&doubt)) {
                    all.push(doubt);
                }
            }
            all
        }
    };
    let decides = |doubt: &Finding| -> Vec<FlowCase> {
        let of = |(walked, conditions): &(&Verdict, &[Text])| FlowCase {
            verdict: verdict_of(doubt, walked, conditions),
            doubt: Some(doubt.clone()),
        };
        under.iter().map(of).collect()
    };
    let mut all: Vec<FlowCase> = deciding.iter().flat_map(|doubt| decides(doubt)).collect();
    if certain.is_none() {
        let negated: Vec<Text> = deciding.iter().map(|doubt| negated(&doubt.conditions)).collect();
        let otherwise = |verdict: &Verdict| {
            let mut verdict = verdict.clone();
            verdict.conditions.extend(negated.iter().cloned());
            case(verdict)
        };
        all.extend(others.iter().map(otherwise));
    }
    all.extend(failing.into_iter().map(case));
    all
}

/// Returns the verdict that a finding makes in place of a walk's.
fn verdict_of(doubt: &Finding, walked: &Verdict, conditions: &[Text]) -> Verdict {
    let mut hops = until(doubt, walked);
    if let (Some(last), Some(seen)) = (hops.last_mut(), doubt.other_evidence.first()) {
        let kind = match doubt.outcome {
            Outcome::Hangs => StepKind::Drop,
            Outcome::Status { .. } => StepKind::Answer,
            _ => StepKind::Reject,
        };
        last.steps.push(Step::new(kind, seen.what.clone(), seen.by.clone()));
    }
    let mut routes = vec![route(hops, doubt.outcome, doubt.mechanism)];
    let failing = doubt.share_failing;
    if failing.is_partial() {
        routes[0].share = failing;
        let others = walked.routes.iter().cloned();
        routes.extend(
            others.map(|other| Route { share: other.share * failing.complement(), ..other }),
        );
    }
    let conditions = conditions.iter().chain(&doubt.conditions).cloned().collect();
    Verdict::of(routes, conditions, walked.supposed.clone())
}

/// Returns the hops of a walk up to where a finding ends it: the program that does not listen, or
/// else the client.
fn until(doubt: &Finding, walked: &Verdict) -> Vec<Hop> {
    let all = walked.routes.first().map(|route| &*route.hops).unwrap_or_default();
    let mut hops: Vec<Hop> = if doubt.code == Code::WrongPort {
        all.iter().take_while(|hop| hop.direction == Direction::Out).cloned().collect()
    } else {
        let own = all.iter().position(|hop| hop.place != Place::Dns);
        all[..own.map_or(all.len(), |at| at + 1)].to_vec()
    };
    if let Some(last) = hops.last_mut() {
        let is_sent = |step: &Step| matches!(step.kind, StepKind::Send | StepKind::Resolve);
        let is_reached = |step: &Step| matches!(step.kind, StepKind::Deliver | StepKind::Answer);
        match last.steps.iter().position(is_sent).filter(|_| doubt.code != Code::WrongPort) {
            Some(at) => last.steps.truncate(at + 1),
            None => last.steps.retain(|step| !is_reached(step)),
        }
    }
    hops
}

/// The beginnings of conditions, and of those that hold otherwise.
const NEGATED: [(&str, &str); 7] = [
    ("nothing ", "something "),
    (
        "neither an L2Advertisement nor a BGPAdvertisement ",
        "an L2Advertisement or a BGPAdvertisement ",
    ),
    ("no such ", "such a "),
    ("no other ", "another "),
    ("no program ", "a program "),
    ("another node ", "no other node "),
    ("the network around the nodes has no ", "the network around the nodes has a "),
];

/// Returns the condition that holds where these do not all hold.
fn negated(conditions: &[Text]) -> Text {
    let all = conditions.join(" and ");
    let begins = |(own, other): &(&str, &str)| Some(format!("{other}{}", all.strip_prefix(own)?));
    let known = NEGATED.iter().find_map(begins).filter(|_| conditions.len() == 1);
    known.unwrap_or_else(|| format!("it is not so that {all}")).into()
}

/// Finds that the network around the nodes may have no route to the called pod, as a scan does for the
/// API server.
fn hidden_pod(engine: &Engine<'_>, flow: &Flow, verdicts: &[Verdict]) -> Option<Finding> {
    let [verdict] = verdicts else { return None };
    let to = sent_to(verdicts)?.ip();
    let condition = without_route(engine, &flow.from, to, verdict)?;
    let pod = engine.pod_at(to)?;
    let what = format!("the network around the nodes is not told of {to}, an address of a pod");
    let code = Code::of(Mechanism::NoRoute, ObjectKind::Service);
    let mut finding = about(code, pod.object(), &pod.origin, what);
    finding.conditions.push(condition);
    finding.clients = Clients::other(Clients::OUTSIDE);
    finding.share_failing = Share::ALL;
    finding.outcome = Outcome::Hangs;
    finding.mechanism = Some(Mechanism::NoRoute);
    finding.example = Example::Flow(flow.clone());
    Some(finding)
}

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
    let sent_ip = sent.map(|sent| sent.ip());
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
        if is_of_outside && !is_outside {
            return false;
        }
        // Calls of a machine's other ports go to another machine.
        if finding.code == Code::AddressTaken {
            return !is_known && has(&sent_ip.map(|ip: IpAddr| ip.to_string()));
        }
        is_called
            && (subject.kind != ObjectKind::Service || has(&port) || has(&sent))
            && !(finding.code == Code::IngressIgnored
                && is_taken_elsewhere(engine.cluster(), finding))
    });
    all
}

/// Returns whether a finding says that some listeners do not take a route, and others take it.
fn is_taken_elsewhere(cluster: &Cluster, finding: &Finding) -> bool {
    if !finding.subject.kind.is_route() {
        return false;
    }
    let routes = cluster.ingresses.values().filter_map(|own| own.route.as_ref());
    let mut own = routes.filter(|route| route.object == finding.subject);
    own.any(|route| !route.listeners.is_empty())
}
