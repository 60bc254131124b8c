//! `uturn lab run --cure CURE`: runs each scenario with and without a cure.
//!
//! A cured case is a separate scenario, `l7-loop.l7-snat`: its text is the scenario's with the
//! cure's edits, its flows are those that failed, and its expected outcomes are what the cure
//! promises. So it is measured like any other, here or in the small machine.

use uturn_cli::Failure;
use uturn_diagnose::cure::{self, Case as Trouble, CaseState, Cure, TrialBase};
use uturn_document::edit::{At, Change, Tree};
use uturn_model::{Flow, Outcome, Share};
use uturn_snapshot::scenario::{Case, Scenario};
use uturn_snapshot::{Manifests, Source};

use crate::cli::LabRun;
use crate::scenarios;

/// Returns the user's own scenarios and names, with those of cured cases if a cure is requested.
pub(super) fn with_cured(
    mut own: Vec<Source>,
    mut names: Vec<String>,
    args: &LabRun,
) -> Result<(Vec<Source>, Vec<String>), Failure> {
    let Some(wanted) = &args.cure else { return Ok((own, names)) };
    let mut found = Vec::new();
    let mut refusals = Vec::new();
    let mine = scenarios::read_only(own.clone())?;
    for source in scenarios::built_in_beside(&mine).into_iter().chain(own.clone()) {
        for scenario in scenarios::read_only(vec![source.clone()])? {
            if !names.is_empty() && !names.iter().any(|name| **name == *scenario.name) {
                continue;
            }
            for case in scenario.cases.iter().filter(|case| is_asked_for(case, args)) {
                let cured = Cured::of(&source, &scenario, case, wanted)?;
                refusals.extend(cured.refused);
                found.extend(cured.source.map(|source| (scenario.name.to_string(), source)));
            }
        }
    }
    if found.is_empty() {
        refusals.dedup();
        let why = match refusals.as_slice() {
            [] => "no flow of these scenarios can have it".to_owned(),
            some => some.join("; "),
        };
        return Err(Failure::usage(format!("{wanted} cures nothing here: {why}")));
    }
    // Without names, all scenarios that the cure applies to.
    if names.is_empty() {
        names = found.iter().map(|(name, _)| name.clone()).collect();
        names.dedup();
    }
    for (_, (name, source)) in found {
        names.push(name);
        own.push(source);
    }
    Ok((own, names))
}

fn is_asked_for(case: &Case, args: &LabRun) -> bool {
    (args.nodes.is_empty() || args.nodes.contains(&case.nodes))
        && (args.modes.is_empty() || args.modes.contains(&case.cluster.proxy.mode.value))
}

/// A case with the cure. The source is `None` if the cure does not apply.
struct Cured {
    source: Option<(String, Source)>,
    refused: Vec<String>,
}

impl Cured {
    fn of(
        source: &Source,
        scenario: &Scenario,
        case: &Case,
        wanted: &str,
    ) -> Result<Self, Failure> {
        let manifests = Manifests::of(vec![source.clone()]).with_case(&scenario.name, &case.label);
        let engine = super::engine(&case.cluster)?;
        let base = TrialBase::new(&manifests, &engine);
        let mut refused = Vec::new();
        let mut text: Option<Manifests> = None;
        let (mut flows, mut probes) = (Vec::new(), Vec::new());
        let mut note = |trouble: &Trouble<'_>, flows: &mut Vec<Tree>, probes: &mut Vec<Tree>| {
            let all = cure::cures(&base, trouble);
            for cure in all.into_iter().filter(|cure| cure.name == wanted) {
                match (&cure.refused, &cure.after) {
                    (Some(why), _) => refused.push(why.clone()),
                    // Only flows that the same edits cure belong to this case: the others are
                    // separate cases.
                    (None, Some(after)) if same(&mut text, &manifests, &cure) => match after {
                        CaseState::Flow { flow, outcomes, .. } => {
                            flows.push(flow_tree(flow, outcomes));
                        }
                        CaseState::Probes { listener, .. } => {
                            let alive = Tree::List(vec![Tree::map([("alive", Tree::text("all"))])]);
                            probes.push(Tree::map([
                                ("listener", Tree::text(listener.to_string())),
                                ("expect", alive),
                            ]));
                        }
                        // No call shows it, so there is nothing to measure.
                        CaseState::Object { .. } => {}
                    },
                    _ => {}
                }
            }
        };
        for expected in &case.flows {
            let trouble = Trouble::flow(&manifests, base.calls(), expected.flow.clone())?;
            if !trouble.before.is_fine() {
                note(&trouble, &mut flows, &mut probes);
            }
        }
        for expected in &case.probes {
            let trouble =
                Trouble::probes(&manifests, base.calls(), expected.listener, expected.protocol)?;
            if !trouble.before.is_fine() {
                note(&trouble, &mut flows, &mut probes);
            }
        }
        let source = match text {
            Some(text) => Some(named(&text, scenario, case, wanted, flows, probes)?),
            None => None,
        };
        Ok(Self { source, refused })
    }
}

/// Returns whether a cure changes the texts as the first one did.
fn same(text: &mut Option<Manifests>, before: &Manifests, cure: &Cure) -> bool {
    let tried = cure.tried.clone().unwrap_or_else(|| before.clone());
    match text {
        Some(first) => first.sources() == tried.sources(),
        None => {
            *text = Some(tried);
            true
        }
    }
}

/// Returns the scenario of a cured case, with a name of its own.
fn named(
    text: &Manifests,
    scenario: &Scenario,
    case: &Case,
    wanted: &str,
    mut flows: Vec<Tree>,
    probes: Vec<Tree>,
) -> Result<(String, Source), Failure> {
    let mode = case.cluster.proxy.mode.value;
    let name = format!("{}.{wanted}.{}.{mode}", scenario.name, case.nodes);
    if flows.is_empty() {
        flows = case.flows.iter().map(|flow| flow_tree(&flow.flow, &flow.outcomes)).collect();
    }
    let modes = Tree::List(vec![Tree::text(mode.as_str())]);
    let changes = [
        ("probes", Tree::List(probes)),
        ("flows", Tree::List(flows)),
        ("modes", modes),
        ("nodes", Tree::List(vec![Tree::number(case.nodes as u64)])),
    ];
    let cannot = |why: uturn_snapshot::manifests::CannotEdit| Failure::usage(why.to_string());
    let mut new = text.clone();
    for (key, tree) in changes {
        let way = [At::from("spec"), At::from(key)];
        new = new.with_scenario(&way, &Change::Set(tree)).map_err(cannot)?;
    }
    let way = [At::from("metadata"), At::from("name")];
    new = new.with_scenario(&way, &Change::Set(Tree::text(&*name))).map_err(cannot)?;
    let source = new.sources().first().cloned();
    let mut source = source.ok_or_else(|| Failure::usage("there is no text to cure"))?;
    source.name = format!("{name}.yaml").into();
    Ok((name, source))
}

fn flow_tree(flow: &Flow, outcomes: &[(Outcome, Share)]) -> Tree {
    let outcomes = outcomes.iter().map(|(outcome, share)| {
        let mut entries = match outcome {
            Outcome::Status { code, .. } => vec![("status", Tree::number(*code))],
            other => vec![("outcome", Tree::text(other.word()))],
        };
        if let Some(after) = outcome.after().filter(|after| !after.is_zero()) {
            entries.push(("after", Tree::text(format!("{}ms", after.as_millis()))));
        }
        entries.push(("share", Tree::bare(share.to_string())));
        Tree::Map(entries.into_iter().map(|(key, tree)| (key.to_owned(), tree)).collect())
    });
    let mut entries = vec![
        ("from".to_owned(), Tree::text(flow.from.to_string())),
        ("to".to_owned(), Tree::text(flow.to.to_string())),
        ("protocol".to_owned(), Tree::text(flow.protocol.lower())),
    ];
    let outcomes: Vec<Tree> = outcomes.collect();
    if !outcomes.is_empty() {
        let expect = Tree::List(vec![Tree::map([("outcomes", Tree::List(outcomes))])]);
        entries.push(("expect".to_owned(), expect));
    }
    Tree::Map(entries)
}
