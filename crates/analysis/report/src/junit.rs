//! Formats a scan for `scan -o junit`: a failing test case for each finding, and a passing one for
//! each code without findings.

use uturn_diagnose::{Code, Finding, Observation};

use crate::scan::{self, ScanReport};
use crate::words;
use crate::xml::escape;

/// Returns the whole document.
pub fn scan(report: &ScanReport) -> String {
    let mut cases = String::new();
    let mut counts = Counts::default();
    for code in Code::all() {
        let class = format!("{code} {}", code.title());
        let here = report.findings.iter().enumerate().filter(|(_, finding)| finding.code == code);
        let mut is_clean = true;
        for (at, finding) in here {
            is_clean = false;
            let body = if report.fails(finding) {
                counts.failed += 1;
                failure(report, at, finding)
            } else {
                format!(
                    "      <system-out>{}</system-out>\n",
                    escape(&details(report, at, finding))
                )
            };
            cases.push_str(&case(&mut counts, &class, &name(finding), &body));
        }
        for aside in report.aside.iter().filter(|aside| aside.finding.code == code) {
            is_clean = false;
            counts.skipped += 1;
            let why = escape(&aside.why.to_string());
            let body = format!("      <skipped message=\"{why}\"/>\n");
            cases.push_str(&case(&mut counts, &class, &name(&aside.finding), &body));
        }
        if is_clean {
            cases.push_str(&case(&mut counts, &class, "nothing found", ""));
        }
    }
    let Counts { all, failed, skipped } = counts;
    let attributes =
        format!("name=\"uturn scan\" tests=\"{all}\" failures=\"{failed}\" errors=\"0\"");
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {attributes}>\n  \
         <testsuite {attributes} skipped=\"{skipped}\">\n{cases}  </testsuite>\n</testsuites>\n"
    )
}

#[derive(Default)]
struct Counts {
    all: usize,
    failed: usize,
    skipped: usize,
}

fn case(counts: &mut Counts, class: &str, name: &str, body: &str) -> String {
    counts.all += 1;
    let head = format!("    <testcase classname=\"{}\" name=\"{}\"", escape(class), escape(name));
    match body {
        "" => format!("{head}/>\n"),
        body => format!("{head}>\n{body}    </testcase>\n"),
    }
}

fn name(finding: &Finding) -> String {
    format!("{} {}", finding.subject.short(), scan::targets(finding)).trim_end().to_owned()
}

fn failure(report: &ScanReport, at: usize, finding: &Finding) -> String {
    format!(
        "      <failure type=\"{}\" message=\"{}\">{}</failure>\n",
        finding.severity,
        escape(&scan::sentence(finding)),
        escape(&details(report, at, finding))
    )
}

/// Describes a finding: its origin, its evidence and its cures.
fn details(report: &ScanReport, at: usize, finding: &Finding) -> String {
    let mut text = format!("{}\n", scan::sentence(finding));
    if let Some(origin) = report.origins.get(at) {
        text.push_str(&format!("at: {origin}\n"));
    }
    for evidence in report.evidence.get(at).into_iter().flatten() {
        let Observation { place: _, what, by } = evidence;
        text.push_str(&format!("evidence: {} {what} ({by})\n", words::place(evidence)));
    }
    for cure in &finding.cures {
        text.push_str(&format!("cure: {cure}\n"));
    }
    if let Some(untried) = &finding.untried {
        text.push_str(&format!("cure: {}\n", untried.in_a_line()));
    }
    text.push_str(&format!("uturn explain {} tells what it means\n", finding.code));
    text
}
