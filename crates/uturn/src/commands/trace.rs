//! `uturn trace`: one flow, hop by hop.

use uturn_diagnose::Code;
use uturn_model::{Destination, Flow, Kind, Verdict};
use uturn_path::Engine;
use uturn_report::{json, svg, trace, words};

use super::{cure, near, print};
use crate::cli::Trace;
use crate::printer::Printer;
use crate::status::{Failure, Status};

pub(super) fn run(args: &Trace, printer: &Printer) -> Result<Status, Failure> {
    let (manifests, loaded) = cure::gather(&args.inputs, printer, cure::MOST_BYTES)?;
    let cluster = &loaded.cluster;
    let mut engine = Engine::new(cluster)?;
    if args.all {
        engine = engine.with_every_way();
    }
    let flow = Flow { from: args.from.clone(), to: args.to.clone(), protocol: args.proto };
    let verdicts = engine.cases(&flow).map_err(|why| near::told(why, cluster))?;
    let of_one = |verdict: &Verdict| codes(&engine, &flow, std::slice::from_ref(verdict));
    let all = codes(&engine, &flow, &verdicts);
    let can_fail = verdicts.iter().any(Verdict::can_fail);
    let cures = if !can_fail { Vec::new() } else { cure::of_flow(&manifests, cluster, &flow)? };
    let told = |style| {
        let mut text = trace::text(&flow, &verdicts, &of_one, style);
        if !cures.is_empty() {
            text.push_str(&format!("\ncure: {}\n", words::first_of(&cures)));
            text.push_str(&format!("uturn cure --from {} --to {} says how\n", flow.from, flow.to));
        }
        text
    };
    let value = || {
        let mut value = json::trace(&flow, &verdicts, &all);
        let cures: Vec<&str> = cures.iter().map(|cure| &*cure.text).collect();
        json::extend(&mut value, serde_json::json!({ "cures": cures }));
        value
    };
    match args.output.plain() {
        Some(output) => print(printer, output, told, value),
        None => printer.result(&svg::trace(&flow, &verdicts, &all)),
    }
    Ok(if can_fail { Status::Found } else { Status::Clean })
}

/// The codes of what goes wrong.
fn codes(engine: &Engine<'_>, flow: &Flow, verdicts: &[Verdict]) -> Vec<String> {
    let kind = kind_of(engine, flow);
    let mut codes: Vec<Code> =
        verdicts.iter().flat_map(|verdict| Code::of_verdict(verdict, kind)).collect();
    codes.sort_unstable();
    codes.dedup();
    codes.iter().map(ToString::to_string).collect()
}

/// What a destination belongs to: an Ingress where one of its listeners serves it.
fn kind_of(engine: &Engine<'_>, flow: &Flow) -> Kind {
    match (&flow.to, engine.balancer_behind(&flow.to, flow.protocol)) {
        (Destination::Ingress { .. }, _) => Kind::Ingress,
        (_, Some(rule)) => rule.owner.kind,
        _ => Kind::Service,
    }
}
