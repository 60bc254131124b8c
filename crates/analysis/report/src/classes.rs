//! Formats `uturn scan --explain-classes`: which pods share a class of clients, and why.

use uturn_model::Verdict;
use uturn_model::node::RpFilter;
use uturn_scan::{ClassExplanation, ClassTrait, Closeness, TargetExplanation};

use crate::Style;

/// Formats the explanations as text: a block for each target, a paragraph for each class.
pub fn text(targets: &[TargetExplanation], _style: Style) -> String {
    let mut text = String::new();
    for target in targets {
        let classes = match target.classes.len() {
            1 => "1 class of clients".to_owned(),
            many => format!("{many} classes of clients"),
        };
        let called = &target.target;
        let (object, label, protocol) = (&called.object, &called.label, called.protocol);
        text.push_str(&format!("{object} {label} ({protocol}): {classes}"));
        text.push_str(match target.closeness {
            Closeness::Classes => "\n",
            Closeness::EveryNode => ", every node by itself\n",
            Closeness::EveryPod => ", every pod by itself\n",
        });
        for class in &target.classes {
            text.push_str(&of_class(class));
        }
        text.push('\n');
    }
    text
}

fn of_class(class: &ClassExplanation) -> String {
    let clients = &class.result.clients;
    let pods = match clients.pods.len() {
        1 => format!("pod/{}", clients.first),
        many => format!("pod/{} and {} more, on {}", clients.first, many - 1, nodes(clients.nodes)),
    };
    let outcomes: Vec<String> = class.result.verdicts.iter().map(outcome).collect();
    let mut text = format!("  {pods}: {}\n", outcomes.join("; or "));
    text.push_str(&list("in common", &class.common));
    let [own, next] = &class.unlike_next;
    text.push_str(&list("unlike the next class, has", own));
    text.push_str(&list("unlike the next class, lacks", next));
    text
}

fn nodes(many: usize) -> String {
    if many == 1 { "1 node".to_owned() } else { format!("{many} nodes") }
}

pub(crate) fn outcome(verdict: &Verdict) -> String {
    let outcomes = verdict.outcomes.iter().map(|(outcome, share)| match *share {
        whole if whole.is_all() => outcome.to_string(),
        part => format!("{:.0} % {outcome}", part.get() * 100.0),
    });
    outcomes.collect::<Vec<_>>().join(", ")
}

fn list(title: &str, traits: &[ClassTrait]) -> String {
    if traits.is_empty() {
        return String::new();
    }
    let words: Vec<String> = traits.iter().map(words).collect();
    format!("    {title}: {}\n", words.join("; "))
}

/// Returns the name of a trait, and its value.
pub(crate) fn parts(of: &ClassTrait) -> (&'static str, Option<String>) {
    let joined = |words: Vec<String>| Some(words.join(", "));
    match of {
        ClassTrait::HostNetwork => ("host-network", None),
        ClassTrait::EndpointOf(services) => {
            ("endpoint-of", joined(services.iter().map(ToString::to_string).collect()))
        }
        ClassTrait::AddressIn(nets) => {
            ("address-in", joined(nets.iter().map(ToString::to_string).collect()))
        }
        ClassTrait::EndpointsOnNode(service, many) => {
            ("endpoints-on-node", Some(format!("{service} × {many}")))
        }
        ClassTrait::ListenerOnNode(port) => ("listener-on-node", Some(port.to_string())),
        ClassTrait::NodeLacks(service) => ("node-lacks", Some(service.to_string())),
        ClassTrait::NodeIn(nets) => {
            ("node-in", joined(nets.iter().map(ToString::to_string).collect()))
        }
        ClassTrait::NodeLabels(labels) => {
            let pairs = labels.iter().map(|(key, value)| format!("{key}={value}"));
            ("node-labels", joined(pairs.collect()))
        }
        ClassTrait::Zone(zone) => ("zone", Some(zone.to_string())),
        ClassTrait::Kernel(kernel) => ("kernel", Some(kernel.to_string())),
        ClassTrait::NodeRpFilter(filter) => ("rp-filter", Some(rp_filter(*filter).to_owned())),
        ClassTrait::SecurityGroups(groups) => {
            ("security-groups", joined(groups.iter().map(ToString::to_string).collect()))
        }
        ClassTrait::NodeFirewall => ("node-firewall", None),
        ClassTrait::NodeDoesNotForward => ("node-does-not-forward", None),
        ClassTrait::CapturedNode(node) => ("captured-node", Some(node.to_string())),
        ClassTrait::ExcludedNode => ("excluded-node", None),
    }
}

fn rp_filter(filter: RpFilter) -> &'static str {
    match filter {
        RpFilter::Off => "off",
        RpFilter::Strict => "strict",
        RpFilter::Loose => "loose",
    }
}

fn words(of: &ClassTrait) -> String {
    match parts(of) {
        (name, Some(value)) => format!("{} {value}", name.replace('-', " ")),
        (name, None) => name.replace('-', " "),
    }
}
