//! A JSON reader that keeps the place of every value.
//!
//! Written by hand because a value that is not understood is kept exactly as written, and each
//! rule records its line and column; serde_json reports places only in errors.

use std::borrow::Cow;

use uturn_model::{Origin, SourceName};

/// The maximum nesting of lists and objects.
const MAX_DEPTH: u16 = 96;

/// A value and its place.
#[derive(Clone, Debug)]
pub(super) struct Node<'a> {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) value: Json<'a>,
}

#[derive(Clone, Debug)]
pub(super) enum Json<'a> {
    Null,
    Bool(bool),
    /// A number as it was written.
    Number(&'a str),
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    Map(Vec<(Cow<'a, str>, Node<'a>)>),
}

impl<'a> Node<'a> {
    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn number<T: std::str::FromStr>(&self) -> Option<T> {
        match &self.value {
            Json::Number(number) => number.parse().ok(),
            _ => None,
        }
    }

    pub(super) fn list(&self) -> Option<&[Self]> {
        match &self.value {
            Json::List(list) => Some(list),
            _ => None,
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self.value, Json::Null)
    }

    /// The elements of a list; nft also writes a single value for a list of one.
    pub(super) fn many(&self) -> &[Self] {
        match &self.value {
            Json::List(list) => list,
            _ => std::slice::from_ref(self),
        }
    }

    pub(super) fn field(&self, name: &str) -> Option<&Self> {
        match &self.value {
            Json::Map(fields) => fields.iter().find(|(key, _)| key == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The only field of an object.
    pub(super) fn only(&self) -> Option<(&str, &Self)> {
        match &self.value {
            Json::Map(fields) => match fields.as_slice() {
                [(name, value)] => Some((name, value)),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn text_of(&self, name: &str) -> Option<&str> {
        self.field(name)?.text()
    }
}

/// The line starts of a text.
pub(super) struct Places {
    starts: Vec<usize>,
}

impl Places {
    pub(super) fn new(text: &str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect();
        Self { starts }
    }

    pub(super) fn origin(&self, source: &SourceName, at: usize) -> Origin {
        let line = self.starts.partition_point(|start| *start <= at).max(1);
        let column = (at - self.starts[line - 1] + 1) as u32;
        Origin::at(source.clone(), line as u32, column)
    }
}

/// Reads one JSON value; an error gives its byte offset and a message.
pub(super) fn read(text: &str) -> Result<Node<'_>, (usize, String)> {
    let mut reader = Reader { text, at: 0 };
    let node = reader.node(0)?;
    reader.skip_blank();
    if reader.at == text.len() { Ok(node) } else { Err(reader.wanted("the end of the text")) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

type Read<T> = Result<T, (usize, String)>;

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn wanted(&self, what: &str) -> (usize, String) {
        let found = match self.text[self.at..].chars().next() {
            Some(found) => format!("{found:?}"),
            None => "the end of the text: it is cut".to_owned(),
        };
        (self.at, format!("found {found}, expected {what}"))
    }

    fn node(&mut self, depth: u16) -> Read<Node<'a>> {
        self.skip_blank();
        let start = self.at;
        if depth > MAX_DEPTH {
            return Err((start, "lists within lists, too many".to_owned()));
        }
        let value = match self.peek() {
            Some(b'{') => self.map(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Json::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => {
                let rest = &self.text[start..];
                let part = |byte: &u8| b"+-.eE0123456789".contains(byte);
                self.at += rest.bytes().take_while(part).count();
                Json::Number(&self.text[start..self.at])
            }
            _ => self.word()?,
        };
        Ok(Node { start, end: self.at, value })
    }

    fn word(&mut self) -> Read<Json<'a>> {
        let words =
            [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))];
        for (word, value) in words {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.wanted("a value"))
    }

    /// Whether another element of a list or object follows; otherwise consumes its end.
    fn more(&mut self, first: bool, end: u8) -> Read<bool> {
        self.skip_blank();
        match self.peek() {
            Some(byte) if byte == end => {
                self.at += 1;
                Ok(false)
            }
            Some(b',') if !first => {
                self.at += 1;
                Ok(true)
            }
            _ if first => Ok(true),
            _ => Err(self.wanted(&format!("`,` or `{}`", end as char))),
        }
    }

    fn list(&mut self, depth: u16) -> Read<Json<'a>> {
        self.at += 1;
        let mut list = Vec::new();
        while self.more(list.is_empty(), b']')? {
            list.push(self.node(depth + 1)?);
        }
        Ok(Json::List(list))
    }

    fn map(&mut self, depth: u16) -> Read<Json<'a>> {
        self.at += 1;
        let mut fields = Vec::new();
        while self.more(fields.is_empty(), b'}')? {
            self.skip_blank();
            if self.peek() != Some(b'"') {
                return Err(self.wanted("a name in quotes"));
            }
            let name = self.string()?;
            self.skip_blank();
            if self.peek() != Some(b':') {
                return Err(self.wanted("`:`"));
            }
            self.at += 1;
            fields.push((name, self.node(depth + 1)?));
        }
        Ok(Json::Map(fields))
    }

    fn string(&mut self) -> Read<Cow<'a, str>> {
        self.at += 1;
        let start = self.at;
        let plain = |byte: &u8| !matches!(byte, b'"' | b'\\');
        self.at += self.text.as_bytes()[start..].iter().take_while(|byte| plain(byte)).count();
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(Cow::Borrowed(&self.text[start..self.at - 1]));
        }
        let mut text = self.text[start..self.at].to_owned();
        loop {
            let rest = &self.text[self.at..];
            let Some(next) = rest.chars().next() else {
                return Err(self.wanted("`\"`"));
            };
            self.at += next.len_utf8();
            match next {
                '"' => return Ok(Cow::Owned(text)),
                '\\' => text.push(self.escape()?),
                other => text.push(other),
            }
        }
    }

    fn escape(&mut self) -> Read<char> {
        let Some(kind) = self.peek() else { return Err(self.wanted("an escape")) };
        let plain = match kind {
            b'"' | b'\\' | b'/' => kind as char,
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => {
                let digits = self.text.get(self.at + 1..self.at + 5);
                let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
                let code = code.ok_or_else(|| self.wanted("four hexadecimal digits"))?;
                self.at += 5;
                return Ok(char::from_u32(code).unwrap_or('\u{fffd}'));
            }
            _ => return Err(self.wanted("an escape")),
        };
        self.at += 1;
        Ok(plain)
    }
}
