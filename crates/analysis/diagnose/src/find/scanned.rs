//! Turns the results of a scan into findings.

use std::collections::HashMap;

use uturn_model::ingress::{Backend, IngressRule};
use uturn_model::service::ServicePort;
use uturn_model::{Destination, Flow, Mechanism, NamespacedName, ObjectKind, Protocol, Verdict};
use uturn_path::{Engine, WalkError};
use uturn_scan::{AddressKind, ScanResult, ScanTarget, Scanner};

use super::node_condition::node_condition;
use super::node_ports::severity_at;
use super::policies;
use crate::clients::{Clients, Example};
use crate::conditions::{conditions, most_severe};
use crate::evidence::worst;
use crate::finding::{CureTitle, Finding};
use crate::{Code, Severity, call};

pub(super) fn judge(
    known: &Known<'_, '_>,
    met: &ScanResult,
    verdict: &Verdict,
) -> Result<Option<Finding>, WalkError> {
    let Some(worst) = worst(verdict) else { return Ok(None) };
    // Mechanisms are ordered: the cause nearest to the client comes first.
    let Some(mechanism) = worst.mechanisms.first().copied() else { return Ok(None) };
    let target = &met.target;
    if mechanism == Mechanism::NetworkPolicy
        && !policies::is_stated(target.object.kind, worst.outcome)
    {
        return Ok(None);
    }
    if is_beyond_redirect(known.engine, target, mechanism) {
        return Ok(None);
    }
    let is_unseen = are_replies_unseen(known.scanner, met, mechanism)?;
    let code = Code::of_reply(mechanism, target.object.kind, is_unseen);
    let mut conditions = conditions(code, mechanism, verdict);
    let mut most_severe = most_severe(code, &conditions);
    if let Some((condition, severity)) = node_condition(known.scanner, met, mechanism)? {
        conditions.push(condition);
        most_severe = severity;
    }
    Ok(Some(Finding {
        code,
        severity: severity(known.engine, code, mechanism, met).min(most_severe),
        subject: target.object.clone(),
        targets: vec![target.label.clone()],
        clients: Clients::pods(met.clients.pods.clone()),
        share_failing: verdict.share_failing(),
        outcome: worst.outcome,
        mechanism: Some(mechanism),
        example: Example::Scanned(Box::new(met.clone())),
        failure: None,
        other_evidence: Vec::new(),
        cures: cures(known, met)?,
        untried: None,
        conditions,
    }))
}

/// The results of the scan, by target.
pub(super) struct Known<'e, 'a> {
    scanner: &'e Scanner<'e, 'a>,
    engine: &'e Engine<'a>,
    met: HashMap<(&'e Destination, Protocol), Vec<&'e ScanResult>>,
}

impl<'e, 'a> Known<'e, 'a> {
    pub(super) fn of(scanner: &'e Scanner<'e, 'a>, met: &'e [ScanResult]) -> Self {
        let mut by_target: HashMap<_, Vec<&'e ScanResult>> = HashMap::new();
        for result in met {
            by_target.entry((&result.target.to, result.target.protocol)).or_default().push(result);
        }
        Self { scanner, engine: scanner.engine(), met: by_target }
    }

    /// Returns whether another target answers a client at once.
    fn is_fine(&self, met: &ScanResult, to: &Destination) -> Result<bool, WalkError> {
        let there = self.met.get(&(to, met.target.protocol)).into_iter().flatten();
        let mut same = there.filter(|result| result.clients.pods.has(&met.clients));
        if let Some(known) = same.next() {
            return Ok(known.verdicts.iter().all(Verdict::is_fine));
        }
        let flow = Flow { to: to.clone(), ..met.flow() };
        match self.engine.verdict(&flow) {
            Ok(verdict) => Ok(verdict.is_fine()),
            Err(WalkError::Later(_) | WalkError::NoAddress(..)) => Ok(false),
            Err(why) => Err(why),
        }
    }
}

/// Returns whether the failure is behind a redirect and due to a missing name or rule. A route that
/// redirects states neither the host nor the path that clients request, so they are made up; and
/// the URL to which it redirects is a target of its own.
fn is_beyond_redirect(engine: &Engine<'_>, target: &ScanTarget, mechanism: Mechanism) -> bool {
    let Destination::Ingress { name, host, path, .. } = &target.to else { return false };
    let for_want_of = matches!(mechanism, Mechanism::NameUnresolved | Mechanism::NoRuleForPath);
    let Some(ingress) = engine.cluster().ingresses.get(name).filter(|_| for_want_of) else {
        return false;
    };
    let rule = ingress.rule_for(host.as_ref(), path.as_ref());
    let mut paths = rule.into_iter().flat_map(|rule| &rule.paths);
    let own = paths.find(|own| path.as_ref().is_none_or(|path| own.path == *path));
    own.is_some_and(|own| matches!(own.backend, Backend::Redirect(_)))
}

/// Returns whether replies bypass the load balancer because a bridge hides them from rules.
fn are_replies_unseen(
    scanner: &Scanner<'_, '_>,
    met: &ScanResult,
    mechanism: Mechanism,
) -> Result<bool, WalkError> {
    if mechanism != Mechanism::AsymmetricReturn || !scanner.engine().has_blind_bridges()? {
        return Ok(false);
    }
    Ok(scanner.explain_worst(met)?.iter().any(Code::is_reply_unseen))
}

/// Returns the severity of a finding. A pod that only fails to call itself is not an error. Clients
/// need not call the cluster IP of servers that expect a load balancer in front of them. Pods have
/// the Service's own address, so that a node port does not serve them harms nobody yet; and that a
/// node without an endpoint does not serve is what policy Local asks for.
fn severity(engine: &Engine<'_>, code: Code, mechanism: Mechanism, met: &ScanResult) -> Severity {
    if code == Code::ProxyHeaderLost && met.target.is_cluster_ip() {
        return Severity::Info;
    }
    // What the load balancer's targets would be is said by a finding of its own where it is known.
    if mechanism == Mechanism::NoTarget {
        return Severity::Warning;
    }
    let most = severity_at(engine.cluster(), &met.target, Some(mechanism));
    if met.target.called_node().is_some() {
        return code.severity().min(most).min(Severity::Warning);
    }
    let most = code.severity().min(most);
    if met.clients.itself { most.min(Severity::Warning) } else { most }
}

/// Returns the cures that a walk confirms: so far only to call the Service by its name, which never
/// leaves the cluster's own rules.
fn cures(known: &Known<'_, '_>, met: &ScanResult) -> Result<Vec<CureTitle>, WalkError> {
    let target = &met.target;
    let Some((service, port)) = service_behind(known.engine, target) else {
        return Ok(Vec::new());
    };
    let to = Destination::Service(service.clone(), Some(port.port.to_string().into()));
    let own = known.engine.cluster().services.get(service);
    let by_name = own.map_or(to.clone(), |own| call::by_name(own, port.port, &target.to));
    if by_name == target.to || !known.is_fine(met, &by_name)? {
        return Ok(Vec::new());
    }
    Ok(vec![CureTitle { name: "call-service", text: format!("call {to}") }])
}

/// Returns the Service and port that would answer without the load balancer.
pub(super) fn service_behind<'e>(
    engine: &'e Engine<'_>,
    target: &ScanTarget,
) -> Option<(&'e NamespacedName, &'e ServicePort)> {
    let cluster = engine.cluster();
    match (&target.object.kind, &target.to) {
        (ObjectKind::Ingress, Destination::Ingress { name, host, path, .. }) => {
            let ingress = cluster.ingresses.get(name)?;
            let own = |rule: &&IngressRule| rule.host == *host;
            let paths = ingress.rules.iter().filter(own).flat_map(|rule| &rule.paths);
            let mut paths = paths.filter(|known| Some(&known.path) == path.as_ref());
            let backend = paths.next().map(|known| &known.backend);
            let Backend::Service { name: service, port } =
                backend.or(ingress.default_backend.as_ref())?
            else {
                return None;
            };
            let name = NamespacedName { namespace: name.namespace.clone(), name: service.clone() };
            let service = cluster.services.get(&name)?;
            Some((&service.name, service.port_named(port)?))
        }
        (ObjectKind::Service, Destination::Address(address)) => {
            let service = cluster.services.get(&target.object.namespaced_name()?)?;
            let is_called = |port: &&ServicePort| match target.at {
                AddressKind::NodePort(_) => {
                    port.node_port.is_some_and(|own| own.number() == address.port())
                        && port.protocol == target.protocol
                }
                AddressKind::ClusterIp | AddressKind::Other => port.port.number() == address.port(),
            };
            Some((&service.name, service.ports.iter().find(is_called)?))
        }
        _ => None,
    }
}
