//! The second pass: builds nodes of the wanted values. The text is known to be JSON.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::rc::Rc;

use super::check::{Checked, Jump};
use super::scan::{plain, spaces, unescaped, wide};
use crate::reader::{Entry, Fields, Keep, Node, Value, with_last_of_repeated};

/// Reads the values of a text whose first line has number `line`, up to the end of the valid part.
pub(crate) fn read<'a>(
    text: &'a str,
    line: u32,
    checked: &Checked,
    keep: Keep,
    each: &mut dyn FnMut(Node<'a>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let cursor = Cursor { at: 0, line, line_start: 0, wide: 0, jump: 0 };
    let text = &text[..checked.until];
    let jumps = Rc::clone(&checked.jumps);
    let mut reader = Reader::new(text, jumps, cursor, checked.troubles.is_empty());
    loop {
        reader.skip_blank();
        if reader.cursor.at >= text.len() {
            return ControlFlow::Continue(());
        }
        each(reader.document(keep, false))?;
    }
}

/// The items of a List. Each item is read only when it is visited, and then dropped.
#[derive(Clone, Debug, PartialEq)]
pub struct Items<'a> {
    text: &'a str,
    jumps: Rc<Vec<Jump>>,
    cursor: Cursor,
    distinct: bool,
    fields: &'static Fields,
}

impl<'a> Items<'a> {
    /// Reads the items until `each` breaks. `whole` means that all fields of items without an
    /// `apiVersion` are kept.
    pub fn each(
        &self,
        whole: bool,
        each: &mut dyn FnMut(&Node<'a>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let jumps = Rc::clone(&self.jumps);
        let mut reader = Reader::new(self.text, jumps, self.cursor, self.distinct);
        reader.enter();
        loop {
            reader.skip_blank();
            match reader.peek() {
                None | Some(b']') => return ControlFlow::Continue(()),
                Some(b',') => reader.cursor.at += 1,
                Some(_) => each(&reader.document(Keep::Wanted(self.fields), whole))?,
            }
        }
    }
}

/// The position of a reader.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cursor {
    at: usize,
    line: u32,
    line_start: usize,
    /// The number of bytes of this line that do not begin a character.
    wide: usize,
    /// The index of the next jump.
    jump: usize,
}

/// The part of a mapping that is kept.
#[derive(Clone, Copy)]
enum Part {
    /// Like [`Self::Wanted`], for an object: if it is a List, its items are read later.
    Object(&'static Fields),
    Wanted(&'static Fields),
    All,
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    jumps: Rc<Vec<Jump>>,
    cursor: Cursor,
    /// Whether no mapping repeats a key.
    distinct: bool,
    /// The entries and items of all open mappings and lists, innermost last: each mapping and list
    /// is allocated once, when its size is known.
    entries: Vec<Entry<'a>>,
    items: Vec<Node<'a>>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, jumps: Rc<Vec<Jump>>, cursor: Cursor, distinct: bool) -> Self {
        let (bytes, entries, items) = (text.as_bytes(), Vec::new(), Vec::new());
        Self { text, bytes, jumps, cursor, distinct, entries, items }
    }

    /// Reads a document, or an item of a List. `whole` means that it is kept whole if it has no
    /// `apiVersion`.
    fn document(&mut self, keep: Keep, whole: bool) -> Node<'a> {
        let start = self.cursor;
        let (node, fields) = match keep {
            Keep::All => return self.value(Part::All),
            Keep::Wanted(fields) => (self.value(Part::Object(fields)), fields),
        };
        let is_whole = match node.get("apiVersion") {
            Some(version) => version.as_str().is_some_and(|version| fields.keeps_whole(version)),
            None => whole,
        };
        if !is_whole {
            return node;
        }
        self.cursor = start;
        self.value(Part::All)
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.cursor.at).copied()
    }

    fn position(&self) -> (u32, u32) {
        let Cursor { at, line, line_start, wide, .. } = self.cursor;
        (line, u32::try_from(at - line_start - wide + 1).unwrap_or(u32::MAX))
    }

    #[inline]
    fn skip_blank(&mut self) {
        while let Some(byte @ (b' ' | b'\t' | b'\r' | b'\n')) = self.peek() {
            self.cursor.at += 1;
            if byte == b'\n' {
                self.new_line();
            }
        }
    }

    fn new_line(&mut self) {
        let Cursor { at, line, jump, .. } = self.cursor;
        let spaces = spaces(&self.bytes[at..]);
        let line = line.saturating_add(1);
        self.cursor = Cursor { at: at + spaces, line, line_start: at, wide: 0, jump };
    }

    fn value(&mut self, part: Part) -> Node<'a> {
        let (line, column) = self.position();
        let value = match self.peek() {
            Some(b'{') => self.map(part),
            Some(b'[') => self.seq(part),
            Some(b'"') => Value::String(self.string()),
            _ => self.scalar(),
        };
        Node { line, column, value }
    }

    /// Reads a number or a word.
    fn scalar(&mut self) -> Value<'a> {
        let start = self.cursor.at;
        self.skip_scalar();
        let text = Cow::Borrowed(&self.text[start..self.cursor.at]);
        match text.as_bytes().first() {
            Some(b't' | b'f') => Value::Bool(text),
            Some(b'n') | None => Value::Null,
            Some(_) => Value::Number(text),
        }
    }

    fn skip_scalar(&mut self) {
        let inside = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        while self.bytes.get(self.cursor.at).is_some_and(inside) {
            self.cursor.at += 1;
        }
    }

    fn string(&mut self) -> Cow<'a, str> {
        let start = self.cursor.at + 1;
        if self.skip_string() {
            unescaped(&self.text[start..self.cursor.at - 1])
        } else {
            Cow::Borrowed(&self.text[start..self.cursor.at - 1])
        }
    }

    /// Skips a text. Returns whether there were escapes in the text.
    #[inline]
    fn skip_string(&mut self) -> bool {
        let mut escapes = false;
        self.cursor.at += 1;
        loop {
            let rest = &self.bytes[self.cursor.at..];
            let (length, others) = plain(rest);
            if others {
                self.cursor.wide += wide(&rest[..length]);
            }
            self.cursor.at += length + 1;
            if rest.get(length) != Some(&b'\\') {
                return escapes;
            }
            escapes = true;
            self.cursor.at += 1;
        }
    }

    /// Skips a value.
    fn skip(&mut self) {
        match self.peek() {
            Some(b'"') => drop(self.skip_string()),
            Some(b'{' | b'[') => self.skip_nested(),
            _ => self.skip_scalar(),
        }
    }

    /// Returns the jump past the mapping or list that begins here.
    #[inline]
    fn jump(&self) -> Option<&Jump> {
        self.jumps.get(self.cursor.jump).filter(|jump| jump.start as usize == self.cursor.at)
    }

    /// Enters a mapping or list.
    #[inline]
    fn enter(&mut self) {
        self.cursor.jump += usize::from(self.jump().is_some());
        self.cursor.at += 1;
    }

    fn skip_nested(&mut self) {
        if let Some(jump) = self.jump() {
            self.cursor = Cursor {
                at: jump.end as usize,
                line: jump.line,
                line_start: jump.line_start as usize,
                wide: jump.wide as usize,
                jump: jump.next as usize,
            };
            return;
        }
        let mut open = 0;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.skip_string();
                    continue;
                }
                b'{' | b'[' => open += 1,
                b'}' | b']' => open -= 1,
                _ => {}
            }
            self.cursor.at += 1;
            if byte == b'\n' {
                self.new_line();
            } else if open == 0 {
                return;
            }
        }
    }

    fn seq(&mut self, part: Part) -> Value<'a> {
        let part = match part {
            Part::Object(fields) | Part::Wanted(fields) => Part::Wanted(fields),
            Part::All => Part::All,
        };
        let first = self.items.len();
        self.enter();
        loop {
            self.skip_blank();
            match self.peek() {
                None | Some(b']') => break,
                Some(b',') => self.cursor.at += 1,
                Some(_) => {
                    let item = self.value(part);
                    self.items.push(item);
                }
            }
        }
        self.cursor.at += 1;
        Value::Seq(self.items.drain(first..).collect())
    }

    fn map(&mut self, part: Part) -> Value<'a> {
        let first = self.entries.len();
        self.enter();
        loop {
            self.skip_blank();
            match self.peek() {
                Some(b'"') => self.entry(part),
                Some(b',') => self.cursor.at += 1,
                _ => break,
            }
        }
        self.cursor.at += 1;
        let entries: Vec<Entry<'a>> = self.entries.drain(first..).collect();
        Value::Map(if self.distinct { entries } else { with_last_of_repeated(entries, &mut drop) })
    }

    fn entry(&mut self, part: Part) {
        let (line, column) = self.position();
        let key = self.string();
        self.skip_blank();
        self.cursor.at += 1;
        self.skip_blank();
        let within = match part {
            Part::All => Part::All,
            Part::Object(fields) | Part::Wanted(fields) => {
                if !fields.has(&key) {
                    return self.skip();
                }
                if fields.is_open(&key) { Part::All } else { Part::Wanted(fields) }
            }
        };
        let value = match part {
            Part::Object(fields) if key == "items" && self.peek() == Some(b'[') => {
                self.items_of_list(fields)
            }
            _ => self.value(within),
        };
        self.entries.push(Entry { key, line, column, value });
    }

    /// Skips the items of a List, which are read when they are visited.
    fn items_of_list(&mut self, fields: &'static Fields) -> Node<'a> {
        let (line, column) = self.position();
        let (text, cursor, distinct) = (self.text, self.cursor, self.distinct);
        let items = Items { text, jumps: Rc::clone(&self.jumps), cursor, distinct, fields };
        self.skip_nested();
        Node { line, column, value: Value::Items(Box::new(items)) }
    }
}
