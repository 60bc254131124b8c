//! The plugin `acl`: restricts clients.

use std::net::IpAddr;

use ipnet::IpNet;

use super::{Exchange, Setup};
use crate::dispenser::Dispenser;
use crate::fault::Fault;
use crate::message::{Answer, Question, Rcode, RecordType, Reply};
use crate::name;

#[derive(Debug)]
pub(crate) struct Acl(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    zones: Vec<String>,
    policies: Vec<Policy>,
}

#[derive(Debug)]
struct Policy {
    action: Action,
    /// The record types to which the rule applies; empty for all.
    kinds: Vec<RecordType>,
    nets: Option<Vec<IpNet>>,
    line: u32,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Allow,
    Block,
    Filter,
    Drop,
}

impl Acl {
    pub(crate) fn read(words: &mut Dispenser<'_>, setup: &Setup<'_>) -> Result<Self, Fault> {
        let mut rules = Vec::new();
        while words.advance() {
            let zones = name::zones(&words.arguments(), setup.zones);
            let mut policies = Vec::new();
            while words.next_in_block() {
                policies.push(policy(words)?);
            }
            rules.push(Rule { zones, policies });
        }
        Ok(Self(rules))
    }

    pub(crate) fn serve(&self, exchange: &mut Exchange<'_>, question: Question) -> Answer {
        for rule in &self.0 {
            if name::zone_of(&rule.zones, &question.name).is_none() {
                continue;
            }
            for policy in &rule.policies {
                if !policy.kinds.is_empty() && !policy.kinds.contains(&question.kind) {
                    continue;
                }
                if let Some(nets) = &policy.nets {
                    let Some(client) = exchange.world.client else {
                        return exchange.unknown(
                            "from which address CoreDNS is asked (its acl plugin looks at it)"
                                .into(),
                            "name a pod as the client".into(),
                        );
                    };
                    if !nets.iter().any(|net| net.contains(&client)) {
                        continue;
                    }
                }
                let line = Some(policy.line);
                let mut note =
                    |what: &str| exchange.note_at(format!("{} {what}", question.name), line);
                return match policy.action {
                    Action::Allow => exchange.next(question),
                    Action::Block => {
                        note("is refused");
                        Answer::Reply(Reply::code(Rcode::Refused))
                    }
                    Action::Filter => {
                        note("is answered with nothing");
                        Answer::Reply(Reply::code(Rcode::NoError))
                    }
                    Action::Drop => {
                        note("is not answered at all");
                        Answer::Silence
                    }
                };
            }
        }
        exchange.next(question)
    }
}

fn policy(words: &mut Dispenser<'_>) -> Result<Policy, Fault> {
    let line = words.token().line;
    let action = match words.value().to_lowercase().as_str() {
        "allow" => Action::Allow,
        "block" => Action::Block,
        "filter" => Action::Filter,
        "drop" => Action::Drop,
        other => {
            let message = format!("expected allow, block, filter or drop, found {other}");
            return words.fault(message);
        }
    };
    let mut policy = Policy { action, kinds: Vec::new(), nets: None, line };
    let arguments = words.arguments();
    let mut all_kinds = false;
    let mut rest = arguments.as_slice();
    while let Some((section, after)) = rest.split_first() {
        let section = section.to_lowercase();
        let is_section = |word: &String| matches!(word.to_lowercase().as_str(), "type" | "net");
        let end = after.iter().position(is_section).unwrap_or(after.len());
        let (values, left) = after.split_at(end);
        rest = left;
        if values.is_empty() || !matches!(section.as_str(), "type" | "net") {
            return words.fault(format!("expected type or net with values, found {section}"));
        }
        for value in values {
            match (section.as_str(), value.as_str()) {
                ("type", "*") => {
                    all_kinds = true;
                    break;
                }
                ("type", word) => policy.kinds.push(RecordType::new(word)),
                (_, "*") => {
                    policy.nets = Some(every_net());
                    break;
                }
                (_, word) => match net(word) {
                    Some(net) => policy.nets.get_or_insert_default().push(net),
                    None => return words.fault(format!("expected a range, found {word}")),
                },
            }
        }
    }
    if all_kinds {
        policy.kinds.clear();
    }
    Ok(policy)
}

fn every_net() -> Vec<IpNet> {
    ["0.0.0.0/0", "::/0"].iter().filter_map(|net| net.parse().ok()).collect()
}

fn net(word: &str) -> Option<IpNet> {
    match word.parse::<IpAddr>() {
        Ok(ip) => Some(ip.into()),
        Err(_) => word.parse::<IpNet>().ok().map(|net| net.trunc()),
    }
}
