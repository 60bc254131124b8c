//! Every case of every scenario of the tree, scanned, and each of its failing flows cured: once, for
//! all tests that look at the results.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use uturn_diagnose::cure::{self, Case, CaseState, Cure, TrialBase};
use uturn_diagnose::flow_codes::FlowCodes;
use uturn_diagnose::{Code, Example, Finding, Severity, analysis, diagnose, doubts};
use uturn_model::{Client, Destination, Flow, Outcome, Protocol, Share, Verdict};
use uturn_path::Engine;
use uturn_scan::{FewCalls, Scanner};
use uturn_snapshot::scenario::{self, Scenario};
use uturn_snapshot::{Manifests, Source};

use super::common::{case_of, case_state, scenarios};

/// The cases of a scenario.
pub(crate) struct TriedScenario {
    pub(crate) name: String,
    pub(crate) cases: Vec<TriedCase>,
}

/// The findings of a scan of a case, and its failing flows.
pub(crate) struct TriedCase {
    pub(crate) label: String,
    pub(crate) nodes: usize,
    pub(crate) codes: Vec<Code>,
    /// A line for each finding, if the scenario has no larger case.
    pub(crate) findings: Option<String>,
    pub(crate) failing: Vec<Failing>,
    /// A line for each finding whose example, traced or cured as one flow, has other codes.
    pub(crate) disagreements: Vec<String>,
}

/// A flow or health checks that fail, and what cures make of them.
pub(crate) struct Failing {
    pub(crate) what: String,
    pub(crate) is_probes: bool,
    pub(crate) codes: BTreeSet<Code>,
    pub(crate) before: String,
    pub(crate) cures: Vec<TriedCure>,
}

/// A cure, and the state after it.
pub(crate) struct TriedCure {
    pub(crate) name: &'static str,
    pub(crate) title: String,
    pub(crate) refused: Option<String>,
    pub(crate) after: Option<String>,
    pub(crate) is_better: bool,
}

/// All scenarios, by name.
pub(crate) fn all() -> &'static [TriedScenario] {
    static ALL: LazyLock<Vec<TriedScenario>> = LazyLock::new(|| {
        scenarios().iter().map(|(source, scenario)| tried(source, scenario)).collect()
    });
    &ALL
}

fn tried(source: &Source, scenario: &Scenario) -> TriedScenario {
    let largest = scenario.cases.iter().map(|case| case.nodes).max();
    let cases = scenario.cases.iter();
    let cases = cases.map(|case| tried_case(source, scenario, case, Some(case.nodes) == largest));
    TriedScenario { name: scenario.name.to_string(), cases: cases.collect() }
}

fn tried_case(
    source: &Source,
    scenario: &Scenario,
    case: &scenario::Case,
    is_largest: bool,
) -> TriedCase {
    let manifests = case_of(source, scenario, case);
    let cluster = manifests.cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let scanner = Scanner::new(&engine);
    let found = diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap();
    let base = TrialBase::new(&manifests, &engine);
    let is_fine = |outcome: &(Outcome, Share)| outcome.0.is_fine();
    let failing = case.flows.iter().filter(|expected| !expected.outcomes.iter().all(is_fine));
    let flows = failing.map(|expected| {
        let what = format!("{} → {}", expected.flow.from, expected.flow.to);
        (
            what,
            false,
            Case::flow(&manifests, &FewCalls::new(&engine), expected.flow.clone()).unwrap(),
        )
    });
    let probes = case.probes.iter().map(|probe| {
        let what = format!("probes of {}", probe.listener);
        (
            what,
            true,
            Case::probes(&manifests, &FewCalls::new(&engine), probe.listener, probe.protocol)
                .unwrap(),
        )
    });
    let failing =
        flows.chain(probes).filter(|(_, is_probes, case)| !is_probes || !case.before.is_fine());
    let failing = failing.map(|(what, is_probes, case)| Failing {
        what,
        is_probes,
        codes: case.codes(),
        before: case_state(&case.before),
        cures: cure::cures(&base, &case).iter().map(|cure| tried_cure(cure, &case)).collect(),
    });
    TriedCase {
        label: case.label.to_string(),
        nodes: case.nodes,
        codes: found.iter().map(|finding| finding.code).collect(),
        failing: failing.collect(),
        disagreements: found
            .iter()
            .flat_map(|finding| disagreements(finding, &manifests, &engine))
            .collect(),
        findings: is_largest.then(|| found.iter().map(|finding| line(finding, &scanner)).collect()),
    }
}

/// Traces and cures the example of a finding, and describes the difference if the finding's code is
/// none of the trace's, or if the cures have other codes than the trace.
pub(crate) fn disagreements<'a>(
    finding: &Finding,
    manifests: &'a Manifests,
    engine: &'a Engine<'a>,
) -> Vec<String> {
    let flow = match &finding.example {
        Example::Scanned(met) => met.flow(),
        Example::Flow(flow) => flow.clone(),
        Example::Manifests => return contradiction(finding, engine).into_iter().collect(),
        Example::Probes(..) => return Vec::new(),
    };
    let traced = FlowCodes::new(engine, &flow).of(&engine.cases(&flow).unwrap());
    let cured: Vec<Code> = Case::flow(manifests, &FewCalls::new(engine), flow.clone())
        .unwrap()
        .codes()
        .into_iter()
        .collect();
    let by_code =
        analysis::case_of(manifests, &FewCalls::new(engine), finding).unwrap().unwrap().codes();
    let words = |codes: &[Code]| {
        let codes: Vec<String> = codes.iter().map(ToString::to_string).collect();
        codes.join(", ")
    };
    let (code, from, to) = (finding.code, &flow.from, &flow.to);
    let mut all = Vec::new();
    if !finding.share_failing.is_none() && !traced.contains(&code) {
        let traced = words(&traced);
        all.push(format!("{code} about {}, but {from} → {to}: {traced}", finding.subject));
    }
    if cured != traced {
        let (cured, traced) = (words(&cured), words(&traced));
        all.push(format!("{from} → {to}: traced {traced}, but cured {cured}"));
    }
    if !finding.share_failing.is_none() && !by_code.contains(&code) {
        let by_code: Vec<Code> = by_code.into_iter().collect();
        all.push(format!("cures of {code} about {} are of {}", finding.subject, words(&by_code)));
    }
    all
}

/// Describes a call that a trace says to be answered, although a finding says without a condition
/// that nothing serves the called Ingress.
fn contradiction(finding: &Finding, engine: &Engine<'_>) -> Option<String> {
    let codes = [Code::NoTargets, Code::Pending, Code::IngressIgnored, Code::BackendMissing];
    let is_certain = finding.conditions.is_empty() && finding.severity == Severity::Error;
    if !is_certain || finding.share_failing.is_none() || !codes.contains(&finding.code) {
        return None;
    }
    let name = finding.subject.namespaced_name()?;
    engine.cluster().ingresses.get(&name).filter(|own| own.object() == finding.subject)?;
    let flow = Flow {
        from: Client::Outside(None),
        to: Destination::Ingress { name, host: None, path: None, port: None },
        protocol: Protocol::Tcp,
    };
    let cases = doubts::cases(engine, &flow).ok()?;
    let is_fine = cases.verdicts().iter().all(Verdict::is_fine);
    is_fine.then(|| {
        format!("{} about {}, but a call of it is answered", finding.code, finding.subject)
    })
}

fn tried_cure(cure: &Cure, case: &Case<'_>) -> TriedCure {
    let after: Option<&CaseState> = cure.after.as_ref();
    TriedCure {
        name: cure.name,
        title: cure.title.clone(),
        refused: cure.refused.clone(),
        after: after.map(case_state),
        is_better: after.is_some_and(|after| after.is_better_than(&case.before)),
    }
}

/// A finding in a line. Every finding has evidence.
fn line(finding: &Finding, scanner: &Scanner<'_, '_>) -> String {
    assert!(!finding.evidence(scanner).unwrap().is_empty(), "{finding:?}");
    let who = [finding.clients.pod_count().to_string() + " pods"];
    let others = finding.clients.others().iter().map(ToString::to_string);
    let who: Vec<String> = who.into_iter().chain(others).collect();
    format!(
        "  {} {} {} [{}] {}: {:.0} % {}\n",
        finding.code,
        finding.severity,
        finding.subject,
        finding.targets.join(", "),
        who.join(", "),
        finding.share_failing.get() * 100.0,
        finding.outcome
    )
}
