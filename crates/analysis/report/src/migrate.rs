//! A migration that was tried: what it does to calls, and what to look at besides.

use uturn_whatif::presets::{self, Preset};

use crate::fold::beside;
use crate::lines::Lines as _;
use crate::style::Style;
use crate::table;
use crate::whatif::{self, WhatIfReport};

/// Lists the presets.
pub fn list(style: Style) -> String {
    let row = |preset: Preset| {
        let needs = if preset.needs_objects { " (with -p FILE)" } else { "" };
        vec![preset.name.to_owned(), format!("{}{needs}", preset.title)]
    };
    let rows: Vec<Vec<String>> = presets::all().map(row).collect();
    let mut text = table::render(&["PRESET", "WHAT IT TRIES"], &rows, style);
    text.line("");
    text.line("uturn migrate PRESET -f deploy/    tries one, and says what to look at besides");
    text.line("uturn migrate PRESET --page        prints its page");
    text
}

/// Formats what a preset does to calls, and what to look at besides.
pub fn text(preset: &Preset, report: &WhatIfReport, style: Style) -> String {
    let mut text = style.bold(&format!("{}: {}", preset.name, preset.title));
    text.push_str("\n\n");
    text.push_str(&whatif::text(report, style));
    text.push('\n');
    text.line(&style.bold("Look at besides:"));
    for check in &preset.checks {
        text.push_str(&beside(&format!("  {}: ", check.about), &plain(check.text), style.width));
        if let Some(see) = check.see {
            text.line(&format!("    {see}"));
        }
    }
    text.line(&style.bold("Not modelled:"));
    for own in &preset.not_modelled {
        text.push_str(&beside("  ", &plain(own), style.width));
    }
    text
}

/// Formats the same for the comment of a pull request.
pub fn markdown(preset: &Preset, report: &WhatIfReport) -> String {
    let mut text = format!("### {}: {}\n\n", preset.name, preset.title);
    text.push_str(&whatif::markdown(report));
    text.push_str("\n<details><summary>Look at besides</summary>\n\n");
    for check in &preset.checks {
        let see = check.see.map(|see| format!(" `{see}`")).unwrap_or_default();
        text.line(&format!("- **{}**: {}{see}", check.about, check.text));
    }
    for own in &preset.not_modelled {
        text.line(&format!("- not modelled: {own}"));
    }
    text.push_str("\n</details>\n");
    text
}

/// Returns a text of a page without its marks for code.
fn plain(text: &str) -> String {
    text.replace('`', "")
}
