//! Compares the flows of a cluster before and after an edit.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use uturn_model::ingress::Backend;
use uturn_model::{
    Client, Cluster, Destination, Flow, Ingress, Mechanism, Name, NamespacedName, ObjectKind,
    ObjectRef, Outcome, Protocol, Share, Verdict,
};
use uturn_path::{Engine, WalkError, what_if};
use uturn_scan::{
    Changes, FewCalls, Footprint, KnownWalks, ScanResult, ScanTarget, Scanner, other_calls,
};

use super::CaseState;
use crate::outcomes::outcomes_and_reasons;

/// How bad a flow is: the share that no server receives, the share that gets no answer, the share
/// that is not answered at once, and the longest wait for an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Harm {
    /// The share that is neither answered nor gets a server's status about the request.
    pub(crate) stopped: Share,
    pub(crate) lost: Share,
    pub(crate) failing: Share,
    pub(crate) wait: f64,
}

impl Harm {
    pub(crate) fn of(outcomes: &[(Outcome, Share)]) -> Self {
        let share = |wanted: &dyn Fn(&Outcome) -> bool| {
            outcomes.iter().filter(|(end, _)| wanted(end)).map(|(_, share)| *share).sum::<Share>()
        };
        let answered = outcomes.iter().filter(|(outcome, _)| outcome.is_answered());
        let waits =
            answered.filter_map(|(outcome, _)| outcome.after()).map(|wait| wait.as_secs_f64());
        Self {
            stopped: share(&|outcome| !outcome.is_answered() && !is_about_request(outcome)),
            lost: share(&|outcome| !outcome.is_answered()),
            failing: share(&|outcome| !outcome.is_fine()),
            wait: waits.fold(0.0, f64::max),
        }
    }

    fn of_verdicts(verdicts: &[Verdict]) -> Self {
        verdicts.iter().map(|verdict| Self::of(&verdict.outcomes)).fold(Self::default(), |a, b| {
            Self {
                stopped: a.stopped.larger(b.stopped),
                lost: a.lost.larger(b.lost),
                failing: a.failing.larger(b.failing),
                wait: a.wait.max(b.wait),
            }
        })
    }

    /// Returns whether a share or the wait is greater than in the other.
    pub(crate) fn is_worse_than(&self, other: &Self) -> bool {
        self.stopped.is_more_than(other.stopped)
            || self.lost.is_more_than(other.lost)
            || self.failing.is_more_than(other.failing)
            || self.wait > other.wait && !other.lost.is_more_than(self.lost)
    }

    /// Returns whether a share or the wait is less than in the other, and none is greater.
    pub(crate) fn is_better_than(&self, other: &Self) -> bool {
        !self.is_worse_than(other) && other.is_worse_than(self)
    }

    /// Describes the harm: `fine`, `50 % not answered at once, up to 4 s`.
    pub(crate) fn summary(&self) -> String {
        if self.failing.is_none() {
            return "fine".to_owned();
        }
        let mut said = format!("{:.0} % not answered at once", self.failing.get() * 100.0);
        if !self.lost.is_none() {
            said.push_str(&format!(", {:.0} % not at all", self.lost.get() * 100.0));
        } else if self.wait > 0.0 {
            said.push_str(&format!(", up to {} s", self.wait));
        }
        said
    }
}

/// Returns whether an outcome is the status of a server that received the request and does not serve
/// it. A proxy answers with another status for a server that it does not reach.
fn is_about_request(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Status { code: 400..=499, .. })
}

impl CaseState {
    /// Returns whether the state is better than it was before only in that servers receive requests
    /// that they do not serve.
    pub(super) fn only_arrives(&self, before: &Self) -> bool {
        let Some((now, old)) = self.harms(before) else { return false };
        let arrived = Harm { stopped: old.stopped, ..now };
        self.meets_rule(before) || now.is_better_than(&old) && !arrived.is_better_than(&old)
    }

    /// Returns how bad the flow is in this state and in the one before. Where it was known before
    /// that no server receives calls, those that a server receives are not stopped, even if it is not
    /// known what it answers.
    fn harms(&self, before: &Self) -> Option<(Harm, Harm)> {
        let (Self::Flow { outcomes, arrived, .. }, Self::Flow { outcomes: old, .. }) =
            (self, before)
        else {
            return None;
        };
        let mut now = Harm::of(outcomes);
        if !old.iter().any(|(outcome, _)| outcome.is_unknown()) {
            let stopped = now.stopped.get() - arrived.get();
            now.stopped = Share::new(stopped.max(0.0));
        }
        Some((now, Harm::of(old)))
    }

    /// Returns whether the name led elsewhere before, and now leads to its object, which answers.
    fn is_led_right(&self, before: &Self) -> bool {
        self.is_fine() && matches!(before, Self::Flow { is_misled: true, .. })
    }

    /// Returns whether no rule was there for the call before, and now a controller receives it and
    /// is not known to lack one.
    fn meets_rule(&self, before: &Self) -> bool {
        let lacks = |state: &Self| match state {
            Self::Flow { mechanisms, .. } => mechanisms.contains(&Mechanism::NoRuleForPath),
            Self::Probes { .. } | Self::Object { .. } => false,
        };
        let is_known = |state: &Self| match state {
            Self::Flow { outcomes, .. } => !outcomes.iter().any(|(end, _)| end.is_unknown()),
            Self::Probes { .. } | Self::Object { .. } => false,
        };
        let has_arrived = matches!(self, Self::Flow { arrived, .. } if arrived.is_all());
        has_arrived && !lacks(self) && lacks(before) && is_known(before)
    }

    /// Returns whether the state is better than it was before.
    pub fn is_better_than(&self, before: &Self) -> bool {
        match (self, before) {
            (Self::Flow { .. }, Self::Flow { .. }) => {
                self.meets_rule(before)
                    || self.is_led_right(before)
                    || self.harms(before).is_some_and(|(now, old)| now.is_better_than(&old))
            }
            (Self::Probes { alive, of, .. }, Self::Probes { alive: old, of: all, .. }) => {
                *of > 0 && *alive * *all > *old * *of
            }
            (Self::Object { faults, .. }, Self::Object { faults: old, .. }) => {
                faults.len() < old.len() && faults.iter().all(|fault| old.contains(fault))
            }
            _ => false,
        }
    }

    /// Returns whether calls can fail, as far as it is known, or a target or an object does.
    pub(super) fn fails(&self) -> bool {
        match self {
            Self::Flow { .. } => !self.is_fine_or_open(),
            Self::Probes { .. } | Self::Object { .. } => !self.is_fine(),
        }
    }

    /// Returns whether all outcomes are fine or not known.
    pub(super) fn is_fine_or_open(&self) -> bool {
        let Self::Flow { outcomes, .. } = self else { return false };
        outcomes.iter().all(|(outcome, _)| outcome.is_fine() || outcome.is_unknown())
    }

    /// Describes the state in a line: `hangs (security-group)`, `0 of 3 targets answer`.
    pub fn summary(&self) -> String {
        match self {
            Self::Flow { outcomes, mechanisms, .. } => outcomes_and_reasons(outcomes, mechanisms),
            Self::Probes { alive, of, .. } => format!("{alive} of {of} targets answer"),
            Self::Object { faults, .. } => match faults.first() {
                Some(fault) => fault.to_string(),
                None => "the fault is gone".to_owned(),
            },
        }
    }

    /// Returns whether all outcomes are fine, all targets answer, or the object has no fault.
    pub fn is_fine(&self) -> bool {
        match self {
            Self::Flow { outcomes, is_misled, .. } => {
                !is_misled && outcomes.iter().all(|(outcome, _)| outcome.is_fine())
            }
            Self::Probes { alive, of, .. } => alive == of && *of > 0,
            Self::Object { faults, .. } => faults.is_empty(),
        }
    }
}

/// All flows of a cluster with their verdicts: the pods against each target, by target.
pub(crate) struct AllFlows {
    pods: HashMap<(Destination, Protocol), Vec<ScanResult>>,
    /// The flows of clients that are not pods.
    others: HashMap<Flow, (ObjectRef, Harm)>,
}

impl AllFlows {
    /// Walks the flows in each reading of unknown facts, the assumed reading first.
    ///
    /// # Errors
    /// Returns an error if the rules of a node or a flow cannot be walked.
    pub(crate) fn of_readings(
        calls: &FewCalls<'_, '_>,
        scanned: Option<Vec<ScanResult>>,
        known: &Arc<KnownWalks>,
    ) -> Result<Vec<Self>, WalkError> {
        let scanner = calls.scanner();
        let first = match scanned {
            Some(results) => Self::of_results(scanner, &scanner.targets(), results, true),
            None => Self::of(scanner)?,
        };
        let mut all = vec![first];
        for other in what_if::each_other(calls.engine().cluster()) {
            let engine = Engine::new(&other).map_err(|mut why| why.remove(0))?;
            all.push(Self::of(&Scanner::new(&engine).knowing(Some(known)))?);
        }
        Ok(all)
    }

    /// Walks the flows of an edited cluster that may end otherwise than before.
    ///
    /// # Errors
    /// Returns an error if the rules of a node or a flow cannot be walked.
    pub(crate) fn of_edited(
        calls: &FewCalls<'_, '_>,
        (base, before, flows): (&Cluster, &Footprints, &[Self]),
        known: &Arc<KnownWalks>,
    ) -> Result<Vec<Self>, WalkError> {
        // Other readings have clusters of their own.
        let changes = before.has_one_reading.then(|| calls.engine().cluster());
        let changes = changes.and_then(|now| Changes::between(base, now));
        let Some(changes) = changes else { return Self::of_readings(calls, None, known) };
        let scanner = calls.scanner();
        let mut targets = scanner.targets();
        targets.retain(|target| {
            let key = (target.to.clone(), target.protocol);
            let now = scanner.footprint(target).ok();
            let same =
                now.filter(|now| !now.meets(&changes) && before.of_targets.get(&key) == Some(now));
            same.is_none()
        });
        // Only flows that were walked before are compared.
        let has_others = flows.iter().any(|flows| !flows.others.is_empty());
        Ok(vec![Self::of_targets(scanner, targets, has_others)?])
    }

    fn of(scanner: &Scanner<'_, '_>) -> Result<Self, WalkError> {
        Self::of_targets(scanner, scanner.targets(), true)
    }

    fn of_targets(
        scanner: &Scanner<'_, '_>,
        mut targets: Vec<ScanTarget>,
        has_others: bool,
    ) -> Result<Self, WalkError> {
        // Whether anybody calls a node port is not known, so that a cure changes who serves one is no
        // harm.
        targets.retain(|target| target.called_node().is_none());
        let results = scanner.scan(&targets)?;
        Ok(Self::of_results(scanner, &targets, results, has_others))
    }

    fn of_results(
        scanner: &Scanner<'_, '_>,
        targets: &[ScanTarget],
        results: Vec<ScanResult>,
        has_others: bool,
    ) -> Self {
        let targets: Vec<&ScanTarget> =
            targets.iter().filter(|target| target.called_node().is_none()).collect();
        let mut pods: HashMap<_, Vec<ScanResult>> = HashMap::new();
        for result in results.into_iter().filter(|own| own.target.called_node().is_none()) {
            pods.entry((result.target.to.clone(), result.target.protocol))
                .or_default()
                .push(result);
        }
        let mut others = HashMap::new();
        if has_others {
            for (target, flow, verdict) in other_calls(scanner.engine(), &targets) {
                let harm = Harm::of_verdicts(&[verdict]);
                others.insert(flow, (target.object.clone(), harm));
            }
        }
        Self { pods, others }
    }

    /// Returns the number of walks: one for each class of clients of each target, and one for each
    /// other client.
    pub(crate) fn walks(&self) -> usize {
        self.pods.values().map(Vec::len).sum::<usize>() + self.others.len()
    }

    /// Describes a flow that is worse than before. Returns `None` if there is none. Flows that did
    /// not exist before are not compared.
    pub(crate) fn worse_than(&self, before: &Self, given_up: Option<&GivenUp>) -> Option<String> {
        let mut keys: Vec<_> = before.pods.keys().collect();
        keys.sort();
        for key in keys {
            let Some(now) = self.pods.get(key) else { continue };
            if let Some(said) = worse_class(&before.pods[key], now, given_up) {
                return Some(said);
            }
        }
        let mut flows: Vec<_> = before.others.iter().collect();
        flows.sort_by_key(|(flow, _)| (*flow).clone());
        flows.into_iter().find_map(|(flow, (object, old))| {
            let (_, now) = self.others.get(flow).filter(|(_, now)| now.is_worse_than(old))?;
            if given_up.is_some_and(|given_up| given_up.has_flow(flow, object)) {
                return None;
            }
            Some(worse_off(&flow.from.to_string(), &flow.to, old, now))
        })
    }
}

/// What calls of a cluster can meet, by target.
pub(crate) struct Footprints {
    of_targets: HashMap<(Destination, Protocol), Footprint>,
    /// Whether nothing is unknown of which there are several readings.
    has_one_reading: bool,
}

impl Footprints {
    pub(crate) fn of(calls: &FewCalls<'_, '_>) -> Self {
        let scanner = calls.scanner();
        let of_targets = scanner.targets().into_iter().filter_map(|target| {
            let footprint = scanner.footprint(&target).ok()?;
            Some(((target.to, target.protocol), footprint))
        });
        Self {
            of_targets: of_targets.collect(),
            has_one_reading: !what_if::has_others(calls.engine().cluster()),
        }
    }
}

/// The flows that a cure gives up and names among its effects: calls of a Service's own pods, and
/// of processes on their nodes, to the Service's load balancer; or all calls at some addresses.
#[derive(Default)]
pub(crate) struct GivenUp {
    pods: HashSet<NamespacedName>,
    nodes: HashSet<Name>,
    owners: Vec<ObjectRef>,
    addresses: Vec<IpAddr>,
    /// The objects whose only addresses these are.
    at_addresses: Vec<ObjectRef>,
}

impl GivenUp {
    pub(crate) fn of(cluster: &Cluster, service: &NamespacedName) -> Self {
        let endpoints = cluster.slices(service).iter().flat_map(|slice| &slice.endpoints);
        let is_to = |backend: &Backend| matches!(backend, Backend::Service { name, .. } if *name == service.name);
        let leads = |ingress: &&Ingress| {
            let paths = ingress.rules.iter().flat_map(|rule| &rule.paths).map(|path| &path.backend);
            ingress.name.namespace == service.namespace
                && paths.chain(&ingress.default_backend).any(is_to)
        };
        let ingresses = cluster.ingresses.values().filter(leads).map(Ingress::object);
        let own = ObjectRef::namespaced(ObjectKind::Service, service);
        Self {
            pods: endpoints.clone().filter_map(|endpoint| endpoint.pod.clone()).collect(),
            nodes: endpoints.filter_map(|endpoint| endpoint.node.clone()).collect(),
            owners: ingresses.chain([own]).collect(),
            ..Self::default()
        }
    }

    /// Returns the calls of Ingresses that lead to an alias: they failed before, and lead outside now.
    pub(crate) fn leading_out(cluster: &Cluster, alias: &NamespacedName) -> Self {
        let of = Self::of(cluster, alias);
        Self { at_addresses: of.owners, ..Self::default() }
    }

    /// Returns the calls at addresses.
    pub(crate) fn at(cluster: &Cluster, addresses: &[IpAddr]) -> Self {
        let at_addresses = cluster.ingresses.values().filter(|ingress| {
            let is_at = |ip: Option<IpAddr>| ip.is_some_and(|ip| addresses.contains(&ip));
            ingress.load_balancer.iter().any(|entry| is_at(entry.ip))
        });
        let at_addresses = at_addresses.map(Ingress::object).collect();
        Self { addresses: addresses.to_vec(), at_addresses, ..Self::default() }
    }

    /// Returns the Ingresses whose addresses are given up.
    pub(crate) fn ingresses(&self) -> &[ObjectRef] {
        &self.at_addresses
    }

    fn has(&self, pod: &NamespacedName, target: &ScanTarget) -> bool {
        let is_own = self.pods.contains(pod) && self.owners.contains(&target.object);
        !target.is_cluster_ip() && (is_own || self.is_there(&target.to, &target.object))
    }

    /// Returns whether a call is one at the addresses.
    fn is_there(&self, to: &Destination, object: &ObjectRef) -> bool {
        let is_given_up = |ip: &IpAddr| self.addresses.contains(ip);
        match to {
            Destination::Address(at) => is_given_up(&at.ip()),
            Destination::Url { host, .. } | Destination::Host(host, _) => match host.parse() {
                Ok(ip) => is_given_up(&ip),
                Err(_) => self.at_addresses.contains(object),
            },
            Destination::Ingress { .. } => self.at_addresses.contains(object),
            Destination::Service(..) | Destination::Pod(..) => false,
        }
    }
}

impl GivenUp {
    fn has_flow(&self, flow: &Flow, object: &ObjectRef) -> bool {
        if self.is_there(&flow.to, object) {
            return true;
        }
        let on = matches!(&flow.from, Client::Node(name) if self.nodes.contains(name));
        on && !matches!(flow.to, Destination::Service(..)) && self.owners.contains(object)
    }
}

fn worse_class(
    before: &[ScanResult],
    now: &[ScanResult],
    given_up: Option<&GivenUp>,
) -> Option<String> {
    let counts = |pod: &NamespacedName, met: &ScanResult| {
        !given_up.is_some_and(|given_up| given_up.has(pod, &met.target))
    };
    let same_classes = before.len() == now.len()
        && before.iter().zip(now).all(|(a, b)| {
            a.clients.first == b.clients.first && a.clients.pods.len() == b.clients.pods.len()
        });
    let worded = |who: &NamespacedName, old: &ScanResult, harm: (Harm, Harm)| {
        worse_off(&format!("pod/{who}"), &old.target.to, &harm.0, &harm.1)
    };
    if same_classes {
        return before.iter().zip(now).find_map(|(old, new)| {
            let harm = (Harm::of_verdicts(&old.verdicts), Harm::of_verdicts(&new.verdicts));
            if !harm.1.is_worse_than(&harm.0) {
                return None;
            }
            let pod = old.clients.pods.iter().filter(|pod| counts(pod, old)).min();
            pod.map(|pod| worded(pod, old, harm))
        });
    }
    let harms = |results: &[ScanResult]| -> Vec<Harm> {
        results.iter().map(|result| Harm::of_verdicts(&result.verdicts)).collect()
    };
    let (was, is) = (harms(before), harms(now));
    let may_be_worse = |was: &Harm| is.iter().any(|harm| harm.is_worse_than(was));
    if !was.iter().any(may_be_worse) {
        return None;
    }
    let mut by_pod: HashMap<&NamespacedName, Harm> = HashMap::new();
    for (result, harm) in now.iter().zip(&is) {
        by_pod.extend(result.clients.pods.iter().map(|pod| (pod, *harm)));
    }
    before.iter().zip(was).filter(|(_, was)| may_be_worse(was)).find_map(|(old, was)| {
        let hurt =
            |pod: &&NamespacedName| by_pod.get(pod).is_some_and(|harm| harm.is_worse_than(&was));
        let pod = old.clients.pods.iter().filter(|pod| counts(pod, old)).filter(hurt).min()?;
        Some(worded(pod, old, (was, by_pod[pod])))
    })
}

fn worse_off(who: &str, to: &Destination, before: &Harm, now: &Harm) -> String {
    format!(
        "{who} to {to} would be worse off: {} before, {} after",
        before.summary(),
        now.summary()
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uturn_model::{Client, Flow, Mechanism, Outcome, Protocol, Share};

    use super::{CaseState, Harm};

    fn harm(outcome: Outcome) -> Harm {
        Harm::of(&[(outcome, Share::ALL)])
    }

    #[test]
    fn a_status_of_the_server_is_better_than_none() {
        let status = |code| harm(Outcome::Status { code, after: Duration::ZERO });
        let (hangs, refused, fine) =
            (harm(Outcome::Hangs), harm(Outcome::Refused), harm(Outcome::AT_ONCE));
        for code in [400, 403, 404] {
            assert!(status(code).is_better_than(&hangs), "{code}");
            assert!(status(code).is_better_than(&refused), "{code}");
            assert!(fine.is_better_than(&status(code)), "{code}");
            assert!(hangs.is_worse_than(&status(code)), "{code}");
        }
        // A proxy says that it does not reach a server.
        for code in [502, 503, 504] {
            assert!(!status(code).is_better_than(&hangs), "{code}");
            assert!(status(404).is_better_than(&status(code)), "{code}");
        }
        assert!(!refused.is_better_than(&hangs));
    }

    #[test]
    fn a_call_that_arrives_is_better_than_one_that_does_not() {
        let state = |outcome, arrived, mechanism| CaseState::Flow {
            flow: Flow {
                from: Client::Outside(None),
                to: "http://shop.example.com/".parse().unwrap(),
                protocol: Protocol::Tcp,
            },
            outcomes: vec![(outcome, Share::ALL)],
            mechanisms: vec![mechanism],
            conditions: Vec::new(),
            arrived,
            is_misled: false,
        };
        let not_known = |arrived| state(Outcome::Unknown, arrived, Mechanism::NotModelled);
        let refused = state(Outcome::Refused, Share::NONE, Mechanism::NoEndpoint);
        let arrives = not_known(Share::ALL);
        assert!(arrives.is_better_than(&refused));
        assert!(arrives.only_arrives(&refused));
        assert!(!not_known(Share::NONE).is_better_than(&refused));
        // What was not known may have arrived before.
        assert!(!arrives.is_better_than(&not_known(Share::NONE)));
        let status = Outcome::Status { code: 404, after: Duration::ZERO };
        let without_rule = state(status, Share::NONE, Mechanism::NoRuleForPath);
        assert!(arrives.is_better_than(&without_rule) && arrives.only_arrives(&without_rule));
        let of_server = state(status, Share::NONE, Mechanism::WrongPort);
        assert!(!arrives.is_better_than(&of_server));
    }
}
