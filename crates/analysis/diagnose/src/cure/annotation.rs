//! Cures by an annotation that the controller of a load balancer reads. The cloud's folder states
//! the annotations; this module decides which of them a case needs, and what must hold in this
//! cluster.

use std::net::{IpAddr, SocketAddr};

use uturn_clouds::cloud::{self, Maker, NewStatus, Product, Remedy, Want};
use uturn_document::edit::{Change, Tree};
use uturn_model::controller::ProxyExpectation;
use uturn_model::lb::{Delivery, Listener, Source, TargetKind};
use uturn_model::service::Policy;
use uturn_model::{Destination, IpNet, Mechanism, ObjectRef, Service};

use super::{Case, Proposal, way};

pub(super) fn propose(case: &Case<'_>) -> Vec<Proposal> {
    let Some(own) = AnnotatedService::of(case) else { return Vec::new() };
    let mut all = Vec::new();
    if case.walked().is_none() {
        if case.has(Mechanism::ProxyHeader) {
            all.extend(own.proposals(Want::AnswerableChecks, "answerable-checks", 20));
        }
        if case.has(Mechanism::LocalSourceDrop) {
            all.extend(own.proposals(Want::ForeignAddress, "foreign-address", 20));
        }
        if case.has(Mechanism::NoRuleForPath) {
            all.extend(own.other_page());
        }
        return all;
    }
    // A load balancer without a healthy target has no candidate.
    if case.has(Mechanism::LocalSourceDrop) || case.has(Mechanism::NoCandidate) {
        all.extend(own.proposals(Want::ForeignAddress, "foreign-address", 20));
    }
    if case.has(Mechanism::NoCandidate) {
        all.extend(own.other_page());
    }
    let loops = [
        Mechanism::AsymmetricReturn,
        Mechanism::NoCandidate,
        Mechanism::ReversePathFilter,
        Mechanism::LocalSourceDrop,
    ];
    let keeps_source = own.listener.profile.source == Source::Kept;
    if loops.into_iter().any(|mechanism| case.has(mechanism)) && keeps_source {
        all.extend(own.replace_source());
        all.extend(own.source_in_header());
        all.extend(own.pod_targets());
    }
    let bypasses = [Mechanism::TlsBypassed, Mechanism::ProxyHeader, Mechanism::NoEndpoint];
    let is_bypassed = bypasses.into_iter().any(|mechanism| case.has(mechanism));
    // Calls to the cluster IP do not use the load balancer.
    let is_to_balancer =
        !matches!(case.walked().map(|flow| &flow.to), Some(Destination::Service(..)));
    if is_bypassed && is_to_balancer && case.is_from_inside() {
        all.extend(own.calls_from_inside());
    }
    // Without health checks, the load balancer sends to nodes without an endpoint too.
    if case.has(Mechanism::NoEndpoint) && own.listener.profile.health_check.is_none() {
        all.extend(own.proposals(Want::HealthChecks, "health-checks", 20));
    }
    if case.has(Mechanism::VipUnknown) {
        all.extend(own.proposals(Want::NodePorts, "node-ports", 35));
    }
    let has_pods_as_targets = own
        .listener
        .rules
        .iter()
        .flat_map(|rule| &rule.targets)
        .any(|target| matches!(target.kind, TargetKind::Pod { .. }));
    // Nothing leads from the load balancer to pods; their nodes can be reached.
    if has_pods_as_targets && (case.has(Mechanism::NoRoute) || case.has(Mechanism::CrossNode)) {
        all.extend(own.proposals(Want::NodePorts, "node-ports", 15));
    }
    all
}

/// Returns a remedy of an object as a proposal, without the change of the status that follows.
pub(super) fn annotated(
    object: &ObjectRef,
    remedy: &Remedy,
    name: &'static str,
    rank: u8,
) -> Proposal {
    let written: Vec<String> =
        remedy.annotations.iter().map(|(key, value)| format!("{key}: {value:?}")).collect();
    let title = format!("annotate {} with {}", object.short(), written.join(" and "));
    let mut made = Proposal::new(name, rank, title);
    for need in &remedy.needs {
        made = match need.holds {
            Some(holds) => made.when(need.what, holds, need.because.clone()),
            None => made.ask(need.what, need.because.clone()),
        };
    }
    for cost in &remedy.costs {
        made = made.costs(*cost);
    }
    for (key, value) in &remedy.annotations {
        let set = Change::Set(Tree::text(value.as_str()));
        made = made.edit(object.clone(), way!["metadata", "annotations", key.as_str()], set);
    }
    made
}

/// The Service of the load balancer on the way, and the load balancer's product.
struct AnnotatedService<'c, 'a> {
    case: &'c Case<'a>,
    service: &'a Service,
    listener: Listener,
    product: &'static dyn Product,
    remedies: cloud::Remedies,
    /// A placeholder for a host name of the user's own.
    name: String,
}

impl<'c, 'a> AnnotatedService<'c, 'a> {
    fn of(case: &'c Case<'a>) -> Option<Self> {
        let (_, listener) = case.listener()?;
        let owner = listener.rules.first()?.owner.namespaced_name()?;
        let service = case.cluster().services.get(&owner)?;
        let Maker::Product(product, _) = cloud::maker_of(service, &case.cluster().provider) else {
            return None;
        };
        let remedies = cloud::remedies_of(product)?;
        let name = format!("{}.{}.example.com", service.name.name, service.name.namespace);
        Some(Self { case, service, listener: listener.clone(), product, remedies, name })
    }

    /// Returns the cloud's remedies for a goal as proposals.
    fn proposals(&self, want: Want, name: &'static str, rank: u8) -> Vec<Proposal> {
        let all = (self.remedies)(self.service, want, &self.name);
        all.iter().map(|remedy| self.proposal(remedy, name, rank)).collect()
    }

    fn proposal(&self, remedy: &Remedy, name: &'static str, rank: u8) -> Proposal {
        self.with_status(annotated(&self.service.object(), remedy, name, rank), remedy.status)
    }

    /// Adds the status that the controller then writes, and that controllers of Ingresses copy.
    fn with_status(&self, mut made: Proposal, status: NewStatus) -> Proposal {
        let addresses: Vec<IpAddr> =
            self.service.load_balancer.iter().filter_map(|entry| entry.ip).collect();
        let own_name = self.service.load_balancer.iter().find_map(|entry| entry.hostname.clone());
        let name = own_name.map_or_else(|| self.name.clone(), |name| name.to_string());
        let ingresses = self.case.cluster().ingresses.values().filter(|ingress| {
            ingress
                .load_balancer
                .iter()
                .any(|entry| entry.ip.is_some_and(|ip| addresses.contains(&ip)))
        });
        let path = way!["status", "loadBalancer", "ingress"];
        match status {
            NewStatus::Same => {}
            NewStatus::ModeProxy => {
                for (at, _) in self
                    .service
                    .load_balancer
                    .iter()
                    .enumerate()
                    .filter(|(_, entry)| entry.ip.is_some())
                {
                    let mut path = path.clone();
                    path.extend(way![at, "ipMode"]);
                    made =
                        made.follow(self.service.object(), path, Change::Set(Tree::text("Proxy")));
                }
            }
            NewStatus::OnlyPublic => {
                let is_private = |ip: &IpAddr| matches!(ip, IpAddr::V4(ip) if ip.is_private());
                let kept = addresses.iter().filter(|ip| !is_private(ip));
                let entry = |ip: &IpAddr| Tree::map([("ip", Tree::text(ip.to_string()))]);
                let entries = Tree::List(kept.clone().map(entry).collect());
                let port = self.listener.port.number();
                made.then_checks = kept.copied().next().map(|ip| SocketAddr::new(ip, port));
                made = made.follow(self.service.object(), path, Change::Set(entries));
            }
            NewStatus::OnlyName => {
                let entry = Tree::List(vec![Tree::map([("hostname", Tree::text(name.as_str()))])]);
                let owners: Vec<ObjectRef> = [self.service.object()]
                    .into_iter()
                    .chain(ingresses.map(uturn_model::Ingress::object))
                    .collect();
                for owner in owners {
                    made = made.follow(owner, path.clone(), Change::Set(entry.clone()));
                }
                made.resolves = addresses.into_iter().map(|ip| (name.clone(), ip)).collect();
            }
        }
        made
    }

    /// Proposes that health checks ask for a page that targets have.
    fn other_page(&self) -> Option<Proposal> {
        let mut ports = self.service.ports.iter();
        let port = ports.find(|port| port.port == self.listener.port)?;
        let (key, path) = self.product.page_check(self.service, port)?.cure;
        let title = format!("annotate svc/{} with {key}: {path:?}", self.service.name);
        let answered = "servers answer that path with 200";
        let because = "ingress-nginx does; otherwise name a page that exists";
        let annotation = way!["metadata", "annotations", key];
        let set = Change::Set(Tree::text(path));
        let made = Proposal::new("answerable-checks", 20, title).ask(answered, because);
        Some(made.edit(self.service.object(), annotation, set))
    }

    fn replace_source(&self) -> Vec<Proposal> {
        let all = self.proposals(Want::ReplacedSource, "replace-source", 25);
        let price = "servers see an address of the load balancer instead of the client's";
        all.into_iter().map(|made| self.needs_no_source(made).costs(price)).collect()
    }

    fn source_in_header(&self) -> Vec<Proposal> {
        let all = self.proposals(Want::SourceInHeader, "source-in-header", 30);
        let with = |made: Proposal| {
            self.reads_header(self.without_ranges(made)).costs(
                "each connection begins with a PROXY header: clients that reach the servers past the \
                 load balancer, as by the cluster address, have to send one too",
            )
        };
        all.into_iter().map(with).collect()
    }

    /// Adds the condition that nothing relies on the client's address.
    fn needs_no_source(&self, made: Proposal) -> Proposal {
        let made = self.without_ranges(made);
        match self.service.external_policy {
            Policy::Cluster => made,
            Policy::Local => made.ask(
                "the servers do not need the client's address",
                "externalTrafficPolicy Local preserves it on the nodes: look for logs, limits and \
                 rules by address",
            ),
        }
    }

    /// Adds the condition that there are no source ranges: these would be compared with the load
    /// balancer's own address.
    fn without_ranges(&self, made: Proposal) -> Proposal {
        let ranges: Vec<String> = self.service.source_ranges.iter().map(IpNet::to_string).collect();
        made.when(
            "no loadBalancerSourceRanges rely on the client's address",
            ranges.is_empty(),
            match ranges.as_slice() {
                [] => "none are set".to_owned(),
                some => format!(
                    "{}: without the client's address nodes cannot tell who may call",
                    some.join(", ")
                ),
            },
        )
    }

    /// Adds the condition that the servers behind the listener read a PROXY header.
    fn reads_header(&self, made: Proposal) -> Proposal {
        let cluster = self.case.cluster();
        let what = "the servers accept a PROXY header";
        let slices = cluster.slices(&self.service.name);
        let expected = slices.iter().find_map(|slice| {
            let pods = slice.endpoints.iter().filter_map(|endpoint| endpoint.pod.as_ref());
            let mut pods = pods.filter_map(|name| cluster.pods.get(name));
            let ports = || slice.ports.iter().map(|port| port.port.number());
            pods.find_map(|pod| ports().find_map(|port| cluster.proxy_expectation(pod, port)))
        });
        match expected {
            Some(ProxyExpectation::Required(_) | ProxyExpectation::Accepted(_)) => {
                made.when(what, true, "their settings say so")
            }
            Some(ProxyExpectation::NotExpected) => made.when(
                what,
                false,
                "their settings switch it off: they read it as a broken request",
            ),
            Some(ProxyExpectation::Unasked(by)) => {
                made.ask(what, format!("the input does not ask for one, but {by} may"))
            }
            Some(ProxyExpectation::Unknown(tells)) => made.ask(what, tells.to_string()),
            None => made.ask(what, "look at the servers' own settings"),
        }
    }

    fn pod_targets(&self) -> Vec<Proposal> {
        let cluster = self.case.cluster();
        let ranges = &cluster.network.vpc_cidrs;
        let slices = cluster.slices(&self.service.name);
        let mut pods =
            slices.iter().flat_map(|slice| &slice.endpoints).map(|endpoint| endpoint.address);
        let is_inside = |ip: &IpAddr| ranges.value.iter().any(|net| net.contains(ip));
        let outside = pods.find(|ip| !is_inside(ip));
        let found = match outside {
            Some(ip) => format!("{ip} is not one: the load balancer has no route to it"),
            None => format!("all endpoints are in {}", words_of(&ranges.value)),
        };
        // Addresses in a node's own range are only routed within the cluster.
        let is_of_node = |ip: &IpAddr| {
            let mut ranges = cluster.nodes.values().flat_map(|node| &node.pod_cidrs);
            ranges.any(|net| net.contains(ip))
        };
        let is_certain = !ranges.is_supposed() || outside.as_ref().is_some_and(is_of_node);
        let all = self.proposals(Want::PodTargets, "pods-as-targets", 40);
        let what = "pods have addresses of the load balancer's network";
        all.into_iter()
            .map(|made| {
                if is_certain {
                    made.when(what, outside.is_none(), found.clone())
                } else {
                    made.ask(what, format!("{found}, but the VPC's ranges are an assumption"))
                }
            })
            .map(|made| self.without_ranges(made))
            .collect()
    }

    fn calls_from_inside(&self) -> Vec<Proposal> {
        let keeps = self.listener.profile.delivery == Delivery::KeepsAddress;
        let because = if keeps {
            format!(
                "those of {} do: without a rule for the address, no client gets an answer, neither \
                 inside nor outside",
                self.product.name()
            )
        } else {
            format!("{} sends to ports of nodes or to pods", self.product.name())
        };
        let with = |made: Proposal| {
            made.when(
                "packets do not come with the load balancer's own address",
                !keeps,
                because.clone(),
            )
            .costs("calls from inside leave the cluster and come back: the load balancer's limits and price count them")
        };
        let all = self.proposals(Want::CallsFromInside, "calls-through-balancer", 30);
        all.into_iter().map(with).collect()
    }
}

fn words_of(ranges: &[IpNet]) -> String {
    ranges.iter().map(IpNet::to_string).collect::<Vec<_>>().join(", ")
}
