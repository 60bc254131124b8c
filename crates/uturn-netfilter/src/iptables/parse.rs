//! Reads the text of `iptables-save`: tables, chains and, line by line, rules.

use std::collections::HashMap;

use uturn_model::{Family, Origin, Text};

use super::line::{self, Fault};
use super::token::{self, Token};
use super::*;
use crate::ParseError;

/// Reads what `iptables-save` (or `ip6tables-save`, by `family`) printed.
///
/// Also reads what is written for `iptables-restore` by hand, as long as it only declares
/// chains and appends rules. All that is wrong is reported, not only the first.
pub fn parse(
    source: impl Into<Text>,
    text: &str,
    family: Family,
) -> Result<Ruleset, Vec<ParseError>> {
    let mut reader = Reader {
        file: source.into(),
        family,
        ruleset: Ruleset::default(),
        table: None,
        errors: Vec::new(),
    };
    let mut words = Vec::new();
    let mut last = 1;
    for (line, number) in text.split('\n').zip(1u32..) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if !line.is_empty() {
            last = number;
            reader.line(line, number, &mut words);
        }
    }
    reader.end(last)
}

struct Reader<'a> {
    file: Text,
    family: Family,
    ruleset: Ruleset,
    table: Option<Open<'a>>,
    errors: Vec<ParseError>,
}

/// A table that is being read.
struct Open<'a> {
    table: Table,
    chains: HashMap<&'a str, (usize, Text)>,
}

impl<'a> Reader<'a> {
    fn line(&mut self, line: &'a str, number: u32, words: &mut Vec<Token<'a>>) {
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        let (body, column) = (&line[indent..], indent as u32 + 1);
        let read = match body.as_bytes().first() {
            None => Ok(()),
            Some(b'#') => self.remark(body).map_err(|message| (column, message)),
            Some(b'*') => self.open(&body[1..], number).map_err(|message| (column + 1, message)),
            Some(b':') => self.declare(body, number, column),
            Some(b'[' | b'-') => self.append(body, number, column, words),
            Some(_) if body.trim_end() == "COMMIT" => {
                self.commit().map_err(|message| (column, message))
            }
            Some(_) => Err((
                column,
                format!("found {body:?}, expected a table, a chain, a rule or COMMIT"),
            )),
        };
        if let Err((column, message)) = read {
            self.errors.push(ParseError::new(&self.file, number, column, message));
        }
    }

    /// Some remarks say that the text is not all there is.
    fn remark(&self, body: &str) -> Result<(), String> {
        match body.contains("is incompatible, use 'nft' tool") {
            true => Err(format!(
                "{:?}: iptables-save could not print this table; capture `nft list ruleset` too",
                body.trim_start_matches(['#', ' '])
            )),
            false => Ok(()),
        }
    }

    fn open(&mut self, name: &str, number: u32) -> Result<(), String> {
        let name = name.trim_end();
        let unfinished = self.table.take();
        let kind = TableKind::ALL.into_iter().find(|kind| kind.as_str() == name).ok_or_else(|| {
            format!("found table {name:?}, expected raw, mangle, nat, filter or security")
        });
        // Rules of a table that cannot be read are still checked, as those of some table.
        let shown = *kind.as_ref().unwrap_or(&TableKind::Filter);
        let origin = Origin::line(self.file.clone(), number);
        let table = Table { kind: shown, chains: Vec::new(), origin };
        self.table = Some(Open { table, chains: HashMap::new() });
        kind?;
        if let Some(before) = unfinished {
            let line = before.table.origin.line;
            return Err(format!("found a new table, expected COMMIT for the one of line {line}"));
        }
        match self.ruleset.table(shown) {
            Some(before) => {
                let line = before.origin.line;
                Err(format!(
                    "table {name} a second time, the first is on line {line}: are these two dumps in one file?"
                ))
            }
            None => Ok(()),
        }
    }

    fn commit(&mut self) -> Result<(), String> {
        let open = self.table.take().ok_or("found COMMIT, expected a table before it")?;
        if self.ruleset.table(open.table.kind).is_none() {
            self.ruleset.tables.push(open.table);
        }
        Ok(())
    }

    /// `:NAME POLICY [packets:bytes]`
    fn declare(&mut self, body: &'a str, number: u32, column: u32) -> Result<(), Fault> {
        let open = self.table.as_mut().ok_or_else(|| outside(column))?;
        let mut words = body[1..].split_ascii_whitespace();
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
        if let Some((before, _)) = open.chains.get(name) {
            let line = open.table.chains[*before].origin.line;
            return Err((
                at(name),
                format!("chain {name} a second time, the first is on line {line}"),
            ));
        }
        let origin = Origin::line(self.file.clone(), number);
        let text = Text::from(name);
        open.chains.insert(name, (open.table.chains.len(), text.clone()));
        open.table.chains.push(Chain { name: text, policy, counters, rules: Vec::new(), origin });
        Ok(())
    }

    /// `[packets:bytes] -A CHAIN …`
    fn append(
        &mut self,
        body: &'a str,
        number: u32,
        column: u32,
        words: &mut Vec<Token<'a>>,
    ) -> Result<(), Fault> {
        token::cut(body, column, words)
            .map_err(|column| (column, "found a quote without its end".to_owned()))?;
        let open = self.table.as_mut().ok_or_else(|| outside(column))?;
        let mut rest = words.as_slice();
        let mut counted = None;
        if let Some((first, after)) =
            rest.split_first().filter(|(first, _)| first.text.starts_with('['))
        {
            let read = counters(&first.text);
            counted = Some(read.ok_or_else(|| {
                (first.column, format!("found {:?}, expected counters: [0:0]", first.text))
            })?);
            rest = after;
        }
        let (name, rest) = match rest {
            [append, name, rest @ ..] if matches!(append.bare(), "-A" | "--append") => (name, rest),
            [append] if matches!(append.bare(), "-A" | "--append") => {
                return Err((append.column, "found -A, expected a chain after it".into()));
            }
            [other, ..] => {
                return Err((other.column, format!("found {:?}, expected -A CHAIN", other.text)));
            }
            [] => return Err((column, "found counters only, expected -A CHAIN".into())),
        };
        let Some((at, _)) = open.chains.get(&*name.text) else {
            return Err((
                name.column,
                format!("chain {} is not declared in this table", name.text),
            ));
        };
        let origin = Origin::line(self.file.clone(), number);
        let mut rule = line::rule(rest, self.family, &open.chains, &origin)?;
        rule.counters = counted;
        open.table.chains[*at].rules.push(rule);
        Ok(())
    }

    fn end(mut self, last: u32) -> Result<Ruleset, Vec<ParseError>> {
        if let Some(open) = self.table.take() {
            let Table { kind, origin, .. } = open.table;
            let message = format!(
                "the text ends here, expected COMMIT for table {kind} of line {}: the dump is cut",
                origin.line
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
