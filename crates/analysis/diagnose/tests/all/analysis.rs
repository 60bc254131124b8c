//! The analysis of a whole cluster, as a server would call it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::path::Path;

use uturn_diagnose::analysis::{
    Analysis, AnalysisError, Detail, Input, KnownFindings, MAX_BYTES, Options, Suppression,
};
use uturn_diagnose::{Finding, WhyUntried, analyze};
use uturn_snapshot::Manifests;

fn shop() -> Input {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/shop");
    Input::read(&[folder], &[], false, MAX_BYTES).unwrap()
}

fn of_shop(input: &Input, options: &Options<'_>) -> Analysis {
    analyze(&input.manifests, &input.loaded.cluster, options).unwrap()
}

fn codes(analysis: &Analysis) -> Vec<String> {
    analysis.findings.iter().map(|finding| finding.code.to_string()).collect()
}

#[test]
fn an_analysis_has_findings_groups_and_cures() {
    let input = shop();
    let analysis = of_shop(&input, &Options::default());
    assert_eq!(codes(&analysis), ["UT101", "UT206"]);
    assert_eq!(analysis.groups.len(), 2);
    assert_eq!(analysis.origins.len(), 2);
    assert!(analysis.findings.iter().all(|finding| finding.cures.len() > 1));
    assert!(analysis.findings.iter().all(|finding| finding.untried.is_none()));
    assert!(analysis.evidence.is_empty() && analysis.in_full.is_empty());
    assert!(analysis.flows.fine > 0 && analysis.flows.fine < analysis.flows.all);
}

#[test]
fn detail_is_worked_out_as_far_as_it_is_asked_for() {
    let input = shop();
    let evidence = of_shop(&input, &Options { detail: Detail::Evidence, ..Options::default() });
    assert!(evidence.evidence.len() == 2 && evidence.in_full.is_empty());
    let full = of_shop(&input, &Options { detail: Detail::InFull, ..Options::default() });
    assert_eq!(full.evidence, evidence.evidence);
    assert!(full.in_full.keys().eq(&[0, 1]));
    assert!(full.in_full.values().all(|more| more.flow.is_some() && !more.verdicts.is_empty()));
    assert!(full.in_full[&0].cures.iter().any(|cure| !cure.is_offered()));
}

/// A live source has no manifests to edit: what a walk confirms is still there.
#[test]
fn without_manifests_cures_need_no_edit() {
    let cluster = shop().loaded.cluster;
    let analysis = analyze(&Manifests::default(), &cluster, &Options::default()).unwrap();
    assert_eq!(codes(&analysis), ["UT101", "UT206"]);
    let cures: Vec<&str> = analysis.findings[0].cures.iter().map(|cure| cure.name).collect();
    assert_eq!(cures, ["call-service"]);
    let why = |finding: &Finding| finding.untried.as_ref().map(|untried| untried.why);
    assert!(
        analysis.findings.iter().all(|finding| why(finding) == Some(WhyUntried::LongManifests))
    );
}

#[test]
fn known_findings_do_not_count() {
    let input = shop();
    let is_loop = |finding: &Finding| finding.code.to_string() == "UT101";
    let known = Some(KnownFindings { list: "last week", contains: &is_loop });
    let analysis = of_shop(&input, &Options { known, ..Options::default() });
    assert_eq!(codes(&analysis), ["UT206"]);
    assert_eq!(analysis.groups.len(), 1);
    let [suppressed] = analysis.suppressed.as_slice() else { panic!("{analysis:?}") };
    assert_eq!(suppressed.why, Suppression::Known { baseline: "last week".into() });
}

#[test]
fn a_namespace_without_targets_is_an_error() {
    let input = shop();
    let options = Options { namespace: Some("nowhere"), ..Options::default() };
    let error = analyze(&input.manifests, &input.loaded.cluster, &options).unwrap_err();
    assert!(
        matches!(&error, AnalysisError::NothingIn { namespace, .. } if namespace == "nowhere"),
        "{error}"
    );
}
