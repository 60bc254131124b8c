//! Which nodes announce the addresses of Services, as objects and the place of the announcing program
//! say it; and what AntreaProxy does beside kube-proxy.

use uturn_model::announcement::{AddressPool, AnnouncedBy, Announcement, Announcements};
use uturn_model::service::{IpMode, ServiceKind};
use uturn_model::{Cluster, Labels, NamespacedName, Origin, Selector, ServiceProxy};

use crate::dice::Dice;
use crate::products::judge_all;

const ROLE: &str = "example.com/announces";

/// Adds announcements to a cluster.
pub(crate) fn add(cluster: &mut Cluster, dice: &mut Dice) {
    judge_all(cluster);
    // No product serves Ingresses.
    cluster.ingresses.clear();
    for node in cluster.nodes.values_mut() {
        let role = dice.one_of(&["a", "a", "b"]);
        let old = node.labels.iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
        let host = ("kubernetes.io/hostname".to_owned(), node.name.to_string());
        let has_all = !dice.once_in(5);
        let new = [(ROLE.to_owned(), role.to_owned())];
        node.labels = old.chain(new).chain(has_all.then_some(host)).collect();
        node.lacks_announcer = dice.once_in(6);
    }
    let lacks_labels = cluster.nodes.values().any(|node| !node.has_all_labels());
    let number = dice.below(4);
    cluster.announcements = Announcements {
        pools: pools(dice),
        all: (0..number).map(|number| announcement(dice, number)).collect(),
        are_complete: dice.once_in(2),
        lacks_labels,
    };
    cluster.proxy.beside = dice.once_in(3).then_some(ServiceProxy::Antrea);
    for service in cluster.services.values_mut() {
        service.annotations = Labels::new();
        service.load_balancer_class = Some("metallb.io/metallb".into());
        let side = dice.one_of(&["a", "b"]);
        let old = service.labels.iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
        service.labels = old.chain([("side".to_owned(), side.to_owned())]).collect();
        // Where kube-proxy has no rule, what announces the address decides.
        if service.kind == ServiceKind::LoadBalancer && dice.once_in(2) {
            service.load_balancer.iter_mut().for_each(|entry| entry.mode = IpMode::Proxy);
        }
    }
}

fn name(text: &str) -> NamespacedName {
    NamespacedName::new("metal", text).expect("a name")
}

fn labels(key: &str, value: &str) -> Labels {
    [(key, value)].into_iter().collect()
}

fn pools(dice: &mut Dice) -> Vec<AddressPool> {
    let all = [("one", "10.0.0.0/25"), ("two", "10.0.0.128/25"), ("six", "fd00::/8")];
    let some = all.into_iter().filter(|_| !dice.once_in(4));
    some.map(|(own, range)| AddressPool {
        object: format!("pool {own}").into(),
        name: name(own),
        labels: labels("pool", own),
        ranges: vec![range.parse().expect("a range")],
        origin: Origin::SUPPOSED,
    })
    .collect()
}

fn announcement(dice: &mut Dice, number: usize) -> Announcement {
    let selector = |key: &str, value: &str| vec![Selector::labels(labels(key, value))];
    Announcement {
        object: format!("announcement {number}").into(),
        name: name(&format!("a{number}")),
        by: dice.one_of(&[AnnouncedBy::Neighbours, AnnouncedBy::Neighbours, AnnouncedBy::Routes]),
        pools: match dice.below(3) {
            0 => vec![name("one").name],
            _ => Vec::new(),
        },
        pool_selectors: match dice.below(4) {
            0 => selector("pool", "two"),
            _ => Vec::new(),
        },
        nodes: match dice.below(4) {
            0 => selector(ROLE, "b"),
            1 => selector(ROLE, "c"),
            _ => Vec::new(),
        },
        services: match dice.below(4) {
            0 => selector("side", "a"),
            _ => Vec::new(),
        },
        preferred: match dice.below(3) {
            0 => vec![(10, Selector::labels(labels(ROLE, "b")))],
            _ => Vec::new(),
        },
        interfaces: match dice.below(4) {
            0 => vec!["eth1".into()],
            _ => Vec::new(),
        },
        origin: Origin::SUPPOSED,
    }
}
