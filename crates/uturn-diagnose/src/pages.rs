//! The pages that `uturn explain` prints: one for each code, one for some mechanisms.

use uturn_model::Mechanism;

use crate::Code;

macro_rules! pages {
    ($($name:literal),* $(,)?) => {
        /// Every page by its name.
        const PAGES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../pages/", $name, ".md")))),*];
    };
}

pages![
    "UT101",
    "UT102",
    "UT103",
    "UT104",
    "UT105",
    "UT106",
    "UT107",
    "UT201",
    "UT202",
    "UT203",
    "UT204",
    "UT205",
    "UT206",
    "UT311",
    "UT312",
    "UT313",
    "UT401",
    "UT402",
    "UT501",
    "UT601",
    "UT602",
    "UT603",
    "UT701",
    "UT702",
    "UT703",
    "UT704",
    "UT901",
    "UT902",
    "asymmetric-return",
    "local-source-drop",
    "no-candidate",
    "reverse-path-filter",
];

/// The page of a code or of a mechanism, whichever the word names.
pub fn find(word: &str) -> Option<&'static str> {
    let page = |name: &str| PAGES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
    if let Ok(code) = word.parse::<Code>() {
        return page(&code.to_string());
    }
    let mechanism: Mechanism = word.parse().ok()?;
    // A mechanism without a page of its own is told on that of its code.
    page(mechanism.as_str())
        .or_else(|| page(&Code::of(mechanism, uturn_model::Kind::Service).to_string()))
}

/// Every page: its name and its text.
pub fn texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    PAGES.iter().copied()
}

/// Every code with its title, in order.
pub fn all() -> impl Iterator<Item = (Code, &'static str)> {
    Code::ALL.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_and_mechanism_has_its_page() {
        for (code, title) in Code::ALL {
            let page = find(&code.to_string()).unwrap_or_else(|| panic!("no page for {code}"));
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

    /// The scenarios that a page names are in the tree, and most pages name some.
    #[test]
    fn every_scenario_that_is_named_exists() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let mut pages = 0;
        for (page, text) in texts() {
            let (_, after) = text.split_once("\n## See it on a kernel\n").unwrap();
            let section = after.split("\n## ").next().unwrap();
            let named = section.lines().filter_map(|line| line.strip_prefix("    uturn lab run "));
            let named: Vec<&str> = named.collect();
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
