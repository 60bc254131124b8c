//! Commands that a person may paste into a shell.
//!
//! A [`Command`] consists of words of the program's own and of values; each value is quoted,
//! whatever it contains. [`Advice`] is what a person is told to do: a text of the program's own, or
//! one with such commands.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::path::Path;

use crate::Name;
use crate::visible::{self, is_hidden};

/// A shell command in the form that is typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    text: String,
    /// Whether the command contains a value that cannot be typed in any way.
    is_untypable: bool,
}

impl Command {
    /// Makes a command that begins with these words, which are typed as they are.
    pub fn new(words: &'static str) -> Self {
        Self { text: words.to_owned(), is_untypable: false }
    }

    /// Adds words that are typed as they are: options, a pipe, a placeholder.
    #[must_use]
    pub fn words(mut self, words: &'static str) -> Self {
        self.space();
        self.text.push_str(words);
        self
    }

    /// Adds a value as one word.
    #[must_use]
    pub fn value(mut self, value: impl fmt::Display) -> Self {
        self.space();
        self.append(value.to_string().as_bytes());
        self
    }

    /// Adds a path as one word that no program takes for an option.
    #[must_use]
    pub fn path(mut self, path: &Path) -> Self {
        self.space();
        let bytes = path.as_os_str().as_encoded_bytes();
        if bytes.starts_with(b"-") && bytes != b"-" {
            self.text.push_str("./");
        }
        self.append(bytes);
        self
    }

    /// Appends a value to the last word: the name to `--name=`.
    #[must_use]
    pub fn joined(mut self, value: impl fmt::Display) -> Self {
        self.append(value.to_string().as_bytes());
        self
    }

    /// Adds the words of another command.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        if !other.text.is_empty() {
            self.space();
            self.text.push_str(&other.text);
        }
        self.is_untypable |= other.is_untypable;
        self
    }

    /// Returns whether the command has no words.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    fn space(&mut self) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
    }

    fn append(&mut self, value: &[u8]) {
        match quoted(value) {
            Some(word) => self.text.push_str(&word),
            None => self.is_untypable = true,
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_untypable {
            // A comment, in case it is pasted.
            f.write_str("# (a name here ends in a line break or holds a NUL: no shell takes it)")
        } else {
            f.write_str(&self.text)
        }
    }
}

/// Quotes a word for every POSIX shell: as it is, in quotes, or, if it has characters that must not
/// reach a terminal, as a `printf` of its bytes.
///
/// Returns `None` for a text that no shell passes on in this way: with a NUL, or with a line break
/// at its end.
pub fn quoted(word: &[u8]) -> Option<Cow<'_, str>> {
    if word.contains(&0) || word.ends_with(b"\n") {
        return None;
    }
    let Ok(text) = str::from_utf8(word) else { return Some(Cow::Owned(printed(word))) };
    let is_plain = |c: char| {
        let is_sign = |signs: &str| signs.contains(c);
        c.is_alphanumeric() && !is_hidden(c) || is_sign("_./-@:=+,%")
    };
    // Some shells expand a word that begins with one of these.
    let is_expanded = text.starts_with(['=', '%']);
    if !text.is_empty() && !is_expanded && text.chars().all(is_plain) {
        return Some(Cow::Borrowed(text));
    }
    if text.chars().any(is_hidden) {
        return Some(Cow::Owned(printed(word)));
    }
    // A reader who searches this text for this program's commands finds none within quotes.
    let text = text.replace('\'', r"'\''").replace("uturn ", "uturn'' ");
    Some(Cow::Owned(format!("'{text}'")))
}

/// Formats a word as `"$(printf 'a\033b')"`, with every byte that is no letter, digit or simple
/// sign as an octal number.
fn printed(word: &[u8]) -> String {
    // A format that begins with `-` would be taken for an option.
    let options = if word.starts_with(b"-") { "-- " } else { "" };
    let mut text = format!("\"$(printf {options}'");
    for &byte in word {
        match byte {
            b'_' | b'.' | b'/' | b'-' | b':' | b'=' | b'+' | b',' => text.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => text.push(char::from(byte)),
            byte => text.push_str(&format!("\\{byte:03o}")),
        }
    }
    text.push_str("')\"");
    text
}

/// Advice to a person: a text of the program's own, a command, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice(String);

impl Advice {
    /// Advises to type a command on a node.
    pub fn on(node: impl fmt::Display, command: &Command) -> Self {
        Self(format!("on {node}: {command}"))
    }

    /// Makes a sentence with names in it, and without a command.
    pub fn sentence(text: &str) -> Self {
        Self(visible::line(text).into_owned())
    }

    /// Makes a text of the program's own with the name of an object in place of `{}`.
    pub fn naming(text: &'static str, name: &Name) -> Self {
        Self(text.replace("{}", name.as_str()))
    }

    /// Adds a command.
    #[must_use]
    pub fn then_command(mut self, command: &Command) -> Self {
        self.0.push_str(&command.to_string());
        self
    }

    /// Adds a text of the program's own.
    #[must_use]
    pub fn then(mut self, text: &'static str) -> Self {
        self.0.push_str(text);
        self
    }

    /// Changes the commands.
    #[must_use]
    pub fn map(self, change: impl FnOnce(&str) -> String) -> Self {
        Self(change(&self.0))
    }
}

impl Deref for Advice {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&'static str> for Advice {
    fn from(text: &'static str) -> Self {
        Self(text.to_owned())
    }
}

impl From<Command> for Advice {
    fn from(command: Command) -> Self {
        Self(command.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command as Process;

    use super::*;

    /// Texts that shells, terminals and `printf` take for something else.
    const WORDS: [&str; 24] = [
        "",
        "plain/Name-1.2:80",
        "/$(touch x);y",
        "it's",
        "`id`",
        "a b\tc",
        "--help",
        "-e\u{1b}",
        "\u{1b}]52;c;eA==\u{7}",
        "one\ntwo",
        "\n",
        "100%s\u{202e}%d",
        "back\\slash\u{9b}\\033",
        "!history !$ \"x\"",
        "~root",
        "*?[a]{b,c}",
        "a&b|c>d<e#f",
        "=ls",
        "%1",
        "商店\u{200b}",
        "uturn scan",
        "'uturn trace'",
        "$HOME ${IFS} $'x'",
        "\u{feff}",
    ];

    #[test]
    fn a_shell_reads_what_was_meant() {
        for shell in ["sh", "bash"] {
            for word in WORDS {
                let Some(quoted) = quoted(word.as_bytes()) else {
                    assert!(word.ends_with('\n'), "{word:?}");
                    continue;
                };
                assert!(!quoted.chars().any(is_hidden), "{quoted:?}");
                let script = format!("set -- {quoted}; printf '%s.%s' $# \"$1\"");
                let Ok(out) = Process::new(shell).args(["-c", &script]).output() else { continue };
                let read = String::from_utf8(out.stdout).unwrap();
                assert_eq!(read, format!("1.{word}"), "{shell}: {quoted}");
            }
        }
    }

    #[test]
    fn commands_are_made_of_quoted_values() {
        let command = Command::new("kubectl -n").value("shop").words("get svc").value("a;b");
        assert_eq!(command.to_string(), "kubectl -n shop get svc 'a;b'");
        let command = Command::new("uturn trace --to").value("/uturn scan");
        assert_eq!(command.to_string(), "uturn trace --to '/uturn'' scan'");
        let command = Command::new("nodeName=").joined("n1").words("-o yaml");
        assert_eq!(command.to_string(), "nodeName=n1 -o yaml");
        assert!(Command::new("uturn scan -f").value("a\0").to_string().starts_with('#'));
        assert_eq!(Command::new("ls").path(Path::new("-l x")).to_string(), "ls ./'-l x'");
        let advice = Advice::on("n1", &Command::new("ipvsadm -Ln")).then(", and look");
        assert_eq!(&*advice, "on n1: ipvsadm -Ln, and look");
    }
}
