//! Suggestions for names that do not exist.

use uturn_cli::Failure;
use uturn_model::service::ServicePort;
use uturn_model::{Cluster, NamespacedName, misspelt};
use uturn_path::WalkError;

/// The largest number of names that are suggested.
const MAX: usize = 3;

/// Returns the failure of a flow that cannot be walked, with names that may have been meant.
pub(super) fn with_suggestion(why: WalkError, cluster: &Cluster) -> Failure {
    match &why {
        WalkError::Unknown(what) => {
            if let Some(lacking) = lacks_port(what, cluster) {
                return Failure::usage(lacking);
            }
            let mut message = why.to_string();
            if let Some((kind, wanted)) = what.split_once('/') {
                message.push_str(&instead(kind, wanted, cluster));
            }
            if !cluster.unread.is_empty() {
                let unread: Vec<&str> = cluster.unread.iter().map(|unread| &*unread.what).collect();
                message.push_str(&format!("; not all could be read: {}", unread.join(", ")));
            }
            Failure::usage(message)
        }
        _ => why.into(),
    }
}

/// Returns a message that a Service exists without the called port, if that is the case.
fn lacks_port(what: &str, cluster: &Cluster) -> Option<String> {
    let wanted = what.strip_prefix("svc/")?;
    let (name, port) = match wanted.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (wanted, None),
    };
    let service = cluster.services.get(&name.parse::<NamespacedName>().ok()?)?;
    let of = |port: &ServicePort| match &port.name {
        Some(name) => format!("{name} ({})", port.port),
        None => port.port.to_string(),
    };
    let ports: Vec<String> = service.ports.iter().map(of).collect();
    Some(match (port, ports.as_slice()) {
        (_, []) => format!("svc/{name} has no ports: call it by its name, as HOST:PORT"),
        (Some(port), ports) => {
            format!("svc/{name} has no port {port}; it has {}", ports.join(", "))
        }
        (None, _) => return None,
    })
}

/// Returns, for example, `; there are pod/shop/web-0 and pod/shop/web-1` if there are objects of
/// the kind.
pub(super) fn instead(kind: &str, wanted: &str, cluster: &Cluster) -> String {
    let mut there = all_of(kind, cluster);
    let namespace = wanted.split_once('/').map(|(namespace, _)| format!("{namespace}/"));
    if let Some(namespace) = &namespace
        && there.iter().any(|name| name.starts_with(namespace))
    {
        there.retain(|name| name.starts_with(namespace));
    }
    misspelt::sort_likest_first(&mut there, wanted);
    let mut named: Vec<String> =
        there.iter().take(MAX).map(|name| format!("{kind}/{name}")).collect();
    if there.len() > MAX {
        named.push(format!("{} more", there.len() - MAX));
    }
    match named.split_last() {
        None => String::new(),
        Some((only, [])) => format!("; there is {only}"),
        Some((last, others)) => format!("; there are {} and {last}", others.join(", ")),
    }
}

/// Returns all objects of a kind, as they are typed without their kind.
fn all_of(kind: &str, cluster: &Cluster) -> Vec<String> {
    match kind {
        "pod" => cluster.pods.keys().map(ToString::to_string).collect(),
        "svc" => cluster.services.keys().map(ToString::to_string).collect(),
        "ingress" => cluster.ingresses.keys().map(ToString::to_string).collect(),
        "node" => cluster.nodes.keys().map(ToString::to_string).collect(),
        _ => {
            let own = cluster.workloads.keys().filter(|(known, _)| known.short() == kind);
            own.map(|(_, name)| name.to_string()).collect()
        }
    }
}
