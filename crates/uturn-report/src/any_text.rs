//! Any text in names, labels and reasons: every form of output stays well-formed.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::sample::{self, any_text, flow, verdicts};
use crate::well_formed::well_formed;
use crate::{html, junit, sarif, svg};
use uturn_diagnose::analysis::InFull;

proptest! {
    #[test]
    fn every_form_holds_any_text(text in any_text()) {
        let report = sample::report(&text);
        well_formed(&junit::scan(&report))?;
        let cures = vec![sample::cure(&text), sample::refused_cure(&text)];
        let details = InFull { flow: Some(flow()), verdicts: verdicts(&text), cures };
        well_formed(&html::scan(&report, &BTreeMap::from([(0, details)])))?;
        well_formed(&svg::trace(&flow(), &verdicts(&text), std::slice::from_ref(&text)))?;
        let sarif = sarif::scan(&report);
        prop_assert!(serde_json::from_str::<serde_json::Value>(&sarif).is_ok());
    }
}
