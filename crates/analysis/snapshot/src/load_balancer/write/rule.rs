//! Writes rules and their targets.

use uturn_lb::config::{Forward, RuleSettings, Stickiness};
use uturn_model::ingress::PathKind;
use uturn_model::{Name, ObjectRef, lb};

use crate::load_balancer::wire;

use super::{probe, time};

pub(super) fn rule(
    rule: &lb::Rule,
    settings: &RuleSettings,
    protocol: lb::ListenerProtocol,
    is_layer_7: bool,
    has_checks: bool,
) -> wire::Rule {
    let lb::Rule { host, path, service, owner, targets, redirect } = rule;
    let is_redirect = redirect.is_some() && targets.is_empty();
    wire::Rule {
        host: host.as_ref().map(|host| wire::Host(host.to_string())),
        path: path.as_ref().map(|(path, kind)| {
            let kind = match kind {
                PathKind::Exact => wire::PathType::Exact,
                PathKind::Prefix => wire::PathType::Prefix,
                PathKind::ImplementationSpecific => wire::PathType::ImplementationSpecific,
            };
            let path = wire::RulePathText(path.to_string());
            wire::RulePath::Typed(wire::TypedPath { path, kind: Some(kind) })
        }),
        service: Some(wire::Names(service.to_string())),
        owner: Some(object(owner)),
        targets: (!is_redirect).then(|| targets.iter().map(target).collect()),
        redirect: redirect.as_ref().map(self::redirect),
        forward: is_layer_7.then_some(match settings.forward {
            Forward::Http1 => wire::Forward::Http1,
            Forward::H2c => wire::Forward::H2c,
        }),
        stickiness: settings.stickiness.as_ref().map(|stickiness| match stickiness {
            Stickiness::Source(source) => {
                wire::Stickiness::Source(wire::BySource { source: time(*source) })
            }
            Stickiness::Cookie { name, max_age } => wire::Stickiness::Cookie(wire::ByCookie {
                cookie: name.to_string(),
                max_age: max_age.map(time),
            }),
        }),
        // Without health checks there is no probe.
        probe: (has_checks || settings.probe.is_some()).then(|| probe(settings, protocol)),
    }
}

fn object(object: &ObjectRef) -> wire::Object {
    let ObjectRef { kind, namespace, name } = object;
    wire::Object {
        kind: kind.as_str().to_owned(),
        namespace: namespace.as_ref().map(ToString::to_string),
        name: name.to_string(),
    }
}

fn redirect(redirect: &lb::Redirect) -> wire::Redirect {
    let lb::Redirect { code, tls, host, port, path } = redirect;
    wire::Redirect {
        status: Some(*code),
        tls: Some(*tls),
        host: host.as_ref().map(|host| wire::Host(host.to_string())),
        port: Some(port.number()),
        path: path.as_ref().map(|path| wire::HttpPath(path.to_string())),
    }
}

fn target(target: &lb::Target) -> wire::Target {
    let lb::Target { address, weight, kind } = target;
    let (node_port, pod, node) = match kind {
        lb::TargetKind::NodePort(node) => (Some(node), None, None),
        lb::TargetKind::Pod { pod, node } => (None, pod.as_ref(), node.as_ref()),
    };
    wire::Target::Weighted(wire::WeightedTarget {
        address: wire::Socket(address.to_string()),
        weight: Some(*weight),
        node_port: node_port.map(|node: &Name| node.to_string()),
        pod: pod.map(|pod| wire::Names(pod.to_string())),
        node: node.map(|node: &Name| node.to_string()),
    })
}
