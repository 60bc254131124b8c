//! Cures by name: call another name, or let the name resolve to another address.

use std::net::IpAddr;

use uturn_document::edit::{At, Change, Tree};
use uturn_model::dns::Dns;
use uturn_model::ingress::Backend;
use uturn_model::pod::DnsPolicy;
use uturn_model::service::TargetPort;
use uturn_model::shell::{Advice, Command};
use uturn_model::{
    Client, Cluster, Destination, Family, Flow, Ingress, Mechanism, NamespacedName, ObjectKind,
    ObjectRef, Port, Service, WorkloadKind,
};

use super::template::Template;
use super::{Case, Proposal, controller, way};
use crate::call;

pub(super) fn propose(case: &Case<'_>) -> Vec<Proposal> {
    let mut all = Vec::new();
    if case.walked().is_none() {
        return all;
    }
    all.extend(call_service(case));
    all.extend(call_other_port(case));
    all.extend(call_pods_port(case));
    all.extend(call_own_node(case));
    all.extend(dns_policy(case));
    if case.aim.owner.as_ref().is_some_and(|owner| owner.kind == ObjectKind::Ingress)
        && case.is_from_inside()
    {
        all.extend(rewrite(case));
        all.extend(own_ingress(case));
    } else if case.is_from_inside() {
        all.extend(controller::rewrite(case));
    }
    all
}

/// Proposes to call the Service by its own name, past the load balancer.
fn call_service(case: &Case<'_>) -> Option<Proposal> {
    let flow = case.walked().filter(|_| case.is_from_inside())?;
    let backend = controller::backend(case);
    let (service, port) = match backend {
        Some(behind) => behind,
        // The controller would answer by its own name as it does by the load balancer's.
        None if controller::answers(case) => return None,
        None => (case.service()?, case.aim.port.as_ref()?),
    };
    let to = Destination::Service(service.name.clone(), Some(port.port.to_string().into()));
    let is_there = matches!(flow.to, Destination::Service(..));
    let is_around = case.aim.vip.is_some() || case.aim.is_external;
    if is_there || service.cluster_ips.is_empty() || !is_around {
        return None;
    }
    // Programs of nodes do not ask the cluster's DNS.
    let name = match (&flow.from, service.cluster_ips.first()) {
        (Client::Node(_), Some(ip)) => ip.to_string(),
        _ => name_of(case, service),
    };
    let how = if case.is_tls() { " by http" } else { "" };
    let called = match &flow.to {
        Destination::Address(at) => uturn_scan::address_label(case.cluster(), *at),
        other => other.to_string(),
    };
    let mut made = Proposal::new("call-service", 10, format!("call {to}{how}"))
        .types(Advice::sentence(&format!(
            "in the caller's configuration: {called} becomes {name}:{}",
            port.port
        )))
        .costs("only this caller changes; each other one has to change too");
    if backend.is_some()
        || case.aim.owner.as_ref().is_some_and(|owner| owner.kind == ObjectKind::Ingress)
    {
        made = made.costs(
            "routing by host and path is lost, and so are headers that the load balancer adds",
        );
    }
    if case.is_tls() {
        made = made.costs(
            "the load balancer ends TLS, the Service does not: the traffic is not encrypted",
        );
    }
    let to = call::by_name(service, port.port, &flow.to);
    made.then = Some(Flow { to, ..flow.clone() });
    // Without a load balancer, the way to the Service itself may be what fails.
    made.is_trial = case.aim.vip.is_none();
    Some(made)
}

/// Proposes a port that the Service has, if it does not have the called port.
fn call_other_port(case: &Case<'_>) -> Vec<Proposal> {
    let (Some(flow), Some(service)) = (case.walked(), case.service()) else { return Vec::new() };
    if case.aim.port.is_some() || case.aim.vip.is_some() || !case.has(Mechanism::WrongPort) {
        return Vec::new();
    }
    let ports = service.ports.iter().filter(|port| port.protocol == flow.protocol);
    let calls = ports.filter_map(|port| {
        let to = with_port(&flow.to, port.port)?;
        let mut made = Proposal::new("call-port", 10, format!("call {to}"))
            .types(Advice::sentence(&format!(
                "in the caller's configuration: {} becomes {to}",
                flow.to
            )))
            .trial();
        made.then = Some(Flow { to, ..flow.clone() });
        Some(made)
    });
    calls.collect()
}

/// Proposes the port of the pods, for a call of a headless Service: nothing translates its port.
fn call_pods_port(case: &Case<'_>) -> Option<Proposal> {
    let (flow, service) = (case.walked()?, case.service()?);
    let port = case.aim.port.as_ref().filter(|_| case.has(Mechanism::WrongPort))?;
    if !service.headless {
        return None;
    }
    let number = match &port.target {
        TargetPort::Number(number) => *number,
        TargetPort::Name(name) => {
            let pods = case.cluster().selected(service);
            pods.first()?.spec.named_port(name, port.protocol)?
        }
    };
    let to = with_port(&flow.to, number).filter(|_| number != port.port)?;
    let mut made = Proposal::new("call-port", 10, format!("call {to}"))
        .types(Advice::sentence(&format!(
            "in the caller's configuration: {} becomes {to}",
            flow.to
        )))
        .costs("only this caller changes; each other one has to change too")
        .costs("a cluster IP would translate the port: clusterIP is given to a new Service only")
        .trial();
    made.then = Some(Flow { to, ..flow.clone() });
    Some(made)
}

/// Proposes the node's own address, for a call of a node port over loopback.
fn call_own_node(case: &Case<'_>) -> Option<Proposal> {
    let flow = case.walked()?;
    let family = match &flow.to {
        Destination::Address(at) if at.ip().is_loopback() => Family::of(at.ip()),
        Destination::Host(host, _) | Destination::Url { host, .. } => {
            let ip = host.parse::<IpAddr>().ok().filter(IpAddr::is_loopback);
            match ip {
                Some(ip) => Family::of(ip),
                None if &**host == "localhost" => Family::V4,
                None => return None,
            }
        }
        _ => return None,
    };
    let node = case.cluster().nodes.get(case.client_node()?)?;
    let own = node.address(family)?;
    let called = case.aim.called.filter(|_| case.aim.is_external)?;
    let to = match &flow.to {
        Destination::Url { tls, path, port, .. } => {
            let host = own.to_string().into();
            Destination::Url { tls: *tls, host, port: *port, path: path.clone() }
        }
        _ => Destination::Address((own, called.number()).into()),
    };
    let title = format!("call {to}, an address of {} itself", node.name);
    let mut made = Proposal::new("call-node", 10, title)
        .types(Advice::sentence(&format!(
            "in the caller's configuration: {} becomes {to}",
            flow.to
        )))
        .costs("only this caller changes; each other one has to change too")
        .trial();
    made.then = Some(Flow { to, ..flow.clone() });
    Some(made)
}

/// Proposes that pods ask the cluster's DNS, if their policy has them ask their node's resolver.
fn dns_policy(case: &Case<'_>) -> Option<Proposal> {
    if !case.has(Mechanism::NameUnresolved) {
        return None;
    }
    let cluster = case.cluster();
    let spec = match &case.walked()?.from {
        Client::Pod(name) => &cluster.pods.get(name)?.spec,
        Client::Workload(kind, name) => &cluster.workloads.get(&(*kind, name.clone()))?.template,
        Client::Node(_) | Client::Outside(_) => return None,
    };
    let policy = match (spec.host_network, spec.dns_policy) {
        (true, DnsPolicy::ClusterFirst | DnsPolicy::Default) => "ClusterFirstWithHostNet",
        (false, DnsPolicy::Default) => "ClusterFirst",
        _ => return None,
    };
    let template = Template::of_client(case)?;
    let made = Proposal::new(
        "dns-policy",
        11,
        format!("dnsPolicy {policy} for {}", template.object),
    )
    .costs(template.cost())
    .costs("all its names are asked of the cluster's DNS: it must not be needed before that runs")
    .trial();
    template.edit(
        case,
        made,
        &["spec", "dnsPolicy"].map(At::from),
        &Change::Set(Tree::text(policy)),
    )
}

pub(super) fn with_port(to: &Destination, port: Port) -> Option<Destination> {
    Some(match to {
        Destination::Service(name, _) => {
            Destination::Service(name.clone(), Some(port.to_string().into()))
        }
        Destination::Host(host, _) => Destination::Host(host.clone(), port),
        Destination::Address(address) => Destination::Address((address.ip(), port.number()).into()),
        Destination::Url { tls, host, path, .. } => {
            Destination::Url { tls: *tls, host: host.clone(), port, path: path.clone() }
        }
        Destination::Ingress { .. } | Destination::Pod(..) => return None,
    })
}

/// Proposes to rewrite the host to the single Service behind it.
fn rewrite(case: &Case<'_>) -> Option<Proposal> {
    let (service, called) = (case.service()?, case.aim.called?);
    let name = name_of(case, service);
    let host = host_of(case);
    let title = format!(
        "let CoreDNS answer {} with svc/{}",
        host.as_deref().unwrap_or("the host"),
        service.name
    );
    let mut made = common(case, Proposal::new("dns-rewrite", 40, title), host.as_deref());
    let agrees = service.ports.iter().any(|port| port.port == called);
    made = made.when(
        "the Service has the port that callers use",
        agrees,
        if agrees {
            format!("both are {called}")
        } else {
            let ports: Vec<String> =
                service.ports.iter().map(|port| port.port.to_string()).collect();
            format!("callers use {called}, {} has {}", service.object(), ports.join(", "))
        },
    );
    let others = others_behind(case, host.as_deref());
    made = made.when(
        "one Service answers everything of that host",
        others.is_empty(),
        match others.as_slice() {
            [] => format!("it is {}", service.name),
            some => format!("{} too: run an Ingress controller of your own", some.join(", ")),
        },
    );
    Some(to_host(case, made, host.as_deref(), &name, false))
}

/// Returns a Service's own host name.
pub(super) fn name_of(case: &Case<'_>, service: &Service) -> String {
    case.cluster().dns.name_of(&service.name)
}

/// Adds the conditions and effects that all rewrites of a host share.
fn common(case: &Case<'_>, made: Proposal, host: Option<&str>) -> Proposal {
    let owner = case.aim.owner.as_ref().map(ToString::to_string).unwrap_or_default();
    let made = made.when(
        "callers use a host name",
        host.is_some(),
        match host {
            Some(host) => host.to_owned(),
            None => format!("the flow names an address, and {owner} names no host"),
        },
    );
    let tls = case.is_tls();
    let made = made.when(
        "callers do without TLS",
        !tls,
        if tls { "they call https, and only the load balancer ends TLS" } else { "they call http" },
    );
    needs_corefile(case, made)
}

/// Adds the conditions and effects of an edited Corefile.
pub(super) fn needs_corefile(case: &Case<'_>, made: Proposal) -> Proposal {
    let corefile = case.cluster().dns.corefile.as_ref();
    let made = made.when(
        "CoreDNS's Corefile is known",
        corefile.is_some(),
        corefile.map_or_else(
            || format!("no ConfigMap {} is given", case.cluster().dns.config_map()),
            |corefile| corefile.origin.to_string(),
        ),
    );
    let made = made.costs("every pod that asks CoreDNS for the host bypasses the load balancer");
    takes_effect(case, made)
}

/// Adds when CoreDNS reads an edited Corefile: by itself only with its plugin `reload`.
pub(super) fn takes_effect(case: &Case<'_>, made: Proposal) -> Proposal {
    let corefile = case.cluster().dns.corefile.as_ref();
    let reloads = corefile.is_none_or(|corefile| {
        corefile.text.lines().any(|line| line.split_whitespace().next() == Some("reload"))
    });
    if reloads {
        made.costs("CoreDNS reads it within a minute; names may be cached for a while longer")
    } else {
        made.costs("CoreDNS has to be restarted: its Corefile lacks the plugin reload")
            .types(restart(case.cluster()))
    }
}

/// Returns the command that restarts the cluster's name servers.
fn restart(cluster: &Cluster) -> Command {
    let service = cluster.dns.service.as_ref().and_then(|name| cluster.services.get(name));
    let pods = service.map(|service| cluster.selected(service)).unwrap_or_default();
    let owner = pods.iter().find_map(|pod| pod.owner.as_ref());
    let namespace = cluster.dns.config_map().namespace;
    let what = match owner {
        Some(owner) if owner.kind == WorkloadKind::DaemonSet.into() => format!("ds/{}", owner.name),
        Some(owner) if owner.kind == WorkloadKind::Deployment.into() => {
            format!("deploy/{}", owner.name)
        }
        _ => "deploy/coredns".to_owned(),
    };
    Command::new("kubectl -n").value(namespace).words("rollout restart").value(what)
}

/// Adds the line in the Corefile, and the flow that calls the host by name.
pub(super) fn to_host(
    case: &Case<'_>,
    mut made: Proposal,
    host: Option<&str>,
    name: &str,
    tls: bool,
) -> Proposal {
    let (Some(host), Some(flow), Some(called)) = (host, case.walked(), case.aim.called) else {
        return made;
    };
    if let Some(corefile) = &case.cluster().dns.corefile
        && let Some((line, indent)) = first_block(&corefile.text)
    {
        let rule = format!("{indent}rewrite name {host} {name}");
        let dns = &case.cluster().dns;
        let way = way!["data", dns.config_key()];
        made = made.edit(corefile_object(dns), way, Change::Line(line, rule));
    }
    let path = case.aim.path.clone().unwrap_or_else(|| "/".into());
    let to = Destination::Url { tls, host: host.into(), port: called, path };
    made.then = Some(Flow { to, ..flow.clone() });
    made
}

pub(super) fn corefile_object(dns: &Dns) -> ObjectRef {
    ObjectRef::namespaced(ObjectKind::ConfigMap, &dns.config_map())
}

/// Returns the index of the line after the beginning of the first server block, and its
/// indentation.
fn first_block(corefile: &str) -> Option<(usize, &str)> {
    let lines: Vec<&str> = corefile.lines().collect();
    let opens =
        |line: &&str| line.trim_end().ends_with('{') && !line.starts_with([' ', '\t', '(', '#']);
    let at = lines.iter().position(opens)?;
    let next = lines.get(at + 1)?;
    Some((at + 1, &next[..next.len() - next.trim_start().len()]))
}

/// Returns the host that callers use, if it is a name.
pub(super) fn host_of(case: &Case<'_>) -> Option<String> {
    let host = case.aim.host.as_deref()?;
    let is_name = host.parse::<IpAddr>().is_err() && !host.starts_with('*');
    is_name.then(|| host.to_owned())
}

fn ingresses_of<'c>(case: &'c Case<'_>, host: &'c str) -> impl Iterator<Item = &'c Ingress> {
    let has = move |ingress: &&Ingress| {
        ingress.rules.iter().any(|rule| rule.host.as_deref() == Some(host))
    };
    case.cluster().ingresses.values().filter(has)
}

/// Returns the paths of a host: the path, its Service, and the Service's port.
fn paths_of(case: &Case<'_>, host: &str) -> Vec<(String, NamespacedName, Port)> {
    let mut all = Vec::new();
    for ingress in ingresses_of(case, host) {
        let rules = ingress.rules.iter().filter(|rule| rule.host.as_deref() == Some(host));
        for path in rules.flat_map(|rule| &rule.paths) {
            let Backend::Service { name, port } = &path.backend else { continue };
            let name =
                NamespacedName { namespace: ingress.name.namespace.clone(), name: name.clone() };
            let service = case.cluster().services.get(&name);
            let found = service.and_then(|service| service.port_named(port));
            all.extend(found.map(|port| (path.path.to_string(), name, port.port)));
        }
    }
    all
}

fn others_behind(case: &Case<'_>, host: Option<&str>) -> Vec<String> {
    let Some(host) = host else { return Vec::new() };
    let own = case.aim.service.as_ref();
    let mut names: Vec<String> = paths_of(case, host)
        .into_iter()
        .filter(|(_, name, _)| Some(name) != own)
        .map(|(path, name, _)| format!("{path} is {name}'s"))
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Quotes a word for nginx's configuration: a path may have characters that end a word there.
fn nginx_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_.-".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""))
    }
}

/// Proposes an nginx that routes like the Ingress, and a rewrite of the host to it.
fn own_ingress(case: &Case<'_>) -> Option<Proposal> {
    let (owner, called) = (case.aim.owner.as_ref()?, case.aim.called?);
    let namespace = owner.namespace.as_ref()?.as_str();
    let host = host_of(case);
    let name = format!("{}-own-ingress", owner.name);
    let title = format!(
        "run an Ingress controller of your own for {}, and let CoreDNS lead there",
        host.as_deref().unwrap_or("the host")
    );
    let mut made = common(case, Proposal::new("own-ingress", 50, title), host.as_deref())
        .costs("two more pods to run, update and watch")
        .costs(
            "nginx does not follow the Ingress: rules that are added there have to be added here",
        );
    let Some(host) = host else { return Some(made) };
    let dns = format!("{name}.{namespace}.svc.{}", case.cluster().dns.domain());
    let mut conf = format!("server {{\n  listen {called};\n  server_name {host};\n");
    for (path, service, port) in paths_of(case, &host) {
        let full = case.cluster().dns.name_of(&service);
        let path = nginx_word(&path);
        conf.push_str(&format!("  location {path} {{\n    proxy_pass http://{full}:{port};\n    proxy_set_header Host $host;\n  }}\n"));
    }
    conf.push_str("}\n");
    let object = |kind| {
        NamespacedName::new(namespace, &name).ok().map(|name| ObjectRef::namespaced(kind, &name))
    };
    let meta = || Tree::map([("name", Tree::text(&*name)), ("namespace", Tree::text(namespace))]);
    let labels = || Tree::map([("app", Tree::text(&*name))]);
    let number = || Tree::number(called.number());
    let config = Tree::map([
        ("apiVersion", Tree::text("v1")),
        ("kind", Tree::text("ConfigMap")),
        ("metadata", meta()),
        ("data", Tree::map([("default.conf", Tree::text(conf))])),
    ]);
    let container = Tree::map([
        ("name", Tree::text("nginx")),
        ("image", Tree::text("nginx:1.29")),
        (
            "ports",
            Tree::List(vec![Tree::map([
                ("name", Tree::text("http")),
                ("containerPort", number()),
            ])]),
        ),
        (
            "volumeMounts",
            Tree::List(vec![Tree::map([
                ("name", Tree::text("conf")),
                ("mountPath", Tree::text("/etc/nginx/conf.d")),
            ])]),
        ),
    ]);
    let volume = Tree::map([
        ("name", Tree::text("conf")),
        ("configMap", Tree::map([("name", Tree::text(&*name))])),
    ]);
    let spec = Tree::map([
        ("containers", Tree::List(vec![container])),
        ("volumes", Tree::List(vec![volume])),
    ]);
    let deployment = Tree::map([
        ("apiVersion", Tree::text("apps/v1")),
        ("kind", Tree::text("Deployment")),
        ("metadata", meta()),
        (
            "spec",
            Tree::map([
                ("replicas", Tree::number(2u32)),
                ("selector", Tree::map([("matchLabels", labels())])),
                (
                    "template",
                    Tree::map([("metadata", Tree::map([("labels", labels())])), ("spec", spec)]),
                ),
            ]),
        ),
    ]);
    let port = Tree::map([
        ("name", Tree::text("http")),
        ("port", number()),
        ("targetPort", Tree::text("http")),
    ]);
    let service = Tree::map([
        ("apiVersion", Tree::text("v1")),
        ("kind", Tree::text("Service")),
        ("metadata", meta()),
        ("spec", Tree::map([("selector", labels()), ("ports", Tree::List(vec![port]))])),
    ]);
    for (kind, tree) in [
        (ObjectKind::ConfigMap, config),
        (WorkloadKind::Deployment.into(), deployment),
        (ObjectKind::Service, service),
    ] {
        let file = format!("{name}-{}.yaml", kind.as_str().to_lowercase());
        made.objects.push((file, object(kind)?, tree));
    }
    Some(to_host(case, made, Some(&host), &dns, false))
}

#[cfg(test)]
mod tests {
    use super::nginx_word;

    #[test]
    fn a_path_is_one_word_of_nginx() {
        for (path, word) in [
            ("/", "/"),
            ("/a-b/c.html", "/a-b/c.html"),
            ("/a b", "\"/a b\""),
            ("/x { return 200; } location /y", "\"/x { return 200; } location /y\""),
            ("/\"; \\", "\"/\\\"; \\\\\""),
            ("", "\"\""),
        ] {
            assert_eq!(nginx_word(path), word);
        }
    }
}
