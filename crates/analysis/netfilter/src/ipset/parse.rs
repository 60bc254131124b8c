//! Parses the output of `ipset save`, line by line, and of `ipset list`.

use std::borrow::Cow;

use uturn_model::{Family, Origin, SourceName, Text};

use super::entry::{Part, mark};
use super::{Entry, PartKind, Set, SetKind, Sets, is_flag, list};
use crate::ParseError;
use crate::hash::FastMap;

/// Parses the output of `ipset save` or `ipset list`. Also accepts hand-written input of `ipset
/// restore` that only creates sets and adds entries.
///
/// # Errors
///
/// Returns all errors of the text, each with its place.
pub fn parse(source: impl Into<SourceName>, text: &str) -> Result<Sets, Vec<ParseError>> {
    let mut reader = Reader {
        file: source.into(),
        sets: Vec::new(),
        families: Vec::new(),
        names: FastMap::default(),
        errors: Vec::new(),
    };
    let is_list = list::is_list(text);
    if is_list {
        let file = reader.file.clone();
        list::read(&mut reader, &file, text);
    }
    for (line, number) in text.lines().zip(1u32..).filter(|_| !is_list) {
        if line.trim().is_empty() || line.trim_start().starts_with('#') || line.trim() == "COMMIT" {
            continue;
        }
        if let Err((column, message)) = reader.line(line, number) {
            reader.errors.push(ParseError::new(&reader.file, number, column, message));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        let number = text.lines().count() as u32;
        let message = "the text ends within this line, expected a line break: the dump is cut";
        reader.errors.push(ParseError::new(&reader.file, number, 1, message));
    }
    // Lists come last, after the sets that they can contain, as in the kernel's own output.
    reader.sets.sort_by_key(|set| set.kind == SetKind::List);
    if reader.errors.is_empty() { Ok(Sets(reader.sets)) } else { Err(reader.errors) }
}

/// Column and message.
pub(super) type Fault = (u32, String);

/// A word and its column.
pub(super) type Token<'a> = (Cow<'a, str>, u32);

pub(super) struct Reader<'a> {
    file: SourceName,
    sets: Vec<Set>,
    /// The address family of each set.
    families: Vec<Option<Family>>,
    names: FastMap<Cow<'a, str>, usize>,
    pub(super) errors: Vec<ParseError>,
}

impl<'a> Reader<'a> {
    fn line(&mut self, line: &'a str, number: u32) -> Result<(), Fault> {
        let mut words = cut(line)?;
        // `-exist` does not change the contents of the sets.
        words.retain(|(word, _)| !matches!(&**word, "-exist" | "--exist" | "-!"));
        let mut words = words.into_iter();
        let (command, column) = words.next().unwrap_or((Cow::Borrowed(""), 1));
        let wanted = |what: &str| {
            (column, format!("found nothing after {command}, expected {what} after it"))
        };
        match &*command {
            "create" | "-N" | "--create" | "add" | "-A" | "--add" => {}
            other => return Err((column, format!("found {other:?}, expected create or add"))),
        }
        let (name, at) = words.next().ok_or_else(|| wanted("the name of a set"))?;
        let origin = Origin::line_of(self.file.clone(), number);
        if matches!(&*command, "create" | "-N" | "--create") {
            let (kind, _) = words.next().ok_or_else(|| wanted("a name and a type"))?;
            self.create((name, at), &kind, words.collect(), origin)
        } else {
            let entry = words.next().ok_or_else(|| wanted("a name and an entry"))?;
            self.add((name, at), entry, words.collect(), origin)
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    pub(super) fn fault(&mut self, number: u32, column: u32, message: String) {
        self.errors.push(ParseError::new(&self.file, number, column, message));
    }

    pub(super) fn create(
        &mut self,
        (name, at): Token<'a>,
        kind: &str,
        options: Vec<Token<'a>>,
        origin: Origin,
    ) -> Result<(), Fault> {
        if let Some(before) = self.names.get(&name) {
            let line = self.sets[*before].origin.line();
            return Err((at, format!("set {name} a second time, the first is on line {line}")));
        }
        let kind = SetKind::from_word(kind);
        if !matches!(kind, SetKind::Other(_)) {
            check_options(&options)?;
        }
        let options = options.into_iter().map(|(word, _)| Text::from(&*word)).collect();
        let set = Set { name: Text::from(&*name), kind, options, entries: Vec::new(), origin };
        self.names.insert(name, self.sets.len());
        self.families.push(set.family());
        self.sets.push(set);
        Ok(())
    }

    pub(super) fn add(
        &mut self,
        (name, at): Token<'a>,
        (text, column): Token<'a>,
        options: Vec<Token<'a>>,
        origin: Origin,
    ) -> Result<(), Fault> {
        let Some(index) = self.names.get(&name).copied() else {
            return Err((at, format!("set {name} is not created before this line")));
        };
        let family = self.families[index].unwrap_or(Family::V4);
        let parts = match &self.sets[index].kind {
            SetKind::Hash(kinds) => parts(kinds, &text, column, family, false)?,
            SetKind::Bitmap(kinds) => parts(kinds, &text, column, family, true)?,
            SetKind::List => match self.names.get(&text) {
                Some(member) if self.sets[*member].kind == SetKind::List => {
                    return Err((
                        column,
                        format!("set {text} is a list, expected no list in a list"),
                    ));
                }
                Some(_) => vec![Part::Set(Text::from(&*text))],
                None => {
                    return Err((column, format!("set {text} is not created before this line")));
                }
            },
            SetKind::Other(_) => Vec::new(),
        };
        if !matches!(self.sets[index].kind, SetKind::Other(_)) {
            check_entry_options(&options)?;
        }
        let options = options.into_iter().map(|(word, _)| Text::from(&*word)).collect();
        let entry = Entry { text: Text::from(&*text), parts, options, origin };
        self.sets[index].entries.push(entry);
        Ok(())
    }
}

fn parts(
    kinds: &[PartKind],
    text: &str,
    column: u32,
    family: Family,
    bitmap: bool,
) -> Result<Vec<Part>, Fault> {
    let mut words = text.split(',');
    let mut parts = Vec::with_capacity(kinds.len());
    for (at, kind) in kinds.iter().enumerate() {
        let Some(word) = words.next() else {
            // `bitmap:ip,mac` learns the hardware address later.
            if bitmap && *kind == PartKind::Mac && at > 0 {
                break;
            }
            let message = format!("found {text:?}, expected {} parts with commas", kinds.len());
            return Err((column, message));
        };
        let offset = word.as_ptr() as usize - text.as_ptr() as usize;
        parts.push(Part::read(*kind, word, family, bitmap).map_err(|expected| {
            (column + offset as u32, format!("found {word:?}, expected {expected}"))
        })?);
    }
    match words.next() {
        None => Ok(parts),
        Some(_) => {
            let message = format!("found {text:?}, expected {} parts with commas", kinds.len());
            Err((column, message))
        }
    }
}

fn check_options(options: &[Token<'_>]) -> Result<(), Fault> {
    let mut words = options.iter();
    while let Some((word, column)) = words.next() {
        if is_flag(word) {
            continue;
        }
        let (value, at) = words.next().ok_or_else(|| lacks(word, *column))?;
        let wanted = |what: &str| Err((*at, format!("found {value:?}, expected {what}")));
        match &**word {
            "family" if !matches!(&**value, "inet" | "inet6") => return wanted("inet or inet6"),
            "netmask" if value.parse::<u8>().is_err() => return wanted("the length of a prefix"),
            "bitmask" if value.parse::<std::net::IpAddr>().is_err() => return wanted("a mask"),
            "hashsize" | "maxelem" | "timeout" | "size" if value.parse::<u32>().is_err() => {
                return wanted("a number");
            }
            "markmask" if mark(value).is_none() => return wanted("a mask: `0xff`"),
            _ => {}
        }
    }
    Ok(())
}

fn check_entry_options(options: &[Token<'_>]) -> Result<(), Fault> {
    let mut words = options.iter();
    while let Some((word, column)) = words.next() {
        if matches!(&**word, "nomatch" | "wildcard") {
            continue;
        }
        let (value, at) = words.next().ok_or_else(|| lacks(word, *column))?;
        let number = matches!(&**word, "timeout" | "packets" | "bytes");
        if number && value.parse::<u64>().is_err() {
            return Err((*at, format!("found {value:?}, expected a number")));
        }
    }
    Ok(())
}

fn lacks(word: &str, column: u32) -> Fault {
    (column, format!("found nothing after {word}, expected a value"))
}

/// Splits a line into words; a quoted string is one word.
pub(super) fn cut(line: &str) -> Result<Vec<Token<'_>>, Fault> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_start();
        let column = (line.len() - rest.len()) as u32 + 1;
        if rest.is_empty() {
            return Ok(words);
        }
        let (word, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted
                .split_once('"')
                .ok_or_else(|| (column, "found a quote without its end".to_owned()))?,
            None => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        if word.contains('"') {
            return Err((column, format!("found {word:?}, expected a quote to begin a word")));
        }
        words.push((Cow::Borrowed(word), column));
        rest = after;
    }
}
