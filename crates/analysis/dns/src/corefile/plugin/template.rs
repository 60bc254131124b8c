//! The plugin `template`: answers built from the query.

use std::net::IpAddr;

use uturn_model::Family;

use super::{Exchange, Setup};
use crate::dispenser::Dispenser;
use crate::fault::Fault;
use crate::message::{Answer, Data, Question, Rcode, Record, RecordType, Reply};
use crate::name;
use crate::pattern::{Pattern, PatternRoom, Unread};

#[derive(Debug)]
pub(crate) struct Templates(Vec<Template>);

#[derive(Debug)]
struct Template {
    zones: Vec<String>,
    /// Whether the template applies to queries of class IN.
    internet: bool,
    /// The type; `None` for every type.
    kind: Option<RecordType>,
    patterns: Vec<Pattern>,
    answers: Vec<String>,
    /// Whether the template answers in other sections too.
    other_records: bool,
    rcode: Rcode,
    fallthrough: Vec<String>,
    /// A construct that is not modelled.
    unmodelled: Option<String>,
    line: u32,
}

impl Templates {
    pub(crate) fn read(words: &mut Dispenser<'_>, setup: &Setup<'_>) -> Result<Self, Fault> {
        let mut templates = Vec::new();
        while words.advance() {
            templates.push(stanza(words, setup)?);
        }
        Ok(Self(templates))
    }

    pub(crate) fn serve(&self, exchange: &mut Exchange<'_>, question: Question) -> Answer {
        for template in &self.0 {
            let Some(zone) = name::zone_of(&template.zones, &question.name) else { continue };
            let any = RecordType::Other("ANY".into());
            let wants = |kind: &RecordType| question.kind == *kind || question.kind == any;
            if !template.internet || !template.kind.as_ref().is_none_or(wants) {
                continue;
            }
            if let Some(what) = &template.unmodelled {
                return exchange.unmodelled(what);
            }
            let Some(pattern) =
                template.patterns.iter().find(|candidate| candidate.matches(&question.name))
            else {
                if name::zone_of(&template.fallthrough, &question.name).is_some() {
                    continue;
                }
                exchange.note_at(
                    format!("{} fits no match, and nothing falls through", question.name),
                    Some(template.line),
                );
                return Answer::Reply(Reply::code(Rcode::ServFail));
            };
            return template.answer(exchange, &question, zone, pattern);
        }
        exchange.next(question)
    }
}

impl Template {
    fn answer(
        &self,
        exchange: &mut Exchange<'_>,
        question: &Question,
        zone: &str,
        pattern: &Pattern,
    ) -> Answer {
        let line = Some(self.line);
        let name = &question.name;
        if self.rcode == Rcode::ServFail {
            exchange.note_at(format!("{name}: SERVFAIL, as the template says"), line);
            return Answer::Reply(Reply::code(Rcode::ServFail));
        }
        let mut records = Vec::new();
        for answer in &self.answers {
            let text = match filled(answer, question, zone, pattern) {
                Filled::Text(text) => text,
                Filled::Fails => {
                    exchange.note_at(format!("{name}: {answer} has no such group"), line);
                    return Answer::Reply(Reply::code(Rcode::ServFail));
                }
                Filled::Unmodelled => {
                    return exchange.unmodelled(&format!("the template {answer}"));
                }
            };
            match record(&text) {
                Ok(record) => {
                    exchange.note_at(format!("{name}: {text}"), line);
                    let target = match &record.data {
                        Data::Cname(target) if question.kind.family().is_some() => {
                            Some(target.clone())
                        }
                        _ => None,
                    };
                    records.push(record);
                    let Some(target) = target else { continue };
                    match exchange.ask_again(Question::new(&target, question.kind.clone())) {
                        Answer::Reply(reply) => records.extend(reply.records),
                        Answer::Silence => {}
                        Answer::Unknown(unknown) => return Answer::Unknown(unknown),
                    }
                }
                Err(Bad::Fails) => {
                    exchange.note_at(format!("{name}: {text} is not a record"), line);
                    return Answer::Reply(Reply::code(Rcode::ServFail));
                }
                Err(Bad::Unmodelled) => return exchange.unmodelled(&format!("the record {text}")),
            }
        }
        if records.is_empty() {
            exchange.note_at(format!("{name}: {}, as the template says", self.rcode.word()), line);
        }
        Answer::Reply(Reply { rcode: self.rcode, records, other_records: self.other_records })
    }
}

fn stanza(words: &mut Dispenser<'_>, setup: &Setup<'_>) -> Result<Template, Fault> {
    let line = words.token().line;
    let arguments = words.arguments();
    let [class, kind, zones @ ..] = arguments.as_slice() else {
        return words.fault("expected a class and a type after template");
    };
    if !["IN", "ANY", "CH", "CS", "HS", "NONE"].contains(&class.as_str()) {
        return words.fault(format!("{class} is not a class"));
    }
    if !kind.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()) {
        return words.fault(format!("{kind} is not a record type"));
    }
    let mut read = Template {
        zones: name::zones(zones, setup.zones),
        internet: matches!(class.as_str(), "IN" | "ANY"),
        kind: (kind != "ANY").then(|| RecordType::new(kind)),
        patterns: Vec::new(),
        answers: Vec::new(),
        other_records: false,
        rcode: Rcode::NoError,
        fallthrough: Vec::new(),
        unmodelled: None,
        line,
    };
    while words.next_in_block() {
        let word = words.value();
        let arguments = words.arguments();
        match (word, arguments.as_slice()) {
            ("match", [_, ..]) => {
                for text in &arguments {
                    match Pattern::new(text, words.patterns()) {
                        Ok(pattern) => read.patterns.push(pattern),
                        Err(Unread::Invalid(why)) => {
                            let message = format!("{text} is not a regular expression: {why}");
                            return words.fault(message);
                        }
                        Err(Unread::Unmodelled) => {
                            read.unmodelled = Some(format!("the regular expression {text}"));
                        }
                    }
                }
            }
            ("answer" | "additional" | "authority", [_, ..]) => {
                if let Some(open) = arguments.iter().find(|text| is_open(text)) {
                    return words.fault(format!("expected }}}} after {{{{ in {open:?}"));
                }
                match word {
                    "answer" => read.answers.extend(arguments),
                    _ => read.other_records = true,
                }
            }
            ("upstream", _) => {}
            ("rcode", [code]) => match Rcode::from_word(code) {
                Some(code) => read.rcode = code,
                None => return words.fault(format!("{code} is not a response code")),
            },
            ("ederror", [_] | [_, _]) => {}
            ("fallthrough", _) => read.fallthrough = setup.fallthrough(&arguments),
            _ => {
                let found = arguments.join(" ");
                return words.fault(format!("template does not know {word} {found}"));
            }
        }
    }
    if read.patterns.is_empty() && read.unmodelled.is_none() {
        read.patterns.extend(Pattern::new(".*", &PatternRoom::default()));
    }
    Ok(read)
}

/// Returns whether a `{{` in a template is not closed.
fn is_open(template: &str) -> bool {
    let mut rest = template;
    while let Some((_, after)) = rest.split_once("{{") {
        match after.split_once("}}") {
            Some((_, after)) => rest = after,
            None => return true,
        }
    }
    false
}

enum Filled {
    Text(String),
    Fails,
    Unmodelled,
}

/// Expands `{{ … }}`.
fn filled(template: &str, question: &Question, zone: &str, pattern: &Pattern) -> Filled {
    let groups = pattern.find(&question.name).unwrap_or_default();
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        text.push_str(before);
        let Some((inner, after)) = after.split_once("}}") else { return Filled::Unmodelled };
        if inner.starts_with('-') || inner.ends_with('-') {
            return Filled::Unmodelled;
        }
        let words: Vec<&str> = inner.split_whitespace().collect();
        let group = |wanted: &str| {
            let by_name = groups.iter().rev().find(|(name, _)| *name == Some(wanted));
            let by_number = || wanted.parse::<usize>().ok().and_then(|at| groups.get(at));
            by_name.or_else(by_number).map(|(_, text)| text.as_str())
        };
        let value = match words.as_slice() {
            [".Name"] => Some(question.name.as_str()),
            [".Zone"] => Some(zone),
            [".Class"] => Some("IN"),
            [".Type"] => match &question.kind {
                RecordType::A => Some("A"),
                RecordType::Aaaa => Some("AAAA"),
                RecordType::Other(_) => return Filled::Unmodelled,
            },
            ["index", ".Match", number] => match number.parse::<usize>() {
                Ok(at) => match groups.get(at) {
                    Some((_, text)) => Some(text.as_str()),
                    None => return Filled::Fails,
                },
                Err(_) => None,
            },
            ["index", ".Group", name] => {
                let bare = name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
                bare.map(|name| group(name).unwrap_or(""))
            }
            [field] => match field.strip_prefix(".Group.") {
                Some(name) if !name.contains(['.', '|', '(']) => match group(name) {
                    Some(text) => Some(text),
                    // Go prints `<no value>`, which is not valid in a record.
                    None => return Filled::Fails,
                },
                _ => None,
            },
            _ => None,
        };
        let Some(value) = value else { return Filled::Unmodelled };
        text.push_str(value);
        rest = after;
    }
    text.push_str(rest);
    Filled::Text(text)
}

enum Bad {
    /// CoreDNS answers with SERVFAIL.
    Fails,
    Unmodelled,
}

/// Parses a record in zone file syntax: `name [ttl] [IN] type data`.
fn record(text: &str) -> Result<Record, Bad> {
    if text.contains([';', '(', ')', '\\', '"', '@', '$', '\n']) || text.starts_with([' ', '\t']) {
        return Err(Bad::Unmodelled);
    }
    let mut words = text.split_whitespace().peekable();
    let Some(name) = words.next() else { return Err(Bad::Unmodelled) };
    if !name::is_domain_name(&name::qualified(name)) {
        return Err(Bad::Fails);
    }
    let (mut ttl, mut class) = (false, false);
    while let Some(word) = words.peek() {
        if !ttl && word.bytes().all(|byte| byte.is_ascii_digit()) {
            ttl = true;
        } else if !class && *word == "IN" {
            class = true;
        } else {
            break;
        }
        words.next();
    }
    let kind = words.next().ok_or(Bad::Fails)?;
    let data: Vec<&str> = words.collect();
    let family = match kind {
        "A" => Some(Family::V4),
        "AAAA" => Some(Family::V6),
        _ => None,
    };
    let data = match (kind, data.as_slice(), family) {
        (_, [ip], Some(family)) => match ip.parse::<IpAddr>() {
            Ok(ip) if Family::of(ip) == family => Data::Address(ip),
            _ => return Err(Bad::Fails),
        },
        ("CNAME", [target], _) if name::is_domain_name(&name::qualified(target)) => {
            Data::Cname(name::qualified(target))
        }
        ("A" | "AAAA" | "CNAME", [], _) => return Err(Bad::Fails),
        ("TXT" | "MX" | "SRV" | "NS" | "PTR", [_, ..], _) => Data::Other,
        _ => return Err(Bad::Unmodelled),
    };
    Ok(Record { name: name::qualified(name), data })
}
