//! Edits documents in their text: everything else stays unchanged, including comments, so that a
//! diff shows only the edit.
//!
//! An edit names a place by keys and list positions, and its new value. The edited text is then
//! read like any other text.

mod span;
mod tree;

use crate::reader::yaml::Style;
use crate::yaml;
use span::{Spanned, What};

pub use tree::Tree;

/// A step of the path to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// The value of this key in a mapping.
    Key(String),
    /// An item of a list, from 0.
    Item(usize),
    /// The item of a list whose key has this text or number.
    Where(String, String),
}

impl From<&str> for At {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<String> for At {
    fn from(key: String) -> Self {
        Self::Key(key)
    }
}

impl From<usize> for At {
    fn from(at: usize) -> Self {
        Self::Item(at)
    }
}

/// The change to make at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Sets the value; missing mappings on the way are created.
    Set(Tree),
    /// Appends an item to a list.
    Append(Tree),
    /// Inserts an item at the beginning of a list.
    Prepend(Tree),
    /// Inserts a line into a text before the line with this number, from 0.
    Line(usize, String),
    /// Replaces the line of a text with this number, from 0.
    Replace(usize, String),
    /// Removes the entry or item, with its key.
    Remove,
}

/// The reason why an edit cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub &'static str);

/// Applies one change to a document's text.
///
/// # Errors
/// Returns an error if the text cannot be read, if the place does not exist or cannot hold the
/// value, or if the place is reached through an alias.
pub fn apply(text: &str, path: &[At], change: &Change) -> Result<String, Refused> {
    let root = span::parse(text).ok_or(Refused("its document cannot be read alone"))?;
    let strict = text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']);
    Text { text, strict }.at(&root, None, path, change)
}

/// Returns the text at a place of a document. `None` if there is none.
pub fn text_at(text: &str, path: &[At]) -> Option<String> {
    let root = span::parse(text)?;
    let mut node = &root;
    for step in path {
        node = step_into(node, step)?;
    }
    node.text().map(str::to_owned)
}

/// Returns the number of items at a place of a document, zero if it is not a list. `None` if the
/// place does not exist.
pub fn items_at(text: &str, path: &[At]) -> Option<usize> {
    let root = span::parse(text)?;
    let mut node = &root;
    for step in path {
        node = step_into(node, step)?;
    }
    Some(node.items().len())
}

fn step_into<'n>(node: &'n Spanned, step: &At) -> Option<&'n Spanned> {
    match step {
        At::Key(key) => node.get(key),
        At::Item(at) => node.items().get(*at),
        At::Where(key, wanted) => {
            node.items().iter().find(|item| item.get(key).and_then(Spanned::text) == Some(wanted))
        }
    }
}

struct Text<'t> {
    text: &'t str,
    strict: bool,
}

impl Text<'_> {
    /// Applies the change at the end of the path. `key_end` is the end of this value's key.
    fn at(
        &self,
        node: &Spanned,
        key_end: Option<usize>,
        path: &[At],
        change: &Change,
    ) -> Result<String, Refused> {
        if matches!(node.what, What::Alias) {
            return Err(Refused("the place is an alias: the edit would change other places too"));
        }
        let Some((step, rest)) = path.split_first() else {
            return self.here(node, key_end, change);
        };
        if rest.is_empty() && *change == Change::Remove {
            return self.remove(node, key_end, step);
        }
        if let At::Key(key) = step
            && let What::Map { entries, .. } = &node.what
            && let Some(pair) = entries.iter().find(|entry| entry.key == *key)
        {
            return self.at(&pair.value, Some(pair.key_end), rest, change);
        }
        if let Some(inner) = step_into(node, step) {
            return self.at(inner, None, rest, change);
        }
        let value = wanted(rest, change).ok_or(Refused("there is nothing to change"))?;
        match (step, &node.what) {
            (At::Key(key), What::Map { .. }) => self.insert_pair(node, key, &value),
            (At::Key(key), _) if node.is_null() => {
                let made = Tree::Map(vec![(key.clone(), value)]);
                self.replace(node, key_end, &made)
            }
            (At::Where(key, text), What::Seq { .. }) => {
                let made = with_key(value, key, text);
                self.insert_item(node, node.items().len(), &made)
            }
            (At::Item(_), What::Seq { items, .. }) => self.insert_item(node, items.len(), &value),
            _ => Err(Refused("the place holds another kind of value")),
        }
    }

    fn here(
        &self,
        node: &Spanned,
        key_end: Option<usize>,
        change: &Change,
    ) -> Result<String, Refused> {
        match (change, &node.what) {
            (Change::Set(tree), _) => self.replace(node, key_end, tree),
            (Change::Append(tree), What::Seq { items, .. }) => {
                self.insert_item(node, items.len(), tree)
            }
            (Change::Prepend(tree), What::Seq { .. }) => self.insert_item(node, 0, tree),
            (Change::Append(tree) | Change::Prepend(tree), _) if node.is_null() => {
                self.replace(node, key_end, &Tree::List(vec![tree.clone()]))
            }
            (Change::Line(at, line), What::Scalar { text, .. }) => {
                let mut all: Vec<&str> = text.lines().collect();
                all.insert((*at).min(all.len()), line);
                self.replace(node, key_end, &Tree::Text(joined(&all, text)))
            }
            (Change::Replace(at, line), What::Scalar { text, .. }) => {
                let mut all: Vec<&str> = text.lines().collect();
                *all.get_mut(*at).ok_or(Refused("there is no such line"))? = line;
                self.replace(node, key_end, &Tree::Text(joined(&all, text)))
            }
            _ => Err(Refused("the place holds another kind of value")),
        }
    }

    /// Replaces a value.
    fn replace(
        &self,
        node: &Spanned,
        key_end: Option<usize>,
        tree: &Tree,
    ) -> Result<String, Refused> {
        if let (What::Scalar { style: Style::Literal, .. }, Tree::Text(text)) = (&node.what, tree)
            && yaml::is_lines(text)
        {
            let first = self.line_start(node.start);
            let indent = node.start - first;
            let last = self.text[..node.end].trim_end().len();
            let new = yaml::lines(text, indent);
            return Ok(self.splice(first, last, new.trim_end_matches('\n')));
        }
        let in_place =
            matches!(
                &node.what,
                What::Scalar { style, text } if !text.is_empty()
                    && !matches!(style, Style::Literal | Style::Folded)
            ) || matches!(&node.what, What::Seq { flow: true, .. } | What::Map { flow: true, .. });
        if in_place {
            return Ok(self.splice(node.start, node.end, &tree.flow(self.strict)));
        }
        // A value below its key, or a missing one, is written after the key.
        let key_end = key_end.ok_or(Refused("there is no value in this place"))?;
        let colon = self.text[key_end..].find(':').ok_or(Refused("the place has no key"))?;
        let from = key_end + colon + 1;
        let to =
            if node.is_null() { from } else { self.text[..node.end].trim_end().len().max(from) };
        Ok(self.splice(from, to, &format!(" {}", tree.flow(self.strict))))
    }

    /// Removes an entry of a mapping or an item of a list. The last one leaves an empty collection.
    fn remove(&self, node: &Spanned, key_end: Option<usize>, step: &At) -> Result<String, Refused> {
        const ABSENT: Refused = Refused("there is nothing to remove");
        let (flow, all): (bool, Vec<(usize, usize)>) = match &node.what {
            What::Map { flow, entries } => {
                let range = |own: &span::Pair| (own.key_start, own.value.end.max(own.key_end));
                (*flow, entries.iter().map(range).collect())
            }
            What::Seq { flow, items } => {
                (*flow, items.iter().map(|item| (item.start, item.end)).collect())
            }
            _ => return Err(ABSENT),
        };
        let at = match (step, &node.what) {
            (At::Key(key), What::Map { entries, .. }) => {
                entries.iter().rposition(|entry| entry.key == *key)
            }
            (At::Item(at), What::Seq { .. }) => Some(*at),
            (At::Where(key, wanted), What::Seq { items, .. }) => {
                items.iter().position(|item| item.get(key).and_then(Spanned::text) == Some(wanted))
            }
            _ => None,
        };
        let at = at.ok_or(ABSENT)?;
        let (start, end) = *all.get(at).ok_or(ABSENT)?;
        if all.len() == 1 {
            let empty = match node.what {
                What::Map { .. } => Tree::Map(Vec::new()),
                _ => Tree::List(Vec::new()),
            };
            return self.replace(node, key_end, &empty);
        }
        if flow {
            return Ok(match (all.get(at + 1), at.checked_sub(1)) {
                (Some((next, _)), _) => self.splice(start, *next, ""),
                (None, Some(before)) => self.splice(all[before].1, end, ""),
                (None, None) => return Err(ABSENT),
            });
        }
        let is_item = matches!(node.what, What::Seq { .. });
        let from = if is_item {
            self.text[..start].rfind('-').ok_or(Refused("a list without dashes"))?
        } else {
            start
        };
        let line = self.line_start(from);
        if self.text[line..from].trim().is_empty() {
            let last = self.text[..end].trim_end().len().max(from);
            let after = self.text[last..].find('\n').map_or(self.text.len(), |at| last + at + 1);
            return Ok(self.splice(line, after, ""));
        }
        // The first entry of a list's item is on the line of the dash.
        match all.get(at + 1) {
            Some((next, _)) if !is_item => Ok(self.splice(start, *next, "")),
            _ => Err(Refused("the place shares its line with another")),
        }
    }

    fn insert_pair(&self, map: &Spanned, key: &str, value: &Tree) -> Result<String, Refused> {
        let What::Map { flow, entries } = &map.what else {
            return Err(Refused("the place holds another kind of value"));
        };
        if !flow && let Some(first) = entries.first() {
            let indent = first.key_start - self.line_start(first.key_start);
            return Ok(
                self.after_line(map.end, &yaml::entry(key, value, indent, yaml::Style::MANIFEST))
            );
        }
        let made = format!("{}: {}", yaml::word(key, self.strict), value.flow(self.strict));
        let last =
            entries.last().map(|entry| (entry.key_start, entry.value.end.max(entry.key_end)));
        Ok(self.add_in_brackets(map, last, &made))
    }

    fn insert_item(&self, seq: &Spanned, at: usize, value: &Tree) -> Result<String, Refused> {
        let What::Seq { flow, items } = &seq.what else {
            return Err(Refused("the place holds another kind of value"));
        };
        if !flow && let Some(neighbour) = items.get(at).or(items.last()) {
            let dash = self.text[..neighbour.start].trim_end().len();
            let dash = self.text[..dash].rfind('-').ok_or(Refused("a list without dashes"))?;
            let first = self.line_start(dash);
            let made = yaml::item(value, dash - first, yaml::Style::MANIFEST);
            return Ok(if at < items.len() {
                self.splice(first, first, &made)
            } else {
                self.after_line(seq.end, &made)
            });
        }
        let made = value.flow(self.strict);
        if let Some(following) = items.get(at) {
            let between = self.text[..following.start].trim_end().len();
            let blank = &self.text[between..following.start];
            let comma = if blank.is_empty() { " " } else { blank };
            return Ok(self.splice(following.start, following.start, &format!("{made},{comma}")));
        }
        Ok(self.add_in_brackets(seq, items.last().map(|item| (item.start, item.end)), &made))
    }

    /// Adds an item or entry to a flow collection, on a new line if the last one is on its own
    /// line.
    fn add_in_brackets(&self, all: &Spanned, last: Option<(usize, usize)>, made: &str) -> String {
        let Some((start, end)) = last else {
            return self.splice(all.start + 1, all.end - 1, made);
        };
        let line = self.line_start(start);
        let before = &self.text[line..start];
        let blank = if before.trim().is_empty() && line > all.start {
            format!("\n{before}")
        } else {
            " ".to_owned()
        };
        self.splice(end, end, &format!(",{blank}{made}"))
    }

    /// Inserts lines after the line that contains the end of the text before `end`.
    fn after_line(&self, end: usize, made: &str) -> String {
        let end = self.text[..end].trim_end().len();
        match self.text[end..].find('\n') {
            Some(at) => self.splice(end + at + 1, end + at + 1, made),
            None => {
                let mut text = self.text.trim_end().to_owned();
                text.push('\n');
                text.push_str(made);
                text
            }
        }
    }

    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |end| end + 1)
    }

    fn splice(&self, from: usize, to: usize, new: &str) -> String {
        format!("{}{new}{}", &self.text[..from], &self.text[to..])
    }
}

fn joined(lines: &[&str], like: &str) -> String {
    let end = if like.ends_with('\n') { "\n" } else { "" };
    format!("{}{end}", lines.join("\n"))
}

/// Returns the value that is created at the first step of the path that does not exist.
fn wanted(rest: &[At], change: &Change) -> Option<Tree> {
    let Some((step, rest)) = rest.split_first() else {
        return match change {
            Change::Set(tree) => Some(tree.clone()),
            Change::Append(tree) | Change::Prepend(tree) => Some(Tree::List(vec![tree.clone()])),
            Change::Line(..) | Change::Replace(..) | Change::Remove => None,
        };
    };
    let inner = wanted(rest, change)?;
    Some(match step {
        At::Key(key) => Tree::Map(vec![(key.clone(), inner)]),
        At::Item(_) => Tree::List(vec![inner]),
        At::Where(key, text) => Tree::List(vec![with_key(inner, key, text)]),
    })
}

fn with_key(value: Tree, key: &str, text: &str) -> Tree {
    let known = match text.parse::<u64>() {
        Ok(_) => Tree::bare(text),
        Err(_) => Tree::text(text),
    };
    match value {
        Tree::Map(mut entries) => {
            if entries.iter().all(|(known, _)| known != key) {
                entries.insert(0, (key.to_owned(), known));
            }
            Tree::Map(entries)
        }
        _ => Tree::Map(vec![(key.to_owned(), known)]),
    }
}

#[cfg(test)]
mod tests;
