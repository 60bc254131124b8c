//! The plugins of a server block: read from its words, asked in CoreDNS's own order.

pub(crate) mod acl;
pub(crate) mod forward;
pub(crate) mod hosts;
pub(crate) mod kubernetes;
pub(crate) mod rewrite;
pub(crate) mod template;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use uturn_model::route::StepKind;
use uturn_model::{Evidence, Step};

use crate::ask::Asking;
use crate::dispenser::Dispenser;
use crate::fault::Fault;
use crate::message::{Answer, Data, Kind, Question, Rcode, Reply};
use crate::name;

/// What a plugin is told of its server block.
pub(crate) struct Setup<'z> {
    /// The block's zones.
    pub(crate) zones: &'z [String],
}

impl Setup<'_> {
    /// The zones of a `fallthrough`; all when it names none.
    fn fallthrough(&self, words: &[String]) -> Vec<String> {
        match words {
            [] => vec![".".to_owned()],
            _ => name::zones(words, &[]),
        }
    }
}

/// All plugins in the order in which they are asked, whatever the order in the file. One
/// that answers nothing by itself has no [`Plugin`].
pub(crate) const ORDER: [&str; 53] = [
    "root",
    "metadata",
    "geoip",
    "cancel",
    "tls",
    "quic",
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
];

/// Those that only set something: a block of nothing else has nobody to ask.
pub(crate) const SETTINGS: [&str; 13] = [
    "root",
    "tls",
    "quic",
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

/// A plugin that may answer, or change the question.
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
    /// Answers in these zones in a way that is not modelled.
    Unmodelled(Vec<String>),
}

impl Plugin {
    /// Reads a plugin's words; `None` for one that answers nothing.
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
            "file" => zones(words, 1),
            "auto" | "secondary" | "etcd" | "k8s_external" => zones(words, 0),
            "tsig" | "route53" | "azure" | "clouddns" | "grpc" | "erratic" => {
                Self::Unmodelled(vec![".".to_owned()])
            }
            known if ORDER.contains(&known) => return Ok(None),
            _ => Self::Unmodelled(vec![".".to_owned()]),
        }))
    }

    pub(crate) fn serve(&self, asking: &mut Asking<'_>, question: Question) -> Answer {
        match self {
            Self::Acl(acl) => acl.serve(asking, question),
            Self::Rewrite(rewrite) => rewrite.serve(asking, question),
            Self::Template(templates) => templates.serve(asking, question),
            Self::Hosts(hosts) => hosts.serve(asking, question),
            Self::Kubernetes(kubernetes) => kubernetes.serve(asking, question),
            Self::Forward(forward) => forward::serve(forward, asking, question),
            Self::Local => local(asking, question),
            Self::Dns64 => dns64(asking, question),
            Self::Whoami => {
                asking.note(format!("{} is answered with nothing", question.name));
                Answer::Reply(Reply::code(Rcode::NoError))
            }
            Self::Unmodelled(zones) => match name::zone_of(zones, &question.name) {
                Some(_) => {
                    let what = format!("the plugin {}", asking.plugin());
                    asking.unmodelled(&what)
                }
                None => asking.next(question),
            },
        }
    }
}

/// `local`: `localhost`, whatever stands behind it, and nothing else of that zone.
fn local(asking: &mut Asking<'_>, question: Question) -> Answer {
    if !question.name.starts_with("localhost.") && !name::is_within("localhost.", &question.name) {
        return asking.next(question);
    }
    if !question.name.starts_with("localhost.") {
        asking.note(format!("{} is not known", question.name));
        return Answer::Reply(Reply::nothing(Rcode::NxDomain));
    }
    let ips = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    asking.note(format!("{} is the client itself", question.name));
    Answer::Reply(Reply::addresses(&question, ips))
}

/// `dns64`: makes IPv6 addresses of IPv4 ones, which is not modelled.
fn dns64(asking: &mut Asking<'_>, question: Question) -> Answer {
    let answer = asking.next(question.clone());
    let is_address = |data: &Data| matches!(data, Data::Address(_));
    let has = |answer: &Answer| match answer {
        Answer::Reply(reply) => reply.records.iter().any(|one| is_address(&one.data)),
        _ => false,
    };
    if question.kind != Kind::Aaaa || has(&answer) || !matches!(answer, Answer::Reply(_)) {
        return answer;
    }
    match asking.next(Question { kind: Kind::A, ..question }) {
        other if has(&other) => asking.unmodelled("an IPv6 address made by dns64"),
        _ => answer,
    }
}

impl Asking<'_> {
    /// Says what the plugin that is asked does, at its own line.
    fn note(&mut self, why: String) {
        self.note_at(why, None);
    }

    /// Says what happens, at a line of the plugin's.
    fn note_at(&mut self, why: String, line: Option<u32>) {
        let by = self.by_line(line);
        self.trail.push(Step::new(StepKind::Resolve, why, by));
    }

    /// Why, and the plugin's own line.
    fn by(&self, why: &str) -> (String, Evidence) {
        (why.to_owned(), self.by_line(None))
    }
}
