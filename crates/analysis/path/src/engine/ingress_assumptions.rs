//! Assumptions about Ingresses where manifests leave something open.

use std::cell::LazyCell;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use uturn_clouds::{cloud, controller};
use uturn_model::ingress::PathKind;
use uturn_model::{Assumption, Cluster, Ingress, NamespacedName, Port, Text};

/// Returns the assumptions about Ingresses.
pub(crate) fn of_ingresses(cluster: &Cluster) -> Vec<Assumption> {
    let mut by_class: BTreeMap<Option<&Text>, Vec<&Ingress>> = BTreeMap::new();
    let served = |ingress: &&Ingress| controller::is_served(cluster, ingress);
    for ingress in cluster.ingresses.values().filter(|ingress| !served(ingress)) {
        by_class.entry(ingress.class.as_ref()).or_default().push(ingress);
    }
    // The controllers of these are listed with what is not judged.
    let unlisted = by_class.iter().filter_map(|(class, all)| {
        let rest: Vec<&Ingress> =
            all.iter().copied().filter(|ingress| !ingress.is_open()).collect();
        (!rest.is_empty()).then(|| unserved(cluster, *class, &rest))
    });
    let mut unserved: Vec<Assumption> = unlisted.collect();
    unserved.extend(by_class.into_iter().filter_map(|(class, all)| sealed(cluster, class?, &all)));
    unserved.into_iter().chain(contested(cluster)).chain(unread(cluster)).collect()
}

/// Returns an assumption for each annotation that contains rules and cannot be read.
fn unread(cluster: &Cluster) -> Vec<Assumption> {
    let all = cluster.ingresses.values();
    let served = all.filter(|ingress| controller::is_served_by_cloud(cluster, ingress));
    let each = served.flat_map(|ingress| {
        controller::unreadable(cluster, ingress).into_iter().map(move |what| (ingress, what))
    });
    each.map(|(ingress, (key, expected))| Assumption {
        subject: format!("{key} of {}", ingress.object()).into(),
        assumed: "as if it were not there".into(),
        because: format!("it cannot be read: expected {expected}").into(),
        settle: "correct the annotation".into(),
    })
    .collect()
}

/// Returns the assumption that no known controller reads these Ingresses.
fn unserved(cluster: &Cluster, class: Option<&Text>, all: &[&Ingress]) -> Assumption {
    let first = all[0].object();
    let about = match all.len() {
        1 => first.to_string(),
        many => format!("{first} and {} more", many - 1),
    };
    let class = class.map_or_else(|| "no class".to_owned(), |class| format!("class {class}"));
    let cloud = if cloud::model(cluster).is_some() {
        "the cloud's controller does not read such"
    } else {
        "no cloud's controller is here to read it"
    };
    Assumption {
        subject: about.into(),
        assumed: "no load balancer of its own".into(),
        because: format!("it has {class}, and {cloud}").into(),
        settle: "trace to the Service of the controller that reads it".into(),
    }
}

/// The annotation that turns redirects to HTTPS of ingress-nginx off, on by default for hosts with
/// TLS, and the one that also turns them on for all other hosts.
const REDIRECTS: &str = "nginx.ingress.kubernetes.io/ssl-redirect";
const ALWAYS: &str = "nginx.ingress.kubernetes.io/force-ssl-redirect";

/// Returns the assumption that the cluster's own nginx redirects clients of these Ingresses from
/// HTTP to HTTPS, which uturn does not follow.
fn sealed(cluster: &Cluster, class: &Text, all: &[&Ingress]) -> Option<Assumption> {
    let known = cluster.ingress_classes.values().find(|known| known.name.as_str() == &**class);
    let is_nginx = match known {
        Some(known) => &*known.controller == "k8s.io/ingress-nginx",
        None => &**class == "nginx",
    };
    // Ingresses with a known controller are judged with its redirects.
    let redirects = |ingress: &&&Ingress| {
        let usual = !ingress.tls.is_empty() && !ingress.annotations.is(REDIRECTS, "false");
        ingress.controller.is_none() && (usual || ingress.annotations.is(ALWAYS, "true"))
    };
    let mut redirected = all.iter().filter(redirects);
    let first = redirected.next().filter(|_| is_nginx)?.object();
    let about = match redirected.count() {
        0 => format!("{first} by http"),
        more => format!("{first} and {more} more by http"),
    };
    Some(Assumption {
        subject: about.into(),
        assumed: "nginx answers itself".into(),
        because: "ingress-nginx redirects hosts with TLS to https (308), which is not followed"
            .into(),
        settle: "trace the https URL too".into(),
    })
}

/// An address and port, a host and a path, and whether the path is exact.
type RuleKey<'a> = (IpAddr, Port, Option<&'a Text>, &'a Text, bool);

/// Returns an assumption for each host and path of one listener that two Ingresses have rules for.
fn contested(cluster: &Cluster) -> Vec<Assumption> {
    let mut first: HashMap<RuleKey<'_>, &NamespacedName> = HashMap::new();
    let mut doubts = Vec::new();
    for ingress in cluster.ingresses.values() {
        if !controller::is_served_by_cloud(cluster, ingress) {
            continue;
        }
        let ports = LazyCell::new(|| controller::IngressPorts::of(cluster, ingress));
        for vip in ingress.load_balancer.iter().filter_map(|entry| entry.ip) {
            for rule in &ingress.rules {
                for path in &rule.paths {
                    let is_exact = path.kind == PathKind::Exact;
                    let host = rule.host.as_ref();
                    let own = Some(&path.path);
                    let (port, _) =
                        controller::ingress_serves(cluster, ingress, host, own, || &*ports);
                    let key = (vip, port, host, &path.path, is_exact);
                    let owner = *first.entry(key).or_insert(&ingress.name);
                    if *owner == ingress.name {
                        continue;
                    }
                    let host = rule.host.as_deref().unwrap_or("*");
                    doubts.push(Assumption {
                        subject: format!("{host}{} at {vip}:{port}", path.path).into(),
                        assumed: format!("the rule of Ingress {owner}").into(),
                        because: format!("Ingress {} has one for it too", ingress.name).into(),
                        settle: "leave one of the two".into(),
                    });
                }
            }
        }
    }
    doubts
}
