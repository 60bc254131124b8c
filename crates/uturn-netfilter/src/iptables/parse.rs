//! Reads the text of `iptables-save`: tables, chains and, line by line, rules.

use uturn_model::{Family, Origin, Text};

use super::line::{self, Fault};
use super::names::Names;
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
    read(Reader::new(source.into(), family, Kind::Dump), text)
}

/// Reads a part of a dump, or what is written for `iptables-restore --noflush`, as if it
/// were loaded onto `base`. A chain that is declared again is emptied first, unless it is
/// a built-in one; rules are added to chains that are there. Beyond what
/// [`parse`] reads, a chain need not be declared, `COMMIT` may be missing, a table may come
/// twice, and `-N`, `-F` and `-X` make, empty and delete a chain.
pub fn parse_fragment(
    base: Ruleset,
    source: impl Into<Text>,
    text: &str,
    family: Family,
) -> Result<Ruleset, Vec<ParseError>> {
    let mut reader = Reader::new(source.into(), family, Kind::Fragment);
    reader.ruleset = base;
    read(reader, text)
}

/// What a dump says of itself in remarks: that the other back end has rules too, which
/// are not in it.
pub fn warnings(source: impl Into<Text>, text: &str) -> Vec<ParseError> {
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

fn read(mut reader: Reader, text: &str) -> Result<Ruleset, Vec<ParseError>> {
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

/// What is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// All there is.
    Dump,
    /// A part, onto something that is there.
    Fragment,
}

struct Reader {
    kind: Kind,
    file: Text,
    family: Family,
    ruleset: Ruleset,
    table: Option<Open>,
    /// Of a part: tables that it may come back to.
    parked: Vec<Open>,
    errors: Vec<ParseError>,
    scratch: line::Scratch,
}

/// A table that is being read.
struct Open {
    table: Table,
    /// Of its chains, in their order.
    names: Names,
    /// The chain that gets the pending rules.
    latest: usize,
    /// Rules that follow each other in one chain, kept back so that a chain takes no more
    /// room than it needs: most have two or three rules.
    pending: Vec<Rule>,
    /// Chains that have got rules, some more than once.
    filled: Vec<usize>,
}

impl Open {
    fn new(table: Table, names: Names) -> Self {
        let filled = table.chains.iter().zip(0..).filter(|(chain, _)| !chain.rules.is_empty());
        let filled = filled.map(|(_, at)| at).collect();
        Self { table, names, latest: 0, pending: Vec::new(), filled }
    }

    /// A chain that gets a rule: mostly the one that got the latest, or the one behind it.
    fn find(&self, name: &str) -> Option<usize> {
        let near = [self.latest, self.latest + 1];
        let known = |at: &usize| self.names.name(*at).is_some_and(|one| **one == *name);
        near.into_iter().find(known).or_else(|| self.names.find(name))
    }

    fn add(&mut self, at: usize, rule: Rule) {
        if at != self.latest {
            self.flush();
            self.latest = at;
        }
        self.pending.push(rule);
    }

    fn flush(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let Some(chain) = self.table.chains.get_mut(self.latest) else { return };
        self.filled.push(self.latest);
        if chain.rules.is_empty() {
            chain.rules.reserve_exact(self.pending.len());
        }
        chain.rules.append(&mut self.pending);
    }

    /// The table without the chains that were deleted.
    fn finish(mut self) -> Table {
        self.flush();
        let mut places = 0..;
        self.table.chains.retain(|_| places.next().is_some_and(|at| self.names.is_there(at)));
        self.table
    }
}

impl Reader {
    fn new(file: Text, family: Family, kind: Kind) -> Self {
        Self {
            kind,
            file,
            family,
            ruleset: Ruleset::default(),
            table: None,
            parked: Vec::new(),
            errors: Vec::new(),
            scratch: line::Scratch::default(),
        }
    }

    fn line<'a>(&mut self, line: &'a str, number: u32, words: &mut Vec<Token<'a>>) {
        let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
        let (body, column) = (&line[indent..], indent as u32 + 1);
        let read = match body.as_bytes().first() {
            None => Ok(()),
            Some(b'#') => self.remark(body).map_err(|message| (column, message)),
            Some(b'*') => self.open(&body[1..], number).map_err(|message| (column + 1, message)),
            Some(b':') => self.declare(body, number, column),
            Some(b'-')
                if self.kind == Kind::Fragment
                    && ["-N", "-F", "-X"].iter().any(|one| body.starts_with(one)) =>
            {
                self.command(body, number, column)
            }
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
        self.table = Some(Open::new(table, Names::default()));
        kind?;
        if self.kind == Kind::Fragment {
            self.put_back(unfinished);
        } else if let Some(before) = unfinished {
            let line = before.table.origin.line;
            return Err(format!("found a new table, expected COMMIT for the one of line {line}"));
        }
        match self.ruleset.table(shown) {
            Some(_) if self.kind == Kind::Fragment => {
                let at = self.ruleset.tables.iter().position(|table| table.kind == shown);
                if let Some(at) = at {
                    self.resume(at);
                }
                Ok(())
            }
            Some(before) => {
                let line = before.origin.line;
                Err(format!(
                    "table {name} a second time, the first is on line {line}: are these two dumps in one file?"
                ))
            }
            None => Ok(()),
        }
    }

    /// Goes on with a table that is there. Its place is kept by an empty one.
    fn resume(&mut self, at: usize) {
        let kind = self.ruleset.tables[at].kind;
        if let Some(parked) = self.parked.iter().position(|open| open.table.kind == kind) {
            self.table = Some(self.parked.swap_remove(parked));
            return;
        }
        let place = &mut self.ruleset.tables[at];
        let empty = Table { kind: place.kind, chains: Vec::new(), origin: place.origin.clone() };
        let table = std::mem::replace(place, empty);
        let names = table.chains.iter().map(|chain| chain.name.clone()).collect();
        self.table = Some(Open::new(table, names));
    }

    fn put_back(&mut self, open: Option<Open>) {
        let Some(open) = open else { return };
        let (kind, origin) = (open.table.kind, open.table.origin.clone());
        let known = self.ruleset.tables.iter().position(|one| one.kind == kind);
        let at = known.unwrap_or(self.ruleset.tables.len());
        if known.is_none() {
            self.ruleset.tables.push(Table { kind, chains: Vec::new(), origin });
        }
        match self.kind {
            Kind::Dump => self.ruleset.tables[at] = open.finish(),
            Kind::Fragment => self.parked.push(open),
        }
    }

    /// `-N CHAIN`, `-F CHAIN`, `-X CHAIN`
    fn command(&mut self, body: &str, number: u32, column: u32) -> Result<(), Fault> {
        let open = self.table.as_mut().ok_or_else(|| outside(column))?;
        open.flush();
        let mut words = body.split_ascii_whitespace();
        let (command, name) = (words.next().unwrap_or(""), words.next());
        if words.next().is_some() {
            return Err((column, format!("found {body:?}, expected {command} CHAIN")));
        }
        let at = name.and_then(|name| open.names.find(name));
        match (command, name, at) {
            ("-F", None, _) => {
                for at in open.filled.drain(..) {
                    open.table.chains[at].rules.clear();
                }
            }
            ("-F", _, Some(at)) => open.table.chains[at].rules.clear(),
            ("-X", _, Some(at)) => {
                open.table.chains[at].rules.clear();
                open.names.forget(at);
            }
            ("-N", Some(name), None) => {
                let origin = Origin::line(self.file.clone(), number);
                add_chain(open, name, None, Counters::default(), origin);
            }
            (_, Some(name), Some(_)) => {
                return Err((column, format!("chain {name} is there already")));
            }
            (_, name, _) => {
                let name = name.unwrap_or("without a name");
                return Err((column, format!("chain {name} is not in this table")));
            }
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), String> {
        let open = self.table.take().ok_or("found COMMIT, expected a table before it")?;
        if self.kind == Kind::Fragment || self.ruleset.table(open.table.kind).is_none() {
            self.put_back(Some(open));
        }
        Ok(())
    }

    /// `:NAME POLICY [packets:bytes]`
    fn declare(&mut self, body: &str, number: u32, column: u32) -> Result<(), Fault> {
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
        let before = open.names.find(name);
        if let Some(at) = before.filter(|_| self.kind == Kind::Fragment) {
            open.flush();
            let chain = &mut open.table.chains[at];
            match policy {
                Some(_) => chain.policy = policy,
                None => chain.rules.clear(),
            }
            chain.counters = counters;
            return Ok(());
        }
        if let Some(before) = before {
            let line = open.table.chains[before].origin.line;
            return Err((
                at(name),
                format!("chain {name} a second time, the first is on line {line}"),
            ));
        }
        let origin = Origin::line(self.file.clone(), number);
        add_chain(open, name, policy, counters, origin);
        Ok(())
    }

    /// `[packets:bytes] -A CHAIN …`
    fn append<'a>(
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
        let at = match open.find(&name.text) {
            Some(at) => at,
            None if self.kind == Kind::Fragment && token::is_plain(&name.text) => {
                let origin = Origin::line(self.file.clone(), number);
                let policy = BUILT_IN.contains(&&*name.text).then_some(Policy::Accept);
                add_chain(open, &name.text, policy, Counters::default(), origin)
            }
            None => {
                let message = format!("chain {} is not declared in this table", name.text);
                return Err((name.column, message));
            }
        };
        let origin = Origin::line(self.file.clone(), number);
        let mut rule = line::rule(rest, self.family, &open.names, &origin, &mut self.scratch)?;
        rule.counters = counted.map(Box::new).or(rule.counters);
        open.add(at, rule);
        Ok(())
    }

    fn end(mut self, last: u32) -> Result<Ruleset, Vec<ParseError>> {
        if self.kind == Kind::Fragment {
            let open = self.table.take();
            self.put_back(open);
            for table in std::mem::take(&mut self.parked).into_iter().map(Open::finish) {
                if let Some(place) =
                    self.ruleset.tables.iter_mut().find(|one| one.kind == table.kind)
                {
                    *place = table;
                }
            }
        } else if let Some(open) = self.table.take() {
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

const BUILT_IN: [&str; 5] = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];

/// Its place.
fn add_chain(
    open: &mut Open,
    name: &str,
    policy: Option<Policy>,
    counters: Counters,
    origin: Origin,
) -> usize {
    let name = Text::from(name);
    let at = open.names.add(name.clone());
    open.table.chains.push(Chain { name, policy, counters, rules: Vec::new(), origin });
    at
}

fn outside(column: u32) -> Fault {
    (column, "found this outside of any table, expected `*TABLE` before it".into())
}

fn counters(word: &str) -> Option<Counters> {
    let (packets, bytes) = word.strip_prefix('[')?.strip_suffix(']')?.split_once(':')?;
    Some(Counters { packets: packets.parse().ok()?, bytes: bytes.parse().ok()? })
}
