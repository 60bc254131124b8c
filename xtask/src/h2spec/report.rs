//! Reads the report of h2spec and the list of explained failures.

use std::fmt;

/// The results of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) passed: usize,
    /// The section and title of each test that was not passed.
    pub(super) failed: Vec<String>,
}

/// The cases that need not pass, each as protocol, section and title.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Explained(Vec<String>);

impl Report {
    /// Reads a report in JUnit's format, as h2spec writes it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut report = Self::default();
        for case in text.split("<testcase ").skip(1) {
            let (head, rest) = case.split_once('>').ok_or("a test case without an end")?;
            let content = rest.split("</testcase>").next().unwrap_or_default().trim();
            if content.is_empty() {
                report.passed += 1;
                continue;
            }
            let section = attribute(head, "package").ok_or("a test case without a section")?;
            let title = attribute(head, "classname").ok_or("a test case without a title")?;
            report.failed.push(format!("{section} {title}"));
        }
        Ok(report)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed } = self;
        write!(f, "{} tests, {passed} passed", passed + failed.len())?;
        failed.iter().try_for_each(|case| write!(f, "\n  not passed: {case}"))
    }
}

impl Explained {
    /// Reads the list of cases and reasons.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut cases: Vec<String> = Vec::new();
        let mut lacks_reason = false;
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            let is_reason = line.starts_with(' ');
            if !is_reason && lacks_reason {
                break;
            }
            if is_reason && cases.is_empty() {
                return Err(format!("explained.txt: a reason without a case: {line}"));
            }
            if !is_reason {
                cases.push(line.trim_end().to_owned());
            }
            lacks_reason = !is_reason;
        }
        match cases.last() {
            Some(case) if lacks_reason => Err(format!("explained.txt: {case} has no reason")),
            _ => Ok(Self(cases)),
        }
    }

    /// Returns the deviations of a report from the list.
    pub(super) fn faults(&self, protocol: &str, report: &Report) -> Vec<String> {
        let failed: Vec<String> =
            report.failed.iter().map(|case| format!("{protocol} {case}")).collect();
        let is_of = |case: &&String| case.split(' ').next() == Some(protocol);
        let unexplained = failed.iter().filter(|case| !self.0.contains(case));
        let passed = self.0.iter().filter(is_of).filter(|case| !failed.contains(case));
        unexplained
            .map(|case| format!("not passed: {case}"))
            .chain(passed.map(|case| format!("passes, but explained.txt has it: {case}")))
            .collect()
    }
}

fn attribute(head: &str, name: &str) -> Option<String> {
    let (_, rest) = head.split_once(&format!("{name}=\""))?;
    let (value, _) = rest.split_once('"')?;
    let escapes = [("&#34;", "\""), ("&#39;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")];
    Some(escapes.iter().fold(value.to_owned(), |text, (from, to)| text.replace(from, to)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"<testsuites><testsuite name="x" package="http2/3.5" errors="1">
        <testcase package="http2/3.5" classname="Sends a preface" time="0.0002"></testcase>
        <testcase package="http2/3.5" classname="Sends a &#34;wrong&#34; one" time="0.0008">
          <error>Connection closed</error>
        </testcase>
      </testsuite></testsuites>"#;

    #[test]
    fn failures_are_compared_with_the_list() {
        let report = Report::parse(REPORT).unwrap();
        let failed = vec!["http2/3.5 Sends a \"wrong\" one".to_owned()];
        assert_eq!(report, Report { passed: 1, failed });
        let list = "# About\n\nHTTP http2/3.5 Sends a \"wrong\" one\n  For it\n  is so.\n";
        let explained = Explained::parse(list).unwrap();
        assert!(explained.faults("HTTP", &report).is_empty());
        let of_tls = explained.faults("HTTPS", &report);
        assert_eq!(of_tls, ["not passed: HTTPS http2/3.5 Sends a \"wrong\" one"]);
        let passes = explained.faults("HTTP", &Report::default());
        assert_eq!(
            passes,
            ["passes, but explained.txt has it: HTTP http2/3.5 Sends a \"wrong\" one"]
        );
    }

    #[test]
    fn each_case_has_a_reason() {
        for (list, wrong) in [
            ("HTTP a b\n", "HTTP a b has no reason"),
            ("HTTP a b\nHTTP c d\n  why\n", "HTTP a b has no reason"),
            ("  why\n", "a reason without a case"),
        ] {
            let found = Explained::parse(list).unwrap_err();
            assert!(found.contains(wrong), "{found}");
        }
        let list = include_str!("../../../conformance/h2spec/explained.txt");
        assert!(Explained::parse(list).is_ok());
    }
}
