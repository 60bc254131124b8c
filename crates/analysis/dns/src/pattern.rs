//! Regular expressions with Go's syntax.
//!
//! `regex-lite` matches by the same rules (leftmost, first alternative), but its syntax differs
//! in places. An expression that Go would read differently is refused, and the answer is then
//! unknown. Names are ASCII here, so other scripts make no difference.

use std::cell::Cell;

use regex_lite::Regex;

/// A regular expression and its text.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    pub(crate) text: String,
}

/// The reason why there is no [`Pattern`] for an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// Go refuses the expression, for this reason.
    Invalid(&'static str),
    /// The two engines may read the expression differently, or matching takes too much work.
    Unmodelled,
}

const NO_OPERAND: Unread = Unread::Invalid("a repetition has nothing to repeat");
const REPEATED_TWICE: Unread = Unread::Invalid("a repetition of a repetition");

/// The maximum number of steps of an expression for each byte of a name.
const MAX_STEPS: usize = 2_000;

/// The maximum number of steps of all expressions of a Corefile for each byte of a name.
const MAX_STEPS_TOGETHER: usize = 10_000;

/// The maximum size of a replacement in bytes: groups that contain further numbers of groups could
/// make it grow without end.
const MAX_EXPANDED: usize = 64 << 10;

/// The number of steps that are left for further expressions of a Corefile.
#[derive(Debug)]
pub(crate) struct PatternRoom(Cell<usize>);

impl Default for PatternRoom {
    fn default() -> Self {
        Self(Cell::new(MAX_STEPS_TOGETHER))
    }
}

impl Pattern {
    /// Parses an expression. Fails if it may mean something different in Go, or if too few steps
    /// are left.
    pub(crate) fn new(text: &str, room: &PatternRoom) -> Result<Self, Unread> {
        means_the_same(text)?;
        let steps = steps(text);
        let left = room.0.get().checked_sub(steps).filter(|_| steps <= MAX_STEPS);
        room.0.set(left.ok_or(Unread::Unmodelled)?);
        let regex = Regex::new(text).map_err(|_| Unread::Unmodelled)?;
        Ok(Self { regex, text: text.to_owned() })
    }

    /// Returns the number of groups.
    pub(crate) fn groups(&self) -> usize {
        self.regex.captures_len() - 1
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        self.regex.is_match(name)
    }

    /// Returns the match, and each group by number and name. A group that did not participate is
    /// empty.
    pub(crate) fn find(&self, name: &str) -> Option<Vec<(Option<&str>, String)>> {
        let found = self.regex.captures(name)?;
        let texts =
            found.iter().map(|group| group.map_or(String::new(), |group| group.as_str().into()));
        Some(self.regex.capture_names().zip(texts).collect())
    }

    /// Replaces `{1}` in `template` by the first group, and so on. Returns `None` without a match.
    pub(crate) fn expand(&self, name: &str, template: &str) -> Option<String> {
        let groups = self.find(name)?;
        let mut text = template.to_owned();
        for (number, (_, group)) in groups.iter().enumerate() {
            text = text.replace(&format!("{{{number}}}"), group);
            if text.len() > MAX_EXPANDED {
                break;
            }
        }
        Some(text)
    }
}

/// Returns the maximum number of steps of an expression for each byte, if [`means_the_same`] holds
/// for the expression: its length with all repetitions written out.
fn steps(text: &str) -> usize {
    let bytes = text.as_bytes();
    // `open` has the steps before each open group; `before` and `item` are the steps before the
    // last item of the innermost group, and of that item.
    let (mut open, mut before, mut item) = (Vec::new(), 0_usize, 0_usize);
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        let mut length = 1;
        let mut next = 1;
        match bytes[at] {
            b'(' => {
                open.push(before.saturating_add(item));
                (before, item) = (0, 0);
            }
            b')' => {
                next = before.saturating_add(item).saturating_add(2);
                (before, item) = (open.pop().unwrap_or_default(), 0);
            }
            b'*' | b'+' | b'?' => (item, next) = (item.saturating_add(2), 0),
            b'{' => {
                let end = rest.find('}').unwrap_or(rest.len() - 1);
                let counts = rest[1..end].split(',').filter_map(|count| count.parse().ok());
                let most = counts.max().unwrap_or(1_usize);
                (item, next, length) = (item.saturating_mul(most.saturating_add(1)), 0, end + 1);
            }
            b'\\' => length = 2,
            b'[' => {
                length = class(rest).unwrap_or(1);
                // A longer class is searched in a few more steps.
                next = 1 + length / 8;
            }
            _ => {}
        }
        if next > 0 {
            (before, item) = (before.saturating_add(item), next);
        }
        at += length;
    }
    before.saturating_add(item)
}

/// Fails unless Go reads the expression the same way.
fn means_the_same(text: &str) -> Result<(), Unread> {
    if !text.is_ascii() {
        return Err(Unread::Unmodelled);
    }
    let bytes = text.as_bytes();
    let mut at = 0;
    // The item to which a following repetition would apply.
    let mut before = Before::Nothing;
    let mut open = 0_usize;
    while at < bytes.len() {
        let rest = &text[at..];
        let was = std::mem::replace(&mut before, Before::Operand);
        match bytes[at] {
            b'\\' => {
                let Some(next) = bytes.get(at + 1) else { return Err(Unread::Unmodelled) };
                let plain = b"dDsSwWbBAzaftnrv";
                if next.is_ascii_alphanumeric() && !plain.contains(next)
                    || matches!(next, b'<' | b'>')
                {
                    return Err(Unread::Unmodelled);
                }
                // For Go, `\b{start}` repeats an empty expression.
                if rest[2..].starts_with('{') && matches!(next, b'b' | b'B') {
                    return Err(Unread::Unmodelled);
                }
                at += 2;
            }
            b'[' => match class(rest) {
                Some(length) => at += length,
                None => return Err(Unread::Unmodelled),
            },
            b'(' if rest.starts_with("(?") => {
                let inner = &rest[2..];
                let named = inner.starts_with("P<") || inner.starts_with('<');
                let flags = inner.find([':', ')']).map(|end| &inner[..end]);
                let known = |flags: &str| flags.bytes().all(|flag| b"imsU-".contains(&flag));
                if !named && !flags.is_some_and(known) {
                    return Err(Unread::Unmodelled);
                }
                // A group, or only flags, which are not an operand.
                let alone =
                    !named && flags.is_some_and(|flags| inner[flags.len()..].starts_with(')'));
                if alone {
                    at += 2 + flags.map_or(0, str::len) + 1;
                    before = was.after_flags();
                } else {
                    at += 2;
                    open += 1;
                    // The rest of its head holds no operator.
                    at += inner.find([':', '>']).map_or(0, |end| end + 1);
                    before = Before::Nothing;
                }
            }
            b'(' => {
                open += 1;
                at += 1;
                before = Before::Nothing;
            }
            b')' => {
                open = open
                    .checked_sub(1)
                    .ok_or(Unread::Invalid("a group is closed that was not opened"))?;
                at += 1;
            }
            b'|' => {
                at += 1;
                before = Before::Nothing;
            }
            b'*' | b'+' | b'?' => {
                was.may_be_repeated()?;
                at += 1 + usize::from(bytes.get(at + 1) == Some(&b'?'));
                before = Before::Repetition;
            }
            b'{' => {
                let Some(end) = rest.find('}') else { return Err(Unread::Unmodelled) };
                let counts: Vec<&str> = rest[1..end].split(',').collect();
                let small = |count: &str| count.parse::<u16>().is_ok_and(|count| count <= 1000);
                let digits = |count: &&str| count.bytes().all(|byte| byte.is_ascii_digit());
                let fine = match counts.as_slice() {
                    [count] => small(count),
                    [least, ""] => small(least),
                    [least, most] => small(least) && small(most),
                    _ => false,
                };
                if !fine || !counts.iter().all(digits) {
                    return Err(Unread::Unmodelled);
                }
                was.may_be_repeated()?;
                at += end + 1;
                at += usize::from(bytes.get(at) == Some(&b'?'));
                before = Before::Repetition;
            }
            _ => at += 1,
        }
    }
    if open > 0 {
        return Err(Unread::Invalid("a group is not closed"));
    }
    Ok(())
}

/// The kind of the preceding item of an expression, in its branch of its group.
#[derive(Clone, Copy)]
enum Before {
    Nothing,
    Operand,
    Repetition,
}

impl Before {
    /// Returns the kind of the preceding item after flags: flags are not an item, but separate two
    /// repetitions.
    fn after_flags(self) -> Self {
        match self {
            Self::Nothing => Self::Nothing,
            Self::Operand | Self::Repetition => Self::Operand,
        }
    }

    fn may_be_repeated(self) -> Result<(), Unread> {
        match self {
            Self::Nothing => Err(NO_OPERAND),
            Self::Operand => Ok(()),
            Self::Repetition => Err(REPEATED_TWICE),
        }
    }
}

/// Returns the length of a character class at the start of the text, if both engines read the class
/// the same way.
fn class(text: &str) -> Option<usize> {
    let inner = text[1..].strip_prefix('^').unwrap_or(&text[1..]);
    let start = text.len() - inner.len();
    let mut letters = inner.char_indices().peekable();
    let mut first = true;
    while let Some((at, letter)) = letters.next() {
        let next = letters.peek().map(|(_, letter)| *letter);
        match letter {
            ']' if !first => return Some(start + at + 1),
            ']' | '[' => return None,
            '&' | '~' | '-' if next == Some(letter) => return None,
            '\\' => {
                let known = |next: char| "dDsSwWftnrv".contains(next);
                if !next.is_some_and(|next| known(next) || next.is_ascii_punctuation()) {
                    return None;
                }
                letters.next();
            }
            _ => {}
        }
        first = false;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room() -> PatternRoom {
        PatternRoom::default()
    }

    #[test]
    fn groups_are_put_in_by_number() {
        let pattern = Pattern::new(r"^(.*)\.(shop)\.example\.com\.$", &room()).unwrap();
        assert_eq!(pattern.groups(), 2);
        assert_eq!(
            pattern.expand("a.shop.example.com.", "{1}-{2}-{0}").unwrap(),
            "a-shop-a.shop.example.com."
        );
        assert_eq!(pattern.expand("a.example.com.", "{1}"), None);
    }

    #[test]
    fn what_go_reads_otherwise_is_refused() {
        for text in
            [r"\<a", "[a&&b]", "[[a]b]", r"\pL", "(?x)a", r"\Qa", "a{,3}", "{", "ä", "a{1001}"]
        {
            assert_eq!(Pattern::new(text, &room()).err(), Some(Unread::Unmodelled), "{text}");
        }
        for text in [
            "a**", "a{2}{3}", "a*?*", "{1}", "*", "(+a)", "a|?", "(?:{2})", "(?i)*", "(?P<n>*)",
            "(", "a(b", "a)", "(?:a))",
        ] {
            let why = Pattern::new(text, &room()).err();
            assert!(matches!(why, Some(Unread::Invalid(_))), "{text}: {why:?}");
        }
        for text in [
            "^*",
            "(?i:a)*",
            "(?P<b>c)+",
            "()*",
            "a*?",
            "[a-z0-9-]+",
            r"^[^.]+\.x$",
            "(?i)a",
            "(?P<b>c)",
            "(?:a|b){2,3}?",
            "^^$",
        ] {
            assert!(Pattern::new(text, &room()).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_takes_many_steps_is_refused() {
        for (text, least, most) in [
            ("^abc$", 5, 5),
            ("a{10}b", 11, 12),
            ("(a{10}b){10}", 110, 200),
            ("(?:a|b)*", 3, 12),
            ("[a-z0-9-]{1,63}", 63, 200),
            (r"\w{5}\.", 6, 7),
            ("((a{100}){100}){100}", 1_000_000, usize::MAX),
        ] {
            let steps = steps(text);
            assert!((least..=most).contains(&steps), "{text}: {steps}");
        }
        for text in ["(?:a{1000}){3}", "(a{100}){100}", "(((a{30}){30}){30}){30}", ".{1000}.{1000}"]
        {
            assert_eq!(Pattern::new(text, &room()).err(), Some(Unread::Unmodelled), "{text}");
        }
        let together = room();
        let fits = (0..).take_while(|_| Pattern::new(".{400}", &together).is_ok()).count();
        assert!((20..30).contains(&fits), "{fits}");
        assert!(Pattern::new("^a$", &together).is_ok(), "there is room for short ones");
    }

    /// Tests groups that each contain the number of the next one several times.
    #[test]
    fn replacements_do_not_grow_without_end() {
        let groups: String = (1..=16).map(|_| "(.{15,20})").collect();
        let name: String = (2..=17).map(|next| format!("{{{next}}}").repeat(5)).collect();
        let pattern = Pattern::new(&format!("^{groups}$"), &room()).unwrap();
        let expanded = pattern.expand(&name, "{1}").unwrap();
        assert!(expanded.len() <= 100 * MAX_EXPANDED, "{}", expanded.len());
    }
}
