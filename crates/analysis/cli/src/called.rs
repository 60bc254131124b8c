//! The name by which the user calls the program: `uturn`, or `kubectl uturn` if it is kubectl's
//! plugin.

use std::borrow::Cow;
use std::env;
use std::path::Path;
use std::sync::OnceLock;

use uturn_model::shell::Command;

/// The name under which kubectl finds the plugin.
pub const PLUGIN: &str = "kubectl-uturn";

/// The words that follow `uturn` where a text names a command to type.
pub const COMMANDS: [&str; 15] = [
    "scan",
    "trace",
    "check",
    "cure",
    "explain",
    "rules",
    "walk",
    "collect",
    "probe",
    "lab",
    "lb",
    "cloud",
    "operator",
    "completion",
    "help",
];

/// Returns the words by which the user calls this program.
pub fn name() -> &'static str {
    if is_plugin() { "kubectl uturn" } else { "uturn" }
}

/// Returns whether kubectl called this program.
fn is_plugin() -> bool {
    static IS_PLUGIN: OnceLock<bool> = OnceLock::new();
    *IS_PLUGIN.get_or_init(|| {
        let program = env::args_os().next().unwrap_or_default();
        Path::new(&program).file_stem().is_some_and(|name| name == PLUGIN)
    })
}

/// Returns a text with its commands as the user types them.
pub fn as_typed(text: &str) -> Cow<'_, str> {
    if is_plugin() { Cow::Owned(for_kubectl(text)) } else { Cow::Borrowed(text) }
}

/// Returns a text with `uturn scan` replaced by `kubectl uturn scan`.
fn for_kubectl(text: &str) -> String {
    let mut typed = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some(at) = rest.find("uturn ") {
        let (before, after) = rest.split_at(at);
        let (called, after) = after.split_at("uturn ".len());
        typed.push_str(before);
        if begins_word(&typed) && begins_with_command(after) {
            typed.push_str("kubectl ");
        }
        typed.push_str(called);
        rest = after;
    }
    typed + rest
}

/// Returns whether a command may begin after this text: not within a word or a path, and not after
/// `kubectl` or `sudo`.
fn begins_word(before: &str) -> bool {
    let is_inside = |c: char| c.is_alphanumeric() || "-_./".contains(c);
    !before.ends_with(is_inside)
        && !["kubectl ", "sudo "].iter().any(|caller| before.ends_with(caller))
}

fn begins_with_command(after: &str) -> bool {
    let word = after.split(|c: char| !c.is_ascii_lowercase()).next().unwrap_or_default();
    COMMANDS.contains(&word)
}

/// The words that `check` takes before an object.
const TOPICS: [&str; 5] = ["service", "ingress", "dns", "nodes", "cross-node"];

/// The commands that read a cluster.
const READERS: [&str; 5] = ["scan", "trace", "check", "cure", "rules"];

/// Returns a text whose commands name the input by these options.
pub fn with_input(text: &str, input: &Command) -> String {
    let mut named = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some(at) = rest.find("uturn ") {
        let (before, after) = rest.split_at(at + "uturn ".len());
        named.push_str(before);
        rest = after;
        let end = word_end(rest);
        if !READERS.contains(&&rest[..end]) {
            continue;
        }
        let topic = rest[end..].strip_prefix(' ').unwrap_or_default();
        let topic = &topic[..word_end(topic)];
        let end = if TOPICS.contains(&topic) { end + 1 + topic.len() } else { end };
        named.push_str(&rest[..end]);
        if !input.is_empty() {
            named.push_str(&format!(" {input}"));
        }
        rest = &rest[end..];
    }
    named + rest
}

fn word_end(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_named_as_kubectl_takes_them() {
        for (text, expected) in [
            ("uturn explain UT101 says it", "kubectl uturn explain UT101 says it"),
            (
                "next: `uturn check dns`, or (uturn scan)",
                "next: `kubectl uturn check dns`, or (kubectl uturn scan)",
            ),
            ("helm template . | uturn scan -f -", "helm template . | kubectl uturn scan -f -"),
            ("kubectl uturn scan", "kubectl uturn scan"),
            ("sudo uturn lab run", "sudo uturn lab run"),
            (
                "this uturn was built; uturn reads; ./uturn scan; no-uturn scan",
                "this uturn was built; uturn reads; ./uturn scan; no-uturn scan",
            ),
            ("uturn ", "uturn "),
        ] {
            assert_eq!(for_kubectl(text), expected);
        }
    }

    #[test]
    fn commands_name_their_input() {
        for (text, expected) in [
            ("uturn trace --from a --to b", "uturn trace -f x --from a --to b"),
            ("uturn check service shop/web", "uturn check service -f x shop/web"),
            (
                "uturn check cross-node, and uturn check nodes",
                "uturn check cross-node -f x, and uturn check nodes -f x",
            ),
            ("compare: uturn rules --node NODE", "compare: uturn rules -f x --node NODE"),
            ("uturn reads it", "uturn reads it"),
            ("uturn explain UT311", "uturn explain UT311"),
            ("uturn trace --to '/uturn'' scan'", "uturn trace -f x --to '/uturn'' scan'"),
        ] {
            assert_eq!(with_input(text, &Command::new("-f x")), expected);
        }
    }
}
