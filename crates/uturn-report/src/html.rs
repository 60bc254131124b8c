//! `scan -o html`: one page that needs no network and no other file.
//!
//! Findings stand by harm, each with what it rests on, its way as a picture, its cures with
//! their diffs and its page. Of many that are alike the worst stands for all, and they are
//! a line each. Everything is there without scripts; they only filter. What would make the
//! page too large is folded, and said.

mod finding;
mod page;
mod rows;

use std::collections::{BTreeMap, HashMap};

use uturn_diagnose::{Alike, Code, Cure, Finding, Severity};
use uturn_model::{Flow, Share, Verdict};

use crate::scan::{ScanReport, Why};
use crate::words;
use crate::xml::escape;

/// What is shown of a finding beside the finding itself.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// The flow that shows it.
    pub flow: Option<Flow>,
    /// What that flow comes to, with its ways.
    pub verdicts: Vec<Verdict>,
    /// What helps, and what does not.
    pub cures: Vec<Cure>,
}

/// What is told in full takes no more, and with what is told in short no more than that; the
/// rest is counted.
const MOST_IN_FULL: usize = 2_000_000;
const MOST_BYTES: usize = 2_300_000;
/// Pictures together take no more of that; the rest has the command that draws it.
const MOST_PICTURES: usize = 1_500_000;

/// How the way of a finding is shown.
enum Way {
    /// As a picture.
    Drawn(String),
    /// It is the one that was drawn for another finding, of this number.
    SeenAt(usize),
    /// There is no room for it.
    Named,
    /// Nor is there for anything but its heading.
    Untold,
}

/// The page. What is shown of the first of those that are alike comes in their order; it may
/// be shorter.
pub fn scan(report: &ScanReport, alike: &[Alike], shown: &[Shown]) -> String {
    let mut articles = String::new();
    let mut pictures = 0;
    let mut left: BTreeMap<Code, usize> = BTreeMap::new();
    let mut drawn_at: HashMap<&Flow, usize> = HashMap::new();
    let nothing = Shown::default();
    let mut listed = 0;
    for (at, (one, list)) in alike.iter().zip(rows::lists(report, alike)).enumerate() {
        if articles.len() - listed > MOST_BYTES {
            *left.entry(report.findings[one.first].code).or_default() += one.all.len();
            continue;
        }
        let shown = shown.get(at).unwrap_or(&nothing);
        let known = shown.flow.as_ref().and_then(|flow| drawn_at.get(flow));
        let way = match (known, finding::picture(report, one, shown)) {
            _ if articles.len() - listed > MOST_IN_FULL => Way::Untold,
            (Some(at), Some(_)) => Way::SeenAt(*at),
            (None, Some(drawn)) if pictures + drawn.len() <= MOST_PICTURES => {
                pictures += drawn.len();
                drawn_at.extend(shown.flow.as_ref().map(|flow| (flow, one.first)));
                Way::Drawn(drawn)
            }
            _ => Way::Named,
        };
        listed += list.len();
        articles.push_str(&finding::article(report, one, shown, &way, &list));
    }
    let title = format!("uturn scan: {}", headline(report));
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
         'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\"/>\n\
         <link rel=\"icon\" href=\"data:,\"/>\n\
         <title>{}</title>\n<style>\n{STYLE}{}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#findings\">Skip to the findings</a>\n{}\n<main>\n{}\
         <section id=\"findings\" aria-labelledby=\"findings-h\" tabindex=\"-1\">\n\
         <h2 id=\"findings-h\">Findings</h2>\n{}{}{articles}{}</section>\n{}{}{}</main>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        escape(&title),
        crate::svg::STYLE,
        header(report),
        overview(report),
        filter(report),
        match report.findings.is_empty() {
            true => "<p class=\"good\">Nothing found.</p>\n",
            false => "",
        },
        folded(&left),
        set_aside(report),
        ground(report),
        pages(report),
    )
}

fn headline(report: &ScanReport) -> String {
    match report.findings.len() {
        0 => "nothing found".to_owned(),
        found => words::count(found, "finding"),
    }
}

fn header(report: &ScanReport) -> String {
    let of = |severity| report.findings.iter().filter(|one| one.severity == severity).count();
    let mut tiles = String::new();
    for severity in [Severity::Error, Severity::Warning, Severity::Info] {
        let (count, what) = (of(severity), severity.as_str());
        if count > 0 {
            let plural = if count == 1 { "" } else { "s" };
            tiles.push_str(&format!(
                "<li class=\"tile {severity}\"><b>{count}</b> {what}{plural}</li>\n"
            ));
        }
    }
    tiles.push_str(&format!(
        "<li class=\"tile\"><b>{} of {}</b> flows fine</li>\n",
        words::grouped(report.fine),
        words::grouped(report.flows)
    ));
    if !report.aside.is_empty() {
        tiles.push_str(&format!(
            "<li class=\"tile\"><b>{}</b> known or ignored</li>\n",
            report.aside.len()
        ));
    }
    format!(
        "<header>\n<h1>uturn scan</h1>\n<p>{}. A flow is a class of pods and a target.</p>\n\
         <ul class=\"tiles\">\n{tiles}</ul>\n</header>",
        escape(&match report.findings.len() {
            0 => "Nothing found".to_owned(),
            _ => headline(report),
        })
    )
}

/// The codes, the worst first.
fn overview(report: &ScanReport) -> String {
    struct Row {
        severity: Severity,
        count: usize,
        worst: Share,
        clients: usize,
    }
    if report.findings.is_empty() {
        return String::new();
    }
    let mut rows: BTreeMap<Code, Row> = BTreeMap::new();
    for one in &report.findings {
        let row = rows.entry(one.code).or_insert_with(|| Row {
            severity: one.severity,
            count: 0,
            worst: Share::NONE,
            clients: 0,
        });
        row.severity = row.severity.max(one.severity);
        row.count += 1;
        row.worst = row.worst.larger(one.share_failing);
        row.clients = row.clients.max(one.clients.len());
    }
    let mut rows: Vec<(Code, Row)> = rows.into_iter().collect();
    rows.sort_by_key(|(code, row)| (std::cmp::Reverse(row.severity), *code));
    let body: String = rows
        .iter()
        .map(|(code, row)| {
            let worst = match row.worst.is_none() {
                false => words::share(row.worst),
                true => "not yet".to_owned(),
            };
            format!(
                "<tr><td>{}</td><td><a href=\"#page-{code}\">{code}</a> {}</td><td>{}</td>\
                 <td>{worst}</td><td>{}</td></tr>\n",
                badge(row.severity),
                escape(code.title()),
                row.count,
                row.clients
            )
        })
        .collect();
    format!(
        "<section aria-labelledby=\"overview-h\">\n<h2 id=\"overview-h\">Overview</h2>\n\
         <div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Codes\">\n<table>\n<thead><tr><th scope=\"col\">Severity</th>\
         <th scope=\"col\">Code</th><th scope=\"col\">Findings</th>\
         <th scope=\"col\">Worst share failing</th><th scope=\"col\">Most clients</th></tr></thead>\n\
         <tbody>\n{body}</tbody>\n</table>\n</div>\n</section>\n"
    )
}

fn badge(severity: Severity) -> String {
    format!("<span class=\"badge {severity}\">{severity}</span>")
}

/// Hidden until the script that makes it work has run.
fn filter(report: &ScanReport) -> String {
    let mut codes: Vec<Code> = report.findings.iter().map(|one| one.code).collect();
    codes.sort_unstable();
    codes.dedup();
    let options: String = codes
        .iter()
        .map(|code| format!("<option value=\"{code}\">{code} {}</option>", escape(code.title())))
        .collect();
    let boxes: String = [Severity::Error, Severity::Warning, Severity::Info]
        .iter()
        .map(|one| {
            format!(
                "<label><input type=\"checkbox\" name=\"severity\" value=\"{one}\" \
                 checked=\"checked\"/> {one}</label>\n"
            )
        })
        .collect();
    format!(
        "<form id=\"filter\" role=\"search\" aria-label=\"Filter the findings\" hidden=\"hidden\">\n\
         <label>Search <input type=\"search\" id=\"words\" placeholder=\"name, host, node, mechanism\" \
         autocomplete=\"off\"/></label>\n\
         <label>Code <select id=\"code\"><option value=\"\">all</option>{options}</select></label>\n\
         <fieldset><legend>Severity</legend>\n{boxes}</fieldset>\n\
         <button type=\"reset\">Show all</button>\n\
         <output id=\"count\" aria-live=\"polite\"></output>\n</form>\n"
    )
}

fn folded(left: &BTreeMap<Code, usize>) -> String {
    if left.is_empty() {
        return String::new();
    }
    let rows: String = left
        .iter()
        .map(|(code, count)| format!("<li>{code} {}: {count}</li>\n", escape(code.title())))
        .collect();
    format!(
        "<div class=\"folded\">\n<p>{} more are folded here, the least harmful; \
         <code>uturn scan -o json</code> has every one of them:</p>\n<ul>\n{rows}</ul>\n</div>\n",
        words::count(left.values().sum(), "finding")
    )
}

/// So many of what does not count are named; the rest is counted.
const MOST_ASIDE: usize = 500;

fn set_aside(report: &ScanReport) -> String {
    if report.aside.is_empty() && report.gone == 0 {
        return String::new();
    }
    let mut rows: String = report
        .aside
        .iter()
        .take(MOST_ASIDE)
        .map(|one| {
            let word = match one.why {
                Why::Ignored { .. } => "ignored",
                Why::Known { .. } => "known",
            };
            format!(
                "<li class=\"{word}\">{} <b>{}</b> {}: {} <span class=\"dim\">({})</span></li>\n",
                badge(one.finding.severity),
                one.finding.code,
                escape(&one.finding.subject.to_string()),
                escape(&one.why.to_string()),
                escape(&one.origin.to_string())
            )
        })
        .collect();
    if report.aside.len() > MOST_ASIDE {
        let more = report.aside.len() - MOST_ASIDE;
        rows.push_str(&format!("<li>and {more} more: <code>uturn scan -o json</code></li>\n"));
    }
    if report.gone > 0 {
        rows.push_str(&format!("<li>{} of the baseline are no more there</li>\n", report.gone));
    }
    format!(
        "<section aria-labelledby=\"aside-h\">\n<h2 id=\"aside-h\">Known and ignored</h2>\n\
         <ul>\n{rows}</ul>\n</section>\n"
    )
}

/// What all of it rests on.
fn ground(report: &ScanReport) -> String {
    let list = |items: Vec<String>| -> String {
        items.iter().map(|one| format!("<li>{}</li>\n", escape(one))).collect()
    };
    let supposed = list(report.supposed.iter().map(ToString::to_string).collect());
    let seen = report.seen.iter().map(|(kind, count)| format!("{count} {kind}"));
    let skipped = report.skipped.iter().map(|one| match one.files.is_empty() {
        true => format!("{} {} (not needed)", one.count, one.kind),
        false => format!("left out: {}", crate::scan::left_out(one)),
    });
    let seen: Vec<String> = seen.chain(skipped).collect();
    let seen = match seen.as_slice() {
        [] => String::new(),
        some => list(vec![some.join(", ")]),
    };
    let mut text =
        "<section aria-labelledby=\"ground-h\">\n<h2 id=\"ground-h\">What it rests on</h2>\n"
            .to_owned();
    for (heading, items) in [("Supposed", supposed), ("Read", seen)] {
        if !items.is_empty() {
            text.push_str(&format!("<h3>{heading}</h3>\n<ul>\n{items}</ul>\n"));
        }
    }
    text.push_str("</section>\n");
    text
}

/// The pages of the codes that were found.
fn pages(report: &ScanReport) -> String {
    let aside = report.aside.iter().map(|one| &one.finding);
    let mut codes: Vec<Code> =
        report.findings.iter().chain(aside).map(|one: &Finding| one.code).collect();
    codes.sort_unstable();
    codes.dedup();
    if codes.is_empty() {
        return String::new();
    }
    let names: Vec<String> = codes.iter().map(ToString::to_string).collect();
    let all: String = codes
        .iter()
        .map(|code| {
            let text = code.page();
            let (heading, body) = text.split_once('\n').unwrap_or((text, ""));
            format!(
                "<details class=\"page\" id=\"page-{code}\">\n<summary>{}</summary>\n{}</details>\n",
                escape(heading.trim_start_matches('#').trim()),
                page::html(body, &names)
            )
        })
        .collect();
    format!(
        "<section aria-labelledby=\"pages-h\">\n<h2 id=\"pages-h\">What the codes mean</h2>\n\
         {all}</section>\n"
    )
}

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/script.js");
