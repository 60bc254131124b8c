//! Hosts and paths that rules state as regular expressions or with a wildcard.
//!
//! A host is a regular expression after `~`, which ignores case. A path is one after `~`, or after
//! `~*` if it ignores case. The expressions have neither look-around nor back-references, and match
//! bytes: `.` is one byte, `\w` and `\d` are ASCII only.
//!
//! Tenants write the expressions, and matching a request against a slow one would delay all other
//! requests of its worker. So each is compiled to an automaton that takes one step per byte,
//! whatever the text, and an expression whose automaton would be too large is refused. Compiling
//! costs no more than a limit, too.

pub(crate) mod known;

use std::error::Error;
use std::fmt;

use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::util::syntax;
use regex_automata::{Input, nfa};
use regex_lite::escape;
use thiserror::Error;

/// The maximum size in bytes of an expression's automaton, and of the data from which it is built.
const MOST: usize = 256 << 10;

/// The maximum nesting of groups.
const NESTED: u32 = 50;

/// A regular expression for hosts or paths.
#[derive(Clone)]
pub struct Pattern {
    text: String,
    automaton: dense::DFA<Vec<u32>>,
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern").field(&self.text).finish()
    }
}

/// The error that a text is not a supported regular expression.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text} is not a regular expression that uturn supports: {why}")]
pub struct InvalidPattern {
    text: String,
    why: String,
}

/// Returns whether a host or path is a regular expression.
pub fn is_pattern(text: &str) -> bool {
    text.starts_with('~')
}

impl Pattern {
    /// Reads a host after `~`.
    ///
    /// # Errors
    /// Returns an error if the text is not a supported regular expression.
    pub fn host(text: &str) -> Result<Self, InvalidPattern> {
        Self::new(text, text.trim_start_matches('~'), true)
    }

    /// Reads a path after `~` or `~*`.
    ///
    /// # Errors
    /// Returns an error if the text is not a supported regular expression.
    pub fn path(text: &str) -> Result<Self, InvalidPattern> {
        let expression = text.trim_start_matches('~');
        match expression.strip_prefix('*') {
            Some(expression) => Self::new(text, expression, true),
            None => Self::new(text, expression, false),
        }
    }

    fn new(text: &str, expression: &str, ignores_case: bool) -> Result<Self, InvalidPattern> {
        let of_syntax = syntax::Config::new().unicode(false).utf8(false);
        let of_syntax = of_syntax.case_insensitive(ignores_case).nest_limit(NESTED);
        let of_nfa = nfa::thompson::Config::new().utf8(false).nfa_size_limit(Some(MOST));
        let of_dfa = dense::Config::new().start_kind(StartKind::Unanchored);
        let of_dfa = of_dfa.dfa_size_limit(Some(MOST)).determinize_size_limit(Some(MOST));
        let mut builder = dense::Builder::new();
        builder.configure(of_dfa).syntax(of_syntax).thompson(of_nfa);
        let automaton = builder.build(expression.trim_start()).map_err(|error| {
            let why = if is_too_large(&error) { TOO_LARGE.to_owned() } else { reason(&error) };
            InvalidPattern { text: text.to_owned(), why }
        })?;
        Ok(Self { text: text.to_owned(), automaton })
    }

    /// Returns whether the expression matches anywhere in this text.
    pub fn matches(&self, text: &str) -> bool {
        // An error is impossible: no byte ends a search early, and the start has no conditions.
        let found = self.automaton.try_search_fwd(&Input::new(text).earliest(true));
        found.is_ok_and(|found| found.is_some())
    }
}

const TOO_LARGE: &str = "to match it in one step for each byte takes a table of more than 256 KiB. \
    Smaller counts in {}, or ^ at its beginning, make it smaller";

fn is_too_large(error: &dense::BuildError) -> bool {
    let of_nfa = || error.source()?.downcast_ref::<nfa::thompson::BuildError>()?.size_limit();
    error.is_size_limit_exceeded() || of_nfa().is_some()
}

/// Returns the defect of an expression: the last part of the cause of an error.
fn reason(error: &dyn Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    let text = last.to_string();
    text.rsplit("error: ").next().unwrap_or(&text).to_owned()
}

/// Converts a domain with a `*` at one end, which stands for one or more labels, to a host after
/// `~`. Returns `None` for a domain without `*`, and for a regular expression.
pub fn from_wildcard(domain: &str) -> Option<String> {
    if is_pattern(domain) {
        return None;
    }
    match (domain.strip_prefix('*'), domain.strip_suffix('*')) {
        (Some(end), _) => Some(format!("~^.+{}$", escape(end))),
        (None, Some(begin)) => Some(format!("~^{}.+$", escape(begin))),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_ignore_case_and_paths_do_if_they_say_so() {
        let host = Pattern::host(r"~^www\d+\.example\.com$").unwrap();
        assert!(host.matches("www12.example.com") && host.matches("WWW1.Example.com"));
        assert!(!host.matches("www.example.com") && !host.matches("www1.example.com.org"));
        let path = |text: &str| Pattern::path(text).unwrap();
        assert!(path(r"~ \.(gif|jpg)$").matches("/a.gif"));
        assert!(!path(r"~ \.(gif|jpg)$").matches("/a.GIF"));
        assert!(path(r"~* \.(gif|jpg)$").matches("/a.GIF"));
        let error = Pattern::path("~ (?=a)").unwrap_err().to_string();
        assert!(error.starts_with("~ (?=a) is not a regular expression"), "{error}");
        assert!(error.contains("look-around"), "{error}");
    }

    /// Tests the worst cases of engines that keep a set of places: each is refused, or takes one
    /// step per byte.
    #[test]
    fn expressions_that_would_cost_much_are_refused() {
        for text in [
            "~ (a|b)*a(a|b){12}",
            "~ .*a.{20}b",
            "~ ((a{50}){50}){50}",
            "~ [ab]{9999}",
            "~ a{1000}{1000}",
            "~ (([a-z]{1,40}/){1,40}){1,40}$",
            "~* (get|post).{16}(put|head)",
        ] {
            let read = Pattern::path(text).map_err(|error| error.to_string());
            assert!(read.as_ref().is_err_and(|why| why.ends_with("make it smaller")), "{read:?}");
        }
        let nested = format!("~ {}a{}", "(".repeat(10_000), ")".repeat(10_000));
        assert!(Pattern::path(&nested).unwrap_err().to_string().contains("nest"));
    }

    #[test]
    fn expressions_as_people_write_them_are_not() {
        for (text, path, matches) in [
            (r"~ ^/api/v[0-9]+/users/\d{1,10}$", "/api/v2/users/77", true),
            (r"~* \.(gif|jpe?g|png|css|js|ico|svg|woff2?|ttf|map|webp)$", "/a/B.JPEG", true),
            (
                "~ ^/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
                "/12345678",
                false,
            ),
            ("~ [0-9a-f]{8}-[0-9a-f]{4}", "/x/deadbeef-0042/y", true),
            ("~ ^/(shop|cart|order)s?/.*/(edit|delete)$", "/orders/7/edit", true),
            ("~ (x+x+)+y", "/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", false),
            ("~ (.*.*.*.*x){100}", "/xxxxxxxxxx", false),
            ("~ (.*)(.*)(.*)(.*)(.*)z", "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
            ("~ ", "/", true),
            (r"~ \bnew\b", "/a/new/b", true),
            ("~ ^/.$", "/é", false),
            ("~ é", "/é", true),
        ] {
            assert_eq!(Pattern::path(text).unwrap().matches(path), matches, "{text} {path}");
        }
    }

    #[test]
    fn a_star_stands_for_labels() {
        let matches =
            |domain, host| Pattern::host(&from_wildcard(domain).unwrap()).unwrap().matches(host);
        assert!(matches("*.example.com", "a.example.com"));
        assert!(matches("*.example.com", "a.b.example.com"));
        assert!(
            !matches("*.example.com", "example.com") && !matches("*.example.com", "aexample.com")
        );
        assert!(matches("www.example.*", "www.example.org"));
        assert!(!matches("www.example.*", "a.www.example.org"));
        assert_eq!(from_wildcard("www.example.com"), None);
        assert_eq!(from_wildcard("~^a.*"), None);
    }
}
