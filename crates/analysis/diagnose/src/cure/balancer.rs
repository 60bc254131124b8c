//! Cures at the load balancer: replace the source, or send health checks from another address.

use uturn_clouds::cloud::{self, OverridesObject, Owner};
use uturn_document::edit::{At, Change, Tree};
use uturn_model::lb::{Layer, ProbeSource, Source, TargetKind};
use uturn_model::network::SecurityRule;
use uturn_model::shell::Advice;
use uturn_model::{Mechanism, NamespacedName, ObjectKind, ObjectRef, Protocol};

use super::facts::{facts, probe_source_path};
use super::{Case, Proposal, way};
use crate::cloud::{node_ports, probe_range};

pub(super) fn propose(case: &Case<'_>) -> Vec<Proposal> {
    let mut all = Vec::new();
    let loops =
        [Mechanism::AsymmetricReturn, Mechanism::ReversePathFilter, Mechanism::LocalSourceDrop];
    if case.walked().is_some() && loops.into_iter().any(|mechanism| case.has(mechanism)) {
        all.extend(snat(case));
    }
    if case.walked().is_none() {
        all.extend(probe_source(case));
    }
    all
}

/// The object in which users set properties of a listener.
struct OverridesLocation {
    owner: ObjectRef,
    overrides: ObjectRef,
    /// The form of the object, with which it is created if it does not exist.
    object: &'static OverridesObject,
    /// The annotation that the owner needs so that the object has an effect.
    switch: Option<&'static str>,
}

/// Returns the object for the listener of a case. Returns `None` if the cloud has no such objects.
fn location(case: &Case<'_>) -> Option<OverridesLocation> {
    let (_, listener) = case.listener()?;
    // A listener that several objects share belongs to the first of them.
    let owner = listener.rules.first()?.owner.clone();
    let name = NamespacedName::new(owner.namespace.as_ref()?.as_str(), &owner.name).ok()?;
    let cluster = case.cluster();
    let written = match owner.kind {
        ObjectKind::Ingress => Owner::Ingress(cluster.ingresses.get(&name)?),
        _ => Owner::Service(cluster.services.get(&name)?),
    };
    let object = cloud::entry(cluster.provider.value.cloud()?)?.overrides.as_ref()?;
    let location = cloud::model(cluster)?.overrides_place(written);
    let name = NamespacedName::new(name.namespace.as_str(), &location.name).ok()?;
    let overrides = ObjectRef::namespaced(ObjectKind::CloudObject(object.kind), &name);
    Some(OverridesLocation { owner, overrides, object, switch: location.switch })
}

/// Sets a property of a listener in its object, which is created if it does not exist.
fn configure(
    case: &Case<'_>,
    mut made: Proposal,
    location: &OverridesLocation,
    more: (&str, Tree),
) -> Proposal {
    let Some((_, listener)) = case.listener() else { return made };
    let (port, protocol) = (listener.port, listener.protocol);
    let list = match protocol.layer() {
        Layer::L4 => location.object.layer_4,
        Layer::L7 => location.object.layer_7,
    };
    if let Some(switch) = location.switch {
        let way = way!["metadata", "annotations", switch];
        made = made.edit(location.owner.clone(), way, Change::Set(Tree::text("true")));
    }
    let segment = Tree::map([
        ("protocol", Tree::text(protocol.to_string())),
        ("port", Tree::number(port.number())),
        (more.0, more.1.clone()),
    ]);
    if !case.manifests.has(&location.overrides) {
        let namespace =
            location.overrides.namespace.as_ref().map(|name| name.as_str()).unwrap_or_default();
        let meta =
            [("name", Tree::text(&*location.overrides.name)), ("namespace", Tree::text(namespace))];
        let object = Tree::map([
            ("apiVersion", Tree::text(location.object.versions[0])),
            ("kind", Tree::text(location.object.kind)),
            ("metadata", Tree::map(meta)),
            ("spec", Tree::map([("loadBalancer", Tree::map([(list, Tree::List(vec![segment]))]))])),
        ]);
        let file = format!("{}.yaml", location.overrides.name);
        made.objects.push((file, location.overrides.clone(), object));
        return made;
    }
    let at = At::Where("port".into(), port.to_string());
    let known = way!["spec", "loadBalancer", list, at.clone(), "port"];
    let (way, change) = match case.manifests.text_at(&location.overrides, &known) {
        Some(_) => (way!["spec", "loadBalancer", list, at, more.0], Change::Set(more.1)),
        None => (way!["spec", "loadBalancer", list], Change::Append(segment)),
    };
    made.edit(location.overrides.clone(), way, change)
}

/// Proposes that the load balancer replaces the source, on layer 7.
fn snat(case: &Case<'_>) -> Option<Proposal> {
    let (balancer, listener) = case.listener()?;
    let is_l7 = listener.protocol.layer() == Layer::L7;
    if !is_l7 || matches!(listener.profile.source, Source::Replaced(_)) {
        return None;
    }
    let location = location(case)?;
    let field = &location.object.replaced_source;
    let title = format!(
        "let the load balancer replace the source: {} for {} port {}",
        field.name,
        location.owner.short(),
        listener.port
    );
    let mut made = Proposal::new("l7-snat", 30, title)
        .ask(field.condition.0, field.condition.1)
        .costs("servers see the load balancer's address; the client's is in X-Forwarded-For");
    for cost in field.costs {
        made = made.costs(*cost);
    }
    made = configure(case, made, &location, (field.name, Tree::number(1u32)));
    let fact = case.cluster().load_balancers.iter().find(|fact| fact.vip == balancer.vip);
    let stated =
        fact.and_then(|fact| fact.listeners.iter().find(|stated| stated.port == listener.port));
    if stated.is_some_and(|stated| stated.snat == Some(false)) {
        let way = way![
            "loadBalancers",
            At::Where("vip".into(), balancer.vip.to_string()),
            "listeners",
            At::Where("port".into(), listener.port.to_string()),
            "snat"
        ];
        made = made.follow(facts(), way, Change::Set(Tree::bare("true")));
    }
    Some(let_in(case, made))
}

/// Adds that the targets' security groups must let in the load balancer's own range.
fn let_in(case: &Case<'_>, mut made: Proposal) -> Proposal {
    let cluster = case.cluster();
    let Some((_, listener)) = case.listener() else { return made };
    let Some(model) = cloud::model(cluster) else { return made };
    let source = model.replaced_source();
    let peer = source.hosts().next().unwrap_or(source.addr());
    let mut shut: Vec<String> = Vec::new();
    let mut unknown = true;
    for target in listener.rules.iter().flat_map(|rule| &rule.targets) {
        let node = target.kind.node().and_then(|name| cluster.nodes.get(name));
        let Some(groups) = node.and_then(|node| node.security_groups.as_ref()) else { continue };
        unknown = false;
        let known: Vec<_> =
            groups.iter().filter_map(|name| cluster.security_groups.get(name)).collect();
        let matches =
            |rule: &&SecurityRule| rule.matches(peer, Some(Protocol::Tcp), target.address.port());
        let rule = known.iter().flat_map(|group| &group.inbound).find(matches);
        let is_in = known.len() < groups.len() || rule.is_some_and(|rule| rule.accept);
        if let (false, Some(first)) = (is_in, groups.first())
            && !shut.contains(&first.to_string())
        {
            shut.push(first.to_string());
        }
    }
    let what = format!("the nodes' security groups let {source} in");
    if unknown {
        return made.ask(what, "no security group is stated in Facts");
    }
    if shut.is_empty() {
        return made.when(what, true, "they do, as Facts state them");
    }
    for group in &shut {
        let is_node_port = listener
            .rules
            .iter()
            .flat_map(|rule| &rule.targets)
            .any(|target| matches!(target.kind, TargetKind::NodePort(_)));
        let ports = if is_node_port { Tree::text(node_ports(cluster)) } else { Tree::text("all") };
        let rule = Tree::map([
            ("action", Tree::text("accept")),
            ("protocol", Tree::text("tcp")),
            ("ports", ports),
            ("peer", Tree::text(source.to_string())),
        ]);
        let way = way!["securityGroups", group.as_str(), "inbound"];
        made = made.edit(facts(), way, Change::Prepend(rule)).types(Advice::sentence(&format!(
            "in the console, security group {group}: let TCP from {source} in before anything else"
        )));
    }
    made.costs(format!("{} shuts that range out: a rule is added first", shut.join(", ")))
}

/// Proposes health checks from the range that the cloud reserves for them, rather than from the
/// load balancer's own address.
fn probe_source(case: &Case<'_>) -> Option<Proposal> {
    let (balancer, listener) = case.listener()?;
    let check = listener.profile.health_check.as_ref()?;
    if check.source != ProbeSource::Vip {
        return None;
    }
    let location = location(case)?;
    let (range, field) = (probe_range(case.cluster()), &location.object.reserved_probes);
    let title =
        format!("health checks of {} port {} from {range}", location.owner.short(), listener.port);
    let mut made =
        Proposal::new("probe-source", 20, title).ask(field.condition.0, field.condition.1).costs(
            format!("a node firewall has to let {range} in; security groups do so by themselves"),
        );
    for cost in field.costs {
        made = made.costs(*cost);
    }
    if listener.protocol.layer() == Layer::L4 {
        let check = Tree::map([("enable", Tree::bare("true")), (field.name, Tree::number(1u32))]);
        made = configure(case, made, &location, ("healthCheck", check));
    } else {
        made = made.types(Advice::sentence(&format!(
            "in the console, load balancer {}: {} for each rule of port {}",
            balancer.name, location.object.reserved_probes_in_console, listener.port
        )));
    }
    let fact = case.cluster().load_balancers.iter().find(|fact| fact.vip == balancer.vip);
    if fact.is_some_and(|fact| fact.probe_source.is_some()) {
        let to = Change::Set(Tree::text("reserved"));
        made = made.follow(facts(), probe_source_path(balancer.vip), to);
    }
    Some(made)
}
