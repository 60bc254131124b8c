//! Formats findings one below the other, for terminals that are too narrow for a table.

use super::{ScanReport, cures, failing, paint, reached, reason};
use crate::fold::{beside, fold};
use crate::style::{self, Style};

/// Formats a paragraph for each finding.
pub(super) fn text(report: &ScanReport, style: Style) -> String {
    let all: Vec<String> =
        (0..report.findings.len()).map(|index| paragraph(report, index, style)).collect();
    all.join("\n")
}

fn paragraph(report: &ScanReport, index: usize, style: Style) -> String {
    let finding = &report.findings[index];
    let mut text = String::new();
    let title = format!("{}: {}", finding.severity, reached(finding));
    for line in fold(&style::in_a_line(&title), style.width) {
        text.push_str(&style.paint(paint(finding.severity).bold(), line));
        text.push('\n');
    }
    let because = format!("{} ({})", reason(report, index), finding.code);
    let lines = [
        ("failing", failing(finding)),
        ("who", report.who(index)),
        ("because", because),
        ("cure", cures(finding)),
    ];
    for (label, what) in lines.into_iter().filter(|(_, what)| !what.is_empty()) {
        text.push_str(&beside(&format!("  {label:<9}"), &what, style.width));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::finding;
    use crate::scan::{Listing, text as whole};

    #[test]
    fn a_narrow_terminal_gets_paragraphs_that_fit() {
        let report = ScanReport::new(vec![
            finding("front", &[":80 shop.example.com/", ":80 shop.example.com/x"]),
            finding("back", &["svc/shop/a-service-with-a-name-that-is-rather-long:80"]),
        ]);
        let narrow = Style { width: 60, line_limit: Some(60), ..Style::PLAIN };
        let text = whole(&report, Listing::Short, narrow);
        assert!(
            text.starts_with(
                "\
error: ingress/shop/front :80 shop.example.com/ + 1 more
  failing  1 in 2 after 4 s
"
            ),
            "{text}"
        );
        let (findings, _) = text.split_once("\n\n2 findings").unwrap();
        assert!(findings.lines().all(|line| crate::fold::length(line) <= 60), "{text}");
        assert!(findings.contains("because  ingress/shop/back: "), "{text}");
        let wide = Style { width: 130, line_limit: Some(130), ..Style::PLAIN };
        assert!(whole(&report, Listing::Short, wide).starts_with("SEVERITY"));
    }
}
