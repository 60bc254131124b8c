//! Finds the paths that a file's code imports: those of its `use` lines, and those written out in
//! full (`crate::…`, `super::…`) elsewhere.

/// Returns every imported path, segment by segment. Those of `use a::{b, c::*}` are `a::b` and
/// `a::c`.
pub(super) fn imports(code: &str) -> Vec<Vec<String>> {
    let words = words(code);
    let mut paths = Vec::new();
    let mut at = 0;
    while at < words.len() {
        match words[at] {
            "use" => {
                at += 1;
                let mut prefix = Vec::new();
                at = tree(&words, at, &mut prefix, &mut paths);
            }
            "crate" | "super" if words.get(at + 1) == Some(&"::") => {
                let mut path = vec![words[at].to_owned()];
                at += 1;
                while words.get(at) == Some(&"::")
                    && words.get(at + 1).is_some_and(|word| is_name(word))
                {
                    path.push(words[at + 1].to_owned());
                    at += 2;
                }
                paths.push(path);
            }
            _ => at += 1,
        }
    }
    paths
}

/// Reads one tree of a `use` line and returns the position of its end.
fn tree(
    words: &[&str],
    mut at: usize,
    prefix: &mut Vec<String>,
    paths: &mut Vec<Vec<String>>,
) -> usize {
    let depth = prefix.len();
    while let Some(word) = words.get(at) {
        match *word {
            "::" => at += 1,
            "{" => {
                at += 1;
                while words.get(at).is_some_and(|word| *word != "}") {
                    at = tree(words, at, prefix, paths);
                    if words.get(at) == Some(&",") {
                        at += 1;
                    }
                }
                prefix.truncate(depth);
                return at + 1;
            }
            // `self` within braces is the prefix itself.
            "self" if depth > 0 => at += 1,
            "*" => at += 1,
            "as" => at += 2,
            word if is_name(word) => {
                prefix.push(word.to_owned());
                at += 1;
            }
            _ => break,
        }
    }
    if !prefix.is_empty() {
        paths.push(prefix.clone());
    }
    prefix.truncate(depth);
    at
}

fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Splits code into names, `::`, and all other characters.
fn words(code: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first.is_alphanumeric() || first == '_' {
            rest.find(|next: char| !next.is_alphanumeric() && next != '_').unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        words.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: &str) -> Vec<String> {
        imports(code).into_iter().map(|path| path.join("::")).collect()
    }

    #[test]
    fn trees_are_taken_apart() {
        assert_eq!(
            of("pub(crate) use crate::a::{self, B, c::{D as E, f::*}}; use g;"),
            ["crate::a", "crate::a::B", "crate::a::c::D", "crate::a::c::f", "g"]
        );
    }

    #[test]
    fn paths_in_full_count() {
        assert_eq!(of("fn f(x: super::a::B) { crate::c::d(x) }"), ["super::a::B", "crate::c::d"]);
        assert!(of("self.use_it(); superb::x").is_empty());
    }
}
