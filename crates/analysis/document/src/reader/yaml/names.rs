//! Scans anchors and tags before values, and aliases.

use std::borrow::Cow;

use super::scan::Scanner;
use super::token::{Tag, TokenKind, trouble};
use crate::reader::Trouble;

impl<'a> Scanner<'a> {
    /// Scans `&name` or `*name`.
    pub(super) fn named(&mut self, kind: fn(&'a str) -> TokenKind<'a>) -> Result<(), Trouble> {
        self.add_candidate()?;
        self.may_be_key = false;
        let start = self.text.mark;
        self.text.skip();
        let from = self.text.mark.at;
        self.skip_word();
        let name = self.text.since(from);
        let ends = self.text.is_gap(0)
            || matches!(self.text.peek(), b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`');
        if name.is_empty() || !ends {
            let message = "expected a name of letters and digits after & or *";
            return Err(trouble(start, message).with_hint("does the text need quotes?"));
        }
        self.add(kind(name), start);
        Ok(())
    }

    pub(super) fn skip_word(&mut self) {
        while self.text.peek().is_ascii_alphanumeric() || matches!(self.text.peek(), b'_' | b'-') {
            self.text.skip();
        }
    }

    /// Scans a tag: `!!str`, `!other`, or `!<tag:yaml.org,2002:str>`.
    pub(super) fn tag(&mut self) -> Result<Tag<'a>, Trouble> {
        const CORE: &str = "tag:yaml.org,2002:";
        let start = self.text.mark;
        let broken = || trouble(start, "a tag that is not complete: expected one such as !!str");
        self.text.skip();
        let tag = if self.text.peek() == b'<' {
            self.text.skip();
            let from = self.text.mark.at;
            let whole = self.skip_uri();
            let uri = self.text.since(from);
            if uri.is_empty() || !whole || self.text.peek() != b'>' {
                return Err(broken());
            }
            self.text.skip();
            let uri = decoded(uri).ok_or_else(broken)?;
            match uri.strip_prefix(CORE) {
                None => Tag::Other,
                Some(core) => Tag::Core(core.to_owned().into()),
            }
        } else {
            let from = self.text.mark.at;
            self.skip_word();
            let handle = self.text.since(from);
            if self.text.peek() == b'!' {
                self.text.skip();
                let from = self.text.mark.at;
                let whole = self.skip_uri();
                let suffix =
                    decoded(self.text.since(from)).filter(|suffix| whole && !suffix.is_empty());
                match (handle, suffix.ok_or_else(broken)?) {
                    ("", suffix) => Tag::Core(suffix),
                    _ => Tag::Undeclared,
                }
            } else if self.skip_uri() && decoded(self.text.since(from)).is_some() {
                Tag::Other
            } else {
                return Err(broken());
            }
        };
        if !self.text.is_gap(0) {
            return Err(trouble(self.text.mark, "expected a blank after a tag"));
        }
        Ok(tag)
    }

    /// Skips a URI. Returns whether each `%` is followed by two hex digits.
    pub(super) fn skip_uri(&mut self) -> bool {
        let others = b";/?:@&=+$,.!~*'()[]%_-";
        while self.text.peek().is_ascii_alphanumeric() || others.contains(&self.text.peek()) {
            let digits = || (1..3).all(|at| self.text.ahead(at).is_ascii_hexdigit());
            if self.text.peek() == b'%' && !digits() {
                return false;
            }
            self.text.skip();
        }
        true
    }
}

/// Returns a URI with the bytes that its escapes (`%41`) stand for. `None` if it is not UTF-8 then.
fn decoded(uri: &str) -> Option<Cow<'_, str>> {
    if !uri.contains('%') {
        return Some(uri.into());
    }
    let mut bytes = Vec::with_capacity(uri.len());
    let mut rest = uri.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        bytes.push(*first);
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            *bytes.last_mut()? = u8::from_str_radix(digits, 16).ok()?;
            rest = &after[2..];
        }
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}
