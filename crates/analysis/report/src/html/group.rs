//! Findings with the same cause: the worst in full, the others folded.

use std::collections::{BTreeMap, HashMap};

use askama::Template;
use uturn_diagnose::{Code, Finding, Group, GroupCure, Severity};
use uturn_model::shell::Command;
use uturn_model::{Flow, ObjectKind, Share};

use super::finding::{FindingView, RouteView, picture};
use super::room::{MAX_IN_FULL, MAX_PICTURES, MAX_ROWS, share_out};
use crate::markup::Markup;
use crate::scan::groups::{self, untried};
use crate::scan::{self, ScanReport};
use crate::words;
use uturn_diagnose::analysis::InFull;

/// The groups that have room on the page.
pub(super) struct Articles {
    /// An article for each group, from the first on.
    pub(super) shown: Vec<Markup>,
    /// The findings of the other groups, by code.
    pub(super) omitted: BTreeMap<Code, usize>,
}

#[derive(Template)]
#[template(path = "group.html")]
struct Article<'a> {
    number: usize,
    severity: Severity,
    code: Code,
    count: usize,
    heading: String,
    /// The text by which the filter finds every finding of the group.
    find: String,
    /// The summary; `None` if the group is a single finding.
    summary: Option<Summary>,
    worst: FindingView<'a>,
    others_heading: String,
    others: &'a [Markup],
    others_omitted: usize,
}

/// The common properties of a group's findings.
struct Summary {
    because: String,
    objects: String,
    targets: String,
    clients: String,
    shares: Option<String>,
    cure: String,
}

/// A finding of a group after its worst.
#[derive(Template)]
#[template(path = "row.html")]
struct Row<'a> {
    failing: String,
    clients: String,
    target: String,
    cure: Option<String>,
    full: Option<FindingView<'a>>,
}

/// Renders the groups for which there is room.
pub(super) fn articles(report: &ScanReport, details: &BTreeMap<usize, InFull>) -> Articles {
    let groups = &report.groups;
    let mut pictures = Pictures::default();
    // The worst findings of all groups come before all others: there may not be room for every
    // picture.
    let worst: Vec<FindingView<'_>> =
        groups.iter().map(|group| full(report, group.worst(), details, &mut pictures)).collect();
    let rows = rows(report, details, &mut pictures);
    let mut articles = Articles { shown: Vec::new(), omitted: BTreeMap::new() };
    let mut used = 0;
    for (number, ((group, worst), rows)) in (1..).zip(groups.iter().zip(worst).zip(rows)) {
        if used > MAX_IN_FULL {
            *articles.omitted.entry(group.cause.code).or_default() += group.members.len();
            continue;
        }
        let beside = worst.route.size() + rows.size();
        let article = Markup::of(&Article::new(report, group, number, worst, &rows));
        used += article.len() - beside;
        articles.shown.push(article);
    }
    articles
}

fn full<'a>(
    report: &'a ScanReport,
    index: usize,
    details: &'a BTreeMap<usize, InFull>,
    pictures: &mut Pictures<'a>,
) -> FindingView<'a> {
    let details = details.get(&index);
    let route = details.map_or(RouteView::None, |details| pictures.route(report, index, details));
    FindingView::new(report, index, details, route)
}

/// The findings of a group after its worst, for which there is room.
struct Rows {
    shown: Vec<Markup>,
    omitted: usize,
}

impl Rows {
    fn size(&self) -> usize {
        self.shown.iter().map(Markup::len).sum()
    }

    /// Removes the last rows, so that the others take at most `most` bytes.
    fn cut(&mut self, most: usize) {
        let mut used = 0;
        let fits = |row: &&Markup| {
            used += row.len();
            used <= most
        };
        let kept = self.shown.iter().take_while(fits).count();
        self.omitted = self.shown.len() - kept;
        self.shown.truncate(kept);
    }
}

fn rows<'a>(
    report: &'a ScanReport,
    details: &'a BTreeMap<usize, InFull>,
    pictures: &mut Pictures<'a>,
) -> Vec<Rows> {
    let mut row = |index: &usize| {
        let is_full = details.contains_key(index);
        let full = is_full.then(|| full(report, *index, details, pictures));
        Markup::of(&Row::new(&report.findings[*index], full))
    };
    let shown = |group: &Group| group.members[1..].iter().map(&mut row).collect();
    let mut all: Vec<Rows> =
        report.groups.iter().map(shown).map(|shown| Rows { shown, omitted: 0 }).collect();
    let most = share_out(&all.iter().map(Rows::size).collect::<Vec<_>>(), MAX_ROWS);
    all.iter_mut().for_each(|rows| rows.cut(most));
    all
}

/// The pictures on the page.
#[derive(Default)]
struct Pictures<'a> {
    used: usize,
    /// The finding for which a flow is drawn.
    drawn: HashMap<&'a Flow, usize>,
}

impl<'a> Pictures<'a> {
    /// Returns the view of the route of a finding's packet. The first picture is open.
    fn route(&mut self, report: &ScanReport, index: usize, details: &'a InFull) -> RouteView {
        let finding = &report.findings[index];
        let Some(flow) = &details.flow else { return RouteView::None };
        let command =
            Command::new("uturn trace").with(&report.input).with(&flow.arguments()).to_string();
        if let Some(drawn) = self.drawn.get(flow) {
            let other = &report.findings[*drawn];
            let (number, subject) = (drawn + 1, other.subject.short());
            return RouteView::DrawnAt { number, code: other.code, subject };
        }
        match picture(finding, index, details) {
            Some(picture) if self.used + picture.len() <= MAX_PICTURES => {
                let is_open = self.drawn.is_empty();
                self.used += picture.len();
                self.drawn.insert(flow, index);
                RouteView::Drawn { picture, command, is_open }
            }
            _ => RouteView::Command(command),
        }
    }
}

impl<'a> Article<'a> {
    fn new(
        report: &ScanReport,
        group: &Group,
        number: usize,
        worst: FindingView<'a>,
        others: &'a Rows,
    ) -> Self {
        let count = group.members.len();
        let (code, because) = (group.cause.code, because(report, group));
        Self {
            number,
            severity: group.severity,
            code,
            count,
            heading: match count {
                1 => worst.subject.clone(),
                count => format!("{} findings", words::grouped(count)),
            },
            find: format!("{code} {} {because}", code.title()).to_lowercase(),
            summary: (count > 1).then(|| Summary::new(report, group)),
            worst,
            others_heading: match count {
                2 => "The other finding".to_owned(),
                count => format!("The other {} findings", words::grouped(count - 1)),
            },
            others: &others.shown,
            others_omitted: others.omitted,
        }
    }
}

impl Summary {
    fn new(report: &ScanReport, group: &Group) -> Self {
        Self {
            because: because(report, group),
            objects: objects(report, group),
            targets: words::count(group.targets, "target"),
            clients: words::who(&group.clients),
            shares: shares(group.members.iter().map(|index| &report.findings[*index])),
            cure: cure(report, group),
        }
    }
}

/// Describes why the calls of a group fail: its mechanism, else the title of its code, and the
/// conditions of all its findings.
pub(super) fn because(report: &ScanReport, group: &Group) -> String {
    let cause = &group.cause;
    if group.members.len() == 1 {
        return report.because(group.worst());
    }
    let why = cause
        .mechanism
        .map_or_else(|| cause.code.title().to_owned(), |mechanism| mechanism.to_string());
    if cause.conditions.is_empty() {
        why
    } else {
        format!("{why} if {}", cause.conditions.join(" and "))
    }
}

/// Returns the cure that helps all findings of a group.
pub(super) fn cure(report: &ScanReport, group: &Group) -> String {
    match group.cure(&report.findings) {
        Some(cure) if group.members.len() == 1 => cure.title().to_string(),
        Some(GroupCure::Once(title)) => format!("{title} (one change for all)"),
        Some(GroupCure::ForEach(title)) => format!("{title}; likewise for the others"),
        None => match untried(report, group) {
            Some(untried) => untried,
            None if report.findings[group.worst()].cures.is_empty() => groups::cure(report, group),
            None => "none serves all of them".to_owned(),
        },
    }
}

/// Returns the object of a single finding, or the number of objects with their kind.
pub(super) fn objects(report: &ScanReport, group: &Group) -> String {
    match (group.cause.object_kind, group.objects) {
        (_, 1) => report.findings[group.worst()].subject.short(),
        (ObjectKind::Ingress, count) => format!("{} Ingresses", words::grouped(count)),
        (kind, count) => format!("{} {kind}s", words::grouped(count)),
    }
}

/// Describes the smallest and the largest share of calls that fail.
fn shares<'f>(findings: impl Iterator<Item = &'f Finding> + Clone) -> Option<String> {
    let share = |finding: &Finding| finding.share_failing;
    let least = findings.clone().map(share).min_by(Share::exact_cmp)?;
    let most = findings.map(share).max_by(Share::exact_cmp)?;
    let named = [least, most].map(words::share).map(|share| match share.as_str() {
        "always" => "all".to_owned(),
        _ => share,
    });
    let named = if named[0] == named[1] { named[0].clone() } else { named.join(" to ") };
    (!most.is_none()).then(|| format!("{named} of the calls"))
}

impl<'a> Row<'a> {
    fn new(finding: &Finding, full: Option<FindingView<'a>>) -> Self {
        let target = format!("{} {}", finding.subject.short(), scan::targets(finding));
        Self {
            failing: scan::failing(finding),
            clients: words::who(&finding.clients),
            target: target.trim_end().to_owned(),
            cure: Some(scan::cures(finding)).filter(|text| !text.is_empty()),
            full,
        }
    }
}
