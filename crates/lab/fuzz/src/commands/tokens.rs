//! Finds the values in a text of lines, whatever its format: numbers, addresses and words.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

/// The form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Digits.
    Number,
    /// An IPv4 address.
    V4,
    /// An IPv6 address.
    V6,
    /// `true` or `false`.
    Switch,
    /// Anything else.
    Word,
}

/// A value in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// The position of the value.
    pub(super) at: Range<usize>,
    /// The form of the value.
    pub(super) form: Form,
    /// The word before it on its line that names it: `name` in `name: web`, `--dport` in `--dport 80`.
    pub(super) key: Range<usize>,
}

/// Returns all values of a text.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut all = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        add_line(text, start..start + line.len(), &mut all);
        start += line.len();
    }
    all
}

fn add_line(text: &str, line: Range<usize>, all: &mut Vec<Token>) {
    let mut key = line.start..line.start;
    let mut at = line.start;
    let line = line.start..line.start + without_comment(&text[line]).len();
    while at < line.end {
        let length = run(&text[at..line.end]);
        if length == 0 {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
            continue;
        }
        let whole = at..at + length;
        at = whole.end;
        if text[whole.clone()].parse::<Ipv6Addr>().is_ok() {
            all.push(Token { at: whole, form: Form::V6, key: key.clone() });
            continue;
        }
        let mut from = whole.start;
        for part in text[whole].split(':') {
            let own = from..from + part.len();
            from = own.end + 1;
            if !part.contains(|c: char| c.is_ascii_alphanumeric()) {
                continue;
            }
            if part.starts_with('-') || is_named(&text[own.end..line.end]) {
                key = own;
            } else {
                all.push(Token { form: form(part), at: own, key: key.clone() });
            }
        }
    }
}

/// Returns a line without the comment at its end.
fn without_comment(line: &str) -> &str {
    match line.find("# ") {
        Some(0) => "",
        Some(at) if line[..at].ends_with([' ', '\t']) => &line[..at],
        _ => line,
    }
}

/// Returns whether the text after a word shows that the word is a key.
fn is_named(rest: &str) -> bool {
    let rest = rest.strip_prefix('"').unwrap_or(rest);
    let behind = rest.strip_prefix(':').map(|behind| behind.trim_start_matches('\r'));
    rest.starts_with('=')
        || behind.is_some_and(|own| own.is_empty() || own.starts_with([' ', '\n']))
}

/// Returns the length of the start of a text that may be one value, or several with colons between
/// them.
fn run(text: &str) -> usize {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

fn form(part: &str) -> Form {
    match part {
        "true" | "false" => Form::Switch,
        _ if part.bytes().all(|byte| byte.is_ascii_digit()) => Form::Number,
        _ if part.parse::<Ipv4Addr>().is_ok() => Form::V4,
        _ => Form::Word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let shown = |own: Token| format!("{:?} {}={}", own.form, &text[own.key], &text[own.at]);
        tokens(text).into_iter().map(shown).collect()
    }

    #[test]
    fn values_have_a_form_and_a_key() {
        assert_eq!(
            shown("  - {name: web, port: 80, on: true}\n"),
            ["Word name=web", "Number port=80", "Switch on=true"]
        );
        assert_eq!(
            shown("-A FORWARD -d 10.0.0.1/32 --dport 80 -j ACCEPT\nvip: \"fd00::1\"\n"),
            [
                "Word -A=FORWARD",
                "V4 -d=10.0.0.1",
                "Number -d=32",
                "Number --dport=80",
                "Word -j=ACCEPT",
                "V6 vip=fd00::1"
            ]
        );
        assert_eq!(shown("http://10.0.0.1:80/é\n"), ["Word =http", "V4 =10.0.0.1", "Number =80"]);
        assert_eq!(
            shown("# a b\nport: 80 # c\nname: a# b\n"),
            ["Number port=80", "Word name=a", "Word name=b"]
        );
        assert_eq!(shown("{\"ip\": \"::1\", \"on\":\n"), ["V6 ip=::1"]);
    }
}
