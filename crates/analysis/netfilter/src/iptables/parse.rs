//! Parses the text of `iptables-save` line by line.

mod rules;
mod tables;

use uturn_model::{Family, Origin, SourceName};

use super::allowance::Allowance;
use super::other_formats::recognise;
use super::rule::{self, Fault};
use super::table_builder::TableBuilder;
use super::token::{self, Token};
use super::*;
use crate::ParseError;

/// Parses the output of `iptables-save`, or of `ip6tables-save`, depending on `family`.
///
/// Also accepts hand-written input of `iptables-restore` that only declares chains and appends
/// rules; built-in chains need not be declared.
///
/// # Errors
///
/// Returns all errors of the text, each with its place. If the text is the output of another
/// tool, returns a single error that names the tool and the command to run instead.
pub fn parse(
    source: impl Into<SourceName>,
    text: &str,
    family: Family,
) -> Result<Ruleset, Vec<ParseError>> {
    read(Reader::new(source.into(), family, InputKind::Dump), text)
}

/// Parses a partial dump, or input of `iptables-restore --noflush`, as if it were loaded onto
/// `base`.
///
/// A chain that is declared again is flushed first, unless it is built in; rules are appended to
/// existing chains. Unlike [`parse`], it does not require chain declarations or `COMMIT`, accepts
/// a table more than once, and accepts all commands of `iptables-restore`: `-I`, `-R`, `-D` and
/// `-C` for rules, `-N`, `-F`, `-X`, `-E`, `-P` and `-Z` for chains.
///
/// # Errors
///
/// Returns all errors of the text, each with its place.
pub fn parse_fragment(
    base: Ruleset,
    source: impl Into<SourceName>,
    text: &str,
    family: Family,
) -> Result<Ruleset, Vec<ParseError>> {
    let mut reader = Reader::new(source.into(), family, InputKind::Fragment);
    reader.ruleset = base;
    read(reader, text)
}

/// Warnings in a dump's comments: the other back end also has rules, which the dump lacks.
pub fn warnings(source: impl Into<SourceName>, text: &str) -> Vec<ParseError> {
    let file = source.into();
    let lines = text.lines().zip(1u32..).filter_map(|(line, number)| {
        let remark = line.trim_start().strip_prefix('#')?.trim();
        remark.starts_with("Warning:").then(|| {
            let message = format!("{remark:?}: these rules are not in this dump, capture them too");
            ParseError::new(&file, number, 1, message)
        })
    });
    lines.collect()
}

fn read<'a>(mut reader: Reader<'a>, text: &'a str) -> Result<Ruleset, Vec<ParseError>> {
    let (mut rest, mut number, mut last) = (text, 1, 1);
    let mut words = Vec::new();
    loop {
        let length = reader.line(rest, number, &mut words);
        if !matches!(&rest[..length], "" | "\r") {
            last = number;
        }
        // A line break follows.
        match rest.get(length + 1..) {
            Some(next) => rest = next,
            None => return reader.end(last),
        }
        number += 1;
    }
}

/// The kind of the input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InputKind {
    /// A complete dump.
    Dump,
    /// A part, loaded onto existing rules.
    Fragment,
}

struct Reader<'a> {
    kind: InputKind,
    file: SourceName,
    family: Family,
    ruleset: Ruleset,
    table: Option<TableBuilder<'a>>,
    /// For a fragment: tables that it may continue later.
    parked: Vec<TableBuilder<'a>>,
    errors: Vec<ParseError>,
    /// Whether there was a table.
    has_table: bool,
    /// The error for a text that is not from `iptables-save`.
    foreign: Option<ParseError>,
    scratch: rule::Scratch,
    allowance: Allowance,
}

impl<'a> Reader<'a> {
    fn new(file: SourceName, family: Family, kind: InputKind) -> Self {
        Self {
            kind,
            file,
            family,
            ruleset: Ruleset::default(),
            table: None,
            parked: Vec::new(),
            errors: Vec::new(),
            has_table: false,
            foreign: None,
            scratch: rule::Scratch::default(),
            allowance: Allowance::default(),
        }
    }

    /// Parses the first line of `text`, and returns its length.
    fn line(&mut self, text: &'a str, number: u32, words: &mut Vec<Token<'a>>) -> usize {
        let indent = text.bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let (body, column) = (&text[indent..], indent as u32 + 1);
        let first = body.as_bytes().first();
        let in_table = self.table.is_some();
        let is_odd = !in_table && !matches!(first, None | Some(b'#' | b'*' | b'\r' | b'\n'));
        if is_odd && let Some(what) = self.recognised(body) {
            self.foreign = Some(ParseError::new(&self.file, number, column, what));
            return text.len();
        }
        let (length, read) = match first {
            Some(b'[' | b'-') => self.append(body, number, column, words),
            _ => {
                let length = token::line(body);
                let (body, behind) = body.split_at(length);
                let body = body.strip_suffix('\r').unwrap_or(body);
                (length, self.other(body, behind, number, column))
            }
        };
        if let Err((column, message)) = read {
            self.errors.push(ParseError::new(&self.file, number, column, message));
            if self.allowance.is_spent() {
                return text.len();
            }
        }
        indent + length
    }

    /// Parses a line without a rule. `behind` is the text after it.
    fn other(&mut self, body: &str, behind: &str, number: u32, column: u32) -> Result<(), Fault> {
        match body.as_bytes().first() {
            None => Ok(()),
            Some(b'#') => self.remark(body).map_err(|message| (column, message)),
            Some(b'*') => {
                self.open(&body[1..], behind, number).map_err(|message| (column + 1, message))
            }
            Some(b':') => self.declare(body, number, column),
            Some(_) if body.trim_end() == "COMMIT" => {
                self.commit().map_err(|message| (column, message))
            }
            Some(_) => {
                let expected = "expected a table, a chain, a rule or COMMIT";
                Err((column, format!("found {body:?}, {expected}")))
            }
        }
    }

    /// Reports comments that say that the text is incomplete.
    fn remark(&self, body: &str) -> Result<(), String> {
        if body.contains("is incompatible, use 'nft' tool") {
            Err(format!(
                "{:?}: iptables-save could not print this table; capture `nft list ruleset` too",
                body.trim_start_matches(['#', ' '])
            ))
        } else {
            Ok(())
        }
    }

    /// The origin of the text, by a line outside of any table.
    fn recognised(&self, line: &str) -> Option<&'static str> {
        let line = line.lines().next()?;
        recognise(line, self.has_table)
    }

    /// `:NAME POLICY [packets:bytes]`
    fn declare(&mut self, body: &str, number: u32, column: u32) -> Result<(), Fault> {
        let open = self.table.as_mut().ok_or_else(|| outside(column))?;
        // A name ends where `iptables-restore` ends it: other white space is part of it.
        let mut words = token::words(&body[1..]);
        let at = |word: &str| column + (word.as_ptr() as usize - body.as_ptr() as usize) as u32;
        let name =
            words.next().ok_or((column, "found no name, expected `:CHAIN POLICY [0:0]`".into()))?;
        let policy = match words.next() {
            Some("ACCEPT") => Some(Policy::Accept),
            Some("DROP") => Some(Policy::Drop),
            Some("-") => None,
            Some(other) => {
                return Err((
                    at(other),
                    format!("found policy {other:?}, expected ACCEPT, DROP or -"),
                ));
            }
            None => {
                return Err((
                    column,
                    format!("found no policy for chain {name}, expected ACCEPT, DROP or -"),
                ));
            }
        };
        let counters = match words.next() {
            None => Counters::default(),
            Some(word) => counters(word)
                .ok_or_else(|| (at(word), format!("found {word:?}, expected counters: [0:0]")))?,
        };
        if let Some(before) = open.names.find(name) {
            if self.kind == InputKind::Dump {
                let line = open.table.chains[before].origin.line();
                let message = format!("chain {name} a second time, the first is on line {line}");
                return Err((at(name), message));
            }
            open.flush();
            let chain = &mut open.table.chains[before];
            match policy {
                Some(_) => chain.policy = policy,
                None => chain.rules.clear(),
            }
            chain.counters = counters;
            return Ok(());
        }
        open.declare(name, policy, counters, Origin::line_of(self.file.clone(), number));
        Ok(())
    }

    fn end(mut self, last: u32) -> Result<Ruleset, Vec<ParseError>> {
        if let Some(foreign) = self.foreign {
            return Err(vec![foreign]);
        }
        if self.allowance.is_spent() {
            return Err(self.errors);
        }
        if self.kind == InputKind::Fragment {
            let open = self.table.take();
            self.put_back(open);
            for table in std::mem::take(&mut self.parked).into_iter().map(TableBuilder::finish) {
                if let Some(place) =
                    self.ruleset.tables.iter_mut().find(|known| known.kind == table.kind)
                {
                    *place = table;
                }
            }
        } else if let Some(open) = self.table.take() {
            let Table { kind, origin, .. } = open.table;
            let message = format!(
                "the text ends here, expected COMMIT for table {kind} of line {}: the dump is cut",
                origin.line()
            );
            self.errors.push(ParseError::new(&self.file, last, 1, message));
        }
        if self.errors.is_empty() { Ok(self.ruleset) } else { Err(self.errors) }
    }
}

fn outside(column: u32) -> Fault {
    (column, "found this outside of any table, expected `*TABLE` before it".into())
}

fn counters(word: &str) -> Option<Counters> {
    let (packets, bytes) = word.strip_prefix('[')?.strip_suffix(']')?.split_once(':')?;
    Some(Counters { packets: packets.parse().ok()?, bytes: bytes.parse().ok()? })
}
