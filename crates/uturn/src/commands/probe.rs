//! `uturn probe`: makes the calls of one flow, and compares them with the prediction.

mod plan;
mod pod;
mod settle;

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use uturn_cli::{Failure, Printer, Status, print};
use uturn_diagnose::analysis::Input;
use uturn_diagnose::doubts::{self, FlowCase};
use uturn_diagnose::flow_codes::FlowCodes;
use uturn_live::DebugContainer;
use uturn_model::{Client, Verdict};
use uturn_path::Engine;
use uturn_probe::{Exec, ExecError, Limits, Measurement, Tool, find_tool, judge, measure};
use uturn_report::probe::{ProbeCase, ProbeReport};
use uturn_report::schema::probe::Probe as ProbeOutput;
use uturn_report::words;

use self::plan::Plan;
use self::pod::PodCommands;
use super::suggest;
use super::trace::texts;
use crate::cli::{ClusterArgs, Probe};
use crate::input;

/// The longest time until an added container runs.
const UNTIL_IT_RUNS: Duration = Duration::from_secs(180);
/// How much longer than the calls the added container runs: it is searched for programs too.
const LONGER: Duration = Duration::from_secs(120);

pub(super) fn run(args: &Probe, printer: &Printer) -> Result<Status, Failure> {
    check(args)?;
    let mut cluster_args = args.cluster.clone();
    cluster_args.api.live = true;
    let Input { loaded, .. } = input::read(&cluster_args, None, printer, 0)?;
    let cluster = &loaded.cluster;
    let engine = Engine::new(cluster)?;
    let plan = Plan::new(&engine, args)?;
    let judged = doubts::cases(&engine, &plan.flow);
    let judged = judged.map_err(|why| suggest::with_suggestion(why, cluster))?;
    let verdicts = judged.verdicts();
    let limits = plan.limits(&verdicts, args);
    confirm(args, &plan, &verdicts, &limits, printer)?;

    let mut commands = connect(&cluster_args, &plan, args, &limits, printer)?;
    let tool = tool(&mut commands, &plan, args, printer)?;
    let mut progress = |calls: &[uturn_probe::MeasuredCall]| {
        printer.progress(&format!(
            "{} of {} by {tool}",
            calls.len(),
            words::count(limits.calls as usize, "call")
        ));
    };
    let measurement = measure(&mut commands, tool, &plan.call, &limits, &mut progress);
    printer.progress_done();
    if measurement.calls.is_empty() {
        let why = measurement.stopped.as_ref().map(ToString::to_string).unwrap_or_default();
        return Err(Failure::unavailable(format!("no call was made: {why}")));
    }
    let report = report(&engine, plan, judged.all, tool, &limits, measurement, &commands)?;
    print(
        printer,
        args.output,
        |style| uturn_report::probe::text(&report, style),
        || ProbeOutput::from(&report),
    );
    Ok(status(&report))
}

/// Returns the exit status. Only successful calls that fit the prediction are clean: calls that
/// were not answered at once are findings, as in a trace.
fn status(report: &ProbeReport) -> Status {
    let has_found = report.agrees() == Some(false) || report.has_bad_calls();
    let is_short = report.measurement.stopped.is_some() || !report.failed().is_empty();
    match (has_found, is_short) {
        (true, _) => Status::Found,
        (false, true) => Status::Unavailable,
        (false, false) => Status::Clean,
    }
}

/// Refuses arguments that are wrong whatever the cluster is.
fn check(args: &Probe) -> Result<(), Failure> {
    if !args.cluster.inputs.bundles.is_empty() || args.cluster.inputs.complete {
        return Err(Failure::usage(
            "probe makes calls in a running cluster: it takes no --bundle and no --complete, and \
             with -f Facts only",
        ));
    }
    match &args.from {
        Client::Pod(_) | Client::Workload(..) => {}
        Client::Node(name) => {
            return Err(Failure::usage(format!(
                "calls are made in pods: name one with hostNetwork that runs on node {name}, such \
                 as its kube-proxy"
            )));
        }
        Client::Outside(_) => {
            return Err(Failure::usage(
                "calls are made in pods: a client outside the cluster has none",
            ));
        }
    }
    let can_ask = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !args.yes && !can_ask {
        return Err(Failure::usage(
            "probe asks before it runs commands in a pod, and there is no terminal to ask on: pass \
             --yes",
        ));
    }
    Ok(())
}

/// Shows the plan, and asks the user for confirmation.
fn confirm(
    args: &Probe,
    plan: &Plan,
    verdicts: &[Verdict],
    limits: &Limits,
    printer: &Printer,
) -> Result<(), Failure> {
    let text = plan.announcement(args, verdicts, limits);
    if args.yes {
        printer.detail(&text);
        return Ok(());
    }
    let asked = Printer::ask(&format!("{text}\nDo it? [y/N]"));
    let mut answer = String::new();
    let answered = asked.and_then(|()| io::stdin().read_line(&mut answer));
    if answered.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
        Ok(())
    } else {
        Err(Failure::unavailable("nothing was done"))
    }
}

/// Connects to the container in which calls are made: the pod's own, or one that is added to the
/// pod.
fn connect(
    args: &ClusterArgs,
    plan: &Plan,
    probe: &Probe,
    limits: &Limits,
    printer: &Printer,
) -> Result<PodCommands, Failure> {
    let mut commands = PodCommands::connect(args, &plan.pod, probe.container.clone())?;
    if let Some(image) = &probe.image {
        printer.progress(&format!("adding a container of {image} to pod/{}", plan.pod));
        let (namespace, pod) = (&plan.pod.namespace, &plan.pod.name);
        let wanted = DebugContainer {
            namespace: namespace.to_string(),
            pod: pod.to_string(),
            image: image.clone(),
            lifetime: Plan::longest(limits) + LONGER,
            limit: UNTIL_IT_RUNS,
        };
        let added = commands.add_container(&wanted);
        printer.progress_done();
        let name = added.map_err(|why| {
            Failure::unavailable(format!(
                "no container of {image} runs in pod/{}: {why}; if one was added, it stays in the \
                 pod's list",
                plan.pod
            ))
        })?;
        printer.note(&format!("added container {name} to pod/{}: it ends by itself", plan.pod));
    }
    Ok(commands)
}

/// Returns the program that makes the calls.
fn tool(
    commands: &mut PodCommands,
    plan: &Plan,
    args: &Probe,
    printer: &Printer,
) -> Result<Tool, Failure> {
    let wanted = args.with.as_deref().and_then(Tool::from_word);
    let among: Vec<Tool> = match wanted {
        Some(tool) if !tool.can(&plan.call) => {
            return Err(Failure::usage(format!("{tool} cannot call {}", plan.call)));
        }
        Some(tool) => vec![tool],
        None => Tool::ALL.into_iter().filter(|tool| tool.can(&plan.call)).collect(),
    };
    printer.progress(&format!("looking for a program in pod/{}", plan.pod));
    let found = find_tool(commands as &mut dyn Exec, &plan.call, &among);
    printer.progress_done();
    match found {
        Ok(Some(tool)) => Ok(tool),
        Ok(None) => {
            let names: Vec<&str> = among.iter().map(|tool| tool.word()).collect();
            Err(Failure::unavailable(format!(
                "pod/{} has no program that can call {} (looked for {}): name another container \
                 with --container, or an image with --image",
                plan.pod,
                plan.call,
                names.join(", ")
            )))
        }
        Err(ExecError::Interrupted) => {
            Err(Failure::unavailable("stopped before any call was made"))
        }
        Err(why) => {
            Err(Failure::unavailable(format!("no command can be run in pod/{}: {why}", plan.pod)))
        }
    }
}

fn report(
    engine: &Engine<'_>,
    plan: Plan,
    judged: Vec<FlowCase>,
    tool: Tool,
    limits: &Limits,
    measurement: Measurement,
    commands: &PodCommands,
) -> Result<ProbeReport, Failure> {
    let verdicts: Vec<Verdict> = judged.iter().map(|case| case.verdict.clone()).collect();
    let known = plan.known(&verdicts, limits, measurement.took);
    let codes = FlowCodes::new(engine, &plan.flow);
    let cases: Vec<ProbeCase> = judged
        .into_iter()
        .map(|case| ProbeCase {
            judgement: judge(
                &case.verdict.outcomes,
                case.verdict.is_by_chance(),
                &measurement.calls,
                &known,
            ),
            codes: texts(&codes.of_case(&case).0),
            verdict: case.verdict,
        })
        .collect();
    let settled = settle::settle(engine, &plan, &cases, &measurement.calls, &known)?;
    Ok(ProbeReport {
        flow: plan.flow,
        pod: plan.pod,
        container: commands.container().map(str::to_owned),
        called: plan.call.to_string(),
        sends_requests: plan.call.request().is_some(),
        tool,
        shows: tool.shows(&plan.call),
        wanted: limits.calls,
        measurement,
        cases,
        learned: settled.learned,
        would_fit: settled.would_fit,
    })
}
