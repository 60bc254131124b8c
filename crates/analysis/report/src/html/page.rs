//! The page around the findings.

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use uturn_diagnose::{Code, Group, Severity};
use uturn_model::cluster::Unread;
use uturn_model::{Assumption, ObjectRef, Unjudged};

use super::group::{self, Articles};
use super::markdown;
use crate::markup::Markup;
use crate::scan::{self, ScanReport, summary};
use crate::{svg, words};
use uturn_diagnose::analysis::{Suppressed, Suppression};

/// The largest number of known and ignored findings that are named; the rest is counted.
const MAX_ASIDE: usize = 500;

const SEVERITIES: [Severity; 3] = [Severity::Error, Severity::Warning, Severity::Info];

#[derive(Template)]
#[template(path = "page.html")]
pub(super) struct Page<'a> {
    style: Markup,
    picture_style: Markup,
    script: Markup,
    headline: String,
    title: String,
    causes: String,
    tiles: Vec<Tile>,
    overview: Vec<CauseRow>,
    severities: &'static [Severity],
    /// The codes of all findings.
    codes: BTreeSet<Code>,
    groups: Vec<Markup>,
    omitted: BTreeMap<Code, usize>,
    omitted_count: String,
    unjudged: Vec<UnjudgedRow<'a>>,
    without_address: String,
    unread: Vec<Unread>,
    aside: Vec<AsideRow>,
    aside_omitted: usize,
    gone: usize,
    supposed: &'a [Assumption],
    read: String,
    pages: Vec<CodePage>,
}

/// A number at the top of the page.
struct Tile {
    class: &'static str,
    number: String,
    what: String,
}

/// A cause in the table of all causes.
struct CauseRow {
    number: usize,
    severity: Severity,
    code: Code,
    /// The mechanism and what has to hold, if that says more than the code's title, and the
    /// objects.
    details: String,
    findings: String,
    targets: String,
    clients: String,
    worst: String,
    cure: String,
}

/// A reason why flows cannot be judged.
struct UnjudgedRow<'a> {
    what: String,
    objects: String,
    because: &'a str,
    settle: &'a str,
}

/// A finding that does not count.
struct AsideRow {
    class: &'static str,
    severity: Severity,
    code: Code,
    subject: String,
    why: String,
    origin: String,
}

/// The explanation of a code.
struct CodePage {
    code: Code,
    title: &'static str,
    body: Markup,
}

impl<'a> Page<'a> {
    pub(super) fn new(report: &'a ScanReport, articles: Articles) -> Self {
        let omitted: usize = articles.omitted.values().sum();
        let shown = report.groups.iter().take(articles.shown.len());
        Self {
            style: Markup::own(include_str!("../../templates/style.css")),
            picture_style: Markup::own(svg::STYLE),
            script: Markup::own(include_str!("../../templates/script.js")),
            title: match report.findings.len() {
                0 => "nothing found".to_owned(),
                count => words::count(count, "finding"),
            },
            headline: match report.findings.len() {
                0 => "Nothing found".to_owned(),
                1 => "1 finding".to_owned(),
                count => format!("{} findings", words::grouped(count)),
            },
            causes: words::count(report.groups.len(), "cause"),
            tiles: tiles(report),
            overview: (1..)
                .zip(shown)
                .map(|(number, group)| CauseRow::new(report, group, number))
                .collect(),
            severities: &SEVERITIES,
            codes: report.findings.iter().map(|finding| finding.code).collect(),
            groups: articles.shown,
            omitted: articles.omitted,
            omitted_count: words::count(omitted, "finding"),
            unjudged: report.unjudged.iter().map(UnjudgedRow::new).collect(),
            without_address: summary::without_address(&report.without_address).unwrap_or_default(),
            unread: Unread::grouped(&report.unread),
            aside: report.aside.iter().take(MAX_ASIDE).map(AsideRow::new).collect(),
            aside_omitted: report.aside.len().saturating_sub(MAX_ASIDE),
            gone: report.gone,
            supposed: &report.supposed,
            read: read(report),
            pages: code_pages(report),
        }
    }
}

impl CauseRow {
    fn new(report: &ScanReport, group: &Group, number: usize) -> Self {
        let worst = &report.findings[group.worst()];
        let code = group.cause.code;
        let because = group::because(report, group);
        let objects = group::objects(report, group);
        Self {
            number,
            severity: group.severity,
            code,
            details: if because == code.title() {
                objects
            } else {
                format!("{because} · {objects}")
            },
            findings: words::grouped(group.members.len()),
            targets: words::grouped(group.targets),
            clients: words::who(&group.clients),
            worst: scan::failing(worst),
            cure: group::cure(report, group),
        }
    }
}

impl<'a> UnjudgedRow<'a> {
    fn new(gap: &'a Unjudged) -> Self {
        let objects: Vec<String> = gap.objects.iter().map(ObjectRef::short).collect();
        let (because, settle) = (&*gap.because, &*gap.settle);
        Self { what: gap.to_string(), objects: words::some_of(&objects), because, settle }
    }
}

impl AsideRow {
    fn new(aside: &Suppressed) -> Self {
        Self {
            class: match aside.why {
                Suppression::Ignored { .. } => "ignored",
                Suppression::Known { .. } => "known",
            },
            severity: aside.finding.severity,
            code: aside.finding.code,
            subject: aside.finding.subject.to_string(),
            why: aside.why.to_string(),
            origin: aside.origin.to_string(),
        }
    }
}

fn tiles(report: &ScanReport) -> Vec<Tile> {
    let count = |severity| report.findings.iter().filter(|f| f.severity == severity).count();
    let of_severity = SEVERITIES.into_iter().map(|severity| (severity, count(severity)));
    let mut tiles: Vec<Tile> = of_severity
        .filter(|(_, count)| *count > 0)
        .map(|(severity, count)| Tile {
            class: severity.as_str(),
            number: words::grouped(count),
            what: format!("{severity}{}", if count == 1 { "" } else { "s" }),
        })
        .collect();
    let (fine, flows) = (words::grouped(report.fine), words::grouped(report.flows));
    let number = format!("{fine} of {flows}");
    tiles.push(Tile { class: "flows", number, what: "calls fine".to_owned() });
    if report.open > 0 {
        let number = words::grouped(report.open);
        tiles.push(Tile { class: "aside", number, what: "not judged".to_owned() });
    }
    if !report.aside.is_empty() {
        let number = words::grouped(report.aside.len());
        tiles.push(Tile { class: "aside", number, what: "known or ignored".to_owned() });
    }
    tiles
}

/// Describes which objects were read, and which files and kinds were not used.
fn read(report: &ScanReport) -> String {
    let seen = report.seen.iter().map(|(kind, count)| format!("{count} {kind}"));
    let skipped = report.skipped.iter().map(|skipped| {
        if skipped.files.is_empty() {
            format!("{} {} (not needed)", skipped.count, skipped.kind)
        } else {
            format!("left out: {}", scan::left_out(skipped))
        }
    });
    seen.chain(skipped).collect::<Vec<_>>().join(", ")
}

/// Returns the explanations of the codes that are on the page.
fn code_pages(report: &ScanReport) -> Vec<CodePage> {
    let aside = report.aside.iter().map(|aside| &aside.finding);
    let codes: BTreeSet<Code> =
        report.findings.iter().chain(aside).map(|finding| finding.code).collect();
    let names: Vec<String> = codes.iter().map(ToString::to_string).collect();
    let page = |code: Code| {
        let text = code.page();
        let title = text.lines().next().unwrap_or_default().trim_start_matches('#').trim();
        CodePage { code, title, body: markdown::render(text, &names) }
    };
    codes.into_iter().map(page).collect()
}
