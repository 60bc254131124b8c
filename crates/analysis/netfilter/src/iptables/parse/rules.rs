//! Lines with a rule, or with a command of `iptables-restore --noflush`.

use uturn_model::Family;

use super::{InputKind, Reader, counters, outside};
use crate::iptables::command::{self, Command, Setting};
use crate::iptables::rule::{self, Fault};
use crate::iptables::token::{self, Token};
use crate::iptables::{BUILT_IN, Counters, Origin, Policy};

impl<'a> Reader<'a> {
    /// Parses the first line of `text`, and returns its length.
    pub(super) fn append(
        &mut self,
        text: &'a str,
        number: u32,
        column: u32,
        words: &mut Vec<Token<'a>>,
    ) -> (usize, Result<(), Fault>) {
        match token::cut(text, column, words) {
            Ok(length) => (length, self.rules(words, number, column)),
            Err(column) => {
                (token::line(text), Err((column, "found a quote without its end".to_owned())))
            }
        }
    }

    /// Parses a rule; one with several comma-separated addresses becomes several.
    fn rules(&mut self, words: &[Token<'a>], number: u32, column: u32) -> Result<(), Fault> {
        // Such rules are rare, so address lists are only considered after an error.
        let read = self.rule(words, number, column);
        let several = read.as_ref().err().and_then(|(at, _)| {
            words.iter().position(|word| word.column == *at && word.text.contains(','))
        });
        let Some(at) = several.filter(|at| is_address_list(words, *at)) else { return read };
        let count = words[at].text.split(',').count();
        self.allowance.expand(count).map_err(|why| (words[at].column, why))?;
        for part in words[at].text.split(',') {
            let mut words = words.to_vec();
            words[at] = Token { text: part.to_owned().into(), ..words[at].clone() };
            self.rules(&words, number, column)?;
        }
        Ok(())
    }

    /// `[packets:bytes] -A CHAIN …`
    fn rule(&mut self, words: &[Token<'a>], number: u32, column: u32) -> Result<(), Fault> {
        let open = self.table.as_mut().ok_or_else(|| outside(column))?;
        let mut rest = words;
        let mut counted = None;
        if let Some((first, after)) =
            rest.split_first().filter(|(first, _)| first.text.starts_with('['))
        {
            let read = counters(&first.text);
            counted = Some(read.ok_or_else(|| {
                (first.column, format!("found {:?}, expected counters: [0:0]", first.text))
            })?);
            rest = after;
        }
        let origin = Origin::line_of(self.file.clone(), number);
        if self.kind == InputKind::Fragment {
            // Rules for one family in a text for both.
            let family = match rest.first().map_or("", Token::bare) {
                "-4" | "--ipv4" => Some(Family::V4),
                "-6" | "--ipv6" => Some(Family::V6),
                _ => None,
            };
            if family.is_some_and(|family| family != self.family) {
                return Ok(());
            }
            rest = &rest[usize::from(family.is_some())..];
            let command = rest.first().and_then(|word| Command::from_word(word.bare()));
            let setting = Setting {
                family: self.family,
                origin,
                counted,
                scratch: &mut self.scratch,
                allowance: &mut self.allowance,
            };
            match command {
                Some(Command::Append) | None => {}
                Some(command) if command.has_rule() => {
                    return command::about_rule(open, command, rest, setting);
                }
                Some(command) => return command::about_chain(open, command, rest, setting),
            }
        }
        let origin = Origin::line_of(self.file.clone(), number);
        let (name, rest) = match rest {
            [append, name, rest @ ..] if matches!(append.bare(), "-A" | "--append") => (name, rest),
            [append] if matches!(append.bare(), "-A" | "--append") => {
                return Err((append.column, "found -A, expected a chain after it".into()));
            }
            [other, ..] => {
                return Err((other.column, format!("found {:?}, expected -A CHAIN", other.text)));
            }
            [] => return Err((column, "found counters only, expected -A CHAIN".into())),
        };
        let at = match open.find(name) {
            Some(at) => at,
            None if command::is_built_in(open.table.kind, &name.text) => {
                let policy = Some(Policy::Accept);
                open.declare(&name.text, policy, Counters::default(), origin.clone())
            }
            None if BUILT_IN.contains(&&*name.text) => {
                let message = format!("table {} has no chain {}", open.table.kind, name.text);
                return Err((name.column, message));
            }
            None if self.kind == InputKind::Fragment && token::is_plain(&name.text) => {
                open.declare(&name.text, None, Counters::default(), origin.clone())
            }
            None => {
                let message = format!("chain {} is not declared in this table", name.text);
                return Err((name.column, message));
            }
        };
        let (family, scratch) = (self.family, &mut self.scratch);
        open.add(at, origin, |rule, names| {
            let jump = rule::rule(rest, family, names, rule, scratch)?;
            if let Some(counted) = counted {
                rule.counters = Some(Box::new(counted));
            }
            Ok(jump)
        })
    }
}

/// Whether a word is the argument of `-s` or `-d`, without `!`.
fn is_address_list(words: &[Token<'_>], at: usize) -> bool {
    let option = at.checked_sub(1).map_or("", |before| words[before].bare());
    let not = at.checked_sub(2).is_some_and(|before| words[before].bare() == "!");
    matches!(option, "-s" | "--source" | "--src" | "-d" | "--destination" | "--dst") && !not
}
