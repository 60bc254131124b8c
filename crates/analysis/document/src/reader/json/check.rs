//! The first pass: checks whether a text is JSON, and finds the reason and place if it is not.

use std::borrow::Cow;
use std::rc::Rc;

use super::explain::{self, Failure, Repeated, What};
use super::scan::{plain, spaces, unescaped, wide};
use crate::reader::{DEPTH, ITEMS, KEYS, Trouble, repeated};

/// The number of repeated keys after which no more are sought: the source is given up then.
const REPEATED: usize = 50_000;

/// The result of the first pass.
pub(crate) struct Checked {
    /// The end of the valid part: values that end before it may be read.
    pub(crate) until: usize,
    /// Repeated keys, by place, followed by the failure that ended the pass.
    pub(crate) troubles: Vec<Trouble>,
    /// Shortcuts past mappings and lists.
    pub(super) jumps: Rc<Vec<Jump>>,
}

/// A shortcut past a mapping or list that is long and not deeply nested, which the second pass may
/// skip at once. Jumps are in the order in which their values begin.
#[derive(Debug, PartialEq)]
pub(super) struct Jump {
    pub(super) start: u32,
    pub(super) end: u32,
    /// The index of the first jump that begins after the end of this one.
    pub(super) next: u32,
    /// Line position at the end of the value; see [`super::tree::Cursor`].
    pub(super) line: u32,
    pub(super) line_start: u32,
    pub(super) wide: u32,
}

/// Shorter values, and values that are nested deeper, have no [`Jump`] and are skipped byte by
/// byte: of a whole cluster, jumps past every small value would be a third as long as its text.
const LONG: usize = 192;
const SHALLOW: usize = 12;

/// Checks the values of a text whose first line has number `line`. Several values may follow one
/// another.
pub(crate) fn check(text: &str, line: u32) -> Checked {
    let bytes = text.as_bytes();
    let mut checker = Checker {
        text,
        bytes,
        at: 0,
        line,
        line_start: 0,
        wide: 0,
        jumps: Vec::new(),
        keys: Vec::new(),
        repeated: Vec::new(),
        failure: None,
    };
    let mut until = 0;
    loop {
        checker.skip_blank();
        if checker.at == text.len() || checker.value(0).is_err() {
            break;
        }
        until = checker.at;
        if checker.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            checker.expected("a blank after a value");
            break;
        }
    }
    let troubles = explain::troubles(text, line, checker.repeated, checker.failure);
    Checked { until, troubles, jumps: Rc::new(checker.jumps) }
}

/// A marker that the pass has failed; [`Checker::failure`] has the reason.
struct Failed;

struct Checker<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// The current line: its number, its beginning, and the number of its bytes that do not begin a
    /// character.
    line: u32,
    line_start: usize,
    wide: usize,
    jumps: Vec<Jump>,
    /// The keys of all open mappings, innermost last: the places of the quotes.
    keys: Vec<(usize, usize)>,
    repeated: Vec<Repeated>,
    failure: Option<Failure>,
}

impl Checker<'_> {
    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    fn skip_blank(&mut self) {
        while let Some(byte @ (b' ' | b'\t' | b'\r' | b'\n')) = self.peek() {
            self.at += 1;
            if byte == b'\n' {
                (self.line_start, self.wide) = (self.at, 0);
                self.line = self.line.saturating_add(1);
                self.at += spaces(&self.bytes[self.at..]);
            }
        }
    }

    #[cold]
    fn fail(&mut self, at: usize, what: What, open: Option<(char, usize)>) -> Failed {
        self.failure = Some(Failure { at, what, open });
        Failed
    }

    fn expected(&mut self, what: &'static str) -> Failed {
        self.fail(self.at, What::Expected(what), None)
    }

    /// Fails like [`Self::expected`]; at the end of the file, the failure also names the bracket or
    /// quote that was left open.
    fn unclosed(&mut self, what: &'static str, open: char, opened: usize) -> Failed {
        let open = (self.at == self.bytes.len()).then_some((open, opened));
        self.fail(self.at, What::Expected(what), open)
    }

    fn value(&mut self, depth: usize) -> Result<(), Failed> {
        if depth > DEPTH {
            return Err(self.fail(self.at, What::Deep, None));
        }
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'{') => self.nested(depth, Self::map),
            Some(b'[') => self.nested(depth, Self::seq),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    /// Reads a mapping or a list, and records a jump past it.
    #[inline]
    fn nested(
        &mut self,
        depth: usize,
        read: impl Fn(&mut Self, usize) -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        if depth > SHALLOW {
            return read(self, depth);
        }
        let (start, first) = (self.at, self.jumps.len());
        let small = |number| u32::try_from(number).unwrap_or(u32::MAX);
        let jump = Jump { start: small(start), end: 0, next: 0, line: 0, line_start: 0, wide: 0 };
        self.jumps.push(jump);
        read(self, depth)?;
        let (end, next) = (small(self.at), small(self.jumps.len()));
        if self.at - start < LONG || end == u32::MAX || next == u32::MAX {
            self.jumps.truncate(first);
            return Ok(());
        }
        let (line_start, wide) = (small(self.line_start), small(self.wide));
        let jump = &mut self.jumps[first];
        *jump = Jump { start: jump.start, end, next, line: self.line, line_start, wide };
        Ok(())
    }

    fn word(&mut self) -> Result<(), Failed> {
        for word in ["null", "true", "false"] {
            if self.bytes[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(());
            }
        }
        Err(self.expected("a value"))
    }

    fn number(&mut self) -> Result<(), Failed> {
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
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Failed> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.expected("a digit")) } else { Ok(()) }
    }

    /// Reads a text. Returns whether there are escapes in the text.
    #[inline]
    fn string(&mut self) -> Result<bool, Failed> {
        let opened = self.at;
        self.at += 1;
        let mut escapes = false;
        loop {
            let rest = &self.bytes[self.at..];
            let (length, others) = plain(rest);
            if others {
                self.wide += wide(&rest[..length]);
            }
            self.at += length;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escapes);
                }
                Some(b'\\') => {
                    escapes = true;
                    self.escape()?;
                }
                Some(_) => return Err(self.expected("a text without line breaks and controls")),
                None => return Err(self.unclosed("the end of a text", '"', opened)),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Failed> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                let digits = self.bytes.get(self.at..self.at + 4);
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    return Err(self.expected("four hex digits after \\u"));
                }
                self.at += 4;
            }
            _ => return Err(self.expected("an escape such as \\n")),
        }
        Ok(())
    }

    fn seq(&mut self, depth: usize) -> Result<(), Failed> {
        let opened = self.at;
        self.at += 1;
        self.skip_blank();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        for count in 0.. {
            self.skip_blank();
            if self.at == self.bytes.len() {
                return Err(self.unclosed("a value", '[', opened));
            }
            if count >= ITEMS {
                return Err(self.fail(self.at, What::Endless("items", ITEMS), None));
            }
            self.value(depth + 1)?;
            self.skip_blank();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.unclosed("',' or ']'", '[', opened)),
            }
        }
        self.at += 1;
        Ok(())
    }

    fn map(&mut self, depth: usize) -> Result<(), Failed> {
        let opened = self.at;
        self.at += 1;
        self.skip_blank();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        let first = self.keys.len();
        // Keys of Kubernetes' JSON are usually sorted, so it suffices to compare each key with the
        // one before.
        let (mut sorted, mut before) = (true, (0, &b""[..]));
        loop {
            self.skip_blank();
            let start = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.unclosed("a key in quotes", '{', opened));
            }
            let escapes = self.string()?;
            let key = &self.bytes[start..self.at - 1];
            let this = (beginning(&self.bytes[start + 1..], key.len()), key);
            sorted = sorted && !escapes && before < this;
            before = this;
            self.keys.push((start, self.at));
            self.skip_blank();
            if self.peek() != Some(b':') {
                return Err(self.unclosed("':'", '{', opened));
            }
            self.at += 1;
            self.skip_blank();
            if self.at == self.bytes.len() {
                return Err(self.unclosed("a value", '{', opened));
            }
            self.value(depth + 1)?;
            if self.keys.len() - first > KEYS {
                return Err(self.fail(start, What::Endless("keys", KEYS), None));
            }
            self.skip_blank();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(self.unclosed("',' or '}'", '{', opened)),
            }
        }
        self.at += 1;
        if !sorted && self.repeated.len() < REPEATED {
            self.find_repeated(first);
        }
        self.keys.truncate(first);
        Ok(())
    }

    fn find_repeated(&mut self, first: usize) {
        let places = &self.keys[first..];
        let key = |(start, end): &(usize, usize)| unescaped(&self.text[start + 1..end - 1]);
        let keys: Vec<Cow<'_, str>> = places.iter().map(key).collect();
        let again = repeated(&keys);
        self.repeated.extend(again.iter().map(|(first, later)| {
            let ((start, end), (first, _)) = (places[*later], places[*first]);
            Repeated { start, end, first }
        }));
    }
}

/// Returns the first eight bytes of a key of this length as a number that sorts in the same order.
#[inline]
fn beginning(bytes: &[u8], length: usize) -> u64 {
    let Some(eight) = bytes.first_chunk() else { return 0 };
    let word = u64::from_be_bytes(*eight);
    if length < 8 { word & !(u64::MAX >> (length * 8)) } else { word }
}
