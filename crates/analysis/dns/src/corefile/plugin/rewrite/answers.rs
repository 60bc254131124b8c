//! Changes that rewrite rules make to answers.

use uturn_model::Version;

use super::{Exchange, Test, Wrong};
use crate::message::{Answer, Data, Question, Rcode, RecordType, Reply, Unknown};
use crate::name;
use crate::pattern::{Pattern, PatternRoom};

/// A change to a name in an answer.
#[derive(Clone, Debug)]
pub(super) enum Text {
    /// Replaces the name itself and names below it.
    Remap {
        from: String,
        to: String,
    },
    Suffix {
        from: String,
        to: String,
    },
    Regex {
        pattern: Pattern,
        to: String,
    },
}

impl Text {
    fn change(&self, name: &mut String) {
        let changed = match self {
            Self::Remap { from, to } => match name.strip_suffix(from.as_str()) {
                Some(rest) if rest.is_empty() || rest.ends_with('.') => Some(format!("{rest}{to}")),
                _ => None,
            },
            Self::Suffix { from, to } => {
                name.strip_suffix(from.as_str()).map(|rest| format!("{rest}{to}"))
            }
            Self::Regex { pattern, to } => pattern.expand(name, to),
        };
        if let Some(changed) = changed {
            *name = changed;
        }
    }
}

/// An answer clause of a rule.
#[derive(Clone, Debug)]
pub(super) enum Undo {
    Name(Text),
    Value(Text),
}

impl Undo {
    /// Returns the change that the clause makes to a response.
    pub(super) fn change(&self) -> Change {
        match self {
            Self::Name(text) => Change::Name(text.clone()),
            Self::Value(text) => Change::Value(text.clone()),
        }
    }
}

/// A change to a response.
#[derive(Debug)]
pub(super) enum Change {
    Name(Text),
    Value(Text),
    Rcode(Rcode, Rcode),
    /// The query has an EDNS record, which a response may then have too.
    HasEdns,
    /// The replacement of a CNAME's target, which is then queried itself, by type.
    Cname(Test, String, RecordType),
}

/// The treatment of the code of a response without records by a release of CoreDNS: no record leads
/// to the rules for codes.
#[derive(Clone, Copy, Debug)]
pub(super) enum WithoutRecords {
    Kept,
    Changed,
    /// The release is not known.
    Unknown,
}

impl WithoutRecords {
    pub(super) fn of(release: Option<Version>) -> Self {
        match release.map(|release| (release.major, release.minor, release.patch)) {
            None => Self::Unknown,
            Some(release) if release < (1, 14, 7) => Self::Kept,
            Some(_) => Self::Changed,
        }
    }
}

/// Returns the code of a response after the changes were applied once.
fn changed_code(changes: &[Change], mut rcode: Rcode) -> Rcode {
    for change in changes.iter().rev() {
        if let Change::Rcode(from, to) = change
            && rcode == *from
        {
            rcode = *to;
        }
    }
    rcode
}

/// Parses a sequence of `answer auto`, `answer name A B`, `answer value A B`.
pub(super) fn read(
    how: &str,
    words: &[String],
    room: &PatternRoom,
) -> Result<(bool, Vec<Undo>), Wrong> {
    let fault = |message: String| Err(Wrong::Fault(message));
    if words.len() < 2 {
        return fault(format!("expected answer with what to do after {how}"));
    }
    let (mut auto, mut undo) = (false, Vec::new());
    let mut names = false;
    let mut first = true;
    let mut rest = words.iter().map(String::as_str).peekable();
    while let Some(word) = rest.next() {
        let kind = match word {
            "answer" => rest.next(),
            _ if first => return fault(format!("expected answer, found {word}")),
            other => Some(other),
        };
        first = false;
        let Some(kind) = kind else { return fault("expected auto, name or value".into()) };
        match kind {
            "auto" => auto = true,
            "name" | "value" => {
                let (Some(from), Some(to)) = (rest.next(), rest.next()) else {
                    return fault(format!("expected two values after answer {kind}"));
                };
                let pattern = Pattern::new(from, room).map_err(|why| Wrong::pattern(from, why))?;
                check_groups(&pattern, to)?;
                let text = Text::Regex { pattern, to: name::normal(to) };
                names |= kind == "name";
                undo.push(if kind == "name" { Undo::Name(text) } else { Undo::Value(text) });
            }
            other => return fault(format!("expected auto, name or value, found {other}")),
        }
    }
    if auto && names {
        fault("answer auto and answer name exclude each other".into())
    } else {
        Ok((auto, undo))
    }
}

/// Checks that a replacement uses no more groups than there are: CoreDNS compares the counts, not
/// the numbers.
pub(super) fn check_groups(pattern: &Pattern, to: &str) -> Result<(), Wrong> {
    let used = (0..=100).filter(|number| to.contains(&format!("{{{number}}}"))).count();
    if used > pattern.groups() {
        Err(Wrong::Fault(format!("{to} uses more groups than {} has", pattern.text)))
    } else {
        Ok(())
    }
}

/// Applies the changes to a response, the last change first, record by record.
pub(super) fn undo(
    exchange: &mut Exchange<'_>,
    changes: &[Change],
    without_records: WithoutRecords,
    reply: &mut Reply,
) -> Result<(), Unknown> {
    // A changed CNAME replaces all records, while the iteration continues over the previous ones.
    let mut at_hand = reply.records.clone();
    let mut replaced = None;
    if at_hand.is_empty() {
        let changed = changed_code(changes, reply.rcode);
        match without_records {
            WithoutRecords::Unknown if !reply.other_records && changed != reply.rcode => {
                let why = "before CoreDNS 1.14.7 it stays, and the release is not known";
                return Err(code_unknown(why));
            }
            WithoutRecords::Kept if !reply.other_records => {}
            _ => reply.rcode = changed,
        }
    }
    for at in 0..at_hand.len() {
        reply.rcode = changed_code(changes, reply.rcode);
        for change in changes.iter().rev() {
            match change {
                Change::Name(text) => text.change(&mut at_hand[at].name),
                Change::Value(text) => {
                    if let Data::Cname(target) = &mut at_hand[at].data {
                        text.change(target);
                    }
                }
                // Once for each record, above.
                Change::Rcode(..) | Change::HasEdns => {}
                Change::Cname(test, to, kind) => {
                    let Data::Cname(target) = at_hand[at].data.clone() else { continue };
                    let Some(new) = test.rewrite(&target, to) else { continue };
                    let question = Question::new(&new, kind.clone());
                    let more = match exchange.ask_again(question) {
                        Answer::Reply(more) => more.records,
                        Answer::Silence => continue,
                        Answer::Unknown(unknown) => return Err(unknown),
                    };
                    let current: &mut Vec<_> = replaced.get_or_insert_with(|| at_hand.clone());
                    current.retain(|record| matches!(record.data, Data::Cname(_)));
                    for record in current.iter_mut() {
                        record.data = Data::Cname(new.clone());
                    }
                    at_hand[at].data = Data::Cname(new.clone());
                    current.extend(more.into_iter().filter(|record| record.name == new));
                }
            }
        }
    }
    reply.records = replaced.unwrap_or(at_hand);
    let has_edns = changes.iter().any(|change| matches!(change, Change::HasEdns));
    if has_edns && changed_code(changes, reply.rcode) != reply.rcode {
        return Err(code_unknown("it does if the response has an EDNS record"));
    }
    Ok(())
}

fn code_unknown(why: &str) -> Unknown {
    Unknown {
        why: format!("whether the plugin rewrite changes the code of a response: {why}"),
        settle: "state what the name leads to in Facts: spec.dns.outside".into(),
    }
}
