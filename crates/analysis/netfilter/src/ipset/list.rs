//! Parses the output of `ipset list`: each set as a block of fields followed by its members.

use std::borrow::Cow;

use uturn_model::{Origin, SourceName};

use super::parse::{Fault, Reader, cut};
use crate::ParseError;

/// Whether a text starts like the output of `ipset list`.
pub(super) fn is_list(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| line.starts_with("Name:"))
}

/// The block being parsed.
struct Block<'a> {
    name: (Cow<'a, str>, u32),
    origin: Origin,
    kind: Option<&'a str>,
    /// The stated number of members.
    count: Option<usize>,
    found: usize,
    /// Whether the type is known and the members follow.
    has_members: bool,
}

/// Parses such a text into `reader`.
pub(super) fn read<'a>(reader: &mut Reader<'a>, file: &SourceName, text: &'a str) {
    let mut block: Option<Block<'a>> = None;
    for (line, number) in text.lines().zip(1u32..) {
        let origin = Origin::line_of(file.clone(), number);
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix("Name:") {
            end(reader, block.take());
            let name = (Cow::Borrowed(name.trim()), 7);
            if let Err((column, message)) = check_quotes(&name.0, name.1) {
                reader.fault(number, column, message);
                continue;
            }
            let (kind, count) = (None, None);
            block = Some(Block { name, origin, kind, count, found: 0, has_members: false });
            continue;
        }
        let Some(open) = &mut block else { continue };
        if let Err((column, message)) = field_or_member(reader, open, line, origin) {
            reader.fault(number, column, message);
        }
    }
    end(reader, block);
}

fn field_or_member<'a>(
    reader: &mut Reader<'a>,
    block: &mut Block<'a>,
    line: &'a str,
    origin: Origin,
) -> Result<(), Fault> {
    if block.has_members {
        let mut words = cut(line)?.into_iter();
        let Some(entry) = words.next() else { return Ok(()) };
        block.found += 1;
        return reader.add(block.name.clone(), entry, words.collect(), origin);
    }
    let (field, value) = line.split_once(':').unwrap_or((line, ""));
    let at = (line.len() - value.len()) as u32;
    match field.trim() {
        "Type" => {
            let kind = value.trim_start();
            check_quotes(kind.trim_end(), (line.len() - kind.len()) as u32 + 1)?;
            block.kind = Some(kind.trim_end());
        }
        "Header" => {
            let kind = block.kind.ok_or_else(|| {
                (1, format!("found no type of set {}, expected `Type:` before this", block.name.0))
            })?;
            let mut options = cut(value)?;
            options.iter_mut().for_each(|(_, column)| *column += at);
            reader.create(block.name.clone(), kind, options, block.origin.clone())?;
        }
        "Number of entries" => {
            let count = value.trim().parse();
            block.count =
                Some(count.map_err(|_| (at, format!("found {value:?}, expected a number")))?);
        }
        "Members" => {
            block.has_members = true;
            if !reader.has(&block.name.0) {
                let message =
                    format!("found no header of set {}, expected one before this", block.name.0);
                return Err((1, message));
            }
        }
        // Does not affect the contents.
        _ => {}
    }
    Ok(())
}

/// Refuses a quote in a name or a type, which `ipset save` does not escape: the name cannot be told from
/// a quoted one there.
fn check_quotes(word: &str, column: u32) -> Result<(), Fault> {
    if word.contains('"') {
        Err((column, format!("found {word:?}, expected no quote within it")))
    } else {
        Ok(())
    }
}

/// Reports a set with fewer members than stated: the text is incomplete.
fn end(reader: &mut Reader<'_>, block: Option<Block<'_>>) {
    let Some(block) = block else { return };
    let name = &block.name.0;
    let message = match block.count {
        _ if !block.has_members => {
            format!("set {name} is listed without its members (`ipset list -t`?): run `ipset save`")
        }
        Some(count) if count != block.found => {
            format!("set {name} has {count} entries, found {}: the list is cut", block.found)
        }
        _ => return,
    };
    reader.errors.push(ParseError::at(block.origin, message));
}
