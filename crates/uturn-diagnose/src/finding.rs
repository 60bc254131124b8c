//! From verdicts to findings.
//!
//! Classes of clients that a target treats alike are one finding. If another object is the cause
//! (a security group, a node), the finding is about that object and lists all the targets that it
//! affects. A Service without endpoints because its workload is scaled to zero is a warning.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;

use uturn_model::ingress::{Backend, BackendPort, IngressRule};
use uturn_model::service::ServicePort;
use uturn_model::{
    Destination, Flow, Mechanism, NamespacedName, ObjectKind, ObjectRef, Outcome, Protocol, Share,
    Text, Verdict,
};
use uturn_path::{Engine, WalkError};
use uturn_scan::{ScanResult, ScanTarget, Scanner};

use crate::clients::{Clients, Example};
use crate::evidence::worst;
use crate::{Code, Observation, Severity, bypass, cause, ejection, not_scanned, object_faults};

/// Something that people have to act on.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What it is.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// The object that cannot be reached as it should be, or that keeps others from it.
    pub subject: ObjectRef,
    /// Where exactly: `:80 shop.example.com/`, and others that fail alike.
    pub targets: Vec<String>,
    /// The clients that are affected.
    pub clients: Clients,
    /// The share of their calls that is not answered at once.
    pub share_failing: Share,
    /// How such a call ends.
    pub outcome: Outcome,
    /// Why; none where nothing is lost on the way.
    pub mechanism: Option<Mechanism>,
    /// What shows it.
    pub example: Example,
    /// What it rests on beside the example.
    pub written: Vec<Observation>,
    /// What helps, the least intrusive first.
    pub cures: Vec<CureTitle>,
    /// What must hold for the finding to be true, if it depends on something unknown.
    pub conditions: Vec<Text>,
}

/// A cure in a line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CureTitle {
    /// Its name: `call-service`. The same cure of another object has the same name.
    pub name: &'static str,
    /// What it does here: `call svc/shop/front:80`.
    pub text: String,
}

impl Deref for CureTitle {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for CureTitle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Turns what a scan found, and what can be seen without one, into findings, the worst first.
///
/// # Errors
/// Returns an error if a flow cannot be walked.
pub fn diagnose(scanner: &Scanner<'_, '_>, met: &[ScanResult]) -> Result<Vec<Finding>, WalkError> {
    let engine = scanner.engine();
    let known = Known::of(scanner, met);
    let mut found = Found::default();
    for result in met {
        for verdict in result.verdicts.iter().filter(|verdict| verdict.can_fail()) {
            let Some(new) = judge(&known, result, verdict)? else { continue };
            let cause = found.cause(scanner, &new)?;
            found.add(new, cause);
        }
    }
    for (new, cause) in not_scanned::find(engine)? {
        found.add(new, cause);
    }
    for new in bypass::find(engine, met)? {
        found.add(new, None);
    }
    for new in ejection::find(engine, met) {
        found.add(new, None);
    }
    for new in object_faults::find(engine)? {
        found.add_written(new);
    }
    let mut findings = found.findings;
    findings.sort_by_cached_key(|finding| {
        // Of shares that are the same, sums differ in their last digits.
        let harm =
            (finding.share_failing.get() * finding.clients.len() as f64 * 1e6).round() as u64;
        let order = (finding.code, finding.subject.clone(), finding.targets.clone());
        (Reverse(finding.severity), Reverse(harm), order)
    });
    Ok(findings)
}

/// The findings so far, each cause once.
#[derive(Default)]
struct Found {
    findings: Vec<Finding>,
    by_subject: HashMap<ObjectRef, Vec<usize>>,
    /// How many causes were looked for, each with a walk.
    looked_for: usize,
}

/// At most this many causes are looked for; other findings are about their targets.
const MOST_CAUSES: usize = 50;

impl Found {
    /// The object that causes a finding, if it is not the target.
    fn cause(
        &mut self,
        scanner: &Scanner<'_, '_>,
        new: &Finding,
    ) -> Result<Option<ObjectRef>, WalkError> {
        if !new.mechanism.is_some_and(cause::is_shared) || self.looked_for >= MOST_CAUSES {
            return Ok(None);
        }
        self.looked_for += 1;
        let Example::Scanned(met) = &new.example else { return Ok(None) };
        let verdicts = scanner.explain(met)?;
        Ok(verdicts.iter().find_map(worst).and_then(cause::of))
    }

    fn add(&mut self, mut new: Finding, cause: Option<ObjectRef>) {
        let is_cause = cause.is_some();
        if let Some(cause) = cause {
            let whose = new.subject.short();
            new.targets.iter_mut().for_each(|target| *target = format!("{whose} {target}"));
            new.subject = cause;
        }
        let same_subject = self.by_subject.entry(new.subject.clone()).or_default();
        let alike = |at: &&usize| {
            let known = &self.findings[**at];
            known.code == new.code
                && known.conditions == new.conditions
                && (is_cause
                    || known.outcome == new.outcome
                        && known.share_failing.is_about(new.share_failing))
        };
        match same_subject.iter().find(alike) {
            Some(at) => self.findings[*at].take(new),
            None => {
                same_subject.push(self.findings.len());
                self.findings.push(new);
            }
        }
    }

    /// Adds a finding about what is written wrong. It is more specific than what was found for the
    /// same object by walking, and replaces that.
    fn add_written(&mut self, new: Finding) {
        let vague = new.code.replaces();
        // A hint replaces no finding.
        let is_same = |known: &&mut Finding| {
            new.conditions.is_empty() && known.subject == new.subject && vague.contains(&known.code)
        };
        match self.findings.iter_mut().find(is_same) {
            Some(known) => {
                known.code = new.code;
                known.severity = known.severity.max(new.severity);
                known.written.extend(new.written);
            }
            None => self.add(new, None),
        }
    }
}

impl Finding {
    /// Merges a finding with the same cause into this one.
    fn take(&mut self, new: Self) {
        self.clients = self.clients.and(&new.clients);
        let known = &self.targets;
        let more: Vec<String> =
            new.targets.into_iter().filter(|target| !known.contains(target)).collect();
        self.targets.extend(more);
        let known = &self.written;
        let more: Vec<Observation> =
            new.written.into_iter().filter(|finding| !known.contains(finding)).collect();
        self.written.extend(more);
        self.cures.retain(|cure| new.cures.contains(cure));
        self.severity = self.severity.max(new.severity);
        if new.share_failing > self.share_failing {
            self.share_failing = new.share_failing;
            self.outcome = new.outcome;
        }
    }
}

/// What the scan found, by target.
struct Known<'e, 'a> {
    scanner: &'e Scanner<'e, 'a>,
    engine: &'e Engine<'a>,
    met: HashMap<(&'e Destination, Protocol), Vec<&'e ScanResult>>,
}

impl<'e, 'a> Known<'e, 'a> {
    fn of(scanner: &'e Scanner<'e, 'a>, met: &'e [ScanResult]) -> Self {
        let mut by_target: HashMap<_, Vec<&'e ScanResult>> = HashMap::new();
        for result in met {
            by_target.entry((&result.target.to, result.target.protocol)).or_default().push(result);
        }
        Self { scanner, engine: scanner.engine(), met: by_target }
    }

    /// Whether a client is answered at once by another target.
    fn is_fine(&self, met: &ScanResult, to: &Destination) -> Result<bool, WalkError> {
        let there = self.met.get(&(to, met.target.protocol)).into_iter().flatten();
        let mut same = there.filter(|result| result.clients.pods.has(&met.clients));
        if let Some(known) = same.next() {
            return Ok(known.verdicts.iter().all(Verdict::is_fine));
        }
        let flow = Flow { to: to.clone(), ..met.flow() };
        match self.engine.verdicts(&flow) {
            Ok(verdicts) => Ok(verdicts.iter().all(Verdict::is_fine)),
            Err(WalkError::Later(_)) => Ok(false),
            Err(why) => Err(why),
        }
    }
}

fn judge(
    known: &Known<'_, '_>,
    met: &ScanResult,
    verdict: &Verdict,
) -> Result<Option<Finding>, WalkError> {
    let Some(worst) = worst(verdict) else { return Ok(None) };
    // Mechanisms are in order: the cause nearest to the client comes first.
    let Some(mechanism) = worst.mechanisms.first().copied() else { return Ok(None) };
    let target = &met.target;
    let is_unseen = are_replies_unseen(known.scanner, met, mechanism)?;
    let code = Code::of_reply(mechanism, target.object.kind, is_unseen);
    Ok(Some(Finding {
        code,
        severity: severity(code, met),
        subject: target.object.clone(),
        targets: vec![target.label.clone()],
        clients: Clients::pods(met.clients.pods.clone()),
        share_failing: verdict.share_failing(),
        outcome: worst.outcome,
        mechanism: Some(mechanism),
        example: Example::Scanned(Box::new(met.clone())),
        written: Vec::new(),
        cures: cures(known, met)?,
        conditions: Vec::new(),
    }))
}

/// Whether answers go astray because a bridge shows them to no rule.
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

/// A pod that only fails to call itself is no error.
fn severity(code: Code, met: &ScanResult) -> Severity {
    if met.clients.itself { code.severity().min(Severity::Warning) } else { code.severity() }
}

/// The cures that a walk confirms: so far only to call the Service by its name, which never leaves
/// the cluster's own rules.
fn cures(known: &Known<'_, '_>, met: &ScanResult) -> Result<Vec<CureTitle>, WalkError> {
    let target = &met.target;
    let Some((service, port)) = service_behind(known.engine, target) else {
        return Ok(Vec::new());
    };
    let to = Destination::Service(service.clone(), Some(port.port.to_string().into()));
    if to == target.to {
        return Ok(Vec::new());
    }
    let call = CureTitle { name: "call-service", text: format!("call {to}") };
    Ok(if known.is_fine(met, &to)? { vec![call] } else { Vec::new() })
}

/// The Service and port that would answer without the load balancer.
fn service_behind<'e>(
    engine: &'e Engine<'_>,
    target: &ScanTarget,
) -> Option<(&'e NamespacedName, &'e ServicePort)> {
    let cluster = engine.cluster();
    match (&target.object.kind, &target.to) {
        (ObjectKind::Ingress, Destination::Ingress { name, host, path }) => {
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
            let port = service.ports.iter().find(|known| match port {
                BackendPort::Number(number) => known.port == *number,
                BackendPort::Name(name) => known.name.as_ref() == Some(name),
            })?;
            Some((&service.name, port))
        }
        (ObjectKind::Service, Destination::Address(address)) => {
            let service = cluster.services.get(&target.object.namespaced_name()?)?;
            let port = service.ports.iter().find(|port| port.port.number() == address.port())?;
            Some((&service.name, port))
        }
        _ => None,
    }
}
