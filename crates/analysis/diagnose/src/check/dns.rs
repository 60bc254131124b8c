//! Checks the resolution of names: from the pod's side to CoreDNS.

use uturn_model::pod::DnsPolicy;
use uturn_model::shell::Command;
use uturn_model::wording::some_of;
use uturn_model::{Client, Destination, Flow, Protocol};
use uturn_path::Engine;

use super::service::{from_each, lacks_endpoints};
use super::service_name::leads_elsewhere;
use super::{Check, Checklist, State, a_pod_on_each, asks, flow, walked, walked_to_server};
use crate::Code;

pub(super) fn check(engine: &Engine<'_>) -> Checklist {
    let cluster = engine.cluster();
    let mut checks = vec![policies(engine)];
    let service = cluster.dns.service.as_ref().and_then(|name| cluster.services.get(name));
    match service {
        None => checks.push(
            Check::unknown(
                "the DNS Service is there",
                "no Service kube-dns or coredns in kube-system is given, and none whose pods run CoreDNS",
            )
            .next("kubectl -n kube-system get svc -l k8s-app=kube-dns"),
        ),
        Some(service) => {
            let ips: Vec<String> = service.cluster_ips.iter().map(ToString::to_string).collect();
            checks.push(
                Check::ok(
                    "the DNS Service is there",
                    format!("svc/{} {}", service.name, ips.join(", ")),
                )
                .next("on a node: the kubelet's clusterDNS is the same address"),
            );
            let slices = cluster.slices(&service.name);
            let ready = slices
                .iter()
                .flat_map(|slice| &slice.endpoints)
                .filter(|endpoint| endpoint.ready)
                .count();
            let what = "CoreDNS has pods that are ready";
            checks.push(match ready {
                0 if lacks_endpoints(service) => Check::unknown(what, "its pods are not given"),
                0 => Check::failed(what, "none")
                    .next("kubectl -n kube-system get pods -l k8s-app=kube-dns -o wide"),
                some => Check::ok(what, some.to_string()),
            });
            for protocol in [Protocol::Udp, Protocol::Tcp] {
                let port = service
                    .ports
                    .iter()
                    .find(|port| port.port.number() == 53 && port.protocol == protocol);
                let what = format!("port 53 {protocol} answers from every node");
                let Some(port) = port else {
                    checks.push(Check::failed(
                        what,
                        format!("svc/{} has no such port", service.name),
                    ));
                    continue;
                };
                let mut flows = Vec::new();
                for ip in &service.cluster_ips {
                    let to = Destination::Address((*ip, port.port.number()).into());
                    flows.extend(from_each(engine, &to, protocol));
                }
                if flows.is_empty() {
                    continue;
                }
                let check = walked(engine, &what, flows);
                checks.push(match check.state {
                    State::Failed => check.next("uturn check cross-node, and uturn check nodes"),
                    _ => check,
                });
            }
        }
    }
    checks.push(corefile(engine));
    checks.push(resolves(engine));
    checks.push(
        Check::unknown("no answer takes 5 s", "lost packets show only while they are lost")
            .next("two queries from one port race in conntrack: a cache on every node (node-local-dns) or `options single-request-reopen` helps"),
    );
    Checklist { subject: "dns".to_owned(), checks }
}

fn policies(engine: &Engine<'_>) -> Check {
    let what = "pods ask the cluster's DNS";
    let pods = engine.cluster().pods.values().filter(|pod| pod.is_alive());
    let own: Vec<String> = pods
        .filter(|pod| {
            let to_node = pod.spec.dns_policy == DnsPolicy::Default
                || pod.spec.host_network && pod.spec.dns_policy == DnsPolicy::ClusterFirst;
            to_node && pod.name.namespace.as_str() != "kube-system"
        })
        .map(|pod| pod.name.to_string())
        .collect();
    match own.as_slice() {
        [] => Check::ok(what, "no pod outside kube-system asks its node instead"),
        some => Check::unknown(
            what,
            format!(
                "these ask their node's resolver, which knows no names of the cluster: {}; whether \
                 they need any is not given",
                some_of(some)
            ),
        )
        .next("dnsPolicy: ClusterFirst, or ClusterFirstWithHostNet with hostNetwork"),
    }
}

fn corefile(engine: &Engine<'_>) -> Check {
    let dns = &engine.cluster().dns;
    let what = format!("CoreDNS serves {}", dns.domain());
    let Some(corefile) = &dns.corefile else {
        let name = dns.config_map();
        let (namespace, map) = (&name.namespace, &name.name);
        return Check::unknown(what, format!("ConfigMap {name} is not given")).next(
            Command::new("kubectl -n")
                .value(namespace)
                .words("get configmap")
                .value(map)
                .words("-o yaml"),
        );
    };
    let lines = corefile.text.lines().enumerate();
    let mut zones = lines.filter(|(_, line)| line.split_whitespace().next() == Some("kubernetes"));
    let serves = zones.clone().find(|(_, line)| {
        line.split_whitespace()
            .skip(1)
            .any(|zone| zone.trim_end_matches('.') == dns.domain() || zone == ".")
    });
    let place = |at: usize| {
        let at = u32::try_from(at).unwrap_or(u32::MAX).saturating_add(1);
        corefile.origin.within(at, 0)
    };
    match (serves, zones.next()) {
        (Some((at, line)), _) => Check::ok(what, format!("{} ({})", line.trim(), place(at))),
        (None, Some((at, line))) => Check::failed(what, format!("{} ({})", line.trim(), place(at)))
            .next(Code::NameNotFound.explain()),
        (None, None) => Check::failed(what, "its Corefile has no kubernetes plugin")
            .next(Code::NameNotFound.explain()),
    }
}

/// Checks whether a Service's name resolves on each node.
fn resolves(engine: &Engine<'_>) -> Check {
    let what = "the name of a Service leads to it";
    let cluster = engine.cluster();
    let service = cluster.services.values().find(|service| {
        !service.cluster_ips.is_empty()
            && service.ports.iter().any(|port| port.protocol == Protocol::Tcp)
            && cluster.slices(&service.name).iter().any(|slice| !slice.endpoints.is_empty())
            && Some(&service.name) != cluster.dns.service.as_ref()
    });
    let Some(service) = service else {
        return Check::unknown(what, "there is no Service with endpoints");
    };
    if cluster.dns.corefile.is_none() {
        return Check::unknown(what, "CoreDNS's configuration is not given");
    }
    let host = cluster.dns.name_of(&service.name);
    let port = service.ports.iter().find(|port| port.protocol == Protocol::Tcp);
    let pods = a_pod_on_each(engine).into_iter().filter(|pod| asks(pod));
    let flows = pods.filter_map(|pod| {
        let to = Destination::Host(host.as_str().into(), port?.port);
        Some(flow(Client::Pod(pod.name.clone()), to, Protocol::Tcp))
    });
    let flows: Vec<Flow> = flows.collect();
    leads_elsewhere(engine, what, service, &flows)
        .unwrap_or_else(|| walked_to_server(engine, what, flows))
}
