//! Tests with any text in names, labels and reasons: every form of output stays well-formed, and
//! hides no character.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::sample::{self, any_text, flow, verdicts};
use crate::style::{Style, on_terminal};
use crate::well_formed::well_formed;
use crate::{html, junit, sarif, scan, svg};
use uturn_diagnose::analysis::InFull;
use uturn_model::visible::is_hidden;

proptest! {
    #[test]
    fn every_form_holds_any_text(text in any_text()) {
        let report = sample::report(&text);
        let shown = |form: &str| form.chars().all(|c| matches!(c, '\n' | '\t') || !is_hidden(c));
        well_formed(&junit::scan(&report))?;
        let cures = vec![sample::cure(&text), sample::refused_cure(&text)];
        let details = InFull { flow: Some(flow()), verdicts: verdicts(&text), cures };
        well_formed(&html::scan(&report, &BTreeMap::from([(0, details)])))?;
        well_formed(&svg::trace(&flow(), &verdicts(&text), std::slice::from_ref(&text)))?;
        let sarif = sarif::scan(&report);
        prop_assert!(serde_json::from_str::<serde_json::Value>(&sarif).is_ok());
        prop_assert!(shown(&sarif) && shown(&junit::scan(&report)));
        prop_assert!(shown(&html::scan(&report, &BTreeMap::new())));
        let style = Style { color: true, wide: true, ..Style::PLAIN };
        let lines = scan::text(&report, scan::Listing::Every, style);
        let colours = ["0", "1", "2", "31", "32", "33"].map(|number| format!("\u{1b}[{number}m"));
        let lines = on_terminal(&lines).into_owned();
        let plain = colours.iter().fold(lines, |text, colour| text.replace(colour, ""));
        prop_assert!(plain.chars().all(|c| c == '\n' || !is_hidden(c)), "{plain:?}");
    }
}
