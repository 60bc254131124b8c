//! Hosts and paths that rules state as regular expressions or with a wildcard.
//!
//! A host is a regular expression after `~`, in which case makes no difference. A path is one
//! after `~`, or after `~*` where case makes no difference. They match in linear time, and so have
//! neither look-around nor back-references.

use regex_lite::{Regex, RegexBuilder, escape};
use thiserror::Error;

/// A regular expression for hosts or paths.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

/// A text is no regular expression that can be matched here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text} is no regular expression that is known here: {why}")]
pub struct InvalidPattern {
    text: String,
    why: String,
}

/// Whether a host or path is a regular expression.
pub fn is_pattern(text: &str) -> bool {
    text.starts_with('~')
}

impl Pattern {
    /// Reads a host after `~`.
    ///
    /// # Errors
    /// Returns why it is none that is known here.
    pub fn host(text: &str) -> Result<Self, InvalidPattern> {
        Self::new(text, text.trim_start_matches('~'), true)
    }

    /// Reads a path after `~` or `~*`.
    ///
    /// # Errors
    /// Returns why it is none that is known here.
    pub fn path(text: &str) -> Result<Self, InvalidPattern> {
        let expression = text.trim_start_matches('~');
        match expression.strip_prefix('*') {
            Some(expression) => Self::new(text, expression, true),
            None => Self::new(text, expression, false),
        }
    }

    fn new(text: &str, expression: &str, ignores_case: bool) -> Result<Self, InvalidPattern> {
        let mut builder = RegexBuilder::new(expression.trim_start());
        let regex = builder.case_insensitive(ignores_case).build();
        regex
            .map(Self)
            .map_err(|error| InvalidPattern { text: text.to_owned(), why: error.to_string() })
    }

    /// Whether it matches somewhere in this text.
    pub fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// A domain with a star at one end, which stands for one label or several, as a host after `~`.
/// Returns `None` for a domain without one, and for a regular expression.
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
        assert!(error.starts_with("~ (?=a) is no regular expression"), "{error}");
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
