//! One finding on the page.

use std::collections::HashSet;

use uturn_diagnose::cure::{Answer, Cure, unified};
use uturn_diagnose::{Alike, Example, Finding};
use uturn_model::{Kind, ObjectRef, Outcome};

use super::{Shown, Way, badge, rows};
use crate::scan::{self, ScanReport};
use crate::xml::escape;
use crate::{cure, svg, words};

/// So many names stand in a list; the rest is counted.
const MOST_NAMES: usize = 60;
/// So many clients may be searched for.
const MOST_CLIENTS: usize = 1000;

/// Its way, where one was walked.
pub(super) fn picture(report: &ScanReport, alike: &Alike, shown: &Shown) -> Option<String> {
    let finding = &report.findings[alike.first];
    let flow = shown.flow.as_ref()?;
    if shown.verdicts.is_empty() || matches!(finding.example, Example::Probes(..)) {
        return None;
    }
    let name = format!("w{}", alike.first + 1);
    Some(svg::picture(flow, &shown.verdicts, &[finding.code.to_string()], &name))
}

/// A finding, or the first of those that are alike with the list of all.
pub(super) fn article(
    report: &ScanReport,
    alike: &Alike,
    shown: &Shown,
    way: &Way,
    list: &str,
) -> String {
    let at = alike.first;
    let finding = &report.findings[at];
    let number = at + 1;
    let (code, severity) = (finding.code, finding.severity);
    let subject = finding.subject.short();
    let because = scan::because(finding);
    let who = words::who(&finding.clients);
    let pods: Vec<String> =
        words::pods(&finding.clients, MOST_CLIENTS).iter().map(ToString::to_string).collect();
    let (heading, find) = match alike.all.len() {
        1 if matches!(way, Way::Untold) => (subject.clone(), format!("{subject} {who}")),
        1 => (subject.clone(), find(finding, &pods)),
        many => (format!("{many} alike ({})", manner(finding.outcome)), String::new()),
    };
    let find = format!("{code} {} {because} {find}", code.title());
    let mut text = format!(
        "<article id=\"f{number}\" class=\"{severity}\" data-severity=\"{severity}\" \
         data-code=\"{code}\" data-count=\"{}\" data-find=\"{}\" aria-labelledby=\"f{number}-h\">\n\
         <h3 id=\"f{number}-h\">{} {code} {}: {}</h3>\n",
        alike.all.len(),
        escape(&find.to_lowercase()),
        badge(severity),
        escape(code.title()),
        escape(&heading),
    );
    if alike.all.len() > 1 {
        text.push_str(&format!(
            "<p>{} · <a href=\"#page-{code}\">what {code} means</a></p>\n{list}\
             <h4>The worst of them: {}</h4>\n",
            escape(&together(report, alike)),
            escape(&subject)
        ));
    }
    text.push_str(&format!(
        "<p><b>{}</b> for {} · {}{}</p>\n",
        escape(&rows::share(finding)),
        escape(&who),
        escape(&because),
        match alike.all.len() {
            1 => format!(" · <a href=\"#page-{code}\">what {code} means</a>"),
            _ => String::new(),
        }
    ));
    if matches!(way, Way::Untold) {
        text.push_str(
            "<p class=\"dim\">Folded: there is no room for more of it here</p>\n</article>\n",
        );
        return text;
    }
    text.push_str(&names("Targets", &finding.targets, finding.targets.len()));
    text.push_str(&names("Clients", &pods, finding.clients.pod_count()));
    if let Some(origin) = report.origins.get(at) {
        text.push_str(&format!("<p>Written at <code>{}</code></p>\n", escape(&origin.to_string())));
    }
    if !finding.cures.is_empty() {
        text.push_str(&format!("<p>Cure: {}</p>\n", escape(&words::first_of(&finding.cures))));
    }
    text.push_str(&evidence(report, at));
    text.push_str(&self::way(report, shown, way));
    text.push_str(&cures(finding, &shown.cures));
    text.push_str("</article>\n");
    text
}

/// What a finding may be searched for: everything that is said in a line, and the names.
fn find(finding: &Finding, pods: &[String]) -> String {
    let mut find = format!("{} {}", finding.subject.short(), words::who(&finding.clients));
    let nodes: Vec<String> = finding.clients.nodes().iter().map(ToString::to_string).collect();
    for one in finding.targets.iter().chain(&nodes).chain(pods).take(3 * MOST_NAMES) {
        find.push_str(&format!(" {one}"));
    }
    find
}

/// What those that are alike have in common, and how far they differ.
fn together(report: &ScanReport, alike: &Alike) -> String {
    let all = || alike.all.iter().map(|at| &report.findings[*at]);
    let subjects: HashSet<&ObjectRef> = all().map(|one| &one.subject).collect();
    let by_share = |a: &&Finding, b: &&Finding| a.share_failing.exact_cmp(&b.share_failing);
    let first = &report.findings[alike.first];
    let said = |one: &Finding| match words::share(one.share_failing).as_str() {
        "always" => "all".to_owned(),
        share => share.to_owned(),
    };
    let mut shares: Vec<String> =
        [all().min_by(by_share), all().max_by(by_share)].into_iter().flatten().map(said).collect();
    shares.dedup();
    let objects = match (first.subject.kind, subjects.len()) {
        (Kind::Ingress, many) if many > 1 => format!("{many} Ingresses"),
        (kind, many) => words::count(many, kind.as_str()),
    };
    let share = match first.share_failing.is_none() {
        false => format!("{} of the calls to ", shares.join(" to ")),
        true => String::new(),
    };
    let cure = match all().filter(|one| !one.cures.is_empty()).count() {
        0 => "no cure was confirmed".to_owned(),
        some if some == alike.all.len() => "each has a cure".to_owned(),
        some => format!("a cure was confirmed for {some} of them"),
    };
    format!("{share}{objects}: {}; {cure}", scan::because(first))
}

/// How calls end, however long that takes.
fn manner(outcome: Outcome) -> String {
    match outcome {
        Outcome::Answered { after } if after.is_zero() => "not yet".to_owned(),
        Outcome::Answered { .. } => "answered late".to_owned(),
        Outcome::Status { code, .. } => code.to_string(),
        other => other.to_string(),
    }
}

fn names(what: &str, names: &[String], all: usize) -> String {
    if names.is_empty() {
        return String::new();
    }
    let shown: Vec<String> = names.iter().take(MOST_NAMES).map(|one| escape(one)).collect();
    let more = match all - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let list = format!("<code>{}</code>{more}", shown.join("</code>, <code>"));
    match names.len() > 4 {
        false => format!("<p>{what}: {list}</p>\n"),
        true => {
            format!("<details>\n<summary>{what}: {all}</summary>\n<p>{list}</p>\n</details>\n")
        }
    }
}

fn evidence(report: &ScanReport, at: usize) -> String {
    let rows: String = report
        .evidence
        .get(at)
        .into_iter()
        .flatten()
        .map(|one| {
            let place = match &one.place {
                None => String::new(),
                Some(place) => format!("<b>{}</b>: ", escape(&place.to_string())),
            };
            let see = one
                .see()
                .map_or(String::new(), |see| format!("<br/>see: <code>{}</code>", escape(&see)));
            format!(
                "<li>{place}{}<br/><code class=\"dim\">{}</code>{see}</li>\n",
                escape(&one.what),
                escape(&one.by.to_string())
            )
        })
        .collect();
    match rows.as_str() {
        "" => String::new(),
        rows => format!(
            "<details>\n<summary>Observation</summary>\n<ol class=\"evidence\">\n{rows}</ol>\n</details>\n"
        ),
    }
}

fn way(report: &ScanReport, shown: &Shown, way: &Way) -> String {
    let Some(flow) = &shown.flow else { return String::new() };
    let trace = format!("uturn trace --from {} --to {}", flow.from, flow.to);
    match way {
        Way::SeenAt(at) => {
            let (number, other) = (at + 1, &report.findings[*at]);
            format!(
                "<p>The packet's way is drawn at <a href=\"#f{number}\">{} {}</a></p>\n",
                other.code,
                escape(&other.subject.short())
            )
        }
        Way::Drawn(picture) => format!(
            "<details>\n<summary>The packet's way</summary>\n<div class=\"way\" tabindex=\"0\" \
             role=\"region\" aria-label=\"The packet's way\">\n{picture}</div>\n<p>In words: \
             <code>{}</code></p>\n</details>\n",
            escape(&trace)
        ),
        Way::Untold => String::new(),
        Way::Named => format!("<p>The packet's way: <code>{} -o svg</code></p>\n", escape(&trace)),
    }
}

fn cures(finding: &Finding, all: &[Cure]) -> String {
    let offered: Vec<&Cure> = all.iter().filter(|one| one.is_offered()).collect();
    let refused: Vec<&Cure> = all.iter().filter(|one| !one.is_offered()).collect();
    if all.is_empty() {
        // A single one stands above already.
        if finding.cures.len() < 2 {
            return String::new();
        }
        let list: String =
            finding.cures.iter().map(|one| format!("<li>{}</li>\n", escape(one))).collect();
        return format!("<details>\n<summary>Cures</summary>\n<ul>\n{list}</ul>\n</details>\n");
    }
    let mut text = match offered.len() {
        0 => "<details>\n<summary>No cure works here</summary>\n".to_owned(),
        count => format!("<details>\n<summary>{}</summary>\n", words::count(count, "cure")),
    };
    for one in offered {
        text.push_str(&offer(one));
    }
    if !refused.is_empty() {
        let list: String = refused
            .iter()
            .map(|one| {
                let why = one.refused.as_deref().unwrap_or_default();
                format!(
                    "<li>{}: <span class=\"dim\">{}</span></li>\n",
                    escape(&one.title),
                    escape(why)
                )
            })
            .collect();
        text.push_str(&format!("<div class=\"cure\"><h4>Not here</h4>\n<ul>\n{list}</ul></div>\n"));
    }
    text.push_str("</details>\n");
    text
}

fn offer(one: &Cure) -> String {
    let mut text = format!(
        "<div class=\"cure\">\n<h4>{} <span class=\"dim\">{}</span></h4>\n<ul>\n",
        escape(&one.title),
        escape(one.name)
    );
    let mut item = |what: &str, said: &str| {
        text.push_str(&format!("<li>{what}: {}</li>\n", escape(said)));
    };
    item("now", &cure::standing(&one.before));
    if let Some(after) = &one.after {
        item("then", &cure::standing(after));
    }
    for condition in &one.conditions {
        let word = match condition.answer {
            Answer::Holds => "holds",
            Answer::Fails => "fails",
            Answer::Unknown => "make sure",
        };
        item(word, &format!("{}: {}", condition.what, condition.because));
    }
    for effect in &one.effects {
        item("costs", effect);
    }
    for command in &one.commands {
        item("do", command);
    }
    text.push_str("</ul>\n");
    for changed in &one.changed {
        text.push_str(&diff(&unified(&changed.name, changed.before.as_deref(), &changed.after)));
    }
    text.push_str("</div>\n");
    text
}

fn diff(text: &str) -> String {
    let lines: String = text
        .lines()
        .map(|line| {
            let class = match line.as_bytes().first() {
                _ if line.starts_with("---") || line.starts_with("+++") => "dim",
                Some(b'+') => "add",
                Some(b'-') => "del",
                Some(b'@') => "dim",
                _ => "same",
            };
            format!("<span class=\"{class}\">{}</span>\n", escape(line))
        })
        .collect();
    format!("<pre class=\"diff\" tabindex=\"0\" aria-label=\"Diff\">{lines}</pre>\n")
}
