//! `uturn trace`: one flow, hop by hop.

use uturn_cli::{Failure, Printer, Status, print};
use uturn_diagnose::analysis::{Input, MAX_BYTES, cures_of_finding, cures_of_flow};
use uturn_diagnose::doubts::{FlowCase, FlowCases};
use uturn_diagnose::flow_codes::FlowCodes;
use uturn_diagnose::{Code, conditions, doubts};
use uturn_model::shell::Command;
use uturn_model::{Flow, Verdict};
use uturn_path::{Engine, WalkError, add_missing, usual_protocol};
use uturn_report::schema::trace::Trace as TraceOutput;
use uturn_report::trace::{Doubt, Meaning};
use uturn_report::{svg, trace, words};

use super::suggest;
use crate::cli::Trace;
use crate::input;

pub(super) fn run(args: &Trace, printer: &Printer) -> Result<Status, Failure> {
    let namespace = args.of.namespace.as_deref();
    let from = args.from.within(namespace).map_err(Failure::usage)?;
    let to = args.to.within(namespace).map_err(Failure::usage)?;
    let Input { manifests, loaded } = input::read(&args.cluster, namespace, printer, MAX_BYTES)?;
    let cluster = &loaded.cluster;
    let mut engine = Engine::new(cluster)?;
    if args.all {
        engine = engine.with_every_way();
    }
    let protocol = args.proto.unwrap_or_else(|| usual_protocol(cluster, &to));
    let flow = Flow { from, to, protocol };
    let judged = doubts::cases(&engine, &flow);
    let judged = judged.map_err(|why| suggest::with_suggestion(why, cluster))?;
    let codes = FlowCodes::new(&engine, &flow);
    let (verdicts, meanings) = endings(&codes, &judged);
    let all = texts(&codes.of_cases(&judged));
    // A name that leads elsewhere is at fault, whoever answers there.
    let is_misled = codes.is_at_fault();
    let can_fail = is_misled || verdicts.iter().any(Verdict::can_fail);
    let is_walked = is_misled || judged.walked().iter().any(Verdict::can_fail);
    let cures = if is_walked { cures_of_flow(&manifests, cluster, &flow)? } else { Vec::new() };
    let doubts = judged.doubts.into_iter().map(|finding| {
        let cures = cures_of_finding(&manifests, &engine, &finding)?;
        Ok(Doubt { finding, cures })
    });
    let doubts = doubts.collect::<Result<Vec<Doubt>, WalkError>>()?;
    let text = |style| {
        let mut text = trace::text(&flow, &verdicts, &meanings, engine.supposed(), style);
        if !cures.is_empty() {
            text.push_str(&format!("\ncure: {}\n", words::first_of(&cures)));
            let input = args.cluster.as_typed();
            let command = Command::new("uturn cure").with(&input).with(&flow.arguments());
            text.push_str(&format!("{command} says how\n"));
        }
        for doubt in doubts.iter().filter(|doubt| !doubt.cures.is_empty()) {
            let finding = &doubt.finding;
            let cures = words::first_of(&doubt.cures);
            let if_so = if finding.conditions.is_empty() { "" } else { ", if it is so" };
            text.push_str(&format!("\ncure of {}{if_so}: {cures}\n", finding.code));
            let command = Command::new("uturn cure").with(&args.cluster.as_typed());
            let is_of_flow = finding.example.flow().is_some_and(|own| own == flow);
            let command = if is_of_flow {
                command.with(&flow.arguments())
            } else {
                command.value(finding.code).value(finding.subject.short())
            };
            text.push_str(&format!("{command} says how\n"));
        }
        text
    };
    let value = || {
        let of_doubts = doubts.iter().flat_map(|doubt| &doubt.cures);
        let mut all_cures: Vec<&str> = Vec::new();
        add_missing(&mut all_cures, cures.iter().chain(of_doubts).map(|cure| &*cure.text));
        TraceOutput::new(&flow, &verdicts, &all, all_cures, &doubts)
    };
    match args.output.plain() {
        Some(output) => print(printer, output, text, value),
        None => printer.result(&svg::trace(&flow, &verdicts, &all)),
    }
    Ok(if can_fail { Status::Found } else { Status::Clean })
}

/// Returns how a flow ends in each case, and what that means.
pub(super) fn endings(
    codes: &FlowCodes<'_, '_>,
    judged: &FlowCases,
) -> (Vec<Verdict>, Vec<Meaning>) {
    let with_conditions = |case: &FlowCase| {
        let mut verdict = case.verdict.clone();
        if case.doubt.is_none() {
            let more = conditions::of_verdict(&verdict, codes.kind());
            verdict.conditions.extend(more);
        }
        verdict
    };
    let meaning = |case: &FlowCase| {
        let (codes, because) = codes.of_case(case);
        Meaning { codes: texts(&codes), because }
    };
    judged.all.iter().map(|case| (with_conditions(case), meaning(case))).unzip()
}

/// Returns codes as texts.
pub(super) fn texts(codes: &[Code]) -> Vec<String> {
    codes.iter().map(ToString::to_string).collect()
}
