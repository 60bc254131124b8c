//! Conditions of iptables rules whose answer is unknown. A branch gives every occurrence of a
//! condition the same answer, and its negation the opposite one.

use std::collections::HashMap;

use uturn_model::Text;
use uturn_model::route::Leg;

use super::compile::Hook;
use super::walk::Walk;
use crate::iptables::{Extension, Match, Rule, SetDirection};
use crate::packet_facts::{FactSubject, PacketFact};

/// A condition of a rule, with the match that contains it.
#[derive(Clone, Debug)]
pub(super) struct UnknownCondition {
    /// The index of the match in the rule.
    pub(super) of: usize,
    pub(super) not: bool,
    pub(super) about: ConditionKey,
    scope: Scope,
}

/// The identity of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConditionKey {
    /// A fact about the packet or its sender.
    Fact(PacketFact),
    /// Any other condition.
    Other(ConditionId),
}

/// The number of a condition that is no fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ConditionId(u32);

/// The subject of a condition that tests no fact. Conditions that test the same have the same
/// answer.
#[derive(Debug, PartialEq, Eq, Hash)]
enum ConditionSubject {
    /// Whether a set contains addresses and ports of the packet.
    Set { name: Text, directions: Vec<SetDirection>, return_nomatch: bool },
    /// The connection's status.
    ConnectionStatus,
    /// Options of an extension, as written; and the rule, if each rule has its own answer.
    Extension { options: String, of: Option<RuleId> },
}

/// Identifies a rule with unknown conditions: the table, and the number of the rule there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RuleId {
    pub(super) table: usize,
    pub(super) number: u32,
}

/// The scope within which an answer applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// The whole branch.
    Way,
    /// While the packet's addresses stay the same.
    Addresses,
    /// Within one hook, while the packet's addresses stay the same.
    Hook,
    /// Only this rule, because it counts packets.
    Rule,
}

/// The position of an answer, as far as its scope depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct AnswerScope {
    leg: Option<Leg>,
    hook: Option<Hook>,
}

/// Numbers conditions; those that test the same share a number.
#[derive(Debug, Default)]
pub(super) struct ConditionNumbers(HashMap<ConditionSubject, u32>);

impl ConditionNumbers {
    fn of(&mut self, subject: ConditionSubject) -> ConditionKey {
        let next = self.0.len() as u32;
        ConditionKey::Other(ConditionId(*self.0.entry(subject).or_insert(next)))
    }
}

impl UnknownCondition {
    /// The answer on this branch, if it has one.
    pub(super) fn known(&self, walk: &Walk) -> Option<bool> {
        let holds = match self.about {
            ConditionKey::Fact(fact) => walk.notes.facts.answer(onward(fact, walk)),
            ConditionKey::Other(id) => {
                let place = self.place(walk);
                let same =
                    |(of, at, _): &&(ConditionId, AnswerScope, bool)| (*of, *at) == (id, place);
                walk.notes.answers.iter().find(same).map(|(.., holds)| *holds)
            }
        };
        holds.map(|holds| holds != self.not)
    }

    /// Records whether the rule's condition is met.
    pub(super) fn take(&self, met: bool, walk: &mut Walk) {
        let holds = met != self.not;
        match self.about {
            ConditionKey::Fact(fact) => {
                let fact = onward(fact, walk);
                walk.notes.facts.add(fact, holds);
            }
            ConditionKey::Other(id) => {
                let place = self.place(walk);
                walk.notes.answers.push((id, place, holds));
            }
        }
    }

    /// The fact about the sender that it tests.
    pub(super) fn sender(&self) -> Option<PacketFact> {
        match self.about {
            ConditionKey::Fact(fact) if fact.subject.is_sender() => Some(fact),
            _ => None,
        }
    }

    fn place(&self, walk: &Walk) -> AnswerScope {
        let leg = walk.packet.leg();
        match self.scope {
            Scope::Way | Scope::Rule => AnswerScope { leg: None, hook: None },
            Scope::Addresses => AnswerScope { leg: Some(leg), hook: None },
            Scope::Hook => AnswerScope { leg: Some(leg), hook: Some(walk.hook) },
        }
    }
}

/// After forwarding, the TTL is one less than on arrival.
fn onward(fact: PacketFact, walk: &Walk) -> PacketFact {
    let left = !walk.from_here && matches!(walk.hook, Hook::Forward | Hook::Postrouting);
    match fact.subject {
        FactSubject::Hops if left => PacketFact { subject: FactSubject::HopsOnward, ..fact },
        _ => fact,
    }
}

/// Returns the conditions of a rule whose answer may be unknown, match by match.
pub(super) fn of_rule(
    rule: &Rule,
    id: RuleId,
    numbers: &mut ConditionNumbers,
) -> Vec<UnknownCondition> {
    let mut all = Vec::new();
    for (of, item) in rule.matches.iter().enumerate() {
        let mut add = |not, about, scope| all.push(UnknownCondition { of, not, about, scope });
        match item {
            Match::Set(set) => {
                let subject = ConditionSubject::Set {
                    name: set.set.value.clone(),
                    directions: set.directions.clone(),
                    return_nomatch: set.return_nomatch,
                };
                add(set.set.not, numbers.of(subject), Scope::Hook);
            }
            // The other options of the match are known.
            Match::Conntrack(conntrack) => {
                if let Some(status) = &conntrack.status {
                    add(status.not, numbers.of(ConditionSubject::ConnectionStatus), Scope::Way);
                }
            }
            Match::Other(extension) => {
                for part in parts(extension) {
                    match fact(&extension.name, &part) {
                        Some(facts) => {
                            for (fact, not) in facts {
                                add(not, ConditionKey::Fact(fact), Scope::Way);
                            }
                        }
                        None => {
                            let scope = scope(&extension.name, &part);
                            let (not, options) = part.text(&extension.name);
                            let of = (scope == Scope::Rule).then_some(id);
                            let subject = ConditionSubject::Extension { options, of };
                            add(not, numbers.of(subject), scope);
                        }
                    }
                }
            }
            _ => {}
        }
    }
    all
}

/// Options that are evaluated together: for most matches, all of them.
struct Part<'e> {
    options: Vec<Choice<'e>>,
    /// Whether the match has `--suppl-groups`, which modifies the other options.
    has_groups: bool,
}

struct Choice<'e> {
    not: bool,
    name: &'e str,
    values: Vec<&'e str>,
}

/// Matches whose options are independent conditions.
const APART: [&str; 4] = ["owner", "physdev", "devgroup", "ecn"];

/// Matches with one condition, whose other options are parameters.
const SINGLE: [&str; 13] = [
    "bpf",
    "cgroup",
    "connbytes",
    "cpu",
    "dscp",
    "helper",
    "hl",
    "mac",
    "realm",
    "string",
    "tos",
    "ttl",
    "u32",
];

fn parts(extension: &Extension) -> Vec<Part<'_>> {
    let mut options: Vec<Choice<'_>> = Vec::new();
    let mut not = false;
    for word in &extension.words {
        match &**word {
            "!" => not = true,
            name if name.starts_with("--") => {
                options.push(Choice { not: std::mem::take(&mut not), name, values: Vec::new() });
            }
            value => match options.last_mut() {
                Some(option) => {
                    // The old form `--uid-owner ! 0`.
                    option.not ^= std::mem::take(&mut not);
                    option.values.push(value);
                }
                None => options.push(Choice { not: false, name: value, values: Vec::new() }),
            },
        }
    }
    let has_groups = options.iter().any(|option| option.name == "--suppl-groups");
    if APART.contains(&&*extension.name) {
        options.retain(|option| option.name != "--suppl-groups");
        return options
            .into_iter()
            .map(|option| Part { options: vec![option], has_groups })
            .collect();
    }
    vec![Part { options, has_groups }]
}

impl Part<'_> {
    /// The condition as text, and whether it is negated.
    fn text(&self, name: &str) -> (bool, String) {
        let negated = self.options.iter().filter(|option| option.not).count();
        let single = self.options.len() == 1 || SINGLE.contains(&name);
        let not = single && negated == 1;
        let mut text = name.to_owned();
        for option in &self.options {
            text.push_str(if option.not && !not { " ! " } else { " " });
            text.push_str(option.name);
            for value in &option.values {
                text.push(' ');
                text.push_str(value);
            }
        }
        (not, text)
    }
}

/// The facts that a part tests, if facts are all that it tests.
fn fact(name: &str, part: &Part<'_>) -> Option<Vec<(PacketFact, bool)>> {
    let [Choice { not, name: option, values }] = part.options.as_slice() else { return None };
    let range = |subject, text: &str, between: char| {
        let (first, last) = text.split_once(between).unwrap_or((text, text));
        let first = if first.is_empty() { 0 } else { number(first)? };
        let last = if last.is_empty() { u32::from(u16::MAX) } else { number(last)? };
        (first <= last).then_some(PacketFact { subject, first, last })
    };
    let value = values.first().copied();
    let single = |fact: Option<PacketFact>| fact.map(|fact| vec![(fact, *not)]);
    match (name, *option) {
        ("owner", "--uid-owner") => {
            let value = if value == Some("root") { "0" } else { value? };
            single(range(FactSubject::User, value, '-'))
        }
        ("owner", "--gid-owner") => {
            let value = if value == Some("root") { "0" } else { value? };
            let subject = if part.has_groups { FactSubject::AnyGroup } else { FactSubject::Group };
            let fact = range(subject, value, '-')?;
            // Without a sending process, the kernel finds no group and ignores the negation.
            let socket = PacketFact::exactly(FactSubject::Socket, 1);
            Some(if part.has_groups && *not {
                vec![(socket, false), (fact, true)]
            } else {
                vec![(fact, *not)]
            })
        }
        ("owner", "--socket-exists") => single(Some(PacketFact::exactly(FactSubject::Socket, 1))),
        ("length", "--length") => single(range(FactSubject::Length, value?, ':')),
        ("tcpmss", "--mss") => single(range(FactSubject::SegmentSize, value?, ':')),
        ("cpu", "--cpu") => {
            single(number(value?).map(|cpu| PacketFact::exactly(FactSubject::Processor, cpu)))
        }
        ("dscp", "--dscp") => {
            single(number(value?).map(|class| PacketFact::exactly(FactSubject::Class, class)))
        }
        ("ttl", "--ttl-eq" | "--ttl") | ("hl", "--hl-eq") => {
            single(number(value?).map(|hops| PacketFact::exactly(FactSubject::Hops, hops)))
        }
        ("ttl", "--ttl-gt") | ("hl", "--hl-gt") => {
            let first = number(value?)?.checked_add(1)?;
            single(Some(PacketFact { subject: FactSubject::Hops, first, last: u32::MAX }))
        }
        ("ttl", "--ttl-lt") | ("hl", "--hl-lt") => {
            let last = number(value?)?.checked_sub(1)?;
            single(Some(PacketFact { subject: FactSubject::Hops, first: 0, last }))
        }
        _ => None,
    }
}

fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn scope(name: &str, part: &Part<'_>) -> Scope {
    let option = part.options.first().map_or("", |option| option.name);
    match (name, option) {
        // Depends on the sender, the frame, the payload, the connection or the time.
        (
            "owner" | "cgroup" | "mac" | "pkttype" | "string" | "time" | "helper" | "connlabel"
            | "connbytes",
            _,
        )
        | ("physdev", "--physdev-in" | "--physdev-is-in")
        | ("devgroup", "--src-group") => Scope::Way,
        ("socket" | "u32" | "bpf", _) => Scope::Addresses,
        ("limit" | "hashlimit" | "connlimit" | "quota", _) => Scope::Rule,
        _ => Scope::Hook,
    }
}

/// The fact subject that a target changes.
pub(super) fn changed_by(target: &str) -> Option<FactSubject> {
    match target {
        "DSCP" | "TOS" => Some(FactSubject::Class),
        "TCPMSS" => Some(FactSubject::SegmentSize),
        "TTL" | "HL" => Some(FactSubject::Hops),
        _ => None,
    }
}

/// Returns why the answer of a match is unknown, in words for people.
pub(super) fn reason_of(item: &Match) -> Option<&'static str> {
    let name: Text = match item {
        Match::Other(extension) => extension.name.clone(),
        Match::Conntrack(_) => "conntrack".into(),
        Match::Set(_) => "set".into(),
        _ => return None,
    };
    crate::iptables::catalogue::of_match(&name).reason()
}
