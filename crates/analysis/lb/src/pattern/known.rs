//! A cache of the expressions that this thread used last.
//!
//! A prediction uses the same few expressions again and again, and compiling one takes a thousand
//! times as long as matching it.

use std::cell::RefCell;
use std::collections::HashMap;

use super::{InvalidPattern, Pattern};

/// The maximum size of the cache in bytes. An expression beyond it clears the cache.
const MOST: usize = 4 << 20;

/// A function that compiles a text to a pattern.
type Read = fn(&str) -> Result<Pattern, InvalidPattern>;

thread_local! {
    static HOSTS: RefCell<Known> = RefCell::new(Known::new(Pattern::host));
    static PATHS: RefCell<Known> = RefCell::new(Known::new(Pattern::path));
}

/// Returns whether a host matches an expression after `~`. An invalid expression matches nothing.
pub(crate) fn host_matches(wanted: &str, host: &str) -> bool {
    HOSTS.with_borrow_mut(|known| known.get(wanted).is_some_and(|pattern| pattern.matches(host)))
}

/// Returns whether a path matches an expression after `~` or `~*`, or is the text of the
/// expression. An invalid expression matches nothing.
pub(crate) fn path_matches(wanted: &str, path: &str) -> bool {
    PATHS.with_borrow_mut(|known| {
        known.get(wanted).is_some_and(|pattern| wanted == path || pattern.matches(path))
    })
}

struct Known {
    read: Read,
    /// The patterns by their texts; `None` for an invalid expression.
    all: HashMap<String, Option<Pattern>>,
    bytes: usize,
}

impl Known {
    fn new(read: Read) -> Self {
        Self { read, all: HashMap::new(), bytes: 0 }
    }

    fn get(&mut self, text: &str) -> Option<&Pattern> {
        if !self.all.contains_key(text) {
            let pattern = (self.read)(text).ok();
            let automaton = pattern.as_ref().map_or(0, |pattern| pattern.automaton.memory_usage());
            let bytes = automaton + 2 * text.len() + size_of::<(String, Option<Pattern>)>();
            if self.bytes + bytes > MOST {
                self.all.clear();
                self.bytes = 0;
            }
            self.bytes += bytes;
            self.all.insert(text.to_owned(), pattern);
        }
        self.all.get(text)?.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_paths_of_one_text_are_apart() {
        for _ in 0..2 {
            assert!(host_matches("~^A$", "a") && !path_matches("~^A$", "a"));
            assert!(path_matches("~^A$", "A") && path_matches("~^A$", "~^A$"));
            assert!(!host_matches("~(", "(") && !path_matches("~(", "~("));
        }
    }

    #[test]
    fn what_is_kept_has_a_size() {
        let mut known = Known::new(Pattern::path);
        for number in 0..300 {
            let text = format!("~^/{number}/[a-z]{{1,100}}/[0-9]{{1,100}}$");
            assert!(known.get(&text).unwrap().matches(&format!("/{number}/a/1")));
            assert!(known.bytes <= MOST && !known.all.is_empty());
        }
        assert!(known.all.len() < 300, "all are kept");
    }
}
