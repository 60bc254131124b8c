//! Findings that are alike, a line each.

use uturn_diagnose::{Alike, Finding};

use crate::scan::{self, ScanReport};
use crate::words;
use crate::xml::escape;

/// Lines of all lists together take no more; the rest is counted.
const MOST_BYTES: usize = 2_300_000;

/// The list of each of these; nothing where a finding is by itself.
pub(super) fn lists(report: &ScanReport, all: &[Alike]) -> Vec<String> {
    let lines: Vec<Vec<String>> = all
        .iter()
        .map(|one| match one.all.as_slice() {
            [_] => Vec::new(),
            some => some.iter().map(|at| line(&report.findings[*at])).collect(),
        })
        .collect();
    let sizes: Vec<usize> = lines.iter().map(|lines| lines.iter().map(String::len).sum()).collect();
    let most = level(&sizes, MOST_BYTES);
    lines.iter().map(|lines| list(lines, most)).collect()
}

/// What each may take at most, so that all together fit: small ones whole, large ones alike.
fn level(sizes: &[usize], most: usize) -> usize {
    let mut sorted = sizes.to_vec();
    sorted.sort_unstable();
    let mut left = most;
    for (at, size) in sorted.iter().enumerate() {
        let each = left / (sorted.len() - at);
        if *size > each {
            return each;
        }
        left -= size;
    }
    usize::MAX
}

fn list(lines: &[String], most: usize) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let mut taken = 0;
    let fits = |line: &&String| {
        taken += line.len();
        taken <= most
    };
    let told: Vec<&str> = lines.iter().take_while(fits).map(String::as_str).collect();
    let more = match lines.len() - told.len() {
        0 => String::new(),
        more => format!(
            "<p class=\"folded\">and {more} more, the least harmful: <code>uturn scan -o json</code> \
             has every one of them</p>\n"
        ),
    };
    format!(
        "<details class=\"alike\">\n<summary>All {}</summary>\n<ul>\n{}</ul>\n{more}</details>\n",
        words::count(lines.len(), "finding"),
        told.concat()
    )
}

fn line(finding: &Finding) -> String {
    let cure = match finding.cures.as_slice() {
        [] => String::new(),
        some => format!("<i>{}</i>", escape(&words::first_of(some))),
    };
    let whom = format!("{} {}", finding.subject.short(), scan::targets(finding));
    format!(
        "<li><b>{}</b><span>{}</span><code>{}</code>{cure}</li>\n",
        escape(&share(finding)),
        escape(&words::who(&finding.clients)),
        escape(whom.trim_end()),
    )
}

/// How often it fails, and how that ends.
pub(super) fn share(finding: &Finding) -> String {
    match finding.share_failing {
        some if !some.is_none() => {
            format!("{} {}", words::share(some), words::ending(finding.outcome))
        }
        _ => "not yet".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_small_is_whole_and_what_is_large_is_cut_alike() {
        assert_eq!(level(&[1, 2, 3], 6), usize::MAX);
        assert_eq!(level(&[], 6), usize::MAX);
        assert_eq!(level(&[10, 1, 10], 11), 5);
        assert_eq!(level(&[10, 10], 0), 0);
    }
}
