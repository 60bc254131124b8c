//! The pages that `uturn explain` prints: one for each code, one for some mechanisms.

use uturn_model::{Mechanism, ObjectKind};

use crate::Code;

/// The pages of mechanisms that have a page of their own.
const OF_MECHANISMS: [(Mechanism, &str); 4] = [
    (Mechanism::AsymmetricReturn, include_str!("../pages/asymmetric-return.md")),
    (Mechanism::LocalSourceDrop, include_str!("../pages/local-source-drop.md")),
    (Mechanism::NoCandidate, include_str!("../pages/no-candidate.md")),
    (Mechanism::ReversePathFilter, include_str!("../pages/reverse-path-filter.md")),
];

/// Returns the page of the code or mechanism that a word names.
///
/// Returns `None` if it names neither.
pub fn find(word: &str) -> Option<&'static str> {
    if let Ok(code) = word.parse::<Code>() {
        return Some(code.page());
    }
    let mechanism: Mechanism = word.parse().ok()?;
    let own = OF_MECHANISMS.iter().find(|(known, _)| *known == mechanism).map(|(_, page)| *page);
    // The page of its code explains a mechanism that has no page of its own.
    Some(own.unwrap_or_else(|| Code::of(mechanism, ObjectKind::Service).page()))
}

/// Iterates over all pages with their names.
pub fn texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_mechanisms = OF_MECHANISMS.iter().map(|(mechanism, page)| (mechanism.as_str(), *page));
    Code::all().map(|code| (code.as_str(), code.page())).chain(of_mechanisms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_and_mechanism_has_its_page() {
        for code in Code::all() {
            let (page, title) = (code.page(), code.title());
            let heading = page.lines().next().unwrap();
            assert!(
                heading.to_lowercase().contains(&title.to_lowercase())
                    && heading.starts_with(&format!("# {code} ")),
                "{heading:?} is not the heading of {code} {title:?}"
            );
            for section in [
                "What it means",
                "How it was seen",
                "Why",
                "Cures",
                "Check by hand",
                "See it on a kernel",
                "What it is not",
            ] {
                assert!(page.contains(&format!("\n## {section}\n")), "{code} lacks {section}");
            }
        }
        for mechanism in Mechanism::ALL {
            assert!(find(mechanism.as_str()).is_some(), "no page for {mechanism}");
        }
        assert!(find("UT999").is_none());
    }

    /// The scenarios that pages name exist, and most pages name some.
    #[test]
    fn every_scenario_that_is_named_exists() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios");
        let mut pages = 0;
        for (page, text) in texts() {
            let (_, after) = text.split_once("\n## See it on a kernel\n").unwrap();
            let section = after.split("\n## ").next().unwrap();
            let named = section.lines().filter_map(|line| line.strip_prefix("    uturn lab run "));
            // A comment may follow the name.
            let named: Vec<&str> =
                named.filter_map(|line| line.split_whitespace().next()).collect();
            for name in &named {
                assert!(folder.join(format!("{name}.yaml")).exists(), "{page} names {name}");
            }
            assert!(!named.is_empty() || section.contains("No scenario"), "{page}: {section}");
            pages += usize::from(!named.is_empty());
        }
        assert!(pages > 20, "{pages}");
    }

    #[test]
    fn every_link_resolves() {
        for (name, text) in texts() {
            for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
                let is_code = word.len() == 5 && word.starts_with("UT");
                if is_code && word[2..].bytes().all(|b| b.is_ascii_digit()) {
                    assert!(find(word).is_some(), "{name} names {word}");
                }
            }
            for (_, after) in text.match_indices("](").map(|(at, _)| text.split_at(at + 2)) {
                let to = after.split(')').next().unwrap();
                let page = to.strip_suffix(".md").unwrap_or(to);
                assert!(find(page).is_some() || to.starts_with("https://"), "{name} links to {to}");
            }
            for (_, after) in text.match_indices("uturn explain ").map(|(at, _)| text.split_at(at))
            {
                let word = after.split_whitespace().nth(2).unwrap();
                let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
                assert!(find(word).is_some(), "{name} says uturn explain {word}");
            }
        }
    }
}
