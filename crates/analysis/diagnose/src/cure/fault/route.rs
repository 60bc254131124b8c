//! Cures of routes that listeners of a Gateway do not take: what a listener takes, or which listener
//! a route asks for.

use uturn_document::edit::{Change, Tree};
use uturn_model::gateway::AttachedRoute;
use uturn_model::service::TargetPort;
use uturn_model::shell::Command;
use uturn_model::{Name, ObjectKind, ObjectRef, Pod, Port, Service};

use super::super::ingress::is_near;
use super::super::{Case, Proposal, way};
use crate::Finding;

/// The maximum number of listeners that are proposed in place of one.
const MAX: usize = 3;

/// The reason that a status has for a port at which the controller does not listen.
const PORT_UNAVAILABLE: &str = "PortUnavailable";

/// The reason that a status has for a route whose namespace no listener takes.
const NOT_ALLOWED: &str = "NotAllowedByListeners";

/// The label of each namespace with its name.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

pub(super) fn propose(case: &Case<'_>, fault: &Finding) -> Vec<Proposal> {
    let routes = case.cluster().ingresses.values().filter_map(|ingress| ingress.route.as_ref());
    let refused = routes.filter(|route| route.object == fault.subject && !route.refused.is_empty());
    refused.flat_map(|route| of_gateway(case, route)).collect()
}

/// A route and a Gateway as they are written.
struct Written<'r> {
    route: &'r AttachedRoute,
    object: Tree,
    gateway: Tree,
    namespace: &'r Name,
}

/// A reference of a route to its Gateway.
struct Parent<'t> {
    /// Its place in the route.
    at: usize,
    section: Option<&'t str>,
    port: Option<&'t str>,
}

fn of_gateway(case: &Case<'_>, route: &AttachedRoute) -> Vec<Proposal> {
    let of = |object: &ObjectRef| case.manifests.object(object);
    let (Some(object), Some(gateway)) = (of(&route.object), of(&route.gateway)) else {
        return Vec::new();
    };
    let Some(namespace) = route.object.namespace.as_ref() else { return Vec::new() };
    let written = Written { route, object, gateway, namespace };
    let mut all = Vec::new();
    for parent in written.parents() {
        let meant: Vec<usize> = written.meant(&parent).collect();
        if meant.is_empty() {
            all.extend(written.other_listener(&parent));
        }
        all.extend(written.namespaces(case, &meant));
        all.extend(written.hosts(&meant));
        all.extend(meant.iter().filter_map(|at| written.kinds(*at)));
        all.extend(meant.iter().filter_map(|at| written.port(case, *at)));
    }
    all.into_iter().map(|made| written.judged_anew(made).trial()).collect()
}

impl Written<'_> {
    fn listeners(&self) -> &[Tree] {
        self.gateway.items_below(&["spec", "listeners"])
    }

    /// Returns the route's references to the Gateway.
    fn parents(&self) -> Vec<Parent<'_>> {
        let all = self.object.items_below(&["spec", "parentRefs"]);
        let own = all.iter().enumerate().filter(|(_, reference)| self.is_to_gateway(reference));
        own.map(|(at, reference)| Parent {
            at,
            section: text(reference, "sectionName").filter(|section| !section.is_empty()),
            port: text(reference, "port"),
        })
        .collect()
    }

    fn is_to_gateway(&self, reference: &Tree) -> bool {
        let gateway = &self.route.gateway;
        let namespace = text(reference, "namespace").unwrap_or(self.namespace.as_str());
        text(reference, "name") == Some(&*gateway.name)
            && gateway.namespace.as_ref().is_some_and(|own| own.as_str() == namespace)
            && text(reference, "kind").is_none_or(|kind| kind == "Gateway")
    }

    /// Returns whether the status of the route has a reason for this Gateway.
    fn is_refused_for(&self, reason: &str) -> bool {
        let statuses = self.object.items_below(&["status", "parents"]);
        let mut own = statuses.iter().filter(|status| {
            status.get("parentRef").is_some_and(|reference| self.is_to_gateway(reference))
        });
        own.any(|status| {
            let conditions = status.items_below(&["conditions"]);
            conditions.iter().any(|own| text(own, "reason") == Some(reason))
        })
    }

    /// Returns the places of the listeners that a reference means.
    fn meant(&self, parent: &Parent<'_>) -> impl Iterator<Item = usize> {
        let is_meant = |listener: &Tree| {
            parent.section.is_none_or(|section| text(listener, "name") == Some(section))
                && parent.port.is_none_or(|port| text(listener, "port") == Some(port))
        };
        let all = self.listeners().iter().enumerate();
        all.filter(move |(_, own)| is_meant(own)).map(|(at, _)| at)
    }

    fn name(&self, at: usize) -> &str {
        text(&self.listeners()[at], "name").unwrap_or_default()
    }

    /// Proposes a listener that is there in place of one that is not: that with almost the same
    /// name first.
    fn other_listener(&self, parent: &Parent<'_>) -> Vec<Proposal> {
        let names = self.listeners().iter().filter_map(|listener| text(listener, "name"));
        let wanted = parent.section.unwrap_or_default();
        let mut names: Vec<&str> = names.collect();
        names.sort_by_key(|name| !is_near(name, wanted));
        let object = &self.route.object;
        let of = |name: &str| {
            let (old, place) = match (parent.section, parent.port) {
                (Some(section), _) => (section.to_owned(), "sectionName"),
                (None, port) => (format!("port {}", port.unwrap_or_default()), "sectionName"),
            };
            let title = format!(
                "sectionName {name} instead of {old}, which {} does not have, in {}",
                self.route.gateway,
                object.short()
            );
            let made = Proposal::new("route-listener", 12, title).edit(
                object.clone(),
                way!["spec", "parentRefs", parent.at, place],
                Change::Set(Tree::text(name)),
            );
            match parent.port {
                Some(_) => made.edit(
                    object.clone(),
                    way!["spec", "parentRefs", parent.at, "port"],
                    Change::Remove,
                ),
                None => made,
            }
        };
        names.into_iter().take(MAX).map(of).collect()
    }

    /// Proposes that listeners take routes of the route's namespace: by the label that they ask
    /// for, of all namespaces, or of this one only.
    fn namespaces(&self, case: &Case<'_>, meant: &[usize]) -> Vec<Proposal> {
        let at_home = self.route.gateway.namespace.as_ref() == Some(self.namespace);
        let allowed =
            |at: usize| self.listeners()[at].below(&["allowedRoutes", "namespaces", "from"]);
        let from = |at: usize| allowed(at).and_then(Tree::as_str).unwrap_or("Same");
        let closed: Vec<usize> = meant
            .iter()
            .copied()
            .filter(|at| match from(*at) {
                "Same" => !at_home,
                "All" => false,
                // Which namespaces have the labels is not read.
                "Selector" => self.is_refused_for(NOT_ALLOWED),
                _ => true,
            })
            .collect();
        if closed.is_empty() {
            return Vec::new();
        }
        let names: Vec<&str> = closed.iter().map(|at| self.name(*at)).collect();
        let (names, gateway) = (names.join(" and "), &self.route.gateway);
        let mut all = Vec::new();
        if let [only] = closed.as_slice()
            && from(*only) == "Selector"
        {
            all.extend(self.labels(case, *only));
        }
        let title = format!("allowedRoutes.namespaces.from: All for listener {names} of {gateway}");
        let mut made = Proposal::new("allowed-routes", 12, title)
            .costs("routes of every namespace may attach to it, and take hosts from others");
        for at in &closed {
            let place = way!["spec", "listeners", *at, "allowedRoutes", "namespaces", "from"];
            made = made.edit(gateway.clone(), place, Change::Set(Tree::text("All")));
        }
        all.push(made);
        let is_same = closed.iter().all(|at| from(*at) == "Same");
        if let Some(home) = self.route.gateway.namespace.as_ref().filter(|_| is_same) {
            let own = self.namespace;
            let title = format!(
                "allowedRoutes of namespaces {home} and {own} for listener {names} of {gateway}"
            );
            let values = [home, own].map(|name| Tree::text(name.as_str())).to_vec();
            let expression = Tree::map([
                ("key", Tree::text(NAMESPACE_NAME)),
                ("operator", Tree::text("In")),
                ("values", Tree::List(values)),
            ]);
            let selector = Tree::map([("matchExpressions", Tree::List(vec![expression]))]);
            let entries = [("from", Tree::text("Selector")), ("selector", selector)];
            let mut made = Proposal::new("allowed-routes", 14, title);
            for at in &closed {
                let place = way!["spec", "listeners", *at, "allowedRoutes", "namespaces"];
                let value = Change::Set(Tree::map(entries.clone()));
                made = made.edit(gateway.clone(), place, value);
            }
            all.push(made);
        }
        all
    }

    /// Proposes the labels for which a listener asks.
    fn labels(&self, case: &Case<'_>, at: usize) -> Option<Proposal> {
        let namespaces = self.listeners()[at].below(&["allowedRoutes", "namespaces"])?;
        let Tree::Map(labels) = namespaces.below(&["selector", "matchLabels"])? else {
            return None;
        };
        let object =
            ObjectRef::global(ObjectKind::CloudObject("Namespace"), self.namespace.as_str());
        let own = case.manifests.object(&object)?;
        let own = own.below(&["metadata", "labels"]);
        let has = |key: &str, value: &str| own.and_then(|own| text(own, key)) == Some(value);
        let labels = labels.iter().filter_map(|(key, value)| Some((&**key, value.as_str()?)));
        let missing: Vec<(&str, &str)> = labels.filter(|(key, value)| !has(key, value)).collect();
        if missing.is_empty() {
            return None;
        }
        let said: Vec<String> =
            missing.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let title = format!(
            "label {} on namespace {}, for which listener {} asks",
            said.join(", "),
            self.namespace,
            self.name(at)
        );
        let mut command = Command::new("kubectl label namespace").value(self.namespace);
        for label in &said {
            command = command.value(label);
        }
        let mut made = Proposal::new("namespace-label", 10, title).types(command);
        for (key, value) in missing {
            let place = way!["metadata", "labels", key];
            made = made.edit(object.clone(), place, Change::Set(Tree::text(value)));
        }
        Some(made)
    }

    /// Proposes that a listener is for every host.
    fn hosts(&self, meant: &[usize]) -> Option<Proposal> {
        let [at] = meant else { return None };
        let own = text(&self.listeners()[*at], "hostname").filter(|own| !own.is_empty())?;
        let mut asked = self.object.below(&["spec", "hostnames"])?.items().iter();
        if asked.any(|host| host.as_str().is_some_and(|host| overlap(host, own))) {
            return None;
        }
        let (name, gateway) = (self.name(*at), &self.route.gateway);
        let title = format!("listener {name} of {gateway} for every host instead of {own}");
        Some(
            Proposal::new("listener-host", 16, title)
                .edit(gateway.clone(), way!["spec", "listeners", *at, "hostname"], Change::Remove)
                .costs("its certificate has to be for the route's hosts too, if it has one"),
        )
    }

    /// Proposes that a listener takes routes of this kind.
    fn kinds(&self, at: usize) -> Option<Proposal> {
        let kind = self.route.object.kind.as_str();
        let kinds = self.listeners()[at].below(&["allowedRoutes", "kinds"])?.items();
        if kinds.is_empty() || kinds.iter().any(|own| text(own, "kind") == Some(kind)) {
            return None;
        }
        let (name, gateway) = (self.name(at), &self.route.gateway);
        let title = format!("allowedRoutes.kinds with {kind} for listener {name} of {gateway}");
        let value = Change::Append(Tree::map([("kind", Tree::text(kind))]));
        let place = way!["spec", "listeners", at, "allowedRoutes", "kinds"];
        Some(Proposal::new("allowed-kinds", 12, title).edit(gateway.clone(), place, value))
    }

    /// Proposes the port at which the pods of a controller listen, in place of the one of their
    /// Service or their nodes that leads to it.
    fn port(&self, case: &Case<'_>, at: usize) -> Option<Proposal> {
        let listener = &self.listeners()[at];
        let name = self.name(at);
        let of_status = self.gateway.items_below(&["status", "listeners"]);
        let own = of_status.iter().find(|own| text(own, "name") == Some(name))?;
        let mut conditions = own.items_below(&["conditions"]).iter();
        let is_refused = |own: &Tree| {
            text(own, "status") == Some("False") && text(own, "reason") == Some(PORT_UNAVAILABLE)
        };
        if !conditions.any(is_refused) {
            return None;
        }
        let written: Port = text(listener, "port")?.parse().ok()?;
        let (pod, number) = inner_port(case, written)?;
        let gateway = &self.route.gateway;
        let title = format!("port {number} instead of {written} for listener {name} of {gateway}");
        Some(
            Proposal::new("listener-port", 10, title)
                .when(
                    format!("its controller listens on {number}"),
                    true,
                    format!("{written} leads to port {number} of pod {}", pod.name),
                )
                .edit(
                    gateway.clone(),
                    way!["spec", "listeners", at, "port"],
                    Change::Set(Tree::number(number.number())),
                )
                .costs(format!("clients still call {written}, which leads to {number}")),
        )
    }

    /// Lets the controller judge the route and the listeners anew: it wrote its judgement before
    /// the edit.
    fn judged_anew(&self, mut made: Proposal) -> Proposal {
        let route = &self.route.object;
        let statuses = self.object.items_below(&["status", "parents"]);
        for (at, status) in statuses.iter().enumerate().rev() {
            if status.get("parentRef").is_some_and(|reference| self.is_to_gateway(reference)) {
                let place = way!["status", "parents", at];
                made = made.follow(route.clone(), place, Change::Remove);
            }
        }
        if made.name == "listener-port" && self.gateway.below(&["status", "listeners"]).is_some() {
            let place = way!["status", "listeners"];
            made = made.follow(self.route.gateway.clone(), place, Change::Remove);
        }
        made
    }
}

/// Returns the port of a controller's pod to which a port of its Service or of its node leads.
fn inner_port<'c>(case: &Case<'c>, outer: Port) -> Option<(&'c Pod, Port)> {
    let cluster = case.cluster();
    let mut pods =
        cluster.pods.values().filter(|pod| pod.is_alive() && cluster.controller_of(pod).is_some());
    let by_service = |pod: &Pod| {
        let selects = |service: &&Service| {
            service.name.namespace == pod.name.namespace
                && service.selector.as_ref().is_some_and(|own| own.matches(&pod.spec.labels))
        };
        let mut ports =
            cluster.services.values().filter(selects).flat_map(|service| &service.ports);
        let own = ports.find(|own| own.port == outer)?;
        match &own.target {
            TargetPort::Number(number) => Some(*number),
            TargetPort::Name(name) => pod.spec.named_port(name, own.protocol),
        }
    };
    let by_node = |pod: &Pod| {
        let mut ports = pod.spec.ports();
        ports.find(|own| own.host_port == Some(outer)).map(|own| own.port)
    };
    pods.find_map(|pod| {
        let number = by_service(pod).or_else(|| by_node(pod))?;
        (number != outer).then_some((pod, number))
    })
}

/// Returns whether two hosts, each of which may begin with a star, have a name in common.
fn overlap(one: &str, other: &str) -> bool {
    let (one, other) = (one.to_ascii_lowercase(), other.to_ascii_lowercase());
    let is_below = |host: &str, wild: &str| {
        let bare = host.strip_prefix('*').unwrap_or(host);
        wild.strip_prefix('*').is_some_and(|end| bare.ends_with(end))
    };
    one == other || is_below(&one, &other) || is_below(&other, &one)
}

fn text<'t>(tree: &'t Tree, key: &str) -> Option<&'t str> {
    tree.get(key)?.as_str()
}
