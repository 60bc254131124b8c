//! The plugin `kubernetes`: names of Services, their endpoints, and pods.

mod find;
mod labels;
mod stanza;

use uturn_model::route::StepKind;
use uturn_model::{Family, Step};

use self::find::{Host, Nothing};
use super::Exchange;
use crate::message::{Answer, Data, Question, Rcode, Record, RecordType, Reply};
use crate::name;

/// The maximum length of a CNAME chain within a zone.
const MAX_CNAMES: usize = 10;

#[derive(Debug)]
pub(crate) struct Kubernetes {
    zones: Vec<String>,
    /// The namespaces that the plugin serves; empty for all.
    namespaces: Vec<String>,
    pods: Pods,
    fallthrough: Vec<String>,
    /// Whether endpoints are named after their pods (`endpoint_pod_names`).
    pod_names: bool,
    endpoints: bool,
    ignores_empty: bool,
    /// An option that is not modelled.
    unmodelled: Option<&'static str>,
    /// The zones of `multicluster`, whose names are those of several clusters.
    multicluster: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pods {
    Disabled,
    Insecure,
    Verified,
}

impl Kubernetes {
    pub(crate) fn serve(&self, exchange: &mut Exchange<'_>, question: Question) -> Answer {
        let Some(zone) = name::zone_of(&self.zones, &question.name) else {
            return exchange.next(question);
        };
        if let Some(what) = self.unmodelled {
            return exchange.unmodelled(&format!("{what} of the kubernetes plugin"));
        }
        if name::zone_of(&self.multicluster, &question.name).is_some() {
            return exchange.unmodelled("multicluster of the kubernetes plugin");
        }
        if let RecordType::Other(word) = &question.kind {
            let special = ["TXT", "CNAME", "PTR", "MX", "SRV", "SOA", "NS", "AXFR", "IXFR"];
            if special.contains(&word.as_str()) {
                return exchange.unmodelled(&format!("{word} records of the kubernetes plugin"));
            }
        }
        // For other types, only the existence of the name matters. CoreDNS looks for addresses then.
        let looked_up = match question.kind.family() {
            Some(_) => question.clone(),
            None => Question { kind: RecordType::A, ..question.clone() },
        };
        match self.records(exchange, zone, &looked_up, &mut Vec::new()) {
            Ok(records) if records.is_empty() || question.kind.family().is_none() => {
                let why = format!("{} exists, without {} records", question.name, question.kind);
                exchange.note(why);
                Answer::Reply(Reply::nothing(Rcode::NoError))
            }
            Ok(records) => Answer::Reply(Reply::records(records)),
            Err(Nothing::Unknown(unknown)) => Answer::Unknown(unknown),
            Err(Nothing::Name(_)) if name::zone_of(&self.fallthrough, &question.name).is_some() => {
                exchange.next(question)
            }
            Err(Nothing::Name(why)) => {
                exchange.note(why);
                Answer::Reply(Reply::nothing(Rcode::NxDomain))
            }
        }
    }

    /// Returns the records of a name, following CNAMEs.
    fn records(
        &self,
        exchange: &mut Exchange<'_>,
        zone: &str,
        question: &Question,
        before: &mut Vec<String>,
    ) -> Result<Vec<Record>, Nothing> {
        let found = self.find(exchange, zone, &question.name)?;
        let family = question.kind.family();
        let mut records: Vec<Record> = Vec::new();
        let mut reason = found.why;
        for host in found.hosts {
            let mut note = |exchange: &mut Exchange<'_>, to: &str| {
                if let Some((why, by)) = reason.take() {
                    let why = format!("{} → {to}: {why}", question.name);
                    exchange.steps.push(Step::new(StepKind::Resolve, why, by));
                }
            };
            match host {
                Host::Address(ip) => {
                    let record = Record { name: question.name.clone(), data: Data::Address(ip) };
                    if Some(Family::of(ip)) == family && !records.contains(&record) {
                        note(exchange, &ip.to_string());
                        records.push(record);
                    }
                }
                Host::Name(target) => {
                    let target = name::qualified(target);
                    let circle = name::is_within(&question.name, &target);
                    if circle || before.len() > MAX_CNAMES || before.contains(&target) {
                        continue;
                    }
                    note(exchange, &target);
                    let data = Data::Cname(target.clone());
                    let cname = Record { name: question.name.clone(), data };
                    let next =
                        Question { name: target.to_lowercase(), kind: question.kind.clone() };
                    if name::is_within(zone, &target) {
                        before.push(target);
                        let inner = self.records(exchange, zone, &next, before);
                        before.pop();
                        match inner {
                            Ok(inner) if !inner.is_empty() => {
                                records.push(cname);
                                records.extend(inner);
                            }
                            Err(Nothing::Unknown(unknown)) => {
                                return Err(Nothing::Unknown(unknown));
                            }
                            _ => {}
                        }
                        continue;
                    }
                    match exchange.ask_again(next) {
                        Answer::Reply(reply) => {
                            records.push(cname);
                            records.extend(reply.records);
                        }
                        Answer::Silence => {}
                        Answer::Unknown(unknown) => return Err(Nothing::Unknown(unknown)),
                    }
                }
            }
        }
        Ok(records)
    }
}
