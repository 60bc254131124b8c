//! Cures at the load balancer: replace the source, probe from elsewhere.

use uturn_model::lb::{Layer, ProbeSource, Source, TargetKind};
use uturn_model::network::SecurityRule;
use uturn_model::{Kind, Mechanism, NamespacedName, ObjectRef, Protocol};
use uturn_snapshot::edit::{At, Change, Tree};

use super::loopback::{facts, probe_source_path};
use super::{Case, Proposal, way};

pub(super) fn propose(case: &Case<'_>) -> Vec<Proposal> {
    let mut all = Vec::new();
    let loops =
        [Mechanism::AsymmetricReturn, Mechanism::ReversePathFilter, Mechanism::LocalSourceDrop];
    if case.walked().is_some() && loops.into_iter().any(|one| case.has(one)) {
        all.extend(snat(case));
    }
    if case.walked().is_none() {
        all.extend(probe_source(case));
    }
    all
}

/// Where what people set on listeners stands: the object's annotation, and its
/// TkeServiceConfig.
struct Place {
    owner: ObjectRef,
    config: ObjectRef,
    /// The annotation that has to be set for it.
    switch: Option<String>,
}

fn place(case: &Case<'_>) -> Option<Place> {
    let (_, listener) = case.listener()?;
    // A listener that several share is its first owner's.
    let owner = listener.rules.first()?.owner.clone();
    let namespace = owner.namespace.clone()?;
    let name = NamespacedName::new(namespace.as_str(), &owner.name).ok()?;
    let cluster = case.cluster();
    let (annotations, prefix, suffix) = match owner.kind {
        Kind::Ingress => {
            (&cluster.ingresses.get(&name)?.annotations, "ingress", "auto-ingress-config")
        }
        _ => (&cluster.services.get(&name)?.annotations, "service", "auto-service-config"),
    };
    let key = format!("{prefix}.cloud.tencent.com/tke-service-config");
    let auto = format!("{key}-auto");
    let named = annotations.get(&key).filter(|_| !annotations.is(&auto, "true"));
    let switch = (named.is_none() && !annotations.is(&auto, "true")).then_some(auto);
    let config = named.map_or_else(|| format!("{}-{suffix}", owner.name), str::to_owned);
    let config = NamespacedName::new(namespace.as_str(), &config).ok()?;
    let config = ObjectRef::namespaced(Kind::TkeServiceConfig, &config);
    Some(Place { owner, config, switch })
}

/// Sets something of a listener in its TkeServiceConfig, which is made where it is missing.
fn configure(case: &Case<'_>, mut made: Proposal, place: &Place, more: (&str, Tree)) -> Proposal {
    let Some((_, listener)) = case.listener() else { return made };
    let (port, protocol) = (listener.port, listener.protocol);
    let list = if protocol.layer() == Layer::L4 { "l4Listeners" } else { "l7Listeners" };
    if let Some(switch) = &place.switch {
        let way = way!["metadata", "annotations", switch.as_str()];
        made = made.edit(place.owner.clone(), way, Change::Set(Tree::text("true")));
    }
    let segment = Tree::map([
        ("protocol", Tree::text(protocol.to_string())),
        ("port", Tree::number(port.number())),
        (more.0, more.1.clone()),
    ]);
    if !case.manifests.has(&place.config) {
        let namespace = place.config.namespace.as_ref().map(|one| one.as_str()).unwrap_or_default();
        let meta =
            [("name", Tree::text(&*place.config.name)), ("namespace", Tree::text(namespace))];
        let object = Tree::map([
            ("apiVersion", Tree::text("cloud.tencent.com/v1alpha1")),
            ("kind", Tree::text("TkeServiceConfig")),
            ("metadata", Tree::map(meta)),
            ("spec", Tree::map([("loadBalancer", Tree::map([(list, Tree::List(vec![segment]))]))])),
        ]);
        let file = format!("{}.yaml", place.config.name);
        made.objects.push((file, place.config.clone(), object));
        return made;
    }
    let at = At::Where("port".into(), port.to_string());
    let known = way!["spec", "loadBalancer", list, at.clone(), "port"];
    let (way, change) = match case.manifests.text_at(&place.config, &known) {
        Some(_) => (way!["spec", "loadBalancer", list, at, more.0], Change::Set(more.1)),
        None => (way!["spec", "loadBalancer", list], Change::Append(segment)),
    };
    made.edit(place.config.clone(), way, change)
}

/// The source replaced by the load balancer: keepalive on layer 7.
fn snat(case: &Case<'_>) -> Option<Proposal> {
    let (balancer, listener) = case.listener()?;
    let is_l7 = listener.protocol.layer() == Layer::L7;
    if !is_l7 || matches!(listener.profile.source, Source::Replaced(_)) {
        return None;
    }
    let place = place(case)?;
    let title = format!(
        "let the load balancer replace the source: keepaliveEnable for {} port {}",
        place.owner.short(),
        listener.port
    );
    let mut made = Proposal::new("l7-snat", 30, title)
        .ask(
            "the account is allowed layer-7 SNAT and keepalive",
            "ask for it with a ticket; without it the sync fails",
        )
        .costs("servers see the load balancer's address; the client's is in X-Forwarded-For")
        .costs("connections to servers stay open and are shared between clients")
        .costs("to undo it set keepaliveEnable: 0: taking the field away changes nothing");
    made = configure(case, made, &place, ("keepaliveEnable", Tree::number(1u32)));
    let fact = case.cluster().load_balancers.iter().find(|fact| fact.vip == balancer.vip);
    let said = fact.and_then(|fact| fact.listeners.iter().find(|one| one.port == listener.port));
    if said.is_some_and(|one| one.snat == Some(false)) {
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

/// The targets' security groups have to let the load balancer's own range in.
fn let_in(case: &Case<'_>, mut made: Proposal) -> Proposal {
    let cluster = case.cluster();
    let Some((_, listener)) = case.listener() else { return made };
    let Some(source) = uturn_lb::profile::SNAT_RANGE.parse::<uturn_model::IpNet>().ok() else {
        return made;
    };
    let peer = source.hosts().next().unwrap_or(source.addr());
    let mut shut: Vec<String> = Vec::new();
    let mut unknown = true;
    for target in listener.rules.iter().flat_map(|rule| &rule.targets) {
        let node = target.kind.node().and_then(|name| cluster.nodes.get(name));
        let Some(groups) = node.and_then(|node| node.security_groups.as_ref()) else { continue };
        unknown = false;
        let known: Vec<_> =
            groups.iter().filter_map(|name| cluster.security_groups.get(name)).collect();
        let says =
            |rule: &&SecurityRule| rule.matches(peer, Some(Protocol::Tcp), target.address.port());
        let rule = known.iter().flat_map(|group| &group.inbound).find(says);
        let is_in = known.len() < groups.len() || rule.is_some_and(|rule| rule.accept);
        if let (false, Some(first)) = (is_in, groups.first())
            && !shut.contains(&first.to_string())
        {
            shut.push(first.to_string());
        }
    }
    let what = "the nodes' security groups let 100.127.0.0/16 in";
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
            .any(|one| matches!(one.kind, TargetKind::NodePort(_)));
        let ports = if is_node_port { Tree::text("30000-32768") } else { Tree::text("all") };
        let rule = Tree::map([
            ("action", Tree::text("accept")),
            ("protocol", Tree::text("tcp")),
            ("ports", ports),
            ("peer", Tree::text(uturn_lb::profile::SNAT_RANGE)),
        ]);
        let way = way!["securityGroups", group.as_str(), "inbound"];
        made = made.edit(facts(), way, Change::Prepend(rule)).types(format!(
            "in the console, security group {group}: let TCP from 100.127.0.0/16 in before anything else"
        ));
    }
    made.costs(format!("{} shuts that range out: a rule is added first", shut.join(", ")))
}

/// Health checks from 100.64.0.0/10 instead of the load balancer's own address.
fn probe_source(case: &Case<'_>) -> Option<Proposal> {
    let (balancer, listener) = case.listener()?;
    let check = listener.profile.health_check.as_ref()?;
    if check.source != ProbeSource::Vip {
        return None;
    }
    let place = place(case)?;
    let mut made = Proposal::new(
        "probe-source",
        20,
        format!(
            "health checks of {} port {} from 100.64.0.0/10",
            place.owner.short(),
            listener.port
        ),
    )
    .ask(
        "the account has the non-VIP health check source",
        "accounts since 2023-02-24 have it; others ask with a ticket",
    )
    .costs("a node firewall has to let 100.64.0.0/10 in; security groups do so by themselves");
    if listener.protocol.layer() == Layer::L4 {
        let check =
            Tree::map([("enable", Tree::bare("true")), ("sourceIpType", Tree::number(1u32))]);
        made = configure(case, made, &place, ("healthCheck", check));
    } else {
        made = made.types(format!(
            "in the console, load balancer {}: health check source 100.64 for each rule of port {}",
            balancer.name, listener.port
        ));
    }
    let fact = case.cluster().load_balancers.iter().find(|fact| fact.vip == balancer.vip);
    if fact.is_some_and(|fact| fact.probe_source.is_some()) {
        let to = Change::Set(Tree::text("reserved"));
        made = made.follow(facts(), probe_source_path(balancer.vip), to);
    }
    Some(made)
}
