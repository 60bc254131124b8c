//! Scans anchors and tags before values, and aliases.

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

    fn skip_word(&mut self) {
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
            uri.strip_prefix(CORE).map_or(Tag::Other, |core| Tag::Core(core.into()))
        } else {
            let from = self.text.mark.at;
            self.skip_word();
            let handle = self.text.since(from);
            if self.text.peek() == b'!' {
                self.text.skip();
                let from = self.text.mark.at;
                let whole = self.skip_uri();
                match (handle, self.text.since(from)) {
                    (_, "") => return Err(broken()),
                    _ if !whole => return Err(broken()),
                    ("", suffix) => Tag::Core(suffix.into()),
                    _ => Tag::Undeclared,
                }
            } else if self.skip_uri() {
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
    fn skip_uri(&mut self) -> bool {
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
