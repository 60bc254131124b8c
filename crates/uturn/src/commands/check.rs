//! `uturn check`: the checklists.

use uturn_cli::{Failure, Printer, Status, called, print};
use uturn_diagnose::check::{self, State, Topic};
use uturn_model::shell::Advice;
use uturn_path::Engine;
use uturn_report::check as report;
use uturn_report::schema::check::Checks;

use super::suggest;
use crate::cli::{Check, CheckTopic};
use crate::input;

pub(super) fn run(args: &Check, printer: &Printer) -> Result<Status, Failure> {
    let topic = match args.topic {
        CheckTopic::Service => Topic::Service,
        CheckTopic::Ingress => Topic::Ingress,
        CheckTopic::Dns => Topic::Dns,
        CheckTopic::Nodes => Topic::Nodes,
        CheckTopic::CrossNode => Topic::CrossNode,
    };
    let namespace = args.of.namespace.as_deref();
    let object = args.object.as_ref().map(|object| object.within(namespace)).transpose();
    let object = object.map_err(Failure::usage)?;
    if let Some(other) = object.as_ref().and_then(|object| object.topic)
        && other != args.topic
    {
        return Err(Failure::usage(format!(
            "the checklist is for {}, and the object is of kind {}",
            args.topic.as_str(),
            other.as_str()
        )));
    }
    let name = object.as_ref().map(|object| &object.name);
    if name.is_some() && !matches!(topic, Topic::Service | Topic::Ingress) {
        return Err(Failure::usage("NS/NAME can be given for service and ingress only"));
    }
    let cluster = input::cluster(&args.cluster, namespace, printer)?;
    let engine = Engine::new(&cluster)?;
    let mut lists = check::check(&engine, topic, |object| match name {
        Some(name) => object == name,
        None => namespace.is_none_or(|namespace| object.namespace.as_str() == namespace),
    });
    let what = args.topic.as_str();
    let scope = input::scope_phrase(&cluster);
    let missing = match (name, namespace) {
        (Some(name), _) => {
            let kind = if topic == Topic::Ingress { "ingress" } else { "svc" };
            let instead = suggest::instead(kind, &name.to_string(), &cluster);
            format!("there is no {what} {name} {scope}{instead}")
        }
        (None, Some(namespace)) => format!("there is no {what} in namespace {namespace} {scope}"),
        (None, None) => format!("there is no {what} {scope}"),
    };
    let input = args.cluster.as_typed();
    for check in lists.iter_mut().flat_map(|list| &mut list.checks) {
        let named = |next: Advice| next.map(|text| called::with_input(text, &input));
        check.next = check.next.take().map(named);
    }
    if lists.is_empty() && name.is_some() {
        return Err(Failure::usage(missing));
    }
    let text = |style| {
        if lists.is_empty() {
            return format!("nothing to check: {missing}\n");
        }
        report::text(&lists, engine.supposed(), style)
    };
    print(printer, args.output, text, || Checks::new(&lists, engine.supposed()));
    let failed =
        lists.iter().flat_map(|list| &list.checks).any(|check| check.state == State::Failed);
    Ok(if failed { Status::Found } else { Status::Clean })
}
