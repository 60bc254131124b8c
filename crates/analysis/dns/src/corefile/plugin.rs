//! The plugins of a server block: parsed from its tokens, run in CoreDNS's fixed order.

pub(crate) mod acl;
pub(crate) mod external;
pub(crate) mod forward;
pub(crate) mod hosts;
pub(crate) mod kubernetes;
pub(crate) mod rewrite;
pub(crate) mod template;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use uturn_model::route::StepKind;
use uturn_model::{Evidence, Step, Version};

use super::ask::Exchange;
use crate::dispenser::Dispenser;
use crate::fault::Fault;
use crate::message::{Answer, Data, Question, Rcode, RecordType, Reply};
use crate::name;

/// The context in which a plugin is parsed.
pub(crate) struct Setup<'z> {
    /// The zones of the block.
    pub(crate) zones: &'z [String],
    /// The release of CoreDNS, if known.
    pub(crate) release: Option<Version>,
}

impl Setup<'_> {
    /// Returns whether the release may still have a feature that the release `minor` no longer has.
    fn may_precede(&self, minor: u16) -> bool {
        self.release.is_none_or(|release| (release.major, release.minor) < (1, minor))
    }

    /// Returns whether the release may have a feature that the release `minor` did not have yet.
    fn may_exceed(&self, minor: u16) -> bool {
        self.release.is_none_or(|release| (release.major, release.minor) > (1, minor))
    }

    /// Returns the zones of a `fallthrough`; all zones by default.
    fn fallthrough(&self, words: &[String]) -> Vec<String> {
        match words {
            [] => vec![".".to_owned()],
            _ => name::zones(words, &[]),
        }
    }
}

/// All plugins in the order in which they run, regardless of their order in the file. A plugin
/// that never answers has no [`Plugin`].
pub(crate) const ORDER: [&str; 60] = [
    "root",
    "metadata",
    "geoip",
    "cancel",
    "proxyproto",
    "tls",
    "quic",
    "grpc_server",
    "https",
    "https3",
    "timeouts",
    "multisocket",
    "reload",
    "nsid",
    "bufsize",
    "bind",
    "debug",
    "trace",
    "ready",
    "health",
    "pprof",
    "shed",
    "prometheus",
    "errors",
    "log",
    "dnstap",
    "local",
    "dns64",
    "acl",
    "any",
    "chaos",
    "loadbalance",
    "tsig",
    "cache",
    "rewrite",
    "header",
    "dnssec",
    "autopath",
    "minimal",
    "template",
    "transfer",
    "hosts",
    "route53",
    "azure",
    "clouddns",
    "k8s_external",
    "kubernetes",
    "file",
    "auto",
    "secondary",
    "etcd",
    "loop",
    "forward",
    "grpc",
    "erratic",
    "whoami",
    "on",
    "sign",
    "view",
    "nomad",
];

/// Plugins that only configure the server: a block of nothing else cannot answer.
pub(crate) const SETTINGS: [&str; 17] = [
    "root",
    "proxyproto",
    "tls",
    "quic",
    "grpc_server",
    "https",
    "https3",
    "timeouts",
    "multisocket",
    "reload",
    "bind",
    "debug",
    "ready",
    "health",
    "pprof",
    "on",
    "sign",
];

/// A plugin that may answer a query, or change it.
#[derive(Debug)]
pub(crate) enum Plugin {
    Local,
    Dns64,
    Acl(acl::Acl),
    Rewrite(rewrite::Rewrite),
    Template(template::Templates),
    Hosts(hosts::Hosts),
    Kubernetes(kubernetes::Kubernetes),
    Forward(Vec<forward::Forward>),
    Whoami,
    /// A plugin that answers in these zones in a way that is not modelled.
    Unmodelled(Vec<String>),
    /// A plugin that answers, in a way that is not modelled, queries for which the plugins after it
    /// have no record.
    AfterFailure,
}

impl Plugin {
    /// Parses a plugin's tokens. Returns `None` for a plugin that never answers.
    pub(crate) fn read(
        name: &str,
        words: &mut Dispenser<'_>,
        setup: &Setup<'_>,
    ) -> Result<Option<Self>, Fault> {
        let zones = |words: &mut Dispenser<'_>, skip: usize| {
            let mut zones = Vec::new();
            while words.advance() {
                let arguments = words.arguments();
                zones.extend(name::zones(arguments.get(skip..).unwrap_or(&[]), setup.zones));
                while words.next_in_block() {
                    words.arguments();
                }
            }
            Self::Unmodelled(zones)
        };
        Ok(Some(match name {
            "local" => Self::Local,
            "dns64" => Self::Dns64,
            "whoami" => Self::Whoami,
            "acl" => Self::Acl(acl::Acl::read(words, setup)?),
            "rewrite" => Self::Rewrite(rewrite::Rewrite::read(words, setup)?),
            "template" => Self::Template(template::Templates::read(words, setup)?),
            "hosts" => Self::Hosts(hosts::Hosts::read(words, setup)?),
            "kubernetes" => Self::Kubernetes(kubernetes::Kubernetes::read(words, setup)?),
            "forward" => Self::Forward(forward::read(words, setup)?),
            "proxy" if setup.may_precede(external::WITHOUT_PROXY) => {
                Self::Forward(forward::read_old(words)?)
            }
            "file" => zones(words, 1),
            "auto" | "secondary" | "etcd" | "k8s_external" | "nomad" => zones(words, 0),
            _ => return Ok(external::read(name, words, setup)),
        }))
    }

    pub(crate) fn serve(&self, exchange: &mut Exchange<'_>, question: Question) -> Answer {
        match self {
            Self::Acl(acl) => acl.serve(exchange, question),
            Self::Rewrite(rewrite) => rewrite.serve(exchange, question),
            Self::Template(templates) => templates.serve(exchange, question),
            Self::Hosts(hosts) => hosts.serve(exchange, question),
            Self::Kubernetes(kubernetes) => kubernetes.serve(exchange, question),
            Self::Forward(forward) => forward::serve(forward, exchange, question),
            Self::Local => local(exchange, question),
            Self::Dns64 => dns64(exchange, question),
            Self::Whoami => {
                exchange.note(format!("{} is answered with nothing", question.name));
                // The plugin describes the client in other sections.
                Answer::Reply(Reply { other_records: true, ..Reply::code(Rcode::NoError) })
            }
            Self::AfterFailure => match exchange.next(question) {
                Answer::Reply(reply) if reply.rcode != Rcode::NoError => {
                    let what = format!("the plugin {}", exchange.plugin());
                    exchange.unmodelled(&what)
                }
                answer => answer,
            },
            Self::Unmodelled(zones) => match name::zone_of(zones, &question.name) {
                Some(_) => {
                    let what = format!("the plugin {}", exchange.plugin());
                    exchange.unmodelled(&what)
                }
                None => exchange.next(question),
            },
        }
    }
}

/// Runs `local`, which answers `localhost` and names below it, and nothing else of that zone.
fn local(exchange: &mut Exchange<'_>, question: Question) -> Answer {
    if !question.name.starts_with("localhost.") && !name::is_within("localhost.", &question.name) {
        return exchange.next(question);
    }
    if !question.name.starts_with("localhost.") {
        exchange.note(format!("{} is not known", question.name));
        return Answer::Reply(Reply::nothing(Rcode::NxDomain));
    }
    let ips = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    exchange.note(format!("{} is the client itself", question.name));
    Answer::Reply(Reply::addresses(&question, ips))
}

/// Runs `dns64`, which synthesizes IPv6 addresses from IPv4 addresses; this is not modelled.
fn dns64(exchange: &mut Exchange<'_>, question: Question) -> Answer {
    let answer = exchange.next(question.clone());
    let is_address = |data: &Data| matches!(data, Data::Address(_));
    let has = |answer: &Answer| match answer {
        Answer::Reply(reply) => reply.records.iter().any(|record| is_address(&record.data)),
        _ => false,
    };
    if question.kind != RecordType::Aaaa || has(&answer) || !matches!(answer, Answer::Reply(_)) {
        return answer;
    }
    match exchange.next(Question { kind: RecordType::A, ..question }) {
        other if has(&other) => exchange.unmodelled("an IPv6 address made by dns64"),
        _ => answer,
    }
}

impl Exchange<'_> {
    /// Records an action of the current plugin, at its first line.
    fn note(&mut self, why: String) {
        self.note_at(why, None);
    }

    /// Records an action of the current plugin, at a line.
    fn note_at(&mut self, why: String, line: Option<u32>) {
        let by = self.by_line(line);
        self.steps.push(Step::new(StepKind::Resolve, why, by));
    }

    /// Returns a reason with the line of the current plugin as evidence.
    fn by(&self, why: &str) -> (String, Evidence) {
        (why.to_owned(), self.by_line(None))
    }
}
