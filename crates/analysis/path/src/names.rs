//! Resolves a host to addresses as the client does: by its own hosts file, then by the name servers
//! of its `resolv.conf`, which in a pod are mostly CoreDNS.
//!
//! `uturn-dns` models how CoreDNS answers and how libraries ask. This module decides which server
//! answers at an address: CoreDNS, the cache on the node, or a server outside, of whose answers
//! only Facts and the hosts of Ingresses are known.

mod outside;
mod own;
mod servers;

use std::collections::HashMap;
use std::net::IpAddr;

use uturn_dns::client::{Library, LookupResult, ResolvConf, resolve};
use uturn_dns::{Answer, Fault, Question, Rcode, RecordType, Reply, RewrittenName};
use uturn_model::pod::PodSpec;
use uturn_model::route::StepKind;
use uturn_model::{Assumption, AssumptionSubject, Cluster, Evidence, Family, Pod, Step, Version};

use crate::add_missing::add_missing;
pub(crate) use servers::{PORT, usual};
use servers::{ServerReply, Servers};

/// The client that resolves a name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DnsClient<'a> {
    /// A pod, which asks as its policy says.
    Pod(&'a Pod),
    /// A node or a client outside, which ask the name servers outside.
    Elsewhere,
}

/// The result of resolving a name.
#[derive(Clone, Debug)]
pub(crate) struct Resolution {
    /// The addresses that the client uses, equally likely; none if the name does not resolve.
    pub(crate) addresses: Vec<IpAddr>,
    /// The name for which a server had these addresses, in full; `None` if none was asked.
    pub(crate) asked: Option<String>,
    /// The steps of the resolution.
    pub(crate) steps: Vec<Step>,
    /// The assumptions that the result rests on.
    pub(crate) supposed: Vec<Assumption>,
    /// The address of the cluster's DNS Service, if it had to answer.
    pub(crate) through: Option<IpAddr>,
    /// The reason why the result is not known.
    pub(crate) doubt: Option<UnresolvedReason>,
    /// The name of a load balancer whose addresses are not known, or a name that it serves, if the
    /// host leads to one.
    pub(crate) balancer: Option<String>,
}

/// The reason why the result of a name is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UnresolvedReason {
    /// A Corefile cannot be read.
    Unread,
    /// Servers outside answer for this name, and their answer is not known.
    Outside(String),
    /// CoreDNS uses a feature that is not modelled.
    Unmodelled(String),
}

/// Returns whether images show that the programs of a pod resolve names with musl.
pub fn has_musl_image(spec: &PodSpec) -> bool {
    Library::musl_image(spec).is_some()
}

/// All name servers of a cluster.
pub(crate) struct Names<'a> {
    cluster: &'a Cluster,
    servers: Servers<'a>,
}

/// The result of one question.
struct QuestionResult {
    answer: Answer,
    steps: Vec<Step>,
    /// The assumptions that the answer rests on.
    supposed: Vec<Assumption>,
    /// The server that gave the answer.
    by: Option<IpAddr>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(cluster: &'a Cluster) -> Self {
        Self { cluster, servers: Servers::new(cluster) }
    }

    /// Returns the release of CoreDNS that refuses to start with its Corefile, and why.
    pub(crate) fn refusal(&self) -> Option<(Version, &Fault)> {
        self.servers.refusal()
    }

    /// Returns names that CoreDNS rewrites: for each rule the name that it is for, one of `hosts`, or
    /// the name that it makes one of `services` of.
    pub(crate) fn rewritten(&self, hosts: &[String], services: &[String]) -> Vec<RewrittenName> {
        self.servers.rewritten(hosts, services)
    }

    /// Resolves a host.
    pub(crate) fn resolve(&self, dns_client: DnsClient<'_>, host: &str) -> Resolution {
        if let DnsClient::Pod(pod) = dns_client
            && let Some(found) = own::hosts_file(pod, self.cluster.dns.domain(), host)
        {
            return found.usable_by(dns_client);
        }
        let conf = match dns_client {
            DnsClient::Elsewhere => ResolvConf::of_node(&self.cluster.dns.node_searches),
            DnsClient::Pod(pod) => ResolvConf::of_pod(
                &pod.spec,
                pod.name.namespace.as_str(),
                self.cluster.dns.domain(),
                self.servers.of_pods(),
                &self.cluster.dns.node_searches,
            ),
        };
        let mut supposed = Vec::new();
        let mut asked: HashMap<Question, QuestionResult> = HashMap::new();
        let mut order: Vec<Question> = Vec::new();
        let mut ask = |question: Question| {
            if let Some(known) = asked.get(&question) {
                return known.answer.clone();
            }
            let mut result = self.ask(&conf, dns_client, &question);
            suppose_no_wildcard(host, &conf.search, &question, &mut result);
            add_missing(&mut supposed, std::mem::take(&mut result.supposed));
            let answer = result.answer.clone();
            order.push(question.clone());
            asked.insert(question, result);
            answer
        };
        let image = match dns_client {
            DnsClient::Pod(pod) => Library::musl_image(&pod.spec),
            DnsClient::Elsewhere => None,
        };
        let (own, other) = match image {
            Some(_) => (Library::Musl, Library::Glibc),
            None => (Library::Glibc, Library::Musl),
        };
        let heard = resolve(own, &conf, host, &mut ask);
        let other = resolve(other, &conf, host, &mut ask);
        let mut found = Resolution {
            addresses: Vec::new(),
            asked: None,
            steps: Vec::new(),
            supposed,
            through: None,
            doubt: None,
            balancer: None,
        };
        add_missing(&mut found.supposed, libraries_differ(host, image, &heard, &other));
        let has_records = |result: &QuestionResult| match &result.answer {
            Answer::Reply(reply) => reply.rcode == Rcode::NoError && !reply.records.is_empty(),
            _ => false,
        };
        match heard {
            LookupResult::Addresses(ips) => {
                found.addresses = ips;
                let decided =
                    order.iter().filter_map(|question| Some((question, asked.get(question)?)));
                for (question, result) in decided.filter(|(_, result)| has_records(result)) {
                    // Both families are resolved the same way: the steps of one are shown.
                    if found.steps.is_empty() || question.kind == RecordType::A {
                        found.steps.clone_from(&result.steps);
                    }
                    found.through = result.by.or(found.through);
                    let name = || question.name.trim_end_matches('.').to_owned();
                    found.asked.get_or_insert_with(name);
                }
                if found.addresses.is_empty() {
                    found.steps.push(nothing(host, "the records are those of another name"));
                }
            }
            LookupResult::NoName | LookupResult::Fails(_) | LookupResult::Unknown(_) => {
                // The result for each name that was tried.
                for question in order.iter().filter(|question| question.kind == RecordType::A) {
                    if let Some(result) = asked.get(question) {
                        found.steps.extend(result.steps.last().cloned());
                        found.through = result.by.or(found.through);
                    }
                }
                let why = match &heard {
                    LookupResult::Fails(None) => "no name server answers".to_owned(),
                    LookupResult::Fails(Some(code)) => {
                        format!("the name server says {}", code.word())
                    }
                    LookupResult::Unknown(unknown) => {
                        let balancer = unknown.why.strip_prefix(outside::BALANCER);
                        found.balancer = balancer.map(str::to_owned);
                        let doubt = match unknown.why.strip_prefix(outside::ANSWERS) {
                            Some(name) => UnresolvedReason::Outside(name.to_owned()),
                            None if self.servers.are_unread() => UnresolvedReason::Unread,
                            None => UnresolvedReason::Unmodelled(unknown.why.clone()),
                        };
                        found.doubt = Some(doubt).filter(|_| balancer.is_none());
                        found.supposed.push(Assumption {
                            subject: format!("the address of {host}").into(),
                            assumed: "none".into(),
                            because: format!("it is not known: {}", unknown.why).into(),
                            settle: unknown.settle.clone().into(),
                        });
                        format!("it is not known: {}", unknown.why)
                    }
                    _ => "no name server knows it".to_owned(),
                };
                found.steps.push(nothing(host, &why));
            }
        }
        found.usable_by(dns_client)
    }

    /// Returns an address of a host for any client: as servers outside resolve it, else as a pod
    /// does.
    pub(crate) fn address_for_any_client(&self, host: &str) -> Option<IpAddr> {
        let outside = self.resolve(DnsClient::Elsewhere, host).addresses;
        let pod = || {
            let pod = self.cluster.pods.values().find(|pod| !pod.spec.host_network)?;
            self.resolve(DnsClient::Pod(pod), host).addresses.first().copied()
        };
        outside.first().copied().or_else(pod)
    }

    /// Asks the servers one after the other, as libraries do when one fails.
    fn ask(
        &self,
        conf: &ResolvConf,
        dns_client: DnsClient<'_>,
        question: &Question,
    ) -> QuestionResult {
        let mut last = QuestionResult {
            answer: Answer::Silence,
            steps: Vec::new(),
            supposed: Vec::new(),
            by: None,
        };
        let servers = conf.of_node.then_some(None).into_iter();
        for server in servers.chain(conf.servers.iter().map(|ip| Some(*ip))) {
            let ServerReply { answer, steps, supposed } =
                self.servers.ask(server, dns_client, question);
            // What was supposed of a server that failed led to the next.
            add_missing(&mut last.supposed, supposed);
            let by = server.filter(|ip| self.servers.is_service(*ip));
            last = QuestionResult { answer, steps, by, ..last };
            let failed = match &last.answer {
                Answer::Silence => true,
                Answer::Reply(reply) => {
                    matches!(reply.rcode, Rcode::ServFail | Rcode::Refused | Rcode::NotImp)
                }
                Answer::Unknown(_) => false,
            };
            if !failed {
                break;
            }
        }
        last
    }
}

impl Resolution {
    /// Keeps the addresses that the client can use, if there are any: of both families, glibc takes
    /// IPv6 first.
    fn usable_by(mut self, dns_client: DnsClient<'_>) -> Self {
        let has = |family: Family| match dns_client {
            DnsClient::Pod(pod) => pod.address(family).is_some(),
            DnsClient::Elsewhere => true,
        };
        let of = |family: Family| {
            self.addresses.iter().copied().filter(move |ip| Family::of(*ip) == family).collect()
        };
        // A cluster that states only IPv6 addresses has IPv6 on every node.
        let order = match dns_client {
            DnsClient::Pod(_) => [Family::V6, Family::V4],
            DnsClient::Elsewhere => Family::BOTH,
        };
        let usable = order.into_iter().filter(|family| has(*family)).map(of);
        let mut usable = usable.filter(|ips: &Vec<IpAddr>| !ips.is_empty());
        let first = usable.next();
        let is_choice = usable.next().is_some();
        if let Some(first) = first {
            if is_choice && let Some(ip) = first.first() {
                self.supposed.push(one_family(Family::of(*ip)));
            }
            self.addresses = first;
        }
        self
    }
}

fn one_family(taken: Family) -> Assumption {
    let word = |family| match family {
        Family::V4 => "IPv4",
        Family::V6 => "IPv6",
    };
    Assumption {
        subject: "the address that a client calls of a name with both families".into(),
        assumed: format!("that of {}", word(taken)).into(),
        because:
            "glibc takes IPv6 first where it has both; other programs may not, and many try the \
                  other address when one fails"
                .into(),
        settle: "trace each address: http://ADDRESS/, or http://[ADDRESS]/".into(),
    }
}

/// Assumes that a qualified name does not exist below a search domain outside the cluster, unless
/// Facts state a wildcard of that domain. A name of one label may well be meant there.
fn suppose_no_wildcard(
    host: &str,
    searches: &[String],
    question: &Question,
    result: &mut QuestionResult,
) {
    let Answer::Unknown(unknown) = &result.answer else { return };
    let asked = question.name.trim_end_matches('.');
    let below = asked.strip_prefix(host.trim_end_matches('.'));
    let below = below.and_then(|rest| rest.strip_prefix('.'));
    let is_below = |domain: &&str| {
        searches.iter().any(|own| own.trim_end_matches('.').eq_ignore_ascii_case(domain))
    };
    let Some(domain) = below.filter(is_below) else { return };
    if unknown.settle != outside::SETTLE || !host.trim_end_matches('.').contains('.') {
        return;
    }
    let assumption = Assumption {
        subject: format!("names below the search domain {domain}").into(),
        assumed: "none exist".into(),
        because: "no wildcard of it is stated".into(),
        settle: format!("state *.{domain} in Facts: spec.dns.outside").into(),
    };
    add_missing(&mut result.supposed, [assumption]);
    result.answer = Answer::Reply(Reply::nothing(Rcode::NxDomain));
}

fn nothing(host: &str, why: &str) -> Step {
    let by = Evidence::Resolver;
    Step::new(StepKind::Resolve, format!("{host} has no address: {why}"), by)
}

/// The beginning of the subject of an assumption about a library.
const WHICH_LIBRARY: &str = "which library resolves";

/// Returns whether an assumption is about the library that resolves a name.
pub(crate) fn is_about_library(assumption: &Assumption) -> bool {
    matches!(&assumption.subject, AssumptionSubject::Named(text) if text.starts_with(WHICH_LIBRARY))
}

/// Returns the assumption about the library that resolves a host, if another would resolve it
/// differently: musl where an image is built on it, else glibc, which most images have.
fn libraries_differ(
    host: &str,
    image: Option<&str>,
    own: &LookupResult,
    other: &LookupResult,
) -> Vec<Assumption> {
    let same = match (own, other) {
        (LookupResult::Addresses(own), LookupResult::Addresses(other)) => {
            own.iter().all(|ip| other.contains(ip)) && other.iter().all(|ip| own.contains(ip))
        }
        _ => own.is_address() == other.is_address(),
    };
    if same || matches!(own, LookupResult::Unknown(_)) || matches!(other, LookupResult::Unknown(_))
    {
        return Vec::new();
    }
    let found = match other {
        LookupResult::Addresses(ips) if !ips.is_empty() => {
            let ips: Vec<String> = ips.iter().map(ToString::to_string).collect();
            ips.join(", ")
        }
        _ => "nothing".to_owned(),
    };
    let (assumed, because) = match image {
        Some(image) => (
            "musl",
            format!(
                "image {image} is built on it; glibc, or a program's own resolver, would find {found}"
            ),
        ),
        None => ("glibc", format!("musl (Alpine's images) would find {found}")),
    };
    vec![Assumption {
        subject: format!("{WHICH_LIBRARY} {host}").into(),
        assumed: assumed.into(),
        because: because.into(),
        settle: "look whether the image has /lib/ld-musl-*".into(),
    }]
}
