//! Evaluates a query: selects the server block, then runs its plugins in order.

use std::net::IpAddr;

use uturn_model::route::StepKind;
use uturn_model::{Cluster, DerivedFrom, Evidence, Origin, Step};

use super::{Corefile, Entry, Server, Site};
use crate::message::{Answer, Data, Question, Rcode, Record, Reply, Unknown};
use crate::name;
use crate::upstream::UpstreamServers;

/// The maximum number of queries that CoreDNS sends to itself for one query: CNAME loops branch
/// quickly.
const MAX_QUESTIONS: usize = 48;

/// The input of a query besides the Corefile.
pub struct QueryContext<'a> {
    /// The objects that CoreDNS watches.
    pub cluster: &'a Cluster,
    /// The client's address, if known.
    pub client: Option<IpAddr>,
    /// The servers to which queries are forwarded.
    pub upstream_servers: &'a dyn UpstreamServers,
}

/// A query on its way through the plugins of a server.
pub(crate) struct Exchange<'a> {
    pub(crate) world: &'a QueryContext<'a>,
    /// The steps so far, in order.
    pub(crate) steps: Vec<Step>,
    corefile: &'a Corefile,
    /// The address and port that received the query.
    at: (Option<IpAddr>, u16),
    server: Option<&'a Server>,
    /// The number of plugins run.
    asked: usize,
    /// The number of queries that CoreDNS has sent to itself.
    questions: usize,
}

impl Corefile {
    /// Returns the answer to a query received at an address and port of CoreDNS, with every step
    /// that led to it.
    pub fn ask(
        &self,
        world: &QueryContext<'_>,
        address: Option<IpAddr>,
        port: u16,
        question: Question,
    ) -> (Answer, Vec<Step>) {
        let mut exchange = Exchange {
            world,
            steps: Vec::new(),
            corefile: self,
            at: (address, port),
            server: None,
            asked: 0,
            questions: 0,
        };
        let answer = exchange.serve(question);
        if let Answer::Reply(reply) = &answer
            && let Some(odd) = reply.records.iter().find_map(no_name)
        {
            let why =
                format!("the answer names {odd}, which is not a valid name: it cannot be sent");
            exchange.steps.push(self.step(why));
            return (Answer::Silence, exchange.steps);
        }
        (answer, exchange.steps)
    }

    fn step(&self, why: String) -> Step {
        let by = Evidence::Corefile {
            plugin: format!("{} Corefile", self.called).into(),
            origin: self.origin.clone(),
        };
        Step::new(StepKind::Resolve, why, by)
    }

    /// Returns the server block for a name: the one with the longest matching zone.
    fn server_for(&self, at: (Option<IpAddr>, u16), name: &str) -> Result<&Server, Reply> {
        let (address, port) = at;
        let here = |server: &&Server| {
            let listens = |site: &Site| site.scheme == "dns" && site.port == port;
            server.listens(address) && server.sites.iter().any(listens)
        };
        // A server bound to the address takes precedence over one that listens on all addresses.
        let bound: Vec<_> =
            self.servers.iter().filter(here).filter(|server| server.is_bound()).collect();
        let servers = if bound.is_empty() || address.is_none() {
            self.servers.iter().filter(here).collect()
        } else {
            bound
        };
        let serves = |zone: &str| {
            servers.iter().copied().find(|server| {
                server
                    .sites
                    .iter()
                    .any(|site| site.scheme == "dns" && site.port == port && site.zone == zone)
            })
        };
        let mut rest = name;
        loop {
            if let Some(server) = serves(rest) {
                return Ok(server);
            }
            match rest.split_once('.') {
                Some((_, "")) | None => break,
                Some((_, after)) => rest = after,
            }
        }
        serves(".").ok_or_else(|| Reply::code(Rcode::Refused))
    }
}

impl<'a> Exchange<'a> {
    fn serve(&mut self, question: Question) -> Answer {
        let odd = |byte: u8| !byte.is_ascii_graphic() || matches!(byte, b'\\' | b'"');
        if question.name.bytes().any(odd) {
            return self.unmodelled(&format!("the name {}", question.name));
        }
        let corefile = self.corefile;
        let server = match corefile.server_for(self.at, &question.name) {
            Ok(server) => server,
            Err(reply) => {
                let why = format!("{} is in no zone of any server block", question.name);
                self.steps.push(corefile.step(why));
                return Answer::Reply(reply);
            }
        };
        if server.view {
            return self.unmodelled("a view");
        }
        if server.idle {
            let why = format!("the server block of {} has no plugin that answers", question.name);
            self.steps.push(corefile.step(why));
            return Answer::Reply(Reply::code(Rcode::Refused));
        }
        let before = (self.server.replace(server), std::mem::take(&mut self.asked));
        let answer = self.next(question);
        (self.server, self.asked) = before;
        answer
    }

    /// Runs the next plugin.
    pub(crate) fn next(&mut self, question: Question) -> Answer {
        let entry = self.server.and_then(|server| server.plugins.get(self.asked));
        let Some(entry) = entry else {
            let why = format!("no plugin is left that answers {}", question.name);
            self.steps.push(self.corefile.step(why));
            return Answer::Reply(Reply::code(Rcode::ServFail));
        };
        self.asked += 1;
        let answer = entry.plugin.serve(self, question);
        self.asked -= 1;
        answer
    }

    /// Runs a query through the whole server again, as plugins do for the target of a CNAME.
    pub(crate) fn ask_again(&mut self, question: Question) -> Answer {
        if self.questions == MAX_QUESTIONS {
            return self.unknown(
                format!("CoreDNS asks itself for {} endlessly", question.name),
                "break the loop in the Corefile".into(),
            );
        }
        self.questions += 1;
        self.serve(question)
    }

    /// Returns the current plugin.
    fn entry(&self) -> Option<&'a Entry> {
        self.server?.plugins.get(self.asked.checked_sub(1)?)
    }

    /// Returns the name of the current plugin.
    pub(crate) fn plugin(&self) -> String {
        self.entry().map_or_else(String::new, |entry| entry.name.clone())
    }

    /// Returns a line of the current plugin as evidence: its first line if none is given.
    pub(crate) fn by_line(&self, line: Option<u32>) -> Evidence {
        let Some(entry) = self.entry() else {
            return Evidence::Corefile {
                plugin: format!("{} Corefile", self.corefile.called).into(),
                origin: Origin::Derived(DerivedFrom::Dns),
            };
        };
        entry.evidence(&self.corefile.called, line.unwrap_or(entry.line))
    }

    /// Returns the answer that depends on something unknown, and records it as a step.
    pub(crate) fn unknown(&mut self, why: String, settle: String) -> Answer {
        let step = Step::new(StepKind::Unknown, why.clone(), self.by_line(None));
        self.steps.push(step);
        Answer::Unknown(Unknown { why, settle })
    }

    /// Returns the answer that depends on something that is not modelled, and records it as a step.
    pub(crate) fn unmodelled(&mut self, what: &str) -> Answer {
        let by = self.by_line(None);
        self.unknown(
            format!("{what} is not modelled ({})", by.rule()),
            "state what the name leads to in Facts: spec.dns.outside".into(),
        )
    }
}

/// Returns a name in a record that is not a valid domain name.
fn no_name(record: &Record) -> Option<&str> {
    let target = match &record.data {
        Data::Cname(target) => Some(target.as_str()),
        Data::Address(_) | Data::Other => None,
    };
    [Some(record.name.as_str()), target]
        .into_iter()
        .flatten()
        .find(|name_in_record| !name::is_domain_name(name_in_record))
}
