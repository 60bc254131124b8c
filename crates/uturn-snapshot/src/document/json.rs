//! JSON, read in one pass with positions. Tabs are fine here.

use std::borrow::Cow;

use super::{DEPTH, Entry, ITEMS, KEYS, Node, Trouble, Value, without_repeated};

/// Reads the values of a text whose first line is number `line`; several may stand in a row.
pub(super) fn read<'a>(text: &'a str, line: u32, each: &mut dyn FnMut(Result<Node<'a>, Trouble>)) {
    let mut reader = Reader {
        text,
        at: 0,
        line,
        line_start: 0,
        wide: 0,
        troubles: Vec::new(),
        entries: Vec::new(),
        items: Vec::new(),
    };
    loop {
        reader.skip_blank();
        if reader.at == text.len() {
            return;
        }
        let result = reader.value(0);
        for trouble in reader.troubles.drain(..) {
            each(Err(trouble));
        }
        let failed = result.is_err();
        each(result);
        if failed {
            return;
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    line_start: usize,
    /// Bytes of this line that begin no character.
    wide: usize,
    troubles: Vec<Trouble>,
    /// Entries and items of what is still open, innermost last: each mapping and list is
    /// allocated once, when its size is known.
    entries: Vec<Entry<'a>>,
    items: Vec<Node<'a>>,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn position(&self) -> (u32, u32) {
        let column = self.at - self.line_start - self.wide + 1;
        (self.line, u32::try_from(column).unwrap_or(u32::MAX))
    }

    fn skip_blank(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b'\n' => {
                    self.line = self.line.saturating_add(1);
                    self.line_start = self.at + 1;
                    self.wide = 0;
                }
                b' ' | b'\t' | b'\r' => {}
                _ => return,
            }
            self.at += 1;
        }
    }

    fn trouble(&self, expected: &str) -> Trouble {
        let (line, column) = self.position();
        match self.text[self.at..].chars().next() {
            Some(found) => {
                Trouble::new(line, column, format!("expected {expected}, found {found:?}"))
            }
            None => Trouble::new(line, column, format!("the file ends where {expected} should be")),
        }
    }

    /// As [`Self::trouble`], and where the file ends, says what was left open.
    fn unclosed(&self, expected: &str, open: char, (line, column): (u32, u32)) -> Trouble {
        let trouble = self.trouble(expected);
        if self.at < self.text.len() {
            return trouble;
        }
        trouble.with_hint(format!(
            "is the file complete? the {open} at line {line}, column {column} is never closed"
        ))
    }

    fn value(&mut self, depth: usize) -> Result<Node<'a>, Trouble> {
        let (line, column) = self.position();
        if depth > DEPTH {
            let message = format!("nested more than {DEPTH} levels deep");
            return Err(Trouble::new(line, column, message));
        }
        let value = match self.peek() {
            Some(b'{') => self.map(depth)?,
            Some(b'[') => self.seq(depth)?,
            Some(b'"') => Value::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Node { line, column, value })
    }

    fn word(&mut self) -> Result<Value<'a>, Trouble> {
        let rest = &self.text[self.at..];
        let words = [
            ("null", Value::Null),
            ("true", Value::Bool(Cow::Borrowed("true"))),
            ("false", Value::Bool(Cow::Borrowed("false"))),
        ];
        for (word, value) in words {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.trouble("a value"))
    }

    fn number(&mut self) -> Result<Value<'a>, Trouble> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(Value::Number(Cow::Borrowed(&self.text[start..self.at])))
    }

    fn digits(&mut self) -> Result<(), Trouble> {
        let rest = &self.text.as_bytes()[self.at..];
        match rest.iter().take_while(|byte| byte.is_ascii_digit()).count() {
            0 => Err(self.trouble("a digit")),
            count => {
                self.at += count;
                Ok(())
            }
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Trouble> {
        let opened = self.position();
        self.at += 1;
        let mut start = self.at;
        let mut built: Option<String> = None;
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let length = rest
                .iter()
                .position(|byte| matches!(byte, b'"' | b'\\') || *byte < 0x20)
                .unwrap_or(rest.len());
            self.at += length;
            let piece = &self.text[start..self.at];
            if !piece.is_ascii() {
                self.wide += piece.bytes().filter(|byte| byte & 0xc0 == 0x80).count();
            }
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(match built {
                        Some(text) => Cow::Owned(text + piece),
                        None => Cow::Borrowed(piece),
                    });
                }
                Some(b'\\') => {
                    let text = built.get_or_insert_default();
                    text.push_str(piece);
                    let escaped = self.escape()?;
                    text.push(escaped);
                    start = self.at;
                }
                Some(_) => return Err(self.trouble("a text without line breaks and controls")),
                None => return Err(self.unclosed("the end of a text", '"', opened)),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Trouble> {
        self.at += 1;
        let escaped = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode();
            }
            _ => return Err(self.trouble("an escape such as \\n")),
        };
        self.at += 1;
        Ok(escaped)
    }

    /// Four hex digits, or two times four for a surrogate pair; half a pair is replaced.
    fn unicode(&mut self) -> Result<char, Trouble> {
        let first = self.hex()?;
        if (0xd800..0xdc00).contains(&first) && self.text[self.at..].starts_with("\\u") {
            let before = self.at;
            self.at += 2;
            let second = self.hex()?;
            if (0xdc00..0xe000).contains(&second) {
                let joined = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = before;
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex(&mut self) -> Result<u32, Trouble> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let value = digits.and_then(|digits| {
            digits.iter().try_fold(0, |sum, byte| Some(sum * 16 + char::from(*byte).to_digit(16)?))
        });
        match value {
            Some(value) => {
                self.at += 4;
                Ok(value)
            }
            None => Err(self.trouble("four hex digits after \\u")),
        }
    }

    fn seq(&mut self, depth: usize) -> Result<Value<'a>, Trouble> {
        let opened = self.position();
        self.at += 1;
        let first = self.items.len();
        self.skip_blank();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Seq(Vec::new()));
        }
        loop {
            self.skip_blank();
            if self.at == self.text.len() {
                return Err(self.unclosed("a value", '[', opened));
            }
            if self.items.len() - first >= ITEMS {
                let (line, column) = self.position();
                return Err(Trouble::endless(line, column, "items", ITEMS));
            }
            let item = self.value(depth + 1)?;
            self.items.push(item);
            self.skip_blank();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::Seq(self.items.drain(first..).collect()));
                }
                _ => return Err(self.unclosed("',' or ']'", '[', opened)),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value<'a>, Trouble> {
        let opened = self.position();
        self.at += 1;
        let first = self.entries.len();
        self.skip_blank();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Map(Vec::new()));
        }
        loop {
            self.skip_blank();
            let (line, column) = self.position();
            if self.peek() != Some(b'"') {
                return Err(self.unclosed("a key in quotes", '{', opened));
            }
            let key = self.string()?;
            self.skip_blank();
            if self.peek() != Some(b':') {
                return Err(self.unclosed("':'", '{', opened));
            }
            self.at += 1;
            self.skip_blank();
            if self.at == self.text.len() {
                return Err(self.unclosed("a value", '{', opened));
            }
            let value = self.value(depth + 1)?;
            if self.entries.len() - first >= KEYS {
                return Err(Trouble::endless(line, column, "keys", KEYS));
            }
            self.entries.push(Entry { key, line, column, value });
            self.skip_blank();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    let entries = self.entries.drain(first..).collect();
                    let say = &mut |trouble| self.troubles.push(trouble);
                    return Ok(Value::Map(without_repeated(entries, say)));
                }
                _ => return Err(self.unclosed("',' or '}'", '{', opened)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Node, Trouble, Value};

    fn read(text: &str) -> Result<Vec<Node<'_>>, Trouble> {
        let mut read = Ok(Vec::new());
        super::read(text, 1, &mut |one| match (&mut read, one) {
            (Ok(nodes), Ok(node)) => nodes.push(node),
            (Ok(_), Err(trouble)) => read = Err(trouble),
            _ => {}
        });
        read
    }

    fn as_serde(node: &Node<'_>) -> serde_json::Value {
        match &node.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(word) => (word == "true").into(),
            // serde_json's own way back from text is not exact.
            Value::Number(text) => match text.parse::<i64>() {
                Ok(whole) => whole.into(),
                Err(_) => text.parse::<f64>().unwrap().into(),
            },
            Value::String(text) => (&**text).into(),
            Value::Seq(items) => items.iter().map(as_serde).collect(),
            Value::Map(entries) => {
                entries.iter().map(|one| (one.key.to_string(), as_serde(&one.value))).collect()
            }
        }
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<f64>()
                .prop_filter("JSON has no others", |one| one.is_finite())
                .prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::vec((any::<String>(), inner), 0..6)
                    .prop_map(|pairs| pairs.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_serde_json_writes_is_read_alike(value in json(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let nodes = read(text.as_ref().unwrap()).unwrap();
            prop_assert_eq!(nodes.len(), 1);
            prop_assert_eq!(as_serde(&nodes[0]), value);
        }

        #[test]
        fn what_serde_json_refuses_is_refused(text in "[-{}\\[\\]:,\" \n0-9.eE+a\\\\untrlfs]{0,24}") {
            let strict: Result<Vec<serde_json::Value>, _> =
                serde_json::Deserializer::from_str(&text).into_iter().collect();
            // Ours also refuses repeated keys, which serde_json lets win.
            if read(&text).is_ok() {
                let halves = strict.is_err() && text.contains("\\u");
                prop_assert!(strict.is_ok() || halves || text.contains(['e', 'E']), "{:?}", strict);
            }
        }
    }

    #[test]
    fn places_count_characters() {
        let nodes = read("{\"ä\": \"öü\",\n  \"b\": [1, \"ß\", 2]} true").unwrap();
        let Value::Map(entries) = &nodes[0].value else { panic!() };
        assert_eq!((entries[0].value.line, entries[0].value.column), (1, 7));
        let Value::Seq(items) = &entries[1].value.value else { panic!() };
        let places: Vec<_> = items.iter().map(|one| (one.line, one.column)).collect();
        assert_eq!(places, [(2, 9), (2, 12), (2, 17)]);
        assert_eq!((nodes[1].line, nodes[1].column), (2, 21));
    }
}
