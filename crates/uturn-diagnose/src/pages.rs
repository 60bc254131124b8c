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
    "UT201",
    "UT311",
    "UT312",
    "UT401",
    "UT501",
    "UT601",
    "UT602",
    "UT701",
    "UT702",
    "UT703",
    "UT704",
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
}
