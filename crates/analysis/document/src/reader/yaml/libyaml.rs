//! Holds the parser against libyaml: both read a document or both refuse it, and both find the same
//! events in the same places.
//!
//! kubectl reads YAML with a port of libyaml to Go. `libyaml-safer` is a port of a later libyaml to
//! Rust, so it is the judge but for the rows of [`DIFFERENCES`].

mod documents;
mod mutants;

use std::fmt;
use std::panic;

use libyaml_safer::{EventData, MappingStyle, Parser, ScalarStyle, SequenceStyle};
use uturn_dice::Dice;
use uturn_testing::variables::{self, YAML_MUTANTS};

use documents::documents;
use mutants::{mutant, pieces};

use super::{Event, Placed, Style, parse};
use crate::reader::cut;
use crate::reader::scalar::Tagged;

/// How the two may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Only this crate refuses the document, with this message.
    RefusedHere(&'static str),
    /// Only libyaml refuses it.
    RefusedByLibyaml(&'static str),
    /// They read the document in different ways, or one refuses it.
    Any,
}

/// A way in which the two differ on purpose.
struct Difference {
    way: Way,
    /// What such a document has.
    has: &'static str,
    /// What it may have instead, so that the two read it alike.
    instead: Option<&'static str>,
    /// A document that shows it.
    example: &'static str,
    because: &'static str,
}

const DIFFERENCES: &[Difference] = &[
    Difference {
        way: Way::RefusedHere("kubectl accepts only a comment after ---"),
        has: "---",
        instead: None,
        example: "--- {a: b}\n",
        because: "kubectl divides a text before it reads YAML, at lines that begin with ---",
    },
    Difference {
        way: Way::Any,
        has: "?",
        instead: Some("q"),
        example: "{a?}\n",
        because: "kubectl's port is of a libyaml in which a ? ends unquoted text in brackets",
    },
    Difference {
        way: Way::RefusedByLibyaml("found unexpected ':'"),
        has: ":",
        instead: None,
        example: "{a, b:}\n",
        because: "kubectl's port reads the key b:, as it does outside of brackets",
    },
    Difference {
        way: Way::RefusedByLibyaml(
            "did not find expected whitespace or line break while scanning a tag",
        ),
        has: "!",
        instead: None,
        example: "!a,b c\n",
        because: "kubectl's port is of a libyaml in which tags may have commas and brackets",
    },
    Difference {
        way: Way::RefusedByLibyaml("did not find expected tag URI while parsing a tag"),
        has: "!",
        instead: None,
        example: "!!,a b\n",
        because: "as above",
    },
    Difference {
        way: Way::Any,
        has: "\u{feff}",
        instead: Some(""),
        example: "a: b\n\u{feff}c: d\n",
        because: "kubectl's port drops a byte order mark only at the beginning of a text",
    },
];

/// Returns the events of a document as this crate reads it, each in a line.
fn read_here(document: &str) -> Reading {
    let mut events = Vec::new();
    let read = parse(document, 1, &mut |Placed { event, anchor, start, .. }| {
        let anchor = anchor.map_or(String::new(), |name| format!(" &{name}"));
        let event = match event {
            Event::Scalar { text, style, tag } => {
                let style = match style {
                    Style::Plain => ':',
                    Style::Quoted => '"',
                    Style::Literal => '|',
                    Style::Folded => '>',
                };
                let tag = match tag {
                    Tagged::Not => String::new(),
                    Tagged::Core(tag) => format!(" !!{tag}"),
                    Tagged::Other => " !".to_owned(),
                };
                format!("scalar{anchor}{tag} {style}{text:?}")
            }
            Event::Alias(name) => format!("alias *{name}"),
            Event::Seq { flow } => format!("list{anchor} {}", if flow { "[" } else { "-" }),
            Event::Map { flow } => format!("mapping{anchor} {}", if flow { "{" } else { ":" }),
            Event::SeqEnd => "end of list".to_owned(),
            Event::MapEnd => "end of mapping".to_owned(),
        };
        events.push(placed(&event, start.line as usize, start.column));
        Ok(())
    });
    read.map(|_| events).map_err(|trouble| trouble.message)
}

/// Returns an event with its place, if that is comparable: here a block scalar is where its text
/// begins, a value with an anchor or a tag where the value itself does, and one that is left out
/// where its key ends.
fn placed(event: &str, line: usize, column: usize) -> String {
    let kinds = ["scalar :", "scalar \"", "alias"];
    let is_comparable = kinds.iter().any(|kind| event.starts_with(kind)) && event != "scalar :\"\"";
    if is_comparable { format!("{line}:{column} {event}") } else { event.to_owned() }
}

/// Returns the events of a document as libyaml reads it. Like kubectl, it gets the document without
/// the line of `---` before it, and is asked for no other document after it.
fn read_by_libyaml(document: &str) -> Reading {
    let (text, before) = match document.strip_prefix("---") {
        Some(rest) => (rest.split_once('\n').map_or("", |(_, after)| after), 2),
        None => (document, 1),
    };
    let mut parser = Parser::new();
    parser.set_input(text.as_bytes());
    let mut events = Vec::new();
    loop {
        let event = parser.parse().map_err(|error| error.to_string())?;
        let named = |anchor: &Option<String>| {
            anchor.as_ref().map_or(String::new(), |name| format!(" &{name}"))
        };
        let text = match &event.data {
            EventData::StreamStart { .. } | EventData::DocumentStart { .. } => continue,
            EventData::StreamEnd | EventData::DocumentEnd { .. } => return Ok(events),
            EventData::Alias { anchor } => format!("alias *{anchor}"),
            EventData::Scalar { anchor, tag, value, style, .. } => {
                let style = match style {
                    ScalarStyle::Plain => ':',
                    ScalarStyle::Literal => '|',
                    ScalarStyle::Folded => '>',
                    _ => '"',
                };
                let tag = match tag.as_deref().map(|tag| tag.strip_prefix("tag:yaml.org,2002:")) {
                    None => String::new(),
                    Some(Some(tag)) => format!(" !!{tag}"),
                    Some(None) => " !".to_owned(),
                };
                format!("scalar{}{tag} {style}{value:?}", named(anchor))
            }
            EventData::SequenceStart { anchor, style, .. } => {
                let mark = if *style == SequenceStyle::Flow { "[" } else { "-" };
                format!("list{} {mark}", named(anchor))
            }
            EventData::MappingStart { anchor, style, .. } => {
                let mark = if *style == MappingStyle::Flow { "{" } else { ":" };
                format!("mapping{} {mark}", named(anchor))
            }
            EventData::SequenceEnd => "end of list".to_owned(),
            EventData::MappingEnd => "end of mapping".to_owned(),
        };
        let mark = event.start_mark;
        events.push(placed(&text, mark.line as usize + before, mark.column as usize));
    }
}

/// Returns how the two readings of a document differ, unless it is one of [`DIFFERENCES`]. Fails if
/// libyaml-safer panics.
fn difference(document: &str) -> Result<Option<Found>, Panicked> {
    // libyaml-safer panics where a block scalar ends with the text and without a line break.
    let document = if document.ends_with(['\n', '\r']) || !document.contains(['|', '>']) {
        document
    } else {
        &format!("{document}\n")
    };
    let there = panic::catch_unwind(|| read_by_libyaml(document)).map_err(|_| Panicked)?;
    let Some(found) = way(&read_here(document), &there) else { return Ok(None) };
    for known in DIFFERENCES {
        if !document.contains(known.has) || !found.is(known.way) {
            continue;
        }
        let other = known.instead.map(|instead| document.replace(known.has, instead));
        if other.map_or(Ok(None), |other| difference(&other))?.is_none() {
            return Ok(None);
        }
    }
    Ok(Some(found))
}

struct Panicked;

/// How two readings differ.
enum Found {
    RefusedHere(String),
    RefusedByLibyaml(String),
    /// The first event that differs.
    Event(String),
}

impl Found {
    fn is(&self, way: Way) -> bool {
        match (self, way) {
            (_, Way::Any) => true,
            (Self::RefusedHere(found), Way::RefusedHere(known))
            | (Self::RefusedByLibyaml(found), Way::RefusedByLibyaml(known)) => {
                found.contains(known)
            }
            _ => false,
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RefusedHere(why) => write!(f, "only here it is refused: {why}"),
            Self::RefusedByLibyaml(why) => write!(f, "only libyaml refuses it: {why}"),
            Self::Event(what) => f.write_str(what),
        }
    }
}

type Reading = Result<Vec<String>, String>;

/// Returns how two readings of a document differ.
fn way(here: &Reading, there: &Reading) -> Option<Found> {
    match (here, there) {
        (Err(_), Err(_)) => None,
        (Err(message), Ok(_)) => Some(Found::RefusedHere(message.clone())),
        (Ok(_), Err(message)) => Some(Found::RefusedByLibyaml(message.clone())),
        (Ok(here), Ok(there)) => {
            let most = here.len().max(there.len());
            let at = (0..most).find(|at| here.get(*at) != there.get(*at))?;
            Some(Found::Event(format!("{:?} here, {:?} by libyaml", here.get(at), there.get(at))))
        }
    }
}

fn hold(documents: impl Iterator<Item = String>) {
    let mut found: Vec<(String, Found)> = Vec::new();
    let (mut judged, mut panicked) = (0, 0);
    for text in documents {
        for document in cut(&text).into_iter().map(|part| &text[part]) {
            match difference(document) {
                Ok(difference) => {
                    judged += 1;
                    found.extend(difference.map(|found| (document.to_owned(), found)));
                }
                Err(Panicked) => panicked += 1,
            }
        }
    }
    found.sort_by_key(|(document, _)| document.len());
    let shown: Vec<String> =
        found.iter().take(10).map(|(document, why)| format!("{document:?}: {why}")).collect();
    assert!(found.is_empty(), "{} documents, such as:\n{}", found.len(), shown.join("\n"));
    assert!(panicked * 100 < judged, "{panicked} of {judged}");
}

#[test]
fn documents_of_the_tree_are_read_alike() {
    let documents = documents();
    assert!(documents.len() > 1000, "{}", documents.len());
    hold(documents.into_iter());
}

#[test]
fn mutants_are_read_alike() {
    let documents: Vec<String> = documents().into_iter().filter(|text| !text.is_empty()).collect();
    let count = variables::number(YAML_MUTANTS).unwrap_or(2_000_u64);
    hold((0..count).map(|number| {
        let mut dice = Dice::of_case(1, number);
        if number % 2 == 0 {
            let document = dice.pick(&documents).clone();
            mutant(&document, &mut dice)
        } else {
            pieces(&mut dice)
        }
    }));
}

#[test]
fn each_difference_has_an_example() {
    for known in DIFFERENCES {
        let (here, there) = (read_here(known.example), read_by_libyaml(known.example));
        let found = way(&here, &there);
        assert!(known.example.contains(known.has) && !known.because.is_empty());
        assert!(found.is_some_and(|found| found.is(known.way)), "{:?}", known.example);
    }
}
