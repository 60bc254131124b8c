//! The name servers: CoreDNS, the cache on each node, and all others.

use std::cell::{Cell, RefCell};
use std::net::IpAddr;

use uturn_dns::{
    Answer, Corefile, Fault, QueryContext, Question, RewrittenName, Unknown, Upstream,
    UpstreamServers,
};
use uturn_model::route::StepKind;
use uturn_model::{
    Assumption, Cluster, DerivedFrom, Evidence, Family, Origin, Protocol, ProxyMode, Service, Step,
    Version, dns,
};

use super::{DnsClient, outside};

/// The port of DNS servers.
pub(crate) const PORT: u16 = 53;

/// The customary address of NodeLocal DNSCache.
const NODE_LOCAL: [u8; 4] = [169, 254, 20, 10];

/// The largest number of servers that a question passes. More than any real chain has.
const MAX_FORWARDS: usize = 8;

/// The Corefile that is assumed if none is given: the one that kubeadm installs.
const USUAL: &str = ".:53 {
    kubernetes DOMAIN in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }
    forward . /etc/resolv.conf
}
";

/// Returns the Corefile that is assumed if none is given.
pub(crate) fn usual(cluster: &Cluster) -> dns::Corefile {
    dns::Corefile {
        text: USUAL.replace("DOMAIN", cluster.dns.domain()).into(),
        origin: Origin::SUPPOSED,
        beside: Vec::new(),
        release: None,
    }
}

pub(super) struct Servers<'a> {
    cluster: &'a Cluster,
    coredns: Result<Corefile, Vec<Fault>>,
    /// Whether the Corefile of CoreDNS is not given.
    usual: bool,
    node_local: Option<Result<Corefile, Vec<Fault>>>,
    /// The servers in the `resolv.conf` of pods.
    of_pods: Vec<IpAddr>,
    /// The addresses of the cluster's DNS Service.
    service: Vec<IpAddr>,
    /// The addresses at which the cache on each node answers.
    of_cache: Vec<IpAddr>,
    /// The port on which CoreDNS itself listens.
    port: u16,
}

impl<'a> Servers<'a> {
    pub(super) fn new(cluster: &'a Cluster) -> Self {
        let service = cluster.dns.service.as_ref().and_then(|name| cluster.services.get(name));
        let port = service.and_then(|service| {
            let asks = |protocol| protocol == Protocol::Udp;
            let port = service.ports.iter().find(|port| asks(port.protocol))?;
            let slices = cluster.slices(&service.name).iter().flat_map(|slice| &slice.ports);
            let ends =
                slices.into_iter().find(|end| end.name == port.name && asks(end.protocol))?;
            Some(ends.port.number())
        });
        let node_local = cluster.dns.node_local.as_ref();
        let node_local = node_local.map(|corefile| Corefile::read("node-local-dns", corefile));
        let service = match service {
            Some(service) if !service.headless => service.cluster_ips.clone(),
            _ => Vec::new(),
        };
        let of_cache = cache_addresses(cluster, node_local.as_ref(), &service);
        let of_pods = servers_of_pods(cluster, &service, &of_cache);
        let usual = usual(cluster);
        let corefile = cluster.dns.corefile.as_ref();
        Self {
            cluster,
            coredns: Corefile::read("coredns", corefile.unwrap_or(&usual)),
            usual: corefile.is_none(),
            node_local,
            of_pods,
            service,
            of_cache,
            port: port.unwrap_or(PORT),
        }
    }

    /// Returns the release of CoreDNS that refuses to start with its Corefile, and why.
    pub(super) fn refusal(&self) -> Option<(Version, &Fault)> {
        let release = self.cluster.dns.corefile.as_ref()?.release?;
        Some((release, self.coredns.as_ref().err()?.first()?))
    }

    /// Returns names that the Corefile of CoreDNS rewrites, if it is given and can be read.
    pub(super) fn rewritten(&self, hosts: &[String], services: &[String]) -> Vec<RewrittenName> {
        match &self.coredns {
            Ok(corefile) if !self.usual => corefile.rewritten_names(hosts, services),
            _ => Vec::new(),
        }
    }

    /// Returns whether a Corefile cannot be read.
    pub(super) fn are_unread(&self) -> bool {
        self.coredns.is_err() || self.node_local.as_ref().is_some_and(Result::is_err)
    }

    /// Returns the servers in the `resolv.conf` of pods that ask the cluster first.
    pub(super) fn of_pods(&self) -> &[IpAddr] {
        &self.of_pods
    }

    /// Returns whether an address is the DNS Service's and no cache on the node answers at it.
    pub(super) fn is_service(&self, server: IpAddr) -> bool {
        self.service.contains(&server) && !self.of_cache.contains(&server)
    }

    /// Asks the server at an address. Without an address, asks the servers outside the cluster.
    pub(super) fn ask(
        &self,
        server: Option<IpAddr>,
        dns_client: DnsClient<'_>,
        question: &Question,
    ) -> ServerReply {
        let client = match dns_client {
            DnsClient::Pod(pod) => server.and_then(|server| pod.address(Family::of(server))),
            DnsClient::Elsewhere => None,
        };
        let chain = Chain { servers: self, supposed: RefCell::default(), passed: Cell::new(0) };
        let (answer, steps) = chain.at(server, client, question);
        ServerReply { answer, steps, supposed: chain.supposed.into_inner() }
    }

    fn is_coredns(&self, server: IpAddr) -> bool {
        self.service.contains(&server)
            || self.of_pods.contains(&server)
            || self.endpoints().any(|endpoint| endpoint == server)
            || self.service_at(server).is_some_and(|service| self.leads_to_coredns(service))
    }

    /// Returns the addresses of the cluster's name servers.
    fn endpoints(&self) -> impl Iterator<Item = IpAddr> + 'a {
        let slices = self.cluster.dns.service.iter().flat_map(|name| self.cluster.slices(name));
        slices.flat_map(|slice| &slice.endpoints).map(|endpoint| endpoint.address)
    }

    fn service_at(&self, server: IpAddr) -> Option<&'a Service> {
        self.cluster.services.values().find(|service| service.cluster_ips.contains(&server))
    }

    /// Returns whether a Service leads to the same servers as the cluster's own: the cache on nodes
    /// asks them through such a Service.
    fn leads_to_coredns(&self, service: &Service) -> bool {
        let slices = self.cluster.slices(&service.name);
        let mut own = slices.iter().flat_map(|slice| &slice.endpoints).peekable();
        let name = self.cluster.dns.service.as_ref();
        let main = name.and_then(|name| self.cluster.services.get(name));
        match own.peek() {
            Some(_) => own.any(|own| self.endpoints().any(|endpoint| endpoint == own.address)),
            None => main.is_some_and(|main| main.selector == service.selector),
        }
    }
}

/// Returns the addresses at which the cache on each node answers: those that it is bound to, else
/// the usual ones. In IPVS mode the cache cannot take over the Service's address, which belongs to
/// a virtual server.
fn cache_addresses(
    cluster: &Cluster,
    node_local: Option<&Result<Corefile, Vec<Fault>>>,
    service: &[IpAddr],
) -> Vec<IpAddr> {
    let Some(cache) = node_local else { return Vec::new() };
    let mut all = cache.as_ref().map_or_else(|_| Vec::new(), Corefile::bound_addresses);
    if all.is_empty() {
        all = [&[IpAddr::from(NODE_LOCAL)], service].concat();
    }
    if cluster.proxy.mode.value == ProxyMode::Ipvs {
        all.retain(|ip| !service.contains(ip));
    }
    all
}

/// Returns the servers in the `resolv.conf` of pods: those that kubelets are told; else the
/// Service's addresses, if there is no cache or one answers at them; else the cache's own.
fn servers_of_pods(cluster: &Cluster, service: &[IpAddr], of_cache: &[IpAddr]) -> Vec<IpAddr> {
    if !cluster.dns.of_pods.is_empty() {
        return cluster.dns.of_pods.clone();
    }
    let is_cached = of_cache.is_empty() || of_cache.iter().any(|ip| service.contains(ip));
    match (is_cached && !service.is_empty(), of_cache) {
        (true, _) => service.to_vec(),
        (false, []) => vec![IpAddr::from(NODE_LOCAL)],
        (false, cache) => cache.to_vec(),
    }
}

/// The answer of a server, with the servers behind it.
pub(super) struct ServerReply {
    pub(super) answer: Answer,
    pub(super) steps: Vec<Step>,
    /// The assumptions that the answer rests on.
    pub(super) supposed: Vec<Assumption>,
}

/// A question on its way from server to server. CoreDNS asks the servers behind it through a shared
/// reference.
struct Chain<'s> {
    servers: &'s Servers<'s>,
    supposed: RefCell<Vec<Assumption>>,
    passed: Cell<usize>,
}

impl Chain<'_> {
    fn at(
        &self,
        server: Option<IpAddr>,
        client: Option<IpAddr>,
        question: &Question,
    ) -> (Answer, Vec<Step>) {
        let servers = self.servers;
        let Some(server) = server else { return self.outside(question) };
        match &servers.node_local {
            Some(cache) if servers.of_cache.contains(&server) => {
                self.corefile(cache, Some(server), PORT, client, question)
            }
            _ if servers.is_coredns(server) => self.coredns(client, question),
            _ => match servers.service_at(server) {
                Some(service) => (unknown_server(server, service), Vec::new()),
                None => self.outside(question),
            },
        }
    }

    fn coredns(&self, client: Option<IpAddr>, question: &Question) -> (Answer, Vec<Step>) {
        if self.servers.usual {
            self.suppose(self.servers.cluster.dns.supposed_corefile());
        }
        self.corefile(&self.servers.coredns, None, self.servers.port, client, question)
    }

    fn corefile(
        &self,
        corefile: &Result<Corefile, Vec<Fault>>,
        address: Option<IpAddr>,
        port: u16,
        client: Option<IpAddr>,
        question: &Question,
    ) -> (Answer, Vec<Step>) {
        match corefile {
            Ok(corefile) => {
                let world =
                    QueryContext { cluster: self.servers.cluster, client, upstream_servers: self };
                corefile.ask(&world, address, port, question.clone())
            }
            Err(faults) => {
                let fault = faults.first();
                let why = fault.map_or_else(String::new, ToString::to_string);
                let origin = fault.map_or_else(
                    || Origin::Derived(DerivedFrom::Dns),
                    |config| config.origin.clone(),
                );
                let by = Evidence::Corefile { plugin: "Corefile".into(), origin };
                let why = format!("CoreDNS's Corefile cannot be read: {why}");
                let step = Step::new(StepKind::Unknown, why.clone(), by);
                let settle = "correct the Corefile".to_owned();
                (Answer::Unknown(Unknown { why, settle }), vec![step])
            }
        }
    }

    fn outside(&self, question: &Question) -> (Answer, Vec<Step>) {
        let (answer, step, supposed) = outside::answer(self.servers.cluster, question);
        supposed.into_iter().for_each(|assumption| self.suppose(assumption));
        (answer, step.into_iter().collect())
    }

    fn suppose(&self, assumption: Assumption) {
        let mut supposed = self.supposed.borrow_mut();
        if !supposed.contains(&assumption) {
            supposed.push(assumption);
        }
    }
}

/// Returns the answer of a name server in the cluster whose configuration is not known.
fn unknown_server(server: IpAddr, service: &Service) -> Answer {
    Answer::Unknown(Unknown {
        why: format!("what the name servers of {} at {server} answer", service.object()),
        settle: "ask it from a pod: nslookup NAME SERVER".to_owned(),
    })
}

impl UpstreamServers for Chain<'_> {
    fn ask(&self, to: &[Upstream], question: &Question, trail: &mut Vec<Step>) -> Answer {
        self.passed.set(self.passed.get() + 1);
        let (answer, steps) = match to.first() {
            _ if self.passed.get() > MAX_FORWARDS => {
                let why =
                    format!("the name servers ask each other for {} endlessly", question.name);
                let settle = "break the loop of forward".to_owned();
                (Answer::Unknown(Unknown { why, settle }), Vec::new())
            }
            Some(Upstream::Address(address)) => self.at(Some(address.ip()), None, question),
            // The cache reaches CoreDNS through a separate Service.
            Some(Upstream::Pillar(pillar)) if pillar.contains("CLUSTER__DNS") => {
                self.coredns(None, question)
            }
            _ => self.outside(question),
        };
        self.passed.set(self.passed.get() - 1);
        trail.extend(steps);
        answer
    }
}
