//! The plugin `rewrite`: changes queries before the next plugins see them, and answers on their way
//! back.

mod answers;

use super::{Exchange, Setup};
use crate::dispenser::Dispenser;
use crate::fault::Fault;
use crate::message::{Answer, Question, Rcode, RecordType, Reply};
use crate::name;
use crate::pattern::{Pattern, PatternRoom, Unread};

use answers::{Change, Text, Undo, WithoutRecords};

#[derive(Debug)]
pub(crate) struct Rewrite {
    rules: Vec<Rule>,
    without_records: WithoutRecords,
}

#[derive(Debug)]
struct Rule {
    what: What,
    goes_on: bool,
    line: u32,
}

#[derive(Debug)]
enum What {
    Name {
        test: Test,
        to: String,
        auto: bool,
        undo: Vec<Undo>,
    },
    RecordType {
        from: RecordType,
        to: RecordType,
    },
    /// Matches, but changes nothing on which addresses depend.
    Nothing(Test),
    /// Adds an EDNS option to the query, or changes an existing one.
    Edns {
        adds: bool,
    },
    Rcode {
        test: Test,
        from: Rcode,
        to: Rcode,
    },
    /// Replaces CNAME targets in answers, which are then looked up.
    Cname(Test, String),
    /// Never matches an address query of class IN.
    Never,
    Unmodelled(String),
}

/// The names that a rule matches.
#[derive(Clone, Debug)]
enum Test {
    Exact(String),
    Prefix(String),
    Suffix(String),
    Substring(String),
    Regex(Pattern),
}

impl Rewrite {
    pub(crate) fn read(words: &mut Dispenser<'_>, setup: &Setup<'_>) -> Result<Self, Fault> {
        let mut rules = Vec::new();
        while words.advance() {
            let line = words.token().line;
            let mut arguments = words.arguments();
            if arguments.len() < 2 {
                while words.next_in_block() {
                    arguments.push(words.value().to_owned());
                }
            }
            match rule(&arguments, line, words.patterns()) {
                Ok(rule) => rules.push(rule),
                Err(message) => return words.fault(message),
            }
        }
        Ok(Self { rules, without_records: WithoutRecords::of(setup.release) })
    }

    /// Returns a name for each rule that rewrites names, with the name that becomes of it and the
    /// rule's line: the name that the rule is for, else one of `hosts`, else the name that the rule
    /// makes one of `services` of. Names are in full.
    pub(crate) fn examples<'r>(
        &'r self,
        hosts: &'r [String],
        services: &'r [String],
    ) -> impl Iterator<Item = (String, String, u32)> + 'r {
        self.rules.iter().filter_map(|rule| {
            let What::Name { test, to, .. } = &rule.what else { return None };
            let from = match test {
                Test::Exact(text) => Some(text.clone()),
                _ => hosts.iter().find(|host| test.matches(host)).cloned(),
            };
            let from =
                from.or_else(|| services.iter().find_map(|name| test.source_of(name, to)))?;
            let becomes = test.rewrite(&from, to)?;
            Some((from, becomes, rule.line))
        })
    }

    pub(crate) fn serve(&self, exchange: &mut Exchange<'_>, mut question: Question) -> Answer {
        let mut changes: Vec<Change> = Vec::new();
        for rule in &self.rules {
            let line = Some(rule.line);
            let before = question.name.clone();
            let matched = match &rule.what {
                What::Never => false,
                What::Unmodelled(what) => return exchange.unmodelled(what),
                What::Nothing(test) => test.matches(&question.name),
                What::Edns { adds } => {
                    changes.push(Change::HasEdns);
                    *adds
                }
                What::RecordType { from, to } => {
                    let is = question.kind == *from;
                    if is {
                        exchange.note_at(format!("{before} {from} is taken for {to}"), line);
                        question.kind = to.clone();
                    }
                    is
                }
                What::Rcode { test, from, to } => {
                    let is = test.matches(&question.name);
                    if is {
                        changes.push(Change::Rcode(*from, *to));
                    }
                    is
                }
                What::Cname(test, to) => {
                    let kind = question.kind.clone();
                    changes.push(Change::Cname(test.clone(), to.clone(), kind));
                    true
                }
                What::Name { test, to, auto, undo } => match test.rewrite(&question.name, to) {
                    None => false,
                    Some(name) => {
                        if !name::is_domain_name(&name) {
                            exchange.note_at(format!("{before} becomes no name: {name}"), line);
                            return Answer::Reply(Reply::code(Rcode::ServFail));
                        }
                        exchange.note_at(format!("{before} → {name}"), line);
                        if *auto {
                            let text = Text::Remap { from: name.clone(), to: before };
                            changes.push(Change::Name(text.clone()));
                            changes.push(Change::Value(text));
                        }
                        changes.extend(undo.iter().map(Undo::change));
                        question.name = name::normal(&name);
                        true
                    }
                },
            };
            if matched && !rule.goes_on {
                break;
            }
        }
        let mut answer = exchange.next(question);
        if let Answer::Reply(reply) = &mut answer
            && let Err(unknown) = answers::undo(exchange, &changes, self.without_records, reply)
        {
            return Answer::Unknown(unknown);
        }
        answer
    }
}

impl Test {
    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Exact(text) => name == text,
            Self::Prefix(text) => name.starts_with(text.as_str()),
            Self::Suffix(text) => name.ends_with(text.as_str()),
            Self::Substring(text) => name.contains(text.as_str()),
            Self::Regex(pattern) => pattern.matches(name),
        }
    }

    /// Returns a name that the rule rewrites to this one, if the text of the rule tells it.
    fn source_of(&self, name: &str, to: &str) -> Option<String> {
        let from = match self {
            Self::Exact(_) | Self::Regex(_) => return None,
            Self::Prefix(text) => format!("{text}{}", name.strip_prefix(to)?),
            Self::Suffix(text) => format!("{}{text}", name.strip_suffix(to)?),
            Self::Substring(text) => {
                let (before, after) = name.split_once(to)?;
                format!("{before}{text}{after}")
            }
        };
        let is_source = !to.is_empty() && self.rewrite(&from, to).as_deref() == Some(name);
        is_source.then_some(from)
    }

    /// Returns the new name of a query, if the rule matches.
    fn rewrite(&self, name: &str, to: &str) -> Option<String> {
        match self {
            Self::Exact(text) => (name == text).then(|| to.to_owned()),
            Self::Prefix(text) => {
                name.strip_prefix(text.as_str()).map(|rest| format!("{to}{rest}"))
            }
            Self::Suffix(text) => {
                name.strip_suffix(text.as_str()).map(|rest| format!("{rest}{to}"))
            }
            Self::Substring(text) => {
                name.contains(text.as_str()).then(|| name.replace(text.as_str(), to))
            }
            Self::Regex(pattern) => pattern.expand(name, to),
        }
    }

    fn new(how: &str, text: &str, room: &PatternRoom) -> Result<Self, Wrong> {
        Ok(match how {
            "exact" => Self::Exact(name::normal(text)),
            "prefix" => Self::Prefix(name::normal(text)),
            "suffix" => Self::Suffix(name::normal(text)),
            "substring" => Self::Substring(name::normal(text)),
            "regex" => {
                Self::Regex(Pattern::new(text, room).map_err(|why| Wrong::pattern(text, why))?)
            }
            other => {
                return Err(Wrong::Fault(format!(
                    "expected exact, prefix, suffix, substring or regex, found {other}"
                )));
            }
        })
    }
}

/// The reason why a rule cannot be used.
enum Wrong {
    /// A rule that CoreDNS refuses.
    Fault(String),
    /// A valid rule that is not modelled.
    Unmodelled(String),
}

impl Wrong {
    fn pattern(text: &str, why: Unread) -> Self {
        match why {
            Unread::Invalid(why) => {
                Self::Fault(format!("{text} is not a regular expression: {why}"))
            }
            Unread::Unmodelled => Self::Unmodelled(format!("the regular expression {text}")),
        }
    }
}

fn rule(arguments: &[String], line: u32, room: &PatternRoom) -> Result<Rule, String> {
    let lower: Vec<String> = arguments.iter().take(2).map(|word| word.to_lowercase()).collect();
    let (goes_on, kind, rest) = match lower.first().map(String::as_str) {
        None => return Err("expected what to rewrite".into()),
        Some(mode @ ("continue" | "stop")) => {
            let kind = lower.get(1).ok_or_else(|| format!("expected a rule after {mode}"))?;
            (mode == "continue", kind.as_str(), &arguments[2..])
        }
        Some(kind) => (false, kind, &arguments[1..]),
    };
    let what = match what(kind, rest, room) {
        Ok(what) => what,
        Err(Wrong::Unmodelled(what)) => What::Unmodelled(what),
        Err(Wrong::Fault(message)) => return Err(message),
    };
    Ok(Rule { what, goes_on, line })
}

fn what(kind: &str, words: &[String], room: &PatternRoom) -> Result<What, Wrong> {
    let fault = |message: &str| Err(Wrong::Fault(message.to_owned()));
    match (kind, words) {
        ("name", _) => name_rule(words, room),
        ("class", [from, _]) if from.eq_ignore_ascii_case("in") => {
            Err(Wrong::Unmodelled("rewrite class".into()))
        }
        ("class", [_, _]) => Ok(What::Never),
        ("type", [from, to]) => {
            let kind = |word: &str| RecordType::new(&word.to_uppercase());
            Ok(What::RecordType { from: kind(from), to: kind(to) })
        }
        ("class" | "type", _) => fault("expected two values after the rule's kind"),
        ("ttl", [name, _]) => Ok(What::Nothing(Test::new("exact", name, room)?)),
        ("ttl", [how, name, _]) => Ok(What::Nothing(Test::new(&how.to_lowercase(), name, room)?)),
        ("ttl", _) => fault("expected a name and a time after ttl"),
        ("rcode", [name, from, to]) => rcode_rule("exact", name, from, to, room),
        ("rcode", [how, name, from, to]) => rcode_rule(&how.to_lowercase(), name, from, to, room),
        ("rcode", _) => fault("expected a name and two response codes after rcode"),
        ("cname", [from, to]) => cname_rule("exact", from, to, room),
        ("cname", [how, from, to]) => cname_rule(&how.to_lowercase(), from, to, room),
        ("cname", _) => fault("expected two names after cname"),
        ("edns0", [option, action, ..]) => match action.to_lowercase().as_str() {
            "replace" => Ok(What::Edns { adds: false }),
            "set" | "append" | "unset" if words.iter().any(|word| word.contains('{')) => {
                Err(Wrong::Unmodelled(format!("rewrite edns0 {option} with a variable")))
            }
            "set" | "append" | "unset" => Ok(What::Edns { adds: true }),
            _ => fault("expected append, replace, set or unset after edns0"),
        },
        ("edns0", _) => fault("expected an option and an action after edns0"),
        ("answer", _) => fault("rules for answers begin with a name rule"),
        _ => fault(&format!("{kind} is not a kind of rewrite rule")),
    }
}

fn name_rule(words: &[String], room: &PatternRoom) -> Result<What, Wrong> {
    let (how, from, to, rest) = match words {
        [from, to] => ("exact".to_owned(), from, to, &[][..]),
        [how, from, to, rest @ ..] => (how.to_lowercase(), from, to, rest),
        _ => return Err(Wrong::Fault("expected two names after name".into())),
    };
    let test = Test::new(&how, from, room)?;
    if let Test::Regex(pattern) = &test {
        answers::check_groups(pattern, to)?;
    }
    let (mut auto, mut undo) = (false, Vec::new());
    if !rest.is_empty() {
        (auto, undo) = answers::read(&how, rest, room)?;
    }
    let to = name::normal(to);
    match &test {
        Test::Exact(_) => auto = true,
        Test::Suffix(from) if auto => {
            let text = Text::Suffix { from: to.clone(), to: from.clone() };
            undo.splice(0..0, [Undo::Name(text.clone()), Undo::Value(text)]);
            auto = false;
        }
        // Answers are changed back only by the rule's own `answer` clauses.
        Test::Suffix(_) => auto = false,
        _ => {}
    }
    Ok(What::Name { test, to, auto, undo })
}

fn rcode_rule(
    how: &str,
    name: &str,
    from: &str,
    to: &str,
    room: &PatternRoom,
) -> Result<What, Wrong> {
    let code = |word: &str| {
        let unknown = || Wrong::Unmodelled(format!("the response code {word}"));
        Rcode::from_word(&word.to_uppercase()).ok_or_else(unknown)
    };
    Ok(What::Rcode { test: Test::new(how, name, room)?, from: code(from)?, to: code(to)? })
}

fn cname_rule(how: &str, from: &str, to: &str, room: &PatternRoom) -> Result<What, Wrong> {
    let (from, to) = (from.to_lowercase(), to.to_lowercase());
    let test = match how {
        "exact" => Test::Exact(from),
        "prefix" => Test::Prefix(from),
        "suffix" => Test::Suffix(from),
        "substring" => Test::Substring(from),
        "regex" => {
            Test::Regex(Pattern::new(&from, room).map_err(|why| Wrong::pattern(&from, why))?)
        }
        other => return Err(Wrong::Fault(format!("{other} is not a way to rewrite a CNAME"))),
    };
    Ok(What::Cname(test, to))
}
