//! Reads a preset's page.

use super::Preset;
use super::template::Template;

/// Something to look at besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// What it is about: `sysctls`.
    pub about: &'static str,
    /// What to know of it.
    pub text: &'static str,
    /// The command that shows it, if there is one.
    pub see: Option<&'static str>,
}

/// Reads a page; `None` if it is none.
pub(super) fn preset(page: &'static str) -> Option<Preset> {
    let (name, title) = page.lines().next()?.strip_prefix("# ")?.split_once(": ")?;
    let head = page.split("\n## ").next()?;
    let code = head.lines().filter_map(|line| line.strip_prefix("    "));
    let mut templates = Vec::new();
    let mut needs_objects = false;
    for line in code.filter(|line| !line.starts_with("uturn ")) {
        match line {
            "needs -p" => needs_objects = true,
            line => templates.push(Template::read(line)?),
        }
    }
    let checks = list(page, "Look at besides").map(check).collect::<Option<_>>()?;
    let not_modelled = list(page, "Not modelled").collect();
    Some(Preset { name, title, needs_objects, checks, not_modelled, page, templates })
}

/// Returns the items of the list of a section.
fn list(page: &'static str, section: &str) -> impl Iterator<Item = &'static str> {
    let sections = page.split("\n## ").skip(1);
    let own = sections.filter_map(move |text| text.strip_prefix(section)).next();
    own.unwrap_or_default().lines().filter_map(|line| line.strip_prefix("- "))
}

/// Reads an item: `**about**: text. See: command`.
fn check(item: &'static str) -> Option<Check> {
    let (about, text) = item.strip_prefix("**")?.split_once("**: ")?;
    let (text, see) = match text.split_once(" See: ") {
        Some((text, see)) => (text, Some(see)),
        None => (text, None),
    };
    Some(Check { about, text, see })
}
